//! The one loop that runs every solver: look, certify, tell, stop or step.

use std::ops::ControlFlow;
use std::time::Instant;

use crate::CancelToken;
use crate::block::largest;
use crate::certificate::{Certificate, Next, Pairs};
use crate::observe::{Event, Observer, Outcome, Record};
use crate::operator::{Counted, CovarianceOperator, Products, RowsRead};
use crate::pause::{Course, Keeper, Moment, Patience, Paused};
use crate::policy::SecondEigenvalue;
use crate::solver::{Outlook, Solver};
use crate::{Block, Error};

/// When to stop.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Residuals at most `tol`·θ₁ count as converged.
    pub tol: f64,
    /// No step is begun that would read more passes than this.
    pub max_passes: f64,
    /// No step is begun after this many seconds.
    pub max_seconds: f64,
    /// Stops the run from outside. The operator of [`FitConfig`](crate::FitConfig) obeys it in the middle of a pass too.
    pub cancel: CancelToken,
}

impl Default for Limits {
    /// tol = 10⁻⁶, 1000 passes, no limit on seconds.
    fn default() -> Self {
        Self { tol: 1e-6, max_passes: 1000.0, max_seconds: f64::INFINITY, cancel: CancelToken::default() }
    }
}

impl Limits {
    /// Refuses limits under which no run makes sense.
    pub fn check(&self) -> Result<(), Error> {
        if !(self.tol >= 0.0 && self.tol < 1.0) {
            return Err(Error::parameter(
                "tol",
                self.tol,
                "the relative tolerance must lie from 0 up to below 1; try 1e-6",
            ));
        }
        if self.max_passes.is_nan() || self.max_passes < 1.0 {
            return Err(Error::parameter(
                "max-passes",
                self.max_passes,
                "a certificate takes at least 1 pass",
            ));
        }
        if self.max_seconds.is_nan() || self.max_seconds < 0.0 {
            return Err(Error::parameter(
                "max-seconds",
                self.max_seconds,
                "give a number of seconds of at least 0",
            ));
        }
        Ok(())
    }
}

/// What a run produced.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// The iterate with the smallest residual: d×k, orthonormal columns.
    pub vectors: Block,
    /// Its certificate.
    pub certificate: Certificate,
    /// One record for every outer iterate.
    pub history: Vec<Record>,
    /// Rows read.
    pub read: RowsRead,
    /// Rows read, divided by n.
    pub passes: f64,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// Runs solvers.
///
/// ```
/// use hbpca::operator::Covariance;
/// use hbpca::solver::{Power, Start};
/// use hbpca::{Dense, Driver, Limits, Matrix, Outcome, Preprocessing};
/// let x: Matrix = Dense::new(vec![3.0, 0.0, -3.0, 0.0, 0.0, 1.0, 0.0, -1.0], 4, 2)?.into();
/// let mut c = Covariance::new(&x, Preprocessing::CENTER)?; // diag(4.5, 0.5)
/// let mut power = Power::new(2, &Start::Random { seed: 0 })?;
/// let report = Driver::new(Limits::default()).run(&mut power, &mut c)?;
/// assert_eq!(report.outcome, Outcome::Converged);
/// assert!((report.certificate.eigenvalues[0] - 4.5).abs() <= report.certificate.residuals[0]);
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Default)]
pub struct Driver<'a> {
    limits: Limits,
    read_before: RowsRead,
    resume: Option<Paused>,
    keeper: Option<&'a mut dyn Keeper>,
    reference: Option<&'a [f64]>,
    observers: Vec<&'a mut dyn Observer>,
}

impl<'a> Driver<'a> {
    /// A driver that stops at these limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Counts on from what earlier runs read: it is part of the budget and of the history.
    #[must_use]
    pub fn having_read(mut self, read: RowsRead) -> Self {
        self.read_before = read;
        self
    }

    /// Records the error 1 − (wᵀu₁)² against a known eigenvector.
    #[must_use]
    pub fn reference(mut self, u1: &'a [f64]) -> Self {
        self.reference = Some(u1);
        self
    }

    /// Tells `observer` what happens.
    #[must_use]
    pub fn observer(mut self, observer: &'a mut dyn Observer) -> Self {
        self.observers.push(observer);
        self
    }

    /// Lets `keeper` keep the run at its looks, for others to go on from there.
    #[must_use]
    pub fn keeper(mut self, keeper: &'a mut dyn Keeper) -> Self {
        self.keeper = Some(keeper);
        self
    }

    /// Goes on from a run that was kept, with a solver and an operator made with the same arguments. The limits, which may
    /// be others, are for the whole run.
    #[must_use]
    pub fn resuming(mut self, paused: Paused) -> Self {
        self.resume = Some(paused);
        self
    }

    /// Runs `solver` on `operator` until a limit is reached.
    pub fn run(
        &mut self,
        solver: &mut dyn Solver,
        operator: &mut dyn CovarianceOperator,
    ) -> Result<Report, Error> {
        self.limits.check()?;
        let paused = self.resume.take();
        let (read, seconds) =
            paused.as_ref().map_or((self.read_before, 0.0), |paused| (paused.read, paused.seconds));
        let mut operator = Counted::starting_at(operator, read);
        let (n, d, k) = (operator.n_rows(), operator.dim(), solver.n_components());
        if let Some(u1) = self.reference
            && u1.len() != d
        {
            return Err(Error::shape("coordinates of the reference vector", d, u1.len()));
        }
        let clock = Stopwatch::start_at(seconds);
        let mut resumed = paused.is_some();
        let mut course = match paused {
            None => Course::default(),
            Some(paused) => paused.restore(solver, &mut operator)?,
        };
        let mut stop = self.tell(&Event::Started { solver: solver.name(), n, d, k });
        if resumed {
            stop |= self.tell(&Event::Resumed { history: &course.history });
        }
        let (outcome, seen) = loop {
            // The look that a run resumes from is judged again, by limits that may be others, and not told again.
            let fresh = !std::mem::take(&mut resumed);
            if fresh {
                solver.look(&mut operator)?;
                self.limits.cancel.go_on()?;
            }
            let sight = self.see(solver, &mut operator, &mut course.second)?;
            if fresh {
                course.history.push(self.record(solver, &sight, &operator, clock.seconds()));
                let record = &course.history[course.history.len() - 1];
                let certificate = sight.certificate.as_ref();
                let vectors = certificate.map(|_| solver.pairs().vectors);
                stop |= self.tell(&Event::Looked { record, certificate, vectors });
            }
            let holds = sight.certificate.as_ref().is_some_and(|seen| seen.holds(self.limits.tol));
            let tries = !holds && !sight.clears_up;
            if fresh && tries {
                course.patience.see(sight.measured);
            }
            // Who doubts moves on, away from what was certified.
            let doubts = holds && solver.doubts()?;
            let seen = sight.certificate.filter(|_| !doubts);
            let end = if holds && !doubts {
                Some(Outcome::Converged)
            } else if tries && course.patience.is_exhausted(sight.measured, sight.floor) {
                Some(Outcome::Stagnated)
            } else if stop || self.limits.cancel.is_cancelled() {
                Some(Outcome::Interrupted)
            } else if self.is_spent(&operator, solver, &course) {
                Some(Outcome::Budget)
            } else {
                None
            };
            if doubts {
                // Small residuals, but perhaps not of the leading vectors: when those come up, residuals grow once more.
                (course.best, course.patience) = (None, Patience::default());
            }
            self.offer(solver, &mut operator, &mut course, clock.seconds(), end)?;
            if let Some(outcome) = end {
                break (outcome, seen);
            }
            if let Some(certificate) = seen.filter(|seen| course.is_better(seen)) {
                course.best = Some((solver.pairs().vectors.clone(), certificate));
            }
            solver.step(&mut operator)?;
        };
        let seen = if let Some(seen) = seen {
            seen
        } else {
            solver.form_pairs(&mut operator)?;
            certify(solver, &operator, &mut course.second)
        };
        self.tell(&Event::Finished { outcome });
        let better = course.is_better(&seen);
        let Course { history, best, .. } = course;
        // Vectors are long: those of the solver are taken, not copied.
        let (vectors, certificate) =
            best.filter(|_| !better).unwrap_or_else(|| (solver.take_vectors(), seen));
        let (read, passes) = (operator.read(), operator.passes());
        Ok(Report { outcome, vectors, certificate, history, read, passes, seconds: clock.seconds() })
    }

    /// Whether one more step would leave the budget.
    fn is_spent<O: CovarianceOperator>(
        &self,
        operator: &Counted<O>,
        solver: &dyn Solver,
        course: &Course,
    ) -> bool {
        let passes_then = operator.passes() + solver.passes_ahead(operator.n_rows());
        let seconds = course.history.last().map_or(0.0, |record| record.seconds);
        // A whisker of room: passes are sums of many fractions.
        passes_then > self.limits.max_passes * (1.0 + 1e-12) || seconds >= self.limits.max_seconds
    }

    /// Offers the run, as it is, to the keeper.
    fn offer<O: CovarianceOperator>(
        &mut self,
        solver: &mut dyn Solver,
        operator: &mut Counted<O>,
        course: &mut Course,
        seconds: f64,
        end: Option<Outcome>,
    ) -> Result<(), Error> {
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        let moment = Moment { passes: operator.passes(), seconds, last: end.is_some() };
        if keeper.wants(moment) {
            let read = operator.read();
            if let Some(paused) = Paused::of(solver, operator, course, read, seconds) {
                keeper.keep(paused)?;
            }
        }
        Ok(())
    }

    /// Whether any observer wants to stop.
    fn tell(&mut self, event: &Event<'_>) -> bool {
        // All are told, also after one said stop.
        self.observers.iter_mut().fold(false, |stop, o| stop | (o.notify(event) == ControlFlow::Break(())))
    }

    /// What the look just taken showed. Forming vectors costs a product with a whole basis: where the solver knows without
    /// them that they miss the tolerance, there is no certificate.
    fn see<O: CovarianceOperator>(
        &self,
        solver: &mut dyn Solver,
        operator: &mut Counted<O>,
        second: &mut SecondEigenvalue,
    ) -> Result<Sight, Error> {
        let wanted = self.reference.is_some() || self.observers.iter().any(|o| o.wants_iterates());
        if let Some(outlook) = solver.outlook()
            && !wanted
            && outlook.residual + outlook.image_error > self.limits.tol * outlook.theta
        {
            let Outlook { theta, residual, image_error: floor, clears_up } = outlook;
            return Ok(Sight { theta, residual, measured: residual, floor, clears_up, certificate: None });
        }
        solver.form_pairs(operator)?;
        let clears_up = solver.outlook().is_some_and(|outlook| outlook.clears_up);
        let certificate = certify(solver, operator, second);
        let theta = certificate.eigenvalues.first().copied().unwrap_or(0.0);
        let residual = largest(certificate.residuals.iter().copied());
        let floor = certificate.image_rounding;
        let measured = residual - floor;
        Ok(Sight { theta, residual, measured, floor, clears_up, certificate: Some(certificate) })
    }

    fn record<O: CovarianceOperator>(
        &self,
        solver: &mut dyn Solver,
        sight: &Sight,
        operator: &Counted<O>,
        seconds: f64,
    ) -> Record {
        let parameters = solver.parameters();
        Record {
            passes: operator.passes(),
            full_passes: operator.read().full_passes,
            seconds,
            theta: sight.theta,
            residual: sight.residual,
            eta: parameters.eta,
            beta: parameters.beta,
            lambda2: parameters.lambda2,
            error: self.reference.map(|u1| squared_sine(&solver.pairs().vectors.column(0), u1)),
        }
    }
}

/// What a look showed.
struct Sight {
    theta: f64,
    /// The largest residual as the history shows it: certified with its rounding, or foreseen without.
    residual: f64,
    /// The largest residual without rounding.
    measured: f64,
    /// The bound on rounding.
    floor: f64,
    /// Whether a look to come lowers that bound.
    clears_up: bool,
    /// None where it would not hold.
    certificate: Option<Certificate>,
}

/// The only clock of the core.
pub(crate) struct Stopwatch {
    start: Instant,
    /// What it showed at its start.
    before: f64,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self::start_at(0.0)
    }

    /// One that goes on from the given seconds.
    pub(crate) fn start_at(before: f64) -> Self {
        Self { start: Instant::now(), before }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.before + self.start.elapsed().as_secs_f64()
    }
}

/// The certificate of the solver's pairs. A solver for one component that knows nothing of λ₂ gets the free estimate from
/// its last two iterates.
fn certify<O: CovarianceOperator>(
    solver: &mut dyn Solver,
    operator: &Counted<O>,
    second: &mut SecondEigenvalue,
) -> Certificate {
    let mut pairs: Pairs<'_> = solver.pairs();
    if pairs.next == Next::Unknown && pairs.vectors.p() == 1 {
        second.observe(pairs.vectors, pairs.images);
        if pairs.vectors.d() == 1 {
            pairs.next = Next::Nothing;
        } else if let Some(lambda2) = second.value() {
            pairs.next = Next::Estimated(lambda2);
        }
    }
    Certificate::new(pairs, operator.total_variance())
}

/// sin²∠(w, u) = ‖w − (wᵀu)u‖²/‖w‖² for a unit vector u: the error 1 − (wᵀu)² without its cancellation.
pub(crate) fn squared_sine(w: &[f64], u: &[f64]) -> f64 {
    let along = crate::block::dot(w, u);
    let across: Vec<f64> = w.iter().zip(u).map(|(w, u)| w - along * u).collect();
    (crate::block::norm(&across) / crate::block::norm(w)).powi(2)
}

#[cfg(test)]
#[allow(clippy::float_cmp, clippy::cast_possible_wrap, reason = "values that are exact by construction")]
mod tests {
    use super::*;

    #[test]
    fn squared_sines_have_no_cancellation() {
        let u = [0.6, 0.8];
        for tiny in [1e-3, 1e-9, 1e-12] {
            let w = [0.6 - 0.8 * tiny, 0.8 + 0.6 * tiny]; // u turned by arctan(tiny)
            let want = tiny * tiny / (1.0 + tiny * tiny);
            // The coordinates of w are rounded by ε/2 each.
            assert!((squared_sine(&w, &u).sqrt() - want.sqrt()).abs() <= 4.0 * f64::EPSILON);
        }
        assert_eq!(squared_sine(&[-3.0, 0.0], &[1.0, 0.0]), 0.0);
    }

    #[test]
    fn default_limits_are_the_documented_ones() {
        let limits = Limits::default();
        assert_eq!((limits.tol, limits.max_passes, limits.max_seconds), (1e-6, 1000.0, f64::INFINITY));
        assert!(limits.check().is_ok() && !limits.cancel.is_cancelled());
    }
}
