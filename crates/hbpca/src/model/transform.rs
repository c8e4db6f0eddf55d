//! Data to scores and back.

use serde::{Deserialize, Serialize};

use super::{Model, Projection};
use crate::matrix::Real;
use crate::{Error, Matrix};

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

impl Model {
    /// Scores of every row: n×k, row-major. Row x becomes (D⁻¹(x − μ))ᵀU; sparse rows stay sparse.
    pub fn transform(&self, matrix: &Matrix<'_>, whitening: Whitening) -> Result<Vec<f64>, Error> {
        self.transform_to(matrix, whitening)
    }

    /// [`transform`](Self::transform), rounded to `T` at the end.
    pub fn transform_to<T: Real>(&self, matrix: &Matrix<'_>, whitening: Whitening) -> Result<Vec<T>, Error> {
        self.projection(whitening).transform_to(matrix)
    }

    /// Rows from scores (n×k, row-major): x = μ + D·U·scores, the point nearest to the data within the components.
    pub fn inverse_transform(&self, scores: &[f64], whitening: Whitening) -> Result<Vec<f64>, Error> {
        self.inverse_transform_to(scores, whitening)
    }

    /// [`inverse_transform`](Self::inverse_transform) of scores in `T`, rounded to `T` at the end.
    pub fn inverse_transform_to<T: Real>(&self, scores: &[T], whitening: Whitening) -> Result<Vec<T>, Error> {
        self.projection(whitening).inverse_transform_to(scores)
    }

    /// The maps between rows and scores.
    pub fn projection(&self, whitening: Whitening) -> Projection<'_> {
        let factors = match whitening {
            Whitening::Off => None,
            Whitening::On => Some(self.whitening_factors()),
        };
        Projection::new(self.components(), self.n_features(), self.shift(), self.scale(), factors)
            .unwrap_or_else(|_| unreachable!("the parts of a model fit"))
    }

    /// What whitening divides scores by: their standard deviations (denominator n − 1). ∞, which makes scores of 0, for a
    /// component without variance: one whose eigenvalue the certificate cannot tell from 0.
    pub fn whitening_factors(&self) -> Vec<f64> {
        let variances = self.explained_variance().into_iter().enumerate();
        let factor = |(i, v): (usize, f64)| {
            if v > 0.0 && self.summary.has_variance(i) { v.sqrt() } else { f64::INFINITY }
        };
        variances.map(factor).collect()
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;
    use crate::model::projection::{SPAN, rows_at_a_time};
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
    fn single_precision_is_within_its_rounding_of_double() {
        /// Half a unit of rounding of single precision.
        const U: f64 = f32::EPSILON as f64 / 2.0;
        /// More than a span of columns.
        const D: usize = 1300;
        let values: Vec<f32> = (0..70 * D).map(|i| ((i * 7919) % 1009) as f32 / 100.0 + 900.0).collect();
        let x: Matrix = Dense::borrowed(&values, 70, D).unwrap().into();
        let model = FitConfig { k: 3, ..FitConfig::default() }.fit(&x).unwrap().model;
        let roots = |v: &[f64]| v.iter().map(|v| v.sqrt()).collect::<Vec<_>>();
        let (deviation, shift) = (roots(&model.explained_variance()), model.shift().unwrap());
        let exact = model.transform(&x, Whitening::On).unwrap();
        let single: Vec<f32> = model.transform_to(&x, Whitening::On).unwrap();
        // Centring rounds twice, a component and the score once; sums have as many terms as a span has columns, and there are spans.
        let terms = (SPAN + D.div_ceil(SPAN) + 4) as f64;
        for (l, (exact, single)) in exact.chunks(3).zip(single.chunks(3)).enumerate() {
            let a = values[l * D..][..D].iter().zip(shift).map(|(x, mu)| f64::from(*x) - mu);
            let norm = a.map(|a| a * a).sum::<f64>().sqrt();
            for ((exact, single), deviation) in exact.iter().zip(single).zip(&deviation) {
                let bound = terms * U * norm / deviation;
                assert!((exact - f64::from(*single)).abs() <= bound, "{exact} {single} ± {bound:e}");
            }
        }
        // Back: sums of three products, and the mean of 900 beside which they are small is added in double precision.
        let doubles: Vec<f64> = single.iter().map(|x| f64::from(*x)).collect();
        let exact = model.inverse_transform(&doubles, Whitening::On).unwrap();
        let rows = model.inverse_transform_to(&single, Whitening::On).unwrap();
        for ((l, row), exact) in rows.chunks(D).enumerate().zip(exact.chunks(D)) {
            let lengths = single[3 * l..][..3].iter().zip(&deviation);
            let longest: f64 = lengths.map(|(z, deviation)| f64::from(z.abs()) * deviation).sum();
            for (exact, x) in exact.iter().zip(row) {
                let bound = 6.0 * U * longest + U * exact.abs();
                assert!((exact - f64::from(*x)).abs() <= bound, "{exact} {x} ± {bound:e}");
            }
        }
    }
    #[test]
    fn single_precision_at_the_ends_of_its_range_is_left_to_double() {
        let entry = |i: usize| ((i * 7919) % 1009) as f32 / 1009.0 - 0.5;
        for unit in [1e-38, 1e-25, 1e32, 1e37] {
            let values: Vec<f32> = (0..60 * 40).map(|i| unit * entry(i)).collect();
            let x: Matrix = Dense::borrowed(&values, 60, 40).unwrap().into();
            for preprocessing in [Preprocessing::CENTER, Preprocessing::STANDARDIZE] {
                let model = FitConfig { k: 3, preprocessing, ..FitConfig::default() }.fit(&x).unwrap().model;
                let exact = model.transform(&x, Whitening::Off).unwrap();
                let single: Vec<f32> = model.transform_to(&x, Whitening::Off).unwrap();
                assert!(
                    exact.iter().zip(&single).all(|(exact, single)| *exact as f32 == *single),
                    "{unit:e}"
                );
                let doubles: Vec<f64> = single.iter().map(|x| f64::from(*x)).collect();
                let exact = model.inverse_transform(&doubles, Whitening::Off).unwrap();
                let rows = model.inverse_transform_to(&single, Whitening::Off).unwrap();
                assert!(exact.iter().zip(&rows).all(|(exact, x)| *exact as f32 == *x), "{unit:e}, back");
            }
        }
    }
}
