//! Data to scores and back, for components that live in NumPy arrays.

use hbpca::missing::{HolesInRows, Missing};
use hbpca::model::Projection;
use hbpca::{Centering, ColumnStatistics, Matrix, Real};
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::{Failure, Outcome};
use crate::input::{FiniteCheck, Input, contiguous};
use crate::pool::detach;

/// The arrays of a fitted estimator, as attributes of a Python object.
#[derive(FromPyObject)]
pub struct Maps<'py> {
    components: PyReadonlyArray2<'py, f64>,
    shift: Option<PyReadonlyArray1<'py, f64>>,
    scale: Option<PyReadonlyArray1<'py, f64>>,
    /// What scores are divided by.
    factors: Option<PyReadonlyArray1<'py, f64>>,
}

impl Maps<'_> {
    /// The core's own, which borrows the arrays.
    pub fn projection(&self) -> Outcome<Projection<'_>> {
        let components = self.components.as_slice().map_err(|error| Failure::Python(error.into()))?;
        let factors = part(self.factors.as_ref())?.map(<[f64]>::to_vec);
        let d = self.components.shape()[1];
        Ok(Projection::new(components, d, part(self.shift.as_ref())?, part(self.scale.as_ref())?, factors)?)
    }
}

/// The memory of an array that may not be there.
fn part<'a>(part: Option<&'a PyReadonlyArray1<'_, f64>>) -> Outcome<Option<&'a [f64]>> {
    part.map(contiguous).transpose()
}

/// What becomes of holes in rows that are transformed, as attributes of a Python object.
#[derive(FromPyObject)]
pub struct Holes {
    missing: Option<String>,
    /// Whether the model knows the means.
    center: bool,
    ridge: Option<f64>,
}

impl Holes {
    /// For genotypes, of which what is missing is the mean where nothing else is said: the default of tables, an error, says nothing.
    pub fn rule_for_genotypes(&self) -> Outcome<HolesInRows> {
        match self.missing.as_deref() {
            None | Some("error" | "mean") => Ok(HolesInRows::Mean),
            Some(_) => self.rule(),
        }
    }

    fn rule(&self) -> Outcome<HolesInRows> {
        let missing: Missing = self.missing.as_deref().map(str::parse).transpose()?.unwrap_or_default();
        let centering = if self.center { Centering::Mean } else { Centering::None };
        Ok(missing.in_new_rows(centering, self.ridge.unwrap_or(0.0))?)
    }
}

/// n×k scores of every row, in the precision of the rows; those of rows with holes as `holes` says, which are refused without it.
#[pyfunction]
#[pyo3(signature = (rows, maps, holes=None))]
// Owned, because these types are what the arguments are converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn transform<'py>(
    py: Python<'py>,
    rows: Input<'py>,
    maps: Maps<'py>,
    holes: Option<Holes>,
) -> Outcome<Bound<'py, PyAny>> {
    let matrix = rows.matrix(FiniteCheck::Later)?;
    let rule = holes.map_or(Ok(HolesInRows::Refused), |holes| holes.rule())?;
    match matrix {
        Matrix::DenseF32(_) | Matrix::CsrF32(_) => scores_of_rows::<f32>(py, &rows, &matrix, &maps, rule),
        Matrix::DenseF64(_) | Matrix::CsrF64(_) => scores_of_rows::<f64>(py, &rows, &matrix, &maps, rule),
    }
}

fn scores_of_rows<'py, T: Real + Element>(
    py: Python<'py>,
    rows: &Input<'py>,
    matrix: &Matrix<'_>,
    maps: &Maps<'py>,
    rule: HolesInRows,
) -> Outcome<Bound<'py, PyAny>> {
    let projection = maps.projection()?;
    let (n, k) = (matrix.n_rows(), projection.n_components());
    let table_of_scores = written(py, n, k, |scores: &mut [T]| projection.transform_into(matrix, scores))?;
    // A row with NaN or an infinity has no finite score, as 0·∞ is NaN: the k scores tell at k/d of the cost of the d entries.
    let is_finite = contiguous(&table_of_scores.readonly())?.iter().all(|score| score.to_f64().is_finite());
    if !is_finite {
        if rule == HolesInRows::Refused {
            rows.matrix(FiniteCheck::Now)?;
        }
        return table(py, detach(py, || projection.transform_with_holes::<T>(matrix, rule))?, n, k);
    }
    Ok(table_of_scores.reshape([n, k])?.into_any())
}

/// A new array of so many rows and columns, in one dimension, that `write` fills: NumPy takes large pages for it, and is handed nothing twice.
fn written<T: Element + Default + Send>(
    py: Python<'_>,
    rows: usize,
    columns: usize,
    write: impl FnOnce(&mut [T]) -> Result<(), hbpca::Error> + Send,
) -> Outcome<Bound<'_, PyArray1<T>>> {
    let array = PyArray1::<T>::zeros(py, rows * columns, false);
    let mut writing = array.readwrite();
    let values = writing.as_slice_mut().map_err(|error| Failure::Python(error.into()))?;
    detach(py, || write(values))?;
    drop(writing);
    Ok(array)
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
    let projection = maps.projection()?;
    let (n, k) = scores.as_array().dim();
    if k != projection.n_components() {
        return Err(hbpca::Error::shape("scores of each row", projection.n_components(), k).into());
    }
    let scores = scores.as_slice().map_err(|error| Failure::Python(error.into()))?;
    let d = projection.n_features();
    let rows = written(py, n, d, |rows: &mut [T]| projection.inverse_transform_into(scores, rows))?;
    Ok(rows.reshape([n, d])?.into_any())
}

/// Variances of the columns, with denominator n.
#[pyfunction]
// Owned, because this type is what the argument is converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn column_variances<'py>(py: Python<'py>, rows: Input<'py>) -> Outcome<Bound<'py, PyArray1<f64>>> {
    let matrix = rows.matrix(FiniteCheck::Later)?;
    let statistics = detach(py, || ColumnStatistics::new(&matrix))?;
    Ok(PyArray1::from_vec(py, statistics.variance()))
}

/// An array of so many rows and columns.
pub fn table<T: Element>(
    py: Python<'_>,
    values: Vec<T>,
    rows: usize,
    columns: usize,
) -> Outcome<Bound<'_, PyAny>> {
    Ok(PyArray1::from_vec(py, values).reshape([rows, columns])?.into_any())
}
