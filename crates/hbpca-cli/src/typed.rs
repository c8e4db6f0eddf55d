//! The words that were typed, as they were: for pages that say how they were made, and for failures.

use std::ffi::OsString;
use std::sync::OnceLock;

static TYPED: OnceLock<Vec<OsString>> = OnceLock::new();

/// Keeps the words that follow the name of the program.
pub fn remember(arguments: impl IntoIterator<Item = OsString>) -> &'static [OsString] {
    TYPED.get_or_init(|| arguments.into_iter().collect())
}

/// The words that follow the name of the program.
pub fn words() -> impl Iterator<Item = String> {
    TYPED.get().into_iter().flatten().map(|word| word.to_string_lossy().into_owned())
}

/// The whole command.
pub fn command() -> String {
    std::iter::once("hbpca".to_owned()).chain(words()).collect::<Vec<_>>().join(" ")
}

/// Whether failures are to be printed as objects, too.
pub fn asks_for_json() -> bool {
    TYPED
        .get()
        .is_some_and(|words| words.iter().take_while(|word| *word != "--").any(|word| word == "--json"))
}
