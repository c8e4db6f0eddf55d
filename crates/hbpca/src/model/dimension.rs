//! The number of components that a spectrum speaks for (Minka 2000, *Automatic choice of dimensionality for PCA*).
//!
//! With λ₁ ≥ … ≥ λ_d the variances of n rows, v the mean of those after the k-th, λ̂ᵢ = λᵢ for i ≤ k and v for the others,
//! Laplace's method gives the evidence of k components as
//!
//! ```text
//! ln p(k) = ln p(U) − n/2·Σ_{i≤k} ln λᵢ − n(d − k)/2·ln v + (m + k)/2·ln 2π − ½ ln det A − k/2·ln n
//! ln p(U) = −k ln 2 + Σ_{i≤k} (ln Γ((d − i + 1)/2) − (d − i + 1)/2·ln π)
//! ln det A = Σ_{i≤k} Σ_{j>i} ln((1/λ̂ⱼ − 1/λ̂ᵢ)(λᵢ − λⱼ)n),      m = dk − k(k + 1)/2
//! ```
//!
//! What rounding leaves of a variance, ε·d·λ₁, is the least that variances and their differences count with. Sums over pairs grow with k,
//! so that all k together take d² logarithms.

use crate::probe::ln_gamma;

/// The k from 1 to d − 1 (1 where d = 1) with the largest evidence, for all d variances of n rows, descending.
pub fn most_likely_dimension(variances: &[f64], n: f64) -> usize {
    let evidence = evidence(variances, n);
    let best = evidence.iter().enumerate().fold(None, |best: Option<(usize, f64)>, (i, x)| match best {
        Some((_, most)) if *x <= most => best,
        _ => Some((i, *x)),
    });
    best.map_or(1, |(i, _)| i + 1)
}

/// ln p(k) for k = 1, …, d − 1 as far as λ_k can be told from 0.
fn evidence(variances: &[f64], n: f64) -> Vec<f64> {
    let d = variances.len();
    let floor = f64::EPSILON * d as f64 * variances.first().copied().unwrap_or(0.0);
    let ln = |x: f64| x.max(floor).ln();
    let mut result = Vec::new();
    // Σ_{i≤k} ln λᵢ, ln p(U), Σ_{i≤k} Σ_{j>i} ln(λᵢ − λⱼ), and Σ_{i<j≤k} ln(1/λⱼ − 1/λᵢ).
    let (mut logs, mut prior, mut differences, mut inverses) = (0.0, 0.0, 0.0, 0.0);
    for k in 1..d {
        let last = variances[k - 1];
        if last <= floor {
            break;
        }
        let half = (d - k + 1) as f64 / 2.0;
        prior += ln_gamma(half) - half * std::f64::consts::PI.ln() - std::f64::consts::LN_2;
        differences += variances[k..].iter().map(|x| ln(last - x)).sum::<f64>();
        inverses += variances[..k - 1].iter().map(|x| ln(x - last) - x.ln() - last.ln()).sum::<f64>();
        logs += last.ln();
        let rest = variances[k..].iter().sum::<f64>() / (d - k) as f64;
        let v = rest.max(floor);
        // ln(1/v − 1/λᵢ) = ln(λᵢ − v) − ln λᵢ − ln v.
        let beyond: f64 = variances[..k].iter().map(|x| ln(x - v) - x.ln() - v.ln()).sum();
        let pairs = d as f64 * k as f64 - (k * (k + 1)) as f64 / 2.0; // m, and so many are in the sums
        let determinant = differences + inverses + (d - k) as f64 * beyond + pairs * n.ln();
        let (k, left) = (k as f64, (d - k) as f64);
        let likelihood = -0.5 * n * (logs + left * v.ln());
        result.push(
            prior + likelihood + 0.5 * (pairs + k) * std::f64::consts::TAU.ln()
                - 0.5 * determinant
                - 0.5 * k * n.ln(),
        );
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formula of the module, term by term.
    fn by_definition(lambda: &[f64], k: usize, n: f64) -> f64 {
        let d = lambda.len();
        let v = lambda[k..].iter().sum::<f64>() / (d - k) as f64;
        let hat = |i: usize| if i < k { lambda[i] } else { v };
        let mut sum = -(k as f64) * 2.0_f64.ln();
        for i in 1..=k {
            let half = (d - i + 1) as f64 / 2.0;
            sum += ln_gamma(half) - half * std::f64::consts::PI.ln() - n / 2.0 * lambda[i - 1].ln();
        }
        sum -= n * (d - k) as f64 / 2.0 * v.ln();
        let m = (d * k) as f64 - (k * (k + 1)) as f64 / 2.0;
        sum += 0.5 * (m + k as f64) * std::f64::consts::TAU.ln() - k as f64 / 2.0 * n.ln();
        for i in 0..k {
            for j in i + 1..d {
                sum -= ((1.0 / hat(j) - 1.0 / hat(i)) * (lambda[i] - lambda[j]) * n).ln() / 2.0;
            }
        }
        sum
    }

    #[test]
    fn the_evidence_is_the_definition() {
        let lambda = [9.0, 7.5, 3.0, 1.1, 1.0, 0.9, 0.2];
        let found = evidence(&lambda, 250.0);
        assert_eq!(found.len(), lambda.len() - 1);
        for (i, found) in found.iter().enumerate() {
            let want = by_definition(&lambda, i + 1, 250.0);
            // A few hundred terms of at most a few hundred.
            assert!(
                (found - want).abs() <= 1e5 * f64::EPSILON * want.abs(),
                "k = {}: {found}, {want}",
                i + 1
            );
        }
    }

    #[test]
    fn directions_above_a_flat_floor_are_counted() {
        let mut lambda = vec![50.0, 20.0, 8.0];
        // As wide a floor as a thousand rows of noise have: a narrower one would be told apart from noise.
        lambda.extend((0..17).map(|i| 1.2 - 0.0265 * f64::from(i)));
        assert_eq!(most_likely_dimension(&lambda, 1000.0), 3);
        // A factor changes no comparison.
        let scaled: Vec<f64> = lambda.iter().map(|x| x * 1e-30).collect();
        assert_eq!(most_likely_dimension(&scaled, 1000.0), 3);
    }

    #[test]
    fn what_has_no_variance_is_no_dimension() {
        assert_eq!(most_likely_dimension(&[1.0, 1e-30, 0.0, 0.0], 10.0), 1);
        assert_eq!(most_likely_dimension(&[0.0; 4], 10.0), 1);
        assert_eq!(most_likely_dimension(&[2.0], 10.0), 1);
        assert_eq!(most_likely_dimension(&[], 10.0), 1);
        // Nine directions and one that depends on them.
        let lambda: Vec<f64> =
            (0..10).map(|i| if i < 9 { 1.2 - 0.05 * f64::from(i) } else { 1e-17 }).collect();
        assert_eq!(most_likely_dimension(&lambda, 1000.0), 9);
    }

    #[test]
    fn equal_variances_leave_a_number() {
        let found = evidence(&[2.0, 2.0, 1.0, 1.0], 50.0);
        assert!(found.iter().all(|x| x.is_finite()), "{found:?}");
    }
}
