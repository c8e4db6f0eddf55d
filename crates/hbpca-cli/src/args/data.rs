//! Arguments that several commands share.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use hbpca::missing::Missing;
use hbpca_io::Format;
use hbpca_lab::table_args::{READING, TableArgs};

/// The data and how to read it.
#[derive(Clone, Debug, Args)]
pub struct DataArgs {
    /// A file, several files or a folder as parts of one matrix, or - for standard input
    #[arg(value_name = "DATA", required = true)]
    pub data: Vec<PathBuf>,
    /// Format of the data [default: by extension, else by content]
    #[arg(long, value_name = "FORMAT", help_heading = READING, value_parser = format_parser())]
    pub format: Option<Format>,
    /// Column that holds the label and is left out: its name, or its number from 0 (−1 is the last)
    #[arg(long, value_name = "NAME|INDEX", help_heading = READING, allow_negative_numbers = true)]
    pub label_column: Option<String>,
    /// Columns to use, in this order, by name or number; FIRST..LAST is a range, and names with commas stand in double quotes
    #[arg(long, value_name = "NAME|INDEX,…", help_heading = READING, allow_negative_numbers = true)]
    pub columns: Option<String>,
    /// Columns to leave out, written as for --columns
    #[arg(long, value_name = "NAME|INDEX,…", help_heading = READING, allow_negative_numbers = true)]
    pub exclude: Option<String>,
    /// Take all columns that hold numbers, and leave out text
    #[arg(long, help_heading = READING, conflicts_with = "columns")]
    pub numeric: bool,
    /// Number of columns of LIBSVM data, whose last columns may be empty
    #[arg(long, value_name = "D", help_heading = READING)]
    pub n_columns: Option<usize>,
    /// Layer of .h5ad data to read instead of X; raw is .raw
    #[arg(long, value_name = "NAME", help_heading = READING)]
    pub layer: Option<String>,
    #[command(flatten)]
    pub table: TableArgs,
}

fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .try_map(|name| Format::from_name(&name).ok_or_else(|| format!("`{name}` is no format")))
}

/// Where the weights of the rows are.
#[derive(Clone, Debug, Args)]
pub struct WeightArgs {
    /// Column that holds the weights of the rows and is left out: a row of weight 2 counts as two equal rows, one of weight 0 not at all
    #[arg(long, value_name = "NAME|INDEX", help_heading = READING, allow_negative_numbers = true)]
    pub weight_column: Option<String>,
    /// The weights of the rows: a file with one number for each row of the data
    #[arg(long, value_name = "FILE", help_heading = READING, conflicts_with = "weight_column")]
    pub weights: Option<PathBuf>,
}

/// What is done with the cells and genes of `.h5ad` data.
#[derive(Clone, Debug, Args)]
pub struct CellArgs {
    /// Column of .var that is true for the genes to use, such as highly_variable
    #[arg(long, value_name = "NAME", help_heading = CELLS)]
    pub mask: Option<String>,
    /// Bring the counts of each cell, over all genes, to this total first, such as 1e4
    #[arg(long, value_name = "TOTAL", help_heading = CELLS, allow_negative_numbers = true)]
    pub normalize: Option<f64>,
    /// Then take log(1 + x)
    #[arg(long, help_heading = CELLS)]
    pub log1p: bool,
}

const CELLS: &str = "Single cells (.h5ad)";

/// What becomes of missing values.
#[derive(Clone, Debug, Args)]
pub struct MissingArgs {
    /// What becomes of missing values: empty fields and the likes of NA, nulls, NaN. They are refused (error), their rows are left out (drop-rows), or they are filled
    /// in with column means (mean) or by the components themselves (em)
    #[arg(long, value_name = "error|drop-rows|mean|em", help_heading = MISSING, value_parser = missing_parser(), hide_possible_values = true)]
    pub missing: Option<Missing>,
    /// em stops when one more round would change what was filled in by at most X, relative to the spread of the data [default: 1e-6]
    #[arg(long, value_name = "X", help_heading = MISSING)]
    pub em_tol: Option<f64>,
    /// Rounds after which em stops [default: 1000]
    #[arg(long, value_name = "N", help_heading = MISSING)]
    pub em_max_rounds: Option<usize>,
    /// Draw what em fills in towards the mean: scores minimise ‖a − Uz‖² + X‖z‖² [default: 0]
    #[arg(long, value_name = "X", help_heading = MISSING)]
    pub em_ridge: Option<f64>,
}

const MISSING: &str = "Missing values";

pub(super) fn missing_parser() -> impl TypedValueParser<Value = Missing> {
    PossibleValuesParser::new(Missing::ALL.map(Missing::name)).try_map(|name| name.parse::<Missing>())
}

/// How rows are prepared.
#[derive(Clone, Debug, Args)]
pub struct PreparationArgs {
    /// Subtract the column means: principal components [default]
    #[arg(long, overrides_with = "no_center", help_heading = PREPARATION)]
    pub center: bool,
    /// Subtract nothing: the plain second moment (truncated SVD)
    #[arg(long, overrides_with = "center", help_heading = PREPARATION)]
    pub no_center: bool,
    /// Divide every column by its standard deviation, its range or, for genotypes, √(2f(1 − f))
    #[arg(long, value_enum, default_value_t = ScaleArg::None, help_heading = PREPARATION)]
    pub scale: ScaleArg,
}

const PREPARATION: &str = "Preparation";

/// `--scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScaleArg {
    /// Columns as they are
    None,
    /// Standard deviation 1
    Std,
    /// Values from 0 to 1
    Minmax,
    /// √(2f(1 − f)) of the allele frequency f, for genotypes
    Hwe,
}

/// `--output-format`.
#[derive(Clone, Debug, Args)]
pub struct OutputFormatArgs {
    /// Format of the output [default: by its extension]; needed for -o -
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub output_format: Option<Format>,
}

/// `--whiten`.
#[derive(Clone, Debug, Args)]
pub struct WhitenArgs {
    /// Scores of variance 1
    #[arg(long)]
    pub whiten: bool,
}

/// `--threads`.
#[derive(Clone, Debug, Args)]
pub struct ThreadArgs {
    /// Threads to use; 0 for as many as the machine offers. Results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
}

/// `--json`.
#[derive(Clone, Debug, Args)]
pub struct JsonArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The arguments of the laboratory's commands, and `--json`.
#[derive(Clone, Debug, Args)]
pub struct WithJson<T: Args> {
    #[command(flatten)]
    pub args: T,
    #[command(flatten)]
    pub json: JsonArgs,
}

/// `-q` and `-v`.
#[derive(Clone, Debug, Args)]
pub struct VerbosityArgs {
    /// Say nothing but errors: no progress, no warnings, no table. Files and --json are written all the same
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say what is being done
    #[arg(short, long)]
    pub verbose: bool,
}
