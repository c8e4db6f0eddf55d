//! One file for each algorithm, in the order in which the methods grew out of each other.
//!
//! A solver does one step at a time and never prints, times, seeds or decides to stop: that is the
//! [`Driver`](crate::Driver)'s part. The files read like the boxes of `docs/paper/algorithms.md`, line numbers included.

mod anchored;
mod basis;
mod coordinate_power;
mod covariance;
mod formed;
mod iterate;
mod kind;
mod krylov;
mod krylov_sizes;
mod lanczos;
mod lazy_svd;
mod locking;
mod oja;
mod power;
mod power_m;
mod probe;
mod recomputed;
mod shift_invert_agd;
mod shift_invert_svrg;
mod shifted;
mod vr_hb_power;
mod vr_pca;
mod vr_pca_projected;
mod vr_power_m;
mod vr_riemannian;

pub use anchored::{Anchored, AnchoredSizes};
pub use coordinate_power::CoordinatePower;
pub use covariance::CovarianceSolver;
pub(crate) use formed::{solves_partially, vectors_kept, work};
pub use kind::SolverKind;
pub use krylov::Krylov;
pub use krylov_sizes::KrylovSizes;
pub use lazy_svd::LazySvd;
pub(crate) use locking::{Locking, Rebuild, Rest};
pub use oja::Oja;
pub use power::Power;
pub use power_m::PowerM;
pub(crate) use probe::PROBES as MOST_MEASURED;
pub use shift_invert_agd::ShiftInvertAgd;
pub use shift_invert_svrg::ShiftInvertSvrg;
pub use vr_hb_power::{Epoch, VrHbPower};
pub use vr_pca::VrPca;
pub use vr_pca_projected::VrPcaProjected;
pub use vr_power_m::VrPowerM;
pub use vr_riemannian::VrRiemannian;

pub use crate::certificate::Pairs;
pub use crate::policy::{
    AdaptiveMomentum, DynamicMomentum, FixedMomentum, Momentum, OracleMomentum, SecondEigenvalue, Start,
};

use crate::operator::CovarianceOperator;
use crate::{Archive, Block, CancelToken, Error};

/// What a solver knows of its pairs before it forms them.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidualEstimate {
    /// θ₁.
    pub theta: f64,
    /// Ritz values of the wanted pairs, locked ones apart.
    pub thetas: Vec<f64>,
    /// Their residuals, rounding apart.
    pub residuals: Vec<f64>,
    /// A bound on the rounding of each image.
    pub image_error: f64,
    /// Whether a look to come will lower that bound.
    pub bound_will_fall: bool,
}

impl ResidualEstimate {
    /// Whether some component is known to miss the tolerance. One that may have no variance is left to the certificate, unless its
    /// rounding is about to fall.
    pub fn misses(&self, tol: f64) -> bool {
        let Self { thetas, residuals, image_error, bound_will_fall, .. } = self;
        let misses = |(theta, residual): (&f64, &f64)| {
            let vanishes = !bound_will_fall && theta <= image_error && residual <= image_error;
            // Not so for a number that is none.
            !(residual + image_error <= tol * theta || vanishes)
        };
        thetas.iter().zip(residuals).any(misses)
    }
}

/// Parameters in force, for the history.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepParameters {
    /// Step size η.
    pub eta: Option<f64>,
    /// Momentum β.
    pub beta: Option<f64>,
    /// λ₂ or its estimate.
    pub lambda2: Option<f64>,
}

/// An iteration towards the leading eigenvectors of C.
///
/// The driver alternates [`look`](Self::look), which makes the exact images of the current iterate known, and
/// [`step`](Self::step), which moves to the next iterate.
pub trait Solver {
    /// The name users type.
    fn name(&self) -> &'static str;

    /// k, the number of components sought.
    fn n_components(&self) -> usize {
        1
    }

    /// Computes the exact images of the current iterate.
    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error>;

    /// Makes [`pairs`](Self::pairs) ready, after a [`look`](Self::look), where the solver works on something else than vectors of C
    /// and these have to be computed. What it reads is among the passes that lie [ahead](Self::passes_ahead) of a step.
    fn form_pairs(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        Ok(())
    }

    /// The current iterate with its images; meaningful after [`look`](Self::look) and [`form_pairs`](Self::form_pairs).
    fn pairs(&mut self) -> Pairs<'_>;

    /// Gives up the vectors of [`pairs`](Self::pairs), when a run has ended.
    fn take_vectors(&mut self) -> Block {
        self.pairs().vectors.clone()
    }

    /// What [`pairs`](Self::pairs) will show, where that is known without forming vectors: the driver then asks for the
    /// pairs only when they may end the run.
    fn residual_estimate(&self) -> Option<ResidualEstimate> {
        None
    }

    /// A forecast of the looks until every residual is at most `tol` of its eigenvalue, where the spectrum seen so far gives one.
    fn looks_left(&self, _tol: f64) -> Option<f64> {
        None
    }

    /// Whether copies of a leading eigenvalue may still be hidden; asked when the tolerance is met. A solver that answers yes goes
    /// on looking for them, and is asked again.
    fn may_miss_multiplicity(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Whether another look would show the same again.
    fn is_final(&self) -> bool {
        false
    }

    /// Begins to search in random directions: the trace shows that what was found does not lead. Whether it can.
    fn search(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    /// Breaks vector work that takes long off when `token` says so, between two sweeps over it.
    fn cancelled_by(&mut self, _token: &CancelToken) {}

    /// Moves to the next iterate.
    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error>;

    /// Passes that one step and the look after it will read, and forming the pairs then.
    fn passes_ahead(&self, n_rows: usize) -> f64;

    /// Parameters in force.
    fn parameters(&self) -> StepParameters {
        StepParameters::default()
    }

    /// Walks over all numbers that change while it runs, for a checkpoint: after a [`look`](Self::look) and before the
    /// [`step`](Self::step) that follows. Given back to a solver made with the same arguments, that goes on with the same
    /// bits. Whatever is given back is checked: sizes that do not go together are an error here and no panic later.
    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error>;
}

/// What θ_{k+1} suggests for λ_{k+1}, with what is [still to come](still_to_come).
fn suggested_next(theta: &[f64], k: usize, residual: f64) -> Option<f64> {
    let next = *theta.get(k)?;
    Some(next + still_to_come(residual, theta[k - 1] - next))
}

/// What a Ritz value is likely to grow by: it comes from below, and is off by about r²/gap for a residual r; here the gap to a larger one, of which not more
/// than half is given away.
fn still_to_come(residual: f64, gap: f64) -> f64 {
    if gap > 0.0 { (residual * (residual / gap)).min(0.5 * gap) } else { 0.0 }
}

/// w ← αw + γg, coordinate by coordinate.
fn combine(w: &mut Block, alpha: f64, gamma: f64, g: &Block) {
    w.values_mut().iter_mut().zip(g.values()).for_each(|(w, g)| *w = alpha * *w + gamma * g);
}

/// Brings w to length 1; a vector that vanished (a zero row in the null space of C) is left at zero.
fn normalize(w: &mut Block) {
    if w.norm() < f64::MIN_POSITIVE {
        w.scale(1.0 / f64::MIN_POSITIVE); // a power of two; the reciprocal of such a length would overflow
    }
    let norm = w.norm();
    if norm > 0.0 {
        w.scale(1.0 / norm);
    }
}

/// Orders the columns by the Rayleigh quotients that are certified: where eigenvalues agree to rounding their order is
/// not that of the eigen-solver.
fn sort_descending(vectors: &mut Block, images: &mut Block) {
    let k = vectors.p();
    let theta = crate::certificate::ritz_values(vectors, images);
    if theta.is_sorted_by(|a, b| a >= b) {
        return;
    }
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by(|a, b| theta[*b].total_cmp(&theta[*a]));
    for block in [vectors, images] {
        let before = block.clone();
        let rows = block.values_mut().chunks_exact_mut(k).zip(before.values().chunks_exact(k));
        rows.for_each(|(row, before)| row.iter_mut().zip(&order).for_each(|(x, &c)| *x = before[c]));
    }
}

/// Step sizes lie in (0, 1] for the heavy ball methods.
fn check_unit_step(eta: f64) -> Result<(), Error> {
    if eta > 0.0 && eta <= 1.0 {
        return Ok(());
    }
    Err(Error::parameter("eta", eta, "the step size must lie above 0 and at most at 1; try 0.1, or auto"))
}

/// Step sizes of Oja's rule, of VR-PCA and of what follows it are any positive numbers.
fn check_positive_step(eta: f64) -> Result<(), Error> {
    if eta > 0.0 && eta.is_finite() {
        return Ok(());
    }
    Err(Error::parameter("eta", eta, "the step size must be positive and finite; try 0.1, or auto"))
}

/// k runs from 1 to d.
fn check_components(k: usize, d: usize) -> Result<(), Error> {
    if k == 0 || k > d {
        return Err(Error::parameter("k", k, format!("give a number of components from 1 to {d}")));
    }
    Ok(())
}

/// Start vectors have d finite coordinates and are not zero.
fn check_start(start: &Block, d: usize) -> Result<(), Error> {
    for c in 0..start.p() {
        crate::policy::Start::Given(Block::from_vector(start.column(c))).vector(d)?;
    }
    Ok(())
}
