//! VR HB Power: heavy ball power iteration with reduced variance and a step size.
//!
//! ```text
//!    step size η ∈ (0, 1], momentum β, batch |S|, epoch length m ≥ 2;  w̃₀ a unit vector, random or given
//!    for s = 0, 1, …
//! 1      g̃ ← (1/n)Σ aₗaₗᵀw̃ₛ                                             one full pass
//! 2      w₀ ← w̃ₛ
//! 3      w₁ ← (1 − η)w₀ + ηg̃
//! 4      for t = 1 … m − 1
//! 5          sample S_t
//! 6          g_t ← C_S(w_t − (w_tᵀw₀)w₀/‖w₀‖²) + (w_tᵀw₀)/‖w₀‖² g̃
//! 7          w_{t+1} ← 2((1 − η)w_t + ηg_t) − βw_{t−1}
//! 8          w_t, w_{t+1} ← w_t, w_{t+1} / ‖w_{t+1}‖
//! 9      w̃ₛ₊₁ ← w_m
//! ```
//!
//! Source: Kim & Klabjan, algorithm 1, with the scaling scheme (line 8) and the momentum of their *Practical
//! Considerations*: β = (1 − η + ηλ₂)², where λ₂ is given or estimated anew after every line 1. Deviations: the first epoch, which has no
//! estimate yet, takes λ₂ = 0; where w_{t+1} vanished or left the range of f64, w_t stands in for it. w̃ₛ has length 1 because of
//! line 8, so that the divisions by ‖w₀‖² fall away.
//! Choose it when passes are expensive and a mini-batch says much: a small η makes any batch size converge, a large batch with a
//! large η accelerates. Cost of a step: 1 + (m − 1)|S|/n passes.

use super::iterate::Iterate;
use super::power_m::scale_pair;
use super::{Pairs, Solver, StepParameters, check_unit_step, combine};
use crate::operator::{CovarianceOperator, Products};
use crate::policy::{Momentum, Start};
use crate::{Archive, Block, Error, Sampler};

/// The epoch length m ≥ 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(usize);

impl Epoch {
    /// m ≥ 2: an epoch has at least one stochastic step.
    pub fn new(m: usize) -> Result<Self, Error> {
        if m >= 2 {
            return Ok(Self(m));
        }
        Err(Error::parameter("epoch", m, "an epoch has at least 2 steps; m·|S| = n is the usual choice"))
    }

    /// m.
    pub fn length(self) -> usize {
        self.0
    }
}

/// Algorithm 1 of the paper.
#[derive(Debug)]
pub struct VrHbPower {
    /// η and m.
    eta: f64,
    epoch: Epoch,
    momentum: Box<dyn Momentum>,
    sampler: Sampler,
    /// w̃ₛ and g̃ = Cw̃ₛ.
    tilde: Iterate,
    /// w_t, w_{t−1}, and g_t.
    w: Block,
    w_previous: Block,
    g: Block,
    /// w_t − (w_tᵀw₀)w₀, the part that is sampled.
    remainder: Block,
}

impl VrHbPower {
    /// Step size η ∈ (0, 1], epoch length m, momentum β and mini-batches S_t.
    pub fn new(
        d: usize,
        eta: f64,
        epoch: Epoch,
        momentum: Box<dyn Momentum>,
        sampler: Sampler,
        start: &Start,
    ) -> Result<Self, Error> {
        check_unit_step(eta)?;
        let tilde = Iterate::new(d, start)?;
        let zeros = || Block::zeros(d, 1);
        let (w, w_previous, g, remainder) = (zeros(), zeros(), zeros(), zeros());
        Ok(Self { eta, epoch, momentum, sampler, tilde, w, w_previous, g, remainder })
    }
}

impl Solver for VrHbPower {
    fn name(&self) -> &'static str {
        "vr-hb-power"
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.tilde.look(operator)?; // 1
        self.momentum.observe(&self.tilde.w, &self.tilde.g);
        Ok(())
    }

    fn pairs(&mut self) -> Pairs<'_> {
        self.tilde.pairs()
    }

    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let (eta, beta) = (self.eta, self.momentum.beta(self.eta));
        self.w_previous.copy_from(&self.tilde.w); // 2
        self.w.copy_from(&self.tilde.w);
        combine(&mut self.w, 1.0 - eta, eta, &self.tilde.g); // 3
        // 4
        for _ in 1..self.epoch.length() {
            let rows = self.sampler.draw(); // 5
            let along = self.w.dot(&self.tilde.w);
            self.remainder.copy_from(&self.w);
            combine(&mut self.remainder, 1.0, -along, &self.tilde.w);
            operator.apply_batch(rows, &self.remainder, &mut self.g)?;
            combine(&mut self.g, 1.0, along, &self.tilde.g); // 6
            // w_{t−1} is overwritten by w_{t+1}; then the two change places.
            for ((before, w), g) in
                self.w_previous.values_mut().iter_mut().zip(self.w.values()).zip(self.g.values())
            {
                *before = 2.0 * ((1.0 - eta) * w + eta * g) - beta * *before; // 7
            }
            std::mem::swap(&mut self.w, &mut self.w_previous);
            scale_pair(&mut self.w_previous, &mut self.w); // 8
        }
        self.tilde.w.copy_from(&self.w); // 9
        Ok(())
    }

    fn passes_ahead(&self, n_rows: usize) -> f64 {
        1.0 + (self.epoch.length() - 1) as f64 * self.sampler.batch() as f64 / n_rows as f64
    }

    fn parameters(&self) -> StepParameters {
        let lambda2 = self.momentum.lambda2();
        StepParameters { eta: Some(self.eta), beta: Some(self.momentum.beta(self.eta)), lambda2 }
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        // The inner loop begins from these two.
        archive.part("iterate", |archive| self.tilde.archive(archive))?;
        let d = self.tilde.w.d();
        archive.part("momentum", |archive| self.momentum.archive(d, archive))?;
        archive.part("sampler", |archive| self.sampler.archive(archive))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_shorter_than_two_steps_are_refused() {
        for m in [0, 1] {
            let text = Epoch::new(m).unwrap_err().to_string();
            assert_eq!(
                text,
                format!("epoch = {m}: an epoch has at least 2 steps; m·|S| = n is the usual choice")
            );
        }
        assert_eq!(Epoch::new(2).unwrap().length(), 2);
    }
}
