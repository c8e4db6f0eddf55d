//! Power iteration.
//!
//! ```text
//! 1  w ← a unit vector, random or given
//!    repeat
//! 2      g ← Cw                     one full pass
//! 3      w ← g / ‖g‖
//! ```
//!
//! Source: Golub & Van Loan; equation (2) of the paper. Deviations: none. Choose it as a yardstick: the error falls by
//! (λ₂/λ₁)² a pass. Cost of a step: 1 pass.

use super::{Pairs, Solver, normalize};
use crate::certificate::Next;
use crate::operator::{CovarianceOperator, Products};
use crate::policy::Start;
use crate::{Archive, Block, Error};

/// w ← Cw / ‖Cw‖.
#[derive(Clone, Debug)]
pub struct Power {
    /// w, a unit vector of length d.
    w: Block,
    /// g = Cw.
    g: Block,
    image_error: f64,
}

impl Power {
    /// Starts at `start` in d dimensions.
    pub fn new(d: usize, start: &Start) -> Result<Self, Error> {
        Ok(Self { w: start.vector(d)?, g: Block::zeros(d, 1), image_error: 0.0 }) // 1
    }
}

impl Solver for Power {
    fn name(&self) -> &'static str {
        "power"
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.image_error = operator.apply(&self.w, &mut self.g)?.of_image(); // 2
        Ok(())
    }

    fn pairs(&mut self) -> Pairs<'_> {
        Pairs { vectors: &self.w, images: &self.g, image_error: self.image_error, next: Next::Unknown }
    }

    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.w.copy_from(&self.g); // 3
        normalize(&mut self.w);
        Ok(())
    }

    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        1.0
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.block("w", &mut self.w)?;
        archive.block("g", &mut self.g)?;
        archive.number("image_error", &mut self.image_error)
    }
}
