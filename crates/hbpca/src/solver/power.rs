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

use super::iterate::Iterate;
use super::{Pairs, Solver, Start, normalize};
use crate::operator::CovarianceOperator;
use crate::{Archive, Error};

/// w ← Cw / ‖Cw‖.
#[derive(Clone, Debug)]
pub struct Power {
    /// w and g = Cw.
    iterate: Iterate,
}

impl Power {
    /// Starts at `start` in d dimensions.
    pub fn new(d: usize, start: &Start) -> Result<Self, Error> {
        Ok(Self { iterate: Iterate::new(d, start)? }) // 1
    }
}

impl Solver for Power {
    fn name(&self) -> &'static str {
        "power"
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.iterate.look(operator) // 2
    }

    fn pairs(&mut self) -> Pairs<'_> {
        self.iterate.pairs()
    }

    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let Iterate { w, g, .. } = &mut self.iterate;
        w.copy_from(g); // 3
        normalize(w);
        Ok(())
    }

    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        1.0
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.part("iterate", |archive| self.iterate.archive(archive))
    }
}
