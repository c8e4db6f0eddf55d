//! What a rank does with its own rows before the fit.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

use super::RankRows;
use super::world::{Begin, Facts, World};
use crate::columns::{ColumnStatistics, check_each_weight, heaviest};
use crate::config::FitConfig;
use crate::matrix::{Matrix, fingerprint_of_chunks};
use crate::operator::{MatrixShard, Shard, Streamed};
use crate::{CancelToken, Error};

/// A shard of this rank's rows, with their weights.
pub(super) struct Own<'a> {
    pub(super) rows: RankRows<'a>,
    weights: Option<&'a [f64]>,
}

impl<'a> Own<'a> {
    /// Each with its part of the weights.
    pub(super) fn all(shards: Vec<RankRows<'a>>, weights: Option<&'a [f64]>) -> Result<Vec<Self>, Error> {
        let sizes: Vec<usize> = shards.iter().map(RankRows::n_rows).collect();
        if let Some(weights) = weights {
            check_each_weight(sizes.iter().sum(), weights)?;
        }
        if shards.is_empty() {
            return Err(Error::Empty { n: 0, d: 0 });
        }
        let mut from = 0;
        let with_weights = shards.into_iter().zip(sizes).map(|(rows, n)| {
            from += n;
            Self { rows, weights: weights.map(|weights| &weights[from - n..from]) }
        });
        Ok(with_weights.collect())
    }

    /// A copy with zeros in rows that weigh nothing, where they hold what no product survives. Rows on disk are cleared when they are read.
    pub(super) fn cleared(&self) -> Option<Matrix<'static>> {
        let (RankRows::Memory(matrix), Some(weights)) = (&self.rows, self.weights) else { return None };
        matrix.rows_that_count(weights)?;
        let all: Vec<usize> = (0..matrix.n_rows()).collect();
        let mut copy = matrix.select_rows(&all);
        copy.clear_rows_without_weight(weights);
        Some(copy)
    }

    /// The copy, if there is one.
    pub(super) fn or<'b>(self, cleared: Option<&'b Matrix<'static>>) -> Own<'b>
    where
        'a: 'b,
    {
        match cleared {
            Some(matrix) => Own { rows: RankRows::Memory(matrix), ..self },
            None => self,
        }
    }

    /// A row near the others, for means that are large against the spread, of the first shard with a row of the largest weight: compressed rows
    /// are told about zero.
    pub(super) fn pivot(own: &mut [Self]) -> Result<Vec<f64>, Error> {
        let largest = own.iter().map(Self::heaviest).fold(0.0, f64::max);
        let at = own.iter().position(|own| own.heaviest() >= largest).unwrap_or(0);
        let Self { rows, weights } = &mut own[at];
        let row = weights.map_or(0, heaviest);
        match rows {
            RankRows::Memory(matrix) => Ok(ColumnStatistics::pivot_at(matrix, row)),
            RankRows::Disk { rows, .. } if rows.is_sparse() => Ok(vec![0.0; rows.n_cols()]),
            RankRows::Disk { rows, .. } => Ok(ColumnStatistics::pivot_at(&rows.read_rows(row..row + 1)?, 0)),
        }
    }

    fn heaviest(&self) -> f64 {
        self.weights.map_or(1.0, |weights| weights.iter().copied().fold(0.0, f64::max))
    }

    /// What the other ranks need to know.
    pub(super) fn facts(&self, config: &FitConfig) -> Result<Facts, Error> {
        let (n, d, entries, bytes, sparse) = match &self.rows {
            RankRows::Memory(x) => {
                (x.n_rows(), x.n_cols(), x.nnz(), x.bytes_per_pass() as u64, x.is_sparse())
            }
            RankRows::Disk { rows, .. } => {
                (rows.n_rows(), rows.n_cols(), rows.nnz(), rows.bytes(), rows.is_sparse())
            }
        };
        if n == 0 || d == 0 {
            return Err(Error::Empty { n, d });
        }
        let limits = (&config.limits, config.certify, config.probe_seed);
        Ok(Facts {
            software: hash(crate::checkpoint::SOFTWARE.as_bytes()),
            choices: hash(format!("{:?} {limits:?}", config.choices()).as_bytes()),
            n,
            d,
            entries,
            bytes,
            sparse,
            on_disk: matches!(self.rows, RankRows::Disk { .. }),
            weighted: self.weights.is_some(),
            weight: self.weights.map_or(n as f64, |weights| weights.iter().sum()),
            heaviest: self.heaviest(),
        })
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = XxHash3_64::with_seed(0);
    hasher.write(bytes);
    hasher.finish()
}

/// A shard that is ready.
type Ready<'a> = Box<dyn Shard + 'a>;

/// What a rank's rows are prepared with.
pub(super) struct Preparing<'c> {
    pub(super) narrowed: bool,
    pub(super) config: &'c FitConfig,
    pub(super) cancel: &'c CancelToken,
    pub(super) world: &'c World,
    pub(super) begin: &'c Begin,
}

impl Preparing<'_> {
    /// The shards of this rank, ready, and hashes of what they hold.
    pub(super) fn shards<'a>(
        &self,
        own: Vec<Own<'a>>,
        rank: usize,
    ) -> Result<(Vec<Ready<'a>>, Vec<u64>), Error> {
        let first = self.world.first_of(rank);
        let ready = own.into_iter().enumerate().map(|(i, own)| self.shard(own, first + i));
        Ok(ready.collect::<Result<Vec<_>, Error>>()?.into_iter().unzip())
    }

    fn shard<'a>(&self, own: Own<'a>, number: usize) -> Result<(Ready<'a>, u64), Error> {
        let Self { narrowed, config, cancel, world, begin } = *self;
        let weights = own.weights;
        let n = world.shape().n;
        let (shard, print): (Ready<'a>, String) = match own.rows {
            RankRows::Memory(matrix) => {
                let print = if begin.fingerprints { matrix.fingerprint(weights) } else { String::new() };
                let shard = MatrixShard {
                    matrix,
                    weights,
                    mean_weight: world.weight().map_or(1.0, |weight| weight / n as f64),
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
                let print = if begin.fingerprints {
                    fingerprint_of_chunks(&mut rows, weights)?
                } else {
                    String::new()
                };
                let share = (begin.pool_rows as u128 * rows.n_rows() as u128).div_ceil(n as u128) as usize;
                let streamed = Streamed::new(rows, config.preprocessing)?;
                let streamed = match weights.zip(world.weight()) {
                    None => streamed,
                    Some((weights, total)) => streamed.with_weights_among(weights, total, n)?,
                };
                let streamed = streamed
                    .with_pool(share, config.seed.wrapping_add(number as u64))
                    .abandoned_by(cancel)
                    .in_precision(config.precision);
                (Box::new(streamed), print)
            }
        };
        Ok((shard, hash(print.as_bytes())))
    }
}
