//! Products of tall blocks, orthonormal bases, and small symmetric eigenproblems.
//!
//! Tall means d×p with p ≪ d. Coordinates are cut into pieces that depend on d alone, so that sums have a fixed order
//! and threads can share the work.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};
use rayon::prelude::*;

use crate::matrix::random_direction;
use crate::{Block, Error, ordered};

/// Coordinates in one piece: with a few dozen vectors it stays in the second-level cache.
const PIECE: usize = 2048;

fn view(block: &Block) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(block.values(), block.d(), block.p())
}

/// AᵀB, p×q.
pub(crate) fn gram(a: &Block, b: &Block) -> Mat<f64> {
    let (d, p, q) = (a.d(), a.p(), b.p());
    let n_pieces = d.div_ceil(PIECE);
    let mut total = Mat::zeros(p, q);
    let mut partials = vec![Mat::<f64>::zeros(p, q); rayon::current_num_threads().min(n_pieces)];
    ordered::for_each_chunk(
        n_pieces,
        &mut partials,
        |i, partial| {
            let rows = i * PIECE..d.min((i + 1) * PIECE);
            let (a, b) = (view(a).subrows(rows.start, rows.len()), view(b).subrows(rows.start, rows.len()));
            matmul(partial.as_mut(), Accum::Replace, a.transpose(), b, 1.0, Par::Seq);
        },
        |_, partial| total += &*partial,
    );
    total
}

/// A·H, d×r, for a small p×r matrix H.
pub(crate) fn product(a: &Block, h: MatRef<'_, f64>) -> Block {
    let mut out = Block::zeros(a.d(), h.ncols());
    add_product(&mut out, a, h, 1.0);
    out
}

/// W ← W + αA·H for a small matrix H.
pub(crate) fn add_product(w: &mut Block, a: &Block, h: MatRef<'_, f64>, alpha: f64) {
    let (p, r) = (a.p(), w.p());
    if p == 0 || r == 0 {
        return;
    }
    let pieces = w.values_mut().par_chunks_mut(PIECE * r).zip(a.values().par_chunks(PIECE * p));
    pieces.for_each(|(w, a)| {
        let rows = a.len() / p;
        let (w, a) = (MatMut::from_row_major_slice_mut(w, rows, r), MatRef::from_row_major_slice(a, rows, p));
        matmul(w, Accum::Add, a, h, alpha, Par::Seq);
    });
}

/// W ← (I − QQᵀ)W, once; returns QᵀW.
pub(crate) fn project_out(w: &mut Block, q: &Block) -> Mat<f64> {
    let h = gram(q, w);
    add_product(w, q, h.as_ref(), -1.0);
    h
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
    let eigen =
        symmetric.self_adjoint_eigen(Side::Lower).map_err(|e| Error::Source(format!("{e:?}").into()))?;
    let values = (0..p).map(|i| eigen.S()[p - 1 - i] * scale).collect();
    Ok((values, Mat::from_fn(p, p, |i, j| eigen.U()[(i, p - 1 - j)])))
}

/// An orthonormal basis of what span(W) adds to span(Q), Q orthonormal. Directions of W that lie within span(Q), or within
/// the others, up to rounding are dropped.
///
/// Each round projects, brings columns to length 1 and rotates them by the eigenvectors of their Gram matrix (as SVQB,
/// Stathopoulos & Wu 2002, but scaled by their measured lengths, so that directions a billion times weaker than others
/// survive). Two rounds are nearly always enough.
pub(crate) fn orthonormal_complement(mut w: Block, q: &Block) -> Result<Block, Error> {
    const ROUNDS: usize = 8;
    let orthogonal = 8.0 * f64::EPSILON;
    // A remainder this much shorter than its vector is rounding.
    let vanished = 64.0 * f64::EPSILON;
    let room = w.d().saturating_sub(q.p());
    let mut lengths = column_norms(&w);
    for round in 0..ROUNDS {
        // Rotated columns descend in weight: where there is no room for all, the last ones go.
        let most = if round == 0 { w.p() } else { room };
        let overlap = project_out(&mut w, q).norm_max();
        let norms = column_norms(&w);
        let kept: Vec<usize> = (0..w.p()).filter(|&c| norms[c] > vanished * lengths[c]).take(most).collect();
        let scaled = Mat::from_fn(w.p(), kept.len(), |i, j| if i == kept[j] { 1.0 / norms[i] } else { 0.0 });
        w = product(&w, scaled.as_ref());
        let g = gram(&w, &w);
        let off =
            (0..w.p()).flat_map(|i| (0..i).map(move |j| (i, j))).map(|at| g[at].abs()).fold(0.0, f64::max);
        if w.p() == 0 || (round > 0 && overlap <= orthogonal && off <= orthogonal) {
            break;
        }
        let (_, vectors) = small_eigen(&g)?;
        w = product(&w, vectors.as_ref());
        lengths = vec![1.0; w.p()];
    }
    Ok(w)
}

/// `p` random orthonormal directions orthogonal to Q, fewer where the space has no more room.
pub(crate) fn random_complement(q: &Block, p: usize, seed: u64) -> Result<Block, Error> {
    let p = p.min(q.d().saturating_sub(q.p()));
    let values = random_direction(seed, q.d() * p);
    orthonormal_complement(Block::from_values(q.d(), p, values)?, q)
}

/// Length of every column.
pub(crate) fn column_norms(w: &Block) -> Vec<f64> {
    let mut squares = vec![0.0; w.p()];
    if w.p() > 0 {
        for row in w.values().chunks_exact(w.p()) {
            squares.iter_mut().zip(row).for_each(|(s, x)| *s += x * x);
        }
    }
    squares.iter().map(|s| s.sqrt()).collect()
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

    fn random(d: usize, p: usize, seed: u64) -> Block {
        Block::from_values(d, p, random_direction(seed, d * p)).unwrap()
    }

    fn loss(q: &Block) -> f64 {
        (gram(q, q) - Mat::<f64>::identity(q.p(), q.p())).norm_max()
    }

    #[test]
    fn complements_are_orthonormal_even_when_nearly_dependent() {
        for (d, p, a) in [(10, 3, 0), (100, 8, 5), (5000, 16, 40)] {
            let q = random_complement(&Block::zeros(d, 0), a, 1).unwrap();
            // Columns that agree with each other and with span(Q) to 1e-9.
            let mut w = random(d, p, 2);
            let (first, noise) = (w.column(0), random(d, p, 3));
            let near = product(&q, random(a, p, 4).as_faer());
            for j in 0..d {
                for c in 1..p {
                    let at = j * p + c;
                    w.values_mut()[at] = first[j] + near.values()[at] + 1e-9 * noise.values()[at];
                }
            }
            let x = orthonormal_complement(w, &q).unwrap();
            assert_eq!(x.p(), p, "{d} {p} {a}");
            assert!(loss(&x) < 1e-14 && gram(&q, &x).norm_max() < 1e-14, "{:e}", loss(&x));
        }
    }

    #[test]
    fn vanishing_directions_are_dropped() {
        let q = random_complement(&Block::zeros(50, 0), 10, 1).unwrap();
        let inside = product(&q, random(10, 4, 2).as_faer());
        assert_eq!(orthonormal_complement(inside.clone(), &q).unwrap().p(), 0);
        let fresh = random(50, 2, 3);
        let w = beside(&beside(&inside, &fresh), &fresh);
        assert_eq!(orthonormal_complement(w, &q).unwrap().p(), 2);
        assert_eq!(orthonormal_complement(Block::zeros(50, 3), &q).unwrap().p(), 0);
    }

    #[test]
    fn a_full_space_has_no_complement() {
        let q = random_complement(&Block::zeros(6, 0), 6, 1).unwrap();
        assert_eq!(q.p(), 6);
        assert_eq!(orthonormal_complement(random(6, 3, 9), &q).unwrap().p(), 0);
        assert_eq!(random_complement(&q, 2, 3).unwrap().p(), 0);
    }

    #[test]
    fn small_eigenproblems_descend_and_survive_scales() {
        for scale in [1e-300, 1.0, 1e300] {
            let h = Mat::from_fn(2, 2, |i, j| scale * [[2.0, 1.0], [1.0, 2.0]][i][j]);
            let (values, vectors) = small_eigen(&h).unwrap();
            assert!((values[0] / scale - 3.0).abs() < 1e-14 && (values[1] / scale - 1.0).abs() < 1e-14);
            assert!((vectors[(0, 0)].abs() - 0.5_f64.sqrt()).abs() < 1e-14);
        }
    }

    impl Block {
        fn as_faer(&self) -> MatRef<'_, f64> {
            view(self)
        }
    }
}
