//! What a fit of rows on disk will cost in memory and in passes, decided before any of them is read.
//!
//! Everything resident is counted, in bytes, for n rows of d columns and blocks of P vectors. T threads are used at most: as many as
//! take an eighth of the memory, and 64; a plan must not depend on how many there are, since results must not:
//!
//! ```text
//! program      24 MiB: code, stacks, small things
//! weights      8n·3, where there are such
//! chunks       3·chunk: one being read, one ready, one being multiplied
//! statistics   8d·(8T + 18): sums of every worker, means, scales
//! vectors      anchored     8d·[3(a + P) + 9P]          Q, CQ and room to combine them; W, G, X, Z, … ; P = p + k
//!              krylov       8d·[2(m + P) + 6P]
//!              covariance   8d²·(1 + T), or 8d²·(5 + T) where all of C is decomposed
//!              others       8d·12
//! workers      8dP·3T: packed vectors and sums
//! pool         r·(row + 8)
//! allocator    an eighth of all that
//! ```

mod candidates;
mod facts;
#[cfg(test)]
mod tests;

use candidates::Candidate;
pub(super) use facts::Facts;

use super::{Plan, Sizes};
use crate::Error;
use crate::config::FitConfig;
use crate::error::human;
use crate::matrix::RowChunks;
use crate::missing::Missing;
use crate::operator::{IN_FLIGHT, Shape};
use crate::solver::{AnchoredSizes, KrylovSizes, SolverKind};

/// Memory of a program that has not begun.
const PROGRAM: u64 = 24 << 20;
/// Chunks of this size are read as fast as larger ones.
const LARGEST_CHUNK: u64 = 16 << 20;
/// Smaller ones are not, unless a row is all there is.
const SMALLEST_CHUNK: u64 = 64 << 10;
/// Share of the rows beyond which a larger pool brings nothing.
const LARGEST_POOL: f64 = 0.25;
/// Threads that are planned for at most.
const MOST_THREADS: u64 = 64;
/// Columns up to which forming C in memory is likely.
const LIKELY_FORMED: usize = 2000;

/// How rows on disk will be fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamPlan {
    /// The solver.
    pub solver: SolverKind,
    /// Why this solver.
    pub chosen_because: String,
    /// Bytes that a chunk may take in memory.
    pub chunk_bytes: u64,
    /// Rows kept in memory for mini-batches.
    pub pool_rows: usize,
    /// Rows read before the first pass.
    pub sample_rows: usize,
    /// Full passes that such a fit usually takes, statistics included.
    pub passes: f64,
    /// Bytes that they read.
    pub bytes: u64,
    /// Bytes of memory that are taken at most.
    pub memory: u64,
    /// Threads that are used at most.
    pub threads: usize,
    /// Components that the memory was planned for.
    pub(crate) most_components: usize,
    /// p and a (or m) of `anchored` and `krylov`.
    pub(crate) block: usize,
    pub(crate) kept: usize,
}

impl StreamPlan {
    /// The solver and its sizes for as many components as `config` asks for; mini-batches from disk come in ranges of `range` rows.
    pub(crate) fn for_components(
        &self,
        shape: Shape,
        config: &FitConfig,
        range: usize,
    ) -> Result<Plan, Error> {
        let (Shape { n, .. }, k) = (shape, config.k);
        if k > self.most_components && self.solver != SolverKind::Covariance {
            let advice = format!(
                "memory was planned for {} components, which explain less than the share asked for; give a number with \
                 k, or choose the solver covariance",
                self.most_components
            );
            return Err(Error::parameter("k", k, advice));
        }
        let (block, kept) = (self.block.max(k), self.kept.max(k));
        let sizes = match self.solver {
            SolverKind::Krylov => {
                Sizes::Krylov { sizes: KrylovSizes { block, memory: kept }, with_row_gram: false }
            }
            SolverKind::Anchored => {
                let suiting = AnchoredSizes::suiting(n, k).within(config.limits.max_passes, n);
                let rows = self.pool_rows.max(1);
                let sizes = AnchoredSizes {
                    block,
                    anchors: kept,
                    batch: suiting.batch.min(rows),
                    start_rows: suiting.start_rows.min(rows),
                };
                Sizes::Anchored { sizes, rows }
            }
            _ => Sizes::Batches { range },
        };
        let chosen_because = self.chosen_because.clone();
        let mut plan = Plan { solver: self.solver, chosen_because, k, looks_worth: None, sizes };
        plan.ask_for_a_share(shape, config);
        Ok(plan)
    }
}

impl FitConfig {
    /// Plans a fit of rows on disk within `memory` bytes, and cuts their chunks accordingly. A storage may cut them otherwise than it
    /// was asked to: the plan is for the chunks that there are.
    pub fn plan_streamed(&self, rows: &mut dyn RowChunks, memory: u64) -> Result<StreamPlan, Error> {
        self.plan_streamed_beside(rows, memory, 0)
    }

    /// The same where `beside` bytes are taken by what belongs to the rows, such as their [weights](Self::bytes_of_weights).
    pub fn plan_streamed_beside(
        &self,
        rows: &mut dyn RowChunks,
        memory: u64,
        beside: u64,
    ) -> Result<StreamPlan, Error> {
        let chunk_bytes = self.plan_with_chunks(rows, memory, beside, None)?.chunk_bytes;
        rows.cut(chunk_bytes / self.growth_of_rows())?;
        let longest = rows.starts().windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) as u64;
        let row = rows.bytes() / rows.n_rows().max(1) as u64;
        self.plan_with_chunks(rows, memory, beside, Some(longest * row.max(1) * self.growth_of_rows()))
    }

    /// Bytes that rows take in memory for each that they take on disk: those that `em` completes are f64, and their f32 is there until they are.
    fn growth_of_rows(&self) -> u64 {
        if self.missing == Missing::Em { 3 } else { 1 }
    }

    /// Memory of the weights of n rows: as they were given, scaled to mean 1, and those of the resident rows. Rows are dropped by a weight of 0.
    pub fn bytes_of_weights(&self, n: usize, weights: Option<&[f64]>) -> u64 {
        let weighted = weights.is_some() || self.missing == Missing::DropRows;
        if weighted { 3 * 8 * n as u64 } else { 0 }
    }

    /// The same for chunks that are cut and take `chunk` bytes.
    fn plan_with_chunks(
        &self,
        rows: &dyn RowChunks,
        memory: u64,
        beside: u64,
        chunk: Option<u64>,
    ) -> Result<StreamPlan, Error> {
        self.check(rows.n_rows(), rows.n_cols())?;
        let facts = Facts::of(rows).read_at(self.disk_rate);
        let facts = Facts { row: facts.row * self.growth_of_rows(), ..facts };
        let chunk_of = |usable: u64| {
            chunk.unwrap_or_else(|| (usable / 16).clamp(SMALLEST_CHUNK, LARGEST_CHUNK).max(facts.row))
        };
        let smallest_chunk = chunk.unwrap_or(SMALLEST_CHUNK.max(facts.row));
        let fixed = PROGRAM.saturating_add(beside);
        let usable = memory - memory / 8;
        let room = usable.saturating_sub(fixed);
        let fits = |candidate: &Candidate| {
            candidate.needs.least().saturating_add(IN_FLIGHT as u64 * smallest_chunk) <= room
        };
        let candidates = self.candidates(&facts);
        let Some(chosen) = self.choose_among(&facts, &candidates, fits, room) else {
            let least = candidates.iter().map(|candidate| candidate.needs.least()).min().unwrap_or(0);
            let least = least.saturating_add(fixed + IN_FLIGHT as u64 * smallest_chunk);
            // An eighth is for the allocator; whole megabytes are easier to type.
            let least = least.saturating_add(least / 7).div_ceil(1 << 20);
            let advice = format!(
                "{} components of {} columns in chunks of at least one row need {least}M; give that or more",
                self.k, facts.d
            );
            return Err(Error::parameter("memory", human(memory), advice));
        };
        let left = room - chosen.needs.least() - IN_FLIGHT as u64 * smallest_chunk;
        let threads = (1 + left.min(memory / 8) / chosen.needs.worker).min(MOST_THREADS);
        let needed = chosen.needs.kept + threads * chosen.needs.worker;
        let left = room - needed;
        let chunk_bytes = chunk_of(usable).min(left / (IN_FLIGHT as u64 + 1)).max(smallest_chunk);
        let left = left.saturating_sub(IN_FLIGHT as u64 * chunk_bytes);
        let pool_rows = if chosen.pool { pool_rows(&facts, left) } else { 0 };
        let sample_rows = sample_rows(&facts, pool_rows);
        let used = fixed
            + needed
            + IN_FLIGHT as u64 * chunk_bytes
            + pool_rows as u64 * (facts.row + 8) * if facts.sparse { 2 } else { 1 };
        let separate = if self.folds(chosen.solver) { 0.0 } else { 1.0 };
        let passes = chosen.passes + separate;
        let sampled = sample_rows as f64 / facts.n as f64;
        Ok(StreamPlan {
            solver: chosen.solver,
            chosen_because: self.reason(&facts, &chosen, &candidates),
            chunk_bytes,
            pool_rows,
            sample_rows,
            passes,
            bytes: ((passes + sampled) * facts.bytes as f64) as u64,
            memory: (used + used / 7).min(memory),
            threads: threads as usize,
            most_components: self.planned_components(&facts),
            block: chosen.block,
            kept: chosen.kept,
        })
    }

    /// k, or more where a share of the variance may ask for more.
    fn planned_components(&self, facts: &Facts) -> usize {
        const OF_A_SHARE: usize = 64;
        match self.variance_share {
            None => self.k,
            Some(_) => self.k.max(OF_A_SHARE).min(facts.n).min(facts.d),
        }
    }

    /// Whether the first pass of this solver gathers the statistics too. A start that was given is meant for the true scale
    /// of the columns.
    pub(crate) fn folds(&self, solver: SolverKind) -> bool {
        let folding = matches!(solver, SolverKind::Anchored | SolverKind::Krylov | SolverKind::Covariance);
        let scaled = self.preprocessing.scaling != crate::Scaling::None;
        folding && !(scaled && self.start.is_some())
    }

    /// Bytes besides the rows that a fit in memory takes, on all threads of this machine.
    pub fn memory_beside(&self, rows: &dyn RowChunks) -> u64 {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.memory_beside_on(rows, threads)
    }

    /// The same on so many threads, whatever the machine has. The matrix that `em` completes is a copy in f64.
    pub fn memory_beside_on(&self, rows: &dyn RowChunks, threads: usize) -> u64 {
        let facts = Facts::of(rows);
        let threads = threads as u64;
        let likely = |candidate: &&Candidate| match (self.solver, candidate.solver) {
            (SolverKind::Auto, SolverKind::Covariance) => facts.d <= LIKELY_FORMED,
            (SolverKind::Auto, solver) => solver == SolverKind::Krylov,
            _ => true,
        };
        let candidates = self.candidates(&facts);
        let most = candidates
            .iter()
            .filter(likely)
            .map(|x| x.needs.kept.saturating_add(threads.saturating_mul(x.needs.worker)))
            .max();
        let completed = if self.missing == Missing::Em { 8 * rows.nnz() as u64 } else { 0 };
        most.unwrap_or(0).saturating_add(PROGRAM).saturating_add(completed)
    }
}

/// Rows of the pool: what fits, but no more than is useful. Compressed rows differ in length; half the room is left to that.
fn pool_rows(facts: &Facts, left: u64) -> usize {
    let left = if facts.sparse { left / 2 } else { left };
    let fitting = left / (facts.row + 8);
    (facts.n as f64 * LARGEST_POOL).min(fitting as f64) as usize
}

/// Rows of the sample before the first pass: 2 % or 1500 rows, more where they are few.
fn sample_rows(facts: &Facts, pool: usize) -> usize {
    let wanted = AnchoredSizes::suiting(facts.n, 1).start_rows.min(50_000);
    let enough_for_means = 500.min(facts.n);
    wanted.min(pool).max(enough_for_means)
}
