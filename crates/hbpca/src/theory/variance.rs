//! K = ‖E[(C_S − C)²]‖, the variance of a mini-batch's covariance, from the data.
//!
//! For b rows drawn independently C_S is a mean of b independent aaᵀ, and (aaᵀ)² = ‖a‖²aaᵀ, so
//!
//! ```text
//! E[(C_S − C)²] = T/b,                    T = (1/n)Σ‖aₗ‖²aₗaₗᵀ − C²      with replacement
//! E[(C_S − C)²] = T/b · (n−b)/(n−1)                                       without
//! ```
//!
//! (the finite-population correction: two different rows have covariance −T/(n−1)). One number, ‖T‖, therefore gives K
//! for every batch size. It is found by Lanczos on T, which is positive semi-definite and applied without being formed.

use faer::{Mat, Side};

use crate::block::{dot, norm};
use crate::matrix::random_direction;
use crate::operator::{Covariance, CovarianceOperator, Products};
use crate::{Block, Error, Matrix, Replacement, RowMap};

/// ‖T‖ of a data set, and with it K for any batch.
///
/// ```
/// use hbpca::theory::GradientVariance;
/// use hbpca::{ColumnStatistics, Dense, Matrix, Preprocessing, Replacement};
/// let x: Matrix = Dense::new(vec![2.0, 0.0, 0.0, 1.0], 2, 2)?.into();
/// let map = Preprocessing::NONE.row_map(&ColumnStatistics::new(&x)?);
/// let variance = GradientVariance::measure(&x, &map, 0.01, 0)?;
/// // C = diag(2, 1/2); one row gives diag(4, 0) or diag(0, 1): (C_S − C)² = diag(4, 1/4) either way.
/// assert!((variance.of_batch(1, Replacement::With)? - 4.0).abs() < 1e-12);
/// assert_eq!(variance.of_batch(2, Replacement::Without)?, 0.0); // the full batch has no variance
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientVariance {
    n: usize,
    norm: f64,
    residual: f64,
    passes: usize,
}

impl GradientVariance {
    /// Measures ‖T‖ for the rows of `matrix` as `map` prepares them.
    ///
    /// **Accuracy.** The value is a Rayleigh quotient, hence never above ‖T‖ but for rounding. Lanczos stops when its residual is
    /// below `relative_tol` times the value: an eigenvalue of T then lies that close, and it is the largest one unless the
    /// random start from `seed` misses that direction. With close eigenvalues it stops at the latest after
    /// 1 + ln(d)·√(2.575/`relative_tol`) steps, when the expected relative error is below `relative_tol` whatever the spectrum
    /// (Kuczyński & Woźniakowski 1992, theorem 3.2, for starts uniform on the sphere, which ours is nearly).
    ///
    /// **Cost.** One pass for the row norms and three a step; typically four to ten steps for 1 %. Memory: one vector of length
    /// d a step.
    ///
    /// # Errors
    /// For a tolerance outside (0, 1), and when the data cannot be read.
    pub fn measure(matrix: &Matrix<'_>, map: &RowMap, relative_tol: f64, seed: u64) -> Result<Self, Error> {
        Self::check_tolerance(relative_tol)?;
        let n = matrix.n_rows();
        let squares = Covariance::with_map(matrix, map.clone()).squared_row_norms();
        let Some(mut operator) = Deviation::new(matrix, map, &squares)? else {
            return Ok(Self { n, norm: 0.0, residual: 0.0, passes: 1 });
        };
        let (norm, residual, steps) = largest_eigenvalue(&mut operator, relative_tol, seed)?;
        Ok(Self { n, norm, residual, passes: 1 + 3 * steps })
    }

    /// K for batches of `batch` rows.
    ///
    /// # Errors
    /// For an empty batch, and for one larger than n without replacement.
    pub fn of_batch(&self, batch: usize, replacement: Replacement) -> Result<f64, Error> {
        if batch == 0 {
            return Err(Error::parameter("batch", "0 rows", "give at least 1, or a share such as 1%"));
        }
        let independent = self.norm / batch as f64;
        if replacement == Replacement::With {
            return Ok(independent);
        }
        if batch > self.n {
            let advice =
                format!("the data has only {} rows; give at most that, or a share such as 1%", self.n);
            return Err(Error::parameter("batch", format!("{batch} rows"), advice));
        }
        // n = 1 leaves no choice: (n−b)/(n−1) counts as 0.
        Ok(independent * ((self.n - batch) as f64 / (self.n.max(2) - 1) as f64))
    }

    /// ‖T‖, which is K for batches of one row.
    pub fn of_one_row(&self) -> f64 {
        self.norm
    }

    pub(super) fn check_tolerance(relative_tol: f64) -> Result<(), Error> {
        if relative_tol > 0.0 && relative_tol < 1.0 {
            return Ok(());
        }
        let advice = "must lie in (0, 1); 0.01 is ample, the best step size changes by less";
        Err(Error::parameter("relative_tol", relative_tol, advice))
    }

    /// ‖T‖ that was found otherwise.
    pub(super) fn of_norm(n: usize, norm: f64, residual: f64, passes: usize) -> Self {
        Self { n, norm, residual, passes }
    }

    /// Residual of the eigenpair behind [`of_one_row`](Self::of_one_row): an eigenvalue of T lies within this distance.
    pub fn residual(&self) -> f64 {
        self.residual
    }

    /// Passes over the data that the measurement took.
    pub fn passes(&self) -> usize {
        self.passes
    }
}

/// T = (1/n)Σ‖a‖²aaᵀ − C².
pub(super) struct Deviation<'m> {
    covariance: Covariance<'m>,
    /// Row weights ‖a‖² divided by their mean, which `mean_square` puts back.
    weighted: Covariance<'m>,
    mean_square: f64,
    rounding: f64,
    once: Block,
    twice: Block,
}

impl<'m> Deviation<'m> {
    /// With ‖a‖² of every row, or what stands for it; nothing where all are 0.
    pub(super) fn new(matrix: &'m Matrix<'_>, map: &RowMap, squares: &[f64]) -> Result<Option<Self>, Error> {
        let largest = squares.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return Ok(None);
        }
        let covariance = Covariance::with_map(matrix, map.clone());
        Ok(Some(Self {
            mean_square: squares.iter().sum::<f64>() / matrix.n_rows() as f64,
            // ‖fl(Tv) − Tv‖ for a unit v: row sums weighted by at most max‖a‖², and two products with C.
            rounding: (largest + 2.0 * covariance.total_variance()) * covariance.rounding().of_image(),
            weighted: Covariance::with_map_and_weights(matrix, map.clone(), squares)?,
            covariance,
            once: Block::zeros(matrix.n_cols(), 1),
            twice: Block::zeros(matrix.n_cols(), 1),
        }))
    }

    /// (1/n)Σ s aaᵀv − C P Cv with P applied by `between`; three passes.
    pub(super) fn apply_with(&mut self, v: &Block, between: impl Fn(&mut Block)) -> Result<Vec<f64>, Error> {
        self.covariance.apply(v, &mut self.once)?;
        between(&mut self.once);
        self.covariance.apply(&self.once, &mut self.twice)?;
        self.weighted.apply(v, &mut self.once)?;
        let terms = self.once.values().iter().zip(self.twice.values());
        Ok(terms.map(|(fourth, square)| self.mean_square * fourth - square).collect())
    }
}

/// A positive semi-definite operator whose norm is wanted.
pub(super) trait SemiDefinite {
    /// d.
    fn dim(&self) -> usize;

    /// A bound on the rounding of an image of a unit vector.
    fn rounding(&self) -> f64;

    /// Its image of a vector.
    fn apply(&mut self, v: &Block) -> Result<Vec<f64>, Error>;
}

impl SemiDefinite for Deviation<'_> {
    fn dim(&self) -> usize {
        self.once.d()
    }

    fn rounding(&self) -> f64 {
        self.rounding
    }

    /// Tv: three passes.
    fn apply(&mut self, v: &Block) -> Result<Vec<f64>, Error> {
        self.apply_with(v, |_| ())
    }
}

/// The largest eigenvalue of T, its residual and the steps taken: Lanczos with full reorthogonalisation.
pub(super) fn largest_eigenvalue(
    t: &mut dyn SemiDefinite,
    relative_tol: f64,
    seed: u64,
) -> Result<(f64, f64, usize), Error> {
    let d = t.dim();
    let enough = 1.0 + (d as f64).ln() * (2.575 / relative_tol).sqrt();
    let most_steps = d.min(enough.ceil() as usize);
    let mut basis: Vec<Block> = Vec::new();
    let (mut diagonal, mut off_diagonal): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut next = random_direction(seed, d);
    let length = norm(&next);
    for x in &mut next {
        *x /= length;
    }
    loop {
        let v = Block::from_vector(next);
        next = t.apply(&v)?;
        diagonal.push(dot(&next, v.values()));
        basis.push(v);
        // Twice is enough to make w orthogonal to working precision.
        for _ in 0..2 {
            for v in &basis {
                let along = dot(&next, v.values());
                next.iter_mut().zip(v.values()).for_each(|(x, v)| *x -= along * v);
            }
        }
        let length = norm(&next);
        let (theta, last) = largest_ritz_pair(&diagonal, &off_diagonal)?;
        // ‖Ty − θy‖ = (length of the new direction)·|last coordinate of y|.
        let residual = length * last.abs() + t.rounding();
        let steps = basis.len();
        if residual <= (relative_tol * theta).max(2.0 * t.rounding()) || steps == most_steps {
            return Ok((theta.max(0.0), residual, steps));
        }
        off_diagonal.push(length);
        for x in &mut next {
            *x /= length;
        }
    }
}

/// The largest eigenvalue of a symmetric tridiagonal matrix and the last coordinate of its unit eigenvector.
fn largest_ritz_pair(diagonal: &[f64], off_diagonal: &[f64]) -> Result<(f64, f64), Error> {
    let j = diagonal.len();
    let mut tridiagonal = Mat::zeros(j, j);
    for i in 0..j {
        tridiagonal[(i, i)] = diagonal[i];
        if i + 1 < j {
            tridiagonal[(i + 1, i)] = off_diagonal[i];
        }
    }
    let eigen = tridiagonal.self_adjoint_eigen(Side::Lower).map_err(|_| {
        let advice =
            "the eigenvalues of its variance operator could not be found: scale the data to entries near 1";
        Error::parameter("matrix", format!("{j} Lanczos steps"), advice)
    })?;
    Ok((eigen.S()[j - 1], eigen.U()[(j - 1, j - 1)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnStatistics, Csr, Dense, Preprocessing};

    fn random_rows(seed: u64, n: usize, d: usize) -> Vec<f64> {
        // Rows of very different lengths, so that E‖a‖²aaᵀ is far from C².
        let mut x = random_direction(seed, n * d);
        x.chunks_exact_mut(d)
            .enumerate()
            .for_each(|(l, row)| row.iter_mut().for_each(|x| *x *= 1.0 + l as f64));
        x
    }

    /// K by its definition: the mean of (C_S − C)² over every batch of b rows.
    fn by_enumeration(rows: &[Vec<f64>], b: usize, replacement: Replacement) -> f64 {
        let (n, d) = (rows.len(), rows[0].len());
        let outer = |batch: &[usize]| {
            Mat::<f64>::from_fn(d, d, |i, j| {
                batch.iter().map(|&l| rows[l][i] * rows[l][j]).sum::<f64>() / batch.len() as f64
            })
        };
        let c = outer(&(0..n).collect::<Vec<_>>());
        let (mut sum, mut count) = (Mat::<f64>::zeros(d, d), 0.0);
        for code in 0..n.pow(b as u32) {
            let batch: Vec<usize> = (0..b).map(|i| code / n.pow(i as u32) % n).collect();
            let distinct = (1..b).all(|i| !batch[..i].contains(&batch[i]));
            if replacement == Replacement::With || distinct {
                let deviation = outer(&batch) - &c;
                sum += &deviation * &deviation;
                count += 1.0;
            }
        }
        sum.self_adjoint_eigenvalues(Side::Lower).unwrap()[d - 1] / count
    }

    fn measure(x: &Matrix<'_>, preprocessing: Preprocessing) -> GradientVariance {
        let map = preprocessing.row_map(&ColumnStatistics::new(x).unwrap());
        GradientVariance::measure(x, &map, 1e-9, 5).unwrap()
    }

    #[test]
    fn every_batch_enumerated_gives_the_same_variance() {
        let (n, d) = (5, 3);
        let values = random_rows(3, n, d);
        for preprocessing in [Preprocessing::NONE, Preprocessing::STANDARDIZE] {
            let x: Matrix = Dense::new(values.clone(), n, d).unwrap().into();
            let map = preprocessing.row_map(&ColumnStatistics::new(&x).unwrap());
            let at = |j: usize, x: f64| {
                (x - map.shift().map_or(0.0, |s| s[j])) / map.scale().map_or(1.0, |s| s[j])
            };
            let rows: Vec<Vec<f64>> = values
                .chunks_exact(d)
                .map(|r| r.iter().enumerate().map(|(j, &x)| at(j, x)).collect())
                .collect();
            let variance = measure(&x, preprocessing);
            for replacement in [Replacement::With, Replacement::Without] {
                for b in 1..=4 {
                    let want = by_enumeration(&rows, b, replacement);
                    let found = variance.of_batch(b, replacement).unwrap();
                    // With d = 3 steps the Krylov space is everything: only rounding is left.
                    assert!((found / want - 1.0).abs() < 1e-12, "{replacement:?} {b}: {found} {want}");
                }
            }
            assert_eq!(variance.of_batch(n, Replacement::Without).unwrap().to_bits(), 0);
        }
    }

    #[test]
    fn tolerance_is_kept_in_many_dimensions_and_sparse_equals_dense() {
        let (n, d) = (300, 40);
        let mut values = random_rows(8, n, d);
        values
            .iter_mut()
            .enumerate()
            .for_each(|(i, x)| *x *= if i % 3 == 0 { 1.0 / (1 + i % d) as f64 } else { 0.0 });
        let dense: Matrix = Dense::new(values.clone(), n, d).unwrap().into();
        let (mut starts, mut columns, mut entries) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks_exact(d) {
            for (j, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                columns.push(j as u32);
                entries.push(x);
            }
            starts.push(columns.len());
        }
        let sparse: Matrix = Csr::new(d, starts, columns, entries).unwrap().into();
        for preprocessing in [Preprocessing::NONE, Preprocessing::CENTER] {
            let exact = measure(&dense, preprocessing).of_one_row();
            let map = preprocessing.row_map(&ColumnStatistics::new(&sparse).unwrap());
            for tol in [0.1, 0.01, 1e-4] {
                let rough = GradientVariance::measure(&sparse, &map, tol, 1).unwrap();
                let error = 1.0 - rough.of_one_row() / exact;
                assert!(error > -1e-9 && error < tol, "{tol}: {error}");
                assert!(rough.residual() <= tol * rough.of_one_row() && rough.passes() < 60, "{rough:?}");
            }
        }
    }

    #[test]
    fn rows_that_are_all_alike_have_no_variance() {
        // ±a: every batch gives C itself, and T vanishes but for the rounding of its two terms.
        let x: Matrix = Dense::new(vec![3.0, 4.0, -3.0, -4.0], 2, 2).unwrap().into();
        let k = measure(&x, Preprocessing::NONE).of_one_row();
        assert!(k < 625.0 * 64.0 * f64::EPSILON, "{k}");
        let zeros: Matrix = Dense::new(vec![0.0; 6], 3, 2).unwrap().into();
        assert_eq!(measure(&zeros, Preprocessing::CENTER).of_one_row().to_bits(), 0);
        let single: Matrix = Dense::new(vec![1.0, 2.0], 1, 2).unwrap().into();
        let variance = measure(&single, Preprocessing::NONE);
        assert_eq!(variance.of_batch(1, Replacement::Without).unwrap().to_bits(), 0);
    }

    #[test]
    fn every_constraint_is_named() {
        let x: Matrix = Dense::new(vec![1.0, 2.0], 2, 1).unwrap().into();
        let map = Preprocessing::NONE.row_map(&ColumnStatistics::new(&x).unwrap());
        for tol in [0.0, 1.0, f64::NAN] {
            assert_eq!(
                GradientVariance::measure(&x, &map, tol, 0).unwrap_err().to_string(),
                format!(
                    "relative_tol = {tol}: must lie in (0, 1); 0.01 is ample, the best step size changes by less"
                )
            );
        }
        let variance = measure(&x, Preprocessing::NONE);
        assert_eq!(
            variance.of_batch(0, Replacement::With).unwrap_err().to_string(),
            "batch = 0 rows: give at least 1, or a share such as 1%"
        );
        assert_eq!(
            variance.of_batch(3, Replacement::Without).unwrap_err().to_string(),
            "batch = 3 rows: the data has only 2 rows; give at most that, or a share such as 1%"
        );
        assert!(variance.of_batch(3, Replacement::With).is_ok());
    }
}
