//! From data and a few choices to a certified model: the front door.

mod genotypes;
mod in_memory;
mod missing;
mod moments;
mod on_disk;
mod on_partitions;
mod on_ranks;
mod operator;
mod source;

use std::num::NonZero;
use std::ops::RangeInclusive;
use std::sync::OnceLock;

use crate::cancel::CancelToken;
use crate::certificate::Next;
use crate::checkpoint::{Checkpoints, Session};
use crate::choose::{Plan, StepSize, StreamPlan, sample_rows};
use crate::columns::{Scaling, check_weights};
use crate::config::FitConfig;
use crate::matrix::{Matrix, RowChunks};
use crate::missing::{Holes, Missing, MissingReport, RowSurvey, Surveyed};
use crate::model::most_likely_dimension;
use crate::moments::Moments;
use crate::observe::{Event, Observer, Record};
use crate::operator::{CovarianceOperator, RowsRead, Shape};
use crate::probe::{ProbeConfig, ProbeResult, ProbeSeed, probe};
use crate::solver::SolverKind;
use crate::stopwatch::Stopwatch;
use crate::{Block, Certificate, Driver, Error, Model, Outcome, Report, Summary, ordered};
use in_memory::InMemory;
pub use missing::CompletedFit;
use missing::Rounded;
use moments::FromMoments;
use on_disk::{Holed, OnDiskRun};
pub use on_ranks::RankRows;
use operator::GivenOperator;
use source::Source;

/// A certified model and how it came about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fit {
    /// Components and variances.
    pub model: Model,
    /// What is proved about them.
    pub certificate: Certificate,
    /// How the run ended.
    pub outcome: Outcome,
    /// The solver that ran.
    pub solver: SolverKind,
    /// Why this solver.
    pub chosen_because: String,
    /// Numbers of components that may be the fewest for the share of variance asked for, where residuals leave more than one.
    pub possible_k: Option<RangeInclusive<usize>>,
    /// One record for every outer iterate.
    pub history: Vec<Record>,
    /// Rows read by the solver, divided by n.
    pub passes: f64,
    /// Complete passes of the solver.
    pub full_passes: u64,
    /// Passes for column statistics, not counted in `passes`; none where another pass gathers them on its way.
    pub statistics_passes: f64,
    /// Passes of the probe, not counted in `passes`.
    pub probe_passes: u64,
    /// What the probe found, where one was asked for.
    pub probe: Option<ProbeResult>,
    /// What was done about missing values, where there were such.
    pub missing: Option<MissingReport>,
    /// Bytes read from disk; none for a matrix in memory.
    pub bytes_read: u64,
    /// Seconds of the solver and of the column statistics.
    pub seconds: f64,
    /// The seed.
    pub seed: u64,
    /// Threads used.
    pub threads: usize,
    /// Ranks that held the rows.
    pub ranks: usize,
}

impl Fit {
    /// A run in memory as if it had been interrupted at an iterate, which is the last of `history`.
    pub fn at_iterate(
        model: Model,
        certificate: Certificate,
        solver: SolverKind,
        history: Vec<Record>,
        config: &FitConfig,
    ) -> Self {
        let now = history.last().cloned().unwrap_or_default();
        Self {
            model,
            certificate,
            outcome: Outcome::Interrupted,
            solver,
            chosen_because: "the fit still runs".to_owned(),
            possible_k: None,
            history,
            passes: now.passes,
            full_passes: now.full_passes,
            statistics_passes: 1.0,
            probe_passes: 0,
            probe: None,
            missing: None,
            bytes_read: 0,
            seconds: now.seconds,
            seed: config.seed,
            threads: config.threads,
            ranks: 1,
        }
    }
}

/// Threads that this machine runs at once. More would take turns, and none is started beyond. Asked once: the system reads files for it.
pub fn most_threads() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get))
}

/// Threads that are started at most. Builds for development start a few on any machine, so that tests of the same bits compare something.
fn startable_threads() -> usize {
    const IN_TESTS: usize = 8;
    if cfg!(debug_assertions) { most_threads().max(IN_TESTS) } else { most_threads() }
}

/// A fit about to be made: the choices, and what belongs to this one alone.
///
/// ```
/// use std::ops::ControlFlow;
/// use hbpca::{Dense, Event, FitConfig, Matrix};
/// let x: Matrix = Dense::new(vec![2.0, 1.0, -2.0, -1.0, 0.1, -0.2, -0.1, 0.2], 4, 2)?.into();
/// let mut looks = 0;
/// let mut count = |event: &Event<'_>| {
///     looks += usize::from(matches!(event, Event::Looked { .. }));
///     ControlFlow::Continue(())
/// };
/// let fit = FitConfig::default().run().weights(&[1.0, 1.0, 2.0, 2.0][..]).observer(&mut count).fit(&x)?;
/// assert_eq!(fit.model.summary().weight, 6.0);
/// assert_eq!(looks, fit.history.len());
/// # Ok::<(), hbpca::Error>(())
/// ```
#[must_use]
pub struct Run<'a> {
    config: &'a FitConfig,
    weights: Option<&'a [f64]>,
    narrowed: bool,
    observers: Vec<&'a mut (dyn Observer + Send)>,
    cancel: CancelToken,
    checkpoints: Checkpoints<'a>,
    survey: Option<RowSurvey>,
}

impl FitConfig {
    /// A fit with these choices, to which weights, observers, a cancel token and checkpoints may be added.
    pub fn run(&self) -> Run<'_> {
        let (observers, checkpoints) = (Vec::new(), Checkpoints::default());
        Run {
            config: self,
            weights: None,
            narrowed: false,
            observers,
            cancel: CancelToken::default(),
            checkpoints,
            survey: None,
        }
    }

    /// Fits a matrix in memory.
    pub fn fit(&self, matrix: &Matrix<'_>) -> Result<Fit, Error> {
        self.run().fit(matrix)
    }

    /// Fits whatever has products with a covariance.
    pub fn fit_operator(&self, operator: &mut dyn CovarianceOperator) -> Result<Fit, Error> {
        self.run().fit_operator(operator)
    }

    /// Fits rows of which only the moments are known: `covariance` without its pass. Every row was read once for its column
    /// statistics and once for the scatter, and is counted so.
    pub fn fit_moments(&self, moments: &Moments) -> Result<Fit, Error> {
        if !matches!(self.solver, SolverKind::Auto | SolverKind::Covariance) {
            let advice = "of rows that come in chunks only the covariance is kept: choose auto or covariance";
            return Err(Error::parameter("solver", self.solver, advice));
        }
        self.refuse_scale_of_genotypes()?;
        self.check(moments.n_rows(), moments.n_cols())?;
        self.on_threads(usize::MAX, || {
            let session = Session::new(self, Checkpoints::default())?;
            let (clock, source) = (Stopwatch::start(), FromMoments::new(moments, self));
            run_on(source, self, session, &clock, &CancelToken::default(), &mut [])
        })
    }

    /// The moments of rows, and of those before them, on as many threads as are chosen.
    pub fn moments(
        &self,
        before: Option<Moments>,
        matrix: &Matrix<'_>,
        weights: Option<&[f64]>,
    ) -> Result<Moments, Error> {
        let dropping = self.dropping(matrix, weights)?;
        let weights = dropping.as_deref().or(weights);
        self.on_threads_for(matrix, || match before {
            None => Moments::of(matrix, weights),
            Some(mut all) => all.add(matrix, weights).map(|()| all),
        })
    }

    /// Holes are looked for in one matrix, or in rows of one disk.
    fn refuse_missing(&self, of: &str) -> Result<(), Error> {
        if self.missing == Missing::Error {
            return Ok(());
        }
        let advice = format!("{of} can have no missing values yet: fill them in or drop rows first");
        Err(Error::parameter("missing", self.missing, advice))
    }

    /// For rows of which only moments are kept: weights that are 0 where a row with holes is dropped. What has to know all rows is refused.
    fn dropping(&self, matrix: &Matrix<'_>, weights: Option<&[f64]>) -> Result<Option<Vec<f64>>, Error> {
        if self.missing == Missing::Error {
            return Ok(None);
        }
        let (holes, n) = (Holes::of(matrix), matrix.n_rows());
        if holes.is_empty() {
            return Ok(None);
        }
        if self.missing != Missing::DropRows {
            let advice = "of rows that come in chunks only drop-rows is possible: mean and em have to know all of them";
            return Err(Error::parameter("missing", self.missing, advice));
        }
        weights.map_or(Ok(()), |weights| check_weights(n, weights))?;
        let mut weights = weights.map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
        holes.rows().iter().for_each(|&l| weights[l] = 0.0);
        Ok(Some(weights))
    }

    /// Only genotypes have allele frequencies.
    fn refuse_scale_of_genotypes(&self) -> Result<(), Error> {
        if self.preprocessing.scaling != Scaling::Hwe {
            return Ok(());
        }
        let advice = "it is a scale of genotypes alone: give a .bed file, or choose std";
        Err(Error::parameter("scale", Scaling::Hwe.name(), advice))
    }

    /// Whether a fit of this matrix is done by the thread that asks for it: starting others would take longer.
    fn stays_on_thread(&self, matrix: &Matrix<'_>) -> bool {
        self.threads == 0 && matrix.is_small()
    }

    /// Runs `work` with a matrix on as many threads as are worth starting, or as were asked for.
    fn on_threads_for<T: Send>(
        &self,
        matrix: &Matrix<'_>,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        if self.stays_on_thread(matrix) { ordered::alone(work) } else { self.on_threads(usize::MAX, work) }
    }

    /// Runs `work` on as many threads as asked for, but at most `most`.
    pub(crate) fn on_threads<T: Send>(
        &self,
        most: usize,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        self.thread_pool(most)?.install(work)
    }

    /// As many threads as asked for, but at most `most`.
    fn thread_pool(&self, most: usize) -> Result<rayon::ThreadPool, Error> {
        let threads = match self.threads {
            0 if most == usize::MAX => 0,
            0 => most_threads().min(most),
            asked => asked.min(most).min(startable_threads()),
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.map_err(|error| Error::Numerical(format!("{threads} threads could not be started: {error}")))
    }
}

impl<'a> Run<'a> {
    /// A weight for every row; a row of weight 2 counts as two equal rows.
    pub fn weights(mut self, weights: impl Into<Option<&'a [f64]>>) -> Self {
        self.weights = weights.into();
        self
    }

    /// The rows of a matrix in memory were rounded to single precision before they came here. The certificate is about the rows as they were, and
    /// counts that.
    pub fn rounded_from_double(mut self) -> Self {
        self.narrowed = true;
        self
    }

    /// Tells `observer` what happens.
    pub fn observer(mut self, observer: &'a mut (dyn Observer + Send)) -> Self {
        self.observers.push(observer);
        self
    }

    /// Tells several observers.
    pub fn observers<'o: 'a>(mut self, observers: &'a mut [&'o mut (dyn Observer + Send + 'o)]) -> Self {
        self.observers.extend(observers.iter_mut().map(|observer| &mut **observer as _));
        self
    }

    /// Stops when `token` says so, in the middle of a pass if it is abandoned.
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.cancel = token.with_own_time();
        self
    }

    /// Is saved while it runs, or goes on from where one was saved: the result has the same bits as without a break.
    ///
    /// ```
    /// use hbpca::checkpoint::{Checkpoint, Checkpoints};
    /// use hbpca::{Dense, FitConfig, Matrix, SolverKind};
    /// let x: Matrix = Dense::new(vec![2.0, 1.0, -2.0, -1.0, 0.1, -0.2, -0.1, 0.2], 4, 2)?.into();
    /// let config = FitConfig { solver: SolverKind::Power, ..FitConfig::default() };
    /// let mut saved = Vec::new();
    /// let save = |checkpoint: &Checkpoint| Ok(saved.push(checkpoint.clone()));
    /// let data = x.fingerprint(None);
    /// let checkpoints = Checkpoints { data: data.clone(), save: Some(Box::new(save)), ..Checkpoints::default() };
    /// let whole = config.run().checkpoints(checkpoints).fit(&x)?;
    ///
    /// let resume = Some(saved[0].clone());
    /// let resumed = config.run().checkpoints(Checkpoints { data, resume, ..Checkpoints::default() }).fit(&x)?;
    /// assert_eq!(resumed.model, whole.model);
    /// assert_eq!(resumed.passes, whole.passes);
    /// # Ok::<(), hbpca::Error>(())
    /// ```
    pub fn checkpoints(mut self, checkpoints: Checkpoints<'a>) -> Self {
        self.checkpoints = checkpoints;
        self
    }

    /// The rows to be streamed were surveyed in a pass before, with the same weights and the same choice for holes. No single rows are read then.
    pub fn surveyed(mut self, survey: RowSurvey) -> Self {
        self.survey = Some(survey);
        self
    }

    /// Fits a matrix in memory. One with holes is copied, unless these are an error ([`fit_completing`](Self::fit_completing) fills it in place).
    pub fn fit(self, matrix: &Matrix<'_>) -> Result<Fit, Error> {
        if self.config.missing != Missing::Error && !Holes::of(matrix).is_empty() {
            return Ok(self.fit_completing(matrix.clone())?.fit);
        }
        let Self { config, weights, narrowed, mut observers, cancel, checkpoints, .. } = self;
        let rounded = Rounded { narrowed, filling: None };
        fit_matrix(config, matrix, weights, rounded, &mut observers, &cancel, checkpoints)
    }

    /// Fits rows that are read from disk in every pass, in at most `memory` bytes; weights are part of them.
    pub fn fit_streamed(self, mut rows: impl RowChunks, memory: u64) -> Result<Fit, Error> {
        let beside = self.config.bytes_of_weights(rows.n_rows(), self.weights);
        let plan = self.config.plan_streamed_beside(&mut rows, memory, beside)?;
        self.fit_planned(rows, plan)
    }

    /// The same for rows that a [plan](FitConfig::plan_streamed) was made for, which tells what this will cost. Where holes are no error, all rows are read once
    /// more to find them.
    pub fn fit_planned(self, mut rows: impl RowChunks, plan: StreamPlan) -> Result<Fit, Error> {
        self.config.refuse_scale_of_genotypes()?;
        let Self { config, weights, mut observers, cancel, checkpoints, survey, narrowed } = self;
        let checkpoints = on_disk::with_fingerprint(checkpoints, &mut rows, weights, &plan)?;
        let checkpoints = missing::naming(checkpoints, config);
        let found = survey.map(|survey| survey.finish(weights, config.missing)).transpose()?;
        if config.missing != Missing::Error {
            let run = Self { config, weights, narrowed, observers, cancel, checkpoints, survey: None };
            return run.fit_planned_completing(rows, plan, found);
        }
        let surveyed = found.map(|(surveyed, _)| surveyed);
        let scans = surveyed.as_ref().map_or(0, Surveyed::scans);
        OnDiskRun { config, plan, cancel: &cancel, observers: &mut observers, checkpoints, surveyed }.fit(
            rows,
            weights,
            Holed { scans, filling: None },
        )
    }

    /// Fits whatever has products with a covariance, on the current thread pool. Rows are as the operator has them: neither centring nor
    /// scaling is added here, weights are refused, and a step size not given is 0.1.
    pub fn fit_operator(self, operator: &mut dyn CovarianceOperator) -> Result<Fit, Error> {
        self.refuse_weights("an operator")?;
        let Self { config, mut observers, cancel, checkpoints, .. } = self;
        let Shape { n, d } = operator.shape();
        config.check(n, d)?;
        let session = Session::new(config, checkpoints)?;
        let clock = session.clock();
        run_on(GivenOperator::new(operator), config, session, &clock, &cancel, &mut observers)
    }
}

/// Fits a matrix in memory that has no holes, or whose holes are an error.
fn fit_matrix(
    config: &FitConfig,
    matrix: &Matrix<'_>,
    weights: Option<&[f64]>,
    rounded: Rounded<'_>,
    observers: &mut [&mut (dyn Observer + Send)],
    cancel: &CancelToken,
    checkpoints: Checkpoints<'_>,
) -> Result<Fit, Error> {
    weights.map_or(Ok(()), |weights| check_weights(matrix.n_rows(), weights))?;
    let counting = weights.and_then(|weights| matrix.rows_that_count(weights));
    let counting = counting.map(|(rows, weights)| (matrix.select_rows(&rows), weights));
    let (matrix, weights) = match &counting {
        Some((matrix, weights)) => (matrix, Some(&weights[..])),
        None => (matrix, weights),
    };
    config.refuse_scale_of_genotypes()?;
    config.check(matrix.n_rows(), matrix.n_cols())?;
    let session = Session::new(config, checkpoints)?;
    let fit = config.on_threads_for(matrix, || {
        config.check_memory(matrix)?;
        let clock = session.clock();
        let source = InMemory::new(matrix, weights, rounded, config, &session, cancel)?;
        observers.iter_mut().for_each(|observer| source.announce(&mut **observer));
        run_on(source, config, session, &clock, cancel, observers)
    })?;
    Ok(if config.stays_on_thread(matrix) { Fit { threads: 1, ..fit } } else { fit })
}

impl Run<'_> {
    /// What has no rows takes no weights, and must not seem to.
    fn refuse_weights(&self, of: &str) -> Result<(), Error> {
        match self.weights {
            None => Ok(()),
            Some(weights) => {
                let advice = format!("{of} cannot take any: fit its rows, or leave them out");
                Err(Error::parameter("weights", format!("{} numbers", weights.len()), advice))
            }
        }
    }
}

/// Plans, runs and certifies, with more components where a share of variance asks for them.
fn run_on(
    mut source: impl Source,
    config: &FitConfig,
    mut session: Session<'_>,
    clock: &Stopwatch,
    cancel: &CancelToken,
    observers: &mut [&mut (dyn Observer + Send)],
) -> Result<Fit, Error> {
    let shape = source.shape();
    let most = shape.n.min(shape.d);
    let iterates_wanted = observers.iter().any(|observer| observer.wants_iterates());
    let mut run = config.clone();
    let mut read = RowsRead::default();
    // What was learned of the solver that was chosen first.
    let mut learned: Option<String> = None;
    let (report, plan) = loop {
        let resumed = session.resume(&mut run);
        let mut plan = source.plan(&run, iterates_wanted)?;
        if let Some(because) = &learned {
            plan.chosen_because.clone_from(because);
        }
        let paused = if let Some((chosen_because, paused)) = resumed {
            plan.chosen_because = chosen_because;
            if run.solver != config.solver {
                let chosen = FitConfig { solver: config.solver, ..run.clone() };
                plan.looks_worth = source.plan(&chosen, iterates_wanted)?.looks_worth;
            }
            tell_earlier(&session, observers);
            Some(paused)
        } else {
            (run.solver, run.k) = (plan.solver, plan.k);
            find_step_size(&source, &plan, &mut run, &mut read)?;
            None
        };
        run.check(shape.n, shape.d)?;
        let mut driver = Driver::new(run.limits).having_read(read).cancelled_by(cancel);
        driver = driver.unless_looks_exceed(plan.looks_worth.filter(|_| run.solver == SolverKind::Krylov));
        for observer in &mut *observers {
            driver = driver.observer(&mut **observer);
        }
        let mut sink = session.sink(&run, &plan.chosen_because, source.statistics(), clock);
        if let Some(sink) = &mut sink {
            driver = driver.checkpoints(sink);
        }
        if let Some(paused) = paused {
            driver = driver.resuming(paused);
        }
        let mut solver = plan.build(shape, &run)?;
        let report = driver.run(&mut *solver, source.operator())?;
        read = report.read;
        if report.gave_up {
            learned = Some(format!(
                "after {:.0} passes of krylov, which saw a spectrum that takes longer than forming C",
                report.passes
            ));
            session.outgrow(report.history);
            run.solver = SolverKind::Covariance;
            continue;
        }
        let Some(k) = more_components(&run, &report, source.total_variance()?, most) else {
            break (report, plan);
        };
        session.outgrow(report.history);
        let solver = if learned.is_some() { SolverKind::Covariance } else { config.solver };
        run = FitConfig { solver, ..run.with_components(k, report.vectors) };
    };
    finish(&mut source, config, &run, report, plan, clock)
}

/// What happened before the run that is resumed, for observers to hear of.
fn tell_earlier(session: &Session<'_>, observers: &mut [&mut (dyn Observer + Send)]) {
    let history = session.earlier();
    observers.iter_mut().filter(|_| !history.is_empty()).for_each(|observer| {
        // An observer that wants to stop can say so at the first look.
        let _ = observer.notify(&Event::Resumed { history });
    });
}

/// Finds η from a sample of the rows, counted in `read`, where one is wanted and the source has such a sample.
fn find_step_size(
    source: &impl Source,
    plan: &Plan,
    run: &mut FitConfig,
    read: &mut RowsRead,
) -> Result<(), Error> {
    let Shape { n, d } = source.shape();
    if StepSize::is_wanted(run, plan.solver, n, d)
        && let Some(sample) = source.sample(sample_rows(n), run.seed)?
    {
        let (map, _) = source.columns()?;
        let found = StepSize::of_sample(&sample, n, &map, plan.solver, run)?;
        read.rows += found.rows_read;
        run.eta = Some(found.eta);
    }
    Ok(())
}

/// With a share of variance asked for and not yet reached: how many components to ask for next.
fn more_components(run: &FitConfig, report: &Report, total_variance: f64, most: usize) -> Option<usize> {
    let share = run.variance_share?;
    let stopped = matches!(report.outcome, Outcome::Interrupted | Outcome::Budget);
    let spent = report.passes + 1.0 > run.limits.max_passes || stopped;
    let explained = components_of_share(&report.certificate.eigenvalues, share, total_variance).is_some();
    let enough = explained || run.k == most || spent;
    (!enough).then(|| (2 * run.k.max(4)).min(most))
}

/// How many leading components it takes to explain more than a share of the variance, or all of it.
fn components_of_share(eigenvalues: &[f64], share: f64, total_variance: f64) -> Option<usize> {
    let mut explained = 0.0;
    let last = eigenvalues.iter().position(|x| {
        explained += if total_variance > 0.0 { x / total_variance } else { 1.0 };
        explained > share || explained >= 1.0
    });
    last.map(|last| last + 1)
}

/// Puts the model together.
fn finish(
    source: &mut impl Source,
    config: &FitConfig,
    run: &FitConfig,
    report: Report,
    plan: Plan,
    clock: &Stopwatch,
) -> Result<Fit, Error> {
    let Shape { n, d } = source.shape();
    let total_variance = source.total_variance()?;
    let for_share = |share| report.certificate.components_for_share(share, total_variance);
    let possible_k = run.variance_share.map(for_share).filter(|k| k.start() < k.end());
    let (vectors, certificate) = run.cut_to_share(report.vectors, report.certificate, total_variance);
    let (certificate, probe) = probed(source.operator(), config, &vectors, certificate, report.outcome)?;
    // A probe that finds more variance than the last component has proves that the answer does not lead.
    let refuted = probe.is_some_and(|probe| certificate.is_refuted_by(probe.least));
    let outcome =
        if refuted && report.outcome == Outcome::Converged { Outcome::Stagnated } else { report.outcome };
    let (map, weight) = source.columns()?;
    let summary = Summary {
        n,
        d,
        weight,
        preprocessing: source.preprocessing(config),
        eigenvalues: certificate.eigenvalues.clone(),
        residuals: certificate.residuals.clone(),
        image_rounding: certificate.image_rounding,
        total_variance: map.total_variance(),
    };
    Ok(Fit {
        model: Model::new(&vectors, summary, &map)?,
        certificate,
        outcome,
        solver: run.solver,
        chosen_because: plan.chosen_because,
        possible_k,
        history: report.history,
        passes: report.passes,
        full_passes: report.read.full_passes,
        statistics_passes: source.statistics_passes(),
        probe_passes: probe.as_ref().map_or(0, |probe| probe.passes),
        probe,
        missing: None,
        bytes_read: source.bytes_read(),
        seconds: clock.seconds(),
        seed: config.seed,
        threads: rayon::current_num_threads(),
        ranks: 1,
    })
}

/// The certificate after a probe of the components with variance, where one is asked for.
fn probed(
    operator: &mut dyn CovarianceOperator,
    config: &FitConfig,
    vectors: &Block,
    certificate: Certificate,
    outcome: Outcome,
) -> Result<(Certificate, Option<ProbeResult>), Error> {
    let (Some(failure_probability), varying) = (config.certify, certificate.n_varying()) else {
        return Ok((certificate, None));
    };
    if varying == 0 || certificate.gap_is_proved || outcome == Outcome::Interrupted {
        return Ok((certificate, None));
    }
    let seed = config.probe_seed.map_or(ProbeSeed::FromSystem, ProbeSeed::Given);
    let probing = ProbeConfig { failure_probability, seed, ..ProbeConfig::default() };
    let found = probe(operator, &vectors.leading(varying), &probing, certificate.probe_goal())?;
    let next = Next::Probable { bound: found.bound, failure_probability };
    let certificate = certificate.knowing(next, operator.total_variance(), vectors.d());
    Ok((certificate, Some(found)))
}

impl FitConfig {
    /// The fewest leading components that explain more than the share of variance asked for; all where none is.
    pub fn cut_to_share(
        &self,
        vectors: Block,
        certificate: Certificate,
        total_variance: f64,
    ) -> (Block, Certificate) {
        let Some(share) = self.variance_share else { return (vectors, certificate) };
        match components_of_share(&certificate.eigenvalues, share, total_variance) {
            Some(count) if count < vectors.p() => (vectors.leading(count), certificate.leading(count)),
            _ => (vectors, certificate),
        }
    }
}

impl Fit {
    /// Without the trailing components that have no variance; at least one is kept.
    ///
    /// ```
    /// use hbpca::{Dense, FitConfig, Matrix};
    /// // Three columns, but one direction.
    /// let x: Matrix = Dense::new(vec![1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 5.0, 10.0, 15.0, 0.0, 0.0, 0.0], 4, 3)?.into();
    /// let fit = FitConfig { k: 3, ..FitConfig::default() }.fit(&x)?;
    /// assert_eq!(fit.without_null_components().model.n_components(), 1);
    /// # Ok::<(), hbpca::Error>(())
    /// ```
    #[must_use]
    pub fn without_null_components(self) -> Self {
        let kept = self.n_with_variance().max(1);
        self.leading(kept)
    }

    /// The same, but that a single one stays: centred rows that are no more than the columns always have it. Of several, which are as many as rows are
    /// repeated, none does.
    #[must_use]
    pub fn without_several_null_components(self) -> Self {
        let single = self.n_with_variance() + 1 >= self.model.n_components();
        if single { self } else { self.without_null_components() }
    }

    /// Leading components that have variance.
    fn n_with_variance(&self) -> usize {
        let (k, summary) = (self.model.n_components(), self.model.summary());
        (0..k).take_while(|i| summary.has_variance(*i)).count()
    }

    /// With the components that the spectrum speaks for, of a fit of all d ≤ n; at least one is kept.
    ///
    /// ```
    /// use hbpca::{Dense, FitConfig, Matrix};
    /// // Two columns of which the second is little but noise.
    /// let x = (0..40).flat_map(|i| [f64::from(i % 8), 0.1 * f64::from(i * i % 7)]).collect();
    /// let x: Matrix = Dense::new(x, 40, 2)?.into();
    /// let fit = FitConfig { k: 2, ..FitConfig::default() }.fit(&x)?;
    /// assert_eq!(fit.with_most_likely_dimension().model.n_components(), 1);
    /// # Ok::<(), hbpca::Error>(())
    /// ```
    #[must_use]
    pub fn with_most_likely_dimension(self) -> Self {
        let weight = self.model.summary().weight;
        let k = most_likely_dimension(&self.model.explained_variance(), weight);
        self.leading(k)
    }

    /// With the first `count` components: what is left out becomes noise. None may be left.
    #[must_use]
    pub fn leading(mut self, count: usize) -> Self {
        if count < self.model.n_components() {
            self.model.truncate(count);
            self.certificate = self.certificate.leading(count);
        }
        self
    }
}
