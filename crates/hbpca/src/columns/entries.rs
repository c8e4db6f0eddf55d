//! What the entries of compressed rows say about their columns, and about all of them together.

use super::ColumnStatistics;
use super::statistics::check_weights;
use crate::matrix::Matrix;
use crate::{CancelToken, Error, ordered};

/// What is stored of a column of compressed rows, side by side: an entry finds all of it in one cache line. Sums are relative to
/// an entry that outweighs all before it, for the reason that those of dense rows are relative to a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entries {
    pivot: f64,
    weight: f64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Entries {
    #[inline]
    pub(super) fn add(&mut self, w: f64, value: f64) {
        if self.weight == 0.0 {
            (self.pivot, self.min, self.max) = (value, value, value);
        } else if w > self.weight {
            self.move_pivot(value);
        }
        let deviation = value - self.pivot;
        self.weight += w;
        self.sum += w * deviation;
        self.squares += w * deviation * deviation;
        // min and max pass over NaN; the sums do not.
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
    }

    /// Makes sums relative to `value`: Σw(x − q) = Σw(x − p) − WΔ and Σw(x − q)² = Σw(x − p)² − 2ΔΣw(x − p) + WΔ², with Δ = q − p.
    #[cold]
    fn move_pivot(&mut self, value: f64) {
        let delta = value - self.pivot;
        self.squares += delta * (self.weight * delta - 2.0 * self.sum);
        self.sum -= self.weight * delta;
        self.pivot = value;
    }

    /// Mean, squared deviations, minimum and maximum of the entries and the zeros that are not stored, among rows of the
    /// given weight.
    #[inline]
    pub(super) fn summary(&self, weight: f64) -> (f64, f64, f64, f64) {
        let zeros = weight - self.weight;
        if self.weight == 0.0 {
            return (0.0, 0.0, 0.0, 0.0);
        }
        let offset = self.sum / self.weight;
        let (mean, squares) = (self.pivot + offset, (self.squares - self.sum * offset).max(0.0));
        if zeros > 0.0 {
            let share = self.weight / weight;
            return (
                mean * share,
                squares + mean * mean * share * zeros,
                self.min.min(0.0),
                self.max.max(0.0),
            );
        }
        (mean, squares, self.min, self.max)
    }
}

/// The weight of compressed rows, and the mean of their ‖x‖²: all there is to know of rows that stay as they are. One pass that
/// touches the values alone; refuses what [`ColumnStatistics`] refuses.
pub(crate) fn weight_and_moment(
    matrix: &Matrix<'_>,
    weights: Option<&[f64]>,
    cancel: &CancelToken,
) -> Result<(f64, f64), Error> {
    if let Some(weights) = weights {
        check_weights(matrix.n_rows(), weights)?;
    }
    let (n, n_chunks) = (matrix.n_rows(), ordered::n_chunks(matrix.nnz(), 1));
    let mut total = (0.0, 0.0);
    ordered::for_each_chunk(
        n_chunks,
        &mut vec![(0.0, 0.0); rayon::current_num_threads().min(n_chunks)],
        |i, (weight, sum)| {
            (*weight, *sum) = (0.0, 0.0);
            for l in ordered::chunk(n, i, n_chunks) {
                let w = weights.map_or(1.0, |weights| weights[l]);
                let mut square = 0.0;
                matrix.for_each_in_row(l, |_, x| square += x * x);
                *weight += w;
                *sum += w * square;
            }
        },
        |_, (weight, sum)| total = (total.0 + *weight, total.1 + *sum),
    );
    cancel.go_on()?;
    if !(total.1.is_finite() && total.1 >= total.0 * f64::MIN_POSITIVE) {
        // A row of weight zero may hold anything: the statistics pass over it, and so must this. They also refuse what underflows.
        let statistics = ColumnStatistics::gather(matrix, weights, cancel)?;
        let squares = statistics.mean().iter().zip(statistics.variance()).map(|(mean, v)| mean * mean + v);
        return Ok((statistics.weight(), squares.sum()));
    }
    Ok((total.0, total.1 / total.0))
}
