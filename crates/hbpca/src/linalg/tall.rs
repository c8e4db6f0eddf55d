//! A growing set of long vectors.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use super::CHUNK;
use crate::{Archive, Block, Error};

/// A d×a matrix, column by column: vectors are appended without moving the others.
#[derive(Clone, Debug)]
pub(crate) struct Tall {
    d: usize,
    values: Vec<f64>,
}

impl Tall {
    pub(crate) fn empty(d: usize) -> Self {
        Self { d, values: Vec::new() }
    }

    /// Makes room for `a` vectors, and not for more.
    pub(crate) fn reserve(&mut self, a: usize) {
        self.values.reserve_exact((a * self.d).saturating_sub(self.values.len()));
    }

    /// Vectors that follow each other; values that do not fill another one are left out.
    pub(crate) fn from_values(d: usize, mut values: Vec<f64>) -> Self {
        values.truncate(values.len() / d.max(1) * d);
        Self { d, values }
    }

    /// Walks over all vectors, any number.
    pub(crate) fn archive(&mut self, name: &str, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.columns_of(name, self.d, &mut self.values)
    }

    /// a, the number of vectors.
    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.d.max(1)
    }

    pub(crate) fn view(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.values, self.d, self.len())
    }

    /// The same vectors, coordinate by coordinate.
    pub(crate) fn to_block(&self) -> Block {
        let (d, a) = (self.d, self.len());
        let mut block = Block::zeros(d, a);
        for (c, column) in self.values.chunks_exact(d.max(1)).enumerate() {
            block.values_mut().iter_mut().skip(c).step_by(a).zip(column).for_each(|(to, x)| *to = *x);
        }
        block
    }

    /// Appends the columns of `block`.
    pub(crate) fn append(&mut self, block: &Block) {
        /// Coordinates at a time: they stay in cache while every column takes its own.
        const RUN: usize = 256;
        let (d, p, first) = (self.d, block.p(), self.values.len());
        self.values.resize(first + d * p, 0.0);
        let new = &mut self.values[first..];
        for start in (0..d).step_by(RUN) {
            let rows = &block.values()[start * p..d.min(start + RUN) * p];
            for c in 0..p {
                let column = &mut new[c * d + start..];
                rows.iter().skip(c).step_by(p).zip(column).for_each(|(x, to)| *to = *x);
            }
        }
    }

    /// Q ← QS for a×r coefficients S, r ≤ a, in place.
    pub(crate) fn combine(&mut self, s: MatRef<'_, f64>) {
        let (d, a, r) = (self.d, self.len(), s.ncols());
        assert!(s.nrows() == a && r <= a, "{a} vectors combined by {}×{r} coefficients", s.nrows());
        if d > 0 && a > 0 {
            combine_rows(MatMut::from_column_major_slice_mut(&mut self.values, d, a), s);
        }
        self.values.truncate(d * r);
    }
}

/// The first columns of Q ← QS, chunk by chunk on all threads.
fn combine_rows(q: MatMut<'_, f64>, s: MatRef<'_, f64>) {
    let rows = q.nrows();
    if rows > CHUNK {
        let (upper, lower) = q.split_at_row_mut((rows / 2).next_multiple_of(CHUNK).min(rows - 1));
        rayon::join(|| combine_rows(upper, s), || combine_rows(lower, s));
        return;
    }
    let mut combined = Mat::zeros(rows, s.ncols());
    matmul(combined.as_mut(), Accum::Replace, q.as_ref(), s, 1.0, Par::Seq);
    q.subcols_mut(0, s.ncols()).copy_from(&combined);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{gram, product, view};
    use crate::matrix::random_direction;

    #[test]
    fn appended_and_combined_columns_are_those_of_the_blocks() {
        for d in [1, 3, 255, 257, 2 * CHUNK + 7] {
            let blocks =
                [1, 3, 2].map(|p| Block::from_values(d, p, random_direction(p as u64, d * p)).unwrap());
            let mut tall = Tall::empty(d);
            blocks.iter().for_each(|block| tall.append(block));
            assert_eq!(tall.len(), 6);
            for j in 0..d {
                let row: Vec<f64> = (0..6).map(|c| tall.view()[(j, c)]).collect();
                let want: Vec<f64> =
                    blocks.iter().flat_map(|b| &b.values()[j * b.p()..(j + 1) * b.p()]).copied().collect();
                assert_eq!(row, want);
            }
            let mut again = Tall::empty(d);
            again.append(&tall.to_block());
            assert_eq!(again.view(), tall.view());
            let s = Mat::from_fn(6, 4, |i, j| (i * 4 + j) as f64 / 7.0);
            let want = product(tall.view(), s.as_ref());
            let norm = gram(view(&want), view(&want)).norm_max();
            tall.combine(s.as_ref());
            assert_eq!(tall.len(), 4);
            // Both multiply the same numbers, perhaps in another order.
            assert!((tall.view() - view(&want)).norm_max() <= 8.0 * f64::EPSILON * norm.sqrt());
        }
    }
}
