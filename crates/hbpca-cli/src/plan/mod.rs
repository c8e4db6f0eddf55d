//! What was typed, made sense of: parameters checked, inputs found, outputs begun — all before any work.

mod checkpoints;
mod fit;
mod solver_flags;
mod source;
mod streamed;
mod table_output;

pub use checkpoints::CheckpointFiles;
pub use fit::{FitPlan, RankFitPlan, refuse_huge_covariance};
pub use solver_flags::SolverFlags;
pub use source::{Loaded, RankSource, Source, kind};
pub use streamed::Streamed;
pub use table_output::{TableOutput, known_format};

use std::path::Path;

use hbpca::{Centering, Preprocessing, Scaling, Whitening};
use hbpca_io::{OutputFile, StoredModel};

use crate::args::{PreparationArgs, ScaleArg, ThreadArgs, VerbosityArgs, WhitenArgs};
use crate::exit::Failure;
use crate::output::say::Verbosity;

/// Begins an output file, so that one that cannot be written is found before any work.
pub fn create(path: &Path) -> Result<OutputFile, Failure> {
    if path.is_dir() {
        return Err(Failure::output(path.display(), "it is a folder; name a file"));
    }
    Ok(OutputFile::create(path)?)
}

/// Reads a model file.
pub fn open_model(path: &Path) -> Result<StoredModel, Failure> {
    Ok(StoredModel::read(path)?)
}

/// Makes all threaded work of this program use `--threads` threads.
pub fn use_threads(args: &ThreadArgs) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads)
        .build_global()
        .map_err(|error| Failure::Usage(format!("--threads {}: {error}", args.threads)))
}

impl From<&VerbosityArgs> for Verbosity {
    fn from(args: &VerbosityArgs) -> Self {
        match (args.quiet, args.verbose) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Verbose,
            (false, false) => Self::Normal,
        }
    }
}

impl From<&PreparationArgs> for Preprocessing {
    fn from(args: &PreparationArgs) -> Self {
        Self {
            centering: if args.no_center { Centering::None } else { Centering::Mean },
            scaling: match args.scale {
                ScaleArg::None => Scaling::None,
                ScaleArg::Std => Scaling::Std,
                ScaleArg::Minmax => Scaling::MinMax,
            },
        }
    }
}

impl From<&WhitenArgs> for Whitening {
    fn from(args: &WhitenArgs) -> Self {
        if args.whiten { Self::On } else { Self::Off }
    }
}
