//! Dense rows, one after the other in memory, with room allowed between them.

use std::borrow::Cow;

use super::{Real, all_finite, refuse_empty};
use crate::Error;

/// n rows of d values each; row l starts at `l·stride`.
#[derive(Clone, Debug)]
pub struct Dense<'a, T: Real> {
    n: usize,
    d: usize,
    stride: usize,
    values: Cow<'a, [T]>,
}

impl<'a, T: Real> Dense<'a, T> {
    /// Takes over row-major `values`; every entry must be finite.
    pub fn new(values: Vec<T>, n: usize, d: usize) -> Result<Self, Error> {
        Self::build(Cow::Owned(values), n, d, d)?.refuse_not_finite()
    }

    /// Borrows row-major `values` without copying; every entry must be finite.
    pub fn borrowed(values: &'a [T], n: usize, d: usize) -> Result<Self, Error> {
        Self::build(Cow::Borrowed(values), n, d, d)?.refuse_not_finite()
    }

    /// Borrows rows that start every `stride ≥ d` values; every entry must be finite.
    pub fn strided(values: &'a [T], n: usize, d: usize, stride: usize) -> Result<Self, Error> {
        Self::build(Cow::Borrowed(values), n, d, stride)?.refuse_not_finite()
    }

    /// Like [`Dense::new`] or [`Dense::borrowed`], but leaves NaN and infinities to be found by
    /// [`ColumnStatistics`](crate::ColumnStatistics), which every fit computes: one read of the data less.
    pub fn deferring_finite_check(values: Cow<'a, [T]>, n: usize, d: usize) -> Result<Self, Error> {
        Self::build(values, n, d, d)
    }

    /// The same for rows with room between them.
    pub fn strided_deferring_finite_check(
        values: &'a [T],
        n: usize,
        d: usize,
        stride: usize,
    ) -> Result<Self, Error> {
        Self::build(Cow::Borrowed(values), n, d, stride)
    }

    fn build(values: Cow<'a, [T]>, n: usize, d: usize, stride: usize) -> Result<Self, Error> {
        refuse_empty(n, d)?;
        if stride < d {
            return Err(Error::shape("values from one row's start to the next", d, stride));
        }
        let needed = (n - 1).checked_mul(stride).and_then(|x| x.checked_add(d)).unwrap_or(usize::MAX);
        if values.len() < needed || (stride == d && values.len() != needed) {
            return Err(Error::shape(format!("values for {n} rows × {d} columns"), needed, values.len()));
        }
        Ok(Self { n, d, stride, values })
    }

    fn refuse_not_finite(self) -> Result<Self, Error> {
        let finite = if self.stride == self.d {
            all_finite(&self.values)
        } else {
            (0..self.n).all(|l| all_finite(self.row(l)))
        };
        if finite { Ok(self) } else { Err(self.first_not_finite().expect("an entry is not finite")) }
    }

    /// The error naming the first NaN or infinity, if there is one.
    pub(crate) fn first_not_finite(&self) -> Option<Error> {
        (0..self.n).find_map(|row| {
            let column = self.row(row).iter().position(|x| !x.to_f64().is_finite())?;
            Some(Error::NotFinite { row, column, value: self.row(row)[column].to_f64() })
        })
    }

    pub(crate) fn select_rows(&self, rows: &[usize]) -> Dense<'static, T> {
        let values: Vec<T> = rows.iter().flat_map(|&l| self.row(l)).copied().collect();
        Dense { n: rows.len(), d: self.d, stride: self.d, values: Cow::Owned(values) }
    }

    /// Entry (l, j) ← value, rounded to the type. Borrowed values are copied first.
    pub(crate) fn set(&mut self, l: usize, j: usize, value: f64) {
        let at = l * self.stride + j;
        self.values.to_mut()[at] = T::from_f64(value);
    }

    /// NaN ← the value of its column.
    pub(crate) fn fill_holes(&mut self, values: &[f64]) {
        let (d, stride) = (self.d, self.stride);
        for row in self.values.to_mut().chunks_mut(stride) {
            for (x, value) in row[..d].iter_mut().zip(values) {
                if x.to_f64().is_nan() {
                    *x = T::from_f64(*value);
                }
            }
        }
    }

    /// The same numbers in f64.
    pub(crate) fn widened(&self) -> Dense<'static, f64> {
        let values = (0..self.n).flat_map(|l| self.row(l)).map(|x| x.to_f64()).collect();
        Dense { n: self.n, d: self.d, stride: self.d, values: Cow::Owned(values) }
    }

    /// Row l ← 0.
    pub(crate) fn clear_row(&mut self, l: usize) {
        let (start, d) = (l * self.stride, self.d);
        self.values.to_mut()[start..start + d].fill(T::default());
    }

    /// n.
    pub fn n_rows(&self) -> usize {
        self.n
    }

    /// d.
    pub fn n_cols(&self) -> usize {
        self.d
    }

    /// n·d.
    pub fn nnz(&self) -> usize {
        self.n * self.d
    }

    /// Values from one row's start to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Row l.
    #[inline]
    pub fn row(&self, l: usize) -> &[T] {
        &self.values[l * self.stride..l * self.stride + self.d]
    }

    /// All values, gaps included when the stride exceeds d.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values themselves; borrowed ones are copied.
    pub fn into_values(self) -> Vec<T> {
        self.values.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_with_and_without_gaps() {
        let values = [1.0, 2.0, -1.0, 3.0, 4.0, -1.0, 5.0, 6.0];
        let x = Dense::strided(&values, 3, 2, 3).unwrap();
        assert_eq!(x.row(2), [5.0, 6.0]);
        let y = Dense::borrowed(&values, 4, 2).unwrap();
        assert_eq!(y.row(1), [-1.0, 3.0]);
    }

    #[test]
    fn wrong_shapes_are_refused() {
        assert!(matches!(
            Dense::new(vec![0.0_f64; 5], 2, 3),
            Err(Error::Shape { expected: 6, found: 5, .. })
        ));
        assert!(matches!(Dense::new(vec![0.0_f64; 7], 2, 3), Err(Error::Shape { .. })));
        assert!(matches!(Dense::new(Vec::<f32>::new(), 0, 3), Err(Error::Empty { n: 0, d: 3 })));
        assert!(matches!(Dense::new(Vec::<f32>::new(), 3, 0), Err(Error::Empty { n: 3, d: 0 })));
        assert!(Dense::strided(&[0.0_f64; 6], 2, 3, 2).is_err());
        assert!(Dense::new(vec![0.0_f32; 4], usize::MAX, usize::MAX).is_err());
    }

    #[test]
    fn the_first_entry_that_is_not_finite_is_named() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for at in [0, 17, 40_000, 99_999] {
                let mut values = vec![1.0_f64; 100_000];
                values[at] = bad;
                let Err(Error::NotFinite { row, column, .. }) = Dense::new(values, 1000, 100) else {
                    panic!("{bad} at {at} was accepted")
                };
                assert_eq!((row, column), (at / 100, at % 100));
            }
        }
        let largest = vec![f32::MAX; 64];
        assert!(Dense::new(largest, 8, 8).is_ok());
    }
}
