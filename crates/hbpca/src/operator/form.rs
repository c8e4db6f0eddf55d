//! Forming C in one pass: blocks of prepared rows B, and C += BᵀB tile by tile.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::Covariance;
use crate::matrix::Matrix;
use crate::{Block, CovarianceOperator};

/// Rows prepared at a time: with a few hundred columns they stay in the second-level cache.
const ROWS: usize = 256;
/// Side of a tile of C. Tiles are what threads share; each adds the row blocks in order, so that the number of
/// threads does not change a bit.
const TILE: usize = 96;

/// `c` ← C. Threads share the tiles of its lower triangle.
pub(super) fn form(operator: &Covariance<'_>, c: &mut Block) {
    let (n, d) = (operator.n_rows(), operator.dim());
    let n_tiles = d.div_ceil(TILE);
    let mut tiles: Vec<Tile> =
        (0..n_tiles).flat_map(|i| (0..=i).map(move |j| Tile::new(i * TILE, j * TILE, d))).collect();
    let mut rows = vec![0.0; ROWS.min(n) * d];
    for start in (0..n).step_by(ROWS) {
        let count = ROWS.min(n - start);
        let rows = &mut rows[..count * d];
        rows.par_chunks_exact_mut(d)
            .enumerate()
            .with_min_len(32)
            .for_each(|(i, a)| prepare_row(operator, start + i, a));
        let b = MatRef::from_row_major_slice(&*rows, count, d);
        tiles.par_iter_mut().for_each(|tile| tile.add(b));
    }
    *c = Block::zeros(d, d);
    for tile in &tiles {
        for i in 0..tile.height {
            for j in 0..tile.width {
                let value = tile.values[i * tile.width + j] / n as f64;
                c.values_mut()[(tile.top + i) * d + tile.left + j] = value;
                c.values_mut()[(tile.left + j) * d + tile.top + i] = value;
            }
        }
    }
}

struct Tile {
    top: usize,
    left: usize,
    height: usize,
    width: usize,
    values: Vec<f64>,
}

impl Tile {
    fn new(top: usize, left: usize, d: usize) -> Self {
        let (height, width) = (TILE.min(d - top), TILE.min(d - left));
        Self { top, left, height, width, values: vec![0.0; height * width] }
    }

    /// The tile of C += BᵀB.
    fn add(&mut self, b: MatRef<'_, f64>) {
        let sum = MatMut::from_row_major_slice_mut(&mut self.values, self.height, self.width);
        let (left, right) = (b.subcols(self.top, self.height), b.subcols(self.left, self.width));
        matmul(sum, Accum::Add, left.transpose(), right, 1.0, Par::Seq);
    }
}

/// a ← √w · D⁻¹(x − μ) for row l.
fn prepare_row(operator: &Covariance<'_>, l: usize, a: &mut [f64]) {
    match operator.matrix {
        Matrix::DenseF32(x) => a.iter_mut().zip(x.row(l)).for_each(|(a, &x)| *a = f64::from(x)),
        Matrix::DenseF64(x) => a.copy_from_slice(x.row(l)),
        sparse => {
            a.fill(0.0);
            sparse.for_each_in_row(l, |j, x| a[j] = x);
        }
    }
    if let Some(shift) = operator.map.shift() {
        a.iter_mut().zip(shift).for_each(|(a, mu)| *a -= mu);
    }
    if let Some(scale) = operator.map.scale() {
        a.iter_mut().zip(scale).for_each(|(a, s)| *a /= s);
    }
    if let Some(weights) = &operator.weights {
        let root = weights[l].sqrt();
        a.iter_mut().for_each(|a| *a *= root);
    }
}
