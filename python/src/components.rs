//! How many components are meant: a number, a share of the variance, or all there are.

use hbpca::{Fit, SolverKind};
use pyo3::prelude::*;

use crate::errors::{Failure, Outcome};

/// `n_components`.
#[derive(FromPyObject, Clone, Copy, Debug)]
pub enum Wanted {
    /// This many.
    Count(usize),
    /// As many as carry more than this share of the total variance.
    Share(f64),
}

impl Wanted {
    /// Refuses shares that are none.
    pub fn check(self) -> Outcome<()> {
        match self {
            Self::Share(share) if !(share > 0.0 && share < 1.0) => Err(Failure::value(format!(
                "n_components = {share}: a share of the variance lies above 0 and below 1; give a whole number for a count, \
                 or None for all"
            ))),
            _ => Ok(()),
        }
    }
}

/// How many of all components to keep. `None` keeps those whose eigenvalue the certificate tells from 0, and at least one:
/// the others are directions of rounding noise.
pub fn kept(wanted: Option<Wanted>, all: &Fit) -> usize {
    let count = match wanted {
        Some(Wanted::Count(k)) => k,
        Some(Wanted::Share(share)) => {
            let mut sum = 0.0;
            let reached = all.model.explained_variance_ratio().iter().position(|ratio| {
                sum += ratio;
                sum > share
            });
            reached.map_or(all.model.n_components(), |last| last + 1)
        }
        None => all.certificate.eigenvalue_intervals.iter().take_while(|[low, _]| *low > 0.0).count(),
    };
    count.max(1)
}

/// Solvers that find the whole spectrum at once; others are not asked for it.
pub fn finds_all(solver: SolverKind) -> bool {
    solver == SolverKind::Covariance
}
