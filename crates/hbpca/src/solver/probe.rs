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
use crate::linalg::{add_product_of_block, product_of_block};
use crate::matrix::random_normal;

/// r.
pub(super) const PROBES: usize = 16;
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
        Self { combined: product_of_block(vectors, g.as_ref()), g }
    }

    /// A bound on ‖(Ĉ − C)V‖ from ĈV and C(VG), the columns of which err by at most `rounding` relative to their vectors.
    pub(super) fn bound(&self, images: &Block, mut combined_image: Block, rounding: f64) -> f64 {
        add_product_of_block(&mut combined_image, images, self.g.as_ref(), -1.0);
        let off =
            |i: usize| crate::block::norm(&combined_image.column(i)) + rounding * self.g.col(i).norm_l2();
        // f64::max would pass over NaN.
        let largest = (0..PROBES).map(off).fold(0.0, |most, x| if x <= most { most } else { x });
        ALPHA * std::f64::consts::FRAC_2_PI.sqrt() * largest
    }
}
