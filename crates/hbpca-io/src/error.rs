//! What can be wrong with a file, said with its name, line, column and what was expected.

use std::io;

/// A file that cannot be read as a matrix. Lines, columns and rows are counted from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system, or a decompressor, refused.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// A place in a text file that is not what it must be.
    #[error("{file}:{line}:{column}: {message}")]
    Text {
        /// The file.
        file: String,
        /// Line, from 1.
        line: u64,
        /// Character within the line, from 1.
        column: u64,
        /// What was expected and what was found.
        message: String,
    },
    /// An entry that no solver can use, in a format without lines.
    #[error(
        "{file}: row {row}, column {column} holds {value}: every entry must be a finite number; where values are missing, choose what becomes of \
         them with --missing drop-rows, mean or em"
    )]
    Entry {
        /// The file.
        file: String,
        /// Row, from 1.
        row: u64,
        /// Column, from 1.
        column: u64,
        /// The entry.
        value: String,
    },
    /// A file whose structure contradicts its format, or that holds something that is not a matrix.
    #[error("{file}: {message}")]
    Malformed {
        /// The file.
        file: String,
        /// What was expected and what was found.
        message: String,
    },
    /// Data that is larger than the memory it may take.
    #[error("{file}: {message}")]
    Memory {
        /// The file.
        file: String,
        /// How large it is, and the way out.
        message: String,
    },
    /// An option that does not fit the file.
    #[error("{file}: {message}")]
    Option {
        /// The file.
        file: String,
        /// The option, its value and the way out.
        message: String,
    },
}

impl ReadError {
    pub(crate) fn malformed(file: &str, message: impl Into<String>) -> Self {
        Self::Malformed { file: file.to_owned(), message: message.into() }
    }

    pub(crate) fn option(file: &str, message: impl Into<String>) -> Self {
        Self::Option { file: file.to_owned(), message: message.into() }
    }

    pub(crate) fn io(file: &str, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return Self::malformed(file, "the file ends too early: it is cut off");
        }
        Self::Io { file: file.to_owned(), source }
    }

    /// The file at fault.
    pub fn file(&self) -> &str {
        match self {
            Self::Io { file, .. }
            | Self::Text { file, .. }
            | Self::Entry { file, .. }
            | Self::Malformed { file, .. }
            | Self::Memory { file, .. }
            | Self::Option { file, .. } => file,
        }
    }
}

/// A matrix that could not be written. Nothing is left behind under the name that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system, or a compressor, refused.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// The format cannot hold this matrix.
    #[error("{file}: {message}")]
    Unsuitable {
        /// The file.
        file: String,
        /// Why, and what to do.
        message: String,
    },
}

impl WriteError {
    pub(crate) fn io(file: &str, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), source }
    }

    pub(crate) fn unsuitable(file: &str, message: impl Into<String>) -> Self {
        Self::Unsuitable { file: file.to_owned(), message: message.into() }
    }
}

/// Either half of a conversion.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The input is at fault.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output is at fault.
    #[error(transparent)]
    Write(#[from] WriteError),
}
