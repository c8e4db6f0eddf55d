//! Form C once, then a dense symmetric eigen-solve.
//!
//! ```text
//! 1  C ← (1/n)Σ aₗaₗᵀ                     one full pass
//! 2  C = UΛUᵀ
//! 3  W ← the k leading columns of U, images CW
//! ```
//!
//! Source: textbook. Choose it when d is small: everything about the spectrum is known after one pass. Cost: 1 pass, nd²
//! flops and d² numbers of memory.

use faer::{MatRef, Side};

use super::{Pairs, Solver};
use crate::certificate::{Next, ritz};
use crate::operator::rounding_of_sum;
use crate::{Block, CovarianceOperator, Error};

/// The k leading eigenvectors from C itself.
#[derive(Clone, Debug)]
pub struct CovarianceSolver {
    k: usize,
    vectors: Block,
    images: Block,
    image_error: f64,
    next: Next,
    /// What a look reads.
    passes: u64,
}

impl CovarianceSolver {
    /// k ≤ d components.
    pub fn new(d: usize, k: usize) -> Result<Self, Error> {
        super::check_components(k, d)?;
        let (vectors, images) = (Block::zeros(d, k), Block::zeros(d, k));
        Ok(Self { k, vectors, images, image_error: 0.0, next: Next::Unknown, passes: 1 })
    }

    /// Orders the columns by the Rayleigh quotients that are certified: where eigenvalues agree to rounding their order is
    /// not the eigen-solver's.
    fn sort_descending(&mut self) {
        let theta: Vec<f64> =
            (0..self.k).map(|c| ritz(&self.vectors.column(c), &self.images.column(c)).0).collect();
        let mut order: Vec<usize> = (0..self.k).collect();
        order.sort_by(|a, b| theta[*b].total_cmp(&theta[*a]));
        for block in [&mut self.vectors, &mut self.images] {
            let before = block.clone();
            let rows = block.values_mut().chunks_exact_mut(self.k).zip(before.values().chunks_exact(self.k));
            rows.for_each(|(row, before)| row.iter_mut().zip(&order).for_each(|(x, &c)| *x = before[c]));
        }
    }
}

impl Solver for CovarianceSolver {
    fn name(&self) -> &'static str {
        "covariance"
    }

    fn n_components(&self) -> usize {
        self.k
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let (d, k) = (operator.dim(), self.k);
        let mut c = Block::zeros(0, 0);
        operator.form(&mut c)?; // 1
        self.passes = operator.passes_to_form();
        // 2; eigenvalues ascend. Scaling to trace 1 keeps tiny and huge data within the solver's range.
        let trace = operator.total_variance();
        let scale = if trace > 0.0 { trace } else { 1.0 };
        c.scale(1.0 / scale);
        let matrix = MatRef::from_row_major_slice(c.values(), d, d);
        let eigen =
            matrix.self_adjoint_eigen(Side::Lower).map_err(|e| Error::Source(format!("{e:?}").into()))?;
        // 3
        let (u, lambda) = (eigen.U(), eigen.S());
        for c in 0..k {
            for j in 0..d {
                self.vectors.values_mut()[j * k + c] = u[(j, d - 1 - c)];
            }
        }
        let w = MatRef::from_row_major_slice(self.vectors.values(), d, k);
        let product = matrix * w;
        for j in 0..d {
            for c in 0..k {
                self.images.values_mut()[j * k + c] = product[(j, c)] * scale;
            }
        }
        self.sort_descending();
        // ‖C‖_F ≤ trace C bounds the rounding of the small product; the dense solver is backward stable with the same size.
        self.image_error = operator.image_rounding() + 2.0 * rounding_of_sum(d) * trace;
        self.next = match k < d {
            true => Next::Proved(lambda[d - 1 - k] * scale + self.image_error),
            false => Next::Nothing,
        };
        Ok(())
    }

    fn pairs(&self) -> Pairs<'_> {
        Pairs { vectors: &self.vectors, images: &self.images, image_error: self.image_error, next: self.next }
    }

    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        Ok(())
    }

    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        self.passes as f64
    }
}
