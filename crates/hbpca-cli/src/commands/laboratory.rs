//! `hbpca plot`, `hbpca compare` and `hbpca reproduce`: the laboratory does the work.

use std::fmt::Display;
use std::path::Path;

use hbpca_lab::LabError;
use hbpca_lab::cli::{CompareArgs, PlotArgs, PlotKind, ReproduceArgs};
use hbpca_lab::compare::files_folder;
use serde::Serialize;

use crate::args::{JsonArgs, WithJson};
use crate::exit::{Exit, Failure};
use crate::output::{self, json};
use crate::plan::{self, Files, refuse_misleading_name};
use crate::typed;

/// `hbpca plot --json`.
#[derive(Serialize)]
struct PlotObject<'a> {
    kind: PlotKind,
    output: &'a Path,
}

/// Draws a plot.
pub fn plot(WithJson { args, json }: &WithJson<PlotArgs>) -> Result<Exit, Failure> {
    let read = Files::default().reads("what is plotted", [&args.input]).reads("data", &args.data);
    read.writes("--output", [&args.output]).check()?;
    // Begun and given up: an output that cannot be written is found before any work.
    drop(plan::create(&args.output)?);
    let kind = args.run()?;
    if json.json {
        json::print(&PlotObject { kind, output: &args.output })?;
    }
    Ok(Exit::Success)
}

/// Races solvers on the user's data.
pub fn compare(WithJson { args, json }: &WithJson<CompareArgs>) -> Result<Exit, Failure> {
    let raw_numbers = std::fs::read_dir(files_folder(&args.output)).into_iter().flatten().flatten();
    let read = Files::default().reads("data", &args.data);
    let written = read.writes("--output", [&args.output]);
    written.writes("the raw numbers", raw_numbers.map(|entry| entry.path())).check()?;
    refuse_misleading_name("--output", &args.output, "a page", &["html", "htm"])?;
    show(&args.run(typed::command())?, json)
}

/// Reproduces the paper.
pub fn reproduce(WithJson { args, json }: &WithJson<ReproduceArgs>) -> Result<Exit, Failure> {
    Files::default().reads("data", [&args.data]).writes("--output", [&args.output]).check()?;
    show(&args.run(typed::command())?, json)
}

/// Prints what was found, as text or as an object.
fn show(found: &(impl Display + Serialize), json: &JsonArgs) -> Result<Exit, Failure> {
    if json.json { json::print(found) } else { output::print_report(&format!("{found}\n")) }?;
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
