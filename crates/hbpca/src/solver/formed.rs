//! The leading pairs of a symmetric matrix that is itself in memory.
//!
//! ```text
//! 1  X ← b random orthonormal directions
//! 2  repeat until Q has m vectors
//! 3      Z ← CX;  Q ← [Q, X],  CQ ← [CQ, Z];  X ← orth(Z − QQᵀZ)
//! 4  Rayleigh–Ritz on Q; unless the k residuals are small: m ← 3m/2, and on from 2
//! ```
//!
//! Source: block Lanczos (Golub & Underwood 1977), fully re-orthogonalised. Deviations: the images are kept, and the small problem is
//! solved only when the basis has grown by half, because a product costs less here than that problem. It gives up, for a full
//! decomposition to do the work, where the basis would hold most of the space, and where as many values agree as the block has
//! vectors: more copies might hide.

use crate::linalg::{
    Tall, beside, gram, orthonormal_complement, product, random_complement, residual_norms, small_eigen, view,
};
use crate::{Block, Error};

/// Vectors of the basis at the first Rayleigh–Ritz, counted on the data sets of `docs/benchmarks.md`.
pub(crate) fn size_of_basis(k: usize) -> usize {
    3 * k + 80
}

/// The basis grows up to this share of the space.
const MOST: f64 = 0.7;

/// Whether this takes less time than a full decomposition, which also tells the whole spectrum: not unless the basis has room to grow.
pub(crate) fn solves_partially(d: usize, k: usize) -> bool {
    d >= 400 && 1.5 * size_of_basis(k) as f64 <= MOST * d as f64
}

/// Numbers kept, in vectors, beside the matrix.
pub(crate) fn vectors_kept(d: usize, k: usize) -> usize {
    2 * size_of_basis(k).min(d) + 4 * k
}

/// Pairs, and what follows them.
pub(super) struct Leading {
    pub(super) vectors: Block,
    pub(super) images: Block,
    /// θ_{k+1}.
    pub(super) next: Option<f64>,
}

/// The k leading pairs of `c` with residuals of at most `goal`·θ₁ or, if that is larger, `floor`; nothing where a full
/// decomposition is called for.
pub(super) fn leading(c: &Block, k: usize, goal: f64, floor: f64) -> Result<Option<Leading>, Error> {
    let d = c.d();
    let b = (k / 6).clamp(8, 32); // narrow blocks need fewer vectors, wide ones fewer looks at C
    let (mut q, mut images) = (Tall::empty(d), Tall::empty(d));
    let mut x = random_complement(q.view(), b, 0)?; // 1
    let mut size = size_of_basis(k);
    while size as f64 <= MOST * d as f64 {
        // 2, 3
        while q.len() < size {
            let z = multiply(c, &x);
            q.append(&x);
            images.append(&z);
            x = orthonormal_complement(z, q.view())?;
            if x.p() < b {
                let mut known = q.clone();
                known.append(&x);
                x = beside(&x, &random_complement(known.view(), b - x.p(), q.len() as u64)?);
            }
        }
        // 4
        let (theta, s) = small_eigen(&gram(q.view(), images.view()))?;
        let best = s.as_ref().subcols(0, k);
        let (vectors, images) = (product(q.view(), best), product(images.view(), best));
        let residuals = residual_norms(&vectors, &images, &theta[..k]);
        let enough = floor.max(goal * theta[0]);
        if residuals.iter().all(|residual| *residual <= enough) {
            let agree = |i: usize| theta[i] - theta[i + b - 1] <= 2.0 * (enough + floor);
            let hides = (0..k).take_while(|i| i + b <= k).any(agree);
            return Ok((!hides).then(|| Leading { vectors, images, next: theta.get(k).copied() }));
        }
        size += size / 2;
    }
    Ok(None)
}

/// CX, coordinates shared among all threads.
fn multiply(c: &Block, x: &Block) -> Block {
    use faer::linalg::matmul::matmul;
    use faer::{Accum, MatMut, Par};
    use rayon::prelude::*;

    /// Rows at a time: each of them is a sum of its own, so that their number changes no bits.
    const ROWS: usize = 128;
    let (d, p) = (x.d(), x.p());
    let mut out = Block::zeros(d, p);
    out.values_mut().par_chunks_mut(ROWS * p).enumerate().for_each(|(i, out)| {
        let rows = out.len() / p;
        let out = MatMut::from_row_major_slice_mut(out, rows, p);
        matmul(out, Accum::Replace, view(c).subrows(i * ROWS, rows), view(x), 1.0, Par::Seq);
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::gram_of_blocks;

    /// U diag(λ) Uᵀ for a random orthonormal U.
    fn with_spectrum(lambda: &[f64]) -> Block {
        let d = lambda.len();
        let u = random_complement(view(&Block::zeros(d, 0)), d, 3).unwrap();
        let mut scaled = u.clone();
        for row in scaled.values_mut().chunks_exact_mut(d) {
            row.iter_mut().zip(lambda).for_each(|(x, lambda)| *x *= lambda);
        }
        let transposed = view(&u).transpose().to_owned();
        product(view(&scaled), transposed.as_ref())
    }

    #[test]
    fn leading_pairs_are_those_of_the_spectrum() {
        let lambda: Vec<f64> = (0..400).map(|i| 1.0 / (1.0 + f64::from(i))).collect();
        let c = with_spectrum(&lambda);
        for k in [1, 10] {
            let found = leading(&c, k, 1e-9, 1e-13).unwrap().unwrap();
            let h = gram_of_blocks(&found.vectors, &found.images);
            for i in 0..k {
                assert!((h[(i, i)] - lambda[i]).abs() <= 1e-9, "{k} {i}"); // at most the residual
            }
            assert!((found.next.unwrap() - lambda[k]).abs() <= 1e-3);
        }
    }

    #[test]
    fn more_copies_than_the_block_holds_are_left_to_a_full_decomposition() {
        let mut lambda: Vec<f64> = (0..400).map(|i| 1.0 / (2.0 + f64::from(i))).collect();
        lambda[..12].fill(1.0);
        assert!(leading(&with_spectrum(&lambda), 15, 1e-9, 1e-13).unwrap().is_none());
        lambda[3..12].iter_mut().enumerate().for_each(|(i, x)| *x = 0.9 - 0.01 * i as f64);
        assert!(leading(&with_spectrum(&lambda), 15, 1e-9, 1e-13).unwrap().is_some());
    }
}
