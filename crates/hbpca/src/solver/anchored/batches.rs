//! Which rows are sampled: those in memory where only some are, else all.

use std::borrow::Cow;

use crate::operator::{CovarianceOperator, Products};
use crate::{Archive, Error, Replacement, Sampler};

/// Draws the start sample and the mini-batches.
#[derive(Debug)]
pub(super) struct Batches {
    sampler: Sampler,
    /// |S|.
    pub(super) size: usize,
    seed: u64,
    /// Rows that the sampler's numbers stand for, where only these may be drawn.
    pool: Option<Vec<usize>>,
}

impl Batches {
    /// Batches of `size` of n rows.
    pub(super) fn new(n: usize, size: usize, seed: u64) -> Result<Self, Error> {
        let sampler = Sampler::new(n, size, Replacement::Without, seed)?;
        Ok(Self { sampler, size, seed, pool: None })
    }

    /// Batches of at most `size` of these rows, ascending.
    pub(super) fn within(pool: Vec<usize>, size: usize, seed: u64) -> Result<Self, Error> {
        let batches = Self::new(pool.len(), size.min(pool.len()), seed)?;
        Ok(Self { pool: Some(pool), ..batches })
    }

    /// The next mini-batch: from the resident rows of the operator, else from the pool, else from all rows. Nothing where
    /// an operator with a pool of its own has no rows in it yet.
    pub(super) fn draw(&mut self, operator: &mut dyn CovarianceOperator) -> Option<Vec<usize>> {
        let pool = operator.resident_rows().or(self.pool.as_deref());
        if let Some(pool) = pool {
            if pool.is_empty() {
                return None;
            }
            self.sampler.resize(pool.len(), self.size.min(pool.len()));
        }
        Some(rows_of(pool, self.sampler.draw()).into_owned())
    }

    /// A sample of at most `count` rows from the same source.
    pub(super) fn sample(
        &self,
        count: usize,
        operator: &mut dyn CovarianceOperator,
    ) -> Result<Option<Vec<usize>>, Error> {
        let n_rows = operator.n_rows();
        if count == 0 || operator.resident_rows().is_some_and(<[usize]>::is_empty) {
            return Ok(None);
        }
        let pool = operator.resident_rows().or(self.pool.as_deref());
        let n = pool.map_or(n_rows, <[usize]>::len);
        let mut sampler = Sampler::new(n, count.min(n), Replacement::Without, self.seed)?;
        Ok(Some(rows_of(pool, sampler.draw()).into_owned()))
    }

    pub(super) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        self.sampler.archive(archive)
    }
}

/// The rows of a pool that `drawn` numbers, or `drawn` itself where there is no pool.
fn rows_of<'a>(pool: Option<&[usize]>, drawn: &'a [usize]) -> Cow<'a, [usize]> {
    match pool {
        None => drawn.into(),
        Some(pool) => drawn.iter().map(|&i| pool[i]).collect(),
    }
}
