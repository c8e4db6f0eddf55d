//! Keywords as a [`FitConfig`]. What is not given keeps the core's default: none is repeated here.

use hbpca::missing::Missing;
use hbpca::{Accuracy, Batch, Block, Centering, FitConfig, MomentumChoice, Preprocessing, Scaling};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use crate::errors::{Failure, Outcome};

/// The choices of a fit, as the attributes of a Python object.
#[derive(FromPyObject)]
pub struct Settings<'py> {
    solver: Option<String>,
    svd_solver: Option<String>,
    center: bool,
    scale: Option<String>,
    tol: Option<f64>,
    to_rounding: bool,
    angle_tol: Option<f64>,
    certify: Option<f64>,
    max_passes: Option<f64>,
    max_seconds: Option<f64>,
    eta: Option<f64>,
    momentum: Option<String>,
    lambda2: Option<f64>,
    batch: Option<Rows>,
    epoch: Option<usize>,
    seed: Option<u64>,
    threads: Option<usize>,
    start: Option<PyReadonlyArray2<'py, f64>>,
    missing: Option<String>,
    em_tol: Option<f64>,
    em_max_rounds: Option<usize>,
    em_ridge: Option<f64>,
    disk_rate: Option<f64>,
}

/// A mini-batch: a number of rows, a share of them, or text such as `1%`.
#[derive(FromPyObject)]
enum Rows {
    Count(usize),
    Share(f64),
    Text(String),
}

impl Settings<'_> {
    /// The configuration, for one component.
    pub fn config(&self) -> Outcome<FitConfig> {
        let mut config = FitConfig { preprocessing: self.preprocessing()?, ..FitConfig::default() };
        if let Some(name) = &self.solver {
            config.solver = name.parse()?;
        }
        if let Some(momentum) = self.momentum()? {
            config.momentum = momentum;
        }
        if let Some(rows) = &self.batch {
            config.batch = match rows {
                Rows::Count(rows) => Batch::Rows(*rows),
                Rows::Share(share) => Batch::Share(*share),
                Rows::Text(text) => text.parse()?,
            };
        }
        let set = |slot: &mut f64, given: Option<f64>| *slot = given.unwrap_or(*slot);
        config.eta = self.eta;
        set(&mut config.limits.tol, self.tol);
        if self.to_rounding {
            config.limits.accuracy = Accuracy::Rounding;
        }
        set(&mut config.limits.max_passes, self.max_passes);
        set(&mut config.limits.max_seconds, self.max_seconds);
        config.limits.angle = self.angle_tol;
        config.certify = self.certify;
        config.epoch = self.epoch.unwrap_or(config.epoch);
        config.seed = self.seed.unwrap_or(config.seed);
        config.threads = self.threads.unwrap_or(config.threads);
        config.missing = self.missing()?;
        set(&mut config.em.tol, self.em_tol);
        set(&mut config.em.ridge, self.em_ridge);
        config.em.max_rounds = self.em_max_rounds.unwrap_or(config.em.max_rounds);
        config.disk_rate = self.disk_rate;
        config.start = self.start.as_ref().map(first_iterate).transpose()?;
        Ok(config)
    }

    /// What becomes of missing values.
    pub fn missing(&self) -> Outcome<Missing> {
        Ok(self.missing.as_deref().map(str::parse).transpose()?.unwrap_or_default())
    }

    /// scikit-learn's argument, where it asks for anything.
    pub fn svd_solver(&self) -> Option<&str> {
        self.svd_solver.as_deref()
    }

    fn preprocessing(&self) -> Outcome<Preprocessing> {
        let centering = if self.center { Centering::Mean } else { Centering::None };
        let scaling = match self.scale.as_deref() {
            None | Some("none") => Scaling::None,
            Some("std") => Scaling::Std,
            Some("minmax") => Scaling::MinMax,
            Some("hwe") => Scaling::Hwe,
            Some(other) => {
                return Err(Failure::value(format!(
                    "scale = {other:?}: choose None, \"std\", \"minmax\" or, for genotypes, \"hwe\""
                )));
            }
        };
        Ok(Preprocessing { centering, scaling })
    }

    fn momentum(&self) -> Outcome<Option<MomentumChoice>> {
        match (self.momentum.as_deref(), self.lambda2) {
            (None, None) => Ok(None),
            (Some("adaptive"), None) => Ok(Some(MomentumChoice::Adaptive)),
            (Some("dynamic"), None) => Ok(Some(MomentumChoice::Dynamic)),
            (None | Some("oracle"), Some(lambda2)) => Ok(Some(MomentumChoice::Oracle(lambda2))),
            (Some("oracle"), None) => Err(Failure::value(
                "momentum = \"oracle\": give the second eigenvalue as lambda2, or choose \"adaptive\"",
            )),
            (Some(name @ ("adaptive" | "dynamic")), Some(lambda2)) => Err(Failure::value(format!(
                "lambda2 = {lambda2}: momentum \"{name}\" estimates it; choose \"oracle\", or leave lambda2 out"
            ))),
            (Some(other), _) => Err(Failure::value(format!(
                "momentum = {other:?}: choose \"adaptive\", \"dynamic\" or \"oracle\""
            ))),
        }
    }
}

/// Components, one a row, as the columns of a block.
fn first_iterate(components: &PyReadonlyArray2<'_, f64>) -> Outcome<Block> {
    let columns: Vec<Vec<f64>> = components.as_array().rows().into_iter().map(|row| row.to_vec()).collect();
    Ok(Block::from_columns(&columns)?)
}
