//! Rounding of sums: the one place where such bounds are derived.
//!
//! An image Cv = (1/n)Σ a·t, t = aᵀv, rounds in two ways. With M = (1/n)Σ‖a‖², and ρ the relative rounding of the sums:
//!
//! ```text
//! each t is off by ρ‖a‖           moves the image by (1/n)Σ a·ρ‖a‖
//! each sum over rows rounds       moves coordinate j by ρ·(1/n)Σ|aⱼt|
//! ```
//!
//! Both are at most ρM for a unit vector v. Where locked vectors L are projected out before and after the product, P = I − LLᵀ and
//! R = tr PCP, they are far less (Cauchy–Schwarz):
//!
//! ```text
//! ‖(1/n)Σ Pa·ρ‖a‖‖ ≤ ρ√(R·M)                 the large part of a lies along L, and is projected away
//! ‖ρ(1/n)Σ|a||t|‖ ≤ ρ√(M·(1/n)Σt²)           (1/n)Σt² ≤ (√R + ρ√M)²: v is orthogonal to L up to ρ, and t rounds by ρ‖a‖
//! ```
//!
//! ρ is the sum of that of a dot and that of a sum over rows: the two together are at most ρ√(M·R) + ρ²M. Projecting is dots and sums of
//! ‖Cv‖ ≤ √M·(√R + ρ√M), which rounds as much again. Together: 2ρ√(M·R) + 2ρ²M.

/// The unit roundoff of f32 as a multiple of that of f64.
pub(crate) const SINGLE: f64 = f32::EPSILON as f64 / f64::EPSILON;

/// γₘ = mu/(1 − mu): the relative rounding of a sum of `terms` products in f64, added one after the other, whatever they are (Higham 2002, lemma
/// 3.1). Rows that are equal round alike, so that errors need not cancel: long sums are short by being sums of sums.
pub(crate) fn rounding_of_sum(terms: usize) -> f64 {
    let mu = (terms + 4) as f64 * (f64::EPSILON / 2.0);
    if mu < 0.5 { mu / (1.0 - mu) } else { f64::INFINITY }
}

/// What that comes to where errors have mean zero: 8√m·u is exceeded with probability below 10⁻¹³ (Higham & Mary 2019, theorem 2.4). For
/// aims, not for claims.
pub(crate) fn likely_rounding_of_sum(terms: usize) -> f64 {
    let m = (terms + 4) as f64;
    f64::EPSILON / 2.0 * m.min(8.0 * m.sqrt())
}

/// A bound on ‖fl(Cv) − Cv‖ for unit vectors v: how far images may be off by rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundingBound {
    /// ρ.
    relative: f64,
    /// M.
    moment: f64,
    /// What does not become less by projecting.
    fixed: f64,
}

impl RoundingBound {
    /// Images of unit vectors are off by at most `bound`. What is negative or no number bounds nothing: it counts as infinite, so
    /// that no residual with it ever meets a tolerance.
    pub const fn new(bound: f64) -> Self {
        Self { relative: 0.0, moment: 0.0, fixed: if bound >= 0.0 { bound } else { f64::INFINITY } }
    }

    /// Images are sums of products a(aᵀv), which round by `relative` of themselves, over rows a whose ‖a‖² have the mean `moment`.
    pub const fn of_sums(relative: f64, moment: f64) -> Self {
        let unbounded = if relative * moment >= 0.0 { 0.0 } else { f64::INFINITY };
        Self { relative, moment, fixed: unbounded }
    }

    /// The same for images that are added up further: sums over rows, whose ‖a‖² have the mean `moment`, round by `relative` more.
    #[must_use]
    pub(crate) fn with_sums(self, relative: f64, moment: f64) -> Self {
        let sums = Self::of_sums(relative, moment);
        Self {
            relative: self.relative + sums.relative,
            moment: self.moment.max(sums.moment),
            fixed: self.fixed + sums.fixed,
        }
    }

    /// The numbers it is made of, to be sent to other ranks.
    pub(crate) fn parts(self) -> [f64; 3] {
        [self.relative, self.moment, self.fixed]
    }

    /// The inverse of [`parts`](Self::parts). Of several bounds, the largest of each number bound what all of them do.
    pub(crate) const fn of_parts([relative, moment, fixed]: [f64; 3]) -> Self {
        Self { relative, moment, fixed }
    }

    /// The same for images that are off by `more` besides.
    #[must_use]
    pub fn plus(self, more: f64) -> Self {
        Self { fixed: self.fixed + Self::new(more).fixed, ..self }
    }

    /// The same for images stretched by `factor`.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { relative: self.relative * factor, fixed: self.fixed * factor, ..self }
    }

    /// The bound for a unit vector.
    pub fn of_image(self) -> f64 {
        self.of_sum() + self.fixed
    }

    /// The bound where vectors are projected out before and after the product, and what is left of C has a trace of at most `rest`.
    #[must_use]
    pub fn projected(self, rest: f64) -> Self {
        let Self { relative, moment, fixed } = self;
        let rest = if rest.is_nan() { f64::INFINITY } else { rest };
        let sums = 2.0 * relative * ((moment * rest.max(0.0)).sqrt() + relative * moment);
        Self::new(sums.min(self.of_sum()) + fixed)
    }

    fn of_sum(self) -> f64 {
        if self.relative > 0.0 { self.relative * self.moment } else { 0.0 }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;

    #[test]
    fn what_bounds_nothing_is_infinite() {
        for bound in [f64::NAN, -1.0, f64::INFINITY] {
            assert_eq!(RoundingBound::new(bound).of_image(), f64::INFINITY);
            assert_eq!(RoundingBound::of_sums(1e-15, 1.0).plus(bound).of_image(), f64::INFINITY);
            assert_eq!(RoundingBound::of_sums(1e-15, bound).projected(1.0).of_image(), f64::INFINITY);
        }
    }

    #[test]
    fn projecting_leaves_the_root_of_the_rest_and_all_that_is_fixed() {
        let bound = RoundingBound::of_sums(2.0_f64.powi(-40), 1.0);
        assert_eq!(bound.of_image(), 2.0_f64.powi(-40));
        let rest = 2.0_f64.powi(-20);
        assert_eq!(bound.projected(rest).of_image(), 2.0_f64.powi(-49) + 2.0_f64.powi(-79));
        assert_eq!(bound.projected(1.0).of_image(), bound.of_image());
        assert_eq!(bound.plus(1.0).projected(0.0).of_image(), 1.0 + 2.0_f64.powi(-79));
        assert_eq!(RoundingBound::new(0.5).projected(0.0).of_image(), 0.5);
        assert_eq!(bound.times(4.0).of_image(), 2.0_f64.powi(-38));
    }
}
