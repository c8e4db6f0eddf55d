//! A folder that is gone when the program ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::WriteError;
use crate::output::{forget_unfinished, remember_unfinished};

/// A folder among the temporary files of the system. It is removed when it is dropped, and by
/// [`remove_unfinished`](crate::remove_unfinished).
#[derive(Debug)]
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// An empty folder.
    pub fn create() -> Result<Self, WriteError> {
        let place = std::env::temp_dir();
        for attempt in 0_u32..1000 {
            let path = place.join(format!("hbpca-{}-{attempt}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {
                    remember_unfinished(&path);
                    return Ok(Self(path));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(WriteError::io(&path.display().to_string(), error)),
            }
        }
        Err(WriteError::io(&place.display().to_string(), io::ErrorKind::AlreadyExists.into()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Nothing can be done about a refusal here.
        let _ = fs::remove_dir_all(&self.0);
        forget_unfinished(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_goes_with_what_is_in_it() {
        let [first, second] = [(); 2].map(|()| TemporaryFolder::create().unwrap());
        let path = first.path().to_owned();
        assert!(path.is_dir() && path != second.path());
        fs::write(path.join("x"), "1").unwrap();
        drop(first);
        assert!(!path.exists() && second.path().is_dir());
    }
}
