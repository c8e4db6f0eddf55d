//! Mean, variance, minimum and maximum of every column in one stable pass.
//!
//! E\[x²\] − E\[x\]² loses everything when the mean is large against the spread. Here every few rows (dense)
//! or chunk of rows (sparse) have a sum of squared *deviations* M₂ from its own mean, and two such
//! summaries merge exactly (Chan, Golub & LeVeque 1983):
//!
//! ```text
//! δ = mean_b − mean_a,   mean = mean_a + δ·w_b/w,   M₂ = M₂ₐ + M₂_b + δ²·wₐw_b/w,   w = wₐ + w_b
//! ```
//!
//! Rounded means would leave δ an error of u·|mean|, and M₂ one of u·|mean|/σ relative to itself. Dense rows are therefore
//! summarised relative to one of them, of the largest weight: it is no further than √n·σ from the mean.

use super::entries::Entries;
use crate::kernels::Stored;
use crate::matrix::{Csr, Dense, Matrix, each_matrix};
use crate::{Archive, CancelToken, Error, kernels, ordered};

/// Dense rows summarised together: they stay in cache between the sum and the squares.
const RUN: usize = 32;

/// Weighted mean, spread and range of each column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnStatistics {
    n_rows: usize,
    weight: f64,
    mean: Vec<f64>,
    squares: Vec<f64>,
    min: Vec<f64>,
    max: Vec<f64>,
}

impl ColumnStatistics {
    /// One pass over `matrix`. Refuses NaN, infinities and columns whose squares overflow, naming the place.
    pub fn new(matrix: &Matrix<'_>) -> Result<Self, Error> {
        Self::gather(matrix, None, &CancelToken::default())
    }

    /// The same with a weight for every row; a row of weight 2 counts as two equal rows, one of weight 0 not at all.
    pub fn weighted(matrix: &Matrix<'_>, weights: &[f64]) -> Result<Self, Error> {
        Self::gather(matrix, Some(weights), &CancelToken::default())
    }

    /// With weights or without; breaks off in the middle of the pass when `cancel` says so.
    pub(crate) fn gather(
        matrix: &Matrix<'_>,
        weights: Option<&[f64]>,
        cancel: &CancelToken,
    ) -> Result<Self, Error> {
        if let Some(weights) = weights {
            check_weights(matrix.n_rows(), weights)?;
        }
        let pivot = Self::pivot_at(matrix, weights.map_or(0, heaviest));
        let mut statistics = Self::relative_to(&pivot, matrix, weights, cancel);
        statistics.move_by(&pivot);
        cancel.go_on()?;
        statistics.settle_constant_columns();
        statistics.refuse_not_finite(matrix)?;
        statistics.refuse_underflow()?;
        Ok(statistics)
    }

    /// What means are told relative to while they are gathered: a row of dense data; compressed rows are mostly zero.
    pub(crate) fn pivot_at(matrix: &Matrix<'_>, row: usize) -> Vec<f64> {
        let mut pivot = vec![0.0; matrix.n_cols()];
        if !matrix.is_sparse() {
            matrix.for_each_in_row(row, |j, x| pivot[j] = x);
        }
        pivot
    }

    /// The statistics of `matrix`, means less `pivot`.
    pub(crate) fn relative_to(
        pivot: &[f64],
        matrix: &Matrix<'_>,
        weights: Option<&[f64]>,
        cancel: &CancelToken,
    ) -> Self {
        match matrix {
            Matrix::DenseF32(x) => Self::of_dense(x, pivot, weights, cancel),
            Matrix::DenseF64(x) => Self::of_dense(x, pivot, weights, cancel),
            Matrix::CsrF32(x) => Self::of_csr(x, weights, cancel),
            Matrix::CsrF64(x) => Self::of_csr(x, weights, cancel),
        }
    }

    /// What is known of all rows once means, gathered less `pivot`, are told about zero. Refuses what overflows or underflows.
    pub(crate) fn about_zero(mut self, pivot: &[f64]) -> Result<Self, Error> {
        self.move_by(pivot);
        self.settle_constant_columns();
        self.refuse_overflow()?;
        self.refuse_underflow()?;
        Ok(self)
    }

    /// Adds `pivot` to the means.
    pub(crate) fn move_by(&mut self, pivot: &[f64]) {
        self.mean.iter_mut().zip(pivot).for_each(|(mean, pivot)| *mean += pivot);
    }

    /// Additions, one after the other, behind the mean of n rows at most: runs, runs in a chunk, chunks. Compressed rows of a column are added one
    /// by one; the rounding of their means is small beside that of their products.
    pub(crate) fn additions(n: usize) -> usize {
        RUN + n / RUN + ordered::MOST_CHUNKS
    }

    fn of_dense<T: Stored>(
        x: &Dense<'_, T>,
        pivot: &[f64],
        weights: Option<&[f64]>,
        cancel: &CancelToken,
    ) -> Self {
        let (n, d) = (x.n_rows(), x.n_cols());
        Self::over_chunks(n, d, ordered::n_chunks(x.nnz(), d), |rows, partial| {
            let mut run = Self::empty(d);
            let (from, to) = (rows.start, rows.end);
            for start in (from..to).step_by(RUN) {
                if cancel.breaks_off() {
                    return;
                }
                let rows = start..to.min(start + RUN);
                run.weight = kernels::summarise_rows(x, rows, weights, pivot, run.columns_mut());
                partial.merge(&run);
            }
        })
    }

    fn of_csr<T: Stored>(x: &Csr<'_, T>, weights: Option<&[f64]>, cancel: &CancelToken) -> Self {
        let (n, d) = (x.n_rows(), x.n_cols());
        let n_chunks = ordered::n_chunks(x.nnz(), d);
        let mut total = Self::empty(d);
        ordered::for_each_chunk(
            n_chunks,
            &mut vec![(0.0, Vec::new()); rayon::current_num_threads().min(n_chunks)],
            |i, (weight, columns): &mut (f64, Vec<Entries>)| {
                *weight = 0.0;
                columns.clear();
                columns.resize(d, Entries::default());
                if cancel.breaks_off() {
                    return;
                }
                for l in ordered::chunk(n, i, n_chunks) {
                    let w = weights.map_or(1.0, |weights| weights[l]);
                    if w == 0.0 {
                        continue;
                    }
                    *weight += w;
                    let (at, values) = x.row_slices(l);
                    at.iter().zip(values).for_each(|(j, v)| columns[*j as usize].add(w, v.to_f64()));
                }
            },
            |_, (weight, columns)| {
                total.merge_columns(0, *weight, |j| columns[j].summary(*weight));
            },
        );
        total.n_rows = n;
        total
    }

    fn over_chunks(
        n: usize,
        d: usize,
        n_chunks: usize,
        summarise: impl Fn(std::ops::Range<usize>, &mut Self) + Sync,
    ) -> Self {
        let mut total = Self::empty(d);
        let mut partials = vec![Self::empty(d); rayon::current_num_threads().min(n_chunks)];
        ordered::for_each_chunk(
            n_chunks,
            &mut partials,
            |i, partial| {
                partial.clear();
                summarise(ordered::chunk(n, i, n_chunks), partial);
            },
            |_, partial| total.merge(partial),
        );
        total.n_rows = n;
        total
    }

    pub(crate) fn empty(d: usize) -> Self {
        Self {
            n_rows: 0,
            weight: 0.0,
            mean: vec![0.0; d],
            squares: vec![0.0; d],
            min: vec![f64::INFINITY; d],
            max: vec![f64::NEG_INFINITY; d],
        }
    }

    fn clear(&mut self) {
        self.n_rows = 0;
        self.weight = 0.0;
        self.mean.fill(0.0);
        self.squares.fill(0.0);
        self.min.fill(f64::INFINITY);
        self.max.fill(f64::NEG_INFINITY);
    }

    fn columns_mut(&mut self) -> [&mut [f64]; 4] {
        [&mut self.mean, &mut self.squares, &mut self.min, &mut self.max]
    }

    /// Adds the summary of other rows. Exact in exact arithmetic, in any order.
    pub fn merge(&mut self, other: &Self) {
        self.merge_columns(other.n_rows, other.weight, |j| {
            (other.mean[j], other.squares[j], other.min[j], other.max[j])
        });
    }

    /// The same for rows whose column j has the mean, squared deviations, minimum and maximum that `summary(j)` tells.
    fn merge_columns(
        &mut self,
        n_rows: usize,
        other_weight: f64,
        summary: impl Fn(usize) -> (f64, f64, f64, f64),
    ) {
        self.n_rows += n_rows;
        let weight = self.weight + other_weight;
        if other_weight > 0.0 {
            let share = other_weight / weight;
            let cross = self.weight * share;
            for j in 0..self.mean.len() {
                let (mean, squares, min, max) = summary(j);
                let delta = mean - self.mean[j];
                self.mean[j] += delta * share;
                self.squares[j] += squares + delta * delta * cross;
                self.min[j] = self.min[j].min(min);
                self.max[j] = self.max[j].max(max);
            }
        }
        self.weight = weight;
    }

    /// Counts rows that weigh nothing.
    pub(crate) fn count_rows(&mut self, n: usize) {
        self.n_rows += n;
    }

    /// The same statistics where weights were scaled: their sum is `weight`.
    pub(crate) fn weighing(mut self, weight: f64) -> Self {
        let factor = weight / self.weight;
        self.squares.iter_mut().for_each(|square| *square *= factor);
        self.weight = weight;
        self
    }

    /// A column with one value throughout has exactly that mean and no spread, whatever rounding made of it.
    fn settle_constant_columns(&mut self) {
        for j in 0..self.mean.len() {
            if self.min[j] >= self.max[j] && self.mean[j].is_finite() {
                self.mean[j] = self.min[j];
                self.squares[j] = 0.0;
            }
        }
    }

    pub(crate) fn refuse_not_finite(&self, matrix: &Matrix<'_>) -> Result<(), Error> {
        self.refuse_overflow()
            .map_err(|error| each_matrix!(matrix, x => x.first_not_finite()).unwrap_or(error))
    }

    /// Refuses columns whose squares left the range of f64, and those that hold NaN or an infinity.
    fn refuse_overflow(&self) -> Result<(), Error> {
        // Σx² = M₂ + w·mean² of a column, and their sum over all columns, bound every sum of products.
        let sum_of_squares = |j: usize| self.squares[j] + self.weight * self.mean[j] * self.mean[j];
        if (0..self.n_cols()).map(sum_of_squares).sum::<f64>().is_finite() {
            return Ok(());
        }
        let magnitude = |j: usize| self.max[j].max(-self.min[j]);
        let first_largest = |a, b| if magnitude(b) > magnitude(a) { b } else { a };
        let column = (0..self.n_cols()).fold(0, first_largest);
        Err(Error::Overflow { column, magnitude: magnitude(column) })
    }

    /// Refuses columns that vary, but whose squared deviations have lost digits: numbers below 2⁻¹⁰²² have fewer, and are off by up to 2⁻¹⁰⁷⁵ each.
    fn refuse_underflow(&self) -> Result<(), Error> {
        let least = self.weight * f64::MIN_POSITIVE;
        let vanishes = |j: &usize| self.min[*j] < self.max[*j] && self.squares[*j] < least;
        match (0..self.n_cols()).find(vanishes) {
            Some(column) => Err(Error::Underflow { column, range: self.max[column] - self.min[column] }),
            None => Ok(()),
        }
    }

    /// n.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// d.
    pub fn n_cols(&self) -> usize {
        self.mean.len()
    }

    /// Sum of the row weights; n without weights.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Column means.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Column variances with denominator n (the sum of weights).
    pub fn variance(&self) -> Vec<f64> {
        self.squares.iter().map(|s| s / self.weight).collect()
    }

    /// Smallest value of each column, implicit zeros included.
    pub fn min(&self) -> &[f64] {
        &self.min
    }

    /// Largest value of each column, implicit zeros included.
    pub fn max(&self) -> &[f64] {
        &self.max
    }

    /// Walks over everything, for a checkpoint.
    pub(crate) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        let d = self.n_cols();
        archive.size("n_rows", &mut self.n_rows)?;
        archive.number("weight", &mut self.weight)?;
        archive.check("weight", self.weight > 0.0, "is not positive")?;
        let names = ["mean", "squares", "min", "max"];
        for (name, column) in
            names.into_iter().zip([&mut self.mean, &mut self.squares, &mut self.min, &mut self.max])
        {
            archive.list(name, column)?;
            archive.check(name, column.len() == d, "has not one number for each column")?;
        }
        Ok(())
    }

    /// The statistics of `n_rows` rows that were computed before, `variance` with denominator n.
    pub fn from_columns(
        n_rows: usize,
        mean: Vec<f64>,
        variance: &[f64],
        min: Vec<f64>,
        max: Vec<f64>,
    ) -> Result<Self, Error> {
        let d = mean.len();
        if n_rows == 0 || d == 0 {
            return Err(Error::Empty { n: n_rows, d });
        }
        for (what, found) in [("variances", variance.len()), ("minima", min.len()), ("maxima", max.len())] {
            if found != d {
                return Err(Error::shape(format!("column {what}"), d, found));
            }
        }
        let in_order =
            |j: usize| mean[j].is_finite() && min[j] <= max[j] && (0.0..f64::INFINITY).contains(&variance[j]);
        if let Some(j) = (0..d).find(|&j| !in_order(j)) {
            let value = format!("mean {}, variance {}, range {} … {}", mean[j], variance[j], min[j], max[j]);
            let advice = format!("no column has these (column {j}, counted from 0)");
            return Err(Error::parameter("statistics", value, advice));
        }
        let weight = n_rows as f64;
        Ok(Self { n_rows, weight, mean, squares: variance.iter().map(|v| v * weight).collect(), min, max })
    }

    /// As one flat list of numbers, for sending to other machines.
    pub(crate) fn to_flat(&self) -> Vec<f64> {
        let head = [self.n_rows as f64, self.weight];
        [&head[..], &self.mean, &self.squares, &self.min, &self.max].concat()
    }

    /// The inverse of [`ColumnStatistics::to_flat`].
    pub(crate) fn from_flat(flat: &[f64]) -> Self {
        let d = (flat.len() - 2) / 4;
        let column = |i: usize| flat[2 + i * d..2 + (i + 1) * d].to_vec();
        Self {
            n_rows: flat[0] as usize,
            weight: flat[1],
            mean: column(0),
            squares: column(1),
            min: column(2),
            max: column(3),
        }
    }
}

/// The first row of the largest weight.
pub(crate) fn heaviest(weights: &[f64]) -> usize {
    (0..weights.len()).fold(0, |best, l| if weights[l] > weights[best] { l } else { best })
}

/// Refuses weights that are missing, negative, not finite or all zero.
pub(crate) fn check_weights(n: usize, weights: &[f64]) -> Result<(), Error> {
    check_each_weight(n, weights)?;
    if weights.iter().all(|w| *w == 0.0) {
        return Err(all_weights_zero());
    }
    Ok(())
}

pub(crate) fn all_weights_zero() -> Error {
    Error::parameter("weights", "all zero", "at least one row needs a positive weight")
}

/// The same for some of the rows, others of which may weigh something.
pub(crate) fn check_each_weight(n: usize, weights: &[f64]) -> Result<(), Error> {
    if weights.len() != n {
        return Err(Error::shape("row weights, one for each row", n, weights.len()));
    }
    if let Some(l) = weights.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
        let value = format!("{} (row {l})", weights[l]);
        return Err(Error::parameter("weight", value, "weights must be finite and not negative"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(rows: &[&[f64]]) -> Matrix<'static> {
        Dense::new(rows.concat(), rows.len(), rows[0].len()).unwrap().into()
    }

    #[test]
    fn small_case_by_hand() {
        let s = ColumnStatistics::new(&dense(&[&[1.0, 5.0], &[2.0, 5.0], &[6.0, 5.0]])).unwrap();
        assert_eq!(s.mean(), [3.0, 5.0]);
        assert_eq!(s.variance(), [14.0 / 3.0, 0.0]); // ((−2)² + (−1)² + 3²) / 3
        assert_eq!((s.min(), s.max()), (&[1.0, 5.0][..], &[6.0, 5.0][..]));
    }

    #[test]
    fn statistics_come_back_from_their_columns() {
        let s = ColumnStatistics::new(&dense(&[&[1.0, 5.0], &[2.0, 5.0], &[6.0, 5.0], &[0.0, 5.0]])).unwrap();
        let columns = |variance: &[f64], max: &[f64]| {
            ColumnStatistics::from_columns(4, s.mean().to_vec(), variance, s.min().to_vec(), max.to_vec())
        };
        // n = 4: dividing by it and multiplying again is exact.
        assert_eq!(columns(&s.variance(), s.max()).unwrap(), s);
        assert!(
            columns(&[1.0], s.max()).unwrap_err().to_string().contains("column variances: 1 given where 2")
        );
        for (variance, max) in
            [([1.0, f64::NAN], [6.0, 5.0]), ([1.0, 0.0], [6.0, 4.0]), ([-1.0, 0.0], [6.0, 5.0])]
        {
            assert!(columns(&variance, &max).unwrap_err().to_string().contains("no column has these"));
        }
        assert!(ColumnStatistics::from_columns(0, vec![], &[], vec![], vec![]).is_err());
    }

    #[test]
    fn a_mean_a_billion_times_the_spread_does_no_harm() {
        let n = 10_000;
        // Spread −1, 0, 1 around 1e9: variance exactly 2/3 when n is a multiple of 3.
        let values: Vec<f64> = (0..3 * n).map(|l| 1e9 + f64::from(l % 3) - 1.0).collect();
        let x: Matrix = Dense::new(values, 3 * n as usize, 1).unwrap().into();
        let s = ColumnStatistics::new(&x).unwrap();
        // Relative to a row near the mean everything is of the size of the spread: n terms of rounding, whatever the mean.
        let bound = f64::EPSILON * s.weight() * 2.0 / 3.0;
        assert!((s.variance()[0] - 2.0 / 3.0).abs() < bound, "{:e}", s.variance()[0] - 2.0 / 3.0);
    }

    #[test]
    fn integer_weights_are_repeated_rows_and_sparse_is_dense() {
        let rows: [&[f64]; 4] = [&[1.0, 0.0, 2.0], &[0.0, 0.0, -1.0], &[4.0, 3.0, 0.0], &[9.0, 9.0, 9.0]];
        let weights = [2.0, 1.0, 3.0, 0.0];
        let repeated = dense(&[rows[0], rows[0], rows[1], rows[2], rows[2], rows[2]]);
        let sparse: Matrix = Csr::new(
            3,
            vec![0, 2, 3, 5, 8],
            vec![0, 2, 2, 0, 1, 0, 1, 2],
            vec![1., 2., -1., 4., 3., 9., 9., 9.],
        )
        .unwrap()
        .into();
        let want = ColumnStatistics::new(&repeated).unwrap();
        for x in [dense(&rows), sparse] {
            let s = ColumnStatistics::weighted(&x, &weights).unwrap();
            for j in 0..3 {
                assert!((s.mean()[j] - want.mean()[j]).abs() < 1e-15);
                assert!((s.variance()[j] - want.variance()[j]).abs() < 1e-14);
            }
            assert_eq!((s.min(), s.max(), s.weight()), (want.min(), want.max(), 6.0));
        }
    }

    #[test]
    fn constant_columns_have_exactly_no_spread() {
        let x = dense(&[&[0.1][..]; 1000]);
        let s = ColumnStatistics::new(&x).unwrap();
        assert_eq!((s.mean()[0].to_bits(), s.variance()[0]), (0.1_f64.to_bits(), 0.0));
    }

    #[test]
    fn what_the_constructor_deferred_is_found() {
        let mut values = vec![1.0_f32; 3000];
        values[2345] = f32::NAN;
        let x: Matrix = Dense::deferring_finite_check(values.into(), 1000, 3).unwrap().into();
        let error = ColumnStatistics::new(&x).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 781, column: 2, .. }), "{error}");
    }

    #[test]
    fn squares_that_overflow_are_refused_by_column() {
        let error = ColumnStatistics::new(&dense(&[&[1.0, 1e200], &[1.0, -1e200]])).unwrap_err();
        assert!(error.to_string().contains("column 1"), "{error}");
    }

    #[test]
    fn bad_weights_are_refused() {
        let x = dense(&[&[1.0], &[2.0]]);
        for (weights, text) in [
            (&[1.0][..], "1 given where 2"),
            (&[1.0, -1.0], "weight = -1 (row 1)"),
            (&[f64::NAN, 1.0], "weight = NaN (row 0)"),
            (&[0.0, 0.0], "at least one row"),
        ] {
            let error = ColumnStatistics::weighted(&x, weights).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
