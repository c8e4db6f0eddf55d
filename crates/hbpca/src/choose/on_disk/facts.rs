//! What data on disk and the solvers need, in bytes and in seconds.

use crate::matrix::{Matrix, RowChunks};
use crate::solver::{solves_partially, vectors_kept};

/// What a nominal device reads and a small machine multiplies, where only their ratio decides: bytes and multiply-adds a second.
const READ_RATE: f64 = 1e9;
const MULTIPLY_RATE: f64 = 30e9;
/// Products with compressed rows, whose entries are scattered, are slower by this, and finding an entry takes as long as so many vectors
/// (`bench/slow_disk.py`).
const SPARSE_PRODUCTS: f64 = 1.5;
const SPARSE_ENTRY: usize = 16;

/// The facts that decide.
#[derive(Clone, Copy)]
pub(in crate::choose) struct Facts {
    pub(super) n: usize,
    pub(in crate::choose) d: usize,
    pub(super) nnz: f64,
    pub(super) sparse: bool,
    pub(in crate::choose) bytes: u64,
    /// Mean bytes of a row.
    pub(super) row: u64,
    /// Bytes that are read in a second.
    pub(super) read_rate: f64,
}

impl Facts {
    pub(super) fn of(rows: &dyn RowChunks) -> Self {
        let (n, d) = (rows.n_rows(), rows.n_cols());
        let (nnz, bytes) = (rows.nnz() as f64, rows.bytes());
        let row = bytes.div_ceil(n.max(1) as u64).max(1);
        Self { n, d, nnz, sparse: rows.is_sparse(), bytes, row, read_rate: READ_RATE }
    }

    /// Of rows in memory.
    pub(in crate::choose) fn of_matrix(matrix: &Matrix<'_>) -> Self {
        let (n, d, bytes) = (matrix.n_rows(), matrix.n_cols(), matrix.bytes_per_pass() as u64);
        let row = bytes.div_ceil(n.max(1) as u64).max(1);
        let (nnz, sparse) = (matrix.nnz() as f64, matrix.is_sparse());
        Self { n, d, nnz, sparse, bytes, row, read_rate: READ_RATE }
    }

    /// The same of a device that reads so many bytes a second.
    pub(super) fn read_at(self, rate: Option<f64>) -> Self {
        Self { read_rate: rate.unwrap_or(self.read_rate), ..self }
    }

    /// Bytes of one vector.
    pub(in crate::choose) fn vector(&self) -> u64 {
        8 * self.d as u64
    }

    /// Statistics, and a solver that keeps `kept` bytes, with workers that take `each`.
    pub(in crate::choose) fn needs(&self, kept: u64, each: u64) -> Needs {
        Needs {
            kept: kept.saturating_add(18 * self.vector()),
            worker: each.saturating_add(8 * self.vector()),
        }
    }

    /// Deflation: vectors, images, Ritz vectors and their images of k components, and what a look puts beside each other.
    pub(in crate::choose) fn lazy_svd(&self, k: usize) -> Needs {
        let k = k.min(self.d) as u64;
        self.needs(self.vector() * (10 * k + 12), self.vector() * 3 * k)
    }

    pub(in crate::choose) fn anchored(&self, k: usize, block: usize, anchors: usize) -> Needs {
        let p = block.min(self.d) + k.min(self.d);
        let kept = anchors.min(self.d) + p;
        self.needs(self.vector() * (3 * kept + 9 * p) as u64, self.vector() * 3 * p as u64)
    }

    pub(in crate::choose) fn krylov(&self, block: usize, kept: usize) -> Needs {
        let p = block.min(self.d);
        let vectors = 2 * (kept.min(self.d) + p) + 6 * p;
        self.needs(self.vector() * vectors as u64, self.vector() * 3 * p as u64)
    }

    pub(in crate::choose) fn covariance(&self, k: usize) -> Needs {
        let square = self.vector().saturating_mul(self.d as u64);
        // C and, for the pairs, a copy of it, its factor, or all that a full decomposition keeps.
        let decomposed = if solves_partially(self.d, k) { 3 } else { 5 };
        let kept = self.vector() * vectors_kept(self.d, k) as u64;
        self.needs(square.saturating_mul(decomposed).saturating_add(kept), square)
    }

    /// Seconds in which all rows are read.
    pub(super) fn reading_seconds(&self) -> f64 {
        self.bytes as f64 / self.read_rate
    }

    /// Seconds of a pass that multiplies with p vectors.
    pub(super) fn pass_seconds(&self, p: usize) -> f64 {
        let (slower, p) = if self.sparse { (SPARSE_PRODUCTS, p + SPARSE_ENTRY) } else { (1.0, p) };
        let multiplying = 2.0 * self.nnz * p as f64 * slower / MULTIPLY_RATE;
        multiplying.max(self.reading_seconds())
    }

    /// Seconds of `sweeps` products of the vectors that are kept with a block.
    pub(super) fn vector_seconds(&self, sweeps: f64, kept: usize, block: usize) -> f64 {
        sweeps * (self.d * kept * block) as f64 / MULTIPLY_RATE
    }

    /// Seconds of forming C.
    pub(super) fn forming_seconds(&self) -> f64 {
        let multiplying = self.n as f64 * (self.d as f64).powi(2) / 2.0 / MULTIPLY_RATE;
        multiplying.max(self.reading_seconds())
    }
}

/// Bytes besides chunks and pool.
#[derive(Clone, Copy)]
pub(in crate::choose) struct Needs {
    pub(in crate::choose) kept: u64,
    /// Of every thread.
    pub(in crate::choose) worker: u64,
}

impl Needs {
    /// With one thread.
    pub(super) fn least(self) -> u64 {
        self.kept.saturating_add(self.worker)
    }
}
