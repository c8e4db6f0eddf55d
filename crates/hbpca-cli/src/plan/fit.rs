//! The plan of `hbpca fit`.

use hbpca::missing::Missing;
use hbpca::{Batch, FitConfig, Limits, MomentumChoice, PrecisionChoice, RowChunks, Tuning};
use hbpca_io::{ByteSize, Cut, NOMINAL_MEMORY, OutputFile, Place, Precision, TemporaryFolder};

use super::{
    CheckpointFiles, Files, RankSource, SolverFlags, Source, Streamed, Weights, create, open_model,
    refuse_misleading_name,
};
use crate::args::{FitArgs, HowMany, MomentumArg, PrecisionArg, StepSize};
use crate::exit::Failure;
use crate::output::model_page::ModelPage;
use crate::output::number;
use crate::output::say::Verbosity;
use crate::output::trace::Trace;

/// Everything `hbpca fit` needs, checked.
pub struct FitPlan {
    /// The data.
    pub source: Source,
    /// A copy of the data, where it is one.
    pub copy: Option<TemporaryFolder>,
    /// The data where it stays on disk.
    pub streamed: Option<Streamed>,
    /// Where the weights of the rows come from.
    pub weights: Weights,
    /// The choices.
    pub config: FitConfig,
    /// Whether they say how many components.
    pub components: Components,
    /// The names of the columns of the model to start from.
    pub start_names: Option<Vec<String>>,
    /// Flags that only some solvers look at.
    pub solver_flags: SolverFlags,
    /// Where the run is kept, and what it goes on from.
    pub checkpoints: CheckpointFiles,
    /// The files it writes.
    pub outputs: FitOutputs,
    /// How much is said.
    pub verbosity: Verbosity,
}

/// The files that a fit writes at its end.
#[derive(Default)]
pub struct FitOutputs {
    /// Where the model goes.
    pub model: Option<OutputFile>,
    /// Where the page about the fit goes.
    pub report: Option<ModelPage>,
    /// Where the history goes.
    pub trace: Option<Trace>,
}

impl FitOutputs {
    /// Begins them.
    fn begin(args: &FitArgs) -> Result<Self, Failure> {
        Ok(Self {
            model: args.output.as_deref().map(create).transpose()?,
            report: args.report.as_deref().map(ModelPage::begin).transpose()?,
            trace: args.trace.as_deref().map(Trace::create).transpose()?,
        })
    }
}

/// Whether -k was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Components {
    /// It was.
    Asked,
    /// It was not: as many as are useful.
    Useful,
}

impl Components {
    fn given(args: &FitArgs) -> Self {
        if args.k.is_some() { Self::Asked } else { Self::Useful }
    }

    /// The choices for data of n rows and d columns.
    pub fn of(self, config: FitConfig, n: usize, d: usize) -> FitConfig {
        match self {
            Self::Asked => config,
            Self::Useful => config.with_useful_k(n, d),
        }
    }
}

impl FitPlan {
    /// Checks what was typed, finds the input, begins the outputs.
    pub fn new(args: &FitArgs) -> Result<Self, Failure> {
        let (mut source, mut config, start_names) = begin(args)?;
        let weights = Weights::from(&args.weights);
        // A copy holds rows as they are, and nothing beside them.
        let plain =
            matches!(weights, Weights::None) && args.one_hot.is_none() && config.missing == Missing::Error;
        let mut copy = None;
        if let Some(ByteSize(memory)) = args.memory.filter(|_| plain && !source.is_genotypes()) {
            (source, copy) = source.copied_if_large(memory, (&args.verbosity).into())?;
        }
        weights.ask(&mut source);
        source.hold_missing(config.missing);
        if let Some(columns) = &args.one_hot {
            source.code(columns);
        }
        let components = Components::given(args);
        let beside = |rows: &dyn RowChunks| {
            components.of(config.clone(), rows.n_rows(), rows.n_cols()).memory_beside(rows)
        };
        // Genotypes are placed when they are read.
        let place = if source.is_genotypes() { Place::Memory } else { source.place(args.memory, beside)? };
        let streamed = match place {
            Place::Memory => None,
            Place::Disk { rows, memory } => {
                // Vectors over all columns may be too long where those over the columns that occur are not, which only data in memory tells.
                let may_be_read =
                    rows.is_sparse() && rows.column_names().is_none() && rows.fits_reading(memory);
                let streaming = components.of(config.clone(), rows.n_rows(), rows.n_cols());
                match Streamed::plan(rows, &weights, &streaming, memory, &source.name) {
                    Err(Failure::Usage(_)) if may_be_read => None, // the fit in memory says what is wrong
                    planned => {
                        config = streaming;
                        Some(planned?)
                    }
                }
            }
        };
        Ok(Self {
            copy,
            components,
            source,
            streamed,
            weights,
            solver_flags: SolverFlags::given(args),
            config,
            start_names,
            checkpoints: CheckpointFiles::new(args)?,
            outputs: FitOutputs::begin(args)?,
            verbosity: (&args.verbosity).into(),
        })
    }
}

/// The data, the choices, and the names of the columns of the model to start from.
fn begin(args: &FitArgs) -> Result<(Source, FitConfig, Option<Vec<String>>), Failure> {
    check_files(args)?;
    let mut config = config(args)?;
    if let Some(ByteSize(memory)) = args.memory {
        crate::memory::limit(Some(memory));
    }
    check_before_reading(&config)?;
    let mut source = Source::find(&args.data)?;
    config.missing = args.missing.policy(source.is_genotypes());
    source.prepare_cells(&args.cells)?;
    source.keep_in(storage(args.precision));
    let mut start_names = None;
    if let Some(path) = &args.start {
        let model = open_model(path)?.model;
        start_names = model.feature_names().map(<[String]>::to_vec);
        config.start = Some(model.vectors());
    }
    Ok((source, config, start_names))
}

/// Refuses files that are both read and written, and names that promise something else. A checkpoint may be resumed in its place.
fn check_files(args: &FitArgs) -> Result<(), Failure> {
    let read = || {
        let files = Files::default().reads("data", &args.data.data).reads("--start", &args.start);
        files.reads("--weights", &args.weights.weights)
    };
    read().writes("--checkpoint", &args.checkpoint).check()?;
    read()
        .reads("--resume", &args.resume)
        .writes("--output", &args.output)
        .writes("--trace", &args.trace)
        .check()?;
    Files::default()
        .writes("--checkpoint", &args.checkpoint)
        .writes("--output", &args.output)
        .writes("--trace", &args.trace)
        .check()?;
    if let Some(path) = &args.output {
        refuse_misleading_name("--output", path, "a model", &["safetensors"])?;
    }
    if let Some(path) = &args.checkpoint {
        refuse_misleading_name("--checkpoint", path, "a checkpoint", &[])?;
    }
    Ok(())
}

/// What one of several ranks needs for `hbpca fit`, checked. Outputs and checkpoints are those of rank 0.
pub struct RankFitPlan {
    /// This rank's share of the data.
    pub source: RankSource,
    /// Where the weights of the rows come from.
    pub weights: Weights,
    /// How rows are cut into what is summed as one.
    pub cut: Cut,
    /// The choices.
    pub config: FitConfig,
    /// Whether they say how many components.
    pub components: Components,
    /// The names of the columns of the model to start from.
    pub start_names: Option<Vec<String>>,
    /// Flags that only some solvers look at.
    pub solver_flags: SolverFlags,
    /// Where the run is kept, and what it goes on from.
    pub checkpoints: CheckpointFiles,
    /// The files it writes.
    pub outputs: FitOutputs,
}

impl RankFitPlan {
    /// The same for rank `rank` of `size`.
    pub fn new(args: &FitArgs, (rank, size): (usize, usize)) -> Result<Self, Failure> {
        refuse_on_ranks(args)?;
        let (mut source, mut config, start_names) = begin(args)?;
        // Ranks read genotypes as numbers, with the mean for what is missing.
        config.missing = args.missing.policy(false);
        let weights = Weights::from(&args.weights);
        weights.ask(&mut source);
        if args.reproducible {
            config.memory = Some(args.memory.map_or(NOMINAL_MEMORY, |ByteSize(memory)| memory));
        }
        let (leads, cut) = (rank == 0, cut(args));
        Ok(Self {
            source: source.share((rank, size), cut, &config, args.memory)?,
            weights,
            cut,
            components: Components::given(args),
            solver_flags: SolverFlags::given(args),
            config,
            start_names,
            checkpoints: if leads { CheckpointFiles::new(args)? } else { CheckpointFiles::none() },
            outputs: if leads { FitOutputs::begin(args)? } else { FitOutputs::default() },
        })
    }
}

fn cut(args: &FitArgs) -> Cut {
    if args.reproducible { Cut::ByData } else { Cut::ByRanks }
}

/// Refuses what neither several ranks nor shards can do so far.
fn refuse_on_ranks(args: &FitArgs) -> Result<(), Failure> {
    let given =
        [("--missing", args.missing.policy(false) != Missing::Error), ("--one-hot", args.one_hot.is_some())];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::Usage(format!(
            "{flag} works in one process only: leave it out, or do without a launcher and without --reproducible"
        ))),
        None => Ok(()),
    }
}

/// Refuses to form a C that no ordinary machine holds, before an allocation fails. Only a covariance asked for by
/// name can be so large: `auto` has a limit of its own, far below this one.
pub fn refuse_huge_covariance(config: &FitConfig, d: usize) -> Result<(), Failure> {
    // C, its eigenvectors and the eigen-solver's copy.
    const COPIES: u128 = 3;
    const MOST_BYTES: u128 = 16 << 30;
    let bytes = COPIES * (d as u128).pow(2) * size_of::<f64>() as u128;
    if !config.solver.forms_covariance() || bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "solver {} would need {} GiB for the {} columns: choose a solver that never forms C, such as --solver krylov",
        config.solver,
        bytes >> 30,
        number::count(d)
    )))
}

fn config(args: &FitArgs) -> Result<FitConfig, Failure> {
    let default = FitConfig::default();
    let (k, variance_share) = match args.k {
        None => (default.k, None),
        Some(HowMany::Count(k)) => (k, None),
        Some(HowMany::Share(share)) => (default.k, Some(share)),
    };
    Ok(FitConfig {
        k,
        variance_share,
        solver: args.solver.unwrap_or(default.solver),
        preprocessing: (&args.preparation).into(),
        limits: Limits {
            tol: args.tol,
            angle: args.angle,
            max_passes: args.max_passes,
            max_seconds: args.max_seconds.unwrap_or(default.limits.max_seconds),
            ..default.limits
        },
        eta: args.eta.and_then(|eta| match eta {
            StepSize::Auto => None,
            StepSize::Fixed(eta) => Some(eta),
        }),
        momentum: momentum(args)?,
        batch: args.batch.unwrap_or(default.batch),
        epoch: args.epoch.unwrap_or(default.epoch),
        seed: args.seed,
        precision: multiplied_in(args.precision),
        threads: super::threads(&args.threads),
        memory: args.memory.map(|ByteSize(memory)| memory).or_else(hbpca_io::machine_memory),
        disk_rate: args.disk.map(|ByteSize(bytes)| bytes as f64),
        tuning: if args.tune { Tuning::Measured } else { Tuning::Nominal },
        certify: args.certify,
        probe_seed: args.probe_seed,
        missing: args.missing.policy(false),
        em: args.missing.em_limits(args.missing.policy(false))?,
        ..default
    })
}

/// What values are kept in.
pub fn storage(precision: PrecisionArg) -> Precision {
    match precision {
        PrecisionArg::Auto => Precision::Auto,
        PrecisionArg::F32 | PrecisionArg::Mixed => Precision::F32,
        PrecisionArg::F64 => Precision::F64,
    }
}

/// What they are multiplied in.
fn multiplied_in(precision: PrecisionArg) -> PrecisionChoice {
    match precision {
        PrecisionArg::Auto => PrecisionChoice::Auto,
        PrecisionArg::F32 => PrecisionChoice::Single,
        PrecisionArg::Mixed | PrecisionArg::F64 => PrecisionChoice::Double,
    }
}

fn momentum(args: &FitArgs) -> Result<MomentumChoice, Failure> {
    match (args.momentum, args.lambda2) {
        (Some(MomentumArg::Oracle), None) => Err(Failure::Usage(
            "--momentum oracle needs the true second eigenvalue: give --lambda2 X, or use --momentum adaptive, which \
             estimates it for free"
                .into(),
        )),
        (Some(MomentumArg::Adaptive), Some(lambda2)) => Err(Failure::Usage(format!(
            "--lambda2 {lambda2} has no place in --momentum adaptive, which estimates λ₂: leave out one of the two"
        ))),
        (Some(MomentumArg::Dynamic), Some(lambda2)) => Err(Failure::Usage(format!(
            "--lambda2 {lambda2} has no place in --momentum dynamic, which follows the residuals: leave out one of the two"
        ))),
        (Some(MomentumArg::Dynamic), None) => Ok(MomentumChoice::Dynamic),
        (_, Some(lambda2)) => Ok(MomentumChoice::Oracle(lambda2)),
        (_, None) => Ok(MomentumChoice::Adaptive),
    }
}

/// Refuses what no data could make right, before a file is read.
fn check_before_reading(config: &FitConfig) -> Result<(), Failure> {
    let refused = |error: hbpca::Error| Failure::Usage(error.to_string());
    config.limits.check().map_err(refused)?;
    if config.k == 0 {
        return Err(Failure::Usage("k = 0: ask for at least 1 component with -k".into()));
    }
    let unlimited = 1 << 52; // rows; any share and any count fit in
    config.batch.rows(unlimited).map_err(refused)?;
    // Step size, epoch and momentum are judged by the solver itself, on the smallest data there is.
    let smallest = FitConfig { k: 1, batch: Batch::Rows(1), ..config.clone() };
    smallest.solver(1, 1).map_err(refused)?;
    if config.k > 1 {
        config.check(config.k, config.k).map_err(refused)?;
    }
    Ok(())
}
