//! The one loop that runs every solver: look, check residuals, tell, stop or step.

mod run_state;
mod stagnation;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use crate::block::largest;
use crate::cancel::CancelToken;
use crate::certificate::{Certificate, Next, Pairs, Status};
use crate::checkpoint::{CheckpointSink, Paused, Progress};
use crate::observe::{Event, Observer, Outcome, Record};
use crate::operator::{Counted, CovarianceOperator, Products, RowsRead, Shape};
use crate::solver::Solver;
use crate::stopwatch::Stopwatch;
use crate::{Accuracy, Archive, Block, Error, Limits, State};
use run_state::RunState;
use stagnation::StagnationTest;

/// What a run produced.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// Whether it ended because more looks lay ahead than [something else](Driver::unless_looks_exceed) would take.
    pub gave_up: bool,
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
    sink: Option<&'a mut dyn CheckpointSink>,
    cancel: CancelToken,
    reference: Option<&'a [f64]>,
    observers: Vec<&'a mut dyn Observer>,
    looks_worth: Option<f64>,
    gave_up: bool,
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

    /// Gives up when a solver [forecasts](Solver::looks_left) that it needs more looks than these, which is what another way would take.
    #[must_use]
    pub fn unless_looks_exceed(mut self, looks: Option<f64>) -> Self {
        self.looks_worth = looks;
        self
    }

    /// Tells `observer` what happens.
    #[must_use]
    pub fn observer(mut self, observer: &'a mut dyn Observer) -> Self {
        self.observers.push(observer);
        self
    }

    /// Stops when `token` says so. An operator that is [abandoned by](crate::operator::Covariance::abandoned_by) the same token is broken
    /// off in the middle of a pass when the time is up.
    #[must_use]
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.cancel = token.clone();
        self
    }

    /// Lets `sink` save the run at its looks, for another to go on from there.
    #[must_use]
    pub fn checkpoints(mut self, sink: &'a mut dyn CheckpointSink) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Goes on from a run that was saved, with a solver and an operator made with the same arguments. The limits, which may
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
        self.check_settings(operator.shape().d)?;
        let paused = self.resume.take();
        let resumed = paused.is_some();
        let (read, seconds) =
            paused.as_ref().map_or((self.read_before, 0.0), |paused| (paused.read, paused.seconds));
        let mut operator = Counted::starting_at(operator, read);
        let clock = Stopwatch::start_at(seconds);
        let mut state = match paused {
            None => RunState::default(),
            Some(paused) => restore(paused, solver, &mut operator)?,
        };
        solver.cancelled_by(&self.cancel);
        let stop = self.tell_start(solver, operator.shape(), resumed.then_some(&state.history[..]));
        let ended = self.iterate(solver, &mut operator, &mut state, &clock, stop, resumed);
        self.cancel.lift_time_limit();
        let (outcome, vectors, certificate) = match (ended, state.kept.take()) {
            // What was begun is thrown away.
            (Err(Error::OutOfTime), Some((vectors, certificate))) => {
                (Outcome::Budget, Some(vectors), certificate)
            }
            (ended, _) => {
                let (outcome, certificate) = ended?;
                let last = if let Some(certificate) = certificate {
                    certificate
                } else {
                    solver.form_pairs(&mut operator)?;
                    certify(solver, &operator)
                };
                (outcome, None, last)
            }
        };
        self.tell(&Event::Finished { outcome });
        let better = outcome == Outcome::Converged || state.is_better(&certificate);
        let RunState { history, best, .. } = state;
        // Vectors are long: those of the solver are taken, not copied.
        let (vectors, certificate) = best
            .filter(|_| !better)
            .unwrap_or_else(|| (vectors.unwrap_or_else(|| solver.take_vectors()), certificate));
        let (read, passes) = (operator.read(), operator.passes());
        let certificate = certificate.judged(self.limits.tol, outcome == Outcome::Stagnated);
        let (seconds, gave_up) = (clock.seconds(), self.gave_up);
        Ok(Report { outcome, vectors, certificate, history, read, passes, seconds, gave_up })
    }

    /// Looks and steps until a limit is reached: how it ended, and the certificate of the last look where there is one.
    fn iterate<O: CovarianceOperator>(
        &mut self,
        solver: &mut dyn Solver,
        operator: &mut Counted<O>,
        state: &mut RunState,
        clock: &Stopwatch,
        mut stop: bool,
        resumed: bool,
    ) -> Result<(Outcome, Option<Certificate>), Error> {
        // The look that a run resumes from is judged again, by limits that may be others, and not told again.
        let mut fresh = !resumed;
        loop {
            if fresh {
                solver.look(operator)?;
                self.cancel.go_on()?;
            }
            state.look_at(clock.seconds());
            let mut check = self.check_residuals(solver, operator)?;
            if fresh {
                let record = self.record(solver, &check, operator, clock.seconds());
                stop |= self.tell_look(solver, &record, check.certificate.as_ref());
                state.history.push(record);
            }
            let accepted = check.certificate.as_ref().is_some_and(|seen| self.accepts(seen));
            let enough = accepted && self.limits.accuracy == Accuracy::Tolerance;
            if fresh && check.may_stagnate(enough) {
                state.stagnation.see(check.excess);
            }
            let at_floor = check.may_stagnate(enough)
                && (solver.is_final() || state.stagnation.is_reached(check.excess));
            // At the floor of the precision, or locked there, what is accepted has converged to rounding.
            let holds = enough || accepted && (at_floor || check.all_locked);
            let leading = if holds { leading(&check, solver, operator)? } else { Leading::Searched };
            let spent = self.is_spent(operator, solver, state);
            let end = if leading == Leading::Unchallenged {
                Some(Outcome::Converged)
            } else if leading == Leading::Contradicted || at_floor && !holds {
                Some(Outcome::Stagnated)
            } else if stop || self.cancel.is_cancelled() {
                Some(Outcome::Interrupted)
            } else if !holds && self.forecast_exceeds(solver) {
                self.gave_up = true;
                Some(Outcome::Budget)
            } else {
                spent.then_some(Outcome::Budget)
            };
            if holds && leading == Leading::Searched {
                // Small residuals, but perhaps not of the leading vectors: when those come up, residuals grow once more.
                (state.best, state.stagnation) = (None, StagnationTest::default());
                check.certificate = None;
            }
            self.offer(solver, operator, state, clock.seconds(), end)?;
            if let Some(outcome) = end {
                return Ok((outcome, check.certificate));
            }
            if let Some(certificate) = check.certificate.filter(|seen| state.is_better(seen)) {
                state.best = Some((solver.pairs().vectors.clone(), certificate));
            }
            if check.bound_will_fall {
                state.stagnation = StagnationTest::default();
            }
            if state.may_run_out_of_time(self.limits.max_seconds) {
                self.keep(solver, operator, state, clock.seconds())?;
                self.cancel.break_off_in(self.limits.max_seconds - clock.seconds());
            }
            solver.step(operator)?;
            fresh = true;
        }
    }

    /// Keeps what the look just taken showed, for the time to run out before the next one.
    fn keep<O: CovarianceOperator>(
        &mut self,
        solver: &mut dyn Solver,
        operator: &mut Counted<O>,
        state: &mut RunState,
        seconds: f64,
    ) -> Result<(), Error> {
        solver.form_pairs(operator)?;
        let certificate = certify(solver, operator);
        state.kept = Some((solver.pairs().vectors.clone(), certificate));
        self.offer(solver, operator, state, seconds, Some(Outcome::Budget))
    }

    /// Whether more looks lie ahead than they are worth.
    fn forecast_exceeds(&self, solver: &dyn Solver) -> bool {
        let left = self.looks_worth.and_then(|worth| Some(solver.looks_left(self.limits.aim())? > worth));
        left.unwrap_or(false)
    }

    /// Whether a certificate is all that was asked for.
    fn accepts(&self, certificate: &Certificate) -> bool {
        let angle = self.limits.angle.is_none_or(|angle| {
            let nothing_varies = certificate.status.iter().all(|status| *status == Status::NoVariance);
            nothing_varies || certificate.subspace_angle_bound.is_some_and(|bound| bound <= angle)
        });
        angle && certificate.holds(self.limits.tol)
    }

    /// Refuses settings that no run can have.
    fn check_settings(&self, d: usize) -> Result<(), Error> {
        self.limits.check()?;
        match self.reference {
            Some(u1) if u1.len() != d => {
                Err(Error::shape("coordinates of the reference vector", d, u1.len()))
            }
            _ => Ok(()),
        }
    }

    /// Whether one more step would leave the budget.
    fn is_spent<O: CovarianceOperator>(
        &self,
        operator: &Counted<O>,
        solver: &dyn Solver,
        state: &RunState,
    ) -> bool {
        let passes_then = operator.passes() + solver.passes_ahead(operator.n_rows());
        let seconds = state.history.last().map_or(0.0, |record| record.seconds);
        // A whisker of room: passes are sums of many fractions.
        passes_then > self.limits.max_passes * (1.0 + 1e-12) || seconds >= self.limits.max_seconds
    }

    /// Offers the run, as it is, to the sink.
    fn offer<O: CovarianceOperator>(
        &mut self,
        solver: &mut dyn Solver,
        operator: &mut Counted<O>,
        state: &mut RunState,
        seconds: f64,
        end: Option<Outcome>,
    ) -> Result<(), Error> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        let progress = Progress { passes: operator.passes(), seconds, ends: end.is_some() };
        if !sink.wants(progress) {
            return Ok(());
        }
        let read = operator.read();
        // A run that left the range of numbers has nothing to go on from.
        match State::of(|archive| walk(solver, operator, state, archive)) {
            Ok(saved) => sink.save(Paused { state: saved, history: state.history.clone(), read, seconds }),
            Err(_) => Ok(()),
        }
    }

    /// Whether any observer wants to stop.
    fn tell(&mut self, event: &Event<'_>) -> bool {
        // All are told, also after one said stop.
        self.observers.iter_mut().fold(false, |stop, o| stop | (o.notify(event) == ControlFlow::Break(())))
    }

    fn tell_start(&mut self, solver: &dyn Solver, shape: Shape, resumed: Option<&[Record]>) -> bool {
        let Shape { n, d } = shape;
        let k = solver.n_components();
        let mut stop = self.tell(&Event::Started { solver: solver.name(), n, d, k });
        if let Some(history) = resumed {
            stop |= self.tell(&Event::Resumed { history });
        }
        stop
    }

    fn tell_look(
        &mut self,
        solver: &mut dyn Solver,
        record: &Record,
        certificate: Option<&Certificate>,
    ) -> bool {
        let vectors = certificate.map(|_| solver.pairs().vectors);
        self.tell(&Event::Looked { record, certificate, vectors })
    }

    /// What the look just taken showed. Forming vectors costs a product with a whole basis: where the solver knows without
    /// them that they miss the tolerance, there is no certificate.
    fn check_residuals<O: CovarianceOperator>(
        &self,
        solver: &mut dyn Solver,
        operator: &mut Counted<O>,
    ) -> Result<ResidualCheck, Error> {
        let wanted = self.reference.is_some() || self.observers.iter().any(|o| o.wants_iterates());
        if let Some(estimate) = solver.residual_estimate()
            && !wanted
            && estimate.misses(self.limits.tol)
        {
            let each = |i: usize| Residual {
                theta: estimate.thetas[i],
                measured: estimate.residuals[i],
                floor: estimate.image_error,
            };
            let open: Vec<Residual> = (0..estimate.thetas.len()).map(each).collect();
            return Ok(ResidualCheck::new(&open, &open, estimate.bound_will_fall, None));
        }
        solver.form_pairs(operator)?;
        let will_fall = solver.residual_estimate().is_some_and(|estimate| estimate.bound_will_fall);
        let bound_will_fall = solver.pairs().may_lock || will_fall;
        let locked = solver.pairs().locked.last().map_or(0, |group| group.end);
        let certificate = certify(solver, operator);
        let each = |i: usize| Residual {
            theta: certificate.eigenvalues[i],
            measured: certificate.residuals[i] - certificate.rounding(i),
            floor: certificate.rounding(i),
        };
        let k = certificate.eigenvalues.len();
        let all: Vec<Residual> = (0..k).map(each).collect();
        let holds = |i: &usize| certificate.component_holds(*i, self.limits.aim());
        let open: Vec<Residual> = (0..k).filter(|i| !holds(i)).map(each).collect();
        // Where a bound on the angle is asked for besides, all residuals count.
        let open = if open.is_empty() { &all } else { &open };
        let all_locked = locked > 0 && certificate.n_varying() <= locked;
        Ok(ResidualCheck { all_locked, ..ResidualCheck::new(&all, open, bound_will_fall, Some(certificate)) })
    }

    fn record<O: CovarianceOperator>(
        &self,
        solver: &mut dyn Solver,
        check: &ResidualCheck,
        operator: &Counted<O>,
        seconds: f64,
    ) -> Record {
        let parameters = solver.parameters();
        Record {
            passes: operator.passes(),
            full_passes: operator.read().full_passes,
            seconds,
            theta: check.theta,
            residual: check.residual,
            eta: parameters.eta,
            beta: parameters.beta,
            lambda2: parameters.lambda2,
            error: self.reference.map(|u1| squared_sine(&solver.pairs().vectors.column(0), u1)),
        }
    }
}

/// What a look showed of one component.
#[derive(Clone, Copy)]
struct Residual {
    theta: f64,
    /// Without rounding.
    measured: f64,
    /// The bound on rounding.
    floor: f64,
}

impl Residual {
    /// ρ/θ; what has no positive θ has no place among those that are compared.
    fn relative(&self) -> f64 {
        if self.theta > 0.0 { (self.measured + self.floor) / self.theta } else { f64::NEG_INFINITY }
    }

    /// The residual as a multiple of its rounding.
    fn excess(&self) -> f64 {
        if self.measured > 0.0 { self.measured / self.floor } else { self.measured.abs() }
    }
}

/// What a look showed.
struct ResidualCheck {
    /// Of the component that is furthest from its tolerance.
    theta: f64,
    residual: f64,
    /// How far the residuals that are too large are above their rounding, at most.
    excess: f64,
    /// Whether a look to come lowers the bound on rounding.
    bound_will_fall: bool,
    /// Whether every component with variance is locked.
    all_locked: bool,
    /// None where it would not hold.
    certificate: Option<Certificate>,
}

impl ResidualCheck {
    fn new(
        all: &[Residual],
        open: &[Residual],
        bound_will_fall: bool,
        certificate: Option<Certificate>,
    ) -> Self {
        let none = Residual { theta: 0.0, measured: 0.0, floor: 0.0 };
        let first = all.first().copied().unwrap_or(none);
        let worst = all.iter().copied().fold(first, |a, b| if b.relative() > a.relative() { b } else { a });
        let excess = largest(open.iter().map(Residual::excess));
        let residual = worst.measured + worst.floor;
        Self { theta: worst.theta, residual, excess, bound_will_fall, all_locked: false, certificate }
    }

    /// Whether rounding may be all that is left: not where the tolerance is met, nor where the bound on rounding is about to fall.
    fn may_stagnate(&self, holds: bool) -> bool {
        !holds && !self.bound_will_fall
    }
}

/// Whether residuals within the tolerance are those of the leading vectors, as far as that can be told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leading {
    /// Nothing speaks against it.
    Unchallenged,
    /// The solver goes on looking for others, away from what was certified.
    Searched,
    /// The trace proves that they are not, and the solver cannot search.
    Contradicted,
}

fn leading<O: CovarianceOperator>(
    check: &ResidualCheck,
    solver: &mut dyn Solver,
    operator: &Counted<O>,
) -> Result<Leading, Error> {
    let Shape { n, d } = operator.shape();
    let contradicted = check
        .certificate
        .as_ref()
        .is_some_and(|seen| seen.is_contradicted_by_trace(operator.total_variance(), n.min(d)));
    Ok(if contradicted {
        if solver.search()? { Leading::Searched } else { Leading::Contradicted }
    } else if solver.may_miss_multiplicity()? {
        Leading::Searched
    } else {
        Leading::Unchallenged
    })
}

/// Gives a run everything back.
fn restore(
    paused: Paused,
    solver: &mut dyn Solver,
    operator: &mut dyn CovarianceOperator,
) -> Result<RunState, Error> {
    let mut state = RunState { history: paused.history, ..RunState::default() };
    paused.state.restore(|archive| walk(solver, operator, &mut state, archive))?;
    if state.history.is_empty() {
        return Err(Error::Checkpoint("its history is empty".into()));
    }
    Ok(state)
}

/// Names all numbers of a run.
fn walk(
    solver: &mut dyn Solver,
    operator: &mut dyn CovarianceOperator,
    state: &mut RunState,
    archive: &mut Archive<'_>,
) -> Result<(), Error> {
    let (d, k) = (operator.dim(), solver.n_components());
    archive.part("solver", |archive| solver.archive(archive))?;
    archive.part("operator", |archive| operator.archive_state(archive))?;
    archive.part("driver", |archive| state.archive(d, k, archive))
}

/// The certificate of the solver's pairs. What two iterates of one vector suggest for λ₂ lies below it, and is no ground for a bound.
fn certify(solver: &mut dyn Solver, operator: &dyn CovarianceOperator) -> Certificate {
    let mut pairs: Pairs<'_> = solver.pairs();
    if pairs.next == Next::Unknown && pairs.vectors.d() == pairs.vectors.p() {
        pairs.next = Next::Nothing;
    }
    Certificate::new(pairs, operator.total_variance())
}

/// sin²∠(w, u) = ‖w − (wᵀu)u‖²/‖w‖² for a unit vector u: the error 1 − (wᵀu)² without its cancellation.
pub(crate) fn squared_sine(w: &[f64], u: &[f64]) -> f64 {
    let along = crate::block::dot(w, u);
    let across: Vec<f64> = w.iter().zip(u).map(|(w, u)| w - along * u).collect();
    (crate::block::norm(&across) / crate::block::norm(w)).powi(2)
}
