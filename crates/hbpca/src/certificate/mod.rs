//! What is known about an answer, and why.
//!
//! For a unit vector w with image Cw and θ = wᵀCw, the residual r = ‖Cw − θw‖ proves that C has an eigenvalue in
//! \[θ − r, θ + r\]. For orthonormal W the k Ritz values lie within ‖R‖_F of k eigenvalues (Kahan), and
//!
//! ```text
//! sin∠(wᵢ, uᵢ) ≤ rᵢ / gapᵢ,      ‖sin∠(W, U)‖_F ≤ ‖R‖_F / (θ_k − λ_{k+1})        (Davis & Kahan)
//! ```
//!
//! Where one component dominates, the rounding of its image hides the others. Vectors are then locked: later ones are
//! found with these projected out, and ρᵢ, the residual that is compared with the tolerance, counts what was left along
//! them (`bounds.rs` has the theorem).
//!
//! The gaps need λ_{k+1} from above. It is *proved* where the trace of C, which is known, leaves too little room:
//! λ_{k+1} ≤ tr C − Σθᵢ (Ky Fan), or where the solver knows the whole spectrum. It holds *with a probability* after a
//! [probe](crate::probe). Otherwise it is *estimated*, and the certificate says so. Every residual includes a bound on the rounding of its image.

mod bounds;
mod check;
mod locking;
mod words;

pub use check::check;
pub(crate) use check::rest_of;
pub(crate) use locking::{LockRule, Prospect};

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::linalg::{column_dots, gram};
use crate::{Archive, Block, Error};

/// What is known about λ_{k+1}, the first eigenvalue that is not sought.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Next {
    /// Nothing.
    Unknown,
    /// An estimate.
    Estimated(f64),
    /// A bound from above that holds but with the given probability.
    Probable {
        /// The bound.
        bound: f64,
        /// The probability with which it fails.
        failure_probability: f64,
    },
    /// A bound from above.
    Proved(f64),
    /// There is none: k = d.
    Nothing,
}

impl Next {
    pub(crate) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        let (mut kind, mut value) = match *self {
            Self::Estimated(estimate) => (1, Some(estimate)),
            Self::Proved(bound) => (2, Some(bound)),
            Self::Nothing => (3, None),
            // Probes come after runs.
            Self::Unknown | Self::Probable { .. } => (0, None),
        };
        archive.count("kind", &mut kind)?;
        archive.optional("value", &mut value)?;
        *self = match (kind, value) {
            (1, Some(estimate)) => Self::Estimated(estimate),
            (2, Some(bound)) => Self::Proved(bound),
            (3, None) => Self::Nothing,
            _ => Self::Unknown,
        };
        Ok(())
    }
}

/// How certain the angle bounds are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Certainty {
    /// Theorems.
    Proved,
    /// They hold but with a stated probability.
    Probability,
    /// They rest on an estimate of λ_{k+1}.
    #[default]
    Estimated,
}

/// What became of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Status {
    /// ρᵢ ≤ tol·θᵢ.
    Converged,
    /// Rounding does not let ρᵢ fall to tol·θᵢ.
    Stagnated,
    /// θᵢ cannot be told from 0.
    NoVariance,
    /// ρᵢ is still above tol·θᵢ.
    #[default]
    Open,
}

impl Status {
    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Stagnated => "stagnated",
            Self::NoVariance => "no-variance",
            Self::Open => "open",
        }
    }
}

/// Components whose eigenvalues are too close to tell their vectors apart: the first and the last of them, counted from 0, and a bound on the sine of
/// the largest angle of the space they span, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster(pub usize, pub usize, pub Option<f64>);

/// Vectors that were locked together: all before `end` that no earlier group has. Their images have the vectors of earlier groups projected out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Locked {
    /// Where the next group begins.
    pub end: usize,
    /// A bound on the rounding of each of their images, relative to a unit vector.
    pub image_error: f64,
}

/// What a solver currently offers as eigenvectors, with their images.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// d×k, orthonormal columns.
    pub vectors: &'a Block,
    /// C times the vectors, less what lies along those of earlier groups.
    pub images: &'a Block,
    /// A bound on the rounding of each image that follows the locked ones, relative to a unit vector.
    pub image_error: f64,
    /// What the solver knows of λ_{k+1}.
    pub next: Next,
    /// Groups of locked vectors.
    pub locked: &'a [Locked],
    /// Whether locking more vectors would lower `image_error`: what seems to have no variance may have some then.
    pub may_lock: bool,
}

impl<'a> Pairs<'a> {
    /// Vectors of which none is locked.
    pub fn new(vectors: &'a Block, images: &'a Block, image_error: f64, next: Next) -> Self {
        Self { vectors, images, image_error, next, locked: &[], may_lock: false }
    }
}

/// Proof of eigenvalues and, where the gaps allow, of eigenvectors. The default is about none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Certificate {
    /// θᵢ, descending.
    #[serde(skip)]
    pub eigenvalues: Vec<f64>,
    /// ρᵢ: the residual of wᵢ with the rounding of its image, and what locked vectors left along it.
    pub residuals: Vec<f64>,
    /// ρᵢ/θᵢ; infinite where θᵢ is not positive, or cannot be told from 0.
    pub relative_residuals: Vec<f64>,
    /// What became of each component; [`judged`](Self::judged) by a tolerance.
    #[serde(default)]
    pub status: Vec<Status>,
    /// \[θᵢ − ρᵢ, θᵢ + ρᵢ\] contains an eigenvalue of C.
    pub eigenvalue_intervals: Vec<[f64; 2]>,
    /// Bounds on sin∠(wᵢ, uᵢ), below 1; nothing where neighbours are too close to tell single vectors apart.
    pub angle_bounds: Vec<Option<f64>>,
    /// Components that are determined only together.
    #[serde(default)]
    pub clusters: Vec<Cluster>,
    /// Bound on the sine of the largest angle between the whole subspace, components without variance apart, and the leading one; nothing where λ_{k+1} is
    /// unknown or too close.
    pub subspace_angle_bound: Option<f64>,
    /// Whether the angle bounds are theorems (`true`), or hold with a probability or rest on an estimate of λ_{k+1} (`false`).
    pub gap_is_proved: bool,
    /// How certain the angle bounds are.
    #[serde(default)]
    pub certainty: Certainty,
    /// The probability with which they fail, after a probe.
    #[serde(default)]
    pub failure_probability: Option<f64>,
    /// ‖WᵀW − I‖_F.
    pub orthonormality_loss: f64,
    /// The largest part of a residual that bounds the rounding of its image.
    pub image_rounding: f64,
    /// What was measured of each component.
    #[serde(skip)]
    pub(crate) parts: bounds::Parts,
    /// Numbers of components, at most k, that cut no cluster.
    #[serde(skip)]
    pub(crate) whole: Vec<usize>,
    /// An upper bound on λ_{k+1}, or an estimate: what the angles rest on.
    #[serde(skip)]
    pub(crate) beyond: Option<f64>,
}

impl Certificate {
    /// Certifies the pairs a solver offers, for a covariance with the given trace.
    pub fn new(pairs: Pairs<'_>, total_variance: f64) -> Self {
        bounds::certify(pairs, total_variance)
    }

    /// Walks over the certificate of k pairs.
    pub(crate) fn archive(&mut self, k: usize, archive: &mut Archive<'_>) -> Result<(), Error> {
        /// Stands for an angle without a bound, which no bound is.
        const UNBOUNDED: f64 = -1.0;
        let mut angles: Vec<f64> = self.angle_bounds.iter().map(|x| x.unwrap_or(UNBOUNDED)).collect();
        let mut null: Vec<f64> =
            self.status.iter().map(|status| f64::from(u8::from(*status == Status::NoVariance))).collect();
        archive.list("eigenvalues", &mut self.eigenvalues)?;
        archive.list("residuals", &mut self.residuals)?;
        archive.list("angle_bounds", &mut angles)?;
        if archive.has("null") {
            archive.list("null", &mut null)?;
        } else {
            null = vec![0.0; k];
        }
        for (name, list) in [
            ("eigenvalues", &self.eigenvalues),
            ("residuals", &self.residuals),
            ("angle_bounds", &angles),
            ("null", &null),
        ] {
            archive.check(name, list.len() == k, "has not one number for each component")?;
        }
        archive.optional("subspace_angle_bound", &mut self.subspace_angle_bound)?;
        archive.flag("gap_is_proved", &mut self.gap_is_proved)?;
        archive.number("orthonormality_loss", &mut self.orthonormality_loss)?;
        archive.number("image_rounding", &mut self.image_rounding)?;
        let knows_parts = archive.has("parts.theta");
        if knows_parts {
            archive.part("parts", |archive| self.parts.archive(k, archive))?;
            archive.optional("beyond", &mut self.beyond)?;
        }
        if archive.is_restoring() {
            self.angle_bounds = angles.into_iter().map(|x| (x >= 0.0).then_some(x)).collect();
            self.certainty = if self.gap_is_proved { Certainty::Proved } else { Certainty::Estimated };
            self.status =
                null.iter().map(|x| if *x > 0.0 { Status::NoVariance } else { Status::Open }).collect();
            if knows_parts {
                bounds::fill_angles(self);
            } else {
                self.parts = bounds::Parts::unknown(&self.eigenvalues, &self.residuals, self.image_rounding);
                self.seen_from_values();
            }
        }
        Ok(())
    }

    /// One that claims nothing, to be filled from an archive.
    pub(crate) fn blank() -> Self {
        Self::default()
    }

    /// Sets what follows from eigenvalues, residuals and status alone.
    pub(crate) fn seen_from_values(&mut self) {
        let relative = |i: usize| match self.status[i] {
            Status::NoVariance => f64::INFINITY,
            _ => relative(self.residuals[i], self.eigenvalues[i]),
        };
        self.relative_residuals = (0..self.eigenvalues.len()).map(relative).collect();
        let around = |(theta, r): (&f64, &f64)| [(theta - r).max(0.0), theta + r];
        self.eigenvalue_intervals = self.eigenvalues.iter().zip(&self.residuals).map(around).collect();
    }

    /// The part that concerns the first `count` components. Bounds on angles stay valid: fewer vectors have no smaller gaps.
    #[must_use]
    pub fn leading(mut self, count: usize) -> Self {
        self.eigenvalues.truncate(count);
        self.residuals.truncate(count);
        self.relative_residuals.truncate(count);
        self.status.truncate(count);
        self.parts.truncate(count);
        self.eigenvalue_intervals.truncate(count);
        self.angle_bounds.truncate(count);
        // A cluster that is cut has no space of its own.
        self.clusters.retain(|cluster| cluster.0 < count);
        if let Some(Cluster(_, last, angle)) = self.clusters.last_mut()
            && *last >= count
        {
            (*last, *angle) = (count - 1, None);
        }
        self.whole.retain(|whole| *whole <= count);
        // The subspace of fewer vectors ends at another gap, about which only single angles and whole clusters speak.
        let single = |i: usize| match self.status[i] {
            Status::NoVariance => Some(0.0),
            _ => self.angle_bounds[i].or_else(|| {
                self.cluster_of(i).and_then(|Cluster(first, _, angle)| {
                    if first == i { angle } else { angle.map(|_| 0.0) } // counted once
                })
            }),
        };
        self.subspace_angle_bound = (0..count)
            .try_fold(0.0, |sum, i| single(i).map(|angle| sum + angle * angle))
            .map(f64::sqrt)
            .filter(|angle| *angle < 1.0);
        self
    }

    /// The part of ρᵢ that bounds the rounding of the image.
    pub fn rounding(&self, i: usize) -> f64 {
        self.parts.rounding.get(i).copied().unwrap_or(self.image_rounding)
    }

    /// Components with variance; those without come last.
    pub fn n_varying(&self) -> usize {
        self.status.iter().rposition(|status| *status != Status::NoVariance).map_or(0, |last| last + 1)
    }

    /// What the angles rest on: λ of the first eigenvalue after those with variance, from above or as an estimate.
    pub fn following_eigenvalue(&self) -> Option<f64> {
        self.beyond
    }

    /// The same with other knowledge of the eigenvalue after those with variance, for vectors of length d and a covariance with the given trace.
    #[must_use]
    pub fn knowing(self, next: Next, total_variance: f64, d: usize) -> Self {
        let status = self.status.clone();
        Self { status, ..bounds::with_angles(self, next, total_variance, d) }
    }

    /// Whether a bound on the following eigenvalue is all that a probe should look for: it leaves half of the gap that is estimated, or lies clearly
    /// below the last component.
    pub fn probe_goal(&self) -> impl Fn(f64) -> bool + use<> {
        let last = self.n_varying().checked_sub(1);
        let (theta, rho) = last.map_or((0.0, 0.0), |last| (self.eigenvalues[last], self.residuals[last]));
        let estimated = self.beyond.filter(|beyond| *beyond < theta).unwrap_or(0.9 * theta);
        let goal = (0.5 * (theta + estimated)).min(theta - 2.0 * rho);
        move |bound| bound <= goal
    }

    /// Whether an eigenvalue that was found beside these, of at least `least`, proves that they do not lead.
    pub fn is_refuted_by(&self, least: f64) -> bool {
        self.n_varying()
            .checked_sub(1)
            .is_some_and(|last| least > self.eigenvalues[last] + self.residuals[last])
    }

    /// A bound on the sine of the largest angle of the space of components `first` to `last`, as far as what was measured is known; none where one of
    /// them has no variance.
    pub(crate) fn space_angle(&self, first: usize, last: usize) -> Option<f64> {
        bounds::space_angle(self, first, last)
    }

    /// The cluster that component i belongs to.
    pub fn cluster_of(&self, i: usize) -> Option<Cluster> {
        self.clusters.iter().copied().find(|cluster| (cluster.0..=cluster.1).contains(&i))
    }

    /// Numbers of components, at most k, that cut no cluster, as far as gaps are known.
    pub fn numbers_that_cut_no_cluster(&self) -> &[usize] {
        &self.whole
    }

    /// The largest relative residual of a component that has variance: what is compared with the tolerance.
    pub fn worst(&self) -> f64 {
        let with_variance = (0..self.status.len()).filter(|i| self.status[*i] != Status::NoVariance);
        with_variance.map(|i| self.relative_residuals[i]).fold(0.0, f64::max)
    }

    /// The same without the rounding of images.
    pub(crate) fn worst_measured(&self) -> f64 {
        let with_variance = (0..self.status.len()).filter(|i| self.status[*i] != Status::NoVariance);
        let measured =
            |i: usize| relative((self.residuals[i] - self.rounding(i)).max(0.0), self.eigenvalues[i]);
        with_variance.map(measured).fold(0.0, f64::max)
    }

    /// Whether ρᵢ ≤ `tol`·θᵢ for every component that has variance.
    pub fn holds(&self, tol: f64) -> bool {
        (0..self.status.len()).all(|i| self.component_holds(i, tol))
    }

    /// Whether component i has no variance, or a residual within the tolerance.
    pub(crate) fn component_holds(&self, i: usize, tol: f64) -> bool {
        self.status[i] == Status::NoVariance || self.relative_residuals[i] <= tol
    }

    /// Says of every component whether it converged to `tol`, or stagnated: because the `floor_is_reached`, or because rounding
    /// alone is above the tolerance.
    #[must_use]
    pub fn judged(mut self, tol: f64, floor_is_reached: bool) -> Self {
        for i in 0..self.status.len() {
            let too_high = self.rounding(i) > tol * self.eigenvalues[i];
            self.status[i] = match self.status[i] {
                Status::NoVariance => Status::NoVariance,
                _ if self.relative_residuals[i] <= tol => Status::Converged,
                _ if floor_is_reached || too_high => Status::Stagnated,
                _ => Status::Open,
            };
        }
        self
    }

    /// Whether the trace proves that these are not the leading ones: at most `rank` − k eigenvalues follow, none above λ_k.
    pub(crate) fn is_contradicted_by_trace(&self, total_variance: f64, rank: usize) -> bool {
        let k = self.eigenvalues.len();
        let at_most: f64 = self.eigenvalues.iter().zip(&self.residuals).map(|(theta, rho)| theta + rho).sum();
        let last = k.checked_sub(1).map_or(0.0, |last| self.eigenvalues[last] + self.residuals[last]);
        // The trace itself rounds like an image of all rows.
        let rounding = 2.0 * self.image_rounding + (4 * rank) as f64 * f64::EPSILON * total_variance;
        total_variance - at_most - rounding > rank.saturating_sub(k) as f64 * last.max(0.0)
    }
}

impl Certificate {
    /// How many components explain a share of the total variance: the fewest that may, and the fewest that do for sure. Orthonormal vectors give Σθᵢ ≤ Σλᵢ
    /// (Ky Fan), rounding apart, and leading ones Σλᵢ ≤ Σ(θᵢ + ρᵢ). One more than there are stands for more than these.
    pub fn components_for_share(&self, share: f64, total_variance: f64) -> RangeInclusive<usize> {
        // The trace rounds like an image of all rows.
        let room = self.image_rounding;
        let wanted = share * total_variance;
        let first = |reaches: &dyn Fn(f64, usize) -> f64, wanted: f64| {
            let mut sum = 0.0;
            let reached = (0..self.eigenvalues.len()).position(|i| {
                sum = reaches(sum, i);
                sum >= wanted
            });
            reached.unwrap_or(self.eigenvalues.len()) + 1
        };
        let may = first(&|sum, i| sum + self.eigenvalues[i] + self.residuals[i], wanted - room);
        let surely = first(&|sum, i| sum + self.eigenvalues[i] - self.rounding(i), wanted + room);
        may..=surely
    }
}

/// r/θ; without a positive θ to compare with, or for a number that is none, only r = 0 says anything.
fn relative(residual: f64, theta: f64) -> f64 {
    match residual / theta {
        _ if residual == 0.0 => 0.0,
        ratio if ratio >= 0.0 => ratio,
        _ => f64::INFINITY,
    }
}

/// θ = wᵀCw/wᵀw of every pair.
pub(crate) fn ritz_values(vectors: &Block, images: &Block) -> Vec<f64> {
    let (along, squares) = (column_dots(vectors, images), column_dots(vectors, vectors));
    along.into_iter().zip(squares).map(|(theta, w)| if w == 0.0 { 0.0 } else { theta / w }).collect()
}

/// ‖WᵀW − I‖_F.
fn orthonormality_loss(w: &Block) -> f64 {
    let gram = gram(w, w);
    (gram - faer::Mat::<f64>::identity(w.p(), w.p())).norm_l2()
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;

    /// Certifies the columns `w` for C = diag(`diagonal`).
    fn certify(diagonal: &[f64], w: &[&[f64]], image_error: f64, next: Next) -> Certificate {
        let vectors = Block::from_columns(w).unwrap();
        let images: Vec<Vec<f64>> =
            w.iter().map(|w| w.iter().zip(diagonal).map(|(w, c)| w * c).collect()).collect();
        let images = Block::from_columns(&images).unwrap();
        Certificate::new(Pairs::new(&vectors, &images, image_error, next), diagonal.iter().sum())
    }

    fn close(got: f64, want: f64) {
        assert!((got - want).abs() <= 8.0 * f64::EPSILON * want.abs(), "{got} instead of {want}");
    }

    #[test]
    fn a_vector_by_hand() {
        // w = (0.8, 0.6), Cw = (8, 0.6): θ = 6.4 + 0.36 = 6.76 and Cw − θw = (2.592, −3.456), of length 4.32.
        let c = certify(&[10.0, 1.0], &[&[0.8, 0.6]], 0.5, Next::Unknown);
        close(c.eigenvalues[0], 6.76);
        close(c.residuals[0], 4.82); // with the image's error of 0.5
        close(c.relative_residuals[0], 4.82 / 6.76);
        close(c.eigenvalue_intervals[0][0], 1.94);
        close(c.eigenvalue_intervals[0][1], 11.58);
        assert!(!c.gap_is_proved && c.angle_bounds == [None] && c.subspace_angle_bound.is_none());
        assert!(c.holds(0.72) && !c.holds(0.71));
        close(c.worst(), 4.82 / 6.76);
    }

    #[test]
    fn the_trace_proves_the_gap_where_it_leaves_too_little() {
        // w = (1, t)/√(1 + t²) for t = 1/8: the trace 11 leaves 11 − θ for λ₂, far below θ.
        let norm = (1.0_f64 + 1.0 / 64.0).sqrt();
        let c = certify(&[10.0, 1.0], &[&[1.0 / norm, 0.125 / norm]], 0.0, Next::Unknown);
        assert!(c.gap_is_proved);
        let theta = (10.0 + 1.0 / 64.0) / (1.0 + 1.0 / 64.0);
        let residual = 9.0 * 0.125 / (1.0 + 1.0 / 64.0); // (λ₁ − λ₂)·sin·cos
        let bound = residual / (theta - (11.0 - theta));
        assert!((c.angle_bounds[0].unwrap() - bound).abs() < 1e-12);
        assert!(c.angle_bounds[0].unwrap() >= 0.125 / norm, "the true sine");
        // A worse bound from the solver is not preferred, a better one is.
        let worse = certify(&[10.0, 1.0], &[&[1.0 / norm, 0.125 / norm]], 0.0, Next::Proved(5.0));
        assert_eq!(worse.angle_bounds, c.angle_bounds);
        let better = certify(&[10.0, 1.0], &[&[1.0 / norm, 0.125 / norm]], 0.0, Next::Proved(1.0));
        close(better.angle_bounds[0].unwrap(), residual / (theta - 1.0));
    }

    #[test]
    fn an_estimate_gives_angles_but_no_proof() {
        // The trace 1 + 0.9 + 0.8 leaves 1.7.
        let diagonal = [1.0, 0.9, 0.8];
        let (sine, cosine) = (0.01, (1.0_f64 - 1e-4).sqrt());
        let c = certify(&diagonal, &[&[cosine, sine, 0.0]], 0.0, Next::Estimated(0.9));
        assert!(!c.gap_is_proved);
        let theta = 1.0 - 0.1 * sine * sine;
        close(c.residuals[0], 0.1 * sine * cosine);
        assert!((c.angle_bounds[0].unwrap() - 0.1 * sine * cosine / (theta - 0.9)).abs() < 1e-14);
        // An estimate above θ says nothing.
        assert_eq!(
            certify(&diagonal, &[&[cosine, sine, 0.0]], 0.0, Next::Estimated(1.0)).angle_bounds,
            [None]
        );
    }

    #[test]
    fn a_cluster_has_no_single_angles_but_a_subspace() {
        // Within the plane of two equal eigenvalues any basis is as good.
        let (s, c) = (0.6, 0.8);
        let certificate = certify(&[2.0, 2.0, 0.1], &[&[c, s, 0.0], &[-s, c, 0.0]], 1e-9, Next::Unknown);
        assert!(certificate.gap_is_proved);
        assert_eq!(certificate.angle_bounds, [None, None]);
        let bound = certificate.subspace_angle_bound.unwrap();
        // ‖R‖_F = √2·1e-9 over a gap of at least 2 − (4.1 − 4 + slack).
        assert!(bound < 1e-9 && bound >= 2.0_f64.sqrt() * 1e-9 / 2.0, "{bound:e}");
    }

    #[test]
    fn a_bound_that_says_nothing_is_none() {
        // Two of three equal eigenvalues, found within 0.1, the third estimated a little lower: any plane might be meant.
        let certificate =
            certify(&[1.0; 3], &[&[1.0, 0.0, 0.0], &[0.0, 1.0, 0.0]], 0.1, Next::Estimated(0.99));
        assert_eq!(certificate.subspace_angle_bound, None);
        assert_eq!(certificate.clusters, [Cluster(0, 1, None)]);
    }

    #[test]
    fn locked_vectors_leave_their_squares_alone() {
        // C = diag(10⁶, 3, 1) and w₁ = (1, t, 0)/√(1 + t²): the second vector is orthogonal to it, its image has w₁ projected out.
        let t: f64 = 1e-4;
        let norm = (1.0 + t * t).sqrt();
        let vectors =
            Block::from_columns(&[[1.0 / norm, t / norm, 0.0], [-t / norm, 1.0 / norm, 0.0]]).unwrap();
        let theta = [(1e6 + 3.0 * t * t) / (norm * norm), (3.0 + 1e6 * t * t) / (norm * norm)];
        let coupling = (1e6 - 3.0) * t / (norm * norm); // w₁ᵀCw₂, the residual of w₁
        let whole = [1e6 / norm, 3.0 * t / norm, 0.0];
        let images = Block::from_columns(&[whole, [-theta[1] * t / norm, theta[1] / norm, 0.0]]).unwrap();
        let locked = [Locked { end: 1, image_error: 0.0 }];
        let pairs = Pairs { locked: &locked, ..Pairs::new(&vectors, &images, 0.0, Next::Nothing) };
        let c = Certificate::new(pairs, 1e6 + 4.0);
        assert!((c.residuals[0] - coupling).abs() < 1e-9 * coupling);
        // A projected residual of rounding, and δ = 100²/10⁶: λ₂ = 3 lies just as far from θ₂ = 3.01.
        assert!((c.residuals[1] - coupling * coupling / (theta[0] - theta[1])).abs() < 1e-9);
        let [lo, hi] = c.eigenvalue_intervals[1];
        assert!(lo <= 3.0 + 1e-9 && 3.0 <= hi && hi - lo < 0.03, "{lo} {hi}");
        assert!(c.angle_bounds[1].is_some_and(|angle| angle >= t), "{:?}", c.angle_bounds);
    }

    #[test]
    fn the_trace_contradicts_what_cannot_lead() {
        // Two of six equal eigenvalues, then zeros, of rank six: what is left of the trace has no place.
        let units: Vec<Vec<f64>> =
            (0..8).map(|i| (0..8).map(|j| f64::from(u8::from(i == j))).collect()).collect();
        let diagonal = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0];
        let wrong = [&units[0][..], &units[1], &units[6]];
        let c = certify(&diagonal, &wrong, 1e-15, Next::Unknown);
        assert!(c.is_contradicted_by_trace(6.0, 6));
        let c = certify(&diagonal, &[&units[0], &units[1], &units[2]], 1e-15, Next::Unknown);
        assert!(!c.is_contradicted_by_trace(6.0, 6));
        assert!(c.is_contradicted_by_trace(6.0, 5), "five of 1 make no 6");
    }

    #[test]
    fn all_of_space_is_known_exactly() {
        let c = certify(&[3.0, 1.0], &[&[1.0, 0.0], &[0.0, 1.0]], 0.0, Next::Nothing);
        assert!(c.gap_is_proved);
        assert_eq!((c.subspace_angle_bound, c.angle_bounds.clone()), (Some(0.0), vec![Some(0.0), Some(0.0)]));
        assert_eq!(c.orthonormality_loss, 0.0);
    }

    #[test]
    fn vectors_that_are_not_orthonormal_prove_nothing_about_a_subspace() {
        // Twice the same vector: two Ritz values near 1, but C has only one eigenvalue there.
        let c = certify(&[1.0, 0.0, 0.0], &[&[1.0, 0.0, 0.0], &[1.0, 0.0, 0.0]], 1e-12, Next::Unknown);
        close(c.orthonormality_loss, 2.0_f64.sqrt());
        assert!(!c.gap_is_proved && c.angle_bounds == [None, None]);
        assert!(c.subspace_angle_bound.is_none_or(|bound| bound >= 1.0));
    }

    #[test]
    fn numbers_that_are_none_never_hold() {
        let (w, nan) = (Block::from_vector(vec![1.0, 0.0]), Block::from_vector(vec![f64::NAN; 2]));
        let pairs = Pairs::new(&w, &nan, 1e-16, Next::Unknown);
        let c = Certificate::new(pairs, 1.0);
        assert!(!c.holds(0.999) && c.worst().is_infinite() && !c.gap_is_proved);
        // A Ritz value rounded below zero has no variance; one that lies there for another reason is nothing to be relative to.
        let c = certify(&[-1e-17, 0.0], &[&[1.0, 0.0]], 1e-16, Next::Unknown);
        assert!(c.holds(0.0) && c.status == [Status::NoVariance] && c.relative_residuals[0].is_infinite());
        let c = certify(&[-1.0, 0.0], &[&[0.8, 0.6]], 1e-16, Next::Unknown);
        assert!(!c.holds(0.999) && c.worst().is_infinite());
    }

    #[test]
    fn one_sentence_says_it_all() {
        let c = certify(&[10.0, 1.0], &[&[1.0, 0.0]], 1e-3, Next::Unknown);
        assert_eq!(
            c.to_string(),
            "1 eigenvalue lies within 1.0e-3 (1.0e-4 of it) of an eigenvalue of C; \
             every vector is within an angle of 1.1e-4 (proved)"
        );
        let c = certify(&[1.0, 0.9, 0.8], &[&[1.0, 0.0, 0.0]], 1e-3, Next::Estimated(0.9));
        assert!(c.to_string().ends_with("every vector is within an angle of 1.0e-2 (estimated)"));
        let c = certify(&[1.0, 0.9], &[&[1.0, 0.0]], 0.1, Next::Unknown);
        assert!(
            c.to_string()
                .ends_with("the gap to the next eigenvalue is unknown or too small for a bound on angles")
        );
        let c = certify(&[2.0, 2.0, 0.0], &[&[1.0, 0.0, 0.0], &[0.0, 1.0, 0.0]], 1e-3, Next::Unknown);
        assert_eq!(
            c.to_string(),
            "2 eigenvalues each lie within 1.0e-3 (5.0e-4 of each) of an eigenvalue of C; all together span a space \
             within 7.1e-4 (proved); components 1–2 are determined only together, within 7.1e-4"
        );
    }

    #[test]
    fn an_independent_check_reads_one_pass_and_agrees() {
        use crate::operator::{Counted, Covariance};
        use crate::{Dense, Matrix, Preprocessing};
        let x: Matrix = Dense::new(vec![3.0, 0.0, 0.0, 1.0], 2, 2).unwrap().into(); // C = diag(4.5, 0.5)
        let mut c = Counted::new(Covariance::new(&x, Preprocessing::NONE).unwrap());
        let w = Block::from_vector(vec![1.0, 0.0]);
        let certificate = check(&mut c, &w, Next::Unknown, 1e-6).unwrap();
        assert_eq!((c.read().full_passes, c.read().rows), (1, 2));
        close(certificate.eigenvalues[0], 4.5);
        assert_eq!(certificate.residuals[0], certificate.image_rounding);
        assert!(certificate.gap_is_proved);
    }
}
