//! A study of step sizes and batches, as described.

use hbpca::Batch;
use serde::Deserialize;

use super::catalogue::{Catalogue, DatasetSpec, resolve};
use super::grid::{GridSpec, QuickSpec};
use super::parse;
use crate::LabError;
use crate::race::Contender;

const FILE: &str = "experiments/study.toml";
const STUDY: &str = include_str!("../../../../experiments/study.toml");

/// Final error over step size × batch size.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudySpec {
    /// Name of its files.
    pub name: String,
    /// Title of its figure.
    pub title: String,
    /// Data sets by name.
    pub datasets: Vec<String>,
    /// The solver.
    pub solver: Contender,
    /// Batch sizes, as shares or counts; m = n/|S|.
    pub batches: Vec<String>,
    /// Passes at which the error is read.
    pub passes: f64,
    /// Repetitions.
    pub seeds: u64,
    /// Runs stop at this error.
    pub floor: f64,
    /// Step sizes.
    pub grid: GridSpec,
    /// What `--quick` changes.
    pub quick: Option<QuickSpec>,
}

impl StudySpec {
    /// The study that is part of the program.
    pub fn built_in() -> Result<Self, LabError> {
        let spec: Self = parse(FILE, STUDY)?;
        spec.grid.check(FILE)?;
        Ok(spec)
    }

    /// The same study with fewer seeds and grid points, where the description says how.
    #[must_use]
    pub fn quickened(mut self) -> Self {
        if let Some(quick) = self.quick {
            self.seeds = quick.seeds;
            self.grid.points = quick.points;
        }
        self
    }

    /// |S| of every line of the map.
    pub fn batches(&self) -> Result<Vec<Batch>, LabError> {
        self.batches.iter().map(|text| Ok(text.parse()?)).collect()
    }

    /// The data sets, from the catalogue.
    pub fn resolve(&self, catalogue: &Catalogue) -> Result<Vec<DatasetSpec>, LabError> {
        resolve(&self.name, &self.datasets, &[], catalogue)
    }
}
