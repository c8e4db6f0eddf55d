//! What the proof of the theorem's bound is made of, for each method, and the polynomial P_{1,m}(K).
//!
//! ```text
//! h        = f η⁴(d−1) Σ_{t=1}^{m−1} q_{m−t−1} P_{1,t}(K) / p_m
//! P_{1,t}  = s λ₁² K Σ_{l=0}^{t−1} r_{t−l−1}(A + aK, b) (B + cK)ˡ
//!
//!            f   s    A                  a     b     B             c      q_j            p_m
//! VR HB      4   16   16(1−η+ηλ₁)²       4η²   2β²   2‖M‖²         8η²c̄   (j+1)²βʲ       p_m(α₁, β)
//! VR-PCA     1   2    2(1+ηλ₁)²          η²    0     2(1+ηλ₁)²     2η²c̄   (1+ηλ₂)²ʲ      (1+ηλ₁)²ᵐ
//! ```
//!
//! A is 8(1−η+ηλ₁)² in print. The row of VR-PCA is the same proof without momentum: Pw_t = P(I + ηC)w_{t−1} + ηP(C_{t−1} − C)Pw_{t−1} gives
//! E‖Pw_t‖² ≤ (2(1+ηλ₁)² + η²K)E‖Pw_{t−1}‖² + 2η²λ₁²E\[‖w_{t−1}‖²/‖w₀‖² Σ(u_kᵀw₀)²\], and ‖I + ηC + η(C_l − C)P‖² ≤ 2(1+ηλ₁)² + 2η²c̄K.
//! All terms are positive, so that sums of logarithms lose nothing.

use super::bound::{BoundConstants, LiteralBound};
use super::{Method, ln_p, ln_q};

/// The row of the table for a method and a step, as logarithms.
pub(super) struct Terms {
    /// ln f η⁴(d−1)s λ₁² − ln p_m.
    pub(super) ln_factor: f64,
    /// A, a and b.
    growth: (f64, f64, f64),
    /// B and c.
    length: (f64, f64),
    /// β or (1+ηλ₂)², and whether q has its (j+1)².
    second: f64,
    momentum: bool,
    m: usize,
}

impl Terms {
    pub(super) fn new(bound: &LiteralBound, method: Method) -> Self {
        let (problem, eta, m) = (bound.problem(), method.eta(), bound.problem().epoch());
        let (lambda1, lambda2, square) = (problem.lambda1(), problem.lambda2(), eta * eta);
        let worst = bound.worst_batch();
        let ln_common = 4.0 * eta.ln() + ((bound.dimension() - 1) as f64).ln() + 2.0 * lambda1.ln();
        if let Method::VrPca { .. } = method {
            let (first, second) = ((1.0 + eta * lambda1).powi(2), (1.0 + eta * lambda2).powi(2));
            return Self {
                ln_factor: ln_common + 2.0_f64.ln() - m as f64 * first.ln(),
                growth: (2.0 * first, square, 0.0),
                length: (2.0 * first, 2.0 * square * worst),
                second,
                momentum: false,
                m,
            };
        }
        let (a1, root_beta) = (1.0 - eta + eta * lambda1, 1.0 - eta + eta * lambda2);
        let beta = root_beta * root_beta;
        let factor = match bound.constants() {
            BoundConstants::Printed => 8.0,
            BoundConstants::Proved => 16.0,
        };
        Self {
            ln_factor: ln_common + 64.0_f64.ln() - ln_p(4.0 * a1 * a1, beta, m),
            growth: (factor * a1 * a1, 4.0 * square, 2.0 * beta * beta),
            length: (2.0 * norm_squared(2.0 * a1, beta), 8.0 * square * worst),
            second: beta,
            momentum: true,
            m,
        }
    }

    /// ln q_j.
    fn ln_q(&self, j: usize) -> f64 {
        if self.momentum { ln_q(4.0 * self.second, self.second, j) } else { j as f64 * self.second.ln() }
    }

    /// ln Σ_{l<t} r_{t−l−1}(B + cK)ˡ for t = 1 … m − 1: P_{1,t} without sλ₁²K.
    pub(super) fn ln_sums(&self, k: f64) -> Vec<f64> {
        let (growth, length) = (self.growth.0 + self.growth.1 * k, self.length.0 + self.length.1 * k);
        // s_{t+1} = r_t + (B + cK)s_t, and r by its recurrence.
        let (mut ln_r_before, mut ln_r, mut ln_s) = (f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY);
        let mut sums = Vec::with_capacity(self.m);
        for _ in 1..self.m {
            ln_s = ln_add(ln_r, length.ln() + ln_s);
            (ln_r_before, ln_r) = (ln_r, ln_add(growth.ln() + ln_r, self.growth.2.ln() + ln_r_before));
            sums.push(ln_s);
        }
        sums
    }

    /// ln h.
    pub(super) fn ln_h(&self, k: f64) -> f64 {
        let sums = self.ln_sums(k);
        let terms = (1..self.m).map(|t| self.ln_q(self.m - t - 1) + sums[t - 1]);
        self.ln_factor + k.ln() + terms.fold(f64::NEG_INFINITY, ln_add)
    }

    /// P_{1,m}, for which h = η⁴P_{1,m}(K).
    pub(super) fn polynomial(&self, eta: f64) -> NoisePolynomial {
        let zero = || vec![f64::NEG_INFINITY; self.m];
        let (mut r_before, mut r, mut s, mut total) = (zero(), zero(), zero(), zero());
        r[0] = 0.0;
        // The same recurrences, coefficient by coefficient: (x + yK) times a polynomial shifts and adds.
        let times = |(x, y): (f64, f64), of: &[f64]| -> Vec<f64> {
            let below = |l: usize| if l == 0 { f64::NEG_INFINITY } else { of[l - 1] };
            (0..of.len()).map(|l| ln_add(x.ln() + of[l], y.ln() + below(l))).collect()
        };
        let plus = |left: &[f64], right: &[f64]| -> Vec<f64> {
            left.iter().zip(right).map(|(x, y)| ln_add(*x, *y)).collect()
        };
        for t in 1..self.m {
            s = plus(&r, &times(self.length, &s));
            let next =
                plus(&times((self.growth.0, self.growth.1), &r), &times((self.growth.2, 0.0), &r_before));
            r_before = std::mem::replace(&mut r, next);
            let ln_q = self.ln_q(self.m - t - 1);
            total.iter_mut().zip(&s).for_each(|(total, s)| *total = ln_add(*total, ln_q + s));
        }
        total.pop(); // degree m − 1 at most, of which one is the common K
        let ln_factor = self.ln_factor - 4.0 * eta.ln();
        NoisePolynomial { ln_coefficients: total.iter().map(|x| x + ln_factor).collect() }
    }
}

/// P_{1,m}(K) = Σ_{l=1}^{m−1} c_l Kˡ with positive coefficients, kept as logarithms.
///
/// ```
/// use hbpca::theory::{LiteralBound, Method, Problem};
/// let bound = LiteralBound::new(Problem::new(1.0, 0.5, 0.1, 5)?, 3, 4.0)?;
/// let method = Method::VrHbPower { eta: 0.2 };
/// let polynomial = bound.polynomial(method)?;
/// assert_eq!(polynomial.degree(), 4);
/// let ln_h = bound.rate_of(method)?.ln_h;
/// assert!((4.0 * 0.2_f64.ln() + polynomial.ln_at(0.1) - ln_h).abs() < 1e-12);
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NoisePolynomial {
    /// ln c₁, ln c₂, …
    ln_coefficients: Vec<f64>,
}

impl NoisePolynomial {
    /// Its degree, m − 1.
    pub fn degree(&self) -> usize {
        self.ln_coefficients.len()
    }

    /// ln c_l for l = 1 … m − 1; −∞ for others.
    pub fn ln_coefficient(&self, l: usize) -> f64 {
        l.checked_sub(1).and_then(|l| self.ln_coefficients.get(l)).copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// ln P_{1,m}(K); −∞ for K = 0.
    pub fn ln_at(&self, k: f64) -> f64 {
        let terms = self.ln_coefficients.iter().zip(1..).map(|(ln_c, l)| ln_c + f64::from(l) * k.ln());
        terms.fold(f64::NEG_INFINITY, ln_add)
    }
}

/// ‖[x, −β; 1, 0]‖², the larger root of σ² − (x² + β² + 1)σ + β² = 0. The norm of the block matrix M is that of its block
/// with the largest x = 2(1−η+ηλ₁).
pub(super) fn norm_squared(x: f64, beta: f64) -> f64 {
    let sum = x * x + beta * beta + 1.0;
    f64::midpoint(sum, ((sum - 2.0 * beta) * (sum + 2.0 * beta)).sqrt())
}

/// ln(eᵃ + eᵇ).
pub(super) fn ln_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::{Problem, p, q, r};

    fn bound(m: usize) -> LiteralBound {
        LiteralBound::new(Problem::new(1.2, 0.7, 0.05, m).unwrap(), 4, 3.0).unwrap()
    }

    #[test]
    fn shortest_epochs_have_their_coefficients_by_hand() {
        let (l1, l2, eta, c_bar) = (1.2, 0.7, 0.3, 3.0);
        let (a1, b) = (1.0 - eta + eta * l1, f64::powi(1.0 - eta + eta * l2, 2));
        let method = Method::VrHbPower { eta };
        // m = 2: one batch, s₁ = 1. m = 3: q₁s₁ + q₀s₂ with q₁ = 4β, s₂ = r₁ + B + cK, r₁ = A + aK.
        let two = bound(2).polynomial(method).unwrap();
        let want = 64.0 * 3.0 * l1 * l1 / p(4.0 * a1 * a1, b, 2);
        assert_eq!(two.degree(), 1);
        assert!((two.ln_coefficient(1) - want.ln()).abs() < 1e-13);
        let three = bound(3).polynomial(method).unwrap();
        let scale = 64.0 * 3.0 * l1 * l1 / p(4.0 * a1 * a1, b, 3);
        let norm = norm_squared(2.0 * a1, b);
        let first = scale * (4.0 * b + 16.0 * a1 * a1 + 2.0 * norm);
        let second = scale * (4.0 * eta * eta + 8.0 * eta * eta * c_bar);
        assert!((three.ln_coefficient(1) - first.ln()).abs() < 1e-13);
        assert!((three.ln_coefficient(2) - second.ln()).abs() < 1e-13);
        assert_eq!((three.degree(), three.ln_coefficient(3)), (2, f64::NEG_INFINITY));
    }

    #[test]
    fn polynomial_gives_h_for_any_variance() {
        for (m, eta) in [(2, 1.0), (3, 0.1), (8, 0.4), (120, 1e-3)] {
            for method in [Method::VrHbPower { eta }, Method::VrPca { eta }] {
                let polynomial = bound(m).polynomial(method).unwrap();
                for k in [1e-6, 0.3, 40.0] {
                    let other = LiteralBound::new(Problem::new(1.2, 0.7, k, m).unwrap(), 4, 3.0).unwrap();
                    let ln_h = other.rate_of(method).unwrap().ln_h;
                    let found = 4.0 * eta.ln() + polynomial.ln_at(k);
                    // Thousands of sums of logarithms of a few hundred.
                    assert!((found - ln_h).abs() < 1e-10, "{method:?} m = {m}, K = {k}: {found} {ln_h}");
                }
            }
        }
    }

    #[test]
    fn vr_pca_has_the_formula_of_its_row() {
        let (l1, l2, k, m, d, c_bar) = (1.2, 0.7, 0.05, 6, 4, 3.0);
        for eta in [1e-3, 0.2, 1.0] {
            let (first, second) = (f64::powi(1.0 + eta * l1, 2), f64::powi(1.0 + eta * l2, 2));
            let alpha = 2.0 * first + eta * eta * k;
            let length = 2.0 * first + 2.0 * eta * eta * c_bar * k;
            let p1 = |t: usize| -> f64 {
                let sum: f64 = (0..t).map(|l| r(alpha, 0.0, t - l - 1) * length.powf(l as f64)).sum();
                2.0 * l1 * l1 * k * sum
            };
            let sum: f64 = (1..m).map(|t| second.powf((m - t - 1) as f64) * p1(t)).sum();
            let h = eta.powi(4) * f64::from(d - 1) * sum / first.powf(m as f64);
            let rate = bound(m).rate_of(Method::VrPca { eta }).unwrap();
            assert!((rate.ln_h.exp() / h - 1.0).abs() < 1e-12, "{} {h}", rate.ln_h.exp());
            let rho = (second / first).powf(m as f64) + h;
            assert!((rate.ln_rate.exp() / rho - 1.0).abs() < 1e-12);
        }
        // q of this row is no Chebyshev polynomial.
        assert!((q(4.0, 1.0, 3) - 16.0).abs() < 1e-12);
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
}
