//! What was typed, made sense of: parameters checked, inputs found, outputs begun — all before any work.

mod checkpoints;
mod copy;
mod fit;
mod missing;
mod overlap;
mod solver_flags;
mod source;
mod start;
mod streamed;
mod table_output;
mod weights;

pub use checkpoints::CheckpointFiles;
pub use fit::{Components, FitOutputs, FitPlan, RankFitPlan, refuse_huge_covariance, storage};
pub use overlap::{Files, refuse_misleading_name};
pub use solver_flags::SolverFlags;
pub use source::{Loaded, OwnRows, RankSource, Source, kind};
pub use start::Asked;
pub use streamed::Streamed;
pub use table_output::{TableOutput, known_format, refuse_two_on_standard_output};
pub use weights::Weights;

use std::num::NonZero;
use std::path::Path;

use hbpca::{Centering, Preprocessing, Scaling, Whitening};
use hbpca_io::{OutputFile, StoredModel};

use crate::args::{PreparationArgs, ScaleArg, ThreadArgs, VerbosityArgs, WhitenArgs};
use crate::exit::Failure;
use crate::output::say::{self, Verbosity};

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

/// Threads to use: as many as asked for, but no more than the machine runs at once. More would take turns.
pub fn threads(args: &ThreadArgs) -> usize {
    let most = std::thread::available_parallelism().map_or(usize::MAX, NonZero::get);
    args.threads.min(most)
}

/// Makes all threaded work of this program use `--threads` threads, and says so where these are fewer than were asked for.
pub fn use_threads(args: &ThreadArgs, verbosity: Verbosity) -> Result<(), Failure> {
    let threads = threads(args);
    if threads < args.threads && verbosity > Verbosity::Quiet {
        let asked = args.threads;
        say::line(&format!("--threads {asked}: this machine runs {threads} at once, and so many are used"));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
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
                ScaleArg::Hwe => Scaling::Hwe,
            },
        }
    }
}

impl From<&WhitenArgs> for Whitening {
    fn from(args: &WhitenArgs) -> Self {
        if args.whiten { Self::On } else { Self::Off }
    }
}
