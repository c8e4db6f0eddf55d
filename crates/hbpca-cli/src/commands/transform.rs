//! `hbpca transform`: scores of data under a model.

use hbpca::Dense;

use crate::args::TransformArgs;
use crate::exit::{Exit, Failure};
use crate::output::say::Verbosity;
use crate::plan::{self, Source, TableOutput};

/// Runs `hbpca transform`.
pub fn run(args: &TransformArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads, (&args.verbosity).into())?;
    let model = plan::open_model(&args.model)?.model;
    let source = Source::find(&args.data)?;
    let output = TableOutput::begin(&args.output)?;
    let loaded = source.read(Verbosity::from(&args.verbosity))?;
    let (matrix, whitening) = (&loaded.data.matrix, (&args.whiten).into());
    let refused = |error| Failure::refused(&error, &loaded.name);
    let scores = model.transform(matrix, whitening).map_err(refused)?;
    let k = model.n_components();
    let scores = Dense::new(scores, matrix.n_rows(), k).map_err(refused)?;
    output.write(&scores.into(), (1..=k).map(|i| format!("component_{i}")).collect(), loaded.data.labels)?;
    Ok(Exit::Success)
}
