//! `hbpca fit`: data in, a certified model out.

use hbpca::certificate::Certainty;
use hbpca::checkpoint::{Checkpoint, Checkpoints, SaveCheckpoint};
use hbpca::missing::{Missing, MissingReport};
use hbpca::operator::{Communicator, SingleRank};
use hbpca::probe::ProbeResult;
use hbpca::{
    CancelToken, Centering, CountTransform, Error, Fit, Limits, Observer, Outcome, Preprocessing, RowChunks,
    Scaling,
};
use hbpca_io::{ByteSize, Categories, Cut, Data, OccurringColumns, OutputFile, Reading, StoredModel};

use std::time::Instant;

use super::genotypes;
use crate::args::FitArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Running;
use crate::output::checkpoint_writer::CheckpointWriter;
use crate::output::model_page::ModelPage;
use crate::output::progress::{Meter, Progress};
use crate::output::say::{self, Verbosity};
use crate::output::table::{Side, Table};
use crate::output::trace::Trace;
use crate::output::{self, certainty, json, number, warnings};
use crate::plan::{
    self, Asked, CheckpointFiles, Components, FitOutputs, FitPlan, Loaded, OwnRows, RankFitPlan, RankSource,
    SolverFlags, Source, Streamed, Weights,
};
use crate::ranks;

/// Runs `hbpca fit`.
pub fn run(args: &FitArgs) -> Result<Exit, Failure> {
    if args.reproducible {
        return run_on_ranks(args, &SingleRank);
    }
    plan::use_threads(&args.threads, (&args.verbosity).into())?;
    let FitPlan {
        source,
        copy: _copy,
        streamed,
        weights,
        config,
        components,
        start_names,
        solver_flags,
        checkpoints,
        outputs,
        verbosity,
    } = FitPlan::new(args)?;
    let asked = Asked { config: &config, components, start_names: start_names.as_deref() };
    let limits = &config.limits;
    let around = Around { args, limits, components, solver_flags, checkpoints, outputs, verbosity };
    around.fit(|with| {
        let found = match streamed {
            None if source.is_genotypes() => {
                genotypes::fit(source, (&weights, args.memory), &asked, with, verbosity)
            }
            None => in_memory(source, &weights, &asked, with, verbosity),
            Some(streamed) => from_disk(source, streamed, &asked, with, verbosity),
        };
        found.map(Some)
    })
}

/// The same as one of the ranks that a launcher started; rank 0 speaks and writes for all.
pub fn run_on_ranks(args: &FitArgs, ranks: &dyn Communicator) -> Result<Exit, Failure> {
    let leads = ranks.rank() == 0;
    let verbosity = if leads { (&args.verbosity).into() } else { Verbosity::Quiet };
    let of = (ranks.rank(), ranks.size());
    let planned = plan::use_threads(&args.threads, verbosity).and_then(|()| RankFitPlan::new(args, of));
    let RankFitPlan {
        source,
        weights,
        cut,
        config,
        components,
        start_names,
        solver_flags,
        checkpoints,
        outputs,
    } = ranks::agree(ranks, planned)?;
    let limits = &config.limits;
    let around = Around { args, limits, components, solver_flags, checkpoints, outputs, verbosity };
    let asked = Asked { config: &config, components, start_names: start_names.as_deref() };
    around.fit(|with| on_ranks((source, &weights, cut), ranks, &asked, with))
}

/// What surrounds a fit: progress and checkpoints before, files and reports after.
struct Around<'a> {
    args: &'a FitArgs,
    limits: &'a Limits,
    components: Components,
    solver_flags: SolverFlags,
    checkpoints: CheckpointFiles,
    outputs: FitOutputs,
    verbosity: Verbosity,
}

/// What a fit is given besides its data.
pub struct With<'a, 'b> {
    /// Told of every iterate.
    pub observers: &'a mut [&'b mut (dyn Observer + Send + 'b)],
    /// Where the run is saved, and what it goes on from.
    pub checkpoints: Checkpoints<'a>,
    /// How an error of the core becomes one of the command.
    pub refused: &'a dyn Fn(&Error, &str) -> Failure,
    meter: Meter,
}

impl Around<'_> {
    /// Ranks without a fit have nothing to report.
    fn fit(
        self,
        fitting: impl FnOnce(With<'_, '_>) -> Result<Option<(Fit, About)>, Failure>,
    ) -> Result<Exit, Failure> {
        let Self { args, limits, components, solver_flags, checkpoints, outputs, verbosity } = self;
        let FitOutputs { model, report: page, mut trace } = outputs;
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
        let with = With { observers: &mut observers, checkpoints, refused: &refused, meter };
        let Some((fit, about)) = fitting(with)? else {
            return Ok(Exit::Success); // another rank has the fit
        };

        refuse_no_variance(&fit, &about)?;
        // Files first: a reader of the table that went away must not cost the model, and a full disk not the table.
        let written =
            write_files(&fit, &about, limits.tol, model, page, args).and(trace.map_or(Ok(()), Trace::finish));
        if args.json {
            let stream = about.stream.as_ref();
            let all_columns = about.occurring.as_ref().map(|columns| columns.all);
            let object = json::FitObject::new(&fit, about.nnz, limits, about.read_seconds, stream);
            json::print(&object.among(all_columns))?;
        } else {
            output::print_report(&report(&fit, &about, components))?;
        }
        if verbosity > Verbosity::Quiet {
            let names = about.column_names.as_deref();
            let idle_flags = solver_flags.idle_for(fit.solver);
            warnings::of_fit(&fit, limits, &idle_flags, names).iter().for_each(|text| say::warning(text));
            if fit.outcome != Outcome::Converged {
                writer.and_then(|writer| writer.way_on()).iter().for_each(|text| say::line(text));
            }
        }
        written?;
        Ok(fit.outcome.into())
    }
}

/// Writes the model and the page about it, where they are wanted.
fn write_files(
    fit: &Fit,
    about: &About,
    tol: f64,
    model: Option<OutputFile>,
    page: Option<ModelPage>,
    args: &FitArgs,
) -> Result<(), Failure> {
    if model.is_none() && page.is_none() {
        return Ok(());
    }
    let stored = StoredModel::of_fit(fit, &fit.chosen_because, tol)
        .with_reading(Reading {
            weight_column: Weights::from(&args.weights).column(),
            missing: about.missing,
            missing_values: fit.missing,
            categories: about.categories.clone(),
            columns: about.occurring.clone(),
            layer: args.data.layer.clone(),
            mask: args.cells.mask.clone(),
            counts: CountTransform { total: args.cells.normalize, log1p: args.cells.log1p },
        })
        .with_feature_names(about.column_names.clone())
        .map_err(|error| Failure::refused(&error, &about.name))?;
    model.map_or(Ok(()), |file| stored.write(file))?;
    if let Some(page) = page {
        let name = args.output.as_ref().map(|path| path.display().to_string());
        let data = about.data.as_ref().map(|data| (about.name.as_str(), data));
        page.write(&stored, name, data, args.data.label_column.as_deref())?;
    }
    Ok(())
}

/// Refuses data in which nothing varies: components of it would mean nothing, however well they *converged*.
fn refuse_no_variance(fit: &Fit, about: &About) -> Result<(), Failure> {
    let summary = fit.model.summary();
    let varies = fit.certificate.n_varying() > 0 && summary.total_variance > 0.0;
    if varies || fit.outcome == Outcome::Interrupted {
        return Ok(());
    }
    let why = match (summary.preprocessing.centering, summary.n) {
        (Centering::None, _) => "every entry is zero: there is nothing to find components of",
        (_, 1) => {
            "one row has no variance once its mean is subtracted: give more rows, or --no-center for the plain second moment"
        }
        _ => {
            "every column is constant: there is no variance to find components of; look at `hbpca info`, or use --no-center for \
             the plain second moment"
        }
    };
    Err(Failure::Input(format!("{}: {why}", about.name)))
}

/// What is said about the data beside the fit.
pub struct About {
    /// What messages call it.
    pub name: String,
    /// How it is stored.
    pub storage: String,
    /// Its entries.
    pub nnz: usize,
    /// The names of its columns.
    pub column_names: Option<Vec<String>>,
    /// What text columns were coded into.
    pub categories: Vec<Categories>,
    /// Which of its columns these are, where the others do not occur and were left out.
    pub occurring: Option<OccurringColumns>,
    /// What became of missing values.
    pub missing: Missing,
    /// Seconds that reading took.
    pub read_seconds: f64,
    /// The data where it is in memory.
    pub data: Option<Data>,
    /// What was read in every pass.
    pub stream: Option<json::StreamObject>,
}

/// Loads everything and fits it.
fn in_memory(
    source: Source,
    weights: &Weights,
    asked: &Asked<'_>,
    with: With<'_, '_>,
    verbosity: Verbosity,
) -> Result<(Fit, About), Failure> {
    let With { observers, checkpoints, refused, .. } = with;
    let mut loaded = source.read(verbosity)?;
    let weights = weights.of(&mut loaded.data)?;
    let shape = (loaded.data.matrix.n_rows(), loaded.data.matrix.n_cols());
    let whole = asked.of(loaded.data.column_names.as_deref(), &loaded.name, shape)?;
    let (loaded, occurring) = loaded.within(&whole, verbosity)?;
    let Loaded { name, mut data, seconds } = loaded;
    let matrix = &data.matrix;
    let config = asked.of(data.column_names.as_deref(), &name, (matrix.n_rows(), matrix.n_cols()))?;
    plan::refuse_huge_covariance(&config, matrix.n_cols())?;
    let wanted = checkpoints.save.is_some() || checkpoints.resume.is_some();
    let fingerprint = if wanted { matrix.fingerprint(weights.as_deref()) } else { String::new() };
    let cancel = CancelToken::default();
    let running = Running::with(&cancel);
    let run = config.run();
    let run = if data.narrowed { run.rounded_from_double() } else { run };
    let run = run
        .weights(weights.as_deref())
        .observers(observers)
        .cancelled_by(&cancel)
        .checkpoints(Checkpoints { data: fingerprint, ..checkpoints });
    let (kind, sparse, nnz) = (plan::kind(matrix), matrix.is_sparse(), matrix.nnz());
    let (fit, whole) = if config.missing == Missing::Error {
        (run.fit(matrix).map_err(|error| refused(&error, &name))?, true)
    } else {
        let done = run.fit_completing(data.matrix).map_err(|error| refused(&error, &name))?;
        data = Data { matrix: done.matrix, ..data };
        (done.fit, done.dropped.is_empty())
    };
    drop(running);
    let about = About {
        storage: storage(kind, sparse, nnz),
        nnz,
        name,
        column_names: data.column_names.clone(),
        categories: std::mem::take(&mut data.categories),
        occurring,
        missing: config.missing,
        read_seconds: seconds,
        // Labels belong to all rows.
        data: whole.then_some(data),
        stream: None,
    };
    Ok((fit, about))
}

/// Fits rows that stay on disk.
fn from_disk(
    source: Source,
    streamed: Streamed,
    asked: &Asked<'_>,
    with: With<'_, '_>,
    verbosity: Verbosity,
) -> Result<(Fit, About), Failure> {
    let With { observers, checkpoints, refused, meter } = with;
    let name = source.name;
    if verbosity > Verbosity::Quiet {
        say::line(&streamed.announcement(&name));
    }
    let plan::Streamed { rows, weights, plan, memory } = streamed;
    let (sparse, nnz) = (rows.is_sparse(), rows.nnz());
    let column_names = rows.column_names().map(<[String]>::to_vec);
    let config = asked.of(column_names.as_deref(), &name, (rows.n_rows(), rows.n_cols()))?;
    let cancel = CancelToken::default();
    let running = Running::with(&cancel);
    let metered = meter.around(rows, plan.bytes);
    let fit = config
        .run()
        .weights(weights.as_deref())
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
        column_names,
        categories: Vec::new(),
        occurring: None,
        missing: config.missing,
        read_seconds: 0.0,
        data: None,
        stream: Some(json::StreamObject::new(&fit, &plan, memory)),
    };
    Ok((fit, about))
}

/// Fits this rank's rows with those of all others.
fn on_ranks(
    (source, weights, cut): (RankSource, &Weights, Cut),
    ranks: &dyn Communicator,
    asked: &Asked<'_>,
    with: With<'_, '_>,
) -> Result<Option<(Fit, About)>, Failure> {
    let With { observers, checkpoints, refused, .. } = with;
    let clock = Instant::now();
    let fits = ranks::all(ranks, source.fits())?;
    let name = source.name.clone();
    let OwnRows { rows, weights, column_names, narrowed } = ranks::agree(ranks, source.rows(fits, weights))?;
    let read_seconds = clock.elapsed().as_secs_f64();
    let column_names = ranks::same_names(ranks, column_names)?;
    let (n, d) = rows.shape();
    let shape = (ranks::total(ranks, n)?, ranks::of_rank_0(ranks, d)?);
    let config = ranks::agree(ranks, asked.of(column_names.as_deref(), &name, shape))?;
    let (sparse, entries, place) = rows.about();
    let entries = ranks::total(ranks, entries)?;
    let cancel = CancelToken::default();
    let running = Running::with(&cancel);
    let mut matrices = Vec::new();
    let run = config.run().observers(observers).cancelled_by(&cancel).checkpoints(checkpoints);
    let run = if narrowed { run.rounded_from_double() } else { run };
    let run = run.weights(weights.as_deref());
    let mut shards = rows.for_rank(&mut matrices);
    let fit = match cut {
        Cut::ByRanks => run.fit_on_ranks(Ok(shards.swap_remove(0)), ranks),
        Cut::ByData => run.fit_shards_on_ranks(Ok(shards), ranks),
    };
    let fit = fit.map_err(|error| refused(&error, &name))?;
    drop(running);
    let Some(fit) = fit else { return Ok(None) };
    let kind = if sparse { "sparse" } else { "dense" };
    let about = About {
        storage: storage(&format!("{kind}, {place}{}", ranks_in_words(&fit, cut)), sparse, entries),
        nnz: entries,
        name,
        column_names,
        categories: Vec::new(),
        occurring: None,
        missing: config.missing,
        read_seconds,
        data: None,
        stream: None,
    };
    Ok(Some((fit, about)))
}

/// The outcome; a certificate speaks of the matrix that was fitted, holes filled.
fn outcome_in_words(fit: &Fit) -> String {
    let filled = |report: &MissingReport| report.entries > 0 && report.policy != Missing::DropRows;
    match fit.missing.as_ref().filter(|report| filled(report)) {
        None => fit.outcome.to_string(),
        Some(_) => format!("{}, on the completed matrix", fit.outcome),
    }
}

/// Where the bits come from.
fn ranks_in_words(fit: &Fit, cut: Cut) -> String {
    let ranks = match fit.ranks {
        1 => "on 1 rank".to_owned(),
        n => format!("on {n} ranks"),
    };
    match cut {
        Cut::ByRanks => format!(" {ranks}"),
        Cut::ByData => format!(" {ranks}, reproducible on any number of them"),
    }
}

/// What a person reads.
fn report(fit: &Fit, about: &About, components: Components) -> String {
    let (model, certificate, chosen_because) = (&fit.model, &fit.certificate, &fit.chosen_because);
    let says_status = (0..model.n_components()).any(|i| !certificate.status_in_words(i).is_empty());
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
            certificate.angle_in_words(i),
            certificate.status_in_words(i).to_owned(),
        ]);
    }
    let summary = model.summary();
    let missing = fit.missing.map_or_else(String::new, |report| format!("{report}\n"));
    let reading = match &about.stream {
        None if fit.bytes_read > 0 => format!("{} read from disk", ByteSize(fit.bytes_read)),
        None => format!("after {} of reading", number::seconds(about.read_seconds)),
        Some(_) => format!("{} read from disk", ByteSize(fit.bytes_read)),
    };
    let chosen = match (components, model.n_components(), summary.n.min(summary.d)) {
        (Components::Asked, _, _) | (_, 1, _) => String::new(),
        (_, k, all) if k == all => format!("all {k} components: ask for fewer with -k\n"),
        (_, k, _) => format!("{k} components: ask for more or fewer with -k\n"),
    };
    let cut = certainty::cut_cluster(certificate).map_or_else(String::new, |cut| format!("{cut}.\n"));
    let probed = fit.probe.as_ref().map_or_else(String::new, |probe| {
        format!("{}, after {}.\n", probe_in_words(fit, probe), certainty::of_probe(probe))
    });
    let of_all = about.occurring.as_ref().map_or_else(String::new, in_words);
    format!(
        "{}: {} rows × {} columns{of_all}, {}\n{missing}{} ({chosen_because}), {}\n{chosen}\n{}\n{}: {}.\n{cut}{probed}{} and {} for column statistics in {}, {reading}\n",
        about.name,
        number::count(summary.n),
        number::count(summary.d),
        about.storage,
        fit.solver,
        preparation(summary.preprocessing),
        table.render(),
        outcome_in_words(fit),
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

/// That the columns are those that occur.
pub fn in_words(columns: &OccurringColumns) -> String {
    format!(" that occur of {}", number::count(columns.all))
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
        Scaling::Hwe => format!("{centred}, scaled by √(2f(1 − f)) of the allele frequencies f"),
        other => format!("{centred}, scaled: {}", other.name()),
    }
}
