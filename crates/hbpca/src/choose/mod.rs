//! What runs: the solver, its sizes, its step size, and memory for rows on disk. All of it is decided here, and nowhere else.

mod account;
mod cost;
mod on_disk;
mod on_ranks;
mod speeds;
mod step_size;

pub use on_disk::StreamPlan;
pub(crate) use on_ranks::RankFacts;
pub use on_ranks::{Forecast, Network};
pub(crate) use step_size::{StepSize, sample_rows};

use crate::Error;
use crate::config::FitConfig;
use crate::matrix::{Matrix, Sampler};
use crate::operator::Shape;
use crate::policy::Start;
use crate::solver::{
    Anchored, AnchoredSizes, CoordinatePower, CovarianceSolver, Epoch, Krylov, KrylovSizes, LazySvd, Locking,
    Oja, Power, PowerM, Rebuild, Rest, ShiftInvertAgd, ShiftInvertSvrg, Solver, SolverKind, VrHbPower, VrPca,
    VrPcaProjected, VrPowerM, VrRiemannian,
};

/// Passes that no run in memory needs. Where fewer are allowed, passes are meant to be few.
const MANY_PASSES: f64 = 200.0;

/// A solver and its sizes, for one number of components.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The solver, never [`SolverKind::Auto`].
    pub(crate) solver: SolverKind,
    /// Why this solver.
    pub(crate) chosen_because: String,
    /// Components to ask for first.
    pub(crate) k: usize,
    /// Looks that take as long as `covariance`, where that was the other candidate.
    pub(crate) looks_worth: Option<f64>,
    sizes: Sizes,
}

/// What solvers are told about sizes.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    /// Nothing.
    None,
    /// `krylov`, perhaps beginning with vectors of AAᵀ.
    Krylov { sizes: KrylovSizes, with_row_gram: bool },
    /// `anchored`, with so many rows to sample from.
    Anchored { sizes: AnchoredSizes, rows: usize },
    /// Mini-batches are drawn in ranges of so many rows.
    Batches { range: usize },
}

impl Plan {
    /// For an operator of which only the shape is known: `auto` is `krylov` then.
    pub(crate) fn for_shape(shape: Shape, config: &FitConfig) -> Self {
        let solver = match config.solver {
            SolverKind::Auto => SolverKind::Krylov,
            chosen => chosen,
        };
        let sizes = match solver {
            SolverKind::Krylov => {
                Sizes::Krylov { sizes: KrylovSizes::suiting(config.k), with_row_gram: false }
            }
            SolverKind::Anchored => {
                let sizes = AnchoredSizes::suiting(shape.n, config.k);
                Sizes::Anchored { sizes: sizes.within(config.limits.max_passes, shape.n), rows: shape.n }
            }
            solver if solver.has_batches() => Sizes::Batches { range: 1 },
            _ => Sizes::None,
        };
        let chosen_because = match config.solver {
            SolverKind::Auto => "nothing is known of the operator but its products",
            _ => "asked for",
        };
        Self { solver, chosen_because: chosen_because.to_owned(), k: config.k, looks_worth: None, sizes }
    }

    /// For a matrix in memory. An observer that wants every iterate needs vectors of C, and so do a start that was given and a tight limit on
    /// passes.
    pub(crate) fn in_memory(matrix: &Matrix<'_>, config: &FitConfig, iterates_wanted: bool) -> Self {
        let shape = Shape { n: matrix.n_rows(), d: matrix.n_cols() };
        let cost::Choice { solver, because, looks_worth } = match config.solver {
            SolverKind::Auto => cost::choose(matrix, config),
            solver => cost::Choice { solver, because: "asked for".to_owned(), looks_worth: None },
        };
        let mut plan = Self::for_shape(shape, &FitConfig { solver, ..config.clone() });
        plan.chosen_because = because;
        plan.looks_worth = looks_worth.filter(|_| config.limits.max_passes >= MANY_PASSES);
        if solver == SolverKind::Krylov {
            let free = config.limits.max_passes >= MANY_PASSES && config.start.is_none() && !iterates_wanted;
            let gains = matrix.is_sparse() && Krylov::gains_from_rows(shape.n, shape.d, config.k);
            let sizes = cost::krylov_sizes(matrix, config.k);
            plan.sizes = Sizes::Krylov { sizes, with_row_gram: free && gains };
        }
        plan.ask_for_a_share(shape, config);
        plan
    }

    /// `covariance` may find all components at once where a share of the variance is asked for.
    fn ask_for_a_share(&mut self, shape: Shape, config: &FitConfig) {
        if self.solver == SolverKind::Covariance && config.variance_share.is_some() {
            self.k = cost::first_k_of_share(shape.n, shape.d, config.k);
        }
    }

    /// The solver, set up for `config`, whose k and η are final now.
    pub(crate) fn build(&self, shape: Shape, config: &FitConfig) -> Result<Box<dyn Solver>, Error> {
        let (Shape { n, d }, k, seed) = (shape, config.k, config.seed);
        let given = config.start.as_ref();
        let start = config.start.clone().map_or(Start::Random { seed }, Start::Given);
        let (eta, tol) = (config.eta.unwrap_or(0.1), config.limits.aim());
        // One component has none after it.
        let locking = |solver: Box<dyn Solver>, rebuild: Rebuild| -> Box<dyn Solver> {
            if k > 1 { Box::new(Locking::new(d, solver, config.limits, rebuild)) } else { solver }
        };
        let epoch = || Epoch::new(config.epoch);
        let momentum = |steps: usize| config.momentum.policy(steps);
        let range = if let Sizes::Batches { range } = self.sizes { range } else { 1 };
        let sampler = || Sampler::in_ranges(n, config.batch.rows(n)?, range, config.replacement, seed);
        Ok(match (self.solver, self.sizes) {
            (SolverKind::Krylov, Sizes::Krylov { sizes, with_row_gram }) => {
                let krylov = Krylov::new(d, k, sizes, seed, given)?.aiming_at(tol);
                let krylov = if with_row_gram { krylov.beginning_with_rows(n)? } else { krylov };
                locking(Box::new(krylov), Box::new(move |rest| rest_by_krylov(d, seed, tol, &rest)))
            }
            (SolverKind::Anchored, Sizes::Anchored { sizes, rows }) => {
                let anchored = Box::new(Anchored::new(rows, d, k, sizes, seed, given)?);
                let rest = move |rest: Rest<'_>| {
                    let anchored = Anchored::new(rows, d, rest.k, sizes, seed, rest.start)?;
                    Ok(Box::new(anchored.orthogonal_to(rest.locked)) as Box<dyn Solver>)
                };
                locking(anchored, Box::new(rest))
            }
            (SolverKind::Power, _) => Box::new(Power::new(d, &start)?),
            (SolverKind::PowerM, _) => Box::new(PowerM::new(d, momentum(1)?, &start)?),
            (SolverKind::Oja, _) => Box::new(Oja::new(d, eta, epoch()?, sampler()?, &start)?),
            (SolverKind::VrPca, _) => Box::new(VrPca::new(d, eta, epoch()?, sampler()?, &start)?),
            (SolverKind::VrPcaProjected, _) => {
                Box::new(VrPcaProjected::new(d, eta, epoch()?, sampler()?, &start)?)
            }
            (SolverKind::ShiftInvertSvrg, _) => {
                Box::new(ShiftInvertSvrg::new(d, eta, epoch()?, sampler()?, &start)?)
            }
            (SolverKind::VrRiemannian, _) => {
                Box::new(VrRiemannian::new(d, eta, epoch()?, sampler()?, &start)?)
            }
            (SolverKind::ShiftInvertAgd, _) => Box::new(ShiftInvertAgd::new(d, &start)?),
            (SolverKind::LazySvd, _) => Box::new(LazySvd::new(d, k, seed, given)?.aiming_at(tol)),
            (SolverKind::CoordinatePower, _) => Box::new(CoordinatePower::new(d, &start)?),
            (SolverKind::VrPowerM, _) => {
                Box::new(VrPowerM::new(d, epoch()?, momentum(config.epoch)?, sampler()?, &start)?)
            }
            (SolverKind::VrHbPower, _) => {
                Box::new(VrHbPower::new(d, eta, epoch()?, momentum(config.epoch)?, sampler()?, &start)?)
            }
            (SolverKind::Auto | SolverKind::Krylov | SolverKind::Anchored, _) => {
                unreachable!("a plan names a solver, and sizes of that solver")
            }
            (SolverKind::Covariance, _) => {
                let solver = CovarianceSolver::new(d, k)?.within(config.limits.max_passes);
                let solver = Box::new(solver.aiming_at(tol, seed));
                locking(solver, Box::new(move |rest| rest_by_krylov(d, seed, tol, &rest)))
            }
        })
    }
}

/// What finds the components that follow locked ones.
fn rest_by_krylov(d: usize, seed: u64, tol: f64, rest: &Rest<'_>) -> Result<Box<dyn Solver>, Error> {
    let krylov = Krylov::new(d, rest.k, KrylovSizes::suiting(rest.k), seed, rest.start)?;
    Ok(Box::new(krylov.aiming_at(tol).orthogonal_to(rest.locked)?))
}

impl FitConfig {
    /// The solver these choices describe, for n rows and d columns. [`SolverKind::Auto`] is `krylov` here, where nothing is
    /// known of the data but its shape, and a step size not given is 0.1.
    pub fn solver(&self, n: usize, d: usize) -> Result<Box<dyn Solver>, Error> {
        let shape = Shape { n, d };
        Plan::for_shape(shape, self).build(shape, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;

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
