//! C = (1/n)Σaₗaₗᵀ from a matrix in memory; every product reads each row once.
//!
//! With a = D⁻¹(x − μ) and V′ = D⁻¹V,
//!
//! ```text
//! Σ a(aᵀV) = D⁻¹ Σ (x − μ)((x − μ)ᵀV′)                      dense: centred in registers
//!          = D⁻¹ [ Σ x t − μ Σ t ],  t = xᵀV′ − μᵀV′        sparse: zeros stay unstored
//! ```

use super::forming::form::{form, form_in_single};
use super::forming::row_spectrum;
use super::products::row_gram::RowGramWork;
use super::products::sum::{Operand, OperandRoom, Prepared, Scratch};
use super::{
    Capabilities, CovarianceOperator, ExplicitCovariance, ExplicitRowGram, Precision, PrecisionChoice,
    Product, Products, RowGram, RowSpectrum, Rows, Shape, reshape,
};
use crate::columns::{ColumnStatistics, Preprocessing, RowMap, check_each_weight, check_weights};
use crate::kernels;
use crate::matrix::Matrix;
use crate::rounding::{RoundingBound, SINGLE, rounding_of_sum};
use crate::{Block, CancelToken, Error};

/// The covariance of the rows of a matrix, centred and scaled implicitly.
///
/// ```
/// use hbpca::operator::{Covariance, Products};
/// use hbpca::{Block, Dense, Matrix, Preprocessing};
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
    row_gram: RowGramWork,
    precision: PrecisionChoice,
    /// Additions behind a number of an image, in double and in single precision.
    additions: [usize; 2],
    /// How far C is from that of the data, whatever the arithmetic.
    narrowing: f64,
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
        let mut operator = Self {
            matrix,
            map,
            vanishing: Vec::new(),
            weights: None,
            cancel: CancelToken::default(),
            room: OperandRoom::default(),
            scratch: Scratch::default(),
            row_gram: RowGramWork::default(),
            precision: PrecisionChoice::Auto,
            additions: [0; 2],
            narrowing: 0.0,
        };
        let prepared = operator.prepared();
        let n_chunks = prepared.n_chunks(matrix.n_rows());
        operator.additions = prepared.additions(n_chunks);
        operator
    }

    /// The same where rows were rounded before: C is off by at most `bound`, which every image counts.
    #[must_use]
    pub fn narrowed_by(mut self, bound: f64) -> Self {
        self.narrowing = bound;
        self
    }

    /// The same, knowing that the statistics are those of its rows (and weights): columns that vanish are left out of C then.
    pub(crate) fn knowing(self, statistics: &ColumnStatistics) -> Self {
        Self { vanishing: self.map.vanishing(statistics), ..self }
    }

    /// The same with row weights.
    pub fn with_map_and_weights(matrix: &'m Matrix<'m>, map: RowMap, weights: &[f64]) -> Result<Self, Error> {
        check_weights(matrix.n_rows(), weights)?;
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        Self::with_weights_of_mean(matrix, map, weights, mean)
    }

    /// The same for weights that have the given mean over all rows, of which these are some.
    pub(crate) fn with_weights_of_mean(
        matrix: &'m Matrix<'m>,
        map: RowMap,
        weights: &[f64],
        mean: f64,
    ) -> Result<Self, Error> {
        check_each_weight(matrix.n_rows(), weights)?;
        let weights = Some(weights.iter().map(|w| w / mean).collect());
        Ok(Self { weights, ..Self::with_map(matrix, map) })
    }

    /// Breaks off in the middle of a pass when `token` says so.
    #[must_use]
    pub fn abandoned_by(mut self, token: &CancelToken) -> Self {
        self.cancel = token.clone();
        self
    }

    /// Frees what was kept for the next product.
    pub(crate) fn release(&mut self) {
        (self.room, self.scratch) = Default::default();
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

    /// Uses other precisions than those asked for in every product, where a choice was made.
    #[must_use]
    pub fn in_precision(mut self, choice: PrecisionChoice) -> Self {
        self.precision = choice;
        self
    }

    /// How far images in double precision are off.
    pub fn rounding(&self) -> RoundingBound {
        let moment =
            if self.matrix.is_sparse() { self.map.uncentred_moment() } else { self.map.total_variance() };
        RoundingBound::of_sums(rounding_of_sum(self.additions[0]), moment)
            .plus(self.map.blur() + self.narrowing)
    }

    /// How far images in single precision are off, where there are such products.
    pub fn rounding_in_single(&self) -> Option<RoundingBound> {
        let (n, d) = (self.matrix.n_rows(), self.matrix.n_cols());
        let bound = match self.matrix {
            Matrix::DenseF32(_) => single_rounding(&self.map, n, d),
            Matrix::CsrF32(_) => single_rounding_of_compressed(&self.map, n, self.additions[1]),
            _ => None,
        };
        bound.map(|bound| RoundingBound::new(bound).plus(self.map.blur() + self.narrowing))
    }
}

impl CovarianceOperator for Covariance<'_> {
    fn shape(&self) -> Shape {
        Shape { n: self.matrix.n_rows(), d: self.matrix.n_cols() }
    }

    fn total_variance(&self) -> f64 {
        self.map.total_variance()
    }

    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let Product { rows, precision, v } = product;
        let (d, p) = (self.dim(), v.p());
        if v.d() != d {
            return Err(Error::shape("coordinates of the vectors to multiply", d, v.d()));
        }
        reshape(out, d, p);
        let single = match (rows, self.precision.resolve(precision)) {
            (Rows::All, Precision::Single) => self.rounding_in_single(),
            _ => None, // mini-batches are small
        };
        let rounding = single.unwrap_or_else(|| self.rounding());
        if p == 0 {
            return Ok(rounding);
        }
        let precision = if single.is_some() { Precision::Single } else { Precision::Double };
        let mut room = std::mem::take(&mut self.room);
        let mut scratch = std::mem::take(&mut self.scratch);
        let round = self.matrix.is_sparse() && single.is_some();
        let operand = Operand::new(&self.map, v, round, &mut room);
        self.prepared().product(rows, operand, precision, &mut scratch, out.values_mut());
        (self.room, self.scratch) = (room, scratch);
        self.cancel.go_on()?;
        Ok(rounding)
    }

    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        Some(self)
    }
}

impl Capabilities for Covariance<'_> {
    fn single_precision(&mut self) -> bool {
        self.precision == PrecisionChoice::Auto && self.rounding_in_single().is_some()
    }

    fn explicit_covariance(&mut self) -> Option<&mut dyn ExplicitCovariance> {
        Some(self)
    }

    fn row_gram(&mut self) -> Option<&mut dyn RowGram> {
        (matches!(self.matrix, Matrix::CsrF32(_)) && self.single_precision()).then_some(self as _)
    }

    fn explicit_row_gram(&mut self) -> Option<&mut dyn ExplicitRowGram> {
        row_spectrum::applies(self.matrix).then_some(self as _)
    }
}

impl ExplicitCovariance for Covariance<'_> {
    fn covariance(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        let single = self.precision.resolve(precision) == Precision::Single;
        let rounding = if single { form_in_single(&self.prepared(), c) } else { form(&self.prepared(), c) };
        self.cancel.go_on()?;
        Ok(RoundingBound::new(rounding).plus(self.map.blur() + self.narrowing))
    }
}

impl RowGram for Covariance<'_> {
    fn apply_gram(&mut self, u: &Block, out: &mut Block) -> Result<RoundingBound, Error> {
        let (Matrix::CsrF32(x), Some(rounding)) = (self.matrix, self.rounding_in_single()) else {
            return Err(no_row_gram());
        };
        let mut work = std::mem::take(&mut self.row_gram);
        work.apply(&self.prepared(), x, u, out)?;
        self.row_gram = work;
        self.cancel.go_on()?;
        Ok(rounding)
    }

    fn combine_rows(&mut self, u: &Block, out: &mut Block) -> Result<(), Error> {
        if !matches!(self.matrix, Matrix::CsrF32(_)) {
            return Err(no_row_gram());
        }
        // Its memory is given back: a solver that combines rows is done with G.
        let mut work = std::mem::take(&mut self.row_gram);
        work.combine(&self.prepared(), u, out)?;
        self.cancel.go_on()
    }
}

fn no_row_gram() -> Error {
    Error::parameter("operator", "C alone", "only compressed f32 rows have products with AAᵀ; work on C")
}

impl ExplicitRowGram for Covariance<'_> {
    fn leading(&mut self, k: usize) -> Result<RowSpectrum, Error> {
        let found = row_spectrum::leading(&self.prepared(), k)?;
        self.cancel.go_on()?;
        Ok(found)
    }
}

/// The rounding of products with dense f32 rows in single precision, which they have unless rounding the means would move them
/// visibly: with δ = D⁻¹(μ − fl(μ)), the rows' covariance about fl(μ) is C + δδᵀ.
///
/// A dot of d products in at least eight partial sums errs by ρ‖a‖ for a unit vector, ρ ≈ ud/8, and so do sums of
/// a few hundred rows; Σaδt/n is then at most ρ·√(λ₁·tr C) ≤ ρ·tr C long, however the rows' errors conspire. Where means are taken out
/// after the products, rows are as long as they were before.
pub(in crate::operator) fn single_rounding(map: &RowMap, n: usize, d: usize) -> Option<f64> {
    let moved: f64 = map.shift().map_or(0.0, |shift| {
        let delta = |(j, mu): (usize, &f64)| (mu - f64::from(*mu as f32)) * map.inverse_scale(j);
        shift.iter().enumerate().map(|at| delta(at).powi(2)).sum()
    });
    let trace = map.total_variance();
    let moment = if map.is_nearly_centred() { map.uncentred_moment() } else { trace };
    let terms = kernels::additions_in_dot(d, kernels::SINGLE_LANES) + kernels::ROWS_IN_SINGLE_SUM.min(n);
    (moved <= 1e-8 * trace && fits_single(map, moment, n))
        .then(|| SINGLE * rounding_of_sum(terms) * moment + moved)
}

/// The same for compressed rows, whose means are subtracted after the products and must not be large against the spread.
/// V is rounded; `additions` lead to the sums of a chunk.
pub(in crate::operator) fn single_rounding_of_compressed(
    map: &RowMap,
    n: usize,
    additions: usize,
) -> Option<f64> {
    let moment = map.uncentred_moment();
    let rounding = SINGLE * rounding_of_sum(additions);
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
