//! What is known about an answer, and why.
//!
//! For a unit vector w with image Cw and θ = wᵀCw, the residual r = ‖Cw − θw‖ proves that C has an eigenvalue in
//! \[θ − r, θ + r\]. For orthonormal W the k Ritz values lie within ‖R‖_F of k eigenvalues (Kahan), and
//!
//! ```text
//! sin∠(wᵢ, uᵢ) ≤ rᵢ / gapᵢ,      ‖sin∠(W, U)‖_F ≤ ‖R‖_F / (θ_k − λ_{k+1})        (Davis & Kahan)
//! ```
//!
//! The gaps need λ_{k+1} from above. It is *proved* where the trace of C, which is known, leaves too little room:
//! λ_{k+1} ≤ tr C − Σθᵢ (Ky Fan), or where the solver knows the whole spectrum. Otherwise it is *estimated*, and the
//! certificate says so. Every residual includes a bound on the rounding of its image.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::linalg::{column_dots, gram, residual_norms};
use crate::operator::{CovarianceOperator, Products};
use crate::{Archive, Block, Error};

/// What is known about λ_{k+1}, the first eigenvalue that is not sought.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Next {
    /// Nothing.
    Unknown,
    /// An estimate.
    Estimated(f64),
    /// A bound from above.
    Proved(f64),
    /// There is none: k = d.
    Nothing,
}

impl Next {
    pub(crate) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        let (mut kind, mut value) = match *self {
            Self::Unknown => (0, None),
            Self::Estimated(estimate) => (1, Some(estimate)),
            Self::Proved(bound) => (2, Some(bound)),
            Self::Nothing => (3, None),
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

/// What a solver currently offers as eigenvectors, with their images.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a> {
    /// d×k, orthonormal columns.
    pub vectors: &'a Block,
    /// C times the vectors.
    pub images: &'a Block,
    /// A bound on the rounding of each image, relative to a unit vector.
    pub image_error: f64,
    /// What the solver knows of λ_{k+1}.
    pub next: Next,
}

/// Proof of eigenvalues and, where the gaps allow, of eigenvectors. The default is about none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Certificate {
    /// θᵢ, descending.
    #[serde(skip)]
    pub eigenvalues: Vec<f64>,
    /// rᵢ ≥ ‖Cwᵢ − θᵢwᵢ‖, rounding of the image included.
    pub residuals: Vec<f64>,
    /// rᵢ/θ₁; 0 where rᵢ is 0, infinite where only θ₁ is not positive.
    pub relative_residuals: Vec<f64>,
    /// \[θᵢ − rᵢ, θᵢ + rᵢ\] contains an eigenvalue of C.
    pub eigenvalue_intervals: Vec<[f64; 2]>,
    /// Bounds on sin∠(wᵢ, uᵢ); nothing where neighbours are too close to tell single vectors apart.
    pub angle_bounds: Vec<Option<f64>>,
    /// Bound on ‖sin∠(W, U)‖_F for the whole subspace; nothing where λ_{k+1} is unknown or too close.
    pub subspace_angle_bound: Option<f64>,
    /// Whether the angle bounds are theorems (`true`) or rest on an estimate of λ_{k+1} (`false`).
    pub gap_is_proved: bool,
    /// ‖WᵀW − I‖_F.
    pub orthonormality_loss: f64,
    /// The part of every residual that bounds the rounding of its image.
    pub image_rounding: f64,
}

impl Certificate {
    /// Walks over the certificate of k pairs.
    pub(crate) fn archive(&mut self, k: usize, archive: &mut Archive<'_>) -> Result<(), Error> {
        /// Stands for an angle without a bound, which no bound is.
        const UNBOUNDED: f64 = -1.0;
        let mut angles: Vec<f64> = self.angle_bounds.iter().map(|x| x.unwrap_or(UNBOUNDED)).collect();
        archive.list("eigenvalues", &mut self.eigenvalues)?;
        archive.list("residuals", &mut self.residuals)?;
        archive.list("angle_bounds", &mut angles)?;
        for (name, list) in
            [("eigenvalues", &self.eigenvalues), ("residuals", &self.residuals), ("angle_bounds", &angles)]
        {
            archive.check(name, list.len() == k, "has not one number for each component")?;
        }
        archive.optional("subspace_angle_bound", &mut self.subspace_angle_bound)?;
        archive.flag("gap_is_proved", &mut self.gap_is_proved)?;
        archive.number("orthonormality_loss", &mut self.orthonormality_loss)?;
        archive.number("image_rounding", &mut self.image_rounding)?;
        self.angle_bounds = angles.into_iter().map(|x| (x >= 0.0).then_some(x)).collect();
        (self.relative_residuals, self.eigenvalue_intervals) = seen_from(&self.eigenvalues, &self.residuals);
        Ok(())
    }

    /// One that claims nothing, to be filled from an archive.
    pub(crate) fn blank() -> Self {
        Self {
            eigenvalues: Vec::new(),
            residuals: Vec::new(),
            relative_residuals: Vec::new(),
            eigenvalue_intervals: Vec::new(),
            angle_bounds: Vec::new(),
            subspace_angle_bound: None,
            gap_is_proved: false,
            orthonormality_loss: 0.0,
            image_rounding: 0.0,
        }
    }

    /// Certifies the pairs a solver offers, for a covariance with the given trace.
    pub fn new(pairs: Pairs<'_>, total_variance: f64) -> Self {
        let Pairs { vectors, images, image_error, next } = pairs;
        let k = vectors.p();
        let eigenvalues = ritz_values(vectors, images);
        let residuals: Vec<f64> = residual_norms(vectors, images, &eigenvalues)
            .into_iter()
            .zip(column_dots(vectors, vectors))
            .map(|(r, square)| if square == 0.0 { image_error } else { r / square.sqrt() + image_error })
            .collect();
        let orthonormality_loss = orthonormality_loss(vectors);
        // ‖R‖_F/σ_min(W): Kahan's theorem for W = QS with orthonormal Q; WᵀW has no eigenvalue below 1 − loss.
        let spread = match 1.0 - orthonormality_loss {
            left if left > 0.0 => crate::block::norm(&residuals) / left.sqrt(),
            _ => f64::INFINITY,
        };
        let lowest = eigenvalues.iter().copied().fold(f64::INFINITY, f64::min);

        // Ky Fan: Σθᵢ ≤ λ₁ + … + λ_k, so that the trace leaves at most the rest for λ_{k+1}.
        let slack = k as f64 * image_error + orthonormality_loss * total_variance;
        let left_over = total_variance * (1.0 + vectors.d() as f64 * f64::EPSILON)
            - eigenvalues.iter().sum::<f64>()
            + slack;
        let proved = match next {
            Next::Nothing => f64::NEG_INFINITY,
            Next::Proved(bound) => bound.min(left_over),
            Next::Unknown | Next::Estimated(_) => left_over,
        };
        let gap_is_proved = proved < lowest - spread;
        let beyond = match next {
            _ if gap_is_proved => proved,
            Next::Estimated(estimate) => estimate,
            _ => f64::INFINITY,
        };
        // The sines of q angles have a norm of √q at most.
        let angle =
            |residual: f64, gap: f64, q: usize| (gap > 0.0).then(|| (residual / gap).min((q as f64).sqrt()));
        let angle_bounds = (0..k)
            .map(|i| {
                let neighbours =
                    (0..k).filter(|&j| j != i).map(|j| (eigenvalues[i] - eigenvalues[j]).abs() - spread);
                angle(residuals[i], neighbours.fold(eigenvalues[i] - beyond, f64::min), 1)
            })
            .collect();
        let (relative_residuals, eigenvalue_intervals) = seen_from(&eigenvalues, &residuals);
        Self {
            relative_residuals,
            eigenvalue_intervals,
            angle_bounds,
            subspace_angle_bound: angle(spread, lowest - beyond, k),
            gap_is_proved,
            orthonormality_loss,
            image_rounding: image_error,
            eigenvalues,
            residuals,
        }
    }

    /// The part that concerns the first `count` components. Bounds on angles stay valid: fewer vectors have no smaller gaps.
    #[must_use]
    pub fn leading(mut self, count: usize) -> Self {
        self.eigenvalues.truncate(count);
        self.residuals.truncate(count);
        self.relative_residuals.truncate(count);
        self.eigenvalue_intervals.truncate(count);
        self.angle_bounds.truncate(count);
        // The subspace of fewer vectors ends at another gap, about which only single angles speak.
        self.subspace_angle_bound = self
            .angle_bounds
            .iter()
            .copied()
            .try_fold(0.0, |sum, angle| Some(sum + angle? * angle?))
            .map(f64::sqrt);
        self
    }

    /// The largest relative residual: what is compared with the tolerance.
    pub fn worst(&self) -> f64 {
        self.relative_residuals.iter().copied().fold(0.0, f64::max)
    }

    /// Whether every residual is at most `tol`·θ₁.
    pub fn holds(&self, tol: f64) -> bool {
        self.relative_residuals.iter().all(|r| *r <= tol)
    }
}

/// An independent certificate for given vectors, by a full pass of its own. The vectors' columns must be unit vectors.
pub fn check(
    operator: &mut dyn CovarianceOperator,
    vectors: &Block,
    next: Next,
) -> Result<Certificate, Error> {
    let mut images = Block::zeros(vectors.d(), vectors.p());
    let image_error = operator.apply(vectors, &mut images)?.of_image();
    let pairs = Pairs { vectors, images: &images, image_error, next };
    Ok(Certificate::new(pairs, operator.total_variance()))
}

/// Residuals relative to θ₁, and the intervals around every θ.
fn seen_from(eigenvalues: &[f64], residuals: &[f64]) -> (Vec<f64>, Vec<[f64; 2]>) {
    let largest = eigenvalues.first().copied().unwrap_or(0.0);
    let around = |(theta, r): (&f64, &f64)| [(theta - r).max(0.0), theta + r];
    (
        residuals.iter().map(|r| relative(*r, largest)).collect(),
        eigenvalues.iter().zip(residuals).map(around).collect(),
    )
}

/// r/θ₁; without a positive θ₁ to compare with, or for a number that is none, only r = 0 says anything.
fn relative(residual: f64, largest: f64) -> f64 {
    match residual / largest {
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

impl fmt::Display for Certificate {
    /// One sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let k = self.eigenvalues.len().max(self.residuals.len());
        let worst = self.residuals.iter().copied().fold(0.0, f64::max);
        let plural = if k == 1 { "value lies" } else { "values each lie" };
        write!(
            f,
            "{k} eigen{plural} within {worst:.1e} ({:.1e} of the largest) of an eigenvalue of C",
            self.worst()
        )?;
        let basis = if self.gap_is_proved { "proved" } else { "resting on an estimated gap" };
        match (self.angle_bounds.iter().copied().collect::<Option<Vec<f64>>>(), self.subspace_angle_bound) {
            (Some(angles), _) => {
                let widest = angles.into_iter().fold(0.0, f64::max);
                write!(f, "; every vector is within an angle of {widest:.1e} ({basis})")
            }
            (None, Some(angle)) => write!(
                f,
                "; neighbouring eigenvalues are too close for single vectors, their subspace is within {angle:.1e} ({basis})"
            ),
            (None, None) => {
                write!(f, "; the gap to the next eigenvalue is unknown or too small for a bound on angles")
            }
        }
    }
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
        Certificate::new(
            Pairs { vectors: &vectors, images: &images, image_error, next },
            diagonal.iter().sum(),
        )
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
    fn a_bound_that_says_nothing_is_the_norm_of_as_many_sines() {
        // Two of three equal eigenvalues, found within 0.1, the third estimated a little lower: any plane might be meant, so
        // that both sines may be 1.
        let certificate =
            certify(&[1.0; 3], &[&[1.0, 0.0, 0.0], &[0.0, 1.0, 0.0]], 0.1, Next::Estimated(0.99));
        assert_eq!(certificate.subspace_angle_bound, Some(2.0_f64.sqrt()));
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
        let pairs = Pairs { vectors: &w, images: &nan, image_error: 1e-16, next: Next::Unknown };
        let c = Certificate::new(pairs, 1.0);
        assert!(!c.holds(0.999) && c.worst().is_infinite() && !c.gap_is_proved);
        // A Ritz value rounded below zero: nothing to be relative to.
        let c = certify(&[-1e-17, 0.0], &[&[1.0, 0.0]], 1e-16, Next::Unknown);
        assert!(!c.holds(0.999) && c.worst().is_infinite());
    }

    #[test]
    fn one_sentence_says_it_all() {
        let c = certify(&[10.0, 1.0], &[&[1.0, 0.0]], 1e-3, Next::Unknown);
        assert_eq!(
            c.to_string(),
            "1 eigenvalue lies within 1.0e-3 (1.0e-4 of the largest) of an eigenvalue of C; \
             every vector is within an angle of 1.1e-4 (proved)"
        );
        let c = certify(&[1.0, 0.9, 0.8], &[&[1.0, 0.0, 0.0]], 1e-3, Next::Estimated(0.9));
        assert!(
            c.to_string()
                .ends_with("every vector is within an angle of 1.0e-2 (resting on an estimated gap)")
        );
        let c = certify(&[1.0, 0.9], &[&[1.0, 0.0]], 0.1, Next::Unknown);
        assert!(
            c.to_string()
                .ends_with("the gap to the next eigenvalue is unknown or too small for a bound on angles")
        );
        let c = certify(&[2.0, 2.0, 0.0], &[&[1.0, 0.0, 0.0], &[0.0, 1.0, 0.0]], 1e-3, Next::Unknown);
        assert_eq!(
            c.to_string(),
            "2 eigenvalues each lie within 1.0e-3 (5.0e-4 of the largest) of an eigenvalue of C; neighbouring \
             eigenvalues are too close for single vectors, their subspace is within 7.1e-4 (proved)"
        );
    }

    #[test]
    fn an_independent_check_reads_one_pass_and_agrees() {
        use crate::operator::{Counted, Covariance};
        use crate::{Dense, Matrix, Preprocessing};
        let x: Matrix = Dense::new(vec![3.0, 0.0, 0.0, 1.0], 2, 2).unwrap().into(); // C = diag(4.5, 0.5)
        let mut c = Counted::new(Covariance::new(&x, Preprocessing::NONE).unwrap());
        let w = Block::from_vector(vec![1.0, 0.0]);
        let certificate = check(&mut c, &w, Next::Unknown).unwrap();
        assert_eq!((c.read().full_passes, c.read().rows), (1, 2));
        close(certificate.eigenvalues[0], 4.5);
        assert_eq!(certificate.residuals[0], certificate.image_rounding);
        assert!(certificate.gap_is_proved);
    }
}
