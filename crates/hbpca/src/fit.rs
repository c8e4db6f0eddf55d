//! From a matrix and a few choices to a certified model: the front door.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::driver::Stopwatch;
use crate::matrix::{ColumnStatistics, Matrix, Preprocessing, Replacement, Sampler};
use crate::observe::{Observer, Record};
use crate::policy::{AdaptiveMomentum, Batch, Momentum, OracleMomentum, Start};
use crate::solver::{
    Anchored, AnchoredSizes, CovarianceSolver, Epoch, Krylov, KrylovSizes, Oja, Power, PowerM, Solver,
    VrHbPower, VrPca, VrPowerM,
};
use crate::{Block, Certificate, Covariance, Driver, Error, Limits, Model, Outcome, Summary};

/// The solvers by the names users type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SolverKind {
    /// Form C in one pass, dense eigen-solve.
    Covariance,
    /// Block Lanczos with thick restart.
    Krylov,
    /// Anchored block VR HB Power.
    Anchored,
    /// Power iteration.
    Power,
    /// Power iteration with momentum.
    PowerM,
    /// Oja's rule.
    Oja,
    /// VR-PCA.
    VrPca,
    /// VR Power+M.
    VrPowerM,
    /// VR HB Power.
    VrHbPower,
}

impl SolverKind {
    /// Every solver, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Covariance,
        Self::Krylov,
        Self::Anchored,
        Self::Power,
        Self::PowerM,
        Self::Oja,
        Self::VrPca,
        Self::VrPowerM,
        Self::VrHbPower,
    ];

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Covariance => "covariance",
            Self::Krylov => "krylov",
            Self::Anchored => "anchored",
            Self::Power => "power",
            Self::PowerM => "power-m",
            Self::Oja => "oja",
            Self::VrPca => "vr-pca",
            Self::VrPowerM => "vr-power-m",
            Self::VrHbPower => "vr-hb-power",
        }
    }

    /// Whether the solver finds more than one component.
    pub fn finds_many(self) -> bool {
        matches!(self, Self::Covariance | Self::Krylov | Self::Anchored)
    }
}

impl fmt::Display for SolverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SolverKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| kind.name()).collect();
            Error::parameter("solver", text, format!("choose one of {}", names.join(", ")))
        })
    }
}

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
    /// k, the number of components.
    pub k: usize,
    /// The solver.
    pub solver: SolverKind,
    /// How rows are prepared.
    pub preprocessing: Preprocessing,
    /// When to stop.
    pub limits: Limits,
    /// η of the stochastic solvers.
    pub eta: f64,
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
}

impl Default for FitConfig {
    fn default() -> Self {
        Self {
            k: 1,
            solver: SolverKind::Covariance,
            preprocessing: Preprocessing::CENTER,
            limits: Limits::default(),
            eta: 0.1,
            momentum: MomentumChoice::Adaptive,
            batch: Batch::Share(0.01),
            epoch: 100,
            replacement: Replacement::Without,
            seed: 0,
            threads: 0,
            start: None,
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
    /// One record for every outer iterate.
    pub history: Vec<Record>,
    /// Rows read by the solver, divided by n.
    pub passes: f64,
    /// Complete passes of the solver.
    pub full_passes: u64,
    /// Passes for column statistics, not counted in `passes`.
    pub statistics_passes: f64,
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
        self.check(matrix.n_rows(), matrix.n_cols())?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .build()
            .map_err(|error| Error::Source(Box::new(error)))?;
        pool.install(|| self.fit_here(matrix, weights, observers))
    }

    /// Refuses choices that do not fit together or do not fit the data.
    pub fn check(&self, n: usize, d: usize) -> Result<(), Error> {
        let most = n.min(d);
        if self.k == 0 || self.k > most {
            let advice = format!("{n} rows × {d} columns have from 1 to {most} components");
            return Err(Error::parameter("k", self.k, advice));
        }
        if self.k > 1 && !self.solver.finds_many() {
            let advice =
                format!("solver {} finds one component; choose --solver covariance for more", self.solver);
            return Err(Error::parameter("k", self.k, advice));
        }
        self.limits.check()
    }

    fn fit_here(
        &self,
        matrix: &Matrix<'_>,
        weights: Option<&[f64]>,
        observers: &mut [&mut (dyn Observer + Send)],
    ) -> Result<Fit, Error> {
        let clock = Stopwatch::start();
        let statistics = match weights {
            None => ColumnStatistics::new(matrix)?,
            Some(weights) => ColumnStatistics::weighted(matrix, weights)?,
        };
        let map = self.preprocessing.row_map(&statistics);
        let mut operator = match weights {
            None => Covariance::with_map(matrix, map.clone()),
            Some(weights) => Covariance::with_map_and_weights(matrix, map.clone(), weights)?,
        };
        let mut solver = self.solver(matrix.n_rows(), matrix.n_cols())?;
        let mut driver = Driver::new(self.limits.clone());
        for observer in observers {
            driver = driver.observer(&mut **observer);
        }
        let report = driver.run(&mut *solver, &mut operator)?;
        let summary = Summary {
            n: matrix.n_rows(),
            d: matrix.n_cols(),
            weight: statistics.weight(),
            preprocessing: self.preprocessing,
            eigenvalues: report.certificate.eigenvalues.clone(),
            total_variance: map.total_variance(),
        };
        Ok(Fit {
            model: Model::new(&report.vectors, summary, &map)?,
            certificate: report.certificate,
            outcome: report.outcome,
            solver: self.solver,
            history: report.history,
            passes: report.passes,
            full_passes: report.read.full_passes,
            statistics_passes: 1.0,
            seconds: clock.seconds(),
            seed: self.seed,
            threads: rayon::current_num_threads(),
        })
    }

    /// The solver these choices describe, for n rows and d columns.
    pub fn solver(&self, n: usize, d: usize) -> Result<Box<dyn Solver>, Error> {
        let start = self.start.clone().map_or(Start::Random { seed: self.seed }, Start::Given);
        let epoch = || Epoch::new(self.epoch);
        let sampler = || Sampler::new(n, self.batch.rows(n)?, self.replacement, self.seed);
        Ok(match self.solver {
            SolverKind::Covariance => Box::new(CovarianceSolver::new(d, self.k)?),
            SolverKind::Krylov => {
                let sizes = KrylovSizes::suiting(self.k);
                Box::new(Krylov::new(d, self.k, sizes, self.seed, self.start.as_ref())?)
            }
            SolverKind::Anchored => {
                let sizes = AnchoredSizes::suiting(n, self.k);
                Box::new(Anchored::new(n, d, self.k, sizes, self.seed, self.start.as_ref())?)
            }
            SolverKind::Power => Box::new(Power::new(d, &start)?),
            SolverKind::PowerM => Box::new(PowerM::new(d, self.momentum.policy()?, &start)?),
            SolverKind::Oja => Box::new(Oja::new(d, self.eta, epoch()?, sampler()?, &start)?),
            SolverKind::VrPca => Box::new(VrPca::new(d, self.eta, epoch()?, sampler()?, &start)?),
            SolverKind::VrPowerM => {
                Box::new(VrPowerM::new(d, epoch()?, self.momentum.policy()?, sampler()?, &start)?)
            }
            SolverKind::VrHbPower => {
                Box::new(VrHbPower::new(d, self.eta, epoch()?, self.momentum.policy()?, sampler()?, &start)?)
            }
        })
    }
}
