//! From a matrix and a few choices to a certified model: the front door.

mod auto;
mod checkpoint;
mod kind;
mod material;
mod on_disk;
mod speeds;
mod step_size;
mod stream_plan;

pub use checkpoint::{Checkpoint, CheckpointEvery, Keep, Resumable};
pub use kind::SolverKind;
pub use stream_plan::StreamPlan;

use serde::{Deserialize, Serialize};

use checkpoint::Session;
use material::{InMemory, Material};
use step_size::{Suggestion, most_rows_read, sample_rows, suggest_step_size};

use crate::columns::Preprocessing;
use crate::driver::Stopwatch;
use crate::matrix::{Matrix, Replacement, Sampler};
use crate::observe::{Event, Observer, Record};
use crate::operator::{PrecisionChoice, RowsRead};
use crate::policy::{AdaptiveMomentum, Batch, Momentum, OracleMomentum, Start};
use crate::solver::{
    Anchored, AnchoredSizes, CovarianceSolver, Epoch, Krylov, KrylovSizes, Oja, Power, PowerM, Solver,
    VrHbPower, VrPca, VrPowerM,
};
use crate::{Block, Certificate, Driver, Error, Limits, Model, Outcome, Report, Summary};

/// Where the momentum's λ₂ comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MomentumChoice {
    /// The free estimate from consecutive iterates.
    #[default]
    Adaptive,
    /// The true λ₂, given.
    Oracle(f64),
}

impl MomentumChoice {
    fn policy(self) -> Result<Box<dyn Momentum>, Error> {
        Ok(match self {
            Self::Adaptive => Box::new(AdaptiveMomentum::default()),
            Self::Oracle(lambda2) => Box::new(OracleMomentum::new(lambda2)?),
        })
    }
}

/// Everything that can be chosen about a fit. The defaults are those of the command line.
///
/// ```
/// use hbpca::{Dense, FitConfig, Matrix, Outcome};
/// let x: Matrix = Dense::new(vec![2.0, 1.0, -2.0, -1.0, 0.1, -0.2, -0.1, 0.2], 4, 2)?.into();
/// let fit = FitConfig::default().fit(&x)?;
/// assert_eq!(fit.outcome, Outcome::Converged);
/// println!("{}", fit.certificate);
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FitConfig {
    /// k, the number of components; the first guess where a share of variance is asked for.
    pub k: usize,
    /// Asks for as many components as explain this share of the variance, in (0, 1].
    pub variance_share: Option<f64>,
    /// The solver.
    pub solver: SolverKind,
    /// How rows are prepared.
    pub preprocessing: Preprocessing,
    /// When to stop.
    pub limits: Limits,
    /// η of the stochastic solvers; found from a sample of the rows where none is given.
    pub eta: Option<f64>,
    /// λ₂ of the heavy ball solvers.
    pub momentum: MomentumChoice,
    /// |S|.
    pub batch: Batch,
    /// m.
    pub epoch: usize,
    /// Whether a batch may hold a row twice.
    pub replacement: Replacement,
    /// Seed of the start vector and of the batches.
    pub seed: u64,
    /// Threads; 0 for as many as the machine offers.
    pub threads: usize,
    /// First iterate; random where none is given.
    pub start: Option<Block>,
    /// What f32 rows are multiplied in.
    pub precision: PrecisionChoice,
}

impl Default for FitConfig {
    fn default() -> Self {
        Self {
            k: 1,
            variance_share: None,
            solver: SolverKind::Auto,
            preprocessing: Preprocessing::CENTER,
            limits: Limits::default(),
            eta: None,
            momentum: MomentumChoice::Adaptive,
            batch: Batch::Share(0.01),
            epoch: 100,
            replacement: Replacement::Without,
            seed: 0,
            threads: 0,
            start: None,
            precision: PrecisionChoice::Auto,
        }
    }
}

/// A certified model and how it came about.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Components and variances.
    pub model: Model,
    /// What is proved about them.
    pub certificate: Certificate,
    /// How the run ended.
    pub outcome: Outcome,
    /// The solver that ran.
    pub solver: SolverKind,
    /// Why this solver.
    pub chosen_because: String,
    /// One record for every outer iterate.
    pub history: Vec<Record>,
    /// Rows read by the solver, divided by n.
    pub passes: f64,
    /// Complete passes of the solver.
    pub full_passes: u64,
    /// Passes for column statistics, not counted in `passes`; none where another pass gathers them on its way.
    pub statistics_passes: f64,
    /// Bytes read from disk; none for a matrix in memory.
    pub bytes_read: u64,
    /// Seconds of the solver and of the column statistics.
    pub seconds: f64,
    /// The seed.
    pub seed: u64,
    /// Threads used.
    pub threads: usize,
}

impl FitConfig {
    /// Fits `matrix`.
    pub fn fit(&self, matrix: &Matrix<'_>) -> Result<Fit, Error> {
        self.fit_observed(matrix, None, &mut [])
    }

    /// Fits `matrix` with a weight for every row and with observers watching.
    pub fn fit_observed(
        &self,
        matrix: &Matrix<'_>,
        weights: Option<&[f64]>,
        observers: &mut [&mut (dyn Observer + Send)],
    ) -> Result<Fit, Error> {
        self.fit_resumable(matrix, weights, observers, Resumable::default())
    }

    /// The same, kept while it runs and going on from where one was kept: the result has the same bits as without a break.
    ///
    /// ```
    /// use hbpca::checkpoint::Resumable;
    /// use hbpca::{Dense, FitConfig, Matrix, SolverKind};
    /// let x: Matrix = Dense::new(vec![2.0, 1.0, -2.0, -1.0, 0.1, -0.2, -0.1, 0.2], 4, 2)?.into();
    /// let config = FitConfig { solver: SolverKind::Power, ..FitConfig::default() };
    /// let mut kept = Vec::new();
    /// let mut keep = |checkpoint: &hbpca::checkpoint::Checkpoint| Ok(kept.push(checkpoint.clone()));
    /// let data = x.fingerprint(None);
    /// let resumable = Resumable { data: data.clone(), keep: Some(&mut keep), ..Resumable::default() };
    /// let whole = config.fit_resumable(&x, None, &mut [], resumable)?;
    ///
    /// let from = Some(kept[0].clone());
    /// let resumed = config.fit_resumable(&x, None, &mut [], Resumable { data, from, ..Resumable::default() })?;
    /// assert_eq!(resumed.model, whole.model);
    /// assert_eq!(resumed.passes, whole.passes);
    /// # Ok::<(), hbpca::Error>(())
    /// ```
    pub fn fit_resumable(
        &self,
        matrix: &Matrix<'_>,
        weights: Option<&[f64]>,
        observers: &mut [&mut (dyn Observer + Send)],
        resumable: Resumable<'_>,
    ) -> Result<Fit, Error> {
        self.check(matrix.n_rows(), matrix.n_cols())?;
        let session = Session::new(self, resumable)?;
        self.on_threads(usize::MAX, || {
            let clock = session.clock();
            let material = InMemory::new(matrix, weights, self, &session)?;
            observers.iter_mut().for_each(|observer| material.announce(&mut **observer));
            self.run_on(material, session, &clock, observers)
        })
    }

    /// Runs `work` on as many threads as asked for, but at most `most`.
    pub(crate) fn on_threads<T: Send>(
        &self,
        most: usize,
        work: impl FnOnce() -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let all = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = match self.threads {
            0 if most == usize::MAX => 0,
            0 => all().min(most),
            asked => asked.min(most),
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|error| Error::Source(Box::new(error)))?;
        pool.install(work)
    }

    /// Refuses choices that do not fit together or do not fit the data.
    pub fn check(&self, n: usize, d: usize) -> Result<(), Error> {
        let most = n.min(d);
        if self.k == 0 || self.k > most {
            let advice = format!("{n} rows × {d} columns have from 1 to {most} components");
            return Err(Error::parameter("k", self.k, advice));
        }
        if let Some(share) = self.variance_share
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(Error::parameter(
                "k",
                share,
                "a share of the variance lies above 0 and at most at 1",
            ));
        }
        if (self.k > 1 || self.variance_share.is_some()) && !self.solver.finds_many() {
            let advice = format!(
                "solver {} finds one component; choose auto, covariance, krylov or anchored",
                self.solver
            );
            return Err(Error::parameter("k", self.variance_share.unwrap_or(self.k as f64), advice));
        }
        self.limits.check()
    }

    /// Chooses, runs and certifies, with more components where a share of variance asks for them.
    fn run_on<M: Material>(
        &self,
        mut material: M,
        mut session: Session<'_>,
        clock: &Stopwatch,
        observers: &mut [&mut (dyn Observer + Send)],
    ) -> Result<Fit, Error> {
        let (n, d) = material.shape();
        let iterates_wanted = observers.iter().any(|observer| observer.wants_iterates());
        let mut run = self.clone();
        let mut read = RowsRead::default();
        let (report, chosen_because) = loop {
            let (chosen_because, paused) = match session.resume(&mut run) {
                Some((chosen_because, paused)) => {
                    let history = session.earlier();
                    observers.iter_mut().filter(|_| !history.is_empty()).for_each(|observer| {
                        // Who wants to stop can say so at the first look.
                        let _ = observer.notify(&Event::Resumed { history });
                    });
                    (chosen_because, Some(paused))
                }
                None => (run.settle(self.solver, &material, &mut read)?, None),
            };
            run.check(n, d)?;
            let mut driver = Driver::new(run.limits.clone()).having_read(read);
            for observer in &mut *observers {
                driver = driver.observer(&mut **observer);
            }
            let mut keeper = session.keeper(&run, &chosen_because, material.statistics(), clock);
            if let Some(keeper) = &mut keeper {
                driver = driver.keeper(keeper);
            }
            if let Some(paused) = paused {
                driver = driver.resuming(paused);
            }
            let mut solver = material.solver(&run, iterates_wanted)?;
            let report = driver.run(&mut *solver, material.operator())?;
            read = report.read;
            match run.grown(&report, material.columns()?.0.total_variance(), n.min(d)) {
                None => break (report, chosen_because),
                Some(larger) => {
                    session.outgrow(report.history);
                    run = larger;
                }
            }
        };
        let (map, weight) = material.columns()?;
        let (vectors, certificate) =
            run.cut_to_share(report.vectors, report.certificate, map.total_variance());
        let summary = Summary {
            n,
            d,
            weight,
            preprocessing: self.preprocessing,
            eigenvalues: certificate.eigenvalues.clone(),
            total_variance: map.total_variance(),
        };
        Ok(Fit {
            model: Model::new(&vectors, summary, map)?,
            certificate,
            outcome: report.outcome,
            solver: run.solver,
            chosen_because,
            history: report.history,
            passes: report.passes,
            full_passes: report.read.full_passes,
            statistics_passes: material.statistics_passes(),
            bytes_read: material.bytes_read(),
            seconds: clock.seconds(),
            seed: self.seed,
            threads: rayon::current_num_threads(),
        })
    }

    /// Decides what was left open in what was `asked` for: the solver, how many components to ask for first, and the step
    /// size, whose sample of rows is counted in `read`. Returns why that solver.
    fn settle(
        &mut self,
        asked: SolverKind,
        material: &impl Material,
        read: &mut RowsRead,
    ) -> Result<String, Error> {
        let (n, d) = material.shape();
        self.solver = asked;
        let (solver, chosen_because) = material.choose(self);
        self.solver = solver;
        if solver == SolverKind::Covariance && self.variance_share.is_some() {
            self.k = auto::first_k_of_share(n, d, self.k);
        }
        if self.eta.is_none() && solver.needs_step_size() && self.can_afford_suggestion(n, d) {
            let suggestion = self.suggest_step_size(material)?;
            read.rows += suggestion.rows_read;
            self.eta = Some(suggestion.eta);
        }
        Ok(chosen_because)
    }

    /// Whether the budget has room for the sample that tells the step size, and a first look.
    fn can_afford_suggestion(&self, n: usize, d: usize) -> bool {
        self.limits.max_passes >= 1.0 + most_rows_read(n, d) as f64 / n as f64
    }

    fn suggest_step_size(&self, material: &impl Material) -> Result<Suggestion, Error> {
        let (n, _) = material.shape();
        let epoch = Epoch::new(self.epoch)?;
        let batch = self.batch.rows(n)?;
        let sample = material.sample(sample_rows(n), self.seed)?;
        let (map, _) = material.columns()?;
        suggest_step_size(&sample, n, map, self.solver, batch, epoch, self.replacement, self.seed)
    }

    /// With a share of variance asked for and not yet reached: the same with twice the components, starting from those found.
    fn grown(&self, report: &Report, total_variance: f64, most: usize) -> Option<Self> {
        let share = self.variance_share?;
        let explained: f64 = report.certificate.eigenvalues.iter().sum();
        let spent = report.passes + 1.0 > self.limits.max_passes || report.outcome == Outcome::Interrupted;
        let enough = explained >= share * total_variance || self.k == most || spent;
        (!enough).then(|| Self {
            k: (2 * self.k.max(4)).min(most),
            start: Some(report.vectors.clone()),
            ..self.clone()
        })
    }

    /// The fewest leading components that explain the share of variance asked for; all where none is.
    pub fn cut_to_share(
        &self,
        vectors: Block,
        certificate: Certificate,
        total_variance: f64,
    ) -> (Block, Certificate) {
        let Some(share) = self.variance_share else { return (vectors, certificate) };
        let mut explained = 0.0;
        let enough = certificate.eigenvalues.iter().position(|x| {
            explained += x;
            explained >= share * total_variance
        });
        match enough {
            Some(last) if last + 1 < vectors.p() => {
                (vectors.leading(last + 1), certificate.leading(last + 1))
            }
            _ => (vectors, certificate),
        }
    }

    /// The solver these choices describe, for n rows and d columns. [`SolverKind::Auto`] is `krylov` here, where nothing is
    /// known of the data but its shape, and a step size not given is 0.1.
    pub fn solver(&self, n: usize, d: usize) -> Result<Box<dyn Solver>, Error> {
        self.solver_in_runs(n, d, 1)
    }

    /// The same with mini-batches of runs of rows that follow each other.
    fn solver_in_runs(&self, n: usize, d: usize, run: usize) -> Result<Box<dyn Solver>, Error> {
        let start = self.start.clone().map_or(Start::Random { seed: self.seed }, Start::Given);
        let eta = self.eta.unwrap_or(0.1);
        let epoch = || Epoch::new(self.epoch);
        let sampler = || Sampler::in_runs(n, self.batch.rows(n)?, run, self.replacement, self.seed);
        Ok(match self.solver {
            SolverKind::Covariance => {
                let solver = CovarianceSolver::new(d, self.k)?.within(self.limits.max_passes);
                Box::new(solver.aiming_at(self.limits.tol, self.seed))
            }
            SolverKind::Auto | SolverKind::Krylov => {
                let sizes = KrylovSizes::suiting(self.k);
                Box::new(Krylov::new(d, self.k, sizes, self.seed, self.start.as_ref())?)
            }
            SolverKind::Anchored => {
                let sizes = AnchoredSizes::suiting(n, self.k).within(self.limits.max_passes, n);
                Box::new(Anchored::new(n, d, self.k, sizes, self.seed, self.start.as_ref())?)
            }
            SolverKind::Power => Box::new(Power::new(d, &start)?),
            SolverKind::PowerM => Box::new(PowerM::new(d, self.momentum.policy()?, &start)?),
            SolverKind::Oja => Box::new(Oja::new(d, eta, epoch()?, sampler()?, &start)?),
            SolverKind::VrPca => Box::new(VrPca::new(d, eta, epoch()?, sampler()?, &start)?),
            SolverKind::VrPowerM => {
                Box::new(VrPowerM::new(d, epoch()?, self.momentum.policy()?, sampler()?, &start)?)
            }
            SolverKind::VrHbPower => {
                Box::new(VrHbPower::new(d, eta, epoch()?, self.momentum.policy()?, sampler()?, &start)?)
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_command_line() {
        let config = FitConfig::default();
        assert_eq!((config.k, config.eta, config.epoch, config.seed, config.threads), (1, None, 100, 0, 0));
        assert_eq!((config.solver, config.preprocessing), (SolverKind::Auto, Preprocessing::CENTER));
        assert_eq!((config.batch, config.momentum), (Batch::Share(0.01), MomentumChoice::Adaptive));
        assert_eq!(config.replacement, Replacement::Without);
        assert!(config.start.is_none());
    }

    #[test]
    fn every_solver_is_found_by_the_name_it_gives_itself() {
        for kind in SolverKind::ALL {
            assert_eq!(kind.to_string().parse::<SolverKind>().unwrap(), kind);
            let config = FitConfig { solver: kind, ..FitConfig::default() };
            let solver = config.solver(200, 5).unwrap();
            assert_eq!((solver.name(), solver.n_components()), (kind.name(), 1));
        }
    }

    #[test]
    fn the_seed_is_the_start_unless_one_is_given() {
        let config = FitConfig { solver: SolverKind::Power, seed: 5, ..FitConfig::default() };
        let seeded = Start::Random { seed: 5 }.vector(4).unwrap();
        assert_eq!(config.solver(9, 4).unwrap().pairs().vectors, &seeded);
        let given = FitConfig { start: Some(Block::from_vector(vec![0.0, 2.0, 0.0, 0.0])), ..config };
        assert_eq!(given.solver(9, 4).unwrap().pairs().vectors.values(), [0.0, 1.0, 0.0, 0.0]);
    }
}
