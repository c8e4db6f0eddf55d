//! The laboratory's subcommands, ready to be placed in a command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hbpca::{Batch, Centering, Preprocessing, Scaling};
use hbpca_io::{ColumnRef, Input, ReadOptions};

use crate::LabError;
use crate::compare::{Compared, Comparison, StudyChoice};
use crate::dataset::{Dataset, sha256};
pub use crate::plot_args::{PlotArgs, PlotKind};
use crate::progress::Progress;
use crate::race::Contender;
use crate::reproduce::{Findings, Plan, Target, write_figures, write_findings};
use crate::table_args::TableArgs;

fn progress(quiet: bool) -> Progress {
    if quiet { Progress::quiet() } else { Progress::on_stderr() }
}

/// `hbpca reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// What to reproduce
    #[arg(value_enum, default_value_t = Target::All)]
    pub target: Target,
    /// Folder of the data sets
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Folder of the results; finished runs found there are not repeated
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Fewer rows, seeds and step sizes: minutes instead of an hour
    #[arg(long)]
    pub quick: bool,
    /// An experiment in TOML instead of the paper's figures
    #[arg(long, value_name = "FILE")]
    pub experiment: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
}

impl ReproduceArgs {
    /// Reproduces. `command` is what was typed, for the page.
    pub fn run(&self, command: String) -> Result<Findings, LabError> {
        let plan = Plan {
            command,
            target: self.target,
            data: self.data.clone(),
            out: self.output.clone(),
            quick: self.quick,
            experiment: self.experiment.clone(),
        };
        let progress = progress(self.quiet);
        let results = plan.measure(&progress)?;
        write_figures(&results, &plan.out)?;
        write_findings(&results, &plan, &progress)
    }
}

/// `--scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScaleArg {
    /// Columns as they are
    None,
    /// Standard deviation 1
    Std,
    /// Values from 0 to 1
    Minmax,
}

/// `hbpca compare`.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "one for each flag that may be typed")]
pub struct CompareArgs {
    /// A file, or several files or a folder as parts of one matrix
    #[arg(value_name = "DATA", required = true)]
    pub data: Vec<PathBuf>,
    /// Components to find; for more than one, only solvers that find several are raced
    #[arg(short = 'k', value_name = "K", default_value_t = 1)]
    pub k: usize,
    /// Solvers to race, such as krylov,vr-pca,vr-hb-power:oracle [default: all that suit the data]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub solvers: Vec<Contender>,
    /// Repetitions with different seeds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Study step sizes and batches too
    #[arg(long)]
    pub study: bool,
    /// Passes over the data that each run may read
    #[arg(long, value_name = "N", default_value_t = 40.0)]
    pub passes: f64,
    /// Rows of a mini-batch: a share or a number
    #[arg(long, value_name = "1%|N", default_value = "1%")]
    pub batch: Batch,
    /// Steps m of an epoch
    #[arg(long, value_name = "M", default_value_t = 100)]
    pub epoch: usize,
    /// Column that holds the label and is left out: its name, or its number from 0
    #[arg(long, value_name = "NAME|INDEX", allow_negative_numbers = true)]
    pub label_column: Option<String>,
    /// How the table is written
    #[command(flatten)]
    pub table: TableArgs,
    /// Subtract the column means, which is the default
    #[arg(long, overrides_with = "no_center")]
    pub center: bool,
    /// Subtract nothing
    #[arg(long, overrides_with = "center")]
    pub no_center: bool,
    /// Divide every column by its standard deviation or by its range
    #[arg(long, value_enum, default_value_t = ScaleArg::None)]
    pub scale: ScaleArg,
    /// The report; raw numbers go into a folder beside it
    #[arg(short, long, value_name = "REPORT.html")]
    pub output: PathBuf,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
}

impl CompareArgs {
    /// Races. `command` is what was typed, for the page.
    pub fn run(&self, command: String) -> Result<Compared, LabError> {
        if !(self.passes >= 2.0 && self.passes.is_finite()) {
            let message = format!("passes = {}: a race needs a finite number of at least 2", self.passes);
            return Err(LabError::Usage(message));
        }
        if self.k == 0 {
            return Err(LabError::Usage("k = 0: ask for at least 1 component with -k".into()));
        }
        let progress = progress(self.quiet);
        let dataset = self.dataset()?;
        let comparison = Comparison {
            k: self.k,
            solvers: self.solvers.clone(),
            seeds: self.seeds,
            batch: self.batch.to_string(),
            epoch: self.epoch,
            study: if self.study { StudyChoice::With } else { StudyChoice::Without },
            report: self.output.clone(),
            command,
        };
        let race = comparison.run(&dataset, &progress)?;
        Ok(Compared::new(&comparison, &race))
    }

    fn dataset(&self) -> Result<Dataset, LabError> {
        let mut sums = Vec::new();
        for path in self.data.iter().filter(|path| path.is_file()) {
            sums.push(sha256(path)?);
        }
        let options = ReadOptions {
            label_column: self.label_column.as_deref().map(ColumnRef::parse),
            ..self.table.options()
        };
        let data = hbpca_io::read(Input::paths(self.data.clone()), &options)?;
        let preprocessing = Preprocessing {
            centering: if self.no_center { Centering::None } else { Centering::Mean },
            scaling: match self.scale {
                ScaleArg::None => Scaling::None,
                ScaleArg::Std => Scaling::Std,
                ScaleArg::Minmax => Scaling::MinMax,
            },
        };
        let title =
            self.data[0].file_name().map_or("data".into(), |name| name.to_string_lossy().into_owned());
        let id: String = title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        // A folder has no checksum of its own: its matrix stands for it.
        let content = if sums.len() == self.data.len() { sums.join("+") } else { fingerprint(&data.matrix) };
        Dataset::new(&id, &title, data.matrix, preprocessing, &content, None, self.passes)
    }
}

/// A checksum of a matrix's entries.
fn fingerprint(matrix: &hbpca::Matrix<'_>) -> String {
    use sha2::{Digest, Sha256};
    let mut digest = Sha256::new();
    for row in 0..matrix.n_rows() {
        matrix.for_each_in_row(row, |column, value| {
            digest.update((row as u64).to_le_bytes());
            digest.update((column as u64).to_le_bytes());
            digest.update(value.to_bits().to_le_bytes());
        });
    }
    crate::dataset::hex(&digest.finalize())
}
