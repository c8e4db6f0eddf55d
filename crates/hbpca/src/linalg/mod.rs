//! Products of tall matrices, orthonormal bases, and small symmetric eigenproblems.
//!
//! Tall means d×p with p ≪ d. Coordinates are cut into chunks that depend on d alone, so that sums have a fixed order
//! and threads can share the work.

mod basis_storage;
mod block_qr;
mod orthonormal;
mod tall_basis;
mod tridiagonal;

pub(crate) use basis_storage::BasisStorage;
pub(crate) use block_qr::BlockQr;
pub(crate) use orthonormal::{
    orthonormal_complement, orthonormal_complement_of, random_complement, svqb_transform,
};
pub(crate) use tall_basis::TallBasis;
pub(crate) use tridiagonal::Reduced;

use faer::{Mat, MatRef, Side};
use rayon::prelude::*;

use crate::kernels::narrow;
use crate::rounding::rounding_of_sum;
use crate::{Block, Error, ordered};

/// Coordinates in one chunk: with a few dozen vectors it stays in the second-level cache.
const CHUNK: usize = 2048;

/// The matrix of a block.
pub(crate) fn view(block: &Block) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(block.values(), block.d(), block.p())
}

/// AᵀB, p×q.
pub(crate) fn gram(a: &Block, b: &Block) -> Mat<f64> {
    let (d, p, q) = (a.d(), a.p(), b.p());
    let n_chunks = d.div_ceil(CHUNK);
    let mut total = vec![0.0; p * q];
    if p > 0 && q > 0 {
        let mut partials = vec![vec![0.0; p * q]; rayon::current_num_threads().min(n_chunks)];
        ordered::for_each_chunk(
            n_chunks,
            &mut partials,
            |i, partial| {
                let rows = i * CHUNK..d.min((i + 1) * CHUNK);
                let a = &a.values()[rows.start * p..rows.end * p];
                let b = &b.values()[rows.start * q..rows.end * q];
                narrow::gram(a, p, b, q, partial);
            },
            |_, partial| total.iter_mut().zip(partial.iter()).for_each(|(total, x)| *total += x),
        );
    }
    MatRef::from_row_major_slice(&total, p, q).to_owned()
}

/// Relative rounding of every entry of [`gram`] for unit vectors of length d.
pub(crate) fn rounding_of_gram(d: usize) -> f64 {
    rounding_of_sum(d.min(CHUNK) + d.div_ceil(CHUNK))
}

/// A·H, d×r, for a small p×r matrix H.
pub(crate) fn product(a: &Block, h: MatRef<'_, f64>) -> Block {
    let mut out = Block::zeros(a.d(), h.ncols());
    add_product(&mut out, a, h, 1.0);
    out
}

/// W ← W·H for a square matrix H.
pub(crate) fn rotate_block(w: &mut Block, h: MatRef<'_, f64>) {
    let p = w.p();
    assert!(h.nrows() == p && h.ncols() == p, "a square matrix rotates {p} vectors");
    let h: Vec<f64> = (0..p * p).map(|at| h[(at / p, at % p)]).collect();
    w.values_mut().par_chunks_mut((CHUNK * p).max(1)).for_each_init(Vec::new, |before, w| {
        before.clear();
        before.extend_from_slice(w);
        w.fill(0.0);
        narrow::add_product(w, p, before, p, &h);
    });
}

/// W ← W + αA·H.
pub(crate) fn add_product(w: &mut Block, a: &Block, h: MatRef<'_, f64>, alpha: f64) {
    let (p, r) = (a.p(), w.p());
    if p == 0 || r == 0 {
        return;
    }
    let scaled: Vec<f64> = (0..p * r).map(|at| alpha * h[(at / r, at % r)]).collect();
    let chunks = w.values_mut().par_chunks_mut(CHUNK * r).zip(a.values().par_chunks(CHUNK * p));
    chunks.for_each(|(w, a)| narrow::add_product(w, r, a, p, &scaled));
}

/// aᵢᵀbᵢ for every column i of two blocks.
pub(crate) fn column_dots(a: &Block, b: &Block) -> Vec<f64> {
    over_rows(a, b, |a, b, sums| {
        for (a, b) in a.zip(b) {
            sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
        }
    })
}

/// ‖zᵢ − θᵢwᵢ‖ for every column i of W and its images Z.
pub(crate) fn residual_norms(w: &Block, z: &Block, theta: &[f64]) -> Vec<f64> {
    // Squares are taken of numbers near 1.
    let largest = theta.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let unit = if largest.is_normal() { 2.0_f64.powi(largest.log2() as i32) } else { 1.0 };
    let squares = over_rows(w, z, |w, z, sums| {
        for (w, z) in w.zip(z) {
            for (c, sum) in sums.iter_mut().enumerate() {
                let r = (z[c] - theta[c] * w[c]) / unit;
                *sum += r * r;
            }
        }
    });
    squares.into_iter().map(|square| square.sqrt() * unit).collect()
}

/// Sums over the rows of two blocks of the same shape, one for each column, chunk by chunk.
fn over_rows<'b>(
    a: &'b Block,
    b: &'b Block,
    add: impl Fn(std::slice::ChunksExact<'b, f64>, std::slice::ChunksExact<'b, f64>, &mut [f64]) + Sync,
) -> Vec<f64> {
    let (d, p) = (a.d(), a.p());
    let mut total = vec![0.0; p];
    if p > 0 {
        let n_chunks = d.div_ceil(CHUNK);
        let mut partials = vec![vec![0.0; p]; rayon::current_num_threads().min(n_chunks)];
        ordered::for_each_chunk(
            n_chunks,
            &mut partials,
            |i, partial| {
                let rows = i * CHUNK * p..d.min((i + 1) * CHUNK) * p;
                partial.fill(0.0);
                add(a.values()[rows.clone()].chunks_exact(p), b.values()[rows].chunks_exact(p), partial);
            },
            |_, partial| total.iter_mut().zip(partial.iter()).for_each(|(total, x)| *total += x),
        );
    }
    total
}

/// Eigenvalues, descending, and eigenvectors of a small symmetric matrix.
pub(crate) fn small_eigen(h: &Mat<f64>) -> Result<(Vec<f64>, Mat<f64>), Error> {
    let p = h.nrows();
    if p == 0 {
        return Ok((Vec::new(), Mat::zeros(0, 0)));
    }
    // Scaled to entries of at most 1, and symmetric to the last bit.
    let largest = h.norm_max();
    let scale = if largest > 0.0 { largest } else { 1.0 };
    let symmetric = Mat::from_fn(p, p, |i, j| 0.5 * (h[(i, j)] + h[(j, i)]) / scale);
    let eigen = symmetric
        .self_adjoint_eigen(Side::Lower)
        .map_err(|e| Error::Numerical(format!("no eigenvalues of a symmetric matrix: {e:?}")))?;
    let values = (0..p).map(|i| eigen.S()[p - 1 - i] * scale).collect();
    Ok((values, Mat::from_fn(p, p, |i, j| eigen.U()[(i, p - 1 - j)])))
}

/// The columns of several blocks side by side.
pub(crate) fn beside(left: &Block, right: &Block) -> Block {
    let (d, p, q) = (left.d().max(right.d()), left.p(), right.p());
    let mut values = Vec::with_capacity(d * (p + q));
    for j in 0..d {
        values.extend_from_slice(&left.values()[j * p..(j + 1) * p]);
        values.extend_from_slice(&right.values()[j * q..(j + 1) * q]);
    }
    Block::from_values(d, p + q, values).unwrap_or_else(|_| unreachable!("both blocks have d rows"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_eigenproblems_descend_and_survive_scales() {
        for scale in [1e-300, 1.0, 1e300] {
            let h = Mat::from_fn(2, 2, |i, j| scale * [[2.0, 1.0], [1.0, 2.0]][i][j]);
            let (values, vectors) = small_eigen(&h).unwrap();
            assert!((values[0] / scale - 3.0).abs() < 1e-14 && (values[1] / scale - 1.0).abs() < 1e-14);
            assert!((vectors[(0, 0)].abs() - 0.5_f64.sqrt()).abs() < 1e-14);
        }
    }
}
