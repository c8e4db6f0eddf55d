//! Finished runs are kept, so that an interrupted reproduction continues where it stopped.

use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::run::{Run, RunSpec, Track};
use crate::dataset::hex;
use crate::{LabError, write_atomically};

/// A folder of finished runs. A run is found by a hash of everything it depends on.
#[derive(Debug)]
pub struct RunStore {
    folder: PathBuf,
}

/// Raised when the meaning of a kept run changes.
const FORMAT: u32 = 2;

#[derive(Serialize)]
struct Inputs<'a> {
    format: u32,
    version: &'a str,
    data: &'a str,
    run: &'a RunSpec,
    /// k, where it is not 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<usize>,
}

impl RunStore {
    /// Runs kept in `folder`, which is created.
    pub fn open(folder: &Path) -> Result<Self, LabError> {
        std::fs::create_dir_all(folder).map_err(LabError::io(folder))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// The run that `spec` describes: the one kept or, where there is none, a new one.
    pub fn obtain(&self, track: &Track<'_>, spec: &RunSpec) -> Result<Run, LabError> {
        let path = self.path(&track.dataset.fingerprint, spec, track.reference.k())?;
        // A file that cannot be read as a run (cut off, edited) is made anew.
        if let Ok(text) = std::fs::read_to_string(&path)
            && let Ok(run) = serde_json::from_str(&text)
        {
            return Ok(run);
        }
        let run = track.run(spec)?;
        write_atomically(&path, &to_json(&run)?)?;
        Ok(run)
    }

    fn path(&self, data: &str, run: &RunSpec, k: usize) -> Result<PathBuf, LabError> {
        let inputs =
            Inputs { format: FORMAT, version: env!("CARGO_PKG_VERSION"), data, run, k: (k > 1).then_some(k) };
        Ok(self.folder.join(format!("{}.json", &hex(&Sha256::digest(to_json(&inputs)?))[..24])))
    }
}

fn to_json(value: &impl Serialize) -> Result<Vec<u8>, LabError> {
    serde_json::to_vec(value).map_err(|error| LabError::Drawing(error.to_string()))
}
