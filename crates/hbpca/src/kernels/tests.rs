//! Every kernel at every level against its safe twin.
//!
//! Twin and kernel add the same m products in different orders, with or without FMA. Each is within γₘ·Σ|products| of
//! the exact sum (Higham 2002, §3.1), γₘ = mu/(1 − mu), so that they differ by at most twice that. Σ|products| is what
//! the twin makes of absolute values.

use super::{Arithmetic, Level, RowSet, RowWeights, csr, dense, narrow, plain, summary, tall};
use crate::kernels::Stored;
use crate::matrix::{Csr, Dense};

mod triangles;

/// 2γₘ for sums of m terms, each with the roundings of two products and a weight.
fn tolerance(terms: usize) -> f64 {
    let m = (terms + 4) as f64 * f64::EPSILON / 2.0;
    2.0 * m / (1.0 - m)
}

/// Calls `test` for each level this processor has.
pub(super) fn at_each_level(mut test: impl FnMut(Level)) {
    for level in Level::ALL {
        if level.is_available() {
            test(level);
        } else {
            eprintln!("skipped: this processor has no {level:?}");
        }
    }
}

/// Reproducible numbers in [−½, ½), or small integers when the results shall be exact.
pub(super) struct Numbers {
    state: u64,
    pub(super) integers: bool,
}

impl Numbers {
    pub(super) fn new(seed: u64, integers: bool) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, integers }
    }

    pub(super) fn next(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        if self.integers {
            (self.state % 15) as f64 - 7.0
        } else {
            (self.state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        }
    }

    /// Values in an allocation that ends with the last of them, so that a read beyond is a read beyond.
    pub(super) fn take<T: Stored>(&mut self, len: usize) -> Vec<T> {
        let mut values = Vec::with_capacity(len);
        values.extend((0..len).map(|_| T::from_f64(self.next())));
        values.shrink_to_fit();
        values
    }
}

/// The sum with arithmetic in numbers of type `A`, the shift being taken out afterwards if asked for.
fn sum_of<T: Stored, A: Coarseness>(
    level: Level,
    x: &Dense<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    shift: Option<&[f64]>,
    afterwards: bool,
    v: &[f64],
    p: usize,
    mut y: Vec<f64>,
) -> Vec<f64> {
    let mut scratch = vec![A::from_f64(f64::NAN); 5];
    let (mut c, mut s_sum) = (vec![0.0; p], vec![0.0; p]);
    for (row, mu) in v.chunks_exact(p).zip(shift.unwrap_or(&[])) {
        c.iter_mut().zip(row).for_each(|(c, v)| *c += mu * v);
    }
    let after = afterwards.then(|| dense::Afterwards { c: &c, s_sum: &mut s_sum });
    let mut packed_v = vec![A::from_f64(f64::NAN); 3];
    let packing = dense::Packing::at::<A>(level, x.n_cols(), p);
    let packed_v = packing.pack(v, &mut packed_v);
    let mut packed_y = vec![0.0; packing.len()];
    dense::sum_dense_at(level, x, rows, weights, shift, after, packed_v, p, &mut packed_y, &mut scratch);
    let mut sum = vec![f64::NAN; y.len()];
    packing.unpack(&packed_y, &mut sum);
    y.iter_mut().zip(sum).for_each(|(y, sum)| *y += sum);
    for (row, mu) in y.chunks_exact_mut(p).zip(shift.unwrap_or(&[])) {
        row.iter_mut().zip(&s_sum).for_each(|(y, s)| *y -= mu * s);
    }
    y
}

/// One product to check.
#[derive(Clone, Debug)]
struct Case {
    d: usize,
    p: usize,
    /// Row numbers; none for a range of all rows.
    list: Option<Vec<usize>>,
    n: usize,
    shift: bool,
    weights: bool,
    integers: bool,
    gap: usize,
}

impl Case {
    fn check<T: Stored>(&self, level: Level) {
        let Self { d, p, n, gap, .. } = *self;
        let mut numbers = Numbers::new((d * 1000 + p * 50 + n) as u64, self.integers);
        let stride = d + gap;
        // The last row is read from an allocation that ends with it.
        let values: Vec<T> = numbers.take((n.max(1) - 1) * stride + d);
        let x = Dense::strided(&values, n.max(1), d, stride).unwrap();
        let v: Vec<f64> = numbers.take(d * p);
        let start: Vec<f64> = numbers.take(d * p);
        let shift: Option<Vec<f64>> = self.shift.then(|| numbers.take(d));
        let weights: Option<Vec<f64>> =
            self.weights.then(|| numbers.take::<f64>(n.max(1)).iter().map(|w| w.abs()).collect());
        let rows = self.list.as_deref().map_or(RowSet::Range(0..n), RowSet::List);
        let weights = RowWeights(weights.as_deref());

        // Means taken out in registers, and afterwards.
        let [got, got_afterwards] = [false, true].map(|afterwards| {
            let shift = shift.as_deref();
            sum_of::<T, f64>(level, &x, &rows, weights, shift, afterwards, &v, p, start.clone())
        });
        let single = [false, true].map(|afterwards| {
            let shift = shift.as_deref();
            sum_of::<T, f32>(level, &x, &rows, weights, shift, afterwards, &v, p, start.clone())
        });
        let mut want = start.clone();
        plain::sum_dense(&x, &rows, weights, shift.as_deref(), &v, p, &mut want, &mut Vec::new());
        if self.integers {
            assert_eq!(got, want, "{level:?} {self:?}");
            assert_eq!(got_afterwards, want, "{level:?} {self:?}, afterwards");
            return;
        }
        let magnitudes: Vec<f64> = (0..n.max(1))
            .flat_map(|l| x.row(l).to_vec().into_iter().enumerate())
            .map(|(j, x)| (x.to_f64() - shift.as_ref().map_or(0.0, |shift| shift[j])).abs())
            .collect();
        let magnitudes = Dense::new(magnitudes, n.max(1), d).unwrap();
        let absolute: Vec<f64> = v.iter().map(|v| v.abs()).collect();
        let mut scale: Vec<f64> = start.iter().map(|y| y.abs()).collect();
        plain::sum_dense(&magnitudes, &rows, weights, None, &absolute, p, &mut scale, &mut Vec::new());
        for i in 0..d * p {
            let bound = tolerance(d + rows.len()) * scale[i];
            assert!((got[i] - want[i]).abs() <= bound, "{level:?} {self:?} at {i}: {} {}", got[i], want[i]);
        }
        // In f32, x, the shift and V are rounded too, and their sizes matter rather than that of the difference; so they do where the shift
        // is taken out afterwards.
        let magnitudes: Vec<f64> = (0..n.max(1))
            .flat_map(|l| x.row(l).to_vec().into_iter().enumerate())
            .map(|(j, x)| x.to_f64().abs() + shift.as_ref().map_or(0.0, |shift| shift[j].abs()))
            .collect();
        let magnitudes = Dense::new(magnitudes, n.max(1), d).unwrap();
        plain::sum_dense(&magnitudes, &rows, weights, None, &absolute, p, &mut scale, &mut Vec::new());
        let unit_ratio = f64::from(f32::EPSILON) / f64::EPSILON;
        let [centred, afterwards] = &single;
        for (what, got, unit, dots) in [
            ("f64, afterwards", &got_afterwards, 1.0, 2 * d),
            ("f32", centred, unit_ratio, d),
            ("f32, afterwards", afterwards, unit_ratio, 2 * d),
        ] {
            for i in 0..d * p {
                let bound = tolerance(dots + rows.len() + 8) * unit * scale[i];
                let (got, want) = (got[i], want[i]);
                assert!((got - want).abs() <= bound, "{level:?} {self:?} {what} at {i}: {got} {want}");
            }
        }
    }
}

/// Every combination of d and p, with the other choices running through all of theirs.
#[test]
fn dense_sums_agree_with_the_formula_for_every_shape() {
    let dims: &[usize] =
        if cfg!(miri) { &[1, 9] } else { &[1, 2, 7, 8, 9, 15, 16, 17, 22, 54, 64, 100, 784] };
    at_each_level(|level| {
        let mut turn: usize = 0;
        for &d in dims {
            for p in if cfg!(miri) { 1..=5 } else { 1..=33 } {
                // A step prime to every period, so that the choices meet in every combination.
                turn += 5;
                let case = Case {
                    d,
                    p,
                    n: turn % 21,
                    list: None,
                    shift: turn.is_multiple_of(2),
                    weights: turn % 4 < 2,
                    integers: turn % 8 < 4,
                    gap: turn % 3,
                };
                case.check::<f32>(level);
                case.check::<f64>(level);
            }
        }
    });
}

#[test]
fn dense_sums_agree_for_every_number_of_rows_and_for_lists_with_repetitions() {
    at_each_level(|level| {
        for n in if cfg!(miri) { 0..=4 } else { 0..=20 } {
            for p in if cfg!(miri) { 1..=2 } else { 1..=9 } {
                for choice in 0..8 {
                    // The list visits rows out of order, some twice, some never, and the last one always.
                    let list: Vec<usize> = (0..n + n / 2).map(|i| (i * 7 + n - 1) % n).collect();
                    let case = Case {
                        d: 17,
                        p,
                        n,
                        list: (choice & 1 > 0).then_some(list),
                        shift: choice & 2 > 0,
                        weights: choice & 4 > 0,
                        integers: n % 2 == 0,
                        gap: 0,
                    };
                    case.check::<f32>(level);
                    case.check::<f64>(level);
                }
            }
        }
    });
}

#[test]
fn dense_sums_agree_over_many_blocks_of_rows_and_many_tiles_of_columns() {
    if cfg!(miri) {
        return; // nothing here that the smaller cases do not reach, and too much for an interpreter
    }
    at_each_level(|level| {
        for (d, n, p) in
            [(3, 500, 1), (48, 900, 6), (54, 150, 8), (1000, 60, 8), (5000, 30, 3), (40_000, 5, 9)]
        {
            for integers in [false, true] {
                let case = Case { d, p, n, list: None, shift: true, weights: false, integers, gap: 1 };
                case.check::<f32>(level);
                case.check::<f64>(level);
            }
        }
    });
}

/// Compressed rows of 0, 1, 2, … entries up to d, in scattered columns.
fn compressed<T: Stored>(n: usize, d: usize, numbers: &mut Numbers) -> Csr<'static, T> {
    let (mut starts, mut columns) = (vec![0], Vec::new());
    for l in 0..n {
        let mut row: Vec<u32> = (0..l.min(d)).map(|i| ((i * 31 + l * 17) % d) as u32).collect();
        row.sort_unstable();
        row.dedup();
        columns.extend(row);
        starts.push(columns.len());
    }
    columns.shrink_to_fit();
    let values: Vec<T> = numbers.take(columns.len());
    Csr::new(d, starts, columns, values).unwrap()
}

fn check_csr<T: Stored, A: Coarseness>(level: Level, d: usize, p: usize, n: usize, choice: usize) {
    let mut numbers = Numbers::new((d * 100 + p) as u64, choice & 8 > 0);
    let x: Csr<T> = compressed(n, d, &mut numbers);
    let (rounded, rounded_start): (Vec<A>, Vec<A>) = (numbers.take(d * p), numbers.take(d * p));
    let exactly = |values: &[A]| values.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
    let (v, start) = (exactly(&rounded), exactly(&rounded_start));
    let c: Option<Vec<f64>> = (choice & 1 > 0).then(|| numbers.take(p));
    let weights: Option<Vec<f64>> =
        (choice & 2 > 0).then(|| numbers.take::<f64>(n).iter().map(|w| w.abs()).collect());
    let list: Vec<usize> = (0..n + n / 2).map(|i| (i * 7 + n - 1) % n).collect();
    let rows = if choice & 4 > 0 { RowSet::List(&list) } else { RowSet::Range(0..n) };
    let weights = RowWeights(weights.as_deref());
    let (mut sums, mut got_t) = (rounded_start, vec![1.0; p]);
    let room = &mut Vec::new();
    csr::sum_csr_at(level, &x, &rows, weights, c.as_deref(), &rounded, p, &mut sums, room, &mut got_t);
    let got = exactly(&sums);
    let (mut want, mut want_t) = (start.clone(), vec![1.0; p]);
    plain::sum_csr(&x, &rows, weights, c.as_deref(), &v, p, &mut want, &mut Vec::new(), &mut want_t);
    if numbers.integers {
        assert_eq!((got, got_t), (want, want_t), "{level:?} d={d} p={p} choice={choice}");
        return;
    }
    // −c takes the sign that adds up.
    let absolute = |values: &[f64]| values.iter().map(|x| x.abs()).collect::<Vec<f64>>();
    let values: Vec<f64> = x.values().iter().map(|x| x.to_f64().abs()).collect();
    let magnitudes = Csr::new(d, x.row_starts(), x.columns(), values).unwrap();
    let c = c.map(|c| c.iter().map(|c| -c.abs()).collect::<Vec<f64>>());
    let (mut scale, mut scale_t) = (absolute(&start), vec![1.0; p]);
    let v = absolute(&v);
    plain::sum_csr(
        &magnitudes,
        &rows,
        weights,
        c.as_deref(),
        &v,
        p,
        &mut scale,
        &mut Vec::new(),
        &mut scale_t,
    );
    let all = got.iter().chain(&got_t).zip(want.iter().chain(&want_t)).zip(scale.iter().chain(&scale_t));
    for ((got, want), scale) in all {
        let bound = A::EPSILON_RATIO * tolerance(d.min(n) + rows.len()) * scale;
        assert!((got - want).abs() <= bound, "{level:?} d={d} p={p} choice={choice}: {got} {want}");
    }
}

#[test]
fn sparse_sums_agree_with_the_formula() {
    let dims: &[usize] = if cfg!(miri) { &[1, 9] } else { &[1, 2, 7, 33, 100] };
    at_each_level(|level| {
        for &d in dims {
            for p in if cfg!(miri) { 1..=5 } else { 1..=40 } {
                for choice in 0..16 {
                    check_csr::<f32, f64>(level, d, p, 12, choice);
                    check_csr::<f64, f64>(level, d, p, 12, choice);
                    check_csr::<f32, f32>(level, d, p, 12, choice);
                }
            }
        }
    });
}

#[test]
fn the_two_halves_of_a_sparse_sum_are_the_whole() {
    let n = 12;
    at_each_level(|level| {
        for (d, p) in [(1, 1), (7, 2), (33, 4), (100, 7), (100, 8), (33, 21)] {
            let mut numbers = Numbers::new((d * 100 + p) as u64, false);
            let x: Csr<f32> = compressed(n, d, &mut numbers);
            let (v, start): (Vec<f32>, Vec<f32>) = (numbers.take(d * p), numbers.take(d * p));
            let (rows, weights) = (RowSet::Range(0..n), RowWeights(None));
            let (mut want, mut want_t, mut room) = (start.clone(), vec![0.5; p], Vec::new());
            csr::sum_csr_at(level, &x, &rows, weights, None, &v, p, &mut want, &mut room, &mut want_t);
            // In two calls, of which the second begins in the middle.
            let mut t = vec![f32::NAN; n * p];
            let (first, second) = t.split_at_mut(5 * p);
            csr::dots_csr_at(level, &x, 0, &v, p, first);
            csr::dots_csr_at(level, &x, 5, &v, p, second);
            let (mut got, mut got_t) = (start, vec![0.5; p]);
            csr::add_csr_at(level, &x, &rows, &t, p, &mut got, &mut got_t);
            assert_eq!((got, got_t), (want, want_t), "{level:?} d={d} p={p}");
        }
    });
}

/// The twin's sums in the same order: only FMA may round differently.
fn check_summary<T: Stored>(level: Level, d: usize, n: usize, weighted: bool, integers: bool) {
    let mut numbers = Numbers::new((d * 100 + n) as u64, integers);
    let values: Vec<T> = numbers.take(n * d);
    let x = Dense::new(values, n, d).unwrap();
    // Some weights are zero.
    let weights: Option<Vec<f64>> =
        weighted.then(|| (0..n).map(|l| ((l + n) % 3) as f64 * if integers { 1.0 } else { 0.3 }).collect());
    let rows = n / 3..n;
    let pivot: Vec<f64> = x.row(n - 1).iter().map(|x| x.to_f64()).collect();
    let mut got = vec![vec![f64::NAN; d]; 4];
    let mut want = got.clone();
    let got_weight = {
        let [a, b, c, e] = got.as_mut_slice() else { unreachable!() };
        summary::summarise_rows_at(level, &x, rows.clone(), weights.as_deref(), &pivot, [a, b, c, e])
    };
    let want_weight = {
        let [a, b, c, e] = want.as_mut_slice() else { unreachable!() };
        plain::summarise_rows(&x, rows.clone(), weights.as_deref(), &pivot, [a, b, c, e])
    };
    let place = format!("{level:?} d={d} n={n} weighted={weighted}");
    assert_eq!((got_weight, &got[2], &got[3]), (want_weight, &want[2], &want[3]), "{place}");
    for j in 0..d {
        // |x| ≤ ½ (≤ 7 for integers), twice that from a pivot: sums of |w·(x − pivot)| and of w·deviation² are at most the
        // weight times this.
        let largest: f64 = if integers { 14.0 } else { 1.0 };
        let bound = tolerance(rows.len()) * want_weight.max(1.0);
        assert!((got[0][j] - want[0][j]).abs() <= bound * largest, "{place}: mean {j}");
        assert!((got[1][j] - want[1][j]).abs() <= bound * 4.0 * largest.powi(2), "{place}: squares {j}");
        if integers && !weighted {
            assert_eq!(got[0][j].to_bits(), want[0][j].to_bits(), "{place}: mean {j}");
        }
    }
}

#[test]
fn column_summaries_agree_with_the_formula() {
    let dims: &[usize] =
        if cfg!(miri) { &[1, 9] } else { &[1, 2, 7, 8, 9, 15, 16, 17, 22, 54, 64, 100, 784] };
    at_each_level(|level| {
        for &d in dims {
            for n in 1..=if cfg!(miri) { 4 } else { 40 } {
                for choice in 0..4 {
                    check_summary::<f32>(level, d, n, choice & 1 > 0, choice & 2 > 0);
                    check_summary::<f64>(level, d, n, choice & 1 > 0, choice & 2 > 0);
                }
            }
        }
    });
}

#[test]
fn a_nan_reaches_the_mean_and_leaves_minimum_and_maximum_alone() {
    at_each_level(|level| {
        for at in 0..36 {
            let mut values: Vec<f32> = (0..36).map(|i| i as f32).collect();
            values[at] = f32::NAN;
            let x = Dense::deferring_finite_check(values.into(), 4, 9).unwrap();
            let (mut mean, mut squares, mut min, mut max) = ([0.0; 9], [0.0; 9], [0.0; 9], [0.0; 9]);
            let columns = [&mut mean[..], &mut squares, &mut min, &mut max];
            summary::summarise_rows_at(level, &x, 0..4, None, &[5.0; 9], columns);
            for j in 0..9 {
                assert_eq!((mean[j] + squares[j]).is_nan(), j == at % 9, "{level:?} {at} {j}");
                assert!(min[j].is_finite() && max[j].is_finite());
            }
        }
    });
}

/// How much larger the unit roundoff is than that of f64.
trait Coarseness: Arithmetic {
    const EPSILON_RATIO: f64;
}
impl Coarseness for f64 {
    const EPSILON_RATIO: f64 = 1.0;
}
impl Coarseness for f32 {
    const EPSILON_RATIO: f64 = f32::EPSILON as f64 / f64::EPSILON;
}

#[test]
fn products_of_narrow_blocks_agree_with_the_formulas() {
    let widths: &[usize] = if cfg!(miri) { &[1, 3, 9] } else { &[1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 40] };
    at_each_level(|level| {
        for (&p, &q) in widths.iter().flat_map(|p| widths.iter().map(move |q| (p, q))) {
            for rows in [0, 1, 7, 8, 9, 33] {
                for integers in [true, false] {
                    let mut numbers = Numbers::new((p * 1000 + q * 50 + rows) as u64, integers);
                    let (a, b): (Vec<f64>, Vec<f64>) = (numbers.take(rows * p), numbers.take(rows * q));
                    let h: Vec<f64> = numbers.take(p * q);
                    let absolute = |x: &[f64]| x.iter().map(|x| x.abs()).collect::<Vec<f64>>();
                    let check = |got: &[f64], want: &[f64], scale: &[f64], terms: usize| {
                        for i in 0..want.len() {
                            let bound = if integers { 0.0 } else { tolerance(terms) * scale[i] };
                            let off = (got[i] - want[i]).abs();
                            assert!(off <= bound, "{level:?} {p} {q} {rows} at {i}: off by {off:e}");
                        }
                    };
                    let mut got = vec![f64::NAN; p * q];
                    narrow::gram_at(level, &a, p, &b, q, &mut got);
                    let scale = plain::gram(&absolute(&a), p, &absolute(&b), q);
                    check(&got, &plain::gram(&a, p, &b, q), &scale, rows);
                    let mut got = b.clone();
                    narrow::add_product_at(level, &mut got, q, &a, p, &h);
                    let scale = plain::add_product(&absolute(&b), q, &absolute(&a), p, &absolute(&h));
                    check(&got, &plain::add_product(&b, q, &a, p, &h), &scale, p + 1);
                }
            }
        }
    });
}

/// The vectors of `long`, one after another, as rows of their coordinates.
fn side_by_side<A: Stored>(long: &[A], rows: usize) -> Vec<f64> {
    let p = long.len() / rows;
    (0..rows * p).map(|at| long[at % p * rows + at / p].to_f64()).collect()
}

fn check_tall<A: Coarseness>(level: Level, a: usize, p: usize, rows: usize, integers: bool) {
    let mut numbers = Numbers::new((a * 1000 + p * 50 + rows) as u64, integers);
    let (q, w, h): (Vec<A>, Vec<A>, Vec<A>) =
        (numbers.take(a * rows), numbers.take(p * rows), numbers.take(a * p));
    let (rows_of_q, rows_of_w) = (side_by_side(&q, rows), side_by_side(&w, rows));
    let h_exactly: Vec<f64> = h.iter().map(|x| x.to_f64()).collect();
    let absolute = |x: &[f64]| x.iter().map(|x| x.abs()).collect::<Vec<f64>>();
    let check = |got: &[f64], want: &[f64], scale: &[f64], terms: usize| {
        for i in 0..want.len() {
            let bound = if integers { 0.0 } else { A::EPSILON_RATIO * tolerance(terms) * scale[i] };
            let off = (got[i] - want[i]).abs();
            assert!(off <= bound, "{level:?} {a} {p} {rows} at {i}: off by {off:e}");
        }
    };
    let mut got = vec![f64::NAN; a * p];
    tall::gram_at(level, &q, &w, rows, &mut got);
    let scale = plain::gram(&absolute(&rows_of_q), a, &absolute(&rows_of_w), p);
    check(&got, &plain::gram(&rows_of_q, a, &rows_of_w, p), &scale, rows);
    let mut got = w.clone();
    tall::add_product_at(level, &mut got, &q, rows, &h);
    let scale = plain::add_product(&absolute(&rows_of_w), p, &absolute(&rows_of_q), a, &absolute(&h_exactly));
    let want = plain::add_product(&rows_of_w, p, &rows_of_q, a, &h_exactly);
    check(&side_by_side(&got, rows), &want, &scale, a + 1);
}

#[test]
fn products_of_long_vectors_agree_with_the_formulas() {
    let numbers: &[usize] = if cfg!(miri) { &[1, 5] } else { &[1, 2, 3, 4, 5, 8, 9, 13, 40] };
    at_each_level(|level| {
        for (&a, &p) in numbers.iter().flat_map(|a| numbers.iter().map(move |p| (a, p))) {
            for rows in [16, 48, 80] {
                for integers in [true, false] {
                    check_tall::<f64>(level, a, p, rows, integers);
                    check_tall::<f32>(level, a, p, rows, integers);
                }
            }
        }
    });
}
