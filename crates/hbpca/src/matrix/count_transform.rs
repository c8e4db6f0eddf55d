//! Counts of cells, as single-cell analysis prepares them: every row to the same total, then log(1 + x). Zeros stay zeros.

use serde::{Deserialize, Serialize};

use super::Real;
use crate::Error;

/// What is done with the counts of a row before its covariance is taken.
///
/// ```
/// use hbpca::CountTransform;
/// let transform = CountTransform { total: Some(100.0), log1p: true };
/// let row = [3.0_f32, 0.0, 1.0];
/// let factor = transform.factor(&row); // 100 / 4
/// assert_eq!(transform.of(3.0, factor), 75.0_f64.ln_1p());
/// assert_eq!(transform.of(0.0, factor), 0.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CountTransform {
    /// What the counts of a row, over all columns of the data, are brought to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Whether log(1 + x) is taken.
    pub log1p: bool,
}

impl CountTransform {
    /// Refuses a total that is none.
    pub fn check(&self) -> Result<(), Error> {
        match self.total {
            Some(total) if !(total > 0.0 && total.is_finite()) => Err(Error::parameter(
                "normalize",
                total,
                "a total of counts is a positive number, such as 1e4",
            )),
            _ => Ok(()),
        }
    }

    /// Whether values stay what they are.
    pub fn is_identity(&self) -> bool {
        self.total.is_none() && !self.log1p
    }

    /// The position of the first value that is no count: negative or not a number.
    pub fn first_refused<T: Real>(&self, row: &[T]) -> Option<usize> {
        if self.is_identity() {
            None
        } else {
            row.iter().position(|x| x.to_f64().is_nan() || x.to_f64() < 0.0)
        }
    }

    /// What the values of a row are multiplied by: total/Σx, and 1 where Σx = 0 or no total is asked for.
    pub fn factor<T: Real>(&self, row: &[T]) -> f64 {
        let Some(total) = self.total else { return 1.0 };
        let sum: f64 = row.iter().map(|x| x.to_f64()).sum();
        if sum > 0.0 { total / sum } else { 1.0 }
    }

    /// What a value becomes, in a row of this factor.
    #[inline]
    pub fn of(&self, x: f64, factor: f64) -> f64 {
        let scaled = x * factor;
        if self.log1p { scaled.ln_1p() } else { scaled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_get_the_total_and_empty_rows_stay_empty() {
        let transform = CountTransform { total: Some(1e4), log1p: false };
        let row = [1.0_f64, 2.0, 5.0];
        let factor = transform.factor(&row);
        let sum: f64 = row.iter().map(|x| transform.of(*x, factor)).sum();
        assert!((sum - 1e4).abs() <= 1e4 * 4.0 * f64::EPSILON, "{sum}");
        let none = transform.factor::<f32>(&[0.0, 0.0]);
        assert_eq!(transform.of(0.0, none).to_bits(), 0.0_f64.to_bits());
        assert!(CountTransform::default().is_identity());
    }

    #[test]
    fn totals_that_are_none_and_values_that_are_no_counts_are_refused() {
        for total in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let text = CountTransform { total: Some(total), log1p: true }.check().unwrap_err().to_string();
            assert!(text.contains("such as 1e4"), "{text}");
        }
        let log1p = CountTransform { total: None, log1p: true };
        assert_eq!(log1p.first_refused(&[0.0_f32, 2.0, -0.5]), Some(2));
        assert_eq!(log1p.first_refused(&[f64::NAN]), Some(0));
        assert_eq!(CountTransform::default().first_refused(&[-1.0_f32]), None);
    }
}
