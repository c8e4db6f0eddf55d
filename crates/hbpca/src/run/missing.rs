//! Fits of data with holes.
//!
//! Expectation–maximisation of rank k on a matrix X with holes H:
//!
//! ```text
//! 1  X̂ ← X, the mean of its column in every hole
//! 2  repeat
//! 3      μ, D, U ← the fit of X̂ with k components, from those of the round before
//! 4      Y ← μ + DUz in H,  z the least of ‖a − Uz‖² + ρ‖z‖² over what a row has of a = D⁻¹(x − μ), the shortest where that leaves a choice
//! 5      if ‖D⁻¹(Y − X̂)‖_H/√|H| ≤ tol·√(tr C/d): return U, certified on X̂
//! 6      X̂ ← Y in H
//! ```
//!
//! Without scaling and ridge each round lessens Σ(x − μ − Uz)² over what is there. A fixed point is a stationary point of that sum; which one depends on
//! the start. A row with nothing in it is the mean, and a hole in a column that has one value is that value. Line 3 is a fit like any other: residuals and rounding are those of X̂, in f64.
//!
//! In memory X̂ is stored with its holes filled. Of rows on disk it is not: what line 4 fills in depends on μ, D, U and the row alone, and is computed when a
//! row is read ([`FilledRows`]). Line 5 then reads the chunks that have holes once more.

use super::on_disk::{Holed, OnDiskRun};
use super::{Fit, Run, fit_matrix};
use crate::checkpoint::Checkpoints;
use crate::choose::StreamPlan;
use crate::columns::{Centering, check_weights};
use crate::config::FitConfig;
use crate::limits::Limits;
use crate::matrix::{Matrix, RowChunks};
use crate::missing::{
    Completed, EmLimits, FilledRows, Filling, Holes, Missing, MissingReport, Scanned, ScannedChunks,
    StationaryPoint, Surveyed, complete,
};
use crate::observe::Observer;
use crate::stopwatch::Stopwatch;
use crate::{CancelToken, Error, Model, Outcome, Whitening};

/// A fit and the matrix that it speaks of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompletedFit<'m> {
    /// The fit.
    pub fit: Fit,
    /// The rows that were fitted: all of them with their holes filled, or those without holes.
    pub matrix: Matrix<'m>,
    /// Rows that were left out, ascending.
    pub dropped: Vec<usize>,
}

impl Run<'_> {
    /// Fits a matrix whose holes (NaN) become what [`FitConfig::missing`] says, and gives the completed matrix back. An owned matrix is filled in place, but that
    /// `em` makes f64 of f32.
    pub fn fit_completing(self, matrix: Matrix<'_>) -> Result<CompletedFit<'_>, Error> {
        let Self { config, weights, narrowed, mut observers, cancel, checkpoints, .. } = self;
        if config.missing == Missing::Em {
            config.em.check()?;
        }
        let checkpoints = naming(checkpoints, config);
        let completed = complete(matrix, weights, config.missing)?;
        let dropped = if completed.dropped > 0 { completed.holes.rows().to_vec() } else { Vec::new() };
        let mut report = MissingReport::of(&completed, config.missing);
        if config.missing == Missing::Em && !completed.holes.is_empty() {
            let Completed { matrix, weights, holes, filling: means, .. } = completed;
            let matrix = matrix.in_double();
            let (filling, ridge, cancel) = (Vec::new(), config.em.ridge, &cancel);
            let mut rows = FilledMatrix { matrix, holes, weights, narrowed, means, filling, ridge, cancel };
            let (mut fit, point) = em(&mut rows, config, &mut observers, cancel, checkpoints)?;
            report.stationary_point = Some(point);
            fit.missing = Some(report);
            return Ok(CompletedFit { fit, matrix: rows.matrix, dropped });
        }
        let Completed { matrix, weights, holes, filling, .. } = completed;
        let rounded = Rounded { narrowed, filling: filling.as_ref() };
        let mut fit =
            fit_matrix(config, &matrix, weights.as_deref(), rounded, &mut observers, &cancel, checkpoints)?;
        fit.missing = (!holes.is_empty() && config.missing != Missing::Error).then_some(report);
        Ok(CompletedFit { fit, matrix, dropped })
    }
}

/// Checkpoints whose data is the completed matrix: that of the same rows differs where their holes become something else.
pub(super) fn naming<'a>(checkpoints: Checkpoints<'a>, config: &FitConfig) -> Checkpoints<'a> {
    let data = match config.missing {
        Missing::Error => checkpoints.data,
        Missing::Em => format!("{}, completed by em {:?}", checkpoints.data, config.em),
        other => format!("{}, completed by {other}", checkpoints.data),
    };
    Checkpoints { data, ..checkpoints }
}

/// How entries were rounded before they came to a fit.
#[derive(Clone, Copy, Default)]
pub(super) struct Rounded<'a> {
    /// All of them, to single precision.
    pub(super) narrowed: bool,
    /// Those that were filled in.
    pub(super) filling: Option<&'a Filling>,
}

/// X̂, wherever it is.
pub(super) trait Filled {
    /// n, d and |H|.
    fn shape(&self) -> (usize, usize, usize);

    /// Line 3.
    fn fit(
        &mut self,
        config: &FitConfig,
        observers: &mut [&mut (dyn Observer + Send)],
        checkpoints: Checkpoints<'_>,
    ) -> Result<Fit, Error>;

    /// Lines 4 and 5: ‖D⁻¹(Y − X̂)‖²_H for the Y of `model`.
    fn change(&mut self, model: &Model) -> Result<f64, Error>;

    /// Line 6, for the Y of the last change.
    fn accept(&mut self);

    /// Rows, over n, and bytes that changes have read from disk.
    fn read(&self) -> (f64, u64) {
        (0.0, 0)
    }
}

/// Lines 2 to 6.
pub(super) fn em(
    rows: &mut dyn Filled,
    config: &FitConfig,
    observers: &mut [&mut (dyn Observer + Send)],
    cancel: &CancelToken,
    checkpoints: Checkpoints<'_>,
) -> Result<(Fit, StationaryPoint), Error> {
    let (n, d, n_holes) = rows.shape();
    refuse_full_rank(config, n, d)?;
    let (EmLimits { tol, max_rounds, ridge }, limits) = (config.em, config.limits);
    let distance_of = |square: f64, model: &Model| {
        let entry = model.summary().total_variance / d as f64;
        if square > 0.0 { (square / n_holes as f64 / entry).sqrt() } else { 0.0 }
    };
    let clock = Stopwatch::start();
    let (mut rounds, mut spent) = (0, Spent::default());
    let mut start = config.start.clone();
    loop {
        let round =
            FitConfig { start, certify: None, limits: Limits { angle: None, ..limits }, ..config.clone() };
        let fit = rows.fit(&round, &mut [], Checkpoints::default())?; //                                     3
        spent.add(&fit);
        rounds += 1;
        let distance = distance_of(rows.change(&fit.model)?, &fit.model); //                                 4
        start = Some(fit.model.vectors());
        let exhausted = spent.passes >= limits.max_passes || clock.seconds() >= limits.max_seconds;
        if distance <= tol || exhausted || rounds >= max_rounds || cancel.is_cancelled() {
            break; //                                                                                        5
        }
        rows.accept(); //                                                                                    6
    }
    // Once more, with everything that was asked for: observers, checkpoints, a probe.
    let mut fit = rows.fit(&FitConfig { start, ..config.clone() }, observers, checkpoints)?;
    let distance = distance_of(rows.change(&fit.model)?, &fit.model);
    let point = StationaryPoint { rounds, distance, tol, ridge };
    if fit.outcome == Outcome::Converged && !point.is_reached() {
        fit.outcome = Outcome::Budget;
    }
    spent.add(&fit);
    let (passes, bytes) = rows.read();
    (fit.passes, fit.full_passes) = (spent.passes + passes, spent.full_passes);
    (fit.statistics_passes, fit.bytes_read) = (spent.statistics_passes, spent.bytes_read + bytes);
    fit.seconds = fit.seconds.max(clock.seconds());
    Ok((fit, point))
}

/// Components that explain everything leave nothing to fill holes with.
fn refuse_full_rank(config: &FitConfig, n: usize, d: usize) -> Result<(), Error> {
    let rank = d.min(if config.preprocessing.centering == Centering::Mean { n - 1 } else { n });
    if config.variance_share.is_none() && config.k < rank {
        return Ok(());
    }
    let asked = config.variance_share.map_or(config.k as f64, |share| share);
    let advice = format!(
        "em fills {n} rows × {d} columns by a model of fewer than {rank} components, which leave something to be explained: give such a number"
    );
    Err(Error::parameter("k", asked, advice))
}

/// What all rounds took.
#[derive(Default)]
struct Spent {
    passes: f64,
    full_passes: u64,
    statistics_passes: f64,
    bytes_read: u64,
}

impl Spent {
    fn add(&mut self, fit: &Fit) {
        self.passes += fit.passes;
        self.full_passes += fit.full_passes;
        self.statistics_passes += fit.statistics_passes;
        self.bytes_read += fit.bytes_read;
    }
}

/// What components say of the holes of these rows.
fn said_of_holes(
    model: &Model,
    rows: &Matrix<'_>,
    holes: &Holes,
    ridge: f64,
    means: &Filling,
) -> Result<Vec<f64>, Error> {
    let mut values = model.projection(Whitening::Off).fill(rows, holes, ridge)?;
    means.keep_constants(holes.columns(), &mut values);
    Ok(values)
}

/// ‖D⁻¹(y − x)‖² for the numbers in the holes of some rows.
fn square_of_change(model: &Model, holes: &Holes, y: &[f64], x: &[f64]) -> f64 {
    let scale = |j: u32| model.scale().map_or(1.0, |scale| scale[j as usize]);
    let changes = y.iter().zip(x).zip(holes.columns());
    changes.map(|((y, x), j)| ((y - x) / scale(*j)).powi(2)).sum()
}

/// X̂ in memory.
struct FilledMatrix<'a, 'm> {
    matrix: Matrix<'m>,
    holes: Holes,
    weights: Option<Vec<f64>>,
    narrowed: bool,
    /// What holes were filled with first.
    means: Option<Filling>,
    /// Y in H.
    filling: Vec<f64>,
    ridge: f64,
    cancel: &'a CancelToken,
}

impl Filled for FilledMatrix<'_, '_> {
    fn shape(&self) -> (usize, usize, usize) {
        (self.matrix.n_rows(), self.matrix.n_cols(), self.holes.len())
    }

    fn fit(
        &mut self,
        config: &FitConfig,
        observers: &mut [&mut (dyn Observer + Send)],
        checkpoints: Checkpoints<'_>,
    ) -> Result<Fit, Error> {
        let rounded = Rounded { narrowed: self.narrowed, filling: None };
        let (matrix, weights) = (&self.matrix, self.weights.as_deref());
        fit_matrix(config, matrix, weights, rounded, observers, self.cancel, checkpoints)
    }

    fn change(&mut self, model: &Model) -> Result<f64, Error> {
        let none = || Error::Numerical("there are holes, and no means to fill them with".into());
        let means = self.means.as_ref().ok_or_else(none)?;
        self.filling = said_of_holes(model, &self.matrix, &self.holes, self.ridge, means)?;
        let before = self.holes.values_in(&self.matrix);
        Ok(square_of_change(model, &self.holes, &self.filling, &before))
    }

    fn accept(&mut self) {
        self.holes.fill(&mut self.matrix, std::mem::take(&mut self.filling));
    }
}

/// X̂ of rows on disk.
struct FilledChunks<'a, R> {
    rows: R,
    chunks: ScannedChunks,
    n_holes: usize,
    weights: Option<&'a [f64]>,
    surveyed: Option<Surveyed>,
    plan: &'a StreamPlan,
    pool: &'a rayon::ThreadPool,
    ridge: f64,
    /// The means of what is there.
    means: Filling,
    /// What X̂ holds in H, and what Y does.
    now: Filler,
    next: Option<Model>,
    cancel: &'a CancelToken,
    /// Rows read to compare X̂ with Y.
    compared: usize,
    scans: u64,
}

/// What holes are filled with.
enum Filler {
    /// The mean of what is there, in the first round.
    Means,
    Components(Box<Model>),
}

impl Filler {
    /// In the holes of these rows, in order.
    fn values(
        &self,
        rows: &Matrix<'_>,
        holes: &Holes,
        ridge: f64,
        means: &Filling,
    ) -> Result<Vec<f64>, Error> {
        match self {
            Self::Means => Ok(holes.columns().iter().map(|&j| means.values[j as usize]).collect()),
            Self::Components(model) => said_of_holes(model, rows, holes, ridge, means),
        }
    }
}

impl<R: RowChunks> Filled for FilledChunks<'_, R> {
    fn shape(&self) -> (usize, usize, usize) {
        (self.rows.n_rows(), self.rows.n_cols(), self.n_holes)
    }

    fn fit(
        &mut self,
        config: &FitConfig,
        observers: &mut [&mut (dyn Observer + Send)],
        checkpoints: Checkpoints<'_>,
    ) -> Result<Fit, Error> {
        let Self { now, pool, ridge, means, .. } = self;
        let fill = |rows: Matrix<'static>| {
            let mut rows = rows.in_double();
            let holes = Holes::of(&rows);
            if !holes.is_empty() {
                let values = pool.install(|| now.values(&rows, &holes, *ridge, means))?;
                holes.fill(&mut rows, values);
            }
            Ok(rows)
        };
        let rows = FilledRows::new(&mut self.rows, self.chunks.clone(), fill);
        let (plan, cancel, surveyed) = (self.plan.clone(), self.cancel, self.surveyed.clone());
        let scans = std::mem::take(&mut self.scans);
        OnDiskRun { config, plan, cancel, observers, checkpoints, surveyed }.fit(
            rows,
            self.weights,
            Holed { scans, filling: None },
        )
    }

    fn change(&mut self, model: &Model) -> Result<f64, Error> {
        let Self { rows, chunks, now, ridge, means, compared, .. } = self;
        let (mut square, mut recycled) = (0.0, None);
        for &i in chunks.with_holes() {
            self.cancel.go_on()?;
            let chunk = chunks.read(rows, i, recycled.take())?;
            *compared += chunk.n_rows();
            square += self.pool.install(|| {
                let holes = Holes::of(&chunk);
                let before = now.values(&chunk, &holes, *ridge, means)?;
                let after = said_of_holes(model, &chunk, &holes, *ridge, means)?;
                Ok::<_, Error>(square_of_change(model, &holes, &after, &before))
            })?;
            recycled = Some(chunk);
        }
        self.next = Some(model.clone());
        Ok(square)
    }

    fn accept(&mut self) {
        if let Some(model) = self.next.take() {
            self.now = Filler::Components(Box::new(model));
        }
    }

    fn read(&self) -> (f64, u64) {
        let passes = self.compared as f64 / self.rows.n_rows() as f64;
        (passes, (passes * self.rows.bytes() as f64) as u64)
    }
}

impl Run<'_> {
    /// Fits rows on disk whose holes (NaN) become what [`FitConfig::missing`] says; all rows are read once to find them, unless a survey did.
    pub(super) fn fit_planned_completing(
        self,
        mut rows: impl RowChunks,
        plan: StreamPlan,
        found: Option<(Surveyed, Option<Scanned>)>,
    ) -> Result<Fit, Error> {
        let Self { config, weights, mut observers, cancel, checkpoints, .. } = self;
        if config.missing == Missing::Em {
            config.em.check()?;
        }
        if let Some(weights) = weights {
            check_weights(rows.n_rows(), weights)?;
        }
        let (surveyed, scanned) = match found {
            Some((surveyed, scanned)) => (Some(surveyed), scanned),
            None => (None, Scanned::of(&mut rows, weights, config.missing)?),
        };
        let scans = surveyed.as_ref().map_or(1, Surveyed::scans);
        let (n, holed) = (rows.n_rows(), Holed { scans, filling: None });
        let (observers, cancel) = (&mut observers[..], &cancel);
        let run = OnDiskRun { config, plan, cancel, observers, checkpoints, surveyed };
        let Some(Scanned { mut report, filling, weights: dropping, chunks }) = scanned else {
            return run.fit(rows, weights, holed);
        };
        let n = n - report.dropped;
        config.check(n, rows.n_cols())?;
        let mut fit = match filling {
            None => run.fit(rows, dropping.as_deref().or(weights), holed)?,
            Some(filling) if config.missing == Missing::Em => {
                let OnDiskRun { plan, observers, checkpoints, surveyed, .. } = run;
                let pool = config.thread_pool(plan.threads)?;
                let mut rows = FilledChunks {
                    rows,
                    chunks,
                    n_holes: report.entries,
                    weights,
                    surveyed: surveyed.map(|found| found.filled_with(&filling)),
                    plan: &plan,
                    pool: &pool,
                    ridge: config.em.ridge,
                    means: filling,
                    now: Filler::Means,
                    next: None,
                    cancel,
                    compared: 0,
                    scans,
                };
                let (fit, point) = em(&mut rows, config, observers, cancel, checkpoints)?;
                report.stationary_point = Some(point);
                fit
            }
            Some(filling) => {
                let fill = |mut rows: Matrix<'static>| {
                    rows.fill_holes(&filling.values);
                    Ok(rows)
                };
                let holed = Holed { filling: Some(&filling), ..holed };
                let surveyed = run.surveyed.map(|found| found.filled_with(&filling));
                let run = OnDiskRun { surveyed, ..run };
                run.fit(FilledRows::new(rows, chunks, fill), weights, holed)?
            }
        };
        fit.model.count_rows(n);
        fit.missing = Some(report);
        Ok(fit)
    }
}
