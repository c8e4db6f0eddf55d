//! β from the Rayleigh quotient and two residuals.
//!
//! ```text
//! ν = wᵀCw,   δ = ‖Cw − νw‖,   ρ = min(δ/δ₋, 1)^{1/m}          of two looks, m steps apart
//! r = 2ρ/(1 + ρ²),   after the two looks without momentum: r = ρ
//! β = (r(1 − η + ην))²
//! ```
//!
//! With β = (rα)² for the leading eigenvalue α of the step's matrix, here α = 1 − η + ηλ₁, heavy ball iteration multiplies the residual by
//! ρ = r/(1 + √(1 − r²)) a step, where r is the ratio of the second eigenvalue to the first. Solved for r that is the second line. Plain power iteration, which
//! comes first, has ρ = r itself. No data is read, and no vector kept.
//!
//! Source: Austin, Pollock & Zhu 2024 (arXiv 2403.09618), algorithm 3.1, where η = 1, m = 1 and β is a quarter of this one because their step is Cw without its 2.
//! Deviations: m and η, for epochs of `vr-hb-power`, where the noise of batches enters the ratio.

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
        let rho = (residual / before).min(1.0).powf(1.0 / self.steps as f64);
        self.ratio = Some(if self.ratio.is_none() { rho } else { 2.0 * rho / (1.0 + rho * rho) });
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
        // Small angles φ: δ = (λ₁ − λ₂)φ. Plain: φ falls by r = 3/4. Heavy ball with β = (rλ₁)²: by r/(1 + √(1 − r²)).
        let r: f64 = 0.75;
        let rate = r / (1.0 + (1.0 - r * r).sqrt());
        for m in [1_u32, 4] {
            let mut momentum = DynamicMomentum::new(m as usize);
            let mut phi = 1e-6;
            for (look, factor) in [(0, 0.1), (1, r), (2, rate), (3, rate), (4, rate)] {
                let w = unit(phi);
                momentum.observe(&w, &image(&w));
                if look < 2 {
                    assert_eq!((momentum.beta(1.0).to_bits(), momentum.lambda2()), (0, None));
                } else {
                    // Terms of order φ², and δ with a relative rounding of ε/φ.
                    assert!((momentum.lambda2().unwrap() / 3.0 - 1.0).abs() < 1e-8, "m = {m}, look {look}");
                    assert!((momentum.beta(1.0) / 9.0 - 1.0).abs() < 1e-8);
                }
                phi *= factor.powf(f64::from(m));
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
