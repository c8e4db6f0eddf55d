//! Partitions that somebody else owns: what goes wrong in any round ends the fit with one error, and nothing is lost silently.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, and count small"
)]

mod common;

use std::cell::Cell;

use common::chunked::{dense_problem, sparse_problem};
use common::ranked::parts;
use hbpca::operator::{Partitions, answer, combine};
use hbpca::{Error, Fit, FitConfig, Matrix, SolverKind};

/// What a scheduler may do wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// The round fails.
    Error,
    /// Nothing comes back.
    Nothing,
    /// The last number is lost.
    Cut,
    /// A number too many.
    Longer,
    /// The head means nothing.
    Garbage,
    /// The answer of partition 1 is left out.
    Lost,
    /// It is added twice.
    Twice,
    /// It is of other rows.
    Changed,
    /// It is the answer to the first round's task.
    Stale,
}

const FAULTS: [Fault; 9] = [
    Fault::Error,
    Fault::Nothing,
    Fault::Cut,
    Fault::Longer,
    Fault::Garbage,
    Fault::Lost,
    Fault::Twice,
    Fault::Changed,
    Fault::Stale,
];

/// Partitions in this process, with a fault in one round.
struct Here {
    parts: Vec<Matrix<'static>>,
    fault: Option<(usize, Fault)>,
    round: Cell<usize>,
}

impl Here {
    fn new(matrix: &Matrix<'_>, fault: Option<(usize, Fault)>) -> Self {
        Self { parts: parts(matrix, 3), fault, round: Cell::new(0) }
    }

    fn fit(&self, solver: SolverKind) -> Result<Fit, Error> {
        let config = FitConfig { solver, k: 2, threads: 1, ..FitConfig::default() };
        config.run().fit_partitions(self, 0.1)
    }
}

impl Partitions for Here {
    fn count(&self) -> usize {
        self.parts.len()
    }

    fn sum(&self, task: &[f64]) -> Result<Vec<f64>, Error> {
        let round = self.round.replace(self.round.get() + 1);
        let fault = self.fault.filter(|(at, _)| *at == round).map(|(_, fault)| fault);
        if fault == Some(Fault::Error) {
            return Err(Error::Communication("the scheduler is gone".into()));
        }
        let of = |i: usize| {
            let (task, rows) = match (fault, i) {
                (Some(Fault::Stale), 1) => (&[0.0][..], &self.parts[1]),
                (Some(Fault::Changed), 1) => (task, &self.parts[2]),
                _ => (task, &self.parts[i]),
            };
            answer(task, rows, (i, self.parts.len()))
        };
        let mut sum = combine(&of(0)?, &of(2)?)?;
        match fault {
            Some(Fault::Lost) => {}
            Some(Fault::Twice) => sum = combine(&combine(&sum, &of(1)?)?, &of(1)?)?,
            _ => sum = combine(&sum, &of(1)?)?,
        }
        match fault {
            Some(Fault::Nothing) => sum.clear(),
            Some(Fault::Cut) => drop(sum.pop()),
            Some(Fault::Longer) => sum.push(1.0),
            Some(Fault::Garbage) => sum[..9].fill(f64::NAN),
            _ => {}
        }
        Ok(sum)
    }
}

#[test]
fn a_fault_in_any_round_ends_the_fit_with_one_error() {
    for matrix in [dense_problem(120, 6), sparse_problem(120, 6)] {
        for solver in [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Anchored] {
            let sound = Here::new(&matrix, None);
            sound.fit(solver).unwrap();
            let rounds = sound.round.get();
            assert!(rounds >= 2, "{solver}");
            for round in 0..rounds {
                for fault in FAULTS {
                    // What changes before anybody has looked is no change; the first task is the first.
                    if round == 0 && matches!(fault, Fault::Changed | Fault::Stale) {
                        continue;
                    }
                    let failing = Here::new(&matrix, Some((round, fault)));
                    let result = failing.fit(solver);
                    let said = result.map(|fit| fit.outcome).unwrap_err().to_string();
                    assert_eq!(failing.round.get(), round + 1, "{solver} {round} {fault:?}: {said}");
                    let words = match fault {
                        Fault::Error => "the scheduler is gone",
                        Fault::Lost => "partition 1 (counted from 0) did not answer",
                        Fault::Twice => "partition 1 (counted from 0) answered 2 times",
                        Fault::Changed => "partition 1 (counted from 0) has other rows",
                        _ => "",
                    };
                    assert!(said.contains(words), "{solver} {round} {fault:?}: {said}");
                }
            }
        }
    }
}

#[test]
fn partitions_agree_with_memory() {
    for matrix in [dense_problem(120, 6), sparse_problem(120, 6)] {
        for solver in [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Anchored] {
            let alone = FitConfig { solver, k: 2, ..FitConfig::default() }.fit(&matrix).unwrap();
            let fit = Here::new(&matrix, None).fit(solver).unwrap();
            for (i, (a, b)) in alone.model.eigenvalues().iter().zip(fit.model.eigenvalues()).enumerate() {
                let allowed = alone.certificate.residuals[i] + fit.certificate.residuals[i];
                assert!((a - b).abs() <= allowed, "{solver}: {a} and {b}, {allowed:e} allowed");
            }
        }
    }
}
