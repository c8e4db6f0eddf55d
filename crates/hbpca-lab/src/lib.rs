//! The laboratory: the paper's experiments as living results, and the same race on the user's own data.
//!
//! An experiment is described in TOML ([`experiment`]), run on data sets ([`dataset`]) against an exact reference
//! ([`mod@reference`]) by a resumable race ([`race`]), judged ([`findings`]), drawn ([`figure`]) and reported ([`report`]).

pub mod cli;
pub mod colouring;
pub mod compare;
pub mod dataset;
pub mod experiment;
pub mod figure;
pub mod findings;
pub mod fit_report;
pub mod plots;
pub mod progress;
pub mod race;
pub mod reference;
pub mod report;
pub mod reproduce;
pub mod statistics;
pub mod study;
pub mod table_args;
pub mod trace;

mod error;
mod plot_args;

use std::io::Write;
use std::path::Path;

pub use error::LabError;

/// Writes a file that appears whole or not at all, in a folder that is created.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(LabError::io(folder))?;
    }
    let mut file = hbpca_io::OutputFile::create(path)?;
    file.write_all(bytes).map_err(LabError::io(path))?;
    Ok(file.commit()?)
}
