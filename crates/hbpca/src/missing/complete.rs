//! The completed matrix.

use super::{Filling, Holes, Missing};
use crate::Error;
use crate::columns::check_weights;
use crate::matrix::Matrix;

/// A matrix without holes, and how it came about.
#[derive(Clone, Debug)]
pub struct Completed<'m> {
    /// The rows that count, complete.
    pub matrix: Matrix<'m>,
    /// The weights of these rows, where there are such.
    pub weights: Option<Vec<f64>>,
    /// The holes that there were.
    pub holes: Holes,
    /// Rows that were left out.
    pub dropped: usize,
    pub(crate) filling: Option<Filling>,
}

/// Completes a matrix: its holes are filled with means, for `mean` and as the start of `em`, or rows with holes are left out. An owned matrix is filled in
/// place, a borrowed one is copied; so are the rows that are left. `error` leaves everything as it is.
///
/// ```
/// use hbpca::missing::{Missing, complete};
/// use hbpca::{Dense, Matrix};
/// let x: Matrix = Dense::deferring_finite_check(vec![1.0, f64::NAN, 3.0, 4.0, 5.0, 8.0].into(), 3, 2)?.into();
/// let mean = complete(x.clone(), None, Missing::Mean)?;
/// let mut second = Vec::new();
/// (0..3).for_each(|l| mean.matrix.for_each_in_row(l, |j, x| if j == 1 { second.push(x) }));
/// assert_eq!(second, [6.0, 4.0, 8.0]);
/// assert_eq!(complete(x, None, Missing::DropRows)?.matrix.n_rows(), 2);
/// # Ok::<(), hbpca::Error>(())
/// ```
pub fn complete<'m>(
    mut matrix: Matrix<'m>,
    weights: Option<&[f64]>,
    missing: Missing,
) -> Result<Completed<'m>, Error> {
    if let Some(weights) = weights {
        check_weights(matrix.n_rows(), weights)?;
    }
    let holes = Holes::of(&matrix);
    let all = |matrix, filling| Completed {
        matrix,
        weights: weights.map(<[f64]>::to_vec),
        holes: holes.clone(),
        dropped: 0,
        filling,
    };
    if holes.is_empty() || missing == Missing::Error {
        return Ok(all(matrix, None));
    }
    if missing == Missing::DropRows {
        let rows = holes.complete_rows(matrix.n_rows());
        if rows.is_empty() {
            return Err(no_row_left());
        }
        let weights = weights.map(|weights| rows.iter().map(|&l| weights[l]).collect());
        let dropped = matrix.n_rows() - rows.len();
        return Ok(Completed { matrix: matrix.select_rows(&rows), weights, holes, dropped, filling: None });
    }
    let filling = Filling::of(&matrix, weights)?;
    holes.fill(&mut matrix, holes.columns().iter().map(|&j| filling.values[j as usize]));
    Ok(all(matrix, Some(filling)))
}

/// The refusal of rows that all have holes.
pub(crate) fn no_row_left() -> Error {
    Error::parameter("missing", Missing::DropRows, "every row has a missing value: choose mean or em")
}
