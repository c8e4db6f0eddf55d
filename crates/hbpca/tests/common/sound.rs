//! Whether a certificate's claims are true, judged by a dense eigen-solver.

use hbpca::{Block, Certificate, Fit, Whitening};

/// The truth about C: every eigenvalue, descending, its eigenvectors, and how far rounding may have moved C.
pub struct Truth {
    pub lambda: Vec<f64>,
    pub vectors: Block,
    pub rounding: f64,
}

impl Truth {
    /// From rows already prepared. Means, products and sums over n rows round by at most a few (n + d)ε of the
    /// second moment `moment` of the rows before anything was subtracted; the eigen-solver by a few dε.
    pub fn of(rows: &[f64], d: usize, moment: f64) -> Self {
        let (lambda, vectors) = super::dense_eigen(rows, d);
        let rounding = 4.0 * (rows.len() / d + d) as f64 * f64::EPSILON * moment;
        Self { lambda, vectors, rounding }
    }

    /// Distance of λᵢ to its nearest neighbour within `others`.
    fn gap(&self, i: usize, others: impl Iterator<Item = usize>) -> f64 {
        others.map(|j| (self.lambda[i] - self.lambda[j]).abs()).fold(f64::INFINITY, f64::min)
    }

    /// Panics where the certificate of `vectors` claims something false.
    pub fn judge(&self, certificate: &Certificate, vectors: &Block, label: &str) {
        let (d, k) = (vectors.d(), vectors.p());
        for (i, [lo, hi]) in certificate.eigenvalue_intervals.iter().enumerate() {
            assert!(lo <= hi, "{label}: interval {i} is [{lo:e}, {hi:e}]");
            let inside = |x: &f64| lo - self.rounding <= *x && *x <= hi + self.rounding;
            assert!(
                self.lambda.iter().any(inside),
                "{label}: no eigenvalue in [{lo:e}, {hi:e}]: {:?}",
                self.lambda
            );
        }
        if !certificate.gap_is_proved {
            return;
        }
        for i in 0..k {
            let Some(bound) = certificate.angle_bounds[i] else { continue };
            // Davis & Kahan for the reference's own rounding.
            let slack = self.rounding / self.gap(i, (0..d).filter(|&j| j != i));
            let sine = super::sine2(&vectors.column(i), &self.vectors.column(i)).sqrt();
            assert!(
                sine <= bound + slack + 4.0 * f64::EPSILON,
                "{label}: sine {i} is {sine:e}, bound {bound:e}"
            );
            // With the gap proved the interval holds this very eigenvalue.
            let off = (certificate.eigenvalues[i] - self.lambda[i]).abs();
            let spread = certificate.residuals.iter().map(|r| r * r).sum::<f64>().sqrt();
            assert!(off <= spread + self.rounding, "{label}: θ{i} is off by {off:e}, residuals {spread:e}");
        }
        if let Some(bound) = certificate.subspace_angle_bound {
            let slack = self.rounding * (k as f64).sqrt() / self.gap(k - 1, k..d);
            let sine = self.distance_from_leading(vectors);
            assert!(
                sine <= bound + slack + 4.0 * d as f64 * f64::EPSILON,
                "{label}: ‖sin‖ {sine:e}, bound {bound:e}"
            );
        }
    }

    /// ‖(I − U_kU_kᵀ)W‖_F for the k leading eigenvectors: the sines of all principal angles.
    fn distance_from_leading(&self, w: &Block) -> f64 {
        let mut square = 0.0;
        for c in 0..w.p() {
            let column = w.column(c);
            let mut rest = column.clone();
            for k in 0..w.p() {
                let u = self.vectors.column(k);
                let along: f64 = u.iter().zip(&column).map(|(u, w)| u * w).sum();
                rest.iter_mut().zip(&u).for_each(|(x, u)| *x -= along * u);
            }
            square += rest.iter().map(|x| x * x).sum::<f64>();
        }
        square.sqrt()
    }
}

/// Panics where any number a fit hands out is NaN, or infinite where it must not be; or the components are not
/// orthonormal.
pub fn assert_every_number_is_defined(fit: &Fit, x: &hbpca::Matrix<'_>, label: &str) {
    let finite = |what: &str, values: &[f64]| {
        assert!(values.iter().all(|v| v.is_finite()), "{label}: {what} {values:?}");
    };
    let (model, certificate) = (&fit.model, &fit.certificate);
    finite("components", model.components());
    finite("eigenvalues", model.eigenvalues());
    finite("variances", &model.explained_variance());
    finite("ratios", &model.explained_variance_ratio());
    finite("singular values", &model.singular_values());
    finite("noise", &[model.noise_variance(), model.summary().total_variance]);
    for whitening in [Whitening::Off, Whitening::On] {
        let scores = model.transform(x, whitening).unwrap();
        finite("scores", &scores);
        finite("inverse", &model.inverse_transform(&scores, whitening).unwrap());
    }
    finite("residuals", &certificate.residuals);
    finite("intervals", certificate.eigenvalue_intervals.as_flattened());
    finite("angles", &certificate.angle_bounds.iter().flatten().copied().collect::<Vec<_>>());
    finite(
        "other bounds",
        &[certificate.orthonormality_loss, certificate.subspace_angle_bound.unwrap_or(0.0)],
    );
    // Relative to θ₁ = 0 a residual may be infinite: nothing is known.
    assert!(certificate.relative_residuals.iter().all(|r| *r >= 0.0), "{label}: {certificate:?}");
    for record in &fit.history {
        finite("history", &[record.passes, record.seconds, record.theta, record.residual]);
        finite("parameters", &[record.eta, record.beta, record.lambda2].map(|x| x.unwrap_or(0.0)));
    }
    assert!(certificate.orthonormality_loss < 100.0 * model.n_features() as f64 * f64::EPSILON, "{label}");
}
