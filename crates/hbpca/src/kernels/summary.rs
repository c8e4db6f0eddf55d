//! Mean, squared deviations, minimum and maximum of columns over a short run of rows.
//!
//! A few registers of columns at a time run down all rows twice: for sum, minimum and maximum, and, the lines being in
//! the cache by then, for the squared deviations from the mean just found. Meanwhile the next run's lines are fetched.
//! Means are told relative to a pivot near the data: where they are large against the spread their difference between two
//! runs would drown in their rounding.

use std::ops::Range;

use super::lanes::{Arithmetic, Kernel, LINE, Lanes};
use super::{Level, RowWeights};
use crate::kernels::Stored;
use crate::matrix::Dense;

/// Mean less `pivot`, squared deviations, minimum and maximum of every column over a short run of rows; returns their
/// weight.
///
/// Minimum and maximum pass over NaN; mean and squared deviations do not.
pub(crate) fn summarise_rows<T: Stored>(
    x: &Dense<'_, T>,
    rows: Range<usize>,
    weights: Option<&[f64]>,
    pivot: &[f64],
    columns: [&mut [f64]; 4],
) -> f64 {
    summarise_rows_at(Level::best(), x, rows, weights, pivot, columns)
}

/// [`summarise_rows`] with the instructions of `level`.
pub(super) fn summarise_rows_at<T: Stored>(
    level: Level,
    x: &Dense<'_, T>,
    rows: Range<usize>,
    weights: Option<&[f64]>,
    pivot: &[f64],
    mut columns: [&mut [f64]; 4],
) -> f64 {
    let d = x.n_cols();
    assert!(columns.iter().all(|column| column.len() == d), "one place for each column");
    assert_eq!(pivot.len(), d, "one pivot for each column");
    let weight = match weights {
        None => rows.len() as f64,
        Some(weights) => weights[rows.clone()].iter().sum(),
    };
    if weight == 0.0 {
        for (column, empty) in columns.iter_mut().zip([0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY]) {
            column.fill(empty);
        }
        return weight;
    }
    let stride = x.stride();
    let (from, to) = (rows.start * stride, (rows.end - 1) * stride + d);
    let summary = Summary {
        start: x.values()[from..to].as_ptr(),
        stride,
        n: rows.len(),
        d,
        weights: RowWeights(weights.map(|weights| &weights[rows])),
        inverse: 1.0 / weight,
        pivot: pivot.as_ptr(),
        columns: columns.map(<[f64]>::as_mut_ptr),
    };
    match weights {
        None => f64::run(level, Run::<T, false>(summary)),
        Some(_) => f64::run(level, Run::<T, true>(summary)),
    }
    weight
}

/// The operands: n rows of d values from `start` on, d pivots, and where mean, squares, minimum and maximum go.
struct Summary<'a, T> {
    start: *const T,
    stride: usize,
    n: usize,
    d: usize,
    weights: RowWeights<'a>,
    inverse: f64,
    pivot: *const f64,
    columns: [*mut f64; 4],
}

struct Run<'a, T, const WEIGHTED: bool>(Summary<'a, T>);

impl<T: Stored, const WEIGHTED: bool> Kernel<f64> for Run<'_, T, WEIGHTED> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = f64>>(self) {
        /// Registers of columns at a time: three sums and a pivot each fill most of the smaller register file.
        const WIDE: usize = 3;
        let n_full = self.0.d / L::N;
        let mut j = 0;
        // SAFETY: registers below n_full are whole; n rows of d values and d pivots can be read and d values
        // written to each place.
        unsafe {
            while j + WIDE <= n_full {
                self.columns::<L, WIDE, false>(j);
                j += WIDE;
            }
            while j < n_full {
                self.columns::<L, 1, false>(j);
                j += 1;
            }
            if !self.0.d.is_multiple_of(L::N) {
                self.columns::<L, 1, true>(j);
            }
        }
    }
}

impl<T: Stored, const WEIGHTED: bool> Run<'_, T, WEIGHTED> {
    /// Registers of columns `first .. first + WIDE`, the last of them in part if `PART`.
    #[inline(always)]
    unsafe fn columns<L: Lanes<Number = f64>, const WIDE: usize, const PART: bool>(&self, first: usize) {
        let Summary { start, stride, n, d, weights, inverse, pivot, columns } = self.0;
        // SAFETY: the promise of `run`.
        unsafe {
            let mask = L::mask(if PART { d % L::N } else { 0 });
            let load = |row: usize, j: usize| {
                let from = start.add(row * stride + (first + j) * L::N);
                if PART { T::load_masked::<L>(from, mask) } else { T::load::<L>(from) }
            };
            let store = |place: *mut f64, j: usize, v: L::V| {
                let to = place.add((first + j) * L::N);
                if PART { L::store_masked(to, v, mask) } else { L::store(to, v) }
            };
            let zero = L::splat(0.0);
            let pivot: [L::V; WIDE] = std::array::from_fn(|j| {
                let from = pivot.add((first + j) * L::N);
                if PART { L::load_masked(from, mask) } else { L::load(from) }
            });
            let (mut mean, mut squares) = ([zero; WIDE], [zero; WIDE]);
            let (mut min, mut max) = ([L::splat(f64::INFINITY); WIDE], [L::splat(f64::NEG_INFINITY); WIDE]);
            for row in 0..n {
                let w = if WEIGHTED { weights.of(row) } else { 1.0 };
                if WEIGHTED && w == 0.0 {
                    continue;
                }
                for j in 0..WIDE {
                    let x = load(row, j);
                    let y = L::sub(x, pivot[j]);
                    mean[j] = if WEIGHTED { L::fma(L::splat(w), y, mean[j]) } else { L::add(mean[j], y) };
                    min[j] = L::min(x, min[j]);
                    max[j] = L::max(x, max[j]);
                }
            }
            for j in 0..WIDE {
                mean[j] = L::fma(mean[j], L::splat(inverse), zero);
            }
            for row in 0..n {
                for line in 0..(WIDE * L::N * T::BYTES).div_ceil(LINE) {
                    L::prefetch(
                        start.wrapping_add((row + n) * stride + first * L::N + line * (LINE / T::BYTES)),
                    );
                }
                let w = L::splat(if WEIGHTED { weights.of(row) } else { 1.0 });
                for j in 0..WIDE {
                    let deviation = L::sub(L::sub(load(row, j), pivot[j]), mean[j]);
                    let weighted = if WEIGHTED { L::fma(w, deviation, zero) } else { deviation };
                    squares[j] = L::fma(weighted, deviation, squares[j]);
                }
            }
            for j in 0..WIDE {
                store(columns[0], j, mean[j]);
                store(columns[1], j, squares[j]);
                store(columns[2], j, min[j]);
                store(columns[3], j, max[j]);
            }
        }
    }
}
