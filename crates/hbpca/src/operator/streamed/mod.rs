//! C = (1/n)Σaₗaₗᵀ of rows that are read anew for every product.
//!
//! ```text
//! full pass     chunks in order, read ahead by a thread of their own; Σ within a chunk as in memory, then chunk after chunk
//! batch         rows of the pool from memory; other rows from the source, in ranges of rows
//! pool          every full pass leaves a fresh uniform sample of rows behind
//! statistics    from the first full pass, which multiplies at the same time (`fold.rs`)
//! same rows     a hash of each chunk from the first full pass, compared in every later one (`chunk_hashes.rs`)
//! ```
//!
//! Chunks are cut by the source and summed in order: the same bits for any number of threads and any timing.

mod chunk_hashes;
pub(super) mod fold;
mod pool;
mod products;
mod ranges;
mod read_ahead;
mod shard;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use chunk_hashes::ChunkHashes;
use pool::Pool;
use ranges::{longest_chunk, ranges_of, spread_ranges};
pub(crate) use read_ahead::IN_FLIGHT;
use read_ahead::{Chunks, Reader};

use super::products::sum::{CHUNKS_IN_SINGLE, Operand, OperandRoom, Prepared, Scratch, center};
use super::{Precision, PrecisionChoice, Products, Rows, reshape};
use crate::columns::{ColumnStatistics, GatheredStatistics, Preprocessing, RowMap, check_weights, heaviest};
use crate::matrix::{Matrix, RowChunks};
use crate::missing::{Filling, Surveyed};
use crate::rounding::{RoundingBound, rounding_of_sum};
use crate::{Block, CancelToken, Error};

/// Rows below which a chunk is not worth cutting once more: packing V and merging Y would cost as much as the products.
const ROWS_PER_TASK: usize = 128;
/// Chunks that forming C cuts a chunk into, at most.
const MOST_MERGES: usize = 16;

/// The covariance of rows that lie on disk, centred and scaled implicitly.
///
/// Column statistics come from the first full pass, whatever it is for: [`first_image`](super::FirstPass::first_image) and
/// [`form`](Products::form) gather them on the way, any other product reads the data once for them.
pub struct Streamed<'s> {
    reader: Reader<'s>,
    preprocessing: Preprocessing,
    columns: Columns,
    pool: Pool,
    /// Whether rows are f32, which can be multiplied in single precision; known after the first chunk.
    single: bool,
    work: Work,
    precision: PrecisionChoice,
    passes: u64,
    statistics_passes: u64,
    /// The map and the rows' weight, for observers that wait for them.
    found: Arc<OnceLock<(RowMap, f64)>>,
    weights: Option<RowWeights>,
    /// What holes were filled with, where there were such.
    filling: Option<Filling>,
    /// How far that moves C, once the columns are known.
    moved: f64,
}

/// A weight for every row.
struct RowWeights {
    /// Scaled to mean 1, so that Σ over n or |S| rows divides by their number.
    scaled: Arc<[f64]>,
    /// The sum of the weights as they were given.
    total: f64,
    /// The row that means are told relative to.
    pivot: Vec<f64>,
    /// Of the resident rows.
    of_pool: Vec<f64>,
}

/// The weights of some rows that follow each other.
fn part_of(weights: Option<&[f64]>, first_row: usize, n: usize) -> Option<&[f64]> {
    weights.map(|weights| &weights[first_row..first_row + n])
}

/// What is known of the columns.
#[derive(Debug)]
enum Columns {
    Unknown,
    /// The map as a sample of rows suggests it.
    Guessed(RowMap),
    Known {
        statistics: ColumnStatistics,
        map: RowMap,
    },
}

/// Memory kept between products.
#[derive(Debug, Default)]
struct Work {
    room: OperandRoom,
    scratch: Scratch,
    /// Σ of one chunk.
    part: Vec<f64>,
    /// Σt of all chunks.
    t_sum: Vec<f64>,
    places: Vec<usize>,
    ranges: Vec<Range<usize>>,
    /// Additions behind a number of the sum over a chunk, in double and in single precision, the most so far.
    additions: [usize; 2],
}

impl<'s> Streamed<'s> {
    /// The operator for the rows of `source`, prepared as asked. Reads nothing yet.
    pub fn new(source: impl RowChunks + 's, preprocessing: Preprocessing) -> Result<Self, Error> {
        let (n, d) = (source.n_rows(), source.n_cols());
        if n == 0 || d == 0 {
            return Err(Error::Empty { n, d });
        }
        Ok(Self {
            reader: Reader::new(Box::new(source)),
            preprocessing,
            columns: Columns::Unknown,
            pool: Pool::of_size(0, 0),
            single: false,
            work: Work::default(),
            precision: PrecisionChoice::Auto,
            passes: 0,
            statistics_passes: 0,
            found: Arc::default(),
            weights: None,
            filling: None,
            moved: 0.0,
        })
    }

    /// The same with a weight for every row: C = Σwₗaₗaₗᵀ/Σwₗ, means and variances weighted too. Takes 8 bytes a row, and reads the
    /// heaviest one.
    pub fn with_weights(self, weights: &[f64]) -> Result<Self, Error> {
        check_weights(self.n_rows(), weights)?;
        let (total, n) = (weights.iter().sum(), self.n_rows());
        self.with_weights_among(weights, total, n)
    }

    /// The same for the weights of some of n rows, which add up to `total`.
    pub(crate) fn with_weights_among(mut self, weights: &[f64], total: f64, n: usize) -> Result<Self, Error> {
        let heaviest = heaviest(weights);
        let row = self.reader.source.read_rows(heaviest..heaviest + 1)?;
        self.weighing(weights, (total, n), ColumnStatistics::pivot_at(&row, 0))
    }

    /// The same for rows of which the heaviest one is known.
    pub(crate) fn with_weights_about(self, weights: &[f64], pivot: Vec<f64>) -> Result<Self, Error> {
        check_weights(self.n_rows(), weights)?;
        let all = (weights.iter().sum(), self.n_rows());
        self.weighing(weights, all, pivot)
    }

    /// With weights of some of n rows, which add up to `total`, and means told relative to `pivot`, the heaviest of them.
    fn weighing(mut self, weights: &[f64], (total, n): (f64, usize), pivot: Vec<f64>) -> Result<Self, Error> {
        if let Some(column) = pivot.iter().position(|x| !x.is_finite()) {
            return Err(Error::NotFinite { row: heaviest(weights), column, value: pivot[column] });
        }
        let mean = total / n as f64;
        let scaled: Arc<[f64]> = weights.iter().map(|w| w / mean).collect();
        self.reader.weights = Some(Arc::clone(&scaled));
        self.weights = Some(RowWeights { scaled, total, pivot, of_pool: Vec::new() });
        Ok(self)
    }

    /// Counts that holes were filled with means that are rounded.
    pub(crate) fn filled_with(mut self, filling: Filling) -> Self {
        self.filling = Some(filling);
        self
    }

    /// Bytes of one reading of all rows.
    pub(crate) fn bytes_per_pass(&self) -> u64 {
        self.reader.source.bytes()
    }

    fn row_weights(&self) -> Option<Arc<[f64]>> {
        self.weights.as_ref().map(|weights| Arc::clone(&weights.scaled))
    }

    /// Statistics of nothing yet.
    fn gathering(&self) -> GatheredStatistics {
        match &self.weights {
            None => GatheredStatistics::of_columns(self.dim()),
            Some(weights) => GatheredStatistics::about(&weights.pivot),
        }
    }

    /// The pool's rows are complete, and so are their weights.
    fn end_pool_pass(&mut self) -> Result<(), Error> {
        self.pool.end_pass(self.dim())?;
        if let Some(weights) = &mut self.weights {
            weights.of_pool.clear();
            weights.of_pool.extend(self.pool.rows().iter().map(|&l| weights.scaled[l]));
        }
        Ok(())
    }

    /// Keeps a uniform sample of this many rows in memory, drawn anew by every full pass.
    #[must_use]
    pub fn with_pool(mut self, rows: usize, seed: u64) -> Self {
        self.pool = Pool::of_size(rows, seed);
        self
    }

    /// Uses other precisions than those asked for in every product, where a choice was made.
    #[must_use]
    pub fn in_precision(mut self, choice: PrecisionChoice) -> Self {
        self.precision = choice;
        self
    }

    /// Breaks off in the middle of a pass when `token` says so.
    #[must_use]
    pub fn abandoned_by(mut self, token: &CancelToken) -> Self {
        self.reader.cancel = token.clone();
        self
    }

    /// Reads about `count` rows in runs spread over the data, from which μ and D are guessed until the first full pass: it can
    /// then multiply and gather statistics at the same time. Until then they are the pool.
    pub fn guess_columns(&mut self, count: usize, seed: u64) -> Result<(), Error> {
        let Some(sampled) = self.sample_columns(count, seed)? else { return self.gather_columns() };
        self.columns = Columns::Guessed(self.preprocessing.row_map(&sampled));
        Ok(())
    }

    /// Statistics of about `count` rows, which become the pool where it has room for them; none where these weigh nothing.
    fn sample_columns(&mut self, count: usize, seed: u64) -> Result<Option<ColumnStatistics>, Error> {
        let ranges = spread_ranges(self.n_rows(), count, self.range_length(), seed);
        let total = ranges.iter().map(Range::len).sum();
        let mut gathered = self.gathering();
        let weights = self.row_weights();
        let keep = total <= self.pool.size();
        if keep {
            self.pool.begin_sample(total);
        }
        let Self { reader, pool, .. } = self;
        let cancel = reader.cancel.clone();
        reader.for_each(Chunks::Ranges(&ranges), |first, rows| {
            if keep {
                pool.take_from(first, rows);
            }
            gathered.add(rows, part_of(weights.as_deref(), first, rows.n_rows()), first, &cancel)
        })?;
        self.end_pool_pass()?;
        if gathered.is_empty() {
            return Ok(None); // the sample weighs nothing
        }
        gathered.finish().map(Some)
    }

    /// Reads the data once for its column statistics, and fills the pool.
    pub fn gather_columns(&mut self) -> Result<(), Error> {
        let mut gathered = self.gathering();
        self.full_pass(Some(&mut gathered), |_, _, _| ())?;
        self.statistics_passes += 1;
        self.know(gathered.finish()?);
        Ok(())
    }

    /// Takes over what a pass before this one found; the rows must be those that it saw. Reads them once more where that does not tell the
    /// statistics.
    pub(crate) fn knowing(mut self, found: Surveyed) -> Result<Self, Error> {
        let Surveyed { statistics, starts, hashes, .. } = found;
        if starts != self.reader.source.starts() {
            let n = starts.last().copied().unwrap_or_default();
            return Err(Error::shape("rows of a survey", self.n_rows(), n));
        }
        self.reader.hashes = ChunkHashes::of_pass(hashes);
        match statistics {
            None => self.gather_columns()?,
            Some(statistics) => {
                self.statistics_passes += 1;
                self.know(statistics);
            }
        }
        Ok(self)
    }

    /// Reads the rows once more that the last pass left in the pool; and all of them, if they may have been written to since a checkpoint, for their
    /// hashes to be compared.
    fn fill_pool_again(&mut self, may_have_changed: bool) -> Result<(), Error> {
        if self.pool.size() == 0 && !may_have_changed {
            return Ok(());
        }
        let n = self.n_rows();
        self.pool.begin_pass(self.passes - 1, n);
        let Self { reader, pool, .. } = self;
        reader.for_each(Chunks::AllChunks, |first, rows| {
            pool.take_from(first, rows);
            Ok(())
        })?;
        self.end_pool_pass()
    }

    fn know(&mut self, statistics: ColumnStatistics) {
        let statistics = match &self.weights {
            None => statistics,
            Some(weights) => statistics.weighing(weights.total),
        };
        let map = self.preprocessing.row_map(&statistics);
        self.moved = self.filling.as_ref().map_or(0.0, |filling| filling.moves(&map));
        self.found.get_or_init(|| (map.clone(), statistics.weight()));
        self.columns = Columns::Known { statistics, map };
    }

    /// Where the map and the weight of the rows will be found after the first full pass.
    pub(crate) fn columns_when_found(&self) -> Arc<OnceLock<(RowMap, f64)>> {
        Arc::clone(&self.found)
    }

    /// The map of rows and their column statistics, once a full pass was made.
    pub fn columns(&self) -> Option<(&RowMap, &ColumnStatistics)> {
        match &self.columns {
            Columns::Known { statistics, map } => Some((map, statistics)),
            Columns::Unknown | Columns::Guessed(_) => None,
        }
    }

    /// Bytes read from the source so far.
    pub fn bytes_read(&self) -> u64 {
        self.reader.bytes_read
    }

    /// Full passes made for column statistics alone.
    pub fn statistics_passes(&self) -> u64 {
        self.statistics_passes
    }

    /// The rows themselves, for a sample of them.
    pub(crate) fn sample(&self) -> Option<&Matrix<'static>> {
        self.pool.matrix()
    }

    /// Rows that are read together where only some are wanted: 256 KiB, which a device reads in little more time than one row.
    pub(crate) fn range_length(&self) -> usize {
        const BYTES: u64 = 256 << 10;
        let row = (self.reader.source.bytes() / self.n_rows() as u64).max(1);
        ((BYTES / row) as usize).max(1)
    }

    fn cancel(&self) -> CancelToken {
        self.reader.cancel.clone()
    }

    /// Every chunk in order, with the weights of its rows, through the statistics, the pool and `work`.
    fn full_pass(
        &mut self,
        mut statistics: Option<&mut GatheredStatistics>,
        mut work: impl FnMut(&Matrix<'static>, Option<&[f64]>, &mut Work),
    ) -> Result<(), Error> {
        let (n, cancel, weights) = (self.n_rows(), self.cancel(), self.row_weights());
        self.pool.begin_pass(self.passes, n);
        let Self { reader, pool, work: memory, single, .. } = self;
        reader.for_each(Chunks::AllChunks, |first, rows| {
            *single = matches!(rows, Matrix::DenseF32(_) | Matrix::CsrF32(_));
            let weights = part_of(weights.as_deref(), first, rows.n_rows());
            if let Some(statistics) = &mut statistics {
                statistics.add(rows, weights, first, &cancel)?;
            }
            pool.take_from(first, rows);
            work(rows, weights, memory);
            cancel.go_on()
        })?;
        self.end_pool_pass()?;
        self.passes += 1;
        Ok(())
    }

    /// `out` ← Σ (x − μ)((x − μ)ᵀV′) over all rows, with V′ = D⁻¹V.
    fn sum_all(
        &mut self,
        map: &RowMap,
        v: &Block,
        precision: Precision,
        statistics: Option<&mut GatheredStatistics>,
        out: &mut Block,
    ) -> Result<(), Error> {
        let cancel = self.cancel();
        let mut room = std::mem::take(&mut self.work.room);
        let round = precision == Precision::Single && self.reader.source.is_sparse();
        let operand = self.begin_sum(map, v, round, &mut room, out)?;
        self.full_pass(statistics, |rows, weights, work| {
            let prepared = Prepared { matrix: rows, map, vanishing: &[], weights, cancel: &cancel };
            work.add(&prepared, operand, precision, out.values_mut());
        })?;
        self.work.room = room;
        center(map, &self.work.t_sum, out.values_mut());
        Ok(())
    }

    /// Shapes `out` and clears the sums. Compressed rows are multiplied in single precision if V′ is to be rounded.
    fn begin_sum<'a>(
        &mut self,
        map: &RowMap,
        v: &'a Block,
        round: bool,
        room: &'a mut OperandRoom,
        out: &mut Block,
    ) -> Result<Operand<'a>, Error> {
        let (d, p) = (self.dim(), v.p());
        if v.d() != d {
            return Err(Error::shape("coordinates of the vectors to multiply", d, v.d()));
        }
        reshape(out, d, p);
        out.values_mut().fill(0.0);
        self.work.part.resize(d * p, 0.0);
        self.work.t_sum.clear();
        self.work.t_sum.resize(p, 0.0);
        Ok(Operand::new(map, v, round, room))
    }

    /// The same over a batch: from the pool where it has all rows, else from the source in runs.
    fn sum_batch(&mut self, map: &RowMap, batch: &[usize], v: &Block, out: &mut Block) -> Result<(), Error> {
        let cancel = self.cancel();
        let mut room = std::mem::take(&mut self.work.room);
        let operand = self.begin_sum(map, v, false, &mut room, out)?;
        let all_weights = self.row_weights();
        let Self { reader, pool, work, weights, .. } = self;
        match pool.matrix() {
            Some(matrix) if pool.places(batch, &mut work.places) => {
                let weights = weights.as_ref().map(|weights| &weights.of_pool[..]);
                let prepared = Prepared { matrix, map, vanishing: &[], weights, cancel: &cancel };
                let places = std::mem::take(&mut work.places);
                let n_chunks = prepared.n_chunks(places.len());
                let (scratch, t_sum) = (&mut work.scratch, &mut work.t_sum);
                let rows = Rows::Batch(&places);
                prepared.sum(rows, operand, Precision::Double, n_chunks, scratch, out.values_mut());
                t_sum.copy_from_slice(&scratch.t_sum);
                work.places = places;
                cancel.go_on()?;
            }
            _ => {
                let mut ranges = std::mem::take(&mut work.ranges);
                ranges_of(batch, longest_chunk(&*reader.source), &mut ranges);
                reader.for_each(Chunks::Ranges(&ranges), |first, rows| {
                    let weights = part_of(all_weights.as_deref(), first, rows.n_rows());
                    let prepared = Prepared { matrix: rows, map, vanishing: &[], weights, cancel: &cancel };
                    work.add(&prepared, operand, Precision::Double, out.values_mut());
                    cancel.go_on()
                })?;
                work.ranges = ranges;
            }
        }
        self.work.room = room;
        center(map, &self.work.t_sum, out.values_mut());
        Ok(())
    }

    /// The known map, after a pass for the statistics where they are not known yet.
    fn known_map(&mut self) -> Result<RowMap, Error> {
        if self.columns().is_none() {
            self.gather_columns()?;
        }
        let (map, _) = self.columns().unwrap_or_else(|| unreachable!("just gathered"));
        Ok(map.clone())
    }

    /// The known map, or the guessed one: good enough for mini-batches.
    fn best_map(&mut self) -> Result<RowMap, Error> {
        match &self.columns {
            Columns::Guessed(map) => Ok(map.clone()),
            _ => self.known_map(),
        }
    }

    /// A bound on the rounding of (1/n)Σa(aᵀv) for a unit vector, where (1/n)Σ‖a‖² = `moment`: what it takes within a chunk of rows, then
    /// the sum over all chunks.
    fn rounding_of_moment(&self, moment: f64, merges_per_chunk: usize) -> RoundingBound {
        RoundingBound::of_sums(rounding_of_sum(self.additions(merges_per_chunk)), moment)
    }

    /// Additions behind a number of a sum over all rows.
    fn additions(&self, merges_per_chunk: usize) -> usize {
        self.work.additions[0] + self.n_chunks() * merges_per_chunk
    }

    fn n_chunks(&self) -> usize {
        self.reader.source.starts().len() - 1
    }

    /// The same for the known map.
    fn known_rounding(&self, map: &RowMap, merges_per_chunk: usize) -> RoundingBound {
        let sparse = self.reader.source.is_sparse();
        let moment = if sparse { map.uncentred_moment() } else { map.total_variance() };
        self.rounding_of_moment(moment, merges_per_chunk).plus(map.blur() + self.moved)
    }
}

impl Work {
    /// `total` += Σ over a chunk, and the same for Σt.
    fn add(&mut self, chunk: &Prepared<'_>, operand: Operand<'_>, precision: Precision, total: &mut [f64]) {
        let n = chunk.n_rows();
        let n_chunks = chunk.n_chunks(n).min(1 << (n / ROWS_PER_TASK).max(1).ilog2());
        for (most, additions) in self.additions.iter_mut().zip(chunk.additions(n_chunks)) {
            *most = additions.max(*most);
        }
        let n_chunks = if operand.rounded.is_empty() { n_chunks } else { CHUNKS_IN_SINGLE * n_chunks };
        chunk.sum(Rows::All, operand, precision, n_chunks, &mut self.scratch, &mut self.part);
        total.iter_mut().zip(&self.part).for_each(|(total, part)| *total += part);
        self.t_sum.iter_mut().zip(&self.scratch.t_sum).for_each(|(sum, t)| *sum += t);
    }
}
