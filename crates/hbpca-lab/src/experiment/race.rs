//! A race, as described.

use std::path::Path;

use hbpca::Batch;
use serde::Deserialize;

use super::catalogue::{Catalogue, DatasetSpec, resolve};
use super::grid::{GridSpec, QuickSpec};
use super::parse;
use crate::LabError;
use crate::race::{Clock, Contender};

pub(super) const FIGURE1: &str = include_str!("../../../../experiments/figure1.toml");
const FIGURE2: &str = include_str!("../../../../experiments/figure2.toml");

/// A race of solvers on data sets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaceSpec {
    /// Name of its files.
    pub name: String,
    /// Title of its figure.
    pub title: String,
    /// |S|, as a share or a count.
    pub batch: String,
    /// m.
    pub epoch: usize,
    /// Data sets by name.
    pub datasets: Vec<String>,
    /// Data sets described here.
    #[serde(default)]
    pub dataset: Vec<DatasetSpec>,
    /// Solvers of the figure.
    pub solvers: Vec<Contender>,
    /// Variants of these with other step sizes, which claims are tried on; drawn in the extended figure.
    #[serde(default)]
    pub variants: Vec<Contender>,
    /// Further solvers of the extended figure; those this version does not have are left out.
    #[serde(default)]
    pub extended: Vec<String>,
    /// Repetitions.
    pub seeds: u64,
    /// Repetitions of the further solvers, on which no claim rests; as many as of the others where none are given.
    pub extended_seeds: Option<u64>,
    /// Races are compared by the passes to this error.
    pub target: f64,
    /// Runs stop at this error.
    pub floor: f64,
    /// What the seconds are.
    #[serde(default)]
    pub clock: Clock,
    /// The step-size grid.
    pub grid: GridSpec,
    /// What `--quick` changes.
    pub quick: Option<QuickSpec>,
}

impl RaceSpec {
    /// Figures 1 and 2 of the paper.
    pub fn figures() -> Result<Vec<Self>, LabError> {
        let figures = [("experiments/figure1.toml", FIGURE1), ("experiments/figure2.toml", FIGURE2)];
        figures.into_iter().map(|(file, text)| Self::from_toml(file, text)).collect()
    }

    /// Reads and checks a description.
    pub fn from_file(path: &Path) -> Result<Self, LabError> {
        let text = std::fs::read_to_string(path).map_err(LabError::io(path))?;
        Self::from_toml(&path.display().to_string(), &text)
    }

    /// Checks a description; `file` stands for it in messages.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, LabError> {
        let spec: Self = parse(file, text)?;
        let refuse = |message: String| Err(LabError::description(file, message));
        if spec.seeds == 0 || spec.solvers.is_empty() || spec.datasets.is_empty() {
            return refuse("give at least one of solvers, datasets and seeds".into());
        }
        if !(spec.target > 0.0 && spec.target < 1.0 && spec.floor > 0.0 && spec.floor <= spec.target) {
            return refuse(format!(
                "target = {} and floor = {}: need 0 < floor ≤ target < 1",
                spec.target, spec.floor
            ));
        }
        spec.batch()?;
        spec.grid.check(file)?;
        Ok(spec)
    }

    /// |S|.
    pub fn batch(&self) -> Result<Batch, LabError> {
        Ok(self.batch.parse()?)
    }

    /// The same race with fewer seeds and grid points, where the description says how.
    #[must_use]
    pub fn quickened(mut self) -> Self {
        if let Some(quick) = self.quick {
            self.seeds = quick.seeds;
            self.extended_seeds = None;
            self.grid.points = quick.points;
            self.grid.refinements = quick.refinements;
            self.grid.seeds = quick.grid_seeds;
            self.grid.screening = None;
        }
        self
    }

    /// The data sets, from the description itself or from the catalogue.
    pub fn resolve(&self, catalogue: &Catalogue) -> Result<Vec<DatasetSpec>, LabError> {
        resolve(&self.name, &self.datasets, &self.dataset, catalogue)
    }
}
