//! Wide data: n rows have at most n components, and G = (1/n)AAᵀ, n×n, knows them all.
//!
//! If Gu = λu with λ > 0, then Aᵀu points along the eigenvector of C for λ. Columns are prepared in panels, so that A is never
//! copied as a whole.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, MatMut, MatRef, Par};

use crate::linalg::{TallBasis, orthonormal_complement, small_eigen};
use crate::matrix::{Dense, Matrix, Real};
use crate::operator::RowSpectrum;
use crate::operator::products::sum::Prepared;
use crate::{Block, Error, ordered};

/// Columns prepared at a time.
const PANEL: usize = 256;
/// Chunks of columns at most: each is merged once, n² additions.
const MOST_CHUNKS: usize = 16;
/// Numbers in all workers' sums together (512 MiB).
const MOST_NUMBERS: usize = 1 << 26;

/// Whether G is the smaller matrix, and A dense.
pub(in crate::operator) fn applies(matrix: &Matrix<'_>) -> bool {
    let n = matrix.n_rows();
    n < matrix.n_cols()
        && !matrix.is_sparse()
        && n.checked_mul(n).is_some_and(|numbers| numbers <= MOST_NUMBERS)
}

/// The k leading eigenvectors: one look at the rows for G, another for AᵀU.
pub(in crate::operator) fn leading(rows: &Prepared<'_>, k: usize) -> Result<RowSpectrum, Error> {
    match rows.matrix {
        Matrix::DenseF32(x) => leading_of(rows, x, k),
        Matrix::DenseF64(x) => leading_of(rows, x, k),
        Matrix::CsrF32(_) | Matrix::CsrF64(_) => unreachable!("G is formed of dense rows"),
    }
}

fn leading_of<T: Real>(rows: &Prepared<'_>, x: &Dense<'_, T>, k: usize) -> Result<RowSpectrum, Error> {
    let (n, d) = (x.n_rows(), x.n_cols());
    let g = gram(rows, x);
    let square = MatRef::from_row_major_slice(&g, n, n);
    let (eigenvalues, u) = small_eigen(&square.to_owned())?;
    rows.cancel.go_on()?;
    // AᵀU, panel by panel.
    let u = u.as_ref().subcols(0, k.min(n));
    let mut vectors = Block::zeros(d, u.ncols());
    let mut panel = vec![0.0; n * PANEL.min(d)];
    for start in (0..d).step_by(PANEL) {
        let columns = start..d.min(start + PANEL);
        prepare(rows, x, columns.clone(), &mut panel);
        let a = MatRef::from_row_major_slice(&panel[..n * columns.len()], n, columns.len());
        let part = &mut vectors.values_mut()[columns.start * u.ncols()..columns.end * u.ncols()];
        let part = MatMut::from_row_major_slice_mut(part, columns.len(), u.ncols());
        matmul(part, Accum::Replace, a.transpose(), u, 1.0, Par::Seq);
    }
    // Directions of eigenvalues that are rounding vanish and are dropped.
    let longest = (0..vectors.p()).map(|c| crate::block::norm(&vectors.column(c))).fold(0.0, f64::max);
    let kept = (0..vectors.p())
        .take_while(|c| crate::block::norm(&vectors.column(*c)) > (n as f64 * f64::EPSILON).sqrt() * longest)
        .count();
    let vectors = orthonormal_complement(vectors.leading(kept), &TallBasis::with_room(d, 0))?;
    Ok(RowSpectrum { vectors, eigenvalues })
}

/// G, row-major, both halves.
fn gram<T: Real>(rows: &Prepared<'_>, x: &Dense<'_, T>) -> Vec<f64> {
    let (n, d) = (x.n_rows(), x.n_cols());
    let n_chunks = d.div_ceil(PANEL).min(MOST_CHUNKS);
    let n_workers = n_chunks.min(rayon::current_num_threads()).min(MOST_NUMBERS / (n * n)).max(1);
    let mut workers = vec![(vec![0.0; n * n], vec![0.0; n * PANEL.min(d)]); n_workers];
    let mut g = vec![0.0; n * n];
    ordered::for_each_chunk(
        n_chunks,
        &mut workers,
        |i, (sum, panel)| {
            sum.fill(0.0);
            let chunk = ordered::chunk(d, i, n_chunks);
            for start in chunk.clone().step_by(PANEL) {
                if rows.cancel.breaks_off() {
                    return; // G is never handed out then
                }
                let columns = start..chunk.end.min(start + PANEL);
                prepare(rows, x, columns.clone(), panel);
                let a = MatRef::from_row_major_slice(&panel[..n * columns.len()], n, columns.len());
                let sum = MatMut::from_row_major_slice_mut(sum.as_mut_slice(), n, n);
                let (lower, all) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
                triangular::matmul(sum, lower, Accum::Add, a, all, a.transpose(), all, 1.0, Par::Seq);
            }
        },
        |_, (sum, _)| g.iter_mut().zip(sum.iter()).for_each(|(g, sum)| *g += sum),
    );
    for i in 0..n {
        for j in 0..=i {
            let value = g[i * n + j] / n as f64;
            (g[i * n + j], g[j * n + i]) = (value, value);
        }
    }
    g
}

/// √w·D⁻¹(x − μ) of some columns, row-major.
fn prepare<T: Real>(rows: &Prepared<'_>, x: &Dense<'_, T>, columns: Range<usize>, panel: &mut [f64]) {
    let width = columns.len();
    for (l, a) in panel.chunks_exact_mut(width).take(x.n_rows()).enumerate() {
        let root = rows.weights.map_or(1.0, |weights| weights[l].sqrt());
        for ((a, x), j) in a.iter_mut().zip(&x.row(l)[columns.clone()]).zip(columns.clone()) {
            let moved = x.to_f64() - rows.map.shift().map_or(0.0, |shift| shift[j]);
            *a = root * moved * rows.map.inverse_scale(j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Preprocessing;
    use crate::matrix::random_direction;
    use crate::operator::{Covariance, CovarianceOperator, Products};

    #[test]
    fn the_smaller_matrix_has_the_same_eigenpairs() {
        let (n, d, k) = (23, 700, 6);
        let x: Matrix = Dense::new(random_direction(9, n * d), n, d).unwrap().into();
        let weights: Vec<f64> = (0..n).map(|l| 0.5 + (l % 3) as f64).collect();
        for preprocessing in [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE] {
            for mut c in [
                Covariance::new(&x, preprocessing).unwrap(),
                Covariance::weighted(&x, preprocessing, &weights).unwrap(),
            ] {
                let found = leading(&c.prepared(), k).unwrap();
                assert_eq!((found.vectors.p(), found.eigenvalues.len()), (k, n));
                let mut image = Block::zeros(0, 0);
                c.apply(&found.vectors, &mut image).unwrap();
                let trace = c.total_variance();
                // CV = V·VᵀCV, whose eigenvalues are those of G. Sums of d products and an eigen-solve of n², with gaps of a
                // hundredth of the trace.
                let bound = 100.0 * (n * d) as f64 * f64::EPSILON * trace;
                let h = TallBasis::<f64>::of(&found.vectors).project_out(&mut image);
                assert!(image.norm() <= bound, "{:e}", image.norm());
                let (values, _) = small_eigen(&h).unwrap();
                for (a, b) in values.iter().zip(&found.eigenvalues) {
                    assert!((a - b).abs() <= bound, "{a} {b}");
                }
                let sum: f64 = found.eigenvalues.iter().sum();
                assert!((sum / trace - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn rows_of_a_lower_rank_give_no_more_directions_than_there_are() {
        let (n, d) = (10, 300);
        let base = random_direction(2, 2 * d);
        let row = |l: usize| (0..d).map(move |j| (l, j));
        let values: Vec<f64> = (0..n)
            .flat_map(row)
            .map(|(l, j)| base[j] * (l as f64).sin() + base[d + j] * (l as f64).cos())
            .collect();
        let x: Matrix = Dense::new(values, n, d).unwrap().into();
        let c = Covariance::new(&x, Preprocessing::NONE).unwrap();
        assert_eq!(leading(&c.prepared(), 5).unwrap().vectors.p(), 2);
        assert!(applies(&x));
    }
}
