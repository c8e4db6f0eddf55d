#![no_main]

use hbpca_io::{ColumnRef, Format, ReadOptions, read_bytes};

// Tables with a label column and columns chosen in another order.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let options = ReadOptions {
        label_column: Some(ColumnRef::Index(-1)),
        columns: Some(vec![ColumnRef::Index(1), ColumnRef::Index(0)]),
        ..ReadOptions::default()
    };
    let _ = read_bytes(bytes, Format::Tsv, &options);
});
