//! `hbpca plot`, `hbpca compare` and `hbpca reproduce`: the laboratory does the work.

use hbpca_lab::LabError;
use hbpca_lab::cli::{CompareArgs, PlotArgs, ReproduceArgs};
use hbpca_lab::compare::files_folder;

use crate::exit::{Exit, Failure};
use crate::plan::{Files, refuse_misleading_name};
use crate::{output, plan};

/// Draws a plot.
pub fn plot(args: &PlotArgs) -> Result<Exit, Failure> {
    let read = Files::default().reads("what is plotted", [&args.input]).reads("data", &args.data);
    read.writes("--output", [&args.output]).check()?;
    // Begun and given up: an output that cannot be written is found before any work.
    drop(plan::create(&args.output)?);
    args.run()?;
    Ok(Exit::Success)
}

/// Races solvers on the user's data.
pub fn compare(args: &CompareArgs) -> Result<Exit, Failure> {
    let raw_numbers = std::fs::read_dir(files_folder(&args.output)).into_iter().flatten().flatten();
    let read = Files::default().reads("data", &args.data);
    let written = read.writes("--output", [&args.output]);
    written.writes("the raw numbers", raw_numbers.map(|entry| entry.path())).check()?;
    refuse_misleading_name("--output", &args.output, "a page", &["html", "htm"])?;
    let recommendation = args.run()?;
    output::print_report(&format!("{recommendation}\n"))?;
    Ok(Exit::Success)
}

/// Reproduces the paper.
pub fn reproduce(args: &ReproduceArgs) -> Result<Exit, Failure> {
    Files::default().reads("data", [&args.data]).writes("--output", [&args.output]).check()?;
    let findings = args.run()?;
    output::print_report(&format!("{findings}\n"))?;
    Ok(Exit::Success)
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Usage(_) | LabError::Core(hbpca::Error::Parameter { .. }) | LabError::Write(_) => {
                Self::Usage(error.to_string())
            }
            _ => Self::Input(error.to_string()),
        }
    }
}
