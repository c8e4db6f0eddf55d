//! The only clock of the core.

use std::time::Instant;

/// Measures seconds.
pub(crate) struct Stopwatch {
    start: Instant,
    /// What it showed at its start.
    before: f64,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self::start_at(0.0)
    }

    /// One that goes on from the given seconds.
    pub(crate) fn start_at(before: f64) -> Self {
        Self { start: Instant::now(), before }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.before + self.start.elapsed().as_secs_f64()
    }
}
