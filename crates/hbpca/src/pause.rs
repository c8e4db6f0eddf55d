//! Runs that can be put aside between a look and the step after it, and taken up again with the same bits.

use crate::observe::Record;
use crate::operator::{CovarianceOperator, Products, RowsRead};
use crate::policy::SecondEigenvalue;
use crate::solver::Solver;
use crate::{Archive, Block, Certificate, Error, State};

/// A run as it was after a look: everything the solver, the operator and the driver know.
#[derive(Clone, Debug, PartialEq)]
pub struct Paused {
    /// Numbers of the solver, the operator and the driver.
    pub state: State,
    /// One record for every outer iterate.
    pub history: Vec<Record>,
    /// Rows read.
    pub read: RowsRead,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// When a run could be kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Rows read so far, divided by n.
    pub passes: f64,
    /// Seconds since the start.
    pub seconds: f64,
    /// Whether the run ends here.
    pub last: bool,
}

/// Keeps runs.
pub trait Keeper {
    /// Whether a run shall be kept as it is now: its state is only copied then.
    fn wants(&mut self, moment: Moment) -> bool;

    /// Keeps it. An error ends the run.
    fn keep(&mut self, paused: Paused) -> Result<(), Error>;
}

/// How far a run has come, besides what its solver knows.
#[derive(Default)]
pub(crate) struct Course {
    pub(crate) history: Vec<Record>,
    /// The iterate with the smallest residual so far.
    pub(crate) best: Option<(Block, Certificate)>,
    pub(crate) second: SecondEigenvalue,
    pub(crate) patience: Patience,
}

impl Course {
    /// Whether a certificate is the best so far.
    pub(crate) fn is_better(&self, certificate: &Certificate) -> bool {
        self.best.as_ref().is_none_or(|(_, best)| certificate.worst() <= best.worst())
    }

    /// Walks over everything but the history, which is no state: nothing depends on it.
    fn archive(&mut self, d: usize, k: usize, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.part("second", |archive| self.second.archive(d, archive))?;
        archive.part("patience", |archive| self.patience.archive(archive))?;
        let mut has_best = self.best.is_some();
        archive.flag("has_best", &mut has_best)?;
        if !has_best {
            self.best = None;
            return Ok(());
        }
        let (vectors, certificate) =
            self.best.get_or_insert_with(|| (Block::zeros(d, k), Certificate::blank()));
        archive.part("best", |archive| {
            archive.block("vectors", vectors)?;
            certificate.archive(k, archive)
        })
    }
}

impl Paused {
    /// Copies a run; nothing where it left the range of numbers, so that there is nothing to go on from.
    pub(crate) fn of(
        solver: &mut dyn Solver,
        operator: &mut dyn CovarianceOperator,
        course: &mut Course,
        read: RowsRead,
        seconds: f64,
    ) -> Option<Self> {
        let state = State::of(|archive| walk(solver, operator, course, archive)).ok()?;
        Some(Self { state, history: course.history.clone(), read, seconds })
    }

    /// Gives everything back.
    pub(crate) fn restore(
        self,
        solver: &mut dyn Solver,
        operator: &mut dyn CovarianceOperator,
    ) -> Result<Course, Error> {
        let mut course = Course { history: self.history, ..Course::default() };
        self.state.restore(|archive| walk(solver, operator, &mut course, archive))?;
        if course.history.is_empty() {
            return Err(Error::Checkpoint("its history is empty".into()));
        }
        Ok(course)
    }
}

fn walk(
    solver: &mut dyn Solver,
    operator: &mut dyn CovarianceOperator,
    course: &mut Course,
    archive: &mut Archive<'_>,
) -> Result<(), Error> {
    let (d, k) = (operator.dim(), solver.n_components());
    archive.part("solver", |archive| solver.archive(archive))?;
    archive.part("operator", |archive| operator.archive_state(archive))?;
    archive.part("driver", |archive| course.archive(d, k, archive))
}

/// Recognises the floor of the precision.
#[derive(Default)]
pub(crate) struct Patience {
    best: Option<f64>,
    looks_without_progress: usize,
}

impl Patience {
    /// Looks without progress, close to the floor, after which more are pointless.
    const LOOKS: usize = 10;

    /// Sees the residual (without rounding) of one more look.
    pub(crate) fn see(&mut self, measured: f64) {
        if self.best.is_none_or(|best| measured < 0.9 * best) {
            self.best = Some(measured);
            self.looks_without_progress = 0;
        } else {
            self.looks_without_progress += 1;
        }
    }

    /// Whether the residual seen last is at the rounding of the images: far below it, or within a thousand of it and not
    /// falling for ten looks.
    pub(crate) fn is_exhausted(&self, measured: f64, floor: f64) -> bool {
        measured <= 0.1 * floor || (measured <= 1e3 * floor && self.looks_without_progress >= Self::LOOKS)
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.optional("best", &mut self.best)?;
        archive.size("looks_without_progress", &mut self.looks_without_progress)
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_wrap, reason = "tests count small")]
mod tests {
    use super::*;

    fn exhausted(patience: &mut Patience, measured: f64, floor: f64) -> bool {
        patience.see(measured);
        patience.is_exhausted(measured, floor)
    }

    #[test]
    fn patience_ends_at_once_where_all_is_rounding() {
        assert!(exhausted(&mut Patience::default(), 0.05e-16, 1e-16));
        assert!(!exhausted(&mut Patience::default(), 0.2e-16, 1e-16));
    }

    #[test]
    fn patience_ends_after_ten_looks_without_progress_near_the_floor() {
        let mut patience = Patience::default();
        for look in 0..=Patience::LOOKS {
            // Falling by less than a tenth is no progress; the first look always is one.
            let residual = 5e-14 * 0.95_f64.powi(look.min(1) as i32);
            assert_eq!(exhausted(&mut patience, residual, 1e-16), look == Patience::LOOKS, "look {look}");
        }
    }

    #[test]
    fn patience_has_no_end_far_above_the_floor_and_starts_anew_with_progress() {
        let mut patience = Patience::default();
        assert!((0..100).all(|_| !exhausted(&mut patience, 1e-3, 1e-16)));
        // Down to the floor's neighbourhood by halves: never ten looks without progress.
        let mut patience = Patience::default();
        assert!((0..40).all(|look| !exhausted(&mut patience, 1e-3 * 0.5_f64.powi(look), 1e-16)));
    }
}
