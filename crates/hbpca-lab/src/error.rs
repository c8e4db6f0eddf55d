//! What can go wrong in the laboratory.

use std::io;
use std::path::Path;

/// A reproduction, a comparison or a plot that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The operating system refused.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// An experiment's description is not what it must be.
    #[error("{file}: {message}")]
    Description {
        /// The description.
        file: String,
        /// What is wrong, and the way out.
        message: String,
    },
    /// A data file is not the one the experiment was written for.
    #[error(
        "{file}: its sha256 is {found}, the experiment names {expected}: fetch the file again, or give an experiment \
         with the new checksum by --experiment"
    )]
    Checksum {
        /// The file.
        file: String,
        /// What the experiment names.
        expected: String,
        /// What the file has.
        found: String,
    },
    /// An argument that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A figure or a page could not be made from its parts.
    #[error("drawing failed: {0}")]
    Drawing(String),
    /// The numerics refused.
    #[error(transparent)]
    Core(#[from] hbpca::Error),
    /// A result could not be written.
    #[error(transparent)]
    Write(#[from] hbpca_io::WriteError),
    /// The data could not be read.
    #[error(transparent)]
    Read(#[from] hbpca_io::ReadError),
}

impl LabError {
    pub(crate) fn io(file: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let file = file.display().to_string();
        move |source| Self::Io { file, source }
    }

    pub(crate) fn description(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Description { file: file.into(), message: message.into() }
    }
}
