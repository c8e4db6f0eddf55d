//! Form C once, then a dense symmetric eigen-solve.
//!
//! ```text
//! 1  C ← (1/n)Σ aₗaₗᵀ                               one full pass; Ĉ = C + E in single precision, where the tolerance has room for E
//! 2  C = UΛUᵀ                                       where k ≪ d, only its leading part
//! 3  W ← the k leading columns of U, images CW
//! 4  of Ĉ: measure EW, or Rayleigh–Ritz with CW     one more pass, in double precision
//! 5  if that misses the tolerance: from 1, in double precision
//!    dense data of fewer rows than columns, instead of all that:
//! 6  AAᵀ = UΛUᵀ;  W ← orth(AᵀU_k);  Rayleigh–Ritz with CW      n×n; three passes
//! ```
//!
//! Line 2 for k ≪ d is a [Krylov space](super::formed) of C, which is then in cache, or a
//! [tridiagonal matrix](crate::linalg::Reduced) of which k vectors are asked for. AAᵀ of line 6 has the eigenvalues of nC.
//!
//! The bound on E that rounding has is far too large for the images, so that line 4 measures E: with W itself,
//! which gives CW and new Ritz pairs, or, where these are many, with [random combinations](super::probe) of W, which bound ‖EW‖. It is
//! left out where the bound is small enough.
//!
//! Source: textbook. Choose it when d is small: everything about the spectrum is known after one pass. Cost: 1 pass or 2, 3 with
//! line 5 or 6; nd² flops and d² numbers of memory.

use faer::Side;

use super::formed::{leading, multiply, solves_by_krylov, solves_partially};
use super::probe::{PROBES, Probes};
use super::{Pairs, ResidualEstimate, Solver};
use crate::certificate::{Next, ritz_values};
use crate::linalg::{
    Reduced, TallBasis, beside, gram, product, random_complement, residual_norms, small_eigen, view,
};
use crate::operator::{CovarianceOperator, Precision, Products, RowSpectrum};
use crate::rounding::{likely_rounding_of_sum, rounding_of_sum};
use crate::{Archive, Block, Error};

/// The least tolerance for which C is formed in single precision: what f32 leaves of an eigenvector is rarely below its own unit.
const LEAST_SINGLE_TOL: f64 = f32::EPSILON as f64;
/// How much of the tolerance the decomposition of C may use up, and rounding of which nothing but a bound is known.
const SHARE_OF_TOL: f64 = 0.01;
/// Passes of an attempt in single precision that fails: C, what it is worth, and C again.
const PASSES_OF_ATTEMPT: f64 = 3.0;

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
    /// Residuals that are enough, relative to θ₁.
    tol: f64,
    /// Seed of the probes.
    seed: u64,
    /// Whether the next look tries single precision.
    single: bool,
    /// Whether C was formed in single precision, so that the next look can do better.
    improvable: bool,
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
            tol: 0.0,
            seed: 0,
            single: false,
            improvable: false,
        })
    }

    /// Decomposes AAᵀ of wide data, and tries single precision, only where that may read so much.
    #[must_use]
    pub fn within(self, max_passes: f64) -> Self {
        Self { max_passes, ..self }
    }

    /// Whether limits have room for an attempt in single precision, and k of d columns leave a gain after measuring it.
    pub(crate) fn tries_single(d: usize, k: usize, tol: f64, max_passes: f64) -> bool {
        tol >= LEAST_SINGLE_TOL && max_passes >= PASSES_OF_ATTEMPT && gains_from_single(d, k)
    }

    /// Residuals of `tol`·θ₁ are enough: tries single precision first where it can be hoped to reach that; `seed`
    /// is that of the probes which then measure its rounding.
    #[must_use]
    pub fn aiming_at(self, tol: f64, seed: u64) -> Self {
        let single = tol >= LEAST_SINGLE_TOL && gains_from_single(self.vectors.d(), self.k);
        Self { tol, seed, single, ..self }
    }
}

/// Cheaper arithmetic saves about a quarter of d multiply-adds an entry, of full speed, and measuring what it is worth takes two
/// for each vector, at half that speed or less where rows are short; rows of a few registers gain nothing.
fn gains_from_single(d: usize, k: usize) -> bool {
    d >= 100 && d >= 16 * k.min(PROBES)
}

impl CovarianceSolver {
    /// Wide data: the space of the eigenvectors came from AAᵀ, and one more look gives their images.
    fn take(&mut self, found: &RowSpectrum, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let (k, d) = (self.k, operator.dim());
        let fill = random_complement(&TallBasis::of(&found.vectors), k - found.vectors.p(), 0)?; // of eigenvalue zero
        let basis = beside(&found.vectors, &fill);
        let rounding = operator.apply(&basis, &mut self.images)?;
        let (_, rotation) = small_eigen(&gram(&basis, &self.images))?;
        self.vectors = product(&basis, rotation.as_ref());
        self.images = product(&self.images, rotation.as_ref());
        super::sort_descending(&mut self.vectors, &mut self.images);
        self.passes = RowSpectrum::PASSES + 1;
        self.image_error = rounding.of_image();
        // As for C below, with sums over d columns and an eigen-solve of n rows; rotating images rounds once more.
        self.image_error += rounding_of_sum(k) * operator.total_variance();
        let rounding = rounding_of_sum(d) + 2.0 * rounding_of_sum(operator.n_rows());
        let error = rounding * operator.total_variance();
        let next = found.eigenvalues.get(k).map_or(0.0, |lambda| lambda.max(0.0));
        self.next = if k < d { Next::Proved(next + error) } else { Next::Nothing };
        Ok(())
    }
}

impl CovarianceSolver {
    /// The k leading pairs of a large C, down to rounding or far below the tolerance; whether that was possible. `rounding` is that of C.
    fn pairs_from_krylov(&mut self, c: &Block, trace: f64, rounding: f64) -> Result<bool, Error> {
        let (d, k) = (c.d(), self.k);
        if !solves_by_krylov(d, k) {
            return Ok(false);
        }
        let floor = likely_rounding_of_sum(d) * trace;
        let Some(found) = leading(c, k, SHARE_OF_TOL * self.tol, floor, rounding)? else {
            return Ok(false);
        };
        (self.vectors, self.images, self.next) = (found.vectors, found.images, Next::Proved(found.next));
        super::sort_descending(&mut self.vectors, &mut self.images);
        Ok(true)
    }

    /// The k leading pairs by a reduction to tridiagonal form, or all of them where k is a large part of d; `rounding` is that of C.
    fn pairs_from_reduction(&mut self, mut c: Block, trace: f64, rounding: f64) -> Result<(), Error> {
        let (d, k) = (c.d(), self.k);
        // Scaling to trace 1 keeps tiny and huge data within the solver's range.
        let scale = if trace > 0.0 { trace } else { 1.0 };
        c.scale(1.0 / scale);
        let few = if solves_partially(d, k) { Reduced::of(&c).leading(k) } else { None };
        let (vectors, values) = few.map_or_else(|| all_pairs(&c, k), Ok)?;
        self.images = multiply(&c, &vectors);
        self.vectors = vectors;
        self.images.scale(scale);
        super::sort_descending(&mut self.vectors, &mut self.images);
        self.next = if k < d { Next::Proved(values[k] * scale + rounding) } else { Next::Nothing };
        Ok(())
    }

    /// How far the images are from CW, measured in a pass in double precision.
    fn measure(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let (d, k, trace) = (operator.dim(), self.k, operator.total_variance());
        let mut exact = Block::zeros(d, k.min(PROBES));
        if k <= PROBES {
            let rounding = operator.apply(&self.vectors, &mut exact)?;
            let (_, rotation) = small_eigen(&gram(&self.vectors, &exact))?;
            self.vectors = product(&self.vectors, rotation.as_ref());
            self.images = product(&exact, rotation.as_ref());
            super::sort_descending(&mut self.vectors, &mut self.images);
            self.image_error = rounding.of_image() + rounding_of_sum(k) * trace;
        } else {
            let probes = Probes::of(&self.vectors, self.seed);
            let rounding = operator.apply(&probes.combined, &mut exact)?;
            let combining = 2.0 * rounding_of_sum(k) * trace;
            let off = probes.bound(&self.images, exact, rounding.of_image() + combining);
            self.image_error = off + rounding_of_sum(d) * trace;
        }
        Ok(())
    }
}

/// The k leading eigenvectors of C, and all eigenvalues, descending, by a full decomposition.
fn all_pairs(c: &Block, k: usize) -> Result<(Block, Vec<f64>), Error> {
    let d = c.d();
    let eigen = view(c)
        .self_adjoint_eigen(Side::Lower)
        .map_err(|e| Error::Numerical(format!("no eigenvalues of a symmetric matrix: {e:?}")))?;
    let (u, lambda) = (eigen.U(), eigen.S()); // ascending
    let mut vectors = Block::zeros(d, k);
    for (j, row) in vectors.values_mut().chunks_exact_mut(k).enumerate() {
        row.iter_mut().enumerate().for_each(|(i, x)| *x = u[(j, d - 1 - i)]);
    }
    Ok((vectors, (0..d).map(|i| lambda[d - 1 - i]).collect()))
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
        self.improvable = false;
        if self.max_passes >= (RowSpectrum::PASSES + 1) as f64
            && let Some(gram) = operator.explicit_row_gram()
        {
            let found = gram.leading(k)?;
            return self.take(&found, operator); // 6
        }
        let mut c = Block::zeros(0, 0);
        // 1
        let single = self.single && self.max_passes >= PASSES_OF_ATTEMPT;
        let precision = if single { Precision::Single } else { Precision::Double };
        let rounding = operator.form(precision, &mut c)?.of_image();
        self.passes = operator.passes_to_form();
        let trace = operator.total_variance();
        // ‖C‖_F ≤ trace C bounds the rounding of the small product; both eigen-solves are backward stable with the same size.
        self.image_error = rounding + 2.0 * rounding_of_sum(d) * trace;
        // 2, 3
        if !self.pairs_from_krylov(&c, trace, self.image_error)? {
            self.pairs_from_reduction(c, trace, self.image_error)?;
        }
        let enough = SHARE_OF_TOL * self.tol * ritz_values(&self.vectors, &self.images)[0];
        self.improvable = single;
        if single && rounding > enough {
            self.measure(operator)?; // 4
        }
        Ok(())
    }

    fn residual_estimate(&self) -> Option<ResidualEstimate> {
        self.improvable.then(|| {
            let theta = ritz_values(&self.vectors, &self.images);
            let residuals = residual_norms(&self.vectors, &self.images, &theta);
            ResidualEstimate {
                theta: theta[0],
                thetas: theta,
                residuals,
                image_error: self.image_error,
                bound_will_fall: true,
            }
        })
    }

    fn pairs(&mut self) -> Pairs<'_> {
        Pairs::new(&self.vectors, &self.images, self.image_error, self.next)
    }

    fn is_final(&self) -> bool {
        !self.improvable
    }

    /// Asked for more than the last look gave: double precision.
    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.single = false; // 5
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
        archive.count("passes", &mut self.passes)?;
        archive.flag("single", &mut self.single)?;
        archive.flag("improvable", &mut self.improvable)
    }
}
