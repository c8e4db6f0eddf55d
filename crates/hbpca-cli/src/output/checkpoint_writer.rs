//! Checkpoints of the run that goes on.

use std::path::PathBuf;

use hbpca::checkpoint::Checkpoint;
use hbpca_io::{OutputFile, WriteError, write_checkpoint};

use super::number;
use super::say::{self, Verbosity};

/// Writes checkpoints, each in place of the one before. One that cannot be written is a warning and no more: the run is worth more
/// than its checkpoint, and the one before stays.
pub struct CheckpointWriter {
    file: PathBuf,
    verbosity: Verbosity,
    /// Passes at the last one that was written.
    last: Option<f64>,
    /// What was said last about one that could not be.
    complaint: Option<String>,
}

impl CheckpointWriter {
    /// Nothing is written yet.
    pub fn new(file: PathBuf, verbosity: Verbosity) -> Self {
        Self { file, verbosity, last: None, complaint: None }
    }

    /// Writes one.
    pub fn save(&mut self, checkpoint: &Checkpoint) {
        let passes = checkpoint.paused.history.last().map_or(0.0, |record| record.passes);
        match self.write(checkpoint) {
            Ok(()) => {
                if self.verbosity == Verbosity::Verbose {
                    let passes = number::plural(passes, "pass", "passes");
                    say::line(&format!("kept in {} after {passes}", self.file.display()));
                }
                (self.last, self.complaint) = (Some(passes), None);
            }
            Err(error) => self.complain(&error),
        }
    }

    fn write(&self, checkpoint: &Checkpoint) -> Result<(), WriteError> {
        write_checkpoint(checkpoint, OutputFile::create(&self.file)?)
    }

    /// Once for each reason.
    fn complain(&mut self, error: &WriteError) {
        let reason = error.to_string();
        if self.verbosity > Verbosity::Quiet && self.complaint.as_ref() != Some(&reason) {
            let left = match self.last {
                Some(passes) => format!("the one after {} stays", number::plural(passes, "pass", "passes")),
                None => "this run has none so far".to_owned(),
            };
            say::warning(&format!("cannot write the checkpoint {reason}; the run goes on, {left}"));
        }
        self.complaint = Some(reason);
    }

    /// How to go on, where something was written.
    pub fn way_on(&self) -> Option<String> {
        self.last.map(|_| format!("the same command with --resume {} goes on from here", self.file.display()))
    }
}
