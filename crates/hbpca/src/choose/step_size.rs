//! A step size from the data: the theory's best η for the spectrum and the batch noise of a sample of rows.

use crate::columns::RowMap;
use crate::config::FitConfig;
use crate::matrix::{Matrix, Replacement};
use crate::operator::Covariance;
use crate::solver::{Epoch, Krylov, KrylovSizes, SolverKind};
use crate::theory::{GradientVariance, Problem, best_step_size, best_step_size_vr_pca};
use crate::{Driver, Error, Limits};

/// A step size and the rows that finding it read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepSize {
    pub(crate) eta: f64,
    pub(crate) rows_read: u64,
}

/// Rows that tell λ₁, λ₂ and K well enough: the best η depends on them slowly.
const ROWS: usize = 2000;

/// Relative accuracy of K, and passes over the sample for its spectrum.
const VARIANCE_TOL: f64 = 0.05;
const SPECTRUM_PASSES: f64 = 30.0;

/// Rows that [`StepSize::of_sample`] reads at most, sample rows counted each time they are read: K takes one pass over the
/// sample and three for each of at most 2 + ln(d)·√(2.575/tol) steps.
fn most_rows_read(n: usize, d: usize) -> usize {
    let steps = 2.0 + (d as f64).ln() * (2.575 / VARIANCE_TOL).sqrt();
    ROWS.min(n) * (1.0 + 3.0 * steps + SPECTRUM_PASSES).ceil() as usize
}

/// How many of n rows the sample should have.
pub(crate) fn sample_rows(n: usize) -> usize {
    ROWS.min(n)
}

impl StepSize {
    /// Whether `solver` needs a step size that was not given, and the budget has room for the sample that tells it and a first look.
    pub(crate) fn is_wanted(config: &FitConfig, solver: SolverKind, n: usize, d: usize) -> bool {
        config.eta.is_none()
            && solver.needs_step_size()
            && config.limits.max_passes >= 1.0 + most_rows_read(n, d) as f64 / n as f64
    }

    /// The η that minimises the theory's contraction for the batches of n rows and the epochs that are chosen, from a sample of the
    /// rows.
    pub(crate) fn of_sample(
        sample: &Matrix<'_>,
        n: usize,
        map: &RowMap,
        solver: SolverKind,
        config: &FitConfig,
    ) -> Result<Self, Error> {
        let (rows, d) = (sample.n_rows(), sample.n_cols());
        let (epoch, batch) = (Epoch::new(config.epoch)?, config.batch.rows(n)?);
        let variance = GradientVariance::measure(sample, map, VARIANCE_TOL, config.seed)?;
        let correction = match config.replacement {
            Replacement::With => 1.0,
            Replacement::Without => (n - batch) as f64 / (n.max(2) - 1) as f64,
        };
        let noise = variance.of_one_row() / batch as f64 * correction;

        let k = 2.min(d);
        let limits = Limits { tol: 1e-3, max_passes: SPECTRUM_PASSES, ..Limits::default() };
        let mut krylov = Krylov::new(d, k, KrylovSizes::suiting(k), config.seed, None)?;
        let mut operator = Covariance::with_map(sample, map.clone());
        let spectrum = Driver::new(limits).run(&mut krylov, &mut operator)?;
        let rows_read = variance.passes() as u64 * rows as u64 + spectrum.read.rows;

        let lambda1 = spectrum.certificate.eigenvalues[0];
        // Without a gap there is no best step; a small one stands in.
        let lambda2 =
            spectrum.certificate.eigenvalues.get(1).copied().unwrap_or(0.0).clamp(0.0, 0.999 * lambda1);
        let eta = match Problem::new(lambda1, lambda2, noise, epoch.length()) {
            Ok(problem) if solver == SolverKind::VrHbPower => best_step_size(&problem).eta,
            Ok(problem) => best_step_size_vr_pca(&problem).eta,
            Err(_) => 1.0, // no variance at all: every vector is an eigenvector
        };
        Ok(Self { eta, rows_read })
    }
}
