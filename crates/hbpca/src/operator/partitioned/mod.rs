//! Rows in partitions that somebody else owns: a cluster's scheduler, which places them, spills them and computes them again.
//!
//! ```text
//! a round    a task (what to do, with V)  →  every partition answers it alone  →  answers are combined two by two
//! ```
//!
//! A [task](Task) and an [answer](Answer) are lists of numbers: whatever can run a function on a partition and add up can serve. The solver
//! stays with the client, so that a fit takes as many rounds as passes.

mod answer;
mod task;

pub use answer::combine;
pub use task::answer;

use answer::Answer;
use task::Task;

use super::{
    Capabilities, CovarianceOperator, ExplicitCovariance, Precision, PrecisionChoice, Product, Products,
    RowSample, Rows, Shape, reshape,
};
use crate::columns::{ColumnStatistics, Preprocessing, RowMap};
use crate::matrix::{Replacement, Sampler};
use crate::operator::forming::form::mirror;
use crate::rounding::{RoundingBound, rounding_of_sum};
use crate::{Block, Error};

/// Partitions that can map and add.
pub trait Partitions {
    /// How many there are.
    fn count(&self) -> usize;

    /// The [`answer()`] of every partition to a task, [combined](combine) two by two. The order of combining decides the last bits.
    fn sum(&self, task: &[f64]) -> Result<Vec<f64>, Error>;
}

/// The covariance of all partitions' rows.
pub(crate) struct Partitioned<'p> {
    partitions: &'p dyn Partitions,
    /// Rows and hash of every partition, as the first round found them.
    seen: Vec<[usize; 3]>,
    statistics: ColumnStatistics,
    map: RowMap,
    sparse: bool,
    entries: usize,
    single: bool,
    precision: PrecisionChoice,
    /// Rows that the client has, for mini-batches.
    sample: Option<RowSample>,
}

impl<'p> Partitioned<'p> {
    /// One round for the column statistics.
    pub(crate) fn new(
        partitions: &'p dyn Partitions,
        preprocessing: Preprocessing,
        precision: PrecisionChoice,
    ) -> Result<Self, Error> {
        if partitions.count() == 0 {
            return Err(Error::Empty { n: 0, d: 0 });
        }
        let answer = Answer::decode(&partitions.sum(&Task::Survey.encode())?)?;
        let (sparse, entries, single) = (answer.is_sparse(), answer.entries(), answer.has_single());
        let (seen, statistics) = (answer.partitions(partitions.count())?, answer.into_statistics()?);
        let map = preprocessing.row_map(&statistics);
        Ok(Self { partitions, seen, statistics, map, sparse, entries, single, precision, sample: None })
    }

    pub(crate) fn statistics(&self) -> &ColumnStatistics {
        &self.statistics
    }

    pub(crate) fn map(&self) -> &RowMap {
        &self.map
    }

    pub(crate) fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// Stored entries of all partitions.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// Rows of the largest partition.
    pub(crate) fn most_rows(&self) -> usize {
        self.seen.iter().map(|partition| partition[0]).max().unwrap_or(0)
    }

    /// One round for a sample of rows, which mini-batches are drawn from.
    pub(crate) fn keep_sample(&mut self, count: usize, seed: u64) -> Result<(), Error> {
        let mut sampler = Sampler::new(self.n_rows(), count, Replacement::Without, seed)?;
        let rows = sampler.draw();
        let mut starts = Vec::with_capacity(self.seen.len());
        let mut first = 0;
        for [n, ..] in &self.seen {
            starts.push(first);
            first += n;
        }
        let (numbers, matrix) = self.ask(&Task::Rows { starts: &starts, rows })?.rows()?;
        if numbers != rows {
            return Err(Error::Communication("partitions answered other rows than were asked for".into()));
        }
        self.sample = Some(RowSample::new(numbers, matrix, self.map.clone())?);
        Ok(())
    }

    /// One round. Refuses answers of other rows than those of the first.
    fn ask(&self, task: &Task<'_>) -> Result<Answer, Error> {
        let answer = Answer::decode(&self.partitions.sum(&task.encode())?)?;
        let now = answer.partitions(self.seen.len())?;
        match now.iter().zip(&self.seen).position(|(now, before)| now != before) {
            None => Ok(answer),
            Some(i) => {
                let [before, now] = [&self.seen, &now].map(|of| of[i][0]);
                Err(Error::Source(
                    format!(
                        "partition {i} (counted from 0) has other rows than in the first round ({now} rows now, {before} then); keep \
                         the rows in memory (persist), or make them the same way every time"
                    )
                    .into(),
                ))
            }
        }
    }

    /// What is added up once more, partition by partition.
    fn with_adding(&self, rounding: RoundingBound) -> RoundingBound {
        rounding.with_sums(rounding_of_sum(self.partitions.count() + 2), self.map.total_variance())
    }
}

impl CovarianceOperator for Partitioned<'_> {
    fn shape(&self) -> Shape {
        Shape { n: self.statistics.n_rows(), d: self.statistics.n_cols() }
    }

    fn total_variance(&self) -> f64 {
        self.map.total_variance()
    }

    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let Product { rows, precision, v } = product;
        let (d, p) = (self.dim(), v.p());
        if v.d() != d {
            return Err(Error::shape("coordinates of the vectors to multiply", d, v.d()));
        }
        if let Rows::Batch(batch) = rows {
            let sample = self.sample.as_ref().and_then(|sample| sample.sum(batch, v, out));
            return sample.unwrap_or_else(|| Err(no_batches()));
        }
        reshape(out, d, p);
        if p == 0 {
            return Ok(RoundingBound::default());
        }
        let precision = self.precision.resolve(precision);
        let answer = self.ask(&Task::Sum { map: &self.map, precision, v })?;
        let rounding = answer.rounding();
        out.values_mut().copy_from_slice(answer.sums(d * p)?);
        Ok(self.with_adding(rounding))
    }

    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        Some(self)
    }
}

impl Capabilities for Partitioned<'_> {
    fn single_precision(&mut self) -> bool {
        self.precision == PrecisionChoice::Auto && self.single
    }

    fn resident_rows(&mut self) -> Option<&[usize]> {
        self.sample.as_ref().map(RowSample::numbers)
    }

    fn explicit_covariance(&mut self) -> Option<&mut dyn ExplicitCovariance> {
        Some(self)
    }
}

impl ExplicitCovariance for Partitioned<'_> {
    fn covariance(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        let (d, n) = (self.dim(), self.n_rows());
        let precision = self.precision.resolve(precision);
        let answer = self.ask(&Task::Form { map: &self.map, precision })?;
        let rounding = answer.rounding();
        *c = Block::zeros(d, d);
        let mut triangle = answer.sums(d * (d + 1) / 2)?;
        for (i, row) in c.values_mut().chunks_exact_mut(d).enumerate() {
            let (first, rest) = triangle.split_at(i + 1);
            row[..=i].copy_from_slice(first);
            triangle = rest;
        }
        mirror(c, 1.0 / n as f64);
        Ok(self.with_adding(rounding))
    }
}

fn no_batches() -> Error {
    Error::parameter(
        "solver",
        "one with mini-batches",
        "a round of a cluster is too dear for a few rows: choose krylov, covariance or anchored, whose mini-batches are drawn from a sample",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Covariance;
    use crate::{Dense, Matrix};

    /// Partitions in this process, which can be changed under way.
    struct Here(std::cell::RefCell<Vec<Matrix<'static>>>);

    impl Partitions for Here {
        fn count(&self) -> usize {
            self.0.borrow().len()
        }
        fn sum(&self, task: &[f64]) -> Result<Vec<f64>, Error> {
            let partitions = self.0.borrow();
            let answers =
                partitions.iter().enumerate().map(|(i, rows)| answer(task, rows, (i, partitions.len())));
            let mut answers = answers.collect::<Result<Vec<_>, _>>()?.into_iter();
            let first = answers.next().unwrap();
            answers.try_fold(first, |sum, next| combine(&sum, &next))
        }
    }

    fn rows(n: usize, from: usize) -> Matrix<'static> {
        let value = |l: usize| ((l * 37 % 11) as f64) + 1e6 + (l % 3) as f64 * 0.25;
        let values = (0..3 * n).map(|i| value(3 * from + i)).collect();
        Dense::<f64>::new(values, n, 3).unwrap().into()
    }

    #[test]
    fn partitions_have_the_covariance_of_all_their_rows() {
        let whole = rows(40, 0);
        let parts = Here(vec![rows(7, 0), rows(1, 7), rows(32, 8)].into());
        for preprocessing in [Preprocessing::CENTER, Preprocessing::STANDARDIZE, Preprocessing::NONE] {
            let mut want = Covariance::new(&whole, preprocessing).unwrap();
            let mut have = Partitioned::new(&parts, preprocessing, PrecisionChoice::Auto).unwrap();
            assert_eq!(have.shape(), want.shape());
            let v = Block::from_columns(&[vec![0.6, 0.0, -0.8], vec![0.0, 1.0, 0.0]]).unwrap();
            let (mut a, mut b) = (Block::zeros(0, 0), Block::zeros(0, 0));
            let bound =
                want.apply(&v, &mut a).unwrap().of_image() + have.apply(&v, &mut b).unwrap().of_image();
            assert!(a.values().iter().zip(b.values()).all(|(a, b)| (a - b).abs() <= bound), "{bound:e}");
            let bound = want.form(Precision::Double, &mut a).unwrap().of_image()
                + have.form(Precision::Double, &mut b).unwrap().of_image();
            assert!(a.values().iter().zip(b.values()).all(|(a, b)| (a - b).abs() <= bound), "{bound:e}");
        }
    }

    #[test]
    fn a_partition_that_changes_is_named() {
        let parts = Here(vec![rows(7, 0), rows(5, 7)].into());
        let mut operator = Partitioned::new(&parts, Preprocessing::CENTER, PrecisionChoice::Auto).unwrap();
        parts.0.borrow_mut()[1] = rows(5, 8);
        let v = Block::from_vector(vec![1.0, 0.0, 0.0]);
        let said = operator.apply(&v, &mut Block::zeros(0, 0)).unwrap_err().to_string();
        assert!(said.contains("partition 1 (counted from 0) has other rows"), "{said}");
    }

    #[test]
    fn other_columns_and_batches_are_refused() {
        let other: Matrix = Dense::<f64>::new(vec![1.0, 2.0], 1, 2).unwrap().into();
        let parts = Here(vec![rows(7, 0), other].into());
        let said =
            Partitioned::new(&parts, Preprocessing::CENTER, PrecisionChoice::Auto).err().unwrap().to_string();
        assert!(said.contains("columns"), "{said}");
        let parts = Here(vec![rows(7, 0)].into());
        let mut operator = Partitioned::new(&parts, Preprocessing::CENTER, PrecisionChoice::Auto).unwrap();
        let product = Product {
            rows: Rows::Batch(&[1]),
            precision: Precision::Double,
            v: &Block::from_vector(vec![1.0, 0.0, 0.0]),
        };
        assert!(
            operator.sum_rows(product, &mut Block::zeros(0, 0)).unwrap_err().to_string().contains("krylov")
        );
        for bad in [&[][..], &[9.0], &[1.0, 0.0], &[1.0, 0.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]] {
            assert!(answer(bad, &rows(2, 0), (0, 1)).is_err());
        }
    }
}
