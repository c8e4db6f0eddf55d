//! A file that must stay as it is while it is read again and again.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use bytemuck::Pod;
use twox_hash::XxHash3_64;

use crate::ReadError;

/// An open file, its size and when it was last written.
#[derive(Debug)]
pub(crate) struct WatchedFile {
    pub(crate) name: String,
    file: File,
    size: u64,
    modified: Option<SystemTime>,
}

impl WatchedFile {
    pub(crate) fn open(name: &str, path: &Path) -> Result<Self, ReadError> {
        let refused = |source| ReadError::io(name, source);
        let file = File::open(path).map_err(refused)?;
        let about = file.metadata().map_err(refused)?;
        let modified = about.modified().ok();
        Ok(Self { name: name.to_owned(), file, size: about.len(), modified })
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// One number for when several files were last written; nothing where the file system does not tell.
    pub(crate) fn version_of<'f>(files: impl Iterator<Item = &'f Self>) -> Option<u64> {
        let mut hasher = XxHash3_64::with_seed(0);
        for file in files {
            let since = file.modified?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            hasher.write(&file.size.to_le_bytes());
            hasher.write(&since.as_nanos().to_le_bytes());
        }
        Some(hasher.finish())
    }

    /// Fills `numbers` with what lies from byte `at` on, and makes sure that the file is still the one that was opened.
    pub(crate) fn fill<T: Pod>(&mut self, at: u64, numbers: &mut [T]) -> Result<(), ReadError> {
        let bytes = bytemuck::cast_slice_mut(numbers);
        let read = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.read_exact(bytes));
        if let Err(source) = read {
            self.refuse_changes()?;
            return Err(match source.kind() {
                io::ErrorKind::UnexpectedEof => {
                    let end = at + bytes.len() as u64;
                    self.changed(&format!("bytes {at} to {end} are not there any more"))
                }
                _ => ReadError::io(&self.name, source),
            });
        }
        self.refuse_changes()
    }

    /// Refuses a file of another size or with a later time than when it was opened.
    fn refuse_changes(&self) -> Result<(), ReadError> {
        let about = self.file.metadata().map_err(|source| ReadError::io(&self.name, source))?;
        if about.len() != self.size {
            return Err(self.changed(&format!("it had {} bytes and now has {}", self.size, about.len())));
        }
        if about.modified().ok() != self.modified {
            return Err(self.changed("it was written to"));
        }
        Ok(())
    }

    fn changed(&self, how: &str) -> ReadError {
        let text =
            format!("the file changed while it was being read: {how}; run again when nobody writes to it");
        ReadError::malformed(&self.name, text)
    }
}
