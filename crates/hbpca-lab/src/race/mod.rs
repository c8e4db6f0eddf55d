//! Races: the same data, the same budget, several solvers, several seeds.

mod contender;
mod csv;
mod curve;
mod grid;
mod run;
pub(crate) mod side_by_side;
mod store;

pub use contender::{Contender, FIXED_X, Lambda2, Step, StepScale};
pub use csv::{looks_csv, searches_csv, seconds_csv};
pub use curve::Curve;
pub use grid::{GridPoint, Search, search};
pub use run::{Clock, Look, Run, RunSpec, Track};
pub use store::RunStore;

use hbpca::SolverKind;

use crate::LabError;
use crate::experiment::{GridSpec, RaceSpec};
use crate::progress::Progress;
use crate::reference::Reference;

/// One solver in a race.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The contender.
    pub contender: Contender,
    /// Whether the paper has it in this figure.
    pub extended: bool,
    /// η, where the solver has one.
    pub eta: Option<f64>,
    /// How η was found, where it was searched here.
    pub search: Option<Search>,
    /// The runs, one a seed.
    pub runs: Vec<Run>,
    /// Their mean and spread.
    pub curve: Curve,
}

/// A finished race on one data set.
#[derive(Clone, Debug)]
pub struct Race {
    /// Name of the experiment.
    pub experiment: String,
    /// The data set's short name.
    pub dataset: String,
    /// The data set's name on figures.
    pub title: String,
    /// Rows of the files, where only some were used.
    pub thinned_from: Option<usize>,
    /// What is true of the data.
    pub reference: Reference,
    /// |S| in rows.
    pub batch: usize,
    /// m.
    pub epoch: usize,
    /// Budget.
    pub passes: f64,
    /// The error races are compared at.
    pub target: f64,
    /// What the runs' seconds are.
    pub clock: Clock,
    /// The solvers.
    pub lanes: Vec<Lane>,
}

impl Race {
    /// Runs `spec` on a data set, taking finished runs from `store`.
    pub fn run(
        spec: &RaceSpec,
        track: &Track<'_>,
        store: &RunStore,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        let (dataset, reference) = (track.dataset, track.reference);
        let batch = spec.batch()?.rows(reference.n)?;
        let base = |contender: Contender| {
            // Without mini-batches both figures have the same run; it is made once.
            let (batch, epoch) = if contender.has_batches() { (batch, spec.epoch) } else { (reference.n, 1) };
            let (passes, floor, clock) = (dataset.passes, spec.floor, spec.clock);
            RunSpec { contender, eta: None, batch, epoch, seed: 0, passes, floor, clock }
        };
        let known = spec.extended.iter().filter_map(|name| name.parse::<Contender>().ok());
        let paper = spec.solvers.iter().map(|c| (*c, false)).chain(spec.variants.iter().map(|c| (*c, true)));
        // No claim rests on the others: fewer seeds, and step sizes by those of the first tries.
        let few = GridSpec { seeds: spec.grid.screening.unwrap_or(spec.grid.seeds), ..spec.grid };
        let others = (spec.extended_seeds.unwrap_or(spec.seeds), few);
        let contenders = paper
            .map(|(contender, extended)| (contender, extended, (spec.seeds, spec.grid)))
            .chain(known.map(|contender| (contender, true, others)));
        let mut lanes: Vec<Lane> = Vec::new();
        let suiting = contenders.filter(|(contender, ..)| contender.suits(reference.d));
        for (contender, extended, (seeds, grid)) in suiting {
            let place = format!("{} {} {}", spec.name, dataset.id, contender);
            let (eta, search) =
                step_size(spec, &grid, &lanes, contender, reference.eigenvalues[0], |eta, seed| {
                    progress.say(&format!("{place}: trying η = {eta:.3e}"));
                    let (passes, clock) = (spec.grid.budget * dataset.passes, Clock::Processor);
                    store.obtain(track, &RunSpec { eta: Some(eta), seed, passes, clock, ..base(contender) })
                })?;
            let mut runs = Vec::new();
            for seed in 0..seeds {
                progress.say(&format!("{place}: seed {} of {seeds}", seed + 1));
                runs.push(store.obtain(track, &RunSpec { eta, seed, ..base(contender) })?);
            }
            let curve = Curve::new(&runs);
            lanes.push(Lane { contender, extended, eta, search, runs, curve });
        }
        Ok(Self {
            experiment: spec.name.clone(),
            dataset: dataset.id.clone(),
            title: dataset.title.clone(),
            thinned_from: dataset.thinned_from,
            reference: reference.clone(),
            batch,
            epoch: spec.epoch,
            passes: dataset.passes,
            target: spec.target,
            clock: spec.clock,
            lanes,
        })
    }

    /// The lane of a contender written as in the experiment.
    pub fn lane(&self, id: &str) -> Option<&Lane> {
        let wanted: Contender = id.parse().ok()?;
        self.lanes.iter().find(|lane| lane.contender == wanted)
    }
}

/// η by search; for an adaptive heavy ball that of its oracle twin, where that one runs too.
fn step_size(
    spec: &RaceSpec,
    grid: &GridSpec,
    lanes: &[Lane],
    contender: Contender,
    lambda1: f64,
    run: impl Fn(f64, u64) -> Result<Run, LabError> + Sync,
) -> Result<(Option<f64>, Option<Search>), LabError> {
    let scale = contender.step_scale();
    if scale == StepScale::None {
        return Ok((None, None));
    }
    if contender.step == Step::Fixed {
        return Ok((Some(scale.eta(FIXED_X, lambda1)), None));
    }
    let twin = Contender { solver: SolverKind::VrHbPower, lambda2: Lambda2::Oracle, step: contender.step };
    if contender.solver == twin.solver
        && let Some(lane) = lanes.iter().find(|lane| lane.contender == twin)
    {
        return Ok((lane.eta, None));
    }
    let most = if contender.step == Step::Bounded { scale.x(1.0, lambda1) } else { f64::INFINITY };
    let digits = |eta, seed| Ok::<_, LabError>(run(eta, seed)?.digits_per_pass(spec.target));
    let found = search(grid, scale, lambda1, most, digits)?;
    Ok((Some(found.best.eta), Some(found)))
}
