//! How many components are meant: a number, a share of the variance, or all there are.

use hbpca::FitConfig;
use pyo3::prelude::*;

/// `n_components`.
#[derive(FromPyObject, Clone, Copy, Debug)]
pub enum Wanted {
    /// This many.
    Count(usize),
    /// As many as carry this share of the total variance.
    Share(f64),
}

/// Asks for what is wanted of n rows and d columns; nothing stands for all.
pub fn ask(config: &mut FitConfig, wanted: Option<Wanted>, n: usize, d: usize) {
    match wanted {
        Some(Wanted::Count(k)) => config.k = k,
        Some(Wanted::Share(share)) => config.variance_share = Some(share),
        None => config.k = n.min(d),
    }
}
