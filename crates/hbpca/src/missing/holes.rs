//! Where values are missing.

use rayon::prelude::*;

use crate::matrix::Matrix;

/// The places of NaN in a matrix, row by row: 4 bytes each, and 16 for every row that has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holes {
    d: usize,
    /// Rows with holes, ascending.
    rows: Vec<usize>,
    /// Holes of row `rows[i]` are `columns[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    columns: Vec<u32>,
}

impl Holes {
    /// Those of `matrix`.
    pub fn of(matrix: &Matrix<'_>) -> Self {
        /// Rows that a thread takes at a time.
        const CHUNK: usize = 256;
        let has_hole = |l: &usize| {
            let mut found = false;
            matrix.for_each_in_row(*l, |_, x| found |= x.is_nan());
            found
        };
        let rows: Vec<usize> =
            (0..matrix.n_rows()).into_par_iter().with_min_len(CHUNK).filter(has_hole).collect();
        let (mut starts, mut columns) = (vec![0], Vec::new());
        for &l in &rows {
            matrix.for_each_in_row(l, |j, x| {
                if x.is_nan() {
                    columns.push(j as u32);
                }
            });
            starts.push(columns.len());
        }
        Self { d: matrix.n_cols(), rows, starts, columns }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Rows that have one, ascending.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The columns of the holes in row `rows()[i]`, ascending.
    pub fn columns_of(&self, i: usize) -> &[u32] {
        &self.columns[self.starts[i]..self.starts[i + 1]]
    }

    /// How many there are in each column.
    pub fn per_column(&self) -> Vec<usize> {
        let mut counts = vec![0; self.d];
        self.columns.iter().for_each(|&j| counts[j as usize] += 1);
        counts
    }

    /// Of n rows those without a hole, ascending.
    pub fn complete_rows(&self, n: usize) -> Vec<usize> {
        let mut with = self.rows.iter().copied().peekable();
        (0..n).filter(|l| with.next_if_eq(l).is_none()).collect()
    }

    /// Writes one value into each, in order.
    pub(crate) fn fill(&self, matrix: &mut Matrix<'_>, values: impl IntoIterator<Item = f64>) {
        let mut values = values.into_iter();
        for (i, &l) in self.rows.iter().enumerate() {
            for &j in self.columns_of(i) {
                matrix.set(l, j as usize, values.next().unwrap_or(f64::NAN));
            }
        }
    }

    /// The values that `matrix` holds there, in order.
    pub(crate) fn values_in(&self, matrix: &Matrix<'_>) -> Vec<f64> {
        let mut values = Vec::with_capacity(self.len());
        for (i, &l) in self.rows.iter().enumerate() {
            let mut wanted = self.columns_of(i).iter().copied().peekable();
            matrix.for_each_in_row(l, |j, x| {
                if wanted.next_if_eq(&(j as u32)).is_some() {
                    values.push(x);
                }
            });
        }
        values
    }

    /// The column of each, in order.
    pub(crate) fn columns(&self) -> &[u32] {
        &self.columns
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are stored and read back")]
mod tests {
    use super::*;
    use crate::{Csr, Dense};

    const N: f64 = f64::NAN;

    #[test]
    fn holes_are_found_counted_and_filled_dense_and_compressed() {
        let dense = vec![1.0, N, 3.0, 4.0, 5.0, 6.0, N, N, N];
        let dense: Matrix = Dense::deferring_finite_check(dense.into(), 3, 3).unwrap().into();
        // (1, NaN, ·), (·, 5, ·), (NaN, NaN, NaN)
        let (starts, columns) = (vec![0, 2, 3, 6], vec![0_u32, 1, 1, 0, 1, 2]);
        let csr: Matrix =
            Csr::deferring_finite_check(3, starts, columns, vec![1.0, N, 5.0, N, N, N]).unwrap().into();
        for mut x in [dense, csr] {
            let holes = Holes::of(&x);
            assert_eq!((holes.len(), holes.rows()), (4, &[0, 2][..]));
            assert_eq!((holes.columns_of(0), holes.columns_of(1)), (&[1][..], &[0, 1, 2][..]));
            assert_eq!((holes.per_column(), holes.complete_rows(3)), (vec![1, 2, 1], vec![1]));
            holes.fill(&mut x, [9.0, 7.0, 8.0, 6.0]);
            assert!(Holes::of(&x).is_empty());
            assert_eq!(holes.values_in(&x), [9.0, 7.0, 8.0, 6.0]);
        }
    }

    #[test]
    fn an_infinity_is_no_hole() {
        let x: Matrix = Dense::deferring_finite_check(vec![f64::INFINITY, 1.0].into(), 2, 1).unwrap().into();
        assert!(Holes::of(&x).is_empty());
    }
}
