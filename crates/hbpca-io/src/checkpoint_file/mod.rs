//! Checkpoints on disk: safetensors with a checksum, readable by the public library of that name.
//!
//! | tensor | content |
//! |---|---|
//! | `solver.…`, `operator.…`, `driver.…`, `statistics.…` | f64, the numbers of the run under the names it gives them |
//! | `history` | r×9, f64, as in a model file; runs that this one grew out of come first |
//! | `checksum` | one u64, the last eight bytes of the file: XXH3-64 of all bytes before them |
//!
//! Everything else is one JSON object in the metadata under the key `hbpca-checkpoint` ([`header`]). The checksum is looked at
//! first, so that damage anywhere is found before anything is believed; then sizes and types are checked, because a checksum
//! proves no good will.

mod frame;
mod header;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use hbpca::checkpoint::{Checkpoint, Paused, State};

use crate::{OutputFile, ReadError, WriteError};
use frame::Frame;
use header::Header;

/// Writes a checkpoint, makes sure that it has reached the disk, and gives the file its name: the one that had it before
/// stays whole until then.
pub fn write_checkpoint(checkpoint: &Checkpoint, mut out: OutputFile) -> Result<(), WriteError> {
    let json = serde_json::to_string(&Header::of(checkpoint))
        .map_err(|error| WriteError::unsuitable(out.name(), error.to_string()))?;
    frame::write(checkpoint, &json, &mut out).map_err(|source| WriteError::io(out.name(), source))?;
    out.commit_durably()
}

/// Reads a checkpoint.
pub fn read_checkpoint(path: &Path) -> Result<Checkpoint, ReadError> {
    let name = path.display().to_string();
    let refused = |source| ReadError::io(&name, source);
    let mut file = File::open(path).map_err(refused)?;
    if !file.metadata().map_err(refused)?.is_file() {
        return Err(ReadError::malformed(&name, "a checkpoint is a regular file, and this is not one"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(refused)?;
    checkpoint_from_bytes(&bytes).map_err(|message| ReadError::malformed(&name, message))
}

/// Whether a file begins like a checkpoint, whole or not.
pub fn recognise_checkpoint(path: &Path) -> bool {
    let mut head = [0; frame::HEAD.len() + 8];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut head))
        .is_ok_and(|()| head.ends_with(frame::HEAD.as_bytes()))
}

/// The checkpoint in a file's content, or what is wrong with it.
pub fn checkpoint_from_bytes(bytes: &[u8]) -> Result<Checkpoint, String> {
    let Frame { json, tensors, history: mut earlier } = Frame::read(bytes)?;
    let header = Header::from_json(&json)?;
    if header.earlier > earlier.len() {
        return Err(format!("its header says {} earlier records of {}", header.earlier, earlier.len()));
    }
    let history = earlier.split_off(header.earlier);
    let state = State::from_parts(tensors, header.counts);
    let paused = Paused { state, history, read: header.read, seconds: header.run_seconds };
    Ok(Checkpoint {
        software: header.software,
        data: header.data,
        choices: header.choices,
        solver: header.solver,
        chosen_because: header.chosen_because,
        k: header.k,
        eta: header.eta,
        seconds: header.seconds,
        earlier,
        paused,
    })
}

#[cfg(test)]
mod tests;
