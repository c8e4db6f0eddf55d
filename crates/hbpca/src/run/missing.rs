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
//! the start. A row with nothing in it is the mean. Line 3 is a fit like any other: residuals and rounding are those of X̂, which is stored in f64 with its holes filled.

use super::{Fit, Run, fit_matrix};
use crate::checkpoint::Checkpoints;
use crate::columns::Centering;
use crate::config::FitConfig;
use crate::limits::Limits;
use crate::matrix::Matrix;
use crate::missing::{
    Completed, EmLimits, Filling, Holes, Missing, MissingReport, StationaryPoint, complete,
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
    pub fn fit_completing<'m>(self, matrix: Matrix<'m>) -> Result<CompletedFit<'m>, Error> {
        let Self { config, weights, narrowed, mut observers, cancel, checkpoints, .. } = self;
        if config.missing == Missing::Em {
            config.em.check()?;
        }
        let checkpoints = naming(checkpoints, config);
        let completed = complete(matrix, weights, config.missing)?;
        let dropped = if completed.dropped > 0 { completed.holes.rows().to_vec() } else { Vec::new() };
        let mut report = MissingReport::of(&completed, config.missing);
        if config.missing == Missing::Em && !completed.holes.is_empty() {
            let em = Em::new(config, completed, narrowed, &cancel)?;
            let (mut fit, matrix, point) = em.run(&mut observers, checkpoints)?;
            report.stationary_point = Some(point);
            fit.missing = Some(report);
            return Ok(CompletedFit { fit, matrix, dropped });
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

/// Expectation–maximisation under way.
struct Em<'a, 'm> {
    config: &'a FitConfig,
    /// X̂.
    matrix: Matrix<'m>,
    /// H.
    holes: Holes,
    weights: Option<Vec<f64>>,
    narrowed: bool,
    cancel: &'a CancelToken,
    limits: EmLimits,
}

impl<'a, 'm> Em<'a, 'm> {
    fn new(
        config: &'a FitConfig,
        completed: Completed<'m>,
        narrowed: bool,
        cancel: &'a CancelToken,
    ) -> Result<Self, Error> {
        let Completed { matrix, weights, holes, .. } = completed;
        let (n, d) = (matrix.n_rows(), matrix.n_cols());
        let rank = d.min(if config.preprocessing.centering == Centering::Mean { n - 1 } else { n });
        if config.variance_share.is_some() || config.k >= rank {
            let asked = config.variance_share.map_or(config.k as f64, |share| share);
            let advice = format!(
                "em fills {n} rows × {d} columns by a model of fewer than {rank} components, which leave something to be explained: give such a number"
            );
            return Err(Error::parameter("k", asked, advice));
        }
        let matrix = matrix.in_double();
        Ok(Self { config, matrix, holes, weights, narrowed, cancel, limits: config.em })
    }

    fn fit(
        &self,
        config: &FitConfig,
        observers: &mut [&mut (dyn Observer + Send)],
        checkpoints: Checkpoints<'_>,
    ) -> Result<Fit, Error> {
        let rounded = Rounded { narrowed: self.narrowed, filling: None };
        let (matrix, weights) = (&self.matrix, self.weights.as_deref());
        fit_matrix(config, matrix, weights, rounded, observers, self.cancel, checkpoints)
    }

    /// Y, and its distance from what is there.
    fn round(&self, model: &Model) -> Result<(Vec<f64>, f64), Error> {
        let projection = model.projection(Whitening::Off);
        let y = projection.fill(&self.matrix, &self.holes, self.limits.ridge)?; //                          4
        let before = self.holes.values_in(&self.matrix);
        let scale = |j: u32| model.scale().map_or(1.0, |scale| scale[j as usize]);
        let changes = y.iter().zip(&before).zip(self.holes.columns());
        let square: f64 = changes.map(|((y, x), j)| ((y - x) / scale(*j)).powi(2)).sum();
        let entry = model.summary().total_variance / model.n_features() as f64;
        let distance = if square > 0.0 { (square / self.holes.len() as f64 / entry).sqrt() } else { 0.0 };
        Ok((y, distance))
    }

    fn run(
        mut self,
        observers: &mut [&mut (dyn Observer + Send)],
        checkpoints: Checkpoints<'_>,
    ) -> Result<(Fit, Matrix<'m>, StationaryPoint), Error> {
        let (config, limits) = (self.config, self.config.limits);
        let clock = Stopwatch::start();
        let (mut passes, mut full_passes, mut rounds) = (0.0, 0, 0);
        let mut start = config.start.clone();
        loop {
            let round = FitConfig {
                start,
                certify: None,
                limits: Limits { angle: None, ..limits },
                ..config.clone()
            };
            let fit = self.fit(&round, &mut [], Checkpoints::default())?; //                                 3
            passes += fit.passes;
            full_passes += fit.full_passes;
            rounds += 1;
            let (y, distance) = self.round(&fit.model)?;
            start = Some(fit.model.vectors());
            let spent = passes >= limits.max_passes || clock.seconds() >= limits.max_seconds;
            let stopped = spent || rounds >= self.limits.max_rounds || self.cancel.is_cancelled();
            if distance <= self.limits.tol || stopped {
                break; //                                                                                    5
            }
            let Self { matrix, holes, .. } = &mut self;
            holes.fill(matrix, y); //                                                                        6
        }
        // Once more, with everything that was asked for: observers, checkpoints, a probe.
        let mut fit = self.fit(&FitConfig { start, ..config.clone() }, observers, checkpoints)?;
        let (_, distance) = self.round(&fit.model)?;
        let EmLimits { tol, ridge, .. } = self.limits;
        let point = StationaryPoint { rounds, distance, tol, ridge };
        if fit.outcome == Outcome::Converged && !point.is_reached() {
            fit.outcome = Outcome::Budget;
        }
        fit.passes += passes;
        fit.full_passes += full_passes;
        fit.seconds = fit.seconds.max(clock.seconds());
        Ok((fit, self.matrix, point))
    }
}
