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

use crate::solver::Pairs;
use crate::{Block, CovarianceOperator, Error};

/// What is known about λ_{k+1}, the first eigenvalue that is not sought.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// Proof of eigenvalues and, where the gaps allow, of eigenvectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Certifies the pairs a solver offers, for a covariance with the given trace.
    pub fn new(pairs: Pairs<'_>, total_variance: f64) -> Self {
        let Pairs { vectors, images, image_error, next } = pairs;
        let k = vectors.p();
        let (mut eigenvalues, mut residuals) = (Vec::with_capacity(k), Vec::with_capacity(k));
        for c in 0..k {
            let (w, image) = (vectors.column(c), images.column(c));
            let (theta, residual) = ritz(&w, &image);
            eigenvalues.push(theta);
            residuals.push(residual + image_error);
        }
        let orthonormality_loss = orthonormality_loss(vectors);
        // ‖R‖_F/σ_min(W): Kahan's theorem for W = QS with orthonormal Q; WᵀW has no eigenvalue below 1 − loss.
        let spread = match 1.0 - orthonormality_loss {
            left if left > 0.0 => (residuals.iter().map(|r| r * r).sum::<f64>() / left).sqrt(),
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
        let angle = |residual: f64, gap: f64| (gap > 0.0).then(|| (residual / gap).min(1.0));
        let angle_bounds = (0..k)
            .map(|i| {
                let neighbours =
                    (0..k).filter(|&j| j != i).map(|j| (eigenvalues[i] - eigenvalues[j]).abs() - spread);
                angle(residuals[i], neighbours.fold(eigenvalues[i] - beyond, f64::min))
            })
            .collect();
        let largest = eigenvalues.first().copied().unwrap_or(0.0);
        Self {
            relative_residuals: residuals.iter().map(|r| relative(*r, largest)).collect(),
            eigenvalue_intervals: eigenvalues
                .iter()
                .zip(&residuals)
                .map(|(t, r)| [(t - r).max(0.0), t + r])
                .collect(),
            angle_bounds,
            subspace_angle_bound: angle(spread, lowest - beyond),
            gap_is_proved,
            orthonormality_loss,
            image_rounding: image_error,
            eigenvalues,
            residuals,
        }
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
    operator.apply(vectors, &mut images)?;
    let pairs = Pairs { vectors, images: &images, image_error: operator.image_rounding(), next };
    Ok(Certificate::new(pairs, operator.total_variance()))
}

/// r/θ₁; without a positive θ₁ to compare with, or for a number that is none, only r = 0 says anything.
fn relative(residual: f64, largest: f64) -> f64 {
    match residual / largest {
        _ if residual == 0.0 => 0.0,
        ratio if ratio >= 0.0 => ratio,
        _ => f64::INFINITY,
    }
}

/// θ = wᵀCw/wᵀw and ‖Cw − θw‖/‖w‖.
pub(crate) fn ritz(w: &[f64], image: &[f64]) -> (f64, f64) {
    let square = crate::block::dot(w, w);
    if square == 0.0 {
        return (0.0, 0.0);
    }
    let theta = crate::block::dot(w, image) / square;
    let residual: Vec<f64> = image.iter().zip(w).map(|(z, w)| z - theta * w).collect();
    (theta, crate::block::norm(&residual) / square.sqrt())
}

/// ‖WᵀW − I‖_F.
fn orthonormality_loss(w: &Block) -> f64 {
    let columns: Vec<Vec<f64>> = (0..w.p()).map(|c| w.column(c)).collect();
    let mut sum = 0.0;
    for i in 0..columns.len() {
        for j in 0..=i {
            let off = crate::block::dot(&columns[i], &columns[j]) - f64::from(u8::from(i == j));
            sum += if i == j { off * off } else { 2.0 * off * off };
        }
    }
    sum.sqrt()
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
