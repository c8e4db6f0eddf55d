//! What was typed. Nothing here is judged beyond its grammar: that is the plan's part.

mod data;
mod fit;

pub use data::{
    CellArgs, DataArgs, JsonArgs, MissingArgs, OutputFormatArgs, PreparationArgs, ScaleArg, ThreadArgs,
    VerbosityArgs, WeightArgs, WhitenArgs, WithJson,
};
pub use fit::{FitArgs, HowMany, MomentumArg, PrecisionArg, StepSize};

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use hbpca::missing::Missing;
use hbpca_io::ByteSize;

/// Principal components of large and sparse data, with a proof.
///
/// Reads LIBSVM, CSV, TSV, .npy, SciPy .npz, Matrix Market, IDX, Parquet and .h5ad, also compressed. Every answer carries a
/// certificate computed from the data: how far each eigenvalue and each vector can be off.
#[derive(Debug, Parser)]
#[command(name = "hbpca", version, max_term_width = 100)]
#[command(after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 converged (or done) · 1 result written but not converged, or a check that does not \
    hold · 2 wrong usage · 3 bad input · 4 not enough memory or disk · 130 interrupted or 143 terminated, with what was reached written";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find principal components and certify them
    Fit(Box<FitArgs>),
    /// Compute the scores of data under a model
    Transform(TransformArgs),
    /// Rebuild data from scores
    Inverse(InverseArgs),
    /// Recompute everything a model claims from the data
    Check(CheckArgs),
    /// Describe data or a model
    Info(InfoArgs),
    /// Fill in missing values by principal components
    Impute(Box<ImputeArgs>),
    /// Turn data from one format into another
    Convert(ConvertArgs),
    /// Draw a model's scree plot, a trace's convergence or scores
    Plot(WithJson<hbpca_lab::cli::PlotArgs>),
    /// Write a page about a model: certificate, variance, loadings, and with its data scores and outliers
    Report(Box<ReportArgs>),
    /// Race the solvers on your own data and write a report
    Compare(Box<WithJson<hbpca_lab::cli::CompareArgs>>),
    /// Reproduce the paper's figures, tables and claims
    Reproduce(WithJson<hbpca_lab::cli::ReproduceArgs>),
    /// Rates of the paper's methods for given λ₁, λ₂, η, m and K
    Theory(TheoryArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the man page
    Man(ManArgs),
    /// Fit a small real data set with every solver and write hbpca-demo.html
    Demo(DemoArgs),
    /// Write a sample data set to try things on
    Sample(SampleArgs),
    /// Tell what a fit on many ranks will cost
    Plan(Box<PlanArgs>),
}

impl Command {
    /// Whether `-q` was given.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Fit(args) => args.verbosity.quiet,
            Self::Transform(args) => args.verbosity.quiet,
            Self::Inverse(args) => args.verbosity.quiet,
            Self::Check(args) => args.verbosity.quiet,
            Self::Info(args) => args.verbosity.quiet,
            Self::Impute(args) => args.verbosity.quiet,
            Self::Convert(args) => args.verbosity.quiet,
            Self::Report(args) => args.verbosity.quiet,
            Self::Compare(args) => args.args.quiet,
            Self::Reproduce(args) => args.args.quiet,
            Self::Plot(_)
            | Self::Theory(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Demo(_)
            | Self::Sample(_)
            | Self::Plan(_) => false,
        }
    }
}

/// `hbpca transform`.
#[derive(Clone, Debug, Args)]
pub struct TransformArgs {
    /// Model file written by `hbpca fit -o`
    pub model: PathBuf,
    #[command(flatten)]
    pub data: DataArgs,
    /// File for the scores, one row for each row of the data, or - for standard output; its extension decides the format. A folder, or a name that ends in /, gets
    /// one file for each file of the data, with its name
    #[arg(short, long, value_name = "SCORES")]
    pub output: PathBuf,
    /// Columns of the data to write beside the scores, such as id,label: numbers or texts
    #[arg(long, value_name = "NAME|INDEX,…", allow_negative_numbers = true)]
    pub keep: Option<String>,
    /// What becomes of rows with missing values, instead of what the model says: they are refused (error), their scores are missing (drop-rows), their holes are the
    /// mean (mean), or their scores are least squares on what they have (em)
    #[arg(long, value_name = "error|drop-rows|mean|em", value_parser = data::missing_parser(), hide_possible_values = true)]
    pub missing: Option<Missing>,
    #[command(flatten)]
    pub output_format: OutputFormatArgs,
    #[command(flatten)]
    pub whiten: WhitenArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// `hbpca impute`.
#[derive(Debug, Args)]
pub struct ImputeArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Components that missing values are filled in by
    #[arg(short = 'k', value_name = "K")]
    pub k: usize,
    #[command(flatten)]
    pub missing: MissingArgs,
    #[command(flatten)]
    pub preparation: PreparationArgs,
    /// File for the completed data, or - for standard output; its extension decides the format
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Columns of the data to write beside the completed ones, such as id,label: numbers or texts
    #[arg(long, value_name = "NAME|INDEX,…", allow_negative_numbers = true)]
    pub keep: Option<String>,
    /// Seed of the start vectors
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub output_format: OutputFormatArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// `hbpca inverse`.
#[derive(Debug, Args)]
pub struct InverseArgs {
    /// Model file written by `hbpca fit -o`
    pub model: PathBuf,
    #[command(flatten)]
    pub scores: DataArgs,
    /// File for the rebuilt data, or - for standard output; its extension decides the format
    #[arg(short, long, value_name = "DATA")]
    pub output: PathBuf,
    #[command(flatten)]
    pub output_format: OutputFormatArgs,
    #[command(flatten)]
    pub whiten: WhitenArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// `hbpca check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Model file written by `hbpca fit -o`
    pub model: PathBuf,
    #[command(flatten)]
    pub data: DataArgs,
    /// Demand besides that every recomputed residual is at most TOL times its eigenvalue; the tolerance that the model names is
    /// printed, never believed
    #[arg(long, value_name = "TOL")]
    pub tol: Option<f64>,
    /// Numbers the data is kept in, where the fit chose others than those of the file
    #[arg(long, value_enum, default_value_t = PrecisionArg::Auto)]
    pub precision: PrecisionArg,
    #[command(flatten)]
    pub weights: WeightArgs,
    /// Probability with which the probe for components that were missed may fail
    #[arg(long, value_name = "DELTA", default_value_t = 1e-9)]
    pub certify: f64,
    /// Seed of the probe, to repeat one [default: from the operating system, and printed]
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// `hbpca report`.
#[derive(Debug, Args)]
#[command(mut_arg("data", |data| data.required(false)))]
pub struct ReportArgs {
    /// Model file written by `hbpca fit -o`
    pub model: PathBuf,
    #[command(flatten)]
    pub data: DataArgs,
    /// The page to write
    #[arg(short, long, value_name = "REPORT.html")]
    pub output: PathBuf,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// `hbpca plan`.
#[derive(Debug, Args)]
#[command(mut_arg("data", |data| data.required(false)))]
pub struct PlanArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Rows x columns instead of data, such as 1e9x1000; for sparse data with the entries: 1e8x1e6x1e10
    #[arg(long, value_name = "NxD[xNNZ]")]
    pub shape: Option<String>,
    /// Components
    #[arg(short, value_name = "K", default_value_t = 10)]
    pub k: usize,
    /// Ranks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..).map(|n| n as usize))]
    pub ranks: usize,
    /// Time of a message between two ranks, such as 50us or 1ms
    #[arg(long, value_name = "TIME", default_value = "20us")]
    pub latency: Duration,
    /// Bytes a second between two ranks, such as 1.2G
    #[arg(long, value_name = "SIZE", default_value = "1.16G")]
    pub bandwidth: ByteSize,
    /// Memory that a rank may take
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Seconds as people type them: 50us, 1.5ms, 2s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duration(pub f64);

impl std::str::FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("ns", 1e-9), ("s", 1.0), ("", 1.0)];
        let seconds = units.into_iter().find_map(|(unit, seconds)| {
            let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
            Some(number * seconds)
        });
        match seconds {
            Some(seconds) if (0.0..f64::INFINITY).contains(&seconds) => Ok(Self(seconds)),
            _ => Err(format!("`{text}` is no time: give one such as 50us, 1.5ms or 2s")),
        }
    }
}

/// `hbpca info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub cells: CellArgs,
    #[command(flatten)]
    pub preparation: PreparationArgs,
    /// Of a model: the columns with the largest loadings of every component; with --json, all components
    #[arg(long)]
    pub loadings: bool,
    /// Columns shown of every component with --loadings
    #[arg(long, value_name = "N", default_value_t = 10, requires = "loadings")]
    pub top: usize,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// `hbpca convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    #[command(flatten)]
    pub input: DataArgs,
    #[command(flatten)]
    pub cells: CellArgs,
    /// File to write; its extensions decide format and compression. A model becomes a table of its loadings. A name that ends in .chunks becomes a folder of parts, made
    /// to be read many times
    #[arg(value_name = "OUT", required = true)]
    pub output: PathBuf,
    /// Write the rows in a random order that SEED decides
    #[arg(long, value_name = "SEED")]
    pub shuffle: Option<u64>,
    /// Size of a part of a chunk folder, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub part_size: u32,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// `hbpca theory`.
#[derive(Debug, Args)]
pub struct TheoryArgs {
    /// λ₁, the largest eigenvalue of C
    #[arg(long, value_name = "X")]
    pub lambda1: f64,
    /// λ₂, the second eigenvalue of C
    #[arg(long, value_name = "X")]
    pub lambda2: f64,
    /// K = ‖E[(C_S − C)²]‖, the variance of a mini-batch; 0 for the noiseless limit
    #[arg(long, value_name = "K")]
    pub variance: f64,
    /// m, the steps of an epoch
    #[arg(long, value_name = "M", default_value_t = 100)]
    pub epoch: usize,
    /// Step sizes to show besides the best ones
    #[arg(long, value_name = "X,…", value_delimiter = ',')]
    pub eta: Vec<f64>,
    /// d, for the theorem's own bound with every constant of its proof
    #[arg(long, value_name = "D", requires = "worst_batch")]
    pub dimension: Option<usize>,
    /// max ‖C_S − C‖²/K over all batches, for that bound; at least 1
    #[arg(long, value_name = "X", requires = "dimension")]
    pub worst_batch: Option<f64>,
    /// Draw ρ(η, K) here, with the largest step that the bound allows
    #[arg(short, long, value_name = "FILE.svg|.png|.html")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub json: JsonArgs,
}

/// `hbpca completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
    #[command(flatten)]
    pub json: JsonArgs,
}

/// `hbpca man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write one page for each command into this folder instead
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    #[command(flatten)]
    pub json: JsonArgs,
}

/// `hbpca demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The page to write
    #[arg(short, long, value_name = "FILE", default_value = "hbpca-demo.html")]
    pub output: PathBuf,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub threads: ThreadArgs,
}

/// `hbpca sample`.
#[derive(Debug, Args)]
pub struct SampleArgs {
    /// The data set, by the name of the file that is written: digits.csv
    pub name: PathBuf,
    /// The file to write instead
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub json: JsonArgs,
}
