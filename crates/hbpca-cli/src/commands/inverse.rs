//! `hbpca inverse`: data from scores.

use hbpca::{Dense, Error, Matrix};

use crate::args::InverseArgs;
use crate::exit::{Exit, Failure};
use crate::output::say::Verbosity;
use crate::plan::{self, Source, TableOutput};

/// Runs `hbpca inverse`.
pub fn run(args: &InverseArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads, (&args.verbosity).into())?;
    let model = plan::open_model(&args.model)?.model;
    let source = Source::find(&args.scores)?;
    let output = TableOutput::begin(&args.output)?;
    let loaded = source.read(Verbosity::from(&args.verbosity))?;
    let refused = |error| Failure::refused(&error, &loaded.name);
    let (scores, k, d) = (&loaded.data.matrix, model.n_components(), model.n_features());
    if scores.n_cols() != k {
        return Err(refused(Error::shape("columns of scores, one for each component", k, scores.n_cols())));
    }
    let rows = model.inverse_transform(&row_major(scores), (&args.whiten).into()).map_err(refused)?;
    let rows = Dense::new(rows, scores.n_rows(), d).map_err(refused)?;
    output.write(&rows.into(), (0..d).map(|j| format!("column_{j}")).collect(), loaded.data.labels)?;
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
