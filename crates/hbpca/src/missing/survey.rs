//! What one pass over chunks finds out, for a storage that must be read once to know how many rows it has.

use super::filled_rows::{Scan, Scanned};
use super::{Filling, Missing};
use crate::columns::{ColumnStatistics, GatheredStatistics, check_weights};
use crate::matrix::{Matrix, hash_of_bits};
use crate::{CancelToken, Error};

/// Where chunks start, what they hold, the statistics of all columns and a hash of each chunk.
///
/// A fit of the same chunks that [is given](crate::Run::surveyed) the survey needs no pass for the statistics, and refuses rows
/// that are others than the surveyed ones. Rows that have weights or holes are read once more: means are told relative to the heaviest
/// row, and what holes are filled with is known after the last one.
#[derive(Debug)]
pub struct RowSurvey {
    d: usize,
    missing: Missing,
    /// As long as rows have neither weights nor holes.
    gathered: Option<GatheredStatistics>,
    /// Where holes are no error.
    scan: Option<Scan>,
    weighted: bool,
    /// The heaviest row so far that is not left out, and its weight.
    heaviest: Option<(f64, Vec<f64>)>,
    starts: Vec<usize>,
    hashes: Vec<u64>,
    nnz: usize,
}

impl RowSurvey {
    /// Nothing seen yet of `d` columns.
    pub fn of_columns(d: usize) -> Self {
        Self {
            d,
            missing: Missing::Error,
            gathered: Some(GatheredStatistics::of_columns(d)),
            scan: None,
            weighted: false,
            heaviest: None,
            starts: vec![0],
            hashes: Vec::new(),
            nnz: 0,
        }
    }

    /// Of rows whose holes become what is said here; without it they are an error.
    #[must_use]
    pub fn completed_by(self, missing: Missing) -> Self {
        Self { missing, ..self }
    }

    /// Adds the next chunk. Refuses NaN and infinities, naming the place, unless holes are no error.
    pub fn add(&mut self, chunk: &Matrix<'_>) -> Result<(), Error> {
        self.add_rows(chunk, None)
    }

    /// Adds the next chunk, with a weight for each of its rows.
    pub fn add_weighted(&mut self, chunk: &Matrix<'_>, weights: &[f64]) -> Result<(), Error> {
        if weights.len() != chunk.n_rows() {
            return Err(Error::shape("weights of the rows of a chunk", chunk.n_rows(), weights.len()));
        }
        self.weighted = true;
        self.add_rows(chunk, Some(weights))
    }

    fn add_rows(&mut self, chunk: &Matrix<'_>, weights: Option<&[f64]>) -> Result<(), Error> {
        if chunk.n_cols() != self.d {
            return Err(Error::shape("columns of a chunk", self.d, chunk.n_cols()));
        }
        let first = self.n_rows();
        if self.missing != Missing::Error {
            let scan = || Scan::of_columns(self.d, chunk.is_sparse(), self.missing);
            self.scan.get_or_insert_with(scan).add(chunk, weights);
        }
        if self.weighted || self.scan.as_ref().is_some_and(Scan::has_holes) {
            self.gathered = None;
        }
        if let Some(gathered) = &mut self.gathered {
            gathered.add(chunk, None, first, &CancelToken::default())?;
        }
        self.find_heaviest(chunk, weights, first);
        self.starts.push(first + chunk.n_rows());
        self.hashes.push(hash_of_bits(chunk));
        self.nnz += chunk.nnz();
        Ok(())
    }

    fn find_heaviest(&mut self, chunk: &Matrix<'_>, weights: Option<&[f64]>, first: usize) {
        let mut most = self.heaviest.as_ref().map_or(0.0, |(weight, _)| *weight);
        let mut found = None;
        for l in 0..chunk.n_rows() {
            let weight = weights.map_or(1.0, |weights| weights[l]);
            if weight > most && !self.scan.as_ref().is_some_and(|scan| scan.drops(first + l)) {
                (most, found) = (weight, Some(l));
            }
        }
        if let Some(l) = found {
            self.heaviest = Some((most, ColumnStatistics::pivot_at(chunk, l)));
        }
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

    /// What a fit with these weights, whose holes become what is said here, has to know.
    pub(crate) fn finish(
        self,
        weights: Option<&[f64]>,
        missing: Missing,
    ) -> Result<(Surveyed, Option<Scanned>), Error> {
        let n = self.n_rows();
        weights.map_or(Ok(()), |weights| check_weights(n, weights))?;
        if weights.is_some() && !self.weighted {
            let advice = "the rows were surveyed without them: add their chunks with `add_weighted`";
            return Err(Error::parameter("weights", format!("{n} numbers"), advice));
        }
        if missing != self.missing {
            let advice = format!("the rows were surveyed for {}: say so with `completed_by`", self.missing);
            return Err(Error::parameter("missing", missing, advice));
        }
        let Self { gathered, scan, heaviest, starts, hashes, .. } = self;
        let statistics = gathered.map(GatheredStatistics::finish).transpose()?;
        let pivot = heaviest.map(|(_, row)| row).unwrap_or_default();
        let scanned = scan.map(|scan| scan.finish(weights)).transpose()?.flatten();
        Ok((Surveyed { statistics, starts, hashes, pivot }, scanned))
    }
}

/// What is known of rows of which only whole chunks, in order, can be read.
#[derive(Clone, Debug)]
pub(crate) struct Surveyed {
    /// Of rows without weights and holes.
    pub(crate) statistics: Option<ColumnStatistics>,
    pub(crate) starts: Vec<usize>,
    /// Of the chunks as they will be read.
    pub(crate) hashes: Vec<u64>,
    /// The heaviest row.
    pub(crate) pivot: Vec<f64>,
}

impl Surveyed {
    /// The same for rows whose holes are filled.
    pub(crate) fn filled_with(mut self, filling: &Filling) -> Self {
        let holes = self.pivot.iter_mut().zip(&filling.values).filter(|(x, _)| x.is_nan());
        holes.for_each(|(x, value)| *x = *value);
        Self { statistics: None, hashes: Vec::new(), ..self }
    }

    /// Readings that told nothing of the columns.
    pub(crate) fn scans(&self) -> u64 {
        u64::from(self.statistics.is_none())
    }
}
