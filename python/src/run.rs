//! A fit in a thread of its own, while the calling thread listens to signals and serves the callback.
//!
//! The interpreter is detached throughout; it is attached for each callback, which therefore runs in the thread that called
//! `fit`, and twenty times a second to learn of Ctrl-C. A callback that wants to stop does so at its outer iterate, with a
//! result; an exception, that of Ctrl-C included, breaks the run off in the middle of a pass.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use hbpca::{CancelToken, Event, Fit, FitConfig, Matrix, Observer, Record};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::components::{Wanted, ask, without_rounding};
use crate::errors::Outcome;
use crate::fitted::{Fitted, record_dict};
use crate::input::{FiniteCheck, Input, contiguous};
use crate::settings::Settings;

/// Longest wait before signals are looked at.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Fits rows. `callback` gets every record as a dict and stops the run by returning something true.
#[pyfunction]
#[pyo3(signature = (rows, settings, *, n_components=None, weights=None, callback=None))]
// Owned, because these types are what the arguments are converted into.
#[allow(clippy::needless_pass_by_value)]
pub fn fit(
    py: Python<'_>,
    rows: Input<'_>,
    settings: Settings<'_>,
    n_components: Option<Wanted>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    callback: Option<Py<PyAny>>,
) -> Outcome<Fitted> {
    let matrix = rows.matrix(FiniteCheck::Later)?;
    let weights = weights.as_ref().map(contiguous).transpose()?;
    let mut config = settings.config()?;
    ask(&mut config, n_components, matrix.n_rows(), matrix.n_cols());
    let mut fit = Run { matrix: &matrix, weights, callback: callback.as_ref() }.fit(py, &config)?;
    if n_components.is_none() {
        fit = without_rounding(fit)?;
    }
    Ok(Fitted::of_fit(&fit, config.limits.tol))
}

struct Run<'a> {
    matrix: &'a Matrix<'a>,
    weights: Option<&'a [f64]>,
    callback: Option<&'a Py<PyAny>>,
}

impl Run<'_> {
    fn fit(&self, py: Python<'_>, config: &FitConfig) -> Outcome<Fit> {
        let (matrix, weights, callback) = (self.matrix, self.weights, self.callback);
        py.detach(|| {
            thread::scope(|scope| {
                let (to_caller, records) = channel();
                let (answer, answers) = channel();
                let worker = scope.spawn(move || {
                    let mut ask = move |event: &Event<'_>| match event {
                        Event::Looked { record, .. } if to_caller.send((*record).clone()).is_ok() => {
                            answers.recv().unwrap_or(ControlFlow::Continue(()))
                        }
                        _ => ControlFlow::Continue(()),
                    };
                    let mut asked: [&mut (dyn Observer + Send); 1] = [&mut ask];
                    let observers = if callback.is_some() { &mut asked[..] } else { &mut [] };
                    config.fit_observed(matrix, weights, observers)
                });
                let cancel = &config.limits.cancel;
                // A worker that is gone needs no answer.
                let reply = |flow| drop(answer.send(flow));
                let heard = listen(&records, callback, cancel, reply);
                let fit = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                heard?;
                Ok(fit?)
            })
        })
    }
}

/// Serves records until the worker is done; the first exception is kept, and nobody waits for the run's result any more.
fn listen(
    records: &Receiver<Record>,
    callback: Option<&Py<PyAny>>,
    cancel: &CancelToken,
    reply: impl Fn(ControlFlow<()>),
) -> PyResult<()> {
    let mut heard = Ok(());
    loop {
        match records.recv_timeout(SIGNALS_EVERY) {
            Ok(record) => {
                let flow = match (&heard, callback) {
                    (Ok(()), Some(callback)) => tell(callback, &record),
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
fn tell(callback: &Py<PyAny>, record: &Record) -> PyResult<ControlFlow<()>> {
    Python::attach(|py| {
        py.check_signals()?;
        let record: Bound<'_, PyDict> = record_dict(py, record)?;
        let stop = callback.bind(py).call1((record,))?.is_truthy()?;
        Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
}
