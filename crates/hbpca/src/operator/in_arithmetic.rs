//! An operator held to one arithmetic.

use serde::{Deserialize, Serialize};

use super::{CovarianceOperator, RowSpectrum, Rows};
use crate::{Archive, Block, Error};

/// The numbers that f32 rows in memory are multiplied in. f64 rows are multiplied in f64 whatever is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArithmeticChoice {
    /// f32 while that is exact enough, f64 for the last passes.
    #[default]
    Auto,
    /// f32 throughout: the certificate counts its rounding, of which the bound is about 1e-5 of the total variance.
    Single,
    /// f64 throughout.
    Double,
}

/// An operator that computes as asked.
pub(crate) struct InArithmetic<'o> {
    pub(crate) operator: &'o mut dyn CovarianceOperator,
    pub(crate) arithmetic: ArithmeticChoice,
}

impl InArithmetic<'_> {
    /// The rounding of f32, where everything is computed in it.
    fn always_coarse(&self) -> Option<f64> {
        self.operator.coarse_rounding().filter(|_| self.arithmetic == ArithmeticChoice::Single)
    }
}

impl CovarianceOperator for InArithmetic<'_> {
    fn dim(&self) -> usize {
        self.operator.dim()
    }

    fn n_rows(&self) -> usize {
        self.operator.n_rows()
    }

    fn sum_rows(&mut self, rows: Rows<'_>, v: &Block, out: &mut Block) -> Result<(), Error> {
        if matches!(rows, Rows::All) && self.always_coarse().is_some() {
            self.operator.apply_coarsely(v, out)?;
            out.scale(self.n_rows() as f64);
            return Ok(());
        }
        self.operator.sum_rows(rows, v, out)
    }

    fn total_variance(&self) -> f64 {
        self.operator.total_variance()
    }

    fn image_rounding(&self) -> f64 {
        self.always_coarse().unwrap_or_else(|| self.operator.image_rounding())
    }

    fn first_image(&mut self, x: &mut Block, z: &mut Block) -> Result<(), Error> {
        self.operator.first_image(x, z)
    }

    fn rows_at_hand(&self) -> Option<&[usize]> {
        self.operator.rows_at_hand()
    }

    fn coarse_rounding(&self) -> Option<f64> {
        self.operator.coarse_rounding().filter(|_| self.arithmetic == ArithmeticChoice::Auto)
    }

    fn apply_coarsely(&mut self, v: &Block, out: &mut Block) -> Result<(), Error> {
        self.operator.apply_coarsely(v, out)
    }

    fn apply_row_gram(&mut self, u: &Block, out: &mut Block) -> Result<Option<f64>, Error> {
        match self.arithmetic {
            ArithmeticChoice::Auto => self.operator.apply_row_gram(u, out),
            ArithmeticChoice::Single | ArithmeticChoice::Double => Ok(None),
        }
    }

    fn combine_rows(&mut self, u: &Block, out: &mut Block) -> Result<(), Error> {
        self.operator.combine_rows(u, out)
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        self.operator.archive(archive)
    }

    fn spectrum_from_rows(&mut self, k: usize) -> Result<Option<RowSpectrum>, Error> {
        self.operator.spectrum_from_rows(k)
    }

    fn passes_to_form(&self) -> u64 {
        self.operator.passes_to_form()
    }

    fn form(&mut self, c: &mut Block) -> Result<f64, Error> {
        match self.always_coarse() {
            None => self.operator.form(c),
            // Its bound is below that of products, which sum over more rows.
            Some(_) => self.operator.form_coarsely(c).map(|_| self.image_rounding()),
        }
    }

    fn form_coarsely(&mut self, c: &mut Block) -> Result<f64, Error> {
        if self.arithmetic == ArithmeticChoice::Auto {
            return self.operator.form_coarsely(c);
        }
        self.form(c)
    }
}
