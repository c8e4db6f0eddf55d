//! How much memory this process may take: the machine's, or less where its control group says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Bytes that the machine has, or that the control group of this process allows if that is less; nothing where neither can be
/// found out. Asked once: reading the files takes as long as a small fit.
pub fn machine_memory() -> Option<u64> {
    static MEMORY: OnceLock<Option<u64>> = OnceLock::new();
    *MEMORY.get_or_init(|| memory_below(Path::new("/")))
}

fn memory_below(root: &Path) -> Option<u64> {
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let machine = total_memory(&text("proc/meminfo"));
    let groups = text("proc/self/cgroup");
    let limits = groups.lines().filter_map(limit_files).flatten();
    let least = limits.filter_map(|file| limit(&fs::read_to_string(root.join(file)).ok()?)).min();
    machine.into_iter().chain(least).chain(address_space(&text("proc/self/limits"))).min()
}

/// `Max address space  1000  2000  bytes`, the soft limit first: what `ulimit -v` sets.
fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// `MemTotal:  123 kB`.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The files that limit a group and those above it: `0::/a/b` (version 2) or `9:memory:/a/b` (version 1).
fn limit_files(line: &str) -> Option<Vec<PathBuf>> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (folder, file) = if controllers.is_empty() {
        ("sys/fs/cgroup", "memory.max")
    } else if controllers.split(',').any(|name| name == "memory") {
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        return None;
    };
    let group = PathBuf::from(path.trim_start_matches('/'));
    Some(group.ancestors().map(|group| Path::new(folder).join(group).join(file)).collect())
}

/// A limit in bytes; `max` and version 1's enormous number are none.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        memory_below(root.path())
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:        1000 kB\nMemFree: 10 kB\n");

    #[test]
    fn the_machine_counts_where_no_group_limits() {
        assert_eq!(machine(&[]), None);
        assert_eq!(machine(&[MEMINFO]), Some(1_024_000));
        let unlimited = [MEMINFO, ("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(machine(&unlimited), Some(1_024_000));
        let enormous = [
            MEMINFO,
            ("proc/self/cgroup", "9:memory:/\n3:cpu:/x\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(machine(&enormous), Some(1_024_000));
    }

    #[test]
    fn a_limit_of_the_address_space_counts() {
        let limits = |soft: &str| {
            format!("Limit  Soft Limit  Hard Limit  Units\nMax address space  {soft}  unlimited  bytes\n")
        };
        assert_eq!(machine(&[MEMINFO, ("proc/self/limits", &limits("9000"))]), Some(9000));
        assert_eq!(machine(&[MEMINFO, ("proc/self/limits", &limits("unlimited"))]), Some(1_024_000));
    }

    #[test]
    fn the_tightest_group_above_the_process_counts() {
        let second = [
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "700000\n"),
            ("sys/fs/cgroup/a/memory.max", "600000\n"),
        ];
        assert_eq!(machine(&second), Some(600_000));
        let first = [
            MEMINFO,
            ("proc/self/cgroup", "4:cpuset,memory:/job\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n"),
        ];
        assert_eq!(machine(&first), Some(5000));
        // A group of its own name space, seen as the root.
        let root = [MEMINFO, ("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "4000\n")];
        assert_eq!(machine(&root), Some(4000));
    }
}
