//! Products with C: what solvers call. Everything follows from the one primitive and cannot be overridden.

pub(super) mod row_gram;
pub(super) mod sum;

use super::{
    Capabilities, CovarianceOperator, ExplicitRowGram, FirstPass, Precision, Product, RowGram, Rows,
};
use crate::rounding::RoundingBound;
use crate::{Archive, Block, Error};

/// Unit vectors multiplied at a time where C is formed by products.
const UNITS: usize = 32;

/// Products with C, and what an operator [can do](Capabilities) besides: for every [`CovarianceOperator`].
pub trait Products: CovarianceOperator {
    /// d, the number of features.
    fn dim(&self) -> usize {
        self.shape().d
    }

    /// n, the number of observations.
    fn n_rows(&self) -> usize {
        self.shape().n
    }

    /// `out` ← CV: one full pass.
    fn apply(&mut self, v: &Block, out: &mut Block) -> Result<RoundingBound, Error> {
        self.apply_in(Precision::Double, v, out)
    }

    /// The same in the given precision.
    fn apply_in(&mut self, precision: Precision, v: &Block, out: &mut Block) -> Result<RoundingBound, Error> {
        let rounding = self.sum_rows(Product { rows: Rows::All, precision, v }, out)?;
        out.scale(1.0 / self.n_rows() as f64);
        Ok(rounding)
    }

    /// `out` ← C_S V with C_S = (1/|S|)Σ_{l∈S} aₗaₗᵀ.
    fn apply_batch(&mut self, rows: &[usize], v: &Block, out: &mut Block) -> Result<RoundingBound, Error> {
        let product = Product { rows: Rows::Batch(rows), precision: Precision::Double, v };
        let rounding = self.sum_rows(product, out)?;
        out.scale(1.0 / rows.len().max(1) as f64); // an empty sum stays zero
        Ok(rounding)
    }

    /// Full passes that [`form`](Self::form) reads.
    fn passes_to_form(&mut self) -> u64 {
        let forms = self.capabilities().is_some_and(|all| all.explicit_covariance().is_some());
        if forms { 1 } else { self.dim().div_ceil(UNITS) as u64 }
    }

    /// `c` ← C itself, d×d; returns a bound on ‖fl(C) − C‖. An operator that has no better way multiplies unit vectors, in d/32
    /// passes.
    fn form(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        if let Some(explicit) = self.capabilities().and_then(Capabilities::explicit_covariance) {
            return explicit.covariance(precision, c);
        }
        let d = self.dim();
        *c = Block::zeros(d, d);
        let mut image = Block::zeros(d, UNITS.min(d));
        let mut rounding = RoundingBound::default();
        for from in (0..d).step_by(UNITS) {
            let units = Block::unit_columns(d, from, UNITS.min(d - from));
            rounding = self.apply(&units, &mut image)?;
            for j in 0..d {
                for i in 0..units.p() {
                    c.values_mut()[j * d + from + i] = image.get(j, i);
                }
            }
        }
        Ok(rounding)
    }

    /// See [`Capabilities::single_precision`].
    fn has_single_precision(&mut self) -> bool {
        self.capabilities().is_some_and(Capabilities::single_precision)
    }

    /// See [`Capabilities::resident_rows`].
    fn resident_rows(&mut self) -> Option<&[usize]> {
        self.capabilities().and_then(Capabilities::resident_rows)
    }

    /// See [`Capabilities::first_pass`].
    fn first_pass(&mut self) -> Option<&mut dyn FirstPass> {
        self.capabilities().and_then(Capabilities::first_pass)
    }

    /// See [`Capabilities::row_gram`].
    fn row_gram(&mut self) -> Option<&mut dyn RowGram> {
        self.capabilities().and_then(Capabilities::row_gram)
    }

    /// See [`Capabilities::explicit_row_gram`].
    fn explicit_row_gram(&mut self) -> Option<&mut dyn ExplicitRowGram> {
        self.capabilities().and_then(Capabilities::explicit_row_gram)
    }

    /// Walks over its [state](Capabilities::state), if it has any.
    fn archive_state(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        match self.capabilities().and_then(Capabilities::state) {
            Some(state) => state.archive(archive),
            None => Ok(()),
        }
    }
}

impl<O: CovarianceOperator + ?Sized> Products for O {}
