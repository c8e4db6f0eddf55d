//! `hbpca fit`: data in, a certified model out.

use hbpca::certificate::Certainty;
use hbpca::checkpoint::{Checkpoint, Checkpoints, SaveCheckpoint};
use hbpca::operator::Communicator;
use hbpca::probe::ProbeResult;
use hbpca::{
    CancelToken, Centering, Error, Fit, FitConfig, Matrix, Observer, Outcome, Preprocessing, RankRows,
    RowChunks, Scaling,
};
use hbpca_io::{ByteSize, OutputFile, Share, StoredModel};

use std::time::Instant;

use crate::args::FitArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Running;
use crate::output::checkpoint_writer::CheckpointWriter;
use crate::output::progress::{Meter, Progress};
use crate::output::say::{self, Verbosity};
use crate::output::table::{Side, Table};
use crate::output::trace::Trace;
use crate::output::{self, certainty, json, number, warnings};
use crate::plan::{self, CheckpointFiles, FitPlan, RankFitPlan, RankSource, SolverFlags, Source, Streamed};
use crate::ranks;

/// Runs `hbpca fit`.
pub fn run(args: &FitArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads)?;
    let FitPlan { source, streamed, config, solver_flags, checkpoints, model, trace, json, verbosity } =
        FitPlan::new(args)?;
    around(
        &config,
        &solver_flags,
        checkpoints,
        model,
        trace,
        json,
        verbosity,
        |observers, checkpoints, refused, meter| {
            let found = match streamed {
                None => in_memory(source, &config, observers, checkpoints, refused, verbosity),
                Some(streamed) => {
                    from_disk(source, streamed, &config, observers, checkpoints, refused, meter, verbosity)
                }
            };
            found.map(Some)
        },
    )
}

/// The same as one of the ranks that a launcher started; rank 0 speaks and writes for all.
pub fn run_on_ranks(args: &FitArgs, ranks: &dyn Communicator) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads)?;
    let of = (ranks.rank(), ranks.size());
    let RankFitPlan { source, config, solver_flags, checkpoints, model, trace, verbosity } =
        ranks::agree(ranks, RankFitPlan::new(args, of))?;
    let fits = ranks::all(ranks, source.fits())?;
    around(
        &config,
        &solver_flags,
        checkpoints,
        model,
        trace,
        args.json,
        verbosity,
        |observers, checkpoints, refused, _meter| {
            on_ranks(source, fits, ranks, &config, observers, checkpoints, refused)
        },
    )
}

/// What is told of a run.
type Observers<'a> = [&'a mut (dyn Observer + Send + 'a)];
/// How an error of the core becomes one of the command.
type Refused<'a> = &'a dyn Fn(&Error, &str) -> Failure;

/// What surrounds a fit: progress and checkpoints before, files and reports after. Ranks without a fit have neither.
#[allow(clippy::too_many_arguments, reason = "all that a fit depends on")]
fn around(
    config: &FitConfig,
    solver_flags: &SolverFlags,
    checkpoints: CheckpointFiles,
    model: Option<OutputFile>,
    mut trace: Option<Trace>,
    json: bool,
    verbosity: Verbosity,
    fitting: impl FnOnce(
        &mut Observers<'_>,
        Checkpoints<'_>,
        Refused<'_>,
        Meter,
    ) -> Result<Option<(Fit, About)>, Failure>,
) -> Result<Exit, Failure> {
    let limits = &config.limits;
    let mut progress = Progress::new(verbosity, limits.tol, limits.max_passes, limits.max_seconds);
    let meter = progress.meter();
    let mut observers: Vec<&mut (dyn Observer + Send)> = vec![&mut progress];
    observers.extend(trace.as_mut().map(|trace| trace as &mut (dyn Observer + Send)));
    let CheckpointFiles { file, every, from, replaces } = checkpoints;
    if let Some(file) = file.as_ref().filter(|_| replaces && verbosity > Verbosity::Quiet) {
        let file = file.display();
        say::warning(&format!(
            "{file} is the checkpoint of an earlier run, and this one replaces it: --resume {file} goes on from it instead"
        ));
    }
    let mut writer = file.map(|file| CheckpointWriter::new(file, verbosity));
    let save = writer.as_mut().map(|writer| -> SaveCheckpoint<'_> {
        Box::new(|checkpoint: &Checkpoint| {
            writer.save(checkpoint);
            Ok(())
        })
    });
    let (resumed, resume) = from.unzip();
    let checkpoints = Checkpoints { data: String::new(), every, save, resume };
    let refused = |error: &Error, name: &str| match (error, &resumed) {
        (Error::Checkpoint(_), Some(file)) => Failure::Input(format!("{}: {error}", file.display())),
        _ => Failure::refused(error, name),
    };
    let Some((fit, about)) = fitting(&mut observers, checkpoints, &refused, meter)? else {
        return Ok(Exit::Success); // another rank has the fit
    };

    // Files first: a reader of the table that went away must not cost the model.
    if let Some(file) = model {
        StoredModel::of_fit(&fit, &fit.chosen_because, limits.tol).write(file)?;
    }
    trace.map_or(Ok(()), Trace::finish)?;
    if json {
        let stream = about.stream.as_ref();
        json::print(&json::FitObject::new(&fit, about.nnz, limits, about.read_seconds, stream))?;
    } else {
        output::print(&report(&fit, &about))?;
    }
    if verbosity > Verbosity::Quiet {
        let names = about.column_names.as_deref();
        let idle_flags = solver_flags.idle_for(fit.solver);
        warnings::of_fit(&fit, limits, &idle_flags, names).iter().for_each(|text| say::warning(text));
        if fit.outcome != Outcome::Converged {
            writer.and_then(|writer| writer.way_on()).iter().for_each(|text| say::line(text));
        }
    }
    Ok(fit.outcome.into())
}

/// What is said about the data beside the fit.
struct About {
    name: String,
    /// How it is stored.
    storage: String,
    nnz: usize,
    column_names: Option<Vec<String>>,
    read_seconds: f64,
    stream: Option<json::StreamObject>,
}

/// Loads everything and fits it.
fn in_memory(
    source: Source,
    config: &FitConfig,
    observers: &mut Observers<'_>,
    checkpoints: Checkpoints<'_>,
    refused: Refused<'_>,
    verbosity: Verbosity,
) -> Result<(Fit, About), Failure> {
    let loaded = source.read(verbosity)?;
    let matrix = &loaded.data.matrix;
    plan::refuse_huge_covariance(config, matrix.n_cols())?;
    let wanted = checkpoints.save.is_some() || checkpoints.resume.is_some();
    let data = if wanted { matrix.fingerprint(None) } else { String::new() };
    let cancel = CancelToken::default();
    let running = Running::with(&cancel);
    let fit = config
        .run()
        .observers(observers)
        .cancelled_by(&cancel)
        .checkpoints(Checkpoints { data, ..checkpoints })
        .fit(matrix)
        .map_err(|error| refused(&error, &loaded.name))?;
    drop(running);
    let kind = plan::kind(matrix);
    let about = About {
        storage: storage(kind, matrix.is_sparse(), matrix.nnz()),
        nnz: matrix.nnz(),
        name: loaded.name,
        column_names: loaded.data.column_names,
        read_seconds: loaded.seconds,
        stream: None,
    };
    Ok((fit, about))
}

/// Fits rows that stay on disk.
#[allow(clippy::too_many_arguments, reason = "all that a fit depends on")]
fn from_disk(
    source: Source,
    streamed: Streamed,
    config: &FitConfig,
    observers: &mut Observers<'_>,
    checkpoints: Checkpoints<'_>,
    refused: Refused<'_>,
    meter: Meter,
    verbosity: Verbosity,
) -> Result<(Fit, About), Failure> {
    let name = source.name;
    if verbosity > Verbosity::Quiet {
        say::line(&streamed.announcement(&name));
    }
    let plan::Streamed { rows, plan, memory } = streamed;
    let (sparse, nnz) = (rows.is_sparse(), rows.nnz());
    let cancel = CancelToken::default();
    let running = Running::with(&cancel);
    let metered = meter.around(rows, plan.bytes);
    let fit = config
        .run()
        .observers(observers)
        .cancelled_by(&cancel)
        .checkpoints(checkpoints)
        .fit_planned(metered, plan.clone())
        .map_err(|error| refused(&error, &name))?;
    drop(running);
    let about = About {
        storage: storage(if sparse { "sparse, on disk" } else { "dense, on disk" }, sparse, nnz),
        nnz,
        name,
        column_names: None,
        read_seconds: 0.0,
        stream: Some(json::StreamObject::new(&fit, &plan, memory)),
    };
    Ok((fit, about))
}

/// Fits this rank's rows with those of all others.
fn on_ranks(
    source: RankSource,
    fits: bool,
    ranks: &dyn Communicator,
    config: &FitConfig,
    observers: &mut Observers<'_>,
    checkpoints: Checkpoints<'_>,
    refused: Refused<'_>,
) -> Result<Option<(Fit, About)>, Failure> {
    let clock = Instant::now();
    let (name, share, options) = source.into_parts();
    let loaded: Matrix<'static>;
    let rows = match share {
        Share::Rows { rows, memory, .. } if !fits => {
            let about = (rows.is_sparse(), rows.nnz(), "on disk");
            Ok((about, RankRows::Disk { rows: Box::new(rows), memory }))
        }
        share => match RankSource::load(share, &options) {
            Ok(matrix) => {
                loaded = matrix;
                Ok(((loaded.is_sparse(), loaded.nnz(), "in memory"), RankRows::Memory(&loaded)))
            }
            Err(error) => Err(error),
        },
    };
    let read_seconds = clock.elapsed().as_secs_f64();
    let (about, rows) = match rows {
        Ok((about, rows)) => (Some(about), Ok(rows)),
        Err(error) => (None, Err(error)),
    };
    let entries = ranks::total(ranks, about.map_or(0, |(_, entries, _)| entries))?;
    let cancel = CancelToken::default();
    let running = Running::with(&cancel);
    let run = config.run().observers(observers).cancelled_by(&cancel).checkpoints(checkpoints);
    let fit = run.fit_on_ranks(rows, ranks).map_err(|error| refused(&error, &name))?;
    drop(running);
    let (Some(fit), Some((sparse, _, place))) = (fit, about) else { return Ok(None) };
    let kind = if sparse { "sparse" } else { "dense" };
    let about = About {
        storage: storage(&format!("{kind}, {place} on {} ranks", fit.ranks), sparse, entries),
        nnz: entries,
        name,
        column_names: None,
        read_seconds,
        stream: None,
    };
    Ok(Some((fit, about)))
}

/// What a person reads.
fn report(fit: &Fit, about: &About) -> String {
    let (model, certificate, chosen_because) = (&fit.model, &fit.certificate, &fit.chosen_because);
    let says_status = (0..model.n_components()).any(|i| !certainty::status(certificate, i).is_empty());
    let mut columns = vec![
        ("component", Side::Right),
        ("eigenvalue", Side::Right),
        ("± at most", Side::Right),
        ("share", Side::Right),
        ("cumulative", Side::Right),
        ("angle at most", Side::Right),
    ];
    columns.extend(says_status.then_some(("status", Side::Left)));
    let mut table = Table::new(&columns);
    let ratios = model.explained_variance_ratio();
    let mut cumulative = 0.0;
    for (i, ratio) in ratios.iter().enumerate() {
        cumulative += ratio;
        table.row([
            (i + 1).to_string(),
            number::value(model.eigenvalues()[i]),
            number::small(certificate.residuals[i]),
            number::percent(*ratio),
            number::percent(cumulative),
            certainty::angle(certificate, i),
            certainty::status(certificate, i).to_owned(),
        ]);
    }
    let summary = model.summary();
    let reading = match &about.stream {
        None => format!("after {} of reading", number::seconds(about.read_seconds)),
        Some(_) => format!("{} read from disk", ByteSize(fit.bytes_read)),
    };
    let cut = certainty::cut_cluster(certificate).map_or_else(String::new, |cut| format!("{cut}.\n"));
    let probed = fit.probe.as_ref().map_or_else(String::new, |probe| {
        format!("{}, after {}.\n", probe_in_words(fit, probe), certainty::of_probe(probe))
    });
    format!(
        "{}: {} rows × {} columns, {}\n{} ({chosen_because}), {}\n\n{}\n{}: {}.\n{cut}{probed}{} and {} for column statistics in {}, {reading}\n",
        about.name,
        number::count(summary.n),
        number::count(summary.d),
        about.storage,
        fit.solver,
        preparation(summary.preprocessing),
        table.render(),
        fit.outcome,
        certificate,
        number::plural(fit.passes, "pass", "passes"),
        number::short(fit.statistics_passes),
        number::seconds(fit.seconds),
    )
}

/// What a probe says of whether the components lead.
fn probe_in_words(fit: &Fit, probe: &ProbeResult) -> String {
    let certificate = &fit.certificate;
    if certificate.is_refuted_by(probe.least) {
        return "these components do not lead: there is more variance beside them".into();
    }
    match certificate.certainty {
        Certainty::Estimated => {
            "it could not be verified that these components lead: the next eigenvalue is too close".into()
        }
        _ => format!("these components lead {}", certificate.certainty_in_words()),
    }
}

fn storage(kind: &str, sparse: bool, nnz: usize) -> String {
    if sparse { format!("{kind}, {} entries", number::count(nnz)) } else { kind.into() }
}

/// The preparation in words.
pub fn preparation(preprocessing: Preprocessing) -> String {
    let centred = match preprocessing.centering {
        Centering::None => "not centred",
        _ => "centred",
    };
    match preprocessing.scaling {
        Scaling::None => centred.into(),
        Scaling::Std => format!("{centred}, scaled to standard deviation 1"),
        Scaling::MinMax => format!("{centred}, scaled to range 1"),
        other => format!("{centred}, scaled: {}", other.name()),
    }
}
