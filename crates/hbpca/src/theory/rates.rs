//! g(η), the contraction of one epoch without noise, for the three methods.
//!
//! ```text
//! VR-PCA        g = ((1+ηλ₂)/(1+ηλ₁))^{2m}
//! VR Power+M    g = p_m(4λ₂², λ₂²)/p_m(4λ₁², λ₂²) = sech²(m·arcosh(λ₁/λ₂))
//! VR HB Power   g = p_m(α₂, β)/p_m(α₁, β) = sech²(m·arcosh((1−η+ηλ₁)/(1−η+ηλ₂)))
//! ```
//!
//! The last follows from p_t = βᵗ cosh²(tφ), cosh φ = √α/(2√β) (see `recurrences`), and is the paper's quotient of
//! m-th powers in a form that neither overflows nor cancels. Everything is said by two numbers a method,
//! δ and the growth of the leading component; here G = growth².

use super::recurrences::arcosh_one_plus;
use super::{Method, Problem};
use crate::Error;

/// How fast a method separates u₁ from u₂ and amplifies u₁, a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Separation {
    /// δ: every step divides the error by e^δ (twice that in squares), apart from start-up.
    pub(super) delta: f64,
    /// √G: the asymptotic factor of u₁ᵀw a step.
    pub(super) growth: f64,
    pub(super) momentum: bool,
}

impl Separation {
    pub(super) fn new(problem: &Problem, method: Method) -> Self {
        let (eta, lambda1, lambda2) = (method.eta(), problem.lambda1(), problem.lambda2());
        let separation = eta * problem.gap();
        if let Method::VrPca { .. } = method {
            let delta = (separation / (1.0 + eta * lambda2)).ln_1p();
            return Self { delta, growth: 1.0 + eta * lambda1, momentum: false };
        }
        let (a1, root_beta) = (1.0 - eta + eta * lambda1, 1.0 - eta + eta * lambda2);
        // a₁² − β = ηΔ(2 − 2η + η(λ₁+λ₂)): no cancellation. λ₂ = 0 and η = 1 give δ = ∞.
        let root = (2.0 * (1.0 - eta) + eta * (lambda1 + lambda2)).sqrt() * separation.sqrt();
        Self { delta: arcosh_one_plus(separation / root_beta), growth: a1 + root, momentum: true }
    }

    pub(super) fn ln_g(&self, m: usize) -> f64 {
        let x = m as f64 * self.delta;
        if !self.momentum {
            return -2.0 * x;
        }
        if x < 1.0 {
            // cosh²x = 1 + sinh²x keeps ln g accurate where g is close to 1.
            return -x.sinh().powi(2).ln_1p();
        }
        -2.0 * (x - std::f64::consts::LN_2 + (-2.0 * x).exp().ln_1p())
    }

    /// g − 1, accurate where g is close to 1.
    pub(super) fn g_minus_one(&self, m: usize) -> f64 {
        let x = m as f64 * self.delta;
        if self.momentum { -x.tanh().powi(2) } else { (-2.0 * x).exp_m1() }
    }
}

impl Problem {
    /// g: the factor by which one epoch without noise (K = 0) multiplies Σ_{k≥2}(u_kᵀw)²/(u₁ᵀw)² when the error
    /// lies along u₂. Between 0 and 1, decreasing in η.
    ///
    /// ```
    /// use hbpca::theory::{Method, Problem};
    /// let problem = Problem::new(1.0, 0.99, 0.0, 50)?;
    /// let eta = 0.5;
    /// let (plain, momentum) = (problem.g(Method::VrPca { eta })?, problem.g(Method::VrHbPower { eta })?);
    /// assert!(momentum < 1e-2 * plain); // acceleration: √Δ instead of Δ in the exponent
    /// # Ok::<(), hbpca::Error>(())
    /// ```
    ///
    /// # Errors
    /// For a step outside the range of the method.
    pub fn g(&self, method: Method) -> Result<f64, Error> {
        Ok(self.ln_g(method)?.exp())
    }

    /// ln g, finite where g underflows; −∞ where g = 0 (λ₂ = 0 and a full step).
    ///
    /// # Errors
    /// For a step outside the range of the method.
    pub fn ln_g(&self, method: Method) -> Result<f64, Error> {
        method.check()?;
        Ok(Separation::new(self, method).ln_g(self.epoch()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::{ln_p, p};
    use proptest::prelude::*;

    fn hb(eta: f64) -> Method {
        Method::VrHbPower { eta }
    }

    #[test]
    fn g_is_the_quotient_of_the_polynomials_and_of_the_table() {
        for (lambda1, lambda2, m) in [(1.0, 0.5, 5), (2.5, 2.4, 20), (0.3, 0.29, 12), (4.0, 0.0, 6)] {
            let problem = Problem::new(lambda1, lambda2, 0.0, m).unwrap();
            for eta in [0.01, 0.3, 0.9] {
                let (a1, b) = (1.0 - eta + eta * lambda1, 1.0 - eta + eta * lambda2);
                let g = problem.g(hb(eta)).unwrap();
                let quotient = p(4.0 * b * b, b * b, m) / p(4.0 * a1 * a1, b * b, m);
                let root =
                    (2.0 - 2.0 * eta + eta * (lambda1 + lambda2)).sqrt() * (eta * (lambda1 - lambda2)).sqrt();
                let power = m as f64;
                let table =
                    (2.0 * b.powf(power) / ((a1 + root).powf(power) + (a1 - root).powf(power))).powi(2);
                // Both references lose ε·m times the conditioning of arcosh at a₁/b, at most 1/√(a₁/b − 1).
                let tolerance = 64.0 * f64::EPSILON * m as f64 / (a1 / b - 1.0).sqrt().min(1.0);
                assert!((g / quotient - 1.0).abs() < tolerance, "{g} {quotient}");
                assert!((g / table - 1.0).abs() < tolerance, "{g} {table}");
            }
        }
    }

    #[test]
    fn vr_power_m_is_the_full_step_and_vr_pca_its_own_formula() {
        let problem = Problem::new(2.0, 1.5, 0.3, 7).unwrap();
        assert_eq!(
            problem.ln_g(Method::VrPowerM).unwrap().to_bits(),
            problem.ln_g(hb(1.0)).unwrap().to_bits()
        );
        let table = ((1.0 + 0.2 * 1.5) / (1.0 + 0.2 * 2.0_f64)).powi(14);
        let g = problem.g(Method::VrPca { eta: 0.2 }).unwrap();
        assert!((g / table - 1.0).abs() < 32.0 * f64::EPSILON, "{g} {table}");
    }

    #[test]
    fn long_epochs_and_tiny_gaps_stay_in_range() {
        // m = 10⁴ and a wide gap: g underflows, ln g does not.
        let wide = Problem::new(1.0, 0.1, 0.0, 10_000).unwrap();
        let want = -2.0 * (10_000.0 * 10.0_f64.acosh() - std::f64::consts::LN_2);
        let ln_g = wide.ln_g(hb(1.0)).unwrap();
        assert!((ln_g / want - 1.0).abs() < 8.0 * f64::EPSILON, "{ln_g} {want}");
        // A gap of one unit in the last place: ln g = −m²·2ηΔ to first order, relative error m²Δ.
        let lambda2 = 1.0 - f64::EPSILON;
        let tiny = Problem::new(1.0, lambda2, 0.0, 10_000).unwrap();
        let want = -1e8 * 2.0 * 0.5 * f64::EPSILON;
        let ln_g = tiny.ln_g(hb(0.5)).unwrap();
        assert!((ln_g / want - 1.0).abs() < 1e8 * f64::EPSILON, "{ln_g} {want}");
        // The same numbers as a quotient of p's, in logarithms.
        let (a, b) = (1.0, 0.01);
        let want = ln_p(4.0 * b, b, 10_000) - ln_p(4.0 * a, b, 10_000);
        assert!((wide.ln_g(Method::VrPowerM).unwrap() / want - 1.0).abs() < 1e-12);
    }

    #[test]
    fn without_a_second_eigenvalue_the_full_step_is_exact() {
        let problem = Problem::new(1.0, 0.0, 0.0, 2).unwrap();
        assert_eq!(problem.g(Method::VrPowerM).unwrap().to_bits(), 0);
        assert!(problem.ln_g(Method::VrPowerM).unwrap() < f64::MIN);
    }

    #[test]
    fn the_rate_depends_on_the_gap_relative_to_the_first_eigenvalue() {
        // C → cC leaves every direction of Power+M as it is, and multiplies Δ by c.
        for c in [1e-3, 7.0] {
            let [one, other] = [1.0, c].map(|c| {
                let problem = Problem::new(c, 0.9 * c, 0.0, 20).unwrap();
                problem.ln_g(Method::VrPowerM).unwrap()
            });
            assert!((one / other - 1.0).abs() < 1e-12, "{one} {other}");
        }
    }

    #[test]
    fn slope_at_zero_is_minus_two_m_squared_times_the_gap() {
        for (lambda1, lambda2, m) in [(1.0, 0.9, 10), (2.5, 2.0, 30), (5.0, 0.0, 3)] {
            let problem = Problem::new(lambda1, lambda2, 0.0, m).unwrap();
            let gap = lambda1 - lambda2;
            let slope = -2.0 * (m as f64).powi(2) * gap;
            let eta = 1e-9 / (1.0 + slope.abs() + lambda1);
            let separation = Separation::new(&problem, hb(eta));
            // g(η) − 1 = −tanh²(mδ) with δ² = 2x − x²/3…, x = ηΔ/(1−η+ηλ₂): relative error O(m²ηΔ + η(1+λ₁)).
            let tolerance = (slope.abs() + 2.0 * (1.0 + lambda1)) * eta + 8.0 * f64::EPSILON;
            let quotient = separation.g_minus_one(m) / eta;
            assert!((quotient / slope - 1.0).abs() < tolerance, "{quotient} {slope} {tolerance}");
            // g(0) = 1 by continuity: |g − 1| ≤ |slope|·η.
            assert!((problem.g(hb(eta)).unwrap() - 1.0).abs() <= slope.abs() * eta + f64::EPSILON);
        }
    }

    proptest! {
        #[test]
        fn g_decreases_in_the_step(lambda1 in 0.01..10.0_f64, share in 0.0..0.999_f64, m in 2_usize..200, eta in 1e-6..0.98_f64) {
            let problem = Problem::new(lambda1, lambda1 * share, 0.0, m).unwrap();
            prop_assert!(problem.ln_g(hb(eta * 1.02)).unwrap() < problem.ln_g(hb(eta)).unwrap());
            let pca = |eta| problem.ln_g(Method::VrPca { eta }).unwrap();
            prop_assert!(pca(eta * 1.02) < pca(eta));
        }

        #[test]
        fn g_minus_one_agrees_with_ln_g(lambda1 in 0.01..10.0_f64, share in 0.0..0.999_f64, m in 2_usize..200, eta in 1e-6..1.0_f64) {
            let problem = Problem::new(lambda1, lambda1 * share, 0.0, m).unwrap();
            for method in [hb(eta), Method::VrPca { eta }] {
                let s = Separation::new(&problem, method);
                let (ln_g, minus_one) = (s.ln_g(m), s.g_minus_one(m));
                // Where g is tiny, 1 − tanh² cancels: compare expm1(ln g) instead.
                prop_assert!((ln_g.exp_m1() - minus_one).abs() <= 16.0 * f64::EPSILON * minus_one.abs());
            }
        }
    }

    #[test]
    fn bad_steps_are_refused() {
        let problem = Problem::new(1.0, 0.5, 0.0, 5).unwrap();
        assert!(problem.g(hb(0.0)).is_err() && problem.ln_g(Method::VrPca { eta: -1.0 }).is_err());
    }
}
