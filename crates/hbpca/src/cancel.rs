//! Stopping a run from outside, and when its time is up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Error;
use crate::stopwatch::since_start;

/// Asks a run to stop from another thread or a signal handler.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    asked: Arc<Asked>,
    /// Of one run; those of other tokens that ask the same are others.
    time: Arc<TimeLimit>,
}

#[derive(Debug, Default)]
struct Asked {
    to_stop: AtomicBool,
    to_abandon: AtomicBool,
}

/// The moment at which a run breaks off, in nanoseconds of the core's clock.
#[derive(Debug)]
struct TimeLimit(AtomicU64);

impl Default for TimeLimit {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl CancelToken {
    /// The run stops at its next outer iterate and returns its best answer.
    pub fn cancel(&self) {
        self.asked.to_stop.store(true, Ordering::Relaxed);
    }

    /// The run breaks off in the middle of a pass and returns [`Error::Abandoned`]: for callers that want no answer any more.
    pub fn abandon(&self) {
        self.cancel();
        self.asked.to_abandon.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](Self::cancel) or [`abandon`](Self::abandon) was called.
    pub fn is_cancelled(&self) -> bool {
        self.asked.to_stop.load(Ordering::Relaxed)
    }

    /// Whether [`abandon`](Self::abandon) was called.
    pub fn is_abandoned(&self) -> bool {
        self.asked.to_abandon.load(Ordering::Relaxed)
    }

    /// A token that is asked with this one, and has a time limit of its own.
    #[must_use]
    pub fn with_own_time(&self) -> Self {
        Self { asked: self.asked.clone(), time: Arc::default() }
    }

    /// The run breaks off when so many more seconds have passed: in the middle of a pass, with [`Error::OutOfTime`].
    pub(crate) fn break_off_in(&self, seconds: f64) {
        let left = (seconds.max(0.0) * 1e9) as u64;
        self.time.0.store(since_start().saturating_add(left), Ordering::Relaxed);
    }

    /// It does not any more.
    pub(crate) fn lift_time_limit(&self) {
        self.time.0.store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether its time is up.
    fn is_out_of_time(&self) -> bool {
        let limit = self.time.0.load(Ordering::Relaxed);
        limit < u64::MAX && since_start() >= limit
    }

    /// Whether a pass is to be broken off, for either reason.
    pub(crate) fn breaks_off(&self) -> bool {
        self.is_abandoned() || self.is_out_of_time()
    }

    /// Refuses to go on after [`abandon`](Self::abandon), or when the time is up.
    pub(crate) fn go_on(&self) -> Result<(), Error> {
        if self.is_abandoned() {
            Err(Error::Abandoned)
        } else if self.is_out_of_time() {
            Err(Error::OutOfTime)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_are_those_of_one_run() {
        let token = CancelToken::default();
        let of_run = token.with_own_time();
        assert!(of_run.go_on().is_ok());
        of_run.break_off_in(0.0);
        assert!(matches!(of_run.go_on(), Err(Error::OutOfTime)) && of_run.breaks_off());
        assert!(token.go_on().is_ok() && !token.breaks_off() && !of_run.is_cancelled());
        of_run.break_off_in(1e9);
        assert!(of_run.go_on().is_ok());
        of_run.lift_time_limit();
        assert!(of_run.go_on().is_ok());
        token.abandon();
        assert!(matches!(of_run.go_on(), Err(Error::Abandoned)) && of_run.is_cancelled());
    }
}
