//! The objects that `--json` prints. Their keys are fixed: scripts rely on them.
//!
//! JSON has no infinity: a number that is not finite is printed as `null`.

use std::path::{Path, PathBuf};

use hbpca::missing::MissingReport;
use hbpca::plan::StreamPlan;
use hbpca::{Certificate, Fit, Limits, Outcome, Record};
use hbpca_io::ReadError;
use serde::Serialize;

use crate::exit::{Exit, Failure};

/// The version of the objects' keys and their meaning: in 2 residuals are relative to the eigenvalue of their own component.
const SCHEMA: u32 = 2;
/// Records of a history that are printed: `--trace` has all.
const MOST_RECORDS: usize = 1000;

/// Every object says first which version it is of.
#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: u32,
    #[serde(flatten)]
    object: &'a T,
}

/// `hbpca fit --json`.
#[derive(Serialize)]
pub struct FitObject<'a> {
    n: usize,
    d: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    all_columns: Option<usize>,
    k: usize,
    nnz: usize,
    solver: &'a str,
    chosen_because: &'a str,
    outcome: Outcome,
    eigenvalues: &'a [f64],
    explained_variance: Vec<f64>,
    explained_variance_ratio: Vec<f64>,
    total_variance: f64,
    passes: f64,
    full_passes: u64,
    statistics_passes: f64,
    probe_passes: u64,
    probe_seed: Option<u64>,
    probe_seed_is_given: bool,
    seconds: f64,
    read_seconds: f64,
    seed: u64,
    threads: usize,
    ranks: usize,
    tol: f64,
    angle: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<&'a StreamObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<MissingReport>,
    certificate: &'a Certificate,
    /// How many records there are.
    history_length: usize,
    history: Vec<&'a Record>,
}

/// What a fit of rows on disk planned and read.
#[derive(Serialize)]
pub struct StreamObject {
    memory: u64,
    planned_memory: u64,
    planned_passes: f64,
    planned_bytes: u64,
    chunk_bytes: u64,
    pool_rows: usize,
    bytes_read: u64,
}

impl StreamObject {
    /// A fit that read its rows from disk.
    pub fn new(fit: &Fit, plan: &StreamPlan, memory: u64) -> Self {
        Self {
            memory,
            planned_memory: plan.memory,
            planned_passes: plan.passes,
            planned_bytes: plan.bytes,
            chunk_bytes: plan.chunk_bytes,
            pool_rows: plan.pool_rows,
            bytes_read: fit.bytes_read,
        }
    }
}

impl<'a> FitObject<'a> {
    /// The same for data of so many columns, of which d occur.
    pub fn among(self, all_columns: Option<usize>) -> Self {
        Self { all_columns, ..self }
    }

    /// What a fit has to say.
    pub fn new(
        fit: &'a Fit,
        nnz: usize,
        limits: &Limits,
        read_seconds: f64,
        stream: Option<&'a StreamObject>,
    ) -> Self {
        let (model, summary) = (&fit.model, fit.model.summary());
        Self {
            n: summary.n,
            d: summary.d,
            all_columns: None,
            k: model.n_components(),
            nnz,
            solver: fit.solver.name(),
            chosen_because: &fit.chosen_because,
            outcome: fit.outcome,
            eigenvalues: model.eigenvalues(),
            explained_variance: model.explained_variance(),
            explained_variance_ratio: model.explained_variance_ratio(),
            total_variance: summary.total_variance,
            passes: fit.passes,
            full_passes: fit.full_passes,
            statistics_passes: fit.statistics_passes,
            probe_passes: fit.probe_passes,
            probe_seed: fit.probe.map(|probe| probe.seed),
            probe_seed_is_given: fit.probe.is_some_and(|probe| probe.seed_is_given),
            seconds: fit.seconds,
            read_seconds,
            seed: fit.seed,
            threads: fit.threads,
            ranks: fit.ranks,
            tol: limits.tol,
            angle: limits.angle,
            stream,
            missing: fit.missing,
            certificate: &fit.certificate,
            history_length: fit.history.len(),
            history: thinned(&fit.history),
        }
    }
}

/// At most [`MOST_RECORDS`] of them: the first, the last, and others at equal distances between.
pub fn thinned(history: &[Record]) -> Vec<&Record> {
    if history.len() <= MOST_RECORDS {
        return history.iter().collect();
    }
    (0..MOST_RECORDS).map(|i| &history[i * (history.len() - 1) / (MOST_RECORDS - 1)]).collect()
}

/// A matrix that was written.
#[derive(Serialize)]
pub struct TableObject {
    /// Rows.
    pub n: usize,
    /// Columns.
    pub d: usize,
    /// The format that was read.
    pub from: String,
    /// The format that was written.
    pub format: String,
    /// The file.
    pub output: PathBuf,
}

/// A page that was written.
#[derive(Serialize)]
pub struct PageObject<'a> {
    /// The file.
    pub output: &'a Path,
}

/// What every command prints when it fails.
#[derive(Serialize)]
pub struct FailureObject {
    error: ErrorObject,
    exit_code: u8,
}

#[derive(Serialize)]
struct ErrorObject {
    /// `usage`, `input`, `output`, `memory` or `ranks`.
    kind: &'static str,
    message: String,
    /// The file at fault, where one is known.
    file: Option<String>,
    /// From 1: the line of a text file, or the row of another.
    line: Option<u64>,
    /// From 1: the character of a text file, or the column of another.
    column: Option<u64>,
}

impl FailureObject {
    /// What went wrong, where, and how the program ends.
    pub fn new(failure: &Failure) -> Self {
        let (file, line, column) = match failure {
            Failure::Read(ReadError::Text { file, line, column, .. }) => {
                (Some(file.clone()), Some(*line), Some(*column))
            }
            Failure::Read(ReadError::Entry { file, row, column, .. }) => {
                (Some(file.clone()), Some(*row), Some(*column))
            }
            Failure::Read(error) => (Some(error.file().to_owned()), None, None),
            Failure::Output { file, .. } | Failure::NoRoom { file, .. } => (Some(file.clone()), None, None),
            Failure::Usage(_)
            | Failure::Input(_)
            | Failure::Memory(_)
            | Failure::OnRank { .. }
            | Failure::Ranks(_) => (None, None, None),
        };
        let kind = match failure {
            Failure::Usage(_) | Failure::OnRank { exit: Exit::Usage, .. } => "usage",
            Failure::Memory(_)
            | Failure::Read(ReadError::Memory { .. })
            | Failure::OnRank { exit: Exit::Memory, .. } => "memory",
            Failure::Input(_) | Failure::Read(_) | Failure::OnRank { .. } => "input",
            Failure::Ranks(_) => "ranks",
            Failure::Output { .. } | Failure::NoRoom { .. } => "output",
        };
        let error = ErrorObject { kind, message: failure.to_string(), file, line, column };
        Self { error, exit_code: failure.exit() as u8 }
    }
}

/// One line of JSON on standard output.
pub fn print(object: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(&Versioned { schema: SCHEMA, object })
        .map_err(|error| Failure::output("standard output", error))?;
    super::print_as_it_is(&(escaped(&text) + "\n"))
}

/// JSON in which control characters beyond ASCII, which strings may hold as they are, are escaped too: terminals obey them.
fn escaped(text: &str) -> String {
    let escape = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    if text.contains(char::is_control) { text.chars().map(escape).collect() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_keeps_its_ends() {
        let history = |length: u32| -> Vec<Record> {
            let record = |i: u32| {
                let mut record = Record::default();
                record.passes = f64::from(i);
                record
            };
            (0..length).map(record).collect()
        };
        let short = history(1000);
        assert_eq!(thinned(&short).len(), 1000);
        let long = history(123_457);
        let kept: Vec<f64> = thinned(&long).iter().map(|record| record.passes).collect();
        assert_eq!(
            (kept.len(), kept.first().copied(), kept.last().copied()),
            (1000, Some(0.0), Some(123_456.0))
        );
        assert!(kept.is_sorted_by(|a, b| a < b));
    }
}
