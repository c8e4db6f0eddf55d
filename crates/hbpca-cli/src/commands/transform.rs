//! `hbpca transform`: scores of data under a model.

use hbpca::Dense;
use hbpca_io::score_names;

use super::genotypes;
use crate::args::TransformArgs;
use crate::exit::{Exit, Failure};
use crate::output::say::Verbosity;
use crate::plan::{self, Files, Source, TableOutput};

/// Runs `hbpca transform`.
pub fn run(args: &TransformArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads, (&args.verbosity).into())?;
    let read = Files::default().reads("the model", [&args.model]).reads("data", &args.data.data);
    read.writes("--output", [&args.output]).check()?;
    let stored = plan::open_model(&args.model)?;
    let (model, reading) = (&stored.model, &stored.origin.reading);
    let missing = args.missing.unwrap_or(reading.missing);
    let holes = missing
        .in_new_rows(model.summary().preprocessing.centering, reading.ridge())
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let mut source = Source::find(&args.data)?;
    if source.is_genotypes() {
        if let Some(columns) = &args.keep {
            source.keep(columns);
        }
        return genotypes::transform(args, model, source);
    }
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
    output.write(&scores.into(), score_names(k), loaded.data.labels, loaded.data.kept)?;
    Ok(Exit::Success)
}
