//! VR-PCA: Oja's rule with reduced variance and a constant step.
//!
//! ```text
//! 1  w̃₀ ← a unit vector, random or given
//!    for s = 0, 1, …
//! 2      g̃ ← Cw̃ₛ                                 one full pass
//! 3      w₁ ← w̃ₛ + ηg̃;  w₁ ← w₁ / ‖w₁‖           the exact step: w₀ − w̃ₛ = 0 needs no batch
//! 4      for t = 1 … m − 1
//! 5          sample S_t
//! 6          g_t ← C_S(w_t − w̃ₛ) + g̃
//! 7          w_{t+1} ← w_t + ηg_t;  w_{t+1} ← w_{t+1} / ‖w_{t+1}‖
//! 8      w̃ₛ₊₁ ← w_m
//! ```
//!
//! Source: Shamir 2015, algorithm 1. Deviations: mini-batches instead of single rows (with a batch of one row it is the
//! original); the first of the m batches, which the original multiplies by w₀ − w̃ₛ = 0, is neither drawn nor read. Line 6 is
//! Shamir's difference form. [`VrPcaProjected`](super::VrPcaProjected) has the paper's projected form, of which the analysis is
//! exact; for small angles the two agree to first order, because w_tᵀw̃ₛ = 1 up to the square of the angle.
//! Choose it for small batches and large gaps; it converges for every batch size but does not accelerate.
//! Cost of a step: 1 + (m − 1)|S|/n passes.

use super::iterate::Iterate;
use super::{Epoch, Pairs, Solver, StepParameters, check_positive_step, combine, normalize};
use crate::operator::{CovarianceOperator, Products};
use crate::policy::Start;
use crate::{Archive, Block, Error, Sampler};

/// w ← w + ηg_t with the variance-reduced gradient g_t.
#[derive(Clone, Debug)]
pub struct VrPca {
    eta: f64,
    epoch: Epoch,
    sampler: Sampler,
    /// w̃ₛ and g̃ = Cw̃ₛ.
    tilde: Iterate,
    /// w_t, its difference to w̃ₛ, and g_t.
    w: Block,
    difference: Block,
    g: Block,
}

impl VrPca {
    /// Step size `eta` > 0; an epoch of m steps has m − 1 batches from `sampler`.
    pub fn new(d: usize, eta: f64, epoch: Epoch, sampler: Sampler, start: &Start) -> Result<Self, Error> {
        check_positive_step(eta)?;
        let zeros = || Block::zeros(d, 1);
        let (w, difference, g) = (zeros(), zeros(), zeros());
        let tilde = Iterate::new(d, start)?; // 1
        Ok(Self { eta, epoch, sampler, tilde, w, difference, g })
    }
}

impl Solver for VrPca {
    fn name(&self) -> &'static str {
        "vr-pca"
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.tilde.look(operator) // 2
    }

    fn pairs(&mut self) -> Pairs<'_> {
        self.tilde.pairs()
    }

    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.w.copy_from(&self.tilde.w);
        combine(&mut self.w, 1.0, self.eta, &self.tilde.g); // 3
        normalize(&mut self.w);
        // 4
        for _ in 1..self.epoch.length() {
            let rows = self.sampler.draw(); // 5
            self.difference.copy_from(&self.w);
            combine(&mut self.difference, 1.0, -1.0, &self.tilde.w);
            operator.apply_batch(rows, &self.difference, &mut self.g)?;
            combine(&mut self.g, 1.0, 1.0, &self.tilde.g); // 6
            combine(&mut self.w, 1.0, self.eta, &self.g); // 7
            normalize(&mut self.w);
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
