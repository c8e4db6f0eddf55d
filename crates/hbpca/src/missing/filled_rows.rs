//! Rows on disk with holes.

use std::ops::Range;

use super::complete::no_row_left;
use super::means::PresentMeans;
use super::{Filling, Missing, MissingReport};
use crate::Error;
use crate::matrix::{Matrix, RowChunks};

/// What one reading of all rows found of their holes.
pub(crate) struct Scanned {
    pub(crate) report: MissingReport,
    /// For `mean`: what fills them.
    pub(crate) filling: Option<Filling>,
    /// For `drop-rows`: weights that are 0 for rows with holes.
    pub(crate) weights: Option<Vec<f64>>,
}

impl Scanned {
    /// Reads all rows once. Nothing where nothing is missing.
    pub(crate) fn of(
        rows: &mut impl RowChunks,
        weights: Option<&[f64]>,
        missing: Missing,
    ) -> Result<Option<Self>, Error> {
        if missing == Missing::Em {
            let advice = "em works on rows in memory: allow more memory, or choose mean or drop-rows";
            return Err(Error::parameter("missing", missing, advice));
        }
        let mut means = PresentMeans::of_columns(rows.n_cols(), rows.is_sparse());
        let (mut holes, mut with_holes, mut single) = (0, Vec::new(), false);
        let mut recycled = None;
        for i in 0..rows.starts().len() - 1 {
            let first = rows.starts()[i];
            let chunk = rows.read_chunk(i, recycled.take())?;
            single = chunk.is_single();
            for l in 0..chunk.n_rows() {
                let before = holes;
                chunk.for_each_in_row(l, |_, x| holes += usize::from(x.is_nan()));
                if holes > before {
                    with_holes.push(first + l);
                }
            }
            if missing == Missing::Mean {
                means.add(&chunk, weights.map(|weights| &weights[first..first + chunk.n_rows()]));
            }
            recycled = Some(chunk);
        }
        if holes == 0 {
            return Ok(None);
        }
        let n = rows.n_rows();
        let dropped = if missing == Missing::DropRows { with_holes.len() } else { 0 };
        if dropped == n {
            return Err(no_row_left());
        }
        let weights = (missing == Missing::DropRows).then(|| {
            let mut weights = weights.map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
            with_holes.iter().for_each(|&l| weights[l] = 0.0);
            weights
        });
        let filling = (missing == Missing::Mean).then(|| means.finish(single)).transpose()?;
        let report = MissingReport {
            policy: missing,
            entries: holes,
            rows: with_holes.len(),
            dropped,
            stationary_point: None,
        };
        Ok(Some(Self { report, filling, weights }))
    }
}

/// Rows whose holes are filled when they are read.
pub(crate) struct FilledRows<R> {
    rows: R,
    values: Vec<f64>,
}

impl<R: RowChunks> FilledRows<R> {
    pub(crate) fn new(rows: R, filling: &Filling) -> Self {
        Self { rows, values: filling.values.clone() }
    }

    fn filled(&self, mut rows: Matrix<'static>) -> Matrix<'static> {
        rows.fill_holes(&self.values);
        rows
    }
}

impl<R: RowChunks> RowChunks for FilledRows<R> {
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
    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        self.rows.cut(bytes)
    }
    fn starts(&self) -> &[usize] {
        self.rows.starts()
    }
    fn read_chunk(&mut self, i: usize, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        let rows = self.rows.read_chunk(i, recycled)?;
        Ok(self.filled(rows))
    }
    fn version(&self) -> Option<u64> {
        self.rows.version()
    }
    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        let rows = self.rows.read_rows(rows)?;
        Ok(self.filled(rows))
    }
}
