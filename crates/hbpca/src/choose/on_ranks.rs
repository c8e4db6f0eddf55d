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

/// Threads of a rank.
const THREADS: f64 = 4.0;
/// Numbers that C may take (1 GiB).
const MOST_NUMBERS: usize = 1 << 27;

/// A network between ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Seconds of a message.
    pub latency: f64,
    /// Bytes a second.
    pub bandwidth: f64,
}

impl Default for Network {
    /// Ethernet of 10 Gbit/s.
    fn default() -> Self {
        Self { latency: 20e-6, bandwidth: 1.25e9 }
    }
}

/// What a fit on ranks is expected to take, at the speeds of a nominal machine of four threads a rank.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Forecast {
    /// The solver.
    pub solver: SolverKind,
    /// Rounds, that of the statistics included.
    pub rounds: f64,
    /// Seconds of products and of what rank 0 solves.
    pub computing: f64,
    /// Seconds of messages.
    pub communicating: f64,
    /// Bytes of memory of the largest rank, its rows included.
    pub memory: u64,
}

impl Forecast {
    /// All seconds, reading the data apart.
    pub fn seconds(&self) -> f64 {
        self.computing + self.communicating
    }

    /// For k components of n rows, d columns and so many stored `entries` (n·d where rows are dense), spread evenly over ranks: each solver that is made for
    /// ranks, the fastest first. A C that no machine holds is left out.
    ///
    /// ```
    /// use hbpca::operator::Shape;
    /// use hbpca::plan::{Forecast, Network};
    /// use hbpca::SolverKind;
    /// let shape = Shape { n: 1_000_000_000, d: 1000 };
    /// let seconds = |ranks| Forecast::on_ranks(shape, None, 10, ranks, Network::default())[0].seconds();
    /// assert!(seconds(1) > 50.0 * seconds(64) && seconds(1) < 64.0 * seconds(64));
    /// ```
    pub fn on_ranks(
        shape: Shape,
        entries: Option<usize>,
        k: usize,
        ranks: usize,
        network: Network,
    ) -> Vec<Self> {
        let Shape { n, d } = shape;
        let all = entries.unwrap_or(n.saturating_mul(d));
        let (most_rows, most_entries) = (n.div_ceil(ranks.max(1)), all.div_ceil(ranks.max(1)));
        let facts = RankFacts { shape, ranks, sparse: entries.is_some(), most_rows, most_entries, network };
        let mut forecasts = vec![facts.krylov(k)];
        forecasts.extend(facts.can_form().then(|| facts.covariance(k)));
        forecasts.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
        forecasts
    }
}

/// What is known of rows spread over ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankFacts {
    pub(crate) shape: Shape,
    pub(crate) ranks: usize,
    pub(crate) sparse: bool,
    /// Rows and stored entries of the largest rank.
    pub(crate) most_rows: usize,
    pub(crate) most_entries: usize,
    pub(crate) network: Network,
}

impl RankFacts {
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
        let network = Network { latency: round_seconds / 2.0, ..Network::default() };
        Self { shape, ranks: count.min(2), sparse, most_rows: most_rows * threads, most_entries, network }
    }

    /// Seconds of a round that carries so many bytes down or up.
    fn round(&self, bytes: f64) -> f64 {
        let levels = (self.ranks as f64).log2().ceil();
        2.0 * levels * (self.network.latency + bytes / self.network.bandwidth)
    }

    fn krylov_sizes(&self, k: usize) -> KrylovSizes {
        if self.sparse { KrylovSizes::suiting_sparse(k) } else { KrylovSizes::suiting_in_memory(k) }
    }

    fn krylov(&self, k: usize) -> Forecast {
        let (d, speeds, sizes) = (self.shape.d as f64, Speeds::TYPICAL, self.krylov_sizes(k));
        let p = (sizes.block as f64).min(d);
        let for_each = if self.sparse || sizes.block >= 8 { 0.4 } else { 0.8 };
        let passes = (7.0 + for_each * k as f64).min((d / p).ceil() + 1.0);
        let speed = if self.sparse { speeds.sparse } else { speeds.double };
        let products = 2.0 * self.most_entries as f64 * p / (speed * THREADS) * 1e-9;
        let basis = 8.0 * d * (sizes.memory as f64 + 3.0 * p);
        Forecast {
            solver: SolverKind::Krylov,
            rounds: passes + 1.0,
            computing: passes * products,
            communicating: passes * self.round(8.0 * d * p),
            memory: (self.bytes() + basis) as u64,
        }
    }

    fn covariance(&self, k: usize) -> Forecast {
        let (d, speeds) = (self.shape.d as f64, Speeds::TYPICAL);
        let forming = self.most_rows as f64 * d * d / 2.0 / (speeds.form * THREADS);
        let solving = work::of_leading(self.shape.d, k) / speeds.double;
        Forecast {
            solver: SolverKind::Covariance,
            rounds: 2.0,
            computing: (forming + solving) * 1e-9,
            communicating: self.round(4.0 * d * d),
            memory: (self.bytes() + 24.0 * d * d) as u64,
        }
    }

    /// Rows of a sample that one process holds for all: a quarter of them at most, and 64 MiB.
    pub(crate) fn sample_rows(&self) -> usize {
        const BYTES: usize = 64 << 20;
        let row = 8 * self.most_entries.div_ceil(self.most_rows.max(1)) + 8;
        (self.shape.n / 4).min(BYTES / row).max(1)
    }

    /// Whether a machine holds C.
    fn can_form(&self) -> bool {
        self.shape.d.checked_mul(self.shape.d).is_some_and(|numbers| numbers <= MOST_NUMBERS)
    }

    /// Bytes of the largest rank's rows.
    fn bytes(&self) -> f64 {
        self.most_entries as f64 * if self.sparse { 12.0 } else { 8.0 }
    }

    /// The cheaper of `covariance` and `krylov`, and the reason in words.
    fn choose(&self, config: &FitConfig) -> (SolverKind, String) {
        let d = self.shape.d;
        if !self.can_form() {
            let size = (d as f64).powi(2) * 8.0 / (1_u64 << 30) as f64;
            return (SolverKind::Krylov, format!("a covariance of {d} columns would need {size:.0} GiB"));
        }
        let (krylov, covariance) = (self.krylov(config.k).seconds(), self.covariance(config.k).seconds());
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
    /// For rows in the memory of many ranks, some of which may be a sample at hand.
    pub(crate) fn on_ranks(facts: &RankFacts, config: &FitConfig, sample: Option<usize>) -> Self {
        let (solver, chosen_because) = match config.solver {
            SolverKind::Auto => facts.choose(config),
            chosen => (chosen, "asked for".to_owned()),
        };
        let mut plan = Self::for_shape(facts.shape, &FitConfig { solver, ..config.clone() });
        plan.chosen_because = chosen_because;
        if solver == SolverKind::Krylov {
            plan.sizes = Sizes::Krylov { sizes: facts.krylov_sizes(config.k), with_row_gram: false };
        }
        if let (Sizes::Anchored { sizes, rows }, Some(sample)) = (&mut plan.sizes, sample) {
            *rows = sample;
            (sizes.batch, sizes.start_rows) = (sizes.batch.min(sample), sizes.start_rows.min(sample));
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
            network: Network::default(),
        };
        let solver = |facts: RankFacts| facts.choose(&FitConfig { k: 10, ..FitConfig::default() }).0;
        assert_eq!(solver(facts(1_000_000, 30, 4)), SolverKind::Covariance);
        assert_eq!(solver(facts(1_000_000, 5000, 4)), SolverKind::Krylov);
        assert_eq!(solver(facts(1_000_000, 100_000, 4)), SolverKind::Krylov);
        // More ranks make every pass shorter and no round.
        let rounds_count = |ranks| facts(1 << 20, 1000, ranks).krylov(10).seconds();
        assert!(rounds_count(64) > rounds_count(1) / 64.0);
    }
}
