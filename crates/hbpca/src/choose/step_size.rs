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
            Ok(problem) => solver.best_step_size(&problem).unwrap_or(1.0),
            Err(_) => 1.0, // no variance at all: every vector is an eigenvector
        };
        Ok(Self { eta, rows_read })
    }
}

impl SolverKind {
    /// The η that the theory calls best for a problem; none where the solver has no η.
    ///
    /// Oja's rule, VR-PCA and the SVRG of shift-and-invert step with C shifted by 1/η, and have one theory. A Riemannian gradient step
    /// w + η(C − θ)w is, up to length, VR-PCA's with η/(1 − ηθ).
    pub fn best_step_size(self, problem: &Problem) -> Option<f64> {
        match self {
            Self::VrHbPower => Some(best_step_size(problem).eta),
            Self::VrRiemannian => {
                let eta = best_step_size_vr_pca(problem).eta;
                // η/(1 + ηλ₁), where ηλ₁ may leave the range of f64.
                Some((eta.recip() + problem.lambda1()).recip())
            }
            kind if kind.has_positive_step() => Some(best_step_size_vr_pca(problem).eta),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solvers_with_a_step_size_have_a_best_one_and_others_none() {
        let problem = Problem::new(2.0, 1.5, 0.1, 20).unwrap();
        for kind in SolverKind::ALL {
            assert_eq!(kind.best_step_size(&problem).is_some(), kind.needs_step_size(), "{kind}");
        }
        // w + η(C − 2)w = (1 − 2η)(w + η/(1 − 2η) Cw).
        let plain = SolverKind::VrPca.best_step_size(&problem).unwrap();
        let gradient = SolverKind::VrRiemannian.best_step_size(&problem).unwrap();
        assert!((gradient / (1.0 - 2.0 * gradient) / plain - 1.0).abs() < 1e-12, "{gradient} {plain}");
    }
}
