//! What an adversary made earlier versions say, each with the shortest way there.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "tests stop at surprises and count small")]

mod common;

use common::*;
use hbpca::certificate::{Certainty, Status};
use hbpca::{Block, Csr, Dense, FitConfig, Limits, Matrix, Outcome, Preprocessing, SolverKind};

const FOR_MANY: [SolverKind; 4] =
    [SolverKind::Auto, SolverKind::Covariance, SolverKind::Krylov, SolverKind::Anchored];

fn near(found: &[f64], want: &[f64], relative: f64, label: &str) {
    assert_eq!(found.len(), want.len());
    for (i, (x, y)) in found.iter().zip(want).enumerate() {
        assert!((x - y).abs() <= relative * y.abs(), "{label}: {i} is {x} instead of {y}");
    }
}

/// Six rows with one entry each, near-copies of each other, in 20,001 columns.
#[test]
fn near_copies_are_not_lost() {
    for spread in [1e-11, 1e-9, 1e-7, 1e-5] {
        for copies in [6, 9, 13] {
            let columns: Vec<u32> = (0..copies).map(|i| 1500 * i as u32).collect();
            let values: Vec<f32> = (0..copies).map(|i| 1.0 + (spread * i as f64) as f32).collect();
            let x: Matrix =
                Csr::new(20_001, (0..=copies).collect::<Vec<_>>(), columns, values.clone()).unwrap().into();
            let mut want: Vec<f64> = values.iter().map(|v| f64::from(*v).powi(2) / copies as f64).collect();
            want.sort_by(|a, b| b.total_cmp(a));
            for solver in [SolverKind::Auto, SolverKind::Krylov, SolverKind::Anchored] {
                for tol in [1e-3, 1e-6] {
                    let limits = Limits { tol, ..Limits::default() };
                    let config = FitConfig {
                        k: copies,
                        solver,
                        preprocessing: Preprocessing::NONE,
                        limits,
                        ..FitConfig::default()
                    };
                    let fit = config.fit(&x).unwrap();
                    let label = format!("{copies} copies, spread {spread:e}, {solver}, {tol:e}");
                    assert_eq!(fit.outcome, Outcome::Converged, "{label}");
                    near(fit.model.eigenvalues(), &want, 2.0 * tol, &label);
                }
            }
        }
    }
}

/// Rows 3, 2, 1 on three columns, fitted; then two longer ones on other columns, beginning with the old components.
#[test]
fn a_start_does_not_change_the_end() {
    let rows = |sizes: &[(usize, f64)]| {
        let mut values = vec![0.0; 5 * sizes.len()];
        sizes.iter().enumerate().for_each(|(l, (j, size))| values[5 * l + j] = *size);
        Matrix::from(Dense::new(values, sizes.len(), 5).unwrap())
    };
    let small = rows(&[(0, 3.0), (1, 2.0), (2, 1.0)]);
    let large = rows(&[(0, 3.0), (1, 2.0), (2, 1.0), (3, 9.0), (4, 8.0)]);
    for solver in FOR_MANY {
        let config = FitConfig { k: 2, solver, preprocessing: Preprocessing::NONE, ..FitConfig::default() };
        let start = Some(config.fit(&small).unwrap().model.vectors());
        let fit = FitConfig { start, ..config }.fit(&large).unwrap();
        assert_eq!(fit.outcome, Outcome::Converged, "{solver}");
        near(fit.model.eigenvalues(), &[81.0 / 5.0, 64.0 / 5.0], 1e-6, solver.name());
    }
}

/// Eigenvectors 11, 12, … given as a start.
#[test]
fn trailing_eigenvectors_as_a_start_do_not_stay() {
    let d = 150;
    let lambda: Vec<f64> = (1..=d).map(|i| f64::from(i as u32).powf(-0.5)).collect();
    let (values, u) = with_spectrum(600, &lambda, 3);
    let x = dense(values.clone(), d);
    let (truth, _) = dense_eigen(&prepare(&values, d, Preprocessing::NONE), d);
    let columns: Vec<Vec<f64>> = (0..d).map(|c| u.column(c)).collect();
    for k in [1, 2, 4, 5, 8] {
        for solver in FOR_MANY {
            let start = Some(Block::from_columns(&columns[10..10 + k]).unwrap());
            let limits = Limits { max_passes: 300.0, ..Limits::default() };
            let config = FitConfig {
                k,
                solver,
                start,
                limits,
                preprocessing: Preprocessing::NONE,
                ..FitConfig::default()
            };
            let fit = config.fit(&x).unwrap();
            if fit.outcome == Outcome::Converged {
                near(fit.model.eigenvalues(), &truth[..k], 1e-5, &format!("{solver}, k = {k}"));
            } else {
                assert_eq!(fit.outcome, Outcome::Budget, "{solver}, k = {k}");
            }
        }
    }
}

/// A probe says with which probability the components lead, and finds out when they do not.
#[test]
fn a_probe_certifies_or_refutes() {
    let d = 300;
    let lambda: Vec<f64> = (1..=d).map(|i| 1.0 / f64::from(i as u32)).collect();
    let (values, _) = with_spectrum(700, &lambda, 5);
    let x = dense(values, d);
    let config = FitConfig {
        k: 3,
        solver: SolverKind::Krylov,
        certify: Some(1e-9),
        preprocessing: Preprocessing::NONE,
        ..FitConfig::default()
    };
    let fit = config.fit(&x).unwrap();
    assert_eq!((fit.outcome, fit.certificate.certainty), (Outcome::Converged, Certainty::Probability));
    assert_eq!(fit.certificate.failure_probability, Some(1e-9));
    assert!((1..=12).contains(&fit.probe_passes), "{}", fit.probe_passes);
    assert!(
        fit.certificate.to_string().contains("with probability at least 1 − 1e-9"),
        "{}",
        fit.certificate
    );
    let estimated = FitConfig { certify: None, ..config }.fit(&x).unwrap();
    assert_eq!(estimated.certificate.certainty, Certainty::Estimated);
    assert_eq!((estimated.probe_passes, estimated.passes), (0, fit.passes));
    // With half of the gap at least, the bound is at most twice as large, and the estimate lies a little below the truth.
    let [certain, guessed] = [&fit, &estimated].map(|fit| fit.certificate.subspace_angle_bound.unwrap());
    assert!(certain <= 2.5 * guessed, "{certain:e} {guessed:e}");
}

/// The angle that is asked for is met, by more passes where the tolerance alone is not enough.
#[test]
fn an_angle_is_a_limit_too() {
    let lambda: Vec<f64> = (0..60).map(|i| 0.97_f64.powi(i)).collect();
    let (values, _) = with_spectrum(400, &lambda, 2);
    let x = dense(values, 60);
    for solver in FOR_MANY {
        let limits = |angle| Limits { tol: 1e-3, angle, ..Limits::default() };
        let config = |angle| FitConfig {
            k: 3,
            solver,
            limits: limits(angle),
            preprocessing: Preprocessing::NONE,
            ..FitConfig::default()
        };
        let loose = config(None).fit(&x).unwrap();
        let fit = config(Some(1e-6)).fit(&x).unwrap();
        assert_eq!(fit.outcome, Outcome::Converged, "{solver}");
        assert!(fit.certificate.subspace_angle_bound.unwrap() <= 1e-6, "{solver}");
        assert!(fit.passes >= loose.passes);
    }
}

/// Components without variance are done, and said to be without.
#[test]
fn what_has_no_variance_is_said_to_have_none() {
    // Centred, n rows span n − 1 directions.
    let values = sparse_values(6, 9, 1.0, 4);
    for (storage, x) in every_storage(&values, 9) {
        for solver in FOR_MANY {
            let fit = FitConfig { k: 6, solver, ..FitConfig::default() }.fit(&x).unwrap();
            let label = format!("{storage}, {solver}: {}", fit.certificate);
            assert_eq!(fit.outcome, Outcome::Converged, "{label}");
            assert_eq!(fit.certificate.status[..5], [Status::Converged; 5], "{label}");
            assert_eq!(fit.certificate.status[5], Status::NoVariance, "{label}");
            assert!(
                fit.certificate.angle_bounds[5].is_none()
                    && fit.certificate.relative_residuals[5].is_infinite()
            );
            assert!(fit.model.explained_variance().iter().all(|x| *x >= 0.0), "{label}");
        }
    }
}
