//! Orthonormal bases of what vectors add to a space.

use faer::{Mat, MatRef, Scale};

use super::{gram_of_blocks, product_of_block, project_out, small_eigen};
use crate::matrix::random_filling;
use crate::{Block, Error};

/// What span(W) adds to span(Q).
#[derive(Debug)]
pub(crate) struct Complement {
    /// X: orthonormal, orthogonal to Q.
    pub(crate) x: Block,
    /// QᵀW.
    pub(crate) along: Mat<f64>,
}

/// An orthonormal basis of what span(W) adds to span(Q), Q orthonormal. Directions of W that lie within span(Q), or within
/// the others, up to rounding are dropped.
///
/// Each round projects, and brings columns to length 1 and apart by the eigenvectors of their Gram matrix (SVQB,
/// Stathopoulos & Wu 2002). Directions that the Gram matrix sees too weakly to tell their length are only rotated, and
/// measured again in the next round: ones a billion times weaker than others survive. What a round leaves of an overlap is
/// rounding times the factor by which it lengthened what was left of a column; rounds go on while that is not small, and
/// project only where the overlap with Q is concerned. One or two nearly always do.
pub(crate) fn orthonormal_complement(mut w: Block, q: MatRef<'_, f64>) -> Result<Complement, Error> {
    const ROUNDS: usize = 8;
    /// Roundings that an overlap may amount to in the end.
    const HARMLESS: f64 = 16.0;
    /// Eigenvalues of the scaled Gram matrix below this, relative to the largest, are too inexact to divide by.
    const WEAK: f64 = 1e-6;
    // A remainder this much shorter than its vector is rounding.
    let vanished = 64.0 * f64::EPSILON;
    let room = w.d().saturating_sub(q.ncols());
    let mut lengths = column_norms(&w);
    let unit = extreme_unit(&w, &lengths);
    if let Some(unit) = unit {
        w.values_mut().iter_mut().for_each(|x| *x /= unit);
        lengths = column_norms(&w);
    }
    let mut along = None;
    let mut project = true;
    for round in 0..ROUNDS {
        if project {
            let overlap = project_out(&mut w, q);
            along.get_or_insert(overlap);
        }
        let g = gram_of_blocks(&w, &w);
        let norms: Vec<f64> = (0..w.p()).map(|c| g[(c, c)].max(0.0).sqrt()).collect();
        // Rotated columns descend in weight: where there is no room for all, the last ones go.
        let most = if round == 0 { w.p() } else { room };
        let kept: Vec<usize> = (0..w.p()).filter(|&c| norms[c] > vanished * lengths[c]).take(most).collect();
        let r = kept.len();
        let shortened = kept.iter().map(|&c| lengths[c] / norms[c]).fold(1.0, f64::max);
        let g = Mat::from_fn(r, r, |i, j| g[(kept[i], kept[j])] / norms[kept[i]] / norms[kept[j]]);
        let (values, vectors) = small_eigen(&g)?;
        let strong = |j: usize| values[j] > WEAK * values[0];
        let turn = Mat::from_fn(w.p(), r, |i, j| {
            let root = if strong(j) { values[j].sqrt() } else { 1.0 };
            kept.iter().position(|&c| c == i).map_or(0.0, |at| vectors[(at, j)] / (root * norms[i]))
        });
        w = product_of_block(&w, turn.as_ref());
        let lengthened = match values.last() {
            None => break,
            Some(least) if strong(r - 1) => (values[0] / least).sqrt(),
            Some(_) => f64::INFINITY,
        };
        project = shortened * lengthened > HARMLESS;
        if !project && lengthened * lengthened <= HARMLESS {
            break;
        }
        lengths = vec![1.0; r];
    }
    let along = along.unwrap_or_else(|| Mat::zeros(q.ncols(), 0)) * Scale(unit.unwrap_or(1.0));
    Ok(Complement { x: w, along })
}

/// The largest entry, where the squares of such entries would leave the range of f64.
fn extreme_unit(w: &Block, lengths: &[f64]) -> Option<f64> {
    if lengths.iter().any(|length| (1e-90..1e90).contains(length))
        && lengths.iter().all(|length| *length < 1e90)
    {
        return None;
    }
    let largest = w.values().iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    (largest > 0.0 && !(1e-100..1e100).contains(&largest)).then_some(largest)
}

/// `p` random orthonormal directions orthogonal to Q, fewer where the space has no more room.
pub(crate) fn random_complement(q: MatRef<'_, f64>, p: usize, seed: u64) -> Result<Block, Error> {
    let d = q.nrows();
    let p = p.min(d.saturating_sub(q.ncols()));
    let values = random_filling(seed, d * p);
    Ok(orthonormal_complement(Block::from_values(d, p, values)?, q)?.x)
}

/// Length of every column.
fn column_norms(w: &Block) -> Vec<f64> {
    let g = gram_of_blocks(w, w);
    (0..w.p()).map(|c| g[(c, c)].sqrt()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Tall, beside, gram, product, view};
    use crate::matrix::random_direction;

    fn random(d: usize, p: usize, seed: u64) -> Block {
        Block::from_values(d, p, random_direction(seed, d * p)).unwrap()
    }

    fn complement(w: Block, q: &Block) -> Block {
        orthonormal_complement(w, view(q)).unwrap().x
    }

    fn loss(q: &Block) -> f64 {
        (gram(view(q), view(q)) - Mat::<f64>::identity(q.p(), q.p())).norm_max()
    }

    #[test]
    fn complements_are_orthonormal_even_when_nearly_dependent() {
        for (d, p, a) in [(10, 3, 0), (100, 8, 5), (5000, 16, 40)] {
            let q = random_complement(Tall::empty(d).view(), a, 1).unwrap();
            // Columns that agree with each other and with span(Q) to 1e-9.
            let mut w = random(d, p, 2);
            let (first, noise) = (w.column(0), random(d, p, 3));
            let near = product(view(&q), view(&random(a, p, 4)));
            for j in 0..d {
                for c in 1..p {
                    let at = j * p + c;
                    w.values_mut()[at] = first[j] + near.values()[at] + 1e-9 * noise.values()[at];
                }
            }
            let x = complement(w, &q);
            assert_eq!(x.p(), p, "{d} {p} {a}");
            assert!(loss(&x) < 1e-14 && gram(view(&q), view(&x)).norm_max() < 1e-14, "{:e}", loss(&x));
        }
    }

    #[test]
    fn vanishing_directions_are_dropped() {
        let q = random_complement(Tall::empty(50).view(), 10, 1).unwrap();
        let inside = product(view(&q), view(&random(10, 4, 2)));
        assert_eq!(complement(inside.clone(), &q).p(), 0);
        let fresh = random(50, 2, 3);
        let w = beside(&beside(&inside, &fresh), &fresh);
        assert_eq!(complement(w, &q).p(), 2);
        assert_eq!(complement(Block::zeros(50, 3), &q).p(), 0);
    }

    #[test]
    fn a_full_space_has_no_complement() {
        let q = random_complement(Tall::empty(6).view(), 6, 1).unwrap();
        assert_eq!(q.p(), 6);
        assert_eq!(complement(random(6, 3, 9), &q).p(), 0);
        assert_eq!(random_complement(view(&q), 2, 3).unwrap().p(), 0);
    }

    #[test]
    fn vectors_of_any_length_have_a_complement() {
        let q = random_complement(Tall::empty(50).view(), 4, 1).unwrap();
        for scale in [1e-300, 1e-170, 1.0, 1e170, 1e300] {
            let mut w = random(50, 3, 2);
            w.scale(scale);
            let found = orthonormal_complement(w.clone(), view(&q)).unwrap();
            assert_eq!(found.x.p(), 3, "{scale:e}");
            assert!(loss(&found.x) < 1e-14 && gram(view(&q), view(&found.x)).norm_max() < 1e-14);
            // W = Q·QᵀW + X·XᵀW.
            let mut left = w.clone();
            left.scale(1.0 / scale);
            let along = found.along * faer::Scale(1.0 / scale);
            let mut rest = left.clone();
            crate::linalg::add_product(&mut rest, view(&q), along.as_ref(), -1.0);
            let across = gram(view(&found.x), view(&left));
            crate::linalg::add_product(&mut rest, view(&found.x), across.as_ref(), -1.0);
            assert!(rest.norm() < 1e-14 * left.norm(), "{scale:e}: {:e}", rest.norm());
        }
    }
}
