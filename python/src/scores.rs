//! Data to scores and back, for components that live in NumPy arrays.

use hbpca::{Matrix, Model, Preprocessing, Real, Summary, Whitening};
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
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

/// n×k scores of every row, in the precision of the rows.
#[pyfunction]
// Owned, because these types are what the arguments are converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn transform<'py>(py: Python<'py>, rows: Input<'py>, maps: Maps<'py>) -> Outcome<Bound<'py, PyAny>> {
    let matrix = rows.matrix(FiniteCheck::Later)?;
    match matrix {
        Matrix::DenseF32(_) | Matrix::CsrF32(_) => scores_of_rows::<f32>(py, &rows, &matrix, &maps),
        Matrix::DenseF64(_) | Matrix::CsrF64(_) => scores_of_rows::<f64>(py, &rows, &matrix, &maps),
    }
}

fn scores_of_rows<'py, T: Real + Element>(
    py: Python<'py>,
    rows: &Input<'py>,
    matrix: &Matrix<'_>,
    maps: &Maps<'py>,
) -> Outcome<Bound<'py, PyAny>> {
    let (model, whitening) = maps.model()?;
    let scores: Vec<T> = py.detach(|| model.transform_to(matrix, whitening))?;
    // A row with NaN or an infinity has no finite score, as 0·∞ is NaN: the k scores tell at k/d of the cost of the d entries.
    if !scores.iter().all(|score| score.to_f64().is_finite()) {
        rows.matrix(FiniteCheck::Now)?;
    }
    table(py, scores, model.n_components())
}

/// Scores in either precision.
#[derive(FromPyObject)]
pub enum Scores<'py> {
    /// Single.
    F32(PyReadonlyArray2<'py, f32>),
    /// Double.
    F64(PyReadonlyArray2<'py, f64>),
}

/// n×d rows from n×k scores, in the precision of the scores.
#[pyfunction]
// Owned, because these types are what the arguments are converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn inverse_transform<'py>(
    py: Python<'py>,
    scores: Scores<'py>,
    maps: Maps<'py>,
) -> Outcome<Bound<'py, PyAny>> {
    match &scores {
        Scores::F32(scores) => rows_of_scores(py, scores, &maps),
        Scores::F64(scores) => rows_of_scores(py, scores, &maps),
    }
}

fn rows_of_scores<'py, T: Real + Element>(
    py: Python<'py>,
    scores: &PyReadonlyArray2<'py, T>,
    maps: &Maps<'py>,
) -> Outcome<Bound<'py, PyAny>> {
    let (model, whitening) = maps.model()?;
    let (_, k) = scores.as_array().dim();
    if k != model.n_components() {
        return Err(hbpca::Error::shape("scores of each row", model.n_components(), k).into());
    }
    let scores = scores.as_slice().map_err(|error| Failure::Python(error.into()))?;
    let rows = py.detach(|| model.inverse_transform_to(scores, whitening))?;
    table(py, rows, model.n_features())
}

/// An array of rows of `columns` values.
fn table<T: Element>(py: Python<'_>, values: Vec<T>, columns: usize) -> Outcome<Bound<'_, PyAny>> {
    let rows = values.len() / columns;
    Ok(PyArray1::from_vec(py, values).reshape([rows, columns])?.into_any())
}
