//! How far rows lie from the rest (Hubert, Rousseeuw & Vanden Branden 2005): within the components, and beside them.
//!
//! ```text
//! score distance       SD = √Σᵢ zᵢ²/vᵢ      over the components with variance
//! orthogonal distance  OD = ‖a − Uz‖ = √(‖a‖² − ‖z‖²)
//! ```
//!
//! for a prepared row a = D⁻¹(x − μ) with scores z = Uᵀa. For normal data SD² is χ² with as many degrees of freedom as there are
//! components, and OD^(2/3) is nearly normal; its centre and spread are estimated by median and MAD, which outliers hardly move.

use rayon::prelude::*;

use super::Model;
use crate::{Error, Matrix};

/// Share of regular rows below each cutoff.
const SHARE: f64 = 0.975;
/// The quantile of the standard normal distribution at [`SHARE`].
const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;
/// MAD of a normal distribution to its standard deviation.
const MAD_TO_DEVIATION: f64 = 1.482_602_218_505_602;

/// Distances of every row, and what regular rows rarely exceed.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    /// SD.
    pub score: Vec<f64>,
    /// OD.
    pub orthogonal: Vec<f64>,
    /// Regular rows lie below with probability 0.975.
    pub score_cutoff: f64,
    /// Regular rows lie below with probability 0.975; nothing where the components hold all variance.
    pub orthogonal_cutoff: Option<f64>,
}

impl Distances {
    /// The share of regular rows that lies below each cutoff.
    pub const SHARE: f64 = SHARE;

    /// Whether row l exceeds a cutoff.
    pub fn is_outlier(&self, l: usize) -> bool {
        self.excess(l) > 1.0
    }

    /// The larger of the two distances of row l over their cutoffs.
    pub fn excess(&self, l: usize) -> f64 {
        let over = |distance: f64, cutoff: f64| if cutoff > 0.0 { distance / cutoff } else { 0.0 };
        let orthogonal = self.orthogonal_cutoff.map_or(0.0, |cutoff| over(self.orthogonal[l], cutoff));
        over(self.score[l], self.score_cutoff).max(orthogonal)
    }
}

impl Model {
    /// Distances of the rows of `matrix`, whose scores without whitening are `scores` (n×k, row-major).
    pub fn distances(&self, matrix: &Matrix<'_>, scores: &[f64]) -> Result<Distances, Error> {
        let (n, d, k) = (matrix.n_rows(), self.n_features(), self.n_components());
        if matrix.n_cols() != d {
            return Err(Error::shape("columns of the data", d, matrix.n_cols()));
        }
        if scores.len() != n * k {
            return Err(Error::shape(format!("scores of {n} rows"), n * k, scores.len()));
        }
        let deviations = self.whitening_factors();
        let score = scores
            .par_chunks_exact(k)
            .map(|z| z.iter().zip(&deviations).map(|(z, s)| (z / s).powi(2)).sum::<f64>().sqrt())
            .collect();
        let varying = deviations.iter().filter(|s| s.is_finite()).count();
        let orthogonal = self.orthogonal_distances(matrix, scores);
        let orthogonal_cutoff = (self.noise_variance() > 0.0).then(|| orthogonal_cutoff(&orthogonal));
        Ok(Distances {
            score,
            orthogonal,
            score_cutoff: chi_squared_quantile(varying).sqrt(),
            orthogonal_cutoff,
        })
    }

    fn orthogonal_distances(&self, matrix: &Matrix<'_>, scores: &[f64]) -> Vec<f64> {
        let k = self.n_components();
        let (shift, scale) = (self.shift(), self.scale());
        let prepared = |j: usize, x: f64| (x - shift.map_or(0.0, |m| m[j])) / scale.map_or(1.0, |s| s[j]);
        // Entries that are not stored are 0: they all add up once, and each stored entry takes its own part out again.
        let of_zero: f64 = (0..self.n_features()).map(|j| prepared(j, 0.0).powi(2)).sum();
        let (zeros, sparse) = if matrix.is_sparse() { (of_zero, true) } else { (0.0, false) };
        let distance = |(l, z): (usize, &[f64])| {
            let mut square = zeros;
            matrix.for_each_in_row(l, |j, x| {
                square += prepared(j, x).powi(2);
                if sparse {
                    square -= prepared(j, 0.0).powi(2);
                }
            });
            (square - z.iter().map(|z| z * z).sum::<f64>()).max(0.0).sqrt()
        };
        scores.par_chunks_exact(k).enumerate().map(distance).collect()
    }
}

/// The quantile of χ² with `freedom` degrees of freedom at [`SHARE`], by Wilson & Hilferty's cube: within 2 % from 1 degree on, and
/// nearer for more.
fn chi_squared_quantile(freedom: usize) -> f64 {
    if freedom == 0 {
        return 0.0;
    }
    let spread = 2.0 / (9.0 * freedom as f64);
    freedom as f64 * (1.0 - spread + NORMAL_QUANTILE * spread.sqrt()).powi(3)
}

/// (median + z·1.4826·MAD)^(3/2) of OD^(2/3).
fn orthogonal_cutoff(distances: &[f64]) -> f64 {
    let cubes: Vec<f64> = distances.iter().map(|x| x.powf(2.0 / 3.0)).collect();
    let middle = median(cubes.clone());
    let spread = MAD_TO_DEVIATION * median(cubes.iter().map(|x| (x - middle).abs()).collect());
    (middle + NORMAL_QUANTILE * spread).powf(1.5)
}

/// The middle value; the upper of two.
fn median(mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;
    use crate::{Csr, Dense, FitConfig, Preprocessing, Whitening};

    const D: usize = 5;

    /// 400 rows with deviations 4, 3, 0.2, 0.2, 0.2; row 7 lies far out along the first axis, row 9 beside the first two.
    fn rows() -> Vec<f64> {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 24) - 0.5
        };
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>();
        let mut values: Vec<f64> =
            (0..400 * D).map(|i| normal() * [4.0, 3.0, 0.2, 0.2, 0.2][i % D]).collect();
        values[7 * D] = 30.0;
        values[9 * D + 3] = 5.0;
        values
    }

    fn distances(values: &[f64], k: usize, preprocessing: Preprocessing) -> (Model, Distances) {
        let x: Matrix = Dense::borrowed(values, values.len() / D, D).unwrap().into();
        let model = FitConfig { k, preprocessing, threads: 1, ..FitConfig::default() }.fit(&x).unwrap().model;
        let scores = model.transform(&x, Whitening::Off).unwrap();
        let found = model.distances(&x, &scores).unwrap();
        (model, found)
    }

    #[test]
    fn the_two_distances_find_the_two_kinds_of_outliers() {
        let (_, found) = distances(&rows(), 2, Preprocessing::CENTER);
        assert!(found.score[7] > 2.0 * found.score_cutoff);
        assert!(found.orthogonal[9] > 2.0 * found.orthogonal_cutoff.unwrap());
        assert!(found.score[9] < found.score_cutoff && found.is_outlier(7) && found.is_outlier(9));
        // 2.5 % of regular rows exceed each cutoff: 10 of 400 by expectation, with a deviation of about 3 for each.
        let outliers = (0..400).filter(|l| found.is_outlier(*l)).count();
        assert!((8..=45).contains(&outliers), "{outliers}");
    }

    #[test]
    fn the_orthogonal_distance_is_that_to_the_rebuilt_row() {
        let values = rows();
        for preprocessing in [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE] {
            let (model, found) = distances(&values, 2, preprocessing);
            let x: Matrix = Dense::borrowed(&values, 400, D).unwrap().into();
            let scores = model.transform(&x, Whitening::Off).unwrap();
            let rebuilt = model.inverse_transform(&scores, Whitening::Off).unwrap();
            for l in 0..400 {
                let scale = |j: usize| model.scale().map_or(1.0, |s| s[j]);
                let square: f64 =
                    (0..D).map(|j| ((values[l * D + j] - rebuilt[l * D + j]) / scale(j)).powi(2)).sum();
                // ‖a‖² − ‖z‖² is off by a few roundings of ‖a‖² ≤ 900.
                assert!(
                    (found.orthogonal[l].powi(2) - square).abs() <= 100.0 * f64::EPSILON * 900.0,
                    "row {l}"
                );
            }
        }
    }

    #[test]
    fn sparse_rows_have_the_distances_of_dense_ones() {
        let mut values = rows();
        values.iter_mut().step_by(3).for_each(|x| *x = 0.0);
        let stored: Vec<usize> = (0..values.len()).filter(|i| values[*i] != 0.0).collect();
        let starts = (0..=400).map(|l| stored.partition_point(|i| *i < l * D)).collect::<Vec<_>>();
        let columns = stored.iter().map(|i| (i % D) as u32).collect::<Vec<_>>();
        let entries: Vec<f64> = stored.iter().map(|i| values[*i]).collect();
        let sparse: Matrix = Csr::new(D, starts, columns, entries).unwrap().into();
        let (model, dense) = distances(&values, 2, Preprocessing::CENTER);
        let scores = model.transform(&sparse, Whitening::Off).unwrap();
        let found = model.distances(&sparse, &scores).unwrap();
        for l in 0..400 {
            assert!((found.score[l] - dense.score[l]).abs() <= 1e-12 * (1.0 + dense.score[l]));
            assert!((found.orthogonal[l].powi(2) - dense.orthogonal[l].powi(2)).abs() <= 1e-11);
        }
    }

    #[test]
    fn nothing_lies_beside_components_that_hold_all_variance() {
        let (_, found) = distances(&rows(), D, Preprocessing::CENTER);
        assert_eq!(found.orthogonal_cutoff, None);
        assert!(found.is_outlier(7));
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // χ² at 0.975: 5.024, 7.378, 20.483, 129.561 for 1, 2, 10 and 100 degrees of freedom.
        for (freedom, want) in [(1, 5.024), (2, 7.378), (10, 20.483), (100, 129.561)] {
            assert!((chi_squared_quantile(freedom) / want - 1.0_f64).abs() < 0.02, "{freedom}");
        }
        assert_eq!(chi_squared_quantile(0), 0.0);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let (model, _) = distances(&rows(), 2, Preprocessing::CENTER);
        let narrow: Matrix = Dense::new(vec![1.0; 8], 2, 4).unwrap().into();
        assert!(model.distances(&narrow, &[0.0; 4]).unwrap_err().to_string().contains("columns of the data"));
        let x: Matrix = Dense::new(vec![1.0; 10], 2, 5).unwrap().into();
        assert!(model.distances(&x, &[0.0; 3]).unwrap_err().to_string().contains("scores of 2 rows"));
    }
}
