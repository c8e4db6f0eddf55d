//! C = (1/n)Σaₗaₗᵀ from a matrix in memory; every product reads each row once.
//!
//! With a = D⁻¹(x − μ) and V′ = D⁻¹V,
//!
//! ```text
//! Σ a(aᵀV) = D⁻¹ Σ (x − μ)((x − μ)ᵀV′)                      dense: centred in registers
//!          = D⁻¹ [ Σ x t − μ Σ t ],  t = xᵀV′ − μᵀV′        sparse: zeros stay unstored
//! ```

use super::{CovarianceOperator, Rows};
use crate::kernels::{self, RowSet, RowWeights};
use crate::matrix::{ColumnStatistics, Matrix, Preprocessing, RowMap, check_weights};
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
    pub(super) matrix: &'m Matrix<'m>,
    pub(super) map: RowMap,
    /// Row weights scaled to mean 1, so that Σ over n or |S| rows divides by their number.
    pub(super) weights: Option<Vec<f64>>,
    pub(super) cancel: CancelToken,
    scratch: Scratch,
}

/// Everything a product needs besides its operands, kept between calls.
#[derive(Debug, Default)]
struct Scratch {
    /// V′ = D⁻¹V.
    scaled: Vec<f64>,
    /// V′ᵀμ and Σt.
    c: Vec<f64>,
    t_sum: Vec<f64>,
    /// One a worker.
    workers: Vec<Worker>,
}

#[derive(Debug, Default)]
struct Worker {
    y: Vec<f64>,
    t_sum: Vec<f64>,
    kernel: Vec<f64>,
    /// The same for arithmetic in f32.
    coarse_kernel: Vec<f32>,
}

/// The numbers that rows are multiplied and added in; sums over many rows are f64 either way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arithmetic {
    Double,
    Single,
}

impl<'m> Covariance<'m> {
    /// The operator for the rows of `matrix`, prepared as asked; reads the matrix once for its column statistics.
    pub fn new(matrix: &'m Matrix<'m>, preprocessing: Preprocessing) -> Result<Self, Error> {
        let statistics = ColumnStatistics::new(matrix)?;
        Ok(Self::with_map(matrix, preprocessing.row_map(&statistics)))
    }

    /// The same with a weight for every row: C = Σwₗaₗaₗᵀ/Σwₗ, means and variances weighted too.
    pub fn weighted(
        matrix: &'m Matrix<'m>,
        preprocessing: Preprocessing,
        weights: &[f64],
    ) -> Result<Self, Error> {
        let statistics = ColumnStatistics::weighted(matrix, weights)?;
        Self::with_map_and_weights(matrix, preprocessing.row_map(&statistics), weights)
    }

    /// The operator for a map of rows found elsewhere (by another pass, or on other machines).
    pub fn with_map(matrix: &'m Matrix<'m>, map: RowMap) -> Self {
        Self { matrix, map, weights: None, cancel: CancelToken::default(), scratch: Scratch::default() }
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
        let (shift, scale) = (self.map.shift(), self.map.scale());
        let inverse = |j: usize| scale.map_or(1.0, |s| 1.0 / s[j]);
        let moved = |j: usize| shift.map_or(0.0, |s| s[j] * inverse(j));
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

    /// Whether arithmetic in f32 neither overflows nor loses small numbers: with rows D⁻¹(x − μ) = a it forms V′ = D⁻¹V,
    /// aᵀV ≤ ‖a‖ ≤ √(n·tr C) and Σ(x − μ)aᵀV ≤ D·n·tr C. What underflows, 2⁻¹⁴⁹ a product, is far below the rounding of
    /// numbers above 2⁻¹⁰⁰.
    fn fits_single(&self, trace: f64) -> bool {
        let (least, most) = (2.0_f64.powi(-100), f64::from(f32::MAX) / 4.0);
        let fits = |scale: f64| {
            let sum = scale * trace;
            scale >= least && scale <= most && sum >= least && sum * self.n_rows() as f64 <= most
        };
        trace >= least && self.map.scale().map_or_else(|| fits(1.0), |scale| scale.iter().all(|s| fits(*s)))
    }

    /// Where chunk i of all rows lies: equal rows when dense, equal entries when sparse.
    fn chunk(&self, i: usize, n_chunks: usize) -> std::ops::Range<usize> {
        let row_starts = match self.matrix {
            Matrix::CsrF32(x) => x.row_starts(),
            Matrix::CsrF64(x) => x.row_starts(),
            _ => return ordered::piece(self.n_rows(), i, n_chunks),
        };
        let entries = ordered::piece(self.matrix.nnz(), i, n_chunks);
        let cut = |entry: usize| row_starts.partition_point(|&start| start < entry);
        let end = if i + 1 == n_chunks { self.n_rows() } else { cut(entries.end).min(self.n_rows()) };
        cut(entries.start).min(self.n_rows())..end
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
        let mut scratch = std::mem::take(&mut self.scratch);

        let (scaled, c) = scale_operand(&self.map, v, &mut scratch.scaled, &mut scratch.c);
        let n_read = rows.count(self.n_rows());
        let entries = (self.matrix.nnz() as f64 * (n_read as f64 / self.n_rows() as f64)) as usize;
        let n_chunks = ordered::n_chunks(entries, d);
        let n_workers = rayon::current_num_threads().min(n_chunks);
        if scratch.workers.len() < n_workers {
            scratch.workers.resize_with(n_workers, Worker::default);
        }
        // All are ready, also those that get no chunk this time: the next call must not allocate.
        for worker in &mut scratch.workers[..n_workers] {
            worker.y.resize(d * p, 0.0);
            worker.t_sum.resize(p, 0.0);
        }
        scratch.t_sum.clear();
        scratch.t_sum.resize(p, 0.0);
        let t_sum = &mut scratch.t_sum;
        let this = &*self;
        ordered::for_each_chunk(
            n_chunks,
            &mut scratch.workers[..n_workers],
            |i, worker| {
                if this.cancel.is_abandoned() {
                    return; // what is merged instead is never handed out
                }
                let rows = match rows {
                    Rows::All => RowSet::Range(this.chunk(i, n_chunks)),
                    Rows::Batch(list) => RowSet::List(&list[ordered::piece(list.len(), i, n_chunks)]),
                };
                worker.sum(this, &rows, Operand { v: scaled, p, c }, arithmetic);
            },
            |i, worker| {
                if i == 0 {
                    out.values_mut().copy_from_slice(&worker.y);
                } else {
                    out.values_mut().iter_mut().zip(&worker.y).for_each(|(out, y)| *out += y);
                }
                t_sum.iter_mut().zip(&worker.t_sum).for_each(|(sum, t)| *sum += t);
            },
        );

        share_room(&mut scratch.workers);

        // Sparse rows: − μ Σt; then D⁻¹.
        if let (Some(shift), true) = (self.map.shift(), self.matrix.is_sparse()) {
            for (row, mu) in out.values_mut().chunks_exact_mut(p).zip(shift) {
                row.iter_mut().zip(t_sum.iter()).for_each(|(y, t)| *y -= mu * t);
            }
        }
        if let Some(scale) = self.map.scale() {
            let rows = out.values_mut().chunks_exact_mut(p).zip(scale);
            rows.for_each(|(row, s)| row.iter_mut().for_each(|y| *y /= s));
        }
        self.scratch = scratch;
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

    /// Dense f32 data has f32 arithmetic, unless rounding the means would move them visibly: with δ = D⁻¹(μ − fl(μ)), the
    /// rows' covariance about fl(μ) is C + δδᵀ.
    ///
    /// A dot of d products in at least eight partial sums errs by ρ‖a‖ for a unit vector, ρ ≈ 8u√(d/8), and so do sums of
    /// a few hundred rows; Σaδt/n is then at most ρ·√(λ₁·tr C) ≤ ρ·tr C long, however the rows' errors conspire.
    fn coarse_rounding(&self) -> Option<f64> {
        let Matrix::DenseF32(_) = self.matrix else { return None };
        let moved: f64 = self.map.shift().map_or(0.0, |shift| {
            let inverse = |j: usize| self.map.inverse_scale().map_or(1.0, |inverse| inverse[j]);
            let delta = |(j, mu): (usize, &f64)| (mu - f64::from(*mu as f32)) * inverse(j);
            shift.iter().enumerate().map(|at| delta(at).powi(2)).sum()
        });
        let trace = self.total_variance();
        let wide = f64::from(f32::EPSILON) / f64::EPSILON;
        let terms = self.dim().div_ceil(8) + 8 + kernels::COARSE_ROWS;
        (moved <= 1e-8 * trace && self.fits_single(trace))
            .then(|| wide * rounding_of_sum(terms) * trace + moved)
    }

    fn apply_coarsely(&mut self, v: &Block, out: &mut Block) -> Result<(), Error> {
        self.sum(Rows::All, v, out, Arithmetic::Single)?;
        out.scale(1.0 / self.n_rows() as f64);
        Ok(())
    }

    fn passes_to_form(&self) -> u64 {
        1
    }

    fn form(&mut self, c: &mut Block) -> Result<(), Error> {
        super::form::form(self, c);
        self.cancel.go_on()
    }
}

/// What a chunk of rows is multiplied with.
#[derive(Clone, Copy)]
struct Operand<'a> {
    /// V′ = D⁻¹V, d×p.
    v: &'a [f64],
    p: usize,
    /// V′ᵀμ, where there is a μ.
    c: Option<&'a [f64]>,
}

impl Worker {
    /// y ← Σ over one chunk, and for sparse rows the sum of t.
    fn sum(
        &mut self,
        operator: &Covariance<'_>,
        rows: &RowSet<'_>,
        operand: Operand<'_>,
        arithmetic: Arithmetic,
    ) {
        let Operand { v, p, c } = operand;
        self.y.fill(0.0);
        self.t_sum.fill(0.0);
        let weights = RowWeights(operator.weights.as_deref());
        let shift = operator.map.shift();
        let (y, kernel, t_sum) = (&mut self.y, &mut self.kernel, &mut self.t_sum);
        match operator.matrix {
            Matrix::DenseF32(x) if arithmetic == Arithmetic::Single => {
                kernels::sum_dense(x, rows, weights, shift, v, p, y, &mut self.coarse_kernel);
            }
            Matrix::DenseF32(x) => kernels::sum_dense(x, rows, weights, shift, v, p, y, kernel),
            Matrix::DenseF64(x) => kernels::sum_dense(x, rows, weights, shift, v, p, y, kernel),
            Matrix::CsrF32(x) => kernels::sum_csr(x, rows, weights, c, v, p, y, kernel, t_sum),
            Matrix::CsrF64(x) => kernels::sum_csr(x, rows, weights, c, v, p, y, kernel, t_sum),
        }
    }
}

/// V′ = D⁻¹V and c = V′ᵀμ, in the memory given.
fn scale_operand<'a>(
    map: &RowMap,
    v: &'a Block,
    scaled: &'a mut Vec<f64>,
    c: &'a mut Vec<f64>,
) -> (&'a [f64], Option<&'a [f64]>) {
    let p = v.p();
    let scaled: &[f64] = match map.scale() {
        None => v.values(),
        Some(scale) => {
            scaled.clear();
            scaled.extend(v.values().iter().enumerate().map(|(i, x)| x / scale[i / p]));
            scaled
        }
    };
    let c = map.shift().map(|shift| {
        c.clear();
        c.resize(p, 0.0);
        for (row, mu) in scaled.chunks_exact(p).zip(shift) {
            c.iter_mut().zip(row).for_each(|(c, v)| *c += v * mu);
        }
        &**c
    });
    (scaled, c)
}

/// Gives every worker the room that the kernel of one of them needed.
fn share_room(workers: &mut [Worker]) {
    let room = workers.iter().map(|worker| worker.kernel.capacity()).max().unwrap_or(0);
    let coarse = workers.iter().map(|worker| worker.coarse_kernel.capacity()).max().unwrap_or(0);
    for worker in workers {
        worker.kernel.reserve_exact(room - worker.kernel.len());
        worker.coarse_kernel.reserve_exact(coarse - worker.coarse_kernel.len());
    }
}

/// Gives `block` the shape d×p, keeping its memory when it fits.
fn reshape(block: &mut Block, d: usize, p: usize) {
    if (block.d(), block.p()) != (d, p) {
        *block = Block::zeros(d, p);
    }
}

/// Relative rounding of a sum of `terms` products in f64: the smaller of the worst case γₘ ≈ m·u and of 8√m·u, which
/// holds but with probability below 10⁻¹³ for rounding errors of mean zero (Higham & Mary 2019, theorem 2.4).
pub(crate) fn rounding_of_sum(terms: usize) -> f64 {
    let m = (terms + 4) as f64;
    f64::EPSILON / 2.0 * m.min(8.0 * m.sqrt())
}
