//! Form C once, then a dense symmetric eigen-solve.
//!
//! ```text
//! 1  C ← (1/n)Σ aₗaₗᵀ                     one full pass
//! 2  C = UΛUᵀ
//! 3  W ← the k leading columns of U, images CW
//! ```
//!
//! For k ≪ d line 2 is not a full decomposition but a few steps of `krylov` on C, which is then in cache. Dense data of fewer rows
//! than columns is decomposed from AAᵀ, n×n, which has the same eigenvalues: three passes.
//!
//! Source: textbook. Choose it when d is small: everything about the spectrum is known after one pass. Cost: 1 pass, nd²
//! flops and d² numbers of memory.

use faer::{MatRef, Side};

use super::{Krylov, KrylovSizes, Pairs, Solver};
use crate::certificate::Next;
use crate::linalg::{
    beside, gram_of_blocks, product, product_of_block, random_complement, small_eigen, view,
};
use crate::operator::rounding_of_sum;
use crate::{Archive, Block, CovarianceOperator, Driver, Error, Limits, RowSpectrum, Rows};

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
    /// What it may read.
    max_passes: f64,
}

impl CovarianceSolver {
    /// k ≤ d components.
    pub fn new(d: usize, k: usize) -> Result<Self, Error> {
        super::check_components(k, d)?;
        let (vectors, images) = (Block::zeros(d, k), Block::zeros(d, k));
        Ok(Self {
            k,
            vectors,
            images,
            image_error: 0.0,
            next: Next::Unknown,
            passes: 1,
            max_passes: f64::INFINITY,
        })
    }
}

impl CovarianceSolver {
    /// Decomposes AAᵀ of wide data only where a look may read so much.
    #[must_use]
    pub fn within(self, max_passes: f64) -> Self {
        Self { max_passes, ..self }
    }
}

/// Whether a few Krylov steps on C take less time than its full decomposition: measured at 784 columns, where they take half
/// as long for 10 components and twice as long for 50.
pub(crate) fn solves_partially(d: usize, k: usize) -> bool {
    d >= 40 * k.max(10)
}

/// C in memory, as an operator of one row that weighs all.
struct Formed {
    c: Block,
    trace: f64,
    rounding: f64,
}

impl CovarianceOperator for Formed {
    fn dim(&self) -> usize {
        self.c.d()
    }
    fn n_rows(&self) -> usize {
        1
    }
    fn sum_rows(&mut self, _rows: Rows<'_>, v: &Block, out: &mut Block) -> Result<(), Error> {
        *out = product(view(&self.c), view(v));
        Ok(())
    }
    fn total_variance(&self) -> f64 {
        self.trace
    }
    fn image_rounding(&self) -> f64 {
        self.rounding
    }
}

impl CovarianceSolver {
    /// The k leading pairs of a large C by a few Krylov steps on C itself, in cache, down to rounding.
    fn leading_pairs(&mut self, c: Block, trace: f64) -> Result<(), Error> {
        let d = c.d();
        let mut formed = Formed { c, trace, rounding: rounding_of_sum(d) * trace };
        let mut krylov = Krylov::new(d, self.k, KrylovSizes::suiting_formed(self.k), 0, None)?;
        let limits = Limits { tol: 0.0, ..Limits::default() }; // ends where rounding does
        let report = Driver::new(limits).run(&mut krylov, &mut formed)?;
        self.vectors = report.vectors;
        formed.apply(&self.vectors, &mut self.images)?;
        super::sort_descending(&mut self.vectors, &mut self.images);
        self.next = krylov.pairs().next;
        Ok(())
    }
}

impl CovarianceSolver {
    /// Wide data: the space of the eigenvectors came from AAᵀ, and one more look gives their images.
    fn take(&mut self, found: &RowSpectrum, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let (k, d) = (self.k, operator.dim());
        let fill = random_complement(view(&found.vectors), k - found.vectors.p(), 0)?; // of eigenvalue zero
        let basis = beside(&found.vectors, &fill);
        operator.apply(&basis, &mut self.images)?;
        let (_, turn) = small_eigen(&gram_of_blocks(&basis, &self.images))?;
        self.vectors = product_of_block(&basis, turn.as_ref());
        self.images = product_of_block(&self.images, turn.as_ref());
        super::sort_descending(&mut self.vectors, &mut self.images);
        self.passes = RowSpectrum::PASSES + 1;
        self.image_error = operator.image_rounding();
        // As for C below, with sums over d columns and an eigen-solve of n rows; rotating images rounds once more.
        self.image_error += rounding_of_sum(k) * operator.total_variance();
        let rounding = rounding_of_sum(d) + 2.0 * rounding_of_sum(operator.n_rows());
        let error = rounding * operator.total_variance();
        let next = found.eigenvalues.get(k).map_or(0.0, |lambda| lambda.max(0.0));
        self.next = if k < d { Next::Proved(next + error) } else { Next::Nothing };
        Ok(())
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
        if self.max_passes >= (RowSpectrum::PASSES + 1) as f64
            && let Some(found) = operator.spectrum_from_rows(k)?
        {
            return self.take(&found, operator);
        }
        let mut c = Block::zeros(0, 0);
        operator.form(&mut c)?; // 1
        self.passes = operator.passes_to_form();
        let trace = operator.total_variance();
        // ‖C‖_F ≤ trace C bounds the rounding of the small product; both eigen-solves are backward stable with the same size.
        self.image_error = operator.image_rounding() + 2.0 * rounding_of_sum(d) * trace;
        if solves_partially(d, k) {
            return self.leading_pairs(c, trace); // 2, 3
        }
        // 2; eigenvalues ascend. Scaling to trace 1 keeps tiny and huge data within the solver's range.
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
        super::sort_descending(&mut self.vectors, &mut self.images);
        self.next =
            if k < d { Next::Proved(lambda[d - 1 - k] * scale + self.image_error) } else { Next::Nothing };
        Ok(())
    }

    fn pairs(&mut self) -> Pairs<'_> {
        Pairs { vectors: &self.vectors, images: &self.images, image_error: self.image_error, next: self.next }
    }

    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        Ok(())
    }

    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        self.passes as f64
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.block("vectors", &mut self.vectors)?;
        archive.block("images", &mut self.images)?;
        archive.number("image_error", &mut self.image_error)?;
        archive.part("next", |archive| self.next.archive(archive))?;
        archive.count("passes", &mut self.passes)
    }
}
