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

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};

use crate::exit::Failure;

/// Prints what a person reads of a result that is also a file or an exit code; nothing with `-q`.
pub fn print_report(text: &str) -> Result<(), Failure> {
    if say::is_quiet() { Ok(()) } else { print(text) }
}

/// Text with every control character but line breaks and tabs written out, as `\u{1b}`: names of files and columns come from
/// elsewhere, and a terminal would obey them.
pub fn visible(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if hidden(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Prints a result. A reader that has seen enough (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    print_as_it_is(&visible(text))
}

/// Prints text that has no control characters from elsewhere.
fn print_as_it_is(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::unwritten("standard output", &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(visible("a\tb\nθ"), "a\tb\nθ");
        assert_eq!(visible("\u{1b}]0;x\u{7}\r\u{9b}1m"), "\\u{1b}]0;x\\u{7}\\u{d}\\u{9b}1m");
    }
}
