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
//! `bound_terms.rs` has the same for VR-PCA, and P_{1,m}(K) by its coefficients. Everything is added in logarithms, because P_{0,l} grows like 10ˡ or faster. **The bound is hugely pessimistic**: it allows the
//! norm of the iterate to grow by ‖M‖ a step and bounds differences by sums, so that it proves convergence only for step sizes
//! many orders of magnitude below the useful ones, and for m beyond a few hundred for none that f64 can hold. It shows that
//! some step size converges; to choose one use the [model](super::Problem::contraction).

use super::bound_terms::{NoisePolynomial, Terms, ln_add};
use super::rates::Separation;
use super::step_size::{BestShift, minimise_over_shift};
use super::{Method, Problem};
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

    pub(super) fn problem(&self) -> &Problem {
        &self.problem
    }

    pub(super) fn dimension(&self) -> usize {
        self.d
    }

    pub(super) fn worst_batch(&self) -> f64 {
        self.worst_batch
    }

    pub(super) fn constants(&self) -> BoundConstants {
        self.constants
    }

    /// g, h and ρ for VR HB Power with the step η; O(m).
    ///
    /// # Errors
    /// For η outside (0, 1].
    pub fn rate(&self, eta: f64) -> Result<LiteralRate, Error> {
        self.rate_of(Method::VrHbPower { eta })
    }

    /// The same for any of the three methods. The proof replaces powers of η by 1, so that η is at most 1 for VR-PCA too.
    ///
    /// # Errors
    /// For η outside (0, 1].
    pub fn rate_of(&self, method: Method) -> Result<LiteralRate, Error> {
        check_step(method)?;
        Ok(self.literal(method))
    }

    /// P_{1,m}(K) of a method and its step, with h = η⁴P_{1,m}(K); O(m²).
    ///
    /// # Errors
    /// For η outside (0, 1].
    pub fn polynomial(&self, method: Method) -> Result<NoisePolynomial, Error> {
        check_step(method)?;
        Ok(Terms::new(self, method).polynomial(method.eta()))
    }

    /// ln P_{1,t}(K) of Lemma 2 for t = 1 … m − 1: E\[w_tᵀPM_kPw_t\] ≤ η²P_{1,t}(K) Σ_{k≥2}E(u_kᵀw₀)².
    ///
    /// # Errors
    /// For η outside (0, 1].
    pub fn ln_noise_bounds(&self, method: Method) -> Result<Vec<f64>, Error> {
        check_step(method)?;
        let source = if let Method::VrPca { .. } = method { 2.0_f64 } else { 16.0 };
        let ln_source = source.ln() + 2.0 * self.problem.lambda1().ln() + self.problem.variance().ln();
        let sums = Terms::new(self, method).ln_sums(self.problem.variance());
        Ok(sums.into_iter().map(|sum| sum + ln_source).collect())
    }

    /// The step size with the smallest bound; none where the bound is below 1 for no η that f64 can hold.
    ///
    /// It is η₂(K) of the remark after the theorem as well: ρ falls on (0, η₂], so that every η in \[η₁, η₂\] has a rate of at most ρ(η₁, K).
    pub fn best_step_size(&self) -> Option<ProvedStep> {
        let to_eta = |shift: f64| 1.0 / (1.0 + shift);
        let BestShift { shift, .. } =
            minimise_over_shift(self.problem.lambda1(), |shift| self.ln_rate(to_eta(shift)));
        let eta = to_eta(shift);
        let rate = self.literal(Method::VrHbPower { eta });
        (rate.ln_rate < 0.0).then_some(ProvedStep { eta, rate })
    }

    /// η̄(K) of Lemma 3: the largest step up to which the bound is below 1, by bisection to 12 digits; none where there is no such step that f64 can
    /// hold.
    pub fn largest_step_size(&self) -> Option<f64> {
        /// Steps of the search, and halvings of one of them.
        const FACTOR: f64 = 1.1;
        const HALVINGS: usize = 40;
        let mut below = self.best_step_size()?.eta;
        let mut above = below;
        while self.ln_rate(above) < 0.0 {
            if above >= 1.0 {
                return Some(1.0);
            }
            (below, above) = (above, (FACTOR * above).min(1.0));
        }
        for _ in 0..HALVINGS {
            let middle = (below * above).sqrt();
            if self.ln_rate(middle) < 0.0 { below = middle } else { above = middle }
        }
        Some(below)
    }

    fn ln_rate(&self, eta: f64) -> f64 {
        self.literal(Method::VrHbPower { eta }).ln_rate
    }

    fn literal(&self, method: Method) -> LiteralRate {
        let (problem, m) = (&self.problem, self.problem.epoch());
        let separation = Separation::new(problem, method);
        let ln_g = separation.ln_g(m);
        let k = problem.variance();
        if k == 0.0 {
            return LiteralRate { ln_g, ln_h: f64::NEG_INFINITY, ln_rate: ln_g };
        }
        let ln_h = Terms::new(self, method).ln_h(k);
        let deficit = separation.g_minus_one(m);
        let ln_rate =
            if deficit > -0.5 && ln_h < 0.0 { (deficit + ln_h.exp()).ln_1p() } else { ln_add(ln_g, ln_h) };
        LiteralRate { ln_g, ln_h, ln_rate }
    }
}

fn check_step(method: Method) -> Result<(), Error> {
    method.check()?;
    match method {
        Method::VrPca { eta } if eta > 1.0 => {
            let advice = "the proof holds for steps in (0, 1]; scale the data so that such a step is of use, or use the model, which takes any";
            Err(Error::parameter("eta", eta, advice))
        }
        _ => Ok(()),
    }
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
    use crate::theory::bound_terms::norm_squared;
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
    fn steps_up_to_the_largest_contract_and_the_next_does_not() {
        for (l1, l2, k, m, d, c) in [
            (1.0, 0.5, 0.1, 5, 3, 4.0),
            (2.5, 2.4, 1e-6, 12, 10, 2.0),
            (0.3, 0.1, 5.0, 3, 5, 9.0),
            (1.0, 0.9, 1e-9, 2, 3, 1.0),
        ] {
            let bound = LiteralBound::new(Problem::new(l1, l2, k, m).unwrap(), d, c).unwrap();
            let (best, largest) = (bound.best_step_size().unwrap(), bound.largest_step_size().unwrap());
            assert!(best.eta <= largest && largest <= 1.0);
            // Lemma 3: ρ(1, 0) ≤ ρ(η, K) < 1 on all of (0, η̄].
            let lowest =
                LiteralBound::new(Problem::new(l1, l2, 0.0, m).unwrap(), d, c).unwrap().rate(1.0).unwrap();
            for share in (0..400).map(|i| (-0.1 * f64::from(i)).exp()) {
                let ln_rate = bound.rate(share * largest).unwrap().ln_rate;
                assert!(ln_rate < 0.0 && ln_rate >= lowest.ln_rate, "{share:e} of {largest:e}: {ln_rate:e}");
            }
            if largest < 1.0 {
                assert!(bound.rate(largest * (1.0 + 1e-9)).unwrap().ln_rate >= 0.0, "{largest}");
            }
            // The remark: ρ falls up to η₂, so that [η₁, η₂] has the rate of η₁.
            let rates: Vec<f64> = (0..100)
                .map(|i| bound.rate(best.eta * (-0.1 * f64::from(i)).exp()).unwrap().ln_rate)
                .collect();
            assert!(rates.is_sorted_by(|small, large| small < large), "{rates:?}");
            if best.eta < 0.9 {
                assert!(bound.rate(1.1 * best.eta).unwrap().ln_rate > best.rate.ln_rate);
            }
        }
        let exact = LiteralBound::new(Problem::new(1.0, 0.9, 0.0, 50).unwrap(), 10, 2.0).unwrap();
        assert_eq!(exact.largest_step_size(), Some(1.0));
        let long = LiteralBound::new(Problem::new(1.0, 0.9, 0.1, 10_000).unwrap(), 10, 2.0).unwrap();
        assert_eq!(long.largest_step_size(), None);
    }

    #[test]
    fn the_proof_for_vr_pca_needs_a_step_of_at_most_one() {
        let bound = LiteralBound::new(Problem::new(1.0, 0.5, 0.1, 5).unwrap(), 3, 2.0).unwrap();
        assert!(bound.rate_of(Method::VrPca { eta: 1.0 }).is_ok());
        let text = bound.rate_of(Method::VrPca { eta: 1.5 }).unwrap_err().to_string();
        assert!(text.starts_with("eta = 1.5: the proof holds for steps in (0, 1]"), "{text}");
        assert!(bound.polynomial(Method::VrPca { eta: 0.0 }).is_err());
        // VR Power+M is VR HB Power with a full step.
        assert_eq!(bound.rate_of(Method::VrPowerM).unwrap(), bound.rate(1.0).unwrap());
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
