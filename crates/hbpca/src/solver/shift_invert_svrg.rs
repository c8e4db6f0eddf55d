//! Shift-and-invert power iteration, its systems solved by SVRG.
//!
//! ```text
//!    η > 0, batch |S|, epoch length m ≥ 2;  b ← a unit vector, random or given;  σ ← 3/2 tr C;  x̃ ← b/(σ − bᵀCb)
//!    repeat
//! 1      e ← b − (σI − C)x̃                             one full pass, which also gives the image of x̃
//! 2      if ‖e‖ is a quarter of what it was with this b:  σ ← σ − 1/(4bᵀx̃);  b ← x̃/‖x̃‖;  x̃ ← b/(σ − bᵀCb);  e anew
//! 3      x₁ ← x̃ + he,   h = 1/(σ + 1/η)
//! 4      for t = 1 … m − 1
//! 5          sample S_t
//! 6          x_{t+1} ← x_t + h(e − (σI − C_S)(x_t − x̃))
//! 7      x̃ ← x_m
//! ```
//!
//! Source: Garber & Hazan 2015; Garber, Hazan, Jin, Kakade, Musco, Netrapalli & Sidford 2016. Deviations: the shift is lowered after every
//! solved system and not in stages of so many, it stays above θ plus the residual of b, and begins anew where x̃ shows that it
//! was below λ₁ ([`ShiftedSystem`](super::shifted)); a system counts as solved by its own residual, which line 1 knows exactly, and not after
//! a number of epochs; mini-batches, of which the first, that would multiply 0, is left out; rows are drawn uniformly, where Garber et al. weight them by ‖aₗ‖²; x̃ takes the last x_t and not an average; h comes from η and
//! not from their theory. The start b/(σ − bᵀCb) is theirs (2016). I − h(σI − C) is C shifted by 1/η, so that η means
//! what it means to `vr-pca`, and the noise of an epoch is the same.
//! Choose it to compare with: the convex problems have a theory of their own, and cost about as many passes as `vr-pca`, whose step is the same
//! matrix; it gains where an accelerated inner solver is put in its place. Cost of a step: 1 + (m − 1)|S|/n passes.

use super::shifted::ShiftedSystem;
use super::{Epoch, Pairs, Solver, StepParameters, check_positive_step, combine};
use crate::operator::{CovarianceOperator, Products};
use crate::policy::Start;
use crate::{Archive, Block, Error, Sampler};

/// Power iteration on (σI − C)⁻¹ with stochastic inner steps.
#[derive(Clone, Debug)]
pub struct ShiftInvertSvrg {
    eta: f64,
    epoch: Epoch,
    sampler: Sampler,
    /// x̃ and its system.
    system: ShiftedSystem,
    /// x_t, x̃, x_t − x̃ and C_S(x_t − x̃).
    x: Block,
    tilde: Block,
    difference: Block,
    image: Block,
}

impl ShiftInvertSvrg {
    /// Step size `eta` > 0 in units of 1/λ; an epoch of m steps has m − 1 batches from `sampler`.
    pub fn new(d: usize, eta: f64, epoch: Epoch, sampler: Sampler, start: &Start) -> Result<Self, Error> {
        check_positive_step(eta)?;
        let zeros = || Block::zeros(d, 1);
        let (x, tilde, difference, image) = (zeros(), zeros(), zeros(), zeros());
        let system = ShiftedSystem::new(d, start)?;
        Ok(Self { eta, epoch, sampler, system, x, tilde, difference, image })
    }
}

impl Solver for ShiftInvertSvrg {
    fn name(&self) -> &'static str {
        "shift-invert-svrg"
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.system.look(operator) // 1
    }

    fn pairs(&mut self) -> Pairs<'_> {
        self.system.pairs()
    }

    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.system.advance(); // 2
        let sigma = self.system.sigma();
        let h = (sigma + self.eta.recip()).recip();
        self.system.copy_iterate(&mut self.tilde);
        self.x.copy_from(&self.tilde);
        combine(&mut self.x, 1.0, h, self.system.residual()); // 3
        // 4
        for _ in 1..self.epoch.length() {
            let rows = self.sampler.draw(); // 5
            self.difference.copy_from(&self.x);
            combine(&mut self.difference, 1.0, -1.0, &self.tilde);
            operator.apply_batch(rows, &self.difference, &mut self.image)?;
            combine(&mut self.image, 1.0, -sigma, &self.difference);
            combine(&mut self.image, 1.0, 1.0, self.system.residual());
            combine(&mut self.x, 1.0, h, &self.image); // 6
        }
        self.system.move_to(&self.x); // 7
        Ok(())
    }

    fn passes_ahead(&self, n_rows: usize) -> f64 {
        1.0 + (self.epoch.length() - 1) as f64 * self.sampler.batch() as f64 / n_rows as f64
    }

    fn parameters(&self) -> StepParameters {
        StepParameters { eta: Some(self.eta), ..StepParameters::default() }
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.part("system", |archive| self.system.archive(archive))?;
        archive.part("sampler", |archive| self.sampler.archive(archive))
    }
}
