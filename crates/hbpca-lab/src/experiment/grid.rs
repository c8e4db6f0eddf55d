//! The grid of step sizes, and what a quick run leaves of it.

use serde::{Deserialize, Serialize};

use crate::LabError;

/// The grid on which step sizes are searched. x = ηλ₁ for solvers that step by w + ηg, x = ηλ₁/(1 − η) for heavy balls.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct GridSpec {
    /// Smallest x.
    pub smallest: f64,
    /// Largest x.
    pub largest: f64,
    /// Points, evenly spaced in logarithms.
    pub points: usize,
    /// How often the spacing is halved around the best point.
    #[serde(default)]
    pub refinements: usize,
    /// Seeds, apart from those of the race.
    #[serde(default = "one")]
    pub seeds: u64,
    /// Seeds of the first tries, of which the best are tried with all; all where none is given.
    #[serde(default)]
    pub screening: Option<u64>,
    /// Share of the race's passes that a try may read.
    #[serde(default = "whole")]
    pub budget: f64,
}

fn one() -> u64 {
    1
}

fn whole() -> f64 {
    1.0
}

/// What `--quick` changes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuickSpec {
    /// Rows drawn from the data.
    pub rows: usize,
    /// Seeds.
    pub seeds: u64,
    /// Grid points.
    pub points: usize,
    /// Refinements of the grid.
    #[serde(default)]
    pub refinements: usize,
    /// Seeds of the grid.
    #[serde(default = "one")]
    pub grid_seeds: u64,
}

impl GridSpec {
    /// Refuses a grid without a point or a budget.
    pub(super) fn check(&self, file: &str) -> Result<(), LabError> {
        if !(self.budget > 0.0 && self.budget <= 1.0) {
            let message = format!(
                "grid budget = {}: a try reads a share of the race's passes, above 0 and at most 1",
                self.budget
            );
            return Err(LabError::description(file, message));
        }
        if self.smallest > 0.0
            && self.largest >= self.smallest
            && self.points > 0
            && self.seeds > 0
            && self.screening != Some(0)
        {
            return Ok(());
        }
        let message = format!(
            "grid from {} to {} with {} points and {} seeds: need 0 < smallest ≤ largest, and at least one point and seed",
            self.smallest, self.largest, self.points, self.seeds
        );
        Err(LabError::description(file, message))
    }
}
