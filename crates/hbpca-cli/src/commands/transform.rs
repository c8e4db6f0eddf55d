//! `hbpca transform`: scores of data under a model.

use hbpca::Dense;
use hbpca::operator::SingleRank;
use hbpca_io::score_names;

use super::{genotypes, transform_parts};
use crate::args::TransformArgs;
use crate::exit::{Exit, Failure};
use crate::output::json::{self, TableObject};
use crate::output::say::Verbosity;
use crate::plan::{self, Files, Source, TableOutput};

/// Runs `hbpca transform`.
pub fn run(args: &TransformArgs) -> Result<Exit, Failure> {
    if transform_parts::is_folder(&args.output) {
        return transform_parts::run(args, &SingleRank);
    }
    plan::use_threads(&args.threads, (&args.verbosity).into())?;
    let written = scores(args)?;
    if args.json.json {
        json::print(&written)?;
    }
    Ok(Exit::Success)
}

/// Writes the scores of all data to one file.
pub fn scores(args: &TransformArgs) -> Result<TableObject, Failure> {
    let read = Files::default().reads("the model", [&args.model]).reads("data", &args.data.data);
    read.writes("--output", [&args.output]).check()?;
    plan::refuse_two_on_standard_output(&args.output, args.json.json)?;
    let stored = plan::open_model(&args.model)?;
    let (model, reading) = (&stored.model, &stored.origin.reading);
    let mut source = Source::find(&args.data)?;
    if source.is_genotypes() {
        if let Some(columns) = &args.keep {
            source.keep(columns);
        }
        return genotypes::transform(args, &stored, source);
    }
    let missing = args.missing.unwrap_or(reading.missing);
    let holes = missing
        .in_new_rows(model.summary().preprocessing.centering, reading.ridge())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    source.for_model(&stored);
    source.hold_missing(missing);
    if let Some(columns) = &args.keep {
        source.keep(columns);
    }
    let output = TableOutput::begin(&args.output, args.output_format.output_format)?;
    let loaded = source.read(Verbosity::from(&args.verbosity))?;
    let (matrix, whitening) = (&loaded.data.matrix, (&args.whiten).into());
    let refused = |error| Failure::refused(&error, &loaded.name);
    let scores: Vec<f64> =
        model.projection(whitening).transform_with_holes(matrix, holes).map_err(refused)?;
    let k = model.n_components();
    // Scores of rows that were dropped are missing.
    let scores = Dense::deferring_finite_check(scores.into(), matrix.n_rows(), k).map_err(refused)?;
    let object = TableObject {
        n: matrix.n_rows(),
        d: k,
        from: loaded.data.format.to_string(),
        format: output.format().to_string(),
        output: args.output.clone(),
    };
    output.write(&scores.into(), score_names(k), loaded.data.labels, loaded.data.kept)?;
    Ok(object)
}
