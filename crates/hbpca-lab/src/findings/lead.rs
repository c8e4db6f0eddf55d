//! Which contender is ahead, by how much, and how certain that is.

use crate::race::{Lane, Race, Run};
use crate::statistics::Interval;

/// Passes to the race's target, on the mean curve; ∞ where it is not reached.
pub fn passes(race: &Race, lane: &Lane) -> f64 {
    lane.curve.passes_to(race.target).unwrap_or(f64::INFINITY)
}

/// How many times faster `a` is than `b`: the geometric mean, over the seeds, of the quotient of their digits per pass up to the target, which is
/// that of their passes where both arrive. Runs of one seed begin with the same vector, so that the quotients are taken pair by pair; the ends are those of Student's 95 % interval
/// for the mean of their logarithms. Above 1 where `a` is ahead. With a single seed the interval is the whole line.
pub fn speed_up(race: &Race, a: &Lane, b: &Lane) -> Interval {
    /// Digits per pass of a run that wins none.
    const NOTHING: f64 = 1e-6;
    let rate = |run: &Run| run.digits_per_pass(race.target).max(NOTHING);
    let pair = |a: &Run| b.runs.iter().find(|b| b.seed == a.seed).map(|b| (rate(a) / rate(b)).ln());
    let logarithms: Vec<f64> = a.runs.iter().filter_map(pair).collect();
    Interval::of_mean(&logarithms).exp()
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

/// A factor and its interval as text.
pub fn factor_text(factor: Interval) -> String {
    if factor.high.is_infinite() {
        format!("{:.2} (one seed)", factor.mean)
    } else {
        format!("{:.2} [{:.2}, {:.2}]", factor.mean, factor.low, factor.high)
    }
}
