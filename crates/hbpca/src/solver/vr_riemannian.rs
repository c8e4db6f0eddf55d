//! Riemannian gradient ascent on the sphere with reduced variance.
//!
//! ```text
//! 1  w̃₀ ← a unit vector, random or given
//!    for s = 0, 1, …
//! 2      g̃ ← (I − w̃w̃ᵀ)Cw̃                                      one full pass; w̃ = w̃ₛ
//! 3      w₁ ← exp_w̃(ηg̃)
//! 4      for t = 1 … m − 1
//! 5          sample S_t
//! 6          g_t ← (I − w_tw_tᵀ)C_S w_t − T(C_S w̃ − w̃w̃ᵀC_S w̃ − g̃)     T: parallel transport from w̃ to w_t
//! 7          w_{t+1} ← exp_{w_t}(ηg_t)
//! 8      w̃ₛ₊₁ ← w_m
//! ```
//!
//! exp_w(v) = cos(‖v‖)w + sin(‖v‖)v/‖v‖ and Tv = v − (w_tᵀv)(w_t + w̃)/(1 + w_tᵀw̃) on the sphere.
//!
//! Source: Zhang, Reddi & Sra 2016 (Riemannian SVRG, of which leading eigenvectors are their example; lines 3, 6 and 7); Xu & Ke 2016. The gradient is that of ½wᵀCw, so that
//! η is twice theirs. Xu 2018, whom the paper names, has the
//! gradient without sampling, and of (σI − C)⁻¹: `shift-invert-agd`. Deviations: mini-batches; the first of the m, in which line 6 is g̃ whatever is
//! drawn, is left out; where w_t and w̃ are opposite, T projects; an η above 1/θ, θ = w̃ᵀCw̃, is cut to that, since steps of more than 2/λ₁ overshoot.
//! Choose it to compare with: a gradient step has a natural length, where `vr-pca` takes any; near the answer it is `vr-pca` with
//! η/(1 − ηλ₁). Line 6 multiplies two vectors by each batch, which is read once. Cost of a step: 1 + (m − 1)|S|/n passes.

use super::iterate::Iterate;
use super::{Epoch, Pairs, Solver, StepParameters, check_positive_step, normalize};
use crate::block::{dot, norm};
use crate::operator::{CovarianceOperator, Products};
use crate::policy::Start;
use crate::{Archive, Block, Error, Sampler};

/// Variance-reduced gradient steps along great circles.
#[derive(Clone, Debug)]
pub struct VrRiemannian {
    eta: f64,
    epoch: Epoch,
    sampler: Sampler,
    /// w̃ₛ and Cw̃ₛ.
    tilde: Iterate,
    /// g̃, the gradient at w̃ₛ.
    gradient: Vec<f64>,
    /// w_t and g_t.
    w: Block,
    g: Vec<f64>,
    /// [w_t, w̃] and its image under C_S.
    both: Block,
    image: Block,
}

impl VrRiemannian {
    /// Step size `eta` > 0; an epoch of m steps has m − 1 batches from `sampler`.
    pub fn new(d: usize, eta: f64, epoch: Epoch, sampler: Sampler, start: &Start) -> Result<Self, Error> {
        check_positive_step(eta)?;
        let tilde = Iterate::new(d, start)?; // 1
        let (both, image) = (Block::zeros(d, 2), Block::zeros(d, 2));
        let (gradient, g, w) = (vec![0.0; d], vec![0.0; d], Block::zeros(d, 1));
        Ok(Self { eta, epoch, sampler, tilde, gradient, w, g, both, image })
    }

    /// g_t from the images of w_t and w̃.
    fn reduced_gradient(&mut self) {
        let (w, tilde) = (self.w.values(), self.tilde.w.values());
        let images = || self.image.values().as_chunks::<2>().0.iter();
        let (mut along, mut tilde_along) = (0.0, 0.0);
        for ((image, w), tilde) in images().zip(w).zip(tilde) {
            along += image[0] * w;
            tilde_along += image[1] * tilde;
        }
        // v = C_S w̃ − w̃w̃ᵀC_S w̃ − g̃, tangent at w̃.
        let terms = images().zip(tilde).zip(&self.gradient);
        for (v, ((image, tilde), exact)) in self.g.iter_mut().zip(terms) {
            *v = image[1] - tilde_along * tilde - exact;
        }
        let (towards, cosine) = (dot(&self.g, w), dot(w, tilde));
        let transport = 1.0 + cosine;
        for ((v, image), (w, tilde)) in self.g.iter_mut().zip(images()).zip(w.iter().zip(tilde)) {
            let moved = if transport > f64::EPSILON {
                *v - towards * (w + tilde) / transport
            } else {
                *v - towards * w
            };
            *v = image[0] - along * w - moved;
        }
    }
}

/// w ← exp_w(ηv) for a tangent v; brought back to length 1 because v is one only up to rounding.
fn move_along(w: &mut Block, eta: f64, v: &[f64]) {
    let length = norm(v);
    let angle = eta * length;
    if !(angle > 0.0 && angle.is_finite()) {
        return;
    }
    let (sine, cosine) = angle.sin_cos();
    w.values_mut().iter_mut().zip(v).for_each(|(w, v)| *w = cosine * *w + sine * (v / length));
    normalize(w);
}

impl Solver for VrRiemannian {
    fn name(&self) -> &'static str {
        "vr-riemannian"
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.tilde.look(operator) // 2
    }

    fn pairs(&mut self) -> Pairs<'_> {
        self.tilde.pairs()
    }

    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let theta = self.tilde.w.dot(&self.tilde.g);
        let eta = if theta > 0.0 { self.eta.min(theta.recip()) } else { self.eta };
        let terms = self.tilde.w.values().iter().zip(self.tilde.g.values());
        self.gradient.iter_mut().zip(terms).for_each(|(v, (w, g))| *v = g - theta * w);
        self.w.copy_from(&self.tilde.w);
        move_along(&mut self.w, eta, &self.gradient); // 3
        // 4
        for _ in 1..self.epoch.length() {
            let rows = self.sampler.draw(); // 5
            let pairs = self.both.values_mut().as_chunks_mut::<2>().0.iter_mut();
            for (pair, (w, tilde)) in pairs.zip(self.w.values().iter().zip(self.tilde.w.values())) {
                *pair = [*w, *tilde];
            }
            operator.apply_batch(rows, &self.both, &mut self.image)?;
            self.reduced_gradient(); // 6
            move_along(&mut self.w, eta, &self.g); // 7
        }
        self.tilde.w.copy_from(&self.w); // 8
        Ok(())
    }

    fn passes_ahead(&self, n_rows: usize) -> f64 {
        1.0 + (self.epoch.length() - 1) as f64 * self.sampler.batch() as f64 / n_rows as f64
    }

    fn parameters(&self) -> StepParameters {
        StepParameters { eta: Some(self.eta), ..StepParameters::default() }
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        // The inner loop begins from these two.
        archive.part("iterate", |archive| self.tilde.archive(archive))?;
        archive.part("sampler", |archive| self.sampler.archive(archive))
    }
}
