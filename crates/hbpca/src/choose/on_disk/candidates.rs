//! Which solver is done first.

use std::fmt::Write as _;

use super::SMALLEST_CHUNK;
use super::facts::{Facts, Needs};
use crate::Limits;
use crate::config::FitConfig;
use crate::error::human;
use crate::operator::IN_FLIGHT;
use crate::solver::{AnchoredSizes, KrylovSizes, SolverKind};

/// Products of all vectors with a block, two operations each, that come with a pass: of five steps with anchors and their images, and of one
/// orthogonalisation.
const SWEEPS_OF_ANCHORED: f64 = 30.0;
const SWEEPS_OF_KRYLOV: f64 = 4.0;
/// Rows that a pool needs to be worth it.
const SMALLEST_POOL: usize = 1500;

/// A solver, its sizes and what it needs.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) solver: SolverKind,
    pub(super) block: usize,
    pub(super) kept: usize,
    pub(super) needs: Needs,
    pub(super) passes: f64,
    pub(super) pool: bool,
}

impl FitConfig {
    /// Everything that could run, preferred sizes first.
    pub(super) fn candidates(&self, facts: &Facts) -> Vec<Candidate> {
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
            let needs = match self.solver {
                SolverKind::CoordinatePower => facts.covariance(1),
                SolverKind::LazySvd => facts.lazy_svd(k),
                _ => facts.needs(12 * facts.vector(), 3 * facts.vector()),
            };
            let passes = self.limits.max_passes.min(50.0);
            all.push(Candidate { solver: self.solver, block: 1, kept: 0, needs, passes, pool: false });
        }
        all
    }

    /// The solver that is done first, by the time of reading or of arithmetic, whichever is longer.
    pub(super) fn choose_among(
        &self,
        facts: &Facts,
        candidates: &[Candidate],
        fits: impl Fn(&Candidate) -> bool,
        room: u64,
    ) -> Option<Candidate> {
        let seconds = |candidate: &Candidate| {
            let sweeps = match candidate.solver {
                SolverKind::Covariance => return facts.forming_seconds(),
                SolverKind::Anchored => SWEEPS_OF_ANCHORED,
                _ => SWEEPS_OF_KRYLOV,
            };
            let vectors = facts.vector_seconds(sweeps, candidate.kept, candidate.block);
            candidate.passes * (facts.pass_seconds(candidate.block + self.k) + vectors)
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

    pub(super) fn reason(&self, facts: &Facts, chosen: &Candidate, candidates: &[Candidate]) -> String {
        if self.solver != SolverKind::Auto {
            return "asked for".to_owned();
        }
        let mut bytes = format!("{} on disk", human(facts.bytes));
        if let Some(rate) = self.disk_rate {
            let _ = write!(bytes, ", at {} a second,", human(rate as u64));
        }
        match chosen.solver {
            SolverKind::Covariance => format!(
                "one pass over {bytes} forms C; {} multiply-adds a row of {} bytes do not hold it up for long",
                facts.d * facts.d / 2,
                facts.row
            ),
            SolverKind::Anchored => format!(
                "about {} passes over {bytes} where krylov would read {}{}",
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
                format!("about {} passes over {bytes}; {why}", chosen.passes.round())
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
    let digits = -limits.aim().max(1e-15).log10();
    ((2.0 + digits / 3.0) * (1.0 + (k as f64).ln() / 2.3)).ceil().min(limits.max_passes)
}

/// The same for `krylov`, which has no sample to start from and none in between.
fn krylov_passes(limits: &Limits, k: usize) -> f64 {
    let digits = -limits.aim().max(1e-15).log10();
    ((4.0 + digits) * (1.0 + (k as f64).ln() / 4.0)).ceil().min(limits.max_passes)
}
