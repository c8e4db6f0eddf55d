//! Rows of many ranks: the same fit, led by rank 0.

use std::borrow::Cow;
use std::cell::RefCell;
use std::hash::Hasher;

use rayon::ThreadPool;
use twox_hash::XxHash3_64;

use super::on_disk::ToldLater;
use super::source::Source;
use super::{Fit, Run, run_on};
use crate::checkpoint::{Checkpoints, Session};
use crate::choose::{Network, Plan, RankFacts, StreamPlan, sample_rows};
use crate::columns::{ColumnStatistics, RowMap, heaviest};
use crate::config::FitConfig;
use crate::matrix::{Matrix, Replacement, RowChunks, Sampler, fingerprint_of_chunks};
use crate::observe::Observer;
use crate::operator::{
    Communicator, CovarianceOperator, MatrixShard, Member, Shape, Shard, Sharded, Streamed, hear,
};
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

impl RankRows<'_> {
    /// A row near the others, for means that are large against the spread: compressed rows are told about zero.
    fn pivot(&mut self, weights: Option<&[f64]>) -> Result<Vec<f64>, Error> {
        match self {
            Self::Memory(matrix) => Ok(ColumnStatistics::pivot_at(matrix, weights.map_or(0, heaviest))),
            Self::Disk { rows, .. } if rows.is_sparse() => Ok(vec![0.0; rows.n_cols()]),
            Self::Disk { rows, .. } => Ok(ColumnStatistics::pivot_at(&rows.read_rows(0..1)?, 0)),
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
        let Self { config, weights, narrowed, mut observers, cancel, checkpoints, .. } = self;
        let rows = config.refuse_scale_of_genotypes().and(rows);
        let counting = match (&rows, weights) {
            (Ok(RankRows::Memory(matrix)), Some(weights)) => matrix.with_rows_that_count(weights),
            _ => None,
        };
        let (rows, weights) = match &counting {
            Some((matrix, weights)) => (Ok(RankRows::Memory(matrix)), Some(&weights[..])),
            None => (rows, weights),
        };
        let own = rows.and_then(|mut rows| {
            config.refuse_missing("rows of many ranks")?;
            let facts = Facts::of(&rows, weights, config)?;
            let pivot = rows.pivot(weights)?;
            Ok((rows, (facts, pivot)))
        });
        let (rows, known) =
            own.map_or_else(|error| (Err(error), None), |(rows, known)| (Ok(rows), Some(known)));
        let (facts, pivot) = known.unzip();
        let (world, mut rows) = World::meet(facts, rows, ranks)?;
        let pivot = world.pivot(pivot.unwrap_or_default(), ranks)?;
        let fingerprints = checkpoints.save.is_some() || checkpoints.resume.is_some();
        let (plan, begin) = world.begin(config, &mut rows, fingerprints, ranks)?;
        let of = Preparing { weights, narrowed, config, cancel: &cancel, rank: ranks.rank() };
        let prepared = of.shard(rows, &world, &begin);
        let (prepared, fingerprint) = World::agree(prepared, ranks)?;
        let Prepared { shard, pool, .. } = prepared;
        let member = Member::new(shard, ranks, pivot, &world.n_rows(), world.is_sparse());
        pool.install(|| {
            if ranks.rank() > 0 {
                return member.serve().map(|()| None);
            }
            let data = world.fingerprint(&fingerprint, &begin);
            let checkpoints = Checkpoints { data, ..checkpoints };
            let mut sharded = Sharded::new(member, config.preprocessing, world.is_sparse(), plan.is_some());
            let fit = lead(&mut sharded, &world, plan, config, checkpoints, &cancel, &mut observers);
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
    let mut told = ToldLater::all(&sharded.columns_when_found(), observers);
    let mut told: Vec<&mut (dyn Observer + Send)> = told.iter_mut().map(|o| o as _).collect();
    let saves = session.saves();
    let source =
        OnRanks { sharded: RefCell::new(sharded), facts: world.facts(), range: world.range(), plan, saves };
    let mut fit = run_on(source, config, session, &clock, cancel, &mut told)?;
    fit.ranks = world.0.len();
    Ok(fit)
}

/// The rows of all ranks.
struct OnRanks<'a, 'b> {
    sharded: RefCell<&'b mut Sharded<'a>>,
    facts: RankFacts,
    /// Rows that are read together where only some are wanted.
    range: usize,
    /// For rows on disk.
    plan: Option<StreamPlan>,
    saves: bool,
}

impl Source for OnRanks<'_, '_> {
    fn shape(&self) -> Shape {
        self.facts.shape
    }

    fn plan(&self, config: &FitConfig, _iterates_wanted: bool) -> Result<Plan, Error> {
        match &self.plan {
            None => Ok(Plan::on_ranks(&self.facts, config)),
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

/// What every rank tells the others before the fit.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// Hashes of the version and of the choices.
    software: u64,
    choices: u64,
    n: usize,
    d: usize,
    entries: usize,
    bytes: u64,
    sparse: bool,
    on_disk: bool,
    weighted: bool,
    /// Σw, and the largest.
    weight: f64,
    heaviest: f64,
}

/// Numbers of the facts, the first of which tells whether a rank failed.
const FACTS: usize = 14;

impl Facts {
    fn of(rows: &RankRows<'_>, weights: Option<&[f64]>, config: &FitConfig) -> Result<Self, Error> {
        let (n, d, entries, bytes, sparse) = match rows {
            RankRows::Memory(x) => {
                (x.n_rows(), x.n_cols(), x.nnz(), x.bytes_per_pass() as u64, x.is_sparse())
            }
            RankRows::Disk { rows, .. } => {
                (rows.n_rows(), rows.n_cols(), rows.nnz(), rows.bytes(), rows.is_sparse())
            }
        };
        let on_disk = matches!(rows, RankRows::Disk { .. });
        if let Some(weights) = weights {
            if on_disk {
                let advice = "rows on disk cannot take any: fit a matrix in memory, or leave them out";
                return Err(Error::parameter("weights", format!("{} numbers", weights.len()), advice));
            }
            crate::columns::check_weights(n, weights)?;
        }
        if n == 0 || d == 0 {
            return Err(Error::Empty { n, d });
        }
        let hash = |text: &str| {
            let mut hasher = XxHash3_64::with_seed(0);
            hasher.write(text.as_bytes());
            hasher.finish()
        };
        let limits = (&config.limits, config.certify, config.probe_seed);
        Ok(Self {
            software: hash(crate::checkpoint::SOFTWARE),
            choices: hash(&format!("{:?} {limits:?}", config.choices())),
            n,
            d,
            entries,
            bytes,
            sparse,
            on_disk,
            weighted: weights.is_some(),
            weight: weights.map_or(n as f64, |weights| weights.iter().sum()),
            heaviest: weights.map_or(1.0, |weights| weights.iter().copied().fold(0.0, f64::max)),
        })
    }

    fn encode(&self) -> [f64; FACTS] {
        let half = |x: u64| [(x >> 32) as f64, (x & 0xffff_ffff) as f64];
        let ([a, b], [c, d]) = (half(self.software), half(self.choices));
        let flag = |x: bool| f64::from(u8::from(x));
        let sizes = [self.n as f64, self.d as f64, self.entries as f64, self.bytes as f64];
        let [sparse, on_disk, weighted] = [self.sparse, self.on_disk, self.weighted].map(flag);
        let [n, columns, entries, bytes] = sizes;
        let (weight, heaviest) = (self.weight, self.heaviest);
        [0.0, a, b, c, d, n, columns, entries, bytes, sparse, on_disk, weighted, weight, heaviest]
    }

    fn decode(numbers: &[f64]) -> Self {
        let whole = |at: usize| ((numbers[at] as u64) << 32) | numbers[at + 1] as u64;
        Self {
            software: whole(1),
            choices: whole(3),
            n: numbers[5] as usize,
            d: numbers[6] as usize,
            entries: numbers[7] as usize,
            bytes: numbers[8] as u64,
            sparse: numbers[9] > 0.0,
            on_disk: numbers[10] > 0.0,
            weighted: numbers[11] > 0.0,
            weight: numbers[12],
            heaviest: numbers[13],
        }
    }
}

/// Everyone's numbers, those of a rank that failed with a 1 first: its error, on every rank, if there is one.
fn gather<T>(
    own: Result<(T, Vec<f64>), Error>,
    length: usize,
    ranks: &dyn Communicator,
) -> Result<(T, Vec<f64>), Error> {
    let mut all = vec![0.0; length * ranks.size()];
    let mine = &mut all[length * ranks.rank()..][..length];
    match &own {
        Ok((_, numbers)) => mine.copy_from_slice(numbers),
        Err(_) => mine[0] = 1.0,
    }
    crate::operator::sum_over_ranks(ranks, &mut all)?;
    ranks.broadcast(&mut all, 0)?;
    let failed = all.chunks_exact(length).position(|numbers| numbers[0] > 0.0);
    match (failed, own) {
        (None, Ok((value, _))) => Ok((value, all)),
        (Some(rank), own) => Err(hear(ranks, rank, own.err().filter(|_| rank == ranks.rank()))),
        (None, Err(error)) => Err(error),
    }
}

/// The facts of all ranks.
struct World(Vec<Facts>);

/// What rank 0 decided for all ranks.
struct Begin {
    threads: usize,
    chunk_bytes: u64,
    pool_rows: usize,
    fingerprints: bool,
}

impl World {
    /// Tells the others what there is here; refuses ranks that do not belong together, with the same error on all of them.
    fn meet<'r>(
        facts: Option<Facts>,
        rows: Result<RankRows<'r>, Error>,
        ranks: &dyn Communicator,
    ) -> Result<(Self, RankRows<'r>), Error> {
        let own = rows.map(|rows| (rows, facts.map_or_else(Vec::new, |facts| facts.encode().to_vec())));
        let (rows, all) = gather(own, FACTS, ranks)?;
        let world = Self(all.chunks_exact(FACTS).map(Facts::decode).collect());
        world.check()?;
        Ok((world, rows))
    }

    fn check(&self) -> Result<(), Error> {
        let first = &self.0[0];
        let kind = |facts: &Facts| if facts.sparse { "compressed" } else { "dense" };
        let place = |facts: &Facts| if facts.on_disk { "on disk" } else { "in memory" };
        for (rank, facts) in self.0.iter().enumerate() {
            let (of_parameter, message) = if facts.software != first.software {
                (true, "it is another version than that of rank 0; start the same program everywhere".into())
            } else if facts.choices != first.choices {
                (true, "it was given other choices than rank 0; give all ranks the same arguments".into())
            } else if facts.weighted != first.weighted {
                (
                    true,
                    "it has weights where rank 0 has none, or none; give them to all ranks or to none".into(),
                )
            } else if facts.d != first.d {
                let message = format!(
                    "{} columns where rank 0 has {}; parts of one matrix must agree",
                    facts.d, first.d
                );
                (false, message)
            } else if facts.sparse != first.sparse {
                let (there, here) = (kind(facts), kind(first));
                (false, format!("{there} rows where rank 0 has {here} ones; store all parts alike"))
            } else if facts.on_disk != first.on_disk {
                let (there, here) = (place(facts), place(first));
                (
                    true,
                    format!("its rows are {there}, those of rank 0 {here}; give all ranks the same memory"),
                )
            } else {
                continue;
            };
            return Err(Error::Rank { rank, of_parameter, message });
        }
        Ok(())
    }

    fn shape(&self) -> Shape {
        Shape { n: self.0.iter().map(|facts| facts.n).sum(), d: self.0[0].d }
    }

    fn n_rows(&self) -> Vec<usize> {
        self.0.iter().map(|facts| facts.n).collect()
    }

    fn is_sparse(&self) -> bool {
        self.0[0].sparse
    }

    fn mean_weight(&self) -> f64 {
        self.0.iter().map(|facts| facts.weight).sum::<f64>() / self.shape().n as f64
    }

    /// The row that means are told relative to: the first of the largest weight, wherever it is.
    fn pivot(&self, mut own: Vec<f64>, ranks: &dyn Communicator) -> Result<Vec<f64>, Error> {
        let heavier = |best: usize, rank: usize| {
            if self.0[rank].heaviest > self.0[best].heaviest { rank } else { best }
        };
        let holder = (0..self.0.len()).fold(0, heavier);
        ranks.broadcast(&mut own, holder)?;
        Ok(own)
    }

    fn facts(&self) -> RankFacts {
        let most = |of: fn(&Facts) -> usize| self.0.iter().map(of).max().unwrap_or(0);
        RankFacts {
            shape: self.shape(),
            ranks: self.0.len(),
            sparse: self.is_sparse(),
            most_rows: most(|facts| facts.n),
            most_entries: most(|facts| facts.entries),
            network: Network::default(),
        }
    }

    /// Rows of 256 KiB: what a device reads in little more time than one row.
    fn range(&self) -> usize {
        let bytes: u64 = self.0.iter().map(|facts| facts.bytes).sum();
        let row = (bytes / self.shape().n as u64).max(1);
        (((256 << 10) / row) as usize).max(1)
    }

    /// Rank 0 plans, and tells all ranks what concerns them.
    fn begin(
        &self,
        config: &FitConfig,
        rows: &mut RankRows<'_>,
        fingerprints: bool,
        ranks: &dyn Communicator,
    ) -> Result<(Option<StreamPlan>, Begin), Error> {
        let planned = if ranks.rank() == 0 { self.plan(config, rows) } else { Ok(None) };
        let mut numbers = match &planned {
            Err(_) => [1.0; 5],
            Ok(None) => [0.0, 0.0, 0.0, 0.0, f64::from(u8::from(fingerprints))],
            Ok(Some(plan)) => {
                let (threads, chunk) = (plan.threads as f64, plan.chunk_bytes as f64);
                // The step size of the paper's solvers wants a sample, too.
                let sample = if config.folds(plan.solver) { 0 } else { sample_rows(self.shape().n) };
                let pool = plan.pool_rows.max(sample) as f64;
                [0.0, threads, chunk, pool, f64::from(u8::from(fingerprints))]
            }
        };
        ranks.broadcast(&mut numbers, 0)?;
        if numbers[0] > 0.0 {
            return Err(hear(ranks, 0, planned.err()));
        }
        let [_, threads, chunk_bytes, pool_rows, fingerprints] = numbers;
        let begin = Begin {
            threads: if threads > 0.0 { threads as usize } else { usize::MAX },
            chunk_bytes: chunk_bytes as u64,
            pool_rows: pool_rows as usize,
            fingerprints: fingerprints > 0.0,
        };
        Ok((planned?, begin))
    }

    fn plan(&self, config: &FitConfig, rows: &mut RankRows<'_>) -> Result<Option<StreamPlan>, Error> {
        let Shape { n, d } = self.shape();
        config.check(n, d)?;
        match rows {
            RankRows::Memory(_) => Ok(None),
            RankRows::Disk { rows, memory } => {
                let mut all = AllRows { local: &mut **rows, world: self };
                config.plan_streamed(&mut all, *memory).map(Some)
            }
        }
    }

    /// What every rank prepared; the fingerprints of all ranks.
    fn agree<'r>(
        prepared: Result<Prepared<'r>, Error>,
        ranks: &dyn Communicator,
    ) -> Result<(Prepared<'r>, Vec<f64>), Error> {
        let own = prepared.map(|prepared| {
            let hash = prepared.fingerprint;
            (prepared, vec![0.0, (hash >> 32) as f64, (hash & 0xffff_ffff) as f64])
        });
        gather(own, 3, ranks)
    }

    /// The data of all ranks, as checkpoints name it.
    fn fingerprint(&self, hashes: &[f64], begin: &Begin) -> String {
        if !begin.fingerprints {
            return String::new();
        }
        let mut hasher = XxHash3_64::with_seed(0);
        hashes.iter().for_each(|number| hasher.write(&number.to_le_bytes()));
        let (Shape { n, d }, ranks) = (self.shape(), self.0.len());
        let hash = hasher.finish();
        format!("{n} × {d} on {ranks} ranks, {hash:016x}, pool of {}", begin.pool_rows)
    }
}

/// A rank that is ready.
struct Prepared<'a> {
    shard: Box<dyn Shard + 'a>,
    pool: ThreadPool,
    fingerprint: u64,
}

/// What a rank's rows are prepared with.
struct Preparing<'a, 'c> {
    weights: Option<&'a [f64]>,
    narrowed: bool,
    config: &'c FitConfig,
    cancel: &'c CancelToken,
    rank: usize,
}

impl<'a> Preparing<'a, '_> {
    fn shard(self, rows: RankRows<'a>, world: &World, begin: &Begin) -> Result<Prepared<'a>, Error> {
        let Self { weights, narrowed, config, cancel, rank } = self;
        let pool = config.thread_pool(begin.threads)?;
        let (shard, print): (Box<dyn Shard + 'a>, String) = match rows {
            RankRows::Memory(matrix) => {
                let print = if begin.fingerprints { matrix.fingerprint(weights) } else { String::new() };
                let shard = MatrixShard {
                    matrix,
                    weights,
                    mean_weight: world.mean_weight(),
                    narrowed,
                    preprocessing: config.preprocessing,
                    precision: config.precision,
                    cancel: cancel.clone(),
                    operator: None,
                };
                (Box::new(shard), print)
            }
            RankRows::Disk { mut rows, .. } => {
                rows.cut(begin.chunk_bytes)?;
                let print =
                    if begin.fingerprints { fingerprint_of_chunks(&mut rows, None)? } else { String::new() };
                let (mine, all) = (rows.n_rows() as u128, world.shape().n as u128);
                let share = (begin.pool_rows as u128 * mine).div_ceil(all) as usize;
                let streamed = Streamed::new(rows, config.preprocessing)?
                    .with_pool(share, config.seed.wrapping_add(rank as u64))
                    .abandoned_by(cancel)
                    .in_precision(config.precision);
                (Box::new(streamed), print)
            }
        };
        let mut hasher = XxHash3_64::with_seed(0);
        hasher.write(print.as_bytes());
        Ok(Prepared { shard, pool, fingerprint: hasher.finish() })
    }
}

/// The rows of all ranks as plans see them: as many as there are, cut as those of rank 0 are.
struct AllRows<'a> {
    local: &'a mut dyn RowChunks,
    world: &'a World,
}

impl RowChunks for AllRows<'_> {
    fn n_rows(&self) -> usize {
        self.world.shape().n
    }
    fn n_cols(&self) -> usize {
        self.local.n_cols()
    }
    fn nnz(&self) -> usize {
        self.world.0.iter().map(|facts| facts.entries).sum()
    }
    fn is_sparse(&self) -> bool {
        self.local.is_sparse()
    }
    fn bytes(&self) -> u64 {
        self.world.0.iter().map(|facts| facts.bytes).sum()
    }
    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        self.local.cut(bytes)
    }
    fn starts(&self) -> &[usize] {
        self.local.starts()
    }
    fn read_chunk(&mut self, i: usize, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        self.local.read_chunk(i, recycled)
    }
    fn read_rows(&mut self, rows: std::ops::Range<usize>) -> Result<Matrix<'static>, Error> {
        self.local.read_rows(rows)
    }
}
