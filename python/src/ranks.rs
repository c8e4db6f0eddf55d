//! Ranks that talk through an object of Python, such as a communicator of mpi4py.

use hbpca::Error;
use hbpca::operator::Communicator;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

/// `Get_rank`, `Get_size`, `Send`, `Recv` and `Bcast` of buffers.
pub struct PythonRanks {
    comm: Py<PyAny>,
    rank: usize,
    size: usize,
}

impl PythonRanks {
    /// Asks the communicator who this is.
    pub fn new(comm: &Bound<'_, PyAny>) -> PyResult<Self> {
        let rank = comm.call_method0("Get_rank")?.extract()?;
        let size = comm.call_method0("Get_size")?.extract()?;
        Ok(Self { comm: comm.clone().unbind(), rank, size })
    }
}

/// What Python raised, as the core says it.
fn raised(error: &PyErr) -> Error {
    Error::Communication(error.to_string())
}

impl Communicator for PythonRanks {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, values: &[f64], to: usize) -> Result<(), Error> {
        Python::attach(|py| {
            self.comm.bind(py).call_method1("Send", (PyArray1::from_slice(py, values), to))?;
            Ok(())
        })
        .map_err(|error| raised(&error))
    }

    fn receive(&self, values: &mut [f64], from: usize) -> Result<(), Error> {
        Python::attach(|py| {
            let buffer = PyArray1::<f64>::zeros(py, values.len(), false);
            self.comm.bind(py).call_method1("Recv", (&buffer, from))?;
            take(values, &buffer)
        })
        .map_err(|error| raised(&error))
    }

    fn broadcast(&self, values: &mut [f64], root: usize) -> Result<(), Error> {
        Python::attach(|py| {
            let buffer = PyArray1::from_slice(py, values);
            self.comm.bind(py).call_method1("Bcast", (&buffer, root))?;
            take(values, &buffer)
        })
        .map_err(|error| raised(&error))
    }
}

fn take(values: &mut [f64], buffer: &Bound<'_, PyArray1<f64>>) -> PyResult<()> {
    values.copy_from_slice(buffer.try_readonly()?.as_slice()?);
    Ok(())
}
