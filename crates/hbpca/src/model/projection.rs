//! The maps between rows and scores.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::kernels::Stored;
use crate::matrix::Real;
use crate::{Csr, Dense, Error, Matrix, kernels};

/// Numbers prepared at a time: 256 KiB, which stay in the second-level cache between being written and being multiplied.
const NUMBERS_AT_A_TIME: usize = 1 << 15;

/// Columns multiplied at a time: sums of products are gathered span by span, so that rounding grows with the length of one and their number.
pub(super) const SPAN: usize = 512;
/// Numbers of a map that a thread makes at a time.
const CHUNK: usize = 1 << 14;
/// Compressed rows that a thread takes at a time.
const SPARSE_ROWS: usize = 256;
/// Scores of compressed rows that are computed at a time, at least: those of a column fill a cache line. With few columns there are more.
const SCORES_AT_A_TIME: usize = 8;
/// At most: so many fill the registers of a kernel.
const MOST_SCORES_AT_A_TIME: usize = 32;

/// Rows of d columns to prepare at a time; depends on d alone, so that every number of threads gives the same bits.
pub(super) fn rows_at_a_time(d: usize) -> usize {
    (NUMBERS_AT_A_TIME / d).clamp(8, 512)
}

/// Rows of a tile of at most [`SPAN`] columns; depends on d alone, too.
fn rows_of_a_tile(d: usize) -> usize {
    rows_at_a_time(d.min(SPAN))
}

/// Numbers that products of rows and components are made of.
trait Number: Real + ComplexField + std::ops::Sub<Output = Self> {}

impl Number for f32 {}
impl Number for f64 {}

/// Means as sums of two numbers: x − high is exact near the mean, so that (x − high) − low is x − μ but for two roundings of what is left.
struct Split<A> {
    high: Vec<A>,
    low: Vec<A>,
}

impl<A: Number> Split<A> {
    fn of(means: &[f64]) -> Self {
        let high: Vec<A> = means.iter().map(|mu| A::from_f64(*mu)).collect();
        let low = means.iter().zip(&high).map(|(mu, high)| A::from_f64(mu - high.to_f64())).collect();
        Self { high, low }
    }
}

/// The map of a row x to its scores F⁻¹Uᵀa of a = D⁻¹(x − μ), and back: U with orthonormal columns, D and F diagonal.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection<'a> {
    /// Uᵀ, k×d, row-major.
    components: &'a [f64],
    d: usize,
    shift: Option<&'a [f64]>,
    scale: Option<&'a [f64]>,
    factors: Vec<f64>,
}

impl<'a> Projection<'a> {
    /// Of components (Uᵀ, k×d, row-major), `shift` (μ), `scale` (the diagonal of D) and `factors` (that of F): what scores are
    /// divided by. An infinite factor makes scores of 0, which say nothing of the row they come from. Where a part is not given,
    /// nothing is subtracted or divided.
    pub fn new(
        components: &'a [f64],
        d: usize,
        shift: Option<&'a [f64]>,
        scale: Option<&'a [f64]>,
        factors: Option<Vec<f64>>,
    ) -> Result<Self, Error> {
        let k = components.len().checked_div(d).unwrap_or(0);
        if d == 0 || components.len() != k * d {
            return Err(Error::shape(
                format!("numbers in components of {d} columns"),
                k.max(1) * d,
                components.len(),
            ));
        }
        check_columns(d, shift, scale)?;
        let factors = factors.unwrap_or_else(|| vec![1.0; k]);
        if factors.len() != k {
            return Err(Error::shape("factors of the scores", k, factors.len()));
        }
        Ok(Self { components, d, shift, scale, factors })
    }

    /// k, the number of components.
    pub fn n_components(&self) -> usize {
        self.factors.len()
    }

    /// d, the number of features.
    pub fn n_features(&self) -> usize {
        self.d
    }

    /// Uᵀ, k×d, row-major.
    pub(super) fn components(&self) -> &'a [f64] {
        self.components
    }

    /// What score c is divided by.
    pub(super) fn factor(&self, c: usize) -> f64 {
        self.factors[c]
    }

    /// μ.
    pub(super) fn shift(&self) -> Option<&'a [f64]> {
        self.shift
    }

    /// The diagonal of D.
    pub(super) fn scale(&self) -> Option<&'a [f64]> {
        self.scale
    }

    /// Refuses rows of another number of columns.
    pub(super) fn check(&self, matrix: &Matrix<'_>) -> Result<(), Error> {
        if matrix.n_cols() == self.d {
            return Ok(());
        }
        Err(Error::shape("columns of the data to transform", self.d, matrix.n_cols()))
    }

    /// Scores of every row, rounded to `T` at the end: n×k, row-major. Sparse rows stay sparse.
    pub fn transform_to<T: Real>(&self, matrix: &Matrix<'_>) -> Result<Vec<T>, Error> {
        let mut scores = vec![T::default(); matrix.n_rows() * self.n_components()];
        self.transform_into(matrix, &mut scores)?;
        Ok(scores)
    }

    /// The same into memory of the caller's.
    pub fn transform_into<T: Real>(&self, matrix: &Matrix<'_>, scores: &mut [T]) -> Result<(), Error> {
        self.check(matrix)?;
        let k = self.n_components();
        if scores.len() != matrix.n_rows() * k {
            return Err(Error::shape("numbers to write scores to", matrix.n_rows() * k, scores.len()));
        }
        match matrix {
            _ if k == 0 => {}
            Matrix::DenseF32(x) => self.transform_dense(x, scores),
            Matrix::DenseF64(x) => self.transform_dense(x, scores),
            Matrix::CsrF32(x) => self.transform_sparse(x, scores),
            Matrix::CsrF64(x) => self.transform_sparse(x, scores),
        }
        Ok(())
    }

    /// Single precision in and out is multiplied in it, centred before by means of two numbers; in double precision where that would leave its range.
    fn transform_dense<S: Stored, T: Real>(&self, x: &Dense<'_, S>, scores: &mut [T]) {
        if S::BYTES.max(T::BYTES) == f32::BYTES && self.suits_single() {
            self.transform_dense_in::<f32, S, T>(x, scores);
            if is_in_the_middle(scores) {
                return;
            }
        }
        self.transform_dense_in::<f64, S, T>(x, scores);
    }

    /// Whether what is divided by lies in the middle of the range of single precision.
    fn suits_single(&self) -> bool {
        let middle = |x: &f64| x.is_infinite() || (1e-15..=1e15).contains(x);
        self.factors.iter().all(middle) && self.scale.is_none_or(|scale| scale.iter().all(middle))
    }

    fn transform_dense_in<A: Number, S: Stored, T: Real>(&self, x: &Dense<'_, S>, scores: &mut [T]) {
        let (rows, k) = (rows_of_a_tile(self.d), self.n_components());
        let map = self.map_to::<A>(0..k);
        let shift = self.shift.map(Split::of);
        let blocks = scores.par_chunks_mut(rows * k).enumerate();
        blocks.for_each_init(Vec::new, |room, (i, scores)| {
            project_dense(x, i * rows, shift.as_ref(), &map, room, scores);
        });
    }

    /// Some scores at a time, so that what is read at random stays small.
    fn transform_sparse<S: Stored, T: Real>(&self, x: &Csr<'_, S>, scores: &mut [T]) {
        let k = self.n_components();
        let width = (NUMBERS_AT_A_TIME / self.d).clamp(SCORES_AT_A_TIME, MOST_SCORES_AT_A_TIME);
        for from in (0..k).step_by(width) {
            let panel = from..k.min(from + width);
            let map = self.map_to::<f64>(panel.clone());
            let mut of_mean = vec![0.0; panel.len()];
            for (row, mu) in map.chunks_exact(panel.len()).zip(self.shift.unwrap_or(&[])) {
                of_mean.iter_mut().zip(row).for_each(|(o, u)| *o += mu * u);
            }
            let blocks = scores.par_chunks_mut(SPARSE_ROWS * k).enumerate();
            blocks.for_each_init(Vec::new, |dots, (i, scores)| {
                dots.resize(scores.len() / k * panel.len(), 0.0);
                kernels::dots_csr(x, i * SPARSE_ROWS, &map, panel.len(), dots);
                for (scores, dots) in scores.chunks_exact_mut(k).zip(dots.chunks_exact(panel.len())) {
                    let each = scores[panel.clone()].iter_mut().zip(dots).zip(&of_mean);
                    each.for_each(|((score, dot), o)| *score = T::from_f64(dot - o));
                }
            });
        }
    }

    /// Some columns of D⁻¹UF⁻¹, row-major: their values for a feature lie side by side.
    fn map_to<A: Real>(&self, scores: Range<usize>) -> Vec<A> {
        let width = scores.len();
        let mut map = vec![A::default(); self.d * width];
        let rows = CHUNK.div_ceil(width);
        map.par_chunks_mut(rows * width).enumerate().for_each(|(i, map)| {
            for (j, row) in map.chunks_exact_mut(width).enumerate().map(|(j, row)| (i * rows + j, row)) {
                let inverse = self.scale.map_or(1.0, |s| 1.0 / s[j]);
                for (value, c) in row.iter_mut().zip(scores.clone()) {
                    *value = A::from_f64(self.components[c * self.d + j] * inverse / self.factors[c]);
                }
            }
        });
        map
    }

    /// Rows from scores s (n×k, row-major), rounded to `T` at the end: x = μ + DUFs, the point nearest to the data within the
    /// components.
    pub fn inverse_transform_to<T: Real>(&self, scores: &[T]) -> Result<Vec<T>, Error> {
        let k = self.n_components();
        if k == 0 || !scores.len().is_multiple_of(k) {
            let whole = scores.len() / k.max(1) * k;
            return Err(Error::shape(format!("scores in rows of {k}"), whole, scores.len()));
        }
        self.inverse_transform_rows(scores, scores.len() / k)
    }

    /// The same for n rows of scores, of which there may be none a row.
    pub fn inverse_transform_rows<T: Real>(&self, scores: &[T], n: usize) -> Result<Vec<T>, Error> {
        let mut rows = vec![T::default(); n.saturating_mul(self.d)];
        self.inverse_transform_into(scores, &mut rows)?;
        Ok(rows)
    }

    /// The same into memory of the caller's, which has room for whole rows.
    pub fn inverse_transform_into<T: Real>(&self, scores: &[T], result: &mut [T]) -> Result<(), Error> {
        let (d, k, n) = (self.d, self.n_components(), result.len() / self.d);
        if result.len() != n * d {
            return Err(Error::shape(format!("numbers to write rows of {d} to"), n * d, result.len()));
        }
        if Some(scores.len()) != n.checked_mul(k) {
            return Err(Error::shape(
                format!("scores of {n} rows of {k}"),
                n.saturating_mul(k),
                scores.len(),
            ));
        }
        if k == 0 {
            let of_mean: Vec<T> = (0..d).map(|j| T::from_f64(self.shift.map_or(0.0, |mu| mu[j]))).collect();
            result.chunks_exact_mut(d).for_each(|row| row.copy_from_slice(&of_mean));
            return Ok(());
        }
        if T::BYTES == f32::BYTES && self.suits_single() && is_in_the_middle(scores) {
            self.rows_from_scores::<f32, T>(scores, result);
        } else {
            self.rows_from_scores::<f64, T>(scores, result);
        }
        Ok(())
    }

    /// x = μ + DUFs, where products are made of numbers A, and μ is added in double precision.
    fn rows_from_scores<A: Number, T: Real>(&self, scores: &[T], result: &mut [T]) {
        let (d, k, rows) = (self.d, self.n_components(), rows_of_a_tile(self.d));
        // FUᵀD, k×d.
        let mut map = vec![A::default(); k * d];
        for (c, row) in map.chunks_exact_mut(d).enumerate() {
            let factor = if self.factors[c].is_finite() { self.factors[c] } else { 0.0 };
            for (j, x) in row.iter_mut().enumerate() {
                *x = A::from_f64(self.components[c * d + j] * factor * self.scale.map_or(1.0, |s| s[j]));
            }
        }
        let map = MatRef::from_row_major_slice(map.as_slice(), k, d);
        let blocks = result.par_chunks_mut(rows * d).zip(scores.par_chunks(rows * k));
        blocks.for_each_init(<(Vec<A>, Vec<A>)>::default, |(given, found), (out, scores)| {
            given.clear();
            given.extend(scores.iter().map(|s| A::from_f64(s.to_f64())));
            let count = scores.len() / k;
            let given = MatRef::from_row_major_slice(given.as_slice(), count, k);
            for start in (0..d).step_by(SPAN) {
                let width = SPAN.min(d - start);
                found.resize(count * width, A::default());
                let into = MatMut::from_row_major_slice_mut(found.as_mut_slice(), count, width);
                let one = A::from_f64(1.0);
                matmul(into, Accum::Replace, given, map.subcols(start, width), one, Par::Seq);
                for (out, found) in out.chunks_exact_mut(d).zip(found.chunks_exact(width)) {
                    let out = out[start..start + width].iter_mut().zip(found);
                    match self.shift {
                        Some(mu) => {
                            let mu = &mu[start..start + width];
                            out.zip(mu).for_each(|((out, x), mu)| *out = T::from_f64(x.to_f64() + mu));
                        }
                        None => out.for_each(|(out, x)| *out = T::from_f64(x.to_f64())),
                    }
                }
            }
        });
    }
}

/// Whether all numbers are finite and the largest is far from the limits of single precision, as then are products with it that matter.
fn is_in_the_middle<T: Real>(numbers: &[T]) -> bool {
    // The order of magnitudes is that of their bits, and what is not finite comes last.
    let magnitude = |x: &T| x.to_f64().to_bits() << 1;
    let largest = |numbers: &[T]| numbers.iter().map(magnitude).fold(0, u64::max);
    let largest = numbers.par_chunks(CHUNK).map(largest).reduce(|| 0, u64::max);
    (1e-20..=1e30).contains(&f64::from_bits(largest >> 1))
}

/// Refuses a shift or a scale that is not one of d columns.
pub(super) fn check_columns(d: usize, shift: Option<&[f64]>, scale: Option<&[f64]>) -> Result<(), Error> {
    for (what, part) in [("subtracted", shift), ("divided", scale)] {
        if let Some(part) = part
            && part.len() != d
        {
            return Err(Error::shape(format!("columns to be {what}"), d, part.len()));
        }
    }
    Ok(())
}

/// `scores` ← (X − 1μᵀ)·map for the rows of x from `first` on. Rows are centred before they are multiplied, which loses nothing when the mean
/// is large.
fn project_dense<A: Number, S: Stored, T: Real>(
    x: &Dense<'_, S>,
    first: usize,
    shift: Option<&Split<A>>,
    map: &[A],
    room: &mut Vec<A>,
    scores: &mut [T],
) {
    let d = x.n_cols();
    let k = map.len() / d;
    let (count, widest) = (scores.len() / k, d.min(SPAN));
    room.resize(count * (widest + k), A::default());
    let (centred, found) = room.split_at_mut(count * widest);
    let map = MatRef::from_row_major_slice(map, d, k);
    for start in (0..d).step_by(SPAN) {
        let width = SPAN.min(d - start);
        let centred = &mut centred[..count * width];
        for (i, a) in centred.chunks_exact_mut(width).enumerate() {
            let row = a.iter_mut().zip(&x.row(first + i)[start..start + width]);
            match shift {
                Some(Split { high, low }) => {
                    let mu = high[start..start + width].iter().zip(&low[start..start + width]);
                    let each = row.zip(mu);
                    each.for_each(|((a, x), (high, low))| *a = A::from_f64(x.to_f64()) - *high - *low);
                }
                None => row.for_each(|(a, x)| *a = A::from_f64(x.to_f64())),
            }
        }
        let centred = MatRef::from_row_major_slice(&*centred, count, width);
        let into = MatMut::from_row_major_slice_mut(&mut *found, count, k);
        let how = if start == 0 { Accum::Replace } else { Accum::Add };
        matmul(into, how, centred, map.subrows(start, width), A::from_f64(1.0), Par::Seq);
    }
    scores.iter_mut().zip(found.iter()).for_each(|(score, x)| *score = T::from_f64(x.to_f64()));
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;

    #[test]
    fn scores_and_rows_by_hand() {
        // a = D⁻¹(x − μ) = (2, 3); Uᵀa = (3, 2), divided by 4 and by ∞.
        let (components, shift, scale) = ([0.0, 1.0, 1.0, 0.0], [1.0, 2.0], [0.5, 2.0]);
        let factors = vec![4.0, f64::INFINITY];
        let projection = Projection::new(&components, 2, Some(&shift), Some(&scale), Some(factors)).unwrap();
        let x: Matrix = Dense::new(vec![2.0, 8.0], 1, 2).unwrap().into();
        assert_eq!(projection.transform_to::<f64>(&x).unwrap(), [0.75, 0.0]);
        // Back: μ + D(0, 4·0.75), without the component that has no scores.
        assert_eq!(projection.inverse_transform_to(&[0.75, 9.0]).unwrap(), [1.0, 8.0]);
        let plain = Projection::new(&components, 2, None, None, None).unwrap();
        assert_eq!(plain.transform_to::<f32>(&x).unwrap(), [8.0, 2.0]);
        assert_eq!(plain.inverse_transform_to(&[8.0, 2.0]).unwrap(), [2.0, 8.0]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let zeros = [0.0; 6];
        let refused = |numbers: usize, d: usize, shift: usize, factors: usize| {
            let factors = Some(vec![1.0; factors]);
            Projection::new(&zeros[..numbers], d, Some(&zeros[..shift]), None, factors)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(refused(5, 3, 3, 1), "numbers in components of 3 columns: 5 given where 3 are needed");
        assert_eq!(refused(0, 0, 0, 0), "numbers in components of 0 columns: 0 given where 0 are needed");
        assert_eq!(refused(6, 3, 2, 2), "columns to be subtracted: 2 given where 3 are needed");
        assert_eq!(refused(6, 3, 3, 3), "factors of the scores: 3 given where 2 are needed");
    }
}
