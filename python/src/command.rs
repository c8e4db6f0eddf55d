//! The command `hbpca`, for the script that the package installs.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::pool::detach;

/// Does what was typed, the name of the program not included, and returns the exit code. It takes the signals of the process and
/// its standard streams, and a process calls it once.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    detach(py, || hbpca_cli::run(arguments))
}
