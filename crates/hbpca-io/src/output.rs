//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::WriteError;

/// Files under their temporary names, for a program that must end without dropping anything.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what every [`OutputFile`], and every folder, of this program has written so far: for signal handlers, right before the program ends.
pub fn remove_unfinished() {
    for temporary in unfinished().drain(..) {
        // The program is ending: a refusal helps no more.
        let _ = if temporary.is_dir() { fs::remove_dir_all(temporary) } else { fs::remove_file(temporary) };
    }
}

/// Notes a file or a folder under its temporary name.
pub(crate) fn remember_unfinished(temporary: &Path) {
    unfinished().push(temporary.to_owned());
}

/// The file or folder has its own name now, or is gone.
pub(crate) fn forget_unfinished(temporary: &Path) {
    unfinished().retain(|other| other != temporary);
}

/// A file being written under a temporary name in the same folder; [`OutputFile::commit`] gives it its own.
/// If it is dropped before that, nothing remains. Devices and pipes are written directly.
pub struct OutputFile {
    name: String,
    target: PathBuf,
    temporary: Option<PathBuf>,
    out: BufWriter<File>,
}

impl OutputFile {
    /// Starts the file: proves, before any work is done, that it can be written.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let name = path.display().to_string();
        Self::start(path, &name).map_err(|source| WriteError::io(&name, source))
    }

    fn start(path: &Path, name: &str) -> io::Result<Self> {
        // A link stays a link: what it points to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Ok(about) = fs::metadata(&target)
            && !about.is_file()
        {
            let out = BufWriter::new(File::options().write(true).open(&target)?);
            return Ok(Self { name: name.to_owned(), target, temporary: None, out });
        }
        let file_name =
            target.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy().into_owned();
        for attempt in 0_u32.. {
            let temporary =
                target.with_file_name(format!(".{file_name}.{}.{attempt}.part", std::process::id()));
            match File::options().read(true).write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    remember_unfinished(&temporary);
                    let out = BufWriter::with_capacity(1 << 18, file);
                    return Ok(Self { name: name.to_owned(), target, temporary: Some(temporary), out });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the file, for what must be kept aside meanwhile.
    pub(crate) fn folder(&self) -> &Path {
        folder_of(&self.target)
    }

    /// Takes away what programs that were killed have left of this file under temporary names. Those of programs that still
    /// run stay; where that cannot be told, all do.
    pub fn remove_abandoned(path: &Path) {
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let Some(name) = target.file_name().map(|name| format!(".{}.", name.to_string_lossy())) else {
            return;
        };
        if !Path::new("/proc/self").exists() {
            return;
        }
        let Ok(entries) = fs::read_dir(folder_of(&target)) else { return };
        for entry in entries.flatten() {
            // .NAME.PROCESS.ATTEMPT.part
            let file = entry.file_name().to_string_lossy().into_owned();
            let numbers = file.strip_prefix(&name).and_then(|rest| rest.strip_suffix(".part"));
            let process =
                numbers.and_then(|numbers| numbers.split_once('.')).and_then(|(process, attempt)| {
                    attempt.parse::<u32>().ok()?;
                    process.parse::<u32>().ok()
                });
            if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
                // Where it cannot be removed nothing is lost but room.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Gives the file its name, replacing what had it, once its content has reached the disk: after a power failure there is
    /// the old file or the new one.
    pub fn commit_durably(mut self) -> Result<(), WriteError> {
        let (name, is_file) = (self.name.clone(), self.temporary.is_some());
        let refused = |source| WriteError::io(&name, source);
        if is_file {
            self.out.flush().and_then(|()| self.out.get_ref().sync_all()).map_err(refused)?;
        }
        let folder = self.folder().to_owned();
        self.commit()?;
        // The name, too, has to reach the disk; elsewhere folders cannot be opened.
        if cfg!(unix) && is_file {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(refused)?;
        }
        Ok(())
    }

    /// Gives the file its name, replacing what had it.
    pub fn commit(mut self) -> Result<(), WriteError> {
        let result = self.out.flush().and_then(|()| match self.temporary.take() {
            Some(temporary) => {
                let renamed = fs::rename(&temporary, &self.target);
                match renamed {
                    Ok(()) => forget_unfinished(&temporary),
                    Err(_) => self.temporary = Some(temporary),
                }
                renamed
            }
            None => Ok(()),
        });
        result.map_err(|source| WriteError::io(&self.name, source))
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing can be done about a refusal here, and the file's own name is untouched.
            let _ = fs::remove_file(temporary);
            forget_unfinished(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|x| x.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        fs::write(&path, "old").unwrap();
        let mut abandoned = OutputFile::create(&path).unwrap();
        abandoned.write_all(b"half").unwrap();
        drop(abandoned);
        assert_eq!((names(folder.path()), fs::read(&path).unwrap()), (vec!["x.csv".into()], b"old".to_vec()));
        let mut whole = OutputFile::create(&path).unwrap();
        whole.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        whole.commit().unwrap();
        assert_eq!((names(folder.path()), fs::read(&path).unwrap()), (vec!["x.csv".into()], b"new".to_vec()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_killed_programs_left_is_taken_away_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        let alive = OutputFile::create(&path).unwrap();
        let dead = 4_194_305; // beyond the largest number of a process
        let gone = format!(".x.csv.{dead}.0.part");
        let others = [format!(".y.csv.{dead}.0.part"), format!(".x.csv.{dead}.part"), "x.csv".into()];
        others.iter().chain([&gone]).for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        OutputFile::remove_abandoned(&path);
        let left = names(folder.path());
        assert!(
            left.len() == 4 && !left.contains(&gone) && others.iter().all(|x| left.contains(x)),
            "{left:?}"
        );
        drop(alive);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named_at_once() {
        let error = OutputFile::create(Path::new("no/such/folder/x.csv")).err().unwrap();
        assert!(error.to_string().starts_with("no/such/folder/x.csv: "), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_are_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut out = OutputFile::create(&link).unwrap();
        out.write_all(b"new").unwrap();
        out.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        let mut null = OutputFile::create(Path::new("/dev/null")).unwrap();
        null.write_all(b"gone").unwrap();
        null.commit().unwrap();
    }
}
