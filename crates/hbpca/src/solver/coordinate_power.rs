//! Coordinate-wise power iteration: the coordinates that change most, on the formed C.
//!
//! ```text
//! 1  C ← (1/n)Σ aₗaₗᵀ;  w ← a unit vector, random or given;  z ← Cw            one full pass
//!    repeat
//! 2      z ← Cw                                                                 one full pass, for the certificate alone
//! 3      for t = 1 … ⌈d/c⌉                                                      as many multiply-adds as one product with C
//! 4          θ ← wᵀz;  Ω ← the c coordinates with the largest |z/θ − w|
//! 5          w′ ← w, but for w′_Ω ← z_Ω/θ
//! 6          z ← z + C(w′ − w)                                                  c columns of C
//! 7          w, z ← w′/‖w′‖, z/‖w′‖
//! ```
//!
//! Source: Lei, Zhong & Dhillon 2016, algorithm 1, with c = ⌈d/20⌉ of their k, as their program has it, which divides by ‖z‖ where algorithm 1 has wᵀz. Their SGCD is not
//! here. Deviations: line 2, after which z has no rounding of many updates. C is positive
//! semi-definite here, so that every line 5 raises the Rayleigh quotient: with δ = w′ − w and r = z − θw it is θδ = r on Ω,
//! and w′ᵀCw′ − θ‖w′‖² = ‖r_Ω‖²/θ + δᵀCδ.
//! Rows are read for line 1 and for the certificate; lines 3 to 7 work on C and read none. With columns of C made as they are needed, each would be a pass.
//! Choose it where few coordinates carry the eigenvector: it then takes a part of the arithmetic of `power` on a C that is there already; `covariance` decomposes the same C at
//! once. Cost of a step: 1 pass, d² multiply-adds; memory d² numbers, which are part of a checkpoint.

use super::iterate::Iterate;
use super::{Pairs, Solver};
use crate::operator::{CovarianceOperator, Precision, Products};
use crate::policy::Start;
use crate::rounding::rounding_of_sum;
use crate::{Archive, Block, Error};

/// Coordinates that are updated together are one in so many.
const PARTS: usize = 20;
/// The most columns: C of so many takes 8 GiB.
const MOST_COLUMNS: usize = 1 << 15;

/// w_Ω ← (Cw)_Ω/θ for the coordinates Ω that are furthest from it.
#[derive(Clone, Debug)]
pub struct CoordinatePower {
    /// c.
    active: usize,
    /// C; no column before the first look.
    c: Block,
    /// w and z = Cw.
    iterate: Iterate,
    /// |z/θ − w|, coordinates by it, and w′ − w on Ω.
    change: Vec<f64>,
    order: Vec<usize>,
}

impl CoordinatePower {
    /// Starts at `start` in d dimensions.
    ///
    /// # Errors
    /// For more columns than a formed C has room for.
    pub fn new(d: usize, start: &Start) -> Result<Self, Error> {
        if d > MOST_COLUMNS {
            let advice = format!(
                "coordinate-power forms C, of at most {MOST_COLUMNS} columns; choose a solver that does not, such as krylov"
            );
            return Err(Error::parameter("columns", d, advice));
        }
        let active = d.div_ceil(PARTS).max(1);
        let (c, change, order) = (Block::zeros(d, 0), vec![0.0; d], (0..d).collect());
        Ok(Self { active, c, iterate: Iterate::new(d, start)?, change, order })
    }

    /// Lines 4 to 7; whether there was anything to do.
    fn update(&mut self) -> bool {
        let d = self.order.len();
        let Iterate { w, g: z, .. } = &mut self.iterate;
        let theta = w.dot(z);
        if !(theta > 0.0 && theta.is_finite()) {
            return false;
        }
        let terms = w.values().iter().zip(z.values());
        self.change.iter_mut().zip(terms).for_each(|(change, (w, z))| *change = z / theta - w);
        let change = &self.change;
        self.order.iter_mut().enumerate().for_each(|(i, j)| *j = i);
        if self.active < d {
            let by_size = |a: &usize, b: &usize| change[*b].abs().total_cmp(&change[*a].abs()).then(a.cmp(b));
            self.order.select_nth_unstable_by(self.active - 1, by_size);
            // One order, so that sums have the same bits.
            self.order[..self.active].sort_unstable(); // 4
        }
        for &j in &self.order[..self.active] {
            let delta = self.change[j];
            w.values_mut()[j] += delta; // 5
            let column = &self.c.values()[j * d..(j + 1) * d];
            z.values_mut().iter_mut().zip(column).for_each(|(z, c)| *z += delta * c); // 6
        }
        let norm = w.norm();
        if norm.is_normal() {
            w.scale(1.0 / norm);
            z.scale(1.0 / norm); // 7
        }
        norm.is_normal()
    }
}

impl Solver for CoordinatePower {
    fn name(&self) -> &'static str {
        "coordinate-power"
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        if self.c.p() > 0 {
            return self.iterate.look(operator); // 2
        }
        let rounding = operator.form(Precision::Double, &mut self.c)?.of_image(); // 1
        let d = self.order.len();
        let Iterate { w, g, .. } = &mut self.iterate;
        for (g, row) in g.values_mut().iter_mut().zip(self.c.values().chunks_exact(d)) {
            *g = crate::block::dot(row, w.values());
        }
        self.iterate.image_error = rounding + rounding_of_sum(d) * operator.total_variance();
        Ok(())
    }

    fn pairs(&mut self) -> Pairs<'_> {
        self.iterate.pairs()
    }

    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        // 3
        for _ in 0..self.order.len().div_ceil(self.active) {
            if !self.update() {
                break;
            }
        }
        Ok(())
    }

    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        1.0
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.columns("c", &mut self.c)?;
        let square = self.c.p() == self.c.d() || self.c.p() == 0;
        archive.check("c", square, "is not a square matrix")?;
        archive.part("iterate", |archive| self.iterate.archive(archive))
    }
}
