//! The covariance operator C = (1/n)Σaₗaₗᵀ: applied, never formed unless asked for.
//!
//! One primitive carries everything: the sum Σ aₗ(aₗᵀV) over all rows or over a batch. [`Covariance`] computes it
//! from a matrix in memory, [`Streamed`] from rows on disk; [`Counted`] counts the rows read; [`Sharded`] adds up the sums
//! of many machines.

mod communicator;
mod counted;
mod form;
mod fused;
mod gram;
mod in_arithmetic;
mod kept;
mod row_gram;
mod sharded;
mod streamed;
mod sum;
mod usual;

pub use communicator::{Communicator, SingleRank, ThreadRank, thread_ranks};
pub use counted::{Counted, RowsRead};
pub use fused::Covariance;
pub use gram::RowSpectrum;
pub use in_arithmetic::ArithmeticChoice;
pub(crate) use in_arithmetic::InArithmetic;
pub use sharded::Sharded;
pub(crate) use streamed::IN_FLIGHT;
pub use streamed::Streamed;
pub(crate) use usual::Usual;

use crate::{Archive, Block, Error};

/// Which rows a sum runs over.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// Every row: a full pass.
    All,
    /// Rows by number, ascending; a row listed twice counts twice.
    Batch(&'a [usize]),
}

impl Rows<'_> {
    /// How many rows are read out of n.
    pub fn count(&self, n: usize) -> usize {
        match self {
            Self::All => n,
            Self::Batch(rows) => rows.len(),
        }
    }
}

/// How often a product with G reads every row.
pub(crate) const ROW_GRAM_PASSES: u64 = 2;

/// Unit vectors multiplied at a time where C is formed by products.
const UNITS: usize = 32;

/// A covariance matrix known through its products with blocks of vectors.
///
/// Only [`sum_rows`](Self::sum_rows) and three numbers are needed; the rest follows. A solver that works on this
/// trait works on any storage.
pub trait CovarianceOperator {
    /// d, the number of features.
    fn dim(&self) -> usize;

    /// n, the number of observations.
    fn n_rows(&self) -> usize;

    /// `out` ← Σ aₗ(aₗᵀV) over `rows`, reading each row once. `out` takes the shape of `v`.
    fn sum_rows(&mut self, rows: Rows<'_>, v: &Block, out: &mut Block) -> Result<(), Error>;

    /// Trace of C, the sum of all its eigenvalues.
    fn total_variance(&self) -> f64;

    /// A bound on ‖fl(Cv) − Cv‖ for a unit vector v, as the images computed last have it.
    fn image_rounding(&self) -> f64;

    /// `out` ← CV: one full pass.
    fn apply(&mut self, v: &Block, out: &mut Block) -> Result<(), Error> {
        self.sum_rows(Rows::All, v, out)?;
        out.scale(1.0 / self.n_rows() as f64);
        Ok(())
    }

    /// `out` ← C_S V with C_S = (1/|S|)Σ_{l∈S} aₗaₗᵀ.
    fn apply_batch(&mut self, rows: &[usize], v: &Block, out: &mut Block) -> Result<(), Error> {
        self.sum_rows(Rows::Batch(rows), v, out)?;
        out.scale(1.0 / rows.len().max(1) as f64); // an empty sum stays zero
        Ok(())
    }

    /// `z` ← CX for an orthonormal basis X of a space that is a guess anyway: one full pass. An operator that learns about its
    /// columns in its first pass may hand back another orthonormal basis X, of as many vectors, that is as good a guess.
    fn first_image(&mut self, x: &mut Block, z: &mut Block) -> Result<(), Error> {
        self.apply(x, z)
    }

    /// The rows, ascending, that mini-batches should be drawn from since others are dear; nothing where all cost the same.
    fn rows_at_hand(&self) -> Option<&[usize]> {
        None
    }

    /// A bound on ‖fl(Cv) − Cv‖ for a unit vector v in the operator's cheaper arithmetic, where it has one.
    fn coarse_rounding(&self) -> Option<f64> {
        None
    }

    /// `out` ← CV in the cheaper arithmetic: one full pass.
    fn apply_coarsely(&mut self, v: &Block, out: &mut Block) -> Result<(), Error> {
        self.apply(v, out)
    }

    /// `out` ← GU in the cheaper arithmetic, for G = (1/n)AAᵀ and U n×p: two full passes, for AᵀU and for A(AᵀU).
    /// G has the eigenvalues of C, and vectors as long as there are rows. Returns a bound on ‖fl(Gu) − Gu‖ for a unit vector u, or nothing
    /// where the operator has no such products.
    fn apply_row_gram(&mut self, _u: &Block, _out: &mut Block) -> Result<Option<f64>, Error> {
        Ok(None)
    }

    /// `out` ← AᵀU in the cheaper arithmetic: one full pass. It points along eigenvectors of C for those U of G. An operator without
    /// [`apply_row_gram`](Self::apply_row_gram) refuses.
    fn combine_rows(&mut self, _u: &Block, _out: &mut Block) -> Result<(), Error> {
        Err(no_row_gram())
    }

    /// Walks over what it remembers between products and what later products depend on, for a checkpoint: rows drawn into
    /// memory, the position of a generator. An operator that only reads the data remembers nothing.
    fn archive(&mut self, _archive: &mut Archive<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// The k leading eigenvectors of C, and all its eigenvalues but zeros, from AAᵀ, where that is the smaller matrix and the
    /// operator can form it. Reads every row [twice](RowSpectrum::PASSES).
    fn spectrum_from_rows(&mut self, _k: usize) -> Result<Option<RowSpectrum>, Error> {
        Ok(None)
    }

    /// Full passes that [`form`](Self::form) reads.
    fn passes_to_form(&self) -> u64 {
        self.dim().div_ceil(UNITS) as u64
    }

    /// `c` ← C itself, d×d; returns a bound on ‖fl(C) − C‖. Without a better way, by products with unit vectors: d/32 passes.
    fn form(&mut self, c: &mut Block) -> Result<f64, Error> {
        let d = self.dim();
        *c = Block::zeros(d, d);
        let mut image = Block::zeros(d, UNITS.min(d));
        for from in (0..d).step_by(UNITS) {
            let units = Block::unit_columns(d, from, UNITS.min(d - from));
            self.apply(&units, &mut image)?;
            for j in 0..d {
                for i in 0..units.p() {
                    c.values_mut()[j * d + from + i] = image.get(j, i);
                }
            }
        }
        Ok(self.image_rounding())
    }

    /// `c` ← C in the operator's cheaper arithmetic where it has one, in as many passes; returns a bound on ‖fl(C) − C‖.
    fn form_coarsely(&mut self, c: &mut Block) -> Result<f64, Error> {
        self.form(c)
    }
}

/// What is said to who asks for AᵀU where there are no products with G.
fn no_row_gram() -> Error {
    Error::parameter("operator", "C alone", "it has no products with AAᵀ, as apply_row_gram tells; work on C")
}

impl<O: CovarianceOperator + ?Sized> CovarianceOperator for &mut O {
    fn dim(&self) -> usize {
        (**self).dim()
    }
    fn n_rows(&self) -> usize {
        (**self).n_rows()
    }
    fn sum_rows(&mut self, rows: Rows<'_>, v: &Block, out: &mut Block) -> Result<(), Error> {
        (**self).sum_rows(rows, v, out)
    }
    fn total_variance(&self) -> f64 {
        (**self).total_variance()
    }
    fn image_rounding(&self) -> f64 {
        (**self).image_rounding()
    }
    fn first_image(&mut self, x: &mut Block, z: &mut Block) -> Result<(), Error> {
        (**self).first_image(x, z)
    }
    fn rows_at_hand(&self) -> Option<&[usize]> {
        (**self).rows_at_hand()
    }
    fn coarse_rounding(&self) -> Option<f64> {
        (**self).coarse_rounding()
    }
    fn apply_coarsely(&mut self, v: &Block, out: &mut Block) -> Result<(), Error> {
        (**self).apply_coarsely(v, out)
    }
    fn apply_row_gram(&mut self, u: &Block, out: &mut Block) -> Result<Option<f64>, Error> {
        (**self).apply_row_gram(u, out)
    }
    fn combine_rows(&mut self, u: &Block, out: &mut Block) -> Result<(), Error> {
        (**self).combine_rows(u, out)
    }
    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        (**self).archive(archive)
    }
    fn spectrum_from_rows(&mut self, k: usize) -> Result<Option<RowSpectrum>, Error> {
        (**self).spectrum_from_rows(k)
    }
    fn passes_to_form(&self) -> u64 {
        (**self).passes_to_form()
    }
    fn form(&mut self, c: &mut Block) -> Result<f64, Error> {
        (**self).form(c)
    }
    fn form_coarsely(&mut self, c: &mut Block) -> Result<f64, Error> {
        (**self).form_coarsely(c)
    }
}
