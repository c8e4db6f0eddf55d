#![no_main]

use hbpca_io::{Format, ReadOptions, read_bytes};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = read_bytes(bytes, Format::Npy, &ReadOptions::default());
});
