//! β from the Rayleigh quotient and two residuals.
//!
//! ```text
//! ν = wᵀCw,   δ = ‖Cw − νw‖,   q = min(δ/δ₋, 1)              of two looks, m steps apart
//! r = q^{1/m}                                                after the two looks without momentum
//!   = 2q/(1 + q²)                                            m = 1: the recurrence runs on
//!   = 1/cosh(arcosh(1/q)/m)                                  m > 1: it begins anew at every look
//! β = (r(1 − η + ην))²
//! ```
//!
//! r is the ratio of the second eigenvalue of the step's matrix to its first, α = 1 − η + ηλ₁. Plain power iteration multiplies the residual by r a step. With
//! β = (rα)², heavy ball iteration that runs on multiplies it by q = r/(1 + √(1 − r²)) a step; one that begins anew by q = 1/T_m(1/r) in m steps, the Chebyshev polynomial
//! T_m(x) = cosh(m arcosh x). Both are solved for r. No data is read, and no vector kept.
//!
//! Source: Austin, Pollock & Zhu 2024 (arXiv 2403.09618), algorithm 3.1, where η = 1, m = 1 and β is a quarter of this one because their step is Cw without its 2.
//! Deviations: m and η, for epochs of `vr-hb-power` and `vr-power-m`, where the noise of batches enters the ratio.

use super::Momentum;
use crate::block::residual_norm;
use crate::{Archive, Block, Error};

/// Looks before the first momentum.
const PLAIN: usize = 2;

/// β from the rate at which the residual falls.
///
/// For two looks β is 0: the first residuals of a random start fall faster than later ones.
#[derive(Clone, Debug)]
pub struct DynamicMomentum {
    /// m.
    steps: usize,
    looks: usize,
    /// δ of the last look, and ν.
    residual: Option<f64>,
    theta: f64,
    /// r.
    ratio: Option<f64>,
}

impl DynamicMomentum {
    /// For a solver that takes so many steps between two looks; none counts as one.
    pub fn new(steps: usize) -> Self {
        Self { steps: steps.max(1), looks: 0, residual: None, theta: 0.0, ratio: None }
    }
}

impl Momentum for DynamicMomentum {
    fn observe(&mut self, w_tilde: &Block, g_tilde: &Block) {
        let theta = w_tilde.dot(g_tilde);
        let residual = residual_norm(w_tilde.values(), g_tilde.values(), theta);
        let before = self.residual.replace(residual);
        self.theta = theta.max(0.0);
        self.looks += 1;
        // An exact eigenvector has no rate to learn from.
        let Some(before) = before.filter(|before| *before > 0.0 && residual.is_finite()) else { return };
        if self.looks <= PLAIN {
            return;
        }
        let (q, m) = ((residual / before).min(1.0), self.steps as f64);
        self.ratio = Some(match self.ratio {
            None => q.powf(1.0 / m),
            Some(_) if self.steps == 1 => 2.0 * q / (1.0 + q * q),
            Some(_) => (q.recip().acosh() / m).cosh().recip(),
        });
    }

    fn beta(&self, eta: f64) -> f64 {
        let ratio = self.ratio.unwrap_or(0.0);
        (ratio * (1.0 - eta + eta * self.theta)).powi(2).min(f64::MAX)
    }

    /// What λ₂ would be, were η = 1.
    fn lambda2(&self) -> Option<f64> {
        self.ratio.map(|ratio| ratio * self.theta)
    }

    fn archive(&mut self, _d: usize, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.size("looks", &mut self.looks)?;
        archive.optional("residual", &mut self.residual)?;
        archive.number("theta", &mut self.theta)?;
        archive.optional("ratio", &mut self.ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C = diag(4, 3).
    fn image(w: &Block) -> Block {
        Block::from_vector(vec![4.0 * w.values()[0], 3.0 * w.values()[1]])
    }

    fn unit(second: f64) -> Block {
        let mut w = Block::from_vector(vec![1.0, second]);
        w.scale(1.0 / w.norm());
        w
    }

    #[test]
    fn the_ratio_of_eigenvalues_follows_from_the_rate_of_plain_and_of_heavy_ball_steps() {
        // Small angles φ: δ = (λ₁ − λ₂)φ. Plain: φ falls by r = 3/4 a step. Heavy ball with β = (rλ₁)²: by r/(1 + √(1 − r²)) where it runs
        // on, by 1/T₄(1/r) in four steps from the beginning, T₄(x) = 8x⁴ − 8x² + 1.
        let r: f64 = 0.75;
        let runs_on = r / (1.0 + (1.0 - r * r).sqrt());
        let anew = (8.0 / r.powi(4) - 8.0 / r.powi(2) + 1.0).recip();
        for (m, plain, rate) in [(1, r, runs_on), (4, r.powi(4), anew)] {
            let mut momentum = DynamicMomentum::new(m);
            let mut phi = 1e-5;
            for (look, factor) in [(0, 0.1), (1, plain), (2, rate), (3, rate)] {
                let w = unit(phi);
                momentum.observe(&w, &image(&w));
                if look < 2 {
                    assert_eq!((momentum.beta(1.0).to_bits(), momentum.lambda2()), (0, None));
                } else {
                    // Terms of order φ², and δ with a relative rounding of ε/φ.
                    assert!((momentum.lambda2().unwrap() / 3.0 - 1.0).abs() < 1e-8, "m = {m}, look {look}");
                    assert!((momentum.beta(1.0) / 9.0 - 1.0).abs() < 1e-8);
                }
                phi *= factor;
            }
            // r times the leading eigenvalue of (1 − η)I + ηC.
            assert!((momentum.beta(0.5) - (r * 2.5).powi(2)).abs() < 1e-7);
        }
    }

    #[test]
    fn residuals_that_rise_or_vanish_do_no_harm() {
        let mut momentum = DynamicMomentum::new(1);
        for second in [1e-3, 1e-2, 0.0, 0.0, 1e-5] {
            momentum.observe(&unit(second), &image(&unit(second)));
            let beta = momentum.beta(1.0);
            assert!((0.0..=16.0).contains(&beta), "{beta}"); // at most λ₁²
        }
    }
}
