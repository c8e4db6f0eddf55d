//! `faer`: matrices and views.
//!
//! Row-major views without gaps are borrowed. faer's own matrices are column-major, and are copied.
//!
//! ```
//! use hbpca::{FitConfig, Matrix};
//! use faer::{Mat, MatRef, mat};
//!
//! let x: Mat<f64> = mat![[2.0, 1.0], [-2.0, -1.0], [0.1, -0.2], [-0.1, 0.2]];
//! let fit = FitConfig::default().fit(&Matrix::try_from(&x)?)?; // copied into rows
//! let components: MatRef<f64> = fit.model.components_faer();
//! let scores = &x * components.transpose();
//! assert_eq!((scores.nrows(), scores.ncols()), (4, 1));
//!
//! let values = [2.0, 1.0, -2.0, -1.0, 0.1, -0.2, -0.1, 0.2];
//! let rows = MatRef::from_row_major_slice(&values, 4, 2);
//! assert_eq!(FitConfig::default().fit(&Matrix::try_from(rows)?)?.model, fit.model); // no copy
//! # Ok::<(), hbpca::Error>(())
//! ```

use ::faer::{Mat, MatMut, MatRef, Shape, Stride};

use super::rows::{row_major, rows_of_view};
use crate::{Block, Dense, Error, Matrix, Model, Real};

impl<'a, T: Real, R: Shape, C: Shape, RS: Stride, CS: Stride> TryFrom<MatRef<'a, T, R, C, RS, CS>>
    for Dense<'a, T>
{
    type Error = Error;

    #[allow(unsafe_code, reason = "faer gives no slice of several rows")]
    fn try_from(x: MatRef<'a, T, R, C, RS, CS>) -> Result<Self, Error> {
        let x = x.as_dyn().as_dyn_stride();
        let (shape, strides) = ([x.nrows(), x.ncols()], [x.row_stride(), x.col_stride()]);
        // SAFETY: pointer, shape and strides are those of one view, whose values are borrowed for 'a.
        unsafe { rows_of_view(x.as_ptr(), shape, strides, |i, j| x[(i, j)]) }
    }
}

impl<'a, T: Real> TryFrom<&'a Mat<T>> for Dense<'a, T> {
    type Error = Error;

    fn try_from(x: &'a Mat<T>) -> Result<Self, Error> {
        x.as_ref().try_into()
    }
}

impl<'a, T: Real, R: Shape, C: Shape, RS: Stride, CS: Stride> TryFrom<MatRef<'a, T, R, C, RS, CS>>
    for Matrix<'a>
where
    Matrix<'a>: From<Dense<'a, T>>,
{
    type Error = Error;

    fn try_from(x: MatRef<'a, T, R, C, RS, CS>) -> Result<Self, Error> {
        Dense::try_from(x).map(Into::into)
    }
}

impl<'a, T: Real> TryFrom<&'a Mat<T>> for Matrix<'a>
where
    Matrix<'a>: From<Dense<'a, T>>,
{
    type Error = Error;

    fn try_from(x: &'a Mat<T>) -> Result<Self, Error> {
        x.as_ref().try_into()
    }
}

/// Copied: a block owns its values.
impl TryFrom<MatRef<'_, f64>> for Block {
    type Error = Error;

    fn try_from(x: MatRef<'_, f64>) -> Result<Self, Error> {
        let (d, p) = x.shape();
        Block::from_values(d, p, row_major(d, p, |j, c| x[(j, c)])?)
    }
}

/// d×p, borrowed.
impl<'a> From<&'a Block> for MatRef<'a, f64> {
    fn from(block: &'a Block) -> Self {
        MatRef::from_row_major_slice(block.values(), block.d(), block.p())
    }
}

/// d×p, borrowed.
impl<'a> From<&'a mut Block> for MatMut<'a, f64> {
    fn from(block: &'a mut Block) -> Self {
        let (d, p) = (block.d(), block.p());
        MatMut::from_row_major_slice_mut(block.values_mut(), d, p)
    }
}

impl Model {
    /// k×d: [`components`](Self::components), one a row, borrowed. Needs the feature `faer`.
    pub fn components_faer(&self) -> MatRef<'_, f64> {
        MatRef::from_row_major_slice(self.components(), self.n_components(), self.n_features())
    }
}
