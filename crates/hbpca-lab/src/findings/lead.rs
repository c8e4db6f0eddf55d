//! Which contender is ahead, and by how much.

use crate::race::{Lane, Race};

/// Passes to the race's target; ∞ where it is not reached.
pub fn passes(race: &Race, lane: &Lane) -> f64 {
    lane.curve.passes_to(race.target).unwrap_or(f64::INFINITY)
}

/// How many times faster `a` is than `b`: the quotient of their passes to the target or, where neither reaches it, of the
/// digits they win within the budget. Above 1 where `a` is ahead; ∞ where only `a` arrives.
pub fn speed_up(race: &Race, a: &Lane, b: &Lane) -> f64 {
    let (passes_a, passes_b) = (passes(race, a), passes(race, b));
    if passes_a.is_finite() || passes_b.is_finite() {
        return passes_b / passes_a;
    }
    let digits = |lane: &Lane| (-lane.curve.final_log_error()).max(f64::MIN_POSITIVE);
    digits(a) / digits(b)
}

/// Passes as text.
pub fn passes_text(race: &Race, lane: &Lane) -> String {
    let passes = passes(race, lane);
    if passes.is_finite() {
        format!("{passes:.1}")
    } else {
        format!("> {} (log₁₀ error {:.1})", race.passes, lane.curve.final_log_error())
    }
}

/// A factor as text.
pub fn factor_text(factor: f64) -> String {
    if factor.is_infinite() {
        "∞".to_owned()
    } else if factor == 0.0 {
        "0 (it does not arrive)".to_owned()
    } else {
        format!("{factor:.2}")
    }
}
