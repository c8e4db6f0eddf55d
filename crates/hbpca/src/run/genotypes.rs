//! Packed genotypes.

use std::borrow::Cow;

use super::source::Source;
use crate::checkpoint::Session;
use crate::choose::Plan;
use crate::columns::{ColumnStatistics, RowMap};
use crate::config::FitConfig;
use crate::matrix::{Genotypes, Matrix};
use crate::observe::Observer;
use crate::operator::{CovarianceOperator, GenotypeCovariance, Shape};
use crate::solver::SolverKind;
use crate::{CancelToken, Error};

/// Packed genotypes in memory.
pub(super) struct OfGenotypes<'g> {
    operator: GenotypeCovariance<'g>,
    statistics: ColumnStatistics,
    saves: bool,
}

impl<'g> OfGenotypes<'g> {
    /// Counts the genotypes of every variant.
    pub(super) fn new(
        genotypes: &'g Genotypes,
        config: &FitConfig,
        session: &Session<'_>,
        cancel: &CancelToken,
    ) -> Result<Self, Error> {
        let statistics = ColumnStatistics::of_genotypes(genotypes)?;
        let map = config.preprocessing.row_map(&statistics);
        let operator = GenotypeCovariance::with_map(genotypes, map, statistics.mean()).abandoned_by(cancel);
        Ok(Self { operator, statistics, saves: session.saves() })
    }

    /// Tells how rows are prepared.
    pub(super) fn announce(&self, observer: &mut dyn Observer) {
        observer.prepared(self.operator.map(), self.statistics.weight());
    }
}

impl Source for OfGenotypes<'_> {
    fn shape(&self) -> Shape {
        self.operator.shape()
    }

    fn plan(&self, config: &FitConfig, _iterates_wanted: bool) -> Result<Plan, Error> {
        let mut plan = Plan::for_shape(self.shape(), config);
        if config.solver == SolverKind::Auto {
            "genotypes are multiplied as they are packed".clone_into(&mut plan.chosen_because);
        }
        Ok(plan)
    }

    fn sample(&self, _count: usize, _seed: u64) -> Result<Option<Cow<'_, Matrix<'static>>>, Error> {
        Ok(None)
    }

    fn operator(&mut self) -> &mut dyn CovarianceOperator {
        &mut self.operator
    }

    fn columns(&self) -> Result<(Cow<'_, RowMap>, f64), Error> {
        Ok((Cow::Borrowed(self.operator.map()), self.statistics.weight()))
    }

    fn statistics(&self) -> Option<ColumnStatistics> {
        self.saves.then(|| self.statistics.clone())
    }

    fn statistics_passes(&self) -> f64 {
        1.0
    }
}
