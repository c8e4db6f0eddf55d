//! How many components are meant: a number, a share of the variance, or all there are.

use hbpca::{Error, Fit, FitConfig, Model, Summary};
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

/// Without the trailing components whose eigenvalue the certificate cannot tell from 0, which are directions of rounding
/// noise; at least one is kept.
pub fn without_rounding(mut fit: Fit) -> Result<Fit, Error> {
    let certain = fit.certificate.eigenvalue_intervals.iter().take_while(|[low, _]| *low > 0.0);
    let (k, model) = (certain.count().max(1), &fit.model);
    if k < model.n_components() {
        let mut summary: Summary = model.summary().clone();
        summary.eigenvalues.truncate(k);
        let components = model.components()[..k * model.n_features()].to_vec();
        let parts = [model.shift(), model.scale()].map(|part| part.map(<[f64]>::to_vec));
        let [shift, scale] = parts;
        fit.model = Model::from_parts(components, summary, shift, scale)?;
        fit.certificate = fit.certificate.leading(k);
    }
    Ok(fit)
}
