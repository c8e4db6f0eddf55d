//! Column statistics of a matrix that comes in chunks.

use super::ColumnStatistics;
use crate::matrix::Matrix;
use crate::{CancelToken, Error};

/// Gathers the statistics of all chunks seen so far.
///
/// Means stay relative to the first row until the end: those of two chunks then differ without the rounding of their size.
#[derive(Debug)]
pub(crate) struct GatheredStatistics {
    pivot: Option<Vec<f64>>,
    total: ColumnStatistics,
}

impl GatheredStatistics {
    /// Nothing seen yet of `d` columns.
    pub(crate) fn of_columns(d: usize) -> Self {
        Self { pivot: None, total: ColumnStatistics::empty(d) }
    }

    /// Nothing seen yet; means stay relative to `pivot`: with weights the heaviest row, which is no further than √n·σ from the mean.
    pub(crate) fn about(pivot: &[f64]) -> Self {
        Self { pivot: Some(pivot.to_vec()), total: ColumnStatistics::empty(pivot.len()) }
    }

    /// Adds the rows of `chunk`, the first of which is row `first_row`, with a weight for each or not. Refuses NaN and infinities, naming
    /// the place.
    pub(crate) fn add(
        &mut self,
        chunk: &Matrix<'_>,
        weights: Option<&[f64]>,
        first_row: usize,
        cancel: &CancelToken,
    ) -> Result<(), Error> {
        let pivot = self.pivot.get_or_insert_with(|| ColumnStatistics::pivot_at(chunk, 0));
        let partial = ColumnStatistics::relative_to(pivot, chunk, weights, cancel);
        cancel.go_on()?;
        partial.refuse_not_finite(chunk).map_err(|error| match error {
            Error::NotFinite { row, column, value } => {
                Error::NotFinite { row: row + first_row, column, value }
            }
            other => other,
        })?;
        self.total.merge(&partial);
        Ok(())
    }

    /// Whether nothing was added that has any weight.
    pub(crate) fn is_empty(&self) -> bool {
        self.total.weight() == 0.0
    }

    /// The statistics of everything added.
    pub(crate) fn finish(self) -> Result<ColumnStatistics, Error> {
        let Self { pivot, total } = self;
        total.about_zero(pivot.as_deref().unwrap_or_default())
    }

    /// The same with means that are still less the pivot, to be merged with others of the same pivot.
    pub(crate) fn relative(self) -> ColumnStatistics {
        self.total
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;
    use crate::Dense;

    fn gathered(values: &[f64], d: usize, cuts: &[usize]) -> Result<ColumnStatistics, Error> {
        let mut gathered = GatheredStatistics::of_columns(d);
        for cut in cuts.windows(2) {
            let chunk = values[cut[0] * d..cut[1] * d].to_vec();
            let chunk = Dense::deferring_finite_check(chunk.into(), cut[1] - cut[0], d)?.into();
            gathered.add(&chunk, None, cut[0], &CancelToken::default())?;
        }
        gathered.finish()
    }

    #[test]
    fn chunks_give_what_the_whole_gives_also_far_from_zero() {
        // Spread −1, 0, 1 around 1e9, and a column that never changes.
        let values: Vec<f64> = (0..300).flat_map(|l| [1e9 + f64::from(l % 3) - 1.0, 0.1]).collect();
        for cuts in [&[0, 300][..], &[0, 1, 2, 300], &[0, 7, 150, 299, 300]] {
            let s = gathered(&values, 2, cuts).unwrap();
            assert!((s.variance()[0] - 2.0 / 3.0).abs() <= 300.0 * f64::EPSILON, "{cuts:?}");
            assert_eq!((s.mean()[1], s.variance()[1]), (0.1, 0.0));
            assert_eq!((s.n_rows(), s.weight()), (300, 300.0));
            assert_eq!((s.min()[0], s.max()[0]), (1e9 - 1.0, 1e9 + 1.0));
        }
    }

    #[test]
    fn the_row_of_a_bad_entry_is_counted_from_the_first_chunk() {
        let mut values = vec![1.0; 40];
        values[27] = f64::NAN;
        let error = gathered(&values, 2, &[0, 5, 11, 20]).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 13, column: 1, .. }), "{error}");
    }

    #[test]
    fn squares_that_overflow_together_are_refused() {
        let error = gathered(&[1e154, 1e154, -1e154, 1e154], 1, &[0, 1, 2, 3, 4]).unwrap_err();
        assert!(matches!(error, Error::Overflow { column: 0, .. }), "{error}");
    }
}
