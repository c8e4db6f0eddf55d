//! The bytes of a file, read by position: on disk, or in memory where the file was compressed or piped.

use std::collections::HashSet;

use super::Fault;
use crate::on_disk::WatchedFile;

/// Where the bytes are.
#[derive(Debug)]
pub(crate) enum Storage {
    /// In a file that must not change.
    File(WatchedFile),
    /// In memory.
    Memory(Vec<u8>),
}

impl Storage {
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::File(file) => file.size(),
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// `length` bytes from `at` on. A claim of more than there are takes no memory.
    pub(super) fn read(&mut self, at: u64, length: u64) -> Result<Vec<u8>, Fault> {
        let size = self.size();
        let end = at.checked_add(length).filter(|end| *end <= size).ok_or_else(|| {
            Fault::from(format!("{length} bytes are said to lie at {at}, but the file has only {size}: it is cut off or damaged"))
        })?;
        match self {
            Self::Memory(bytes) => Ok(bytes[at as usize..end as usize].to_vec()),
            Self::File(file) => {
                let mut bytes = vec![0_u8; length as usize];
                file.fill(at, &mut bytes)?;
                Ok(bytes)
            }
        }
    }

    /// At most `length` bytes from `at` on: fewer at the end of the file.
    pub(super) fn read_up_to(&mut self, at: u64, length: u64) -> Result<Vec<u8>, Fault> {
        let left = self.size().saturating_sub(at);
        self.read(at, length.min(left))
    }
}

/// The places of one structure that were read. What belongs to a structure lies in the file once, so that all of it is no larger than the file.
pub(super) struct Visits {
    seen: HashSet<u64>,
    left: u64,
}

impl Visits {
    pub(super) fn of(storage: &Storage) -> Self {
        Self { seen: HashSet::new(), left: storage.size() }
    }

    /// Refuses a place that was visited before, and more bytes than there are.
    pub(super) fn visit(&mut self, at: u64, length: u64) -> Result<(), Fault> {
        if !self.seen.insert(at) {
            return Err("its parts lead back to each other in a circle".into());
        }
        let left = self.left.checked_sub(length);
        self.left =
            left.ok_or_else(|| Fault::from("its parts overlap: together they are larger than the file"))?;
        Ok(())
    }
}
