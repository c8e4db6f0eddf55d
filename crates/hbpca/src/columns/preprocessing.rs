//! Centring and scaling, never carried out: a row x enters the operator as a = D⁻¹(x − μ).

use serde::{Deserialize, Serialize};

use super::ColumnStatistics;
use crate::rounding::rounding_of_sum;

/// What is subtracted from every row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Centering {
    /// Nothing: the second moment about the origin (truncated SVD).
    None,
    /// The column means: principal components.
    #[default]
    Mean,
}

/// What every column is divided by. A column with a single value is divided by 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scaling {
    /// Nothing.
    #[default]
    None,
    /// Its standard deviation (denominator n).
    Std,
    /// √(2f(1 − f)) for genotypes, where f = mean/2 is the frequency of the allele that is counted: the standard deviation that
    /// Hardy–Weinberg equilibrium expects.
    Hwe,
    /// Its range, so that the values fill \[0, 1\]; without centring the minimum is subtracted, which is 0 and
    /// keeps sparsity for the usual counts and frequencies.
    MinMax,
}

impl Scaling {
    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Std => "std",
            Self::Hwe => "hwe",
            Self::MinMax => "minmax",
        }
    }
}

/// How rows are prepared before the covariance is taken.
///
/// ```
/// use hbpca::{Centering, Preprocessing, Scaling};
/// assert_eq!(Preprocessing::default(), Preprocessing { centering: Centering::Mean, scaling: Scaling::None });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preprocessing {
    /// What is subtracted.
    pub centering: Centering,
    /// What is divided by.
    pub scaling: Scaling,
}

impl Preprocessing {
    /// Rows as they are.
    pub const NONE: Self = Self { centering: Centering::None, scaling: Scaling::None };
    /// Means subtracted: ordinary principal components.
    pub const CENTER: Self = Self { centering: Centering::Mean, scaling: Scaling::None };
    /// Mean 0 and standard deviation 1, as for the paper's first four data sets.
    pub const STANDARDIZE: Self = Self { centering: Centering::Mean, scaling: Scaling::Std };
    /// Columns brought to \[0, 1\] without centring, as for the paper's last two data sets.
    pub const UNIT_RANGE: Self = Self { centering: Centering::None, scaling: Scaling::MinMax };

    /// The map of rows that these choices mean for columns with the given statistics.
    pub fn row_map(self, statistics: &ColumnStatistics) -> RowMap {
        let variance = statistics.variance();
        let divisor_or_one = |x: f64| if x > 0.0 { x } else { 1.0 };
        let scale: Option<Vec<f64>> = match self.scaling {
            Scaling::None => None,
            Scaling::Std => Some(variance.iter().map(|v| divisor_or_one(v.sqrt())).collect()),
            Scaling::Hwe => {
                Some(statistics.mean().iter().map(|m| divisor_or_one((m * (1.0 - m / 2.0)).sqrt())).collect())
            }
            Scaling::MinMax => Some(
                statistics
                    .min()
                    .iter()
                    .zip(statistics.max())
                    .map(|(lo, hi)| divisor_or_one(hi - lo))
                    .collect(),
            ),
        };
        let shift = match (self.centering, self.scaling) {
            (Centering::Mean, _) => Some(statistics.mean().to_vec()),
            (Centering::None, Scaling::MinMax) if statistics.min().iter().any(|&lo| lo != 0.0) => {
                Some(statistics.min().to_vec())
            }
            (Centering::None, _) => None,
        };
        let (mut total_variance, mut uncentred) = (0.0, 0.0);
        for (j, mean) in statistics.mean().iter().enumerate() {
            let inverse_square = scale.as_ref().map_or(1.0, |s| 1.0 / (s[j] * s[j]));
            let offset = mean - shift.as_ref().map_or(0.0, |s| s[j]);
            total_variance += (variance[j] + offset * offset) * inverse_square;
            let shifted = shift.as_ref().map_or(0.0, |s| s[j] * s[j]);
            uncentred += (variance[j] + mean * mean + shifted) * inverse_square;
        }
        let blur = if self.centering == Centering::Mean {
            blur(statistics, &variance, scale.as_deref())
        } else {
            0.0
        };
        RowMap { shift, scale, total_variance, uncentred, blur }
    }
}

/// A bound on ‖D⁻¹δ‖², δ = μ − fl(μ). A mean is a sum of n deviations from a row, σ in size but for the distance of that row, which is √n·σ at most
/// and no more than the range; and it is rounded itself. Columns that do not vary have exact means.
fn blur(statistics: &ColumnStatistics, variance: &[f64], scale: Option<&[f64]>) -> f64 {
    let n = statistics.n_rows();
    let relative = rounding_of_sum(ColumnStatistics::additions(n));
    let (mean, unit) = (statistics.mean(), f64::EPSILON / 2.0);
    (0..mean.len())
        .filter(|&j| variance[j] > 0.0)
        .map(|j| {
            let sigma = variance[j].sqrt();
            let pivot = ((n as f64).sqrt() * sigma).min(statistics.max()[j] - statistics.min()[j]);
            let off = unit * mean[j].abs() + relative * (sigma + pivot);
            (off * scale.map_or(1.0, |scale| 1.0 / scale[j])).powi(2)
        })
        .sum()
}

/// The map x ↦ D⁻¹(x − μ) with μ = [`shift`](Self::shift) and D = diag([`scale`](Self::scale)).
#[derive(Clone, Debug, PartialEq)]
pub struct RowMap {
    shift: Option<Vec<f64>>,
    scale: Option<Vec<f64>>,
    total_variance: f64,
    uncentred: f64,
    blur: f64,
}

impl RowMap {
    /// Rows as they are, whose ‖x‖² have the given mean.
    pub(crate) fn of_rows_as_they_are(moment: f64) -> Self {
        Self { shift: None, scale: None, total_variance: moment, uncentred: moment, blur: 0.0 }
    }

    /// As numbers, of d columns, for sending to other machines.
    pub(crate) fn to_flat(&self, d: usize) -> Vec<f64> {
        let flag = |column: &Option<Vec<f64>>| f64::from(u8::from(column.is_some()));
        let head =
            [flag(&self.shift), flag(&self.scale), self.total_variance, self.uncentred, self.blur, d as f64];
        let columns = [&self.shift, &self.scale].into_iter().flatten().flatten();
        head.into_iter().chain(columns.copied()).collect()
    }

    /// The inverse of [`to_flat`](Self::to_flat), and what follows it.
    pub(crate) fn from_flat(flat: &[f64], d: usize) -> Option<(Self, &[f64])> {
        let (&[shifts, scales, total_variance, uncentred, blur, columns], mut rest) =
            flat.split_first_chunk()?;
        if columns > 0.0 && columns as usize != d {
            return None;
        }
        let mut column = |there: f64| {
            if there == 0.0 {
                return Some(None);
            }
            let (column, after) = rest.split_at_checked(d)?;
            rest = after;
            Some(Some(column.to_vec()))
        };
        let (shift, scale) = (column(shifts)?, column(scales)?);
        Some((Self { shift, scale, total_variance, uncentred, blur }, rest))
    }

    /// μ, or nothing where nothing is subtracted.
    pub fn shift(&self) -> Option<&[f64]> {
        self.shift.as_deref()
    }

    /// The diagonal of D, or nothing where nothing is divided.
    pub fn scale(&self) -> Option<&[f64]> {
        self.scale.as_deref()
    }

    /// The j-th of the diagonal of D⁻¹.
    pub(crate) fn inverse_scale(&self, j: usize) -> f64 {
        self.scale.as_ref().map_or(1.0, |scale| 1.0 / scale[j])
    }

    /// Trace of C = (1/n)Σaaᵀ, exact up to rounding: the sum of all its eigenvalues.
    pub fn total_variance(&self) -> f64 {
        self.total_variance
    }

    /// What rounding the means adds: rows about fl(μ) have the covariance C + D⁻¹δ(D⁻¹δ)ᵀ, δ = μ − fl(μ), and this bounds the second term.
    pub(crate) fn blur(&self) -> f64 {
        self.blur
    }

    /// How far C is from that of rows before they were rounded to single precision. With prepared rows A and their errors E, ‖E‖² ≤ u²Σ‖D⁻¹x‖²,
    /// ‖(A + E)ᵀ(A + E) − AᵀA‖ ≤ 2‖A‖‖E‖ + ‖E‖². Each column's scale, too, is off, by h of itself at most, which moves C by (2h + h²)tr C.
    pub(crate) fn moved_by_narrowing(&self, statistics: Option<&ColumnStatistics>) -> f64 {
        let unit = f64::from(f32::EPSILON) / 2.0;
        let e = unit * unit * self.uncentred;
        let largest = |s: &ColumnStatistics, j: usize| s.max()[j].max(-s.min()[j]) * self.inverse_scale(j);
        let h = match statistics {
            Some(s) if self.scale.is_some() => {
                (0..s.n_cols()).map(|j| 2.0 * unit * largest(s, j)).fold(0.0, f64::max)
            }
            _ => 0.0,
        };
        2.0 * (self.total_variance * e).sqrt() + e + h * (2.0 + h) * self.total_variance
    }

    /// Columns, in ascending order, that hold nothing but μ in the rows that `statistics` are of: where a row has any weight they are
    /// zero in a.
    pub(crate) fn vanishing(&self, statistics: &ColumnStatistics) -> Vec<usize> {
        let subtracted = |j: usize| self.shift.as_ref().map_or(0.0, |shift| shift[j]);
        // Nowhere below and nowhere above; not so for NaN.
        let holds_only = |j: usize, x: f64| statistics.min()[j] >= x && statistics.max()[j] <= x;
        (0..statistics.mean().len()).filter(|&j| holds_only(j, subtracted(j))).collect()
    }

    /// The same μ, with D = I.
    pub(crate) fn without_scale(&self) -> Self {
        Self { scale: None, ..self.clone() }
    }

    /// Whether rows are so little longer before μ is taken from them that single precision may do so after its products.
    pub(crate) fn is_nearly_centred(&self) -> bool {
        self.uncentred <= 8.0 * self.total_variance
    }

    /// (1/n)Σ‖D⁻¹x‖² + ‖D⁻¹μ‖²: what rounding is relative to where μ is subtracted after the products (sparse rows).
    pub(crate) fn uncentred_moment(&self) -> f64 {
        self.uncentred
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dense, Matrix};

    fn statistics() -> ColumnStatistics {
        let x: Matrix = Dense::new(vec![0.0, 1.0, 7.0, 4.0, 3.0, 7.0], 2, 3).unwrap().into();
        ColumnStatistics::new(&x).unwrap()
    }

    #[test]
    fn standardising_makes_the_trace_the_number_of_varying_columns() {
        let map = Preprocessing::STANDARDIZE.row_map(&statistics());
        assert_eq!(map.scale(), Some(&[2.0, 1.0, 1.0][..])); // the constant column is divided by 1
        assert_eq!(map.total_variance().to_bits(), 2.0_f64.to_bits());
    }

    #[test]
    fn ranges_fill_zero_to_one() {
        let map = Preprocessing::UNIT_RANGE.row_map(&statistics());
        assert_eq!(map.shift(), Some(&[0.0, 1.0, 7.0][..]));
        assert_eq!(map.scale(), Some(&[4.0, 2.0, 1.0][..]));
        assert_eq!(map.total_variance().to_bits(), 1.0_f64.to_bits()); // rows (0,0,0) and (1,1,0)
    }

    #[test]
    fn nothing_subtracted_leaves_the_second_moment() {
        let map = Preprocessing::NONE.row_map(&statistics());
        assert!(map.shift().is_none() && map.scale().is_none());
        assert_eq!(map.total_variance().to_bits(), 62.0_f64.to_bits()); // (1 + 49 + 16 + 9 + 49) / 2
    }
}
