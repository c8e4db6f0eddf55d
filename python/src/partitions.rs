//! Partitions that a scheduler of Python owns, and what its workers do with each.

use hbpca::Error;
use hbpca::operator::{self, Partitions};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::errors::Outcome;
use crate::input::{FiniteCheck, Input, contiguous};
use crate::pool::detach;

/// The answer of one partition to a task.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "these types are what the arguments are converted into")]
pub fn partition_answer<'py>(
    py: Python<'py>,
    rows: Input<'py>,
    task: PyReadonlyArray1<'py, f64>,
    index: usize,
    count: usize,
) -> Outcome<Bound<'py, PyArray1<f64>>> {
    let task = contiguous(&task)?;
    let matrix = rows.matrix(FiniteCheck::Later)?;
    let answer = detach(py, || operator::answer(task, &matrix, (index, count)))?;
    Ok(PyArray1::from_vec(py, answer))
}

/// Two answers as one.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "these types are what the arguments are converted into")]
pub fn combine_answers<'py>(
    py: Python<'py>,
    mine: PyReadonlyArray1<'py, f64>,
    theirs: PyReadonlyArray1<'py, f64>,
) -> Outcome<Bound<'py, PyArray1<f64>>> {
    let (mine, theirs) = (contiguous(&mine)?, contiguous(&theirs)?);
    Ok(PyArray1::from_vec(py, detach(py, || operator::combine(mine, theirs))?))
}

/// An object with `count` and `sum(task)`.
pub struct PythonPartitions {
    partitions: Py<PyAny>,
    count: usize,
    /// What its `sum` raised.
    raised: std::sync::Mutex<Option<PyErr>>,
}

impl PythonPartitions {
    /// Asks how many there are.
    pub fn new(partitions: &Bound<'_, PyAny>) -> PyResult<Self> {
        let count = partitions.getattr("count")?.extract()?;
        Ok(Self { partitions: partitions.clone().unbind(), count, raised: std::sync::Mutex::default() })
    }

    /// The exception that ended the fit, if one did.
    pub fn take_raised(&self) -> Option<PyErr> {
        self.raised.lock().ok()?.take()
    }
}

impl Partitions for PythonPartitions {
    fn count(&self) -> usize {
        self.count
    }

    fn sum(&self, task: &[f64]) -> Result<Vec<f64>, Error> {
        let sum = Python::attach(|py| -> PyResult<Vec<f64>> {
            let answer = self.partitions.bind(py).call_method1("sum", (PyArray1::from_slice(py, task),))?;
            let answer = answer.cast_into::<PyArray1<f64>>()?;
            Ok(answer.try_readonly()?.as_slice()?.to_vec())
        });
        sum.map_err(|error| {
            let said = Error::Source(error.to_string().into());
            if let Ok(mut raised) = self.raised.lock() {
                *raised = Some(error);
            }
            said
        })
    }
}
