//! A step size from the data: the theory's best η for the spectrum and the batch noise of a sample of rows.

use crate::columns::RowMap;
use crate::matrix::Matrix;
use crate::operator::Covariance;
use crate::solver::{Epoch, Krylov, KrylovSizes};
use crate::theory::{GradientVariance, Problem, best_step_size, best_step_size_vr_pca};
use crate::{Driver, Error, Limits, Replacement, SolverKind};

/// A step size and the rows its finding read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suggestion {
    pub(crate) eta: f64,
    pub(crate) rows_read: u64,
}

/// Rows that tell λ₁, λ₂ and K well enough: the best η depends on them slowly.
const ROWS: usize = 2000;

/// Relative accuracy of K, and passes over the sample for its spectrum.
const VARIANCE_TOL: f64 = 0.05;
const SPECTRUM_PASSES: f64 = 30.0;

/// Rows that [`suggest_step_size`] reads at most, sample rows counted each time they are read: K takes one pass over the
/// sample and three for each of at most 2 + ln(d)·√(2.575/tol) steps.
pub(crate) fn most_rows_read(n: usize, d: usize) -> usize {
    let steps = 2.0 + (d as f64).ln() * (2.575 / VARIANCE_TOL).sqrt();
    ROWS.min(n) * (1.0 + 3.0 * steps + SPECTRUM_PASSES).ceil() as usize
}

/// How many of n rows the sample should have.
pub(crate) fn sample_rows(n: usize) -> usize {
    ROWS.min(n)
}

/// The η that minimises the theory's contraction for batches of `batch` of n rows and epochs of `epoch` steps, from a sample
/// of the rows.
#[allow(clippy::too_many_arguments, reason = "everything the theory's contraction depends on")]
pub(crate) fn suggest_step_size(
    sample: &Matrix<'_>,
    n: usize,
    map: &RowMap,
    solver: SolverKind,
    batch: usize,
    epoch: Epoch,
    replacement: Replacement,
    seed: u64,
) -> Result<Suggestion, Error> {
    let (rows, d) = (sample.n_rows(), sample.n_cols());
    let variance = GradientVariance::measure(sample, map, VARIANCE_TOL, seed)?;
    let correction = match replacement {
        Replacement::With => 1.0,
        Replacement::Without => (n - batch) as f64 / (n.max(2) - 1) as f64,
    };
    let noise = variance.of_one_row() / batch as f64 * correction;

    let k = 2.min(d);
    let limits = Limits { tol: 1e-3, max_passes: SPECTRUM_PASSES, ..Limits::default() };
    let mut krylov = Krylov::new(d, k, KrylovSizes::suiting(k), seed, None)?;
    let spectrum = Driver::new(limits).run(&mut krylov, &mut Covariance::with_map(sample, map.clone()))?;
    let rows_read = variance.passes() as u64 * rows as u64 + spectrum.read.rows;

    let lambda1 = spectrum.certificate.eigenvalues[0];
    // Without a gap there is no best step; a small one stands in.
    let lambda2 = spectrum.certificate.eigenvalues.get(1).copied().unwrap_or(0.0).clamp(0.0, 0.999 * lambda1);
    let eta = match Problem::new(lambda1, lambda2, noise, epoch.length()) {
        Ok(problem) if solver == SolverKind::VrHbPower => best_step_size(&problem).eta,
        Ok(problem) => best_step_size_vr_pca(&problem).eta,
        Err(_) => 1.0, // no variance at all: every vector is an eigenvector
    };
    Ok(Suggestion { eta, rows_read })
}
