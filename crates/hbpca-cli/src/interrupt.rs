//! Ctrl-C. While a solver runs, the first one asks it to stop at its next safe point; the second one, or the first at any
//! other time, ends the program at once and takes unfinished files away.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hbpca::CancelToken;

use crate::exit::Exit;

/// The token of the solver that runs and has not been asked to stop.
static RUNNING: Mutex<Option<CancelToken>> = Mutex::new(None);

fn running() -> MutexGuard<'static, Option<CancelToken>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to listen for Ctrl-C and for the termination signal. One of several ranks speaks for all.
pub fn listen(speaks: bool) {
    let refused = ctrlc::set_handler(move || {
        if let Some(token) = running().take() {
            token.cancel();
            if speaks {
                crate::output::say::line(
                    "stopping at the next safe point; press Ctrl-C again to quit at once",
                );
            }
            return;
        }
        hbpca_io::remove_unfinished();
        std::process::exit(Exit::Interrupted as i32);
    });
    if let Err(error) = refused {
        crate::output::say::warning(&format!("Ctrl-C will lose the result: {error}"));
    }
}

/// While it lives, Ctrl-C stops the solver that holds `token`.
pub struct Running;

impl Running {
    /// Hands `token` to the signal handler.
    pub fn with(token: &CancelToken) -> Self {
        *running() = Some(token.clone());
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *running() = None;
    }
}
