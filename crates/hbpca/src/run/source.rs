//! What a fit works on, beyond products with it.

use std::borrow::Cow;

use crate::Error;
use crate::choose::Plan;
use crate::columns::{ColumnStatistics, Preprocessing, RowMap};
use crate::config::FitConfig;
use crate::matrix::Matrix;
use crate::operator::{CovarianceOperator, Shape};

/// Data to be fitted: a matrix in memory, rows on disk, or an operator.
pub(super) trait Source {
    /// n and d.
    fn shape(&self) -> Shape;

    /// The solver to run and its sizes, as chosen for this kind of data.
    fn plan(&self, config: &FitConfig, iterates_wanted: bool) -> Result<Plan, Error>;

    /// A random sample of about `count` rows, where single rows can be had.
    fn sample(&self, count: usize, seed: u64) -> Result<Option<Cow<'_, Matrix<'static>>>, Error>;

    /// Products.
    fn operator(&mut self) -> &mut dyn CovarianceOperator;

    /// How rows are prepared and what they weigh; known after the first full pass at the latest.
    fn columns(&self) -> Result<(Cow<'_, RowMap>, f64), Error>;

    /// The trace of C; known when [`columns`](Self::columns) is.
    fn total_variance(&self) -> Result<f64, Error> {
        Ok(self.columns()?.0.total_variance())
    }

    /// What the model says about the preparation.
    fn preprocessing(&self, config: &FitConfig) -> Preprocessing {
        config.preprocessing
    }

    /// What a checkpoint needs to know of the columns, where the operator does not tell it.
    fn statistics(&self) -> Option<ColumnStatistics> {
        None
    }

    /// Passes for column statistics alone.
    fn statistics_passes(&self) -> f64;

    /// Bytes read from disk.
    fn bytes_read(&self) -> u64 {
        0
    }
}
