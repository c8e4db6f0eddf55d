//! Experiments as TOML: what is run on what, with which parameters.
//!
//! The experiments of the paper are part of the program; a file given by `--experiment` takes their place. A data set is
//! named from the catalogue or described in the file itself by `[[dataset]]`.

use std::path::Path;

use hbpca::{Batch, Preprocessing};
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::race::{Clock, Contender};

const CATALOGUE: &str = include_str!("../../../experiments/datasets.toml");
const FIGURE1: &str = include_str!("../../../experiments/figure1.toml");
const FIGURE2: &str = include_str!("../../../experiments/figure2.toml");
const STUDY: &str = include_str!("../../../experiments/study.toml");

/// What the paper's data-set table prints.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    /// The paper's name.
    pub name: String,
    /// Rows.
    pub n: usize,
    /// Columns.
    pub d: usize,
    /// Share of entries that are not zero.
    pub density: f64,
    /// λ₂/λ₁.
    pub ratio: f64,
}

/// A data set: its files, what is done to its rows, and what the paper says of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetSpec {
    /// Short name, used in file names.
    pub id: String,
    /// Name on figures.
    pub title: String,
    /// Parts of the matrix, in order.
    pub files: Vec<String>,
    /// Checksums of the files, in the same order; none are checked where the list is empty.
    #[serde(default)]
    pub sha256: Vec<String>,
    /// Column that is no feature.
    pub label_column: Option<String>,
    /// Rows as they enter the covariance.
    pub preprocessing: PreparedAs,
    /// Budget of a race.
    pub passes: f64,
    /// What the paper prints, for its own data sets.
    pub paper: Option<PaperRow>,
    /// The paper's data set in whose place this one is used.
    pub stands_in_for: Option<String>,
    /// Why numbers differ from the paper's, or what the data are.
    #[serde(default)]
    pub remark: String,
}

/// Preprocessing by name.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum PreparedAs {
    /// Rows as they are.
    None,
    /// Means subtracted.
    Center,
    /// Mean 0, standard deviation 1.
    Standardize,
    /// Columns brought to \[0, 1\].
    UnitRange,
}

impl PreparedAs {
    /// The core's value.
    pub fn preprocessing(self) -> Preprocessing {
        match self {
            Self::None => Preprocessing::NONE,
            Self::Center => Preprocessing::CENTER,
            Self::Standardize => Preprocessing::STANDARDIZE,
            Self::UnitRange => Preprocessing::UNIT_RANGE,
        }
    }
}

/// A data set of the paper that is not at hand.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissingSpec {
    /// What the paper prints.
    pub paper: PaperRow,
    /// Where the public copy is found.
    pub found: String,
}

/// Data sets at hand and missing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// At hand.
    pub dataset: Vec<DatasetSpec>,
    /// Missing.
    #[serde(default)]
    pub missing: Vec<MissingSpec>,
}

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
    /// Further solvers of the extended figure; those this version does not have are left out.
    #[serde(default)]
    pub extended: Vec<String>,
    /// Repetitions.
    pub seeds: u64,
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

impl Catalogue {
    /// The catalogue that is part of the program.
    pub fn built_in() -> Result<Self, LabError> {
        parse("experiments/datasets.toml", CATALOGUE)
    }
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
        check_grid(file, &spec.grid)?;
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
            self.grid.points = quick.points;
            self.grid.refinements = quick.refinements;
            self.grid.seeds = quick.grid_seeds;
        }
        self
    }

    /// The data sets, from the description itself or from the catalogue.
    pub fn resolve(&self, catalogue: &Catalogue) -> Result<Vec<DatasetSpec>, LabError> {
        resolve(&self.name, &self.datasets, &self.dataset, catalogue)
    }
}

impl StudySpec {
    /// The study that is part of the program.
    pub fn built_in() -> Result<Self, LabError> {
        let spec: Self = parse("experiments/study.toml", STUDY)?;
        check_grid("experiments/study.toml", &spec.grid)?;
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

fn parse<T: for<'de> Deserialize<'de>>(file: &str, text: &str) -> Result<T, LabError> {
    toml::from_str(text).map_err(|error| LabError::description(file, error.to_string()))
}

fn check_grid(file: &str, grid: &GridSpec) -> Result<(), LabError> {
    if !(grid.budget > 0.0 && grid.budget <= 1.0) {
        let message = format!("grid budget = {}: a try reads a share of the race's passes, above 0 and at most 1", grid.budget);
        return Err(LabError::description(file, message));
    }
    if grid.smallest > 0.0 && grid.largest >= grid.smallest && grid.points > 0 && grid.seeds > 0 {
        return Ok(());
    }
    let message = format!(
        "grid from {} to {} with {} points and {} seeds: need 0 < smallest ≤ largest, and at least one point and seed",
        grid.smallest, grid.largest, grid.points, grid.seeds
    );
    Err(LabError::description(file, message))
}

fn resolve(
    file: &str,
    names: &[String],
    own: &[DatasetSpec],
    catalogue: &Catalogue,
) -> Result<Vec<DatasetSpec>, LabError> {
    let find = |name: &String| {
        own.iter().chain(&catalogue.dataset).find(|x| x.id == *name).cloned().ok_or_else(|| {
            let known: Vec<_> = own.iter().chain(&catalogue.dataset).map(|x| x.id.as_str()).collect();
            let message = format!(
                "no data set `{name}`: name one of {}, or describe it by [[dataset]]",
                known.join(", ")
            );
            LabError::description(file, message)
        })
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_can_be_read() {
        let catalogue = Catalogue::built_in().unwrap();
        for race in RaceSpec::figures().unwrap() {
            assert_eq!(race.resolve(&catalogue).unwrap().len(), race.datasets.len());
            assert!(race.clone().quickened().seeds < race.seeds);
            // m·|S| = n, the paper's rule.
            let rows = race.batch().unwrap().rows(10_000).unwrap();
            assert_eq!(rows * race.epoch, 10_000);
        }
        let study = StudySpec::built_in().unwrap();
        assert!(study.resolve(&catalogue).is_ok() && study.batches().is_ok());
        for dataset in &catalogue.dataset {
            assert_eq!(dataset.files.len(), dataset.sha256.len(), "{}", dataset.id);
        }
    }

    #[test]
    fn descriptions_that_make_no_sense_are_refused() {
        let refused = |from: &str, to: &str| {
            assert!(FIGURE1.contains(from));
            RaceSpec::from_toml("x.toml", &FIGURE1.replace(from, to)).unwrap_err().to_string()
        };
        assert!(refused("seeds = 10", "seeds = 0").contains("at least one of"));
        assert!(refused("target = 1e-10", "target = 1e-16").contains("need 0 < floor ≤ target < 1"));
        assert!(refused("batch = \"1%\"", "batch = \"some\"").contains("batch = some"));
        assert!(refused("smallest = 0.03", "smallest = -1.0").contains("grid from -1"));
        assert!(refused("budget = 0.5", "budget = 2.0").contains("grid budget = 2"));
        assert!(refused("\"vr-pca\"", "\"vr-pcb\"").contains("vr-pcb"));
        assert!(refused("epoch = 100", "epok = 100").contains("epok"));
        let mut race = RaceSpec::from_toml("x.toml", FIGURE1).unwrap();
        race.datasets.push("moon".into());
        let error = race.resolve(&Catalogue::built_in().unwrap()).unwrap_err().to_string();
        assert!(error.contains("no data set `moon`: name one of ijcnn1"), "{error}");
    }
}
