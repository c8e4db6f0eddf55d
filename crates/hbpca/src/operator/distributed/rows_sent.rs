//! Rows that travel, for a sample.

use super::Communicator;
use crate::Error;
use crate::matrix::{Csr, Dense, Matrix};

/// Rows as a list of numbers: dense ones as they are, compressed ones as their length, then columns and values in turn.
pub(in crate::operator) fn encode(rows: &Matrix<'_>, compressed: bool) -> Vec<f64> {
    let mut numbers = Vec::new();
    for l in 0..rows.n_rows() {
        let start = numbers.len();
        if compressed {
            numbers.push(0.0);
            rows.for_each_in_row(l, |j, x| numbers.extend([j as f64, x]));
            numbers[start] = ((numbers.len() - start) / 2) as f64;
        } else {
            numbers.resize(start + rows.n_cols(), 0.0);
            rows.for_each_in_row(l, |j, x| numbers[start + j] = x);
        }
    }
    numbers
}

/// All rows together; the numbers of f32 rows are exact in f64.
pub(in crate::operator) fn decode(
    numbers: Vec<f64>,
    n: usize,
    d: usize,
    compressed: bool,
) -> Result<Matrix<'static>, Error> {
    if !compressed {
        return Ok(Dense::deferring_finite_check(numbers.into(), n, d)?.into());
    }
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut numbers = numbers.into_iter();
    while let Some(length) = numbers.next() {
        for _ in 0..length as usize {
            columns.push(numbers.next().unwrap_or(f64::NAN) as u32);
            values.push(numbers.next().unwrap_or(f64::NAN));
        }
        starts.push(columns.len());
    }
    Ok(Csr::deferring_finite_check(d, starts, columns, values)?.into())
}

/// Sends rows to rank 0, which returns those of all ranks in the order of the ranks, if there are any.
pub(super) fn gather(
    ranks: &dyn Communicator,
    rows: &[Matrix<'_>],
    d: usize,
    compressed: bool,
) -> Result<Option<Matrix<'static>>, Error> {
    let mut all: Vec<f64> = rows.iter().flat_map(|rows| encode(rows, compressed)).collect();
    let mut n: usize = rows.iter().map(Matrix::n_rows).sum();
    if ranks.rank() > 0 {
        ranks.send(&[n as f64, all.len() as f64], 0)?;
        ranks.send(&all, 0)?;
        return Ok(None);
    }
    for rank in 1..ranks.size() {
        let mut head = [0.0; 2];
        ranks.receive(&mut head, rank)?;
        n += head[0] as usize;
        let from = all.len();
        all.resize(from + head[1] as usize, 0.0);
        ranks.receive(&mut all[from..], rank)?;
    }
    if n == 0 { Ok(None) } else { decode(all, n, d, compressed).map(Some) }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "numbers that were sent are the same")]
mod tests {
    use super::*;

    #[test]
    fn rows_arrive_as_they_were_in_either_storage() {
        let dense: Matrix<'_> = Dense::new(vec![1.0, 0.0, -2.5, 0.0, 0.0, 0.0], 2, 3).unwrap().into();
        let sparse: Matrix<'_> = Csr::new(3, vec![0, 2, 2], vec![0, 2], vec![1.0, -2.5]).unwrap().into();
        for rows in [&dense, &sparse] {
            for compressed in [false, true] {
                let back = decode(encode(rows, compressed), 2, 3, compressed).unwrap();
                assert_eq!(back.is_sparse(), compressed);
                for l in 0..2 {
                    let mut entries = [[0.0; 3]; 2];
                    rows.for_each_in_row(l, |j, x| entries[0][j] = x);
                    back.for_each_in_row(l, |j, x| entries[1][j] = x);
                    assert_eq!(entries[0], entries[1]);
                }
            }
        }
    }
}
