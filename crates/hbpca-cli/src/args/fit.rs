//! `hbpca fit`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use hbpca::checkpoint::CheckpointEvery;
use hbpca::{Batch, SolverKind};
use hbpca_io::ByteSize;

use hbpca_lab::table_args::READING;

use super::{CellArgs, DataArgs, MissingArgs, PreparationArgs, ThreadArgs, VerbosityArgs, WeightArgs};

/// `hbpca fit`. What is left out takes the library's default.
#[derive(Debug, Args)]
pub struct FitArgs {
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub weights: WeightArgs,
    /// Components to find: a number, or a share of the variance such as 0.95 [default: 10, or all of a narrower table; 1 of a
    /// solver that finds no more]
    #[arg(short = 'k', value_name = "K|SHARE")]
    pub k: Option<HowMany>,
    /// Solver [default: auto]
    #[arg(long, value_parser = solver_parser())]
    pub solver: Option<SolverKind>,
    #[command(flatten)]
    pub preparation: PreparationArgs,
    #[command(flatten)]
    pub cells: CellArgs,
    #[command(flatten)]
    pub missing: MissingArgs,
    /// Columns of categories, written as for --columns: each category becomes a column of zeros and ones named COLUMN=CATEGORY
    #[arg(long, value_name = "NAME|INDEX,…", help_heading = READING, allow_negative_numbers = true)]
    pub one_hot: Option<String>,

    /// A component counts as converged when its residual is at most TOL times its own eigenvalue
    #[arg(long, value_name = "TOL", default_value = "1e-6", help_heading = STOPPING)]
    pub tol: f64,
    /// Besides, go on until the sine of the largest angle between the components and the true ones is at most X, such as 1e-4
    #[arg(long, value_name = "X", help_heading = STOPPING)]
    pub angle: Option<f64>,
    /// Passes over the data after which to stop
    #[arg(long, value_name = "N", default_value_t = 1000.0, help_heading = STOPPING)]
    pub max_passes: f64,
    /// Seconds after which to stop
    #[arg(long, value_name = "S", help_heading = STOPPING)]
    pub max_seconds: Option<f64>,

    /// Step size η of the stochastic solvers [default: auto, from a sample of the rows]
    #[arg(long, value_name = "X|auto", help_heading = METHOD, allow_negative_numbers = true)]
    pub eta: Option<StepSize>,
    /// Where the momentum's λ₂ comes from [default: adaptive, or oracle when --lambda2 is given]
    #[arg(long, value_enum, help_heading = METHOD)]
    pub momentum: Option<MomentumArg>,
    /// The true λ₂ of C, for --momentum oracle
    #[arg(long, value_name = "X", help_heading = METHOD, allow_negative_numbers = true)]
    pub lambda2: Option<f64>,
    /// Rows of a mini-batch: a share or a number [default: 1%]
    #[arg(long, value_name = "1%|N", help_heading = METHOD)]
    pub batch: Option<Batch>,
    /// Steps m of an epoch, between two full passes [default: 100]
    #[arg(long, value_name = "M", help_heading = METHOD)]
    pub epoch: Option<usize>,
    /// Seed of the start vector and of the mini-batches
    #[arg(long, value_name = "SEED", default_value_t = 0, help_heading = METHOD)]
    pub seed: u64,
    /// Probe the result with random vectors: what it says of angles then fails with probability DELTA at most, such as 1e-9
    #[arg(long, value_name = "DELTA", help_heading = CERTAINTY)]
    pub certify: Option<f64>,
    /// Seed of the probe, to repeat one [default: from the operating system, and printed]
    #[arg(long, value_name = "SEED", requires = "certify", help_heading = CERTAINTY)]
    pub probe_seed: Option<u64>,
    /// Begin from the components of an earlier model
    #[arg(long, value_name = "MODEL", help_heading = METHOD)]
    pub start: Option<PathBuf>,
    /// Numbers the data is kept and multiplied in
    #[arg(long, value_enum, default_value_t = PrecisionArg::Auto, help_heading = METHOD)]
    pub precision: PrecisionArg,
    #[command(flatten)]
    pub threads: ThreadArgs,
    /// Measure this machine before a solver is chosen; the choice, and the last bits, may then differ between machines
    #[arg(long, help_heading = METHOD)]
    pub tune: bool,
    /// The same bits on any number of ranks, on processors of one kind: rows are cut into 8 to 64 shards and summed shard by shard, which takes a little
    /// longer; without --memory, 4G are counted with
    #[arg(long, conflicts_with = "tune", help_heading = METHOD)]
    pub reproducible: bool,
    /// Memory to stay within, such as 512M or 4G; data that does not fit is read from disk in every pass [default: half of what
    /// the machine or its control group allows]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,
    /// Bytes a second that data on disk is read at, such as 200M: the slower the disk, the more a solver of few passes is worth [default: about 1G]
    #[arg(long, value_name = "SIZE")]
    pub disk: Option<ByteSize>,

    /// Keep the run here while it goes on, for --resume after a crash or Ctrl-C
    #[arg(long, value_name = "FILE", help_heading = CHECKPOINTS)]
    pub checkpoint: Option<PathBuf>,
    /// How often: passes such as 1pass or 5passes, or seconds such as 60s [default: 1pass]
    #[arg(long, value_name = "1pass|60s", requires = "checkpoint", help_heading = CHECKPOINTS)]
    pub checkpoint_every: Option<CheckpointEvery>,
    /// Go on from a checkpoint of the same data and choices, to the same result as without a break
    #[arg(long, value_name = "FILE", help_heading = CHECKPOINTS)]
    pub resume: Option<PathBuf>,

    /// Write the model here (.safetensors)
    #[arg(short, long, value_name = "MODEL", help_heading = OUTPUT)]
    pub output: Option<PathBuf>,
    /// Write the history here, one line for each certified iterate
    #[arg(long, value_name = "FILE.csv|.jsonl", help_heading = OUTPUT)]
    pub trace: Option<PathBuf>,
    /// Write a page about the fit here: certificate, variance, loadings, scores, outliers, convergence
    #[arg(long, value_name = "FILE.html", help_heading = OUTPUT)]
    pub report: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

const STOPPING: &str = "Stopping";
const METHOD: &str = "Method";
const CERTAINTY: &str = "Certainty";
const CHECKPOINTS: &str = "Checkpoints";
const OUTPUT: &str = "Output";

fn solver_parser() -> impl TypedValueParser<Value = SolverKind> {
    let names = [SolverKind::Auto].into_iter().chain(SolverKind::ALL).map(SolverKind::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<SolverKind>())
}

/// `-k`: a number of components, or the share of the variance they are to explain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HowMany {
    /// This many.
    Count(usize),
    /// As many as explain this share.
    Share(f64),
}

impl FromStr for HowMany {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(count) = text.parse() {
            return Ok(Self::Count(count));
        }
        match text.parse::<f64>() {
            Ok(share) if share > 0.0 && share < 1.0 => Ok(Self::Share(share)),
            _ => {
                Err("give a number of components such as 10, or a share of the variance such as 0.95"
                    .to_owned())
            }
        }
    }
}

/// `--eta`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepSize {
    /// From a sample of the rows.
    Auto,
    /// This one.
    Fixed(f64),
}

impl FromStr for StepSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::Fixed).map_err(|_| "give a step size such as 0.1, or auto".to_owned())
    }
}

/// `--precision`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrecisionArg {
    /// As the file has them; f32 data is multiplied in f32 first, in f64 at last
    Auto,
    /// Kept and multiplied in f32: for tolerances down to about 1e-3
    F32,
    /// Kept in f32, multiplied in f64
    Mixed,
    /// Kept and multiplied in f64
    F64,
}

/// `--momentum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MomentumArg {
    /// The true λ₂, given by --lambda2
    Oracle,
    /// The free estimate from consecutive iterates
    Adaptive,
    /// From the rate at which the residual falls
    Dynamic,
}
