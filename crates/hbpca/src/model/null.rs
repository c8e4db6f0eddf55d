//! Components without variance.
//!
//! The certificate puts an eigenvalue of C into \[λᵢ − rᵢ, λᵢ + rᵢ\]. Where this interval contains 0, λᵢ cannot be told from 0:
//! the component is a direction of rounding, and so are its scores. It has *no variance* for all that follows from a model.

use super::{Model, Summary};

impl Summary {
    /// Whether λᵢ can be told from 0: λᵢ − rᵢ > 0.
    pub(crate) fn has_variance(&self, i: usize) -> bool {
        self.eigenvalues[i] > self.residuals[i]
    }
}

impl Model {
    /// Keeps the first `count` components.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.components.truncate(count * self.summary.d);
        self.summary.eigenvalues.truncate(count);
        self.summary.residuals.truncate(count);
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use crate::Fit;
    use crate::{Dense, FitConfig, Matrix, Whitening};

    /// 12 rows of 5 columns within the span of `rank` vectors.
    fn rows_of_rank(rank: usize) -> Matrix<'static> {
        let factor = |l: usize, c: usize| ((l * l * (c + 3) + 5 * l) % 11) as f64 - 5.0;
        let vector = |c: usize, j: usize| ((c * 7 + j * j * 3 + c * j) % 13) as f64 / 7.0 - 0.8;
        let entry = |l: usize, j: usize| (0..rank).map(|c| factor(l, c) * vector(c, j)).sum::<f64>();
        Dense::new((0..60).map(|i| entry(i / 5, i % 5)).collect(), 12, 5).unwrap().into()
    }

    fn fit(x: &Matrix<'_>) -> Fit {
        FitConfig { k: 5, threads: 1, ..FitConfig::default() }.fit(x).unwrap()
    }

    #[test]
    fn the_components_with_variance_are_as_many_as_the_rank() {
        for rank in 1..=5 {
            let all = fit(&rows_of_rank(rank));
            let kept = all.clone().without_null_components();
            assert_eq!(kept.model.n_components(), rank);
            assert_eq!(kept.model.components(), &all.model.components()[..rank * 5]);
            assert_eq!(kept.model.eigenvalues(), &all.model.eigenvalues()[..rank]);
            assert_eq!(kept.model.summary().residuals, all.certificate.residuals[..rank]);
            assert_eq!(kept.certificate.eigenvalues, kept.model.eigenvalues());
            assert_eq!(kept.model.noise_variance(), 0.0);
        }
    }

    #[test]
    fn one_component_is_kept_where_nothing_varies() {
        let x: Matrix = Dense::new([7.0, -0.1, 3.0].repeat(4), 4, 3).unwrap().into();
        let fit = FitConfig { k: 3, threads: 1, ..FitConfig::default() }.fit(&x).unwrap();
        assert_eq!(fit.without_null_components().model.n_components(), 1);
    }

    #[test]
    fn white_scores_have_as_many_unit_variances_as_the_rank_and_lose_nothing() {
        for rank in 1..=5 {
            let x = rows_of_rank(rank);
            let model = fit(&x).model;
            let white = model.transform(&x, Whitening::On).unwrap();
            for i in 0..5 {
                let square: f64 = white.iter().skip(i).step_by(5).map(|s| s * s).sum();
                if i < rank {
                    // λᵢ is known to rᵢ, and so is the mean of the squares that it divides.
                    let relative = 2.0 * model.summary().residuals[i] / model.eigenvalues()[i] + 1e-13;
                    assert!((square / 11.0 - 1.0).abs() <= relative, "rank {rank}, component {i}");
                } else {
                    assert_eq!(square, 0.0, "rank {rank}, component {i}");
                }
            }
            let back = model.inverse_transform(&white, Whitening::On).unwrap();
            let largest = model.eigenvalues()[0].sqrt();
            let mut farthest = 0.0_f64;
            for l in 0..12 {
                x.for_each_in_row(l, |j, x| farthest = farthest.max((back[l * 5 + j] - x).abs()));
            }
            // What is dropped has variances of at most 2r each.
            let dropped: f64 = (rank..5).map(|i| 2.0 * model.summary().residuals[i]).sum();
            assert!(farthest <= (12.0 * dropped).sqrt() + 1e-13 * largest, "rank {rank}: {farthest:e}");
        }
    }
}
