//! What messages cost: a clock that only messages move, so that the time of a fit is its rounds and nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, and count small"
)]

mod common;

use std::sync::Mutex;

use common::chunked::{dense_problem, sparse_problem};
use common::ranked::*;
use hbpca::operator::{Communicator, ThreadRank};
use hbpca::{Error, Fit, FitConfig, Limits, Matrix, Outcome, SolverKind};

/// Seconds of a message.
const DELAY: f64 = 0.01;

/// A rank whose messages take [`DELAY`]. Each carries the time of its arrival; computing takes none.
struct Clocked {
    inner: ThreadRank,
    /// Seconds, and sums that this rank took from rank 1.
    state: Mutex<(f64, usize)>,
}

impl Communicator for Clocked {
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn send(&self, values: &[f64], to: usize) -> Result<(), Error> {
        let arrives = self.state.lock().unwrap().0 + DELAY;
        self.inner.send(&[values, &[arrives]].concat(), to)
    }
    fn receive(&self, values: &mut [f64], from: usize) -> Result<(), Error> {
        let mut message = vec![0.0; values.len() + 1];
        self.inner.receive(&mut message, from)?;
        let mut state = self.state.lock().unwrap();
        state.0 = state.0.max(message[values.len()]);
        // A sum reaches rank 0 through rank 1 exactly once, whatever the tree.
        state.1 += usize::from(self.rank() == 0 && from == 1);
        values.copy_from_slice(&message[..values.len()]);
        Ok(())
    }
}

/// The fit, its seconds by that clock, and its rounds.
fn timed(config: &FitConfig, matrix: &Matrix<'_>, size: usize) -> (Fit, f64, usize) {
    let cut = parts(matrix, size);
    let mut all = on_ranks(size, |rank| {
        let rank = Clocked { inner: rank, state: Mutex::default() };
        let fit = config.run().fit_on_ranks(Ok(rows(&cut[rank.rank()], Storage::Memory)), &rank).unwrap();
        let (seconds, rounds) = rank.state.into_inner().unwrap();
        (fit, seconds, rounds)
    });
    let (fit, seconds, rounds) = all.swap_remove(0);
    (fit.unwrap(), seconds, rounds)
}

fn config(solver: SolverKind) -> FitConfig {
    let limits = Limits { tol: 1e-9, ..Limits::default() };
    FitConfig { solver, k: 3, threads: 1, limits, ..FitConfig::default() }
}

/// Whether so many rounds take exactly so long: each is a task down the binomial tree and a sum up again, one message after the other; but
/// the first sum, of what every rank has, goes up without a task.
fn explain(rounds: usize, size: usize, seconds: f64) -> bool {
    let messages = (2 * rounds - 1) as f64 * f64::from(size.ilog2());
    (messages * DELAY - seconds).abs() < 1e-9 * seconds
}

#[test]
fn rounds_times_delay_is_the_time() {
    for matrix in [dense_problem(400, 40), sparse_problem(400, 40)] {
        for solver in [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Power] {
            let config = FitConfig { k: if solver.finds_many() { 3 } else { 1 }, ..config(solver) };
            for size in [2, 3, 4, 7, 8] {
                let (fit, seconds, rounds) = timed(&config, &matrix, size);
                assert!(explain(rounds, size, seconds), "{solver} {size}: {seconds} s, {rounds} rounds");
                // Rounds are passes, and a few before the first.
                let beside = rounds as f64 - fit.full_passes as f64;
                assert!(
                    (2.0..=6.0).contains(&beside),
                    "{solver} {size}: {rounds} rounds, {} passes",
                    fit.passes
                );
            }
        }
    }
}

#[test]
fn solvers_differ_by_the_ratio_of_their_rounds() {
    let matrix = dense_problem(400, 40);
    let of = |solver| {
        let (fit, seconds, messages) = timed(&config(solver), &matrix, 4);
        assert_eq!(fit.outcome, Outcome::Converged);
        // The rows of a sample ride beside a sum, in two messages of their own.
        let rounds = messages - if solver == SolverKind::Anchored { 2 } else { 0 };
        assert!(explain(rounds, 4, seconds), "{solver}: {seconds} s, {rounds} rounds");
        (seconds, rounds as f64)
    };
    let (krylov, anchored, covariance) =
        (of(SolverKind::Krylov), of(SolverKind::Anchored), of(SolverKind::Covariance));
    // A sample of a quarter of the rows spares anchored a third of the rounds of krylov, and so a third of the time.
    for (one, other) in [(krylov, anchored), (krylov, covariance)] {
        let (times, rounds) = (one.0 / other.0, one.1 / other.1);
        assert!(rounds > 1.5, "{rounds} times the rounds");
        assert!(
            (times / rounds - 1.0).abs() < 1.0 / other.1,
            "{times} times the time, {rounds} times the rounds"
        );
    }
}
