//! Counting what is read: passes are rows read divided by n.

use serde::{Deserialize, Serialize};

use super::{
    Capabilities, CovarianceOperator, ExplicitCovariance, ExplicitRowGram, FirstPass, OperatorState,
    Precision, Product, Products, RowGram, RowSpectrum, Rows, Shape,
};
use crate::rounding::RoundingBound;
use crate::{Block, Error};

/// Rows read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RowsRead {
    /// Complete passes over all rows.
    pub full_passes: u64,
    /// Rows read, in passes and in batches.
    pub rows: u64,
}

impl RowsRead {
    /// Rows read as a multiple of all n rows.
    pub fn passes(&self, n: usize) -> f64 {
        self.rows as f64 / n as f64
    }
}

/// An operator that counts the rows it reads.
#[derive(Debug)]
pub struct Counted<O> {
    operator: O,
    read: RowsRead,
}

impl<O: CovarianceOperator> Counted<O> {
    /// Starts counting at zero.
    pub fn new(operator: O) -> Self {
        Self::starting_at(operator, RowsRead::default())
    }

    /// Goes on counting from what was read before.
    pub fn starting_at(operator: O, read: RowsRead) -> Self {
        Self { operator, read }
    }

    /// What was read so far.
    pub fn read(&self) -> RowsRead {
        self.read
    }

    /// Rows read as a multiple of all n rows.
    pub fn passes(&self) -> f64 {
        self.read.passes(self.n_rows())
    }

    /// Hands on what a capability that was found gave, and counts the passes it took.
    fn counting<T>(&mut self, passes: u64, result: Option<Result<T, Error>>) -> Result<T, Error> {
        let result = result.unwrap_or_else(|| unreachable!("a capability that is offered is there"))?;
        self.read.rows += passes * self.n_rows() as u64;
        self.read.full_passes += passes;
        Ok(result)
    }

    fn inner(&mut self) -> Option<&mut dyn Capabilities> {
        self.operator.capabilities()
    }
}

impl<O: CovarianceOperator> CovarianceOperator for Counted<O> {
    fn shape(&self) -> Shape {
        self.operator.shape()
    }

    fn total_variance(&self) -> f64 {
        self.operator.total_variance()
    }

    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let rounding = self.operator.sum_rows(product, out)?;
        self.read.rows += product.rows.count(self.n_rows()) as u64;
        self.read.full_passes += u64::from(matches!(product.rows, Rows::All));
        Ok(rounding)
    }

    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        self.inner().is_some().then_some(self as _)
    }
}

/// Those of the operator; what reads rows is counted.
impl<O: CovarianceOperator> Capabilities for Counted<O> {
    fn single_precision(&mut self) -> bool {
        self.operator.has_single_precision()
    }
    fn resident_rows(&mut self) -> Option<&[usize]> {
        self.operator.resident_rows()
    }
    fn first_pass(&mut self) -> Option<&mut dyn FirstPass> {
        self.inner()?.first_pass().is_some().then_some(self as _)
    }
    fn explicit_covariance(&mut self) -> Option<&mut dyn ExplicitCovariance> {
        self.inner()?.explicit_covariance().is_some().then_some(self as _)
    }
    fn row_gram(&mut self) -> Option<&mut dyn RowGram> {
        self.inner()?.row_gram().is_some().then_some(self as _)
    }
    fn explicit_row_gram(&mut self) -> Option<&mut dyn ExplicitRowGram> {
        self.inner()?.explicit_row_gram().is_some().then_some(self as _)
    }
    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        self.inner()?.state()
    }
}

impl<O: CovarianceOperator> FirstPass for Counted<O> {
    fn first_image(&mut self, x: &mut Block, z: &mut Block) -> Result<RoundingBound, Error> {
        let result = self.operator.first_pass().map(|first| first.first_image(x, z));
        self.counting(1, result)
    }
}

impl<O: CovarianceOperator> ExplicitCovariance for Counted<O> {
    fn covariance(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        let result = self
            .inner()
            .and_then(Capabilities::explicit_covariance)
            .map(|explicit| explicit.covariance(precision, c));
        self.counting(1, result)
    }
}

impl<O: CovarianceOperator> RowGram for Counted<O> {
    fn apply_gram(&mut self, u: &Block, out: &mut Block) -> Result<RoundingBound, Error> {
        let result = self.operator.row_gram().map(|gram| gram.apply_gram(u, out));
        self.counting(<dyn RowGram>::PASSES, result)
    }

    fn combine_rows(&mut self, u: &Block, out: &mut Block) -> Result<(), Error> {
        let result = self.operator.row_gram().map(|gram| gram.combine_rows(u, out));
        self.counting(1, result)
    }
}

impl<O: CovarianceOperator> ExplicitRowGram for Counted<O> {
    fn leading(&mut self, k: usize) -> Result<RowSpectrum, Error> {
        let result = self.operator.explicit_row_gram().map(|gram| gram.leading(k));
        self.counting(RowSpectrum::PASSES, result)
    }
}
