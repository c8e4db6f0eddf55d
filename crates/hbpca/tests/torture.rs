//! Hundreds of problems made to be hard, each solved by every solver: whatever is claimed is true.
//!
//! The truth comes from `torture/truth.rs`, the problems from `torture/problem.rs` and, drawn at random, `torture/random.rs`. `ci/torture.sh` draws more of them.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    clippy::format_push_string,
    reason = "tests stop at surprises and count small"
)]

mod common;
#[path = "torture/exact.rs"]
mod exact;
#[path = "torture/problem.rs"]
mod problem;
#[path = "torture/random.rs"]
mod random;
#[path = "torture/truth.rs"]
mod truth;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::chunked::Chunked;
use common::sound::assert_every_number_is_defined;
use hbpca::{Batch, ColumnStatistics, Fit, FitConfig, Limits, Outcome, SolverKind};
use problem::Problem;
use random::Draw;
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

fn fit(problem: &Problem, solver: SolverKind, streamed: bool) -> Fit {
    let max_passes = if solver.finds_many() { 200.0 } else { 12.0 };
    let config = FitConfig {
        k: problem.k,
        solver,
        preprocessing: problem.preprocessing,
        limits: Limits { tol: problem.tol, max_passes, ..Limits::default() },
        batch: Batch::Share(0.2),
        epoch: 5,
        threads: 1,
        seed: problem.seed,
        start: problem.start.clone(),
        ..FitConfig::default()
    };
    let run = config.run().weights(problem.weights.as_deref());
    let fit = if streamed {
        let n = problem.n();
        let mut starts: Vec<usize> = (0..n).step_by(n.div_ceil(4)).collect();
        starts.push(n);
        run.fit_streamed(Chunked::new(&problem.matrix, &starts), u64::MAX).unwrap()
    } else {
        run.fit(&problem.matrix).unwrap()
    };
    assert!(fit.passes <= max_passes * (1.0 + 1e-12), "{} passes", fit.passes);
    assert_every_number_is_defined(&fit, &problem.matrix, "a number");
    fit
}

/// All false claims of a run, and whether it converged.
fn judged(
    problem: &Problem,
    truth: Option<&Truth>,
    solver: SolverKind,
    streamed: bool,
) -> (Vec<String>, bool) {
    match catch_unwind(AssertUnwindSafe(|| fit(problem, solver, streamed))) {
        Ok(fit) => {
            let lies = match truth {
                Some(truth) => truth.lies(problem, &fit),
                None => Truth::of(problem, fit.model.scale()).lies(problem, &fit),
            };
            (lies, fit.outcome == Outcome::Converged)
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map_or("no text", String::as_str);
            (vec![format!("panicked: {text}")], false)
        }
    }
}

/// Solves every problem with every solver that can, and reports all that went wrong at once. At least `share` of the runs of
/// each solver for many components converge: a suite in which nothing is claimed would prove nothing.
fn torture(problems: &[Problem], at_least: usize, share: f64) {
    assert!(problems.len() >= at_least, "only {} problems", problems.len());
    let mut wrong = Vec::new();
    let mut converged = [0_u32; FOR_MANY.len()];
    for problem in problems {
        let statistics = match &problem.weights {
            Some(weights) => ColumnStatistics::weighted(&problem.matrix, weights),
            None => ColumnStatistics::new(&problem.matrix),
        };
        let map = problem.preprocessing.row_map(&statistics.unwrap());
        let truth = Truth::of(problem, map.scale());
        let alone: &[SolverKind] = if problem.k == 1 { &FOR_ONE } else { &[] };
        for (i, solver) in FOR_MANY.iter().chain(alone).enumerate() {
            let (lies, holds) = judged(problem, Some(&truth), *solver, false);
            if i < converged.len() {
                converged[i] += u32::from(holds);
            }
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

/// `HBPCA_TORTURE` is a number of problems, a seed and, where it is not 0, the first problem: `10000 7`, `1 7 1234`.
#[test]
fn problems_drawn_at_random() {
    let asked = std::env::var("HBPCA_TORTURE").unwrap_or_else(|_| "1000 1".to_string());
    let numbers: Vec<u64> = asked.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let &[count, seed, ref first @ ..] = &numbers[..] else {
        panic!("HBPCA_TORTURE is a number and a seed, not {asked}")
    };
    let first = first.first().copied().unwrap_or(0);
    let mut wrong = Vec::new();
    let mut converged = std::collections::BTreeMap::<String, [u64; 2]>::new();
    for i in first..first + count {
        let Draw { problem, solver, streamed } = random::draw(seed, i, &FOR_MANY);
        let (lies, holds) = judged(&problem, None, solver, streamed);
        let tally = converged.entry(solver.to_string()).or_default();
        *tally = [tally[0] + u64::from(holds), tally[1] + 1];
        let how = if streamed { "streamed, " } else { "" };
        wrong.extend(lies.into_iter().map(|lie| format!("{how}{solver}, {}: {lie}", problem.label)));
    }
    for (solver, [holds, all]) in &converged {
        println!("{solver}: {holds} of {all} converged");
    }
    println!("{} false claims in {count} problems of seed {seed}", wrong.len());
    assert!(wrong.is_empty(), "{} false claims:\n{}", wrong.len(), wrong.join("\n"));
    // A suite in which nothing is claimed would prove nothing.
    let [holds, all] = converged.get("auto").copied().unwrap_or_default();
    assert!(4 * holds >= 3 * all, "auto converged on {holds} of {all}");
}
