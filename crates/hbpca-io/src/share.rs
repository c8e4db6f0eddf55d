//! One rank's share of a matrix.

use std::ops::Range;
use std::path::{Path, PathBuf};

use hbpca::RowChunks;

use crate::natural_order::natural_order;
use crate::on_disk::RowRange;
use crate::{ByteSize, Input, OnDisk, ReadError, ReadOptions, Storage, machine_memory, on_disk};

/// What one of several ranks reads.
pub enum Share {
    /// Rows that follow each other, of a matrix that is stored row by row.
    Rows {
        /// The rows, in shards that are summed one by one.
        shards: Vec<RowRange>,
        /// The number of the first one.
        first: usize,
        /// How many rows all ranks have.
        n: usize,
        /// Whether they fit into the memory of a rank.
        fits: bool,
        /// Bytes of memory that a rank may take.
        memory: u64,
    },
    /// Whole files.
    Parts(Input),
}

/// How rows are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// One shard for each rank.
    ByRanks,
    /// Into shards that do not depend on the number of ranks, each of which gets some.
    ByData,
}

/// Shards of a matrix that is cut without asking how many ranks there are: at most, and where each has few entries for its d columns. As
/// many ranks can share it.
const MOST_SHARDS: usize = 64;
const FEW_SHARDS: usize = 8;

/// A shard has eight entries a column at least, so that adding its sum is a small part of making it.
fn n_shards(rows: &dyn RowChunks) -> usize {
    let worth = rows.nnz() / (8 * rows.n_cols()).max(1);
    worth.clamp(FEW_SHARDS, MOST_SHARDS).min(rows.n_rows())
}

/// Bytes of memory that such a matrix is planned with where none are given: what a machine happens to have must not matter.
pub const NOMINAL_MEMORY: u64 = 4 << 30;

/// The share of rank `rank` of `size`. Rows are cut evenly where the storage allows to read some of them; else whole parts are
/// dealt by their size, and there must be one for every rank. `memory` is that of a rank; by default all
/// ranks together take half of what a machine has, as if they were on one.
pub fn share(
    input: &Input,
    options: &ReadOptions,
    (rank, size): (usize, usize),
    cut: Cut,
    memory: Option<ByteSize>,
    beside: impl Fn(&dyn RowChunks) -> u64,
) -> Result<Share, ReadError> {
    match on_disk(input, options)? {
        Storage::OnDisk(mut rows) => {
            rows.count_entries()?;
            let n = rows.n_rows();
            let n_shards = match cut {
                Cut::ByRanks => size,
                Cut::ByData => n_shards(&*rows),
            };
            if n < size {
                let text = format!("{n} rows for {size} ranks: start at most {n} of them");
                return Err(ReadError::option(&input.name(), text));
            }
            if n_shards < size {
                let text = format!(
                    "--reproducible cuts the rows into {n_shards} shards: start at most so many ranks, not {size}"
                );
                return Err(ReadError::option(&input.name(), text));
            }
            let all = RowRange::new(rows, 0..n);
            let own: Vec<Range<usize>> =
                range(n_shards, rank, size).map(|shard| range(n, shard, n_shards)).collect();
            let (first, end) = (own[0].start, own[own.len() - 1].end);
            let fits = |rows: &RowRange, memory: u64| {
                rows.memory().saturating_mul(2).saturating_add(beside(rows)) <= memory
            };
            let given = memory.map(|ByteSize(memory)| memory);
            let (fits, memory) = match cut {
                Cut::ByRanks => {
                    let memory = given
                        .unwrap_or_else(|| machine_memory().map_or(u64::MAX, |all| all / 2 / size as u64));
                    (fits(&all.other(first..end), memory), memory)
                }
                // As one rank would do it.
                Cut::ByData => {
                    let memory = given.unwrap_or(NOMINAL_MEMORY);
                    (fits(&all, memory), memory)
                }
            };
            let shards = own.into_iter().map(|rows| all.other(rows)).collect();
            Ok(Share::Rows { shards, first, n, fits, memory })
        }
        Storage::Whole { reason, .. } if cut == Cut::ByData => Err(ReadError::option(
            &input.name(),
            format!(
                "--reproducible cuts the rows into shards, and they cannot be read so because {reason}: convert them with hbpca convert \
                 to .npy, .npz or a chunk folder (a name ending in .chunks)"
            ),
        )),
        Storage::Whole { reason, .. } => {
            let files = input.files()?.unwrap_or_default();
            if files.len() < size {
                let text = format!(
                    "{} for {size} ranks, and it cannot be read in ranges of rows because {reason}: give at least {size} parts, \
                     or convert it with hbpca convert to .npy, .npz or a chunk folder (a name ending in .chunks)",
                    match files.len() {
                        0 => "a stream".to_owned(),
                        1 => "1 file".to_owned(),
                        n => format!("{n} parts"),
                    }
                );
                return Err(ReadError::option(&input.name(), text));
            }
            let bytes = |path: &PathBuf| std::fs::metadata(path).map_or(0, |about| about.len());
            let sizes: Vec<u64> = files.iter().map(bytes).collect();
            let mine = deal(&sizes, size).swap_remove(rank);
            Ok(Share::Parts(Input::paths(mine.into_iter().map(|i| files[i].clone()))))
        }
    }
}

/// The `rank`-th of `size` nearly equal ranges of `0..n`.
fn range(n: usize, rank: usize, size: usize) -> Range<usize> {
    let cut = |r: usize| (n as u128 * r as u128 / size as u128) as usize;
    cut(rank)..cut(rank + 1)
}

/// The parts of every rank: the largest first, each to the rank that has least; none is left without.
fn deal(sizes: &[u64], ranks: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(sizes[i]), i));
    let mut dealt = vec![(0_u64, Vec::new()); ranks];
    for i in order {
        let least = dealt.iter_mut().min_by_key(|(bytes, parts)| (!parts.is_empty(), *bytes));
        if let Some((bytes, parts)) = least {
            *bytes += sizes[i];
            parts.push(i);
        }
    }
    dealt
        .into_iter()
        .map(|(_, mut parts)| {
            parts.sort_unstable();
            parts
        })
        .collect()
}

/// The files that a name with `*` or `?` in its last part stands for, in natural order; the name itself where it is a file or has
/// neither.
pub fn expand(path: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let pattern = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    if path.exists() || !pattern.contains(['*', '?']) {
        return Ok(vec![path.to_path_buf()]);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.display().to_string();
    let refused = |source| ReadError::io(&name, source);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if matches(pattern.as_bytes(), file.as_bytes()) {
            found.push(path.with_file_name(entry.file_name()));
        }
    }
    if found.is_empty() {
        return Err(ReadError::malformed(&name, "no file has a name like this"));
    }
    found.sort_by(|a, b| natural_order(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(found)
}

/// Whether a name is like a pattern, in which `*` stands for anything and `?` for one byte.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.first(), name.first()) {
        (None, None) => true,
        (Some(b'*'), _) => matches(&pattern[1..], name) || !name.is_empty() && matches(pattern, &name[1..]),
        (Some(b'?'), Some(_)) => matches(&pattern[1..], &name[1..]),
        (Some(a), Some(b)) if a == b => matches(&pattern[1..], &name[1..]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_all_rows_evenly() {
        for (n, size) in [(7, 3), (3, 3), (100, 7)] {
            let all: Vec<usize> = (0..size).flat_map(|rank| range(n, rank, size)).collect();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
            assert!((0..size).all(|rank| range(n, rank, size).len() >= n / size));
        }
    }

    #[test]
    fn parts_are_dealt_by_size_and_every_rank_gets_one() {
        assert_eq!(deal(&[10, 1, 1, 8], 2), [vec![0], vec![1, 2, 3]]);
        assert_eq!(deal(&[0, 0, 0], 3), [vec![0], vec![1], vec![2]]);
        assert_eq!(deal(&[5, 5, 5, 5], 2), [vec![0, 2], vec![1, 3]]);
    }

    #[test]
    fn names_with_stars_find_files_in_natural_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["part-10.npy", "part-2.npy", "part-.txt", "other"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names = |pattern: &str| {
            let found = expand(&folder.path().join(pattern)).unwrap();
            found.iter().map(|x| x.file_name().unwrap().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("part-*.npy"), ["part-2.npy", "part-10.npy"]);
        assert_eq!(names("part-?.npy"), ["part-2.npy"]);
        assert_eq!(names("nothing.npy"), ["nothing.npy"]);
        assert!(expand(&folder.path().join("*.csv")).unwrap_err().to_string().contains("no file has a name"));
    }
}
