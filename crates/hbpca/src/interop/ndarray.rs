//! `ndarray`: arrays of two axes.
//!
//! Rows in standard layout are borrowed; everything else (transposed, reversed, stepped, broadcast) is copied.
//!
//! ```
//! use hbpca::{Dense, FitConfig, Matrix};
//! use ndarray::{Array2, array, s};
//!
//! let x: Array2<f64> = array![[2.0, 1.0], [-2.0, -1.0], [0.1, -0.2], [-0.1, 0.2]];
//! let fit = FitConfig::default().fit(&Matrix::try_from(x.view())?)?; // no copy
//! let components = fit.model.components_ndarray();
//! assert_eq!(components.dim(), (1, 2));
//! let scores = x.dot(&components.t());
//! assert_eq!(scores.dim(), (4, 1));
//!
//! // Every other row: copied. Borrowed as a stride over the slice that holds the gaps, too.
//! let copied = Dense::try_from(x.slice(s![..;2, ..]))?;
//! let borrowed = Dense::strided(x.as_slice().unwrap(), 2, 2, 4)?;
//! assert_eq!(copied.row(1), borrowed.row(1));
//! # Ok::<(), hbpca::Error>(())
//! ```

use ::ndarray::{ArrayBase, ArrayView2, ArrayViewMut2, Data, Ix2};

use super::rows::row_major;
use crate::{Block, Dense, Error, Matrix, Model, Real};

impl<'a, T: Real> TryFrom<ArrayView2<'a, T>> for Dense<'a, T> {
    type Error = Error;

    fn try_from(x: ArrayView2<'a, T>) -> Result<Self, Error> {
        let (n, d) = x.dim();
        match x.to_slice() {
            Some(values) => Dense::borrowed(values, n, d),
            None => Dense::new(row_major(n, d, |i, j| x[[i, j]])?, n, d),
        }
    }
}

impl<'a, T: Real, S: Data<Elem = T>> TryFrom<&'a ArrayBase<S, Ix2>> for Dense<'a, T> {
    type Error = Error;

    fn try_from(x: &'a ArrayBase<S, Ix2>) -> Result<Self, Error> {
        x.view().try_into()
    }
}

impl<'a, T: Real> TryFrom<ArrayView2<'a, T>> for Matrix<'a>
where
    Matrix<'a>: From<Dense<'a, T>>,
{
    type Error = Error;

    fn try_from(x: ArrayView2<'a, T>) -> Result<Self, Error> {
        Dense::try_from(x).map(Into::into)
    }
}

impl<'a, T: Real, S: Data<Elem = T>> TryFrom<&'a ArrayBase<S, Ix2>> for Matrix<'a>
where
    Matrix<'a>: From<Dense<'a, T>>,
{
    type Error = Error;

    fn try_from(x: &'a ArrayBase<S, Ix2>) -> Result<Self, Error> {
        x.view().try_into()
    }
}

/// Copied: a block owns its values.
impl TryFrom<ArrayView2<'_, f64>> for Block {
    type Error = Error;

    fn try_from(x: ArrayView2<'_, f64>) -> Result<Self, Error> {
        let (d, p) = x.dim();
        Block::from_values(d, p, row_major(d, p, |j, c| x[[j, c]])?)
    }
}

const FITS: &str = "values in memory have the shape of an array";

/// d×p, borrowed.
impl<'a> From<&'a Block> for ArrayView2<'a, f64> {
    fn from(block: &'a Block) -> Self {
        ArrayView2::from_shape((block.d(), block.p()), block.values()).expect(FITS)
    }
}

/// d×p, borrowed.
impl<'a> From<&'a mut Block> for ArrayViewMut2<'a, f64> {
    fn from(block: &'a mut Block) -> Self {
        ArrayViewMut2::from_shape((block.d(), block.p()), block.values_mut()).expect(FITS)
    }
}

impl Model {
    /// k×d: [`components`](Self::components), one a row, borrowed. Needs the feature `ndarray`.
    pub fn components_ndarray(&self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.n_components(), self.n_features()), self.components()).expect(FITS)
    }
}
