//! Every kernel at every level against its safe twin.
//!
//! Twin and kernel add the same m products in different orders, with or without FMA. Each is within γₘ·Σ|products| of
//! the exact sum (Higham 2002, §3.1), γₘ = mu/(1 − mu), so that they differ by at most twice that. Σ|products| is what
//! the twin makes of absolute values.

use super::{Level, RowSet, RowWeights, dense, plain};
use crate::matrix::{Dense, Real};

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
    pub(super) fn take<T: Real>(&mut self, len: usize) -> Vec<T> {
        let mut values = Vec::with_capacity(len);
        values.extend((0..len).map(|_| T::from_f64(self.next())));
        values.shrink_to_fit();
        values
    }
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
    fn check<T: Real>(&self, level: Level) {
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

        let mut got = start.clone();
        let mut scratch = vec![f64::NAN; 5];
        dense::sum_dense_at(level, &x, &rows, weights, shift.as_deref(), &v, p, &mut got, &mut scratch);
        let mut want = start.clone();
        plain::sum_dense(&x, &rows, weights, shift.as_deref(), &v, p, &mut want, &mut Vec::new());
        if self.integers {
            assert_eq!(got, want, "{level:?} {self:?}");
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
                    shift: turn % 2 == 0,
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
        for (d, n, p) in [(3, 500, 1), (54, 150, 8), (1000, 60, 8), (5000, 30, 3), (40_000, 5, 9)] {
            for integers in [false, true] {
                let case = Case { d, p, n, list: None, shift: true, weights: false, integers, gap: 1 };
                case.check::<f32>(level);
                case.check::<f64>(level);
            }
        }
    });
}
