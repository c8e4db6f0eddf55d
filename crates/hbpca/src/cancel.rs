//! Stopping a run from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Error;

/// Asks a run to stop from another thread or a signal handler.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    to_stop: AtomicBool,
    to_abandon: AtomicBool,
}

impl CancelToken {
    /// The run stops at its next outer iterate and returns its best answer.
    pub fn cancel(&self) {
        self.0.to_stop.store(true, Ordering::Relaxed);
    }

    /// The run breaks off in the middle of a pass and returns [`Error::Abandoned`]: for callers that want no answer any more.
    pub fn abandon(&self) {
        self.cancel();
        self.0.to_abandon.store(true, Ordering::Relaxed);
    }

    /// Whether [`cancel`](Self::cancel) or [`abandon`](Self::abandon) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.to_stop.load(Ordering::Relaxed)
    }

    /// Whether [`abandon`](Self::abandon) was called.
    pub fn is_abandoned(&self) -> bool {
        self.0.to_abandon.load(Ordering::Relaxed)
    }

    /// Refuses to go on after [`abandon`](Self::abandon).
    pub(crate) fn go_on(&self) -> Result<(), Error> {
        if self.is_abandoned() { Err(Error::Abandoned) } else { Ok(()) }
    }
}
