//! Power iteration with momentum (Power+M): Chebyshev iteration in disguise.
//!
//! ```text
//! 1  w₀ ← a unit vector, random or given
//!    for t = 0, 1, 2, …
//! 2      g ← Cw_t                               one full pass
//! 3      w_{t+1} ← g for t = 0                  without the 2, so that the iterates are Chebyshev polynomials of C
//! 4      w_{t+1} ← 2g − βw_{t−1} for t ≥ 1
//! 5      w_t, w_{t+1} ← w_t, w_{t+1} / ‖w_{t+1}‖
//! ```
//!
//! Source: Xu et al. 2018; equation (3) of the paper. Deviations: where λ₂ is not given, β = λ̂₂² with the estimate of
//! `vr-hb-power`, made anew after every line 2; where w_{t+1} vanished or left the range of f64, w_t stands in for it. Choose it when
//! λ₂ is known: with β = λ₂² the error falls like that of the best polynomial, √gap instead of gap. Cost of a step: 1 pass.

use super::iterate::Iterate;
use super::{Pairs, Solver, StepParameters, combine};
use crate::operator::CovarianceOperator;
use crate::policy::{Momentum, Start};
use crate::{Archive, Block, Error};

/// w_{t+1} = 2Cw_t − βw_{t−1}.
#[derive(Debug)]
pub struct PowerM {
    momentum: Box<dyn Momentum>,
    t: usize,
    /// w_t and g = Cw_t; w_{t−1} on the same scale.
    iterate: Iterate,
    w_previous: Block,
}

impl PowerM {
    /// Starts at `start` in d dimensions; β is the momentum's value at η = 1.
    pub fn new(d: usize, momentum: Box<dyn Momentum>, start: &Start) -> Result<Self, Error> {
        let iterate = Iterate::new(d, start)?; // 1
        Ok(Self { momentum, t: 0, iterate, w_previous: Block::zeros(d, 1) })
    }
}

impl Solver for PowerM {
    fn name(&self) -> &'static str {
        "power-m"
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.iterate.look(operator)?; // 2
        self.momentum.observe(&self.iterate.w, &self.iterate.g);
        Ok(())
    }

    fn pairs(&mut self) -> Pairs<'_> {
        self.iterate.pairs()
    }

    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let beta = self.momentum.beta(1.0);
        // w_{t−1} is overwritten by w_{t+1}; then the two change places.
        if self.t == 0 {
            self.w_previous.copy_from(&self.iterate.g); // 3
        } else {
            combine(&mut self.w_previous, -beta, 2.0, &self.iterate.g); // 4
        }
        std::mem::swap(&mut self.iterate.w, &mut self.w_previous);
        scale_pair(&mut self.w_previous, &mut self.iterate.w); // 5
        self.t += 1;
        Ok(())
    }

    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        1.0
    }

    fn parameters(&self) -> StepParameters {
        StepParameters { eta: None, beta: Some(self.momentum.beta(1.0)), lambda2: self.momentum.lambda2() }
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.size("t", &mut self.t)?;
        archive.block("w_previous", &mut self.w_previous)?;
        archive.part("iterate", |archive| self.iterate.archive(archive))?;
        let d = self.iterate.w.d();
        archive.part("momentum", |archive| self.momentum.archive(d, archive))
    }
}

/// The scaling scheme: w_t and w_{t+1} divided by ‖w_{t+1}‖, which leaves the directions as they are. Where w_{t+1}
/// vanished or left the range of f64, w_t stands in for it.
pub(super) fn scale_pair(w_t: &mut Block, w_next: &mut Block) {
    let norm = w_next.norm();
    if norm.is_normal() {
        w_t.scale(1.0 / norm);
        w_next.scale(1.0 / norm);
    } else {
        w_next.copy_from(w_t);
        super::normalize(w_next);
    }
}
