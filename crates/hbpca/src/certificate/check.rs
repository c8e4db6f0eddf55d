//! An independent certificate, by passes of its own.

use super::{Certificate, LockRule, Locked, Next, Pairs, Prospect, ritz_values};
use crate::linalg::{TallBasis, beside, residual_norms};
use crate::operator::{CovarianceOperator, Products, Projected};
use crate::{Accuracy, Block, Error};

/// An independent certificate for given vectors, by full passes of its own: one, and one more for each time that earlier vectors have to be projected
/// out for later ones to reach `tol`. The vectors' columns must be unit vectors.
pub fn check(
    operator: &mut dyn CovarianceOperator,
    vectors: &Block,
    next: Next,
    tol: f64,
) -> Result<Certificate, Error> {
    let mut locked: Vec<Locked> = Vec::new();
    let (mut exact, mut left) = (Block::zeros(vectors.d(), 0), vectors.clone());
    let mut images = Block::zeros(vectors.d(), 0);
    loop {
        let start = exact.p();
        let basis = TallBasis::of(&exact);
        let rest = rest_of(operator.total_variance(), &ritz_values(&exact, &images), &locked);
        let mut found = Block::zeros(vectors.d(), 0);
        let image_error = if start == 0 {
            operator.apply(&left, &mut found)?.of_image()
        } else {
            Projected::new(operator, &basis, rest).apply(&left, &mut found)?.of_image()
        };
        let theta = ritz_values(&left, &found);
        let residuals = residual_norms(&left, &found, &theta);
        let trace = if start == 0 { operator.total_variance() } else { rest };
        let accuracy = Accuracy::Tolerance;
        let rule = LockRule { theta: &theta, residuals: &residuals, image_error, trace, tol, accuracy };
        let lower = locked.last().is_none_or(|group| image_error <= 0.5 * group.image_error);
        match rule.prospect() {
            Prospect::Now(m) if lower => {
                let (later, _) = (left.split_off(m), found.split_off(m));
                (exact, images) = (beside(&exact, &left), beside(&images, &found));
                left = later;
                locked.push(Locked { end: start + m, image_error });
            }
            _ => {
                let images = beside(&images, &found);
                let pairs = Pairs { locked: &locked, ..Pairs::new(vectors, &images, image_error, next) };
                return Ok(Certificate::new(pairs, operator.total_variance()));
            }
        }
    }
}

/// A bound on the trace that locked vectors with these Ritz values leave: each is known to the rounding of its image, and so is the trace.
pub(crate) fn rest_of(total_variance: f64, theta: &[f64], locked: &[Locked]) -> f64 {
    let (mut start, mut rounding) = (0, 0.0);
    for group in locked {
        rounding += (group.end - start + 2) as f64 * group.image_error;
        start = group.end;
    }
    let left = total_variance - theta.iter().sum::<f64>();
    if left.is_nan() { f64::INFINITY } else { left.max(0.0) + rounding }
}
