//! VR Power+M: variance-reduced power iteration with momentum and no step size.
//!
//! ```text
//!    VR HB Power with η = 1, so that
//!    line 3 is  w₁ ← g̃
//!    line 7 is  w_{t+1} ← 2g_t − βw_{t−1},   β = λ₂²
//! ```
//!
//! Source: Xu et al. 2018, as the paper states and compares it. Deviations: λ₂ may be an estimate, as in `vr-hb-power`. It does not
//! converge when batches are small, by design: nothing damps the noise. Cost of a step: 1 + (m − 1)|S|/n passes.

use super::{Epoch, Pairs, Solver, StepParameters, VrHbPower};
use crate::operator::CovarianceOperator;
use crate::policy::{Momentum, Start};
use crate::{Archive, Error, Sampler};

/// Algorithm 1 of the paper with η = 1.
#[derive(Debug)]
pub struct VrPowerM(VrHbPower);

impl VrPowerM {
    /// Epoch length m, momentum β and mini-batches S_t.
    pub fn new(
        d: usize,
        epoch: Epoch,
        momentum: Box<dyn Momentum>,
        sampler: Sampler,
        start: &Start,
    ) -> Result<Self, Error> {
        Ok(Self(VrHbPower::new(d, 1.0, epoch, momentum, sampler, start)?))
    }
}

impl Solver for VrPowerM {
    fn name(&self) -> &'static str {
        "vr-power-m"
    }
    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.0.look(operator)
    }
    fn pairs(&mut self) -> Pairs<'_> {
        self.0.pairs()
    }
    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.0.step(operator)
    }
    fn passes_ahead(&self, n_rows: usize) -> f64 {
        self.0.passes_ahead(n_rows)
    }
    fn parameters(&self) -> StepParameters {
        self.0.parameters()
    }
    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        self.0.archive(archive)
    }
}
