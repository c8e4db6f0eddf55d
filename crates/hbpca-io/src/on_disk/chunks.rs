//! A chunk folder read part by part: its parts are the chunks, since a checksum is of a whole part.

use hbpca::RowChunks;

use super::OnDisk;
use crate::ChunkFolder;

impl OnDisk for ChunkFolder {
    /// A part is read whole, for its checksum, and decoded beside its bytes.
    fn chunk_memory(&self) -> u64 {
        2 * self.largest_part()
    }

    fn column_names(&self) -> Option<&[String]> {
        Self::column_names(self)
    }

    fn memory(&self) -> u64 {
        let value = if self.is_single() { 4 } else { 8 };
        let entries = self.nnz() as u64;
        if self.is_sparse() { entries * (value + 4) + 8 * self.n_rows() as u64 } else { entries * value }
    }
}
