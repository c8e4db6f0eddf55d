//! The JSON object of a checkpoint.

use std::collections::BTreeMap;

use hbpca::SolverKind;
use hbpca::checkpoint::Checkpoint;
use hbpca::operator::RowsRead;
use serde::{Deserialize, Serialize};

/// What `format` must say.
const FORMAT: &str = "hbpca-checkpoint";
/// The version of the layout that this software writes, and the only one it reads.
const FORMAT_VERSION: u32 = 1;

/// Everything but the tensors.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    format_version: u32,
    pub(super) software: String,
    pub(super) data: String,
    pub(super) choices: BTreeMap<String, String>,
    pub(super) solver: SolverKind,
    pub(super) chosen_because: String,
    pub(super) k: usize,
    pub(super) eta: Option<f64>,
    pub(super) seconds: f64,
    pub(super) run_seconds: f64,
    pub(super) read: RowsRead,
    /// How many records of the history are of earlier runs.
    pub(super) earlier: usize,
    pub(super) counts: BTreeMap<String, u64>,
}

impl Header {
    pub(super) fn of(checkpoint: &Checkpoint) -> Self {
        let paused = &checkpoint.paused;
        Self {
            format: FORMAT.into(),
            format_version: FORMAT_VERSION,
            software: checkpoint.software.clone(),
            data: checkpoint.data.clone(),
            choices: checkpoint.choices.clone(),
            solver: checkpoint.solver,
            chosen_because: checkpoint.chosen_because.clone(),
            k: checkpoint.k,
            eta: checkpoint.eta,
            seconds: checkpoint.seconds,
            run_seconds: paused.seconds,
            read: paused.read,
            earlier: checkpoint.earlier.len(),
            counts: paused.state.counts().clone(),
        }
    }

    pub(super) fn from_json(text: &str) -> Result<Self, String> {
        /// Enough to tell what the rest means.
        #[derive(Deserialize)]
        struct Kind {
            format: String,
            format_version: u32,
        }
        let unreadable = |error: serde_json::Error| format!("its header cannot be understood: {error}");
        let kind: Kind = serde_json::from_str(text).map_err(unreadable)?;
        if kind.format != FORMAT {
            return Err(format!("its header says {:?} where {FORMAT:?} is expected", kind.format));
        }
        if kind.format_version != FORMAT_VERSION {
            return Err(format!(
                "it has format version {}, and this software reads version {FORMAT_VERSION}: resume with the version \
                 that wrote it, or begin anew",
                kind.format_version
            ));
        }
        serde_json::from_str(text).map_err(unreadable)
    }
}
