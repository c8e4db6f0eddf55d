//! Probabilistic PCA (Tipping & Bishop 1999): the Gaussian model of prepared rows a = D⁻¹(x − μ).
//!
//! Its covariance is
//!
//! ```text
//! Σ = U diag(v) Uᵀ + σ²(I − UUᵀ),      vᵢ = max(variance of component i, σ²),
//! ```
//!
//! with k orthonormal components U and the noise variance σ². It is singular where some direction has no variance: where a vᵢ is
//! 0, or where σ² is 0 and k < d. Otherwise, with z = Uᵀa,
//!
//! ```text
//! Σ⁻¹ = U diag(1/v − 1/σ²) Uᵀ + I/σ²
//! aᵀΣ⁻¹a = Σᵢ zᵢ²/vᵢ + ‖a − Uz‖²/σ²
//! ln det Σ = Σᵢ ln vᵢ + (d − k) ln σ²
//! ln p(a) = −½(aᵀΣ⁻¹a + ln det Σ + d ln 2π)
//! ```
//!
//! without the terms in σ² where k = d and σ² = 0. The distance ‖a − Uz‖ is taken from the row itself: ‖a‖² − ‖z‖² would
//! cancel. So rows are made dense, but a few at a time.

use std::f64::consts::TAU;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::projection::rows_at_a_time;
use super::{Model, Projection, Whitening};
use crate::{Error, Matrix, Real};

/// The Gaussian model of prepared rows.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbabilisticPca<'a> {
    projection: Projection<'a>,
    /// v.
    variances: Vec<f64>,
    /// σ².
    noise: f64,
}

impl Model {
    /// The Gaussian model with the variances (denominator n − 1) and the noise of this one.
    pub fn probabilistic(&self) -> ProbabilisticPca<'_> {
        let projection = self.projection(Whitening::Off);
        ProbabilisticPca::new(projection, &self.explained_variance(), self.noise_variance())
            .unwrap_or_else(|_| unreachable!("a model has one variance a component"))
    }
}

impl<'a> ProbabilisticPca<'a> {
    /// Of the components and the preparation of rows in `projection`, whose factors do not matter, with the variance of each
    /// component and the noise variance.
    pub fn new(projection: Projection<'a>, variances: &[f64], noise: f64) -> Result<Self, Error> {
        let k = projection.n_components();
        if variances.len() != k {
            return Err(Error::shape("variances of the components", k, variances.len()));
        }
        let variances = variances.iter().map(|v| v.max(noise)).collect();
        Ok(Self { projection, variances, noise })
    }

    /// The same with the covariance that scikit-learn's estimators have where they whiten: Σ = U diag(v(v − σ²)) Uᵀ + σ²I.
    pub fn whitening(projection: Projection<'a>, variances: &[f64], noise: f64) -> Result<Self, Error> {
        let along = |v: &f64| v * (v - noise).max(0.0) + noise;
        Self::new(projection, &variances.iter().map(along).collect::<Vec<_>>(), noise)
    }

    /// d, the number of features.
    pub fn n_features(&self) -> usize {
        self.projection.n_features()
    }

    /// Whether some direction has no variance, so that Σ has no inverse and rows have no density.
    pub fn is_singular(&self) -> bool {
        let positive = self.variances.iter().all(|v| *v > 0.0);
        !(positive && (self.spans_everything() || self.noise > 0.0))
    }

    /// Σ, d×d.
    pub fn covariance(&self) -> Vec<f64> {
        self.along_components(|v| v - self.noise, self.noise)
    }

    /// Σ⁻¹, d×d.
    pub fn precision(&self) -> Result<Vec<f64>, Error> {
        if self.is_singular() {
            return Err(self.singular());
        }
        let beyond = if self.noise > 0.0 { 1.0 / self.noise } else { 0.0 };
        Ok(self.along_components(|v| 1.0 / v - beyond, beyond))
    }

    /// ln p(a) of every row; −∞ where Σ is singular, which gives rows no density.
    pub fn log_likelihoods(&self, matrix: &Matrix<'_>) -> Result<Vec<f64>, Error> {
        self.projection.check(matrix)?;
        let (k, d) = (self.variances.len(), self.n_features());
        let mut result = vec![f64::NEG_INFINITY; matrix.n_rows()];
        if self.is_singular() {
            return Ok(result);
        }
        let rows = rows_at_a_time(d);
        let prepared = Prepared::new(&self.projection);
        result.par_chunks_mut(rows).enumerate().for_each_init(Vec::new, |room, (i, squares)| {
            room.resize(squares.len() * (d + k), 0.0);
            let (a, z) = room.split_at_mut(squares.len() * d);
            prepared.rows(matrix, i * rows, a);
            self.squares(a, z, squares);
        });
        if let Some(row) = result.iter().position(|square| !square.is_finite()) {
            return Err(Error::Unbounded { row });
        }
        let mut log_det: f64 = self.variances.iter().map(|v| v.ln()).sum();
        if !self.spans_everything() {
            log_det += (d - k) as f64 * self.noise.ln();
        }
        let constant = log_det + d as f64 * TAU.ln();
        result.iter_mut().for_each(|x| *x = -0.5 * (*x + constant));
        Ok(result)
    }

    /// What to say where Σ has no inverse.
    pub fn singular(&self) -> Error {
        Error::Singular { k: self.variances.len(), d: self.n_features() }
    }

    /// k = d.
    fn spans_everything(&self) -> bool {
        self.variances.len() == self.n_features()
    }

    /// Uᵀ, k×d.
    fn components(&self) -> MatRef<'_, f64> {
        let d = self.n_features();
        MatRef::from_row_major_slice(self.projection.components(), self.variances.len(), d)
    }

    /// U diag(weight(v)) Uᵀ + `diagonal`·I, d×d, in blocks of rows.
    fn along_components(&self, weight: impl Fn(f64) -> f64, diagonal: f64) -> Vec<f64> {
        let (k, d) = (self.variances.len(), self.n_features());
        let weights: Vec<f64> = self.variances.iter().map(|v| weight(*v)).collect();
        let u = self.projection.components();
        let mut result = vec![0.0; d * d];
        let rows = rows_at_a_time(d);
        result.par_chunks_mut(rows * d).enumerate().for_each_init(Vec::new, |left, (i, block)| {
            let (first, count) = (i * rows, block.len() / d);
            left.clear();
            left.extend((0..count * k).map(|e| u[e % k * d + first + e / k] * weights[e % k]));
            let left = MatRef::from_row_major_slice(left.as_slice(), count, k);
            let into = MatMut::from_row_major_slice_mut(block, count, d);
            matmul(into, Accum::Replace, left, self.components(), 1.0, Par::Seq);
            (0..count).for_each(|l| block[l * d + first + l] += diagonal);
        });
        result
    }

    /// aᵀΣ⁻¹a of prepared rows `a`, which become a − Uz; `z` has room for k numbers a row.
    fn squares(&self, a: &mut [f64], z: &mut [f64], squares: &mut [f64]) {
        let (k, d, count) = (self.variances.len(), self.n_features(), squares.len());
        let u = self.components();
        let into = MatMut::from_row_major_slice_mut(z, count, k);
        matmul(
            into,
            Accum::Replace,
            MatRef::from_row_major_slice(&*a, count, d),
            u.transpose(),
            1.0,
            Par::Seq,
        );
        squares.fill(0.0);
        for (square, z) in squares.iter_mut().zip(z.chunks_exact(k.max(1))) {
            *square = z.iter().zip(&self.variances).map(|(z, v)| z * z / v).sum();
        }
        if self.spans_everything() {
            return;
        }
        let z = MatRef::from_row_major_slice(&*z, count, k);
        matmul(MatMut::from_row_major_slice_mut(a, count, d), Accum::Add, z, u, -1.0, Par::Seq);
        for (square, rest) in squares.iter_mut().zip(a.chunks_exact(d)) {
            *square += rest.iter().map(|x| x * x).sum::<f64>() / self.noise;
        }
    }
}

/// The map x ↦ D⁻¹(x − μ).
struct Prepared {
    shift: Vec<f64>,
    /// The diagonal of D, where rows are divided.
    scale: Option<Vec<f64>>,
    /// Of x = 0.
    of_zero: Vec<f64>,
}

impl Prepared {
    fn new(projection: &Projection<'_>) -> Self {
        let d = projection.n_features();
        let shift = projection.shift().map_or_else(|| vec![0.0; d], <[f64]>::to_vec);
        let scale = projection.scale().map(<[f64]>::to_vec);
        let of_zero = (0..d).map(|j| (0.0 - shift[j]) / scale.as_ref().map_or(1.0, |s| s[j])).collect();
        Self { shift, scale, of_zero }
    }

    /// The rows from `first` on that `a` has room for.
    fn rows(&self, matrix: &Matrix<'_>, first: usize, a: &mut [f64]) {
        for (i, a) in a.chunks_exact_mut(self.of_zero.len()).enumerate() {
            match matrix {
                Matrix::DenseF32(x) => self.row(x.row(first + i), a),
                Matrix::DenseF64(x) => self.row(x.row(first + i), a),
                _ => {
                    a.copy_from_slice(&self.of_zero);
                    let scale = |j: usize| self.scale.as_ref().map_or(1.0, |s| s[j]);
                    matrix.for_each_in_row(first + i, |j, x| a[j] = (x - self.shift[j]) / scale(j));
                }
            }
        }
    }

    /// One dense row.
    fn row<T: Real>(&self, x: &[T], a: &mut [f64]) {
        a.iter_mut().zip(x).zip(&self.shift).for_each(|((a, x), mu)| *a = x.to_f64() - mu);
        if let Some(scale) = &self.scale {
            a.iter_mut().zip(scale).for_each(|(a, s)| *a /= s);
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;
    use crate::{Csr, Dense, FitConfig, Preprocessing};

    const D: usize = 6;

    /// 700 rows of 6 columns, more than one block, with a third of the entries 0.
    fn entries() -> Vec<f64> {
        let entry = |i: usize| match i * i * 31 % 1009 {
            _ if (i + i / D).is_multiple_of(3) => 0.0,
            x => x as f64 / 100.0 * [3.0, 1.0, 0.2, 2.0, 0.5, 0.7][i % D] - 1.0,
        };
        (0..700 * D).map(entry).collect()
    }

    fn dense(values: &[f64]) -> Matrix<'_> {
        Dense::borrowed(values, values.len() / D, D).unwrap().into()
    }

    fn fit(values: &[f64], k: usize, preprocessing: Preprocessing) -> Model {
        FitConfig { k, preprocessing, threads: 1, ..FitConfig::default() }.fit(&dense(values)).unwrap().model
    }

    /// Σ by its definition: Σᵢ vᵢuᵢuᵢᵀ + σ²(I − Σᵢ uᵢuᵢᵀ).
    fn dense_covariance(model: &Model) -> Vec<f64> {
        let (v, noise) = (model.explained_variance(), model.noise_variance());
        let entry = |a: usize, b: usize| {
            let along = |c: usize| model.component(c)[a] * model.component(c)[b];
            let kept: f64 = (0..v.len()).map(|c| v[c] * along(c)).sum();
            let rest = f64::from(u8::from(a == b)) - (0..v.len()).map(along).sum::<f64>();
            kept + noise * rest
        };
        (0..D * D).map(|i| entry(i / D, i % D)).collect()
    }

    /// ln N(a | 0, Σ) by Cholesky: with Σ = LLᵀ and Ly = a, −½(‖y‖² + 2Σ ln Lᵢᵢ + d ln 2π).
    fn dense_density(sigma: &[f64], a: &[f64]) -> f64 {
        let mut l = vec![0.0; D * D];
        for i in 0..D {
            for j in 0..=i {
                let rest = sigma[i * D + j] - (0..j).map(|m| l[i * D + m] * l[j * D + m]).sum::<f64>();
                l[i * D + j] = if i == j { rest.sqrt() } else { rest / l[j * D + j] };
            }
        }
        let (mut y, mut sum) = (vec![0.0; D], D as f64 * TAU.ln());
        for i in 0..D {
            y[i] = (a[i] - (0..i).map(|m| l[i * D + m] * y[m]).sum::<f64>()) / l[i * D + i];
            sum += y[i] * y[i] + 2.0 * l[i * D + i].ln();
        }
        -0.5 * sum
    }

    /// How far solving with Σ may be off, relative to the square: its condition, times the rounding of sums of d products.
    fn tolerance(model: &Model) -> f64 {
        let v = model.explained_variance();
        let smallest = if v.len() == D { v[D - 1] } else { model.noise_variance() };
        10.0 * D as f64 * f64::EPSILON * v[0] / smallest
    }

    #[test]
    fn log_likelihoods_are_those_of_the_dense_gaussian() {
        let values = entries();
        for preprocessing in [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE] {
            for k in [1, 3, D - 1, D] {
                let model = fit(&values, k, preprocessing);
                let sigma = dense_covariance(&model);
                let found = model.probabilistic().log_likelihoods(&dense(&values)).unwrap();
                assert!(rows_at_a_time(D) < found.len());
                for (row, found) in values.chunks_exact(D).zip(&found) {
                    let part = |part: Option<&[f64]>, j: usize, usual: f64| part.map_or(usual, |x| x[j]);
                    let prepare = |(j, x): (usize, &f64)| {
                        (x - part(model.shift(), j, 0.0)) / part(model.scale(), j, 1.0)
                    };
                    let a: Vec<f64> = row.iter().enumerate().map(prepare).collect();
                    let want = dense_density(&sigma, &a);
                    assert!(
                        (found - want).abs() <= tolerance(&model) * want.abs().max(1.0),
                        "k = {k}: {found} instead of {want}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_covariance_is_the_definition_and_the_precision_its_inverse() {
        let values = entries();
        for k in [1, 3, D - 1, D] {
            let model = fit(&values, k, Preprocessing::CENTER);
            let gaussian = model.probabilistic();
            let (sigma, inverse) = (gaussian.covariance(), gaussian.precision().unwrap());
            let largest = model.explained_variance()[0];
            let close = |a: &f64, b: &f64| (a - b).abs() <= 4.0 * D as f64 * f64::EPSILON * largest;
            assert!(sigma.iter().zip(&dense_covariance(&model)).all(|(a, b)| close(a, b)), "k = {k}");
            for i in 0..D * D {
                let product: f64 = (0..D).map(|m| sigma[i / D * D + m] * inverse[m * D + i % D]).sum();
                let want = f64::from(u8::from(i / D == i % D));
                assert!((product - want).abs() <= tolerance(&model), "k = {k}: {product} instead of {want}");
            }
        }
    }

    #[test]
    fn the_trace_of_the_covariance_is_the_variance_of_the_data() {
        let values = entries();
        let model = fit(&values, 2, Preprocessing::CENTER);
        let sigma = model.probabilistic().covariance();
        let trace: f64 = (0..D).map(|j| sigma[j * D + j]).sum();
        let total = model.summary().total_variance * 700.0 / 699.0;
        assert!(
            (trace - total).abs() <= 10.0 * D as f64 * f64::EPSILON * total,
            "{trace} instead of {total}"
        );
    }

    #[test]
    fn compressed_rows_have_the_bits_of_dense_ones_on_any_number_of_threads() {
        let values = entries();
        let stored: Vec<usize> = (0..values.len()).filter(|i| values[*i] != 0.0).collect();
        let starts = (0..=700).map(|l| stored.partition_point(|i| *i < l * D)).collect::<Vec<_>>();
        let columns = stored.iter().map(|i| (i % D) as u32).collect::<Vec<_>>();
        let sparse: Matrix =
            Csr::new(D, starts, columns, stored.iter().map(|i| values[*i]).collect::<Vec<_>>())
                .unwrap()
                .into();
        let model = fit(&values, 3, Preprocessing::STANDARDIZE);
        let gaussian = model.probabilistic();
        let on = |threads: usize, x: &Matrix<'_>| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| (gaussian.log_likelihoods(x).unwrap(), gaussian.covariance()))
        };
        let want = on(1, &dense(&values));
        assert_eq!(on(3, &dense(&values)), want);
        assert_eq!(on(1, &sparse), want);
        assert_eq!(on(3, &sparse), want);
    }

    #[test]
    fn a_variance_below_the_noise_counts_as_noise() {
        let components = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        let projection = Projection::new(&components, 3, None, None, None).unwrap();
        let gaussian = ProbabilisticPca::new(projection.clone(), &[4.0, 0.5], 2.0).unwrap();
        assert_eq!(gaussian.covariance(), [4.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0]);
        assert_eq!(gaussian.precision().unwrap(), [0.25, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.5]);
        let refused = ProbabilisticPca::new(projection, &[4.0], 2.0).unwrap_err().to_string();
        assert_eq!(refused, "variances of the components: 1 given where 2 are needed");
    }

    #[test]
    fn whitening_multiplies_what_exceeds_the_noise_by_the_variance() {
        let components = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        let projection = Projection::new(&components, 3, None, None, None).unwrap();
        let gaussian = ProbabilisticPca::whitening(projection, &[4.0, 0.5], 2.0).unwrap();
        assert_eq!(gaussian.covariance(), [10.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0]);
    }

    #[test]
    fn without_components_all_is_noise() {
        let projection = Projection::new(&[], 2, Some(&[1.0, 0.0]), None, None).unwrap();
        assert_eq!(projection.n_components(), 0);
        let x: Matrix = Dense::new(vec![1.0, 2.0, 3.0, 0.0], 2, 2).unwrap().into();
        assert!(projection.transform_to::<f64>(&x).unwrap().is_empty());
        assert_eq!(projection.inverse_transform_rows::<f64>(&[], 2).unwrap(), [1.0, 0.0, 1.0, 0.0]);
        let gaussian = ProbabilisticPca::new(projection, &[], 4.0).unwrap();
        assert_eq!(gaussian.covariance(), [4.0, 0.0, 0.0, 4.0]);
        assert_eq!(gaussian.precision().unwrap(), [0.25, 0.0, 0.0, 0.25]);
        // Both rows are 2 from the mean: −½(2²/4 + 2 ln 4 + 2 ln 2π).
        let want = -0.5 * (1.0 + 2.0 * 4.0_f64.ln() + 2.0 * TAU.ln());
        assert!(gaussian.log_likelihoods(&x).unwrap().iter().all(|x| (x - want).abs() <= 4.0 * f64::EPSILON));
    }

    #[test]
    fn a_direction_without_variance_leaves_no_density() {
        let identity = [1.0, 0.0, 0.0, 1.0];
        let x: Matrix = Dense::new(vec![1.0, 2.0, f64::MAX, 0.0], 2, 2).unwrap().into();
        for (k, variances, noise, singular) in [
            (1, &[3.0][..], 0.0, true),
            (1, &[0.0], 1.0, false),
            (2, &[3.0, 0.0], 0.0, true),
            (2, &[3.0, -1e-20], 0.0, true),
            (2, &[3.0, 1.0], 0.0, false),
        ] {
            let projection = Projection::new(&identity[..2 * k], 2, None, None, None).unwrap();
            let gaussian = ProbabilisticPca::new(projection, variances, noise).unwrap();
            assert_eq!(gaussian.is_singular(), singular, "{variances:?}, {noise}");
            if singular {
                assert_eq!(gaussian.log_likelihoods(&x).unwrap(), [f64::NEG_INFINITY; 2]);
                let said = gaussian.precision().unwrap_err().to_string();
                assert!(
                    said.starts_with(&format!("the {k} components of 2 features leave no variance")),
                    "{said}"
                );
            } else {
                // The square of the largest number is beyond all numbers.
                let said = gaussian.log_likelihoods(&x).unwrap_err().to_string();
                assert!(said.starts_with("row 1 of X holds"), "{said}");
            }
        }
    }
}
