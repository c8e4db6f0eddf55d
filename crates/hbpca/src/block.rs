//! Blocks of p vectors of length d: what every operator multiplies and every solver iterates on.

use rayon::prelude::*;

use crate::Error;

/// A d×p block, row-major: the p values of one coordinate lie side by side.
///
/// A vector is a block with p = 1. Row-major, because a sparse row then finds the p values it needs for each
/// of its entries in one cache line (`docs/design/0001-block-layout.md`).
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    d: usize,
    p: usize,
    values: Vec<f64>,
}

impl Block {
    /// A block of zeros.
    pub fn zeros(d: usize, p: usize) -> Self {
        Self { d, p, values: vec![0.0; d * p] }
    }

    /// A block from row-major values.
    pub fn from_values(d: usize, p: usize, values: Vec<f64>) -> Result<Self, Error> {
        if values.len() == d * p {
            Ok(Self { d, p, values })
        } else {
            Err(Error::shape(format!("values for a {d}×{p} block"), d * p, values.len()))
        }
    }

    /// A block with one column.
    pub fn from_vector(values: Vec<f64>) -> Self {
        Self { d: values.len(), p: 1, values }
    }

    /// A block from its columns, all of the same length.
    pub fn from_columns(columns: &[impl AsRef<[f64]>]) -> Result<Self, Error> {
        let d = columns.first().map_or(0, |c| c.as_ref().len());
        let mut block = Self::zeros(d, columns.len());
        for (c, column) in columns.iter().enumerate() {
            let column = column.as_ref();
            if column.len() != d {
                return Err(Error::shape(format!("values in column {c} of a block"), d, column.len()));
            }
            for (j, &x) in column.iter().enumerate() {
                block.values[j * block.p + c] = x;
            }
        }
        Ok(block)
    }

    /// The identity's columns `from .. from + p`.
    pub(crate) fn unit_columns(d: usize, from: usize, p: usize) -> Self {
        let mut block = Self::zeros(d, p);
        for c in 0..p {
            block.values[(from + c) * p + c] = 1.0;
        }
        block
    }

    /// d, the length of each vector.
    pub fn d(&self) -> usize {
        self.d
    }

    /// p, the number of vectors.
    pub fn p(&self) -> usize {
        self.p
    }

    /// All values, row-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All values, row-major.
    pub fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// All values, row-major.
    pub(crate) fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// The value of coordinate j in vector c.
    pub fn get(&self, j: usize, c: usize) -> f64 {
        self.values[j * self.p + c]
    }

    /// A copy of vector c.
    pub fn column(&self, c: usize) -> Vec<f64> {
        assert!(c < self.p, "column {c} of a block of {}", self.p);
        self.values.iter().skip(c).step_by(self.p).copied().collect()
    }

    /// The first `count` vectors.
    pub(crate) fn leading(&self, count: usize) -> Self {
        let values = self.values.chunks_exact(self.p.max(1)).flat_map(|row| &row[..count]).copied().collect();
        Self { d: self.d, p: count, values }
    }

    /// Keeps the first `count` vectors and returns the others.
    pub(crate) fn split_off(&mut self, count: usize) -> Self {
        let (p, count) = (self.p, count.min(self.p));
        if count == p {
            return Self::zeros(self.d, 0);
        }
        let mut others = Vec::with_capacity(self.d * (p - count));
        self.values.chunks_exact(p.max(1)).for_each(|row| others.extend_from_slice(&row[count..]));
        for j in 0..self.d {
            self.values.copy_within(j * p..j * p + count, j * count);
        }
        self.values.truncate(self.d * count);
        self.values.shrink_to_fit();
        self.p = count;
        Self { d: self.d, p: p - count, values: others }
    }

    /// Takes over the values and shape of `other` without allocating when they fit.
    pub fn copy_from(&mut self, other: &Self) {
        self.d = other.d;
        self.p = other.p;
        self.values.clone_from(&other.values);
    }

    /// Multiplies everything by `factor`.
    pub fn scale(&mut self, factor: f64) {
        /// Numbers a thread takes at a time.
        const CHUNK: usize = 1 << 15;
        self.values.par_chunks_mut(CHUNK).for_each(|chunk| chunk.iter_mut().for_each(|x| *x *= factor));
    }

    /// Multiplies every column c by `factor(c)`.
    pub(crate) fn scale_columns(&mut self, factor: impl Fn(usize) -> f64) {
        let factors: Vec<f64> = (0..self.p).map(factor).collect();
        for row in self.values.chunks_exact_mut(self.p.max(1)) {
            row.iter_mut().zip(&factors).for_each(|(x, factor)| *x *= factor);
        }
    }

    /// Frobenius norm; for one vector its length.
    pub fn norm(&self) -> f64 {
        norm(&self.values)
    }

    /// Frobenius inner product; for one vector wᵀv.
    pub fn dot(&self, other: &Self) -> f64 {
        dot(&self.values, &other.values)
    }
}

/// xᵀy in eight partial sums: vectorised, with a fixed order.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len());
    let mut lanes = [0.0; 8];
    let (xs, x_rest) = x.as_chunks::<8>();
    let (ys, y_rest) = y.as_chunks::<8>();
    for (x, y) in xs.iter().zip(ys) {
        for i in 0..8 {
            lanes[i] += x[i] * y[i];
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7])) + rest
}

/// ‖g − θw‖, with squares of numbers near 1 and without memory of its own.
pub(crate) fn residual_norm(w: &[f64], g: &[f64], theta: f64) -> f64 {
    let largest = w.iter().zip(g).map(|(w, g)| (g - theta * w).abs()).fold(0.0_f64, f64::max);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let squares = w.iter().zip(g).map(|(w, g)| ((g - theta * w) / largest).powi(2));
    largest * squares.sum::<f64>().sqrt()
}

/// The largest of numbers that are not negative, or NaN where one is: `f64::max` would pass over it.
pub(crate) fn largest(numbers: impl IntoIterator<Item = f64>) -> f64 {
    numbers.into_iter().fold(0.0, |most, x| if most.is_nan() || x <= most { most } else { x })
}

/// ‖x‖, scaled where the squares would leave the range of f64.
pub(crate) fn norm(x: &[f64]) -> f64 {
    let square = dot(x, x);
    if square.is_normal() && square < f64::MAX {
        return square.sqrt();
    }
    if square.is_nan() {
        return square;
    }
    let largest = x.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * x.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_go_in_and_out() {
        let b = Block::from_columns(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).unwrap();
        assert_eq!(b.values(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!((b.column(0), b.column(1)), (vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]));
        assert!(Block::from_columns(&[vec![1.0], vec![1.0, 2.0]]).is_err());
        assert!(Block::from_values(2, 2, vec![0.0; 3]).is_err());
    }

    #[test]
    fn the_largest_number_is_nan_wherever_one_is() {
        assert_eq!(largest([1.0, 3.0, 2.0]).to_bits(), 3.0_f64.to_bits());
        assert_eq!(largest([]).to_bits(), 0);
        for at in 0..3 {
            let mut numbers = [1.0, 2.0, 3.0];
            numbers[at] = f64::NAN;
            assert!(largest(numbers).is_nan(), "{at}");
        }
    }

    #[test]
    fn blocks_split_by_columns() {
        let mut b = Block::from_columns(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap();
        assert_eq!(b.split_off(4), Block::zeros(2, 0));
        assert_eq!(b.split_off(2), Block::from_columns(&[[5.0, 6.0]]).unwrap());
        assert_eq!(b, Block::from_columns(&[[1.0, 2.0], [3.0, 4.0]]).unwrap());
        assert_eq!((b.split_off(0).p(), b), (2, Block::zeros(2, 0)));
    }

    #[test]
    fn norms_survive_tiny_and_huge_entries() {
        for scale in [1e-300, 1e-160, 1.0, 1e160, 1e300] {
            let ratio = norm(&[3.0 * scale, 4.0 * scale]) / scale;
            assert!((ratio - 5.0).abs() < 5.0 * f64::EPSILON, "{scale:e}: {ratio}");
        }
        assert_eq!(norm(&[0.0; 3]).to_bits(), 0);
        assert_eq!(norm(&[]).to_bits(), 0);
        assert!(norm(&[f64::NAN; 3]).is_nan() && norm(&[1.0, f64::NAN]).is_nan());
        assert!(norm(&[1.0, f64::NEG_INFINITY]).is_infinite());
    }

    #[test]
    fn dots_of_every_length_are_exact_on_small_integers() {
        for len in 0..40_u32 {
            let x: Vec<f64> = (0..len).map(f64::from).collect();
            let want = (0..len).map(|i| f64::from(i * i)).sum::<f64>() + 0.0; // an empty sum is −0
            assert_eq!(dot(&x, &x).to_bits(), want.to_bits());
        }
    }
}
