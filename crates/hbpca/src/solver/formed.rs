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
//! [reduction to tridiagonal form](crate::linalg::Reduced) to do the work, where the residuals fall too slowly, and where line 5 fails.
//!
//! Line 5 is the proof that nothing was overlooked, be it more copies of an eigenvalue than the block has vectors: WΘWᵀ has rank k, so that
//! λ_{k+1}(C) ≤ λ₁(C − WΘWᵀ) whatever W is (Weyl), and that is below x if the factor exists.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, Par, Side};
use rayon::prelude::*;

use crate::block::largest;
use crate::linalg::{
    TallBasis, beside, orthonormal_complement, random_complement, residual_norms, small_eigen, view,
};
use crate::rounding::rounding_of_sum;
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
    /// A bound on λ_{k+1}.
    pub(super) next: f64,
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
    let (mut q, mut images) = (TallBasis::with_room(d, 0), TallBasis::with_room(d, 0));
    let mut x = random_complement(&q, b, 0)?; // 1
    let mut size = size_of_basis(k);
    while size as f64 <= MOST * d as f64 {
        q.reserve(size + b);
        images.reserve(size + b);
        // 2, 3
        while q.len() < size {
            let z = multiply(c, &x);
            q.append(&x);
            images.append(&z);
            x = orthonormal_complement(z, &q)?;
            if x.p() < b {
                let mut known = q.clone();
                known.append(&x);
                x = beside(&x, &random_complement(&known, b - x.p(), q.len() as u64)?);
            }
        }
        // 4
        let (theta, s) = small_eigen(&q.gram_with(&images))?;
        let best = s.as_ref().subcols(0, k + 1);
        let (mut vectors, mut images) = (q.product(best), images.product(best));
        let residuals = residual_norms(&vectors, &images, &theta[..=k]);
        let enough = floor.max(goal * theta[0]);
        let worst = largest(residuals[..k].iter().copied());
        if worst <= enough {
            vectors.split_off(k);
            images.split_off(k);
            let next = bound_next(c, &vectors, &theta, residuals[k], rounding); // 5
            return Ok(next.map(|next| Leading { vectors, images, next }));
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

/// Line 5: a bound on λ_{k+1} a little above θ_{k+1}, which has a residual of `off`, if there is one.
fn bound_next(c: &Block, w: &Block, theta: &[f64], off: f64, rounding: f64) -> Option<f64> {
    let (d, k) = (w.d(), w.p());
    // Sums of k products are rounded, and the factor is that of a matrix off by γ_d‖|L||Lᵀ|‖ ≤ γ_d·trace ≤ γ_d·dx (Higham 2002, theorem
    // 10.3): without twice as much room it might fail for no other reason.
    let trace: f64 = c.values().iter().step_by(d + 1).sum();
    let computing = |x: f64| 2.0 * rounding_of_sum(k) * trace + rounding_of_sum(d) * d as f64 * x;
    let x = theta[k] + 2.0 * (off + computing(theta[k]));
    let bound = x + computing(x) + rounding;
    let mut scaled = w.clone();
    for row in scaled.values_mut().chunks_exact_mut(k) {
        row.iter_mut().zip(theta).for_each(|(x, theta)| *x *= theta);
    }
    // In units of x, so that numbers are of order 1.
    let mut rest = Mat::from_fn(d, d, |i, j| f64::from(u8::from(i == j)) - c.values()[j * d + i] / x);
    matmul(rest.as_mut(), Accum::Add, view(&scaled), view(w).transpose(), 1.0 / x, Par::Seq);
    (x > 0.0 && rest.llt(Side::Lower).is_ok()).then_some(bound)
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
    use crate::linalg::{gram, product};

    /// U diag(λ) Uᵀ for a random orthonormal U.
    fn with_spectrum(lambda: &[f64]) -> Block {
        let d = lambda.len();
        let u = random_complement(&TallBasis::with_room(d, 0), d, 3).unwrap();
        let mut scaled = u.clone();
        for row in scaled.values_mut().chunks_exact_mut(d) {
            row.iter_mut().zip(lambda).for_each(|(x, lambda)| *x *= lambda);
        }
        let transposed = view(&u).transpose().to_owned();
        product(&scaled, transposed.as_ref())
    }

    #[test]
    fn leading_pairs_are_those_of_the_spectrum() {
        let lambda: Vec<f64> = (0..400).map(|i| 1.0 / (1.0 + f64::from(i))).collect();
        let c = with_spectrum(&lambda);
        for k in [1, 10] {
            let found = leading(&c, k, 1e-9, 1e-13, 0.0).unwrap().unwrap();
            let h = gram(&found.vectors, &found.images);
            for i in 0..k {
                assert!((h[(i, i)] - lambda[i]).abs() <= 1e-9, "{k} {i}"); // at most the residual
            }
            assert!(
                found.next >= lambda[k] && found.next <= lambda[k] + 1e-3,
                "{} {}",
                found.next,
                lambda[k]
            );
        }
    }

    /// The factor exists for x above λ_{k+1} alone.
    #[test]
    fn what_follows_has_a_bound_above_itself_alone() {
        let lambda: Vec<f64> = (0..60).map(|i| 1.0 / (1.0 + f64::from(i))).collect();
        let c = with_spectrum(&lambda);
        let (theta, s) = small_eigen(&view(&c).to_owned()).unwrap();
        let w = product(&c, s.as_ref().subcols(0, 3)); // λᵢuᵢ: any three vectors
        let mut unit = w.clone();
        unit.values_mut().chunks_exact_mut(3).for_each(|row| (0..3).for_each(|i| row[i] /= lambda[i]));
        let next = |estimate: f64| bound_next(&c, &unit, &[theta[0], theta[1], theta[2], estimate], 0.0, 0.0);
        assert!(next(0.25 + 1e-9).is_some_and(|bound| (0.25..0.25 + 2e-9).contains(&bound)));
        assert_eq!(next(0.25 - 1e-9), None);
        assert_eq!(next(0.0), None);
    }

    #[test]
    fn slow_spectra_are_given_up_after_the_first_basis() {
        let lambda: Vec<f64> = (0..400).map(|i| (1.0 + f64::from(i)).powf(-0.3)).collect();
        assert!(leading(&with_spectrum(&lambda), 10, 1e-9, 1e-13, 0.0).unwrap().is_none());
    }

    #[test]
    fn copies_are_never_overlooked() {
        // More of them than the block has vectors: found, or left to the other way.
        for copies in [3, 8, 12, 20] {
            let mut lambda: Vec<f64> = (0..400).map(|i| 1.0 / (2.0 + f64::from(i))).collect();
            lambda[..copies].fill(1.0);
            let Some(found) = leading(&with_spectrum(&lambda), 15, 1e-9, 1e-13, 0.0).unwrap() else {
                continue;
            };
            let h = gram(&found.vectors, &found.images);
            for i in 0..15 {
                assert!((h[(i, i)] - lambda[i]).abs() <= 1e-9, "{copies} copies, {i}: {}", h[(i, i)]);
            }
        }
        // One of three copies, and what follows all three: no proof.
        let c = with_spectrum(&[1.0, 1.0, 1.0, 0.5, 0.25, 0.125]);
        let (_, s) = small_eigen(&view(&c).to_owned()).unwrap();
        let w = Block::from_vector((0..6).map(|j| s[(j, 0)]).collect());
        assert_eq!(bound_next(&c, &w, &[1.0, 0.5], 1e-12, 0.0), None);
        assert!(bound_next(&c, &w, &[1.0, 1.0], 1e-12, 0.0).is_some());
    }
}
