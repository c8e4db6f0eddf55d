//! What exact images of a basis leave of a mini-batch's variance: Lemma 1 and K for anchors.
//!
//! With orthonormal Q, exact images CQ and P = I − QQᵀ the gradient of `anchored` for one vector is g_t = CQQᵀw_t + C_S Pw_t = Cw_t + (C_S − C)Pw_t.
//! Lemma 1 holds with this P word for word, whatever Q is. `docs/paper/anchors.md` proves
//!
//! ```text
//! Σ_k E[w_tᵀPM_kPw_t]   = E‖(C_S − C)Pw_t‖²  ≤ K_Q E‖Pw_t‖²      K_Q  = ‖P E[(C_S − C)²] P‖ ≤ K
//!                         E‖P(C_S − C)Pw_t‖² ≤ K⊥ E‖Pw_t‖²       K⊥   = ‖P E[(C_S − C)P(C_S − C)] P‖ ≤ K_Q
//! ```
//!
//! and that K⊥ is K of the rows Pa. What noise puts into span(Q) is undone by the Rayleigh–Ritz step that follows, which knows CQ; what it puts outside
//! is bounded by K⊥. For one row drawn at random
//!
//! ```text
//! P E[(C_S − C)²] P          = P((1/n)Σ‖aₗ‖²aₗaₗᵀ − C²)P
//! P E[(C_S − C)P(C_S − C)] P = P((1/n)Σ‖Paₗ‖²aₗaₗᵀ − CPC)P
//! ```

use super::GradientVariance;
use super::variance::{Deviation, SemiDefinite, largest_eigenvalue};
use crate::linalg::TallBasis;
use crate::operator::{Covariance, project_out};
use crate::{Block, Error, Matrix, RowMap};

/// K_Q and K⊥ of a data set and anchors.
///
/// ```
/// use hbpca::theory::AnchoredVariance;
/// use hbpca::{Block, ColumnStatistics, Dense, Matrix, Preprocessing, Replacement};
/// let x: Matrix = Dense::new(vec![2.0, 0.0, 0.0, 1.0], 2, 2)?.into();
/// let map = Preprocessing::NONE.row_map(&ColumnStatistics::new(&x)?);
/// let anchor = Block::from_vector(vec![1.0, 0.0]); // u₁ of C = diag(2, 1/2)
/// let variance = AnchoredVariance::measure(&x, &map, &anchor, 0.01, 0)?;
/// // (C_S − C)² is diag(4, 1/4) for either row: K = 4, and 1/4 is left.
/// assert!((variance.sampled().of_batch(1, Replacement::With)? - 0.25).abs() < 1e-12);
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnchoredVariance {
    sampled: GradientVariance,
    outside: GradientVariance,
}

impl AnchoredVariance {
    /// Measures both for the rows of `matrix` as `map` prepares them, with the orthonormal columns of `anchors`; accuracy and cost are twice those of
    /// [`GradientVariance::measure`].
    ///
    /// # Errors
    /// For a tolerance outside (0, 1), for anchors of another length than the rows or that are not orthonormal, and when the data cannot be read.
    pub fn measure(
        matrix: &Matrix<'_>,
        map: &RowMap,
        anchors: &Block,
        relative_tol: f64,
        seed: u64,
    ) -> Result<Self, Error> {
        GradientVariance::check_tolerance(relative_tol)?;
        let (n, d) = (matrix.n_rows(), matrix.n_cols());
        if anchors.d() != d {
            return Err(Error::shape("coordinates of an anchor", d, anchors.d()));
        }
        check_orthonormal(anchors)?;
        let q = TallBasis::of(anchors);
        let squares = Covariance::with_map(matrix, map.clone()).squared_row_norms();
        let outside = squares_outside(matrix, map, anchors, &squares);
        let measure = |squares: &[f64], between: Between| -> Result<GradientVariance, Error> {
            let Some(deviation) = Deviation::new(matrix, map, squares)? else {
                return Ok(GradientVariance::of_norm(n, 0.0, 0.0, 1));
            };
            let mut operator = Compressed { deviation, q: &q, between };
            let (norm, residual, steps) = largest_eigenvalue(&mut operator, relative_tol, seed)?;
            Ok(GradientVariance::of_norm(n, norm, residual, 1 + 3 * steps))
        };
        Ok(Self {
            sampled: measure(&squares, Between::Nothing)?,
            outside: measure(&outside, Between::Projection)?,
        })
    }

    /// K_Q, for any batch: how much noise there is.
    pub fn sampled(&self) -> &GradientVariance {
        &self.sampled
    }

    /// K⊥, for any batch: how much of it leaves the anchors.
    pub fn outside(&self) -> &GradientVariance {
        &self.outside
    }
}

/// What stands between the two factors.
#[derive(Clone, Copy)]
enum Between {
    Nothing,
    Projection,
}

/// PTP, with C² or CPC in T.
struct Compressed<'a, 'm> {
    deviation: Deviation<'m>,
    q: &'a TallBasis<f64>,
    between: Between,
}

impl SemiDefinite for Compressed<'_, '_> {
    fn dim(&self) -> usize {
        self.deviation.dim()
    }

    fn rounding(&self) -> f64 {
        self.deviation.rounding()
    }

    fn apply(&mut self, v: &Block) -> Result<Vec<f64>, Error> {
        let mut v = v.clone();
        self.project(&mut v);
        let (q, between) = (self.q, self.between);
        let image = self.deviation.apply_with(&v, |image| match between {
            Between::Nothing => (),
            Between::Projection => project(q, image),
        })?;
        let mut image = Block::from_vector(image);
        self.project(&mut image);
        Ok(image.column(0))
    }
}

impl Compressed<'_, '_> {
    fn project(&self, v: &mut Block) {
        project(self.q, v);
    }
}

fn project(q: &TallBasis<f64>, v: &mut Block) {
    if q.len() > 0 {
        project_out(q, v);
    }
}

/// ‖Pa‖² = ‖a‖² − ‖Qᵀa‖² of every row.
fn squares_outside(matrix: &Matrix<'_>, map: &RowMap, anchors: &Block, squares: &[f64]) -> Vec<f64> {
    let (p, d) = (anchors.p(), anchors.d());
    let scale = |j: usize| map.scale().map_or(1.0, |scale| scale[j]);
    // Qᵀ(x − shift)/scale, of which Qᵀshift/scale is the same for all rows.
    let mut shifted = vec![0.0; p];
    for j in 0..d {
        let shift = map.shift().map_or(0.0, |shift| shift[j]) / scale(j);
        (0..p).for_each(|c| shifted[c] += shift * anchors.get(j, c));
    }
    let outside = |l: usize| {
        let mut along: Vec<f64> = shifted.iter().map(|x| -x).collect();
        matrix.for_each_in_row(l, |j, x| (0..p).for_each(|c| along[c] += x / scale(j) * anchors.get(j, c)));
        (squares[l] - along.iter().map(|x| x * x).sum::<f64>()).max(0.0)
    };
    (0..matrix.n_rows()).map(outside).collect()
}

fn check_orthonormal(anchors: &Block) -> Result<(), Error> {
    let gram = crate::linalg::gram(anchors, anchors);
    let off = |i: usize, j: usize| (gram[(i, j)] - f64::from(u8::from(i == j))).abs();
    let p = anchors.p();
    let loss = (0..p).flat_map(|i| (0..p).map(move |j| (i, j))).map(|(i, j)| off(i, j)).fold(0.0, f64::max);
    if loss <= 1e-8 {
        return Ok(());
    }
    let advice = "anchors must be orthonormal; take the components of a model";
    Err(Error::parameter("anchors", format!("off by {loss:e}"), advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::dot;
    use crate::linalg::random_complement;
    use crate::matrix::random_direction;
    use crate::theory::epochs::{Data, for_every_sequence};
    use crate::theory::{p, q};
    use crate::{ColumnStatistics, Csr, Dense, Preprocessing, Replacement};
    use faer::{Mat, Side};

    fn anchors(d: usize, a: usize, seed: u64) -> Block {
        random_complement(&TallBasis::with_room(d, 0), a, seed).unwrap()
    }

    fn outside(w: &[f64], q: &Block) -> Vec<f64> {
        let mut w = Block::from_vector(w.to_vec());
        project(&TallBasis::of(q), &mut w);
        w.column(0)
    }

    #[test]
    fn lemma1_holds_for_anchors_over_all_sequences_of_batches() {
        let (n, d, m) = (4, 4, 4);
        let data = Data::random(81, n, d, 0.7);
        for a in [1, 2, 3] {
            let q_basis = anchors(d, a, 82);
            // w₀ lies in span(Q), so that its image is exact.
            let w0: Vec<f64> =
                (0..d).map(|i| (0..a).map(|c| (c + 1) as f64 * q_basis.get(i, c)).sum()).collect();
            for (eta, lambda2) in [(0.3, data.lambda[1]), (1.0, 0.9 * data.lambda[1])] {
                let beta = f64::powi(1.0 - eta + eta * lambda2, 2);
                let (mut sums, mut sizes) = (vec![0.0; d * (m + 1)], vec![0.0; d * (m + 1)]);
                for_every_sequence(n, m, |rows| {
                    let combine = |terms: &[(f64, &[f64])]| -> Vec<f64> {
                        (0..d).map(|i| terms.iter().map(|(c, v)| c * v[i]).sum()).collect()
                    };
                    let mut w = vec![w0.clone(), combine(&[(1.0 - eta, &w0), (eta, &data.full_image(&w0))])];
                    for t in 1..m {
                        let rest = outside(&w[t], &q_basis);
                        let inside = combine(&[(1.0, &w[t]), (-1.0, &rest)]);
                        let sampled = data.image([rows[t - 1]].into_iter(), &rest);
                        let g = combine(&[(1.0, &data.full_image(&inside)), (1.0, &sampled)]);
                        w.push(combine(&[(2.0 * (1.0 - eta), &w[t]), (2.0 * eta, &g), (-beta, &w[t - 1])]));
                    }
                    for (k, t) in (0..d).flat_map(|k| (0..=m).map(move |t| (k, t))) {
                        let alpha = 4.0 * (1.0 - eta + eta * data.lambda[k]).powi(2);
                        let noises = (1..t)
                            .map(|r| q(alpha, beta, t - r - 1) * data.noise(k, &outside(&w[r], &q_basis)));
                        let left = dot(&data.u[k], &w[t]).powi(2);
                        let start = p(alpha, beta, t) * dot(&data.u[k], &w0).powi(2);
                        let noise = 4.0 * eta * eta * noises.sum::<f64>();
                        sums[k * (m + 1) + t] += left - start - noise;
                        sizes[k * (m + 1) + t] += left + start + noise;
                    }
                });
                for (sum, size) in sums.iter().zip(&sizes) {
                    assert!(sum.abs() <= 1e-12 * size, "a = {a}, η = {eta}: {sum:e} of {size:e}");
                }
            }
        }
    }

    /// Both constants by their definitions: means over every batch of b rows.
    fn by_enumeration(rows: &[Vec<f64>], q: &Block, b: usize, replacement: Replacement) -> [f64; 2] {
        let (n, d) = (rows.len(), rows[0].len());
        let outer = |batch: &[usize]| {
            Mat::<f64>::from_fn(d, d, |i, j| {
                batch.iter().map(|&l| rows[l][i] * rows[l][j]).sum::<f64>() / batch.len() as f64
            })
        };
        let p = Mat::<f64>::from_fn(d, d, |i, j| {
            f64::from(u8::from(i == j)) - (0..q.p()).map(|c| q.get(i, c) * q.get(j, c)).sum::<f64>()
        });
        let c = outer(&(0..n).collect::<Vec<_>>());
        let mut sums = [Mat::<f64>::zeros(d, d), Mat::<f64>::zeros(d, d)];
        let mut count = 0.0;
        for code in 0..n.pow(b as u32) {
            let batch: Vec<usize> = (0..b).map(|i| code / n.pow(i as u32) % n).collect();
            if replacement == Replacement::With || (1..b).all(|i| !batch[..i].contains(&batch[i])) {
                let deviation = outer(&batch) - &c;
                sums[0] += &p * &deviation * &deviation * &p;
                sums[1] += &p * &deviation * &p * &deviation * &p;
                count += 1.0;
            }
        }
        sums.map(|sum| sum.self_adjoint_eigenvalues(Side::Lower).unwrap()[d - 1] / count)
    }

    #[test]
    fn every_batch_enumerated_gives_the_same_variances() {
        let (n, d) = (5, 4);
        let mut values = random_direction(3, n * d);
        values.iter_mut().enumerate().for_each(|(i, x)| *x *= 1.0 + (i / d) as f64);
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
            let all = GradientVariance::measure(&x, &map, 1e-9, 5).unwrap();
            for a in [0, 1, 2, 3] {
                let basis = if a == 0 { Block::zeros(d, 0) } else { anchors(d, a, 9) };
                let found = AnchoredVariance::measure(&x, &map, &basis, 1e-9, 5).unwrap();
                for replacement in [Replacement::With, Replacement::Without] {
                    for b in 1..=3 {
                        let want = by_enumeration(&rows, &basis, b, replacement);
                        let of = |variance: &GradientVariance| variance.of_batch(b, replacement).unwrap();
                        let got = [of(found.sampled()), of(found.outside())];
                        for (got, want) in got.iter().zip(want) {
                            assert!((got / want - 1.0).abs() < 1e-9, "a = {a}, b = {b}: {got} {want}");
                        }
                        assert!(got[1] <= got[0] * (1.0 + 1e-9) && got[0] <= of(&all) * (1.0 + 1e-9));
                    }
                }
            }
        }
    }

    #[test]
    fn outside_the_anchors_the_variance_is_that_of_projected_rows() {
        let (n, d) = (60, 6);
        let values = random_direction(4, n * d);
        let starts: Vec<usize> = (0..=n).map(|l| l * d).collect();
        let columns: Vec<u32> = (0..n * d).map(|i| (i % d) as u32).collect();
        let sparse: Matrix = Csr::new(d, starts, columns, values.clone()).unwrap().into();
        let basis = anchors(d, 2, 6);
        let projected: Vec<f64> = values.chunks_exact(d).flat_map(|row| outside(row, &basis)).collect();
        let projected: Matrix = Dense::new(projected, n, d).unwrap().into();
        let map = Preprocessing::NONE.row_map(&ColumnStatistics::new(&sparse).unwrap());
        let want = GradientVariance::measure(&projected, &map, 1e-9, 1).unwrap().of_one_row();
        let got = AnchoredVariance::measure(&sparse, &map, &basis, 1e-9, 1).unwrap();
        assert!((got.outside().of_one_row() / want - 1.0).abs() < 1e-7, "{got:?} {want}");
        assert!(got.sampled().of_one_row() > 1.01 * want); // what lands in span(Q) is counted there, and only there
    }

    #[test]
    fn every_constraint_is_named() {
        let x: Matrix = Dense::new(vec![1.0, 2.0, 3.0, 4.0], 2, 2).unwrap().into();
        let map = Preprocessing::NONE.row_map(&ColumnStatistics::new(&x).unwrap());
        let text = |anchors: Block, tol: f64| {
            AnchoredVariance::measure(&x, &map, &anchors, tol, 0).unwrap_err().to_string()
        };
        assert_eq!(text(Block::zeros(3, 1), 0.1), "coordinates of an anchor: 3 given where 2 are needed");
        assert!(text(Block::zeros(2, 1), 0.1).contains("anchors must be orthonormal"));
        assert!(text(Block::from_vector(vec![1.0, 0.0]), 0.0).starts_with("relative_tol = 0"));
        // Anchors that are everything leave nothing.
        let all = Block::from_columns(&[[1.0, 0.0], [0.0, 1.0]]).unwrap();
        let nothing = AnchoredVariance::measure(&x, &map, &all, 0.1, 0).unwrap();
        assert!(nothing.sampled().of_one_row() < 1e-12 && nothing.outside().of_one_row() < 1e-12);
    }
}
