//! One account of memory, asked before every large allocation of the program.
//!
//! Rust ends a program by a signal when an allocation fails, and Linux promises memory that it does not have. So every block of a
//! mebibyte or more is booked here first: data as it is decoded, vectors, a basis, partial sums. What would leave the limit, or is refused by
//! the system, ends the program with a message, exit code 4 and no unfinished file.
//!
//! Only a program that takes [`Account`] as its allocator keeps it. The Python package does not: it shares its process with others, and its
//! command refuses what the plan of a fit says it will need.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::exit::Exit;

/// Smaller blocks are not booked: there are many, and together they are little.
const LARGE: usize = 1 << 20;

/// Bytes in large blocks.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// Bytes that they may take.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Whether somebody chose the limit.
static CHOSEN: AtomicBool = AtomicBool::new(false);

/// Sets the limit: what was chosen, or what the machine or its control group has.
pub(crate) fn limit(chosen: Option<u64>) {
    let Some(bytes) = chosen.or_else(hbpca_io::machine_memory) else { return };
    LIMIT.store(usize::try_from(bytes).unwrap_or(usize::MAX), Ordering::Relaxed);
    CHOSEN.store(chosen.is_some(), Ordering::Relaxed);
}

/// The allocator of the program: the system's, with the account.
pub struct Account;

/// Books `bytes`; refuses what would leave the limit.
fn book(bytes: usize) {
    if bytes == 0 {
        return;
    }
    let taken = TAKEN.fetch_add(bytes, Ordering::Relaxed);
    if taken.saturating_add(bytes) > LIMIT.load(Ordering::Relaxed) || injected::fails() {
        refuse(bytes, taken);
    }
}

/// What of a block is booked.
fn large(bytes: usize) -> usize {
    if bytes < LARGE { 0 } else { bytes }
}

#[allow(unsafe_code, reason = "an allocator is unsafe by its nature; this one adds two sums to the system's")]
// SAFETY: every call goes to the system's allocator with the arguments it came with, and its result comes back; nothing here unwinds.
unsafe impl GlobalAlloc for Account {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        book(large(layout.size()));
        // SAFETY: the caller's promise.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        book(large(layout.size()));
        // SAFETY: the caller's promise.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(large(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (before, after) = (large(layout.size()), large(size));
        if after > before {
            book(after - before);
        } else {
            TAKEN.fetch_sub(before - after, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise.
        checked(unsafe { System.realloc(block, layout, size) }, size)
    }
}

/// A large block that the system refuses ends the program here; of a small one the caller is told.
fn checked(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() && bytes >= LARGE {
        refuse(bytes, TAKEN.load(Ordering::Relaxed).saturating_sub(bytes));
    }
    block
}

/// Ends the program.
#[cold]
fn refuse(bytes: usize, taken: usize) -> ! {
    /// Whether another thread does so already.
    static ENDING: AtomicBool = AtomicBool::new(false);
    while ENDING.swap(true, Ordering::Relaxed) {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let mut text = Text { bytes: [0; 512], used: 0 };
    let limit = LIMIT.load(Ordering::Relaxed);
    let whose = if CHOSEN.load(Ordering::Relaxed) { "--memory allows" } else { "this machine has" };
    let _ =
        write!(text, "error: not enough memory: {} more are needed, {} are taken", Size(bytes), Size(taken));
    if limit < usize::MAX {
        let _ = write!(text, ", and {whose} {}", Size(limit));
    }
    let _ = writeln!(
        text,
        "; allow more with --memory, ask for fewer components or columns, or convert the data to a chunk folder, which is read in pieces"
    );
    // Nothing can be done about a refusal: the program ends.
    let _ = std::io::stderr().write_all(text.bytes());
    if crate::typed::asks_for_json() {
        let _ = print_object(&text);
    }
    hbpca_io::remove_unfinished();
    std::process::exit(Exit::Memory as i32)
}

/// The failure as the object that scripts get. The message has no character that JSON would escape.
fn print_object(text: &Text) -> std::io::Result<()> {
    let message = text.bytes().strip_prefix(b"error: ").unwrap_or_default().trim_ascii_end();
    let mut out = std::io::stdout().lock();
    out.write_all(b"{\"schema\":2,\"error\":{\"kind\":\"memory\",\"message\":\"")?;
    out.write_all(message)?;
    out.write_all(b"\",\"file\":null,\"line\":null,\"column\":null},\"exit_code\":4}\n")?;
    out.flush()
}

/// A number of bytes as people write it.
struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = self.0 as f64 / f64::from(1 << 20);
        if mebibytes < 1024.0 {
            write!(f, "{mebibytes:.1} MiB")
        } else {
            write!(f, "{:.1} GiB", mebibytes / 1024.0)
        }
    }
}

/// Text that needs no allocation; what does not fit is left out.
struct Text {
    bytes: [u8; 512],
    used: usize,
}

impl Text {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let count = text.len().min(self.bytes.len() - self.used);
        self.bytes[self.used..self.used + count].copy_from_slice(&text.as_bytes()[..count]);
        self.used += count;
        Ok(())
    }
}

/// Faults for tests: the n-th large block is refused. Only in builds for development.
mod injected {
    #[cfg(not(debug_assertions))]
    pub fn fails() -> bool {
        false
    }

    #[cfg(debug_assertions)]
    pub use faults::*;

    #[cfg(debug_assertions)]
    mod faults {
        use std::sync::atomic::{AtomicU64, Ordering};

        static LEFT: AtomicU64 = AtomicU64::new(u64::MAX);

        pub fn fails() -> bool {
            LEFT.load(Ordering::Relaxed) < u64::MAX && LEFT.fetch_sub(1, Ordering::Relaxed) == 0
        }

        /// Takes the number from the environment.
        pub fn from_environment() {
            let asked = std::env::var("HBPCA_FAIL_ALLOCATION").ok().and_then(|text| text.parse().ok());
            LEFT.store(asked.unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    #[cfg(not(debug_assertions))]
    pub fn from_environment() {}
}

pub(crate) use injected::from_environment as inject_faults;
