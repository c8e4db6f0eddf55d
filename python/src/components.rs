//! How many components are meant: a number, a share of the variance, all there are, or those the spectrum speaks for.

use hbpca::{Fit, FitConfig};
use pyo3::prelude::*;

use crate::errors::{Failure, Outcome};

/// `n_components`.
#[derive(FromPyObject, Clone, Debug)]
pub enum Wanted {
    /// This many.
    Count(usize),
    /// As many as carry this share of the total variance.
    Share(f64),
    /// "mle".
    Named(String),
}

/// What is done with the components of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All stay.
    All,
    /// All with variance, and a single one without: rows that are repeated, and rows that weigh as much, have the same.
    Varying,
    /// None does: all variance is noise.
    None,
    /// Those the spectrum speaks for.
    MostLikely,
}

impl Selection {
    /// The fit with the components that are kept.
    pub fn of(self, fit: Fit) -> Fit {
        match self {
            Self::All => fit,
            Self::Varying => fit.without_several_null_components(),
            Self::None => fit.leading(0),
            Self::MostLikely => fit.with_most_likely_dimension(),
        }
    }
}

/// Asks for what is wanted of n rows and d columns; nothing stands for all. `svd_solver` is scikit-learn's argument, where it was given: it has
/// bounds of its own.
pub fn ask(
    config: &mut FitConfig,
    wanted: Option<&Wanted>,
    svd_solver: Option<&str>,
    shape: (usize, usize),
) -> Outcome<Selection> {
    match wanted {
        Some(Wanted::Share(share)) => {
            config.variance_share = Some(*share);
            Ok(Selection::All)
        }
        Some(Wanted::Named(name)) => {
            config.k = columns_of_mle(name, svd_solver, shape)?;
            Ok(Selection::MostLikely)
        }
        Some(Wanted::Count(k)) => {
            let solver = svd_solver.unwrap_or_default();
            check_count(*k, solver, shape)?;
            config.k = (*k).max(1);
            Ok(if *k == 0 { Selection::None } else { Selection::All })
        }
        None => {
            let most = shape.0.min(shape.1);
            config.k = if svd_solver == Some("arpack") { most.saturating_sub(1) } else { most };
            check_count(config.k, svd_solver.unwrap_or_default(), shape)?;
            Ok(Selection::Varying)
        }
    }
}

/// d, of which "mle" chooses.
fn columns_of_mle(name: &str, svd_solver: Option<&str>, (n, d): (usize, usize)) -> Outcome<usize> {
    match svd_solver {
        _ if name != "mle" => Err(Failure::value(format!(
            "n_components = {name:?}: give a number, a share of the variance between 0 and 1, \"mle\" or None for all"
        ))),
        Some(solver @ ("arpack" | "randomized")) => {
            Err(Failure::value(format!("n_components='mle' cannot be a string with svd_solver='{solver}'")))
        }
        _ if n < d => Err(Failure::value(format!(
            "n_components='mle' is only supported if n_samples >= n_features: there are {n} rows and {d} columns"
        ))),
        _ => Ok(d),
    }
}

/// Refuses numbers outside the bounds that scikit-learn's solver of that name has; without one the core's own bounds hold.
fn check_count(k: usize, solver: &str, (n, d): (usize, usize)) -> Outcome<()> {
    let most = n.min(d);
    let least = match solver {
        "" => return Ok(()),
        "arpack" | "randomized" => 1,
        _ => 0,
    };
    let what = if k < least || k > most {
        format!("be between {least} and")
    } else if solver == "arpack" && k == most {
        "be strictly less than".to_owned()
    } else {
        return Ok(());
    };
    Err(Failure::value(format!(
        "n_components={k} must {what} min(n_samples, n_features)={most} with svd_solver='{solver}'"
    )))
}
