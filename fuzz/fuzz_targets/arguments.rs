#![no_main]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

// One word a line. What was typed is understood or refused; nothing is done.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let words = bytes.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
    let _ = hbpca_cli::understands(words);
});
