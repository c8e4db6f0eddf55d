//! The laboratory's subcommands, ready to be placed in a command line.

use std::path::PathBuf;

use clap::Args;

use crate::LabError;
use crate::progress::Progress;
use crate::reproduce::{Plan, Target, write_figures};

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
    /// Reproduces.
    pub fn run(&self) -> Result<(), LabError> {
        let plan = Plan {
            target: self.target,
            data: self.data.clone(),
            out: self.output.clone(),
            quick: self.quick,
            experiment: self.experiment.clone(),
        };
        let progress = if self.quiet { Progress::quiet() } else { Progress::on_stderr() };
        let results = plan.measure(&progress)?;
        write_figures(&results, &plan.out)?;
        Ok(())
    }
}
