//! The leading pairs of a symmetric matrix that is itself in memory.
//!
//! ```text
//! 1  X ← b random orthonormal directions
//! 2  repeat until Q has m vectors
//! 3      Z ← CX;  Q ← [Q, X],  CQ ← [CQ, Z];  X ← orth(Z − QQᵀZ)
//! 4  Rayleigh–Ritz on Q; unless the k residuals are small: m ← 3m/2, and on from 2
//! 5  xI − (C − WΘWᵀ) = LLᵀ for an x just above θ_{k+1}
//! ```
//!
//! Source: block Lanczos (Golub & Underwood 1977), fully re-orthogonalised. Deviations: the images are kept, and the small problem is
//! solved only when the basis has grown by half, because a product costs less here than that problem. It gives up, for a
//! [reduction to tridiagonal form](crate::linalg::Reduced) to do the work, where the residuals fall too slowly, and where as many values agree
//! as the block has vectors: more copies might hide.
//!
//! Line 5 turns θ_{k+1}, an estimate, into a bound: WΘWᵀ has rank k, so that λ_{k+1}(C) ≤ λ₁(C − WΘWᵀ) whatever W is (Weyl), and
//! that is below x if the factor exists.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, Par, Side};
use rayon::prelude::*;

use crate::block::largest;
use crate::certificate::Next;
use crate::linalg::{
    Tall, beside, gram, orthonormal_complement, product, random_complement, residual_norms, small_eigen, view,
};
use crate::operator::rounding_of_sum;
use crate::{Block, Error};

/// Vectors of the basis at the first Rayleigh–Ritz, counted on the data sets of `docs/benchmarks.md`.
fn size_of_basis(k: usize) -> usize {
    3 * k + 80
}

/// The basis grows up to this share of the space.
const MOST: f64 = 0.7;

/// How long the pairs of a d×d matrix take, as so many multiply-adds of a pass in f64 by one thread: times of d = 250 to 2000.
pub(crate) mod work {
    /// All of them.
    pub(crate) fn all(d: usize) -> f64 {
        5.0 * (d as f64).powi(3)
    }

    /// The k leading ones, by the faster of the two ways.
    pub(crate) fn of_leading(d: usize, k: usize) -> f64 {
        if super::solves_by_krylov(d, k) {
            krylov(d, k)
        } else if super::solves_partially(d, k) {
            reduction(d)
        } else {
            all(d)
        }
    }

    /// By way of a tridiagonal matrix.
    pub(super) fn reduction(d: usize) -> f64 {
        2.0 * (d as f64).powi(3)
    }

    /// By the first basis of a Krylov space: products on two threads, each vector against all others twice, the small problem, and
    /// the factor of line 5.
    pub(super) fn krylov(d: usize, k: usize) -> f64 {
        let (d, basis) = (d as f64, super::size_of_basis(k) as f64);
        2.5 * (d * d * basis / 2.0 + 2.0 * d * basis * basis + 6.0 * basis.powi(3)) + d.powi(3) / 4.0
    }
}

/// Whether the k leading pairs of d are found without all others.
pub(crate) fn solves_partially(d: usize, k: usize) -> bool {
    /// Orthonormal vectors cost k²d; from here on that is no longer small.
    const LEAST_SHARE: usize = 4;
    k * LEAST_SHARE <= d
}

/// Whether a Krylov space is tried first. Should it fail, it has cost less than what else is done; a small matrix stays in the
/// second-level cache while it is reduced, and gains nothing.
pub(super) fn solves_by_krylov(d: usize, k: usize) -> bool {
    d >= 600 && size_of_basis(k) as f64 <= MOST * d as f64 && work::krylov(d, k) <= 0.75 * work::reduction(d)
}

/// Numbers kept, in vectors, beside the matrix.
pub(crate) fn vectors_kept(d: usize, k: usize) -> usize {
    2 * size_of_basis(k).min(d) + 4 * k
}

/// Pairs, and what follows them.
pub(super) struct Leading {
    pub(super) vectors: Block,
    pub(super) images: Block,
    /// λ_{k+1}.
    pub(super) next: Next,
}

/// The k leading pairs of `c` with residuals of at most `goal`·θ₁ or, if that is larger, `floor`; nothing where these are not in reach.
/// `rounding` bounds how far `c` is from what is to be decomposed.
pub(super) fn leading(
    c: &Block,
    k: usize,
    goal: f64,
    floor: f64,
    rounding: f64,
) -> Result<Option<Leading>, Error> {
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
        let best = s.as_ref().subcols(0, k + 1);
        let (mut vectors, mut images) = (product(q.view(), best), product(images.view(), best));
        let residuals = residual_norms(&vectors, &images, &theta[..=k]);
        let enough = floor.max(goal * theta[0]);
        let worst = largest(residuals[..k].iter().copied());
        if worst <= enough {
            let agree = |i: usize| theta[i] - theta[i + b - 1] <= 2.0 * (enough + floor);
            if (0..k).take_while(|i| i + b <= k).any(agree) {
                return Ok(None);
            }
            vectors.split_off(k);
            images.split_off(k);
            let next = bound_next(c, &vectors, &theta, residuals[k], rounding); // 5
            return Ok(Some(Leading { vectors, images, next }));
        }
        // With half as many vectors again, and as residuals fall the faster the smaller they are, their logarithm may double.
        let in_reach = (worst / theta[0]).powi(2) <= enough / theta[0];
        if !in_reach {
            break;
        }
        size += size / 2;
    }
    Ok(None)
}

/// Line 5: θ_{k+1}, with a residual of `off`, as a bound on λ_{k+1}, if that can be proved.
fn bound_next(c: &Block, w: &Block, theta: &[f64], off: f64, rounding: f64) -> Next {
    let (d, k) = (w.d(), w.p());
    let x = theta[k] + 2.0 * off;
    let mut scaled = w.clone();
    for row in scaled.values_mut().chunks_exact_mut(k) {
        row.iter_mut().zip(theta).for_each(|(x, theta)| *x *= theta);
    }
    // In units of x, of which no square is formed.
    let mut rest = Mat::from_fn(d, d, |i, j| f64::from(u8::from(i == j)) - c.values()[j * d + i] / x);
    matmul(rest.as_mut(), Accum::Add, view(&scaled), view(w).transpose(), 1.0 / x, Par::Seq);
    // Each sum is rounded, and the factor is that of a matrix off by γ_d‖|L||Lᵀ|‖ ≤ γ_d·trace (Higham 2002, theorem 10.3).
    let trace: f64 = c.values().iter().step_by(d + 1).sum();
    let of_sums = 2.0 * rounding_of_sum(k) * trace;
    let of_factor = rounding_of_sum(d) * d as f64 * x;
    let bound = x + rounding + of_sums + of_factor;
    if x > 0.0 && rest.llt(Side::Lower).is_ok() { Next::Proved(bound) } else { Next::Estimated(theta[k]) }
}

/// CX, coordinates shared among all threads.
pub(super) fn multiply(c: &Block, x: &Block) -> Block {
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
            let found = leading(&c, k, 1e-9, 1e-13, 0.0).unwrap().unwrap();
            let h = gram_of_blocks(&found.vectors, &found.images);
            for i in 0..k {
                assert!((h[(i, i)] - lambda[i]).abs() <= 1e-9, "{k} {i}"); // at most the residual
            }
            let Next::Proved(next) = found.next else { panic!("{:?}", found.next) };
            assert!(next >= lambda[k] && next <= lambda[k] + 1e-3, "{next} {}", lambda[k]);
        }
    }

    /// The factor exists for x above λ_{k+1} alone.
    #[test]
    fn what_follows_is_bounded_or_else_only_estimated() {
        let lambda: Vec<f64> = (0..60).map(|i| 1.0 / (1.0 + f64::from(i))).collect();
        let c = with_spectrum(&lambda);
        let (theta, s) = small_eigen(&view(&c).to_owned()).unwrap();
        let w = product(view(&c), s.as_ref().subcols(0, 3)); // λᵢuᵢ: any three vectors
        let mut unit = w.clone();
        unit.values_mut().chunks_exact_mut(3).for_each(|row| (0..3).for_each(|i| row[i] /= lambda[i]));
        let next = |estimate: f64| bound_next(&c, &unit, &[theta[0], theta[1], theta[2], estimate], 0.0, 0.0);
        assert!(matches!(next(0.25 + 1e-9), Next::Proved(bound) if bound >= 0.25 && bound < 0.25 + 2e-9));
        assert!(matches!(next(0.25 - 1e-9), Next::Estimated(_)));
        assert!(matches!(next(0.0), Next::Estimated(_)));
    }

    #[test]
    fn slow_spectra_are_given_up_after_the_first_basis() {
        let lambda: Vec<f64> = (0..400).map(|i| (1.0 + f64::from(i)).powf(-0.3)).collect();
        assert!(leading(&with_spectrum(&lambda), 10, 1e-9, 1e-13, 0.0).unwrap().is_none());
    }

    #[test]
    fn more_copies_than_the_block_holds_are_left_to_a_full_decomposition() {
        let mut lambda: Vec<f64> = (0..400).map(|i| 1.0 / (2.0 + f64::from(i))).collect();
        lambda[..12].fill(1.0);
        assert!(leading(&with_spectrum(&lambda), 15, 1e-9, 1e-13, 0.0).unwrap().is_none());
        lambda[3..12].iter_mut().enumerate().for_each(|(i, x)| *x = 0.9 - 0.01 * i as f64);
        assert!(leading(&with_spectrum(&lambda), 15, 1e-9, 1e-13, 0.0).unwrap().is_some());
    }
}
