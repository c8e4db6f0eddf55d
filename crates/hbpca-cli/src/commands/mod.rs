//! One file a command: plan in, exit code out.

mod check;
mod completions;
mod convert;
mod demo;
mod fit;
mod genotypes;
mod impute;
mod info;
mod info_table;
mod inverse;
mod laboratory;
mod man;
mod plan;
mod report;
mod sample;
mod theory;
mod transform;
mod transform_parts;

pub use fit::run_on_ranks as fit_on_ranks;
pub use transform_parts::{is_folder as is_folder_of_scores, run as transform_parts};

use crate::args::Command;
use crate::exit::{Exit, Failure};

/// Does what was typed.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Fit(args) => fit::run(&args),
        Command::Transform(args) => transform::run(&args),
        Command::Inverse(args) => inverse::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Impute(args) => impute::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Plot(args) => laboratory::plot(&args),
        Command::Compare(args) => laboratory::compare(&args),
        Command::Reproduce(args) => laboratory::reproduce(&args),
        Command::Theory(args) => theory::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Sample(args) => sample::run(&args),
        Command::Plan(args) => plan::run(&args),
    }
}
