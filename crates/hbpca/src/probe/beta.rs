//! Quantiles of the Beta distribution.

/// Halvings of an interval of logarithms: enough for every bit of a number.
const HALVINGS: usize = 200;
/// Terms of a continued fraction. It converges in O(√max(a, b)) of them.
const TERMS: usize = 100_000;

/// A number that a variable with the distribution Beta(a, b) is at or below with probability `share` at most, and as large as rounding lets
/// it be; a, b > 0 and 0 < `share` < 1.
pub(super) fn quantile(share: f64, a: f64, b: f64) -> f64 {
    // ln x, so that quantiles of 1e-30 have as many digits as those of 0.1.
    let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), 0.0_f64);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if distribution(middle.exp(), a, b) <= share {
            low = middle;
        } else {
            high = middle;
        }
    }
    // I_x is off by some roundings of the logarithms it is made of; near 0 it grows like xᵃ, elsewhere faster than x.
    let off = 16.0 * f64::EPSILON * (1.0 + ln_gamma(a + b).abs() + low.abs() * a + b);
    (low - off / a.min(1.0)).exp()
}

/// I_x(a, b), the distribution function of Beta(a, b).
fn distribution(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // xᵃ(1 − x)ᵇ/B(a, b)
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // On this side of the mean the fraction converges fast.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction of I_x(a, b) by Lentz's method (Press et al., *Numerical Recipes*, §6.4).
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let whole = |x: f64| if x.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { x };
    let mut c = 1.0;
    let mut d = 1.0 / whole(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..TERMS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / whole(1.0 + coefficient * d);
            c = whole(1.0 + coefficient / c);
            change = c * d;
            value *= change;
        }
        if (change - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    value
}

/// ln Γ(x) for x > 0: Stirling's series from 10 on, and Γ(x + 1) = xΓ(x) below.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const LARGE: f64 = 10.0;
    /// B₂ₙ/(2n(2n − 1)).
    const SERIES: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
        -3617.0 / 122_400.0,
    ];
    let (mut x, mut factor) = (x, 1.0);
    while x < LARGE {
        factor *= x;
        x += 1.0;
    }
    let inverse_square = (x * x).recip();
    let tail = SERIES.iter().rev().fold(0.0, |sum, term| sum * inverse_square + term) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + tail - factor.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `got` is at most `want`, and below it by no more than rounding of the logarithms.
    fn check(got: f64, want: f64, a: f64, b: f64) {
        let slack =
            64.0 * f64::EPSILON * (1.0 + ln_gamma(a + b).abs() + want.ln().abs() * a + b) / a.min(1.0);
        let off = got / want - 1.0;
        // The reference is rounded as well.
        assert!(off <= 1e-13 && off >= -slack - 1e-13, "Beta({a}, {b}): {got:e} for {want:e}, {off:e}");
    }

    #[test]
    fn quantiles_of_one_and_of_two_variables_have_closed_forms() {
        for share in [0.3, 0.1, 0.01, 1e-6, 1e-9, 1e-12] {
            for b in [0.5, 1.0, 3.5, 20.0, 200.0, 20_000.0, 1e6] {
                // Beta(1, b): 1 − (1 − x)ᵇ = δ.
                check(quantile(share, 1.0, b), -((-share).ln_1p() / b).exp_m1(), 1.0, b);
            }
            // Beta(½, ½): (2/π)·arcsin √x = δ.
            check(quantile(share, 0.5, 0.5), (std::f64::consts::FRAC_PI_2 * share).sin().powi(2), 0.5, 0.5);
            // Beta(a, 1): xᵃ = δ.
            for a in [0.5, 2.0, 4.0] {
                check(quantile(share, a, 1.0), share.powf(a.recip()), a, 1.0);
            }
        }
    }

    #[test]
    fn quantiles_agree_with_those_of_another_library() {
        // scipy.special.betaincinv of SciPy 1.17
        for (share, a, b, want) in REFERENCE {
            check(quantile(share, a, b), want, a, b);
        }
    }

    #[test]
    fn gamma_of_integers_and_halves() {
        let mut factorial: f64 = 1.0;
        for n in 1..30_u32 {
            let off = ln_gamma(f64::from(n)) - factorial.ln();
            assert!(off.abs() <= 16.0 * f64::EPSILON * factorial.ln().max(16.0), "{n}: {off:e}");
            factorial *= f64::from(n);
        }
        assert!((ln_gamma(0.5) - 0.5 * std::f64::consts::PI.ln()).abs() <= 64.0 * f64::EPSILON);
    }

    const REFERENCE: [(f64, f64, f64, f64); 10] = [
        (1e-9, 4.0, 196.0, 6.317_751_592_278_94e-5),
        (1e-9, 4.0, 1996.0, 6.246_666_388_669e-6),
        (1e-12, 4.0, 196.0, 1.121_198_650_076_23e-5),
        (1e-12, 4.0, 49_996.0, 4.428_909_848_910_7e-8),
        (0.1, 4.0, 20.0, 7.808_347_219_909_02e-2),
        (0.01, 4.0, 6.0, 1.052_622_837_101_29e-1),
        (1e-6, 1.5, 98.5, 1.224_362_687_338_48e-6),
        (1e-9, 0.5, 199.5, 3.941_769_361_003_02e-21),
        (1e-12, 2.5, 1e5, 2.562_302_530_874_07e-10),
        (0.05, 8.0, 3.0, 4.930_986_989_367_98e-1),
    ];
}
