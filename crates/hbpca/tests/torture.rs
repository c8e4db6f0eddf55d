//! Hundreds of problems made to be hard, each solved by every solver: whatever is claimed is true.
//!
//! The truth comes from a dense eigen-solver in `torture/truth.rs`, the problems from `torture/problem.rs`.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "tests stop at surprises and count small")]

mod common;
#[path = "torture/problem.rs"]
mod problem;
#[path = "torture/truth.rs"]
mod truth;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::sound::assert_every_number_is_defined;
use hbpca::{Batch, Fit, FitConfig, Limits, Outcome, SolverKind};
use problem::Problem;
use truth::Truth;

const FOR_MANY: [SolverKind; 4] =
    [SolverKind::Auto, SolverKind::Covariance, SolverKind::Krylov, SolverKind::Anchored];
const FOR_ONE: [SolverKind; 11] = [
    SolverKind::Power,
    SolverKind::PowerM,
    SolverKind::Oja,
    SolverKind::VrPca,
    SolverKind::VrPcaProjected,
    SolverKind::VrPowerM,
    SolverKind::VrHbPower,
    SolverKind::ShiftInvertSvrg,
    SolverKind::ShiftInvertAgd,
    SolverKind::VrRiemannian,
    SolverKind::CoordinatePower,
];

fn fit(problem: &Problem, solver: SolverKind) -> Fit {
    let max_passes = if solver.finds_many() { 200.0 } else { 12.0 };
    let config = FitConfig {
        k: problem.k,
        solver,
        preprocessing: problem.preprocessing,
        limits: Limits { tol: problem.tol, max_passes, ..Limits::default() },
        batch: Batch::Share(0.2),
        epoch: 5,
        threads: 1,
        ..FitConfig::default()
    };
    let fit = config.run().weights(problem.weights.as_deref()).fit(&problem.matrix).unwrap();
    assert!(fit.passes <= max_passes * (1.0 + 1e-12), "{} passes", fit.passes);
    assert_every_number_is_defined(&fit, &problem.matrix, "a number");
    fit
}

/// Solves every problem with every solver that can, and reports all that went wrong at once. At least `share` of the runs of
/// each solver for many components converge: a suite in which nothing is claimed would prove nothing.
fn torture(problems: &[Problem], at_least: usize, share: f64) {
    assert!(problems.len() >= at_least, "only {} problems", problems.len());
    let mut wrong = Vec::new();
    let mut converged = [0; FOR_MANY.len()];
    for problem in problems {
        let truth = Truth::of(problem);
        let alone: &[SolverKind] = if problem.k == 1 { &FOR_ONE } else { &[] };
        for (i, solver) in FOR_MANY.iter().chain(alone).enumerate() {
            let lies = match catch_unwind(AssertUnwindSafe(|| fit(problem, *solver))) {
                Ok(fit) => {
                    if i < converged.len() && fit.outcome == Outcome::Converged {
                        converged[i] += 1;
                    }
                    truth.lies(problem, &fit)
                }
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map_or("no text", String::as_str);
                    vec![format!("panicked: {text}")]
                }
            };
            wrong.extend(lies.into_iter().map(|lie| format!("{solver}, {}: {lie}", problem.label)));
        }
    }
    assert!(wrong.is_empty(), "{} false claims:\n{}", wrong.len(), wrong.join("\n"));
    for (solver, converged) in FOR_MANY.iter().zip(converged) {
        let least = share * problems.len() as f64;
        assert!(f64::from(converged) >= least, "{solver} converged on {converged} of {}", problems.len());
    }
}

#[test]
fn gaps_from_nothing_to_everything() {
    torture(&problem::gaps(), 100, 0.9);
}

#[test]
fn repeated_eigenvalues() {
    torture(&problem::repetitions(), 200, 0.9);
}

#[test]
fn ranks_below_k() {
    torture(&problem::low_ranks(), 70, 0.5);
}

#[test]
fn fewer_rows_than_columns() {
    torture(&problem::wide(), 90, 0.9);
}

#[test]
fn means_far_from_zero() {
    torture(&problem::huge_means(), 90, 0.5);
}

#[test]
fn heavy_tails_dominant_rows_and_holes() {
    torture(&problem::odd_rows(), 70, 0.9);
}

#[test]
fn units_at_the_ends_of_the_range() {
    torture(&problem::units(), 90, 0.9);
}

#[test]
fn as_many_components_as_columns() {
    torture(&problem::complete(), 40, 0.9);
}

#[test]
fn partial_solves_and_restarts() {
    // Bounds on rounding hold for the worst case, so that some of the smallest tolerances are out of reach of hundreds of combined vectors.
    torture(&problem::large(), 24, 0.75);
}

#[test]
fn backgrounds_far_and_near() {
    torture(&problem::backgrounds(), 90, 0.9);
}
