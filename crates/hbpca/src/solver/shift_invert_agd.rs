//! Shift-and-invert power iteration, its systems solved by accelerated gradient descent.
//!
//! ```text
//!    b ← a unit vector, random or given;  σ ← 3/2 tr C;  y ← x ← b/(σ − bᵀCb)
//!    repeat
//! 1      e ← b − (σI − C)y                              one full pass, which also gives the image of y
//! 2      if ‖e‖ is a quarter of what it was with this b:  σ ← σ − 1/(4bᵀy);  b ← y/‖y‖;  y ← x ← b/(σ − bᵀCb);  e anew
//! 3      x₊ ← y + e/σ
//! 4      y ← x₊ + β(x₊ − x);  x ← x₊,   β = (1 − q)/(1 + q),   q² = (σ − bᵀCb)/σ
//! ```
//!
//! Source: Garber & Hazan 2015; Garber, Hazan, Jin, Kakade, Musco, Netrapalli & Sidford 2016; Allen-Zhu & Li 2016 and Xu 2018 for accelerated
//! gradients inside; Nesterov 2004, constant step scheme III, for lines 3 and 4.
//! Deviations: those of the shift in `shift-invert-svrg`. q takes bᵀCb for λ₁; the part of the error along u₁, for which it may be too large, is one of length
//! and not of direction. Xu 2018 reads the same iteration as Riemannian gradient descent with adaptive steps.
//! Choose it to compare with `power-m`: it has the same root of the gap in its rate and needs no λ₂, but pays a logarithm of systems for it and
//! some passes until σ has come down from the trace. Cost of a step: 1 pass.

use super::shifted::ShiftedSystem;
use super::{Pairs, Solver, StepParameters};
use crate::operator::CovarianceOperator;
use crate::policy::Start;
use crate::{Archive, Block, Error};

/// Power iteration on (σI − C)⁻¹ with accelerated inner steps.
#[derive(Clone, Debug)]
pub struct ShiftInvertAgd {
    /// y and its system.
    system: ShiftedSystem,
    inner: AcceleratedSteps,
}

impl ShiftInvertAgd {
    /// Starts at `start` in d dimensions.
    pub fn new(d: usize, start: &Start) -> Result<Self, Error> {
        Ok(Self { system: ShiftedSystem::new(d, start)?, inner: AcceleratedSteps::new(d) })
    }
}

/// Lines 2 to 4 on the iterate y of a system.
#[derive(Clone, Debug)]
pub(super) struct AcceleratedSteps {
    /// x, and y while it changes.
    x: Block,
    y: Block,
}

impl AcceleratedSteps {
    pub(super) fn new(d: usize) -> Self {
        Self { x: Block::zeros(d, 1), y: Block::zeros(d, 1) }
    }

    /// One step, from the image that a look gave the system.
    pub(super) fn step(&mut self, system: &mut ShiftedSystem) {
        let is_new = system.advance(); // 2
        system.copy_iterate(&mut self.y);
        if is_new {
            self.x.copy_from(&self.y);
        }
        let (sigma, beta) = (system.sigma(), Self::beta(system));
        let length = if sigma > 0.0 { sigma.recip() } else { 0.0 };
        let points = self.x.values_mut().iter_mut().zip(self.y.values_mut());
        for ((x, y), e) in points.zip(system.residual().values()) {
            let next = *y + length * e; // 3
            *y = next + beta * (next - *x); // 4
            *x = next;
        }
        system.move_to(&self.y);
    }

    /// β = (1 − q)/(1 + q).
    pub(super) fn beta(system: &ShiftedSystem) -> f64 {
        let (mu, sigma) = (system.distance(), system.sigma());
        let q = if sigma > 0.0 { (mu / sigma).clamp(0.0, 1.0).sqrt() } else { 1.0 };
        (1.0 - q) / (1.0 + q)
    }

    pub(super) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.block("x", &mut self.x)
    }
}

impl Solver for ShiftInvertAgd {
    fn name(&self) -> &'static str {
        "shift-invert-agd"
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.system.look(operator) // 1
    }

    fn pairs(&mut self) -> Pairs<'_> {
        self.system.pairs()
    }

    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.inner.step(&mut self.system);
        Ok(())
    }

    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        1.0
    }

    fn parameters(&self) -> StepParameters {
        StepParameters { beta: Some(AcceleratedSteps::beta(&self.system)), ..StepParameters::default() }
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.part("inner", |archive| self.inner.archive(archive))?;
        archive.part("system", |archive| self.system.archive(archive))
    }
}
