//! The rows of a chunk folder as an input like any other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hbpca::RowChunks;

use super::ChunkFolder;
use crate::ReadError;
use crate::block::{Labels, RowBlock};
use crate::source::{RowSource, Stated};

/// Reads one part after the other.
pub(crate) struct ChunkSource {
    folder: ChunkFolder,
    labels: Option<Labels>,
    next: usize,
    counter: Arc<AtomicU64>,
}

impl ChunkSource {
    pub(crate) fn open(path: &Path, counter: &Arc<AtomicU64>) -> Result<Self, ReadError> {
        let folder = ChunkFolder::open(path)?;
        Ok(Self { labels: folder.labels()?, folder, next: 0, counter: Arc::clone(counter) })
    }
}

impl RowSource for ChunkSource {
    fn stated(&self) -> Stated {
        let column_names = self.folder.column_names().map(<[String]>::to_vec);
        Stated { n_columns: Some(self.folder.n_cols()), column_names, ..Stated::default() }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        let k = self.next;
        let Some(part) = self.folder.manifest.parts.get(k) else { return Ok(Vec::new()) };
        self.counter.fetch_add(part.content.bytes, Ordering::Relaxed);
        let mut block = self.folder.block(k)?;
        let start = self.folder.starts()[k];
        block.labels = self.labels.as_ref().and_then(|all| all.slice(start, block.n_rows()));
        self.next += 1;
        Ok(vec![block])
    }
}
