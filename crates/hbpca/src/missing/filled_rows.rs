//! Rows on disk with holes.

use std::ops::Range;

use super::complete::no_row_left;
use super::means::PresentMeans;
use super::{Filling, Missing, MissingReport};
use crate::Error;
use crate::matrix::{Matrix, RowChunks, chunk_changed, hash_of_bits};

/// What one reading of all rows found of their holes.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) report: MissingReport,
    /// For `mean`, and as the start of `em`: what fills them.
    pub(crate) filling: Option<Filling>,
    /// For `drop-rows`: weights that are 0 for rows with holes.
    pub(crate) weights: Option<Vec<f64>>,
    /// What was read.
    pub(crate) chunks: ScannedChunks,
}

/// The chunks of one reading.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScannedChunks {
    /// One hash a chunk, of the rows as they are stored.
    hashes: Vec<u64>,
    /// Chunks with holes, ascending.
    with_holes: Vec<usize>,
}

impl ScannedChunks {
    /// Chunks with holes, ascending.
    pub(crate) fn with_holes(&self) -> &[usize] {
        &self.with_holes
    }

    /// Reads chunk i once more; other rows than before are refused.
    pub(crate) fn read(
        &self,
        rows: &mut impl RowChunks,
        i: usize,
        recycled: Option<Matrix<'static>>,
    ) -> Result<Matrix<'static>, Error> {
        let chunk = rows.read_chunk(i, recycled)?;
        if self.hashes.get(i).is_some_and(|hash| *hash != hash_of_bits(&chunk)) {
            return Err(Error::Source(chunk_changed(i, rows.starts()[i]..rows.starts()[i + 1]).into()));
        }
        Ok(chunk)
    }
}

/// The holes of rows that come chunk by chunk.
#[derive(Debug)]
pub(super) struct Scan {
    missing: Missing,
    means: PresentMeans,
    chunks: ScannedChunks,
    with_holes: Vec<usize>,
    holes: usize,
    single: bool,
    n: usize,
}

impl Scan {
    /// Nothing seen yet of `d` columns.
    pub(super) fn of_columns(d: usize, sparse: bool, missing: Missing) -> Self {
        Self {
            missing,
            means: PresentMeans::of_columns(d, sparse),
            chunks: ScannedChunks::default(),
            with_holes: Vec::new(),
            holes: 0,
            single: false,
            n: 0,
        }
    }

    /// Adds the next chunk, with a weight for each row or not.
    pub(super) fn add(&mut self, chunk: &Matrix<'_>, weights: Option<&[f64]>) {
        let before_chunk = self.holes;
        for l in 0..chunk.n_rows() {
            let before = self.holes;
            chunk.for_each_in_row(l, |_, x| self.holes += usize::from(x.is_nan()));
            if self.holes > before {
                self.with_holes.push(self.n + l);
            }
        }
        if self.holes > before_chunk {
            self.chunks.with_holes.push(self.chunks.hashes.len());
        }
        self.chunks.hashes.push(hash_of_bits(chunk));
        if matches!(self.missing, Missing::Mean | Missing::Em) {
            self.means.add(chunk, weights);
        }
        // What `em` fills in is f64, as what it fills.
        self.single = chunk.is_single() && self.missing == Missing::Mean;
        self.n += chunk.n_rows();
    }

    /// Whether a hole was seen.
    pub(super) fn has_holes(&self) -> bool {
        self.holes > 0
    }

    /// Whether row l is left out.
    pub(super) fn drops(&self, l: usize) -> bool {
        self.missing == Missing::DropRows && self.with_holes.binary_search(&l).is_ok()
    }

    /// What is known of all rows. Nothing where nothing is missing.
    pub(super) fn finish(self, weights: Option<&[f64]>) -> Result<Option<Scanned>, Error> {
        let Self { missing, means, chunks, with_holes, holes, single, n } = self;
        if holes == 0 {
            return Ok(None);
        }
        let dropping = missing == Missing::DropRows;
        let dropped = if dropping { with_holes.len() } else { 0 };
        if dropped == n {
            return Err(no_row_left());
        }
        let weights = dropping.then(|| {
            let mut weights = weights.map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
            with_holes.iter().for_each(|&l| weights[l] = 0.0);
            weights
        });
        let filled = matches!(missing, Missing::Mean | Missing::Em);
        let filling = filled.then(|| means.finish(single)).transpose()?;
        let rows = with_holes.len();
        let report = MissingReport { policy: missing, entries: holes, rows, dropped, stationary_point: None };
        Ok(Some(Scanned { report, filling, weights, chunks }))
    }
}

impl Scanned {
    /// Reads all rows once. Nothing where nothing is missing.
    pub(crate) fn of(
        rows: &mut impl RowChunks,
        weights: Option<&[f64]>,
        missing: Missing,
    ) -> Result<Option<Self>, Error> {
        let mut scan = Scan::of_columns(rows.n_cols(), rows.is_sparse(), missing);
        let mut recycled = None;
        for i in 0..rows.starts().len() - 1 {
            let first = rows.starts()[i];
            let chunk = rows.read_chunk(i, recycled.take())?;
            scan.add(&chunk, weights.map(|weights| &weights[first..first + chunk.n_rows()]));
            recycled = Some(chunk);
        }
        scan.finish(weights)
    }
}

/// Rows whose holes are filled when they are read. Chunks must be those that were scanned.
pub(crate) struct FilledRows<R, F> {
    rows: R,
    chunks: ScannedChunks,
    fill: F,
}

impl<R, F: Fn(Matrix<'static>) -> Result<Matrix<'static>, Error>> FilledRows<R, F> {
    pub(crate) fn new(rows: R, chunks: ScannedChunks, fill: F) -> Self {
        Self { rows, chunks, fill }
    }
}

impl<R: RowChunks, F: Fn(Matrix<'static>) -> Result<Matrix<'static>, Error> + Send> RowChunks
    for FilledRows<R, F>
{
    fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }
    fn n_cols(&self) -> usize {
        self.rows.n_cols()
    }
    fn nnz(&self) -> usize {
        self.rows.nnz()
    }
    fn is_sparse(&self) -> bool {
        self.rows.is_sparse()
    }
    fn bytes(&self) -> u64 {
        self.rows.bytes()
    }
    fn starts(&self) -> &[usize] {
        self.rows.starts()
    }
    fn read_chunk(&mut self, i: usize, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        (self.fill)(self.chunks.read(&mut self.rows, i, recycled)?)
    }
    fn version(&self) -> Option<u64> {
        self.rows.version()
    }
    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        (self.fill)(self.rows.read_rows(rows)?)
    }
}
