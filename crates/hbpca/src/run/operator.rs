//! An operator that the caller wrote.

use std::borrow::Cow;

use super::source::Source;
use crate::Error;
use crate::choose::Plan;
use crate::columns::{Preprocessing, RowMap};
use crate::config::FitConfig;
use crate::matrix::Matrix;
use crate::operator::{CovarianceOperator, Shape};

/// Products alone.
pub(super) struct GivenOperator<'o> {
    operator: &'o mut dyn CovarianceOperator,
}

impl<'o> GivenOperator<'o> {
    pub(super) fn new(operator: &'o mut dyn CovarianceOperator) -> Self {
        Self { operator }
    }
}

impl Source for GivenOperator<'_> {
    fn shape(&self) -> Shape {
        self.operator.shape()
    }

    fn plan(&self, config: &FitConfig, _iterates_wanted: bool) -> Result<Plan, Error> {
        Ok(Plan::for_shape(self.shape(), config))
    }

    fn sample(&self, _count: usize, _seed: u64) -> Result<Option<Cow<'_, Matrix<'static>>>, Error> {
        Ok(None)
    }

    fn operator(&mut self) -> &mut dyn CovarianceOperator {
        self.operator
    }

    fn columns(&self) -> Result<(Cow<'_, RowMap>, f64), Error> {
        let map = RowMap::of_rows_as_they_are(self.operator.total_variance());
        Ok((Cow::Owned(map), self.shape().n as f64))
    }

    fn preprocessing(&self, _config: &FitConfig) -> Preprocessing {
        Preprocessing::NONE
    }

    fn statistics_passes(&self) -> f64 {
        0.0
    }
}
