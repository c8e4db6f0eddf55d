//! How a command ends: by meaning first, by number last.

use std::process::ExitCode;

use hbpca::{Error, Outcome};
use hbpca_io::{ConvertError, ReadError, WriteError};

/// The exit codes. Scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Converged, or simply done.
    Success = 0,
    /// A result was written, but the tolerance was not met.
    NotConverged = 1,
    /// The command line asks for something that makes no sense or cannot be written.
    Usage = 2,
    /// The data or the model is at fault.
    BadInput = 3,
    /// Not enough memory, or not enough room on the disk.
    Memory = 4,
    /// Ctrl-C; what was reached is written.
    Interrupted = 130,
    /// The termination signal; what was reached is written.
    Terminated = 143,
}

impl Exit {
    /// The meaning of a code that another rank ended with.
    pub fn of_code(code: u8) -> Self {
        match code {
            0 => Self::Success,
            1 => Self::NotConverged,
            2 => Self::Usage,
            4 => Self::Memory,
            130 => Self::Interrupted,
            143 => Self::Terminated,
            _ => Self::BadInput,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Converged => Self::Success,
            Outcome::Interrupted => crate::interrupt::exit(),
            // No other outcome claims that the tolerance was met.
            _ => Self::NotConverged,
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line is at fault.
    #[error("{0}")]
    Usage(String),
    /// A file that was read is at fault.
    #[error("{0}")]
    Input(String),
    /// A reader found the fault and knows the place.
    #[error("{0}")]
    Read(ReadError),
    /// Memory does not suffice.
    #[error("{0}")]
    Memory(String),
    /// A disk is full, or a file would become larger than it may.
    #[error("cannot write {file}: {reason}")]
    NoRoom {
        /// The file.
        file: String,
        /// Why not.
        reason: String,
    },
    /// Another rank failed.
    #[error("rank {rank}: {message}")]
    OnRank {
        /// The rank.
        rank: usize,
        /// How it ended.
        exit: Exit,
        /// What it said.
        message: String,
    },
    /// The ranks lost each other.
    #[error("{0}")]
    Ranks(String),
    /// A file cannot be written.
    #[error("cannot write {file}: {reason}")]
    Output {
        /// The file.
        file: String,
        /// Why not.
        reason: String,
    },
}

impl Failure {
    /// The exit code that says so.
    pub fn exit(&self) -> Exit {
        match self {
            // An output that cannot be written is a wrong argument: nothing was promised under another code.
            Self::Usage(_) | Self::Output { .. } => Exit::Usage,
            Self::Read(ReadError::Memory { .. }) | Self::Memory(_) | Self::NoRoom { .. } => Exit::Memory,
            Self::Input(_) | Self::Read(_) | Self::Ranks(_) => Exit::BadInput,
            Self::OnRank { exit, .. } => *exit,
        }
    }

    /// Something the core refused: a parameter is the user's to change, everything else lies in `file`.
    pub fn refused(error: &Error, file: &str) -> Self {
        match error {
            Error::Parameter { .. } => Self::Usage(error.to_string()),
            Error::Memory { .. } => Self::Memory(format!("{file}: {error}")),
            Error::Rank { rank, of_parameter, message } => {
                let exit = if *of_parameter { Exit::Usage } else { Exit::BadInput };
                Self::OnRank { rank: *rank, exit, message: message.clone() }
            }
            Error::Communication(_) => Self::ranks(error),
            _ => Self::Input(format!("{file}: {error}")),
        }
    }

    /// A file that the system does not let be written, for want of room or for another reason.
    pub fn unwritten(file: &str, error: &std::io::Error) -> Self {
        if lacks_room(error) {
            return Self::NoRoom { file: file.to_owned(), reason: error.to_string() };
        }
        Self::output(file, error)
    }

    /// Ranks that lost each other.
    pub fn ranks(error: &Error) -> Self {
        Self::Ranks(error.to_string())
    }

    /// A file that cannot be written.
    #[allow(clippy::needless_pass_by_value, reason = "callers hand over temporaries")]
    pub fn output(file: impl ToString, reason: impl ToString) -> Self {
        Self::Output { file: file.to_string(), reason: reason.to_string() }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Whether the disk, a quota or a limit on the size of files is at fault.
fn lacks_room(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io { file, source } => Self::unwritten(&file, &source),
            other => Self::Usage(other.to_string()),
        }
    }
}

impl From<ConvertError> for Failure {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Read(error) => error.into(),
            ConvertError::Write(error) => error.into(),
            other => Self::Input(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_their_codes() {
        let codes = [Outcome::Converged, Outcome::Budget, Outcome::Stagnated, Outcome::Interrupted]
            .map(|outcome| Exit::from(outcome) as u8);
        assert_eq!(codes, [0, 1, 1, 130]);
    }

    #[test]
    fn parameters_are_usage_and_data_is_input() {
        let parameter = Failure::refused(&Error::parameter("k", 9, "too many"), "x.csv");
        assert_eq!((parameter.exit(), parameter.to_string().as_str()), (Exit::Usage, "k = 9: too many"));
        let data = Failure::refused(&Error::Empty { n: 0, d: 3 }, "x.csv");
        assert_eq!(data.exit(), Exit::BadInput);
        assert!(data.to_string().starts_with("x.csv: the matrix is empty"));
        assert_eq!(Failure::output("m", "no space").to_string(), "cannot write m: no space");
    }
}
