//! What one pass over chunks finds out, for a storage that must be read once to know how many rows it has.

use super::{ColumnStatistics, GatheredStatistics};
use crate::matrix::{Matrix, hash_of_bits};
use crate::{CancelToken, Error};

/// Where chunks start, what they hold, the statistics of all columns and a hash of each chunk.
///
/// A fit of the same chunks that [is given](crate::Run::surveyed) the survey needs no pass for the statistics, and refuses rows
/// that are others than the surveyed ones.
#[derive(Debug)]
pub struct RowSurvey {
    gathered: GatheredStatistics,
    starts: Vec<usize>,
    hashes: Vec<u64>,
    nnz: usize,
}

impl RowSurvey {
    /// Nothing seen yet of `d` columns.
    pub fn of_columns(d: usize) -> Self {
        let gathered = GatheredStatistics::of_columns(d);
        Self { gathered, starts: vec![0], hashes: Vec::new(), nnz: 0 }
    }

    /// Adds the next chunk. Refuses NaN and infinities, naming the place.
    pub fn add(&mut self, chunk: &Matrix<'_>) -> Result<(), Error> {
        let first = self.n_rows();
        self.gathered.add(chunk, None, first, &CancelToken::default())?;
        self.starts.push(first + chunk.n_rows());
        self.hashes.push(hash_of_bits(chunk));
        self.nnz += chunk.nnz();
        Ok(())
    }

    /// Rows seen.
    pub fn n_rows(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Chunk i holds rows `starts[i]..starts[i + 1]`.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Entries stored.
    pub fn nnz(&self) -> usize {
        self.nnz
    }

    /// The statistics, and the hash of each chunk.
    pub(crate) fn finish(self) -> Result<(ColumnStatistics, Vec<u64>), Error> {
        Ok((self.gathered.finish()?, self.hashes))
    }
}
