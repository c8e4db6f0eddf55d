//! A folder that appears whole or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::ChunkFolder;
use crate::WriteError;
use crate::output::{forget_unfinished, remember_unfinished};

/// A chunk folder being written under a temporary name beside its own. If it is dropped before
/// [`OutputFolder::commit`], nothing remains.
pub(crate) struct OutputFolder {
    name: String,
    target: PathBuf,
    temporary: Option<PathBuf>,
}

impl OutputFolder {
    /// Starts the folder. An earlier chunk folder of the same name will be replaced; anything else is in the way.
    pub(crate) fn create(path: &Path) -> Result<Self, WriteError> {
        let name = path.display().to_string();
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if target.exists() && !ChunkFolder::recognise(&target) && !is_empty_folder(&target) {
            let text = "this exists and is no chunk folder: remove it, or choose another name";
            return Err(WriteError::unsuitable(&name, text));
        }
        let temporary = make_temporary(&target).map_err(|source| WriteError::io(&name, source))?;
        remember_unfinished(&temporary);
        Ok(Self { name, target, temporary: Some(temporary) })
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where its files are written.
    pub(crate) fn place(&self) -> &Path {
        self.temporary.as_deref().unwrap_or(&self.target)
    }

    /// Gives the folder its name.
    pub(crate) fn commit(mut self) -> Result<(), WriteError> {
        let Some(temporary) = self.temporary.clone() else { return Ok(()) };
        replace(&temporary, &self.target).map_err(|source| WriteError::io(&self.name, source))?;
        forget_unfinished(&temporary);
        self.temporary = None;
        Ok(())
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing can be done about a refusal here, and the folder's own name is untouched.
            let _ = fs::remove_dir_all(temporary);
            forget_unfinished(temporary);
        }
    }
}

fn is_empty_folder(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut files| files.next().is_none())
}

fn make_temporary(target: &Path) -> io::Result<PathBuf> {
    let file_name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy().into_owned();
    for attempt in 0_u32..1000 {
        let temporary = target.with_file_name(format!(".{file_name}.{}.{attempt}.part", std::process::id()));
        match fs::create_dir(&temporary) {
            Ok(()) => return Ok(temporary),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// A folder cannot be renamed onto one with files in it: the old one steps aside first, and comes back if that was in vain.
fn replace(temporary: &Path, target: &Path) -> io::Result<()> {
    if !target.exists() {
        return fs::rename(temporary, target);
    }
    let aside = temporary.with_extension("old");
    fs::rename(target, &aside)?;
    if let Err(error) = fs::rename(temporary, target) {
        fs::rename(&aside, target)?;
        return Err(error);
    }
    fs::remove_dir_all(&aside)
}
