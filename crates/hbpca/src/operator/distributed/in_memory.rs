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

    fn statistics(&mut self) -> Result<ColumnStatistics, Error> {
        ColumnStatistics::gather(self.matrix, self.weights, &self.cancel)
    }

    fn guess(&mut self, _count: usize, _seed: u64) -> Result<ColumnStatistics, Error> {
        self.statistics()
    }

    fn know(&mut self, statistics: ShardStatistics) -> Result<(), Error> {
        let (ShardStatistics::Guessed(statistics) | ShardStatistics::Known(statistics)) = statistics;
        let map = self.preprocessing.row_map(&statistics);
        let operator = match self.weights {
            None => Covariance::with_map(self.matrix, map),
            Some(weights) => Covariance::with_weights_of_mean(self.matrix, map, weights, self.mean_weight)?,
        };
        let operator = operator.knowing(&statistics).abandoned_by(&self.cancel).in_precision(self.precision);
        self.operator = Some(operator);
        Ok(())
    }

    fn single_precision(&mut self) -> bool {
        self.operator.as_mut().is_some_and(|operator| operator.has_single_precision())
    }

    fn sum(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        self.operator()?.sum_rows(product, out)
    }

    fn first_sum(&mut self, _v: &Block, _out: &mut Block) -> Result<(ColumnStatistics, usize), Error> {
        Err(not_of_memory("a first pass"))
    }

    fn form(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        let n = self.n_rows() as f64;
        let rounding = Products::form(self.operator()?, precision, c)?;
        c.scale(n);
        Ok(rounding)
    }

    fn first_form(&mut self, _c: &mut Block) -> Result<(ColumnStatistics, usize), Error> {
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

    fn bytes_read(&self) -> u64 {
        0
    }
}

/// Rank 0 takes rows in memory for rows on disk: all ranks must have the same.
fn not_of_memory(what: &str) -> Error {
    Error::Communication(format!("rank 0 asks for {what}, which rows in memory do not have"))
}
