//! The momentum coefficient β of heavy ball iterations.
//!
//! The best β for step size η is (1 − η + ηλ₂)². Where λ₂ is known, [`OracleMomentum`] uses it; where not, the free
//! estimate of the paper's *Practical Considerations*, [`AdaptiveMomentum`], or the rate at which residuals fall,
//! [`DynamicMomentum`](super::DynamicMomentum).

use std::fmt::Debug;

use crate::{Archive, Block, Error};

/// Chooses β at every outer iterate.
pub trait Momentum: Debug + Send {
    /// Sees a unit outer iterate w̃ₛ and its exact image g̃ = Cw̃ₛ.
    fn observe(&mut self, w_tilde: &Block, g_tilde: &Block);

    /// β for step size η.
    fn beta(&self, eta: f64) -> f64;

    /// λ₂ or its estimate, where β rests on one.
    fn lambda2(&self) -> Option<f64>;

    /// Walks over what it learnt from vectors of length d; nothing where it learns nothing.
    fn archive(&mut self, _d: usize, _archive: &mut Archive<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// β = (1 − η + ηλ₂)². Where the square leaves the range of f64 it stops there, and momentum fades into plain power
/// iteration, as it does where the square underflows.
fn best_beta(eta: f64, lambda2: f64) -> f64 {
    (1.0 - eta + eta * lambda2).powi(2).min(f64::MAX)
}

fn refuse_negative(name: &'static str, value: f64) -> Result<(), Error> {
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(Error::parameter(name, value, "give a finite number of at least 0"))
}

/// The same β throughout.
#[derive(Clone, Copy, Debug)]
pub struct FixedMomentum {
    beta: f64,
}

impl FixedMomentum {
    /// β ≥ 0; with β = 0 there is no momentum.
    pub fn new(beta: f64) -> Result<Self, Error> {
        refuse_negative("beta", beta)?;
        Ok(Self { beta })
    }
}

impl Momentum for FixedMomentum {
    fn observe(&mut self, _w_tilde: &Block, _g_tilde: &Block) {}
    fn beta(&self, _eta: f64) -> f64 {
        self.beta
    }
    fn lambda2(&self) -> Option<f64> {
        None
    }
}

/// β from the true λ₂ (the paper's "OM").
#[derive(Clone, Copy, Debug)]
pub struct OracleMomentum {
    lambda2: f64,
}

impl OracleMomentum {
    /// λ₂ ≥ 0.
    pub fn new(lambda2: f64) -> Result<Self, Error> {
        refuse_negative("lambda2", lambda2)?;
        Ok(Self { lambda2 })
    }
}

impl Momentum for OracleMomentum {
    fn observe(&mut self, _w_tilde: &Block, _g_tilde: &Block) {}
    fn beta(&self, eta: f64) -> f64 {
        best_beta(eta, self.lambda2)
    }
    fn lambda2(&self) -> Option<f64> {
        Some(self.lambda2)
    }
}

/// β from the estimate λ̂₂,ₛ, refreshed at every outer iterate without reading any data (the paper's "AM").
///
/// Before two iterates are known λ̂₂ is taken as 0.
#[derive(Clone, Debug, Default)]
pub struct AdaptiveMomentum {
    estimate: SecondEigenvalue,
}

impl Momentum for AdaptiveMomentum {
    fn observe(&mut self, w_tilde: &Block, g_tilde: &Block) {
        self.estimate.observe(w_tilde, g_tilde);
    }
    fn beta(&self, eta: f64) -> f64 {
        best_beta(eta, self.estimate.value().unwrap_or(0.0))
    }
    fn lambda2(&self) -> Option<f64> {
        self.estimate.value()
    }
    fn archive(&mut self, d: usize, archive: &mut Archive<'_>) -> Result<(), Error> {
        self.estimate.archive(d, archive)
    }
}

/// The estimate of λ₂ from two consecutive outer iterates and their exact images:
///
/// ```text
/// θₛ = w̃ₛ₋₁ᵀw̃ₛ,   û₂ = w̃ₛ₋₁ − θₛw̃ₛ,   λ̂₂,ₛ = û₂ᵀCû₂ / û₂ᵀû₂,   Cû₂ = g̃ₛ₋₁ − θₛg̃ₛ
/// ```
///
/// The paper expands the quotient into products with denominator 1 − θₛ²; formed from û₂ itself it is the same number
/// without the cancellation. Where 1 − θₛ² = ‖û₂‖² is no longer distinguishable from 0 in f64 the two iterates agree to
/// working precision, û₂ is rounding noise, and the previous estimate is kept.
#[derive(Clone, Debug, Default)]
pub struct SecondEigenvalue {
    previous: Option<(Block, Block)>,
    value: Option<f64>,
}

impl SecondEigenvalue {
    /// Sees the next unit iterate and its exact image.
    pub fn observe(&mut self, w: &Block, g: &Block) {
        let Some((w_before, g_before)) = &mut self.previous else {
            self.previous = Some((w.clone(), g.clone()));
            return;
        };
        let theta = w_before.dot(w);
        // û₂ and Cû₂ overwrite the previous pair, which is no longer needed.
        for (before, now) in [(&mut *w_before, w), (&mut *g_before, g)] {
            before.values_mut().iter_mut().zip(now.values()).for_each(|(b, x)| *b -= theta * x);
        }
        let square = w_before.dot(w_before);
        if square > f64::EPSILON {
            self.value = Some((w_before.dot(g_before) / square).max(0.0));
        }
        w_before.copy_from(w);
        g_before.copy_from(g);
    }

    /// Walks over the estimate and the last pair, whose vectors have length d.
    pub(crate) fn archive(&mut self, d: usize, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.optional("value", &mut self.value)?;
        // No column before the first iterate, one after it.
        let none = || (Block::zeros(d, 0), Block::zeros(d, 0));
        let (mut w, mut g) = self.previous.clone().unwrap_or_else(none);
        archive.columns("w", &mut w)?;
        archive.columns("g", &mut g)?;
        archive.check("w", w.p() <= 1 && w.p() == g.p(), "is not one vector with one image")?;
        self.previous = (w.p() == 1).then_some((w, g));
        Ok(())
    }

    /// λ̂₂, once two iterates have been seen.
    pub fn value(&self) -> Option<f64> {
        self.value
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;

    /// C = diag(4, 1, 0).
    fn image(w: &Block) -> Block {
        let w = w.values();
        Block::from_vector(vec![4.0 * w[0], w[1], 0.0])
    }

    fn unit(values: [f64; 3]) -> Block {
        let mut w = Block::from_vector(values.to_vec());
        w.scale(1.0 / w.norm());
        w
    }

    #[test]
    fn the_estimate_is_exact_when_the_iterates_span_the_first_two_eigenvectors() {
        let mut estimate = SecondEigenvalue::default();
        for w in [unit([1.0, 0.5, 0.0]), unit([1.0, 0.0, 0.0])] {
            assert_eq!(estimate.value(), None);
            estimate.observe(&w, &image(&w));
        }
        assert!((estimate.value().unwrap() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn it_equals_the_expanded_formula_of_the_paper() {
        let (a, b) = (unit([0.9, 0.3, -0.2]), unit([0.95, 0.1, 0.05]));
        let mut estimate = SecondEigenvalue::default();
        estimate.observe(&a, &image(&a));
        estimate.observe(&b, &image(&b));
        let theta = a.dot(&b);
        let expanded = (a.dot(&image(&a)) - 2.0 * theta * b.dot(&image(&a))
            + theta * theta * b.dot(&image(&b)))
            / (1.0 - theta * theta);
        // The expanded form loses 1/(1 − θ²) ≈ 13 in relative accuracy.
        assert!((estimate.value().unwrap() - expanded).abs() < 100.0 * f64::EPSILON * 4.0);
    }

    #[test]
    fn the_previous_estimate_is_kept_when_the_iterates_agree() {
        let mut estimate = SecondEigenvalue::default();
        for w in [unit([1.0, 0.5, 0.0]), unit([1.0, 0.0, 0.0]), unit([1.0, 1e-9, 1e-9])] {
            estimate.observe(&w, &image(&w));
        }
        assert!((estimate.value().unwrap() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn beta_follows_its_formula() {
        let oracle = OracleMomentum::new(0.5).unwrap();
        assert!((oracle.beta(0.5) - 0.75 * 0.75).abs() < 1e-16 && (oracle.beta(1.0) - 0.25).abs() < 1e-16);
        assert!((AdaptiveMomentum::default().beta(0.25) - 0.75 * 0.75).abs() < 1e-16); // λ̂₂ = 0 at first
        assert_eq!(OracleMomentum::new(1e300).unwrap().beta(1.0), f64::MAX);
        assert!((FixedMomentum::new(0.3).unwrap().beta(0.1) - 0.3).abs() < 1e-16);
    }

    #[test]
    fn negative_and_infinite_values_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(OracleMomentum::new(bad).unwrap_err().to_string().starts_with("lambda2 = "));
            assert!(FixedMomentum::new(bad).unwrap_err().to_string().starts_with("beta = "));
        }
    }
}
