//! Every solver against a dense eigen-solver, over shapes, spectra, storages and preparations; and no certificate
//! ever claims what is not so.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare exact values exactly and count small"
)]

mod common;

use common::sound::{Truth, assert_every_number_is_defined};
use common::*;
use hbpca::{Batch, Fit, FitConfig, Limits, Matrix, Outcome, Preprocessing, SolverKind};

const SHAPES: [(usize, usize); 9] =
    [(60, 7), (300, 3), (9, 9), (12, 12), (6, 17), (40, 1), (1, 6), (2, 5), (1, 1)];

const FOR_MANY: [SolverKind; 3] = [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Anchored];

/// Spectra of r = min(n, d) eigenvalues, each hard in its own way.
fn spectra(r: usize) -> [(&'static str, Vec<f64>); 5] {
    let mut tiny_gap = geometric(r, 0.6);
    let mut repeated = geometric(r, 0.5);
    let mut deficient = geometric(r, 0.5);
    if r > 1 {
        tiny_gap[1] = 1.0 - 1e-9;
        repeated[1] = 1.0;
    }
    deficient.iter_mut().skip(r.div_ceil(2)).for_each(|x| *x = 0.0);
    [
        ("geometric", geometric(r, 0.5)),
        ("tiny gap", tiny_gap),
        ("repeated", repeated),
        ("rank deficient", deficient),
        ("all zero", vec![0.0; r]),
    ]
}

/// The truth about a matrix as it is stored, prepared by the textbook.
fn truth(x: &Matrix<'_>, preprocessing: Preprocessing) -> Truth {
    let (d, values) = (x.n_cols(), entries(x));
    let rows = prepare(&values, d, preprocessing);
    // What is subtracted rounds relative to the rows before: (x − μ)/s for compressed rows is x/s − μ/s.
    let map = preprocessing.row_map(&hbpca::ColumnStatistics::new(x).unwrap());
    let scale = |j: usize| map.scale().map_or(1.0, |s| s[j]);
    let shift = |j: usize| map.shift().map_or(0.0, |s| s[j]);
    let before =
        values.iter().enumerate().map(|(i, v)| ((v.abs() + shift(i % d).abs()) / scale(i % d)).powi(2));
    Truth::of(&rows, d, before.sum::<f64>() / x.n_rows() as f64)
}

/// A small deviation from each other's defaults: batches of half the rows, steps of moderate size.
fn config(solver: SolverKind, preprocessing: Preprocessing, max_passes: f64) -> FitConfig {
    FitConfig {
        solver,
        preprocessing,
        limits: Limits { tol: 1e-6, max_passes, ..Limits::default() },
        eta: Some(0.3),
        batch: Batch::Share(0.5),
        epoch: 6,
        threads: 1,
        seed: 11,
        ..FitConfig::default()
    }
}

fn judge(fit: &Fit, x: &Matrix<'_>, truth: &Truth, label: &str) {
    assert_every_number_is_defined(fit, x, label);
    truth.judge(&fit.certificate, &fit.model.vectors(), label);
    if fit.outcome == Outcome::Converged {
        assert!(fit.certificate.holds(1e-6), "{label}: {}", fit.certificate);
    }
    let trace: f64 = truth.lambda.iter().sum();
    let off = (fit.model.summary().total_variance - trace).abs();
    assert!(off <= truth.rounding, "{label}: total variance is off by {off:e}, bound {:e}", truth.rounding);
}

#[test]
fn no_solver_claims_anything_false_on_any_shape_spectrum_storage_or_preparation() {
    for (n, d) in SHAPES {
        for (name, lambda) in spectra(n.min(d)) {
            let (values, _) = with_leading_spectrum(n, d, &lambda, (n * d) as u64);
            for (storage, x) in every_storage(&values, d) {
                for preprocessing in EVERY_PREPROCESSING {
                    let truth = truth(&x, preprocessing);
                    for solver in SolverKind::ALL {
                        let label = format!("{solver} {n}×{d} {name} {storage} {preprocessing:?}");
                        let fit = config(solver, preprocessing, 15.0).fit(&x).unwrap();
                        judge(&fit, &x, &truth, &label);
                        assert!(fit.passes <= 15.0, "{label}: {} passes", fit.passes);
                    }
                }
            }
        }
    }
}

#[test]
fn every_solver_finds_the_leading_eigenvector_of_a_separated_spectrum() {
    for (n, d) in [(60, 7), (300, 3), (12, 12), (6, 17), (40, 1)] {
        let lambda: Vec<f64> = geometric(n.min(d), 0.4);
        let (values, _) = with_leading_spectrum(n, d, &lambda, 5);
        for (storage, x) in every_storage(&values, d) {
            let truth = truth(&x, Preprocessing::NONE);
            for solver in SolverKind::ALL {
                let label = format!("{solver} {n}×{d} {storage}");
                let mut config = config(solver, Preprocessing::NONE, 2000.0);
                if solver == SolverKind::Oja {
                    config.limits.tol = 0.02; // its error falls like 1/passes
                }
                if solver == SolverKind::VrPowerM {
                    config.batch = Batch::Share(1.0); // nothing damps the noise of smaller batches
                }
                let fit = config.fit(&x).unwrap();
                assert_eq!(fit.outcome, Outcome::Converged, "{label}: {}", fit.certificate);
                let (residual, tol) = (fit.certificate.residuals[0], config.limits.tol);
                assert!(residual <= tol * fit.model.eigenvalues()[0], "{label}");
                // |θ − λ₁| ≤ r²/gap and sin∠ ≤ r/gap, with the true gap.
                let gap = truth.lambda[0] - truth.lambda.get(1).copied().unwrap_or(0.0) - residual;
                let off = (fit.model.eigenvalues()[0] - truth.lambda[0]).abs();
                assert!(off <= residual * residual / gap + truth.rounding, "{label}: λ₁ off by {off:e}");
                let sine = sine2(fit.model.component(0), &truth.vectors.column(0)).sqrt();
                assert!(sine <= (residual + truth.rounding) / gap, "{label}: sine {sine:e}");
            }
        }
    }
}

#[test]
fn solvers_for_many_find_all_k_components_up_to_the_smaller_side() {
    for (n, d) in SHAPES {
        for (name, lambda) in spectra(n.min(d)) {
            let (values, _) = with_leading_spectrum(n, d, &lambda, 3);
            for (storage, x) in every_storage(&values, d) {
                for preprocessing in EVERY_PREPROCESSING {
                    let truth = truth(&x, preprocessing);
                    let many = FOR_MANY.into_iter();
                    for (solver, k) in many.flat_map(|solver| (1..=n.min(d)).map(move |k| (solver, k))) {
                        let label = format!("{solver} k={k} of {n}×{d} {name} {storage} {preprocessing:?}");
                        let fit = FitConfig { k, ..config(solver, preprocessing, 20.0) }.fit(&x).unwrap();
                        judge_all(&fit, &x, &truth, &label);
                    }
                }
            }
        }
    }
}

/// k components: in order, and converged to the k largest.
fn judge_all(fit: &Fit, x: &Matrix<'_>, truth: &Truth, label: &str) {
    judge(fit, x, truth, label);
    assert!(fit.model.eigenvalues().is_sorted_by(|a, b| a >= b), "{label}: {:?}", fit.model.eigenvalues());
    // Where C is zero, or known to rounding only, there is nothing to be relative to.
    if truth.lambda[0] > 1e6 * truth.rounding {
        // What f32 entries of a matrix of lower rank have beyond it is their rounding: 10¹⁴ below the first, it may not be told apart.
        let beyond_reach = |i: usize| fit.model.eigenvalues()[i] < 1e-12 * truth.lambda[0];
        let open = |i: &usize| fit.certificate.status[*i] == hbpca::certificate::Status::Stagnated;
        let reached = (0..fit.certificate.status.len()).filter(open).all(beyond_reach);
        assert!(fit.outcome == Outcome::Converged || reached, "{label}: {}", fit.certificate);
    }
    let spread = fit.certificate.residuals.iter().map(|r| r * r).sum::<f64>().sqrt();
    for (theta, lambda) in fit.model.eigenvalues().iter().zip(&truth.lambda) {
        assert!((theta - lambda).abs() <= spread + truth.rounding, "{label}: {theta:e} for {lambda:e}");
    }
}

#[test]
fn sparse_counts_agree_with_the_dense_solver() {
    let (n, d) = (150, 20);
    let values = sparse_values(n, d, 0.15, 21);
    for (storage, x) in every_storage(&values, d) {
        for preprocessing in EVERY_PREPROCESSING {
            let truth = truth(&x, preprocessing);
            for k in [1, 5, d] {
                let fit =
                    FitConfig { k, ..config(SolverKind::Covariance, preprocessing, 3.0) }.fit(&x).unwrap();
                assert_eq!(fit.outcome, Outcome::Converged);
                judge(&fit, &x, &truth, &format!("{storage} {preprocessing:?} k={k}"));
            }
            for solver in SolverKind::ALL {
                let fit = config(solver, preprocessing, 40.0).fit(&x).unwrap();
                judge(&fit, &x, &truth, &format!("{solver} {storage} {preprocessing:?}"));
            }
        }
    }
}
