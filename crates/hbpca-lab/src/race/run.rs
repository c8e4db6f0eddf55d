//! One run: one solver, one step size, one seed, measured against the reference.

use std::ops::ControlFlow;

use cpu_time::ThreadTime;
use hbpca::operator::Covariance;
use hbpca::{
    Batch, Block, ColumnStatistics, Driver, Event, FitConfig, Limits, MomentumChoice, Observer, Outcome,
    RowMap,
};
use serde::{Deserialize, Serialize};

use super::{Contender, Lambda2};
use crate::LabError;
use crate::dataset::Dataset;
use crate::reference::Reference;
use crate::statistics::first_crossing;

/// What the seconds of a run are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Processor time of the one thread that is used: hardly disturbed by what else the machine does.
    #[default]
    Processor,
    /// Time that passes while all threads are used: what a user waits.
    Wall,
}

impl Clock {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Processor => "processor time of the one thread of a run",
            Self::Wall => "those that pass while a run uses all threads",
        }
    }
}

/// Everything a run depends on besides the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunSpec {
    /// The contender.
    pub contender: Contender,
    /// η, for solvers that have one.
    pub eta: Option<f64>,
    /// Rows of a mini-batch.
    pub batch: usize,
    /// m.
    pub epoch: usize,
    /// Seed of start vector and batches.
    pub seed: u64,
    /// Budget.
    pub passes: f64,
    /// The run stops at this error.
    pub floor: f64,
    /// What its seconds are.
    pub clock: Clock,
}

/// An outer iterate of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Data read, divided by n.
    pub passes: f64,
    /// Seconds since the start, by the run's clock.
    pub seconds: f64,
    /// 1 − (wᵀu₁)², or ‖(I − UUᵀ)W‖² where more than one component is sought.
    pub error: f64,
    /// The momentum's λ₂.
    pub lambda2: Option<f64>,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Seed.
    pub seed: u64,
    /// η.
    pub eta: Option<f64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its outer iterates.
    pub looks: Vec<Look>,
}

impl Run {
    /// Passes to an error, by straight lines between the logarithms of looks; the passes before the first look count from error 1.
    pub fn passes_to(&self, error: f64) -> Option<f64> {
        let looks = self.looks.iter().map(|look| (look.passes, look.error.log10()));
        let points: Vec<(f64, f64)> = std::iter::once((0.0, 0.0)).chain(looks).collect();
        first_crossing(&points, error.log10())
    }

    /// Decimal digits won per pass, up to the target: −log₁₀(target) over the passes to it or, of a run that does not get there, its
    /// digits over all its passes. Among runs that arrive this orders by the passes they took.
    pub fn digits_per_pass(&self, target: f64) -> f64 {
        if let Some(passes) = self.passes_to(target) {
            return -target.log10() / passes;
        }
        self.looks.last().map_or(0.0, |last| -last.error.max(f64::MIN_POSITIVE).log10() / last.passes)
    }
}

/// A data set made ready: its covariance map is computed once for all runs.
pub struct Track<'a> {
    /// The data.
    pub dataset: &'a Dataset,
    /// What is true of it.
    pub reference: &'a Reference,
    map: RowMap,
}

impl<'a> Track<'a> {
    /// Prepares `dataset`.
    pub fn new(dataset: &'a Dataset, reference: &'a Reference) -> Result<Self, LabError> {
        let map = dataset.preprocessing.row_map(&ColumnStatistics::new(&dataset.matrix)?);
        Ok(Self { dataset, reference, map })
    }

    /// Runs, on one thread where its processor time is asked for.
    pub fn run(&self, spec: &RunSpec) -> Result<Run, LabError> {
        match spec.clock {
            Clock::Wall => self.execute(spec),
            Clock::Processor => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                pool.map_err(|error| LabError::Usage(error.to_string()))?.install(|| self.execute(spec))
            }
        }
    }

    fn execute(&self, spec: &RunSpec) -> Result<Run, LabError> {
        let matrix = &self.dataset.matrix;
        let mut config = FitConfig {
            k: self.reference.k(),
            solver: spec.contender.solver,
            momentum: match spec.contender.lambda2 {
                Lambda2::Adaptive => MomentumChoice::Adaptive,
                Lambda2::Dynamic => MomentumChoice::Dynamic,
                Lambda2::Oracle => MomentumChoice::Oracle(self.reference.eigenvalues[1]),
            },
            batch: Batch::Rows(spec.batch),
            epoch: spec.epoch,
            seed: spec.seed,
            ..FitConfig::default()
        };
        if let Some(eta) = spec.eta {
            config.eta = Some(eta);
        }
        let mut solver = config.solver(matrix.n_rows(), matrix.n_cols())?;
        let mut operator = Covariance::with_map(matrix, self.map.clone());
        let mut watch =
            Watch { spec, reference: self.reference, begun: ThreadTime::now(), looks: Vec::new() };
        let limits = Limits { tol: 0.0, max_passes: spec.passes, ..Limits::default() };
        let driver = Driver::new(limits);
        // The driver measures one component by itself.
        let driver = if self.reference.k() == 1 { driver.reference(&self.reference.u1) } else { driver };
        let report = driver.observer(&mut watch).run(&mut *solver, &mut operator)?;
        let looks = watch.looks;
        Ok(Run { seed: spec.seed, eta: spec.eta, outcome: report.outcome, looks })
    }
}

/// Times every look, measures its error and stops at the floor.
struct Watch<'a> {
    spec: &'a RunSpec,
    reference: &'a Reference,
    begun: ThreadTime,
    looks: Vec<Look>,
}

impl Observer for Watch<'_> {
    fn notify(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let Event::Looked { record, vectors, .. } = event else { return ControlFlow::Continue(()) };
        let error = match vectors {
            Some(vectors) if self.reference.k() > 1 => Some(self.beside(vectors)),
            _ => record.error,
        };
        self.looks.push(Look {
            passes: record.passes,
            seconds: match self.spec.clock {
                Clock::Wall => record.seconds,
                Clock::Processor => self.begun.elapsed().as_secs_f64(),
            },
            // An iterate that is no longer a number has lost everything.
            error: error.filter(|error| error.is_finite()).map_or(1.0, |error| error.max(self.spec.floor)),
            lambda2: record.lambda2,
        });
        if error.is_some_and(|error| error <= self.spec.floor) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn wants_iterates(&self) -> bool {
        self.reference.k() > 1
    }
}

impl Watch<'_> {
    /// ‖(I − UUᵀ)W‖_F²: the sum of the squared sines of the angles between the spaces.
    fn beside(&self, vectors: &Block) -> f64 {
        let basis = || std::iter::once(&self.reference.u1).chain(&self.reference.further);
        let mut sum = 0.0;
        for c in 0..vectors.p().min(self.reference.k()) {
            let mut rest = vectors.column(c);
            for u in basis() {
                let along: f64 = rest.iter().zip(u).map(|(w, u)| w * u).sum();
                rest.iter_mut().zip(u).for_each(|(w, u)| *w -= along * u);
            }
            sum += rest.iter().map(|w| w * w).sum::<f64>();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_count_up_to_the_target() {
        let look = |passes: f64, error: f64| Look { passes, seconds: 0.0, error, lambda2: None };
        let run = |looks: Vec<Look>| Run { seed: 0, eta: None, outcome: Outcome::Budget, looks };
        let arrives = run(vec![look(2.0, 1e-4), look(4.0, 1e-12), look(6.0, 1e-15)]);
        assert!((arrives.passes_to(1e-10).unwrap() - 3.5).abs() < 1e-12);
        assert!(
            (arrives.digits_per_pass(1e-10) - 10.0 / 3.5).abs() < 1e-12,
            "what comes after does not count"
        );
        let never = run(vec![look(2.0, 1e-1), look(4.0, 1e-2)]);
        assert_eq!(never.passes_to(1e-10), None);
        assert!((never.digits_per_pass(1e-10) - 0.5).abs() < 1e-12);
        assert!((run(vec![look(1.0, 1e-12)]).passes_to(1e-12).unwrap() - 1.0).abs() < 1e-12);
    }
}
