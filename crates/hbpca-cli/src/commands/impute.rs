//! `hbpca impute`: missing values filled in.

use hbpca::missing::Missing;
use hbpca::{CancelToken, FitConfig};

use crate::args::ImputeArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Running;
use crate::output::say::{self, Verbosity};
use crate::plan::{self, Files, Source, TableOutput};

/// Runs `hbpca impute`.
pub fn run(args: &ImputeArgs) -> Result<Exit, Failure> {
    let verbosity = Verbosity::from(&args.verbosity);
    plan::use_threads(&args.threads, verbosity)?;
    Files::default().reads("data", &args.data.data).writes("--output", [&args.output]).check()?;
    let missing = args.missing.missing.unwrap_or(Missing::Em);
    if !matches!(missing, Missing::Em | Missing::Mean) {
        return Err(Failure::Usage(format!("--missing {missing} fills nothing in: choose em or mean")));
    }
    let config = FitConfig {
        k: args.k,
        missing,
        em: args.missing.em_limits(missing)?,
        preprocessing: (&args.preparation).into(),
        seed: args.seed,
        threads: plan::threads(&args.threads),
        memory: hbpca_io::machine_memory(),
        ..FitConfig::default()
    };
    let mut source = Source::find(&args.data)?;
    source.hold_missing(missing);
    if let Some(columns) = &args.keep {
        source.keep(columns);
    }
    let output = TableOutput::begin(&args.output, args.output_format.output_format)?;
    let loaded = source.read(verbosity)?;
    let data = loaded.data;
    let cancel = CancelToken::default();
    let running = Running::with(&cancel);
    let done = config
        .run()
        .cancelled_by(&cancel)
        .fit_completing(data.matrix)
        .map_err(|error| Failure::refused(&error, &loaded.name))?;
    drop(running);
    let numbered = || (0..done.matrix.n_cols()).map(|j| format!("column_{j}")).collect();
    output.write(&done.matrix, data.column_names.unwrap_or_else(numbered), data.labels, data.kept)?;
    if verbosity > Verbosity::Quiet {
        let what =
            done.fit.missing.map_or_else(|| "nothing is missing".to_owned(), |report| report.to_string());
        say::line(&format!("{}: {what}", loaded.name));
    }
    Ok(done.fit.outcome.into())
}
