//! Graded spectra: every component is accurate, however much larger the first one is.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "tests stop at surprises and count small")]

mod common;

use common::*;
use faer::Mat;
use hbpca::{Fit, FitConfig, Limits, Matrix, Outcome, Preprocessing, SolverKind};

const K: usize = 5;

/// n×d normal rows of which one direction has a standard deviation of `big`, the others 3 … 0.5, turned at random; and the K leading right
/// singular vectors of the rows, less their means where `centred`.
struct Graded {
    values: Vec<f64>,
    d: usize,
}

impl Graded {
    fn new(n: usize, d: usize, big: f64) -> Self {
        let deviations: Vec<f64> =
            (0..d).map(|j| if j == 0 { big } else { 3.0 - 2.5 * (j - 1) as f64 / (d - 2) as f64 }).collect();
        let mut rng = Xorshift(17);
        let normal = Mat::from_fn(n, d, |_, j| rng.normal() * deviations[j]);
        let turn = Mat::from_fn(d, d, |_, _| rng.normal());
        let turned = normal * turn.qr().compute_thin_Q().transpose();
        Self { values: (0..n * d).map(|at| turned[(at / d, at % d)]).collect(), d }
    }

    /// The leading right singular vectors of what is stored, and eigenvalues of C.
    fn truth(values: &[f64], d: usize, centred: bool) -> (Mat<f64>, Vec<f64>) {
        let n = values.len() / d;
        let mean =
            |j: usize| if centred { (0..n).map(|l| values[l * d + j]).sum::<f64>() / n as f64 } else { 0.0 };
        let means: Vec<f64> = (0..d).map(mean).collect();
        let rows = Mat::from_fn(n, d, |l, j| values[l * d + j] - means[j]);
        let svd = rows.thin_svd().unwrap();
        let (v, s) = (svd.V().subcols(0, K).to_owned(), svd.S());
        (v, (0..=K).map(|i| s[i] * s[i] / n as f64).collect())
    }
}

/// The sine of the largest angle.
fn sine(fit: &Fit, v: &Mat<f64>) -> f64 {
    let d = v.nrows();
    let w = Mat::from_fn(d, K, |j, i| fit.model.component(i)[j]);
    let across = &w - v * (v.transpose() * &w);
    across.svd().unwrap().S()[0]
}

fn fit(x: &Matrix<'_>, solver: SolverKind, preprocessing: Preprocessing, tol: f64) -> Fit {
    let limits = Limits { tol, max_passes: 300.0, ..Limits::default() };
    FitConfig { k: K, solver, preprocessing, limits, threads: 2, ..FitConfig::default() }.fit(x).unwrap()
}

const SOLVERS: [SolverKind; 4] =
    [SolverKind::Auto, SolverKind::Covariance, SolverKind::Krylov, SolverKind::Anchored];

#[test]
fn every_component_converges_whatever_dominates() {
    for big in [1e1, 1e2, 1e4, 1e6] {
        let Graded { values, d } = Graded::new(500, 60, big);
        let storages: [(&str, Matrix<'static>); 3] = [
            ("dense", dense(values.clone(), d)),
            ("compressed", csr(&values, d)),
            ("dense f32", dense_f32(&values, d)),
        ];
        for (storage, x) in &storages {
            let stored = entries(x);
            for preprocessing in [Preprocessing::CENTER, Preprocessing::NONE] {
                let (v, lambda) = Graded::truth(&stored, d, preprocessing == Preprocessing::CENTER);
                for solver in SOLVERS {
                    let label = format!("{big:e}, {storage}, {preprocessing:?}, {solver}");
                    let fit = fit(x, solver, preprocessing, 1e-6);
                    let sine = sine(&fit, &v);
                    let bound = fit.certificate.subspace_angle_bound;
                    println!(
                        "{label}: {} in {} passes, sine {sine:.1e}, bound {bound:?}",
                        fit.outcome, fit.passes
                    );
                    assert_eq!(fit.outcome, Outcome::Converged, "{label}: {}", fit.certificate);
                    assert!(fit.certificate.holds(1e-6));
                    let bound = bound.unwrap();
                    assert!(sine <= bound, "{label}: {sine:e} above {bound:e}");
                    let gap = lambda[K - 1] - lambda[K];
                    assert!(
                        bound <= 10.0 * (K as f64).sqrt() * 1e-6 * lambda[K - 1] / gap,
                        "{label}: {bound:e}"
                    );
                    for i in 0..K {
                        let off = (fit.model.eigenvalues()[i] - lambda[i]).abs();
                        assert!(
                            off <= fit.certificate.residuals[i] + 1e-12 * lambda[i],
                            "{label}: {i} off by {off:e}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_tight_tolerance_comes_as_close_as_a_singular_value_decomposition() {
    for (big, close) in [(1e2, 1e-11), (1e4, 3e-11), (1e6, 4e-9), (1e8, 2e-7)] {
        let Graded { values, d } = Graded::new(800, 80, big);
        let (v, _) = Graded::truth(&values, d, true);
        let x = dense(values, d);
        for solver in SOLVERS {
            let fit = fit(&x, solver, Preprocessing::CENTER, 1e-10);
            let sine = sine(&fit, &v);
            println!(
                "{big:e}, {solver}: {} in {} passes, sine {sine:.1e}, {}",
                fit.outcome, fit.passes, fit.certificate
            );
            assert!(sine <= close, "{big:e}, {solver}: {} sine {sine:e}", fit.outcome);
            let bound = fit.certificate.subspace_angle_bound;
            assert!(
                bound.is_none_or(|bound| sine <= bound + 1e-16 * big * 100.0),
                "{big:e}, {solver}: {sine:e} {bound:?}"
            );
        }
    }
}
