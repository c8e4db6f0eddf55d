//! Rows that come in chunks.

use hbpca::{FitConfig, Moments as Core, SolverKind};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::components::{Wanted, ask};
use crate::errors::Outcome;
use crate::fitted::Fitted;
use crate::input::{FiniteCheck, Input, contiguous};
use crate::pool::detach;
use crate::settings::Settings;

/// Exact sufficient statistics of all rows seen. Immutable: adding rows makes new ones.
#[pyclass(frozen, module = "hbpca._hbpca")]
pub struct Moments(Core);

/// What a pickle holds: rows, columns, scatter, merges, rounding.
type Parts<'py> = (usize, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, usize, f64);

#[pymethods]
// Owned, because these types are what the arguments are converted into.
#[allow(clippy::needless_pass_by_value)]
impl Moments {
    /// Rows seen.
    #[getter]
    fn n_samples(&self) -> usize {
        self.0.n_rows()
    }

    /// Whether there is room for the scatter of so many columns.
    #[staticmethod]
    fn has_room_for(columns: usize) -> bool {
        Core::has_room_for(columns)
    }

    /// Variances of the columns, with denominator n.
    #[getter]
    fn variances<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.0.variances())
    }

    /// Those of `before`, if any, and of the given rows together.
    #[staticmethod]
    #[pyo3(signature = (before, rows, settings, weights=None))]
    fn with_rows(
        py: Python<'_>,
        before: Option<PyRef<'_, Self>>,
        rows: Input<'_>,
        settings: Settings<'_>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> Outcome<Self> {
        let matrix = rows.matrix(FiniteCheck::Later)?;
        let weights = weights.as_ref().map(contiguous).transpose()?;
        let config = settings.config()?;
        let before = before.map(|before| before.0.clone());
        detach(py, || Ok(Self(config.moments(before, &matrix, weights)?)))
    }

    /// The components of all rows seen, always by the one solver that needs no rows.
    #[pyo3(signature = (settings, n_components=None))]
    fn fit(&self, py: Python<'_>, settings: Settings<'_>, n_components: Option<Wanted>) -> Outcome<Fitted> {
        let mut config = FitConfig { solver: SolverKind::Covariance, ..settings.config()? };
        let shape = (self.0.n_rows(), self.0.n_cols());
        let kept = ask(&mut config, n_components.as_ref(), settings.svd_solver(), shape)?;
        let fit = kept.of(detach(py, || config.fit_moments(&self.0))?);
        Ok(Fitted::of_fit(&fit, config.limits.tol).treating(config.missing, &fit))
    }

    #[classmethod]
    fn _from_parts(
        _class: &Bound<'_, PyType>,
        n: usize,
        columns: PyReadonlyArray1<'_, f64>,
        scatter: PyReadonlyArray1<'_, f64>,
        merges: usize,
        rounding: f64,
    ) -> Outcome<Self> {
        let (columns, scatter) = (contiguous(&columns)?, contiguous(&scatter)?);
        Ok(Self(Core::from_parts(n, columns, scatter.to_vec(), merges, rounding)?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let py = slf.py();
        let (n, columns, scatter, merges, rounding) = slf.get().0.parts();
        let parts = (n, PyArray1::from_vec(py, columns), PyArray1::from_slice(py, scatter), merges, rounding);
        Ok((slf.get_type().getattr("_from_parts")?, parts))
    }
}
