//! Everything that can be chosen about a fit.

use serde::{Deserialize, Serialize};

use crate::columns::Preprocessing;
use crate::matrix::Replacement;
use crate::missing::{EmLimits, Missing};
use crate::operator::PrecisionChoice;
use crate::policy::{AdaptiveMomentum, Batch, DynamicMomentum, Momentum, OracleMomentum};
use crate::solver::SolverKind;
use crate::{Block, Error, Limits};

/// Where the momentum's λ₂ comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MomentumChoice {
    /// The free estimate from consecutive iterates.
    #[default]
    Adaptive,
    /// The rate at which the residual falls.
    Dynamic,
    /// The true λ₂, given.
    Oracle(f64),
}

impl MomentumChoice {
    /// The policy for a solver that takes so many steps between two looks.
    pub(crate) fn policy(self, steps: usize) -> Result<Box<dyn Momentum>, Error> {
        Ok(match self {
            Self::Adaptive => Box::new(AdaptiveMomentum::default()),
            Self::Dynamic => Box::new(DynamicMomentum::new(steps)),
            Self::Oracle(lambda2) => Box::new(OracleMomentum::new(lambda2)?),
        })
    }
}

/// What the choice of a solver rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Tuning {
    /// The speeds of a nominal machine: the same choice everywhere, and the same bits for any number of threads.
    #[default]
    Nominal,
    /// Speeds that are measured here, in a third of a second: the choice may differ between machines and numbers of threads.
    Measured,
}

/// Everything that can be chosen about a fit. The defaults are those of the command line but for k, which there is
/// [useful](Self::with_useful_k).
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
    /// What the choice of a solver rests on.
    pub tuning: Tuning,
    /// Bytes that a fit in memory may take, data included; one that would take more is refused before it begins.
    pub memory: Option<u64>,
    /// Bytes a second that rows on disk are read at: what the choice of a solver for them counts with. A nominal device reads 1 GB.
    pub disk_rate: Option<f64>,
    /// Asks for a [probe](crate::probe) after the run: bounds on angles that fail with this probability at most.
    pub certify: Option<f64>,
    /// Seed of the probe; the operating system's where none is given.
    pub probe_seed: Option<u64>,
    /// What becomes of missing values (NaN).
    pub missing: Missing,
    /// When `em` stops.
    pub em: EmLimits,
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
            tuning: Tuning::Nominal,
            memory: None,
            disk_rate: None,
            certify: None,
            probe_seed: None,
            missing: Missing::Error,
            em: EmLimits::default(),
        }
    }
}

impl FitConfig {
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
                "solver {} finds one component; choose auto, covariance, krylov, anchored or lazy-svd",
                self.solver
            );
            return Err(Error::parameter("k", self.variance_share.unwrap_or(self.k as f64), advice));
        }
        if let Some(delta) = self.certify
            && !(delta > 0.0 && delta <= 0.5)
        {
            let advice = "a probability of failure lies above 0 and at most at 0.5; try 1e-9";
            return Err(Error::parameter("certify", delta, advice));
        }
        if let Some(rate) = self.disk_rate
            && !(rate > 0.0 && rate.is_finite())
        {
            let advice = "a disk reads a positive number of bytes a second; try 200e6";
            return Err(Error::parameter("disk_rate", rate, advice));
        }
        if self.missing == Missing::Em {
            self.em.check()?;
        }
        self.limits.check()
    }

    /// The same for as many components as are useful where nobody named a number: those of the start if there is one, else ten or, of smaller
    /// data, all; one if the solver finds no more.
    #[must_use]
    pub fn with_useful_k(self, n: usize, d: usize) -> Self {
        const USEFUL: usize = 10;
        let k = match &self.start {
            _ if !self.solver.finds_many() => 1,
            Some(start) => start.p(),
            None => USEFUL.min(n).min(d).max(1),
        };
        Self { k, ..self }
    }

    /// The same for k components, from what was found of them so far.
    pub(crate) fn with_components(&self, k: usize, start: Block) -> Self {
        Self { k, start: Some(start), ..self.clone() }
    }
}

#[cfg(test)]
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
    fn a_useful_number_of_components_is_ten_or_what_there_is() {
        let k = |config: FitConfig, n, d| config.with_useful_k(n, d).k;
        let config = FitConfig::default();
        assert_eq!(
            [(100, 64), (100, 4), (3, 64), (0, 0)].map(|(n, d)| k(config.clone(), n, d)),
            [10, 4, 3, 1]
        );
        let of_one = FitConfig { solver: SolverKind::VrHbPower, ..config.clone() };
        assert_eq!(k(of_one, 100, 64), 1);
        let start = Some(Block::zeros(64, 3));
        assert_eq!(k(FitConfig { start, ..config }, 100, 64), 3);
    }
}
