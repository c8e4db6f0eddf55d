//! Ctrl-C. While a solver runs, the first one asks it to stop at its next safe point; the second one, or the first at any
//! other time, ends the program at once and takes unfinished files away.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hbpca::CancelToken;

use crate::exit::Exit;

static STATE: Mutex<State> = Mutex::new(State { running: None, unfinished: Vec::new() });

struct State {
    /// The token of the solver that runs and has not been asked to stop.
    running: Option<CancelToken>,
    /// Files under temporary names.
    unfinished: Vec<PathBuf>,
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to listen for Ctrl-C and for the termination signal.
pub fn listen() {
    let refused = ctrlc::set_handler(|| {
        let mut state = state();
        if let Some(token) = state.running.take() {
            token.cancel();
            crate::output::say::line("stopping at the next safe point; press Ctrl-C again to quit at once");
            return;
        }
        for file in &state.unfinished {
            // Nothing can be done about a refusal: the program is ending.
            let _ = std::fs::remove_file(file);
        }
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
        state().running = Some(token.clone());
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        state().running = None;
    }
}

/// Remembers a file that must not be left behind.
pub fn unfinished(file: &Path) {
    state().unfinished.push(file.to_owned());
}
