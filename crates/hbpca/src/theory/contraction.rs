//! A sharp model of what one epoch does to the error when the error is small.
//!
//! **Derivation.** Let w₀ = u₁ + φv with a small φ and a unit vector v ⊥ u₁. Lemma 1 gives, for every k ≥ 2,
//!
//! ```text
//! E(u_kᵀw_t)² = p_t(α_k)φ²v_k² + 4η² Σ_{s=1}^{t−1} q_{t−s−1}(α_k) E[w_sᵀPM_kPw_s],   P = I − w₀w₀ᵀ/‖w₀‖².
//! ```
//!
//! The mean of u_kᵀw_t is c_t(α_k)·φv_k with c_t = √p_t and its Chebyshev sign, that of u₁ᵀw_t is c_t(α₁). P removes
//! c_t(α₁)w₀ up to O(φ²), so that the mean of Pw_t is φ Σ_k (c_t(α_k) − c_t(α₁))v_k u_k, and the noise adds its own
//! square. Because Σ_k M_k ⪯ (C_t−C)², whose mean has norm K, and q(α_k) ≤ q(α₂), e_t = E‖Pw_t‖²/φ² obeys
//!
//! ```text
//! e_t ≤ Σ_k v_k²(c_t(α₁) − c_t(α_k))² + 4η²K Σ_{s=1}^{t−1} q_{t−s−1}(α₂)e_s,
//! ρ   ≤ [p_m(α₂) + 4η²K Σ_{s=1}^{m−1} q_{m−s−1}(α₂)e_s] / p_m(α₁),
//! ```
//!
//! to leading order in φ. With v = u₂ the first term is (√p_t(α₁) − √p_t(α₂))², and both lines become equalities when
//! λ₂ = … = λ_d and the noise of Pw_t has variance K in the directions orthogonal to u₁; otherwise the model is above the
//! truth. [`ErrorDirection`] says which v is meant.
//!
//! **In O(m) without overflow.** Divide step t by Gᵗ, √G = 1−η+ηλ₁ + √((1−η+ηλ₁)² − β), and put ω = β/G = e^{−2δ}:
//! √p_t(α₁) becomes (1 + ωᵗ)/2, √p_t(α₂) becomes ω^{t/2}, their difference (1 − ω^{t/2})²/2, and q_j(α₂) = (j+1)²βʲ lets the
//! sum N_t = Σ(t−s)²ω^{t−s−1}e_s run on three positive accumulators S⁽ⁱ⁾_t = Σ(t−s)ⁱω^{t−s−1}e_s:
//!
//! ```text
//! S⁽⁰⁾₊ = ωS⁽⁰⁾ + e,   S⁽¹⁾₊ = ω(S⁽¹⁾ + S⁽⁰⁾) + e,   S⁽²⁾₊ = ω(S⁽²⁾ + 2S⁽¹⁾ + S⁽⁰⁾) + e.
//! ```
//!
//! **VR-PCA** is the same with c_t(λ) = (1+ηλ)ᵗ, q_t = (1+ηλ)^{2t} and η² in place of 4η²: one accumulator.

use super::rates::Separation;
use super::{Method, Problem};
use crate::Error;

/// Which direction v the error w₀ − u₁ ∝ v is taken to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorDirection {
    /// v = u₂, where the error of a converging method ends up.
    #[default]
    Second,
    /// The worst v for any spectrum below λ₂: an upper bound, to leading order in the angle, for every start. Over
    /// λ_k in \[0, λ₂\] the mean of Pw_t is largest where cos(tφ_k) is smallest, cos(min(tφ₀, π)) with
    /// cos φ₀ = (1−η)/(1−η+ηλ₂).
    Worst,
}

/// The modelled contraction of Σ_{k≥2}E(u_kᵀw)²/E(u₁ᵀw)² over one epoch, small angles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contraction {
    /// The part without noise, [`Problem::g`].
    pub g: f64,
    /// The part that the noise of the batches adds.
    pub h: f64,
    /// ln(g + h), accurate also where the rate is close to 1; +∞ where the noise overflows.
    pub ln_rate: f64,
}

impl Contraction {
    pub(super) fn new(separation: Separation, m: usize, h: f64) -> Self {
        // Near 1 from g − 1, near 0 from ln g: each form is accurate where the other cancels.
        let ln_g = separation.ln_g(m);
        let deficit = separation.g_minus_one(m);
        let ln_rate = if deficit > -0.5 { (deficit + h).ln_1p() } else { (ln_g.exp() + h).ln() };
        let ln_rate = if h == 0.0 { ln_g } else { ln_rate };
        Self { g: ln_g.exp(), h, ln_rate }
    }

    /// ρ = g + h. Below 1 the method converges; 1/ln(1/ρ) epochs win a factor e.
    pub fn rate(&self) -> f64 {
        self.g + self.h
    }
}

impl Problem {
    /// The modelled contraction of one epoch whose error lies along u₂; O(m).
    ///
    /// ```
    /// use hbpca::theory::{Method, Problem};
    /// let problem = Problem::new(1.0, 0.95, 0.02, 20)?;
    /// let small = problem.contraction(Method::VrHbPower { eta: 0.1 })?;
    /// let large = problem.contraction(Method::VrHbPower { eta: 0.9 })?;
    /// assert!(large.g < small.g && large.h > small.h); // the trade that the step size makes
    /// # Ok::<(), hbpca::Error>(())
    /// ```
    ///
    /// # Errors
    /// For a step outside the range of the method.
    pub fn contraction(&self, method: Method) -> Result<Contraction, Error> {
        self.contraction_from(method, ErrorDirection::Second)
    }

    /// The same for another direction of the error.
    ///
    /// # Errors
    /// For a step outside the range of the method.
    pub fn contraction_from(&self, method: Method, direction: ErrorDirection) -> Result<Contraction, Error> {
        method.check()?;
        Ok(self.model(method, direction))
    }

    /// [`contraction_from`](Self::contraction_from) for a step that is known to be in range.
    pub(super) fn model(&self, method: Method, direction: ErrorDirection) -> Contraction {
        let separation = Separation::new(self, method);
        let h = if self.variance() == 0.0 {
            0.0
        } else if separation.momentum {
            self.noise_with_momentum(method, separation, direction)
        } else {
            self.noise_without_momentum(method, separation, direction)
        };
        Contraction::new(separation, self.epoch(), h)
    }

    fn noise_with_momentum(&self, method: Method, s: Separation, direction: ErrorDirection) -> f64 {
        let eta = method.eta();
        let kappa = (2.0 * eta * self.variance().sqrt() / s.growth).powi(2);
        if kappa == f64::INFINITY {
            return kappa;
        }
        let omega = (-2.0 * s.delta).exp();
        // 1 − cos φ₀ = ηλ₂/(1−η+ηλ₂).
        let one_minus_cos = match direction {
            ErrorDirection::Second => 0.0,
            ErrorDirection::Worst if self.lambda2() == 0.0 => 0.0,
            ErrorDirection::Worst => eta * self.lambda2() / (1.0 - eta + eta * self.lambda2()),
        };
        let phi0 = 2.0 * (one_minus_cos / 2.0).sqrt().asin();
        let (mut s0, mut s1, mut s2) = (0.0, 0.0, 0.0);
        for t in 1..self.epoch() {
            let t = t as f64;
            let second = 0.5 * (-t * s.delta).exp_m1().powi(2);
            // ω^{t/2}(1 − cos θ) = 2ω^{t/2}sin²(θ/2), θ = min(tφ₀, π).
            let further =
                2.0 * (-t * s.delta).exp() * (0.5 * (t * phi0).min(std::f64::consts::PI)).sin().powi(2);
            let e = (second + further).powi(2) + kappa * s2;
            s2 = omega * (s2 + 2.0 * s1 + s0) + e;
            s1 = omega * (s1 + s0) + e;
            s0 = omega * s0 + e;
            if s2 == f64::INFINITY {
                return s2;
            }
        }
        let leading = 0.5 * (1.0 + (-2.0 * self.epoch() as f64 * s.delta).exp());
        kappa * s2 / (leading * leading)
    }

    fn noise_without_momentum(&self, method: Method, s: Separation, direction: ErrorDirection) -> f64 {
        let eta = method.eta();
        let kappa = (eta * self.variance().sqrt() / s.growth).powi(2);
        if kappa == f64::INFINITY {
            return kappa;
        }
        let omega = (-2.0 * s.delta).exp();
        // c_t(λ_k)/c_t(λ₁) = e^{−tδ_k}, smallest for λ_k = 0.
        let delta = match direction {
            ErrorDirection::Second => s.delta,
            ErrorDirection::Worst => (eta * self.lambda1()).ln_1p(),
        };
        let mut sum = 0.0;
        for t in 1..self.epoch() {
            let e = (-(t as f64) * delta).exp_m1().powi(2) + kappa * sum;
            sum = omega * sum + e;
            if sum == f64::INFINITY {
                return sum;
            }
        }
        kappa * sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::{p, q};
    use proptest::prelude::*;

    /// The model as derived: quadratic cost, no scaling, polynomials from their closed forms.
    fn quadratic(problem: &Problem, method: Method, source: impl Fn(usize) -> f64) -> f64 {
        let (eta, m) = (method.eta(), problem.epoch());
        let (l1, l2) = (problem.lambda1(), problem.lambda2());
        let plain = |lambda: f64, t: usize| (1.0 + eta * lambda).powf(2.0 * t as f64);
        let (b, factor) = ((1.0 - eta + eta * l2).powi(2), 4.0 * eta * eta * problem.variance());
        let alpha = |lambda: f64| 4.0 * (1.0 - eta + eta * lambda).powi(2);
        let momentum = !matches!(method, Method::VrPca { .. });
        let factor = if momentum { factor } else { factor / 4.0 };
        let pt = |l: f64, t: usize| if momentum { p(alpha(l), b, t) } else { plain(l, t) };
        let qt = |t: usize| if momentum { q(4.0 * b, b, t) } else { plain(l2, t) };
        let mut e = vec![0.0];
        for t in 1..=m {
            let noise: f64 = (1..t).map(|s| qt(t - s - 1) * e[s]).sum();
            if t == m {
                return (pt(l2, m) + factor * noise) / pt(l1, m);
            }
            e.push(source(t) + factor * noise);
        }
        unreachable!()
    }

    proptest! {
        #[test]
        fn linear_form_equals_the_quadratic_one(
            lambda1 in 0.1..4.0_f64, share in 0.0..0.99_f64, k in 0.0..0.5_f64, m in 2_usize..40, eta in 0.01..1.0_f64,
        ) {
            let problem = Problem::new(lambda1, lambda1 * share, k, m).unwrap();
            let (l1, l2) = (lambda1, lambda1 * share);
            let b = (1.0 - eta + eta * l2).powi(2);
            let hb = Method::VrHbPower { eta };
            let root_p = |l: f64, t| p(4.0 * (1.0 - eta + eta * l).powi(2), b, t).sqrt();
            let root_plain = |l: f64, t: usize| (1.0 + eta * l).powf(t as f64);
            // Worst direction: λ_k = 0 in c_t(α_k) = √βᵗ cos(tφ₀), until tφ₀ reaches π.
            let phi0 = ((1.0 - eta) / (1.0 - eta + eta * l2)).acos();
            let lowest = |t: usize| b.powf(t as f64 / 2.0) * (t as f64 * phi0).min(std::f64::consts::PI).cos();
            // √p carries t·ε, its difference that over (1−ω^{t/2})²; with a relative gap of 1 % at least and η ≥ 1 %
            // that is below 10⁵ε at t = 1, and less after.
            let tolerance = 1e-8;
            let pca = Method::VrPca { eta };
            let cases = [
                (hb, ErrorDirection::Second, quadratic(&problem, hb, |t| (root_p(l1, t) - root_p(l2, t)).powi(2))),
                (hb, ErrorDirection::Worst, quadratic(&problem, hb, |t| (root_p(l1, t) - lowest(t)).powi(2))),
                (pca, ErrorDirection::Second, quadratic(&problem, pca, |t| (root_plain(l1, t) - root_plain(l2, t)).powi(2))),
                (pca, ErrorDirection::Worst, quadratic(&problem, pca, |t| (root_plain(l1, t) - 1.0).powi(2))),
            ];
            for (method, direction, want) in cases {
                let model = problem.contraction_from(method, direction).unwrap();
                prop_assert!((model.rate() - want).abs() <= tolerance * want, "{method:?} {direction:?} {model:?} {want}");
                prop_assert!((model.ln_rate.exp() - model.rate()).abs() <= 1e-12 * model.rate());
            }
        }

        #[test]
        fn worst_direction_is_an_upper_bound(
            lambda1 in 0.1..4.0_f64, share in 0.0..0.99_f64, k in 0.0..0.5_f64, m in 2_usize..40, eta in 0.01..1.0_f64,
        ) {
            let problem = Problem::new(lambda1, lambda1 * share, k, m).unwrap();
            for method in [Method::VrHbPower { eta }, Method::VrPca { eta }] {
                let worst = problem.contraction_from(method, ErrorDirection::Worst).unwrap();
                prop_assert!(worst.h >= problem.contraction(method).unwrap().h);
            }
        }
    }

    #[test]
    fn without_noise_the_rate_is_g() {
        let problem = Problem::new(1.0, 0.8, 0.0, 9).unwrap();
        let model = problem.contraction(Method::VrHbPower { eta: 0.4 }).unwrap();
        assert_eq!((model.h, model.rate()), (0.0, problem.g(Method::VrHbPower { eta: 0.4 }).unwrap()));
    }

    #[test]
    fn long_epochs_stay_in_range_or_say_infinity() {
        let calm = Problem::new(1.0, 0.999, 1e-9, 10_000).unwrap();
        let model = calm.contraction(Method::VrHbPower { eta: 0.01 }).unwrap();
        assert!(model.rate() < 1.0 && model.ln_rate.is_finite(), "{model:?}");
        let wild = Problem::new(1.0, 0.999, 10.0, 10_000).unwrap();
        for method in [Method::VrPowerM, Method::VrPca { eta: 1.0 }] {
            let model = wild.contraction(method).unwrap();
            assert_eq!((model.h, model.ln_rate), (f64::INFINITY, f64::INFINITY), "{method:?}");
        }
        // λ₂ = 0 and η = 1: ω = 0, nothing but the noise of the last step.
        let zero = Problem::new(1.0, 0.0, 0.25, 5).unwrap();
        let model = zero.contraction(Method::VrPowerM).unwrap();
        assert!(model.g == 0.0 && model.h > 0.0 && model.h.is_finite(), "{model:?}");
    }

    #[test]
    fn bad_steps_are_refused() {
        let problem = Problem::new(1.0, 0.8, 0.1, 9).unwrap();
        assert!(problem.contraction(Method::VrHbPower { eta: 2.0 }).is_err());
    }
}
