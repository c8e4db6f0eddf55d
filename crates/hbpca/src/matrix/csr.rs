//! Compressed rows: for each row its columns, ascending, and their values.

use std::borrow::Cow;

use rayon::prelude::*;

use super::{Real, all_finite, refuse_empty};
use crate::Error;

/// n rows over d columns; row l holds entries `row_starts[l] .. row_starts[l + 1]` of `columns` and `values`.
#[derive(Clone, Debug)]
pub struct Csr<'a, T: Real> {
    d: usize,
    row_starts: Cow<'a, [usize]>,
    columns: Cow<'a, [u32]>,
    values: Cow<'a, [T]>,
}

impl<'a, T: Real> Csr<'a, T> {
    /// Takes over or borrows compressed rows. Columns must ascend strictly within each row (sorted, no
    /// duplicates) and stay below d; every value must be finite.
    pub fn new(
        d: usize,
        row_starts: impl Into<Cow<'a, [usize]>>,
        columns: impl Into<Cow<'a, [u32]>>,
        values: impl Into<Cow<'a, [T]>>,
    ) -> Result<Self, Error> {
        let x = Self::deferring_finite_check(d, row_starts, columns, values)?;
        if all_finite(&x.values) { Ok(x) } else { Err(x.first_not_finite().expect("an entry is not finite")) }
    }

    /// Like [`Csr::new`], but leaves NaN and infinities to be found by [`ColumnStatistics`](crate::ColumnStatistics), which
    /// every fit computes.
    pub fn deferring_finite_check(
        d: usize,
        row_starts: impl Into<Cow<'a, [usize]>>,
        columns: impl Into<Cow<'a, [u32]>>,
        values: impl Into<Cow<'a, [T]>>,
    ) -> Result<Self, Error> {
        let x = Self { d, row_starts: row_starts.into(), columns: columns.into(), values: values.into() };
        refuse_empty(x.row_starts.len().saturating_sub(1), d)?;
        x.check_row_starts()?;
        x.check_columns()?;
        Ok(x)
    }

    fn check_row_starts(&self) -> Result<(), Error> {
        if self.columns.len() != self.values.len() {
            return Err(Error::shape(
                "values, one for each column index",
                self.columns.len(),
                self.values.len(),
            ));
        }
        if self.row_starts[0] != 0 {
            return Err(Error::Csr(format!("the first row starts at entry {}, not 0", self.row_starts[0])));
        }
        if let Some(l) = self.row_starts.windows(2).position(|pair| pair[1] < pair[0]) {
            let (from, to) = (self.row_starts[l], self.row_starts[l + 1]);
            return Err(Error::Csr(format!("row {l} ends at entry {to}, before its start {from}")));
        }
        let end = self.row_starts[self.n_rows()];
        if end != self.columns.len() {
            return Err(Error::Csr(format!(
                "the rows end at entry {end}, but {} entries are given",
                self.columns.len()
            )));
        }
        Ok(())
    }

    fn check_columns(&self) -> Result<(), Error> {
        /// Rows that a thread takes at a time.
        const CHUNK: usize = 1 << 10;
        let in_order = |pair: &[usize]| {
            let columns = &self.columns[pair[0]..pair[1]];
            // Without a way out in the middle the compiler compares many at once.
            let pairs = columns.iter().zip(columns.iter().skip(1));
            pairs.filter(|(a, b)| a >= b).count() == 0
                && columns.last().is_none_or(|last| (*last as usize) < self.d)
        };
        if self.row_starts.par_windows(2).with_min_len(CHUNK).all(in_order) {
            return Ok(());
        }
        for l in 0..self.n_rows() {
            let columns = &self.columns[self.row_starts[l]..self.row_starts[l + 1]];
            if let Some(pair) = columns.windows(2).find(|pair| pair[1] <= pair[0]) {
                let fault = if pair[0] == pair[1] { "is given twice" } else { "comes after a larger one" };
                return Err(Error::Csr(format!(
                    "row {l}: column {} {fault}; sort the columns and sum duplicates first",
                    pair[1]
                )));
            }
            if let Some(&last) = columns.last()
                && last as usize >= self.d
            {
                return Err(Error::Csr(format!(
                    "row {l} has column {last}, but there are only {} columns",
                    self.d
                )));
            }
        }
        Ok(())
    }

    /// The stored entry (l, j) ← value, rounded to the type; what is not stored stays 0. Borrowed values are copied first.
    pub(crate) fn set(&mut self, l: usize, j: usize, value: f64) {
        let entries = self.row_starts[l]..self.row_starts[l + 1];
        if let Ok(at) = self.columns[entries.clone()].binary_search(&(j as u32)) {
            self.values.to_mut()[entries.start + at] = T::from_f64(value);
        }
    }

    /// NaN ← the value of its column.
    pub(crate) fn fill_holes(&mut self, values: &[f64]) {
        for (x, j) in self.values.to_mut().iter_mut().zip(&*self.columns) {
            if x.to_f64().is_nan() {
                *x = T::from_f64(values[*j as usize]);
            }
        }
    }

    /// The same numbers in f64.
    pub(crate) fn widened(&self) -> Csr<'static, f64> {
        let values = self.values.iter().map(|x| x.to_f64()).collect();
        Csr {
            d: self.d,
            row_starts: Cow::Owned(self.row_starts.to_vec()),
            columns: Cow::Owned(self.columns.to_vec()),
            values: Cow::Owned(values),
        }
    }

    /// Row l ← 0, entry by entry.
    pub(crate) fn clear_row(&mut self, l: usize) {
        let entries = self.row_starts[l]..self.row_starts[l + 1];
        self.values.to_mut()[entries].fill(T::default());
    }

    /// The error naming the first NaN or infinity, if there is one.
    pub(crate) fn first_not_finite(&self) -> Option<Error> {
        (0..self.n_rows()).find_map(|row| {
            let (column, value) = self.row(row).find(|(_, v)| !v.to_f64().is_finite())?;
            Some(Error::NotFinite { row, column, value: value.to_f64() })
        })
    }

    pub(crate) fn select_rows(&self, rows: &[usize]) -> Csr<'static, T> {
        let (mut row_starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for &l in rows {
            let (row_columns, row_values) = self.row_slices(l);
            columns.extend_from_slice(row_columns);
            values.extend_from_slice(row_values);
            row_starts.push(columns.len());
        }
        Csr { d: self.d, row_starts: row_starts.into(), columns: columns.into(), values: values.into() }
    }

    /// n.
    pub fn n_rows(&self) -> usize {
        self.row_starts.len() - 1
    }

    /// d.
    pub fn n_cols(&self) -> usize {
        self.d
    }

    /// Entries stored.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Entries of row l as (column, value).
    pub fn row(&self, l: usize) -> impl Iterator<Item = (usize, T)> + '_ {
        let (columns, values) = self.row_slices(l);
        columns.iter().map(|&j| j as usize).zip(values.iter().copied())
    }

    /// Columns and values of row l.
    #[inline]
    pub fn row_slices(&self, l: usize) -> (&[u32], &[T]) {
        let entries = self.row_starts[l]..self.row_starts[l + 1];
        (&self.columns[entries.clone()], &self.values[entries])
    }

    /// Where each row starts, and after the last row its end: n + 1 numbers.
    pub fn row_starts(&self) -> &[usize] {
        &self.row_starts
    }

    /// Column of every entry.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Value of every entry.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Row starts, columns and values themselves; borrowed ones are copied.
    pub fn into_parts(self) -> (Vec<usize>, Vec<u32>, Vec<T>) {
        (self.row_starts.into_owned(), self.columns.into_owned(), self.values.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csr(starts: &[usize], columns: &[u32], values: &[f64]) -> Result<Csr<'static, f64>, Error> {
        Csr::new(3, starts.to_vec(), columns.to_vec(), values.to_vec())
    }

    #[test]
    fn rows_are_found() {
        let x = csr(&[0, 2, 2, 3], &[0, 2, 1], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(x.row(0).collect::<Vec<_>>(), [(0, 1.0), (2, 2.0)]);
        assert_eq!(x.row(1).count(), 0);
        assert_eq!((x.n_rows(), x.n_cols(), x.nnz()), (3, 3, 3));
    }

    #[test]
    fn each_malformed_part_is_named() {
        let text = |x: Result<Csr<f64>, Error>| x.unwrap_err().to_string();
        assert!(text(csr(&[1, 2], &[0, 1], &[1.0, 1.0])).contains("starts at entry 1"));
        assert!(text(csr(&[0, 2, 1], &[0, 1], &[1.0, 1.0])).contains("row 1 ends at entry 1, before"));
        assert!(text(csr(&[0, 1], &[0, 1], &[1.0, 1.0])).contains("rows end at entry 1, but 2"));
        assert!(text(csr(&[0, 1], &[0], &[1.0, 1.0])).contains("2 given where 1"));
        assert!(text(csr(&[0, 1], &[3], &[1.0])).contains("row 0 has column 3"));
        assert!(text(csr(&[0, 2], &[1, 1], &[1.0, 1.0])).contains("column 1 is given twice"));
        assert!(text(csr(&[0, 2], &[2, 1], &[1.0, 1.0])).contains("column 1 comes after"));
        assert!(text(csr(&[0, 1], &[1], &[f64::NAN])).contains("row 0, column 1"));
        assert!(matches!(csr(&[0], &[], &[]), Err(Error::Empty { n: 0, d: 3 })));
        assert!(matches!(csr(&[], &[], &[]), Err(Error::Empty { .. })));
        assert!(matches!(Csr::<f32>::new(0, vec![0, 0], vec![], vec![]), Err(Error::Empty { n: 1, d: 0 })));
    }
}
