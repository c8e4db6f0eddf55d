//! `hbpca plot`, `hbpca compare` and `hbpca reproduce`: the laboratory does the work.

use hbpca_lab::LabError;
use hbpca_lab::cli::{CompareArgs, PlotArgs, ReproduceArgs};

use crate::exit::{Exit, Failure};
use crate::{output, plan};

/// Draws a plot.
pub fn plot(args: &PlotArgs) -> Result<Exit, Failure> {
    // Begun and given up: an output that cannot be written is found before any work.
    drop(plan::create(&args.output)?);
    args.run()?;
    Ok(Exit::Success)
}

/// Races solvers on the user's data.
pub fn compare(args: &CompareArgs) -> Result<Exit, Failure> {
    let recommendation = args.run()?;
    output::print(&format!("{recommendation}\n"))?;
    Ok(Exit::Success)
}

/// Reproduces the paper.
pub fn reproduce(args: &ReproduceArgs) -> Result<Exit, Failure> {
    let findings = args.run()?;
    output::print(&format!("{findings}\n"))?;
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
