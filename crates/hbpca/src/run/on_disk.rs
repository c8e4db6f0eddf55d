//! Rows that stay on disk.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use super::source::Source;
use super::{Fit, run_on};
use crate::checkpoint::{Checkpoints, Session};
use crate::choose::{Plan, StreamPlan, sample_rows};
use crate::columns::RowMap;
use crate::config::FitConfig;
use crate::matrix::{Matrix, RowChunks, fingerprint_of_chunks};
use crate::missing::{Filling, Surveyed};
use crate::observe::{Event, Observer};
use crate::operator::{CovarianceOperator, Shape, Streamed};
use crate::{CancelToken, Error};

/// Rows on disk.
pub(super) struct OnDisk<'s> {
    operator: Streamed<'s>,
    plan: StreamPlan,
    /// Rows that are read together where only some are wanted.
    range: usize,
    found: Arc<OnceLock<(RowMap, f64)>>,
    scans: u64,
}

/// A fit of rows on disk about to be made.
pub(super) struct OnDiskRun<'r, 'o, 'c> {
    pub(super) config: &'r FitConfig,
    pub(super) plan: StreamPlan,
    pub(super) cancel: &'r CancelToken,
    pub(super) observers: &'r mut [&'o mut (dyn Observer + Send)],
    pub(super) checkpoints: Checkpoints<'c>,
    /// What is known of rows that come in chunks alone.
    pub(super) surveyed: Option<Surveyed>,
}

impl OnDiskRun<'_, '_, '_> {
    pub(super) fn fit(
        self,
        rows: impl RowChunks,
        weights: Option<&[f64]>,
        holed: Holed<'_>,
    ) -> Result<Fit, Error> {
        let Self { config, plan, cancel, observers, checkpoints, surveyed } = self;
        let session = Session::new(config, checkpoints)?;
        config.on_threads(plan.threads, || {
            let clock = session.clock();
            let source =
                OnDisk::new(rows, weights, holed, config, plan, session.resumes(), surveyed, cancel)?;
            let mut told = source.announcing_to(observers);
            let mut told: Vec<&mut (dyn Observer + Send)> = told.iter_mut().map(|o| o as _).collect();
            run_on(source, config, session, &clock, cancel, &mut told)
        })
    }
}

/// What is known of the holes of rows on disk.
#[derive(Clone, Copy)]
pub(super) struct Holed<'a> {
    /// Times that all rows were read to find them.
    pub(super) scans: u64,
    /// What they are filled with.
    pub(super) filling: Option<&'a Filling>,
}

impl<'s> OnDisk<'s> {
    /// Reads a sample, or the data once for its statistics where the solver's first pass cannot gather them, or where only whole chunks can be
    /// read; nothing where a checkpoint or a survey knows them.
    pub(super) fn new(
        rows: impl RowChunks + 's,
        weights: Option<&[f64]>,
        holed: Holed<'_>,
        config: &FitConfig,
        plan: StreamPlan,
        resumes: bool,
        surveyed: Option<Surveyed>,
        cancel: &CancelToken,
    ) -> Result<Self, Error> {
        let n = rows.n_rows();
        let folds = config.folds(plan.solver);
        // The step size of the paper's solvers wants a sample, too.
        let pool = if folds { plan.pool_rows } else { plan.pool_rows.max(sample_rows(n)) };
        let operator = Streamed::new(rows, config.preprocessing)?;
        let operator = match weights {
            None => operator,
            Some(weights) => match &surveyed {
                None => operator.with_weights(weights)?,
                Some(found) => operator.with_weights_about(weights, found.pivot.clone())?,
            },
        };
        let operator = match holed.filling {
            None => operator,
            Some(filling) => operator.filled_with(filling.clone()),
        };
        let mut operator =
            operator.with_pool(pool, config.seed).abandoned_by(cancel).in_precision(config.precision);
        if resumes {
            // Its columns are in the checkpoint.
        } else if let Some(found) = surveyed {
            operator = operator.knowing(found)?;
        } else if folds {
            operator.guess_columns(plan.sample_rows, config.seed)?;
        } else {
            operator.gather_columns()?;
        }
        let (range, found) = (operator.range_length(), operator.columns_when_found());
        Ok(Self { operator, plan, range, found, scans: holed.scans })
    }

    /// The observers, each told how rows are prepared as soon as that is known.
    pub(super) fn announcing_to<'o>(
        &self,
        observers: &'o mut [&mut (dyn Observer + Send)],
    ) -> Vec<ToldLater<'o>> {
        ToldLater::all(&self.found, observers)
    }
}

/// Checkpoints that name the data, where they are wanted.
pub(super) fn with_fingerprint<'a>(
    checkpoints: Checkpoints<'a>,
    rows: &mut impl RowChunks,
    weights: Option<&[f64]>,
    plan: &StreamPlan,
) -> Result<Checkpoints<'a>, Error> {
    let wanted = checkpoints.save.is_some() || checkpoints.resume.is_some();
    let data = if wanted {
        format!("{}, pool of {}", fingerprint_of_chunks(rows, weights)?, plan.pool_rows)
    } else {
        String::new()
    };
    Ok(Checkpoints { data, ..checkpoints })
}

impl Source for OnDisk<'_> {
    fn shape(&self) -> Shape {
        self.operator.shape()
    }

    fn plan(&self, config: &FitConfig, _iterates_wanted: bool) -> Result<Plan, Error> {
        self.plan.for_components(self.shape(), config, self.range)
    }

    fn sample(&self, _count: usize, _seed: u64) -> Result<Option<Cow<'_, Matrix<'static>>>, Error> {
        Ok(self.operator.sample().map(Cow::Borrowed))
    }

    fn operator(&mut self) -> &mut dyn CovarianceOperator {
        &mut self.operator
    }

    fn columns(&self) -> Result<(Cow<'_, RowMap>, f64), Error> {
        let none = || Error::Numerical("no pass was made: nothing is known of the columns".into());
        let (map, statistics) = self.operator.columns().ok_or_else(none)?;
        Ok((Cow::Borrowed(map), statistics.weight()))
    }

    fn statistics_passes(&self) -> f64 {
        (self.operator.statistics_passes() + self.scans) as f64
    }

    fn bytes_read(&self) -> u64 {
        self.operator.bytes_read() + self.scans * self.operator.bytes_per_pass()
    }
}

/// Tells an observer how rows are prepared as soon as that is known, before the look that found it out.
pub(super) struct ToldLater<'a> {
    observer: &'a mut (dyn Observer + Send),
    found: Arc<OnceLock<(RowMap, f64)>>,
    told: bool,
}

impl<'a> ToldLater<'a> {
    /// Every observer, told when `found` is.
    pub(super) fn all(
        found: &Arc<OnceLock<(RowMap, f64)>>,
        observers: &'a mut [&mut (dyn Observer + Send)],
    ) -> Vec<Self> {
        let later = |observer| Self { observer, found: Arc::clone(found), told: false };
        observers.iter_mut().map(|observer| later(&mut **observer)).collect()
    }
}

impl Observer for ToldLater<'_> {
    fn notify(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if !self.told
            && let Some((map, weight)) = self.found.get()
        {
            self.observer.prepared(map, *weight);
            self.told = true;
        }
        self.observer.notify(event)
    }

    fn wants_iterates(&self) -> bool {
        self.observer.wants_iterates()
    }
}
