//! Rows on disk with holes.

use std::ops::Range;

use super::complete::no_row_left;
use super::means::PresentMeans;
use super::{Filling, Missing, MissingReport};
use crate::Error;
use crate::matrix::{Matrix, RowChunks, chunk_changed, hash_of_bits};

/// What one reading of all rows found of their holes.
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

impl Scanned {
    /// Reads all rows once. Nothing where nothing is missing.
    pub(crate) fn of(
        rows: &mut impl RowChunks,
        weights: Option<&[f64]>,
        missing: Missing,
    ) -> Result<Option<Self>, Error> {
        let (filled, dropped) =
            (matches!(missing, Missing::Mean | Missing::Em), missing == Missing::DropRows);
        let mut chunks = ScannedChunks::default();
        let mut means = PresentMeans::of_columns(rows.n_cols(), rows.is_sparse());
        let (mut holes, mut with_holes, mut single) = (0, Vec::new(), false);
        let mut recycled = None;
        for i in 0..rows.starts().len() - 1 {
            let first = rows.starts()[i];
            let chunk = rows.read_chunk(i, recycled.take())?;
            // What `em` fills in is f64, as what it fills.
            single = chunk.is_single() && missing == Missing::Mean;
            chunks.hashes.push(hash_of_bits(&chunk));
            let before_chunk = holes;
            for l in 0..chunk.n_rows() {
                let before = holes;
                chunk.for_each_in_row(l, |_, x| holes += usize::from(x.is_nan()));
                if holes > before {
                    with_holes.push(first + l);
                }
            }
            if holes > before_chunk {
                chunks.with_holes.push(i);
            }
            if filled {
                means.add(&chunk, weights.map(|weights| &weights[first..first + chunk.n_rows()]));
            }
            recycled = Some(chunk);
        }
        if holes == 0 {
            return Ok(None);
        }
        let n = rows.n_rows();
        let n_dropped = if dropped { with_holes.len() } else { 0 };
        if n_dropped == n {
            return Err(no_row_left());
        }
        let weights = dropped.then(|| {
            let mut weights = weights.map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
            with_holes.iter().for_each(|&l| weights[l] = 0.0);
            weights
        });
        let filling = filled.then(|| means.finish(single)).transpose()?;
        let report = MissingReport {
            policy: missing,
            entries: holes,
            rows: with_holes.len(),
            dropped: n_dropped,
            stationary_point: None,
        };
        Ok(Some(Self { report, filling, weights, chunks }))
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
