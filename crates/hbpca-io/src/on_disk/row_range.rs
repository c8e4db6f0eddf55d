//! Some rows of a matrix on disk, as if there were no others.

use std::ops::Range;

use hbpca::{Error, Matrix, RowChunks};

use super::OnDisk;

/// Rows that follow each other.
pub struct RowRange {
    rows: Box<dyn OnDisk>,
    range: Range<usize>,
    starts: Vec<usize>,
}

impl RowRange {
    /// Rows `range` of `rows`, of which there is at least one.
    pub fn new(rows: Box<dyn OnDisk>, range: Range<usize>) -> Self {
        let mut part = Self { rows, range, starts: Vec::new() };
        part.find_starts();
        part
    }

    /// Chunks are those of the whole matrix, as far as they lie within.
    fn find_starts(&mut self) {
        let Range { start, end } = self.range;
        let within = self.rows.starts().iter().filter(|at| **at > start && **at < end);
        self.starts =
            std::iter::once(start).chain(within.copied()).chain([end]).map(|at| at - start).collect();
    }

    /// What these rows have of what all rows have, were all alike.
    fn share(&self, of_all: u64) -> u64 {
        (u128::from(of_all) * self.range.len() as u128).div_ceil(self.rows.n_rows().max(1) as u128) as u64
    }
}

impl RowChunks for RowRange {
    fn n_rows(&self) -> usize {
        self.range.len()
    }
    fn n_cols(&self) -> usize {
        self.rows.n_cols()
    }
    fn nnz(&self) -> usize {
        self.share(self.rows.nnz() as u64) as usize
    }
    fn is_sparse(&self) -> bool {
        self.rows.is_sparse()
    }
    fn bytes(&self) -> u64 {
        self.share(self.rows.bytes())
    }
    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        self.rows.cut(bytes)?;
        self.find_starts();
        Ok(())
    }
    fn starts(&self) -> &[usize] {
        &self.starts
    }
    fn read_chunk(&mut self, i: usize, _recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        self.read_rows(self.starts[i]..self.starts[i + 1])
    }
    fn version(&self) -> Option<u64> {
        self.rows.version()
    }
    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        self.rows.read_rows(self.range.start + rows.start..self.range.start + rows.end)
    }
}

impl OnDisk for RowRange {
    fn chunk_memory(&self) -> u64 {
        self.rows.chunk_memory()
    }
    fn memory(&self) -> u64 {
        self.share(self.rows.memory())
    }
    fn column_names(&self) -> Option<&[String]> {
        self.rows.column_names()
    }
}
