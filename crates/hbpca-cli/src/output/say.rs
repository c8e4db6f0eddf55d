//! Messages on standard error, coloured only on a terminal and without `NO_COLOR`.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};

use super::visible;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Warnings and, on a terminal, progress.
    Normal,
    /// Also what is being done.
    Verbose,
}

/// Whether nothing but errors is said, not even by signal handlers.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on nothing but errors is said.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether nothing but errors is said.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Whether not even errors are said: another rank speaks for this one.
static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on nothing is said at all.
pub fn be_silent() {
    be_quiet();
    SILENT.store(true, Ordering::Relaxed);
}

/// Whether nothing is said at all.
pub fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed)
}

/// A plain line.
pub fn line(text: &str) {
    if is_quiet() {
        return;
    }
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(anstream::stderr().lock(), "hbpca: {}", visible(text));
}

/// A warning: the fact, the likely cause, the flag to try.
pub fn warning(text: &str) {
    if is_quiet() {
        return;
    }
    labelled("warning", AnsiColor::Yellow, text);
}

/// Why nothing was done.
pub fn error(text: &impl ToString) {
    if is_silent() {
        return;
    }
    labelled("error", AnsiColor::Red, &text.to_string());
}

fn labelled(label: &str, colour: AnsiColor, text: &str) {
    let style = Style::new().bold().fg_color(Some(colour.into()));
    let _ = writeln!(anstream::stderr().lock(), "{style}{label}:{style:#} {}", visible(text));
}
