//! Runs that can be put aside between a look and the step after it, and taken up again with the same bits.

use crate::observe::Record;
use crate::operator::RowsRead;
use crate::{Error, State};

/// A run as it was after a look: everything the solver, the operator and the driver know.
#[derive(Clone, Debug, PartialEq)]
pub struct Paused {
    /// Numbers of the solver, the operator and the driver.
    pub state: State,
    /// One record for every outer iterate.
    pub history: Vec<Record>,
    /// Rows read.
    pub read: RowsRead,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// How far a run is when it could be saved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Rows read so far, divided by n.
    pub passes: f64,
    /// Seconds since the start.
    pub seconds: f64,
    /// Whether the run ends here.
    pub ends: bool,
}

/// Saves runs.
pub trait CheckpointSink {
    /// Whether a run shall be saved as it is now: its state is only copied then.
    fn wants(&mut self, progress: Progress) -> bool;

    /// Saves it. An error ends the run.
    fn save(&mut self, paused: Paused) -> Result<(), Error>;
}
