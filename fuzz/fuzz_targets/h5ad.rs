#![no_main]

use hbpca::CountTransform;
use hbpca_io::{CellOptions, ColumnRef, Format, ReadOptions, read_bytes};

// Everything that a reader of cells may be told to look at: a mask of genes, counts, the names of cells.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let counts = CountTransform { total: Some(1e4), log1p: true };
    let cells = CellOptions { mask: Some("highly_variable".into()), counts, ..CellOptions::default() };
    let options = ReadOptions { cells, keep: vec![ColumnRef::Name("index".into())], ..ReadOptions::default() };
    let _ = read_bytes(bytes, Format::H5ad, &options);
});
