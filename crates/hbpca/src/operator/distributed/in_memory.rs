//! A rank whose rows are in memory.

use super::{Shard, ShardStatistics};
use crate::columns::{ColumnStatistics, Preprocessing};
use crate::matrix::Matrix;
use crate::operator::{Covariance, CovarianceOperator, Precision, PrecisionChoice, Product, Products};
use crate::rounding::RoundingBound;
use crate::{Block, CancelToken, Error};

/// A matrix in memory, with weights that have the mean `mean_weight` over all ranks.
pub(crate) struct MatrixShard<'m> {
    pub(crate) matrix: &'m Matrix<'m>,
    pub(crate) weights: Option<&'m [f64]>,
    pub(crate) mean_weight: f64,
    /// Whether the rows were rounded to single precision before.
    pub(crate) narrowed: bool,
    pub(crate) preprocessing: Preprocessing,
    pub(crate) precision: PrecisionChoice,
    pub(crate) cancel: CancelToken,
    pub(crate) operator: Option<Covariance<'m>>,
}

impl<'m> MatrixShard<'m> {
    fn operator(&mut self) -> Result<&mut Covariance<'m>, Error> {
        self.operator.as_mut().ok_or_else(|| not_of_memory("products before the statistics are known"))
    }
}

impl Shard for MatrixShard<'_> {
    fn n_rows(&self) -> usize {
        self.matrix.n_rows()
    }

    fn dim(&self) -> usize {
        self.matrix.n_cols()
    }

    fn statistics(&mut self, pivot: &[f64]) -> Result<ColumnStatistics, Error> {
        let relative = ColumnStatistics::relative_to(pivot, self.matrix, self.weights, &self.cancel);
        self.cancel.go_on()?;
        relative.refuse_not_finite(self.matrix)?;
        Ok(relative)
    }

    fn guess(&mut self, _count: usize, _seed: u64) -> Result<ColumnStatistics, Error> {
        Err(not_of_memory("a sample"))
    }

    fn know(&mut self, statistics: ShardStatistics) -> Result<(), Error> {
        let (ShardStatistics::Guessed(statistics) | ShardStatistics::Known(statistics)) = statistics;
        let map = self.preprocessing.row_map(&statistics);
        let narrowing = if self.narrowed { map.moved_by_narrowing(Some(&statistics)) } else { 0.0 };
        let operator = match self.weights {
            None => Covariance::with_map(self.matrix, map),
            Some(weights) => Covariance::with_weights_of_mean(self.matrix, map, weights, self.mean_weight)?,
        };
        let operator = operator.knowing(&statistics).narrowed_by(narrowing).abandoned_by(&self.cancel);
        self.operator = Some(operator.in_precision(self.precision));
        Ok(())
    }

    fn single_precision(&mut self) -> bool {
        self.operator.as_mut().is_some_and(Products::has_single_precision)
    }

    fn sum(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        self.operator()?.sum_rows(product, out)
    }

    fn first_sum(
        &mut self,
        _pivot: &[f64],
        _v: &Block,
        _out: &mut Block,
    ) -> Result<(ColumnStatistics, usize), Error> {
        Err(not_of_memory("a first pass"))
    }

    fn form(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        let n = self.n_rows() as f64;
        let rounding = Products::form(self.operator()?, precision, c)?;
        c.scale(n);
        Ok(rounding)
    }

    fn first_form(&mut self, _pivot: &[f64], _c: &mut Block) -> Result<(ColumnStatistics, usize), Error> {
        Err(not_of_memory("a first pass"))
    }

    fn resident_rows(&self) -> &[usize] {
        &[]
    }

    fn rows(&mut self, named: Option<&[usize]>) -> Result<Matrix<'static>, Error> {
        named.map(|rows| self.matrix.select_rows(rows)).ok_or_else(|| not_of_memory("a pool"))
    }

    fn refill(&mut self, _passes: u64, _single: bool) -> Result<(), Error> {
        Ok(())
    }

    fn digest(&self) -> u64 {
        0
    }

    fn bytes_read(&self) -> u64 {
        0
    }

    fn release(&mut self) {
        if let Some(operator) = &mut self.operator {
            operator.release();
        }
    }
}

/// Rank 0 takes rows in memory for rows on disk: all ranks must have the same.
fn not_of_memory(what: &str) -> Error {
    Error::Communication(format!("rank 0 asks for {what}, which rows in memory do not have"))
}
