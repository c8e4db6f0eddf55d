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
//! Where most numbers of a column are the same, most products are left out, whatever rows hold ([`usual`]).
//!
//! Other f32 rows can be multiplied in f32, too, with rounding that [`form_coarsely`] bounds. They are centred by m̂ = fl(μ), which
//! leaves every difference a relative error of u only, and Σ(x − m̂)(x − m̂)ᵀ/n less δδᵀ, δ = μ − m̂, is the sum about μ: a μ that f32
//! cannot hold is the mean, since minima are numbers of the data.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};

use super::kept::Kept;
use super::sum::Prepared;
use super::usual;
use crate::kernels::{self, RowWeights, Triangle};
use crate::matrix::{Dense, Matrix, Real, RowMap};
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

/// `c` ← C; returns a bound on ‖fl(C) − C‖ where that is not the operator's for its products.
pub(super) fn form(operator: &Prepared<'_>, c: &mut Block) -> Option<f64> {
    let d = operator.dim();
    *c = Block::zeros(d, d);
    match operator.matrix {
        Matrix::DenseF32(x) => form_dense(operator, x, c),
        Matrix::DenseF64(x) => form_dense(operator, x, c),
        Matrix::CsrF32(_) | Matrix::CsrF64(_) => form_compressed(operator, c),
    }
}

/// `c` ← C from products in f32 where rows are dense f32 numbers in a fitting range; returns a bound on ‖fl(C) − C‖ then. Otherwise,
/// for small whole numbers, and where more is gained by leaving products out, C is what [`form`] makes of it.
pub(super) fn form_coarsely(operator: &Prepared<'_>, c: &mut Block) -> Option<f64> {
    let n = operator.n_rows();
    let (Matrix::DenseF32(x), Some(rounding)) = (operator.matrix, single_rounding(operator.map, n)) else {
        return form(operator, c);
    };
    *c = Block::zeros(x.n_cols(), x.n_cols());
    if let Some(rounding) = form_skipping(operator, SINGLE_SPEED, c) {
        return Some(rounding);
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
    (!exact).then_some(rounding)
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
pub(super) fn shares(n: usize, d: usize) -> (usize, usize) {
    let n_chunks = 1 << (n / ROWS_PER_CHUNK).clamp(1, MOST_CHUNKS).ilog2();
    (n_chunks, n_chunks.min(rayon::current_num_threads()).min(MOST_NUMBERS / (d * d)).max(1))
}

/// `c` ← C without products that are zero, where these are so many that it is faster than others are at `speed` times that of f64;
/// returns a bound on ‖fl(C) − C‖ then.
fn form_skipping(operator: &Prepared<'_>, speed: f64, c: &mut Block) -> Option<f64> {
    let d = operator.dim();
    let kept = Kept::of(operator.vanishing, d).map_or(d, |kept| kept.len);
    let rounding = usual::form(operator, kept, speed, c)?;
    scale_both_sides(operator.map, c);
    Some(rounding)
}

fn form_dense<T: Real>(operator: &Prepared<'_>, x: &Dense<'_, T>, c: &mut Block) -> Option<f64> {
    let speed = if operator.weights.is_none() && promises_whole(x) { SINGLE_SPEED } else { 1.0 };
    if let Some(rounding) = form_skipping(operator, speed, c) {
        return Some(rounding);
    }
    if operator.weights.is_some() || !form_exactly(operator, x, c) {
        let mut workers = Vec::new();
        sum_triangles::<T, f64>(operator, x, operator.map.shift(), &mut workers, c, &|_| true);
        c.scale(1.0 / operator.n_rows() as f64);
    }
    scale_both_sides(operator.map, c);
    None
}

/// `c` ← D⁻¹ `c` D⁻¹.
pub(super) fn scale_both_sides(map: &RowMap, c: &mut Block) {
    if let Some(scale) = map.scale() {
        let inverse: Vec<f64> = scale.iter().map(|s| 1.0 / s).collect();
        for (row, left) in c.values_mut().chunks_exact_mut(inverse.len()).zip(&inverse) {
            row.iter_mut().zip(&inverse).for_each(|(c, right)| *c *= left * right);
        }
    }
}

/// Σ(x − μ)(x − μ)ᵀ of a matrix that comes in pieces.
#[derive(Default)]
pub(super) struct PieceByPiece {
    triangles: Vec<Triangle<f64>>,
    spread: Vec<Worker>,
}

impl PieceByPiece {
    /// The lower triangle of `c` += Σ(x − μ)(x − μ)ᵀ over the rows of a piece, D left aside.
    pub(super) fn add(&mut self, piece: &Prepared<'_>, c: &mut Block) {
        match piece.matrix {
            Matrix::DenseF32(x) => {
                sum_triangles(piece, x, piece.map.shift(), &mut self.triangles, c, &|_| true);
            }
            Matrix::DenseF64(x) => {
                sum_triangles(piece, x, piece.map.shift(), &mut self.triangles, c, &|_| true);
            }
            Matrix::CsrF32(_) | Matrix::CsrF64(_) => sum_compressed(piece, &mut self.spread, c),
        }
    }
}

/// The upper triangle as the lower one, everything times `factor`.
pub(super) fn mirror(c: &mut Block, factor: f64) {
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
fn form_exactly<T: Real>(operator: &Prepared<'_>, x: &Dense<'_, T>, c: &mut Block) -> bool {
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
fn promises_whole<T: Real>(x: &Dense<'_, T>) -> bool {
    x.row(0).iter().chain(x.row(x.n_rows() / 2)).all(|x| is_whole(*x))
}

/// Whether x is a whole number of at most [`MOST_EXACT`]. Without a branch or a conversion, so that many are asked at once.
#[inline(always)]
fn is_whole<T: Real>(x: T) -> bool {
    /// Numbers of this size have no digits behind the point: what is added to it is rounded to a whole number.
    const LARGE: f64 = 1.5 * (1_u64 << 52) as f64;
    let x = x.to_f64();
    ((x + LARGE) - LARGE - x == 0.0) & (x.abs() <= MOST_EXACT)
}

/// `c` += Σ w(x − shift)(x − shift)ᵀ, computed in numbers of type A, as long as all chunks of rows are `fit`.
fn sum_triangles<T: Real, A: crate::kernels::Arithmetic>(
    operator: &Prepared<'_>,
    x: &Dense<'_, T>,
    shift: Option<&[f64]>,
    workers: &mut Vec<Triangle<A>>,
    c: &mut Block,
    fit: &(dyn Fn(Range<usize>) -> bool + Sync),
) -> bool {
    let (n, kept) = (x.n_rows(), Kept::of(operator.vanishing, x.n_cols()));
    let d = kept.as_ref().map_or(x.n_cols(), |kept| kept.len);
    let shift_of_kept: Option<Vec<f64>> = kept.as_ref().zip(shift).map(|(kept, shift)| {
        let mut gathered = Vec::with_capacity(d);
        kept.gather(shift, &mut gathered);
        gathered
    });
    let shift = shift_of_kept.as_deref().or(shift);
    let (n_chunks, n_workers) = shares(n, d);
    workers.resize_with(n_workers, Triangle::default);
    let mut total = Triangle::default();
    let all_fit = AtomicBool::new(true);
    ordered::for_each_chunk(
        n_chunks,
        workers,
        |i, triangle| {
            let rows = ordered::piece(n, i, n_chunks);
            triangle.clear();
            if !all_fit.load(Ordering::Relaxed) || !fit(rows.clone()) {
                all_fit.store(false, Ordering::Relaxed);
                return;
            }
            let mut together = Vec::new();
            let step = if kept.is_some() { ROWS_TOGETHER } else { ROWS_PER_CHUNK };
            for start in rows.clone().step_by(step) {
                if operator.cancel.is_abandoned() {
                    return; // C is never handed out then
                }
                let rows = start..rows.end.min(start + step);
                match &kept {
                    None => triangle.add_rows(x, rows, RowWeights(operator.weights), shift),
                    Some(kept) => {
                        together.clear();
                        rows.clone().for_each(|l| kept.gather(x.row(l), &mut together));
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
    total.add_to(&kept.map_or_else(|| (0..d).collect(), |kept| kept.columns()), c);
    all_fit.into_inner()
}

/// The same for compressed rows, spread out.
fn form_compressed(operator: &Prepared<'_>, c: &mut Block) -> Option<f64> {
    if let Some(rounding) = form_skipping(operator, 1.0, c) {
        return Some(rounding);
    }
    sum_compressed(operator, &mut Vec::new(), c);
    mirror(c, 1.0 / operator.n_rows() as f64);
    None
}

/// The lower triangle of `c` += Σ aaᵀ.
fn sum_compressed(operator: &Prepared<'_>, workers: &mut Vec<Worker>, c: &mut Block) {
    let (n, d) = (operator.n_rows(), operator.dim());
    let (n_chunks, n_workers) = shares(n, d);
    workers.resize_with(n_workers, || Worker { sum: vec![0.0; d * d], rows: vec![0.0; ROWS * d] });
    ordered::for_each_chunk(
        n_chunks,
        workers,
        |i, worker| worker.add_chunk(operator, ordered::piece(n, i, n_chunks)),
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
            if operator.cancel.is_abandoned() {
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
mod tests {
    use super::*;
    use crate::Covariance;
    use crate::matrix::Preprocessing;

    /// Deterministic whole numbers from 0 to 255, one column nearly constant at 255.
    fn picture(n: usize, d: usize) -> Vec<f32> {
        let value = |l: usize, j: usize| {
            if j == 0 { 255 - usize::from(l == 5) } else { (l * 31 + j * j * 17 + l * j) % 256 }
        };
        (0..n * d).map(|at| value(at / d, at % d) as f32).collect()
    }

    #[test]
    fn whole_numbers_give_what_f64_gives() {
        let (n, d) = (3000, 30);
        let values = picture(n, d);
        // One value that is no whole number, too small to matter, sends everything the other way.
        for at in [None, Some(0), Some(n * d - 1)] {
            let mut other = values.clone();
            if let Some(at) = at {
                other[at] += 1e-5;
            }
            for preprocessing in [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE] {
                let (x, y): (Matrix, Matrix) = (
                    Dense::new(values.clone(), n, d).unwrap().into(),
                    Dense::new(other.clone(), n, d).unwrap().into(),
                );
                let [mut exact, mut plain] = [Block::zeros(0, 0), Block::zeros(0, 0)];
                form(&Covariance::new(&x, preprocessing).unwrap().prepared(), &mut exact);
                form(&Covariance::new(&y, preprocessing).unwrap().prepared(), &mut plain);
                let largest = exact.values().iter().fold(0.0_f64, |most, c| most.max(c.abs()));
                // The change of 2e-5 moves entries by as much relative to the spread, which is 1/√n in column 0.
                for (a, b) in exact.values().iter().zip(plain.values()) {
                    assert!((a - b).abs() <= 4e-3 * largest, "{a} {b}");
                }
                if at.is_none() {
                    // Against two-pass sums.
                    let operator = Covariance::new(&x, preprocessing).unwrap();
                    let mut rows = vec![0.0; n * d];
                    rows.chunks_exact_mut(d)
                        .enumerate()
                        .for_each(|(l, a)| prepare_row(&operator.prepared(), l, a));
                    for i in 0..d {
                        for j in 0..d {
                            let want: f64 =
                                (0..n).map(|l| rows[l * d + i] * rows[l * d + j]).sum::<f64>() / n as f64;
                            assert!((exact.get(i, j) - want).abs() <= n as f64 * f64::EPSILON * largest);
                        }
                    }
                }
            }
        }
    }

    /// Every fifth column and the last ones hold one number, up to 2 units; the others whole numbers of units.
    fn with_margins(n: usize, d: usize, unit: f32) -> Vec<f32> {
        let value = |l: usize, j: usize| {
            if is_margin(j, d) { j % 3 } else { (l * 31 + j * j * 17 + l * j) % 256 }
        };
        (0..n * d).map(|at| value(at / d, at % d) as f32 * unit).collect()
    }

    fn is_margin(j: usize, d: usize) -> bool {
        j.is_multiple_of(5) || j >= d - d / 10
    }

    #[test]
    fn columns_that_hold_one_number_are_left_out() {
        let n = 700;
        let weights: Vec<f64> = (0..n).map(|l| (l % 4) as f64).collect();
        // Enough columns to leave some out, and too few; small whole numbers, and others; both precisions.
        for (d, unit, double) in [210, 50].into_iter().flat_map(|d| {
            [1.0_f32, 0.3].into_iter().flat_map(move |unit| [false, true].map(|double| (d, unit, double)))
        }) {
            let values = with_margins(n, d, unit);
            let x: Matrix = if double {
                Dense::new(values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>(), n, d).unwrap().into()
            } else {
                Dense::new(values, n, d).unwrap().into()
            };
            for preprocessing in EVERY {
                for weights in [None, Some(&weights[..])] {
                    let operator = operator(&x, preprocessing, weights);
                    let prepared = operator.prepared();
                    let shifted = prepared.map.shift().is_some();
                    let left_out = (0..d).filter(|j| is_margin(*j, d) && (shifted || j.is_multiple_of(3)));
                    assert_eq!(prepared.vanishing, left_out.collect::<Vec<_>>());
                    let kept = Kept::of(prepared.vanishing, d).map(|kept| kept.len);
                    assert_eq!(kept, (d == 210).then(|| d - prepared.vanishing.len()));
                    let [mut c, mut all, mut coarse] = std::array::from_fn(|_| Block::zeros(0, 0));
                    form(&prepared, &mut c);
                    form(&Prepared { vanishing: &[], ..prepared }, &mut all);
                    let largest = all.values().iter().fold(0.0_f64, |most, c| most.max(c.abs()));
                    let rounding = n as f64 * f64::EPSILON * largest;
                    for (a, b) in c.values().iter().zip(all.values()) {
                        assert!((a - b).abs() <= rounding, "{a} {b}");
                    }
                    let bound = form_coarsely(&prepared, &mut coarse).unwrap_or(0.0) + rounding;
                    for (a, b) in coarse.values().iter().zip(all.values()) {
                        assert!((a - b).abs() <= bound, "{a} {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_map_found_elsewhere_leaves_out_nothing() {
        let (n, d) = (300, 210);
        let training: Matrix = Dense::new(with_margins(n, d, 0.3), n, d).unwrap().into();
        let other: Matrix = Dense::new(picture(n, d), n, d).unwrap().into();
        let operator = Covariance::new(&training, Preprocessing::CENTER).unwrap();
        let map = operator.map().clone();
        let mut c = Block::zeros(0, 0);
        form(&Covariance::with_map(&other, map).prepared(), &mut c);
        assert!((0..d).all(|j| c.get(j, j) > 0.0));
    }

    #[test]
    fn nothing_but_margins_has_no_covariance() {
        let (n, d) = (300, 210);
        let x: Matrix = Dense::new(vec![0.7_f32; n * d], n, d).unwrap().into();
        let mut c = Block::zeros(0, 0);
        form(&Covariance::new(&x, Preprocessing::CENTER).unwrap().prepared(), &mut c);
        assert!(c.values().iter().all(|c| *c == 0.0));
    }

    /// Kinds of f32 data that single precision may find hard, 700×37: normal numbers at a level, in a unit; few values; one row that
    /// outweighs all others.
    fn kinds() -> Vec<(&'static str, Vec<f32>)> {
        let (n, d) = (700, 37);
        let normal = crate::matrix::random_normal(3, n * d);
        let column = |at: usize| 0.9_f64.powf((at % d) as f64);
        let with = |level: f64, unit: f64| {
            let value = |(at, x): (usize, &f64)| ((x * column(at) + level) * unit) as f32;
            normal.iter().enumerate().map(value).collect::<Vec<f32>>()
        };
        let repeated = normal.iter().map(|x| if *x > 1.0 { 0.7 } else { -0.1 }).collect();
        let mut dominated = with(0.0, 1.0);
        dominated[5 * d..6 * d].iter_mut().for_each(|x| *x *= 3e4);
        vec![
            ("plain", with(0.0, 1.0)),
            ("mean 30", with(30.0, 1.0)),
            ("mean 1e6", with(1e6, 1.0)),
            ("repeated", repeated),
            ("dominated", dominated),
            ("small", with(1.0, 1e-12)),
            ("large", with(1.0, 1e15)),
        ]
    }

    fn operator<'m>(
        x: &'m Matrix<'m>,
        preprocessing: Preprocessing,
        weights: Option<&[f64]>,
    ) -> Covariance<'m> {
        match weights {
            None => Covariance::new(x, preprocessing).unwrap(),
            Some(weights) => Covariance::weighted(x, preprocessing, weights).unwrap(),
        }
    }

    const EVERY: [Preprocessing; 4] =
        [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE];

    #[test]
    fn sums_in_single_precision_err_by_no_more_than_stated_and_by_more_than_in_double() {
        let weights: Vec<f64> = (0..700).map(|l| f64::from(l % 5)).collect();
        for (kind, values) in kinds() {
            let x: Matrix = Dense::new(values, 700, 37).unwrap().into();
            for preprocessing in EVERY {
                for weights in [None, Some(&weights[..])] {
                    let operator = operator(&x, preprocessing, weights);
                    let [mut coarse, mut double] = [Block::zeros(0, 0), Block::zeros(0, 0)];
                    let bound = form_coarsely(&operator.prepared(), &mut coarse).unwrap();
                    form(&operator.prepared(), &mut double);
                    let off: f64 = coarse
                        .values()
                        .iter()
                        .zip(double.values())
                        .map(|(a, b)| ((a - b) / bound).powi(2))
                        .sum::<f64>()
                        .sqrt();
                    assert!(off <= 1.0, "{kind} {preprocessing:?}: {off}");
                    // Single precision is really used; numbers of few digits multiply exactly in either.
                    assert!(kind != "plain" || off > 1e-6, "{preprocessing:?}: {off}");
                }
            }
        }
    }

    #[test]
    fn numbers_whose_squares_leave_single_precision_are_formed_in_double() {
        let normal = crate::matrix::random_normal(3, 700 * 37);
        for unit in [1e-30, 1e-20, 1e18, 1e30] {
            let x: Matrix =
                Dense::new(normal.iter().map(|x| (x * unit) as f32).collect::<Vec<f32>>(), 700, 37)
                    .unwrap()
                    .into();
            for preprocessing in EVERY {
                let operator = operator(&x, preprocessing, None);
                let [mut coarse, mut double] = [Block::zeros(0, 0), Block::zeros(0, 0)];
                assert!(
                    form_coarsely(&operator.prepared(), &mut coarse).is_none(),
                    "{unit} {preprocessing:?}"
                );
                form(&operator.prepared(), &mut double);
                assert_eq!(coarse, double);
            }
        }
    }

    #[test]
    fn every_number_of_threads_gives_the_same_bits_in_single_precision() {
        let values: Vec<f32> = crate::matrix::random_normal(4, 5000 * 20).iter().map(|x| *x as f32).collect();
        let x: Matrix = Dense::new(values, 5000, 20).unwrap().into();
        let bits = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut c = Block::zeros(0, 0);
                form_coarsely(&operator(&x, Preprocessing::CENTER, None).prepared(), &mut c).unwrap();
                c
            })
        };
        let one = bits(1);
        for threads in [2, 3, 5] {
            assert_eq!(bits(threads), one, "{threads} threads");
        }
    }
}
