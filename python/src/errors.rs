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
            // An exception of a source of chunks is raised as it is.
            Failure::Core(Error::Source(error)) if error.is::<PyErr>() => {
                *error.downcast::<PyErr>().unwrap_or_else(|_| unreachable!("just asked"))
            }
            Failure::Core(error @ (Error::Source(_) | Error::Communication(_))) => {
                PyRuntimeError::new_err(error.to_string())
            }
            Failure::Core(error) => PyValueError::new_err(error.to_string()),
            Failure::Read(ReadError::Io { file, source })
            | Failure::Write(WriteError::Io { file, source }) => refused(&file, &source),
            Failure::Read(error) => PyValueError::new_err(in_python(&error.to_string())),
            Failure::Write(error) => PyValueError::new_err(in_python(&error.to_string())),
        }
    }
}

/// A parameter as Python spells it.
fn keyword(name: &str) -> String {
    match name {
        "k" => "n_components".to_owned(),
        "memory" => "memory_limit".to_owned(),
        "angle" => "angle_tol".to_owned(),
        _ => name.replace('-', "_"),
    }
}

/// A message of the readers with the command line's flags as keywords: `--header yes` is `header=True`, `--decimal ,` is `decimal=","`, and
/// other flags lose their dashes.
pub fn in_python(message: &str) -> String {
    let mut parts = message.split("--");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(part.len());
        let (flag, rest) = part.split_at(end);
        if flag.is_empty() || flag.starts_with('-') || !text.ends_with([' ', '(', '\'', '"', '`']) {
            text.push_str("--");
            text.push_str(part);
            continue;
        }
        text.push_str(&keyword(flag));
        let value = rest.strip_prefix(' ').unwrap_or_default();
        let word = value.split([' ', ';', ')']).next().unwrap_or_default();
        let said = match (flag, word) {
            ("header", "yes") => "True".to_owned(),
            ("header", "no") => "False".to_owned(),
            (_, "," | ".") => format!("\"{word}\""),
            _ if value.starts_with('"') && matches!(flag, "thousands" | "decimal") => String::new(),
            _ => {
                text.push_str(rest);
                continue;
            }
        };
        text.push('=');
        text.push_str(&said);
        text.push_str(&value[if said.is_empty() { 0 } else { word.len() }..]);
    }
    text
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
