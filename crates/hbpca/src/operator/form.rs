//! Forming C in one pass: blocks of prepared rows B, and C += BᵀB, lower triangle only.

use std::ops::Range;

use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};

use super::Covariance;
use crate::matrix::Matrix;
use crate::{Block, CovarianceOperator, ordered};

/// Rows prepared at a time: with a few hundred columns they stay in the second-level cache.
const ROWS: usize = 128;
/// Rows that make merging a worker's d×d sum cheap beside computing it.
const ROWS_PER_CHUNK: usize = 1024;
/// Chunks at most: each is merged once, d² additions.
const MOST_CHUNKS: usize = 16;
/// Numbers in all workers' sums together (512 MiB): where d is large, fewer threads share the work.
const MOST_NUMBERS: usize = 1 << 26;

/// `c` ← C.
pub(super) fn form(operator: &Covariance<'_>, c: &mut Block) {
    let (n, d) = (operator.n_rows(), operator.dim());
    let n_chunks = 1 << (n / ROWS_PER_CHUNK).clamp(1, MOST_CHUNKS).ilog2();
    let n_workers = n_chunks.min(rayon::current_num_threads()).min(MOST_NUMBERS / (d * d)).max(1);
    let mut workers = vec![Worker { sum: vec![0.0; d * d], rows: vec![0.0; ROWS.min(n) * d] }; n_workers];
    *c = Block::zeros(d, d);
    ordered::for_each_chunk(
        n_chunks,
        &mut workers,
        |i, worker| worker.add_chunk(operator, ordered::piece(n, i, n_chunks)),
        |_, worker| c.values_mut().iter_mut().zip(&worker.sum).for_each(|(c, sum)| *c += sum),
    );
    let values = c.values_mut();
    for i in 0..d {
        for j in 0..=i {
            let value = values[i * d + j] / n as f64;
            values[i * d + j] = value;
            values[j * d + i] = value;
        }
    }
}

#[derive(Clone)]
struct Worker {
    /// Σ aaᵀ over one chunk, d×d, of which the lower triangle counts.
    sum: Vec<f64>,
    /// Prepared rows.
    rows: Vec<f64>,
}

impl Worker {
    fn add_chunk(&mut self, operator: &Covariance<'_>, chunk: Range<usize>) {
        let d = operator.dim();
        self.sum.fill(0.0);
        for start in chunk.clone().step_by(ROWS) {
            if operator.cancel.is_abandoned() {
                return; // C is never handed out then
            }
            let count = ROWS.min(chunk.end - start);
            let rows = &mut self.rows[..count * d];
            rows.chunks_exact_mut(d).enumerate().for_each(|(i, a)| prepare_row(operator, start + i, a));
            let b = MatRef::from_row_major_slice(&*rows, count, d);
            let sum = MatMut::from_row_major_slice_mut(&mut self.sum, d, d);
            let (lower, all) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
            matmul(sum, lower, Accum::Add, b.transpose(), all, b, all, 1.0, Par::Seq);
        }
    }
}

/// a ← √w · D⁻¹(x − μ) for row l.
fn prepare_row(operator: &Covariance<'_>, l: usize, a: &mut [f64]) {
    match operator.matrix {
        Matrix::DenseF32(x) => a.iter_mut().zip(x.row(l)).for_each(|(a, &x)| *a = f64::from(x)),
        Matrix::DenseF64(x) => a.copy_from_slice(x.row(l)),
        sparse => {
            a.fill(0.0);
            sparse.for_each_in_row(l, |j, x| a[j] = x);
        }
    }
    if let Some(shift) = operator.map.shift() {
        a.iter_mut().zip(shift).for_each(|(a, mu)| *a -= mu);
    }
    if let Some(inverse) = operator.map.inverse_scale() {
        a.iter_mut().zip(inverse).for_each(|(a, s)| *a *= s);
    }
    if let Some(weights) = &operator.weights {
        let root = weights[l].sqrt();
        a.iter_mut().for_each(|a| *a *= root);
    }
}
