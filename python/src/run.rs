//! A fit in a thread of its own, while the calling thread listens to signals and serves the callback.
//!
//! The interpreter is detached throughout; it is attached for each callback, which therefore runs in the thread that called
//! `fit`, and twenty times a second to learn of Ctrl-C. A callback that wants to stop does so at its outer iterate, with a
//! result; an exception, that of Ctrl-C included, breaks the run off in the middle of a pass.

use std::ffi::CString;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use hbpca::genotypes::Genotypes;
use hbpca::missing::Missing;
use hbpca::{
    CancelToken, Event, Fit, FitConfig, Matrix, Observer, RankRows, Record, RowChunks, RowMap, RowSurvey,
};
use hbpca_io::{BedFile, ByteSize, OnDisk, Place, ReadOptions};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::chunks::{Iterated, Sliced, Surveyed, memory_of};
use crate::components::{Wanted, ask};
use crate::errors::{Failure, Outcome};
use crate::fitted::{Fitted, record_dict};
use crate::input::{FiniteCheck, Input, MemoryLimit, contiguous};
use crate::partitions::PythonPartitions;
use crate::pool::detach;
use crate::ranks::PythonRanks;
use crate::settings::Settings;
use crate::snapshot::Snapshots;

/// Longest wait before signals are looked at.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Fits rows. `callback` gets every record as a dict, and with `snapshots` also the model as it stands; it stops the run by
/// returning something true.
#[pyfunction]
#[pyo3(signature = (rows, settings, *, n_components=None, weights=None, callback=None, snapshots=false))]
// Owned, because these types are what the arguments are converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn fit(
    py: Python<'_>,
    rows: Input<'_>,
    settings: Settings<'_>,
    n_components: Option<Wanted>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
    snapshots: bool,
) -> Outcome<Fitted> {
    let weights = weights.as_ref().map(contiguous).transpose()?;
    let mut config = settings.config()?;
    warn_of_threads(py, config.threads)?;
    let (matrix, file);
    let names;
    let place = place_of(py, &rows, &config, weights)?;
    let (data, shape) = match place {
        Placed::OnDisk { rows, memory } => {
            let shape = (rows.n_rows(), rows.n_cols());
            names = rows.column_names().map(<[String]>::to_vec);
            (Data::OnDisk { rows, weights, memory }, shape)
        }
        Placed::Genotypes { file: read, memory } => {
            file = read;
            // The default of tables; genotypes that are missing are the mean everywhere.
            if config.missing == Missing::Error {
                config.missing = Missing::Mean;
            }
            names = Some(file.column_names());
            let shape = (file.genotypes.n_rows(), file.genotypes.n_cols());
            (Data::Genotypes { genotypes: &file.genotypes, memory, weights }, shape)
        }
        Placed::Iterated { chunks, survey, memory } => {
            let shape = (chunks.n_rows(), chunks.n_cols());
            names = rows.names();
            (Data::Iterated { chunks, survey, memory, weights }, shape)
        }
        Placed::Sliced { rows, memory } => {
            let shape = (rows.n_rows(), rows.n_cols());
            names = None;
            (Data::Sliced { rows, memory, weights }, shape)
        }
        Placed::Loaded(loaded) => {
            names = rows.names();
            let shape = (loaded.n_rows(), loaded.n_cols());
            (Data::Loaded { matrix: loaded, weights }, shape)
        }
        Placed::AsGiven => {
            (matrix, names) = rows.named_matrix(py, FiniteCheck::Later, config.missing)?;
            (Data::InMemory { matrix: &matrix, weights }, (matrix.n_rows(), matrix.n_cols()))
        }
    };
    let selection = ask(&mut config, n_components.as_ref(), settings.svd_solver(), shape)?;
    let snapshots = snapshots.then(|| Snapshots::new(&config, shape, selection));
    let run = Run { data, callback: callback.as_ref() };
    let fit = run.fit(py, &config, snapshots)?.ok_or_else(|| Failure::value("no rank has the fit"))?;
    let fit = selection.of(fit);
    Fitted::of_fit(&fit, config.limits.tol).treating(config.missing, &fit).named(names)
}

/// Fits the rows of all ranks, of which these are one's own and `shape` is that of all. The first rank gets the result.
#[pyfunction]
#[pyo3(signature = (rows, shape, comm, settings, *, n_components=None, weights=None, callback=None))]
#[allow(clippy::needless_pass_by_value, reason = "these types are what the arguments are converted into")]
#[allow(clippy::too_many_arguments, reason = "each is a keyword of Python")]
pub fn fit_on_ranks(
    py: Python<'_>,
    rows: Input<'_>,
    shape: (usize, usize),
    comm: Bound<'_, PyAny>,
    settings: Settings<'_>,
    n_components: Option<Wanted>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
) -> Outcome<Option<Fitted>> {
    let weights = weights.as_ref().map(contiguous).transpose()?;
    let mut config = settings.config()?;
    let matrix = rows.matrix(FiniteCheck::Later)?;
    let ranks = PythonRanks::new(&comm)?;
    let selection = ask(&mut config, n_components.as_ref(), settings.svd_solver(), shape)?;
    let data = Data::OnRanks { matrix: &matrix, weights, ranks: &ranks };
    let fit = Run { data, callback: callback.as_ref() }.fit(py, &config, None)?;
    Ok(fit.map(|fit| Fitted::of_fit(&selection.of(fit), config.limits.tol)))
}

/// Fits the rows of partitions that a scheduler owns, all of which have the given shape; a round takes about `round_cost` seconds.
#[pyfunction]
#[pyo3(signature = (partitions, shape, round_cost, settings, *, n_components=None, callback=None))]
#[allow(clippy::needless_pass_by_value, reason = "these types are what the arguments are converted into")]
pub fn fit_partitions(
    py: Python<'_>,
    partitions: Bound<'_, PyAny>,
    shape: (usize, usize),
    round_cost: f64,
    settings: Settings<'_>,
    n_components: Option<Wanted>,
    callback: Option<Py<PyAny>>,
) -> Outcome<Fitted> {
    let mut config = settings.config()?;
    let partitions = PythonPartitions::new(&partitions)?;
    let selection = ask(&mut config, n_components.as_ref(), settings.svd_solver(), shape)?;
    let data = Data::Partitions { partitions: &partitions, round_cost };
    let fit = Run { data, callback: callback.as_ref() }.fit(py, &config, None);
    let fit = match partitions.take_raised() {
        Some(raised) => return Err(raised.into()),
        None => fit?.ok_or_else(|| Failure::value("no rank has the fit"))?,
    };
    Ok(Fitted::of_fit(&selection.of(fit), config.limits.tol))
}

/// Where the rows are during the fit.
enum Placed {
    /// In NumPy's memory, or in a file that fits.
    AsGiven,
    /// Read from a source of chunks that fits.
    Loaded(Matrix<'static>),
    /// In a file of genotypes, packed.
    Genotypes { file: BedFile, memory: u64 },
    /// In a file that does not fit.
    OnDisk { rows: Box<dyn OnDisk>, memory: u64 },
    /// In chunks that do not fit.
    Iterated { chunks: Iterated, survey: Box<RowSurvey>, memory: u64 },
    /// In an array on disk that does not fit.
    Sliced { rows: Sliced, memory: u64 },
}

/// Decides by what the rows and a fit beside them need and what they may take. Chunks are iterated once for that.
fn place_of(
    py: Python<'_>,
    rows: &Input<'_>,
    config: &FitConfig,
    weights: Option<&[f64]>,
) -> Outcome<Placed> {
    match rows {
        Input::Dense { .. } | Input::Csr { .. } => Ok(Placed::AsGiven),
        Input::File { path, memory_limit } if BedFile::recognise(path) => {
            let memory = memory_of(memory_limit.as_ref())?;
            let beside = |n, d| config.memory_beside_genotypes(n, d);
            let file = detach(py, || BedFile::place(path, &ReadOptions::default(), memory, beside))?;
            Ok(Placed::Genotypes { file, memory })
        }
        Input::File { path, memory_limit } => {
            let memory = memory_limit.as_ref().map(MemoryLimit::size).transpose()?;
            let beside = |rows: &dyn RowChunks| config.memory_beside(rows);
            let options = ReadOptions::default();
            Ok(
                match detach(py, || hbpca_io::place(&hbpca_io::Input::path(path), &options, memory, beside))?
                {
                    Place::Memory => Placed::AsGiven,
                    Place::Disk { rows, memory } => Placed::OnDisk { rows, memory },
                },
            )
        }
        Input::Iterated { begin, memory_limit, .. } => {
            Ok(match Iterated::survey(py, begin, memory_limit.as_ref(), config, weights)? {
                Surveyed::InMemory(matrix) => Placed::Loaded(matrix),
                Surveyed::Streamed(chunks, survey, memory) => Placed::Iterated { chunks, survey, memory },
            })
        }
        Input::Sliced { memory_limit, .. } => {
            let memory = memory_of(memory_limit.as_ref())?;
            let Some(mut rows) = Sliced::open(rows) else { return Ok(Placed::AsGiven) };
            if rows.fits(memory, config) {
                Ok(Placed::Loaded(rows.whole(py)?))
            } else {
                Ok(Placed::Sliced { rows, memory })
            }
        }
    }
}

/// Says that fewer threads are used than were asked for, where that is so.
fn warn_of_threads(py: Python<'_>, asked: usize) -> PyResult<()> {
    let most = hbpca::plan::most_threads();
    if asked <= most {
        return Ok(());
    }
    let text = format!("threads = {asked}: this machine runs {most} at once, and no more are used");
    let text = CString::new(text).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

/// What is fitted.
enum Data<'a> {
    InMemory { matrix: &'a Matrix<'a>, weights: Option<&'a [f64]> },
    Loaded { matrix: Matrix<'static>, weights: Option<&'a [f64]> },
    OnDisk { rows: Box<dyn OnDisk>, weights: Option<&'a [f64]>, memory: u64 },
    Genotypes { genotypes: &'a Genotypes, memory: u64, weights: Option<&'a [f64]> },
    Iterated { chunks: Iterated, survey: Box<RowSurvey>, memory: u64, weights: Option<&'a [f64]> },
    Sliced { rows: Sliced, memory: u64, weights: Option<&'a [f64]> },
    OnRanks { matrix: &'a Matrix<'a>, weights: Option<&'a [f64]>, ranks: &'a PythonRanks },
    Partitions { partitions: &'a PythonPartitions, round_cost: f64 },
}

impl Data<'_> {
    fn is_small(&self) -> bool {
        match self {
            Self::InMemory { matrix, .. } => matrix.is_small(),
            Self::Loaded { matrix, .. } => matrix.is_small(),
            _ => false,
        }
    }

    fn fit(
        self,
        config: &FitConfig,
        cancel: &CancelToken,
        observers: &mut [&mut (dyn Observer + Send)],
    ) -> Outcome<Option<Fit>> {
        match self {
            Self::InMemory { matrix, weights } => {
                let config = within_machine(config, matrix);
                Ok(Some(config.run().weights(weights).observers(observers).cancelled_by(cancel).fit(matrix)?))
            }
            Self::Loaded { matrix, weights } => {
                let config = within_machine(config, &matrix);
                let run = config.run().weights(weights).observers(observers).cancelled_by(cancel);
                Ok(Some(match config.missing {
                    Missing::Error => run.fit(&matrix)?,
                    _ => run.fit_completing(matrix)?.fit,
                }))
            }
            Self::OnDisk { rows, weights, memory } => {
                let run = config.run().weights(weights).observers(observers).cancelled_by(cancel);
                Ok(Some(run.fit_streamed(rows, memory)?))
            }
            Self::Genotypes { genotypes, memory, weights } => {
                let config = FitConfig { memory: Some(memory), ..config.clone() };
                let run = config.run().weights(weights).observers(observers).cancelled_by(cancel);
                Ok(Some(run.fit_genotypes(genotypes)?))
            }
            Self::Iterated { chunks, survey, memory, weights } => {
                let run = config.run().weights(weights).observers(observers).cancelled_by(cancel);
                let held = chunks.held_in_python();
                run.surveyed(*survey)
                    .fit_streamed(chunks, memory.saturating_sub(held))
                    .map(Some)
                    .map_err(|error| with_memory_of_python(error, memory, held))
            }
            Self::Sliced { rows, memory, weights } => {
                let run = config.run().weights(weights).observers(observers).cancelled_by(cancel);
                Ok(Some(run.fit_streamed(rows, memory)?))
            }
            Self::OnRanks { matrix, weights, ranks } => {
                let config = within_machine(config, matrix);
                let run = config.run().weights(weights).observers(observers).cancelled_by(cancel);
                Ok(run.fit_on_ranks(Ok(RankRows::Memory(matrix)), ranks)?)
            }
            Self::Partitions { partitions, round_cost } => {
                let run = config.run().observers(observers).cancelled_by(cancel);
                Ok(Some(run.fit_partitions(partitions, round_cost)?))
            }
        }
    }
}

/// The same within the machine's memory. The rows are there already, or mapped: it is for what comes besides.
fn within_machine(config: &FitConfig, matrix: &Matrix<'_>) -> FitConfig {
    let beside = |all: u64| all.saturating_add(matrix.bytes_per_pass() as u64);
    FitConfig { memory: hbpca_io::machine_memory().map(beside), ..config.clone() }
}

/// A limit that is too small, as it was given: what Python holds comes on top of what the core needs.
fn with_memory_of_python(error: hbpca::Error, memory: u64, held: u64) -> Failure {
    match error {
        hbpca::Error::Parameter { name: "memory", advice, .. } => {
            let (memory, held) = (ByteSize(memory), held.div_ceil(1 << 20));
            Failure::value(format!(
                "memory_limit = {memory}: {advice}, and {held}M for the chunks that Python holds"
            ))
        }
        other => other.into(),
    }
}

struct Run<'a> {
    data: Data<'a>,
    callback: Option<&'a Py<PyAny>>,
}

impl Run<'_> {
    fn fit(
        self,
        py: Python<'_>,
        config: &FitConfig,
        snapshots: Option<Snapshots<'_>>,
    ) -> Outcome<Option<Fit>> {
        let Self { data, callback } = self;
        let cancel = CancelToken::default();
        if callback.is_none() && data.is_small() {
            // Over before a thread has started, or a signal is looked for.
            return detach(py, || data.fit(config, &cancel, &mut []));
        }
        detach(py, || {
            thread::scope(|scope| {
                let (to_caller, news) = channel();
                let (answer, answers) = channel();
                let mut teller = Teller { to_caller, answers, snapshots };
                let stop = cancel.clone();
                let worker = scope.spawn(move || {
                    let mut told: [&mut (dyn Observer + Send); 1] = [&mut teller];
                    let observers = if callback.is_some() { &mut told[..] } else { &mut [] };
                    data.fit(config, &stop, observers)
                });
                // A worker that is gone needs no answer.
                let reply = |flow| answer.send(flow).unwrap_or(());
                let heard = listen(&news, callback, &cancel, reply);
                let fit = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                heard?;
                fit
            })
        })
    }
}

/// A certified iterate, and the model as it stands where that was asked for.
struct News {
    record: Record,
    snapshot: Option<Fitted>,
}

/// The worker's end of the line: sends news and waits for the answer.
struct Teller<'a> {
    to_caller: Sender<News>,
    answers: Receiver<ControlFlow<()>>,
    snapshots: Option<Snapshots<'a>>,
}

impl Observer for Teller<'_> {
    fn prepared(&mut self, map: &RowMap, weight: f64) {
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.prepared(map, weight);
        }
    }

    fn wants_iterates(&self) -> bool {
        self.snapshots.is_some()
    }

    fn notify(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match (event, &mut self.snapshots) {
            (Event::Started { solver, .. }, Some(snapshots)) => snapshots.started(solver),
            (Event::Looked { record, certificate, vectors, .. }, snapshots) => {
                // A model that cannot be put together is none; the fit itself will say why.
                let snapshot = match (snapshots, certificate, vectors) {
                    (Some(snapshots), Some(certificate), Some(vectors)) => {
                        snapshots.take(record, certificate, vectors).ok().flatten()
                    }
                    _ => None,
                };
                if self.to_caller.send(News { record: (*record).clone(), snapshot }).is_ok() {
                    return self.answers.recv().unwrap_or(ControlFlow::Continue(()));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Serves news until the worker is done; the first exception is remembered, and the run is abandoned.
fn listen(
    news: &Receiver<News>,
    callback: Option<&Py<PyAny>>,
    cancel: &CancelToken,
    reply: impl Fn(ControlFlow<()>),
) -> PyResult<()> {
    let mut heard = Ok(());
    loop {
        match news.recv_timeout(SIGNALS_EVERY) {
            Ok(news) => {
                let flow = match (&heard, callback) {
                    (Ok(()), Some(callback)) => tell(callback, news),
                    _ => Ok(ControlFlow::Break(())),
                };
                let answer = *flow.as_ref().unwrap_or(&ControlFlow::Break(()));
                heard = heard.and(flow.map(drop));
                reply(answer);
            }
            Err(RecvTimeoutError::Timeout) if heard.is_ok() => heard = signals(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return heard,
        }
        if heard.is_err() {
            cancel.abandon();
        }
    }
}

/// The exception of a signal that came, if one did.
// The method itself is not general enough in its lifetime to be passed.
#[allow(clippy::redundant_closure_for_method_calls)]
fn signals() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}

/// Calls the callback.
fn tell(callback: &Py<PyAny>, news: News) -> PyResult<ControlFlow<()>> {
    Python::attach(|py| {
        py.check_signals()?;
        let record: Bound<'_, PyDict> = record_dict(py, &news.record)?;
        let answer = match news.snapshot {
            None => callback.bind(py).call1((record,))?,
            Some(fitted) => callback.bind(py).call1((record, fitted))?,
        };
        Ok(if answer.is_truthy()? { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
}
