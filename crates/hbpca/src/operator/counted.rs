//! Counting what is read: passes are rows read divided by n.

use serde::{Deserialize, Serialize};

use super::{CovarianceOperator, ROW_GRAM_PASSES, RowSpectrum, Rows};
use crate::{Archive, Block, Error};

/// Rows read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsRead {
    /// Complete passes over all rows.
    pub full_passes: u64,
    /// Rows read, in passes and in batches.
    pub rows: u64,
}

impl RowsRead {
    /// Rows read as a multiple of all n rows.
    pub fn passes(&self, n: usize) -> f64 {
        self.rows as f64 / n as f64
    }
}

/// An operator that counts the rows it reads.
#[derive(Debug)]
pub struct Counted<O> {
    operator: O,
    read: RowsRead,
}

impl<O: CovarianceOperator> Counted<O> {
    /// Starts counting at zero.
    pub fn new(operator: O) -> Self {
        Self::starting_at(operator, RowsRead::default())
    }

    /// Goes on counting from what was read before.
    pub fn starting_at(operator: O, read: RowsRead) -> Self {
        Self { operator, read }
    }

    /// What was read so far.
    pub fn read(&self) -> RowsRead {
        self.read
    }

    /// Rows read as a multiple of all n rows.
    pub fn passes(&self) -> f64 {
        self.read.passes(self.operator.n_rows())
    }

    fn count(&mut self, passes: u64) {
        self.read.rows += passes * self.operator.n_rows() as u64;
        self.read.full_passes += passes;
    }
}

impl<O: CovarianceOperator> CovarianceOperator for Counted<O> {
    fn dim(&self) -> usize {
        self.operator.dim()
    }

    fn n_rows(&self) -> usize {
        self.operator.n_rows()
    }

    fn sum_rows(&mut self, rows: Rows<'_>, v: &Block, out: &mut Block) -> Result<(), Error> {
        self.operator.sum_rows(rows, v, out)?;
        self.read.rows += rows.count(self.n_rows()) as u64;
        self.read.full_passes += u64::from(matches!(rows, Rows::All));
        Ok(())
    }

    fn total_variance(&self) -> f64 {
        self.operator.total_variance()
    }

    fn image_rounding(&self) -> f64 {
        self.operator.image_rounding()
    }

    fn first_image(&mut self, x: &mut Block, z: &mut Block) -> Result<(), Error> {
        self.operator.first_image(x, z)?;
        self.count(1);
        Ok(())
    }

    fn rows_at_hand(&self) -> Option<&[usize]> {
        self.operator.rows_at_hand()
    }

    fn coarse_rounding(&self) -> Option<f64> {
        self.operator.coarse_rounding()
    }

    fn apply_coarsely(&mut self, v: &Block, out: &mut Block) -> Result<(), Error> {
        self.operator.apply_coarsely(v, out)?;
        self.count(1);
        Ok(())
    }

    fn apply_row_gram(&mut self, u: &Block, out: &mut Block) -> Result<Option<f64>, Error> {
        let rounding = self.operator.apply_row_gram(u, out)?;
        if rounding.is_some() {
            self.count(ROW_GRAM_PASSES);
        }
        Ok(rounding)
    }

    fn combine_rows(&mut self, u: &Block, out: &mut Block) -> Result<(), Error> {
        self.operator.combine_rows(u, out)?;
        self.count(1);
        Ok(())
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        self.operator.archive(archive)
    }

    fn spectrum_from_rows(&mut self, k: usize) -> Result<Option<RowSpectrum>, Error> {
        let found = self.operator.spectrum_from_rows(k)?;
        if found.is_some() {
            self.count(RowSpectrum::PASSES);
        }
        Ok(found)
    }

    fn passes_to_form(&self) -> u64 {
        self.operator.passes_to_form()
    }

    fn form(&mut self, c: &mut Block) -> Result<f64, Error> {
        let rounding = self.operator.form(c)?;
        self.count(self.operator.passes_to_form());
        Ok(rounding)
    }

    fn form_coarsely(&mut self, c: &mut Block) -> Result<f64, Error> {
        let rounding = self.operator.form_coarsely(c)?;
        self.count(self.operator.passes_to_form());
        Ok(rounding)
    }
}
