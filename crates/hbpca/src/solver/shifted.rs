//! (σI − C)x = b: the linear systems of shift-and-invert, and the shift.
//!
//! Power iteration on (σI − C)⁻¹ has the factor (σ − λ₁)/(σ − λ₂), which is small where σ is just above λ₁. Each of its steps solves a convex
//! problem, because σI − C is positive definite. [`ShiftedSystem`] holds what the inner solvers share: the iterate x as a unit vector with
//! its exact image, so that every look certifies it, the residual e = b − (σI − C)x that follows from that image without a pass,
//! the rule by which a system counts as solved, and the descent of σ.
//!
//! **The shift.** σ begins at 3/2 tr C, above λ₁ for certain. A solved system gives 1/(bᵀx), the harmonic mean of the distances σ − λ_k weighted by
//! (u_kᵀb)²: at least σ − λ₁. A quarter of it is taken off, as Garber & Hazan do: with b near u₁ a quarter of the
//! distance. A system solved to a quarter turns b enough: to first order its residual as an eigenvector is multiplied by (σ − λ₁)/(λ₁ − λ₂) + ¼. Where the descent was too much, σ < λ₁, x grows along u₁ and its Rayleigh quotient passes σ: then σ begins anew.

use super::Pairs;
use super::iterate::Iterate;
use crate::linalg::TallBasis;
use crate::operator::{CovarianceOperator, project_out};
use crate::policy::Start;
use crate::{Archive, Block, Error};

/// σ₀ over tr C.
const FIRST_SHIFT: f64 = 1.5;
/// The share of 1/(bᵀx) by which σ is lowered.
const DESCENT: f64 = 0.25;
/// A system is solved when its residual is this share of the first.
const REDUCTION: f64 = 0.25;
/// Residuals so many times the first mean that the inner solver diverged.
const DIVERGED: f64 = 1e3;

/// A system, its iterate and the shift.
#[derive(Clone, Debug)]
pub(super) struct ShiftedSystem {
    /// σ; 0 before the first look.
    sigma: f64,
    trace: f64,
    /// b, a unit vector.
    b: Block,
    /// x/‖x‖ and its image; ‖x‖.
    iterate: Iterate,
    length: f64,
    /// e = b − (σI − C)x, and its length when the system began.
    e: Block,
    first: f64,
    /// σ − bᵀCb.
    distance: f64,
}

impl ShiftedSystem {
    /// Of d dimensions, with b at `start`.
    pub(super) fn new(d: usize, start: &Start) -> Result<Self, Error> {
        let iterate = Iterate::new(d, start)?;
        let (b, e) = (iterate.w.clone(), Block::zeros(d, 1));
        Ok(Self { sigma: 0.0, trace: 0.0, b, iterate, length: 1.0, e, first: 0.0, distance: 0.0 })
    }

    /// The image of the iterate: one full pass.
    pub(super) fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.iterate.look(operator)?;
        self.trace = operator.total_variance();
        Ok(())
    }

    /// The same, where the image and tr C are known.
    pub(super) fn see(&mut self, image: &Block, image_error: f64, trace: f64) {
        self.iterate.g.copy_from(image);
        (self.iterate.image_error, self.trace) = (image_error, trace);
    }

    pub(super) fn pairs(&self) -> Pairs<'_> {
        self.iterate.pairs()
    }

    /// x/‖x‖.
    pub(super) fn vector(&self) -> &Block {
        &self.iterate.w
    }

    /// θ of the unit iterate and ‖Cw − θw‖.
    pub(super) fn rayleigh_quotient_and_residual(&self) -> (f64, f64) {
        let theta = self.iterate.w.dot(&self.iterate.g);
        (theta, self.eigen_residual(theta))
    }

    /// Takes out of x what rounding brought in along `basis`.
    pub(super) fn keep_orthogonal_to(&mut self, basis: &TallBasis<f64>) {
        if basis.len() == 0 {
            return;
        }
        project_out(basis, &mut self.iterate.w);
        let length = self.iterate.w.norm();
        super::normalize(&mut self.iterate.w);
        self.length *= length;
    }

    /// σ.
    pub(super) fn sigma(&self) -> f64 {
        self.sigma
    }

    /// σ − bᵀCb, at least σ − λ₁.
    pub(super) fn distance(&self) -> f64 {
        self.distance
    }

    /// e = b − (σI − C)x, the direction of descent at x.
    pub(super) fn residual(&self) -> &Block {
        &self.e
    }

    /// `x` ← x.
    pub(super) fn copy_iterate(&self, x: &mut Block) {
        x.copy_from(&self.iterate.w);
        x.scale(self.length);
    }

    /// x ← `x`; one that vanished or left the range of f64 gives way to b.
    pub(super) fn move_to(&mut self, x: &Block) {
        let length = x.norm();
        if length.is_normal() {
            self.iterate.w.copy_from(x);
            self.iterate.w.scale(1.0 / length);
            self.length = length;
        } else {
            self.iterate.w.copy_from(&self.b);
        }
    }

    /// Takes the look just made into account: e is that of x, or of a new system where the last is solved or σ was too low. Whether it is new.
    pub(super) fn advance(&mut self) -> bool {
        let Iterate { w, g, .. } = &self.iterate;
        let theta = w.dot(g);
        if self.sigma == 0.0 {
            self.sigma = FIRST_SHIFT * self.trace;
            self.begin(theta);
            return true;
        }
        self.see_residual();
        let size = self.e.norm();
        let (sigma, along) = (self.sigma, self.length * self.b.dot(&self.iterate.w));
        // Written so that a number that is none counts as failure.
        let sound = theta < sigma && along > 0.0 && size <= DIVERGED * self.first.max(f64::EPSILON);
        if sound && size > REDUCTION * self.first {
            return false;
        }
        self.sigma = if sound {
            let floor = theta + self.eigen_residual(theta).max(4.0 * f64::EPSILON * sigma);
            (sigma - DESCENT / along).max(floor).min(sigma)
        } else {
            FIRST_SHIFT * self.trace
        };
        self.begin(theta);
        true
    }

    /// b ← x/‖x‖, and x ← b/(σ − θ), which is the best multiple of b.
    fn begin(&mut self, theta: f64) {
        self.b.copy_from(&self.iterate.w);
        self.distance = self.sigma - theta;
        if self.distance > 0.0 && self.distance.recip().is_finite() {
            self.length = self.distance.recip();
            self.see_residual();
        } else {
            // C = λI, or nothing at all: b is as good as any other.
            (self.length, self.distance) = (1.0, 0.0);
            self.e.values_mut().fill(0.0);
        }
        self.first = self.e.norm();
    }

    fn see_residual(&mut self) {
        let (length, sigma) = (self.length, self.sigma);
        let Iterate { w, g, .. } = &self.iterate;
        let terms = self.b.values().iter().zip(w.values()).zip(g.values());
        for (e, ((b, w), g)) in self.e.values_mut().iter_mut().zip(terms) {
            *e = b - length * (sigma * w - g);
        }
    }

    /// ‖Cw − θw‖ of the unit iterate.
    fn eigen_residual(&self, theta: f64) -> f64 {
        let Iterate { w, g, .. } = &self.iterate;
        crate::block::residual_norm(w.values(), g.values(), theta)
    }

    pub(super) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        for (name, number) in [
            ("sigma", &mut self.sigma),
            ("trace", &mut self.trace),
            ("length", &mut self.length),
            ("first", &mut self.first),
            ("distance", &mut self.distance),
        ] {
            archive.number(name, number)?;
        }
        archive.block("b", &mut self.b)?;
        archive.part("iterate", |archive| self.iterate.archive(archive))
    }
}
