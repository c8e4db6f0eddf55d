//! `nalgebra`: matrices and views.
//!
//! nalgebra lays columns one after another, so that a matrix with observations in its rows is copied. With observations in its
//! columns it is borrowed by [`columns_as_rows`]. Row-major views (strides d and 1) are borrowed as they are.
//!
//! ```
//! use hbpca::interop::nalgebra::columns_as_rows;
//! use hbpca::{FitConfig, Matrix};
//! use nalgebra::DMatrix;
//!
//! let x = DMatrix::from_row_slice(4, 2, &[2.0, 1.0, -2.0, -1.0, 0.1, -0.2, -0.1, 0.2]);
//! let fit = FitConfig::default().fit(&Matrix::try_from(&x)?)?; // copied into rows
//! let components = fit.model.components_nalgebra();
//! assert_eq!(components.shape(), (1, 2));
//! let scores = &x * components.transpose();
//! assert_eq!(scores.shape(), (4, 1));
//!
//! let observations = x.transpose(); // one a column
//! let same = FitConfig::default().fit(&columns_as_rows(&observations)?.into())?; // no copy
//! assert_eq!(same.model, fit.model);
//! # Ok::<(), hbpca::Error>(())
//! ```

use ::nalgebra::{Const, DMatrixView, DMatrixViewMut, Dim, Dyn, Matrix as Other, RawStorage, U1};

use super::rows::{row_major, rows_of_view};
use crate::{Block, Dense, Error, Matrix, Model, Real};

/// A block or components, which are row-major, as nalgebra's view.
pub type RowMajorView<'a> = DMatrixView<'a, f64, Dyn, U1>;
/// A block, which is row-major, as nalgebra's view.
pub type RowMajorViewMut<'a> = DMatrixViewMut<'a, f64, Dyn, U1>;

/// The transpose: column l of a d×n matrix becomes row l. Borrowed where the columns lie one after another, as those of every
/// `DMatrix` do.
#[allow(unsafe_code, reason = "nalgebra gives a slice only where the type says that there are no gaps")]
pub fn columns_as_rows<T: Real, R: Dim, C: Dim, S: RawStorage<T, R, C> + Sync>(
    x: &Other<T, R, C, S>,
) -> Result<Dense<'_, T>, Error> {
    let ((d, n), (within, between)) = (x.shape(), x.strides());
    // SAFETY: pointer, shape and strides are those of one matrix, which is borrowed as long as the result is.
    unsafe { rows_of_view(x.data.ptr(), [n, d], [signed(between), signed(within)], |i, j| x[(j, i)]) }
}

/// A stride; those that are too large for memory are those of an axis of one entry, where they do not matter.
fn signed(stride: usize) -> isize {
    isize::try_from(stride).unwrap_or(isize::MAX)
}

impl<'a, T: Real, R: Dim, C: Dim, S: RawStorage<T, R, C> + Sync> TryFrom<&'a Other<T, R, C, S>>
    for Dense<'a, T>
{
    type Error = Error;

    #[allow(unsafe_code, reason = "nalgebra gives a slice only where the type says that there are no gaps")]
    fn try_from(x: &'a Other<T, R, C, S>) -> Result<Self, Error> {
        let ((n, d), (within, between)) = (x.shape(), x.strides());
        // SAFETY: pointer, shape and strides are those of one matrix, which is borrowed for 'a.
        unsafe { rows_of_view(x.data.ptr(), [n, d], [signed(within), signed(between)], |i, j| x[(i, j)]) }
    }
}

impl<'a, T: Real, R: Dim, C: Dim, S: RawStorage<T, R, C> + Sync> TryFrom<&'a Other<T, R, C, S>> for Matrix<'a>
where
    Matrix<'a>: From<Dense<'a, T>>,
{
    type Error = Error;

    fn try_from(x: &'a Other<T, R, C, S>) -> Result<Self, Error> {
        Dense::try_from(x).map(Into::into)
    }
}

/// Copied: a block owns its values.
impl<R: Dim, C: Dim, S: RawStorage<f64, R, C> + Sync> TryFrom<&Other<f64, R, C, S>> for Block {
    type Error = Error;

    fn try_from(x: &Other<f64, R, C, S>) -> Result<Self, Error> {
        let (d, p) = x.shape();
        Block::from_values(d, p, row_major(d, p, |j, c| x[(j, c)])?)
    }
}

/// d×p, borrowed.
impl<'a> From<&'a Block> for RowMajorView<'a> {
    fn from(block: &'a Block) -> Self {
        let (d, p) = (block.d(), block.p());
        RowMajorView::from_slice_with_strides_generic(block.values(), Dyn(d), Dyn(p), Dyn(p), Const)
    }
}

/// d×p, borrowed.
impl<'a> From<&'a mut Block> for RowMajorViewMut<'a> {
    fn from(block: &'a mut Block) -> Self {
        let (d, p) = (block.d(), block.p());
        RowMajorViewMut::from_slice_with_strides_generic(block.values_mut(), Dyn(d), Dyn(p), Dyn(p), Const)
    }
}

impl Model {
    /// k×d: [`components`](Self::components), one a row, borrowed. Needs the feature `nalgebra`.
    pub fn components_nalgebra(&self) -> RowMajorView<'_> {
        let (k, d) = (self.n_components(), self.n_features());
        RowMajorView::from_slice_with_strides_generic(self.components(), Dyn(k), Dyn(d), Dyn(d), Const)
    }
}
