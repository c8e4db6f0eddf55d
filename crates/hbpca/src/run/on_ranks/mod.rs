//! Rows of many ranks: the same fit, led by rank 0.

mod shards;
mod world;

use std::borrow::Cow;
use std::cell::RefCell;

use shards::{Own, Preparing};
use world::{Cut, World};

use super::on_disk::ToldLater;
use super::source::Source;
use super::{Fit, Run, run_on};
use crate::checkpoint::{Checkpoints, Session};
use crate::choose::{Plan, RankFacts, StreamPlan};
use crate::columns::{ColumnStatistics, RowMap};
use crate::config::FitConfig;
use crate::matrix::{Matrix, Replacement, RowChunks, Sampler};
use crate::observe::Observer;
use crate::operator::{Communicator, CovarianceOperator, Member, Shape, Sharded};
use crate::solver::SolverKind;
use crate::{CancelToken, Error};

/// The rows of one rank.
pub enum RankRows<'a> {
    /// In memory.
    Memory(&'a Matrix<'a>),
    /// On disk, read in every pass within a number of bytes of memory.
    Disk {
        /// The rows.
        rows: Box<dyn RowChunks + 'a>,
        /// Bytes of memory that this rank may take.
        memory: u64,
    },
}

impl<'a> RankRows<'a> {
    fn n_rows(&self) -> usize {
        match self {
            Self::Memory(matrix) => matrix.n_rows(),
            Self::Disk { rows, .. } => rows.n_rows(),
        }
    }

    fn in_memory(&self) -> Option<&'a Matrix<'a>> {
        match self {
            Self::Memory(matrix) => Some(matrix),
            Self::Disk { .. } => None,
        }
    }
}

impl<'a> Run<'a> {
    /// Fits the rows of all ranks, each of which calls this with its own. Rank 0 leads, and alone gets the fit: observers and
    /// checkpoints are its own. A rank that fails ends the fit on all of them.
    ///
    /// ```
    /// use hbpca::operator::thread_ranks;
    /// use hbpca::{Dense, FitConfig, Matrix, RankRows};
    /// let part = |values: [f64; 4]| -> Result<Matrix, _> { Ok::<_, hbpca::Error>(Dense::new(values.to_vec(), 2, 2)?.into()) };
    /// let parts = [part([2.0, 1.0, -2.0, -1.0])?, part([0.1, -0.2, -0.1, 0.2])?];
    /// let fits = std::thread::scope(|scope| {
    ///     let ranks = thread_ranks(2).into_iter().zip(&parts);
    ///     let fit = |(rank, part)| move || FitConfig::default().run().fit_on_ranks(Ok(RankRows::Memory(part)), &rank);
    ///     let running: Vec<_> = ranks.map(|one| scope.spawn(fit(one))).collect();
    ///     running.into_iter().map(|one| one.join().unwrap()).collect::<Result<Vec<_>, _>>()
    /// })?;
    /// assert!((fits[0].as_ref().unwrap().model.eigenvalues()[0] - 2.5).abs() < 1e-12);
    /// assert!(fits[1].is_none());
    /// # Ok::<(), hbpca::Error>(())
    /// ```
    pub fn fit_on_ranks(
        self,
        rows: Result<RankRows<'a>, Error>,
        ranks: &'a dyn Communicator,
    ) -> Result<Option<Fit>, Error> {
        self.fit_shards(rows.map(|rows| vec![rows]), Cut::ByRanks, ranks)
    }

    /// The same, with the same bits on any number of ranks: all rows were cut into shards without asking how many ranks there are, and each rank has
    /// some that follow each other, rank 0 the first. Sums go over shards in one order, and the plan depends on them alone.
    ///
    /// ```
    /// use hbpca::operator::{SingleRank, thread_ranks};
    /// use hbpca::{Dense, FitConfig, Matrix, RankRows};
    /// let rows = |values: [f64; 4]| -> Result<Matrix, _> { Ok::<_, hbpca::Error>(Dense::new(values.to_vec(), 2, 2)?.into()) };
    /// let shards = [rows([2.0, 1.0, -2.0, -1.1])?, rows([0.1, -0.2, -0.1, 0.2])?, rows([0.3, 0.7, 0.9, 0.1])?];
    /// let some = |from, to| Ok(shards[from..to].iter().map(RankRows::Memory).collect());
    /// let alone = FitConfig::default().run().fit_shards_on_ranks(some(0, 3), &SingleRank)?;
    /// let [one, other] = <[_; 2]>::try_from(thread_ranks(2)).unwrap();
    /// let together = std::thread::scope(|scope| {
    ///     scope.spawn(|| FitConfig::default().run().fit_shards_on_ranks(some(1, 3), &other));
    ///     FitConfig::default().run().fit_shards_on_ranks(some(0, 1), &one)
    /// })?;
    /// assert_eq!(alone.unwrap().model.components(), together.unwrap().model.components());
    /// # Ok::<(), hbpca::Error>(())
    /// ```
    pub fn fit_shards_on_ranks(
        self,
        shards: Result<Vec<RankRows<'a>>, Error>,
        ranks: &'a dyn Communicator,
    ) -> Result<Option<Fit>, Error> {
        self.fit_shards(shards, Cut::ByData, ranks)
    }

    fn fit_shards(
        self,
        shards: Result<Vec<RankRows<'a>>, Error>,
        cut: Cut,
        ranks: &'a dyn Communicator,
    ) -> Result<Option<Fit>, Error> {
        let Self { config, weights, narrowed, mut observers, cancel, checkpoints, .. } = self;
        let shards = config.refuse_scale_of_genotypes().and(shards);
        let own = shards.and_then(|shards| {
            config.refuse_missing("rows of many ranks")?;
            let in_memory: Vec<_> = shards.iter().filter_map(RankRows::in_memory).collect();
            config.check_memory_of_rank(&in_memory, ranks.rank() == 0)?;
            Own::all(shards, weights)
        });
        let cleared: Vec<_> = own.iter().flatten().map(Own::cleared).collect();
        let own = own.and_then(|own| {
            let mut own: Vec<Own<'_>> =
                own.into_iter().zip(&cleared).map(|(own, copy)| own.or(copy.as_ref())).collect();
            let facts = own.iter().map(|own| own.facts(config)).collect::<Result<Vec<_>, _>>()?;
            let pivot = Own::pivot(&mut own)?;
            Ok(((own, pivot), facts))
        });
        let (world, (mut own, pivot)) = World::meet(own, cut, ranks)?;
        let pivot = world.pivot(pivot, ranks)?;
        let fingerprints = checkpoints.save.is_some() || checkpoints.resume.is_some();
        let (plan, begin) = world.begin(config, &mut own[0].rows, fingerprints, ranks)?;
        // Ranks break a product off together or not at all: the time limit is rank 0's, between products.
        let together = cancel.with_own_time();
        let of = Preparing { narrowed, config, cancel: &together, world: &world, begin: &begin };
        let prepared =
            config.thread_pool(begin.threads).and_then(|pool| Ok((pool, of.shards(own, ranks.rank())?)));
        let (pool, (shards, prints)) = world::everyone(prepared, ranks)?;
        let data = world.fingerprint(&prints, &begin, ranks)?;
        let member = Member::new(shards, ranks, pivot, world.holders(), world.is_sparse());
        pool.install(|| {
            if ranks.rank() > 0 {
                return member.serve().map(|()| None);
            }
            let checkpoints = Checkpoints { data, ..checkpoints };
            let mut sharded = Sharded::new(member, config.preprocessing, world.is_sparse(), plan.is_some())
                .weighing(plan.as_ref().and_then(|_| world.weight()));
            let fit = lead(&mut sharded, &world, plan, config, checkpoints, &cancel, &mut observers);
            let fit = fit.map(|fit| Fit { ranks: ranks.size(), ..fit });
            sharded.end(fit).map(Some)
        })
    }
}

/// What rank 0 does.
fn lead(
    sharded: &mut Sharded<'_>,
    world: &World,
    plan: Option<StreamPlan>,
    config: &FitConfig,
    checkpoints: Checkpoints<'_>,
    cancel: &CancelToken,
    observers: &mut [&mut (dyn Observer + Send)],
) -> Result<Fit, Error> {
    let Shape { n, d } = world.shape();
    let session = Session::new(config, checkpoints)?;
    let clock = session.clock();
    match &plan {
        None => match session.statistics(n, d)? {
            Some(known) => sharded.know(known)?,
            None => sharded.gather_columns()?,
        },
        Some(_) if session.resumes() => {} // its columns are in the checkpoint
        Some(plan) if config.folds(plan.solver) => sharded.guess_columns(plan.sample_rows, config.seed)?,
        Some(_) => sharded.gather_columns()?,
    }
    // A round for every mini-batch would cost more than a sample.
    let sampled = config.solver == SolverKind::Anchored && plan.is_none() && world.weight().is_none();
    let sample = sampled.then(|| world.facts().sample_rows());
    if let Some(count) = sample {
        sharded.keep_sample(count, config.seed)?;
    }
    let mut told = ToldLater::all(&sharded.columns_when_found(), observers);
    let mut told: Vec<&mut (dyn Observer + Send)> = told.iter_mut().map(|o| o as _).collect();
    let saves = session.saves();
    let source = OnRanks {
        sharded: RefCell::new(sharded),
        facts: world.facts(),
        range: world.range(),
        plan,
        sample,
        saves,
    };
    run_on(source, config, session, &clock, cancel, &mut told)
}

/// The rows of all ranks.
struct OnRanks<'a, 'b> {
    sharded: RefCell<&'b mut Sharded<'a>>,
    facts: RankFacts,
    /// Rows that are read together where only some are wanted.
    range: usize,
    /// For rows on disk.
    plan: Option<StreamPlan>,
    /// Rows that rank 0 has, where all are in memory.
    sample: Option<usize>,
    saves: bool,
}

impl Source for OnRanks<'_, '_> {
    fn shape(&self) -> Shape {
        self.facts.shape
    }

    fn plan(&self, config: &FitConfig, _iterates_wanted: bool) -> Result<Plan, Error> {
        match &self.plan {
            None => Ok(Plan::on_ranks(&self.facts, config, self.sample)),
            Some(plan) => plan.for_components(self.shape(), config, self.range),
        }
    }

    fn sample(&self, count: usize, seed: u64) -> Result<Option<Cow<'_, Matrix<'static>>>, Error> {
        let mut sampler = Sampler::new(self.facts.shape.n, count, Replacement::Without, seed)?;
        Ok(self.sharded.borrow_mut().sample(sampler.draw())?.map(Cow::Owned))
    }

    fn operator(&mut self) -> &mut dyn CovarianceOperator {
        &mut **self.sharded.get_mut()
    }

    fn columns(&self) -> Result<(Cow<'_, RowMap>, f64), Error> {
        let none = || Error::Numerical("no pass was made: nothing is known of the columns".into());
        let sharded = self.sharded.borrow();
        let (map, statistics) = sharded.columns().ok_or_else(none)?;
        Ok((Cow::Owned(map.clone()), statistics.weight()))
    }

    fn statistics(&self) -> Option<ColumnStatistics> {
        let wanted = self.saves && self.plan.is_none();
        let sharded = self.sharded.borrow();
        sharded.columns().filter(|_| wanted).map(|(_, statistics)| statistics.clone())
    }

    fn statistics_passes(&self) -> f64 {
        if self.plan.is_none() { 1.0 } else { self.sharded.borrow().statistics_passes() as f64 }
    }

    fn bytes_read(&self) -> u64 {
        self.sharded.borrow().bytes_read()
    }
}
