//! What an operator may offer beyond products, each a small trait of its own.

use super::Precision;
use crate::rounding::RoundingBound;
use crate::{Archive, Block, Error};

/// What an operator can do beyond products. Whatever is not overridden it cannot do.
pub trait Capabilities {
    /// Whether products in [single precision](Precision::Single) are computed so, as far as that is known now.
    fn single_precision(&mut self) -> bool {
        false
    }

    /// The rows in memory, ascending, that mini-batches are drawn from, where other rows have to be read from elsewhere.
    fn resident_rows(&mut self) -> Option<&[usize]> {
        None
    }

    /// A first pass that learns about the columns, until it was made.
    fn first_pass(&mut self) -> Option<&mut dyn FirstPass> {
        None
    }

    /// C itself.
    fn explicit_covariance(&mut self) -> Option<&mut dyn ExplicitCovariance> {
        None
    }

    /// Products with G = (1/n)AAᵀ.
    fn row_gram(&mut self) -> Option<&mut dyn RowGram> {
        None
    }

    /// G itself, where it is smaller than C.
    fn explicit_row_gram(&mut self) -> Option<&mut dyn ExplicitRowGram> {
        None
    }

    /// What it remembers between products and later products depend on.
    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        None
    }
}

/// A pass that multiplies and gathers column statistics at the same time.
pub trait FirstPass {
    /// `z` ← CX for an orthonormal basis X of a space that is a guess anyway: one full pass. X may become another orthonormal
    /// basis, of as many vectors, that is as good a guess.
    fn first_image(&mut self, x: &mut Block, z: &mut Block) -> Result<RoundingBound, Error>;
}

/// Forms C in one pass.
pub trait ExplicitCovariance {
    /// `c` ← C, d×d, by products in the given precision where that is possible. Returns a bound on ‖fl(C) − C‖.
    fn covariance(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error>;
}

/// Products with G = (1/n)AAᵀ in single precision. G has the eigenvalues of C, and vectors as long as there are rows.
pub trait RowGram {
    /// `out` ← GU for U n×p: two full passes, for AᵀU and for A(AᵀU).
    fn apply_gram(&mut self, u: &Block, out: &mut Block) -> Result<RoundingBound, Error>;

    /// `out` ← AᵀU: one full pass. It points along eigenvectors of C for those U of G.
    fn combine_rows(&mut self, u: &Block, out: &mut Block) -> Result<(), Error>;
}

impl dyn RowGram + '_ {
    /// How often a product with G reads every row.
    pub const PASSES: u64 = 2;
}

/// Forms and decomposes G = (1/n)AAᵀ.
pub trait ExplicitRowGram {
    /// The k leading eigenvectors of C, and all its eigenvalues but zeros. Reads every row [twice](RowSpectrum::PASSES).
    fn leading(&mut self, k: usize) -> Result<RowSpectrum, Error>;
}

/// Eigenvectors and eigenvalues of C from those of G = AAᵀ/n.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RowSpectrum {
    /// An orthonormal basis of the space of the k leading ones, d×k; fewer where the rank is smaller.
    pub vectors: Block,
    /// All eigenvalues of G, descending: those of C, but for zeros.
    pub eigenvalues: Vec<f64>,
}

impl RowSpectrum {
    /// From vectors and eigenvalues.
    pub fn new(vectors: Block, eigenvalues: Vec<f64>) -> Self {
        Self { vectors, eigenvalues }
    }

    /// How often finding it reads every row.
    pub const PASSES: u64 = 2;
}

/// Numbers that change while an operator is used: rows drawn into memory, the position of a generator.
pub trait OperatorState {
    /// Walks over all of them, for a checkpoint.
    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error>;
}
