//! C = (1/n)Σaₗaₗᵀ from a matrix in memory; every product reads each row once.
//!
//! With a = D⁻¹(x − μ) and V′ = D⁻¹V,
//!
//! ```text
//! Σ a(aᵀV) = D⁻¹ Σ (x − μ)((x − μ)ᵀV′)                      dense: centred in registers
//!          = D⁻¹ [ Σ x t − μ Σ t ],  t = xᵀV′ − μᵀV′        sparse: zeros stay unstored
//! ```

use super::row_gram::RowGram;
use super::sum::{Arithmetic, Operand, OperandRoom, Prepared, Scratch};
use super::{CovarianceOperator, RowSpectrum, Rows, gram};
use crate::columns::{ColumnStatistics, Preprocessing, RowMap, check_weights};
use crate::kernels;
use crate::matrix::Matrix;
use crate::rounding::{SINGLE, rounding_of_sum};
use crate::{Block, CancelToken, Error, ordered};

/// The covariance of the rows of a matrix, centred and scaled implicitly.
///
/// ```
/// use hbpca::{Block, Covariance, CovarianceOperator, Dense, Matrix, Preprocessing};
/// let x: Matrix = Dense::new(vec![1.0, 0.0, 3.0, 0.0, 2.0, 6.0], 3, 2)?.into();
/// let mut c = Covariance::new(&x, Preprocessing::CENTER)?;
/// let (v, mut image) = (Block::from_vector(vec![1.0, 0.0]), Block::zeros(2, 1));
/// c.apply(&v, &mut image)?;
/// // Deviations (−1, −2), (1, −2), (0, 4): C = [[2, 0], [0, 24]] / 3.
/// assert!((image.get(0, 0) - 2.0 / 3.0).abs() < 1e-15 && image.get(1, 0).abs() < 1e-15);
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Debug)]
pub struct Covariance<'m> {
    matrix: &'m Matrix<'m>,
    map: RowMap,
    /// Columns that are zero in every prepared row that counts, as far as that is known.
    vanishing: Vec<usize>,
    /// Row weights scaled to mean 1, so that Σ over n or |S| rows divides by their number.
    weights: Option<Vec<f64>>,
    cancel: CancelToken,
    room: OperandRoom,
    scratch: Scratch,
    row_gram: RowGram,
}

impl<'m> Covariance<'m> {
    /// The operator for the rows of `matrix`, prepared as asked; reads the matrix once for its column statistics.
    pub fn new(matrix: &'m Matrix<'m>, preprocessing: Preprocessing) -> Result<Self, Error> {
        let statistics = ColumnStatistics::new(matrix)?;
        Ok(Self::with_map(matrix, preprocessing.row_map(&statistics)).knowing(&statistics))
    }

    /// The same with a weight for every row: C = Σwₗaₗaₗᵀ/Σwₗ, means and variances weighted too.
    pub fn weighted(
        matrix: &'m Matrix<'m>,
        preprocessing: Preprocessing,
        weights: &[f64],
    ) -> Result<Self, Error> {
        let statistics = ColumnStatistics::weighted(matrix, weights)?;
        let operator = Self::with_map_and_weights(matrix, preprocessing.row_map(&statistics), weights)?;
        Ok(operator.knowing(&statistics))
    }

    /// The operator for a map of rows found elsewhere (by another pass, or on other machines).
    pub fn with_map(matrix: &'m Matrix<'m>, map: RowMap) -> Self {
        let (room, scratch) = (OperandRoom::default(), Scratch::default());
        let cancel = CancelToken::default();
        Self {
            matrix,
            map,
            vanishing: Vec::new(),
            weights: None,
            cancel,
            room,
            scratch,
            row_gram: RowGram::default(),
        }
    }

    /// The same, knowing that the statistics are those of its rows (and weights): columns that vanish are left out of C then.
    pub(crate) fn knowing(self, statistics: &ColumnStatistics) -> Self {
        Self { vanishing: self.map.vanishing(statistics), ..self }
    }

    /// The same with row weights.
    pub fn with_map_and_weights(matrix: &'m Matrix<'m>, map: RowMap, weights: &[f64]) -> Result<Self, Error> {
        check_weights(matrix.n_rows(), weights)?;
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let weights = Some(weights.iter().map(|w| w / mean).collect());
        Ok(Self { weights, ..Self::with_map(matrix, map) })
    }

    /// Breaks off in the middle of a pass when `token` says so.
    #[must_use]
    pub fn abandoned_by(mut self, token: &CancelToken) -> Self {
        self.cancel = token.clone();
        self
    }

    /// The map of rows x ↦ D⁻¹(x − μ).
    pub fn map(&self) -> &RowMap {
        &self.map
    }

    /// ‖aₗ‖² of every prepared row.
    pub fn squared_row_norms(&self) -> Vec<f64> {
        let inverse = |j: usize| self.map.inverse_scale(j);
        let moved = |j: usize| self.map.shift().map_or(0.0, |s| s[j] * inverse(j));
        let origin: f64 = (0..self.dim()).map(|j| moved(j).powi(2)).sum();
        let sparse = self.matrix.is_sparse();
        (0..self.n_rows())
            .map(|l| {
                // Every column contributes moved² unless an entry replaces it by (x/D − moved)².
                let mut square = if sparse { origin } else { 0.0 };
                self.matrix.for_each_in_row(l, |j, x| {
                    let a = x * inverse(j) - moved(j);
                    square += a * a - if sparse { moved(j).powi(2) } else { 0.0 };
                });
                square.max(0.0)
            })
            .collect()
    }

    pub(super) fn prepared(&self) -> Prepared<'_> {
        Prepared {
            matrix: self.matrix,
            map: &self.map,
            vanishing: &self.vanishing,
            weights: self.weights.as_deref(),
            cancel: &self.cancel,
        }
    }

    /// `out` ← Σ aₗ(aₗᵀV) over `rows`.
    fn sum(
        &mut self,
        rows: Rows<'_>,
        v: &Block,
        out: &mut Block,
        arithmetic: Arithmetic,
    ) -> Result<(), Error> {
        let (d, p) = (self.dim(), v.p());
        if v.d() != d {
            return Err(Error::shape("coordinates of the vectors to multiply", d, v.d()));
        }
        reshape(out, d, p);
        if p == 0 {
            return Ok(());
        }
        let mut room = std::mem::take(&mut self.room);
        let mut scratch = std::mem::take(&mut self.scratch);
        let round = self.matrix.is_sparse() && arithmetic == Arithmetic::Single;
        let operand = Operand::new(&self.map, v, round, &mut room);
        self.prepared().product(rows, operand, arithmetic, &mut scratch, out.values_mut());
        (self.room, self.scratch) = (room, scratch);
        self.cancel.go_on()
    }
}

impl CovarianceOperator for Covariance<'_> {
    fn dim(&self) -> usize {
        self.matrix.n_cols()
    }

    fn n_rows(&self) -> usize {
        self.matrix.n_rows()
    }

    fn total_variance(&self) -> f64 {
        self.map.total_variance()
    }

    fn image_rounding(&self) -> f64 {
        let (n, d) = (self.n_rows(), self.dim());
        let moment =
            if self.matrix.is_sparse() { self.map.uncentred_moment() } else { self.total_variance() };
        let n_chunks = ordered::n_chunks(self.matrix.nnz(), d);
        rounding_of_sum(d) * moment + rounding_of_sum(n / n_chunks + n_chunks) * moment
    }

    fn sum_rows(&mut self, rows: Rows<'_>, v: &Block, out: &mut Block) -> Result<(), Error> {
        self.sum(rows, v, out, Arithmetic::Double)
    }

    fn coarse_rounding(&self) -> Option<f64> {
        match self.matrix {
            Matrix::DenseF32(_) => coarse_rounding(&self.map, self.n_rows(), self.dim()),
            Matrix::CsrF32(_) => coarse_rounding_of_compressed(&self.map, self.n_rows(), self.dim()),
            _ => None,
        }
    }

    fn apply_coarsely(&mut self, v: &Block, out: &mut Block) -> Result<(), Error> {
        self.sum(Rows::All, v, out, Arithmetic::Single)?;
        out.scale(1.0 / self.n_rows() as f64);
        Ok(())
    }

    fn spectrum_from_rows(&mut self, k: usize) -> Result<Option<RowSpectrum>, Error> {
        if !gram::applies(self.matrix) {
            return Ok(None);
        }
        let found = gram::leading(&self.prepared(), k)?;
        self.cancel.go_on()?;
        Ok(Some(found))
    }

    fn apply_row_gram(&mut self, u: &Block, out: &mut Block) -> Result<Option<f64>, Error> {
        let (n, d) = (self.n_rows(), self.dim());
        let Matrix::CsrF32(x) = self.matrix else { return Ok(None) };
        let Some(rounding) = coarse_rounding_of_compressed(&self.map, n, d) else { return Ok(None) };
        let mut gram = std::mem::take(&mut self.row_gram);
        gram.apply(&self.prepared(), x, u, out)?;
        self.row_gram = gram;
        self.cancel.go_on()?;
        Ok(Some(rounding))
    }

    fn combine_rows(&mut self, u: &Block, out: &mut Block) -> Result<(), Error> {
        if !matches!(self.matrix, Matrix::CsrF32(_)) {
            return Err(super::no_row_gram());
        }
        // Its memory is given back: who combines rows is done with the other side.
        let mut gram = std::mem::take(&mut self.row_gram);
        gram.combine(&self.prepared(), u, out)?;
        self.cancel.go_on()
    }

    fn passes_to_form(&self) -> u64 {
        1
    }

    fn form(&mut self, c: &mut Block) -> Result<f64, Error> {
        let rounding = super::form::form(&self.prepared(), c);
        self.cancel.go_on()?;
        Ok(rounding.unwrap_or_else(|| self.image_rounding()))
    }

    fn form_coarsely(&mut self, c: &mut Block) -> Result<f64, Error> {
        let rounding = super::form::form_coarsely(&self.prepared(), c);
        self.cancel.go_on()?;
        Ok(rounding.unwrap_or_else(|| self.image_rounding()))
    }
}

/// The rounding of products with dense f32 rows in f32 arithmetic, which they have unless rounding the means would move them
/// visibly: with δ = D⁻¹(μ − fl(μ)), the rows' covariance about fl(μ) is C + δδᵀ.
///
/// A dot of d products in at least eight partial sums errs by ρ‖a‖ for a unit vector, ρ ≈ 8u√(d/8), and so do sums of
/// a few hundred rows; Σaδt/n is then at most ρ·√(λ₁·tr C) ≤ ρ·tr C long, however the rows' errors conspire. Where means are taken out
/// after the products, rows are as long as they were before.
pub(super) fn coarse_rounding(map: &RowMap, n: usize, d: usize) -> Option<f64> {
    let moved: f64 = map.shift().map_or(0.0, |shift| {
        let delta = |(j, mu): (usize, &f64)| (mu - f64::from(*mu as f32)) * map.inverse_scale(j);
        shift.iter().enumerate().map(|at| delta(at).powi(2)).sum()
    });
    let trace = map.total_variance();
    let moment = if map.is_nearly_centred() { map.uncentred_moment() } else { trace };
    let terms = d.div_ceil(8) + 8 + kernels::COARSE_ROWS;
    (moved <= 1e-8 * trace && fits_single(map, moment, n))
        .then(|| SINGLE * rounding_of_sum(terms) * moment + moved)
}

/// The same for compressed rows, whose means are subtracted after the products and must not be large against the spread.
/// V is rounded, rows are up to d products long, and a column's sums gather up to n of them in f32.
fn coarse_rounding_of_compressed(map: &RowMap, n: usize, d: usize) -> Option<f64> {
    let moment = map.uncentred_moment();
    let rounding = SINGLE * (rounding_of_sum(d) + rounding_of_sum(n));
    (moment <= 16.0 * map.total_variance() && fits_single(map, moment, n)).then_some(rounding * moment)
}

/// Whether arithmetic in f32 neither overflows nor loses small numbers: with rows D⁻¹(x − μ) = a it forms V′ = D⁻¹V,
/// aᵀV ≤ ‖a‖ ≤ √(n·tr C) and Σ(x − μ)aᵀV ≤ D·n·tr C. What underflows, 2⁻¹⁴⁹ a product, is far below the rounding of
/// numbers above 2⁻¹⁰⁰.
fn fits_single(map: &RowMap, trace: f64, n: usize) -> bool {
    let (least, most) = (2.0_f64.powi(-100), f64::from(f32::MAX) / 4.0);
    let fits = |scale: f64| {
        let sum = scale * trace;
        scale >= least && scale <= most && sum >= least && sum * n as f64 <= most
    };
    trace >= least && map.scale().map_or_else(|| fits(1.0), |scale| scale.iter().all(|s| fits(*s)))
}

/// Gives `block` the shape d×p, keeping its memory when it fits.
pub(super) fn reshape(block: &mut Block, d: usize, p: usize) {
    if (block.d(), block.p()) != (d, p) {
        *block = Block::zeros(d, p);
    }
}
