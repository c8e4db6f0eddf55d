//! The leading pairs of a symmetric matrix by reduction to a tridiagonal one, without all the others.
//!
//! ```text
//! 1  C = QTQᵀ                                Householder reflections, 4d³/3 flops: what a full decomposition begins with
//! 2  λ₁ ≥ … ≥ λ_{k+1} of T                   bisection on the number of negative pivots of T − xI
//! 3  s_i ← (T − λᵢI)⁻¹s_i, orthonormal       inverse iteration
//! 4  W ← QS
//! ```
//!
//! Source: Golub & Van Loan, *Matrix Computations*, 4th ed., §8.3–8.4. Lines 2–4 cost O(kd²); a full decomposition takes some 3d³ more
//! for them. Line 2 is a proof: Sylvester's law counts the eigenvalues above x, so that none is overlooked.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::tridiag;
use faer::linalg::householder;
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::{Conj, Mat, Par, Spec};
use rayon::prelude::*;

use super::view;
use crate::Block;
use crate::matrix::{SMALL_COLUMNS, random_filling};

/// Eigenvalues that are bisected side by side, one in each lane.
const LANES: usize = 8;
/// Inverse iterations for a vector: two are enough for most.
const MOST_ITERATIONS: usize = 6;
/// Residuals, in units of rounding of ‖T‖, that end the iteration for a vector, and that are let pass after [`MOST_ITERATIONS`].
const GOOD: f64 = 16.0;
const PASSABLE: f64 = 512.0;

/// C = QTQᵀ.
pub(crate) struct Reduced {
    tridiagonal: Tridiagonal,
    /// Below the diagonal, the reflections.
    reflections: Mat<f64>,
    factors: Mat<f64>,
}

impl Reduced {
    /// Line 1, for entries in the middle of the range of numbers: their squares are formed.
    pub(crate) fn of(c: &Block) -> Self {
        let d = c.d();
        let mut reflections = view(c).to_owned();
        let mut factors = Mat::zeros(recommended_block_size::<f64>(d, d), d.saturating_sub(1));
        let mut memory =
            MemBuffer::new(tridiag::tridiag_in_place_scratch::<f64>(d, Par::Seq, Spec::default()));
        let stack = MemStack::new(&mut memory);
        tridiag::tridiag_in_place(reflections.as_mut(), factors.as_mut(), Par::Seq, stack, Spec::default());
        let diagonal = (0..d).map(|i| reflections[(i, i)]).collect();
        let beside = (1..d).map(|i| reflections[(i, i - 1)]).collect();
        Self { tridiagonal: Tridiagonal { diagonal, beside }, reflections, factors }
    }

    /// Lines 2–4: k orthonormal vectors, and the k + 1 (or d) largest eigenvalues; nothing should inverse iteration fail.
    pub(crate) fn leading(&self, k: usize) -> Option<(Block, Vec<f64>)> {
        let values = self.tridiagonal.largest(k + 1);
        let mut vectors = self.tridiagonal.vectors(&values[..k])?;
        let d = vectors.nrows();
        if d > 1 {
            let (below, size) =
                (self.reflections.as_ref().submatrix(1, 0, d - 1, d - 1), self.factors.nrows());
            let scratch = householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<f64>(
                d - 1,
                size,
                k,
            );
            householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
                below,
                self.factors.as_ref(),
                Conj::No,
                vectors.as_mut().subrows_mut(1, d - 1),
                Par::Seq,
                MemStack::new(&mut MemBuffer::new(scratch)),
            );
        }
        let mut block = Block::zeros(d, k);
        block.values_mut().iter_mut().enumerate().for_each(|(at, x)| *x = vectors[(at / k, at % k)]);
        Some((block, values))
    }
}

/// A symmetric tridiagonal matrix T.
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// Tᵢ₊₁,ᵢ.
    beside: Vec<f64>,
}

impl Tridiagonal {
    /// The interval that holds all eigenvalues (Gershgorin).
    fn bounds(&self) -> (f64, f64) {
        let left = std::iter::once(0.0).chain(self.beside.iter().copied());
        let right = self.beside.iter().copied().chain(std::iter::once(0.0));
        let discs = self.diagonal.iter().zip(left.zip(right)).map(|(x, (l, r))| (*x, l.abs() + r.abs()));
        discs
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (x, r)| (low.min(x - r), high.max(x + r)))
    }

    /// A unit of rounding of ‖T‖, from above.
    fn rounding(&self) -> f64 {
        let (low, high) = self.bounds();
        f64::EPSILON * low.abs().max(high.abs()).max(f64::MIN_POSITIVE / f64::EPSILON)
    }

    /// The m (or d) largest eigenvalues, descending, each within the rounding of T.
    fn largest(&self, m: usize) -> Vec<f64> {
        let mut values = vec![0.0; m.min(self.diagonal.len())];
        let squares: Vec<f64> = self.beside.iter().map(|x| x * x).collect();
        values
            .par_chunks_mut(LANES)
            // Few columns take less time than another thread does to begin.
            .with_min_len(if self.diagonal.len() <= SMALL_COLUMNS { SMALL_COLUMNS } else { 1 })
            .enumerate()
            .for_each(|(i, values)| self.bisect(&squares, i * LANES, values));
        values
    }

    /// The eigenvalues that have `first`, `first` + 1, … others above them.
    fn bisect(&self, squares: &[f64], first: usize, values: &mut [f64]) {
        let rounding = self.rounding();
        let (low, high) = self.bounds();
        // A rounding outside, so that the ends count as if they were exact.
        let (mut low, mut high) = ([low - rounding; LANES], [high + rounding; LANES]);
        while (0..LANES).any(|lane| high[lane] - low[lane] > 2.0 * rounding) {
            let middle: [f64; LANES] = std::array::from_fn(|lane| 0.5 * (low[lane] + high[lane]));
            let above = self.count_above(squares, &middle, rounding);
            for lane in 0..LANES {
                if above[lane] > (first + lane) as f64 {
                    low[lane] = middle[lane];
                } else {
                    high[lane] = middle[lane];
                }
            }
        }
        values
            .iter_mut()
            .zip(low.iter().zip(high))
            .for_each(|(value, (low, high))| *value = 0.5 * (low + high));
    }

    /// How many eigenvalues are above x: the positive pivots of T − xI = LDLᵀ.
    fn count_above(&self, squares: &[f64], x: &[f64; LANES], rounding: f64) -> [f64; LANES] {
        let least = rounding * f64::EPSILON; // below this a pivot is taken for that much, as if Tᵢᵢ had been off by it
        let mut pivots = [f64::INFINITY; LANES];
        let mut counts = [0.0; LANES];
        let squares = std::iter::once(&0.0).chain(squares);
        for (diagonal, square) in self.diagonal.iter().zip(squares) {
            for lane in 0..LANES {
                let pivot = diagonal - x[lane] - square / pivots[lane];
                pivots[lane] = if pivot.abs() < least { -least } else { pivot };
                counts[lane] += if pivots[lane] > 0.0 { 1.0 } else { 0.0 };
            }
        }
        counts
    }

    /// Orthonormal eigenvectors of the given eigenvalues.
    fn vectors(&self, values: &[f64]) -> Option<Mat<f64>> {
        let d = self.diagonal.len();
        let rounding = self.rounding();
        let start = random_filling(0, d * values.len());
        let mut found = Mat::from_fn(d, values.len(), |j, i| start[i * d + j]);
        for (i, value) in values.iter().enumerate() {
            let (known, mut rest) = found.as_mut().split_at_col_mut(i);
            let known = known.as_ref();
            let x = rest.as_mut().col_mut(0).try_as_col_major_mut()?.as_slice_mut();
            let factors = Factors::of(self, *value, rounding);
            let mut residual = f64::INFINITY;
            for _ in 0..MOST_ITERATIONS {
                factors.solve(x);
                normalize(x);
                // Twice is enough, also for eigenvalues that agree.
                for _ in 0..2 {
                    for column in known.col_iter() {
                        let column = column.try_as_col_major()?.as_slice();
                        let along: f64 = column.iter().zip(&*x).map(|(q, x)| q * x).sum();
                        x.iter_mut().zip(column).for_each(|(x, q)| *x -= along * q);
                    }
                    normalize(x);
                }
                residual = self.residual(*value, x);
                if residual <= GOOD * rounding {
                    break;
                }
            }
            if residual.is_nan() || residual > PASSABLE * rounding {
                return None;
            }
        }
        Some(found)
    }

    /// ‖Tx − λx‖.
    fn residual(&self, value: f64, x: &[f64]) -> f64 {
        let at = |i: usize| {
            let left = if i > 0 { self.beside[i - 1] * x[i - 1] } else { 0.0 };
            let right = self.beside.get(i).map_or(0.0, |beside| beside * x[i + 1]);
            left + (self.diagonal[i] - value) * x[i] + right
        };
        (0..x.len()).map(|i| at(i).powi(2)).sum::<f64>().sqrt()
    }
}

/// x ← x/‖x‖, whatever its size.
fn normalize(x: &mut [f64]) {
    let largest = x.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    if largest > 0.0 {
        x.iter_mut().for_each(|x| *x /= largest);
        let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.iter_mut().for_each(|x| *x /= norm);
    }
}

/// T − λI = LU with rows exchanged: U has three diagonals, L one number a row.
struct Factors {
    rows: Vec<FactorRow>,
}

#[derive(Clone, Copy)]
struct FactorRow {
    /// U's diagonal and the two beside it.
    upper: [f64; 3],
    /// What is taken off the next row, and whether the two were exchanged before.
    lower: f64,
    exchanged: bool,
}

impl Factors {
    fn of(t: &Tridiagonal, shift: f64, rounding: f64) -> Self {
        let d = t.diagonal.len();
        let beside = |i: usize| t.beside.get(i).copied().unwrap_or(0.0);
        let whole = |pivot: f64| if pivot.abs() < rounding { rounding.copysign(pivot) } else { pivot };
        let mut rows = Vec::with_capacity(d);
        let mut row = [t.diagonal[0] - shift, beside(0), 0.0];
        for i in 0..d {
            // The row that elimination left, and the one below it.
            let mut below = match t.diagonal.get(i + 1) {
                Some(next) => [beside(i), next - shift, beside(i + 1)],
                None => [0.0; 3],
            };
            let exchanged = below[0].abs() > row[0].abs();
            if exchanged {
                std::mem::swap(&mut row, &mut below);
            }
            row[0] = whole(row[0]);
            let lower = below[0] / row[0];
            rows.push(FactorRow { upper: row, lower, exchanged });
            row = [below[1] - lower * row[1], below[2] - lower * row[2], 0.0];
        }
        Self { rows }
    }

    fn solve(&self, x: &mut [f64]) {
        let d = x.len();
        for (i, row) in self.rows.iter().enumerate().take(d - 1) {
            if row.exchanged {
                x.swap(i, i + 1);
            }
            x[i + 1] -= row.lower * x[i];
        }
        for (i, row) in self.rows.iter().enumerate().rev() {
            let next = |at: usize| x.get(at).copied().unwrap_or(0.0);
            x[i] = (x[i] - row.upper[1] * next(i + 1) - row.upper[2] * next(i + 2)) / row.upper[0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{gram, product, residual_norms, small_eigen};

    /// Leading pairs against the definition, against a full decomposition, and T's own count.
    fn check(c: &Block, k: usize) {
        let d = c.d();
        let reduced = Reduced::of(c);
        let (vectors, values) = reduced.leading(k).unwrap();
        let (exact, _) = small_eigen(&view(c).to_owned()).unwrap();
        let norm = exact[0].abs().max(exact[d - 1].abs());
        // Reflections are backward stable: d of them, each with a rounding or two of the norm.
        let rounding = 4.0 * f64::EPSILON * d as f64 * norm;
        assert_eq!(values.len(), d.min(k + 1));
        for (value, exact) in values.iter().zip(&exact) {
            assert!((value - exact).abs() <= rounding, "{value} {exact}");
        }
        let images = product(c, view(&vectors));
        for residual in residual_norms(&vectors, &images, &values[..k]) {
            assert!(residual <= rounding + PASSABLE * f64::EPSILON * norm, "{residual:e} {norm}");
        }
        let gram = gram(&vectors, &vectors);
        for i in 0..k {
            for j in 0..k {
                let expected = if i == j { 1.0 } else { 0.0 };
                assert!((gram[(i, j)] - expected).abs() <= 4.0 * f64::EPSILON * d as f64, "{i} {j}");
            }
        }
    }

    fn symmetric(d: usize, entry: impl Fn(usize, usize) -> f64) -> Block {
        let values = (0..d * d).map(|at| entry(at / d, at % d) + entry(at % d, at / d)).collect();
        Block::from_values(d, d, values).unwrap()
    }

    #[test]
    fn leading_pairs_are_those_of_the_matrix() {
        for d in [1, 2, 3, 9, 40, 150] {
            let noise = random_filling(d as u64, d * d);
            for k in [1, d.div_ceil(3), d] {
                check(&symmetric(d, |i, j| noise[i * d + j]), k);
            }
        }
    }

    #[test]
    fn equal_eigenvalues_get_orthonormal_vectors() {
        check(&symmetric(30, |i, j| if i == j { 0.5 } else { 0.0 }), 7); // the identity
        check(&symmetric(30, |_, _| 0.0), 4);
        check(&symmetric(30, |i, j| if i == j { [3.0, 2.0, 2.0, 1.0][i % 4] } else { 0.0 }), 20);
        check(&symmetric(40, |i, j| if i / 8 == j / 8 { 1.0 } else { 0.0 }), 9); // five ones, the others zero
        // Wilkinson's: eigenvalues in pairs that agree to many digits.
        check(
            &symmetric(41, |i, j| {
                if i == j {
                    (i as f64 - 20.0).abs() / 2.0
                } else if j == i + 1 {
                    1.0
                } else {
                    0.0
                }
            }),
            10,
        );
    }

    #[test]
    fn counts_know_how_many_eigenvalues_are_above() {
        // 2 on the diagonal, −1 beside it: λ = 2 − 2cos(iπ/(d + 1)).
        let d = 50;
        let t = Tridiagonal { diagonal: vec![2.0; d], beside: vec![-1.0; d - 1] };
        for (i, value) in t.largest(d).into_iter().enumerate() {
            let exact = 2.0 + 2.0 * ((i + 1) as f64 * std::f64::consts::PI / (d + 1) as f64).cos();
            assert!((value - exact).abs() <= 2.0 * t.rounding(), "{i}: {value} {exact}");
        }
        assert_eq!(
            t.count_above(&[1.0; 49], &[0.0, 4.0, 2.0, -1.0, 5.0, 1.9, 2.1, 3.9], t.rounding())[..3],
            [50.0, 0.0, 25.0]
        );
    }

    #[test]
    fn a_number_that_is_none_yields_no_vectors() {
        let mut c = symmetric(12, |i, j| (i + j) as f64);
        c.values_mut()[5 * 12 + 3] = f64::NAN;
        assert!(Reduced::of(&c).leading(2).is_none());
    }
}
