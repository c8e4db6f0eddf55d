//! What is being done, on standard error.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Says what is being done: one line that changes on a terminal, a line now and then elsewhere, nothing when quiet.
#[derive(Debug)]
pub struct Progress {
    mode: Mode,
    begun: Instant,
    last: Mutex<Option<Instant>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Quiet,
    Lines,
    Terminal,
}

impl Progress {
    /// Speaks on standard error.
    pub fn on_stderr() -> Self {
        Self::new(if std::io::stderr().is_terminal() { Mode::Terminal } else { Mode::Lines })
    }

    /// Says nothing.
    pub fn quiet() -> Self {
        Self::new(Mode::Quiet)
    }

    fn new(mode: Mode) -> Self {
        Self { mode, begun: Instant::now(), last: Mutex::new(None) }
    }

    /// A step; not every one is shown.
    pub fn say(&self, what: &str) {
        let pause =
            if self.mode == Mode::Terminal { Duration::from_millis(100) } else { Duration::from_secs(10) };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if self.mode == Mode::Quiet || last.is_some_and(|last| last.elapsed() < pause) {
            return;
        }
        *last = Some(Instant::now());
        self.write(what, self.mode == Mode::Terminal);
    }

    /// A step that is always shown.
    pub fn announce(&self, what: &str) {
        if self.mode != Mode::Quiet {
            self.write(what, false);
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn write(&self, what: &str, stay: bool) {
        let mut stderr = std::io::stderr().lock();
        let clear = if self.mode == Mode::Terminal { "\r\x1b[K" } else { "" };
        let end = if stay { "" } else { "\n" };
        // Nobody listening is no reason to stop.
        let _ = write!(stderr, "{clear}[{:6.1} s] {what}{end}", self.seconds());
        let _ = stderr.flush();
    }
}
