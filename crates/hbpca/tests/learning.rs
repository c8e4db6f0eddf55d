//! `auto` begins with `krylov` where the spectrum decides, and forms C once it has seen one that takes longer.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare bits and count small"
)]

mod common;

use common::*;
use hbpca::{Fit, FitConfig, Limits, Matrix, Outcome, SolverKind};

const N: usize = 6000;
const D: usize = 400;

fn fit(x: &Matrix<'_>, solver: SolverKind) -> Fit {
    let config = FitConfig { k: 10, solver, ..FitConfig::default() };
    let fit = config.fit(x).unwrap();
    assert_eq!(fit.outcome, Outcome::Converged);
    fit
}

/// Gaussian rows whose j-th standard deviation is that of `deviation`.
fn problem(deviation: impl Fn(usize) -> f64) -> Matrix<'static> {
    let block = random_block(N * D, 1, 3);
    let entry = |(i, x): (usize, &f64)| x * deviation(i % D);
    dense_f32(&block.values().iter().enumerate().map(entry).collect::<Vec<_>>(), D)
}

#[test]
fn a_flat_spectrum_forms_c_after_few_passes() {
    let x = problem(|_| 1.0);
    let [auto, krylov, covariance] =
        [SolverKind::Auto, SolverKind::Krylov, SolverKind::Covariance].map(|solver| fit(&x, solver));
    assert_eq!(auto.solver, SolverKind::Covariance, "{}", auto.chosen_because);
    assert!(auto.chosen_because.contains("passes of krylov"), "{}", auto.chosen_because);
    assert!(auto.passes < 0.5 * krylov.passes, "{} passes, krylov {}", auto.passes, krylov.passes);
    assert!(auto.passes > covariance.passes, "what krylov read counts");
    assert_eq!(auto.model.components(), covariance.model.components());
}

#[test]
fn an_easy_spectrum_stays_with_krylov() {
    let x = problem(|j| 0.8_f64.powf(j as f64));
    let [auto, krylov] = [SolverKind::Auto, SolverKind::Krylov].map(|solver| fit(&x, solver));
    assert_eq!(auto.solver, SolverKind::Krylov, "{}", auto.chosen_because);
    assert_eq!((auto.passes, auto.model.components()), (krylov.passes, krylov.model.components()));
}

#[test]
fn threads_change_nothing_about_it() {
    let x = problem(|_| 1.0);
    let [one, three] =
        [1, 3].map(|threads| FitConfig { k: 10, threads, ..FitConfig::default() }.fit(&x).unwrap());
    assert_eq!((one.passes, one.solver), (three.passes, three.solver));
    assert_eq!(one.model.components(), three.model.components());
}

#[test]
fn a_solver_that_was_asked_for_and_a_tight_limit_on_passes_are_kept() {
    let x = problem(|_| 1.0);
    assert_eq!(fit(&x, SolverKind::Krylov).solver, SolverKind::Krylov);
    let limits = Limits { max_passes: 30.0, ..Limits::default() };
    let limited = FitConfig { k: 10, limits, ..FitConfig::default() }.fit(&x).unwrap();
    assert!(limited.passes <= 30.0);
    assert_eq!(limited.solver, SolverKind::Krylov);
}
