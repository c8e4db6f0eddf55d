#![no_main]

use std::sync::Once;

use hbpca_io::{Format, ReadOptions, read_bytes};

static QUIET: Once = Once::new();

// Panics of the decoder beneath are caught by the reader and become errors; libFuzzer's hook would stop at them.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let _ = read_bytes(bytes, Format::Parquet, &ReadOptions::default());
});
