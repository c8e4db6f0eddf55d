//! `convert IN OUT [LABEL_COLUMN]`: one file into another, in bounded memory.

use hbpca_io::{ColumnRef, ConvertError, Input, ReadOptions, WriteOptions, convert};

fn main() -> Result<(), ConvertError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, label @ ..] = &arguments[..] else {
        eprintln!("usage: convert IN OUT [LABEL_COLUMN]");
        return Ok(());
    };
    let label_column = label.first().map(|name| ColumnRef::parse(name));
    let options = ReadOptions { label_column, ..ReadOptions::default() };
    let done = convert(Input::path(input), &options, output.as_ref(), &WriteOptions::default())?;
    let summary = done.summary;
    println!(
        "{} × {}, {} entries, {} → {}",
        summary.n_rows, summary.n_columns, summary.n_entries, done.from, done.to
    );
    Ok(())
}
