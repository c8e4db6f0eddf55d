//! Orthonormal bases of what vectors add to a space.

use faer::Mat;

use super::{TallBasis, add_product, gram, product, rotate_block, small_eigen};
use crate::matrix::random_filling;
use crate::{Block, Error};

/// Rounds of orthonormalisation, at most.
pub(super) const ROUNDS: usize = 8;

/// An orthonormal basis of what span(W) adds to span(Q), Q orthonormal. Directions of W that lie within span(Q), or within
/// the others, up to rounding are dropped.
///
/// Each round projects, and brings columns to length 1 and makes them orthogonal by [`Svqb`]: directions a billion times weaker than others survive.
/// What a round leaves of an overlap is rounding times the factor by which it stretch what was left of a column; rounds go
/// on while that is not small, and project only where the overlap with Q is concerned. One or two nearly always do.
pub(crate) fn orthonormal_complement(w: Block, q: &TallBasis<f64>) -> Result<Block, Error> {
    orthonormalize_projected(w, q.len(), |w| drop(q.project_out(w)))
}

/// The same where Q, of `q_len` vectors, lies in several blocks.
pub(crate) fn orthonormal_complement_of(w: Block, q: &[&Block]) -> Result<Block, Error> {
    let q_len = q.iter().map(|q| q.p()).sum();
    orthonormalize_projected(w, q_len, |w| {
        for q in q {
            add_product(w, q, gram(q, w).as_ref(), -1.0);
        }
    })
}

/// The same for any way to project W on the complement of `q_len` vectors.
fn orthonormalize_projected(
    mut w: Block,
    q_len: usize,
    project_out: impl Fn(&mut Block),
) -> Result<Block, Error> {
    let room = w.d().saturating_sub(q_len);
    let mut lengths = column_norms(&w);
    if let Some(unit) = extreme_unit(&w, &lengths) {
        w.values_mut().iter_mut().for_each(|x| *x /= unit);
        lengths = column_norms(&w);
    }
    let mut project = true;
    for round in 0..ROUNDS {
        if project {
            project_out(&mut w);
        }
        // Rotated columns descend in weight: where there is no room for all, the last ones go.
        let most = if round == 0 { w.p() } else { room };
        let svqb = Svqb::new(&gram(&w, &w), &lengths, most, GramPrecision::DOUBLE)?;
        let r = svqb.transform.ncols();
        if r == w.p() {
            rotate_block(&mut w, svqb.transform.as_ref());
        } else {
            w = product(&w, svqb.transform.as_ref());
        }
        project = svqb.shrink * svqb.stretch > GramPrecision::DOUBLE.harmless;
        if r == 0 || (!project && svqb.stretch.powi(2) <= GramPrecision::DOUBLE.harmless) {
            break;
        }
        lengths = vec![1.0; r];
    }
    Ok(w)
}

/// What can be told of vectors from their Gram matrix, in single or double precision.
#[derive(Clone, Copy, Debug)]
pub(super) struct GramPrecision {
    /// Half the distance from 1 to the next number.
    pub(super) roundoff: f64,
    /// Eigenvalues of the scaled Gram matrix below this, relative to the largest, are too inexact to divide by.
    weak: f64,
    /// Roundings that an overlap may amount to in the end.
    pub(super) harmless: f64,
}

impl GramPrecision {
    pub(super) const SINGLE: Self = Self { roundoff: f32::EPSILON as f64 / 2.0, weak: 1e-3, harmless: 1.0 };
    pub(super) const DOUBLE: Self = Self { roundoff: f64::EPSILON / 2.0, weak: 1e-6, harmless: 16.0 };
}

/// W = (W·`transform`)·`inverse`, where the columns of W·`transform` have length 1 and are orthogonal as far as the Gram matrix can tell (SVQB,
/// Stathopoulos & Wu 2002). Directions that it sees too weakly to tell their length are only rotated: the next Gram matrix
/// sees them better.
pub(super) struct Svqb {
    pub(super) transform: Mat<f64>,
    pub(super) inverse: Mat<f64>,
    /// The most by which a column is shorter than it was.
    shrink: f64,
    /// The most by which a direction was stretch against others.
    pub(super) stretch: f64,
}

impl Svqb {
    /// From WᵀW. Columns that are rounding, compared with their `lengths` before, are dropped, and those beyond `most`.
    pub(super) fn new(
        gram: &Mat<f64>,
        lengths: &[f64],
        most: usize,
        precision: GramPrecision,
    ) -> Result<Self, Error> {
        let p = gram.ncols();
        let norms = norms(gram);
        // A remainder this much shorter than its vector is rounding.
        let vanished = 128.0 * precision.roundoff;
        let nonzero: Vec<usize> = (0..p).filter(|&c| norms[c] > vanished * lengths[c]).take(most).collect();
        let r = nonzero.len();
        let scaled =
            Mat::from_fn(r, r, |i, j| gram[(nonzero[i], nonzero[j])] / norms[nonzero[i]] / norms[nonzero[j]]);
        let (values, vectors) = small_eigen(&scaled)?;
        let strong = |j: usize| values[j] > precision.weak * values[0];
        let root = |j: usize| if strong(j) { values[j].sqrt() } else { 1.0 };
        let place = |c: usize| nonzero.iter().position(|&nonzero| nonzero == c);
        let transform =
            Mat::from_fn(p, r, |c, j| place(c).map_or(0.0, |at| vectors[(at, j)] / (root(j) * norms[c])));
        let inverse =
            Mat::from_fn(r, p, |j, c| place(c).map_or(0.0, |at| vectors[(at, j)] * root(j) * norms[c]));
        let stretch = match values.last() {
            None => 1.0,
            Some(least) if strong(r - 1) => (values[0] / least).sqrt(),
            Some(_) => f64::INFINITY,
        };
        let shrink = nonzero.iter().map(|&c| lengths[c] / norms[c]).fold(1.0, f64::max);
        Ok(Self { transform, inverse, shrink, stretch })
    }
}

/// T with orthonormal WT, from WᵀW, and the least eigenvalue of WᵀW for columns of length 1. Directions that rounding could not tell
/// from the others are lengthened as far as is safe, not dropped.
pub(crate) fn svqb_transform(gram: &Mat<f64>) -> Result<(Mat<f64>, f64), Error> {
    let p = gram.ncols();
    let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { 0.0 };
    let scaling = Mat::from_fn(p, p, |i, j| if i == j { inverse(gram[(i, i)].sqrt()) } else { 0.0 });
    let (values, vectors) = small_eigen(&(&scaling * gram * &scaling))?;
    let floor = f64::EPSILON * values.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let least = values.last().copied().unwrap_or(1.0).max(floor);
    let transform = scaling * Mat::from_fn(p, p, |i, j| vectors[(i, j)] / values[j].max(floor).sqrt());
    Ok((transform, least))
}

/// Lengths of the columns of W, from WᵀW.
pub(super) fn norms(gram: &Mat<f64>) -> Vec<f64> {
    (0..gram.ncols()).map(|c| gram[(c, c)].max(0.0).sqrt()).collect()
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
pub(crate) fn random_complement(q: &TallBasis<f64>, p: usize, seed: u64) -> Result<Block, Error> {
    let d = q.dim();
    let p = p.min(d.saturating_sub(q.len()));
    let values = random_filling(seed, d * p);
    orthonormal_complement(Block::from_values(d, p, values)?, q)
}

/// Length of every column.
fn column_norms(w: &Block) -> Vec<f64> {
    let g = gram(w, w);
    (0..w.p()).map(|c| g[(c, c)].sqrt()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{add_product, beside, view};
    use crate::matrix::random_direction;

    fn random(d: usize, p: usize, seed: u64) -> Block {
        Block::from_values(d, p, random_direction(seed, d * p)).unwrap()
    }

    fn complement(w: Block, q: &Block) -> Block {
        orthonormal_complement(w, &TallBasis::of(q)).unwrap()
    }

    fn loss(q: &Block) -> f64 {
        (gram(q, q) - Mat::<f64>::identity(q.p(), q.p())).norm_max()
    }

    #[test]
    fn complements_are_orthonormal_even_when_nearly_dependent() {
        for (d, p, a) in [(10, 3, 0), (100, 8, 5), (5000, 16, 40)] {
            let q = random_complement(&TallBasis::with_room(d, 0), a, 1).unwrap();
            // Columns that agree with each other and with span(Q) to 1e-9.
            let mut w = random(d, p, 2);
            let (first, noise) = (w.column(0), random(d, p, 3));
            let near = product(&q, view(&random(a, p, 4)));
            for j in 0..d {
                for c in 1..p {
                    let at = j * p + c;
                    w.values_mut()[at] = first[j] + near.values()[at] + 1e-9 * noise.values()[at];
                }
            }
            let x = complement(w, &q);
            assert_eq!(x.p(), p, "{d} {p} {a}");
            assert!(loss(&x) < 1e-14 && gram(&q, &x).norm_max() < 1e-14, "{:e}", loss(&x));
        }
    }

    #[test]
    fn vanishing_directions_are_dropped() {
        let q = random_complement(&TallBasis::with_room(50, 0), 10, 1).unwrap();
        let inside = product(&q, view(&random(10, 4, 2)));
        assert_eq!(complement(inside.clone(), &q).p(), 0);
        let fresh = random(50, 2, 3);
        let w = beside(&beside(&inside, &fresh), &fresh);
        assert_eq!(complement(w, &q).p(), 2);
        assert_eq!(complement(Block::zeros(50, 3), &q).p(), 0);
    }

    #[test]
    fn a_full_space_has_no_complement() {
        let q = random_complement(&TallBasis::with_room(6, 0), 6, 1).unwrap();
        assert_eq!(q.p(), 6);
        assert_eq!(complement(random(6, 3, 9), &q).p(), 0);
        assert_eq!(random_complement(&TallBasis::of(&q), 2, 3).unwrap().p(), 0);
    }

    #[test]
    fn vectors_of_any_length_have_a_complement() {
        let q = random_complement(&TallBasis::with_room(50, 0), 4, 1).unwrap();
        for scale in [1e-300, 1e-170, 1.0, 1e170, 1e300] {
            let mut w = random(50, 3, 2);
            w.scale(scale);
            let x = orthonormal_complement(w.clone(), &TallBasis::of(&q)).unwrap();
            assert_eq!(x.p(), 3, "{scale:e}");
            assert!(loss(&x) < 1e-14 && gram(&q, &x).norm_max() < 1e-14);
            // W = Q·QᵀW + X·XᵀW.
            let mut left = w.clone();
            left.scale(1.0 / scale);
            let inside = gram(&q, &left);
            let mut rest = left.clone();
            add_product(&mut rest, &q, inside.as_ref(), -1.0);
            let outside = gram(&x, &left);
            add_product(&mut rest, &x, outside.as_ref(), -1.0);
            assert!(rest.norm() < 1e-14 * left.norm(), "{scale:e}: {:e}", rest.norm());
        }
    }
}
