//! A Krylov space of PCP, built in double precision with full orthogonalisation, and how far its recurrence is off.
//!
//! ```text
//! CQ = WH_w + QH + XRE_mᵀ + N                 V = [W, Q, X],  VᵀV = I + Δ
//! ```
//!
//! Nothing is taken on trust: Z − VH and VᵀV are computed, with the rounding of these computations added. V = V°U with V° orthonormal
//! (Gram–Schmidt keeps the span of W) and ‖U − I‖ ≤ √2‖Δ‖_F =: υ for ‖Δ‖_F ≤ ½ (Drmač, Omladič & Veselić 1994), so that for
//! M = P°CP°, P° = I − W°W°ᵀ,
//!
//! ```text
//! MQ° = Q°T + X°RE_mᵀ + N°,   ‖N°‖ ≤ ‖N‖ + ‖H − T‖_F + υ(‖[T; R]‖_F + ‖P°CW°‖ + ‖M‖),   ‖P°CW°‖² ≤ ‖C‖‖M‖
//! ```

use faer::Mat;

use super::recurrence::Recurrence;
use crate::linalg::{
    BlockQr, TallBasis, add_product, gram, orthonormal_complement, rounding_of_gram, small_eigen,
};
use crate::matrix::random_normal;
use crate::operator::{CovarianceOperator, Products, RoundingBound};
use crate::rounding::rounding_of_sum;
use crate::{Block, CancelToken, Error};

/// W, Q, X and the recurrence, with its errors.
pub(super) struct KrylovSpace {
    /// \[W, Q\].
    basis: TallBasis<f64>,
    /// Vectors of W.
    locked: usize,
    /// X, the next block.
    x: Block,
    pub(super) recurrence: Recurrence,
    errors: Errors,
}

/// Squares of Frobenius norms.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    /// What images are off by.
    images: f64,
    /// Z − VH.
    remainder: f64,
    /// H − T.
    asymmetry: f64,
    /// Δ.
    loss: f64,
}

/// p random vectors, orthonormal and orthogonal to W.
pub(super) struct RandomStart {
    pub(super) space: KrylovSpace,
    /// The sine of the angle between their span and that of exactly projected normal vectors, from above.
    pub(super) off: f64,
}

impl KrylovSpace {
    /// A space that begins with p vectors, uniform in the complement of `w`, which has room for them.
    pub(super) fn random(w: &Block, p: usize, seed: u64) -> Result<RandomStart, Error> {
        let d = w.d();
        let basis = TallBasis::of(w);
        let normal = Block::from_values(d, p, random_normal(seed, d * p))?;
        let x = orthonormal_complement(normal.clone(), &basis)?;
        if x.p() < p {
            return Err(Error::Numerical(format!("{p} random directions span only {} dimensions", x.p())));
        }
        let along = gram(&x, &normal);
        let length = normal.norm();
        let mut rest = normal;
        basis.project_out(&mut rest);
        add_product(&mut rest, &x, along.as_ref(), -1.0);
        let mut errors = Errors::default();
        errors.count_loss(&loss(w));
        errors.count_block(&basis, &x);
        let space = Self { locked: w.p(), basis, x, recurrence: Recurrence::default(), errors };
        let off = rest.norm() + space.rounding_of_products() * length;
        let (squares, _) = small_eigen(&(along.transpose() * &along))?;
        let least = squares.last().map_or(0.0, |x| x.max(0.0).sqrt());
        let least = (1.0 - space.loss()) * least - off;
        Ok(RandomStart { off: if least > 0.0 { off / least } else { f64::INFINITY }, space })
    }

    /// Vectors of Q and X.
    pub(super) fn next_width(&self) -> usize {
        self.x.p()
    }

    /// Whether W and Q span all there is.
    pub(super) fn is_everything(&self) -> bool {
        self.basis.len() == self.basis.dim()
    }

    /// Takes X into Q, and finds the next X, R and column of T: one pass.
    pub(super) fn expand(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let (d, p, first) = (self.basis.dim(), self.x.p(), self.basis.len());
        let mut z = Block::zeros(d, p);
        let image = operator.apply(&self.x, &mut z)?;
        let length = z.norm();
        if !length.is_finite() {
            self.errors.images = f64::INFINITY;
            return Ok(());
        }
        self.count_images(image, p);
        self.basis.append(&self.x);
        let BlockQr { h, r } =
            self.basis.orthogonalize(&z, length, 0, &mut self.x, &CancelToken::default())?;
        self.basis.add_product_to(&mut z, (-&h).as_ref());
        add_product(&mut z, &self.x, r.as_ref(), -1.0);
        self.errors.remainder += (z.norm() + self.rounding_of_products() * length).powi(2);
        self.errors.count_block(&self.basis, &self.x);

        let a = Mat::from_fn(p, p, |i, j| 0.5 * (h[(first + i, j)] + h[(first + j, i)]));
        let before = self.recurrence.last().map_or(0, Mat::ncols);
        // T has Aⱼ in the rows of this block, Bᵀ in those of the one before, and nothing in others.
        let expected = |i: usize, j: usize| match self.recurrence.last() {
            _ if i >= first => a[(i - first, j)],
            Some(b) if i + before >= first => b[(j, i + before - first)],
            _ => 0.0,
        };
        for i in self.locked..first + p {
            self.errors.asymmetry += (0..p).map(|j| (h[(i, j)] - expected(i, j)).powi(2)).sum::<f64>();
        }
        self.recurrence.push(a, r);
        Ok(())
    }

    /// ‖N°‖ from above, where M is at most `largest` and C at most `total`.
    pub(super) fn error(&self, largest: f64, total: f64) -> f64 {
        let Errors { images, remainder, asymmetry, .. } = self.errors;
        let counted = images.sqrt() + remainder.sqrt() + asymmetry.sqrt();
        counted + self.loss() * (self.recurrence.norm() + (total * largest).sqrt() + largest)
    }

    /// υ.
    fn loss(&self) -> f64 {
        let vectors = (self.basis.len() + self.x.p()) as f64;
        let delta = self.errors.loss.sqrt() + rounding_of_gram(self.basis.dim()) * vectors;
        if delta <= 0.5 { std::f64::consts::SQRT_2 * delta } else { f64::INFINITY }
    }

    fn count_images(&mut self, image: RoundingBound, p: usize) {
        self.errors.images += p as f64 * (image.of_image() * (1.0 + self.loss())).powi(2);
    }

    /// Z − VH as computed is off by this, relative to ‖Z‖ in the Frobenius norm: |V||H| has at most √(vectors) times that norm.
    fn rounding_of_products(&self) -> f64 {
        let vectors = self.basis.len() + self.x.p();
        2.0 * rounding_of_sum(vectors) * (1.0 + (vectors as f64).sqrt())
    }
}

impl Errors {
    fn count_loss(&mut self, delta: &Mat<f64>) {
        self.loss += delta.squared_norm_l2();
    }

    /// The loss that X adds to an otherwise known basis.
    fn count_block(&mut self, basis: &TallBasis<f64>, x: &Block) {
        let across = basis.gram(x);
        self.count_loss(&across);
        self.count_loss(&across); // and its transpose
        self.count_loss(&loss(x));
    }
}

/// XᵀX − I.
fn loss(x: &Block) -> Mat<f64> {
    gram(x, x) - Mat::<f64>::identity(x.p(), x.p())
}
