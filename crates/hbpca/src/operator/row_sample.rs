//! A sample of rows at hand, where the others are elsewhere: mini-batches of them take no round.

use super::{Covariance, CovarianceOperator, Precision, Product, Rows};
use crate::columns::RowMap;
use crate::matrix::Matrix;
use crate::rounding::RoundingBound;
use crate::{Block, Error};

/// Some rows of an operator, and their numbers there.
#[derive(Debug)]
pub(crate) struct RowSample {
    /// Ascending.
    numbers: Vec<usize>,
    rows: Matrix<'static>,
    map: RowMap,
}

impl RowSample {
    pub(crate) fn new(numbers: Vec<usize>, rows: Matrix<'static>, map: RowMap) -> Result<Self, Error> {
        if numbers.len() != rows.n_rows() {
            return Err(Error::shape("rows of a sample", numbers.len(), rows.n_rows()));
        }
        Ok(Self { numbers, rows, map })
    }

    /// The numbers of the rows.
    pub(crate) fn numbers(&self) -> &[usize] {
        &self.numbers
    }

    /// `out` ← Σ a(aᵀV) over a batch; nothing where some of its rows are not here.
    pub(crate) fn sum(
        &self,
        batch: &[usize],
        v: &Block,
        out: &mut Block,
    ) -> Option<Result<RoundingBound, Error>> {
        let places: Option<Vec<usize>> =
            batch.iter().map(|row| self.numbers.binary_search(row).ok()).collect();
        let product = Product { rows: Rows::Batch(&places?), precision: Precision::Double, v };
        Some(Covariance::with_map(&self.rows, self.map.clone()).sum_rows(product, out))
    }
}
