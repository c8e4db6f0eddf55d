//! Rust errors as Python exceptions: `ValueError` for bad input, `OSError` and its kinds for files.

use std::io;

use hbpca::Error;
use hbpca_io::{ReadError, WriteError};
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};

/// An error on its way to Python.
#[derive(Debug)]
pub enum Failure {
    /// Of the core.
    Core(Error),
    /// Of a reader.
    Read(ReadError),
    /// Of a writer.
    Write(WriteError),
    /// Already an exception: from a callback, a signal or a conversion.
    Python(PyErr),
}

/// What most calls return.
pub type Outcome<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl Failure {
    /// A `ValueError`.
    pub fn value(message: impl Into<String>) -> Self {
        Self::Python(PyValueError::new_err(message.into()))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Python(error) => error,
            Failure::Core(Error::Parameter { name, value, advice }) => {
                PyValueError::new_err(format!("{} = {value}: {advice}", keyword(name)))
            }
            Failure::Core(error @ Error::Singular { .. }) => PyValueError::new_err(singular(&error)),
            Failure::Core(error @ Error::Memory { .. }) => PyMemoryError::new_err(error.to_string()),
            Failure::Read(error @ ReadError::Memory { .. }) => PyMemoryError::new_err(error.to_string()),
            Failure::Core(error @ Error::Source(_)) => PyRuntimeError::new_err(error.to_string()),
            Failure::Core(error) => PyValueError::new_err(error.to_string()),
            Failure::Read(ReadError::Io { file, source })
            | Failure::Write(WriteError::Io { file, source }) => refused(&file, &source),
            Failure::Read(error) => PyValueError::new_err(error.to_string()),
            Failure::Write(error) => PyValueError::new_err(error.to_string()),
        }
    }
}

/// A parameter as Python spells it.
fn keyword(name: &str) -> String {
    if name == "k" { "n_components".into() } else { name.replace('-', "_") }
}

/// A singular covariance, and the way out as Python spells it.
pub fn singular(error: &Error) -> String {
    error.to_string().replace("a smaller k", &format!("a smaller {}", keyword("k")))
}

/// `FileNotFoundError`, `PermissionError` and so on, with errno and file name where the system gave a number.
fn refused(file: &str, source: &io::Error) -> PyErr {
    match source.raw_os_error() {
        Some(number) => {
            let text = source.to_string();
            let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((number, reason, file.to_owned()))
        }
        None => PyOSError::new_err(format!("{file}: {source}")),
    }
}
