//! Threads that are there: a process that was forked has none of those that its parent started.

use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The process that imported the module.
static HOME: OnceLock<u32> = OnceLock::new();
/// The threads of a child, and whose they are.
static OF_CHILD: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Remembers the process that imports the module.
pub fn import() {
    HOME.get_or_init(process::id);
}

/// Runs `work` without the interpreter's lock, on threads of this process.
pub fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| on_own_threads(work))
}

/// Runs `work` on threads of this process: the usual ones, or in a child that was forked those that it starts once.
pub fn on_own_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let process = process::id();
    if process == *HOME.get_or_init(process::id) {
        return work();
    }
    let pool = {
        let mut of_child = OF_CHILD.lock().unwrap_or_else(PoisonError::into_inner);
        match &*of_child {
            Some((owner, pool)) if *owner == process => Some(pool.clone()),
            _ => {
                // Threads of a grandparent are not waited for: they are not there either.
                std::mem::forget(of_child.take());
                let alone = || ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
                let pool = ThreadPoolBuilder::new().build().or_else(|_| alone()).ok().map(Arc::new);
                *of_child = pool.clone().map(|pool| (process, pool));
                pool
            }
        }
    };
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}
