//! Power iteration with a noise oracle: what any product that is not exact costs.
//!
//! ```text
//! w₊ = (Cw + G)/‖Cw + G‖,     θ = ∠(w, u₁),     Δ = λ₁ − λ₂
//! if 4|u₁ᵀG| ≤ Δ cos θ and 4‖G‖ ≤ Δε:    tan θ₊ ≤ max(ε, max(ε, (λ₂/λ₁)^{1/4}) tan θ)
//! ```
//!
//! Source: Hardt & Price 2014, lemma 2.2 for one vector. The noise that one step may have, relative to the gap, is the accuracy ε that is left: variance-reduced methods exist because of this
//! floor. For products with a batch, G = (C_S − C)w has E‖G‖² = wᵀE\[(C_S − C)²\]w ≤ K.

use crate::Error;

/// λ₁ and λ₂ of a noisy power iteration.
///
/// ```
/// use hbpca::theory::NoisyPower;
/// let power = NoisyPower::new(1.0, 0.9)?;
/// assert!((power.floor(1e-4) - 4e-3).abs() < 1e-15); // an accuracy of 4‖G‖/Δ
/// let tangent = power.bound_after(1.0, 1e-4, 1000)?;
/// assert!(tangent <= power.floor(1e-4)); // is reached, and no more
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyPower {
    lambda1: f64,
    lambda2: f64,
}

impl NoisyPower {
    /// Eigenvalues λ₁ > λ₂ ≥ 0.
    ///
    /// # Errors
    /// For values that are negative, not finite or out of order.
    pub fn new(lambda1: f64, lambda2: f64) -> Result<Self, Error> {
        let problem = super::Problem::new(lambda1, lambda2, 0.0, 2)?;
        Ok(Self { lambda1: problem.lambda1(), lambda2: problem.lambda2() })
    }

    /// Δ.
    fn gap(&self) -> f64 {
        self.lambda1 - self.lambda2
    }

    /// ε = 4‖G‖/Δ, the accuracy that noise of this norm leaves; 1 and above say that nothing is promised.
    pub fn floor(&self, noise: f64) -> f64 {
        4.0 * noise / self.gap()
    }

    /// The largest noise along u₁ that the lemma allows at an angle with this tangent: Δ cos θ/4.
    pub fn noise_along(&self, tangent: f64) -> f64 {
        0.25 * self.gap() / tangent.hypot(1.0)
    }

    /// The bound on tan θ after one step with noise of norm at most `noise`, of which at most Δ cos θ/4 lies along u₁.
    ///
    /// # Errors
    /// For noise that the lemma does not allow: 4‖G‖/Δ of 1 and above, or more along u₁ than there may be.
    pub fn step(&self, tangent: f64, noise: f64, along: f64) -> Result<f64, Error> {
        let floor = self.floor(noise);
        if !(0.0..1.0).contains(&floor) {
            let advice =
                format!("the lemma needs 4‖G‖/Δ below 1, and Δ = {}; use larger batches", self.gap());
            return Err(Error::parameter("noise", noise, advice));
        }
        let allowed = self.noise_along(tangent);
        if !(along >= 0.0 && along <= allowed) {
            let advice = format!(
                "at this angle the lemma allows {allowed} along u₁; begin nearer, or use larger batches"
            );
            return Err(Error::parameter("noise along u₁", along, advice));
        }
        let factor = floor.max((self.lambda2 / self.lambda1).powf(0.25));
        Ok(floor.max(factor * tangent))
    }

    /// The bound after some steps, each with noise of norm at most `noise` in any direction.
    ///
    /// # Errors
    /// For noise that the lemma does not allow at this angle.
    pub fn bound_after(&self, tangent: f64, noise: f64, steps: usize) -> Result<f64, Error> {
        (0..steps).try_fold(tangent, |tangent, _| self.step(tangent, noise, noise))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::random_direction;

    /// C = diag(1, 0.8, 0.5, 0.1).
    const LAMBDA: [f64; 4] = [1.0, 0.8, 0.5, 0.1];

    fn tangent(w: &[f64]) -> f64 {
        w[1..].iter().map(|x| x * x).sum::<f64>().sqrt() / w[0].abs()
    }

    /// One step of the iteration with G of the given length: away from u₁ as far as it can be, or at random.
    fn step(w: &[f64; 4], noise: f64, seed: Option<u64>) -> [f64; 4] {
        let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        // The worst G turns Cw away from u₁ within the plane of the two.
        let image: [f64; 4] = std::array::from_fn(|i| LAMBDA[i] * w[i]);
        let rest = length(&image[1..]);
        let worst = std::array::from_fn(|i| if i == 0 { -rest } else { image[i] * image[0] / rest });
        let g: [f64; 4] = match seed {
            None => worst,
            Some(seed) => std::array::from_fn(|i| random_direction(seed, 4)[i]),
        };
        let scale = noise / length(&g);
        let next: [f64; 4] = std::array::from_fn(|i| image[i] + scale * g[i]);
        next.map(|x| x / length(&next))
    }

    #[test]
    fn no_noise_of_the_allowed_size_turns_the_iterate_further_than_the_lemma_says() {
        let power = NoisyPower::new(LAMBDA[0], LAMBDA[1]).unwrap();
        for noise in [1e-2, 1e-3, 1e-6] {
            for seed in (0..20).map(Some).chain([None]) {
                let mut w = [0.5, 0.5, -0.5, 0.5];
                for t in 0..200 {
                    let next = step(&w, noise, seed.map(|seed| 1000 * seed + t));
                    let bound = power.step(tangent(&w), noise, noise).unwrap();
                    assert!(tangent(&next) <= bound * (1.0 + 1e-12), "{} {bound}", tangent(&next));
                    w = next;
                }
                assert!(tangent(&w) <= power.floor(noise));
            }
        }
    }

    #[test]
    fn the_floor_is_of_the_right_order() {
        // Steady noise away from u₁ holds the iterate at about ‖G‖/Δ: the lemma's 4 is a constant, its noise over gap is not.
        let power = NoisyPower::new(LAMBDA[0], LAMBDA[1]).unwrap();
        for noise in [1e-3, 1e-6] {
            let mut w = [0.5, 0.5, -0.5, 0.5];
            for _ in 0..400 {
                w = step(&w, noise, None);
            }
            let share = tangent(&w) / power.floor(noise);
            assert!((0.2..=1.0).contains(&share), "{share}");
        }
    }

    #[test]
    fn noise_that_is_too_large_is_refused_by_name() {
        let power = NoisyPower::new(1.0, 0.8).unwrap();
        let text = power.bound_after(1.0, 0.1, 5).unwrap_err().to_string();
        assert!(text.starts_with("noise = 0.1: the lemma needs 4‖G‖/Δ below 1"), "{text}");
        let text = power.bound_after(1000.0, 0.01, 5).unwrap_err().to_string();
        assert!(text.starts_with("noise along u₁ = 0.01: at this angle the lemma allows"), "{text}");
        assert!(NoisyPower::new(1.0, 1.0).is_err());
    }
}
