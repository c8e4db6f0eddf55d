//! Data sets: where they are, what is done to them, what the paper says of them.

use hbpca::Preprocessing;
use serde::{Deserialize, Serialize};

use super::parse;
use crate::LabError;

const CATALOGUE: &str = include_str!("../../../../experiments/datasets.toml");

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
    /// Parts of the matrix, in order; none where rows are generated.
    #[serde(default)]
    pub files: Vec<String>,
    /// Rows that are generated instead.
    pub generated: Option<GeneratedSpec>,
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
    /// Where the public copy is found, for data that is not at hand.
    pub found: Option<String>,
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

/// Rows with a given spectrum.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratedSpec {
    /// Rows.
    pub n: usize,
    /// Columns.
    pub d: usize,
    /// λ₂/λ₁; the eigenvalues after the second fall by the same ratio as 1/i.
    pub ratio: f64,
    /// Seed.
    pub seed: u64,
}

/// The data sets: at hand, generated, and those whose files may be put into the folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// All of them.
    pub dataset: Vec<DatasetSpec>,
}

impl Catalogue {
    /// The catalogue that is part of the program.
    pub fn built_in() -> Result<Self, LabError> {
        parse("experiments/datasets.toml", CATALOGUE)
    }
}

/// The data sets of `file` by name: its own, or those of the catalogue.
pub(super) fn resolve(
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
