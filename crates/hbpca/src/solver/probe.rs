//! How far a matrix Ĉ is from C on the space of some vectors V, from a few products with C.
//!
//! For a fixed matrix R and independent normal vectors gᵢ
//!
//! ```text
//! ‖R‖ ≤ α√(2/π) · maxᵢ ‖Rgᵢ‖      but with probability at most α⁻ʳ       (Halko, Martinsson & Tropp 2011, lemma 4.1)
//! ```
//!
//! Here R = (Ĉ − C)V, which no random number has a part in, r = 16 and α = √10: one chance in 10⁸.

use faer::Mat;

use crate::Block;
use crate::block::largest;
use crate::linalg::{add_product, product};
use crate::matrix::random_normal;

/// r; as many vectors themselves cost no more.
pub(crate) const PROBES: usize = 16;
/// α, with α⁻ʳ = 10⁻⁸.
const ALPHA: f64 = 3.162_277_660_168_379_5;

/// Random combinations VG of vectors.
pub(super) struct Probes {
    g: Mat<f64>,
    /// VG, to be multiplied by C.
    pub(super) combined: Block,
}

impl Probes {
    pub(super) fn of(vectors: &Block, seed: u64) -> Self {
        let k = vectors.p();
        let values = random_normal(seed, k * PROBES);
        let g = Mat::from_fn(k, PROBES, |i, j| values[i * PROBES + j]);
        Self { combined: product(vectors, g.as_ref()), g }
    }

    /// A bound on ‖(Ĉ − C)V‖ from ĈV and C(VG), the columns of which err by at most `rounding` relative to their vectors.
    pub(super) fn bound(&self, images: &Block, mut combined_image: Block, rounding: f64) -> f64 {
        add_product(&mut combined_image, images, self.g.as_ref(), -1.0);
        let off =
            |i: usize| crate::block::norm(&combined_image.column(i)) + rounding * self.g.col(i).norm_l2();
        ALPHA * std::f64::consts::FRAC_2_PI.sqrt() * largest((0..PROBES).map(off))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{TallBasis, gram, random_complement, small_eigen};

    #[test]
    fn the_bound_holds_and_is_not_far_off() {
        let (d, k) = (60, 20);
        let v = random_complement(&TallBasis::with_room(d, 0), k, 1).unwrap();
        // C = I and Ĉ = I + E, E from one of rank one to one without structure.
        for (seed, rank) in [(1, 1), (2, 3), (3, 60)] {
            let factor = Block::from_values(d, rank, random_normal(100 + seed, d * rank)).unwrap();
            let along = gram(&factor, &v);
            let r = product(&factor, along.as_ref()); // EV = FFᵀV
            let mut images = v.clone();
            images.values_mut().iter_mut().zip(r.values()).for_each(|(image, r)| *image += r);
            let spectral = small_eigen(&gram(&r, &r)).unwrap().0[0].sqrt();
            for probe_seed in 0..50 {
                let probes = Probes::of(&v, probe_seed);
                let exact = probes.combined.clone();
                let bound = probes.bound(&images, exact, 0.0);
                assert!(bound >= spectral, "{bound} {spectral}");
                // ‖Rg‖ is about ‖R‖_F, at most √rank‖R‖; the largest of sixteen hardly exceeds four times that.
                assert!(bound <= 4.0 * 2.6 * (rank.min(k) as f64).sqrt() * spectral, "{bound} {spectral}");
            }
        }
    }

    #[test]
    fn rounding_of_the_images_is_part_of_the_bound_and_nan_reaches_it() {
        let v = random_complement(&TallBasis::with_room(40, 0), 18, 1).unwrap();
        let probes = Probes::of(&v, 0);
        assert!(probes.bound(&v, probes.combined.clone(), 1.0) >= ALPHA);
        let mut unknown = probes.combined.clone();
        unknown.values_mut()[7] = f64::NAN;
        assert!(probes.bound(&v, unknown, 0.0).is_nan());
    }
}
