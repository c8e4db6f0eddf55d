//! Data to scores and back.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Model;
use crate::{Error, Matrix};

/// Whether scores are divided by their standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whitening {
    /// Scores keep their variances.
    #[default]
    Off,
    /// Scores have variance 1 (denominator n − 1).
    On,
}

impl Model {
    /// Scores of every row: n×k, row-major. Row x becomes (D⁻¹(x − μ))ᵀU; sparse rows stay sparse.
    pub fn transform(&self, matrix: &Matrix<'_>, whitening: Whitening) -> Result<Vec<f64>, Error> {
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
        let shift = self.shift();
        let mut offset = vec![0.0; k]; // scores of μ, for sparse rows
        for (row, mu) in map.chunks_exact(k).zip(shift.unwrap_or(&[])) {
            offset.iter_mut().zip(row).for_each(|(o, u)| *o += mu * u);
        }
        let sparse = matrix.is_sparse();
        let mut scores = vec![0.0; matrix.n_rows() * k];
        scores.par_chunks_exact_mut(k).enumerate().with_min_len(64).for_each(|(l, scores)| {
            if sparse {
                scores.iter_mut().zip(&offset).for_each(|(s, o)| *s = -o);
            }
            matrix.for_each_in_row(l, |j, x| {
                // Dense rows are centred first, which loses nothing when the mean is large.
                let a = if sparse { x } else { x - shift.map_or(0.0, |s| s[j]) };
                scores.iter_mut().zip(&map[j * k..(j + 1) * k]).for_each(|(s, u)| *s += a * u);
            });
        });
        Ok(scores)
    }

    /// Rows from scores (n×k, row-major): x = μ + D·U·scores, the point nearest to the data within the components.
    pub fn inverse_transform(&self, scores: &[f64], whitening: Whitening) -> Result<Vec<f64>, Error> {
        let (d, k) = (self.n_features(), self.n_components());
        if !scores.len().is_multiple_of(k) {
            let whole = scores.len() / k * k;
            return Err(Error::shape(format!("scores in rows of {k}"), whole, scores.len()));
        }
        let factors = self.whitening_factors(whitening);
        let mut rows = vec![0.0; scores.len() / k * d];
        rows.par_chunks_exact_mut(d).zip(scores.par_chunks_exact(k)).with_min_len(16).for_each(
            |(row, scores)| {
                for (c, score) in scores.iter().enumerate() {
                    let score = score * if factors[c].is_finite() { factors[c] } else { 0.0 };
                    row.iter_mut().zip(self.component(c)).for_each(|(x, u)| *x += score * u);
                }
                if let Some(scale) = self.scale() {
                    row.iter_mut().zip(scale).for_each(|(x, s)| *x *= s);
                }
                if let Some(shift) = self.shift() {
                    row.iter_mut().zip(shift).for_each(|(x, mu)| *x += mu);
                }
            },
        );
        Ok(rows)
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

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;
    use crate::{Csr, Dense, FitConfig, Preprocessing, SolverKind};

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
}
