//! A uniform sample of the rows, kept in memory while the rest stays on disk.
//!
//! n is known, so that no reservoir with replacement is needed: selection sampling (Knuth, *The Art of Computer Programming*,
//! volume 2, algorithm S) takes row l with probability (rows still wanted)/(rows still to come). Every set of r rows is
//! equally likely, exactly r are taken, in ascending order, and nothing but the rows themselves is kept. Every pass draws
//! anew, from a stream of the generator that depends on the seed and the number of the pass alone.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::Error;
use crate::matrix::{Csr, Dense, Matrix, Real, below};

/// Resident rows.
#[derive(Debug)]
pub(super) struct Pool {
    /// r: rows that a full pass leaves behind.
    size: usize,
    seed: u64,
    /// Their numbers, ascending.
    rows: Vec<usize>,
    matrix: Option<Matrix<'static>>,
    growing: Option<Growing>,
}

/// A pool during a pass.
#[derive(Debug)]
struct Growing {
    generator: ChaCha8Rng,
    /// Rows still to come, and how many of them are wanted.
    to_come: usize,
    wanted: usize,
    taken: Option<Taken>,
}

/// Rows copied so far.
#[derive(Debug)]
enum Taken {
    DenseF32(Vec<f32>),
    DenseF64(Vec<f64>),
    CsrF32(Vec<usize>, Vec<u32>, Vec<f32>),
    CsrF64(Vec<usize>, Vec<u32>, Vec<f64>),
}

impl Pool {
    /// A pool of `size` rows, still empty.
    pub(super) fn of_size(size: usize, seed: u64) -> Self {
        Self { size, seed, rows: Vec::new(), matrix: None, growing: None }
    }

    /// The numbers of the resident rows.
    pub(super) fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The resident rows.
    pub(super) fn matrix(&self) -> Option<&Matrix<'static>> {
        self.matrix.as_ref()
    }

    /// r: rows that a full pass leaves behind.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Empties the pool, to be filled by `count` rows that the caller chose.
    pub(super) fn begin_sample(&mut self, count: usize) {
        self.begin_pass(0, count);
        if let Some(growing) = &mut self.growing {
            (growing.to_come, growing.wanted) = (count, count);
        }
    }

    /// Empties the pool, to be filled by a pass over `n` rows.
    pub(super) fn begin_pass(&mut self, pass: u64, n: usize) {
        self.rows.clear();
        let mut generator = ChaCha8Rng::seed_from_u64(self.seed);
        generator.set_stream(2 + pass); // 0 and 1 belong to batches and start vectors
        let taken = self.matrix.take().map(Taken::emptied);
        let wanted = self.size.min(n);
        self.growing = (wanted > 0).then_some(Growing { generator, to_come: n, wanted, taken });
    }

    /// Takes what it wants of the next rows.
    pub(super) fn take_from(&mut self, first_row: usize, rows: &Matrix<'_>) {
        let Some(growing) = &mut self.growing else { return };
        let taken = growing.taken.get_or_insert_with(|| Taken::room_for(rows, growing.wanted));
        for l in 0..rows.n_rows() {
            if growing.wanted == 0 {
                return;
            }
            if below(&mut growing.generator, growing.to_come as u64) < growing.wanted as u64 {
                self.rows.push(first_row + l);
                taken.push(rows, l);
                growing.wanted -= 1;
            }
            growing.to_come -= 1;
        }
    }

    /// The pass is over: the rows can be used.
    pub(super) fn end_pass(&mut self, d: usize) -> Result<(), Error> {
        if let Some(Growing { taken: Some(taken), .. }) = self.growing.take() {
            self.matrix = Some(taken.into_matrix(self.rows.len(), d)?);
        }
        Ok(())
    }

    /// Where rows lie in the pool, or nothing if one of them is not there. Both lists ascend.
    pub(super) fn places(&self, rows: &[usize], places: &mut Vec<usize>) -> bool {
        places.clear();
        let mut at = 0;
        for &row in rows {
            at += self.rows[at..].partition_point(|&have| have < row);
            if self.rows.get(at) != Some(&row) {
                return false;
            }
            places.push(at);
        }
        self.matrix.is_some()
    }
}

impl Taken {
    /// Room for `count` rows like those of `rows`.
    fn room_for(rows: &Matrix<'_>, count: usize) -> Self {
        fn starts(count: usize) -> Vec<usize> {
            let mut starts = Vec::with_capacity(count + 1);
            starts.push(0);
            starts
        }
        match rows {
            Matrix::DenseF32(x) => Self::DenseF32(Vec::with_capacity(count * x.n_cols())),
            Matrix::DenseF64(x) => Self::DenseF64(Vec::with_capacity(count * x.n_cols())),
            Matrix::CsrF32(_) => Self::CsrF32(starts(count), Vec::new(), Vec::new()),
            Matrix::CsrF64(_) => Self::CsrF64(starts(count), Vec::new(), Vec::new()),
        }
    }

    /// The memory of a pool before, without its rows.
    fn emptied(before: Matrix<'static>) -> Self {
        fn dense<T: Real>(x: Dense<'static, T>) -> Vec<T> {
            let mut values = x.into_values();
            values.clear();
            values
        }
        fn csr<T: Real>(x: Csr<'static, T>) -> (Vec<usize>, Vec<u32>, Vec<T>) {
            let (mut starts, mut columns, mut values) = x.into_parts();
            starts.truncate(1);
            columns.clear();
            values.clear();
            (starts, columns, values)
        }
        match before {
            Matrix::DenseF32(x) => Self::DenseF32(dense(x)),
            Matrix::DenseF64(x) => Self::DenseF64(dense(x)),
            Matrix::CsrF32(x) => {
                let (starts, columns, values) = csr(x);
                Self::CsrF32(starts, columns, values)
            }
            Matrix::CsrF64(x) => {
                let (starts, columns, values) = csr(x);
                Self::CsrF64(starts, columns, values)
            }
        }
    }

    /// Copies row l. All chunks of a source are of one kind.
    fn push(&mut self, rows: &Matrix<'_>, l: usize) {
        fn csr<T: Real>(
            x: &Csr<'_, T>,
            l: usize,
            starts: &mut Vec<usize>,
            columns: &mut Vec<u32>,
            values: &mut Vec<T>,
        ) {
            let (row_columns, row_values) = x.row_slices(l);
            columns.extend_from_slice(row_columns);
            values.extend_from_slice(row_values);
            starts.push(columns.len());
        }
        match (self, rows) {
            (Self::DenseF32(values), Matrix::DenseF32(x)) => values.extend_from_slice(x.row(l)),
            (Self::DenseF64(values), Matrix::DenseF64(x)) => values.extend_from_slice(x.row(l)),
            (Self::CsrF32(starts, columns, values), Matrix::CsrF32(x)) => csr(x, l, starts, columns, values),
            (Self::CsrF64(starts, columns, values), Matrix::CsrF64(x)) => csr(x, l, starts, columns, values),
            _ => unreachable!("a source hands out one kind of matrix"),
        }
    }

    fn into_matrix(self, n: usize, d: usize) -> Result<Matrix<'static>, Error> {
        Ok(match self {
            Self::DenseF32(values) => Dense::deferring_finite_check(values.into(), n, d)?.into(),
            Self::DenseF64(values) => Dense::deferring_finite_check(values.into(), n, d)?.into(),
            Self::CsrF32(starts, columns, values) => {
                Csr::deferring_finite_check(d, starts, columns, values)?.into()
            }
            Self::CsrF64(starts, columns, values) => {
                Csr::deferring_finite_check(d, starts, columns, values)?.into()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: std::ops::Range<usize>) -> Matrix<'static> {
        let n = values.len();
        Dense::new(values.map(|x| x as f64).collect(), n, 1).unwrap().into()
    }

    fn passed(size: usize, seed: u64, pass: u64, cuts: &[usize]) -> Pool {
        let mut pool = Pool::of_size(size, seed);
        pool.begin_pass(pass, cuts[cuts.len() - 1]);
        for cut in cuts.windows(2) {
            pool.take_from(cut[0], &column(cut[0]..cut[1]));
        }
        pool.end_pass(1).unwrap();
        pool
    }

    #[test]
    fn every_set_of_rows_is_equally_likely() {
        // 10 sets of 3 rows out of 5; counts are binomial with mean 1000 and deviation 30: six of them hold for all.
        let draws = 10_000;
        let mut counts = std::collections::BTreeMap::new();
        for pass in 0..draws {
            let pool = passed(3, 1, pass, &[0, 2, 5]);
            *counts.entry(pool.rows().to_vec()).or_insert(0.0) += 1.0;
        }
        assert_eq!(counts.len(), 10);
        for (rows, count) in counts {
            assert!((count - 1000.0_f64).abs() < 6.0 * 30.0, "{rows:?}: {count}");
        }
    }

    #[test]
    fn chunks_do_not_change_the_draw_and_passes_do() {
        let whole = passed(7, 3, 0, &[0, 100]);
        let cut = passed(7, 3, 0, &[0, 1, 2, 50, 99, 100]);
        assert_eq!(whole.rows(), cut.rows());
        assert_eq!(whole.rows().len(), 7);
        let Some(Matrix::DenseF64(x)) = cut.matrix() else { panic!("no rows") };
        let expected: Vec<f64> = cut.rows().iter().map(|&l| l as f64).collect();
        assert_eq!(x.values(), expected);
        assert_ne!(passed(7, 3, 1, &[0, 100]).rows(), whole.rows());
        assert_ne!(passed(7, 4, 0, &[0, 100]).rows(), whole.rows());
    }

    #[test]
    fn a_second_pass_replaces_all_rows_in_the_same_memory() {
        let mut pool = passed(4, 0, 0, &[0, 50]);
        let (first, place) = (pool.rows().to_vec(), pool.rows().as_ptr());
        pool.begin_pass(1, 50);
        assert!(pool.rows().is_empty() && pool.matrix().is_none());
        pool.take_from(0, &column(0..50));
        pool.end_pass(1).unwrap();
        assert_ne!(pool.rows(), first);
        assert_eq!(pool.rows().as_ptr(), place);
    }

    #[test]
    fn rows_are_found_by_number_or_not_at_all() {
        let pool = passed(10, 5, 0, &[0, 30]);
        let mut places = Vec::new();
        let wanted = [pool.rows()[1], pool.rows()[1], pool.rows()[8]];
        assert!(pool.places(&wanted, &mut places));
        assert_eq!(places, [1, 1, 8]);
        let missing = (0..30).find(|l| !pool.rows().contains(l)).unwrap();
        assert!(!pool.places(&[missing], &mut places));
        assert!(!Pool::of_size(3, 0).places(&[0], &mut places));
        assert_eq!(passed(100, 0, 0, &[0, 30]).rows().len(), 30); // no more than there are
    }
}
