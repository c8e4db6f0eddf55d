//! Rows in partitions of a cluster: the same fit, led by the client.

use std::borrow::Cow;

use super::source::Source;
use super::{Fit, Run, run_on};
use crate::Error;
use crate::checkpoint::{Checkpoints, Session};
use crate::choose::{Plan, RankFacts};
use crate::columns::{ColumnStatistics, RowMap};
use crate::config::FitConfig;
use crate::matrix::Matrix;
use crate::observe::Observer;
use crate::operator::{CovarianceOperator, Partitioned, Partitions, Shape};
use crate::solver::SolverKind;

impl Run<'_> {
    /// Fits the rows of all partitions in one round for their statistics and one for every pass. A round takes about `round_seconds` beside its
    /// products, which decides between solvers. `anchored` draws its mini-batches from a sample of rows, which take one more round; other solvers with
    /// mini-batches are refused, and so are weights.
    ///
    /// ```
    /// use hbpca::operator::{Partitions, answer, combine};
    /// use hbpca::{Dense, Error, FitConfig, Matrix};
    /// struct Here(Vec<Matrix<'static>>);
    /// impl Partitions for Here {
    ///     fn count(&self) -> usize {
    ///         self.0.len()
    ///     }
    ///     fn sum(&self, task: &[f64]) -> Result<Vec<f64>, Error> {
    ///         let first = answer(task, &self.0[0], (0, self.0.len()))?;
    ///         let others = self.0.iter().enumerate().skip(1);
    ///         others.map(|(i, rows)| answer(task, rows, (i, self.0.len()))).try_fold(first, |sum, next| combine(&sum, &next?))
    ///     }
    /// }
    /// let part = |values: [f64; 4]| -> Result<Matrix, Error> { Ok(Dense::new(values.to_vec(), 2, 2)?.into()) };
    /// let here = Here(vec![part([2.0, 1.0, -2.0, -1.0])?, part([0.1, -0.2, -0.1, 0.2])?]);
    /// let fit = FitConfig::default().run().fit_partitions(&here, 0.1)?;
    /// assert!((fit.model.eigenvalues()[0] - 2.5).abs() < 1e-12);
    /// # Ok::<(), hbpca::Error>(())
    /// ```
    pub fn fit_partitions(self, partitions: &dyn Partitions, round_seconds: f64) -> Result<Fit, Error> {
        self.refuse_weights("partitions")?;
        self.config.refuse_missing("partitions")?;
        self.config.refuse_scale_of_genotypes()?;
        let Self { config, mut observers, cancel, checkpoints, .. } = self;
        if checkpoints.save.is_some() || checkpoints.resume.is_some() {
            let advice = "a fit of partitions keeps none";
            return Err(Error::parameter("checkpoints", "wanted", advice));
        }
        let mut operator = Partitioned::new(partitions, config.preprocessing, config.precision)?;
        let Shape { n, d } = operator.shape();
        config.check(n, d)?;
        let session = Session::new(config, Checkpoints::default())?;
        let clock = session.clock();
        let round = (partitions.count(), operator.most_rows());
        let facts = RankFacts::of_partitions(
            operator.shape(),
            operator.is_sparse(),
            operator.entries(),
            round,
            round_seconds,
        );
        let sample = (config.solver == SolverKind::Anchored).then(|| facts.sample_rows());
        if let Some(count) = sample {
            operator.keep_sample(count, config.seed)?;
        }
        let source = OnPartitions { operator, facts, sample };
        observers.iter_mut().for_each(|observer| source.announce(&mut **observer));
        run_on(source, config, session, &clock, &cancel, &mut observers)
    }
}

/// The rows of all partitions.
struct OnPartitions<'p> {
    operator: Partitioned<'p>,
    facts: RankFacts,
    /// Rows that the client has.
    sample: Option<usize>,
}

impl OnPartitions<'_> {
    fn announce(&self, observer: &mut dyn Observer) {
        observer.prepared(self.operator.map(), self.operator.statistics().weight());
    }
}

impl Source for OnPartitions<'_> {
    fn shape(&self) -> Shape {
        self.operator.shape()
    }

    fn plan(&self, config: &FitConfig, _iterates_wanted: bool) -> Result<Plan, Error> {
        Ok(Plan::on_ranks(&self.facts, config, self.sample))
    }

    fn sample(&self, _count: usize, _seed: u64) -> Result<Option<Cow<'_, Matrix<'static>>>, Error> {
        Ok(None)
    }

    fn operator(&mut self) -> &mut dyn CovarianceOperator {
        &mut self.operator
    }

    fn columns(&self) -> Result<(Cow<'_, RowMap>, f64), Error> {
        Ok((Cow::Borrowed(self.operator.map()), self.operator.statistics().weight()))
    }

    fn statistics(&self) -> Option<ColumnStatistics> {
        None
    }

    fn statistics_passes(&self) -> f64 {
        1.0
    }
}
