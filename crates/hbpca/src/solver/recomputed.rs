//! Ritz vectors whose images were computed anew, and what their residuals point to.
//!
//! ```text
//! directions   X ← orth(CWₒ − WₒΘₒ), orthogonal to Q                 the pairs that miss the tolerance
//! widened      Q ← the Ritz vectors within [Q, X], from [CQ, CX]      all images explicit
//! ```

use faer::Mat;
use rayon::prelude::*;

use crate::linalg::{
    add_product, beside, gram, orthonormal_complement_of, product, residual_norms, rotate_block, small_eigen,
};
use crate::rounding::{RoundingBound, rounding_of_sum};
use crate::{Archive, Block, Error};

/// Coordinates that a thread takes at a time.
const CHUNK: usize = 2048;

/// Ritz vectors with images that were computed anew: those that are wanted, and the next ones.
#[derive(Clone, Debug)]
pub(super) struct Recomputed {
    pub(super) wanted: [Block; 2],
    pub(super) others: [Block; 2],
    /// How far each wanted image may be off: Σ|s|·ε for coefficients s, which are nearly 0 and 1 where V were Ritz vectors already.
    pub(super) error: f64,
}

/// Ritz pairs within a wider space.
pub(super) struct Widened {
    pub(super) pairs: Recomputed,
    pub(super) theta: Vec<f64>,
    pub(super) residuals: Vec<f64>,
}

impl Recomputed {
    pub(super) fn len(&self) -> usize {
        self.wanted[0].p() + self.others[0].p()
    }

    /// All of them.
    pub(super) fn together(self) -> [Block; 2] {
        let Self { wanted: [w, image], others: [other_w, other_image], .. } = self;
        [beside(&w, &other_w), beside(&image, &other_image)]
    }

    /// Where the residuals of the `open` pairs point: orthonormal, and orthogonal to all vectors here and to those `outside`.
    pub(super) fn directions(&self, theta: &[f64], open: &[usize], outside: &Block) -> Result<Block, Error> {
        let [w, image] = &self.wanted;
        let (d, p) = (w.d(), w.p().max(1));
        let mut residuals = Block::zeros(d, open.len());
        let rows = w.values().par_chunks_exact(p).zip(image.values().par_chunks_exact(p));
        let each = residuals.values_mut().par_chunks_exact_mut(open.len().max(1)).zip(rows);
        each.with_min_len(CHUNK).for_each(|(r, (w, z))| {
            r.iter_mut().zip(open).for_each(|(r, &i)| *r = z[i] - theta[i] * w[i]);
        });
        orthonormal_complement_of(residuals, &[w, &self.others[0], outside])
    }

    /// The `most` best Ritz pairs within [Q, X], of which the first k are wanted; Z = CX. The images of the others here may be off by `of_others`.
    pub(super) fn widened(
        self,
        theta: &[f64],
        [x, z]: [Block; 2],
        [k, most]: [usize; 2],
        rounding: RoundingBound,
        of_others: f64,
    ) -> Result<Widened, Error> {
        let (wanted, a, p) = (self.wanted[0].p(), self.len(), x.p());
        let error = |i: usize| match i {
            i if i < wanted => self.error,
            i if i < a => of_others,
            _ => rounding.of_image(),
        };
        let errors: Vec<f64> = (0..a + p).map(error).collect();
        let Self { wanted: [mut w, mut image], others: [other_w, other_image], .. } = self;
        // QᵀCQ = Θ: they are Ritz vectors.
        let couplings = [gram(&x, &image), gram(&x, &other_image)];
        let coupling = |i: usize, j: usize| match j.checked_sub(wanted) {
            None => couplings[0][(i, j)],
            Some(j) => couplings[1][(i, j)],
        };
        let corner = gram(&x, &z);
        let h = Mat::from_fn(a + p, a + p, |i, j| match (i < a, j < a) {
            (true, true) => f64::from(u8::from(i == j)) * theta[i],
            (true, false) => coupling(j - a, i),
            (false, true) => coupling(i - a, j),
            (false, false) => 0.5 * (corner[(i - a, j - a)] + corner[(j - a, i - a)]),
        });
        let (mut theta, s) = small_eigen(&h)?;
        let count = most.clamp(k, k.max(a + p)).min(a + p);
        theta.truncate(count);
        // Those that are wanted are rotated where they are: memory that is new costs more than the products.
        let rotate = |w: &mut Block, others: &Block, x: &Block| {
            let part = |from: usize, rows: usize, column: usize, columns: usize| {
                s.as_ref().submatrix(from, column, rows, columns)
            };
            let mut new_others = product(w, part(0, wanted, k, count - k));
            add_product(&mut new_others, others, part(wanted, a - wanted, k, count - k), 1.0);
            add_product(&mut new_others, x, part(a, p, k, count - k), 1.0);
            rotate_block(w, part(0, wanted, 0, k));
            add_product(w, others, part(wanted, a - wanted, 0, k), 1.0);
            add_product(w, x, part(a, p, 0, k), 1.0);
            new_others
        };
        let others = [rotate(&mut w, &other_w, &x), rotate(&mut image, &other_image, &z)];
        let mut residuals = residual_norms(&w, &image, &theta[..k]);
        residuals.extend(residual_norms(&others[0], &others[1], &theta[k..]));
        let combining = rounding_of_sum(a + p) * theta.first().copied().unwrap_or(0.0);
        let of_column = |c: usize| (0..a + p).map(|i| s[(i, c)].abs() * (errors[i] + combining)).sum::<f64>();
        let error = (0..k.min(count)).map(of_column).fold(0.0, f64::max);
        super::sort_descending(&mut w, &mut image);
        Ok(Widened { pairs: Self { wanted: [w, image], others, error }, theta, residuals })
    }

    pub(super) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        for (name, [w, image]) in [("wanted", &mut self.wanted), ("others", &mut self.others)] {
            archive.part(name, |archive| {
                archive.columns("vectors", w)?;
                archive.columns("images", image)?;
                archive.check("images", image.p() == w.p(), "has not one column for each vector")
            })?;
        }
        // Runs of earlier versions knew one bound for all.
        if archive.has("error") { archive.number("error", &mut self.error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{TallBasis, orthonormal_complement, random_complement, rotate_block};

    const D: usize = 40;
    const K: usize = 3;

    /// C = diag(1, ½, ⅓, …).
    fn image(v: &Block) -> Block {
        let mut z = v.clone();
        let p = v.p();
        for (j, row) in z.values_mut().chunks_exact_mut(p).enumerate() {
            row.iter_mut().for_each(|x| *x /= (j + 1) as f64);
        }
        z
    }

    /// Ritz pairs within six directions, which lean towards the leading ones.
    fn ritz_pairs() -> (Recomputed, Vec<f64>) {
        let none = TallBasis::with_room(D, 0);
        let random = random_complement(&none, 6, 7).unwrap();
        let mut v = orthonormal_complement(image(&image(&random)), &none).unwrap();
        let (theta, s) = small_eigen(&gram(&v, &image(&v))).unwrap();
        rotate_block(&mut v, s.as_ref());
        let mut z = image(&v);
        let others = [v.split_off(K), z.split_off(K)];
        (Recomputed { wanted: [v, z], others, error: f64::EPSILON }, theta)
    }

    #[test]
    fn directions_are_orthogonal_to_all_that_is_there() {
        let (pairs, theta) = ritz_pairs();
        let [q, _] = pairs.clone().together();
        let outside = random_complement(&TallBasis::of(&q), 2, 3).unwrap();
        let x = pairs.directions(&theta, &[0, 2], &outside).unwrap();
        assert_eq!(x.p(), 2);
        let rounding = 16.0 * D as f64 * f64::EPSILON;
        assert!(gram(&x, &q).norm_max() <= rounding);
        assert!(gram(&x, &outside).norm_max() <= rounding);
        assert!((gram(&x, &x) - Mat::<f64>::identity(2, 2)).norm_max() <= rounding);
    }

    #[test]
    fn widened_pairs_are_the_ritz_pairs_of_the_wider_space() {
        let (pairs, theta) = ritz_pairs();
        let before = residual_norms(&pairs.wanted[0], &pairs.wanted[1], &theta);
        let x = pairs.directions(&theta, &[0, 1, 2], &Block::zeros(D, 0)).unwrap();
        let z = image(&x);
        let [q, _] = pairs.clone().together();
        let all = beside(&q, &x);
        let (truth, _) = small_eigen(&gram(&all, &image(&all))).unwrap();
        let rounding = RoundingBound::new(f64::EPSILON);
        let wider = pairs.widened(&theta, [x, z], [K, 7], rounding, f64::EPSILON).unwrap();
        let [w, images] = &wider.pairs.wanted;
        assert_eq!((w.p(), wider.pairs.len(), wider.theta.len()), (K, 7, 7));
        let room = 16.0 * D as f64 * f64::EPSILON;
        for (theta, truth) in wider.theta.iter().zip(&truth) {
            assert!((theta - truth).abs() <= room, "{theta} is not {truth}");
        }
        let exact = image(w);
        for c in 0..K {
            assert!(wider.residuals[c] < 0.5 * before[c], "{} after {}", wider.residuals[c], before[c]);
            let off = (0..D).map(|j| (images.get(j, c) - exact.get(j, c)).powi(2)).sum::<f64>().sqrt();
            assert!(off <= wider.pairs.error, "{off:e} > {:e}", wider.pairs.error);
        }
    }
}
