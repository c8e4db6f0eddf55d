//! `hbpca report`: one page about a model.

use crate::args::ReportArgs;
use crate::exit::{Exit, Failure};
use crate::output::model_page::ModelPage;
use crate::output::say::{self, Verbosity};
use crate::plan::{self, Files, Source};

/// Runs `hbpca report`.
pub fn run(args: &ReportArgs) -> Result<Exit, Failure> {
    let verbosity = Verbosity::from(&args.verbosity);
    plan::use_threads(&args.threads, verbosity)?;
    let stored = plan::open_model(&args.model)?;
    let read = Files::default().reads("the model", [&args.model]).reads("data", &args.data.data);
    read.writes("--output", [&args.output]).check()?;
    let mut source = if args.data.data.is_empty() { None } else { Some(Source::find(&args.data)?) };
    source.iter_mut().for_each(|source| source.for_model(&stored));
    let page = ModelPage::begin(&args.output)?;
    let loaded = source.map(|source| source.read(verbosity)).transpose()?;
    let data = loaded.as_ref().map(|loaded| (loaded.name.as_str(), &loaded.data));
    let model = args.model.display().to_string();
    page.write(&stored, Some(model), data, args.data.label_column.as_deref())?;
    if verbosity > Verbosity::Quiet {
        say::line(&format!("wrote {}", args.output.display()));
    }
    Ok(Exit::Success)
}
