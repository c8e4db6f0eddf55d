//! Which solver is done first where rows are spread over ranks.
//!
//! ```text
//! a round      2⌈log₂ R⌉·(α + β·bytes): V down the tree, sums up
//! krylov       passes · (2·entries·p multiply-adds of the largest rank + a round of 8dp bytes)
//! covariance   n·d²/2 multiply-adds of the largest rank + a round of 4d² bytes + the eigen-solve on rank 0
//! ```
//!
//! Speeds are typical ones, those of the network too: results must not depend on what a machine happens to measure.

use super::speeds::Speeds;
use super::{Plan, Sizes};
use crate::config::FitConfig;
use crate::operator::Shape;
use crate::solver::{KrylovSizes, SolverKind, work};

/// Bytes a second.
const BANDWIDTH: f64 = 1.25e9;
/// Threads of a rank.
const THREADS: f64 = 4.0;
/// Numbers that C may take (1 GiB).
const MOST_NUMBERS: usize = 1 << 27;

/// What is known of rows spread over ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankFacts {
    pub(crate) shape: Shape,
    pub(crate) ranks: usize,
    pub(crate) sparse: bool,
    /// Rows and stored entries of the largest rank.
    pub(crate) most_rows: usize,
    pub(crate) most_entries: usize,
    /// Seconds of a message.
    pub(crate) latency: f64,
}

impl RankFacts {
    /// Rows in the memory of ranks on a network like others.
    pub(crate) const LATENCY: f64 = 20e-6;

    /// Rows in `count` partitions, each of which takes a thread, where a round takes so many seconds.
    pub(crate) fn of_partitions(
        shape: Shape,
        sparse: bool,
        entries: usize,
        (count, most_rows): (usize, usize),
        round_seconds: f64,
    ) -> Self {
        let threads = THREADS as usize;
        let most_entries = (entries as f64 * most_rows as f64 / shape.n.max(1) as f64) as usize * threads;
        let latency = round_seconds / 2.0;
        Self { shape, ranks: count.min(2), sparse, most_rows: most_rows * threads, most_entries, latency }
    }

    /// Seconds of a round that carries so many bytes down or up.
    fn round(&self, bytes: f64) -> f64 {
        let levels = (self.ranks as f64).log2().ceil();
        2.0 * levels * (self.latency + bytes / BANDWIDTH)
    }

    fn krylov_sizes(&self, k: usize) -> KrylovSizes {
        if self.sparse { KrylovSizes::suiting_sparse(k) } else { KrylovSizes::suiting_in_memory(k) }
    }

    fn krylov_seconds(&self, k: usize) -> f64 {
        let (d, speeds, sizes) = (self.shape.d as f64, Speeds::TYPICAL, self.krylov_sizes(k));
        let p = (sizes.block as f64).min(d);
        let for_each = if self.sparse || sizes.block >= 8 { 0.4 } else { 0.8 };
        let passes = (7.0 + for_each * k as f64).min((d / p).ceil() + 1.0);
        let speed = if self.sparse { speeds.sparse } else { speeds.double };
        let products = 2.0 * self.most_entries as f64 * p / (speed * THREADS) * 1e-9;
        passes * (products + self.round(8.0 * d * p))
    }

    fn covariance_seconds(&self, k: usize) -> f64 {
        let (d, speeds) = (self.shape.d as f64, Speeds::TYPICAL);
        let forming = self.most_rows as f64 * d * d / 2.0 / (speeds.form * THREADS);
        let solving = work::of_leading(self.shape.d, k) / speeds.double;
        (forming + solving) * 1e-9 + self.round(4.0 * d * d)
    }

    /// The cheaper of `covariance` and `krylov`, and the reason in words.
    fn choose(&self, config: &FitConfig) -> (SolverKind, String) {
        let d = self.shape.d;
        if d.checked_mul(d).is_none_or(|numbers| numbers > MOST_NUMBERS) {
            let size = (d as f64).powi(2) * 8.0 / (1_u64 << 30) as f64;
            return (SolverKind::Krylov, format!("a covariance of {d} columns would need {size:.0} GiB"));
        }
        let (krylov, covariance) = (self.krylov_seconds(config.k), self.covariance_seconds(config.k));
        if covariance <= krylov {
            let reason = format!("forming C takes about {covariance:.2} s against {krylov:.2} s of krylov");
            (SolverKind::Covariance, reason)
        } else {
            let reason = format!("about {krylov:.2} s where forming C would take {covariance:.2} s");
            (SolverKind::Krylov, reason)
        }
    }
}

impl Plan {
    /// For rows in the memory of many ranks.
    pub(crate) fn on_ranks(facts: &RankFacts, config: &FitConfig) -> Self {
        let (solver, chosen_because) = match config.solver {
            SolverKind::Auto => facts.choose(config),
            chosen => (chosen, "asked for".to_owned()),
        };
        let mut plan = Self::for_shape(facts.shape, &FitConfig { solver, ..config.clone() });
        plan.chosen_because = chosen_because;
        if solver == SolverKind::Krylov {
            plan.sizes = Sizes::Krylov { sizes: facts.krylov_sizes(config.k), with_row_gram: false };
        }
        plan.ask_for_a_share(facts.shape, config);
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_columns_iterate_and_few_columns_form() {
        let facts = |n: usize, d: usize, ranks: usize| RankFacts {
            shape: Shape { n, d },
            ranks,
            sparse: false,
            most_rows: n / ranks,
            most_entries: n / ranks * d,
            latency: RankFacts::LATENCY,
        };
        let solver = |facts: RankFacts| facts.choose(&FitConfig { k: 10, ..FitConfig::default() }).0;
        assert_eq!(solver(facts(1_000_000, 30, 4)), SolverKind::Covariance);
        assert_eq!(solver(facts(1_000_000, 5000, 4)), SolverKind::Krylov);
        assert_eq!(solver(facts(1_000_000, 100_000, 4)), SolverKind::Krylov);
        // More ranks make every pass shorter and no round.
        let rounds_count = |ranks| facts(1 << 20, 1000, ranks).krylov_seconds(10);
        assert!(rounds_count(64) > rounds_count(1) / 64.0);
    }
}
