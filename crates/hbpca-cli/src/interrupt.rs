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

/// A file that grows beyond a limit (`ulimit -f`) is an error of that write, not the end of the program.
fn survive_full_files() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "a foreign function that sets how one signal is treated")]
    // SAFETY: the signal is a valid one, and to ignore it runs no code.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Begins to listen for Ctrl-C and for the termination signal.
pub fn listen() {
    survive_full_files();
    let refused = ctrlc::set_handler(|| {
        if let Some(token) = running().take() {
            token.cancel();
            crate::output::say::line("stopping at the next safe point; press Ctrl-C again to quit at once");
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
