//! Data as users have it: n rows in d columns, dense or compressed, f32 or f64, owned or borrowed.
//!
//! A [`Dense`] or [`Csr`] matrix is validated once; a [`Sampler`] draws mini-batches of row numbers; [`RowChunks`] are rows that lie
//! elsewhere; [`Genotypes`] take two bits each. A [`CountTransform`] prepares counts as rows are read.

mod chunks;
mod count_transform;
mod csr;
mod dense;
mod fingerprint;
mod genotypes;
mod sampler;

pub use chunks::RowChunks;
pub(crate) use chunks::{chunk_changed, place_of_chunk};
pub use count_transform::CountTransform;
pub use csr::Csr;
pub use dense::Dense;
pub(crate) use fingerprint::{fingerprint_of_block, fingerprint_of_chunks, hash_of_bits};
pub use genotypes::{Counts, Genotypes, MissingGenotypes, SharedBytes, VariantPlace, VariantSource};
pub(crate) use genotypes::{FilledHoles, GROUP, MISSING, MissingScan, Order, Span};
pub use sampler::{Replacement, Sampler};
pub(crate) use sampler::{below, random_direction, random_filling, random_normal};

use crate::Error;

/// Rows of a small matrix are fewer: second threads gain nothing by then.
const SMALL_ROWS: usize = 1 << 11;
/// The most columns of a small matrix.
pub(crate) const SMALL_COLUMNS: usize = 128;

/// A storable number: `f32` or `f64`. All arithmetic is done in `f64`.
pub trait Real:
    sealed::Sealed + Copy + Send + Sync + PartialEq + std::fmt::Debug + Default + 'static
{
    /// The value as `f64`, exactly.
    fn to_f64(self) -> f64;
    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// Bytes of one value.
    const BYTES: usize = size_of::<Self>();
}

impl Real for f32 {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
}

/// Only `f32` and `f64` are [`Real`]: kernels are written for these.
mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Any matrix the solvers accept. Rows are observations, columns are features.
///
/// ```
/// use hbpca::{Dense, Matrix};
/// let values = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let x: Matrix = Dense::borrowed(&values, 3, 2)?.into(); // no copy
/// assert_eq!((x.n_rows(), x.n_cols(), x.nnz()), (3, 2, 6));
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Matrix<'a> {
    /// Dense rows of `f32`.
    DenseF32(Dense<'a, f32>),
    /// Dense rows of `f64`.
    DenseF64(Dense<'a, f64>),
    /// Compressed rows of `f32`.
    CsrF32(Csr<'a, f32>),
    /// Compressed rows of `f64`.
    CsrF64(Csr<'a, f64>),
}

/// Numbers up to this have squares, and sums of many of them, in the range of f64.
const LARGEST_SQUARED: f64 = 1e140;

/// Runs the same expression on whichever matrix is inside.
macro_rules! each_matrix {
    ($matrix:expr, $x:ident => $body:expr) => {
        match $matrix {
            $crate::Matrix::DenseF32($x) => $body,
            $crate::Matrix::DenseF64($x) => $body,
            $crate::Matrix::CsrF32($x) => $body,
            $crate::Matrix::CsrF64($x) => $body,
        }
    };
}
pub(crate) use each_matrix;

impl Matrix<'_> {
    /// n, the number of observations.
    pub fn n_rows(&self) -> usize {
        each_matrix!(self, x => x.n_rows())
    }

    /// d, the number of features.
    pub fn n_cols(&self) -> usize {
        each_matrix!(self, x => x.n_cols())
    }

    /// Entries stored: n·d for dense rows, explicit entries for compressed ones.
    pub fn nnz(&self) -> usize {
        each_matrix!(self, x => x.nnz())
    }

    /// Bytes read by one pass over the rows.
    pub fn bytes_per_pass(&self) -> usize {
        match self {
            Self::DenseF32(x) => x.nnz() * f32::BYTES,
            Self::DenseF64(x) => x.nnz() * f64::BYTES,
            Self::CsrF32(x) => x.nnz() * (f32::BYTES + 4) + x.n_rows() * size_of::<usize>(),
            Self::CsrF64(x) => x.nnz() * (f64::BYTES + 4) + x.n_rows() * size_of::<usize>(),
        }
    }

    /// Whether a fit takes less time than waking threads for it: passes take some ten microseconds each.
    pub fn is_small(&self) -> bool {
        self.n_rows() < SMALL_ROWS && self.n_cols() <= SMALL_COLUMNS
    }

    /// Whether rows are compressed.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Self::CsrF32(_) | Self::CsrF64(_))
    }

    /// A copy of some rows.
    pub(crate) fn select_rows(&self, rows: &[usize]) -> Matrix<'static> {
        match self {
            Self::DenseF32(x) => x.select_rows(rows).into(),
            Self::DenseF64(x) => x.select_rows(rows).into(),
            Self::CsrF32(x) => x.select_rows(rows).into(),
            Self::CsrF64(x) => x.select_rows(rows).into(),
        }
    }

    /// The rows of positive weight and their weights, where one of weight zero holds numbers that no product survives: NaN, infinities, or what
    /// overflows when squared.
    pub(crate) fn rows_that_count(&self, weights: &[f64]) -> Option<(Vec<usize>, Vec<f64>)> {
        let spoils = |l: usize| {
            let mut spoils = false;
            self.for_each_in_row(l, |_, x| spoils |= x.is_nan() || x.abs() > LARGEST_SQUARED);
            spoils
        };
        let some =
            weights.len() == self.n_rows() && (0..weights.len()).any(|l| weights[l] == 0.0 && spoils(l));
        some.then(|| (0..weights.len()).filter(|&l| weights[l] > 0.0).map(|l| (l, weights[l])).unzip())
    }

    /// Whether values are f32.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self, Self::DenseF32(_) | Self::CsrF32(_))
    }

    /// Entry (l, j) ← value; only stored entries of compressed rows can be set.
    pub(crate) fn set(&mut self, l: usize, j: usize, value: f64) {
        each_matrix!(self, x => x.set(l, j, value));
    }

    /// NaN ← the value of its column.
    pub(crate) fn fill_holes(&mut self, values: &[f64]) {
        each_matrix!(self, x => x.fill_holes(values));
    }

    /// The same numbers in f64; those that are f64 already are not copied.
    pub(crate) fn in_double(self) -> Self {
        match self {
            Self::DenseF32(x) => x.widened().into(),
            Self::CsrF32(x) => x.widened().into(),
            double => double,
        }
    }

    /// Rows of weight zero ← 0: whatever they hold, no product with them survives it, and none is wanted.
    pub(crate) fn clear_rows_without_weight(&mut self, weights: &[f64]) {
        for l in (0..weights.len()).filter(|&l| weights[l] == 0.0) {
            each_matrix!(self, x => x.clear_row(l));
        }
    }

    /// Calls `entry(column, value)` for every stored entry of a row.
    pub fn for_each_in_row(&self, row: usize, mut entry: impl FnMut(usize, f64)) {
        match self {
            Self::DenseF32(x) => x.row(row).iter().enumerate().for_each(|(j, v)| entry(j, v.to_f64())),
            Self::DenseF64(x) => x.row(row).iter().enumerate().for_each(|(j, v)| entry(j, *v)),
            Self::CsrF32(x) => x.row(row).for_each(|(j, v)| entry(j, v.to_f64())),
            Self::CsrF64(x) => x.row(row).for_each(|(j, v)| entry(j, v)),
        }
    }
}

macro_rules! matrix_from {
    ($($inner:ident<$t:ty> => $variant:ident),*) => {$(
        impl<'a> From<$inner<'a, $t>> for Matrix<'a> {
            fn from(x: $inner<'a, $t>) -> Self {
                Self::$variant(x)
            }
        }
    )*};
}
matrix_from!(Dense<f32> => DenseF32, Dense<f64> => DenseF64, Csr<f32> => CsrF32, Csr<f64> => CsrF64);

/// Refuses matrices without rows or columns.
fn refuse_empty(n: usize, d: usize) -> Result<(), Error> {
    if n == 0 || d == 0 { Err(Error::Empty { n, d }) } else { Ok(()) }
}

/// Whether every value is finite, at memory speed: 0·x is 0 for finite x and NaN otherwise.
fn all_finite<T: Real>(values: &[T]) -> bool {
    use rayon::prelude::*;
    const CHUNK: usize = 1 << 16;
    let finite = |chunk: &[T]| {
        let mut lanes = [0.0_f64; 16];
        let (blocks, rest) = chunk.as_chunks::<16>();
        for block in blocks {
            for (lane, x) in lanes.iter_mut().zip(block) {
                *lane += x.to_f64() * 0.0;
            }
        }
        lanes.iter().sum::<f64>() == 0.0 && rest.iter().all(|x| x.to_f64().is_finite())
    };
    if values.len() <= CHUNK { finite(values) } else { values.par_chunks(CHUNK).all(finite) }
}
