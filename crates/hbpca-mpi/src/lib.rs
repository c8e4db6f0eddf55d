//! Ranks of any MPI, without MPI when the program is built.
//!
//! The launcher's environment tells that there are ranks ([`Launcher`]), the machine's own library is opened when the program runs
//! (`library.rs`), and seven of its functions are called through a small table (`table.rs`) for each of the three ways in which MPI libraries
//! name their handles. [`Mpi`] is then a [`Communicator`].
//!
//! `unsafe` lives in `table.rs` and `library.rs` alone: a foreign library is opened, and its functions are called.

#![cfg(unix)]

mod launcher;
mod library;
mod table;

pub use launcher::Launcher;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use hbpca::Error;
use hbpca::operator::Communicator;
use table::Calls;

/// Names the library to open.
pub const LIBRARY_VARIABLE: &str = "HBPCA_LIBMPI";
/// Numbers of one message: counts are ints, and a triangle of 65,536 columns has more than an int can count.
const LONGEST_MESSAGE: usize = 1 << 27;

/// Why there are no ranks where a launcher started some.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No library was found, or none could be opened.
    #[error(
        "a launcher started this program on several ranks, but no MPI library could be opened ({tried}): name it, as in \
         {LIBRARY_VARIABLE}=/usr/lib/libmpi.so"
    )]
    NoLibrary {
        /// Names and what was wrong with each.
        tried: String,
    },
    /// The library lacks a function, or speaks an unknown binary interface.
    #[error(
        "{library} is no MPI library that this program knows: {reason}; name another one with {LIBRARY_VARIABLE}"
    )]
    Unknown {
        /// The library.
        library: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The library did not start.
    #[error("{library} did not start: {reason}")]
    NotStarted {
        /// The library.
        library: String,
        /// What it said.
        reason: String,
    },
    /// Launcher and library do not belong together: every process would be a world of its own.
    #[error(
        "the launcher started {launched} processes, but {library} sees {size} of them: launcher and library belong to different \
         installations of MPI; use the launcher of that library, or name the launcher's library with {LIBRARY_VARIABLE}"
    )]
    OtherWorld {
        /// Processes that the launcher started.
        launched: usize,
        /// Ranks of the world.
        size: usize,
        /// The library.
        library: String,
    },
}

/// This process among the ranks that a launcher started.
pub struct Mpi {
    calls: Box<dyn Calls>,
    rank: usize,
    size: usize,
    /// Whether the ranks have parted.
    ended: AtomicBool,
}

impl Mpi {
    /// Joins the other ranks, if a launcher started several; nothing where this process is alone.
    pub fn start() -> Result<Option<Self>, StartError> {
        let launcher = Launcher::of_environment();
        let named = std::env::var_os(LIBRARY_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
        if named.is_none() && !launcher.is_some_and(Launcher::started_several) {
            return Ok(None);
        }
        let (library, calls) = library::open(named, launcher)?;
        let failed = |reason: String| StartError::NotStarted { library: library.clone(), reason };
        let (rank, size) = calls.start().map_err(failed)?;
        let launched = launcher.and_then(|launcher| launcher.size).unwrap_or(1);
        if launched > size {
            calls.finish();
            return Err(StartError::OtherWorld { launched, size, library });
        }
        Ok(Some(Self { calls, rank, size, ended: AtomicBool::new(false) }))
    }

    /// Parts from the other ranks, which do so too.
    pub fn finish(&self) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            self.calls.finish();
        }
    }

    /// Ends all ranks at once: some of them cannot be reached any more.
    pub fn abort(&self, code: u8) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            self.calls.abort(code);
        }
    }

    fn checked(&self, code: i32, what: impl Fn() -> String) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        Err(Error::Communication(format!("{}: {}", what(), self.calls.error_text(code))))
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, values: &[f64], to: usize) -> Result<(), Error> {
        values.chunks(LONGEST_MESSAGE).try_for_each(|piece| {
            self.checked(self.calls.send(piece, to), || format!("rank {to} cannot be reached"))
        })
    }

    fn receive(&self, values: &mut [f64], from: usize) -> Result<(), Error> {
        values.chunks_mut(LONGEST_MESSAGE).try_for_each(|piece| {
            self.checked(self.calls.receive(piece, from), || format!("rank {from} cannot be heard"))
        })
    }

    fn broadcast(&self, values: &mut [f64], root: usize) -> Result<(), Error> {
        values.chunks_mut(LONGEST_MESSAGE).try_for_each(|piece| {
            self.checked(self.calls.broadcast(piece, root), || format!("rank {root} cannot be heard"))
        })
    }
}
