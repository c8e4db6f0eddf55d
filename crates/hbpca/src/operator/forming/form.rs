//! Forming C in one pass: C += Σ aaᵀ, one triangle only, from blocks of prepared rows.
//!
//! Dense rows go through a kernel of their own ([`Triangle`]), centred in registers and scaled at the end. Where they hold
//! whole numbers of at most 255 (pictures, counts, flags) it multiplies in f32, twice as many at a time: such products add up
//! *exactly*, and with the exact sums M = Σ xxᵀ and s = Σ x the covariance about the mean is (nM − ssᵀ)/n² without any
//! cancellation; a shift m other than the mean adds (s/n − m)(s/n − m)ᵀ. Compressed rows are spread out and left to a library's
//! triangular product.
//!
//! Columns that are known to hold nothing but what is subtracted from them (the margins of pictures) are left out where they are many
//! enough: Σ aaᵀ is zero there.
//!
//! Where most numbers of a column are the same, most products are left out, whatever rows hold ([`column_modes`]).
//!
//! Other f32 rows can be multiplied in f32, too, with rounding that [`form_in_single`] bounds. They are centred by m̂ = fl(μ), which
//! leaves every difference a relative error of u only, and Σ(x − m̂)(x − m̂)ᵀ/n less δδᵀ, δ = μ − m̂, is the sum about μ: a μ that f32
//! cannot hold is the mean, since minima are numbers of the data.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};

use super::column_modes;
use super::nonzero_columns::NonzeroColumns;
use crate::columns::RowMap;
use crate::kernels::{self, RowWeights, Stored, Triangle};
use crate::matrix::{Dense, Matrix};
use crate::operator::products::sum::Prepared;
use crate::rounding::rounding_of_sum;
use crate::{Block, ordered};

/// Compressed rows prepared at a time: with a few hundred columns they stay in the second-level cache.
const ROWS: usize = 128;
/// Rows that make merging a worker's d×d sum cheap beside computing it.
const ROWS_PER_CHUNK: usize = 1024;
/// Chunks at most: each is merged once, d² additions.
const MOST_CHUNKS: usize = 16;
/// Numbers in all workers' sums together (512 MiB): where d is large, fewer threads share the work.
const MOST_NUMBERS: usize = 1 << 26;
/// Rows copied together at a time, without the columns that vanish: they stay in the second-level cache.
const ROWS_TOGETHER: usize = 128;
/// Whole numbers up to this have products that add up exactly in f32, over as many rows as the kernel takes at a time.
const MOST_EXACT: f64 = 255.0;
/// How much faster sums in f32 are.
const SINGLE_SPEED: f64 = 2.0;

/// `c` ← C; returns a bound on ‖fl(C) − C‖.
pub(in crate::operator) fn form(operator: &Prepared<'_>, c: &mut Block) -> f64 {
    let d = operator.dim();
    *c = Block::zeros(d, d);
    match operator.matrix {
        Matrix::DenseF32(x) => form_dense(operator, x, c),
        Matrix::DenseF64(x) => form_dense(operator, x, c),
        Matrix::CsrF32(_) | Matrix::CsrF64(_) => form_compressed(operator, c),
    }
}

/// `c` ← C from products in f32 where rows are dense f32 numbers in a fitting range; otherwise,
/// for small whole numbers, and where more is gained by leaving products out, what [`form`] makes of it. Returns a bound on ‖fl(C) − C‖.
pub(in crate::operator) fn form_in_single(operator: &Prepared<'_>, c: &mut Block) -> f64 {
    let n = operator.n_rows();
    let (Matrix::DenseF32(x), Some(rounding)) = (operator.matrix, single_rounding(operator.map, n)) else {
        return form(operator, c);
    };
    *c = Block::zeros(x.n_cols(), x.n_cols());
    if let Some(rounding) = form_skipping(operator, SINGLE_SPEED, c) {
        return rounding;
    }
    let exact = operator.weights.is_none() && form_exactly(operator, x, c);
    if !exact {
        sum_triangles::<f32, f32>(operator, x, operator.map.shift(), &mut Vec::new(), c, &|_| true);
        c.scale(1.0 / n as f64);
        if let Some(shift) = operator.map.shift() {
            let off: Vec<f64> = shift.iter().map(|mu| mu - f64::from(*mu as f32)).collect();
            for (row, left) in c.values_mut().chunks_exact_mut(off.len()).zip(&off) {
                row.iter_mut().zip(&off).for_each(|(c, right)| *c -= left * right);
            }
        }
    }
    scale_both_sides(operator.map, c);
    if exact { double_rounding(operator) } else { rounding }
}

/// A bound on ‖fl(C) − C‖ for sums of products of dense rows in f64.
fn double_rounding(operator: &Prepared<'_>) -> f64 {
    let (n_chunks, _) = cut(operator.n_rows(), operator.dim());
    rounding_of_sum(additions(operator.n_rows(), n_chunks) + 6) * operator.map.total_variance()
}

/// A bound on ‖fl(C) − C‖ for sums in f32 over the rows of a block, which are added up in f64; nothing where numbers might leave
/// the range of f32.
///
/// With rounding unit u every product of entries errs by at most 6u (difference, root of the weight, product with it) and a
/// sum by u for each of m additions, relative to Σ|a||a|ᵀ, the norm of which is at most its trace: tr C + ‖D⁻¹δ‖² on average.
fn single_rounding(map: &RowMap, n: usize) -> Option<f64> {
    let off = |(j, mu): (usize, &f64)| ((mu - f64::from(*mu as f32)) * map.inverse_scale(j)).powi(2);
    let moved: f64 = map.shift().map_or(0.0, |shift| shift.iter().enumerate().map(off).sum());
    let moment = map.total_variance() + moved;
    // Σ(x − m̂)² ≤ nD²·moment must not overflow; what underflows, 2⁻¹⁴⁹ a product, is far below the rounding of D²·moment.
    let range = 2.0_f64.powi(-100)..f64::from(f32::MAX) / (4.0 * n as f64);
    let fits = |scale: &f64| range.contains(&(scale * scale * moment));
    let all_fit = map.scale().map_or_else(|| fits(&1.0), |scale| scale.iter().all(fits));
    let unit = f64::from(f32::EPSILON) / 2.0;
    all_fit.then_some((kernels::TRIANGLE_ADDITIONS + 6) as f64 * unit * moment)
}

/// How many chunks the rows are cut into, and how many workers share them.
pub(in crate::operator) fn cut(n: usize, d: usize) -> (usize, usize) {
    let n_chunks = 1 << (n / ROWS_PER_CHUNK).clamp(1, MOST_CHUNKS).ilog2();
    (n_chunks, n_chunks.min(rayon::current_num_threads()).min(MOST_NUMBERS / (d * d)).max(1))
}

/// `c` ← C without products that are zero, where these are so many that it is faster than others are at `speed` times that of f64;
/// returns a bound on ‖fl(C) − C‖ then.
fn form_skipping(operator: &Prepared<'_>, speed: f64, c: &mut Block) -> Option<f64> {
    let d = operator.dim();
    let nonzero = NonzeroColumns::of(operator.vanishing, d).map_or(d, |nonzero| nonzero.len);
    let rounding = column_modes::form(operator, nonzero, speed, c)?;
    scale_both_sides(operator.map, c);
    Some(rounding)
}

fn form_dense<T: Stored>(operator: &Prepared<'_>, x: &Dense<'_, T>, c: &mut Block) -> f64 {
    let speed = if operator.weights.is_none() && promises_whole(x) { SINGLE_SPEED } else { 1.0 };
    if let Some(rounding) = form_skipping(operator, speed, c) {
        return rounding;
    }
    if operator.weights.is_some() || !form_exactly(operator, x, c) {
        let mut workers = Vec::new();
        sum_triangles::<T, f64>(operator, x, operator.map.shift(), &mut workers, c, &|_| true);
        c.scale(1.0 / operator.n_rows() as f64);
    }
    scale_both_sides(operator.map, c);
    double_rounding(operator)
}

/// `c` ← D⁻¹ `c` D⁻¹.
pub(in crate::operator) fn scale_both_sides(map: &RowMap, c: &mut Block) {
    if let Some(scale) = map.scale() {
        let inverse: Vec<f64> = scale.iter().map(|s| 1.0 / s).collect();
        for (row, left) in c.values_mut().chunks_exact_mut(inverse.len()).zip(&inverse) {
            row.iter_mut().zip(&inverse).for_each(|(c, right)| *c *= left * right);
        }
    }
}

/// Σ(x − μ)(x − μ)ᵀ of a matrix that comes in chunks.
#[derive(Default)]
pub(in crate::operator) struct ChunkByChunk {
    triangles: Vec<Triangle<f64>>,
    spread: Vec<Worker>,
}

impl ChunkByChunk {
    /// The lower triangle of `c` += Σ(x − μ)(x − μ)ᵀ over the rows of a chunk, D left aside.
    pub(in crate::operator) fn add(&mut self, chunk: &Prepared<'_>, c: &mut Block) {
        match chunk.matrix {
            Matrix::DenseF32(x) => {
                sum_triangles(chunk, x, chunk.map.shift(), &mut self.triangles, c, &|_| true);
            }
            Matrix::DenseF64(x) => {
                sum_triangles(chunk, x, chunk.map.shift(), &mut self.triangles, c, &|_| true);
            }
            Matrix::CsrF32(_) | Matrix::CsrF64(_) => sum_compressed(chunk, &mut self.spread, c),
        }
    }
}

/// The upper triangle as the lower one, everything times `factor`.
pub(in crate::operator) fn mirror(c: &mut Block, factor: f64) {
    let d = c.d();
    let values = c.values_mut();
    for i in 0..d {
        for j in 0..=i {
            let value = values[i * d + j] * factor;
            values[i * d + j] = value;
            values[j * d + i] = value;
        }
    }
}

/// `c` ← (1/n)Σ(x − m)(x − m)ᵀ from exact sums, if all values are small whole numbers.
fn form_exactly<T: Stored>(operator: &Prepared<'_>, x: &Dense<'_, T>, c: &mut Block) -> bool {
    let sums = Mutex::new(vec![0_i64; x.n_cols()]);
    let whole = |rows: Range<usize>| {
        let mut sum = vec![0.0; x.n_cols()];
        for row in rows.map(|l| x.row(l)) {
            let mut all_whole = true;
            for (sum, x) in sum.iter_mut().zip(row) {
                all_whole &= is_whole(*x);
                *sum += x.to_f64(); // exact: whole, and far below 2⁵³
            }
            if !all_whole {
                return false;
            }
        }
        let mut sums = sums.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        sums.iter_mut().zip(&sum).for_each(|(sums, sum)| *sums += *sum as i64); // exact, in any order
        true
    };
    if !promises_whole(x) || !sum_triangles::<T, f32>(operator, x, None, &mut Vec::new(), c, &whole) {
        c.values_mut().fill(0.0);
        return false;
    }
    let sums = sums.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (n, d, shift) = (x.n_rows(), x.n_cols(), operator.map.shift());
    let off: Vec<f64> =
        sums.iter().enumerate().map(|(j, s)| *s as f64 / n as f64 - shift.map_or(0.0, |m| m[j])).collect();
    for (i, row) in c.values_mut().chunks_exact_mut(sums.len()).enumerate() {
        for (j, c) in row.iter_mut().enumerate() {
            let about_mean = n as i128 * *c as i128 - i128::from(sums[i]) * i128::from(sums[j]);
            *c = about_mean as f64 / (n as f64).powi(2) + off[i] * off[j];
        }
    }
    for &j in operator.vanishing {
        (0..d).for_each(|i| (c.values_mut()[i * d + j], c.values_mut()[j * d + i]) = (0.0, 0.0));
    }
    true
}

/// Whether some rows hold small whole numbers, which nearly always tells; a late surprise costs the work done until then.
fn promises_whole<T: Stored>(x: &Dense<'_, T>) -> bool {
    x.row(0).iter().chain(x.row(x.n_rows() / 2)).all(|x| is_whole(*x))
}

/// Whether x is a whole number of at most [`MOST_EXACT`]. Without a branch or a conversion, so that many are asked at once.
#[inline(always)]
fn is_whole<T: Stored>(x: T) -> bool {
    /// Numbers of this size have no digits behind the point: what is added to it is rounded to a whole number.
    const LARGE: f64 = 1.5 * (1_u64 << 52) as f64;
    let x = x.to_f64();
    ((x + LARGE) - LARGE - x == 0.0) & (x.abs() <= MOST_EXACT)
}

/// `c` += Σ w(x − shift)(x − shift)ᵀ, computed in numbers of type A, as long as all chunks of rows are `fit`.
fn sum_triangles<T: Stored, A: crate::kernels::Arithmetic>(
    operator: &Prepared<'_>,
    x: &Dense<'_, T>,
    shift: Option<&[f64]>,
    workers: &mut Vec<Triangle<A>>,
    c: &mut Block,
    fit: &(dyn Fn(Range<usize>) -> bool + Sync),
) -> bool {
    let (n, nonzero) = (x.n_rows(), NonzeroColumns::of(operator.vanishing, x.n_cols()));
    let d = nonzero.as_ref().map_or(x.n_cols(), |nonzero| nonzero.len);
    let shift_of_nonzero: Option<Vec<f64>> = nonzero.as_ref().zip(shift).map(|(nonzero, shift)| {
        let mut gathered = Vec::with_capacity(d);
        nonzero.gather(shift, &mut gathered);
        gathered
    });
    let shift = shift_of_nonzero.as_deref().or(shift);
    let (n_chunks, n_workers) = cut(n, d);
    workers.resize_with(n_workers, Triangle::default);
    let mut total = Triangle::default();
    let all_fit = AtomicBool::new(true);
    ordered::for_each_chunk(
        n_chunks,
        workers,
        |i, triangle| {
            let rows = ordered::chunk(n, i, n_chunks);
            triangle.clear();
            if !all_fit.load(Ordering::Relaxed) || !fit(rows.clone()) {
                all_fit.store(false, Ordering::Relaxed);
                return;
            }
            let mut together = Vec::new();
            let step = if nonzero.is_some() { ROWS_TOGETHER } else { ROWS_PER_CHUNK };
            for start in rows.clone().step_by(step) {
                if operator.cancel.breaks_off() {
                    return; // C is never handed out then
                }
                let rows = start..rows.end.min(start + step);
                match &nonzero {
                    None => triangle.add_rows(x, rows, RowWeights(operator.weights), shift),
                    Some(nonzero) => {
                        together.clear();
                        rows.clone().for_each(|l| nonzero.gather(x.row(l), &mut together));
                        let weights = operator.weights.map(|weights| &weights[rows.clone()]);
                        let values = Cow::Borrowed(&together[..]);
                        let few = Dense::deferring_finite_check(values, rows.len(), d).expect("whole rows");
                        triangle.add_rows(&few, 0..rows.len(), RowWeights(weights), shift);
                    }
                }
            }
        },
        |_, triangle| total.merge(triangle),
    );
    total.add_to(&nonzero.map_or_else(|| (0..d).collect(), |nonzero| nonzero.columns()), c);
    all_fit.into_inner()
}

/// The same for compressed rows, spread out; returns a bound on ‖fl(C) − C‖.
fn form_compressed(operator: &Prepared<'_>, c: &mut Block) -> f64 {
    if let Some(rounding) = form_skipping(operator, 1.0, c) {
        return rounding;
    }
    sum_compressed(operator, &mut Vec::new(), c);
    let n = operator.n_rows();
    mirror(c, 1.0 / n as f64);
    // Rows are centred before they are multiplied, unlike in products with vectors: means far from zero cost no digits.
    let (n_chunks, _) = cut(n, operator.dim());
    rounding_of_sum(additions(n, n_chunks)) * operator.map.total_variance()
}

/// Additions, one after the other, behind a sum of products over n rows in so many chunks: within a block of rows, over the blocks of a chunk, over
/// chunks.
pub(in crate::operator) fn additions(n: usize, n_chunks: usize) -> usize {
    const { assert!(kernels::TRIANGLE_ADDITIONS <= ROWS) };
    ROWS.min(n) + n.div_ceil(n_chunks).div_ceil(ROWS) + n_chunks
}

/// The lower triangle of `c` += Σ aaᵀ.
fn sum_compressed(operator: &Prepared<'_>, workers: &mut Vec<Worker>, c: &mut Block) {
    let (n, d) = (operator.n_rows(), operator.dim());
    let (n_chunks, n_workers) = cut(n, d);
    workers.resize_with(n_workers, || Worker { sum: vec![0.0; d * d], rows: vec![0.0; ROWS * d] });
    ordered::for_each_chunk(
        n_chunks,
        workers,
        |i, worker| worker.add_chunk(operator, ordered::chunk(n, i, n_chunks)),
        |_, worker| c.values_mut().iter_mut().zip(&worker.sum).for_each(|(c, sum)| *c += sum),
    );
}

struct Worker {
    /// Σ aaᵀ over one chunk, d×d, of which the lower triangle counts.
    sum: Vec<f64>,
    /// Prepared rows.
    rows: Vec<f64>,
}

impl Worker {
    fn add_chunk(&mut self, operator: &Prepared<'_>, chunk: Range<usize>) {
        let d = operator.dim();
        self.sum.fill(0.0);
        for start in chunk.clone().step_by(ROWS) {
            if operator.cancel.breaks_off() {
                return; // C is never handed out then
            }
            let count = ROWS.min(chunk.end - start);
            let rows = &mut self.rows[..count * d];
            rows.chunks_exact_mut(d).enumerate().for_each(|(i, a)| prepare_row(operator, start + i, a));
            let b = MatRef::from_row_major_slice(&*rows, count, d);
            let sum = MatMut::from_row_major_slice_mut(&mut self.sum, d, d);
            let (lower, all) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
            matmul(sum, lower, Accum::Add, b.transpose(), all, b, all, 1.0, Par::Seq);
        }
    }
}

/// a ← √w · D⁻¹(x − μ) for row l.
fn prepare_row(operator: &Prepared<'_>, l: usize, a: &mut [f64]) {
    a.fill(0.0);
    operator.matrix.for_each_in_row(l, |j, x| a[j] = x);
    if let Some(shift) = operator.map.shift() {
        a.iter_mut().zip(shift).for_each(|(a, mu)| *a -= mu);
    }
    if let Some(scale) = operator.map.scale() {
        a.iter_mut().zip(scale).for_each(|(a, s)| *a /= s);
    }
    if let Some(weights) = operator.weights {
        let root = weights[l].sqrt();
        a.iter_mut().for_each(|a| *a *= root);
    }
}

#[cfg(test)]
mod tests;
