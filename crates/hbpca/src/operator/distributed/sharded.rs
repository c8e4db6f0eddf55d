//! Rows spread over many machines: the same operator on every rank.

use super::Communicator;
use crate::columns::{ColumnStatistics, Preprocessing};
use crate::matrix::Matrix;
use crate::operator::{
    Capabilities, Covariance, CovarianceOperator, ExplicitCovariance, OperatorState, Precision, Product,
    Products, Rows, Shape,
};
use crate::rounding::{RoundingBound, rounding_of_sum};
use crate::{Block, Error};

/// The covariance of all ranks' rows. Row numbers run over rank 0's rows first, then rank 1's, and so on.
///
/// Every rank asks for the same products in the same order (solvers with the same seed do), reads its own rows, and
/// receives the sum over all ranks.
#[derive(Debug)]
pub struct Sharded<O, C> {
    local: O,
    communicator: C,
    first_row: usize,
    n_rows: usize,
    /// Whether every rank has products in single precision.
    single: bool,
    my_rows: Vec<usize>,
}

impl<'m, C: Communicator> Sharded<Covariance<'m>, C> {
    /// Brings the ranks' column statistics together and builds the operator over all rows.
    pub fn new(matrix: &'m Matrix<'m>, preprocessing: Preprocessing, communicator: C) -> Result<Self, Error> {
        let flat = communicator.all_gather(&ColumnStatistics::new(matrix)?.to_flat())?;
        let each: Vec<_> =
            flat.chunks_exact(flat.len() / communicator.size()).map(ColumnStatistics::from_flat).collect();
        let mut total = each[0].clone();
        each[1..].iter().for_each(|statistics| total.merge(statistics));
        Self::over(Covariance::with_map(matrix, preprocessing.row_map(&total)).knowing(&total), communicator)
    }
}

impl<O: CovarianceOperator, C: Communicator> Sharded<O, C> {
    /// Adds up what every rank's own operator gives. These must agree on how rows are prepared, and on the total variance.
    pub fn over(mut local: O, communicator: C) -> Result<Self, Error> {
        let single = f64::from(u8::from(local.has_single_precision()));
        let each = communicator.all_gather(&[local.n_rows() as f64, single])?;
        let n_rows_of = |rank: usize| each[2 * rank] as usize;
        let first_row = (0..communicator.rank()).map(n_rows_of).sum();
        let n_rows = (0..communicator.size()).map(n_rows_of).sum();
        let single = each.iter().skip(1).step_by(2).all(|has| *has > 0.0);
        Ok(Self { local, communicator, first_row, n_rows, single, my_rows: Vec::new() })
    }

    /// `out` ← its sum over the ranks; bounds of means over `n_local` of n rows become one of the mean over all n.
    fn reduce(
        &self,
        out: &mut Block,
        rounding: RoundingBound,
        n_local: usize,
        n: usize,
    ) -> Result<RoundingBound, Error> {
        // The bound travels with the numbers, so that every rank has the same.
        let mut all = Vec::with_capacity(out.values().len() + 1);
        all.extend_from_slice(out.values());
        all.push(rounding.of_image() * n_local as f64 / n.max(1) as f64);
        self.communicator.all_reduce_sum(&mut all)?;
        let (values, bound) = all.split_at(out.values().len());
        out.values_mut().copy_from_slice(values);
        let adding = rounding_of_sum(self.communicator.size()) * self.total_variance();
        Ok(RoundingBound::new(bound[0] + adding))
    }
}

impl<O: CovarianceOperator, C: Communicator> CovarianceOperator for Sharded<O, C> {
    fn shape(&self) -> Shape {
        Shape { n: self.n_rows, d: self.local.dim() }
    }

    fn total_variance(&self) -> f64 {
        self.local.total_variance()
    }

    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let precision = if self.single { product.precision } else { Precision::Double };
        let (rounding, n_local) = match product.rows {
            Rows::All => {
                let product = Product { precision, ..product };
                (self.local.sum_rows(product, out)?, self.local.n_rows())
            }
            Rows::Batch(rows) => {
                // Rows are ascending, so that those of this rank lie side by side.
                let from = rows.partition_point(|&l| l < self.first_row);
                let to = rows.partition_point(|&l| l < self.first_row + self.local.n_rows());
                self.my_rows.clear();
                self.my_rows.extend(rows[from..to].iter().map(|l| l - self.first_row));
                let rows = Rows::Batch(&self.my_rows);
                (self.local.sum_rows(Product { rows, precision, ..product }, out)?, to - from)
            }
        };
        self.reduce(out, rounding, n_local, product.rows.count(self.n_rows))
    }

    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        Some(self)
    }
}

impl<O: CovarianceOperator, C: Communicator> Capabilities for Sharded<O, C> {
    fn single_precision(&mut self) -> bool {
        self.single
    }
    fn explicit_covariance(&mut self) -> Option<&mut dyn ExplicitCovariance> {
        self.local.capabilities()?.explicit_covariance().is_some().then_some(self as _)
    }
    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        self.local.capabilities()?.state()
    }
}

impl<O: CovarianceOperator, C: Communicator> ExplicitCovariance for Sharded<O, C> {
    fn covariance(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        let n_local = self.local.n_rows();
        let rounding = self.local.form(precision, c)?;
        c.scale(n_local as f64 / self.n_rows as f64);
        self.reduce(c, rounding, n_local, self.n_rows)
    }
}
