//! Products in single precision stay within the rounding it states.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "tests stop at surprises and count small")]

mod common;

use common::*;
use hbpca::operator::{Covariance, Precision, Products};
use hbpca::{Block, FitConfig, Limits, Outcome, PrecisionChoice, Preprocessing, SolverKind};

/// n×d normal numbers of the given unit, at levels of `mean` units that differ from column to column.
fn levelled(n: usize, d: usize, mean: f64, unit: f64) -> Vec<f64> {
    let mut rng = Xorshift((n * 1000 + d) as u64);
    let level = |j: usize| mean * (1.0 - j as f64 / d as f64);
    (0..n * d).map(|i| i % d).map(|j| (rng.normal() * 0.97_f64.powi(j as i32) + level(j)) * unit).collect()
}

fn columns_of_length_one(d: usize, p: usize) -> Block {
    let mut v = random_block(d, p, 5);
    let norms: Vec<f64> = (0..p).map(|c| v.column(c).iter().map(|x| x * x).sum::<f64>().sqrt()).collect();
    v.values_mut().iter_mut().enumerate().for_each(|(i, x)| *x /= norms[i % p]);
    v
}

/// The largest ‖single − exact‖ of a column, and the bound; nothing where there is no single precision.
fn error_and_bound(values: &[f64], d: usize, p: usize, preprocessing: Preprocessing) -> Option<(f64, f64)> {
    let x = dense_f32(values, d);
    let mut c = Covariance::new(&x, preprocessing).unwrap();
    let bound = c.rounding_in_single()?.of_image() + c.rounding().of_image();
    let v = columns_of_length_one(d, p);
    let (mut exact, mut single) = (Block::zeros(0, 0), Block::zeros(0, 0));
    c.apply(&v, &mut exact).unwrap();
    c.apply_in(Precision::Single, &v, &mut single).unwrap();
    let off = |i: usize| {
        let pairs = exact.column(i).into_iter().zip(single.column(i));
        // In the bound's own units: the squares of 10¹⁵ in fourth powers would still fit, those of its inverse would not.
        bound * pairs.map(|(a, b)| ((a - b) / bound).powi(2)).sum::<f64>().sqrt()
    };
    Some(((0..p).map(off).fold(0.0, f64::max), bound))
}

#[test]
fn single_products_differ_by_no_more_than_the_stated_rounding() {
    let mut judged = 0;
    for (n, d) in [(1, 1), (2, 3), (7, 40), (40, 7), (300, 17), (1000, 64), (130, 300), (5000, 9)] {
        for mean in [0.0, 1.0, 30.0, 1e3, 1e5] {
            for unit in [1e-12, 1e-3, 1.0, 1e12] {
                let values = levelled(n, d, mean, unit);
                for preprocessing in EVERY_PREPROCESSING {
                    for p in [1, 5, 16] {
                        let Some((off, bound)) = error_and_bound(&values, d, p, preprocessing) else {
                            continue;
                        };
                        judged += 1;
                        let label =
                            format!("{n}×{d}, p = {p}, mean {mean:e}, unit {unit:e}, {preprocessing:?}");
                        assert!(off <= bound, "{label}: off by {off:e}, stated {bound:e}");
                        assert!(bound.is_finite(), "{label}");
                    }
                }
            }
        }
    }
    assert!(judged > 1000, "only {judged} products had single precision");
}

#[test]
fn single_errors_are_those_of_single_precision() {
    // Single precision is really used: its errors lie far above those of f64.
    let values = levelled(1000, 64, 1.0, 1.0);
    let (off, _) = error_and_bound(&values, 64, 8, Preprocessing::CENTER).unwrap();
    assert!(off > 100.0 * f64::EPSILON, "{off:e}");
}

#[test]
fn numbers_beyond_the_range_of_f32_have_no_single_precision() {
    for unit in [1e-37, 1e-30, 1e-22, 1e19, 1e30, 1e36] {
        let values = levelled(50, 8, 1.0, unit);
        assert!(error_and_bound(&values, 8, 3, Preprocessing::CENTER).is_none(), "{unit:e}");
    }
}

#[test]
fn means_that_f32_cannot_hold_have_no_single_precision() {
    // fl(μ) is off by up to 2⁻²⁴·10⁵ ≈ 0.006 standard deviations: C + δδᵀ would differ from C visibly.
    let values = levelled(500, 8, 1e5, 1.0);
    assert!(error_and_bound(&values, 8, 3, Preprocessing::CENTER).is_none());
    assert!(error_and_bound(&values, 8, 3, Preprocessing::NONE).is_some());
}

#[test]
fn fits_in_each_precision_say_what_they_know() {
    let x = dense_f32(&levelled(2000, 60, 1.0, 1.0), 60);
    for solver in [SolverKind::Krylov, SolverKind::Anchored, SolverKind::Power] {
        let fit = |precision, tol| {
            let limits = Limits { tol, max_passes: 400.0, ..Limits::default() };
            FitConfig { solver, precision, limits, ..FitConfig::default() }.fit(&x).unwrap()
        };
        let exact = fit(PrecisionChoice::Double, 1e-9);
        assert_eq!(exact.outcome, Outcome::Converged);
        let [truth] = exact.certificate.eigenvalues[..] else { panic!("one component") };
        for precision in [PrecisionChoice::Auto, PrecisionChoice::Single] {
            // A bound of 1e-5 of the trace, which is 20·λ₁, for each of 40 vectors: 1.3e-3.
            let fit = fit(precision, 1e-2);
            assert_eq!(fit.outcome, Outcome::Converged, "{solver} {precision:?}");
            let off = (fit.certificate.eigenvalues[0] - truth).abs();
            assert!(
                off <= fit.certificate.residuals[0] + exact.certificate.residuals[0],
                "{solver}: {off:e}"
            );
        }
        // What f32 cannot tell apart is not claimed.
        let single = fit(PrecisionChoice::Single, 1e-9);
        assert_ne!(single.outcome, Outcome::Converged, "{solver}");
        assert!(single.certificate.image_rounding > 100.0 * exact.certificate.image_rounding, "{solver}");
        assert!((single.certificate.eigenvalues[0] - truth).abs() <= single.certificate.residuals[0]);
    }
}

#[test]
fn covariances_formed_in_single_precision_are_certified_or_formed_again() {
    let weights: Vec<f64> = (0..300).map(|l| 0.5 + f64::from(l % 7)).collect();
    let mut dominated = levelled(300, 260, 0.0, 1.0);
    dominated[9 * 260..10 * 260].iter_mut().for_each(|x| *x *= 1e4);
    let repeated: Vec<f64> =
        levelled(300, 260, 0.0, 1.0).iter().map(|x| if *x > 0.8 { 2.3 } else { -0.3 }).collect();
    let kinds = [
        ("plain", levelled(300, 260, 1.0, 1.0)),
        ("mean 1e6", levelled(300, 260, 1e6, 1.0)),
        ("tiny", levelled(300, 260, 1.0, 1e-30)),
        ("huge", levelled(300, 260, 1.0, 1e30)),
        ("small", levelled(300, 260, 1.0, 1e-9)),
        ("repeated", repeated),
        ("dominated", dominated),
    ];
    for (kind, values) in &kinds {
        let x = dense_f32(values, 260);
        for preprocessing in EVERY_PREPROCESSING {
            for weights in [None, Some(&weights[..])] {
                for k in [1, 20] {
                    let fit = |precision, tol, max_passes| {
                        let limits = Limits { tol, max_passes, ..Limits::default() };
                        let solver = SolverKind::Covariance;
                        let config =
                            FitConfig { k, solver, precision, limits, preprocessing, ..FitConfig::default() };
                        config.run().weights(weights).fit(&x).unwrap()
                    };
                    let label = format!("{kind}, k = {k}, {preprocessing:?}, weights {}", weights.is_some());
                    let double = fit(PrecisionChoice::Double, 1e-6, 1000.0);
                    let single = fit(PrecisionChoice::Auto, 1e-6, 1000.0);
                    // Rows of 10⁶ in each of 260 columns, beside a spread of 1: 10¹⁴ times as much variance.
                    let beyond_reach = *kind == "mean 1e6" && preprocessing == Preprocessing::NONE && k > 1;
                    let outcome = if beyond_reach { Outcome::Stagnated } else { Outcome::Converged };
                    assert_eq!(single.outcome, outcome, "{label}: {}", single.certificate);
                    assert!(beyond_reach || single.certificate.worst() <= 1e-6, "{label}");
                    let (exact, found) = (&double.certificate, &single.certificate);
                    for i in 0..k {
                        let off = (exact.eigenvalues[i] - found.eigenvalues[i]).abs();
                        // k Ritz values lie within ‖R‖_F of k eigenvalues.
                        let spread =
                            found.residuals.iter().map(|r| (r / found.eigenvalues[0]).powi(2)).sum::<f64>();
                        let room = spread.sqrt() * found.eigenvalues[0] + exact.residuals[i];
                        assert!(off <= room, "{label}: {off:e} {room:e}");
                    }
                    // After a component that dominates, the others take passes of their own.
                    if k > 1 && ["mean 1e6", "dominated"].contains(kind) {
                        continue;
                    }
                    // One pass formed C; a second one measured it, and a third formed it again.
                    assert!((1..=3).contains(&single.full_passes), "{label}: {}", single.full_passes);
                    let single_fits = !["tiny", "huge"].contains(kind);
                    assert_eq!(single.full_passes > 1, single_fits, "{label}");
                    // Without room for an attempt, or for less than single precision holds, there is none.
                    assert_eq!(fit(PrecisionChoice::Auto, 1e-6, 1.0).full_passes, 1, "{label}");
                    let sharp = fit(PrecisionChoice::Auto, 1e-9, 1000.0);
                    assert_eq!((sharp.outcome, sharp.full_passes), (Outcome::Converged, 1), "{label}");
                    assert_eq!(double.full_passes, 1, "{label}");
                }
            }
        }
    }
}

#[test]
fn an_attempt_that_misses_the_tolerance_is_followed_by_double_precision() {
    // Two values only, whose products round the same way all over, and more components than are multiplied themselves: the
    // probes' factor does the rest.
    let (n, d, k) = (600, 260, 20);
    let mut values = levelled(n, d, 0.0, 1.0);
    values
        .chunks_exact_mut(d)
        .for_each(|row| row.iter_mut().for_each(|x| *x = if *x > 0.5 { 1.1 } else { -0.3 }));
    let x = dense_f32(&values, d);
    let mut passes = Vec::new();
    for tol in [1e-5, 1.3e-7] {
        let limits = Limits { tol, ..Limits::default() };
        let fit =
            FitConfig { k, solver: SolverKind::Covariance, limits, ..FitConfig::default() }.fit(&x).unwrap();
        assert_eq!(fit.outcome, Outcome::Converged);
        assert_eq!(fit.history.len() as u64, fit.full_passes - 1);
        passes.push(fit.full_passes);
    }
    assert_eq!(passes, [2, 3]);
}
