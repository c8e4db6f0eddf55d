//! A rank whose rows are on disk.

use super::{Columns, GatheredStatistics, MOST_MERGES, Streamed, Work};
use crate::columns::ColumnStatistics;
use crate::matrix::Matrix;
use crate::operator::distributed::{Shard, ShardStatistics};
use crate::operator::forming::form::scale_both_sides;
use crate::operator::{Capabilities, CovarianceOperator, Precision, Product};
use crate::rounding::RoundingBound;
use crate::{Block, Error};

impl Shard for Streamed<'_> {
    fn n_rows(&self) -> usize {
        self.shape().n
    }

    fn dim(&self) -> usize {
        self.shape().d
    }

    fn statistics(&mut self, pivot: &[f64]) -> Result<ColumnStatistics, Error> {
        let mut gathered = GatheredStatistics::about(pivot);
        self.full_pass(Some(&mut gathered), |_, _, _| ())?;
        Ok(gathered.relative())
    }

    fn guess(&mut self, count: usize, seed: u64) -> Result<ColumnStatistics, Error> {
        Ok(self.sample_columns(count, seed)?.unwrap_or_else(|| ColumnStatistics::empty(self.dim())))
    }

    fn know(&mut self, statistics: ShardStatistics) -> Result<(), Error> {
        match statistics {
            ShardStatistics::Guessed(sampled) => {
                self.columns = Columns::Guessed(self.preprocessing.row_map(&sampled));
            }
            ShardStatistics::Known(statistics) => Streamed::know(self, statistics),
        }
        Ok(())
    }

    fn single_precision(&mut self) -> bool {
        Capabilities::single_precision(self)
    }

    fn sum(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        self.sum_rows(product, out)
    }

    fn first_sum(
        &mut self,
        pivot: &[f64],
        v: &Block,
        out: &mut Block,
    ) -> Result<(ColumnStatistics, usize), Error> {
        let guess = self.best_map()?;
        let mut gathered = GatheredStatistics::about(pivot);
        self.sum_all(&guess, v, Precision::Double, Some(&mut gathered), out)?;
        Ok((gathered.relative(), self.additions(1)))
    }

    fn form(&mut self, _precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        let map = self.known_map()?;
        self.sum_squares(&map.without_scale(), None, c)?;
        scale_both_sides(&map, c);
        Ok(self.known_rounding(&map, MOST_MERGES))
    }

    fn first_form(&mut self, pivot: &[f64], c: &mut Block) -> Result<(ColumnStatistics, usize), Error> {
        let guess = self.best_map()?.without_scale();
        let mut gathered = GatheredStatistics::about(pivot);
        self.sum_squares(&guess, Some(&mut gathered), c)?;
        Ok((gathered.relative(), self.additions(MOST_MERGES)))
    }

    fn resident_rows(&self) -> &[usize] {
        self.pool.rows()
    }

    fn rows(&mut self, _named: Option<&[usize]>) -> Result<Matrix<'static>, Error> {
        let none = || Error::Numerical("there are no resident rows to take a sample from".into());
        self.pool.matrix().cloned().ok_or_else(none)
    }

    fn refill(&mut self, passes: u64, single: bool) -> Result<(), Error> {
        (self.passes, self.single) = (passes, single);
        self.fill_pool_again(true)
    }

    fn digest(&self) -> u64 {
        self.reader.hashes.digest()
    }

    fn bytes_read(&self) -> u64 {
        self.reader.bytes_read
    }

    fn release(&mut self) {
        self.work = Work { additions: self.work.additions, ..Work::default() };
        self.reader.forget_spare();
    }
}
