//! The step size that makes a rate smallest.
//!
//! A step of size η multiplies by (1−η)I + ηC, which is ηC shifted by s = (1−η)/η: the direction depends on C + sI alone. The search
//! therefore runs over ln(s/λ₁), which does not change when the data are scaled: first on a grid of unit steps from
//! s = 10⁻¹⁶λ₁ (η = 1 in all but rounding) upwards until the rate is below 1 and has risen for a while, then by golden section between the
//! neighbours of the best grid point. s = 0 itself is one of the candidates.

use super::{Contraction, ErrorDirection, Method, Problem};

/// The step size chosen, and what the model promises for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestStep {
    /// η.
    pub eta: f64,
    /// The modelled contraction with it.
    pub contraction: Contraction,
}

/// The η in (0, 1] for which the [modelled contraction](Problem::contraction) of VR HB Power is smallest.
///
/// ```
/// use hbpca::theory::{Problem, best_step_size};
/// let large_batch = best_step_size(&Problem::new(1.0, 0.95, 1e-4, 20)?);
/// let small_batch = best_step_size(&Problem::new(1.0, 0.95, 1.0, 20)?);
/// assert!(large_batch.eta > small_batch.eta); // noise calls for smaller steps
/// assert!(large_batch.contraction.rate() < small_batch.contraction.rate());
/// assert!(small_batch.contraction.rate() < 1.0); // but some step always converges
/// # Ok::<(), hbpca::Error>(())
/// ```
pub fn best_step_size(problem: &Problem) -> BestStep {
    let method = |shift: f64| Method::VrHbPower { eta: 1.0 / (1.0 + shift) };
    best(problem, method)
}

/// The η > 0 for which the [modelled contraction](Problem::contraction) of VR-PCA is smallest.
///
/// ```
/// use hbpca::theory::{Problem, best_step_size, best_step_size_vr_pca};
/// let problem = Problem::new(1.0, 0.99, 1e-3, 100)?;
/// let (plain, momentum) = (best_step_size_vr_pca(&problem), best_step_size(&problem));
/// assert!(momentum.contraction.rate() < plain.contraction.rate());
/// # Ok::<(), hbpca::Error>(())
/// ```
pub fn best_step_size_vr_pca(problem: &Problem) -> BestStep {
    // I + ηC is C shifted by 1/η; no shift would be an infinite step.
    let smallest = problem.lambda1() * FIRST.exp();
    best(problem, |shift| Method::VrPca { eta: 1.0 / shift.max(smallest) })
}

fn best(problem: &Problem, method: impl Fn(f64) -> Method) -> BestStep {
    let model = |shift: f64| problem.model(method(shift), ErrorDirection::Second);
    let best = minimise_over_shift(problem.lambda1(), |shift| model(shift).ln_rate);
    BestStep { eta: method(best.shift).eta(), contraction: model(best.shift) }
}

/// ln of the smallest shift over λ₁, about ln 10⁻¹⁶.
const FIRST: f64 = -37.0;
/// Grid points that the rate must have risen for, once it is below 1, before the search ends. Past its minimum the rate
/// climbs towards 1 as 1 − 2m²Δη does.
const PATIENCE: usize = 8;

pub(super) struct BestShift {
    pub(super) shift: f64,
    objective: f64,
}

/// The shift ≥ 0 with the smallest `ln_rate`.
pub(super) fn minimise_over_shift(lambda1: f64, ln_rate: impl Fn(f64) -> f64) -> BestShift {
    // ∞ − ∞ at the ends of the range of f64 is no rate at all.
    let ln_rate = |shift: f64| Some(ln_rate(shift)).filter(|x| !x.is_nan()).unwrap_or(f64::INFINITY);
    let at = |z: f64| {
        let shift = lambda1 * z.exp();
        BestShift { shift, objective: ln_rate(shift) }
    };
    let mut best = BestShift { shift: 0.0, objective: ln_rate(0.0) };
    let mut best_z = None;
    let mut risen = 0;
    // Shifts up to 10³⁰⁰ leave η and its products with eigenvalues in the range of f64.
    let last = (1e300_f64.ln() - lambda1.max(1.0).ln()) as usize;
    for step in 0..last {
        let z = FIRST + step as f64;
        let here = at(z);
        risen += 1;
        if here.objective < best.objective {
            (best, best_z, risen) = (here, Some(z), 0);
        }
        if best.objective < 0.0 && risen >= PATIENCE {
            break;
        }
    }
    best_z.map_or(best, |z| golden_section(at, z))
}

/// The minimum of a function that falls and then rises between z − 1 and z + 1, to a relative 10⁻⁷ in the shift: half the
/// digits of f64, which is all that a smooth minimum shows.
fn golden_section(at: impl Fn(f64) -> BestShift, z: f64) -> BestShift {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let (mut low, mut high) = (z - 1.0, z + 1.0);
    let (mut z1, mut z2) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut f1, mut f2) = (at(z1), at(z2));
    let mut best = at(z);
    while high - low > 1e-7 {
        if f1.objective <= f2.objective {
            (high, z2, f2) = (z2, z1, f1);
            z1 = high - GOLDEN * (high - low);
            f1 = at(z1);
        } else {
            (low, z1, f1) = (z1, z2, f2);
            z2 = low + GOLDEN * (high - low);
            f2 = at(z2);
        }
    }
    for candidate in [f1, f2] {
        if candidate.objective < best.objective {
            best = candidate;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_step_on_a_dense_grid_is_better(
            lambda1 in 1e-3..1e3_f64, share in 0.0..0.9999_f64, relative_k in 1e-8..1e3_f64, m in 2_usize..120,
        ) {
            let problem = Problem::new(lambda1, lambda1 * share, relative_k * lambda1 * lambda1, m).unwrap();
            let best = best_step_size(&problem);
            prop_assert!(best.eta > 0.0 && best.eta <= 1.0 && best.contraction.ln_rate < 0.0);
            let plain = best_step_size_vr_pca(&problem);
            prop_assert!(plain.contraction.ln_rate < 0.0);
            for i in 0..600 {
                let shift = lambda1 * (-30.0 + 0.1 * f64::from(i)).exp();
                let other = problem.contraction(Method::VrHbPower { eta: 1.0 / (1.0 + shift) }).unwrap();
                // A minimum located to 10⁻⁷ is low to 10⁻¹⁴; rounding of m steps adds mε.
                let slack = 1e-12 * best.contraction.ln_rate.abs();
                prop_assert!(best.contraction.ln_rate <= other.ln_rate + slack, "{best:?} {other:?} {shift}");
                let other = problem.contraction(Method::VrPca { eta: 1.0 / shift }).unwrap();
                let slack = 1e-12 * plain.contraction.ln_rate.abs();
                prop_assert!(plain.contraction.ln_rate <= other.ln_rate + slack, "{plain:?} {other:?} {shift}");
            }
        }
    }

    #[test]
    fn scaling_the_data_scales_the_shift() {
        // C → cC makes λ → cλ and K → c²K: the same shift relative to λ₁ is best, with the same rate.
        let relative = |c: f64| {
            let best = best_step_size(&Problem::new(c, 0.9 * c, 0.1 * c * c, 30).unwrap());
            ((1.0 - best.eta) / best.eta / c, best.contraction.ln_rate)
        };
        let (shift, ln_rate) = relative(1.0);
        for c in [1e-2, 10.0, 1e4] {
            let (other_shift, other_rate) = relative(c);
            assert!((other_shift / shift - 1.0).abs() < 1e-5 && (other_rate / ln_rate - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn without_noise_the_full_step_is_best() {
        let best = best_step_size(&Problem::new(2.0, 1.0, 0.0, 10).unwrap());
        assert_eq!(best.eta.to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn huge_noise_still_finds_a_converging_step() {
        let best = best_step_size(&Problem::new(1.0, 0.5, 1e60, 10).unwrap());
        assert!(best.contraction.ln_rate < 0.0 && best.eta < 1e-10, "{best:?}");
    }

    #[test]
    fn eigenvalues_near_the_ends_of_the_range_of_f64_do_no_harm() {
        for lambda1 in [1e-300, 1e-150, 1e150, 1e300] {
            let problem = Problem::new(lambda1, 0.5 * lambda1, 0.1 * lambda1.min(1.0), 10).unwrap();
            for best in [best_step_size(&problem), best_step_size_vr_pca(&problem)] {
                assert!(best.eta > 0.0 && best.eta.is_finite(), "{lambda1:e}: {best:?}");
                assert!(!best.contraction.ln_rate.is_nan(), "{lambda1:e}: {best:?}");
            }
        }
    }

    #[test]
    fn long_epochs_are_searched_in_reasonable_time() {
        let best = best_step_size(&Problem::new(1.0, 0.999, 1e-3, 10_000).unwrap());
        assert!(best.contraction.rate() < 1.0, "{best:?}");
    }
}
