//! Rounding of sums: the one place where such bounds are derived.

/// The unit roundoff of f32 as a multiple of that of f64.
pub(crate) const SINGLE: f64 = f32::EPSILON as f64 / f64::EPSILON;

/// Relative rounding of a sum of `terms` products in f64: the smaller of the worst case γₘ ≈ m·u and of 8√m·u, which
/// holds but with probability below 10⁻¹³ for rounding errors of mean zero (Higham & Mary 2019, theorem 2.4).
pub(crate) fn rounding_of_sum(terms: usize) -> f64 {
    let m = (terms + 4) as f64;
    f64::EPSILON / 2.0 * m.min(8.0 * m.sqrt())
}

/// A bound on ‖fl(Cv) − Cv‖ for unit vectors v: how far images may be off by rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct RoundingBound(f64);

impl RoundingBound {
    /// Images of unit vectors are off by at most `bound`. What is negative or no number bounds nothing: it counts as infinite, so
    /// that no residual with it ever meets a tolerance.
    pub const fn new(bound: f64) -> Self {
        Self(if bound >= 0.0 { bound } else { f64::INFINITY })
    }

    /// The bound for a unit vector.
    pub const fn of_image(self) -> f64 {
        self.0
    }
}
