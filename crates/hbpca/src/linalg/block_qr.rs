//! Block QR: what a set of vectors adds to a basis.

use std::ops::AddAssign;

use faer::Mat;

use super::orthonormal::{GramPrecision, ROUNDS, Svqb, norms};
use super::tall_basis::{Products, TallBasis};
use crate::kernels::Arithmetic;
use crate::{Block, CancelToken, Error};

/// Z = QH + XR, [Q, X] orthonormal.
#[derive(Debug)]
pub(crate) struct BlockQr {
    pub(crate) h: Mat<f64>,
    pub(crate) r: Mat<f64>,
}

/// The ratio of squared lengths up to which one transformation makes directions orthogonal.
const ORTHOGONAL: f64 = 16.0;
/// Overlaps that would show in the Gram matrix.
const VISIBLE: f64 = 1e-4;

impl<A: Arithmetic> TallBasis<A> {
    /// X ← an orthonormal basis of what span(Z) adds to span(Q), Q orthonormal. Directions of Z that lie within span(Q), or
    /// within the others, up to rounding are dropped. `unit` is about as large as Z, and `outside` the number of directions that neither Q nor Z has a part
    /// in: X has no more columns than there is room beside them.
    ///
    /// Z is projected; its columns are brought to length 1 and made orthogonal by [`Svqb`], W = X·R with R known from these transforms. Overlaps
    /// with Q are measured, and taken out where they are more than rounding: (W − QH)T = WT − Q(HT), in the same sweep. `cancel` is
    /// asked between two sweeps.
    pub(crate) fn orthogonalize(
        &mut self,
        z: &Block,
        unit: f64,
        outside: usize,
        x: &mut Block,
        cancel: &CancelToken,
    ) -> Result<BlockQr, Error> {
        let unit = if unit.is_normal() { 2.0_f64.powi(unit.log2() as i32) } else { 1.0 };
        let (a, p) = (self.len(), z.p());
        let (room, precision) = (z.d().saturating_sub(a + outside), precision_of::<A>());
        let Products { overlap: mut h, gram } = self.begin(z, unit);
        let mut lengths = norms(&gram);
        cancel.go_on()?;
        let mut seen = self.project(p, &h);
        if seen.largest_overlap() > VISIBLE {
            h.add_assign(&seen.overlap);
            seen = self.project(p, &seen.overlap);
        }
        let mut r = Mat::<f64>::identity(p, p);
        let mut taken_out_before = f64::INFINITY;
        for round in 0..ROUNDS {
            cancel.go_on()?;
            // Rotated columns descend in weight: where there is no room for all, the last ones go.
            let most = if round == 0 && room > 0 { p } else { room };
            let svqb = Svqb::new(&seen.gram, &lengths, most, precision)?;
            // What does not shrink when it is taken out is the rounding of W itself.
            let overlap = seen.largest_overlap();
            let overlaps =
                overlap > precision.harmless * precision.roundoff && overlap <= 0.5 * taken_out_before;
            let fits = svqb.transform.ncols() <= room;
            let orthogonal = svqb.stretch.powi(2) <= ORTHOGONAL && !overlaps && fits;
            let last = orthogonal || svqb.transform.ncols() == 0 || round + 1 == ROUNDS;
            if overlaps && !last {
                h.add_assign(&seen.overlap * &r);
            }
            r = &svqb.inverse * &r;
            if last {
                self.finish(&svqb.transform, x);
                break;
            }
            // What overlaps are left grow as the vectors do.
            let measure = overlaps || svqb.stretch > precision.harmless;
            taken_out_before = if overlaps && svqb.stretch <= 2.0 { overlap } else { f64::INFINITY };
            let taken_out = overlaps.then(|| &seen.overlap * &svqb.transform);
            seen = self.transform(&svqb.transform, taken_out.as_ref(), measure);
            lengths = vec![1.0; svqb.transform.ncols()];
        }
        Ok(BlockQr { h: h * faer::Scale(unit), r: r * faer::Scale(unit) })
    }
}

impl Products {
    /// The largest overlap with a vector of Q, relative to the length of the column.
    fn largest_overlap(&self) -> f64 {
        let (norms, overlap) = (norms(&self.gram), &self.overlap);
        let relative = |c: usize| if norms[c] > 0.0 { overlap.col(c).norm_max() / norms[c] } else { 0.0 };
        if overlap.nrows() == 0 { 0.0 } else { (0..overlap.ncols()).map(relative).fold(0.0, f64::max) }
    }
}

/// What a Gram matrix in numbers of type `A` can tell.
fn precision_of<A: Arithmetic>() -> GramPrecision {
    if A::BYTES == 4 { GramPrecision::SINGLE } else { GramPrecision::DOUBLE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{beside, gram, product, random_complement, view};
    use crate::matrix::random_direction;

    fn random(d: usize, p: usize, seed: u64) -> Block {
        Block::from_values(d, p, random_direction(seed, d * p)).unwrap()
    }

    /// ‖AᵀB − I‖ in its largest entry, where there is an I, else ‖AᵀB‖.
    fn loss(a: &Block, b: &Block, same: bool) -> f64 {
        let gram = gram(a, b);
        let one: Mat<f64> = if same { Mat::identity(a.p(), a.p()) } else { Mat::zeros(a.p(), b.p()) };
        if a.p() * b.p() == 0 { 0.0 } else { (gram - one).norm_max() }
    }

    /// Z = Q·h + X·r, and [Q, X] is orthonormal, up to the rounding of the arithmetic.
    fn check<A: Arithmetic>(q: &Block, z: &Block, unit: f64) -> Block {
        let (d, roundoff) = (q.d(), precision_of::<A>().roundoff);
        let mut basis = TallBasis::<A>::with_room(d, q.p());
        basis.append(q);
        let kept = basis.product(Mat::<f64>::identity(q.p(), q.p()).as_ref());
        let mut x = Block::zeros(d, 0);
        let BlockQr { h, r } = basis.orthogonalize(z, unit, 0, &mut x, &CancelToken::default()).unwrap();
        // Dots of d products in sixteen partial sums, and what they may leave.
        let rounding = roundoff * (16.0 + (d as f64 / 16.0).sqrt());
        assert!(loss(&x, &x, true) <= 4.0 * rounding, "{d}: {:e}", loss(&x, &x, true));
        assert!(loss(&kept, &x, false) <= 4.0 * rounding, "{d}: {:e}", loss(&kept, &x, false));
        let (mut rest, length) = (z.clone(), z.norm());
        rest.values_mut()
            .iter_mut()
            .zip(product(&kept, h.as_ref()).values())
            .zip(product(&x, r.as_ref()).values())
            .for_each(|((z, h), r)| *z -= h + r);
        assert!(rest.norm() <= 8.0 * rounding * length, "{d}: {:e}", rest.norm() / length);
        x
    }

    fn check_both(q: &Block, z: &Block, unit: f64, width: usize) {
        assert_eq!(check::<f64>(q, z, unit).p(), width);
        assert_eq!(check::<f32>(q, z, unit).p(), width);
    }

    #[test]
    fn what_leaves_a_space_is_orthonormal_to_it() {
        for (d, p, a) in [(16, 3, 4), (100, 8, 5), (4100, 4, 11), (6001, 9, 20)] {
            let q = random_complement(&TallBasis::with_room(d, 0), a, 1).unwrap();
            for scale in [1e-20, 1.0, 1e20] {
                let mut z = random(d, p, 2);
                z.scale(scale);
                check_both(&q, &z, scale, p);
            }
            // Columns that agree with each other, and mostly lie in span(Q).
            let mut z = random(d, p, 3);
            let (first, near) = (z.column(0), product(&q, view(&random(a, p, 4))));
            for (at, x) in z.values_mut().iter_mut().enumerate() {
                *x = first[at / p] + 30.0 * near.values()[at] + 1e-2 * *x;
            }
            check_both(&q, &z, z.norm(), p);
        }
    }

    #[test]
    fn what_does_not_leave_is_dropped() {
        let q = random_complement(&TallBasis::with_room(500, 0), 10, 1).unwrap();
        let inside = product(&q, view(&random(10, 4, 2)));
        check_both(&q, &inside, 1.0, 0);
        let fresh = random(500, 2, 3);
        check_both(&q, &beside(&beside(&inside, &fresh), &fresh), 1.0, 2);
        check_both(&q, &Block::zeros(500, 3), 1.0, 0);
        // A space that is full but for two directions.
        let q = random_complement(&TallBasis::with_room(32, 0), 30, 1).unwrap();
        check_both(&q, &random(32, 5, 9), 1.0, 2);
    }
}
