//! What ranks tell each other before a fit, and what rank 0 decides for all of them.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

use super::RankRows;
use crate::Error;
use crate::choose::{Network, RankFacts, StreamPlan, sample_rows};
use crate::columns::all_weights_zero;
use crate::config::FitConfig;
use crate::matrix::{Matrix, RowChunks};
use crate::operator::{Communicator, Holders, Shape, hear, sum_over_ranks};

/// Ranks that plans count with where results must not depend on how many there are.
const NOMINAL_RANKS: usize = 4;

/// How rows were cut into shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// One for each rank.
    ByRanks,
    /// Without asking how many ranks there are.
    ByData,
}

/// What every rank tells the others of each of its shards before the fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Hashes of the version and of the choices.
    pub(super) software: u64,
    pub(super) choices: u64,
    pub(super) n: usize,
    pub(super) d: usize,
    pub(super) entries: usize,
    pub(super) bytes: u64,
    pub(super) sparse: bool,
    pub(super) on_disk: bool,
    pub(super) weighted: bool,
    /// Σw, and the largest.
    pub(super) weight: f64,
    pub(super) heaviest: f64,
}

/// Numbers of the facts.
const FACTS: usize = 13;

impl Facts {
    fn encode(&self) -> [f64; FACTS] {
        let ([a, b], [c, d]) = (halves(self.software), halves(self.choices));
        let flag = |x: bool| f64::from(u8::from(x));
        let sizes = [self.n as f64, self.d as f64, self.entries as f64, self.bytes as f64];
        let [sparse, on_disk, weighted] = [self.sparse, self.on_disk, self.weighted].map(flag);
        let [n, columns, entries, bytes] = sizes;
        let (weight, heaviest) = (self.weight, self.heaviest);
        [a, b, c, d, n, columns, entries, bytes, sparse, on_disk, weighted, weight, heaviest]
    }

    fn decode(numbers: &[f64]) -> Self {
        let whole = |at: usize| ((numbers[at] as u64) << 32) | numbers[at + 1] as u64;
        Self {
            software: whole(0),
            choices: whole(2),
            n: numbers[4] as usize,
            d: numbers[5] as usize,
            entries: numbers[6] as usize,
            bytes: numbers[7] as u64,
            sparse: numbers[8] > 0.0,
            on_disk: numbers[9] > 0.0,
            weighted: numbers[10] > 0.0,
            weight: numbers[11],
            heaviest: numbers[12],
        }
    }
}

fn halves(number: u64) -> [f64; 2] {
    [(number >> 32) as f64, (number & 0xffff_ffff) as f64]
}

/// What this rank did, where all ranks could; else the error of the first that could not, on every rank.
pub(super) fn everyone<T>(own: Result<T, Error>, ranks: &dyn Communicator) -> Result<T, Error> {
    let failed = numbers_of_all(&[f64::from(u8::from(own.is_err()))], ranks.rank(), ranks.size(), ranks)?;
    match (failed.iter().position(|failed| *failed > 0.0), own) {
        (None, own) => own,
        (Some(rank), own) => Err(hear(ranks, rank, own.err().filter(|_| rank == ranks.rank()))),
    }
}

/// Everyone's numbers, those of this rank from place `at` on.
fn numbers_of_all(
    own: &[f64],
    at: usize,
    length: usize,
    ranks: &dyn Communicator,
) -> Result<Vec<f64>, Error> {
    let mut all = vec![0.0; length];
    all[at..at + own.len()].copy_from_slice(own);
    sum_over_ranks(ranks, &mut all)?;
    ranks.broadcast(&mut all, 0)?;
    Ok(all)
}

/// The shards of all ranks.
pub(super) struct World {
    shards: Vec<Facts>,
    /// The rank of every shard.
    owners: Vec<usize>,
    cut: Cut,
}

/// What rank 0 decided for all ranks.
pub(super) struct Begin {
    pub(super) threads: usize,
    pub(super) chunk_bytes: u64,
    pub(super) pool_rows: usize,
    pub(super) fingerprints: bool,
}

impl World {
    /// Tells the others what there is here; refuses ranks that do not belong together, with the same error on all of them.
    pub(super) fn meet<T>(
        own: Result<(T, Vec<Facts>), Error>,
        cut: Cut,
        ranks: &dyn Communicator,
    ) -> Result<(Self, T), Error> {
        let (own, mine) = everyone(own, ranks)?;
        let counts = numbers_of_all(&[mine.len() as f64], ranks.rank(), ranks.size(), ranks)?;
        let owners: Vec<usize> =
            counts.iter().enumerate().flat_map(|(rank, count)| vec![rank; *count as usize]).collect();
        let first = owners.partition_point(|owner| *owner < ranks.rank());
        let mine: Vec<f64> = mine.iter().flat_map(Facts::encode).collect();
        let all = numbers_of_all(&mine, FACTS * first, FACTS * owners.len(), ranks)?;
        let world = Self { shards: all.chunks_exact(FACTS).map(Facts::decode).collect(), owners, cut };
        world.check()?;
        Ok((world, own))
    }

    fn check(&self) -> Result<(), Error> {
        let first = &self.shards[0];
        let kind = |facts: &Facts| if facts.sparse { "compressed" } else { "dense" };
        let place = |facts: &Facts| if facts.on_disk { "on disk" } else { "in memory" };
        if first.weighted && self.weight().is_none_or(|weight| weight <= 0.0) {
            return Err(all_weights_zero());
        }
        for (&rank, facts) in self.owners.iter().zip(&self.shards) {
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

    pub(super) fn shape(&self) -> Shape {
        Shape { n: self.shards.iter().map(|facts| facts.n).sum(), d: self.shards[0].d }
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.shards[0].sparse
    }

    /// Σw, where rows have weights.
    pub(super) fn weight(&self) -> Option<f64> {
        self.shards[0].weighted.then(|| self.shards.iter().map(|facts| facts.weight).sum())
    }

    /// The row that means are told relative to: the first of the largest weight, wherever it is.
    pub(super) fn pivot(&self, mut own: Vec<f64>, ranks: &dyn Communicator) -> Result<Vec<f64>, Error> {
        let heavier = |best: usize, shard: usize| {
            if self.shards[shard].heaviest > self.shards[best].heaviest { shard } else { best }
        };
        let holder = self.owners[(0..self.shards.len()).fold(0, heavier)];
        ranks.broadcast(&mut own, holder)?;
        Ok(own)
    }

    pub(super) fn facts(&self) -> RankFacts {
        let most = |of: fn(&Facts) -> usize| self.shards.iter().map(of).max().unwrap_or(0);
        // Shards that do not tell how many ranks there are count as those of so many.
        let ranks = match self.cut {
            Cut::ByRanks => self.shards.len(),
            Cut::ByData => NOMINAL_RANKS.min(self.shards.len()),
        };
        let each = self.shards.len().div_ceil(ranks);
        RankFacts {
            shape: self.shape(),
            ranks,
            sparse: self.is_sparse(),
            most_rows: each * most(|facts| facts.n),
            most_entries: each * most(|facts| facts.entries),
            network: Network::default(),
        }
    }

    /// The first shard of a rank.
    pub(super) fn first_of(&self, rank: usize) -> usize {
        self.owners.partition_point(|owner| *owner < rank)
    }

    pub(super) fn holders(&self) -> Holders {
        let n_rows: Vec<usize> = self.shards.iter().map(|facts| facts.n).collect();
        Holders::new(self.owners.clone(), &n_rows)
    }

    /// Rows of 256 KiB: what a device reads in little more time than one row.
    pub(super) fn range(&self) -> usize {
        let bytes: u64 = self.shards.iter().map(|facts| facts.bytes).sum();
        let row = (bytes / self.shape().n as u64).max(1);
        (((256 << 10) / row) as usize).max(1)
    }

    /// Rank 0 plans, and tells all ranks what concerns them.
    pub(super) fn begin(
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

    /// The data of all ranks, as checkpoints name it: from a hash of each shard.
    pub(super) fn fingerprint(
        &self,
        prints: &[u64],
        begin: &Begin,
        ranks: &dyn Communicator,
    ) -> Result<String, Error> {
        if !begin.fingerprints {
            return Ok(String::new());
        }
        let first = self.first_of(ranks.rank());
        let own: Vec<f64> = prints.iter().flat_map(|print| halves(*print)).collect();
        let all = numbers_of_all(&own, 2 * first, 2 * self.owners.len(), ranks)?;
        let mut hasher = XxHash3_64::with_seed(0);
        all.iter().for_each(|number| hasher.write(&number.to_le_bytes()));
        let (Shape { n, d }, shards, pool) = (self.shape(), self.shards.len(), begin.pool_rows);
        let place = match self.cut {
            Cut::ByRanks => format!("on {shards} ranks"),
            Cut::ByData => format!("in {shards} shards"),
        };
        Ok(format!("{n} × {d} {place}, {:016x}, pool of {pool}", hasher.finish()))
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
        self.world.shards.iter().map(|facts| facts.entries).sum()
    }
    fn is_sparse(&self) -> bool {
        self.local.is_sparse()
    }
    fn bytes(&self) -> u64 {
        self.world.shards.iter().map(|facts| facts.bytes).sum()
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
