//! Rows spread over many machines: the same operator on every rank.

use super::{Communicator, Covariance, CovarianceOperator, Rows};
use crate::columns::{ColumnStatistics, Preprocessing};
use crate::matrix::Matrix;
use crate::{Block, Error};

/// The covariance of all ranks' rows. Row numbers run over rank 0's rows first, then rank 1's, and so on.
///
/// Every rank asks for the same products in the same order (solvers with the same seed do), reads its own rows, and
/// receives the sum over all ranks.
#[derive(Debug)]
pub struct Sharded<'m, C> {
    local: Covariance<'m>,
    communicator: C,
    first_row: usize,
    n_rows: usize,
    rounding: f64,
    mine: Vec<usize>,
}

impl<'m, C: Communicator> Sharded<'m, C> {
    /// Brings the ranks' column statistics together and builds the operator over all rows.
    pub fn new(matrix: &'m Matrix<'m>, preprocessing: Preprocessing, communicator: C) -> Result<Self, Error> {
        let flat = communicator.all_gather(&ColumnStatistics::new(matrix)?.to_flat())?;
        let each: Vec<_> =
            flat.chunks_exact(flat.len() / communicator.size()).map(ColumnStatistics::from_flat).collect();
        let first_row = each[..communicator.rank()].iter().map(ColumnStatistics::n_rows).sum();
        let mut total = each[0].clone();
        each[1..].iter().for_each(|statistics| total.merge(statistics));
        let local = Covariance::with_map(matrix, preprocessing.row_map(&total)).knowing(&total);
        let n_rows = total.n_rows();
        let mut rounding = vec![local.image_rounding() * matrix.n_rows() as f64 / n_rows as f64];
        communicator.all_reduce_sum(&mut rounding)?;
        let rounding = rounding[0]
            + crate::rounding::rounding_of_sum(communicator.size()) * local.map().total_variance();
        Ok(Self { local, communicator, first_row, n_rows, rounding, mine: Vec::new() })
    }
}

impl<C: Communicator> CovarianceOperator for Sharded<'_, C> {
    fn dim(&self) -> usize {
        self.local.dim()
    }

    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn total_variance(&self) -> f64 {
        self.local.total_variance()
    }

    fn image_rounding(&self) -> f64 {
        self.rounding
    }

    fn sum_rows(&mut self, rows: Rows<'_>, v: &Block, out: &mut Block) -> Result<(), Error> {
        match rows {
            Rows::All => self.local.sum_rows(Rows::All, v, out)?,
            Rows::Batch(rows) => {
                // Rows are ascending, so that mine lie side by side.
                let from = rows.partition_point(|&l| l < self.first_row);
                let to = rows.partition_point(|&l| l < self.first_row + self.local.n_rows());
                self.mine.clear();
                self.mine.extend(rows[from..to].iter().map(|l| l - self.first_row));
                self.local.sum_rows(Rows::Batch(&self.mine), v, out)?;
            }
        }
        self.communicator.all_reduce_sum(out.values_mut())
    }

    fn passes_to_form(&self) -> u64 {
        1
    }

    fn form(&mut self, c: &mut Block) -> Result<f64, Error> {
        let share = self.local.n_rows() as f64 / self.n_rows as f64;
        let mut rounding = [share * self.local.form(c)?];
        c.scale(share);
        self.communicator.all_reduce_sum(c.values_mut())?;
        self.communicator.all_reduce_sum(&mut rounding)?;
        Ok(rounding[0].max(self.image_rounding()))
    }
}
