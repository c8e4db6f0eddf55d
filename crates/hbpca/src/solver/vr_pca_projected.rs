//! VR-PCA in the paper's projected form.
//!
//! ```text
//! 1  w̃₀ ← a unit vector, random or given
//!    for s = 0, 1, …
//! 2      g̃ ← Cw̃ₛ;  w₀ ← w̃ₛ                       one full pass
//! 3      w₁ ← w₀ + ηg̃;  w₁ ← w₁ / ‖w₁‖
//! 4      for t = 1 … m − 1
//! 5          sample S_t
//! 6          g_t ← C_S(w_t − (w_tᵀw₀)w₀) + (w_tᵀw₀)g̃
//! 7          w_{t+1} ← w_t + ηg_t;  w_{t+1} ← w_{t+1} / ‖w_{t+1}‖
//! 8      w̃ₛ₊₁ ← w_m
//! ```
//!
//! Source: Kim & Klabjan, the row VR-PCA of their table of rates: line 6 of `vr-hb-power` without its momentum. Deviations: none.
//! Lines 6 and 7 are linear in w_t, so that the lengths change no direction and the analysis (`theory::Method::VrPca`) holds
//! for every angle; in Shamir's form ([`VrPca`](super::VrPca)), which is not, to first order in the angle. With η′ = η/(1 + η) it is
//! `vr-hb-power` with β = 0. Choose it to compare with the theory. Cost of a step: 1 + (m − 1)|S|/n passes.

use super::iterate::Iterate;
use super::{Epoch, Pairs, Solver, StepParameters, check_positive_step, combine, normalize};
use crate::operator::{CovarianceOperator, Products};
use crate::policy::Start;
use crate::{Archive, Block, Error, Sampler};

/// w ← w + ηg_t, where only the part of w that is orthogonal to w̃ₛ is sampled.
#[derive(Clone, Debug)]
pub struct VrPcaProjected {
    eta: f64,
    epoch: Epoch,
    sampler: Sampler,
    /// w̃ₛ and g̃ = Cw̃ₛ.
    tilde: Iterate,
    /// w_t, its part orthogonal to w̃ₛ, and g_t.
    w: Block,
    remainder: Block,
    g: Block,
}

impl VrPcaProjected {
    /// Step size `eta` > 0; an epoch of m steps has m − 1 batches from `sampler`.
    pub fn new(d: usize, eta: f64, epoch: Epoch, sampler: Sampler, start: &Start) -> Result<Self, Error> {
        check_positive_step(eta)?;
        let zeros = || Block::zeros(d, 1);
        let (w, remainder, g) = (zeros(), zeros(), zeros());
        let tilde = Iterate::new(d, start)?; // 1
        Ok(Self { eta, epoch, sampler, tilde, w, remainder, g })
    }
}

impl Solver for VrPcaProjected {
    fn name(&self) -> &'static str {
        "vr-pca-projected"
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
            let along = self.w.dot(&self.tilde.w);
            self.remainder.copy_from(&self.w);
            combine(&mut self.remainder, 1.0, -along, &self.tilde.w);
            operator.apply_batch(rows, &self.remainder, &mut self.g)?;
            combine(&mut self.g, 1.0, along, &self.tilde.g); // 6
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
