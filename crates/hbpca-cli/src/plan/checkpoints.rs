//! Where a run is kept, and what it goes on from.

use std::path::{Path, PathBuf};

use hbpca::checkpoint::{Checkpoint, CheckpointEvery};
use hbpca_io::{OutputFile, read_checkpoint, recognise_checkpoint};

use super::create;
use crate::args::FitArgs;
use crate::exit::Failure;

/// `--checkpoint`, `--checkpoint-every` and `--resume`, checked.
pub struct CheckpointFiles {
    /// Where the run is kept.
    pub file: Option<PathBuf>,
    /// How often.
    pub every: CheckpointEvery,
    /// What to go on from, and the file it came from.
    pub from: Option<(PathBuf, Checkpoint)>,
    /// Whether a checkpoint of an earlier run is about to be replaced.
    pub replaces: bool,
}

impl CheckpointFiles {
    /// Those of a rank that does not lead.
    pub fn none() -> Self {
        Self { file: None, every: CheckpointEvery::default(), from: None, replaces: false }
    }

    /// Reads the one to go on from, and proves that new ones can be written.
    pub fn new(args: &FitArgs) -> Result<Self, Failure> {
        let every = args.checkpoint_every.unwrap_or_default();
        let from = match &args.resume {
            None => None,
            Some(path) => Some((path.clone(), read_checkpoint(path)?)),
        };
        let mut replaces = false;
        if let Some(file) = &args.checkpoint {
            let resumes_here = args.resume.as_ref().is_some_and(|resume| is_same(file, resume));
            replaces = !resumes_here && refuse_to_replace_others(file)?;
            drop(create(file)?);
        }
        if args.checkpoint.is_some() || args.resume.is_some() {
            let files = [&args.checkpoint, &args.output, &args.trace];
            files.into_iter().flatten().for_each(|file| OutputFile::remove_abandoned(file));
        }
        Ok(Self { file: args.checkpoint.clone(), every, from, replaces })
    }
}

/// Whether there is a checkpoint of that name already. Other files that hold something are not replaced: a slip on the command line
/// must not cost the data.
fn refuse_to_replace_others(file: &Path) -> Result<bool, Failure> {
    let is_file_with_content = std::fs::metadata(file).is_ok_and(|about| about.is_file() && about.len() > 0);
    if !is_file_with_content || recognise_checkpoint(file) {
        return Ok(is_file_with_content);
    }
    Err(Failure::output(
        file.display(),
        "it exists and is no checkpoint; name another file, or remove it first",
    ))
}

fn is_same(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    a == b || (whole(a).is_some() && whole(a) == whole(b))
}
