//! The theorem behind ρᵢ, and the bounds on angles.
//!
//! Let L be locked vectors with Ritz values θⱼ, P = I − LLᵀ, and eⱼ = ‖P(Cwⱼ − θⱼwⱼ)‖. In a basis of L and its complement
//!
//! ```text
//! C = [Θ  E; Eᵀ  PCP],      row j of E has length eⱼ at most
//! ```
//!
//! For λ below all θⱼ, λ is an eigenvalue of C just where it is one of S(λ) = PCP − Eᵀ(Θ − λ)⁻¹E (Schur), and as many of C lie above λ
//! as there are locked vectors and eigenvalues of S(λ) above λ (Haynsworth). The m-th eigenvalue of S(λ) falls as λ grows, lies below that of
//! PCP, and not by more than Σeⱼ²/(θⱼ − λ). So if w is orthogonal to L with ‖P(Cw − θw)‖ ≤ r, and θ + r lies below all θⱼ, then C has an
//! eigenvalue in
//!
//! ```text
//! [θ − r − δ, θ + r],      δ = Σⱼ eⱼ²/(θⱼ − θ)
//! ```
//!
//! ρ = r + δ. Its eigenvector has a part (Θ − λ)⁻¹E·y along L, of length at most √Σ(eⱼ/(θⱼ − θ − ρ))², and y, which is that of S(λ), within
//! ρ/gap of w (Davis & Kahan).

use super::{Certainty, Certificate, Cluster, Locked, Next, Pairs, Status, orthonormality_loss, ritz_values};
use crate::linalg::{column_dots, residual_norms};
use crate::{Archive, Error};

/// The certificate of `pairs`, for a covariance with the given trace.
pub(super) fn certify(pairs: Pairs<'_>, total_variance: f64) -> Certificate {
    let k = pairs.vectors.p();
    let theta = ritz_values(pairs.vectors, pairs.images);
    let loss = orthonormality_loss(pairs.vectors);
    let parts = Parts::new(&pairs, theta, loss);
    let status: Vec<Status> = (0..k).map(|i| parts.status(i, &pairs, total_variance)).collect();
    let certificate = Certificate {
        orthonormality_loss: loss,
        image_rounding: parts.rounding.iter().copied().fold(0.0, f64::max),
        // C has no negative eigenvalue; rounding may suggest one.
        eigenvalues: parts.theta.iter().map(|theta| theta.max(0.0)).collect(),
        residuals: parts.rho.clone(),
        status,
        parts,
        ..Certificate::default()
    };
    // What the solver knows is about λ_{k+1}.
    let next = if certificate.n_varying() == k { pairs.next } else { Next::Unknown };
    with_angles(certificate, next, total_variance, pairs.vectors.d())
}

/// Bounds the angles of components with variance by what is known of the eigenvalue that follows them; d is the length of a vector.
pub(super) fn with_angles(
    mut certificate: Certificate,
    next: Next,
    total_variance: f64,
    d: usize,
) -> Certificate {
    let (loss, varying) = (certificate.orthonormality_loss, certificate.n_varying());
    let beyond = certificate.parts.beyond(next, varying, total_variance, d, loss);
    certificate.gap_is_proved = beyond.certainty == Certainty::Proved;
    certificate.certainty = beyond.certainty;
    certificate.failure_probability = beyond.failure_probability;
    certificate.beyond = beyond.value.is_finite().then_some(beyond.value);
    fill_angles(&mut certificate);
    certificate
}

/// Sets what follows from what was measured, and from what lies beyond.
pub(super) fn fill_angles(certificate: &mut Certificate) {
    let gaps = Gaps::of(certificate);
    let Gaps { parts, varying, .. } = gaps;
    let angle_bounds =
        (0..parts.theta.len()).map(|i| if i < varying { gaps.sine(i, i) } else { None }).collect();
    let clusters = gaps.clusters();
    let whole = (1..=varying).filter(|&m| gaps.between(m - 1, m) > 0.0).collect();
    let subspace_angle_bound = if varying == 0 { None } else { gaps.sine(0, varying - 1) };
    certificate.angle_bounds = angle_bounds;
    certificate.clusters = clusters;
    certificate.subspace_angle_bound = subspace_angle_bound;
    certificate.whole = whole;
    certificate.seen_from_values();
}

/// What is measured of each component.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parts {
    theta: Vec<f64>,
    /// Residuals without rounding.
    measured: Vec<f64>,
    pub(super) rounding: Vec<f64>,
    /// e: both.
    e: Vec<f64>,
    /// ρ.
    rho: Vec<f64>,
    /// How far an eigenvector leans towards locked ones.
    tilt: Vec<f64>,
    /// How far the Ritz values of a component's group may be from as many eigenvalues.
    spread: Vec<f64>,
}

impl Parts {
    fn new(pairs: &Pairs<'_>, theta: Vec<f64>, loss: f64) -> Self {
        let k = theta.len();
        let last = Locked { end: k, image_error: pairs.image_error };
        let groups = || pairs.locked.iter().copied().chain([last]);
        let rounding: Vec<f64> = (0..k)
            .map(|i| {
                groups().find(|group| i < group.end).map_or(pairs.image_error, |group| group.image_error)
            })
            .collect();
        let squares = column_dots(pairs.vectors, pairs.vectors);
        let measured: Vec<f64> = residual_norms(pairs.vectors, pairs.images, &theta)
            .into_iter()
            .zip(squares)
            .map(|(r, square)| if square == 0.0 { 0.0 } else { r / square.sqrt() })
            .collect();
        let e: Vec<f64> = measured.iter().zip(&rounding).map(|(r, rounding)| r + rounding).collect();
        let (mut rho, mut tilt, mut spread) = (e.clone(), vec![0.0; k], vec![0.0; k]);
        let mut start = 0;
        for group in groups() {
            let end = group.end.clamp(start, k);
            for i in start..end {
                let (delta, lean) = coupling(&theta, &e, start, i);
                rho[i] += delta;
                tilt[i] = lean;
            }
            // ‖R‖_F/σ_min(W): Kahan's theorem for W = QS with orthonormal Q; WᵀW has no eigenvalue below 1 − loss.
            let together = match 1.0 - loss {
                left if left > 0.0 => crate::block::norm(&rho[start..end]) / left.sqrt(),
                _ => f64::INFINITY,
            };
            spread[start..end].fill(together);
            start = end;
        }
        Self { theta, measured, rounding, e, rho, tilt, spread }
    }

    /// Whether θᵢ is rounding, and nothing can be done about that; else open.
    fn status(&self, i: usize, pairs: &Pairs<'_>, total_variance: f64) -> Status {
        let floor = self.rounding[i] + (self.rho[i] - self.e[i]);
        let locked = pairs.locked.last().map_or(0, |group| group.end);
        let null = i >= locked && !pairs.may_lock && self.theta[i] <= floor && self.measured[i] <= floor;
        // That the first has no variance says that there is none: the trace must bear that out, unless the solver knows all eigenvalues.
        let all_known = matches!(pairs.next, Next::Proved(_) | Next::Nothing);
        let borne_out = i > 0 || all_known || total_variance <= self.theta[i] + self.rho[i];
        if null && borne_out { Status::NoVariance } else { Status::Open }
    }

    /// Of a certificate that says no more than this.
    pub(super) fn unknown(theta: &[f64], rho: &[f64], rounding: f64) -> Self {
        let (k, theta, rho) = (theta.len(), theta.to_vec(), rho.to_vec());
        let measured = rho.iter().map(|rho| (rho - rounding).max(0.0)).collect();
        let spread = vec![crate::block::norm(&rho); k];
        Self { theta, measured, rounding: vec![rounding; k], e: rho.clone(), rho, tilt: vec![0.0; k], spread }
    }

    /// Walks over everything of k components.
    pub(super) fn archive(&mut self, k: usize, archive: &mut Archive<'_>) -> Result<(), Error> {
        let Self { theta, measured, rounding, e, rho, tilt, spread } = self;
        let names = ["theta", "measured", "rounding", "e", "rho", "tilt", "spread"];
        for (name, list) in names.into_iter().zip([theta, measured, rounding, e, rho, tilt, spread]) {
            // Infinities stand for what is not bounded; archives hold finite numbers.
            list.iter_mut().for_each(|x| *x = x.min(f64::MAX));
            archive.list(name, list)?;
            archive.check(name, list.len() == k, "has not one number for each component")?;
        }
        Ok(())
    }

    /// The part that concerns the first `count` components.
    pub(super) fn truncate(&mut self, count: usize) {
        let Self { theta, measured, rounding, e, rho, tilt, spread } = self;
        [theta, measured, rounding, e, rho, tilt, spread].into_iter().for_each(|list| list.truncate(count));
    }

    /// What λ_{m+1} is known not to exceed, for the first m components.
    fn beyond(&self, next: Next, m: usize, total_variance: f64, d: usize, loss: f64) -> Beyond {
        let lowest = self.theta[..m].iter().copied().fold(f64::INFINITY, f64::min);
        let spread = self.spread[..m].last().copied().unwrap_or(0.0);
        // Ky Fan: Σθᵢ ≤ λ₁ + … + λ_m, so that the trace leaves at most the rest for λ_{m+1}.
        let slack = self.rounding[..m].iter().sum::<f64>() + loss * total_variance;
        let left_over =
            total_variance * (1.0 + d as f64 * f64::EPSILON) - self.theta[..m].iter().sum::<f64>() + slack;
        let is_proved = |bound: f64| bound < lowest - spread;
        let certain = |value| Beyond { value, certainty: Certainty::Proved, failure_probability: None };
        match next {
            Next::Nothing => certain(f64::NEG_INFINITY),
            Next::Proved(bound) if is_proved(bound.min(left_over)) => certain(bound.min(left_over)),
            _ if is_proved(left_over) => certain(left_over),
            Next::Probable { bound, failure_probability } if is_proved(bound) => Beyond {
                value: bound,
                certainty: Certainty::Probability,
                failure_probability: Some(failure_probability),
            },
            // Ritz values that residuals hardly tell apart may hide another between them: such a gap is no estimate.
            Next::Estimated(value)
                if lowest - value < TOLD_APART * self.rho[..m].last().copied().unwrap_or(0.0) =>
            {
                Beyond {
                    value: value.max(lowest),
                    certainty: Certainty::Estimated,
                    failure_probability: None,
                }
            }
            // A bound that does not separate tells that k cuts a cluster.
            Next::Estimated(value) | Next::Proved(value) | Next::Probable { bound: value, .. } => {
                Beyond { value, certainty: Certainty::Estimated, failure_probability: None }
            }
            _ => Beyond { value: f64::INFINITY, certainty: Certainty::Estimated, failure_probability: None },
        }
    }
}

/// How many residuals an estimated gap must measure.
const TOLD_APART: f64 = 10.0;

/// What lies beyond the components, and how certain that is.
struct Beyond {
    value: f64,
    certainty: Certainty,
    failure_probability: Option<f64>,
}

/// δ and the lean of component i towards the first `locked` ones. Where it is not well below these, all that couples them counts.
fn coupling(theta: &[f64], e: &[f64], locked: usize, i: usize) -> (f64, f64) {
    let gap = |j: usize, room: f64| theta[j] - theta[i] - room;
    if (0..locked).any(|j| gap(j, e[i]) <= 0.0) {
        let all = crate::block::norm(&e[..locked]);
        return (all, f64::INFINITY);
    }
    let delta: f64 = (0..locked).map(|j| e[j] * (e[j] / gap(j, 0.0))).sum();
    let lean =
        |j: usize| if gap(j, e[i] + delta) > 0.0 { e[j] / gap(j, e[i] + delta) } else { f64::INFINITY };
    (delta, crate::block::norm(&(0..locked).map(lean).collect::<Vec<_>>()))
}

/// Distances between eigenvalues, from below.
struct Gaps<'a> {
    parts: &'a Parts,
    /// Components with variance.
    varying: usize,
    /// λ_{varying + 1} from above.
    beyond: f64,
}

/// A bound on the angle of the space of components `first` to `last`.
pub(super) fn space_angle(certificate: &Certificate, first: usize, last: usize) -> Option<f64> {
    let gaps = Gaps::of(certificate);
    if first <= last && last < gaps.varying { gaps.sine(first, last) } else { None }
}

impl<'a> Gaps<'a> {
    fn of(certificate: &'a Certificate) -> Self {
        // Proved without a bound: there is nothing beyond.
        let nothing = if certificate.gap_is_proved { f64::NEG_INFINITY } else { f64::INFINITY };
        let beyond = certificate.beyond.unwrap_or(nothing);
        Self { parts: &certificate.parts, varying: certificate.n_varying(), beyond }
    }
}

impl Gaps<'_> {
    /// From component i to the eigenvalue that θⱼ stands for; j = `varying` is what lies beyond.
    fn between(&self, i: usize, j: usize) -> f64 {
        let Parts { theta, spread, .. } = self.parts;
        if j == self.varying { theta[i] - self.beyond } else { (theta[i] - theta[j]).abs() - spread[j] }
    }

    /// A bound on the sine of the largest angle of the space of components `first` to `last`, if it is below 1. For orthonormal eigenvectors X outside,
    /// Xᵀ(Cw − θw) = (Λ − θ)Xᵀw: each vector has a part of at most ρ/gap among them. What leans towards locked vectors is no loss where these
    /// belong to the space.
    fn sine(&self, first: usize, last: usize) -> Option<f64> {
        let part = |i: usize| {
            let outside = (0..first).chain(last + 1..=self.varying);
            let gap = outside.map(|j| self.between(i, j)).fold(f64::INFINITY, f64::min);
            let tilt = if first > 0 { self.parts.tilt[i] } else { 0.0 };
            if gap > 0.0 { self.parts.rho[i] / gap + tilt } else { f64::INFINITY }
        };
        let sine = crate::block::norm(&(first..=last).map(part).collect::<Vec<_>>());
        (sine < 1.0).then_some(sine)
    }

    /// Runs of neighbours that are closer than their residuals.
    fn clusters(&self) -> Vec<Cluster> {
        let rho = &self.parts.rho;
        let linked = |i: usize| {
            let gap = self.between(i, i + 1).min(self.between(i + 1, i));
            gap.is_nan() || gap <= rho[i].max(rho[i + 1])
        };
        let mut clusters: Vec<Cluster> = Vec::new();
        for i in (1..self.varying).filter(|i| linked(i - 1)) {
            match clusters.last_mut() {
                Some(cluster) if cluster.1 == i - 1 => cluster.1 = i,
                _ => clusters.push(Cluster(i - 1, i, None)),
            }
        }
        clusters.iter_mut().for_each(|cluster| cluster.2 = self.sine(cluster.0, cluster.1));
        clusters
    }
}
