//! Lemma 2, η̄ and the theorem by enumeration of all batches, for both rows of the bound; and the two forms of VR-PCA.

use super::epochs::{Data, for_every_sequence, without};
use super::{LiteralBound, Method, Problem, theorem_bound};
use crate::Replacement;
use crate::block::dot;
use crate::matrix::random_direction;

const N: usize = 4;
const D: usize = 3;

fn square(v: &[f64]) -> f64 {
    dot(v, v)
}

fn combine(terms: &[(f64, &[f64])]) -> Vec<f64> {
    (0..D).map(|i| terms.iter().map(|(c, v)| c * v[i]).sum()).collect()
}

/// The data, K of single rows, and the bound for epochs of m steps.
fn setting(seed: u64, m: usize) -> (Data, f64, LiteralBound) {
    let data = Data::random(seed, N, D, 0.6);
    let k = data.variance(1, Replacement::With);
    let problem = Problem::new(data.lambda[0], data.lambda[1], k, m).unwrap();
    let bound = LiteralBound::new(problem, D, data.worst_row() / k).unwrap();
    (data, k, bound)
}

/// Means over every sequence of m − 1 single-row batches.
fn mean(data: &Data, method: Method, w0: &[f64], m: usize, of: impl Fn(&[Vec<f64>], &[usize]) -> f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for_every_sequence(N, m, |rows| {
        sum += of(&data.epoch(method, w0, m, |t| vec![rows[t - 1]]), rows);
        count += 1.0;
    });
    sum / count
}

#[test]
fn lemma2_recursion_holds_for_every_t_over_all_sequences_of_batches() {
    let m = 5;
    let (data, k, _) = setting(61, m);
    let w0 = random_direction(62, D);
    let (l1, l2) = (data.lambda[0], data.lambda[1]);
    let rest: f64 = data.u[1..].iter().map(|u| dot(u, &w0).powi(2)).sum();
    for eta in [0.1, 0.6, 1.0] {
        let method = Method::VrHbPower { eta };
        let beta = f64::powi(1.0 - eta + eta * l2, 2);
        let mean = |of: &dyn Fn(&[Vec<f64>], &[usize]) -> f64| mean(&data, method, &w0, m, of);
        let outside = |t: usize| mean(&|w, _| square(&without(&w[t], &w0)));
        assert!(outside(0) < 1e-28 * square(&w0));
        // E‖Pw₁‖² = η²‖PCw₀‖² ≤ η²λ₁²Σ(u_kᵀw₀)², without the printed 2 (errata, 12).
        let first = eta * eta * square(&without(&data.full_image(&w0), &w0));
        assert!((outside(1) / first - 1.0).abs() < 1e-12 && first <= eta * eta * l1 * l1 * rest);
        for t in 2..=m {
            let (now, before, earlier) = (outside(t), outside(t - 1), outside(t - 2));
            // The equality: E‖Pw_t‖² = E‖2P((1−η)I+ηC)w_{t−1} − βPw_{t−2}‖² + 4η²E‖P(C_{t−1}−C)Pw_{t−1}‖².
            let exact = mean(&|w, _| {
                let step = combine(&[(1.0 - eta, &w[t - 1]), (eta, &data.full_image(&w[t - 1]))]);
                square(&without(&combine(&[(2.0, &step), (-beta, &w[t - 2])]), &w0))
            });
            let noise = mean(&|w, rows| {
                let outside = without(&w[t - 1], &w0);
                let sampled = data.image([rows[t - 2]].into_iter(), &outside);
                square(&without(&combine(&[(1.0, &sampled), (-1.0, &data.full_image(&outside))]), &w0))
            });
            assert!((now / (exact + 4.0 * eta * eta * noise) - 1.0).abs() < 1e-12, "t = {t}, η = {eta}");
            assert!(noise > 0.0 && noise <= k * before * (1.0 + 1e-12), "t = {t}: ‖E[M_P]‖ ≤ K");
            // And the inequality that becomes r_t.
            let lengths = mean(&|w, _| square(&w[t - 1]) / square(&w0));
            let growth = 16.0 * (1.0 - eta + eta * l1).powi(2) + 4.0 * eta * eta * k;
            let bound =
                growth * before + 2.0 * beta * beta * earlier + 16.0 * eta * eta * l1 * l1 * lengths * rest;
            assert!(now <= bound, "t = {t}: {now} {bound}");
        }
    }
}

#[test]
fn lemma2_bounds_the_noise_of_every_t_for_both_methods() {
    let m = 5;
    let (data, k, bound) = setting(63, m);
    let w0 = random_direction(64, D);
    let rest: f64 = data.u[1..].iter().map(|u| dot(u, &w0).powi(2)).sum();
    for eta in [1e-3, 0.3, 1.0] {
        for method in [Method::VrHbPower { eta }, Method::VrPca { eta }] {
            let ln_bounds = bound.ln_noise_bounds(method).unwrap();
            assert_eq!(ln_bounds.len(), m - 1);
            for t in 1..m {
                let outside = mean(&data, method, &w0, m, |w, _| square(&without(&w[t], &w0)));
                let noises: Vec<f64> = (0..D)
                    .map(|i| mean(&data, method, &w0, m, |w, _| data.noise(i, &without(&w[t], &w0))))
                    .collect();
                // Each is below K E‖Pw_t‖², and so is their sum (errata, 24).
                assert!(noises.iter().sum::<f64>() <= k * outside * (1.0 + 1e-12));
                let limit = (ln_bounds[t - 1] + 2.0 * f64::ln(eta)).exp() * rest;
                assert!(noises.iter().all(|noise| *noise <= limit), "{method:?} t = {t}: {noises:?} {limit}");
                if t == 1 {
                    // P_{1,1}(K) = sλ₁²K with s = 16 or 2: what is left of the proof when nothing has been added up.
                    let source = if method == (Method::VrPca { eta }) { 2.0 } else { 16.0 };
                    let want = source * data.lambda[0].powi(2) * k;
                    assert!((ln_bounds[0].exp() / want - 1.0).abs() < 1e-12);
                }
            }
        }
    }
}

/// Σ_{k≥2}E(u_kᵀw̃_s)²/E(u₁ᵀw̃_s)² over all sequences of batches of s epochs, without scaling.
fn quotient_after(data: &Data, method: Method, w0: &[f64], m: usize, epochs: u32) -> f64 {
    let mut moments = [0.0; D];
    let batches = epochs as usize * (m - 1);
    for_every_sequence(N, batches + 1, |rows| {
        let mut w = w0.to_vec();
        for rows in rows.chunks_exact(m - 1) {
            w = data.epoch(method, &w, m, |t| vec![rows[t - 1]]).pop().unwrap();
        }
        (0..D).for_each(|k| moments[k] += dot(&data.u[k], &w).powi(2));
    });
    moments[1..].iter().sum::<f64>() / moments[0]
}

#[test]
fn theorem_holds_over_several_epochs_up_to_the_largest_step() {
    let m = 3;
    let (data, _, bound) = setting(65, m);
    let mut w0 = random_direction(66, D);
    let length = square(&w0).sqrt();
    w0.iter_mut().for_each(|x| *x /= length);
    let cosine = dot(&data.u[0], &w0).powi(2);
    let (best, largest) = (bound.best_step_size().unwrap().eta, bound.largest_step_size().unwrap());
    for eta in [0.1 * best, best, largest] {
        let (method, rate) = (Method::VrHbPower { eta }, bound.rate(eta).unwrap().ln_rate.exp());
        assert!(rate < 1.0);
        for epochs in 1..=3 {
            let quotient = quotient_after(&data, method, &w0, m, epochs);
            let limit = theorem_bound(rate, epochs, cosine).unwrap();
            assert!(quotient <= limit * (1.0 + 1e-12), "η = {eta}, {epochs} epochs: {quotient} {limit}");
            // The bound has room for noise above the rate without it.
            let floor = bound.rate(eta).unwrap().ln_g.exp().powf(f64::from(epochs)) * (1.0 - cosine) / cosine;
            assert!(limit > floor, "η = {eta}");
        }
    }
    // The proof gives up at η̄; the method does not: ten times that step still converges.
    let beyond = Method::VrHbPower { eta: (10.0 * largest).min(1.0) };
    assert!(bound.rate_of(beyond).unwrap().ln_rate > 0.0);
    assert!(quotient_after(&data, beyond, &w0, m, 3) < (1.0 - cosine) / cosine);
}

#[test]
fn literal_bound_of_vr_pca_holds_over_all_sequences_of_batches() {
    let m = 4;
    let (data, _, bound) = setting(67, m);
    for (seed, eta) in [(1, 1e-4), (2, 0.01), (3, 0.5), (4, 1.0)] {
        let w0 = random_direction(68 + seed, D);
        let start: Vec<f64> = data.u.iter().map(|u| dot(u, &w0).powi(2)).collect();
        let method = Method::VrPca { eta };
        let before = start[1..].iter().sum::<f64>() / start[0];
        let contraction = quotient_after(&data, method, &w0, m, 1) / before;
        let rate = bound.rate_of(method).unwrap();
        assert!(contraction.ln() <= rate.ln_rate, "η = {eta}: {} {}", contraction.ln(), rate.ln_rate);
    }
}

#[test]
fn mean_squares_of_vr_pca_follow_its_own_lemma1() {
    // E(u_kᵀw_t)² = (1+ηλ_k)²ᵗ(u_kᵀw₀)² + η² Σ_r (1+ηλ_k)^{2(t−r−1)} E[w_rᵀPM_kPw_r], the row of the table of rates.
    let m = 5;
    let (data, _, _) = setting(69, m);
    let w0 = random_direction(70, D);
    for eta in [0.1, 0.7, 2.0] {
        let method = Method::VrPca { eta };
        for (k, t) in (0..D).flat_map(|k| (0..=m).map(move |t| (k, t))) {
            let growth = f64::powi(1.0 + eta * data.lambda[k], 2);
            let left = mean(&data, method, &w0, m, |w, _| dot(&data.u[k], &w[t]).powi(2));
            let noise = |r: usize| mean(&data, method, &w0, m, |w, _| data.noise(k, &without(&w[r], &w0)));
            let noises: f64 = (1..t).map(|r| growth.powf((t - r - 1) as f64) * noise(r)).sum();
            let right = growth.powf(t as f64) * dot(&data.u[k], &w0).powi(2) + eta * eta * noises;
            assert!((left - right).abs() <= 1e-12 * right.max(1e-3), "η = {eta} k {k} t {t}: {left} {right}");
        }
    }
}

#[test]
fn both_forms_of_vr_pca_agree_to_first_order_in_the_angle() {
    let (m, eta) = (6, 0.8);
    let (data, _, _) = setting(71, m);
    let v = combine(&[(0.8, &data.u[1]), (0.6, &data.u[2])]);
    let unit = |w: &[f64]| combine(&[(1.0 / square(w).sqrt(), w)]);
    let rows = [2, 0, 3, 1, 1];
    let apart = |phi: f64| {
        let w0 = unit(&combine(&[(1.0, &data.u[0]), (phi, &v)]));
        let projected = unit(&data.epoch(Method::VrPca { eta }, &w0, m, |t| vec![rows[t - 1]])[m]);
        // Shamir's form: C_S(w_t − w̃) + g̃, every w_t of length 1.
        let exact = data.full_image(&w0);
        let mut w = unit(&combine(&[(1.0, &w0), (eta, &exact)]));
        for row in rows {
            let sampled = data.image([row].into_iter(), &combine(&[(1.0, &w), (-1.0, &w0)]));
            w = unit(&combine(&[(1.0, &w), (eta, &sampled), (eta, &exact)]));
        }
        square(&combine(&[(1.0, &w), (-1.0, &projected)])).sqrt() / phi
    };
    // Relative to φ the forms are O(φ) apart: a tenth of the angle, a tenth of the difference, give or take.
    let (large, small) = (apart(1e-2), apart(1e-3));
    assert!(small < 0.2 * large && small > 0.0 && large < 1.0, "{large} {small}");
}

#[test]
fn scaling_preserves_paths_and_not_the_quotient_of_expectations() {
    let (m, eta) = (4, 0.9);
    let (data, _, _) = setting(73, m);
    let w0 = random_direction(74, D);
    let method = Method::VrHbPower { eta };
    let (mut plain, mut scaled, mut count) = ([0.0; D], [0.0; D], 0.0);
    for_every_sequence(N, m, |rows| {
        let w = data.epoch(method, &w0, m, |t| vec![rows[t - 1]]).pop().unwrap();
        let length = square(&w);
        (0..D).for_each(|k| {
            let along = dot(&data.u[k], &w).powi(2);
            plain[k] += along;
            scaled[k] += along / length; // the direction is the same, the weight of the path is not
        });
        count += 1.0;
    });
    let quotient = |moments: &[f64; D]| moments[1..].iter().sum::<f64>() / moments[0];
    assert!((scaled.iter().sum::<f64>() / count - 1.0).abs() < 1e-12);
    assert!(
        (quotient(&scaled) / quotient(&plain) - 1.0).abs() > 0.01,
        "{} {}",
        quotient(&scaled),
        quotient(&plain)
    );
}
