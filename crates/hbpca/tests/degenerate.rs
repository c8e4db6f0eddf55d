//! Data that is odd but is data: one row, one column, nothing but zeros, constants, repetitions. Every number of the
//! answer is defined and makes sense.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare exact values exactly and count small"
)]

mod common;

use common::sound::assert_every_number_is_defined;
use common::*;
use hbpca::{Batch, Fit, FitConfig, Limits, Matrix, Outcome, Preprocessing, SolverKind, Whitening};

/// Fits in every storage, with every preparation and solver, and looks at every number.
fn fit_every_way(values: &[f64], d: usize, mut judge: impl FnMut(&Fit, &Matrix<'_>, Preprocessing)) {
    for (storage, x) in every_storage(values, d) {
        for preprocessing in EVERY_PREPROCESSING {
            for solver in SolverKind::ALL {
                let config = FitConfig {
                    solver,
                    preprocessing,
                    // A step of four batches of all of one row reads four passes; the shift of shift-invert-svrg comes down in ten.
                    limits: Limits { max_passes: 60.0, ..Limits::default() },
                    batch: Batch::Share(0.5),
                    epoch: 4,
                    threads: 1,
                    ..FitConfig::default()
                };
                let fit = config.fit(&x).unwrap();
                assert_every_number_is_defined(&fit, &x, &format!("{solver} {storage} {preprocessing:?}"));
                judge(&fit, &x, preprocessing);
            }
        }
    }
}

#[test]
fn one_row_has_its_own_direction_or_no_variance() {
    let row = [3.0, 0.0, 4.0];
    fit_every_way(&row, 3, |fit, x, preprocessing| {
        let model = &fit.model;
        assert_eq!(model.explained_variance(), [0.0], "one row has no n − 1 variance");
        if preprocessing == Preprocessing::NONE {
            assert_eq!(fit.outcome, Outcome::Converged, "{}: {}", fit.solver, fit.certificate);
            // C = xxᵀ has rank one: a single product finds it, and the trace proves it.
            assert!((model.eigenvalues()[0] - 25.0).abs() <= fit.certificate.residuals[0]);
            assert!(fit.certificate.gap_is_proved);
            let angle = fit.certificate.angle_bounds[0].unwrap();
            assert!(sine2(model.component(0), &[0.6, 0.0, 0.8]).sqrt() <= angle + 4.0 * f64::EPSILON);
            assert!((model.explained_variance_ratio()[0] - 1.0).abs() < 1e-6);
        } else if !x.is_sparse() {
            assert_eq!(
                (model.eigenvalues(), &model.explained_variance_ratio()[..]),
                (&[0.0][..], &[0.0][..])
            );
        }
    });
}

#[test]
fn one_column_is_its_own_component() {
    let column = [1.0, -2.0, 4.0, 5.0];
    fit_every_way(&column, 1, |fit, _, preprocessing| {
        assert_eq!(fit.outcome, Outcome::Converged, "{}", fit.certificate);
        assert_eq!(fit.model.components(), [1.0]);
        assert!(fit.certificate.gap_is_proved);
        assert_eq!(fit.certificate.angle_bounds, [Some(0.0)]);
        assert_eq!(fit.model.noise_variance(), 0.0);
        if preprocessing == Preprocessing::CENTER {
            // Mean 2, deviations −1, −4, 2, 3: squares sum to 30.
            assert!((fit.model.eigenvalues()[0] - 7.5).abs() <= fit.certificate.residuals[0]);
            assert!((fit.model.explained_variance()[0] - 10.0).abs() <= 2.0 * fit.certificate.residuals[0]);
        }
    });
}

#[test]
fn nothing_but_zeros_has_zero_variance_and_any_direction() {
    fit_every_way(&[0.0; 12], 3, |fit, x, _| {
        assert_eq!((fit.outcome, fit.history.len()), (Outcome::Converged, 1));
        assert_eq!((fit.model.eigenvalues(), fit.certificate.residuals[0]), (&[0.0][..], 0.0));
        assert_eq!(fit.model.explained_variance_ratio(), [0.0]);
        assert_eq!((fit.model.noise_variance(), fit.certificate.angle_bounds[0]), (0.0, None));
        assert!(fit.model.transform(x, Whitening::On).unwrap().iter().all(|s| *s == 0.0));
    });
}

#[test]
fn constant_columns_take_no_part_when_centring() {
    // Column 1 varies; columns 0 and 2 are 7 and −0.1 throughout.
    let values: Vec<f64> = (0..6).flat_map(|l| [7.0, f64::from(l), -0.1]).collect();
    fit_every_way(&values, 3, |fit, x, preprocessing| {
        if preprocessing.centering == hbpca::Centering::Mean {
            // Compressed rows subtract 7² after the products: their certificate says what that costs.
            let off = sine2(fit.model.component(0), &[0.0, 1.0, 0.0]).sqrt();
            let bound = fit.certificate.residuals[0] / fit.model.eigenvalues()[0];
            assert!(
                off <= bound + 4.0 * f64::EPSILON,
                "{}: {off:e}, {bound:e}, sparse {}",
                fit.solver,
                x.is_sparse()
            );
        }
        if preprocessing == Preprocessing::STANDARDIZE {
            assert!((fit.model.summary().total_variance - 1.0).abs() < 1e-14);
            assert_eq!(fit.model.scale().unwrap()[0], 1.0);
        }
    });
}

#[test]
fn nothing_but_constants_is_never_called_anything_else() {
    let values = [0.1, 3.0, -2.0].repeat(7);
    fit_every_way(&values, 3, |fit, x, preprocessing| {
        if preprocessing.centering == hbpca::Centering::Mean {
            assert_eq!(fit.model.summary().total_variance, 0.0);
            assert_eq!(fit.model.explained_variance_ratio(), [0.0]);
            // Products with compressed rows know C = 0 only up to the rounding of what they subtract; `covariance` centres them first.
            let scale = 0.1_f64.powi(2) + 9.0 + 4.0;
            assert!(fit.model.eigenvalues()[0].abs() <= 100.0 * scale * f64::EPSILON);
            assert!(fit.certificate.eigenvalue_intervals[0][0] <= 0.0);
            assert_eq!(fit.outcome, Outcome::Converged, "{}: {}", fit.solver, fit.certificate);
            assert_eq!(
                fit.certificate.status,
                [hbpca::certificate::Status::NoVariance],
                "{}, sparse {}",
                fit.solver,
                x.is_sparse()
            );
            assert!(fit.certificate.to_string().contains("no variance to rounding"));
        }
    });
}

#[test]
fn repeated_rows_change_nothing_but_the_n_minus_one() {
    let once = sparse_values(5, 3, 1.0, 2);
    let config = FitConfig { k: 3, threads: 1, ..FitConfig::default() };
    for (x, y) in every_storage(&once, 3).iter().zip(&every_storage(&once.repeat(40), 3)) {
        let [a, b] = [x, y].map(|(_, x)| config.fit(x).unwrap());
        for i in 0..3 {
            let bound = a.certificate.residuals[i] + b.certificate.residuals[i];
            assert!((a.model.eigenvalues()[i] - b.model.eigenvalues()[i]).abs() <= bound);
            // n/(n − 1) is 5/4 and 200/199.
            let want = a.model.eigenvalues()[i] * 1.25;
            assert!((a.model.explained_variance()[i] - want).abs() <= 4.0 * f64::EPSILON * want);
            let want = b.model.eigenvalues()[i] * 200.0 / 199.0;
            assert!((b.model.explained_variance()[i] - want).abs() <= 4.0 * f64::EPSILON * want);
        }
    }
}

#[test]
fn two_rows_have_one_direction_when_centred() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0, 0.0];
    let solver = SolverKind::Covariance;
    let config = FitConfig { k: 2, solver, threads: 1, ..FitConfig::default() };
    for (storage, x) in every_storage(&values, 3) {
        let fit = config.fit(&x).unwrap();
        // Half the difference (3, 3, −3)/2: variance 27/4 and 0.
        let r = fit.certificate.residuals[0];
        assert!((fit.model.eigenvalues()[0] - 6.75).abs() <= r, "{storage}");
        assert!(fit.model.eigenvalues()[1].abs() <= r, "{storage}");
        assert!(fit.certificate.gap_is_proved || fit.certificate.angle_bounds[1].is_none(), "{storage}");
    }
}

#[test]
fn weights_of_zero_leave_rows_out() {
    let values = sparse_values(20, 4, 0.7, 6);
    let weights: Vec<f64> = (0..20).map(|l| f64::from(u8::from(l < 12))).collect();
    let config = FitConfig { k: 4, threads: 1, ..FitConfig::default() };
    let kept = config.fit(&dense(values[..48].to_vec(), 4)).unwrap();
    for (storage, x) in [("dense", dense(values.clone(), 4)), ("csr", csr(&values, 4))] {
        let fit = config.run().weights(&weights[..]).fit(&x).unwrap();
        for i in 0..4 {
            let bound = 2.0 * (fit.certificate.residuals[i] + kept.certificate.residuals[i]);
            assert!((fit.model.eigenvalues()[i] - kept.model.eigenvalues()[i]).abs() <= bound, "{storage}");
            let variances = (fit.model.explained_variance()[i], kept.model.explained_variance()[i]);
            assert!((variances.0 - variances.1).abs() <= 2.0 * bound, "{storage}: {variances:?}");
        }
    }
}
