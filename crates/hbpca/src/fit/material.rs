//! What a fit works on, beyond products with it: a matrix in memory, or rows on disk.

use std::borrow::Cow;

use super::checkpoint::Session;
use super::{FitConfig, SolverKind, auto};
use crate::Error;
use crate::columns::{ColumnStatistics, Preprocessing, RowMap, weight_and_moment};
use crate::matrix::{Matrix, Replacement, Sampler};
use crate::observe::Observer;
use crate::operator::{Covariance, CovarianceOperator};
use crate::solver::{Krylov, Solver};

/// Passes that no run in memory needs: who allows fewer means it.
const MANY_PASSES: f64 = 200.0;

/// Data to be fitted.
pub(super) trait Material {
    /// n and d.
    fn shape(&self) -> (usize, usize);

    /// The solver to run, and why.
    fn choose(&self, config: &FitConfig) -> (SolverKind, String);

    /// That solver, sized for the way the data is stored. Whether somebody wants to see every iterate is for it to know.
    fn solver(&self, config: &FitConfig, iterates_wanted: bool) -> Result<Box<dyn Solver>, Error>;

    /// A random sample of about `count` rows.
    fn sample(&self, count: usize, seed: u64) -> Result<Cow<'_, Matrix<'static>>, Error>;

    /// Products.
    fn operator(&mut self) -> &mut dyn CovarianceOperator;

    /// How rows are prepared and what they weigh; known after the first full pass at the latest.
    fn columns(&self) -> Result<(&RowMap, f64), Error>;

    /// What a checkpoint needs to know of the columns, where the operator does not tell it.
    fn statistics(&self) -> Option<ColumnStatistics>;

    /// Passes for column statistics alone.
    fn statistics_passes(&self) -> f64;

    /// Bytes read from disk.
    fn bytes_read(&self) -> u64;
}

/// A matrix in memory.
pub(super) struct InMemory<'m> {
    matrix: &'m Matrix<'m>,
    operator: Covariance<'m>,
    weight: f64,
    /// For checkpoints, where such are kept and the map depends on the columns.
    statistics: Option<ColumnStatistics>,
}

impl<'m> InMemory<'m> {
    /// Reads the matrix once for its column statistics, unless the session knows them.
    pub(super) fn new(
        matrix: &'m Matrix<'m>,
        weights: Option<&[f64]>,
        config: &FitConfig,
        session: &Session<'_>,
    ) -> Result<Self, Error> {
        let (preprocessing, cancel) = (config.preprocessing, &config.limits.cancel);
        let (map, weight, statistics) = if needs_statistics(matrix, preprocessing) {
            let statistics = match session.statistics(matrix.n_rows(), matrix.n_cols())? {
                Some(known) => known,
                None => ColumnStatistics::gather(matrix, weights, cancel)?,
            };
            let map = preprocessing.row_map(&statistics);
            (map, statistics.weight(), Some(statistics))
        } else {
            let (weight, moment) = weight_and_moment(matrix, weights, cancel)?;
            (RowMap::of_rows_as_they_are(moment), weight, None)
        };
        let operator = match weights {
            None => Covariance::with_map(matrix, map),
            Some(weights) => Covariance::with_map_and_weights(matrix, map, weights)?,
        }
        .abandoned_by(cancel)
        .in_precision(config.precision);
        let operator = match &statistics {
            Some(statistics) => operator.knowing(statistics),
            None => operator,
        };
        let statistics = statistics.filter(|_| session.keeps());
        Ok(Self { matrix, operator, weight, statistics })
    }

    /// Tells how rows are prepared.
    pub(super) fn announce(&self, observer: &mut dyn Observer) {
        observer.prepared(self.operator.map(), self.weight);
    }
}

/// Whether anything about single columns has to be known. Text that stays as it is has many, and most of a fit with one
/// component would go into them.
fn needs_statistics(matrix: &Matrix<'_>, preprocessing: Preprocessing) -> bool {
    !(matrix.is_sparse() && preprocessing == Preprocessing::NONE)
}

impl Material for InMemory<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.matrix.n_rows(), self.matrix.n_cols())
    }

    fn choose(&self, config: &FitConfig) -> (SolverKind, String) {
        match config.solver {
            SolverKind::Auto => auto::choose(self.matrix, config),
            chosen => (chosen, "asked for".to_owned()),
        }
    }

    fn solver(&self, config: &FitConfig, iterates_wanted: bool) -> Result<Box<dyn Solver>, Error> {
        let (n, d) = self.shape();
        if config.solver != SolverKind::Krylov {
            return config.solver(n, d);
        }
        let sizes = auto::krylov_sizes(self.matrix, config.k);
        let krylov = Krylov::new(d, config.k, sizes, config.seed, config.start.as_ref())?;
        // Who counts passes, brings a start or wants to see every iterate is better served by C.
        let free = config.limits.max_passes >= MANY_PASSES && config.start.is_none() && !iterates_wanted;
        let by_rows = self.matrix.is_sparse() && free && Krylov::gains_from_rows(n, d, config.k);
        Ok(Box::new(if by_rows { krylov.beginning_with_rows(n)? } else { krylov }))
    }

    fn sample(&self, count: usize, seed: u64) -> Result<Cow<'_, Matrix<'static>>, Error> {
        let mut sampler = Sampler::new(self.matrix.n_rows(), count, Replacement::Without, seed)?;
        Ok(Cow::Owned(self.matrix.select_rows(sampler.draw())))
    }

    fn operator(&mut self) -> &mut dyn CovarianceOperator {
        &mut self.operator
    }

    fn columns(&self) -> Result<(&RowMap, f64), Error> {
        Ok((self.operator.map(), self.weight))
    }

    fn statistics(&self) -> Option<ColumnStatistics> {
        self.statistics.clone()
    }

    fn statistics_passes(&self) -> f64 {
        1.0
    }

    fn bytes_read(&self) -> u64 {
        0
    }
}
