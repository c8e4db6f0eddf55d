//! What a fit of rows on disk will cost in memory and in passes, decided before any of them is read.
//!
//! Everything resident is counted, in bytes, for n rows of d columns and blocks of P vectors. T threads are used at most: as many as
//! take an eighth of the memory, and 64; a plan must not depend on how many there are, since results must not:
//!
//! ```text
//! program      24 MiB: code, stacks, small things
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

use super::{FitConfig, SolverKind};
use crate::matrix::RowChunks;
use crate::operator::IN_FLIGHT;
use crate::solver::{AnchoredSizes, KrylovSizes, solves_partially};
use crate::{Error, Limits};

/// Memory of a program that has not begun.
const PROGRAM: u64 = 24 << 20;
/// Chunks of this size are read as fast as larger ones.
const LARGEST_CHUNK: u64 = 16 << 20;
/// Smaller ones are not, unless a row is all there is.
const SMALLEST_CHUNK: u64 = 64 << 10;
/// Share of the rows beyond which a larger pool brings nothing.
const LARGEST_POOL: f64 = 0.25;
/// Rows that a pool needs to be worth it.
const SMALLEST_POOL: usize = 1500;
/// Threads that are planned for at most.
const MOST_THREADS: u64 = 64;
/// What a device reads and a small machine multiplies, where only their ratio decides: bytes and multiply-adds a second.
const READ_RATE: f64 = 1e9;
const MULTIPLY_RATE: f64 = 30e9;
/// Products with compressed rows, whose entries are scattered, are slower by this.
const SPARSE_PRODUCTS: f64 = 24.0;
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
    pub(super) most_components: usize,
    /// p and a (or m) of `anchored` and `krylov`.
    pub(super) block: usize,
    pub(super) kept: usize,
}

/// The facts that decide.
#[derive(Clone, Copy)]
struct Facts {
    n: usize,
    d: usize,
    nnz: f64,
    sparse: bool,
    bytes: u64,
    /// Mean bytes of a row.
    row: u64,
}

impl Facts {
    fn of(rows: &dyn RowChunks) -> Self {
        let (n, d) = (rows.n_rows(), rows.n_cols());
        let (nnz, bytes) = (rows.nnz() as f64, rows.bytes());
        let row = bytes.div_ceil(n.max(1) as u64).max(1);
        Self { n, d, nnz, sparse: rows.is_sparse(), bytes, row }
    }

    /// Bytes of one vector.
    fn vector(&self) -> u64 {
        8 * self.d as u64
    }

    /// Statistics, and a solver that keeps `kept` bytes, with workers that take `each`.
    fn needs(&self, kept: u64, each: u64) -> Needs {
        Needs {
            kept: kept.saturating_add(18 * self.vector()),
            worker: each.saturating_add(8 * self.vector()),
        }
    }

    fn anchored(&self, k: usize, block: usize, anchors: usize) -> Needs {
        let p = block.min(self.d) + k.min(self.d);
        let kept = anchors.min(self.d) + p;
        self.needs(self.vector() * (3 * kept + 9 * p) as u64, self.vector() * 3 * p as u64)
    }

    fn krylov(&self, block: usize, kept: usize) -> Needs {
        let p = block.min(self.d);
        let vectors = 2 * (kept.min(self.d) + p) + 6 * p;
        self.needs(self.vector() * vectors as u64, self.vector() * 3 * p as u64)
    }

    fn covariance(&self, k: usize) -> Needs {
        let square = self.vector().saturating_mul(self.d as u64);
        let decomposed = if solves_partially(self.d, k) { 1 } else { 5 };
        let sizes = KrylovSizes::suiting_formed(k);
        let krylov = self.vector() * (2 * (sizes.memory.min(self.d) + sizes.block)) as u64;
        self.needs(square.saturating_mul(decomposed).saturating_add(krylov), square)
    }

    /// Seconds of a pass that multiplies with p vectors.
    fn pass_seconds(&self, p: usize) -> f64 {
        let slower = if self.sparse { SPARSE_PRODUCTS } else { 1.0 };
        let multiplying = 2.0 * self.nnz * p as f64 * slower / MULTIPLY_RATE;
        multiplying.max(self.bytes as f64 / READ_RATE)
    }

    /// Seconds of forming C.
    fn forming_seconds(&self) -> f64 {
        let multiplying = self.n as f64 * (self.d as f64).powi(2) / 2.0 / MULTIPLY_RATE;
        multiplying.max(self.bytes as f64 / READ_RATE)
    }
}

/// Bytes besides chunks and pool.
#[derive(Clone, Copy)]
struct Needs {
    kept: u64,
    /// Of every thread.
    worker: u64,
}

impl Needs {
    /// With one thread.
    fn least(self) -> u64 {
        self.kept.saturating_add(self.worker)
    }
}

/// A solver, its sizes and what it needs.
#[derive(Clone, Copy)]
struct Candidate {
    solver: SolverKind,
    block: usize,
    kept: usize,
    needs: Needs,
    passes: f64,
    pool: bool,
}

impl FitConfig {
    /// Plans a fit of rows on disk within `memory` bytes. The chunks of `rows` need not be cut as the plan wants yet.
    pub fn plan_streamed(&self, rows: &dyn RowChunks, memory: u64) -> Result<StreamPlan, Error> {
        self.plan_with_chunks(rows, memory, None)
    }

    /// The same for chunks that are cut and take `chunk` bytes.
    pub(super) fn plan_with_chunks(
        &self,
        rows: &dyn RowChunks,
        memory: u64,
        chunk: Option<u64>,
    ) -> Result<StreamPlan, Error> {
        self.check(rows.n_rows(), rows.n_cols())?;
        let facts = Facts::of(rows);
        let chunk_of = |usable: u64| {
            chunk.unwrap_or_else(|| (usable / 16).clamp(SMALLEST_CHUNK, LARGEST_CHUNK).max(facts.row))
        };
        let smallest_chunk = chunk.unwrap_or(SMALLEST_CHUNK.max(facts.row));
        let fixed = PROGRAM;
        let usable = memory - memory / 8;
        let room = usable.saturating_sub(fixed);
        let fits = |candidate: &Candidate| {
            candidate.needs.least().saturating_add(IN_FLIGHT as u64 * smallest_chunk) <= room
        };
        let candidates = self.candidates(&facts);
        let Some(chosen) = self.choose_among(&facts, &candidates, fits, room) else {
            let least = candidates.iter().map(|candidate| candidate.needs.least()).min().unwrap_or(0);
            let least = fixed + least + IN_FLIGHT as u64 * smallest_chunk;
            // An eighth is for the allocator; whole megabytes are easier to type.
            let least = (least + least / 7).div_ceil(1 << 20);
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
    pub(super) fn folds(&self, solver: SolverKind) -> bool {
        let folding = matches!(solver, SolverKind::Anchored | SolverKind::Krylov | SolverKind::Covariance);
        let scaled = self.preprocessing.scaling != crate::Scaling::None;
        folding && !(scaled && self.start.is_some())
    }

    /// Everything that could run, preferred sizes first.
    fn candidates(&self, facts: &Facts) -> Vec<Candidate> {
        let k = self.planned_components(facts);
        let wanted = |solver: SolverKind| self.solver == SolverKind::Auto || self.solver == solver;
        let mut all = Vec::new();
        if wanted(SolverKind::Covariance) {
            let needs = facts.covariance(k);
            let solver = SolverKind::Covariance;
            all.push(Candidate { solver, block: 0, kept: 0, needs, passes: 1.0, pool: false });
        }
        if wanted(SolverKind::Anchored) {
            let suiting = AnchoredSizes::suiting(facts.n, k);
            for share in [1, 2, 4] {
                let block = (suiting.block / share).max(k + 2).min(facts.d);
                let needs = facts.anchored(k, block, 4 * block);
                let (solver, passes) =
                    (SolverKind::Anchored, anchored_passes(&self.limits, k) + (share / 2) as f64);
                all.push(Candidate { solver, block, kept: 4 * block, needs, passes, pool: true });
            }
        }
        if wanted(SolverKind::Krylov) {
            let suiting = if facts.sparse { KrylovSizes::suiting_sparse(k) } else { KrylovSizes::suiting(k) };
            for share in [1, 2, 4] {
                let block = (suiting.block / share).max(2).min(facts.d);
                let kept = (suiting.memory / share).max(k + 2 * block).min(facts.d);
                let needs = facts.krylov(block, kept);
                let passes = krylov_passes(&self.limits, k) * share as f64;
                let solver = SolverKind::Krylov;
                all.push(Candidate { solver, block, kept, needs, passes, pool: false });
            }
        }
        if all.is_empty() {
            let needs = facts.needs(12 * facts.vector(), 3 * facts.vector());
            let passes = self.limits.max_passes.min(50.0);
            all.push(Candidate { solver: self.solver, block: 1, kept: 0, needs, passes, pool: false });
        }
        all
    }

    /// The solver that is done first, by the time of reading or of arithmetic, whichever is longer.
    fn choose_among(
        &self,
        facts: &Facts,
        candidates: &[Candidate],
        fits: impl Fn(&Candidate) -> bool,
        room: u64,
    ) -> Option<Candidate> {
        let seconds = |candidate: &Candidate| match candidate.solver {
            SolverKind::Covariance => facts.forming_seconds(),
            _ => candidate.passes * facts.pass_seconds(candidate.block + self.k),
        };
        // Of each solver the first that fits: the largest sizes. Anchors without a pool are a second choice.
        let pool = SMALLEST_POOL.min(facts.n / 10) as u64 * (facts.row + 8);
        let with_pool = |candidate: &Candidate| {
            let chunks = (IN_FLIGHT as u64 + 1) * SMALLEST_CHUNK.max(facts.row);
            !candidate.pool || candidate.needs.least() + pool + chunks <= room
        };
        let first = |solver: SolverKind| {
            let mut fitting = candidates.iter().filter(|x| x.solver == solver && fits(x));
            let pooled = fitting.clone().find(|candidate| with_pool(candidate));
            pooled.or_else(|| fitting.next())
        };
        let kinds = [SolverKind::Covariance, SolverKind::Anchored, SolverKind::Krylov, self.solver];
        let best = kinds.into_iter().filter_map(first).min_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        best.copied()
    }

    /// Bytes besides the rows that a fit in memory takes, on all threads of this machine.
    pub fn memory_beside(&self, rows: &dyn RowChunks) -> u64 {
        let facts = Facts::of(rows);
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
        let likely = |candidate: &&Candidate| match (self.solver, candidate.solver) {
            (SolverKind::Auto, SolverKind::Covariance) => facts.d <= LIKELY_FORMED,
            (SolverKind::Auto, solver) => solver == SolverKind::Krylov,
            _ => true,
        };
        let candidates = self.candidates(&facts);
        let most = candidates.iter().filter(likely).map(|x| x.needs.kept + threads * x.needs.worker).max();
        PROGRAM + most.unwrap_or(0)
    }

    fn reason(&self, facts: &Facts, chosen: &Candidate, candidates: &[Candidate]) -> String {
        if self.solver != SolverKind::Auto {
            return "asked for".to_owned();
        }
        let bytes = human(facts.bytes);
        match chosen.solver {
            SolverKind::Covariance => format!(
                "one pass over {bytes} on disk forms C; {} multiply-adds a row of {} bytes do not hold it up for long",
                facts.d * facts.d / 2,
                facts.row
            ),
            SolverKind::Anchored => format!(
                "about {} passes over {bytes} on disk where krylov would read {}{}",
                chosen.passes,
                krylov_passes(&self.limits, self.k).round(),
                too_large(facts, candidates)
            ),
            _ => {
                let rival = candidates.iter().any(|candidate| {
                    candidate.solver == SolverKind::Anchored
                        && candidate.needs.least() <= chosen.needs.least()
                });
                let why = if facts.sparse && !rival {
                    "fewer passes would take longer, with more vectors to multiply"
                } else {
                    "the memory holds no anchors"
                };
                format!("about {} passes over {bytes} on disk; {why}", chosen.passes.round())
            }
        }
    }
}

/// Why C is not formed.
fn too_large(facts: &Facts, candidates: &[Candidate]) -> String {
    let covariance = candidates.iter().find(|candidate| candidate.solver == SolverKind::Covariance);
    covariance.map_or_else(String::new, |covariance| {
        format!(
            " and forming C of {} columns would take {} and {:.0} s of arithmetic",
            facts.d,
            human(covariance.needs.least()),
            facts.forming_seconds()
        )
    })
}

/// Passes to a tolerance on ordinary data: 4 to 10⁻⁶ and 6 to 10⁻¹² for one component, twice as many for ten.
fn anchored_passes(limits: &Limits, k: usize) -> f64 {
    let digits = -limits.tol.max(1e-15).log10();
    ((2.0 + digits / 3.0) * (1.0 + (k as f64).ln() / 2.3)).ceil().min(limits.max_passes)
}

/// The same for `krylov`, which has no sample to start from and none in between.
fn krylov_passes(limits: &Limits, k: usize) -> f64 {
    let digits = -limits.tol.max(1e-15).log10();
    ((4.0 + digits) * (1.0 + (k as f64).ln() / 4.0)).ceil().min(limits.max_passes)
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

/// A number of bytes as people write it.
pub(crate) fn human(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    /// Rows that nobody reads.
    struct Claimed {
        n: usize,
        d: usize,
    }

    impl RowChunks for Claimed {
        fn n_rows(&self) -> usize {
            self.n
        }
        fn n_cols(&self) -> usize {
            self.d
        }
        fn nnz(&self) -> usize {
            self.n * self.d
        }
        fn is_sparse(&self) -> bool {
            false
        }
        fn bytes(&self) -> u64 {
            (self.n * self.d * 4) as u64
        }
        fn starts(&self) -> &[usize] {
            &[0]
        }
        fn read_chunk(&mut self, _: usize, _: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
            unreachable!("plans read nothing")
        }
        fn read_rows(&mut self, _: std::ops::Range<usize>) -> Result<Matrix<'static>, Error> {
            unreachable!("plans read nothing")
        }
    }

    fn plan(n: usize, d: usize, k: usize, memory: u64) -> Result<StreamPlan, Error> {
        FitConfig { k, ..FitConfig::default() }.plan_streamed(&Claimed { n, d }, memory)
    }

    #[test]
    fn few_columns_are_formed_many_anchored_and_too_many_left_to_krylov() {
        let solver = |d: usize, memory: u64| plan(1 << 22, d, 1, memory).unwrap().solver;
        assert_eq!(solver(200, 1 << 30), SolverKind::Covariance);
        assert_eq!(solver(5000, 1 << 30), SolverKind::Anchored);
        assert_eq!(solver(40_000, 120 << 20), SolverKind::Krylov);
    }

    #[test]
    fn plans_stay_within_the_memory_whatever_n_is() {
        for n in [10_000, 1 << 22, 1 << 34] {
            for d in [1, 30, 1000, 20_000] {
                for memory in [64 << 20, 1 << 30, 1 << 34] {
                    if let Ok(plan) = plan(n, d, 1.max(d / 100), memory) {
                        let pool = plan.pool_rows as u64 * (4 * d as u64 + 8);
                        assert!(plan.memory <= memory && pool + 3 * plan.chunk_bytes < memory, "{plan:?}");
                        assert!(plan.pool_rows <= n / 4 && plan.chunk_bytes >= 4 * d as u64);
                    }
                }
            }
        }
    }

    #[test]
    fn an_impossible_budget_names_the_smallest_that_works() {
        let error = plan(1 << 20, 3000, 20, 10 << 20).unwrap_err().to_string();
        let least = error.split("need ").nth(1).and_then(|text| text.split('M').next()).unwrap();
        assert!(error.starts_with("memory = 10.0 MiB: 20 components of 3000 columns"), "{error}");
        let least: u64 = least.parse().unwrap();
        assert!(plan(1 << 20, 3000, 20, least << 20).is_ok(), "{error}");
        assert!(plan(1 << 20, 3000, 20, (least - 2) << 20).is_err(), "{error}");
    }

    #[test]
    fn a_start_for_scaled_columns_wants_their_scale_first() {
        let start = Some(crate::Block::unit_columns(3000, 0, 1));
        for (preprocessing, folds) in
            [(crate::Preprocessing::CENTER, true), (crate::Preprocessing::STANDARDIZE, false)]
        {
            let config = FitConfig { start: start.clone(), preprocessing, ..FitConfig::default() };
            assert_eq!(config.folds(SolverKind::Anchored), folds);
            assert!(!config.folds(SolverKind::Power));
        }
    }
}
