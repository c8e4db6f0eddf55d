//! What a rank does with its own rows.

use crate::columns::ColumnStatistics;
use crate::matrix::Matrix;
use crate::operator::{Precision, Product};
use crate::rounding::RoundingBound;
use crate::{Block, Error};

/// Rows that are summed as one, on one rank, prepared by statistics that come from all ranks.
///
/// Sums are over its own rows and are not divided. Bounds are those of a mean over rows whose moment is that of all ranks: the largest
/// of all ranks' bounds holds for the mean over all rows.
pub(crate) trait Shard: Send {
    /// How many rows it has.
    fn n_rows(&self) -> usize;

    /// d.
    fn dim(&self) -> usize;

    /// The statistics of its rows, in a pass of their own. Means are less `pivot`, as they are in every pass that gathers statistics.
    fn statistics(&mut self, pivot: &[f64]) -> Result<ColumnStatistics, Error>;

    /// The statistics of about `count` of its rows.
    fn guess(&mut self, count: usize, seed: u64) -> Result<ColumnStatistics, Error>;

    /// From now on rows are prepared by these statistics of all ranks' rows.
    fn know(&mut self, statistics: ShardStatistics) -> Result<(), Error>;

    /// Whether products in single precision are computed so.
    fn single_precision(&mut self) -> bool;

    /// `out` ← Σ a(aᵀV).
    fn sum(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error>;

    /// `out` ← Σ (x − μ₀)((x − μ₀)ᵀD₀⁻¹V) about guessed means; returns the statistics, and the additions behind a number of the sum.
    fn first_sum(
        &mut self,
        pivot: &[f64],
        v: &Block,
        out: &mut Block,
    ) -> Result<(ColumnStatistics, usize), Error>;

    /// The lower triangle of `c` ← Σ aaᵀ.
    fn form(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error>;

    /// The lower triangle of `c` ← Σ (x − μ₀)(x − μ₀)ᵀ about guessed means; returns the statistics, and the additions behind a number of the sum.
    fn first_form(&mut self, pivot: &[f64], c: &mut Block) -> Result<(ColumnStatistics, usize), Error>;

    /// The numbers of its resident rows, where others are on disk.
    fn resident_rows(&self) -> &[usize];

    /// The rows named, or the resident ones.
    fn rows(&mut self, named: Option<&[usize]>) -> Result<Matrix<'static>, Error>;

    /// Fills the pool as it was after `passes` passes, which found out whether there is single precision.
    fn refill(&mut self, passes: u64, single: bool) -> Result<(), Error>;

    /// A hash of all rows that full passes have read from disk.
    fn digest(&self) -> u64;

    /// Bytes read from disk.
    fn bytes_read(&self) -> u64;

    /// Frees what was kept for the next product: other shards of its rank come first.
    fn release(&mut self);
}

/// Statistics of all ranks' rows.
#[derive(Clone, Debug)]
pub(crate) enum ShardStatistics {
    /// Of a sample.
    Guessed(ColumnStatistics),
    /// Of all rows.
    Known(ColumnStatistics),
}
