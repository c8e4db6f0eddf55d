//! Cells of an `.h5ad` file that stay there: compressed rows or a dense array, unpacked and prepared chunk by chunk in every pass.

use std::ops::Range;

use hbpca::{Error, Matrix, RowChunks};

use super::{OnDisk, Refusal, failed};
use crate::ReadError;
use crate::block::{Layout, RowBlock, Values};
use crate::h5ad::Cells;

/// Chunks until others are cut.
const DEFAULT_CHUNK: u64 = 8 << 20;
/// Row starts looked at together.
const STARTS_AT_ONCE: usize = 1 << 16;
/// Entries counted together.
const ENTRIES_AT_ONCE: u64 = 4 << 20;

/// The rows of a file.
#[derive(Debug)]
pub(super) struct CellsOnDisk {
    cells: Cells,
    /// Entries of the genes that are used: at most so many, and exactly once they were counted.
    nnz: u64,
    counted: bool,
    starts: Vec<usize>,
    chunk_memory: u64,
}

impl CellsOnDisk {
    pub(super) fn open(cells: Cells) -> Result<Self, Refusal> {
        if cells.n_rows() == 0 || cells.n_columns() == 0 {
            return Err(ReadError::malformed(cells.name(), "there are no rows or no columns").into());
        }
        let stored = cells.stored();
        if stored.is_by_columns() {
            let reason =
                "its entries are stored by columns (CSC): anndata writes adata.X.tocsr() by rows".to_owned();
            let growth = stored.bytes() as f64 / cells.size().max(1) as f64;
            return Err(Refusal::Unsuitable { reason, growth });
        }
        let (sparse, masked) = (stored.is_sparse(), cells.is_masked());
        let nnz = if sparse { stored.entries() } else { (cells.n_rows() * cells.n_columns()) as u64 };
        let counted = !(sparse && masked);
        let mut rows = Self { cells, nnz, counted, starts: Vec::new(), chunk_memory: 0 };
        rows.cut_chunks(DEFAULT_CHUNK)?;
        Ok(rows)
    }

    /// Bytes of an entry in memory.
    fn entry_memory(&self) -> u64 {
        let value = if self.cells.is_single() { 4 } else { 8 };
        if self.is_sparse() { value + 4 } else { value }
    }

    /// Cuts chunks of at most `bytes` bytes, all genes counted: these are unpacked before some are left out.
    fn cut_chunks(&mut self, bytes: u64) -> Result<(), ReadError> {
        let (n, entry) = (self.cells.n_rows(), self.entry_memory());
        let together = self.cells.stored().rows_together();
        let (mut starts, mut chunk, mut largest) = (vec![0], 0, 0);
        for from in (0..n).step_by(STARTS_AT_ONCE) {
            let rows = from..n.min(from + STARTS_AT_ONCE);
            let row_starts = self.cells.row_starts(rows.clone())?;
            for (row, pair) in rows.zip(row_starts.windows(2)) {
                let memory = (pair[1] - pair[0]) * entry + 8;
                if chunk > 0 && chunk + memory > bytes {
                    starts.push(row);
                    chunk = 0;
                }
                chunk += memory;
                largest = largest.max(chunk);
            }
        }
        starts.push(n);
        align(&mut starts, together);
        // A dense array is unpacked in bands of chunks.
        let band = if self.is_sparse() {
            0
        } else {
            together.min(n as u64) * self.cells.stored().shape().1 as u64 * entry
        };
        let largest = largest.max(band);
        starts.shrink_to_fit();
        (self.starts, self.chunk_memory) = (starts, largest);
        Ok(())
    }

    fn read(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        let d = self.cells.n_columns();
        let block = self.cells.block(rows).map_err(failed)?;
        matrix(block, d)
    }
}

/// Moves chunks to where rows that are stored together end, as long as none becomes larger or empty: they are then unpacked once.
fn align(starts: &mut Vec<usize>, together: u64) {
    let Some(together) = usize::try_from(together).ok().filter(|together| *together > 1) else { return };
    let (n, largest) = (starts[starts.len() - 1], starts[1]);
    let step = largest / together * together;
    if step > 0 {
        *starts = (0..n).step_by(step).chain([n]).collect();
    }
}

/// The rows of a block; NaN and infinities are found by who computes with them.
fn matrix(block: RowBlock, d: usize) -> Result<Matrix<'static>, Error> {
    use hbpca::{Csr, Dense};
    let n = block.n_rows();
    match (block.layout, block.values) {
        (Layout::Dense(d), Values::F32(x)) => Ok(Dense::deferring_finite_check(x.into(), n, d)?.into()),
        (Layout::Dense(d), Values::F64(x)) => Ok(Dense::deferring_finite_check(x.into(), n, d)?.into()),
        (Layout::Sparse { row_ends, columns }, values) => {
            let starts: Vec<usize> = std::iter::once(0).chain(row_ends).collect();
            match values {
                Values::F32(x) => Ok(Csr::deferring_finite_check(d, starts, columns, x)?.into()),
                Values::F64(x) => Ok(Csr::deferring_finite_check(d, starts, columns, x)?.into()),
            }
        }
    }
}

impl RowChunks for CellsOnDisk {
    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        self.cut_chunks(bytes).map_err(failed)
    }

    fn n_rows(&self) -> usize {
        self.cells.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.cells.n_columns()
    }

    fn nnz(&self) -> usize {
        self.nnz as usize
    }

    fn is_sparse(&self) -> bool {
        self.cells.stored().is_sparse()
    }

    fn bytes(&self) -> u64 {
        self.cells.stored().bytes()
    }

    fn starts(&self) -> &[usize] {
        &self.starts
    }

    fn read_chunk(&mut self, i: usize, _recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        self.read(self.starts[i]..self.starts[i + 1])
    }

    fn version(&self) -> Option<u64> {
        self.cells.version()
    }

    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        self.read(rows)
    }
}

impl OnDisk for CellsOnDisk {
    fn chunk_memory(&self) -> u64 {
        // Unpacked bytes stand beside the numbers that they become.
        2 * self.chunk_memory
    }

    fn memory(&self) -> u64 {
        self.nnz * self.entry_memory() + if self.is_sparse() { 8 * self.n_rows() as u64 } else { 0 }
    }

    fn column_names(&self) -> Option<&[String]> {
        self.cells.genes()
    }

    fn count_entries(&mut self) -> Result<(), ReadError> {
        if self.counted {
            return Ok(());
        }
        let n = self.cells.n_rows();
        let average = (self.cells.stored().entries() / n as u64).max(1);
        let step = (ENTRIES_AT_ONCE / average).max(1) as usize;
        let mut nnz = 0;
        for from in (0..n).step_by(step) {
            nnz += self.cells.count(from..n.min(from.saturating_add(step)))?;
        }
        (self.nnz, self.counted) = (nnz, true);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_end_where_stored_ones_do_if_they_are_large_enough() {
        let mut starts = vec![0, 25, 50, 60];
        align(&mut starts, 10);
        assert_eq!(starts, [0, 20, 40, 60]);
        let mut starts = vec![0, 25, 50, 60];
        align(&mut starts, 30);
        assert_eq!(starts, [0, 25, 50, 60]);
        align(&mut starts, 1);
        assert_eq!(starts, [0, 25, 50, 60]);
    }
}
