//! Means of what is there.
//!
//! A column's mean is its pivot c, the first value that counts, plus Σw(x − c)/Σw over the rows that have a value. The sum is compensated (Neumaier 1974), so
//! that its error is that of its terms: |fl(μ) − μ| ≤ 4ε(|μ| + range), whatever n is. Rows of f32 are completed with means of f32: these are what the completed matrix
//! holds, and nothing of it is rounded. An entry that is not stored is a zero that is there.

use crate::Error;
use crate::columns::{ColumnStatistics, RowMap};
use crate::matrix::Matrix;
use crate::rounding::rounding_of_sum;

/// Sums over the values that are there.
#[derive(Debug)]
pub(crate) struct PresentMeans {
    sparse: bool,
    /// c, NaN until a value was seen.
    pivot: Vec<f64>,
    sum: Vec<f64>,
    carry: Vec<f64>,
    range: Vec<(f64, f64)>,
    /// Weight of the holes.
    missing: Vec<f64>,
    /// Rows of positive weight that have a hole.
    holes: Vec<usize>,
    weight: f64,
    n_rows: usize,
}

impl PresentMeans {
    /// Of no rows yet.
    pub(crate) fn of_columns(d: usize, sparse: bool) -> Self {
        Self {
            sparse,
            pivot: vec![if sparse { 0.0 } else { f64::NAN }; d],
            sum: vec![0.0; d],
            carry: vec![0.0; d],
            range: vec![if sparse { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) }; d],
            missing: vec![0.0; d],
            holes: vec![0; d],
            weight: 0.0,
            n_rows: 0,
        }
    }

    /// Adds rows, with a weight for each or not.
    pub(crate) fn add(&mut self, rows: &Matrix<'_>, weights: Option<&[f64]>) {
        for l in 0..rows.n_rows() {
            let w = weights.map_or(1.0, |weights| weights[l]);
            if w == 0.0 {
                continue;
            }
            self.weight += w;
            self.n_rows += 1;
            rows.for_each_in_row(l, |j, x| self.add_entry(j, x, w));
        }
    }

    fn add_entry(&mut self, j: usize, x: f64, w: f64) {
        if x.is_nan() {
            self.missing[j] += w;
            self.holes[j] += 1;
            return;
        }
        if self.pivot[j].is_nan() {
            self.pivot[j] = x;
        }
        let (low, high) = self.range[j];
        self.range[j] = (low.min(x), high.max(x));
        let term = w * (x - self.pivot[j]);
        let sum = self.sum[j] + term;
        self.carry[j] += if self.sum[j].abs() >= term.abs() {
            (self.sum[j] - sum) + term
        } else {
            (term - sum) + self.sum[j]
        };
        self.sum[j] = sum;
    }

    /// Whether all values that are there are one.
    fn is_constant(&self, j: usize) -> bool {
        let (low, high) = self.range[j];
        low >= high
    }

    /// What holes are filled with. Refuses a column without a value.
    pub(crate) fn finish(self, single: bool) -> Result<Filling, Error> {
        let d = self.pivot.len();
        let is_empty =
            |j: usize| if self.sparse { self.holes[j] == self.n_rows } else { self.pivot[j].is_nan() };
        if let Some(column) = (0..d).find(|&j| is_empty(j)) {
            return Err(Error::NothingInColumn { column });
        }
        let (mut values, mut squares) = (vec![0.0; d], vec![0.0; d]);
        for j in 0..d {
            let present = self.weight - self.missing[j];
            let mean = self.pivot[j] + (self.sum[j] + self.carry[j]) / present;
            if !mean.is_finite() {
                continue; // an infinity, which the statistics will name
            }
            if single {
                values[j] = f64::from(mean as f32);
                continue;
            }
            values[j] = mean;
            let (low, high) = self.range[j];
            let off = 4.0 * f64::EPSILON * (mean.abs() + high - low);
            squares[j] = self.missing[j] / self.weight * off * off;
        }
        let constant = (0..d).map(|j| self.is_constant(j)).collect();
        Ok(Filling { values, constant, squares })
    }
}

/// What the holes of each column are filled with, and how far that can be off.
#[derive(Clone, Debug)]
pub(crate) struct Filling {
    pub(crate) values: Vec<f64>,
    /// Columns that have one value wherever they have any: nothing else is ever filled in there. Components say so to rounding only, of which a scale would
    /// make a column.
    constant: Vec<bool>,
    /// Mean over all rows of the squared error of what is filled in, a column.
    squares: Vec<f64>,
}

impl Filling {
    /// Of a matrix in memory.
    pub(crate) fn of(matrix: &Matrix<'_>, weights: Option<&[f64]>) -> Result<Self, Error> {
        let mut means = PresentMeans::of_columns(matrix.n_cols(), matrix.is_sparse());
        means.add(matrix, weights);
        means.finish(matrix.is_single())
    }

    /// Of genotypes, whose means are those of what is known. A mean of counts is rounded once; with weights Σw(x − c) is rounded besides, c the heaviest dosage,
    /// and Σw|x − c|/Σw is at most twice the distance of the mean from 0 or 2.
    pub(crate) fn of_genotypes(statistics: &ColumnStatistics, weighted: bool) -> Self {
        let sums =
            if weighted { rounding_of_sum(ColumnStatistics::additions(statistics.n_rows())) } else { 0.0 };
        let off = |mean: f64| f64::EPSILON * mean.abs() + 2.0 * sums * mean.min(2.0 - mean).abs();
        let squares = statistics.mean().iter().map(|mean| off(*mean).powi(2)).collect();
        let constant = Self::constant_columns(statistics);
        Self { values: statistics.mean().to_vec(), constant, squares }
    }

    /// The columns that have one value.
    pub(crate) fn constant_columns(statistics: &ColumnStatistics) -> Vec<bool> {
        statistics.min().iter().zip(statistics.max()).map(|(min, max)| min >= max).collect()
    }

    /// Leaves in constant columns what is there: `values` are those of the holes in these columns.
    pub(crate) fn keep_constants(&self, columns: &[u32], values: &mut [f64]) {
        let constant = columns.iter().zip(values).filter(|(j, _)| self.constant[**j as usize]);
        constant.for_each(|(j, value)| *value = self.values[*j as usize]);
    }

    /// How far C is from that of the matrix completed with the exact means: with prepared rows A and errors E, ‖E‖²/n = e, at most 2√(e·tr C) + e; and each
    /// column's scale is off by h of itself at most, which moves C by (2h + h²)tr C.
    pub(crate) fn moves(&self, map: &RowMap) -> f64 {
        let (mut e, mut h) = (0.0, 0.0_f64);
        for (j, square) in self.squares.iter().enumerate() {
            let scaled = square * map.inverse_scale(j).powi(2);
            e += scaled;
            h = h.max(scaled.sqrt());
        }
        let h = if map.scale().is_some() { 2.0 * h } else { 0.0 };
        let trace = map.total_variance();
        2.0 * (trace * e).sqrt() + e + h * (2.0 + h) * trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dense;

    const N: f64 = f64::NAN;

    #[test]
    fn means_are_of_what_is_there_also_far_from_zero_and_weighted() {
        let values = vec![N, 1e9 + 1.0, 2.0, N, 4.0, 1e9, N, 1e9 + 4.0];
        let x: Matrix = Dense::deferring_finite_check(values.into(), 4, 2).unwrap().into();
        let filling = Filling::of(&x, None).unwrap();
        assert_eq!(filling.values[0].to_bits(), 3.0_f64.to_bits());
        assert!((filling.values[1] - (1e9 + 5.0 / 3.0)).abs() <= 1e9 * f64::EPSILON);
        let weighted = Filling::of(&x, Some(&[1.0, 3.0, 1.0, 0.0])).unwrap();
        assert_eq!(weighted.values[0].to_bits(), 2.5_f64.to_bits());
        assert_eq!(weighted.values[1].to_bits(), (1e9 + 0.5_f64).to_bits());
    }

    #[test]
    fn a_column_with_nothing_in_it_is_named() {
        let x: Matrix = Dense::deferring_finite_check(vec![1.0, N, 2.0, N].into(), 2, 2).unwrap().into();
        let error = Filling::of(&x, None).unwrap_err();
        assert!(matches!(error, Error::NothingInColumn { column: 1 }), "{error}");
        let x: Matrix = Dense::deferring_finite_check(vec![1.0, 3.0, 2.0, N].into(), 2, 2).unwrap().into();
        assert!(Filling::of(&x, Some(&[0.0, 1.0])).is_err());
    }
}
