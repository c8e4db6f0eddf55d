//! Some of the rows on disk that follow each other.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hbpca::{Error, Matrix, RowChunks};

use super::OnDisk;

/// Rows that follow each other, of a matrix on disk; several such ranges share the matrix and take turns at reading it.
pub struct RowRange {
    rows: Arc<Mutex<Box<dyn OnDisk>>>,
    range: Range<usize>,
    starts: Vec<usize>,
    /// What all rows have.
    n_rows: usize,
    n_cols: usize,
    sparse: bool,
    column_names: Option<Vec<String>>,
}

impl RowRange {
    /// Rows `range` of `rows`, of which there is at least one.
    pub fn new(rows: Box<dyn OnDisk>, range: Range<usize>) -> Self {
        let (n_rows, n_cols, sparse) = (rows.n_rows(), rows.n_cols(), rows.is_sparse());
        let column_names = rows.column_names().map(<[String]>::to_vec);
        let rows = Arc::new(Mutex::new(rows));
        let mut part = Self { rows, range, starts: Vec::new(), n_rows, n_cols, sparse, column_names };
        part.find_starts();
        part
    }

    /// Other rows of the same matrix.
    #[must_use]
    pub fn other(&self, range: Range<usize>) -> Self {
        let mut part = Self {
            rows: Arc::clone(&self.rows),
            range,
            starts: Vec::new(),
            column_names: self.column_names.clone(),
            ..*self
        };
        part.find_starts();
        part
    }

    /// Chunks are those of the whole matrix, as far as they lie within.
    fn find_starts(&mut self) {
        let Range { start, end } = self.range;
        let starts: Vec<usize> = {
            let rows = self.all();
            rows.starts().iter().copied().filter(|at| *at > start && *at < end).collect()
        };
        self.starts = std::iter::once(start).chain(starts).chain([end]).map(|at| at - start).collect();
    }

    /// What these rows have of what all rows have, were all alike.
    fn share(&self, of_all: u64) -> u64 {
        (u128::from(of_all) * self.range.len() as u128).div_ceil(self.n_rows.max(1) as u128) as u64
    }

    fn all(&self) -> MutexGuard<'_, Box<dyn OnDisk>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RowChunks for RowRange {
    fn n_rows(&self) -> usize {
        self.range.len()
    }
    fn n_cols(&self) -> usize {
        self.n_cols
    }
    fn nnz(&self) -> usize {
        self.share(self.all().nnz() as u64) as usize
    }
    fn is_sparse(&self) -> bool {
        self.sparse
    }
    fn bytes(&self) -> u64 {
        self.share(self.all().bytes())
    }
    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        self.all().cut(bytes)?;
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
        self.all().version()
    }
    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        let first = self.range.start;
        self.all().read_rows(first + rows.start..first + rows.end)
    }
}

impl OnDisk for RowRange {
    fn chunk_memory(&self) -> u64 {
        self.all().chunk_memory()
    }
    fn memory(&self) -> u64 {
        self.share(self.all().memory())
    }
    fn column_names(&self) -> Option<&[String]> {
        self.column_names.as_deref()
    }
    fn read_weights(&mut self, rows: Range<usize>) -> Result<Option<Vec<f64>>, Error> {
        let first = self.range.start;
        self.all().read_weights(first + rows.start..first + rows.end)
    }
}
