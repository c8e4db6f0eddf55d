//! Claim by claim.
//!
//! Numbers that were computed twice differ by the rounding of both. With e the bound on the rounding of an image found here:
//!
//! ```text
//! θ      |θ − θ′| ≤ 2e + e′                          e′: the rounding that is stored, which is part of ρ′
//! ρ      ρ ≤ ρ′ + 2e                                 ρ′ bounds the residual to what can be told here
//! angle  a ≤ 2a′·max(1, ρ/ρ′)                        the gap that a′ rests on is at most twice the one found here
//! mean   |μ − μ′| ≤ 2nε(|μ| + σ)                     a sum of n numbers rounds by nε of their magnitudes, whose mean is |μ| + σ at most
//! scale  |s/s′ − 1| ≤ 4nε(1 + |μ|/σ)                 and so do their squares
//! ```

use serde::Serialize;

use super::{Claims, Facts, Leading};
use crate::Outcome;
use crate::certificate::Next;
use crate::certificate::{Certainty, Certificate, Cluster, Status};

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is what was found, or less.
    Holds,
    /// It is not, or not to be had from the data though it is called a theorem.
    Fails,
    /// It was an estimate, and is neither confirmed nor refuted.
    Unverified,
}

/// A claim, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Claim {
    /// What it is about.
    pub claim: &'static str,
    /// What became of it.
    pub verdict: Verdict,
    /// In words, with the numbers.
    pub found: String,
}

impl Claim {
    /// One that holds, or fails for a reason.
    pub(super) fn required(claim: &'static str, fault: Option<String>) -> Self {
        let verdict = if fault.is_none() { Verdict::Holds } else { Verdict::Fails };
        Self { claim, verdict, found: fault.unwrap_or_default() }
    }
}

/// The claims so far.
#[derive(Default)]
struct List(Vec<Claim>);

impl List {
    fn add(&mut self, claim: &'static str, verdict: Verdict, found: String) {
        self.0.push(Claim { claim, verdict, found });
    }

    /// One that holds, or fails for a reason.
    fn require(&mut self, claim: &'static str, fault: Option<String>) {
        self.0.push(Claim::required(claim, fault));
    }
}

/// Every claim against what was found; `demanded` is a tolerance that somebody asks for who does not believe the model's.
pub(super) fn compare(claims: &Claims<'_>, facts: &Facts<'_>, demanded: Option<f64>) -> Vec<Claim> {
    let mut list = List::default();
    list.require("rows", rows(claims, facts));
    list.require("weight", weight(claims, facts));
    list.require("preparation", shift(claims, facts).or_else(|| scale(claims, facts)));
    list.require("total variance", total_variance(claims, facts));
    list.require("eigenvalues", eigenvalues(claims, facts));
    list.require("residuals", residuals(claims, facts));
    list.require("intervals", intervals(claims));
    list.require("orthonormality", orthonormality(claims, facts));
    list.require("status", status(claims, facts));
    list.require("leading", leading(facts));
    let (verdict, found) = angles(claims.certificate, facts);
    list.add("angles", verdict, found);
    if let Some(tol) = demanded {
        list.require("tolerance", tolerance(facts, tol));
    }
    list.0
}

fn rows(claims: &Claims<'_>, facts: &Facts<'_>) -> Option<String> {
    let (stored, found) = (claims.model.summary().n, facts.statistics.n_rows());
    (stored != found).then(|| format!("the model was fitted on {stored} rows, the data has {found}"))
}

fn weight(claims: &Claims<'_>, facts: &Facts<'_>) -> Option<String> {
    let (stored, found) = (claims.model.summary().weight, facts.statistics.weight());
    let rounding = facts.statistics.n_rows() as f64 * f64::EPSILON * found;
    let off = (stored - found).abs() > rounding || stored.is_nan();
    off.then(|| format!("the rows of the fit weighed {stored} in all, those of the data weigh {found}"))
}

/// nε: what a sum over the rows rounds by.
fn of_sums(facts: &Facts<'_>) -> f64 {
    facts.statistics.n_rows() as f64 * f64::EPSILON
}

fn shift(claims: &Claims<'_>, facts: &Facts<'_>) -> Option<String> {
    let (found, stored) = (facts.map.shift(), claims.model.shift());
    let variance = facts.statistics.variance();
    let mean = facts.statistics.mean();
    let at = |part: Option<&[f64]>, j: usize| part.map_or(0.0, |values| values[j]);
    let off = |j: &usize| {
        let allowed = 2.0 * of_sums(facts) * (mean[*j].abs() + variance[*j].max(0.0).sqrt());
        (at(found, *j) - at(stored, *j)).abs() > allowed
    };
    let j = (0..mean.len()).find(off)?;
    let (found, stored) = (at(found, j), at(stored, j));
    Some(format!(
        "column {j} (counted from 0) is shifted by {stored:e}, the data's own value is {found:e}: other means"
    ))
}

fn scale(claims: &Claims<'_>, facts: &Facts<'_>) -> Option<String> {
    let (found, stored) = (facts.map.scale(), claims.model.scale());
    let (variance, mean) = (facts.statistics.variance(), facts.statistics.mean());
    let at = |part: Option<&[f64]>, j: usize| part.map_or(1.0, |values| values[j]);
    let off = |j: &usize| {
        let lean = 1.0 + mean[*j].abs() / variance[*j].max(f64::MIN_POSITIVE).sqrt();
        let ratio = at(found, *j) / at(stored, *j);
        (ratio - 1.0).abs() > 4.0 * of_sums(facts) * lean
    };
    let j = (0..mean.len()).find(off)?;
    let (found, stored) = (at(found, j), at(stored, j));
    Some(format!(
        "column {j} (counted from 0) is divided by {stored:e}, the data's own value is {found:e}: other scales"
    ))
}

fn total_variance(claims: &Claims<'_>, facts: &Facts<'_>) -> Option<String> {
    let (stored, found) = (claims.model.summary().total_variance, facts.map.total_variance());
    // A sum over all rows and columns rounds like an image of all rows, and like its d terms.
    let terms = (claims.model.n_features() as f64 + 8.0) * f64::EPSILON * found.max(stored);
    let off = (stored - found).abs() > 4.0 * facts.found.image_rounding + 4.0 * terms;
    off.then(|| format!("the stored trace of C is {stored:e}, that of the data {found:e}"))
}

/// The rounding that is stored with a model is part of its residuals.
fn stored_rounding(claims: &Claims<'_>, i: usize) -> f64 {
    claims.certificate.image_rounding.min(claims.certificate.residuals[i])
}

fn eigenvalues(claims: &Claims<'_>, facts: &Facts<'_>) -> Option<String> {
    let (stored, found) = (claims.model.eigenvalues(), &facts.found.eigenvalues);
    let off = |i: &usize| {
        let allowed = 2.0 * facts.found.rounding(*i) + stored_rounding(claims, *i);
        let distance = (stored[*i] - found[*i]).abs();
        distance > allowed || distance.is_nan()
    };
    if let Some(i) = (0..found.len()).find(off) {
        return Some(format!(
            "component {} has {:e} in the data, {:e} is stored",
            i + 1,
            found[i],
            stored[i]
        ));
    }
    // Neighbours that are equal to what is known of them have no order.
    let slack = |i: usize| claims.certificate.residuals[i] + claims.certificate.residuals[i - 1];
    let i = (1..stored.len()).find(|i| stored[*i] > stored[i - 1] + slack(*i))?;
    Some(format!("component {} has a larger eigenvalue than the one before it", i + 1))
}

fn residuals(claims: &Claims<'_>, facts: &Facts<'_>) -> Option<String> {
    let (stored, found) = (&claims.certificate.residuals, &facts.found.residuals);
    let off = |i: &usize| {
        found[*i] > stored[*i] + 2.0 * facts.found.rounding(*i) || stored[*i].is_nan() || stored[*i] < 0.0
    };
    if let Some(i) = (0..found.len()).find(off) {
        return Some(format!(
            "component {} has a residual of {:.1e} in the data, {:.1e} is stored",
            i + 1,
            found[i],
            stored[i]
        ));
    }
    let largest = stored.iter().copied().fold(0.0, f64::max);
    let rounding = claims.certificate.image_rounding;
    (rounding > largest).then(|| {
        format!("the stored rounding {rounding:.1e} is larger than every residual, of which it is a part")
    })
}

/// Intervals and relative residuals follow from eigenvalues and residuals.
fn intervals(claims: &Claims<'_>) -> Option<String> {
    let stored = claims.certificate;
    let mut derived = stored.clone();
    derived.seen_from_values();
    // Infinities are equal by their bits alone.
    let same = |a: f64, b: f64| {
        a.to_bits() == b.to_bits() || (a - b).abs() <= 8.0 * f64::EPSILON * a.abs().max(b.abs())
    };
    let wrong = |i: &usize| {
        let relative = same(derived.relative_residuals[*i], stored.relative_residuals[*i]);
        let [a, b] = [&derived, stored].map(|x| x.eigenvalue_intervals[*i]);
        // θ − ρ cancels: its rounding is that of θ + ρ.
        let close = |x: f64, y: f64| same(x, y) || (x - y).abs() <= 8.0 * f64::EPSILON * a[1];
        !(relative && close(a[0], b[0]) && close(a[1], b[1]))
    };
    let i = (0..stored.residuals.len()).find(wrong)?;
    Some(format!("the interval or the relative residual of component {} is not that of its residual", i + 1))
}

fn orthonormality(claims: &Claims<'_>, facts: &Facts<'_>) -> Option<String> {
    let (stored, found) = (claims.certificate.orthonormality_loss, facts.found.orthonormality_loss);
    let k = claims.model.n_components() as f64;
    // k² inner products of d numbers round by dε each.
    let rounding = k * claims.model.n_features() as f64 * f64::EPSILON;
    let most = rounding.max(k * f64::EPSILON.sqrt());
    if found.is_nan() || found > most {
        return Some(format!("the components are not orthonormal: ‖WᵀW − I‖ = {found:.1e}"));
    }
    (found > stored + 2.0 * rounding).then(|| format!("‖WᵀW − I‖ is {found:.1e}, {stored:.1e} is stored"))
}

fn status(claims: &Claims<'_>, facts: &Facts<'_>) -> Option<String> {
    let stored = claims.certificate;
    if !claims.judges_each_component {
        return None;
    }
    let beyond = |i: &usize| {
        let (theta, rho) = (stored.eigenvalues[*i], stored.residuals[*i]);
        match stored.status[*i] {
            Status::Converged => rho > claims.tol * theta * (1.0 + 8.0 * f64::EPSILON),
            Status::NoVariance => facts.found.eigenvalues[*i] > rho + 2.0 * facts.found.rounding(*i),
            Status::Open => rho <= claims.tol * theta && claims.outcome == Outcome::Converged,
            Status::Stagnated => false,
        }
    };
    if let Some(i) = (0..stored.status.len()).find(beyond) {
        let name = stored.status[i].name();
        return Some(format!("component {} is called {name}, which its own numbers contradict", i + 1));
    }
    let done = |status: &Status| matches!(status, Status::Converged | Status::NoVariance);
    let whole = stored.status.iter().all(done);
    (claims.outcome == Outcome::Converged && !whole)
        .then(|| "the run is called converged, and a component is not".to_owned())
}

fn leading(facts: &Facts<'_>) -> Option<String> {
    (facts.leading == Leading::Refuted).then(|| {
        "the components do not lead: there is more variance beside them than along the last".to_owned()
    })
}

fn tolerance(facts: &Facts<'_>, tol: f64) -> Option<String> {
    let worst = facts.found.worst();
    (!facts.found.holds(tol))
        .then(|| format!("a residual is {worst:.1e} of its eigenvalue, the tolerance {tol:.1e}"))
}

/// Whether what is called a theorem, or holds with a probability, is found to be so.
pub(super) fn theorem_is_settled(stored: &Certificate, found: &Certificate) -> bool {
    let settled = || found.certainty != Certainty::Estimated && angles_are_supported(stored, found);
    stored.certainty == Certainty::Estimated || settled()
}

/// Spaces with a bound: the first and the last component of each, and the bound.
fn bounded_spaces(stored: &Certificate) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
    let single =
        (0..stored.angle_bounds.len()).filter_map(|i| stored.angle_bounds[i].map(|angle| (i, i, angle)));
    let clusters = stored
        .clusters
        .iter()
        .filter_map(|Cluster(first, last, angle)| angle.map(|angle| (*first, *last, angle)));
    let all = stored.subspace_angle_bound.zip(stored.n_varying().checked_sub(1));
    single.chain(clusters).chain(all.map(|(angle, last)| (0, last, angle)))
}

fn angles_are_supported(stored: &Certificate, found: &Certificate) -> bool {
    bounded_spaces(stored).all(|(first, last, angle)| is_supported(stored, found, first, last, angle))
}

fn is_supported(stored: &Certificate, found: &Certificate, first: usize, last: usize, angle: f64) -> bool {
    let rho = |certificate: &Certificate| crate::block::norm(&certificate.residuals[first..=last]);
    let (claimed, here) = (rho(stored), rho(found));
    let more = if claimed > 0.0 { (here / claimed).max(1.0) } else { 1.0 };
    let slack = if claimed > 0.0 { 0.0 } else { f64::INFINITY };
    (0.0..1.0).contains(&angle)
        && found.space_angle(first, last).is_some_and(|sine| sine <= 2.0 * angle * more + slack)
}

fn angles(stored: &Certificate, facts: &Facts<'_>) -> (Verdict, String) {
    let found = facts.found;
    let consistent = stored.gap_is_proved == (stored.certainty == Certainty::Proved)
        && stored.failure_probability.is_some() == (stored.certainty == Certainty::Probability);
    if !consistent {
        let words = "what is stored about the certainty of the angles contradicts itself";
        return (Verdict::Fails, words.to_owned());
    }
    if let Some((first, ..)) = bounded_spaces(stored).find(|(_, _, angle)| !(0.0..1.0).contains(angle)) {
        return (Verdict::Fails, format!("the sine of an angle of component {} is none", first + 1));
    }
    let supported = angles_are_supported(stored, found);
    let certain = found.certainty != Certainty::Estimated;
    match stored.certainty {
        Certainty::Estimated if supported => (Verdict::Holds, String::new()),
        Certainty::Estimated if is_refuted(stored, facts) => {
            let words = "an estimated angle is smaller than the gap in the data allows";
            (Verdict::Fails, words.to_owned())
        }
        Certainty::Estimated => {
            let words = "angles were estimated by the fit, and could neither be confirmed nor refuted";
            (Verdict::Unverified, words.to_owned())
        }
        Certainty::Probability
            if stored
                .failure_probability
                .is_some_and(|stored| found.failure_probability.is_some_and(|found| found > stored)) =>
        {
            let words =
                "angles are claimed with a higher probability than this check can give: try --certify";
            (Verdict::Fails, words.to_owned())
        }
        _ if certain && supported => (Verdict::Holds, String::new()),
        _ => {
            let words = "angles are claimed to be proved or probable, and the data does not bear that out";
            (Verdict::Fails, words.to_owned())
        }
    }
}

/// Whether even the largest gap that the data may have is too small: the eigenvalue that follows is at least what the probe found.
fn is_refuted(stored: &Certificate, facts: &Facts<'_>) -> bool {
    let least = facts.probe.map_or(0.0, |probe| probe.least);
    let (total_variance, d) = (facts.map.total_variance(), facts.statistics.n_cols());
    let most = facts.found.clone().knowing(Next::Estimated(least), total_variance, d);
    !angles_are_supported(stored, &most)
}
