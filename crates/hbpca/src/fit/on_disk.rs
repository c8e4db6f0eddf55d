//! Fitting rows that stay on disk.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use super::checkpoint::{Resumable, Session};
use super::material::Material;
use super::{Fit, FitConfig, SolverKind, StreamPlan};
use crate::columns::{ColumnStatistics, RowMap};
use crate::matrix::{Matrix, RowChunks, fingerprint_of_chunks};
use crate::observe::{Event, Observer};
use crate::operator::{CovarianceOperator, Products, Streamed};
use crate::solver::{Anchored, AnchoredSizes, Krylov, KrylovSizes, Solver};
use crate::{Block, Error};

impl FitConfig {
    /// Fits rows that are read from disk in every pass, in at most `memory` bytes.
    ///
    /// [`plan_streamed`](Self::plan_streamed) tells beforehand what this will cost, and how large chunks should be.
    pub fn fit_streamed(
        &self,
        rows: impl RowChunks,
        memory: u64,
        observers: &mut [&mut (dyn Observer + Send)],
    ) -> Result<Fit, Error> {
        self.fit_streamed_resumable(rows, memory, observers, Resumable::default())
    }

    /// The same, kept while it runs and going on from where one was kept. The storage's fingerprint is taken here: that of
    /// `resumable` may stay empty.
    pub fn fit_streamed_resumable(
        &self,
        mut rows: impl RowChunks,
        memory: u64,
        observers: &mut [&mut (dyn Observer + Send)],
        resumable: Resumable<'_>,
    ) -> Result<Fit, Error> {
        let longest = rows.starts().windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) as u64;
        let row = rows.bytes() / rows.n_rows().max(1) as u64;
        let plan = self.plan_with_chunks(&rows, memory, Some(longest * row.max(1)))?;
        let wanted = resumable.keep.is_some() || resumable.from.is_some();
        let data = if wanted {
            format!("{}, pool of {}", fingerprint_of_chunks(&mut rows)?, plan.pool_rows)
        } else {
            String::new()
        };
        let session = Session::new(self, Resumable { data, ..resumable })?;
        self.on_threads(plan.threads, || {
            let clock = session.clock();
            let material = OnDisk::new(rows, self, plan, session.resumes())?;
            let mut told: Vec<_> = observers
                .iter_mut()
                .map(|observer| ToldLater {
                    observer: &mut **observer,
                    found: material.found.clone(),
                    told: false,
                })
                .collect();
            let mut told: Vec<&mut (dyn Observer + Send)> = told.iter_mut().map(|o| o as _).collect();
            self.run_on(material, session, &clock, &mut told)
        })
    }
}

/// Rows on disk.
struct OnDisk<'s> {
    operator: Streamed<'s>,
    plan: StreamPlan,
    run_length: usize,
    found: Arc<OnceLock<(RowMap, f64)>>,
}

impl<'s> OnDisk<'s> {
    /// Reads a sample, or the data once for its statistics where the solver's first pass cannot gather them; nothing where a
    /// checkpoint knows them.
    fn new(
        rows: impl RowChunks + 's,
        config: &FitConfig,
        plan: StreamPlan,
        resumes: bool,
    ) -> Result<Self, Error> {
        let n = rows.n_rows();
        let folds = config.folds(plan.solver);
        // The step size of the paper's solvers wants a sample, too.
        let pool = if folds { plan.pool_rows } else { plan.pool_rows.max(super::step_size::sample_rows(n)) };
        let mut operator = Streamed::new(rows, config.preprocessing)?
            .with_pool(pool, config.seed)
            .abandoned_by(&config.limits.cancel)
            .in_precision(config.precision);
        if resumes {
            // Its columns are in the checkpoint.
        } else if folds {
            operator.guess_columns(plan.sample_rows, config.seed)?;
        } else {
            operator.gather_columns()?;
        }
        let (run_length, found) = (operator.run_length(), operator.columns_when_found());
        Ok(Self { operator, plan, run_length, found })
    }
}

impl Material for OnDisk<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.operator.n_rows(), self.operator.dim())
    }

    fn choose(&self, _config: &FitConfig) -> (SolverKind, String) {
        (self.plan.solver, self.plan.chosen_because.clone())
    }

    fn solver(&self, config: &FitConfig, _iterates_wanted: bool) -> Result<Box<dyn Solver>, Error> {
        let (n, d) = self.shape();
        let (k, start): (usize, Option<&Block>) = (config.k, config.start.as_ref());
        if k > self.plan.most_components && self.plan.solver != SolverKind::Covariance {
            let advice = format!(
                "memory was planned for {} components, which explain less than the share asked for; give a number with \
                 k, or choose the solver covariance",
                self.plan.most_components
            );
            return Err(Error::parameter("k", k, advice));
        }
        let (block, kept) = (self.plan.block.max(k), self.plan.kept.max(k));
        Ok(match self.plan.solver {
            SolverKind::Krylov => {
                let sizes = KrylovSizes { block, memory: kept };
                Box::new(Krylov::new(d, k, sizes, config.seed, start)?)
            }
            SolverKind::Anchored => {
                let suiting = AnchoredSizes::suiting(n, k).within(config.limits.max_passes, n);
                let pool = self.plan.pool_rows.max(1);
                let sizes = AnchoredSizes {
                    block,
                    anchors: kept,
                    batch: suiting.batch.min(pool),
                    start_rows: suiting.start_rows.min(pool),
                };
                Box::new(Anchored::new(pool, d, k, sizes, config.seed, start)?)
            }
            _ => config.solver_in_runs(n, d, self.run_length)?,
        })
    }

    fn sample(&self, _count: usize, _seed: u64) -> Result<Cow<'_, Matrix<'static>>, Error> {
        let nothing = || Error::Source("no sample of the rows was kept".into());
        self.operator.sample().map(Cow::Borrowed).ok_or_else(nothing)
    }

    fn operator(&mut self) -> &mut dyn CovarianceOperator {
        &mut self.operator
    }

    fn columns(&self) -> Result<(&RowMap, f64), Error> {
        let (map, statistics) =
            self.operator.columns().ok_or_else(|| Error::Source("no pass was made".into()))?;
        Ok((map, statistics.weight()))
    }

    fn statistics(&self) -> Option<ColumnStatistics> {
        None // the operator keeps them
    }

    fn statistics_passes(&self) -> f64 {
        self.operator.statistics_passes() as f64
    }

    fn bytes_read(&self) -> u64 {
        self.operator.bytes_read()
    }
}

/// Tells an observer how rows are prepared as soon as that is known, before the look that found it out.
struct ToldLater<'a> {
    observer: &'a mut (dyn Observer + Send),
    found: Arc<OnceLock<(RowMap, f64)>>,
    told: bool,
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
