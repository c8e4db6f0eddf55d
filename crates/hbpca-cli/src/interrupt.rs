//! Ctrl-C and the termination signal. While a solver runs, the first one asks it to stop at its next safe point; the second one,
//! or the first at any other time, ends the program at once and takes unfinished files away.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hbpca::CancelToken;

use crate::exit::Exit;
use crate::output::say;

/// The token of the solver that runs and has not been asked to stop.
static RUNNING: Mutex<Option<CancelToken>> = Mutex::new(None);
/// Whether the termination signal came, and not Ctrl-C alone.
static TERMINATED: AtomicBool = AtomicBool::new(false);

fn running() -> MutexGuard<'static, Option<CancelToken>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The exit code of a program that a signal stopped.
pub fn exit() -> Exit {
    if TERMINATED.load(Ordering::SeqCst) { Exit::Terminated } else { Exit::Interrupted }
}

/// Begins to listen for Ctrl-C and for the termination signal.
pub fn listen() {
    let refused = ctrlc::set_handler(|| {
        if let Some(token) = running().take() {
            token.cancel();
            say::line("stopping at the next safe point; press Ctrl-C again to quit at once");
            return;
        }
        hbpca_io::remove_unfinished();
        std::process::exit(exit() as i32);
    });
    match refused {
        Ok(()) => tell_termination_apart(),
        Err(error) => say::warning(&format!("Ctrl-C will lose the result: {error}")),
    }
}

/// The handler is not told which signal came: the termination signal leaves a note, and goes on as Ctrl-C.
#[cfg(unix)]
#[allow(unsafe_code, reason = "signal handlers are installed by foreign functions")]
fn tell_termination_apart() {
    extern "C" fn note(_: libc::c_int) {
        TERMINATED.store(true, Ordering::SeqCst);
        // SAFETY: `raise` may be called in a signal handler.
        unsafe {
            libc::raise(libc::SIGINT);
        }
    }
    let handler: extern "C" fn(libc::c_int) = note;
    // SAFETY: the handler stores to an atomic and raises a signal, both of which a signal handler may do.
    unsafe {
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
    }
}

#[cfg(not(unix))]
fn tell_termination_apart() {}

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
