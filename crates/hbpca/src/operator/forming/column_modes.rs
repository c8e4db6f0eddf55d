//! C from rows that mostly hold the modes of their columns, the most frequent values: the background of pictures, the zeros of one-hot columns, before or
//! after they were shifted and scaled.
//!
//! With the modes b, y = x − b, σ = (1/n)Σwy and e = σ + b − μ,
//!
//! ```text
//! (1/n)Σ w(x − μ)(x − μ)ᵀ = (1/n)Σ w yyᵀ − σσᵀ + eeᵀ        where the weights' mean is 1
//! ```
//!
//! and [a kernel](SkippingTriangle) leaves out what is zero in Σ w yyᵀ. Little is cancelled: in a column where a share q of the rows is
//! not b, σ² ≤ q(1/n)Σwy² by Cauchy and Schwarz, so that a quarter of the sum is left at least for q ≤ 3/4. Columns of which a sample says that
//! fewer rows have any one value are shifted by μ instead. What was really cancelled is known afterwards; too much of it, and C is
//! formed in another way.

use std::borrow::Cow;

use super::form::cut;
use crate::kernels::{PANEL, QUAD, RowWeights, SkippingTriangle};
use crate::matrix::{Dense, Matrix};
use crate::operator::products::sum::Prepared;
use crate::rounding::rounding_of_sum;
use crate::{Block, ordered};

/// Columns at least: fewer have nothing to leave out.
const LEAST_COLUMNS: usize = 32;
/// Rows that are looked at, within these bounds so many that they hold this many numbers.
const SAMPLE_NUMBERS: usize = 1 << 19;
const SAMPLE_ROWS: [usize; 2] = [64, 512];
/// Rows of the sample whose values are asked for, and those that are asked how often they occur.
const CANDIDATES: usize = 16;
const VOTERS: usize = 32;
/// The largest share of rows that may have another value than the mode, in quarters.
const MOST_OTHER_QUARTERS: usize = 3;
/// How much longer a multiply-add takes than in the plain triangle: runs of few rows end unforeseen.
const SLOWER: f64 = 2.0;
/// Σwy² may exceed what is left after cancellation by this factor.
const MOST_CANCELLED: f64 = 8.0;
/// Rows added between two looks at the cancel token.
const ROWS_AT_ONCE: usize = 1024;

/// The modes of all columns, where there are such.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnModes {
    /// The value, or nothing where none is modes.
    values: Vec<Option<f64>>,
    /// Multiply-adds a row that are left.
    multiply_adds: f64,
}

impl ColumnModes {
    /// What a sample of the rows says; nothing where hardly anything could be left out.
    pub(crate) fn of(matrix: &Matrix<'_>) -> Option<Self> {
        let (n, d) = (matrix.n_rows(), matrix.n_cols());
        let [least, most] = SAMPLE_ROWS;
        if d < LEAST_COLUMNS || n < most {
            return None;
        }
        let sample = sample(matrix, (SAMPLE_NUMBERS / d).clamp(least, most));
        let mut values: Vec<Option<f64>> = elect(&sample, d).into_iter().map(Some).collect();
        let mut others = vec![0_usize; d];
        for row in sample.chunks_exact(d) {
            let counts = others.iter_mut().zip(row).zip(&values);
            counts.for_each(|((count, x), mode)| *count += usize::from(Some(*x) != *mode));
        }
        let n_sampled = sample.len() / d;
        for (value, count) in values.iter_mut().zip(others) {
            *value = value.filter(|_| 4 * count <= MOST_OTHER_QUARTERS * n_sampled);
        }
        if values.iter().flatten().count() < d / 2 {
            return None;
        }
        let multiply_adds = multiply_adds(&sample, &values);
        Some(Self { values, multiply_adds })
    }

    /// Seconds that C takes, in units of those that a multiply-add of its plain triangle takes, for each row.
    pub(crate) fn cost(&self) -> f64 {
        SLOWER * self.multiply_adds
    }

    /// Whether that is less than the triangle of `n_columns` columns takes, at `speed` times the speed of f64.
    fn pays(&self, n_columns: usize, speed: f64) -> bool {
        self.cost() * speed < (n_columns * (n_columns + 1) / 2) as f64
    }
}

/// The i-th of `count` rows that are spread over all n, but not at equal distances, since data may have a period.
fn sampled(n: usize, i: usize, count: usize) -> usize {
    let part = ordered::chunk(n, i, count);
    part.start + i * 7919 % part.len()
}

/// These rows.
fn sample(matrix: &Matrix<'_>, count: usize) -> Vec<f64> {
    let (n, d) = (matrix.n_rows(), matrix.n_cols());
    let mut rows = vec![0.0; count * d];
    for (i, row) in rows.chunks_exact_mut(d).enumerate() {
        let l = sampled(n, i, count);
        matrix.for_each_in_row(l, |j, x| row[j] = x);
    }
    rows
}

/// The value of each column that most of a few rows have.
fn elect(sample: &[f64], d: usize) -> Vec<f64> {
    let n_sampled = sample.len() / d;
    let voter = |i: usize| &sample[i * n_sampled / VOTERS * d..][..d];
    let (mut winners, mut most) = (voter(0).to_vec(), vec![0_u32; d]);
    let mut votes = vec![0_u32; d];
    for candidate in (0..VOTERS).step_by(VOTERS / CANDIDATES).map(voter) {
        votes.fill(0);
        for other in (0..VOTERS).map(voter) {
            let columns = votes.iter_mut().zip(candidate).zip(other);
            columns.for_each(|((votes, x), y)| *votes += u32::from(x.to_bits() == y.to_bits()));
        }
        for j in 0..d {
            if votes[j] > most[j] {
                (winners[j], most[j]) = (candidate[j], votes[j]);
            }
        }
    }
    winners
}

/// Products of the triangle, tile by tile, in which neither side is blank: their average over the rows of the sample.
fn multiply_adds(sample: &[f64], values: &[Option<f64>]) -> f64 {
    let d = values.len();
    let n_sampled = sample.len() / d;
    let words = n_sampled.div_ceil(64);
    let mut occupied = vec![0_u64; d.next_multiple_of(PANEL) / QUAD * words];
    for (r, row) in sample.chunks_exact(d).enumerate() {
        let quads = row.chunks(QUAD).zip(values.chunks(QUAD));
        for (quad, (x, mode)) in quads.enumerate() {
            let any = x.iter().zip(mode).any(|(x, mode)| *mode != Some(*x));
            occupied[quad * words + r / 64] |= u64::from(any) << (r % 64);
        }
    }
    let mut tiles = 0_u64;
    for (panel, left) in occupied.chunks_exact(PANEL / QUAD * words).enumerate() {
        let (first, last) = left.split_at(words);
        let rows: Vec<u64> = first.iter().zip(last).map(|(a, b)| a | b).collect();
        for quad in occupied.chunks_exact(words).take((panel + 1) * PANEL / QUAD) {
            tiles += rows.iter().zip(quad).map(|(a, b)| u64::from((a & b).count_ones())).sum::<u64>();
        }
    }
    (tiles * (PANEL * QUAD) as u64) as f64 / n_sampled as f64
}

/// `c` ← (1/n)Σ w(x − μ)(x − μ)ᵀ, zero before, where this is faster than the triangle of `n_columns` columns, which takes f64 `speed` times
/// as long; D is left aside. Returns a bound on the rounding of D⁻¹`c`D⁻¹ then. Otherwise `c` is as it was.
pub(super) fn form(operator: &Prepared<'_>, n_columns: usize, speed: f64, c: &mut Block) -> Option<f64> {
    let modes = ColumnModes::of(operator.matrix).filter(|modes| modes.pays(n_columns, speed))?;
    let (n, d) = (operator.n_rows(), operator.dim());
    let shift = |j: usize| operator.map.shift().map_or(0.0, |shift| shift[j]);
    let b: Vec<f64> = modes.values.iter().enumerate().map(|(j, b)| b.unwrap_or_else(|| shift(j))).collect();
    let (n_chunks, n_workers) = cut(n, d);
    let mut workers = vec![SkippingTriangle::default(); n_workers];
    let mut total = SkippingTriangle::default();
    ordered::for_each_chunk(
        n_chunks,
        &mut workers,
        |i, triangle| {
            triangle.clear();
            let chunk = ordered::chunk(n, i, n_chunks);
            for start in chunk.clone().step_by(ROWS_AT_ONCE) {
                if operator.cancel.breaks_off() {
                    return; // C is never handed out then
                }
                add(operator, start..chunk.end.min(start + ROWS_AT_ONCE), &b, triangle);
            }
        },
        |_, triangle| total.merge(triangle),
    );
    let sigma: Vec<f64> = total.column_sums().iter().map(|sum| sum / n as f64).collect();
    let e: Vec<f64> = (0..d).map(|j| sigma[j] + (b[j] - shift(j))).collect();
    let mut moments = Block::zeros(d, d);
    total.add_to(&mut moments);
    moments.scale(1.0 / n as f64);
    let (mut before, mut left) = (0.0, 0.0);
    for j in 0..d {
        let (square, inverse) = (moments.get(j, j), operator.map.inverse_scale(j).powi(2));
        before += (square + e[j] * e[j]) * inverse;
        left += (square - sigma[j] * sigma[j] + e[j] * e[j]) * inverse;
    }
    if before > MOST_CANCELLED * left {
        return None;
    }
    let surplus = operator.weights.map_or(0.0, surplus_of);
    for (i, row) in moments.values_mut().chunks_exact_mut(d).enumerate() {
        let off = surplus * (b[i] - shift(i));
        for (j, c) in row.iter_mut().enumerate() {
            *c += e[i] * e[j] - sigma[i] * sigma[j] + off * (b[j] - shift(j));
        }
    }
    for &j in operator.vanishing {
        (0..d).for_each(|i| (moments.values_mut()[i * d + j], moments.values_mut()[j * d + i]) = (0.0, 0.0));
    }
    *c = moments;
    // Sums Σwyyᵀ err by ρΣw|y||y|ᵀ, the norm of which is at most its trace, and σ by ρ(1/n)Σw|y|, so that σσᵀ errs by twice that
    // at most, and so does eeᵀ together with it.
    let additions = SkippingTriangle::additions(n.div_ceil(n_chunks)) + n_chunks;
    Some(5.0 * rounding_of_sum(additions) * before)
}

/// How far the mean of the weights is from 1, which it was scaled to: as far as rounding took it, in long sums.
fn surplus_of(weights: &[f64]) -> f64 {
    let sum: f64 = weights.chunks(ROWS_AT_ONCE).map(|some| some.iter().map(|w| w - 1.0).sum::<f64>()).sum();
    sum / weights.len() as f64
}

/// Adds rows; compressed ones are spread out.
fn add(operator: &Prepared<'_>, rows: std::ops::Range<usize>, b: &[f64], triangle: &mut SkippingTriangle) {
    let weights = RowWeights(operator.weights);
    match operator.matrix {
        Matrix::DenseF32(x) => triangle.add_rows(x, rows, weights, b),
        Matrix::DenseF64(x) => triangle.add_rows(x, rows, weights, b),
        Matrix::CsrF32(_) | Matrix::CsrF64(_) => {
            let d = operator.dim();
            let mut spread = Vec::new();
            for start in rows.clone().step_by(SkippingTriangle::ROWS) {
                let rows = start..rows.end.min(start + SkippingTriangle::ROWS);
                spread.clear();
                spread.resize(rows.len() * d, 0.0);
                for (l, row) in rows.clone().zip(spread.chunks_exact_mut(d)) {
                    operator.matrix.for_each_in_row(l, |j, x| row[j] = x);
                }
                let values = Cow::Borrowed(&spread[..]);
                let few = Dense::deferring_finite_check(values, rows.len(), d).expect("whole rows");
                let weights = operator.weights.map(|weights| &weights[rows.clone()]);
                triangle.add_rows(&few, 0..rows.len(), RowWeights(weights), b);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;
    use crate::columns::Preprocessing;
    use crate::matrix::Csr;
    use crate::operator::{Covariance, CovarianceOperator, Precision, Products};

    const N: usize = 3000;
    const D: usize = 45;

    /// Runs of four to nine columns, other ones in every row, hold something else than the background; the last columns have no frequent value,
    /// and one column holds nothing but its background.
    fn picture(background: impl Fn(usize) -> f64) -> Vec<f64> {
        let noise = crate::matrix::random_normal(5, N * D);
        let value = |at: usize| {
            let (l, j) = (at / D, at % D);
            let run = l * 11 % 37;
            let inside = (run..run + 4 + l % 6).contains(&j) && j != 20;
            if j >= D - 3 || inside { background(j) + noise[at] } else { background(j) }
        };
        (0..N * D).map(value).collect()
    }

    /// C by the formula.
    fn reference(operator: &Covariance<'_>) -> Block {
        let prepared = operator.prepared();
        let mut a = vec![0.0; N * D];
        for (l, row) in a.chunks_exact_mut(D).enumerate() {
            prepared.matrix.for_each_in_row(l, |j, x| row[j] = x);
            for (j, x) in row.iter_mut().enumerate() {
                *x -= prepared.map.shift().map_or(0.0, |shift| shift[j]);
                *x *=
                    prepared.map.inverse_scale(j) * prepared.weights.map_or(1.0, |weights| weights[l].sqrt());
            }
        }
        let entry =
            |at: usize| a.chunks_exact(D).map(|row| row[at / D] * row[at % D]).sum::<f64>() / N as f64;
        Block::from_values(D, D, (0..D * D).map(entry).collect()).unwrap()
    }

    fn matrices(values: &[f64]) -> [Matrix<'static>; 4] {
        let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        let starts: Vec<usize> =
            (0..=N).map(|l| values[..l * D].iter().filter(|x| **x != 0.0).count()).collect();
        let stored = || (0..N * D).filter(|at| values[*at] != 0.0);
        let columns: Vec<u32> = stored().map(|at| (at % D) as u32).collect();
        [
            Dense::new(narrow.clone(), N, D).unwrap().into(),
            Dense::new(values.to_vec(), N, D).unwrap().into(),
            Csr::new(D, starts.clone(), columns.clone(), stored().map(|at| narrow[at]).collect::<Vec<_>>())
                .unwrap()
                .into(),
            Csr::new(D, starts, columns, stored().map(|at| values[at]).collect::<Vec<_>>()).unwrap().into(),
        ]
    }

    const EVERY: [Preprocessing; 4] =
        [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE];

    #[test]
    fn c_is_that_of_the_formula_within_the_stated_rounding() {
        let weights: Vec<f64> = (0..N).map(|l| (l % 4) as f64).collect();
        let zero = picture(|_| 0.0);
        let shifted = picture(|j| 3.0 - j as f64 / 4.0);
        let matrices = matrices(&zero).into_iter().chain(matrices(&shifted).into_iter().take(2));
        for (kind, x) in matrices.enumerate() {
            for preprocessing in EVERY {
                for weights in [None, Some(&weights[..])] {
                    let operator = match weights {
                        None => Covariance::new(&x, preprocessing).unwrap(),
                        Some(weights) => Covariance::weighted(&x, preprocessing, weights).unwrap(),
                    };
                    let mut c = Block::zeros(D, D);
                    let stated = form(&operator.prepared(), D, 1.0, &mut c).expect("most is blank");
                    super::super::form::scale_both_sides(operator.map(), &mut c);
                    let want = reference(&operator);
                    // The reference rounds, too: its sums are as long, in one piece.
                    let own = rounding_of_sum(N) * operator.total_variance();
                    let off = c
                        .values()
                        .iter()
                        .zip(want.values())
                        .map(|(a, b)| (a - b).powi(2))
                        .sum::<f64>()
                        .sqrt();
                    assert!(off <= stated + own, "{kind} {preprocessing:?}: {off:e} {stated:e} {own:e}");
                    assert!(stated <= 1e-10 * operator.total_variance(), "{stated:e}");
                }
            }
        }
    }

    #[test]
    fn a_column_that_holds_one_number_has_no_covariance() {
        let x: Matrix = Dense::new(picture(|j| 0.1 * j as f64), N, D).unwrap().into();
        let mut c = Block::zeros(0, 0);
        Covariance::new(&x, Preprocessing::CENTER).unwrap().form(Precision::Double, &mut c).unwrap();
        for j in 0..D {
            assert_eq!([c.get(20, j), c.get(j, 20)], [0.0; 2], "column {j}");
            assert_eq!(c.get(j, j) > 0.0, j != 20, "column {j}");
        }
    }

    #[test]
    fn frequent_values_are_found_and_what_is_left_is_counted() {
        let values = picture(|j| j as f64);
        let x: Matrix = Dense::new(values.clone(), N, D).unwrap().into();
        let modes = ColumnModes::of(&x).unwrap();
        for (j, found) in modes.values.iter().enumerate() {
            assert_eq!(*found, (j < D - 3).then_some(j as f64), "column {j}");
        }
        // Tiles of 8×4 in which both sides hold something else, by their definition, in the same rows.
        let rows: Vec<usize> = (0..512).map(|i| sampled(N, i, 512)).collect();
        let differs = |l: usize, columns: std::ops::Range<usize>| {
            columns.filter(|j| *j < D).any(|j| j >= D - 3 || values[l * D + j] != j as f64)
        };
        let mut count = 0;
        for &l in &rows {
            for left in (0..D).step_by(8).filter(|left| differs(l, *left..left + 8)) {
                count += (0..left + 8).step_by(4).filter(|right| differs(l, *right..right + 4)).count();
            }
        }
        assert!((modes.multiply_adds - (32 * count) as f64 / 512.0).abs() < 1e-9 * modes.multiply_adds);
        assert!(modes.pays(D, 1.0));
    }

    #[test]
    fn ordinary_numbers_have_no_frequent_values() {
        let x: Matrix = Dense::new(crate::matrix::random_normal(1, N * D), N, D).unwrap().into();
        assert_eq!(ColumnModes::of(&x), None);
        let few: Matrix = Dense::new(vec![0.0; 100 * D], 100, D).unwrap().into();
        assert_eq!(ColumnModes::of(&few), None);
    }

    #[test]
    fn a_sample_that_misleads_costs_time_and_no_digit() {
        // What is looked at is blank; all other rows lie far from there, and close to each other.
        let mut values: Vec<f64> = crate::matrix::random_normal(2, N * D).iter().map(|x| 1e4 + x).collect();
        for l in (0..512).map(|i| sampled(N, i, 512)) {
            values[l * D..][..D].fill(0.0);
        }
        let weights: Vec<f64> = (0..N).map(|l| f64::from(u8::from(values[l * D] != 0.0))).collect();
        let x: Matrix = Dense::new(values, N, D).unwrap().into();
        let mut operator = Covariance::weighted(&x, Preprocessing::CENTER, &weights).unwrap();
        assert!(ColumnModes::of(&x).is_some_and(|modes| modes.pays(D, 1.0)));
        let mut c = Block::zeros(D, D);
        assert_eq!(form(&operator.prepared(), D, 1.0, &mut c), None);
        assert!(c.values().iter().all(|c| *c == 0.0));
        let rounding = operator.form(Precision::Double, &mut c).unwrap().of_image();
        let off = c
            .values()
            .iter()
            .zip(reference(&operator).values())
            .map(|(a, b)| (a - b).powi(2))
            .sum::<f64>()
            .sqrt();
        assert!(off <= rounding + rounding_of_sum(N) * operator.total_variance(), "{off:e} {rounding:e}");
    }

    #[test]
    fn every_number_of_threads_gives_the_same_bits() {
        let x: Matrix = Dense::new(picture(|_| 0.3).repeat(3), 3 * N, D).unwrap().into();
        let bits = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut c = Block::zeros(D, D);
                form(&Covariance::new(&x, Preprocessing::CENTER).unwrap().prepared(), D, 1.0, &mut c)
                    .unwrap();
                c
            })
        };
        let one = bits(1);
        for threads in [2, 3, 5] {
            assert_eq!(bits(threads), one, "{threads} threads");
        }
    }
}
