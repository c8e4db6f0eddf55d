//! The recurrence polynomials of the analysis, term by term and in closed form.
//!
//! ```text
//! p_t = (α−β)p_{t−1} − β(α−β)p_{t−2} + β³p_{t−3}    p₀ = 1, p₁ = α/4, p₂ = (α/2 − β)²
//! q_t = the same recurrence                          q₀ = 1, q₁ = α,   q₂ = (α − β)²
//! r_t = α r_{t−1} + β r_{t−2}                        r₀ = 1, r₁ = α
//! ```
//!
//! The characteristic roots of the first are β, x², y² with x, y the roots of z² − √α z + β = 0, so that
//! p_t = ((xᵗ + yᵗ)/2)² and q_t = ((xᵗ⁺¹ − yᵗ⁺¹)/(x − y))²: squared Chebyshev polynomials of the first and second
//! kind. With c = √α/(2√β):
//!
//! ```text
//! α < 4β   cos φ = c    p_t = βᵗ cos²(tφ)                q_t = βᵗ sin²((t+1)φ)/sin²φ
//! α = 4β                p_t = βᵗ                         q_t = (t+1)² βᵗ
//! α > 4β   cosh φ = c   p_t = Gᵗ ((1 + e^{−2tφ})/2)²     q_t = Gᵗ ((1 − e^{−2(t+1)φ})/(1 − e^{−2φ}))²
//! ```
//!
//! with G = x² = ((√α + √(α−4β))/2)². φ comes from c − 1 = (α − 4β)/(2√β(√α + 2√β)), whose numerator is exact near
//! α = 4β, so that the three cases join without loss. For r_t the roots have opposite signs; with
//! sinh s = α/(2√β),
//!
//! ```text
//! r_t = βᵗᐟ² cosh((t+1)s)/cosh s  for even t,   βᵗᐟ² sinh((t+1)s)/cosh s  for odd t.
//! ```
//!
//! All functions take α ≥ 0 and β ≥ 0. The logarithms stay finite where the values leave the range of f64; a value
//! that is zero has logarithm −∞.

use std::f64::consts::LN_2;

/// ln p_t(α, β).
///
/// ```
/// use hbpca::theory::{ln_p, p};
/// assert!((p(4.0, 0.5, 3) - ln_p(4.0, 0.5, 3).exp()).abs() < 1e-13);
/// assert!((ln_p(8.0, 2.0, 10_000) - 10_000.0 * 2.0_f64.ln()).abs() < 1e-10); // α = 4β: p_t = βᵗ, here 10³⁰¹⁰
/// ```
pub fn ln_p(alpha: f64, beta: f64, t: usize) -> f64 {
    if t == 0 {
        return 0.0;
    }
    let n = t as f64;
    match Angle::new(alpha, beta) {
        Angle::None => n * beta.ln(),
        Angle::Circular(phi) => n * beta.ln() + 2.0 * (n * phi).cos().abs().ln(),
        Angle::Hyperbolic { phi, ln_growth } => n * ln_growth + 2.0 * ((-2.0 * n * phi).exp().ln_1p() - LN_2),
    }
}

/// ln q_t(α, β).
pub fn ln_q(alpha: f64, beta: f64, t: usize) -> f64 {
    if t == 0 {
        return 0.0;
    }
    let (n, next) = (t as f64, (t + 1) as f64);
    match Angle::new(alpha, beta) {
        Angle::None => n * beta.ln() + 2.0 * next.ln(),
        Angle::Circular(phi) => n * beta.ln() + 2.0 * ((next * phi).sin() / phi.sin()).abs().ln(),
        Angle::Hyperbolic { phi, ln_growth } => {
            let one_minus_power = |k: f64| -(-2.0 * k * phi).exp_m1();
            n * ln_growth + 2.0 * (one_minus_power(next) / one_minus_power(1.0)).ln()
        }
    }
}

/// ln r_t(α, β).
pub fn ln_r(alpha: f64, beta: f64, t: usize) -> f64 {
    if t == 0 {
        return 0.0;
    }
    let (n, next) = (t as f64, (t + 1) as f64);
    if beta == 0.0 {
        return n * alpha.ln();
    }
    // cosh and sinh of (t+1)s are e^{(t+1)s}(1 ± e^{−2(t+1)s})/2.
    let s = (alpha / (2.0 * beta.sqrt())).asinh();
    let power = -2.0 * next * s;
    let numerator = if t.is_multiple_of(2) { power.exp().ln_1p() } else { (-power.exp_m1()).ln() };
    n * (0.5 * beta.ln() + s) + numerator - (-2.0 * s).exp().ln_1p()
}

/// p_t(α, β) in closed form; +∞ or 0 where it leaves the range of f64.
pub fn p(alpha: f64, beta: f64, t: usize) -> f64 {
    ln_p(alpha, beta, t).exp()
}

/// q_t(α, β) in closed form; +∞ or 0 where it leaves the range of f64.
pub fn q(alpha: f64, beta: f64, t: usize) -> f64 {
    ln_q(alpha, beta, t).exp()
}

/// r_t(α, β) in closed form; +∞ or 0 where it leaves the range of f64.
pub fn r(alpha: f64, beta: f64, t: usize) -> f64 {
    ln_r(alpha, beta, t).exp()
}

/// Q(t) = (q_t(4β, β) − q_t(α, β))/βᵗ for 0 ≤ α < 4β, by which the paper proves q_t(α, β) ≤ q_t(4β, β): it is not negative.
///
/// ```
/// use hbpca::theory::q_deficit;
/// let (alpha, beta) = (1.0, 2.0);
/// assert!((q_deficit(alpha, beta, 1) - (4.0 * beta - alpha) / beta).abs() < 1e-13);
/// ```
pub fn q_deficit(alpha: f64, beta: f64, t: usize) -> f64 {
    let next = (t + 1) as f64;
    match Angle::new(alpha, beta) {
        Angle::Circular(phi) => next * next - ((next * phi).sin() / phi.sin()).powi(2),
        Angle::None => 0.0,
        Angle::Hyperbolic { .. } => (next * next) - (ln_q(alpha, beta, t) - t as f64 * beta.ln()).exp(),
    }
}

/// p_t(α, β) by its recurrence, as the paper defines it.
///
/// Its rounding grows like t² near α = 4β, where the three characteristic roots meet: use [`p`] for large t.
pub fn p_by_recurrence(alpha: f64, beta: f64, t: usize) -> f64 {
    three_term(alpha, beta, [1.0, alpha / 4.0, (alpha / 2.0 - beta).powi(2)], t)
}

/// q_t(α, β) by its recurrence, as the paper defines it.
pub fn q_by_recurrence(alpha: f64, beta: f64, t: usize) -> f64 {
    three_term(alpha, beta, [1.0, alpha, (alpha - beta).powi(2)], t)
}

/// r_t(α, β) by its recurrence, as the paper defines it.
pub fn r_by_recurrence(alpha: f64, beta: f64, t: usize) -> f64 {
    let (mut current, mut next) = (1.0, alpha);
    for _ in 0..t {
        (current, next) = (next, alpha * next + beta * current);
    }
    current
}

fn three_term(alpha: f64, beta: f64, first: [f64; 3], t: usize) -> f64 {
    let [mut a, mut b, mut c] = first;
    for _ in 0..t {
        (a, b, c) = (b, c, (alpha - beta) * c - beta * (alpha - beta) * b + beta.powi(3) * a);
    }
    a
}

/// The angle φ of the closed forms.
enum Angle {
    /// α = 4β.
    None,
    /// α < 4β: cos φ = √α/(2√β).
    Circular(f64),
    /// α > 4β: cosh φ = √α/(2√β), and ln G.
    Hyperbolic { phi: f64, ln_growth: f64 },
}

impl Angle {
    fn new(alpha: f64, beta: f64) -> Self {
        let difference = alpha - 4.0 * beta;
        if difference == 0.0 {
            return Self::None;
        }
        let (root_alpha, root_beta) = (alpha.sqrt(), beta.sqrt());
        let x = difference / (root_alpha + 2.0 * root_beta) / (2.0 * root_beta);
        if difference < 0.0 {
            return Self::Circular(2.0 * (-x / 2.0).sqrt().asin());
        }
        let ln_growth = 2.0 * (f64::midpoint(root_alpha, difference.sqrt())).ln();
        Self::Hyperbolic { phi: arcosh_one_plus(x), ln_growth }
    }
}

/// arcosh(1 + x) for x ≥ 0, accurate for tiny x, and +∞ for x = +∞.
pub(super) fn arcosh_one_plus(x: f64) -> f64 {
    // √x·√(2+x), because x(2+x) overflows for x above 10¹⁵⁴.
    (x + x.sqrt() * (2.0 + x).sqrt()).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EPS: f64 = f64::EPSILON;

    /// The recurrences in exact integer arithmetic; p is multiplied by 4.
    fn exact(alpha: i128, beta: i128, t: usize) -> [i128; 3] {
        let run = |first: [i128; 3]| {
            let [mut a, mut b, mut c] = first;
            for _ in 0..t {
                (a, b, c) = (b, c, (alpha - beta) * c - beta * (alpha - beta) * b + beta.pow(3) * a);
            }
            a
        };
        let (mut now, mut next) = (1, alpha);
        for _ in 0..t {
            (now, next) = (next, alpha * next + beta * now);
        }
        // 4p₂ = (α − 2β)².
        [run([4, alpha, (alpha - 2 * beta).pow(2)]), run([1, alpha, (alpha - beta).pow(2)]), now]
    }

    #[test]
    fn closed_forms_equal_the_recurrences_in_exact_integers() {
        for (alpha, beta) in [(9, 2), (8, 2), (7, 2), (1, 2), (0, 2), (5, 0), (4, 1), (100, 3)] {
            for t in 0..=15 {
                let [p4, q_exact, r_exact] = exact(alpha, beta, t).map(|x| x as f64);
                let (a, b) = (alpha as f64, beta as f64);
                // exp(ln x) carries ε·|ln x| and the phase tφ ≤ 4t; oscillating values err relative to their
                // envelopes βᵗ and (t+1)²βᵗ.
                let scale = 8.0 * EPS * (1.0 + t as f64) * (2.0 + a.max(1.0).ln().abs());
                let envelope = b.powf(t as f64);
                assert!(
                    (p(a, b, t) - p4 / 4.0).abs() <= scale * (p4 / 4.0).max(envelope),
                    "p {alpha} {beta} {t}"
                );
                let bound = scale * q_exact.max(envelope * ((t + 1) as f64).powi(2));
                assert!((q(a, b, t) - q_exact).abs() <= bound, "q {alpha} {beta} {t}");
                assert!((r(a, b, t) - r_exact).abs() <= scale * r_exact, "r {alpha} {beta} {t}");
            }
        }
    }

    #[test]
    fn recurrences_in_floating_point_are_exact_on_small_integers() {
        for (alpha, beta) in [(9, 2), (8, 2), (4, 2), (0, 2), (5, 0)] {
            for t in 0..=10 {
                let [p4, q_exact, r_exact] = exact(alpha, beta, t).map(|x| x as f64);
                let (a, b) = (alpha as f64, beta as f64);
                // Quarters of integers below 2⁵¹ are exact.
                assert_eq!(p_by_recurrence(a, b, t).to_bits(), (p4 / 4.0).to_bits());
                assert_eq!(q_by_recurrence(a, b, t).to_bits(), q_exact.to_bits());
                assert_eq!(r_by_recurrence(a, b, t).to_bits(), r_exact.to_bits());
            }
        }
    }

    #[test]
    fn logarithms_survive_ten_thousand_steps() {
        let t = 10_000;
        for (alpha, beta) in [(9.0, 2.0), (8.0, 2.0), (8.0 * (1.0 + 1e-12), 2.0), (1e-3, 1e-5), (4.0, 0.0)] {
            for ln in [ln_p(alpha, beta, t), ln_q(alpha, beta, t), ln_r(alpha, beta, t)] {
                assert!(ln.is_finite(), "{alpha} {beta}: {ln}");
            }
        }
        // β = 0: p_t = αᵗ/4, q_t = r_t = αᵗ.
        let (want, tolerance) = (t as f64 * 4.0_f64.ln(), 4.0 * EPS * t as f64 * 4.0_f64.ln());
        assert!((ln_p(4.0, 0.0, t) - (want - 4.0_f64.ln())).abs() < tolerance);
        assert!((ln_q(4.0, 0.0, t) - want).abs() < tolerance && (ln_r(4.0, 0.0, t) - want).abs() < tolerance);
        assert!(ln_p(0.0, 0.0, 3) < f64::MIN);
        assert_eq!((p(0.0, 0.0, 0), q(0.0, 0.0, 0), r(0.0, 0.0, 0)), (1.0, 1.0, 1.0));
    }

    #[test]
    fn the_three_cases_join_at_alpha_equal_four_beta() {
        // ∂ ln q_t/∂α at α = 4β is ((t+1)² − 1)/(12β), and ∂ ln p_t/∂α is t²/(4β): U_t″ and T_t″ at 1 by Taylor.
        let (beta, t) = (1.0, 50);
        let n = t as f64;
        for step in [1e-9, -1e-9] {
            let alpha = 4.0 * beta + step;
            let (dp, dq) = (n * n / 4.0, ((n + 1.0).powi(2) - 1.0) / 12.0);
            let second_order = (n * n * step).powi(2);
            assert!((ln_p(alpha, beta, t) - dp * step).abs() < second_order + n * EPS, "{step}");
            let ln_q_at = 2.0 * (n + 1.0).ln();
            let rounding = 8.0 * EPS * ln_q_at;
            assert!((ln_q(alpha, beta, t) - ln_q_at - dq * step).abs() < second_order + rounding, "{step}");
        }
    }

    /// How far rounding can carry the three-term recurrence: each step errs by 8ε of the size of its terms, and
    /// an error made at step s reaches step t through the recurrence's own impulse response.
    fn recurrence_error(alpha: f64, beta: f64, t: usize, terms: impl Fn(f64, f64, usize) -> f64) -> f64 {
        let impulse: Vec<f64> = {
            let mut f = vec![1.0, alpha - beta, (alpha - beta).powi(2) - beta * (alpha - beta)];
            for j in 3..=t {
                f.push(
                    (alpha - beta) * f[j - 1] - beta * (alpha - beta) * f[j - 2] + beta.powi(3) * f[j - 3],
                );
            }
            f
        };
        (1..=t)
            .map(|s| {
                let at = |back: usize| if s >= back { terms(alpha, beta, s - back).abs() } else { 0.0 };
                let size = at(0) + (alpha - beta).abs() * (at(1) + beta * at(2)) + beta.powi(3) * at(3);
                // The differences α − β and α/2 − β themselves are rounded, relative to their operands.
                8.0 * EPS * (size + (alpha + beta) * (at(1) + beta * at(2))) * (impulse[t - s].abs() + EPS)
            })
            .sum::<f64>()
            * 2.0
    }

    proptest! {
        #[test]
        fn closed_form_equals_recurrence(alpha in 0.0..8.0_f64, beta in 0.0..2.0_f64, t in 0_usize..60) {
            // Closed form: ε·(|ln x| + phase), relative to the envelope.
            let growth = ((t + 1) as f64) * 16.0 * EPS;
            let envelope = beta.powf(t as f64);
            let (by_steps, closed) = (p_by_recurrence(alpha, beta, t), p(alpha, beta, t));
            let tolerance = recurrence_error(alpha, beta, t, p) + growth * closed.max(envelope) + 1e-300;
            prop_assert!((by_steps - closed).abs() <= tolerance, "p {by_steps} {closed} {tolerance}");
            let (by_steps, closed) = (q_by_recurrence(alpha, beta, t), q(alpha, beta, t));
            let q_envelope = envelope * ((t + 1) as f64).powi(2);
            let tolerance = recurrence_error(alpha, beta, t, q) + growth * closed.max(q_envelope) + 1e-300;
            prop_assert!((by_steps - closed).abs() <= tolerance, "q {by_steps} {closed} {tolerance}");
            // All terms of r are positive: the recurrence is accurate to 3ε a step.
            let (by_steps, closed) = (r_by_recurrence(alpha, beta, t), r(alpha, beta, t));
            prop_assert!((by_steps - closed).abs() <= 2.0 * growth * by_steps + 1e-300, "r {by_steps} {closed}");
        }

        #[test]
        fn below_four_beta_both_stay_below_their_values_there(beta in 0.01..2.0_f64, share in 0.0..1.0_f64, t in 0_usize..2000) {
            let alpha = 4.0 * beta * share;
            let rounding = (t + 1) as f64 * 16.0 * EPS * (1.0 + beta.ln().abs());
            prop_assert!(ln_p(alpha, beta, t) <= ln_p(4.0 * beta, beta, t) + rounding);
            prop_assert!(ln_q(alpha, beta, t) <= ln_q(4.0 * beta, beta, t) + rounding);
        }

        #[test]
        fn above_four_beta_p_is_strictly_larger(beta in 0.01..2.0_f64, excess in 1e-6..10.0_f64, t in 1_usize..2000) {
            let alpha = 4.0 * beta * (1.0 + excess);
            prop_assert!(ln_p(alpha, beta, t) > ln_p(4.0 * beta, beta, t));
            prop_assert!(ln_q(alpha, beta, t) > ln_q(4.0 * beta, beta, t));
        }
    }

    #[test]
    fn q_falls_short_by_the_values_of_the_paper_and_its_second_difference() {
        for (alpha, beta) in [(0.0, 1.0), (0.3, 0.5), (3.9, 1.0), (1.0, 2.0), (7.5, 2.0)] {
            let gap = 4.0 * beta - alpha;
            let printed = [
                0.0,
                gap / beta,
                gap * (2.0 * beta + alpha) / (beta * beta),
                (alpha * alpha + 4.0 * beta * beta) * gap / f64::powi(beta, 3),
            ];
            for (t, want) in printed.into_iter().enumerate() {
                // (t + 1)² less a number of that size.
                assert!((q_deficit(alpha, beta, t) - want).abs() < 256.0 * EPS, "Q({t}) at {alpha}, {beta}");
            }
            // cos θ = (α − 2β)/2β; cos φ = 1 − α/2β and sin φ = −sin θ, so that φ = θ + π.
            let theta = ((alpha - 2.0 * beta) / (2.0 * beta)).acos();
            for t in 2..200 {
                let q = |t: usize| q_deficit(alpha, beta, t);
                let second = q(t + 2) - 2.0 * q(t) + q(t - 2);
                let phase = theta + std::f64::consts::PI + t as f64 * theta;
                let size = 8.0 * ((t + 3) as f64).powi(2) / (gap / (4.0 * beta));
                assert!(
                    (second - 8.0 - 2.0 * alpha / beta * phase.cos()).abs() < 64.0 * EPS * size,
                    "t = {t}"
                );
                assert!(q(t + 2) - q(t) >= -64.0 * EPS * size && q(t) >= -EPS * size);
            }
        }
    }

    #[test]
    fn at_four_beta_the_values_are_powers() {
        for (beta, t) in [(0.5_f64, 7), (2.0, 12), (1.0, 100)] {
            let tolerance = 4.0 * EPS * (f64::from(t) * beta.ln().abs() + 10.0);
            let power = beta.powi(t);
            let t = t as usize;
            assert!((p(4.0 * beta, beta, t) / power - 1.0).abs() < tolerance);
            let square = ((t + 1) as f64).powi(2);
            assert!((q(4.0 * beta, beta, t) / (square * power) - 1.0).abs() < tolerance);
            assert_eq!(p_by_recurrence(4.0 * beta, beta, t).to_bits(), power.to_bits()); // powers of two are exact
            assert_eq!(q_by_recurrence(4.0 * beta, beta, t).to_bits(), (square * power).to_bits());
        }
    }
}
