//! Models on disk: safetensors, readable by the public library of that name.
//!
//! | tensor | shape | content |
//! |---|---|---|
//! | `components` | k×d, f64 | one component a row, unit length |
//! | `eigenvalues` | k, f64 | of C = (1/n)Σaaᵀ, descending |
//! | `explained_variance` | k, f64 | the same with denominator n − 1 |
//! | `mean` or `shift` | d, f64 | what is subtracted from every row, if anything: the means, or the minima |
//! | `scale` | d, f64 | what every column is divided by, if anything |
//! | `history` | r×9, f64 | one row for each certified iterate; NaN where a number is unknown |
//! | `columns` | d, u32 | the numbers of the columns, from 0, where only those that occur in sparse data are part of the model |
//! | `feature_names` | bytes | a JSON array of the d column names, in their order, where the data had names |
//!
//! Everything else is one JSON object in the metadata under the key `hbpca` ([`header`]). A file is believed only as far as
//! its bytes bear it out: sizes, finiteness and the agreement of all parts are checked before a model is made of it, and so is
//! the [`digest`] where there is one.

mod digest;
mod header;
mod tensors;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use hbpca::missing::{Missing, MissingReport};
use hbpca::{Certificate, CountTransform, Fit, Model, Outcome, Record};
use serde::{Deserialize, Serialize};

use crate::{Categories, OccurringColumns, OutputFile, ReadError, WriteError};
use header::Header;
pub(crate) use tensors::{RECORD, numbers_of, record_to_row, records_of};

/// A model with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredModel {
    /// Components and variances.
    pub model: Model,
    /// How it came about.
    pub origin: Origin,
}

/// What made a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The software, with its version.
    pub software: String,
    /// The solver, by the name users type.
    pub solver: String,
    /// Why that solver.
    pub chosen_because: String,
    /// The seed.
    pub seed: u64,
    /// The tolerance that was asked for.
    pub tol: f64,
    /// How the run ended.
    pub outcome: Outcome,
    /// What is proved about the model.
    pub certificate: Certificate,
    /// What its residuals are relative to.
    pub rule: CertificateRule,
    /// Rows read by the solver, divided by n.
    pub passes: f64,
    /// Complete passes of the solver.
    pub full_passes: u64,
    /// Seconds of the fit, without reading.
    pub seconds: f64,
    /// The probe that followed the fit, where one was asked for.
    pub probe: Option<Probe>,
    /// What became of the data before it was fitted.
    pub reading: Reading,
    /// One record for every certified iterate.
    pub history: Vec<Record>,
}

/// What became of the data before it was fitted: `check` and `transform` do the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reading {
    /// The column that held the weights of the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_column: Option<String>,
    /// What becomes of missing values.
    pub missing: Missing,
    /// What was done about those that there were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_values: Option<MissingReport>,
    /// Columns whose categories are the last features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Categories>,
    /// Which columns of sparse data are the model's, where those that do not occur were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<OccurringColumns>,
    /// The layer of an `.h5ad` file that was read instead of X.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// The column of its genes that chose some of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    /// What was done with the counts of each cell.
    #[serde(skip_serializing_if = "CountTransform::is_identity")]
    pub counts: CountTransform,
}

impl Reading {
    /// The ridge of the fit, with which rows with holes are transformed.
    pub fn ridge(&self) -> f64 {
        self.missing_values.and_then(|report| report.stationary_point).map_or(0.0, |point| point.ridge)
    }
}

/// What the residuals of a certificate are relative to, and by that when a component counted as converged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateRule {
    /// To the eigenvalue of their own component.
    EachEigenvalue,
    /// To the first eigenvalue, as before version 0.3.
    FirstEigenvalue,
}

/// A probe, as a model remembers it; what it found is part of the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Full passes made.
    pub passes: u64,
    /// The seed, to repeat it with.
    pub seed: u64,
    /// Whether the seed was given rather than drawn by the operating system.
    pub seed_is_given: bool,
}

impl Probe {
    fn of_fit(fit: &Fit) -> Option<Self> {
        let of = |probe: &hbpca::probe::ProbeResult| Self {
            passes: probe.passes,
            seed: probe.seed,
            seed_is_given: probe.seed_is_given,
        };
        fit.probe.as_ref().map(of)
    }
}

impl StoredModel {
    /// The model of a fit that was asked for the tolerance `tol`.
    pub fn of_fit(fit: &Fit, chosen_because: &str, tol: f64) -> Self {
        let origin = Origin {
            software: concat!("hbpca ", env!("CARGO_PKG_VERSION")).into(),
            solver: fit.solver.name().into(),
            chosen_because: chosen_because.into(),
            seed: fit.seed,
            tol,
            outcome: fit.outcome,
            certificate: header::as_stored(&fit.certificate),
            rule: CertificateRule::EachEigenvalue,
            passes: fit.passes,
            full_passes: fit.full_passes,
            seconds: fit.seconds,
            probe: Probe::of_fit(fit),
            reading: Reading::default(),
            history: fit.history.clone(),
        };
        Self { model: fit.model.clone(), origin }
    }

    /// The same model, whose columns have these names; refuses another number of them.
    pub fn with_feature_names(self, names: Option<Vec<String>>) -> Result<Self, hbpca::Error> {
        Ok(Self { model: self.model.with_feature_names(names)?, origin: self.origin })
    }

    /// The same model of data that was read so.
    #[must_use]
    pub fn with_reading(mut self, reading: Reading) -> Self {
        self.origin.reading = reading;
        self
    }

    /// Writes the model and gives the file its name.
    pub fn write(&self, mut out: OutputFile) -> Result<(), WriteError> {
        let bytes = self.to_bytes().map_err(|message| WriteError::unsuitable(out.name(), message))?;
        out.write_all(&bytes).map_err(|source| WriteError::io(out.name(), source))?;
        out.commit()
    }

    /// Reads a model file.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        let refused = |source| ReadError::io(&name, source);
        let mut file = File::open(path).map_err(refused)?;
        if !file.metadata().map_err(refused)?.is_file() {
            return Err(ReadError::malformed(&name, "a model is a regular file, and this is not one"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(refused)?;
        Self::from_bytes(&bytes).map_err(|message| ReadError::malformed(&name, message))
    }

    /// Whether a file's first bytes are those of a safetensors file: the length of a header, and its opening brace.
    pub fn recognise(path: &Path) -> bool {
        let mut head = [0; 9];
        File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok_and(|()| {
            let [length @ .., brace] = head;
            u64::from_le_bytes(length) <= header::MOST_BYTES && brace == b'{'
        })
    }

    /// The content of a model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        tensors::serialize(self, &Header::of(self).to_json()?)
    }

    /// The model in a file's content, or what is wrong with it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (header, tensors) = tensors::deserialize(bytes)?;
        let summary = header.summary(tensors.eigenvalues.clone())?;
        let (k, d) = (summary.eigenvalues.len(), summary.d);
        let mut origin = header.origin(&tensors.eigenvalues, tensors.history)?;
        origin.reading.columns = match (origin.reading.columns, tensors.columns) {
            (None, _) => None,
            (Some(columns), Some(numbers)) => Some(columns.with_numbers(numbers, d)?),
            (Some(_), None) => return Err("the tensor `columns` is missing".into()),
        };
        if tensors.components.len() != k.checked_mul(d).ok_or("its header claims an impossible size")? {
            return Err(format!(
                "`components` has {} numbers where {k}×{d} are needed",
                tensors.components.len()
            ));
        }
        let model = Model::from_parts(tensors.components, summary, tensors.shift, tensors.scale)
            .and_then(|model| model.with_feature_names(tensors.feature_names))
            .map_err(|error| error.to_string())?;
        if tensors.is_undamaged == Some(false) {
            return Err(
                "its digest does not fit its content: the file was damaged or changed after it was written; \
                        fit the model again, or take a copy that is whole"
                    .into(),
            );
        }
        let follows =
            |(stored, variance): (&f64, f64)| (stored - variance).abs() <= 8.0 * f64::EPSILON * variance;
        if let Some(stored) = tensors.explained_variance
            && !stored.iter().zip(model.explained_variance()).all(follows)
        {
            return Err(
                "`explained_variance` does not follow from `eigenvalues` and the weight of the rows".into()
            );
        }
        Ok(Self { model, origin })
    }
}

#[cfg(test)]
mod tests;
