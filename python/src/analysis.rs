//! The paper's analysis.

use hbpca::theory::{ErrorDirection, GradientVariance, LiteralBound, Method};
use hbpca::theory::{Problem as Core, best_step_size, best_step_size_vr_pca};
use hbpca::{ColumnStatistics, Replacement};
use pyo3::prelude::*;

use crate::errors::{Failure, Outcome};
use crate::input::{FiniteCheck, Input};
use crate::pool::detach;
use crate::settings::Settings;

/// λ₁, λ₂, K and m: everything the rate of one epoch depends on besides the method.
#[pyclass(frozen, module = "hbpca._hbpca")]
pub struct Problem(Core);

/// A method by its solver's name, with its step size.
fn method(name: &str, eta: Option<f64>) -> Outcome<Method> {
    let step = || eta.ok_or_else(|| Failure::value(format!("method {name:?} needs a step size: give eta")));
    match name {
        "vr-hb-power" => Ok(Method::VrHbPower { eta: step()? }),
        "vr-pca" => Ok(Method::VrPca { eta: step()? }),
        "vr-power-m" if eta.is_none() => Ok(Method::VrPowerM),
        "vr-power-m" => Err(Failure::value("method \"vr-power-m\" has the step size 1: leave eta out")),
        _ => Err(Failure::value(format!(
            "method = {name:?}: choose \"vr-hb-power\", \"vr-pca\" or \"vr-power-m\""
        ))),
    }
}

#[pymethods]
impl Problem {
    #[new]
    fn new(lambda1: f64, lambda2: f64, variance: f64, epoch: usize) -> Outcome<Self> {
        Ok(Self(Core::new(lambda1, lambda2, variance, epoch)?))
    }

    /// λ₁.
    #[getter]
    fn lambda1(&self) -> f64 {
        self.0.lambda1()
    }

    /// λ₂.
    #[getter]
    fn lambda2(&self) -> f64 {
        self.0.lambda2()
    }

    /// K.
    #[getter]
    fn variance(&self) -> f64 {
        self.0.variance()
    }

    /// m.
    #[getter]
    fn epoch(&self) -> usize {
        self.0.epoch()
    }

    /// The rate of one epoch without noise.
    #[pyo3(signature = (eta=None, *, method="vr-hb-power"))]
    fn g(&self, eta: Option<f64>, method: &str) -> Outcome<f64> {
        Ok(self.0.g(self::method(method, eta)?)?)
    }

    /// (g, h, ln(g + h)) of one epoch with noise.
    #[pyo3(signature = (eta=None, *, method="vr-hb-power", direction="second"))]
    fn contraction(&self, eta: Option<f64>, method: &str, direction: &str) -> Outcome<(f64, f64, f64)> {
        let direction = match direction {
            "second" => ErrorDirection::Second,
            "worst" => ErrorDirection::Worst,
            other => {
                return Err(Failure::value(format!("direction = {other:?}: choose \"second\" or \"worst\"")));
            }
        };
        let contraction = self.0.contraction_from(self::method(method, eta)?, direction)?;
        Ok((contraction.g, contraction.h, contraction.ln_rate))
    }

    /// The step size with the smallest modelled contraction.
    #[pyo3(signature = (*, method="vr-hb-power"))]
    fn best_step_size(&self, method: &str) -> Outcome<f64> {
        match method {
            "vr-hb-power" => Ok(best_step_size(&self.0).eta),
            "vr-pca" => Ok(best_step_size_vr_pca(&self.0).eta),
            _ => Err(Failure::value(format!("method = {method:?}: choose \"vr-hb-power\" or \"vr-pca\""))),
        }
    }

    /// (ln g, ln h, ln(g + h)) of the theorem's own bound.
    fn bound(&self, eta: f64, d: usize, worst_batch: f64) -> Outcome<(f64, f64, f64)> {
        let rate = LiteralBound::new(self.0, d, worst_batch)?.rate(eta)?;
        Ok((rate.ln_g, rate.ln_h, rate.ln_rate))
    }

    fn __repr__(&self) -> String {
        let p = &self.0;
        format!(
            "Problem(lambda1={}, lambda2={}, variance={}, epoch={})",
            p.lambda1(),
            p.lambda2(),
            p.variance(),
            p.epoch()
        )
    }
}

/// K = ‖E[(C_S − C)²]‖ for batches of `batch` rows, measured to `relative_tol`.
#[pyfunction]
#[pyo3(signature = (rows, settings, batch, *, replacement, relative_tol))]
// Owned, because these types are what the arguments are converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn gradient_variance(
    py: Python<'_>,
    rows: Input<'_>,
    settings: Settings<'_>,
    batch: usize,
    replacement: bool,
    relative_tol: f64,
) -> Outcome<f64> {
    let matrix = rows.matrix(FiniteCheck::Later)?;
    let config = settings.config()?;
    let replacement = if replacement { Replacement::With } else { Replacement::Without };
    detach(py, || {
        let map = config.preprocessing.row_map(&ColumnStatistics::new(&matrix)?);
        let measured = GradientVariance::measure(&matrix, &map, relative_tol, config.seed)?;
        Ok(measured.of_batch(batch, replacement)?)
    })
}
