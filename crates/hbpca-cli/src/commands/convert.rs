//! `hbpca convert`: one format into another, in bounded memory.

use hbpca_io::{WriteOptions, convert};

use crate::args::ConvertArgs;
use crate::exit::{Exit, Failure};
use crate::output::number;
use crate::output::progress::Spinner;
use crate::output::say::{self, Verbosity};
use crate::plan::{self, Source, known_format};

/// Runs `hbpca convert`.
pub fn run(args: &ConvertArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads, (&args.verbosity).into())?;
    known_format(&args.output)?;
    let source = Source::find(&args.input)?;
    let verbosity = Verbosity::from(&args.verbosity);
    let spinner = Spinner::new(verbosity, &format!("converting {}", source.name));
    let name = source.name.clone();
    let (input, options) = source.into_parts();
    let write_options = WriteOptions {
        label_column: args.input.label_column.clone(),
        shuffle: args.shuffle,
        part_bytes: (args.part_size as usize) << 20,
        ..WriteOptions::default()
    };
    let done = convert(input, &options, &args.output, &write_options)?;
    drop(spinner);
    if verbosity == Verbosity::Verbose {
        say::line(&format!(
            "{name} ({}) → {} ({}): {} rows × {} columns",
            done.from,
            args.output.display(),
            done.to,
            number::count(done.summary.n_rows),
            number::count(done.summary.n_columns)
        ));
    }
    Ok(Exit::Success)
}
