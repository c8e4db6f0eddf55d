//! The only clock of the core.

use std::sync::LazyLock;
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
        self.before + self.start.elapsed().as_secs_f64() + ahead::seconds()
    }
}

/// Nanoseconds since the clock was first looked at, for moments that threads share.
pub(crate) fn since_start() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Time that did not pass, for tests: stopwatches of a thread show that much more.
pub(crate) mod ahead {
    #[cfg(not(test))]
    pub(super) fn seconds() -> f64 {
        0.0
    }

    #[cfg(test)]
    std::thread_local! {
        static AHEAD: std::cell::Cell<f64> = const { std::cell::Cell::new(0.0) };
    }

    #[cfg(test)]
    pub(super) fn seconds() -> f64 {
        AHEAD.get()
    }

    #[cfg(test)]
    pub(crate) fn put(seconds: f64) {
        AHEAD.set(seconds);
    }
}
