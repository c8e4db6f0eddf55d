//! The technical lemmas of the appendix, numerically, and the numbers behind `docs/paper/errata.md`.

use faer::{Mat, Side};
use proptest::prelude::*;

use super::{Method, Problem, p, q, r};
use crate::block::{dot, norm};
use crate::matrix::random_direction;

const EPS: f64 = f64::EPSILON;

/// A random symmetric matrix BᵀB of rank min(d, `rank`).
fn semi_definite(seed: u64, d: usize, rank: usize) -> Mat<f64> {
    let b = random_direction(seed, rank * d);
    Mat::from_fn(d, d, |i, j| (0..rank).map(|l| b[l * d + i] * b[l * d + j]).sum())
}

fn unit(seed: u64, d: usize) -> Vec<f64> {
    let mut w = random_direction(seed, d);
    let length = norm(&w);
    w.iter_mut().for_each(|x| *x /= length);
    w
}

fn times(c: &Mat<f64>, w: &[f64]) -> Vec<f64> {
    (0..w.len()).map(|i| (0..w.len()).map(|j| c[(i, j)] * w[j]).sum()).collect()
}

/// wᵀC²w − (wᵀCw)², from Cw − (wᵀCw)w so that it does not cancel.
fn spread(c: &Mat<f64>, w: &[f64]) -> f64 {
    let image = times(c, w);
    let theta = dot(&image, w);
    image.iter().zip(w).map(|(y, w)| (y - theta * w).powi(2)).sum()
}

proptest! {
    #[test]
    fn forced_recurrence_is_p_and_q_times_the_forcing(
        alpha in 0.0..6.0_f64, beta in 0.0..1.5_f64, forcing in prop::collection::vec(0.0..1.0_f64, 4..25),
    ) {
        let l = &forcing;
        let mut w = vec![l[0], alpha / 4.0 * l[0], (alpha / 2.0 - beta).powi(2) * l[0] + l[1]];
        for t in 3..=l.len() {
            w.push(
                (alpha - beta) * w[t - 1] - beta * (alpha - beta) * w[t - 2] + beta.powi(3) * w[t - 3]
                    + l[t - 1] + beta * l[t - 2],
            );
        }
        for t in 0..=l.len() {
            let noise: f64 = (1..t).map(|s| q(alpha, beta, t - s - 1) * l[s]).sum();
            let envelope = p(alpha.max(4.0 * beta), beta, t)
                + (1..t).map(|s| q(alpha.max(4.0 * beta), beta, t - s - 1)).sum::<f64>();
            // The recurrence's rounding grows like t² of its envelope (three roots of modulus β meet at α = 4β).
            let tolerance = 32.0 * EPS * ((t + 1) as f64).powi(3) * envelope.max(1.0) * (1.0 + alpha + beta);
            prop_assert!((w[t] - p(alpha, beta, t) * l[0] - noise).abs() <= tolerance);
        }
    }

    #[test]
    fn two_term_inequality_is_r_times_the_forcing(
        alpha in 0.0..3.0_f64, beta in 0.0..3.0_f64, forcing in prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 2..30),
    ) {
        // Sequences that satisfy the inequality with a random slack, from equality to zero.
        let mut w = vec![0.0, forcing[0].0 * forcing[0].1];
        for t in 2..=forcing.len() {
            let (l, share) = forcing[t - 1];
            w.push(share * (alpha * w[t - 1] + beta * w[t - 2] + l));
        }
        for t in 0..=forcing.len() {
            let bound: f64 = (0..t).map(|l| r(alpha, beta, t - l - 1) * forcing[l].0).sum();
            prop_assert!(w[t] <= bound * (1.0 + 64.0 * EPS * (t + 1) as f64));
        }
    }

    #[test]
    fn trace_lemma_bounds_a_form_by_the_norm_of_its_matrix(seed in 0_u64..1000, d in 2_usize..7, rank in 1_usize..8) {
        // wᵀPMPw ≤ ‖M‖‖Pw‖² for symmetric P and M, indefinite ones included.
        let (up, down) = (semi_definite(seed, d, rank), semi_definite(seed + 3000, d, 2));
        let m = &up - &down;
        let p = semi_definite(seed + 1000, d, rank) - semi_definite(seed + 2000, d, 1);
        let projected = times(&p, &unit(seed + 4000, d));
        let form = dot(&projected, &times(&m, &projected));
        let norm = m.singular_values().unwrap()[0];
        let square = dot(&projected, &projected);
        prop_assert!(form <= norm * square * (1.0 + 64.0 * EPS * d as f64));
        // With equality where Pw is the leading eigenvector of a semi-definite M.
        let eigen = up.self_adjoint_eigen(Side::Lower).unwrap();
        let leading: Vec<f64> = (0..d).map(|i| eigen.U()[(i, d - 1)]).collect();
        let form = dot(&leading, &times(&up, &leading));
        prop_assert!((form - eigen.S()[d - 1]).abs() <= 64.0 * EPS * d as f64 * eigen.S()[d - 1]);
    }

    #[test]
    fn commutator_with_a_projection_has_the_norm_of_the_lemma(seed in 0_u64..1000, d in 2_usize..7, rank in 1_usize..8) {
        let (c, w) = (semi_definite(seed, d, rank), unit(seed + 5000, d));
        let projection = Mat::from_fn(d, d, |i, j| f64::from(u8::from(i == j)) - w[i] * w[j]);
        let commutator = &projection * &c - &c * &projection;
        let singular = commutator.singular_values().unwrap();
        // Rounding of the commutator's entries, relative to ‖C‖ ≤ tr C.
        let trace: f64 = (0..d).map(|i| c[(i, i)]).sum();
        let tolerance = 16.0 * EPS * d as f64 * trace * trace;
        prop_assert!((singular[0].powi(2) - spread(&c, &w)).abs() <= tolerance);
    }

    #[test]
    fn quadratic_form_lemma_holds_even_without_its_factor_two(seed in 0_u64..1000, d in 2_usize..7, rank in 1_usize..8) {
        let (c, w) = (semi_definite(seed, d, rank), unit(seed + 9000, d));
        let eigen = c.self_adjoint_eigen(Side::Lower).unwrap();
        let lambda1 = eigen.S()[d - 1];
        let cosine: f64 = (0..d).map(|i| eigen.U()[(i, d - 1)] * w[i]).sum();
        let tolerance = 16.0 * EPS * d as f64 * lambda1 * lambda1;
        prop_assert!(spread(&c, &w) <= lambda1 * lambda1 * (1.0 - cosine * cosine) + tolerance);
    }
}

#[test]
fn printed_equality_of_the_quadratic_form_proof_has_a_spurious_two() {
    // λ₁²(1 − x⁴) = λ₁²(1 + x²)(1 − x²), not twice that.
    let x = 0.5_f64;
    assert_eq!((1.0 - x.powi(4)).to_bits(), ((1.0 + x * x) * (1.0 - x * x)).to_bits());
    assert!((1.0 - x.powi(4) - 2.0 * (1.0 + x * x) * (1.0 - x * x)).abs() > 0.9);
}

#[test]
fn printed_g_with_a_minus_sign_is_not_the_quotient_of_the_polynomials() {
    let (l1, l2, eta, m) = (1.5_f64, 1.0_f64, 0.4_f64, 3);
    let (a, b) = (1.0 - eta + eta * l1, 1.0 - eta + eta * l2);
    let root = (2.0 - 2.0 * eta + eta * (l1 + l2)).sqrt() * (eta * (l1 - l2)).sqrt();
    let with = |sign: f64| (((a + root).powi(m) + sign * (a - root).powi(m)) / (2.0 * b.powi(m))).powi(-2);
    let quotient = p(4.0 * b * b, b * b, m as usize) / p(4.0 * a * a, b * b, m as usize);
    assert!((with(1.0) / quotient - 1.0).abs() < 64.0 * EPS);
    assert!((with(-1.0) / quotient - 1.0).abs() > 0.01);
    let g = Problem::new(l1, l2, 0.0, m as usize).unwrap().g(Method::VrHbPower { eta }).unwrap();
    assert!((g / quotient - 1.0).abs() < 64.0 * EPS);
}

#[test]
fn derivative_of_g_needs_the_square_of_h() {
    // g′ = −2·2^{m+1}/h · 2^{m+1}h′/h²; the first display of the proof prints h for h². Centred differences decide.
    let (l1, l2, m, eta) = (1.4_f64, 1.0_f64, 4, 0.3_f64);
    let gamma = |eta: f64| 4.0 * ((1.0 - eta + eta * l1) / (1.0 - eta + eta * l2)).powi(2);
    let parts = |eta: f64| {
        (gamma(eta).sqrt() + (gamma(eta) - 4.0).sqrt(), gamma(eta).sqrt() - (gamma(eta) - 4.0).sqrt())
    };
    let h = |eta: f64| parts(eta).0.powi(m) + parts(eta).1.powi(m);
    let slope_gamma = 8.0 * (1.0 - eta + eta * l1) * (l1 - l2) / (1.0 - eta + eta * l2).powi(3);
    let (near, far) = (0.5 / gamma(eta).sqrt(), 0.5 / (gamma(eta) - 4.0).sqrt());
    let (up, down) = parts(eta);
    let braces = f64::from(m)
        * 2.0_f64.powi(m + 1)
        * ((near + far) * up.powi(m - 1) + (near - far) * down.powi(m - 1));
    let with = |power: i32| -2.0 * slope_gamma * 2.0_f64.powi(m + 1) / h(eta) * braces / h(eta).powi(power);
    let g = |eta: f64| Problem::new(l1, l2, 0.0, m as usize).unwrap().g(Method::VrHbPower { eta }).unwrap();
    let step = 1e-5;
    let slope = (g(eta + step) - g(eta - step)) / (2.0 * step);
    // Centred differences err by step²·g‴/6 and ε/step, both below 10⁻⁸ here.
    assert!((with(2) / slope - 1.0).abs() < 1e-7, "{} {slope}", with(2));
    assert!((with(1) / slope - 1.0).abs() > 1.0);
}

#[test]
fn mean_of_the_norm_of_m_p_can_exceed_k() {
    // Rows √d·e_k, one at a time: C = I, C_S − C = d·e_ke_kᵀ − I, E(C_S−C)² = (d−1)I, K = d − 1. For w₀ = e₁ and k ≠ 1,
    // ‖(C_S−C)P(C_S−C)‖ ≥ (d−1)², so that the mean of the norm is (d−1)³/d at least: far above K. The norm of the mean is not.
    let d = 5;
    let deviation = |k: usize| {
        Mat::from_fn(d, d, |i, j| {
            if i != j {
                0.0
            } else if i == k {
                d as f64 - 1.0
            } else {
                -1.0
            }
        })
    };
    let projection = Mat::from_fn(d, d, |i, j| f64::from(u8::from(i == j && i > 0)));
    let (mut mean_of_norm, mut mean) = (0.0, Mat::<f64>::zeros(d, d));
    for k in 0..d {
        let m_p = deviation(k) * &projection * deviation(k);
        mean_of_norm += m_p.self_adjoint_eigenvalues(Side::Lower).unwrap()[d - 1] / d as f64;
        mean += m_p * faer::Scale(1.0 / d as f64);
    }
    let norm_of_mean = mean.self_adjoint_eigenvalues(Side::Lower).unwrap()[d - 1];
    let k = d as f64 - 1.0;
    assert!(
        mean_of_norm > 3.0 * k && norm_of_mean <= k * (1.0 + 16.0 * EPS),
        "{mean_of_norm} {norm_of_mean} {k}"
    );
}

#[test]
fn strict_inequality_for_p_fails_at_zero_steps() {
    assert_eq!(p(9.0, 2.0, 0).to_bits(), p(8.0, 2.0, 0).to_bits());
    assert!(p(9.0, 2.0, 1) > p(8.0, 2.0, 1));
}

#[test]
fn momentum_bound_of_the_introduction_needs_the_squared_eigenvalue() {
    // λ_k = 0.6 > β = 0.5 but λ_k² = 0.36 ≤ β: the bound (u_kᵀw_t)² ≤ βᵗ holds. λ_k = 1.5 ≤ β = 2 but λ_k² = 2.25 > β: it
    // fails.
    let square = |lambda: f64, beta: f64, t| p(4.0 * lambda * lambda, beta, t);
    assert!((0..50).all(|t| square(0.6, 0.5, t) <= 0.5_f64.powf(t as f64) * (1.0 + 1e-12)));
    assert!(square(1.5, 2.0, 10) > 2.0_f64.powi(10));
}
