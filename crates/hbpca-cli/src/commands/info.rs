//! `hbpca info`: what data or a model is like.

use std::path::Path;
use std::time::Instant;

use hbpca::certificate::Certainty;
use hbpca::missing::Missing;
use hbpca::{ColumnStatistics, FitConfig, Preprocessing, RowChunks};
use hbpca_io::{CertificateRule, ChunkFolder, Format, Probe, Reading, StoredModel};
use hbpca_lab::fit_report::column_names;
use serde::Serialize;

use super::fit::{in_words, preparation};
use super::info_table::MixedTable;
use crate::args::InfoArgs;
use crate::exit::{Exit, Failure};
use crate::output::say::Verbosity;
use crate::output::table::{Side, Table, facts};
use crate::output::{self, json, loadings, number, scree};
use crate::plan::{self, Loaded, Source};

/// Runs `hbpca info`.
pub fn run(args: &InfoArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads, (&args.verbosity).into())?;
    match args.data.data.as_slice() {
        [path] if StoredModel::recognise(path) => {
            let stored = plan::open_model(path)?;
            let name = path.display().to_string();
            match (args.json.json, args.loadings) {
                (true, false) => json::print(&ModelObject::of(&stored)),
                (true, true) => json::print(&LoadingsObject::of(&stored)),
                (false, false) => output::print(&model_report(&stored, &name)),
                (false, true) => output::print(&loadings::lists(&stored, args.top)),
            }?;
        }
        _ if args.loadings => {
            let what = args.data.data.first().map_or_else(String::new, |path| path.display().to_string());
            let text = format!("--loadings: {what} is no model; give a file that `hbpca fit -o` wrote");
            return Err(Failure::Usage(text));
        }
        [path] if ChunkFolder::recognise(path) => {
            let object = DataObject::of_chunks(path, (&args.preparation).into())?;
            let name = path.display().to_string();
            if args.json.json { json::print(&object) } else { output::print(&data_report(&object, &name)) }?;
        }
        _ => describe_data(args)?,
    }
    Ok(Exit::Success)
}

/// A matrix as a whole, or a table with text and gaps column by column.
fn describe_data(args: &InfoArgs) -> Result<(), Failure> {
    let mut source = Source::find(&args.data)?;
    source.prepare_cells(&args.cells)?;
    let loaded = match source.read(Verbosity::from(&args.verbosity)) {
        Ok(loaded) => loaded,
        Err(failure) => {
            let Ok(Some(table)) = MixedTable::look(&args.data) else { return Err(failure) };
            return if args.json.json {
                json::print(&table.object())
            } else {
                output::print(&table.report())
            };
        }
    };
    let config = FitConfig { memory: hbpca_io::machine_memory(), ..FitConfig::default() };
    let (loaded, occurring) = loaded.within(&config, Verbosity::from(&args.verbosity))?;
    let mut object = DataObject::of(&loaded, (&args.preparation).into())?;
    if let Some(columns) = occurring {
        object.add_columns_of_zeros(columns.all - columns.numbers.len());
    }
    if args.json.json { json::print(&object) } else { output::print(&data_report(&object, &loaded.name)) }
}

/// `hbpca info DATA --json`.
#[derive(Serialize)]
struct DataObject {
    n: usize,
    d: usize,
    /// Entries stored.
    nnz: usize,
    /// Entries that are not zero.
    nonzeros: usize,
    /// Their share of all n·d.
    density: f64,
    format: String,
    storage: &'static str,
    bytes_in_memory: usize,
    bytes_read: u64,
    read_seconds: f64,
    labels: bool,
    preprocessing: Preprocessing,
    total_variance: f64,
    columns: ColumnRanges,
}

/// The columns in a few numbers: for each statistic its smallest and its largest value over all columns.
#[derive(Serialize)]
struct ColumnRanges {
    constant: usize,
    names: Option<Vec<String>>,
    min: [f64; 2],
    max: [f64; 2],
    mean: [f64; 2],
    std: [f64; 2],
    #[serde(skip)]
    each: Vec<ColumnSummary>,
}

/// One column.
struct ColumnSummary {
    min: f64,
    max: f64,
    mean: f64,
    std: f64,
}

/// Columns up to which a report has a line for each.
const MOST_LINES: usize = 40;

impl DataObject {
    fn of(loaded: &Loaded, preprocessing: Preprocessing) -> Result<Self, Failure> {
        let (data, matrix) = (&loaded.data, &loaded.data.matrix);
        let statistics =
            ColumnStatistics::new(matrix).map_err(|error| Failure::refused(&error, &loaded.name))?;
        let mut nonzeros = 0;
        for l in 0..matrix.n_rows() {
            matrix.for_each_in_row(l, |_, x| nonzeros += usize::from(x != 0.0));
        }
        Ok(Self {
            n: matrix.n_rows(),
            d: matrix.n_cols(),
            nnz: matrix.nnz(),
            nonzeros,
            density: nonzeros as f64 / (matrix.n_rows() as f64 * matrix.n_cols() as f64),
            format: data.format.to_string(),
            storage: plan::kind(matrix),
            bytes_in_memory: matrix.bytes_per_pass(),
            bytes_read: data.bytes_read,
            read_seconds: loaded.seconds,
            labels: data.labels.is_some(),
            preprocessing,
            total_variance: preprocessing.row_map(&statistics).total_variance(),
            columns: ColumnRanges::of(&statistics, data.column_names.clone()),
        })
    }

    /// Counts columns that do not occur: they are constant, and all of their statistics are 0.
    fn add_columns_of_zeros(&mut self, count: usize) {
        let columns = &mut self.columns;
        self.d += count;
        self.density = self.nonzeros as f64 / (self.n as f64 * self.d as f64);
        (columns.constant, columns.names) = (columns.constant + count, None);
        for [low, high] in [&mut columns.min, &mut columns.max, &mut columns.mean, &mut columns.std] {
            (*low, *high) = (low.min(0.0), high.max(0.0));
        }
    }

    /// From the manifest and the statistics of a chunk folder: its parts are not read.
    fn of_chunks(path: &Path, preprocessing: Preprocessing) -> Result<Self, Failure> {
        let clock = Instant::now();
        let folder = ChunkFolder::open(path)?;
        let statistics = folder.statistics()?;
        let read_seconds = clock.elapsed().as_secs_f64();
        let (n, d, nnz) = (folder.n_rows(), folder.n_cols(), folder.nnz());
        let value = if folder.is_single() { 4 } else { 8 };
        Ok(Self {
            n,
            d,
            nnz,
            nonzeros: folder.nonzeros(),
            density: folder.nonzeros() as f64 / (n as f64 * d as f64),
            format: Format::Chunks.to_string(),
            storage: match (folder.is_sparse(), folder.is_single()) {
                (false, true) => "dense f32",
                (false, false) => "dense f64",
                (true, true) => "sparse f32",
                (true, false) => "sparse f64",
            },
            bytes_in_memory: if folder.is_sparse() { nnz * (value + 4) + 8 * (n + 1) } else { nnz * value },
            bytes_read: 0,
            read_seconds,
            labels: folder.has_labels(),
            preprocessing,
            total_variance: preprocessing.row_map(&statistics).total_variance(),
            columns: ColumnRanges::of(&statistics, folder.column_names().map(<[String]>::to_vec)),
        })
    }
}

impl ColumnRanges {
    fn of(statistics: &ColumnStatistics, names: Option<Vec<String>>) -> Self {
        let std: Vec<f64> = statistics.variance().iter().map(|v| v.sqrt()).collect();
        Self {
            constant: std.iter().filter(|s| **s <= 0.0).count(),
            names,
            min: range(statistics.min()),
            max: range(statistics.max()),
            mean: range(statistics.mean()),
            std: range(&std),
            each: (0..std.len())
                .map(|j| ColumnSummary {
                    min: statistics.min()[j],
                    max: statistics.max()[j],
                    mean: statistics.mean()[j],
                    std: std[j],
                })
                .collect(),
        }
    }

    /// A line for each column, where they are few and have names.
    fn table(&self) -> Option<String> {
        let names = self.names.as_ref().filter(|names| names.len() <= MOST_LINES)?;
        let mut table = Table::new(&[
            ("column", Side::Left),
            ("smallest", Side::Right),
            ("largest", Side::Right),
            ("mean", Side::Right),
            ("deviation", Side::Right),
        ]);
        for (name, ColumnSummary { min, max, mean, std }) in names.iter().zip(&self.each) {
            let [min, max, mean, std] = [min, max, mean, std].map(|x| number::short(*x));
            table.row([name.clone(), min, max, mean, std]);
        }
        Some(table.render())
    }
}

fn range(values: &[f64]) -> [f64; 2] {
    values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(*x), high.max(*x)])
}

fn data_report(object: &DataObject, name: &str) -> String {
    let between = |[low, high]: [f64; 2]| format!("{} … {}", number::short(low), number::short(high));
    let columns = &object.columns;
    let names = columns.names.as_ref().map_or_else(
        || "none".into(),
        |names| {
            let shown = names.iter().take(6).map(String::as_str).collect::<Vec<_>>().join(", ");
            if names.len() > 6 { format!("{shown}, …") } else { shown }
        },
    );
    let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let read = (mebibytes(object.bytes_read), number::seconds(object.read_seconds));
    let table = columns.table().map_or_else(String::new, |table| format!("\n{table}"));
    let facts = facts(&[
        ("data", format!("{name} ({})", object.format)),
        ("rows n", number::count(object.n)),
        (
            "columns d",
            format!("{}, of which {} constant", number::count(object.d), number::count(columns.constant)),
        ),
        (
            "non-zeros",
            format!("{}, density {}", number::count(object.nonzeros), number::density(object.density)),
        ),
        ("stored as", format!("{}, {}", object.storage, mebibytes(object.bytes_in_memory as u64))),
        ("read", format!("{} in {}", read.0, read.1)),
        ("labels", if object.labels { "yes" } else { "no" }.into()),
        ("column names", names),
        ("smallest values", between(columns.min)),
        ("largest values", between(columns.max)),
        ("means", between(columns.mean)),
        ("deviations", between(columns.std)),
        (
            "total variance",
            format!("{} ({})", number::value(object.total_variance), preparation(object.preprocessing)),
        ),
    ]);
    format!("{facts}{table}")
}

/// `hbpca info MODEL --json`.
#[derive(Serialize)]
struct ModelObject<'a> {
    n: usize,
    d: usize,
    /// How many columns there are, where only the d that occur are the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_columns: Option<usize>,
    k: usize,
    weight: f64,
    weight_column: Option<&'a str>,
    software: &'a str,
    solver: &'a str,
    chosen_because: &'a str,
    seed: u64,
    tol: f64,
    outcome: hbpca::Outcome,
    passes: f64,
    full_passes: u64,
    seconds: f64,
    preprocessing: Preprocessing,
    feature_names: Option<&'a [String]>,
    eigenvalues: &'a [f64],
    explained_variance: Vec<f64>,
    explained_variance_ratio: Vec<f64>,
    total_variance: f64,
    certificate: &'a hbpca::Certificate,
    history_length: usize,
    history: Vec<&'a hbpca::Record>,
}

impl<'a> ModelObject<'a> {
    fn of(stored: &'a StoredModel) -> Self {
        let (model, origin, summary) = (&stored.model, &stored.origin, stored.model.summary());
        Self {
            n: summary.n,
            d: summary.d,
            all_columns: origin.reading.columns.as_ref().map(|columns| columns.all),
            k: model.n_components(),
            weight: summary.weight,
            weight_column: origin.reading.weight_column.as_deref(),
            software: &origin.software,
            solver: &origin.solver,
            chosen_because: &origin.chosen_because,
            seed: origin.seed,
            tol: origin.tol,
            outcome: origin.outcome,
            passes: origin.passes,
            full_passes: origin.full_passes,
            seconds: origin.seconds,
            preprocessing: summary.preprocessing,
            feature_names: model.feature_names(),
            eigenvalues: model.eigenvalues(),
            explained_variance: model.explained_variance(),
            explained_variance_ratio: model.explained_variance_ratio(),
            total_variance: summary.total_variance,
            certificate: &origin.certificate,
            history_length: origin.history.len(),
            history: json::thinned(&origin.history),
        }
    }
}

/// `hbpca info MODEL --loadings --json`: the same with the components.
#[derive(Serialize)]
struct LoadingsObject<'a> {
    #[serde(flatten)]
    model: ModelObject<'a>,
    /// Names, or what stands for them.
    columns: Vec<String>,
    /// k lists of d numbers.
    components: Vec<&'a [f64]>,
}

impl<'a> LoadingsObject<'a> {
    fn of(stored: &'a StoredModel) -> Self {
        let components = (0..stored.model.n_components()).map(|i| stored.model.component(i)).collect();
        Self { model: ModelObject::of(stored), columns: column_names(stored, None), components }
    }
}

/// What is proved, and by which rule or probe.
fn certificate_in_words(stored: &StoredModel) -> String {
    let origin = &stored.origin;
    let rule = match origin.rule {
        CertificateRule::EachEigenvalue => "",
        CertificateRule::FirstEigenvalue => {
            "; made by the earlier rule, residuals relative to the first eigenvalue: `hbpca check` judges it by today's"
        }
    };
    let given = |probe: &Probe| probe.seed_is_given && origin.certificate.certainty == Certainty::Probability;
    let start = if origin.probe.as_ref().is_some_and(given) {
        "; if the start of the probe was as good as random for this data"
    } else {
        ""
    };
    format!("{}{start}{rule}", origin.certificate)
}

/// What becomes of missing values, and became of those that there were.
fn missing_in_words(reading: &Reading) -> Option<String> {
    match (&reading.missing_values, reading.missing) {
        (Some(report), _) => Some(report.to_string()),
        (None, Missing::Error) => None,
        (None, policy) => Some(format!("{policy}; there were none")),
    }
}

/// Which layer was read, what was done with its counts, and which genes were used.
fn counts_in_words(reading: &Reading) -> Option<String> {
    let layer = reading.layer.as_ref().map(|layer| format!("layer `{layer}`"));
    let mask = reading.mask.as_ref().map(|mask| format!("genes of `{mask}`"));
    let total = reading.counts.total.map(|total| format!("each cell brought to {total}"));
    let log1p = reading.counts.log1p.then(|| "log(1 + x)".to_owned());
    let words: Vec<String> = [layer, total, log1p, mask].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// What the rows weigh, where they have weights.
fn weight(stored: &StoredModel) -> String {
    let summary = stored.model.summary();
    #[allow(clippy::float_cmp, reason = "without weights this is a count")]
    let weighted = summary.weight != summary.n as f64;
    match &stored.origin.reading.weight_column {
        Some(column) => format!(" of weight {} in all (column `{column}`)", number::value(summary.weight)),
        None if weighted => format!(" of weight {} in all", number::value(summary.weight)),
        None => String::new(),
    }
}

fn model_report(stored: &StoredModel, name: &str) -> String {
    let (model, origin, summary) = (&stored.model, &stored.origin, stored.model.summary());
    let count = number::count;
    let of_all = origin.reading.columns.as_ref().map_or_else(String::new, in_words);
    let mut lines = vec![
        ("model", name.into()),
        ("components", format!("{} of {} columns{of_all}", count(model.n_components()), count(summary.d))),
        (
            "fitted on",
            format!("{} rows{}, {}", count(summary.n), weight(stored), preparation(summary.preprocessing)),
        ),
        ("solver", format!("{} ({}), seed {}", origin.solver, origin.chosen_because, origin.seed)),
        (
            "cost",
            format!(
                "{} in {}",
                number::plural(origin.passes, "pass", "passes"),
                number::seconds(origin.seconds)
            ),
        ),
        ("outcome", format!("{}, tolerance {}", origin.outcome, number::small(origin.tol))),
        ("certificate", certificate_in_words(stored)),
        ("total variance", number::value(summary.total_variance)),
        ("written by", origin.software.clone()),
    ];
    if let Some(words) = missing_in_words(&origin.reading) {
        lines.insert(3, ("missing values", words));
    }
    if let Some(words) = counts_in_words(&origin.reading) {
        lines.insert(3, ("cells", words));
    }
    facts(&lines) + "\n" + &scree::plot(model.eigenvalues(), &model.explained_variance_ratio())
}
