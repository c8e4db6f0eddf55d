//! `hbpca inverse`: data from scores.

use hbpca::{Dense, Error, Matrix};
use hbpca_io::StoredModel;

use crate::args::InverseArgs;
use crate::exit::{Exit, Failure};
use crate::output::json::{self, TableObject};
use crate::output::say::{self, Verbosity};
use crate::plan::{self, Files, Source, TableOutput};

/// Runs `hbpca inverse`.
pub fn run(args: &InverseArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads, (&args.verbosity).into())?;
    let read = Files::default().reads("the model", [&args.model]).reads("scores", &args.scores.data);
    read.writes("--output", [&args.output]).check()?;
    plan::refuse_two_on_standard_output(&args.output, args.json.json)?;
    let StoredModel { model, origin } = plan::open_model(&args.model)?;
    let mut source = Source::find(&args.scores)?;
    source.for_scores(model.n_components());
    let output = TableOutput::begin(&args.output, args.output_format.output_format)?;
    let loaded = source.read(Verbosity::from(&args.verbosity))?;
    let refused = |error| Failure::refused(&error, &loaded.name);
    let (scores, k, d) = (&loaded.data.matrix, model.n_components(), model.n_features());
    if scores.n_cols() != k {
        return Err(refused(Error::shape("columns of scores, one for each component", k, scores.n_cols())));
    }
    let rows = model.inverse_transform(&row_major(scores), (&args.whiten).into()).map_err(refused)?;
    let rows = Dense::new(rows, scores.n_rows(), d).map_err(refused)?;
    let numbered = || (0..d).map(|j| format!("column_{j}")).collect();
    let names = model.feature_names().map_or_else(numbered, <[String]>::to_vec);
    let object = TableObject {
        n: scores.n_rows(),
        d,
        from: loaded.data.format.to_string(),
        format: output.format().to_string(),
        output: args.output.clone(),
    };
    output.write(&rows.into(), names, loaded.data.labels, Vec::new())?;
    if let Some(columns) = origin.reading.columns.filter(|_| !args.verbosity.quiet) {
        say::warning(&format!(
            "{}: its columns are the {d} that occur of {}, in their order; the others are 0",
            args.output.display(),
            columns.all
        ));
    }
    if args.json.json {
        json::print(&object)?;
    }
    Ok(Exit::Success)
}

/// Scores are k wide and dense by nature, however they were stored.
fn row_major(scores: &Matrix<'_>) -> Vec<f64> {
    let k = scores.n_cols();
    let mut values = vec![0.0; scores.n_rows() * k];
    for (l, row) in values.chunks_exact_mut(k).enumerate() {
        scores.for_each_in_row(l, |j, x| row[j] = x);
    }
    values
}
