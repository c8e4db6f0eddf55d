//! One unit vector and its image: what the solvers for one component show the driver.

use super::{Pairs, Start};
use crate::certificate::Next;
use crate::operator::{CovarianceOperator, Products};
use crate::{Archive, Block, Error};

/// w and g = Cw.
#[derive(Clone, Debug)]
pub(super) struct Iterate {
    /// w, a unit vector of length d.
    pub(super) w: Block,
    /// g = Cw, after a look.
    pub(super) g: Block,
    /// How far g may be off by rounding.
    pub(super) image_error: f64,
}

impl Iterate {
    /// w at `start` in d dimensions.
    pub(super) fn new(d: usize, start: &Start) -> Result<Self, Error> {
        Ok(Self { w: start.vector(d)?, g: Block::zeros(d, 1), image_error: 0.0 })
    }

    /// g ← Cw: one full pass.
    pub(super) fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.image_error = operator.apply(&self.w, &mut self.g)?.of_image();
        Ok(())
    }

    pub(super) fn pairs(&self) -> Pairs<'_> {
        Pairs::new(&self.w, &self.g, self.image_error, Next::Unknown)
    }

    pub(super) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.block("w", &mut self.w)?;
        archive.block("g", &mut self.g)?;
        archive.number("image_error", &mut self.image_error)
    }
}
