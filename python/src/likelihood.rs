//! The Gaussian model, for components that live in NumPy arrays.

use hbpca::model::ProbabilisticPca;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use crate::errors::{Outcome, singular};
use crate::input::{FiniteCheck, Input, contiguous};
use crate::pool::detach;
use crate::scores::{Maps, table};

/// The arrays of a fitted estimator, as attributes of a Python object.
#[derive(FromPyObject)]
pub struct Gaussian<'py> {
    maps: Maps<'py>,
    /// Variance of each component.
    variances: PyReadonlyArray1<'py, f64>,
    /// Mean of the variances left out.
    noise: f64,
    /// Whether scores are whitened.
    whiten: bool,
}

impl Gaussian<'_> {
    fn model(&self) -> Outcome<ProbabilisticPca<'_>> {
        let (projection, variances) = (self.maps.projection()?, contiguous(&self.variances)?);
        Ok(if self.whiten {
            ProbabilisticPca::whitening(projection, variances, self.noise)?
        } else {
            ProbabilisticPca::new(projection, variances, self.noise)?
        })
    }
}

/// Its d×d covariance.
#[pyfunction]
// Owned, because this type is what the argument is converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn covariance<'py>(py: Python<'py>, gaussian: Gaussian<'py>) -> Outcome<Bound<'py, PyAny>> {
    let model = gaussian.model()?;
    table(py, detach(py, || model.covariance()), model.n_features(), model.n_features())
}

/// The inverse of its covariance.
#[pyfunction]
// Owned, because this type is what the argument is converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn precision<'py>(py: Python<'py>, gaussian: Gaussian<'py>) -> Outcome<Bound<'py, PyAny>> {
    let model = gaussian.model()?;
    table(py, detach(py, || model.precision())?, model.n_features(), model.n_features())
}

/// The logarithm of the density of each row; −∞, with a warning to the caller's caller, where there is none.
#[pyfunction]
// Owned, because these types are what the arguments are converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn log_likelihoods<'py>(
    py: Python<'py>,
    rows: Input<'py>,
    gaussian: Gaussian<'py>,
) -> Outcome<Bound<'py, PyArray1<f64>>> {
    let matrix = rows.matrix(FiniteCheck::Later)?;
    let model = gaussian.model()?;
    if model.is_singular() {
        let text = std::ffi::CString::new(singular(&model.singular())).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 2)?;
    }
    Ok(PyArray1::from_vec(py, detach(py, || model.log_likelihoods(&matrix))?))
}
