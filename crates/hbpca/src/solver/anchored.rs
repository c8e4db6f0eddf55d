//! Anchored block VR HB Power: the paper's method with a memory.
//!
//! ```text
//!    state: anchors Q (d×a, orthonormal) with exact images CQ; block W (d×p), p ≥ k
//!    start: W ← leading directions of a small sample of rows
//!    repeat
//! 1      X ← orth(W − QQᵀW);  Z ← CX                        one full pass, on directions orthogonal to the anchors
//! 2      Rayleigh–Ritz on [Q, X] with images [CQ, Z]        no pass; the best a pairs become Q, the best p become W
//! 3      certificate from CQ − QΘ                           no pass
//! 4      W₁ ← (1 − η)W + ηCW
//! 5      for t = 1 … m − 1
//! 6          W_t = Q(QᵀW_t) + R_t
//! 7          G_t ← CQ(QᵀW_t) + C_S R_t                      only the remainder is sampled
//! 8          W_{t+1} ← 2((1 − η)W_t + ηG_t) − βW_{t−1},     β = (1 − η + ηθ_{p+1})²
//! 9          orthonormalise W_{t+1}, the same transform on W_t
//! ```
//!
//! Source: algorithm 1 of Kim & Klabjan with many exact anchors instead of one, a block instead of a vector, and
//! Rayleigh–Ritz instead of hope. With one anchor (the last iterate), p = 1 and no Rayleigh–Ritz, lines 4–9 are lines 3–8 of
//! `vr-hb-power`. Line 2 never loses ground: a noisy inner loop may cost a pass, never the answer.
//! Choose it when a pass is dear: data on disk, data on other machines. Cost of a step: 1 + (m − 1)|S|/n passes.

use faer::Mat;

use super::basis::RitzBasis;
use super::{Pairs, Solver, StepParameters};
use crate::certificate::Next;
use crate::linalg::{
    add_product, beside, column_norms, gram, orthonormal_complement, product, project_out, random_complement,
    small_eigen,
};
use crate::{Block, CovarianceOperator, Error, Replacement, Sampler};

/// Sizes of an anchored run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnchoredSizes {
    /// p, vectors multiplied in one pass.
    pub block: usize,
    /// a, anchors kept.
    pub anchors: usize,
    /// |S|, rows of a mini-batch.
    pub batch: usize,
    /// m, steps of the inner loop; 1 for none.
    pub epoch: usize,
    /// Rows of the start sample; 0 for a random start.
    pub start_rows: usize,
}

/// The k leading eigenvectors from anchors, mini-batches and Rayleigh–Ritz.
#[derive(Debug)]
pub struct Anchored {
    k: usize,
    sizes: AnchoredSizes,
    eta: f64,
    seed: u64,
    sampler: Sampler,
    /// Q, CQ and the Ritz values θ.
    basis: RitzBasis,
    /// W, d×p; after an inner loop W_m, before the first look the start.
    w: Block,
    started: bool,
    vectors: Block,
    images: Block,
    steps: u64,
}

impl Anchored {
    /// k ≤ d components of n rows, starting from a sample or, where given, from the columns of `start`.
    pub fn new(
        n: usize,
        d: usize,
        k: usize,
        sizes: AnchoredSizes,
        eta: f64,
        seed: u64,
        start: Option<&Block>,
    ) -> Result<Self, Error> {
        super::check_components(k, d)?;
        super::check_unit_step(eta)?;
        let block = sizes.block.max(k).min(d);
        let sizes = AnchoredSizes { block, anchors: sizes.anchors.max(block).min(d), ..sizes };
        let nothing = Block::zeros(d, 0);
        let w = match start {
            None => nothing,
            Some(start) => {
                super::check_start(start, d).and_then(|()| orthonormal_complement(start.clone(), &nothing))?
            }
        };
        Ok(Self {
            k,
            sizes,
            eta,
            seed,
            sampler: Sampler::new(n, sizes.batch, Replacement::Without, seed)?,
            basis: RitzBasis::empty(d),
            w,
            started: start.is_some(),
            vectors: Block::zeros(d, k),
            images: Block::zeros(d, k),
            steps: 0,
        })
    }

    /// Leading directions of a sample of rows, from a block Krylov space of the sample's own covariance.
    fn sample_start(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        const PRODUCTS: usize = 4;
        let (n, d, p) = (operator.n_rows(), operator.dim(), self.sizes.block);
        let nothing = Block::zeros(d, 0);
        self.w = random_complement(&nothing, p, self.seed)?;
        if self.sizes.start_rows == 0 {
            return Ok(());
        }
        let rows = Sampler::new(n, self.sizes.start_rows, Replacement::Without, self.seed)?.draw().to_vec();
        let mut sample = RitzBasis::empty(d);
        let mut x = self.w.clone();
        for _ in 0..PRODUCTS {
            let mut z = Block::zeros(d, x.p());
            operator.apply_batch(&rows, &x, &mut z)?;
            sample.append(&x, &z, 0.0)?;
            x = orthonormal_complement(z, &sample.q)?;
            if x.p() == 0 {
                break;
            }
        }
        self.w = sample.best(p).0;
        Ok(())
    }

    /// Lines 4–9: heavy ball steps with exact images within the anchors and sampled ones outside.
    fn inner_loop(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let eta = self.eta;
        let beta = self.beta();
        let (mut before, image) = self.basis.best(self.sizes.block);
        let mut w = before.clone();
        super::combine(&mut w, 1.0 - eta, eta, &image); // 4
        let mut g = Block::zeros(w.d(), w.p());
        for _ in 1..self.sizes.epoch {
            let rows = self.sampler.draw();
            let mut remainder = w.clone();
            let along = project_out(&mut remainder, &self.basis.q); // 6
            operator.apply_batch(rows, &remainder, &mut g)?;
            add_product(&mut g, &self.basis.cq, along.as_ref(), 1.0); // 7
            for ((before, w), g) in before.values_mut().iter_mut().zip(w.values()).zip(g.values()) {
                *before = 2.0 * ((1.0 - eta) * w + eta * g) - beta * *before; // 8
            }
            std::mem::swap(&mut w, &mut before);
            orthonormalize_pair(&mut w, &mut before)?; // 9
        }
        self.w = w;
        Ok(())
    }

    fn beta(&self) -> f64 {
        let next = self.basis.theta.get(self.sizes.block).copied().unwrap_or(0.0);
        (1.0 - self.eta + self.eta * next).powi(2)
    }
}

/// Orthonormalises W_{t+1} and applies the same transform to W_t; for one vector this is the paper's scaling scheme. Weak
/// directions are not dropped but brought up, so that W_t can follow.
fn orthonormalize_pair(w: &mut Block, before: &mut Block) -> Result<(), Error> {
    let norms = column_norms(w);
    let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { 0.0 };
    let p = w.p();
    let scaled = Mat::from_fn(p, p, |i, j| if i == j { inverse(norms[i]) } else { 0.0 });
    let g = gram(w, w);
    let (values, vectors) = small_eigen(&(&scaled * &g * &scaled))?;
    let floor = f64::EPSILON * values.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let transform = scaled * Mat::from_fn(p, p, |i, j| vectors[(i, j)] / values[j].max(floor).sqrt());
    *w = product(w, transform.as_ref());
    *before = product(before, transform.as_ref());
    Ok(())
}

impl Solver for Anchored {
    fn name(&self) -> &'static str {
        "anchored"
    }

    fn n_components(&self) -> usize {
        self.k
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        if !self.started {
            self.sample_start(operator)?;
            self.started = true;
        }
        let w = std::mem::replace(&mut self.w, Block::zeros(0, 0));
        let mut x = orthonormal_complement(w, &self.basis.q)?; // 1
        if x.p() < self.k.saturating_sub(self.basis.len()) || x.p() == 0 {
            let fill = random_complement(
                &beside(&self.basis.q, &x),
                self.sizes.block - x.p(),
                self.seed ^ self.steps,
            )?;
            x = beside(&x, &fill);
        }
        if x.p() == 0 {
            self.basis.refresh(operator)?;
        } else {
            let mut z = Block::zeros(x.d(), x.p());
            operator.apply(&x, &mut z)?; // 1
            self.basis.append(&x, &z, operator.image_rounding())?; // 2
        }
        (self.vectors, self.images) = self.basis.best(self.k);
        Ok(())
    }

    fn pairs(&self) -> Pairs<'_> {
        let next = match self.basis.theta.get(self.k) {
            Some(theta) => Next::Estimated(*theta),
            None if self.k == self.vectors.d() => Next::Nothing,
            None => Next::Unknown,
        };
        Pairs { vectors: &self.vectors, images: &self.images, image_error: self.basis.image_error(), next } // 3
    }

    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.steps += 1;
        if self.basis.len() > self.sizes.anchors {
            self.basis.compress(self.sizes.anchors); // 2
        }
        self.inner_loop(operator)
    }

    fn passes_ahead(&self, n_rows: usize) -> f64 {
        1.0 + self.sizes.epoch.saturating_sub(1) as f64 * self.sizes.batch as f64 / n_rows as f64
    }

    fn parameters(&self) -> StepParameters {
        let lambda2 = self.basis.theta.get(self.sizes.block).copied();
        StepParameters { eta: Some(self.eta), beta: Some(self.beta()), lambda2 }
    }
}
