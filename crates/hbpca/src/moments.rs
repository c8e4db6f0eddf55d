//! Exact sufficient statistics of rows that come in chunks: count, means and centred scatter.
//!
//! ```text
//! S = Σ w(x − μ)(x − μ)ᵀ          of each chunk, about its own mean
//! δ = μ_b − μ_a,   S = Sₐ + S_b + δδᵀ·wₐw_b/w        exact in exact arithmetic (Chan, Golub & LeVeque 1983)
//! ```
//!
//! From them C follows for every preparation: C = D⁻¹[S/w + (μ − m)(μ − m)ᵀ]D⁻¹ with m what is subtracted. After all chunks the
//! components are those of one fit on all rows, up to rounding, whatever the chunks were; no row is kept. The price is d²
//! numbers of memory.
//!
//! Rounding is tracked entry by entry: |fl(Sᵢⱼ) − Sᵢⱼ| ≤ ρ√(SᵢᵢSⱼⱼ), because every sum of products obeys such a bound by
//! Cauchy–Schwarz. It survives scaling, and ‖D⁻¹ED⁻¹‖_F ≤ ρ·tr C.

use crate::columns::{ColumnStatistics, Preprocessing, RowMap, check_weights};
use crate::linalg::{product as product_with, view};
use crate::matrix::Matrix;
use crate::operator::{
    Capabilities, Covariance, CovarianceOperator, ExplicitCovariance, Precision, Product, Products, Rows,
    Shape,
};
use crate::rounding::{RoundingBound, rounding_of_sum};
use crate::{Block, CancelToken, Error};

/// Bytes that the scatter may take.
const MOST_BYTES: usize = 128 << 20;

/// Count, means, ranges and centred scatter of all rows seen.
///
/// ```
/// use hbpca::{Dense, FitConfig, Matrix, Moments};
/// let chunk = |values: &[f64]| Matrix::from(Dense::new(values.to_vec(), values.len() / 2, 2).unwrap());
/// let mut moments = Moments::of(&chunk(&[2.0, 1.0, -2.0, -1.0]), None)?;
/// moments.merge(&Moments::of(&chunk(&[0.1, -0.2, -0.1, 0.2]), None)?)?;
/// let fit = FitConfig::default().fit_moments(&moments)?;
/// assert_eq!(fit.model.summary().n, 4);
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    statistics: ColumnStatistics,
    /// S, d×d.
    scatter: Block,
    /// How often rows were added; every time the means are rounded.
    merges: usize,
    /// ρ.
    rounding: f64,
}

impl Moments {
    /// Variances of the columns, with denominator n.
    pub fn variances(&self) -> Vec<f64> {
        self.statistics.variance()
    }

    /// Whether there is room for the scatter of d columns.
    pub fn has_room_for(d: usize) -> bool {
        check_columns(d).is_ok()
    }

    /// Of the rows of `matrix`, with a weight for each or not. Refuses NaN and infinities, and more columns than the scatter has
    /// room for.
    pub fn of(matrix: &Matrix<'_>, weights: Option<&[f64]>) -> Result<Self, Error> {
        check_columns(matrix.n_cols())?;
        weights.map_or(Ok(()), |weights| check_weights(matrix.n_rows(), weights))?;
        if let Some((rows, weights)) = weights.and_then(|weights| matrix.rows_that_count(weights)) {
            let mut moments = Self::of(&matrix.select_rows(&rows), Some(&weights))?;
            moments.statistics.count_rows(matrix.n_rows() - rows.len());
            return Ok(moments);
        }
        let statistics = ColumnStatistics::gather(matrix, weights, &CancelToken::default())?;
        let map = Preprocessing::CENTER.row_map(&statistics);
        let mut operator = match weights {
            None => Covariance::with_map(matrix, map),
            Some(weights) => Covariance::with_map_and_weights(matrix, map, weights)?,
        }
        .knowing(&statistics);
        let mut scatter = Block::zeros(0, 0);
        let rounding = operator.form(Precision::Double, &mut scatter)?.of_image()
            / operator.total_variance().max(f64::MIN_POSITIVE);
        scatter.scale(statistics.weight());
        let mut moments = Self { statistics, scatter, merges: 0, rounding: 0.0 };
        // Sums of n products, and a mean that is rounded itself: S about it is S + wΔΔᵀ.
        let drift = moments.drift(|j| moments.mean()[j].abs(), moments.weight());
        moments.rounding =
            rounding.max(rounding_of_sum(matrix.n_rows())) + 4.0 * f64::EPSILON + drift * drift;
        Ok(moments)
    }

    /// From their parts, as [`parts`](Self::parts) gives them.
    pub fn from_parts(
        n_rows: usize,
        columns: &[f64],
        scatter: Vec<f64>,
        merges: usize,
        rounding: f64,
    ) -> Result<Self, Error> {
        if columns.len() < 5 || columns.len() % 4 != 1 || n_rows == 0 {
            return Err(Error::shape("numbers about the columns, and one row at least", 5, columns.len()));
        }
        let flat = [&[n_rows as f64][..], columns].concat();
        let statistics = ColumnStatistics::from_flat(&flat);
        let d = statistics.n_cols();
        check_columns(d)?;
        let finite = columns.iter().chain(&scatter).all(|x| x.is_finite());
        if !(finite && statistics.weight() > 0.0 && rounding >= 0.0 && rounding.is_finite()) {
            return Err(Error::parameter("moments", "not finite", "they were changed; begin anew"));
        }
        Ok(Self { statistics, scatter: Block::from_values(d, d, scatter)?, merges, rounding })
    }

    /// The number of rows; weight, means, sums of squares, minima and maxima in one list; the scatter; how often rows were
    /// added; the scatter's rounding.
    pub fn parts(&self) -> (usize, Vec<f64>, &[f64], usize, f64) {
        let columns = self.statistics.to_flat().split_off(1);
        (self.n_rows(), columns, self.scatter.values(), self.merges, self.rounding)
    }

    /// n, over all chunks.
    pub fn n_rows(&self) -> usize {
        self.statistics.n_rows()
    }

    /// d.
    pub fn n_cols(&self) -> usize {
        self.statistics.n_cols()
    }

    fn mean(&self) -> &[f64] {
        self.statistics.mean()
    }

    fn weight(&self) -> f64 {
        self.statistics.weight()
    }

    /// The largest √f·Δⱼ/√Sⱼⱼ: what the error Δ of means, a rounding of `size` for each time they were added to, amounts to
    /// beside the spread, where it enters S with the factor f.
    fn drift(&self, size: impl Fn(usize) -> f64, factor: f64) -> f64 {
        let roundings = (2.0 + self.merges as f64) * f64::EPSILON;
        let relative = |j: usize| match self.scatter.get(j, j) {
            spread if spread > 0.0 => roundings * size(j) * (factor / spread).sqrt(),
            _ => 0.0, // a constant column, whose mean is exact
        };
        (0..self.n_cols()).map(relative).fold(0.0, f64::max)
    }

    /// Adds the rows of `matrix`; rows that weigh nothing change nothing but the number of rows.
    pub fn add(&mut self, matrix: &Matrix<'_>, weights: Option<&[f64]>) -> Result<(), Error> {
        let (n, d) = (matrix.n_rows(), matrix.n_cols());
        let weightless =
            weights.is_some_and(|weights| weights.len() == n && weights.iter().all(|w| *w == 0.0));
        if weightless && d == self.n_cols() {
            self.statistics.count_rows(n);
            return Ok(());
        }
        self.merge(&Self::of(matrix, weights)?)
    }

    /// Adds the rows of `other`.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        let d = self.n_cols();
        if other.n_cols() != d {
            return Err(Error::shape("columns of the rows to add", d, other.n_cols()));
        }
        let delta: Vec<f64> = other.mean().iter().zip(self.mean()).map(|(b, a)| b - a).collect();
        let size: Vec<f64> = other.mean().iter().zip(self.mean()).map(|(b, a)| a.abs() + b.abs()).collect();
        let factor = self.weight() * (other.weight() / (self.weight() + other.weight()));
        let rows = self.scatter.values_mut().chunks_exact_mut(d).zip(other.scatter.values().chunks_exact(d));
        for ((row, other), di) in rows.zip(&delta) {
            for ((s, other), dj) in row.iter_mut().zip(other).zip(&delta) {
                *s += other + factor * (di * dj);
            }
        }
        self.statistics.merge(&other.statistics);
        self.merges = self.merges.saturating_add(other.merges).saturating_add(1);
        let drift = self.drift(|j| size[j], factor);
        self.rounding = self.rounding.max(other.rounding) + 4.0 * f64::EPSILON + drift * (2.0 + drift);
        Ok(())
    }

    /// The operator of the rows prepared by `map`.
    pub(crate) fn operator(&self, map: &RowMap) -> Remembered {
        let rounding = self.rounding + 8.0 * f64::EPSILON + self.rounding_of_offsets(map);
        Remembered { n: self.n_rows(), c: self.covariance(map), trace: map.total_variance(), rounding }
    }

    pub(crate) fn statistics(&self) -> &ColumnStatistics {
        &self.statistics
    }

    /// What rounding of means that are not subtracted, m = D⁻¹(x̄ − shift) off by e, adds to C = … + mmᵀ, relative to its trace: 2‖m‖‖e‖ + ‖e‖².
    fn rounding_of_offsets(&self, map: &RowMap) -> f64 {
        let roundings = (2.0 + self.merges as f64) * f64::EPSILON;
        let (mut m, mut e) = (0.0_f64, 0.0_f64);
        for (j, mean) in self.mean().iter().enumerate() {
            let offset = mean - map.shift().map_or(0.0, |shift| shift[j]);
            if offset != 0.0 && self.scatter.get(j, j) > 0.0 {
                m += (offset * map.inverse_scale(j)).powi(2);
                e += (roundings * mean.abs() * map.inverse_scale(j)).powi(2);
            }
        }
        (2.0 * (m * e).sqrt() + e) / map.total_variance().max(f64::MIN_POSITIVE)
    }

    /// C of the rows prepared by `map`.
    fn covariance(&self, map: &RowMap) -> Block {
        let (d, weight) = (self.n_cols(), self.weight());
        let offset = |j: usize| self.mean()[j] - map.shift().map_or(0.0, |shift| shift[j]);
        let offsets: Vec<(f64, f64)> = (0..d).map(|j| (offset(j), map.inverse_scale(j))).collect();
        let mut c = self.scatter.clone();
        for (row, (mi, si)) in c.values_mut().chunks_exact_mut(d).zip(&offsets) {
            for (c, (mj, sj)) in row.iter_mut().zip(&offsets) {
                *c = (*c / weight + mi * mj) * (si * sj);
            }
        }
        c
    }
}

/// Refuses more columns than d² numbers have room for.
fn check_columns(d: usize) -> Result<(), Error> {
    let bytes = d.checked_mul(d).and_then(|numbers| numbers.checked_mul(size_of::<f64>()));
    if bytes.is_some_and(|bytes| bytes <= MOST_BYTES) {
        return Ok(());
    }
    let mib = (d as f64).powi(2) * 8.0 / f64::from(1 << 20);
    let advice = format!(
        "exact sufficient statistics are the d×d scatter, {mib:.0} MiB where {} MiB are allowed; \
         fit all rows at once instead, from a file or a memory map, with a memory limit where they do not fit",
        MOST_BYTES >> 20
    );
    Err(Error::parameter("columns", d, advice))
}

/// C in memory, as an operator of n rows that are gone.
pub(crate) struct Remembered {
    n: usize,
    c: Block,
    trace: f64,
    rounding: f64,
}

impl CovarianceOperator for Remembered {
    fn shape(&self) -> Shape {
        Shape { n: self.n, d: self.c.d() }
    }
    fn total_variance(&self) -> f64 {
        self.trace
    }
    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let Rows::All = product.rows else {
            let advice = "of rows that come in chunks only the covariance is kept: multiply by all of them";
            return Err(Error::parameter("rows", "a batch", advice));
        };
        *out = product_with(&self.c, view(product.v));
        out.scale(self.n as f64);
        Ok(RoundingBound::new(self.rounding * self.trace))
    }
    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        Some(self)
    }
}

impl Capabilities for Remembered {
    fn explicit_covariance(&mut self) -> Option<&mut dyn ExplicitCovariance> {
        Some(self)
    }
}

impl ExplicitCovariance for Remembered {
    fn covariance(&mut self, _precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        c.clone_from(&self.c);
        Ok(RoundingBound::new(self.rounding * self.trace))
    }
}
