//! Data to scores and back, for components that live in NumPy arrays.

use hbpca::{Model, Preprocessing, Summary, Whitening};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::errors::{Failure, Outcome};
use crate::input::{FiniteCheck, Input, contiguous};

/// The arrays of a fitted estimator, as attributes of a Python object.
#[derive(FromPyObject)]
pub struct Maps<'py> {
    components: PyReadonlyArray2<'py, f64>,
    shift: Option<PyReadonlyArray1<'py, f64>>,
    scale: Option<PyReadonlyArray1<'py, f64>>,
    /// Variances to divide by when whitening.
    variances: Option<PyReadonlyArray1<'py, f64>>,
}

impl Maps<'_> {
    fn model(&self) -> Outcome<(Model, Whitening)> {
        let components = self.components.as_array();
        let (k, d) = components.dim();
        let copy = |part: &Option<PyReadonlyArray1<'_, f64>>| -> Outcome<Option<Vec<f64>>> {
            part.as_ref().map(|x| Ok(contiguous(x)?.to_vec())).transpose()
        };
        // For a weight of 2 the factor n/(n − 1) is 2, which halves and doubles without rounding.
        let (eigenvalues, whitening) = match copy(&self.variances)? {
            Some(variances) => (variances.iter().map(|v| v / 2.0).collect(), Whitening::On),
            None => (vec![0.0; k], Whitening::Off),
        };
        let summary = Summary {
            n: 2,
            d,
            weight: 2.0,
            preprocessing: Preprocessing::NONE,
            eigenvalues,
            total_variance: 0.0,
        };
        let values = components.iter().copied().collect();
        Ok((Model::from_parts(values, summary, copy(&self.shift)?, copy(&self.scale)?)?, whitening))
    }
}

/// n×k scores of every row.
#[pyfunction]
// Owned, because these types are what the arguments are converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn transform<'py>(
    py: Python<'py>,
    rows: Input<'py>,
    maps: Maps<'py>,
) -> Outcome<Bound<'py, PyArray2<f64>>> {
    let (model, whitening) = maps.model()?;
    let matrix = rows.matrix(FiniteCheck::Now)?;
    let scores = py.detach(|| model.transform(&matrix, whitening))?;
    Ok(PyArray1::from_vec(py, scores).reshape([matrix.n_rows(), model.n_components()])?)
}

/// n×d rows from n×k scores.
#[pyfunction]
// Owned, because these types are what the arguments are converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn inverse_transform<'py>(
    py: Python<'py>,
    scores: PyReadonlyArray2<'py, f64>,
    maps: Maps<'py>,
) -> Outcome<Bound<'py, PyArray2<f64>>> {
    let (model, whitening) = maps.model()?;
    let (n, k) = scores.as_array().dim();
    if k != model.n_components() {
        return Err(hbpca::Error::shape("scores of each row", model.n_components(), k).into());
    }
    let scores = scores.as_slice().map_err(|error| Failure::Python(error.into()))?;
    let rows = py.detach(|| model.inverse_transform(scores, whitening))?;
    Ok(PyArray1::from_vec(py, rows).reshape([n, model.n_features()])?)
}
