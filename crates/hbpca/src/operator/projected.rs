//! PCP with P = I − LLᵀ: what is left of C when locked vectors are projected out before and after every product.
//!
//! The large part of a product's rounding lies along L and goes with it ([why](crate::rounding)): vectors that follow a dominating one
//! become as accurate as those of the data's own singular value decomposition.

use super::{Capabilities, CovarianceOperator, OperatorState, Product, Shape};
use crate::linalg::{TallBasis, column_dots};
use crate::rounding::RoundingBound;
use crate::{Block, Error};

/// An operator less locked vectors.
pub(crate) struct Projected<'a> {
    operator: &'a mut dyn CovarianceOperator,
    locked: &'a TallBasis<f64>,
    rest: f64,
}

impl<'a> Projected<'a> {
    /// Of `operator` and orthonormal vectors; `rest` is a bound on tr PCP.
    pub(crate) fn new(
        operator: &'a mut dyn CovarianceOperator,
        locked: &'a TallBasis<f64>,
        rest: f64,
    ) -> Self {
        Self { operator, locked, rest }
    }
}

impl CovarianceOperator for Projected<'_> {
    fn shape(&self) -> Shape {
        self.operator.shape()
    }

    fn total_variance(&self) -> f64 {
        self.rest
    }

    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let mut v = product.v.clone();
        project_out(self.locked, &mut v);
        let rounding = self.operator.sum_rows(Product { v: &v, ..product }, out)?;
        project_out(self.locked, out);
        Ok(rounding.projected(self.rest))
    }

    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        Some(self)
    }
}

/// Rows in memory and what the operator remembers. Single precision, C itself and AAᵀ have the rounding of all of C.
impl Capabilities for Projected<'_> {
    fn resident_rows(&mut self) -> Option<&[usize]> {
        self.operator.capabilities()?.resident_rows()
    }
    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        self.operator.capabilities()?.state()
    }
}

/// W ← (I − LLᵀ)W, again while some column gets shorter by half: what one round leaves of a long part along L is rounding of that part.
pub(crate) fn project_out(locked: &TallBasis<f64>, w: &mut Block) {
    /// Each round takes fifteen digits; f64 has no room for more.
    const ROUNDS: usize = 8;
    let mut before = column_dots(w, w);
    for _ in 0..ROUNDS {
        locked.project_out(w);
        let after = column_dots(w, w);
        if after.iter().zip(&before).all(|(after, before)| *after >= 0.25 * before) {
            return;
        }
        before = after;
    }
}
