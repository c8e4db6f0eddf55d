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

/// C is formed about the rounded mean: what that adds is counted.
#[test]
fn rounded_means_are_counted() {
    // 2⁵² and 2⁵² + 1: their mean has no place in f64. True: 0.3025 along the second axis, 0.25 along the first.
    let big = 4_503_599_627_370_496.0;
    let x = dense(vec![big, 0.55, big + 1.0, 0.55, big, -0.55, big + 1.0, -0.55], 2);
    for solver in FOR_MANY {
        let fit = FitConfig { solver, ..FitConfig::default() }.fit(&x).unwrap();
        let [low, high] = fit.certificate.eigenvalue_intervals[0];
        assert!(low <= 0.3025 && 0.25 <= high, "{solver}: {low} … {high}");
        assert!(fit.outcome != Outcome::Converged, "{solver}");
    }
}

/// Equal rows round alike: errors add up instead of cancelling.
#[test]
fn equal_rows_stay_within_the_bound() {
    for n in [300, 10_000, 300_003] {
        for (v, w) in [(0.1_f64, 1.3_f64), (1.7, 0.6)] {
            let values: Vec<f64> = (0..n).flat_map(|_| [v, w]).collect();
            let storages = every_storage(&values, 2);
            for (storage, x) in &storages {
                let [v, w] =
                    if storage.contains("f32") { [v, w].map(|x| f64::from(x as f32)) } else { [v, w] };
                // v² + w² to twice the digits of f64.
                let (square, rest) = [v, w].iter().fold((0.0, 0.0), |(sum, rest), x| {
                    let (product, error) = (x * x, x.mul_add(*x, -(x * x)));
                    let total: f64 = sum + product;
                    let lost = if sum > product { (sum - total) + product } else { (product - total) + sum };
                    (total, rest + lost + error)
                });
                for solver in
                    [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Power, SolverKind::Anchored]
                {
                    let config =
                        FitConfig { solver, preprocessing: Preprocessing::NONE, ..FitConfig::default() };
                    let fit = config.fit(x).unwrap();
                    let off = ((fit.certificate.eigenvalues[0] - square) - rest).abs();
                    let claimed = fit.certificate.residuals[0];
                    assert!(off <= claimed, "{n}, {storage}, {solver}: {off:e} of {claimed:e}");
                }
            }
        }
    }
}

/// A row of hardly any weight, far away, does not serve as the origin of sums.
#[test]
fn a_light_outlier_does_not_spoil_the_statistics() {
    let (n, d) = (200, 4);
    let mut values = sparse_values(n, d, 1.0, 3);
    values[..d].fill(1e9);
    let weights: Vec<f64> = (0..n).map(|l| if l == 0 { 1e-20 } else { 1.0 }).collect();
    let without: Matrix = dense(values[d..].to_vec(), d);
    let truth = FitConfig { k: 2, ..FitConfig::default() }.fit(&without).unwrap();
    for x in [dense(values.clone(), d), csr(&values, d)] {
        for solver in FOR_MANY {
            let config = FitConfig { k: 2, solver, ..FitConfig::default() };
            let fit = config.run().weights(&weights[..]).fit(&x).unwrap();
            // The outlier adds 10⁻²⁰·10¹⁸/n to every variance.
            for i in 0..2 {
                let off = (fit.certificate.eigenvalues[i] - truth.certificate.eigenvalues[i]).abs();
                let room = fit.certificate.residuals[i]
                    + truth.certificate.residuals[i]
                    + 0.05 * d as f64 / n as f64;
                assert!(off <= room, "{solver}: {off:e} of {room:e}");
            }
        }
    }
}

/// Squares that leave the range of numbers are refused, on either side.
#[test]
fn what_underflows_is_refused() {
    for (exponent, refused) in [(-140, false), (-158, true), (-170, true), (-300, true)] {
        let values: Vec<f64> =
            sparse_values(20, 4, 1.0, 1).iter().map(|x| x * 10.0_f64.powi(exponent)).collect();
        for x in [dense(values.clone(), 4), csr(&values, 4)] {
            for preprocessing in [Preprocessing::CENTER, Preprocessing::STANDARDIZE, Preprocessing::NONE] {
                match (FitConfig { preprocessing, ..FitConfig::default() }).fit(&x) {
                    Err(error) => {
                        assert!(refused && error.to_string().contains("underflow"), "{exponent}: {error}");
                    }
                    Ok(fit) => assert!(!refused && fit.model.eigenvalues()[0] > 0.0, "{exponent}"),
                }
            }
        }
    }
}

/// A row of weight zero may hold anything.
#[test]
fn rows_of_weight_zero_do_not_count() {
    let (n, d) = (50, 4);
    let clean = sparse_values(n, d, 1.0, 2);
    let weights: Vec<f64> = (0..n).map(|l| f64::from(u8::from(l != 3))).collect();
    let kept: Vec<f64> =
        clean.chunks(d).enumerate().filter(|(l, _)| *l != 3).flat_map(|(_, row)| row.to_vec()).collect();
    let starts: Vec<usize> = (0..=n).map(|l| d * l).collect();
    let columns: Vec<u32> = (0..n).flat_map(|_| 0..d as u32).collect();
    for bad in [f64::NAN, f64::INFINITY, 1e300] {
        let mut values = clean.clone();
        values[3 * d + 2] = bad;
        let compressed =
            Csr::deferring_finite_check(d, starts.clone(), columns.clone(), values.clone()).unwrap();
        let rows = Dense::deferring_finite_check(values.into(), n, d).unwrap();
        for x in [Matrix::from(rows), compressed.into()] {
            for preprocessing in [Preprocessing::CENTER, Preprocessing::STANDARDIZE, Preprocessing::NONE] {
                for solver in FOR_MANY {
                    let config = FitConfig { solver, preprocessing, ..FitConfig::default() };
                    let want = config.fit(&dense(kept.clone(), d)).unwrap();
                    let fit = config.run().weights(&weights[..]).fit(&x).unwrap();
                    near(fit.model.eigenvalues(), want.model.eigenvalues(), 1e-12, solver.name());
                }
            }
        }
    }
}

/// Rows that were rounded to single precision: the certificate is about what they were.
#[test]
fn narrowing_is_counted() {
    let (n, d) = (400, 3);
    let values: Vec<f64> = sparse_values(n, d, 1.0, 4).iter().map(|x| 1e8 + x).collect();
    let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
    let truth = FitConfig::default().fit(&dense(values, d)).unwrap();
    let x: Matrix = Dense::new(narrow, n, d).unwrap().into();
    for solver in FOR_MANY {
        let fit = FitConfig { solver, ..FitConfig::default() }.run().rounded_from_double().fit(&x).unwrap();
        let off = (fit.certificate.eigenvalues[0] - truth.certificate.eigenvalues[0]).abs();
        assert!(off <= fit.certificate.residuals[0] + truth.certificate.residuals[0], "{solver}: {off}");
        // Whatever variance there is drowns in what was lost.
        assert_ne!(fit.certificate.status[0], Status::Converged, "{solver}");
    }
}

/// Where the share of variance lies between what k components explain and what they may explain, both k are named.
#[test]
fn a_share_of_variance_is_decided_by_intervals() {
    // Four equal eigenvalues: two components explain half of the variance, to rounding.
    let x = dense((0..16).map(|i| f64::from(u8::from(i % 5 == 0))).collect(), 4);
    for solver in FOR_MANY {
        let config = |share| FitConfig {
            variance_share: Some(share),
            solver,
            preprocessing: Preprocessing::NONE,
            ..FitConfig::default()
        };
        assert_eq!(config(0.5).fit(&x).unwrap().possible_k, Some(2..=3), "{solver}");
        let clear = config(0.6).fit(&x).unwrap();
        assert_eq!((clear.possible_k, clear.model.n_components()), (None, 3), "{solver}");
    }
}
