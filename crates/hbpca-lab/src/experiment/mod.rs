//! Experiments as TOML: what is run on what, with which parameters.
//!
//! The experiments of the paper are part of the program; a file given by `--experiment` takes their place. A data set is
//! named from the catalogue or described in the file itself by `[[dataset]]`.

mod catalogue;
mod grid;
mod race;
mod study;

pub use catalogue::{Catalogue, DatasetSpec, GeneratedSpec, PaperRow, PreparedAs};
pub use grid::{GridSpec, QuickSpec};
pub use race::RaceSpec;
pub use study::StudySpec;

use serde::Deserialize;

use crate::LabError;

fn parse<T: for<'de> Deserialize<'de>>(file: &str, text: &str) -> Result<T, LabError> {
    toml::from_str(text).map_err(|error| LabError::description(file, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::race::FIGURE1;
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
            // The checksums of data that is not at hand are not known.
            let known = if dataset.found.is_some() { 0 } else { dataset.files.len() };
            assert_eq!(known, dataset.sha256.len(), "{}", dataset.id);
            assert_eq!(dataset.files.is_empty(), dataset.generated.is_some(), "{}", dataset.id);
        }
    }

    #[test]
    fn descriptions_that_make_no_sense_are_refused() {
        let refused = |from: &str, to: &str| {
            assert!(FIGURE1.contains(from));
            RaceSpec::from_toml("x.toml", &FIGURE1.replace(from, to)).unwrap_err().to_string()
        };
        assert!(refused("seeds = 20", "seeds = 0").contains("at least one of"));
        assert!(refused("target = 1e-10", "target = 1e-16").contains("need 0 < floor ≤ target < 1"));
        assert!(refused("batch = \"1%\"", "batch = \"some\"").contains("batch = some"));
        assert!(refused("smallest = 0.03", "smallest = -1.0").contains("grid from -1"));
        assert!(refused("budget = 1.0", "budget = 2.0").contains("grid budget = 2"));
        assert!(refused("\"vr-pca\"", "\"vr-pcb\"").contains("vr-pcb"));
        assert!(refused("epoch = 100", "epok = 100").contains("epok"));
        let mut race = RaceSpec::from_toml("x.toml", FIGURE1).unwrap();
        race.datasets.push("moon".into());
        let error = race.resolve(&Catalogue::built_in().unwrap()).unwrap_err().to_string();
        assert!(error.contains("no data set `moon`: name one of ijcnn1"), "{error}");
    }
}
