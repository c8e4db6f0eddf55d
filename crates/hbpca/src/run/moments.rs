//! Rows of which only the moments are stored.

use std::borrow::Cow;

use super::source::Source;
use crate::Error;
use crate::choose::Plan;
use crate::columns::RowMap;
use crate::config::FitConfig;
use crate::matrix::Matrix;
use crate::moments::{Moments, Remembered};
use crate::operator::{CovarianceOperator, Shape};
use crate::solver::SolverKind;

/// C and the row map.
pub(super) struct FromMoments {
    operator: Remembered,
    map: RowMap,
    weight: f64,
}

impl FromMoments {
    pub(super) fn new(moments: &Moments, config: &FitConfig) -> Self {
        let map = config.preprocessing.row_map(moments.statistics());
        Self { operator: moments.operator(&map), map, weight: moments.statistics().weight() }
    }
}

impl Source for FromMoments {
    fn shape(&self) -> Shape {
        self.operator.shape()
    }

    fn plan(&self, config: &FitConfig, _iterates_wanted: bool) -> Result<Plan, Error> {
        let config = FitConfig { solver: SolverKind::Covariance, ..config.clone() };
        let mut plan = Plan::for_shape(self.shape(), &config);
        plan.chosen_because = String::from("only the moments of the rows are kept");
        Ok(plan)
    }

    fn sample(&self, _count: usize, _seed: u64) -> Result<Option<Cow<'_, Matrix<'static>>>, Error> {
        Ok(None)
    }

    fn operator(&mut self) -> &mut dyn CovarianceOperator {
        &mut self.operator
    }

    fn columns(&self) -> Result<(Cow<'_, RowMap>, f64), Error> {
        Ok((Cow::Borrowed(&self.map), self.weight))
    }

    fn statistics_passes(&self) -> f64 {
        1.0
    }
}
