//! The bytes of a Parquet file, read from many threads.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;

use crate::ReadError;
use crate::input::Opened;

/// A file, or bytes in memory.
#[derive(Clone)]
pub(super) enum SharedBytes {
    /// Clones of a file share one position, so that seeking and reading need a lock.
    File {
        file: Arc<Mutex<File>>,
        length: u64,
    },
    Memory(Bytes),
}

impl SharedBytes {
    pub(super) fn open(mut opened: Opened) -> std::result::Result<Self, ReadError> {
        match (&opened.plain, opened.size) {
            (Some(path), Some(length)) => {
                let file = File::open(path).map_err(|source| ReadError::io(&opened.name, source))?;
                Ok(Self::File { file: Arc::new(Mutex::new(file)), length })
            }
            _ => Ok(Self::Memory(opened.read_all()?.into())),
        }
    }

    fn read_at(&self, start: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File { file, .. } => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(start))?;
                file.read(buffer)
            }
            Self::Memory(bytes) => {
                let mut cursor = Cursor::new(bytes);
                cursor.set_position(start);
                cursor.read(buffer)
            }
        }
    }
}

impl Length for SharedBytes {
    fn len(&self) -> u64 {
        match self {
            Self::File { length, .. } => *length,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }
}

/// Reads on from a place of its own.
pub(super) struct From {
    bytes: SharedBytes,
    at: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.bytes.read_at(self.at, buffer)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl ChunkReader for SharedBytes {
    type T = io::BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(io::BufReader::new(From { bytes: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|&end| end <= self.len());
        let Some(end) = end else {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start} are claimed, but the file has only {}",
                self.len()
            )));
        };
        match self {
            // The range was checked against the length, which is a usize.
            Self::Memory(bytes) => Ok(bytes.slice(start as usize..end as usize)),
            Self::File { .. } => {
                let mut buffer = Vec::with_capacity(length);
                From { bytes: self.clone(), at: start }.take(length as u64).read_to_end(&mut buffer)?;
                if buffer.len() < length {
                    return Err(ParquetError::EOF("the file became shorter".into()));
                }
                Ok(buffer.into())
            }
        }
    }
}
