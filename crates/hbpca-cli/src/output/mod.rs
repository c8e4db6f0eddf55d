//! What people and scripts see: results on standard output, everything else on standard error.

pub mod certainty;
pub mod checkpoint_writer;
pub mod json;
pub mod loadings;
pub mod model_page;
pub mod number;
pub mod page;
pub mod progress;
pub mod say;
pub mod scree;
pub mod table;
pub mod trace;
pub mod warnings;

use std::io::{self, ErrorKind, Write};

use crate::exit::Failure;

/// Prints what a person reads of a result that is also a file or an exit code; nothing with `-q`.
pub fn print_report(text: &str) -> Result<(), Failure> {
    if say::is_quiet() { Ok(()) } else { print(text) }
}

/// Prints a result. A reader that has seen enough (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::output("standard output", error)),
        _ => Ok(()),
    }
}
