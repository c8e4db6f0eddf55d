//! `hbpca convert`: one format into another, in bounded memory.

use std::path::Path;

use hbpca::{Dense, Matrix};
use hbpca_io::{Format, Labels, StoredModel, WriteOptions, convert, write};
use hbpca_lab::fit_report::column_names;

use super::genotypes;
use crate::args::ConvertArgs;
use crate::exit::{Exit, Failure};
use crate::output::json::{self, TableObject};
use crate::output::number;
use crate::output::progress::Spinner;
use crate::output::say::{self, Verbosity};
use crate::plan::{self, Files, Source, known_format};

/// Runs `hbpca convert`.
pub fn run(args: &ConvertArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads, (&args.verbosity).into())?;
    Files::default().reads("data", &args.input.data).writes("OUT", [&args.output]).check()?;
    if let [path] = args.input.data.as_slice()
        && genotypes::is_of_plink(&args.output)
        && StoredModel::recognise(path)
    {
        return genotypes::convert(&plan::open_model(path)?, &args.output);
    }
    let format = known_format(&args.output)?;
    if let [path] = args.input.data.as_slice()
        && StoredModel::recognise(path)
    {
        return loadings(path, args, format);
    }
    let mut source = Source::find(&args.input)?;
    source.prepare_cells(&args.cells)?;
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
    if verbosity > Verbosity::Quiet {
        done.notes.iter().for_each(|note| say::warning(note));
    }
    if args.json.json {
        json::print(&TableObject {
            n: done.summary.n_rows,
            d: done.summary.n_columns,
            from: done.from.to_string(),
            format: done.to.to_string(),
            output: args.output.clone(),
        })?;
    }
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

/// Writes the loadings of a model: one row for each column of its data, one column for each component.
fn loadings(path: &Path, args: &ConvertArgs, format: Format) -> Result<Exit, Failure> {
    let stored = plan::open_model(path)?;
    let model = &stored.model;
    let (d, k) = (model.n_features(), model.n_components());
    let refused = |error| Failure::refused(&error, &path.display().to_string());
    let values = (0..d * k).map(|i| model.component(i % k)[i / k]).collect();
    let table: Matrix = Dense::new(values, d, k).map_err(refused)?.into();
    let options = WriteOptions {
        column_names: Some((1..=k).map(|i| format!("component_{i}")).collect()),
        kept: vec![("column".into(), Labels::Texts(column_names(&stored, None)))],
        ..WriteOptions::default()
    };
    write(&args.output, &table, &options)?;
    if args.json.json {
        json::print(&TableObject {
            n: d,
            d: k,
            from: "model".into(),
            format: format.to_string(),
            output: args.output.clone(),
        })?;
    }
    Ok(Exit::Success)
}
