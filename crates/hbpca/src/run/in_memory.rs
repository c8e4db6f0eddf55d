//! A matrix in memory.

use std::borrow::Cow;

use super::missing::Rounded;
use super::source::Source;
use crate::checkpoint::Session;
use crate::choose::Plan;
use crate::columns::{ColumnStatistics, Preprocessing, RowMap, weight_and_moment};
use crate::config::FitConfig;
use crate::matrix::{Matrix, Replacement, Sampler};
use crate::observe::Observer;
use crate::operator::{Covariance, CovarianceOperator, Shape};
use crate::{CancelToken, Error};

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
        rounded: Rounded<'_>,
        config: &FitConfig,
        session: &Session<'_>,
        cancel: &CancelToken,
    ) -> Result<Self, Error> {
        let preprocessing = config.preprocessing;
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
        let narrowing = if rounded.narrowed { map.moved_by_narrowing(statistics.as_ref()) } else { 0.0 };
        let narrowing = narrowing + rounded.filling.map_or(0.0, |filling| filling.moves(&map));
        let operator = match weights {
            None => Covariance::with_map(matrix, map),
            Some(weights) => Covariance::with_map_and_weights(matrix, map, weights)?,
        }
        .narrowed_by(narrowing)
        .abandoned_by(cancel)
        .in_precision(config.precision);
        let operator = match &statistics {
            Some(statistics) => operator.knowing(statistics),
            None => operator,
        };
        let statistics = statistics.filter(|_| session.saves());
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

impl Source for InMemory<'_> {
    fn shape(&self) -> Shape {
        self.operator.shape()
    }

    fn plan(&self, config: &FitConfig, iterates_wanted: bool) -> Result<Plan, Error> {
        Ok(Plan::in_memory(self.matrix, config, iterates_wanted))
    }

    fn sample(&self, count: usize, seed: u64) -> Result<Option<Cow<'_, Matrix<'static>>>, Error> {
        let mut sampler = Sampler::new(self.matrix.n_rows(), count, Replacement::Without, seed)?;
        Ok(Some(Cow::Owned(self.matrix.select_rows(sampler.draw()))))
    }

    fn operator(&mut self) -> &mut dyn CovarianceOperator {
        &mut self.operator
    }

    fn columns(&self) -> Result<(Cow<'_, RowMap>, f64), Error> {
        Ok((Cow::Borrowed(self.operator.map()), self.weight))
    }

    fn statistics(&self) -> Option<ColumnStatistics> {
        self.statistics.clone()
    }

    fn statistics_passes(&self) -> f64 {
        1.0
    }
}
