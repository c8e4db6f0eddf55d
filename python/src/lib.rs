//! The compiled half of the Python package: borrows arrays, calls the core, hands results back.
//!
//! In the order of a call: `input` borrows the rows, `chunks` reads those that come in chunks, `settings` turns keywords into a [`hbpca::FitConfig`],
//! `components` finds out how many components are meant, `run` computes while Python stays responsive, `fitted` is the
//! result and `snapshot` one that is not final; `moments` takes rows in chunks; `ranks` and `partitions` have
//! rows on many machines. `scores`, `likelihood`, `files` and `analysis` bind
//! the maps to scores, the Gaussian model, the readers and the theory, `command` the command line. `errors` is the one place where errors become exceptions. No numerics live here.

use pyo3::prelude::*;

mod analysis;
mod chunks;
mod command;
mod components;
mod errors;
mod files;
mod fitted;
mod input;
mod likelihood;
mod moments;
mod partitions;
mod pool;
mod ranks;
mod run;
mod scores;
mod settings;
mod snapshot;

/// The private module `hbpca._hbpca`; its public face is the package `hbpca`.
#[pymodule]
mod _hbpca {
    #[pymodule_export]
    use super::analysis::{Problem, gradient_variance};
    #[pymodule_export]
    use super::command::command;
    #[pymodule_export]
    use super::files::read;
    #[pymodule_export]
    use super::fitted::Fitted;
    #[pymodule_export]
    use super::likelihood::{covariance, log_likelihoods, precision};
    #[pymodule_export]
    use super::moments::Moments;
    #[pymodule_export]
    use super::partitions::{combine_answers, partition_answer};
    #[pymodule_export]
    use super::run::{fit, fit_on_ranks, fit_partitions};
    #[pymodule_export]
    use super::scores::{column_variances, inverse_transform, transform};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// What the core has to tell before a fit.
    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyModuleMethods;
        super::pool::import();
        module.add("DEFAULT_TOL", hbpca::Limits::default().tol)
    }
}
