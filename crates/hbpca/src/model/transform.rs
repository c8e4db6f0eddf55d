//! Data to scores and back.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Model;
use crate::kernels::Stored;
use crate::matrix::Real;
use crate::{Csr, Dense, Error, Matrix, kernels};

/// Whether scores are divided by their standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Whitening {
    /// Scores keep their variances.
    #[default]
    Off,
    /// Scores have variance 1 (denominator n − 1).
    On,
}

/// Numbers prepared at a time: 256 KiB, which stay in the second-level cache between being written and being multiplied.
const NUMBERS_AT_A_TIME: usize = 1 << 15;

/// Rows of d columns to prepare at a time; depends on d alone, so that every number of threads gives the same bits.
fn rows_at_a_time(d: usize) -> usize {
    (NUMBERS_AT_A_TIME / d).clamp(8, 512)
}

impl Model {
    /// Scores of every row: n×k, row-major. Row x becomes (D⁻¹(x − μ))ᵀU; sparse rows stay sparse.
    pub fn transform(&self, matrix: &Matrix<'_>, whitening: Whitening) -> Result<Vec<f64>, Error> {
        self.transform_to(matrix, whitening)
    }

    /// [`transform`](Self::transform), rounded to `T` at the end.
    pub fn transform_to<T: Real>(&self, matrix: &Matrix<'_>, whitening: Whitening) -> Result<Vec<T>, Error> {
        let (d, k) = (self.n_features(), self.n_components());
        if matrix.n_cols() != d {
            return Err(Error::shape("columns of the data to transform", d, matrix.n_cols()));
        }
        // D⁻¹U, whitened columns included, d×k: the k values of a column side by side.
        let factors = self.whitening_factors(whitening);
        let mut map = vec![0.0; d * k];
        for j in 0..d {
            let inverse = self.scale().map_or(1.0, |s| 1.0 / s[j]);
            for c in 0..k {
                map[j * k + c] = self.component(c)[j] * inverse / factors[c];
            }
        }
        let mut scores = vec![T::default(); matrix.n_rows() * k];
        let rows = rows_at_a_time(d);
        let blocks = scores.par_chunks_mut(rows * k).enumerate();
        match matrix {
            Matrix::DenseF32(x) => blocks.for_each_init(Vec::new, |room, (i, scores)| {
                project_dense(x, i * rows, self.shift(), &map, room, scores);
            }),
            Matrix::DenseF64(x) => blocks.for_each_init(Vec::new, |room, (i, scores)| {
                project_dense(x, i * rows, self.shift(), &map, room, scores);
            }),
            Matrix::CsrF32(x) => {
                let of_mean = self.of_mean(&map);
                blocks.for_each_init(Vec::new, |room, (i, scores)| {
                    project_sparse(x, i * rows, &of_mean, &map, room, scores);
                });
            }
            Matrix::CsrF64(x) => {
                let of_mean = self.of_mean(&map);
                blocks.for_each_init(Vec::new, |room, (i, scores)| {
                    project_sparse(x, i * rows, &of_mean, &map, room, scores);
                });
            }
        }
        Ok(scores)
    }

    /// What `map` makes of the mean, which sparse rows are not moved by.
    fn of_mean(&self, map: &[f64]) -> Vec<f64> {
        let k = self.n_components();
        let mut of_mean = vec![0.0; k];
        for (row, mu) in map.chunks_exact(k).zip(self.shift().unwrap_or(&[])) {
            of_mean.iter_mut().zip(row).for_each(|(o, u)| *o += mu * u);
        }
        of_mean
    }

    /// Rows from scores (n×k, row-major): x = μ + D·U·scores, the point nearest to the data within the components.
    pub fn inverse_transform(&self, scores: &[f64], whitening: Whitening) -> Result<Vec<f64>, Error> {
        self.inverse_transform_to(scores, whitening)
    }

    /// [`inverse_transform`](Self::inverse_transform) of scores in `T`, rounded to `T` at the end.
    pub fn inverse_transform_to<T: Real>(&self, scores: &[T], whitening: Whitening) -> Result<Vec<T>, Error> {
        let (d, k) = (self.n_features(), self.n_components());
        if !scores.len().is_multiple_of(k) {
            let whole = scores.len() / k * k;
            return Err(Error::shape(format!("scores in rows of {k}"), whole, scores.len()));
        }
        // UᵀD, whitening undone, k×d.
        let mut map = self.components().to_vec();
        for (row, factor) in map.chunks_exact_mut(d).zip(self.whitening_factors(whitening)) {
            let factor = if factor.is_finite() { factor } else { 0.0 };
            row.iter_mut().enumerate().for_each(|(j, u)| *u *= factor * self.scale().map_or(1.0, |s| s[j]));
        }
        let map = MatRef::from_row_major_slice(&map, k, d);
        let rows = rows_at_a_time(d);
        let mut result = vec![T::default(); scores.len() / k * d];
        let blocks = result.par_chunks_mut(rows * d).zip(scores.par_chunks(rows * k));
        blocks.for_each_init(<(Vec<f64>, Vec<f64>)>::default, |(given, found), (out, scores)| {
            given.clear();
            given.extend(scores.iter().map(|s| s.to_f64()));
            found.resize(out.len(), 0.0);
            let count = scores.len() / k;
            let given = MatRef::from_row_major_slice(given.as_slice(), count, k);
            let into = MatMut::from_row_major_slice_mut(found.as_mut_slice(), count, d);
            matmul(into, Accum::Replace, given, map, 1.0, Par::Seq);
            if let Some(shift) = self.shift() {
                found.chunks_exact_mut(d).for_each(|x| x.iter_mut().zip(shift).for_each(|(x, mu)| *x += mu));
            }
            out.iter_mut().zip(found.iter()).for_each(|(out, x)| *out = T::from_f64(*x));
        });
        Ok(result)
    }

    /// What scores are divided by: standard deviations when whitening; a component without variance gives scores 0.
    fn whitening_factors(&self, whitening: Whitening) -> Vec<f64> {
        match whitening {
            Whitening::Off => vec![1.0; self.n_components()],
            Whitening::On => {
                // Scores are known to about dε of the data's length: a variance below that squared is none.
                let nothing = (self.n_features() as f64 * f64::EPSILON).powi(2) * self.summary.total_variance;
                let variances = self.explained_variance();
                let pairs = variances.iter().zip(self.eigenvalues());
                pairs.map(|(v, x)| if *v > 0.0 && *x > nothing { v.sqrt() } else { f64::INFINITY }).collect()
            }
        }
    }
}

/// `scores` ← (X − 1μᵀ)·map for the rows of x from `first` on. Rows are centred before they are multiplied, which loses
/// nothing when the mean is large.
fn project_dense<S: Stored, T: Real>(
    x: &Dense<'_, S>,
    first: usize,
    shift: Option<&[f64]>,
    map: &[f64],
    room: &mut Vec<f64>,
    scores: &mut [T],
) {
    let d = x.n_cols();
    let k = map.len() / d;
    let count = scores.len() / k;
    room.resize(count * (d + k), 0.0);
    let (centred, found) = room.split_at_mut(count * d);
    for (i, a) in centred.chunks_exact_mut(d).enumerate() {
        let row = x.row(first + i);
        match shift {
            Some(mu) => a.iter_mut().zip(row).zip(mu).for_each(|((a, x), mu)| *a = x.to_f64() - mu),
            None => a.iter_mut().zip(row).for_each(|(a, x)| *a = x.to_f64()),
        }
    }
    let centred = MatRef::from_row_major_slice(&*centred, count, d);
    let into = MatMut::from_row_major_slice_mut(found, count, k);
    matmul(into, Accum::Replace, centred, MatRef::from_row_major_slice(map, d, k), 1.0, Par::Seq);
    scores.iter_mut().zip(found.iter()).for_each(|(score, x)| *score = T::from_f64(*x));
}

/// `scores` ← X·map − 1·`of_mean`ᵀ for the compressed rows from `first` on.
fn project_sparse<S: Stored, T: Real>(
    x: &Csr<'_, S>,
    first: usize,
    of_mean: &[f64],
    map: &[f64],
    room: &mut Vec<f64>,
    scores: &mut [T],
) {
    let k = of_mean.len();
    room.resize(scores.len(), 0.0);
    kernels::dots_csr(x, first, map, k, room);
    for (scores, dots) in scores.chunks_exact_mut(k).zip(room.chunks_exact(k)) {
        let each = scores.iter_mut().zip(dots).zip(of_mean);
        each.for_each(|((score, dot), o)| *score = T::from_f64(dot - o));
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;
    use crate::{Csr, FitConfig, Preprocessing, SolverKind};

    /// Rows (±2, ±1) turned by the rotation with cosine 0.8 and sine 0.6, moved to `mean`: variances 4 and 1.
    fn turned(mean: f64) -> Vec<f64> {
        let corners = [(2.0, 1.0), (2.0, -1.0), (-2.0, 1.0), (-2.0, -1.0)];
        corners.iter().flat_map(|(a, b)| [mean + 0.8 * a - 0.6 * b, mean + 0.6 * a + 0.8 * b]).collect()
    }

    fn fit(x: &Matrix<'_>) -> Model {
        let solver = SolverKind::Covariance;
        FitConfig { k: 2, solver, threads: 1, ..FitConfig::default() }.fit(x).unwrap().model
    }

    fn farthest(got: &[f64], want: &[f64]) -> f64 {
        assert_eq!(got.len(), want.len());
        got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn scores_are_coordinates_along_the_components() {
        let x: Matrix = Dense::new(turned(0.0), 4, 2).unwrap().into();
        let model = fit(&x);
        // u₁ = (0.8, 0.6), u₂ = (−0.6, 0.8): already with the sign rule.
        let scores = model.transform(&x, Whitening::Off).unwrap();
        assert!(farthest(&scores, &[2.0, 1.0, 2.0, -1.0, -2.0, 1.0, -2.0, -1.0]) < 1e-14);
        // Sample variances 4·4/3 and 4/3.
        let white = model.transform(&x, Whitening::On).unwrap();
        let unit = 0.75_f64.sqrt();
        assert!(farthest(&white, &[1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0, -1.0].map(|s| s * unit)) < 1e-14);
    }

    #[test]
    fn a_mean_ten_million_times_the_spread_costs_only_the_digits_of_the_data() {
        let mean = 1e7;
        let values = turned(mean);
        let model = {
            let x: Matrix = Dense::borrowed(&values, 4, 2).unwrap().into();
            let model = fit(&x);
            let scores = model.transform(&x, Whitening::Off).unwrap();
            // Entries are rounded by mean·ε/2 each; the direction by that over the spread, times scores of size 2.
            let digits = 8.0 * mean * f64::EPSILON;
            assert!(farthest(&scores, &[2.0, 1.0, 2.0, -1.0, -2.0, 1.0, -2.0, -1.0]) < digits);
            assert!(farthest(model.eigenvalues(), &[4.0, 1.0]) < digits);
            let back = model.inverse_transform(&scores, Whitening::Off).unwrap();
            assert!(farthest(&back, &values) <= 2.0 * mean * f64::EPSILON);
            model
        };
        // Compressed rows subtract the mean's score, known to mean·ε.
        let sparse: Matrix = Csr::new(2, vec![0, 2, 4, 6, 8], [0, 1].repeat(4), values).unwrap().into();
        let scores = model.transform(&sparse, Whitening::Off).unwrap();
        assert!(
            farthest(&scores, &[2.0, 1.0, 2.0, -1.0, -2.0, 1.0, -2.0, -1.0]) < 16.0 * mean * f64::EPSILON
        );
    }

    #[test]
    fn a_component_without_variance_has_white_scores_of_zero() {
        let x: Matrix = Dense::new(vec![1.0, 5.0, 3.0, 5.0], 2, 2).unwrap().into();
        let model = fit(&x);
        assert!(farthest(model.eigenvalues(), &[1.0, 0.0]) <= (2.0 * f64::EPSILON).powi(2)); // 0 but for rounding
        let white = model.transform(&x, Whitening::On).unwrap();
        let unit = 0.5_f64.sqrt(); // variance 2 with denominator n − 1
        assert!(farthest(&white, &[-unit, 0.0, unit, 0.0]) < 1e-15);
        assert!(
            farthest(&model.inverse_transform(&white, Whitening::On).unwrap(), &[1.0, 5.0, 3.0, 5.0]) < 1e-14
        );
    }

    #[test]
    fn standardised_components_return_to_the_units_of_the_data() {
        let x: Matrix = Dense::new(vec![1.0, 100.0, 2.0, 300.0, 3.0, 50.0, 9.0, -70.0], 4, 2).unwrap().into();
        let config =
            FitConfig { k: 2, preprocessing: Preprocessing::STANDARDIZE, threads: 1, ..FitConfig::default() };
        let model = config.fit(&x).unwrap().model;
        let scores = model.transform(&x, Whitening::On).unwrap();
        let back = model.inverse_transform(&scores, Whitening::On).unwrap();
        assert!(
            farthest(&back, &[1.0, 100.0, 2.0, 300.0, 3.0, 50.0, 9.0, -70.0]) < 300.0 * 8.0 * f64::EPSILON
        );
    }

    /// 1000 rows of 60 columns, more than one block of either map, with a third of the entries 0.
    fn many_rows() -> Vec<f64> {
        let entry =
            |i: usize| if i.is_multiple_of(3) { 0.0 } else { ((i * 7919) % 1009) as f64 / 100.0 - 3.0 };
        (0..1000 * 60).map(entry).collect()
    }

    #[test]
    fn blocks_of_rows_are_the_formula_row_by_row_dense_and_sparse_and_back() {
        let values = many_rows();
        let x: Matrix = Dense::borrowed(&values, 1000, 60).unwrap().into();
        let config = FitConfig { k: 5, preprocessing: Preprocessing::STANDARDIZE, ..FitConfig::default() };
        let model = config.fit(&x).unwrap().model;
        assert!(rows_at_a_time(60) < 1000);
        let (shift, scale) = (model.shift().unwrap(), model.scale().unwrap());
        let prepared = |l: usize, j: usize| (values[l * 60 + j] - shift[j]) / scale[j];
        let score = |l: usize, c: usize| (0..60).map(|j| prepared(l, j) * model.component(c)[j]).sum::<f64>();
        let want: Vec<f64> = (0..5000).map(|i| score(i / 5, i % 5)).collect();
        // Sums of 60 products, the rows and components of length at most 3·√60 and 1.
        let rounding = 60.0 * f64::EPSILON * 3.0 * 60_f64.sqrt();
        let scores = model.transform(&x, Whitening::Off).unwrap();
        assert!(farthest(&scores, &want) <= rounding);

        let stored: Vec<usize> = (0..values.len()).filter(|i| i % 3 != 0).collect();
        let starts: Vec<usize> = (0..=1000).map(|l| stored.partition_point(|i| *i < l * 60)).collect();
        let columns: Vec<u32> = stored.iter().map(|i| (i % 60) as u32).collect();
        let entries: Vec<f64> = stored.iter().map(|i| values[*i]).collect();
        let sparse: Matrix = Csr::new(60, starts, columns, entries).unwrap().into();
        assert!(farthest(&model.transform(&sparse, Whitening::Off).unwrap(), &want) <= 2.0 * rounding);

        let back = model.inverse_transform(&scores, Whitening::Off).unwrap();
        let nearest = |l: usize, j: usize| {
            shift[j] + scale[j] * (0..5).map(|c| score(l, c) * model.component(c)[j]).sum::<f64>()
        };
        let nearest: Vec<f64> = (0..60_000).map(|i| nearest(i / 60, i % 60)).collect();
        assert!(farthest(&back, &nearest) <= 10.0 * rounding);
    }

    #[test]
    fn single_precision_scores_are_the_double_ones_rounded() {
        let values: Vec<f32> = many_rows().iter().map(|x| *x as f32).collect();
        let x: Matrix = Dense::borrowed(&values, 1000, 60).unwrap().into();
        let model = FitConfig { k: 3, ..FitConfig::default() }.fit(&x).unwrap().model;
        let exact = model.transform(&x, Whitening::On).unwrap();
        let rounded: Vec<f32> = model.transform_to(&x, Whitening::On).unwrap();
        assert!(exact.iter().zip(&rounded).all(|(exact, rounded)| *exact as f32 == *rounded));
        let doubles: Vec<f64> = rounded.iter().map(|x| f64::from(*x)).collect();
        let exact = model.inverse_transform(&doubles, Whitening::On).unwrap();
        let rounded = model.inverse_transform_to(&rounded, Whitening::On).unwrap();
        assert!(exact.iter().zip(&rounded).all(|(exact, rounded)| *exact as f32 == *rounded));
    }
}
