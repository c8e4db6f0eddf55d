//! What is going on, on standard error, while it goes on: only on a terminal.

use std::io::{IsTerminal, stderr};
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use hbpca::{Error, Event, Matrix, Observer, Record, RowChunks};
use hbpca_io::{ByteSize, OnDisk};
use indicatif::{ProgressBar, ProgressStyle};

use super::number;
use super::say::{self, Verbosity};

/// A bar of the digits won so far, with passes, θ, residual, rate and time left.
pub struct Progress {
    bar: ProgressBar,
    verbosity: Verbosity,
    tol: f64,
    max_passes: f64,
    max_seconds: f64,
    /// The first record, and a recent one from which the rate is taken.
    first: Option<Record>,
    recent: Option<Record>,
}

/// The bar is this long in steps.
const LENGTH: u64 = 1000;

impl Progress {
    /// Silent unless standard error is a terminal and people want to see something.
    pub fn new(verbosity: Verbosity, tol: f64, max_passes: f64, max_seconds: f64) -> Self {
        let bar = if shown(verbosity) { ProgressBar::new(LENGTH) } else { ProgressBar::hidden() };
        bar.set_style(
            ProgressStyle::with_template("{spinner} [{bar:30}] {prefix}{msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("█▉▊▋▌▍▎▏ "),
        );
        Self { bar, verbosity, tol, max_passes, max_seconds, first: None, recent: None }
    }

    /// Shows beside the bar what is read from disk.
    pub fn meter(&self) -> Meter {
        Meter(self.bar.clone())
    }

    fn looked(&mut self, record: &Record) {
        let (first, recent) = (
            self.first.get_or_insert_with(|| record.clone()),
            self.recent.get_or_insert_with(|| record.clone()),
        );
        let forecast = Forecast::new(first, recent, record, self.tol);
        let left = forecast.seconds_left(record, self.max_passes, self.max_seconds);
        // Half a pass is too little to see a rate.
        if record.passes > recent.passes + 0.5 {
            *recent = record.clone();
        }
        self.bar.set_position((forecast.done * LENGTH as f64) as u64);
        self.bar.set_message(message(record, &forecast, left));
    }
}

/// Puts the bytes that are read before the message of a bar.
pub struct Meter(ProgressBar);

impl Meter {
    /// The same rows, counted; about `planned` bytes will be read.
    pub fn around(self, rows: Box<dyn OnDisk>, planned: u64) -> Metered {
        Metered { rows, bar: self.0, read: 0, planned }
    }
}

/// Rows on disk whose reading is shown.
pub struct Metered {
    rows: Box<dyn OnDisk>,
    bar: ProgressBar,
    read: u64,
    planned: u64,
}

impl Metered {
    fn count(&mut self, rows: &Matrix<'_>) {
        self.read += rows.bytes_per_pass() as u64;
        self.bar.set_prefix(format!("{} of about {} read · ", ByteSize(self.read), ByteSize(self.planned)));
        self.bar.tick();
    }
}

impl RowChunks for Metered {
    fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }
    fn n_cols(&self) -> usize {
        self.rows.n_cols()
    }
    fn nnz(&self) -> usize {
        self.rows.nnz()
    }
    fn is_sparse(&self) -> bool {
        self.rows.is_sparse()
    }
    fn bytes(&self) -> u64 {
        self.rows.bytes()
    }
    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        self.rows.cut(bytes)
    }
    fn starts(&self) -> &[usize] {
        self.rows.starts()
    }
    fn read_chunk(&mut self, i: usize, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        let rows = self.rows.read_chunk(i, recycled)?;
        self.count(&rows);
        Ok(rows)
    }
    fn version(&self) -> Option<u64> {
        self.rows.version()
    }
    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        let rows = self.rows.read_rows(rows)?;
        self.count(&rows);
        Ok(rows)
    }
}

fn shown(verbosity: Verbosity) -> bool {
    verbosity > Verbosity::Quiet && stderr().is_terminal()
}

fn message(record: &Record, forecast: &Forecast, left: Option<f64>) -> String {
    let passes = number::plural((record.passes * 10.0).round() / 10.0, "pass", "passes");
    let theta = format!("θ {}", number::value(record.theta));
    let residual = format!("residual {}", number::small(record.residual));
    let rate = forecast.digits_per_pass.map(|digits| format!("{} digits/pass", number::short(digits)));
    let left = left.map(|left| format!("{} left", number::seconds(left)));
    [Some(passes), Some(theta), Some(residual), rate, left]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" · ")
}

/// How far the run is, and how fast.
struct Forecast {
    /// Share of the digits between the first residual and the tolerance that are won.
    done: f64,
    digits_per_pass: Option<f64>,
    digits_left: f64,
}

impl Forecast {
    fn new(first: &Record, recent: &Record, now: &Record, tol: f64) -> Self {
        let digits = |from: &Record, to: f64| (from.residual / to).log10();
        let target = (tol * now.theta).max(f64::MIN_POSITIVE);
        let (total, left) = (digits(first, target), digits(now, target).max(0.0));
        let done = if total > 0.0 { (1.0 - left / total).clamp(0.0, 1.0) } else { 0.0 };
        let passes = now.passes - recent.passes;
        let rate = digits(recent, now.residual) / passes;
        Self { done, digits_per_pass: (passes > 0.0 && rate.is_finite()).then_some(rate), digits_left: left }
    }

    /// Until the tolerance at the present rate, or until a limit, whichever comes first.
    fn seconds_left(&self, now: &Record, max_passes: f64, max_seconds: f64) -> Option<f64> {
        let seconds_per_pass = now.seconds / now.passes;
        let to_tolerance = self
            .digits_per_pass
            .filter(|rate| *rate > 0.0)
            .map_or(f64::INFINITY, |rate| self.digits_left / rate * seconds_per_pass);
        let to_limits = ((max_passes - now.passes) * seconds_per_pass).min(max_seconds - now.seconds);
        let left = to_tolerance.min(to_limits);
        (left.is_finite() && self.digits_per_pass.is_some()).then(|| left.max(0.0))
    }
}

impl Observer for Progress {
    fn notify(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Started { solver, n, d, k, .. } => {
                if self.verbosity == Verbosity::Verbose {
                    let (n, d) = (number::count(*n), number::count(*d));
                    self.bar.suspend(|| {
                        say::line(&format!("{solver} started on {n} rows × {d} columns, k = {k}"));
                    });
                }
                self.bar.set_message(format!("{solver} …"));
                self.bar.enable_steady_tick(Duration::from_millis(100));
            }
            Event::Resumed { history, .. } => {
                history.iter().for_each(|record| self.looked(record));
                if let (Verbosity::Verbose, Some(last)) = (self.verbosity, history.last()) {
                    let passes = number::plural(last.passes, "pass", "passes");
                    self.bar.suspend(|| say::line(&format!("resumed after {passes}")));
                }
            }
            Event::Looked { record, .. } => self.looked(record),
            Event::Finished { .. } => self.bar.finish_and_clear(),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// A spinner for work whose length is unknown, such as reading; it vanishes when dropped.
pub struct Spinner(ProgressBar);

impl Spinner {
    /// Says what is being done.
    pub fn new(verbosity: Verbosity, what: &str) -> Self {
        let bar = if shown(verbosity) { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.set_message(super::visible(what).into_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(passes: f64, residual: f64) -> Record {
        let mut record = Record::default();
        (record.passes, record.full_passes, record.seconds) = (passes, passes as u64, passes * 2.0);
        (record.theta, record.residual) = (10.0, residual);
        record
    }

    #[test]
    fn the_forecast_extends_the_present_rate() {
        // From 1 to 1e-4 in 4 passes; the goal 10·1e-7 is 2 digits away: 2 passes of 2 s.
        let (first, now) = (record(0.0, 1.0), record(4.0, 1e-4));
        let forecast = Forecast::new(&first, &first, &now, 1e-7);
        assert!((forecast.digits_per_pass.unwrap() - 1.0).abs() < 1e-12);
        assert!((forecast.done - 4.0 / 6.0).abs() < 1e-12);
        assert!((forecast.seconds_left(&now, 1e3, f64::INFINITY).unwrap() - 4.0).abs() < 1e-9);
        assert!((forecast.seconds_left(&now, 5.0, f64::INFINITY).unwrap() - 2.0).abs() < 1e-9);
        assert!((forecast.seconds_left(&now, 1e3, 9.0).unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn without_progress_only_the_limits_are_known() {
        let (first, now) = (record(0.0, 1.0), record(4.0, 2.0));
        let forecast = Forecast::new(&first, &first, &now, 1e-7);
        assert!(forecast.done.abs() < 1e-12 && forecast.digits_per_pass.unwrap() < 0.0);
        assert!((forecast.seconds_left(&now, 10.0, f64::INFINITY).unwrap() - 12.0).abs() < 1e-9);
        assert_eq!(forecast.seconds_left(&now, f64::INFINITY, f64::INFINITY), None);
        let start = Forecast::new(&first, &first, &first, 1e-7);
        assert_eq!(start.seconds_left(&first, 10.0, f64::INFINITY), None);
    }

    #[test]
    fn the_message_names_passes_theta_residual_rate_and_time() {
        let forecast = Forecast::new(&record(0.0, 1.0), &record(0.0, 1.0), &record(4.0, 1e-4), 1e-7);
        let text = message(&record(4.0, 1e-4), &forecast, Some(4.0));
        assert_eq!(text, "4 passes · θ 10.0000000 · residual 1.0e-4 · 1 digits/pass · 4.00 s left");
    }
}
