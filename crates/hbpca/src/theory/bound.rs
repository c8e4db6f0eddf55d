//! The theorem's bound, with every constant of its proof written out.
//!
//! The paper hides the constants in polynomials P_{i,j}(K). Following the proofs line by line gives
//!
//! ```text
//! h(η, K)   = 4η⁴(d−1) Σ_{t=1}^{m−1} q_{m−t−1}(α₂, β) P_{1,t}(K) / p_m(α₁, β)
//! P_{1,t}   = K·16λ₁² Σ_{l=0}^{t−1} r_{t−l−1}(c(1−η+ηλ₁)² + 4η²K, 2β²) P_{0,l},     c = 8 printed, 16 proved
//! P_{0,l}   = (2‖M‖² + 8η²c̄K)ˡ,    M = [2((1−η)I+ηC), −βI; I, 0],    c̄ = max‖C_S − C‖²/K
//! ρ         = g + h
//! ```
//!
//! Everything is added in logarithms, because P_{0,l} grows like 10ˡ or faster. **The bound is hugely pessimistic**: it allows the
//! norm of the iterate to grow by ‖M‖ a step and bounds differences by sums, so that it proves convergence only for step sizes
//! many orders of magnitude below the useful ones, and for m beyond a few hundred for none that f64 can hold. It shows that
//! some step size converges; to choose one use the [model](super::Problem::contraction).

use super::problem::check_heavy_ball_eta;
use super::rates::Separation;
use super::step_size::{BestShift, minimise_over_shift};
use super::{Method, Problem, ln_p, ln_q};
use crate::Error;

/// Which constants the recursion for E‖Pw_t‖² has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoundConstants {
    /// 8(1−η+ηλ₁)², as printed: a factor 2 is lost where two displays of the proof are combined.
    Printed,
    /// 16(1−η+ηλ₁)²: what the displays give. The 16λ₁² of the source term stands, because the quadratic-form lemma holds
    /// without its factor 2 (`docs/paper/errata.md`).
    #[default]
    Proved,
}

/// The literal bound for a problem, a dimension and a worst batch.
///
/// ```
/// use hbpca::theory::{LiteralBound, Problem};
/// let problem = Problem::new(1.0, 0.5, 0.1, 5)?;
/// let bound = LiteralBound::new(problem, 3, 4.0)?;
/// assert!(bound.rate(0.5)?.ln_rate > 0.0); // proves nothing for a useful step
/// let best = bound.best_step_size().expect("short epochs leave room");
/// assert!(best.eta < 0.05 && bound.rate(best.eta)?.ln_rate < 0.0); // proves convergence for a tiny one
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiteralBound {
    problem: Problem,
    d: usize,
    worst_batch: f64,
    constants: BoundConstants,
}

/// g, h and ρ of the literal bound, as logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiteralRate {
    /// ln g.
    pub ln_g: f64,
    /// ln h; −∞ for K = 0.
    pub ln_h: f64,
    /// ln ρ = ln(g + h). The theorem applies where it is negative.
    pub ln_rate: f64,
}

/// The step size with the smallest literal bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProvedStep {
    /// η.
    pub eta: f64,
    /// The bound there; its `ln_rate` is negative.
    pub rate: LiteralRate,
}

impl LiteralBound {
    /// For d dimensions and c̄ = `worst_batch` = max‖C_S − C‖²/K over all batches (at least 1, because K is a mean).
    ///
    /// # Errors
    /// For d < 2 and for c̄ below 1 or not finite.
    pub fn new(problem: Problem, d: usize, worst_batch: f64) -> Result<Self, Error> {
        if d < 2 {
            return Err(Error::parameter(
                "d",
                d,
                "give at least 2: in one dimension there is nothing to separate",
            ));
        }
        if !(worst_batch >= 1.0 && worst_batch.is_finite()) {
            let advice =
                "max‖C_S − C‖²/K is finite and at least 1, because K is at most the mean of ‖C_S − C‖²";
            return Err(Error::parameter("worst_batch", worst_batch, advice));
        }
        Ok(Self { problem, d, worst_batch, constants: BoundConstants::default() })
    }

    /// The same bound with other constants.
    #[must_use]
    pub fn with_constants(self, constants: BoundConstants) -> Self {
        Self { constants, ..self }
    }

    /// g, h and ρ for VR HB Power with the step η; O(m).
    ///
    /// # Errors
    /// For η outside (0, 1].
    pub fn rate(&self, eta: f64) -> Result<LiteralRate, Error> {
        check_heavy_ball_eta(eta)?;
        Ok(self.literal(eta))
    }

    /// The step size with the smallest bound; none where the bound is below 1 for no η that f64 can hold.
    pub fn best_step_size(&self) -> Option<ProvedStep> {
        let to_eta = |shift: f64| 1.0 / (1.0 + shift);
        let BestShift { shift, .. } =
            minimise_over_shift(self.problem.lambda1(), |shift| self.literal(to_eta(shift)).ln_rate);
        let eta = to_eta(shift);
        let rate = self.literal(eta);
        (rate.ln_rate < 0.0).then_some(ProvedStep { eta, rate })
    }

    fn literal(&self, eta: f64) -> LiteralRate {
        let (problem, m) = (&self.problem, self.problem.epoch());
        let separation = Separation::new(problem, Method::VrHbPower { eta });
        let ln_g = separation.ln_g(m);
        let k = problem.variance();
        if k == 0.0 {
            return LiteralRate { ln_g, ln_h: f64::NEG_INFINITY, ln_rate: ln_g };
        }
        let (a1, root_beta) = (1.0 - eta + eta * problem.lambda1(), 1.0 - eta + eta * problem.lambda2());
        let beta = root_beta * root_beta;
        let factor = match self.constants {
            BoundConstants::Printed => 8.0,
            BoundConstants::Proved => 16.0,
        };
        let (r_alpha, r_beta) = (factor * a1 * a1 + 4.0 * eta * eta * k, 2.0 * beta * beta);
        let ln_p01 = (2.0 * norm_squared(2.0 * a1, beta) + 8.0 * eta * eta * self.worst_batch * k).ln();

        // s_t = Σ_{l<t} r_{t−l−1}P_{0,1}ˡ by s_{t+1} = r_t + P_{0,1}s_t, and r by its recurrence: all terms positive.
        let (mut ln_r_before, mut ln_r) = (f64::NEG_INFINITY, 0.0);
        let mut ln_s = f64::NEG_INFINITY;
        let mut ln_sum = f64::NEG_INFINITY;
        for t in 1..m {
            ln_s = ln_add(ln_r, ln_p01 + ln_s);
            (ln_r_before, ln_r) = (ln_r, ln_add(r_alpha.ln() + ln_r, r_beta.ln() + ln_r_before));
            ln_sum = ln_add(ln_sum, ln_q(4.0 * beta, beta, m - t - 1) + ln_s);
        }
        let ln_constants = (64.0 * (self.d - 1) as f64).ln() + k.ln() + 2.0 * problem.lambda1().ln();
        let ln_h = 4.0 * eta.ln() + ln_constants + ln_sum - ln_p(4.0 * a1 * a1, beta, m);
        let deficit = separation.g_minus_one(m);
        let ln_rate =
            if deficit > -0.5 && ln_h < 0.0 { (deficit + ln_h.exp()).ln_1p() } else { ln_add(ln_g, ln_h) };
        LiteralRate { ln_g, ln_h, ln_rate }
    }
}

/// ‖[x, −β; 1, 0]‖², the larger root of σ² − (x² + β² + 1)σ + β² = 0. The norm of the block matrix M is that of its block
/// with the largest x = 2(1−η+ηλ₁).
fn norm_squared(x: f64, beta: f64) -> f64 {
    let sum = x * x + beta * beta + 1.0;
    f64::midpoint(sum, ((sum - 2.0 * beta) * (sum + 2.0 * beta)).sqrt())
}

/// ln(eᵃ + eᵇ).
fn ln_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// The theorem: after s epochs Σ_{k≥2}E(u_kᵀw̃_s)²/E(u₁ᵀw̃_s)² ≤ ρˢ(1 − c)/c with c = (u₁ᵀw̃₀)² of the unit start
/// vector.
///
/// ```
/// use hbpca::theory::theorem_bound;
/// assert_eq!(theorem_bound(0.5, 3, 0.5)?, 0.125);
/// assert!(theorem_bound(1.5, 3, 0.5).is_err()); // says nothing: choose a smaller step
/// # Ok::<(), hbpca::Error>(())
/// ```
///
/// # Errors
/// For a rate outside \[0, 1), where the theorem says nothing, and for c outside (0, 1].
pub fn theorem_bound(rate: f64, epochs: u32, squared_cosine: f64) -> Result<f64, Error> {
    if !(0.0..1.0).contains(&rate) {
        let advice = "the theorem holds for rates in [0, 1); choose a smaller step size or a larger batch";
        return Err(Error::parameter("rate", rate, advice));
    }
    if !(squared_cosine > 0.0 && squared_cosine <= 1.0) {
        let advice = "(u₁ᵀw̃₀)² must lie in (0, 1]: a start orthogonal to u₁ never finds it; draw another";
        return Err(Error::parameter("squared_cosine", squared_cosine, advice));
    }
    Ok(rate.powf(f64::from(epochs)) * ((1.0 - squared_cosine) / squared_cosine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::{p, q, r};

    #[test]
    fn logarithms_give_the_formula_of_the_proof() {
        let (l1, l2, k, m, d, c) = (1.2, 0.7, 0.05, 6, 4, 3.0);
        let problem = Problem::new(l1, l2, k, m).unwrap();
        for (constants, factor) in [(BoundConstants::Printed, 8.0), (BoundConstants::Proved, 16.0)] {
            let bound = LiteralBound::new(problem, d, c).unwrap().with_constants(constants);
            for eta in [1e-3, 0.2, 1.0] {
                let (a1, b) = (1.0 - eta + eta * l1, (1.0 - eta + eta * l2).powi(2));
                let ra = factor * a1 * a1 + 4.0 * eta * eta * k;
                let p0 = 2.0 * norm_squared(2.0 * a1, b) + 8.0 * eta * eta * c * k;
                let p1 = |t: usize| -> f64 {
                    let sum: f64 = (0..t).map(|l| r(ra, 2.0 * b * b, t - l - 1) * p0.powf(l as f64)).sum();
                    16.0 * l1 * l1 * k * sum
                };
                let sum: f64 = (1..m).map(|t| q(4.0 * b, b, m - t - 1) * p1(t)).sum();
                let h = 4.0 * eta.powi(4) * (d - 1) as f64 * sum / p(4.0 * a1 * a1, b, m);
                let rate = bound.rate(eta).unwrap();
                // A few hundred operations, logarithms below 50.
                assert!((rate.ln_h.exp() / h - 1.0).abs() < 1e-12, "{} {h}", rate.ln_h.exp());
                let rho = rate.ln_g.exp() + h;
                assert!((rate.ln_rate.exp() / rho - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn block_norm_is_the_largest_singular_value() {
        // ‖[x, −β; 1, 0]‖ by its action on the unit circle.
        for (x, beta) in [(2.0_f64, 0.5_f64), (0.1, 3.0), (4.0, 0.0)] {
            let largest = (0..100_000)
                .map(|i| {
                    let (s, c) = (f64::from(i) * std::f64::consts::PI / 100_000.0).sin_cos();
                    (x * c - beta * s).powi(2) + c * c
                })
                .fold(0.0, f64::max);
            // The maximum over a grid of step π/10⁵ is low by at most ‖·‖²·(π/10⁵)².
            let norm = norm_squared(x, beta);
            assert!(largest <= norm * (1.0 + 1e-15) && largest >= norm * (1.0 - 1e-8), "{largest} {norm}");
        }
    }

    #[test]
    fn long_epochs_give_a_finite_logarithm_and_no_step() {
        let problem = Problem::new(1.0, 0.9, 0.1, 10_000).unwrap();
        let bound = LiteralBound::new(problem, 10, 2.0).unwrap();
        assert!(bound.rate(0.5).unwrap().ln_rate > 1e4);
        assert_eq!(bound.best_step_size(), None);
        // Without noise the bound is g, and the full step is the best.
        let exact = LiteralBound::new(Problem::new(1.0, 0.9, 0.0, 50).unwrap(), 10, 2.0).unwrap();
        let best = exact.best_step_size().unwrap();
        assert_eq!((best.eta, best.rate.ln_h), (1.0, f64::NEG_INFINITY));
    }

    #[test]
    fn every_constraint_is_named() {
        let problem = Problem::new(1.0, 0.5, 0.1, 5).unwrap();
        let text = |r: Result<LiteralBound, Error>| r.unwrap_err().to_string();
        assert_eq!(
            text(LiteralBound::new(problem, 1, 2.0)),
            "d = 1: give at least 2: in one dimension there is nothing to separate"
        );
        assert_eq!(
            text(LiteralBound::new(problem, 3, 0.5)),
            "worst_batch = 0.5: max‖C_S − C‖²/K is finite and at least 1, because K is at most the mean of ‖C_S − C‖²"
        );
        assert!(LiteralBound::new(problem, 3, 2.0).unwrap().rate(0.0).is_err());
        assert_eq!(
            theorem_bound(1.0, 1, 0.5).unwrap_err().to_string(),
            "rate = 1: the theorem holds for rates in [0, 1); choose a smaller step size or a larger batch"
        );
        assert_eq!(
            theorem_bound(0.5, 1, 0.0).unwrap_err().to_string(),
            "squared_cosine = 0: (u₁ᵀw̃₀)² must lie in (0, 1]: a start orthogonal to u₁ never finds it; draw another"
        );
    }
}
