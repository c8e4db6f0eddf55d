//! What the matrices of a block Lanczos recurrence say about eigenvalues above all Ritz values.
//!
//! ```text
//! MQ = QT + Q_{m+1}B_mE_mᵀ,   T = tridiag(B_{j−1}, A_j, B_jᵀ),   θ = λ_max(T)
//!
//! Mu = tu, t > θ:   yⱼ = Qⱼᵀu obeys  y₁ = R₁⁻¹B₁ᵀy₂,  y₂ = R₂⁻¹B₂ᵀy₃, …      R₁ = t − A₁,  R_{j+1} = t − A_{j+1} − BⱼRⱼ⁻¹Bⱼᵀ
//! φ(t) = max ‖y₁‖²/Σ‖yⱼ‖² = λ_max(Λ₁),   Λ_{m+1} = I,  Cⱼ = Rⱼ⁻¹BⱼᵀΛ_{j+1}BⱼRⱼ⁻¹,  Λⱼ = Cⱼ(I + Cⱼ)⁻¹
//! ```
//!
//! The Rⱼ are the pivots of tI − T, positive definite above θ. No Bⱼ is inverted, so that blocks may lose columns. φ = 1/λ_min(ΣPⱼPⱼᵀ) in the
//! matrix polynomials Pⱼ(t) of the recurrence.
//!
//! For one vector φ falls above θ. **For blocks it need not**: a value t with φ(t) < q says nothing about larger ones, and bisection
//! would be wrong. So φ is bounded over intervals. The pivots grow with t, so that for all t in \[lo, hi\]
//!
//! ```text
//! Rⱼ(t)⁻¹ = M + G,   M = (Rⱼ(lo)⁻¹ + Rⱼ(hi)⁻¹)/2,   −Ω/2 ⪯ G ⪯ Ω/2,   Ω = Rⱼ(lo)⁻¹ − Rⱼ(hi)⁻¹
//! Cⱼ(t) ⪯ (1 + β)MNM + (1 + 1/β)·tr(NΩ)·Ω/4,   N = BⱼᵀΛ_{j+1}Bⱼ                     any β > 0
//! ```
//!
//! and C ↦ C(I + C)⁻¹ keeps the order. Above θ + (Π‖Bⱼ‖/x)^{1/m} simply φ ≤ Π(‖Bⱼ‖/(t − θ))² ≤ x², because Rⱼ ⪰ (t − θ)I.

use faer::{Mat, Scale};

use crate::Error;
use crate::linalg::small_eigen;
use crate::rounding::rounding_of_sum;

/// The factor between the ends of an interval of t − θ: the first, the largest, and the one that is not worth going below.
const FIRST_STEP: f64 = 1.5;
const LARGEST_STEP: f64 = 4.0;
const LEAST_STEP: f64 = 1.002;

/// A₁ … A_m and B₁ … B_m.
#[derive(Clone, Debug, Default)]
pub(super) struct Recurrence {
    a: Vec<Mat<f64>>,
    /// Bⱼ has as many rows as block j + 1 has vectors, and as many columns as block j.
    b: Vec<Mat<f64>>,
}

impl Recurrence {
    /// A_m and B_m.
    pub(super) fn push(&mut self, a: Mat<f64>, b: Mat<f64>) {
        self.a.push(a);
        self.b.push(b);
    }

    /// B_m, if m > 0.
    pub(super) fn last(&self) -> Option<&Mat<f64>> {
        self.b.last()
    }

    /// ‖\[T; B_mE_mᵀ\]‖ in the Frobenius norm.
    pub(super) fn norm(&self) -> f64 {
        let diagonal = self.a.iter().map(Mat::norm_l2);
        let beside = self.b.iter().map(|b| std::f64::consts::SQRT_2 * b.norm_l2());
        diagonal.chain(beside).fold(0.0, f64::hypot)
    }

    /// T.
    fn matrix(&self) -> Mat<f64> {
        let size = self.a.iter().map(Mat::nrows).sum();
        let mut t = Mat::zeros(size, size);
        let mut at = 0;
        for (j, a) in self.a.iter().enumerate() {
            let p = a.nrows();
            t.as_mut().submatrix_mut(at, at, p, p).copy_from(a);
            if j > 0 {
                let b = &self.b[j - 1];
                t.as_mut().submatrix_mut(at, at - b.ncols(), p, b.ncols()).copy_from(b);
                t.as_mut().submatrix_mut(at - b.ncols(), at, b.ncols(), p).copy_from(b.transpose());
            }
            at += p;
        }
        t
    }

    /// How far pivots and eigenvalues may be off, as if t had been: Cholesky factors and symmetric eigenvalues are exact for a matrix that is
    /// this close (Higham 2002, theorem 10.3).
    fn rounding(&self, t: f64) -> f64 {
        let size: usize = self.a.iter().map(Mat::nrows).sum();
        4.0 * rounding_of_sum(size) * (t.abs() + self.norm())
    }

    /// λ_max(T), from above.
    pub(super) fn largest(&self) -> Result<f64, Error> {
        let (values, _) = small_eigen(&self.matrix())?;
        let largest = values.first().copied().unwrap_or(0.0);
        Ok(largest + self.rounding(largest))
    }

    /// A number that λ exceeds only if ‖Q₁ᵀu‖ < `share`, where Mu = λu, ‖u‖ = 1, and ‖MQ − QT − Q_{m+1}B_mE_mᵀ‖ ≤ `error`.
    ///
    /// With e = `error`/(λ − θ) the y of above is off by at most e, so that ‖y₁‖ ≤ √φ(λ)·(1 + e) + e. That must be below `share` in all
    /// of \[bound, ∞).
    pub(super) fn bound(&self, share: f64, error: f64) -> Result<f64, Error> {
        let norm = self.norm();
        if !(share > 0.0 && error >= 0.0 && error.is_finite() && norm.is_finite()) {
            return Ok(f64::INFINITY); // also where something is no number
        }
        // Scaled, so that products of many matrices stay in range.
        let largest = norm.max(error);
        let unit = if largest.is_normal() { 2.0_f64.powi(largest.log2() as i32) } else { 1.0 };
        let scaled = |all: &[Mat<f64>]| all.iter().map(|x| x * Scale(1.0 / unit)).collect();
        let unscaled =
            Self { a: scaled(&self.a), b: scaled(&self.b) }.scaled_bound(share, error / unit)? * unit;
        Ok(unscaled * (1.0 + f64::EPSILON))
    }

    fn scaled_bound(&self, share: f64, error: f64) -> Result<f64, Error> {
        let theta = self.largest()?;
        let m = self.b.len() as f64;
        // √φ ≤ share/2 from here on; 0 where a block has no next one.
        let logarithms: f64 = self.b.iter().map(|b| b.norm_l2().ln()).sum();
        let far = ((logarithms - (0.5 * share).ln()) / m).exp();
        let floor = (8.0 * self.rounding(theta)).max(f64::MIN_POSITIVE);
        // e ≤ share/4 and √φ ≤ share/2: √φ(1 + e) + e ≤ 7/8 of the share.
        let mut gap = far.max(4.0 * error / share).max(floor);
        let mut step = FIRST_STEP;
        while step > LEAST_STEP {
            let next = (gap / step).max(floor);
            if next >= gap {
                break;
            }
            let e = error / next;
            let least = (share - e) / (1.0 + e);
            let off = self.rounding(theta + gap);
            if least > 0.0 && self.largest_share(theta + next - off, theta + gap + off)? < least * least {
                gap = next;
                step = step.powf(1.5).min(LARGEST_STEP);
            } else {
                step = step.sqrt();
            }
        }
        Ok(theta + gap)
    }

    /// An upper bound on φ in \[lo, hi\], lo > θ.
    fn largest_share(&self, lo: f64, hi: f64) -> Result<f64, Error> {
        let (Some(at_lo), Some(at_hi)) = (self.inverse_pivots(lo), self.inverse_pivots(hi)) else {
            return Ok(f64::INFINITY);
        };
        let width = self.b.last().map_or(0, Mat::nrows);
        let mut share = Mat::<f64>::identity(width, width);
        for (j, b) in self.b.iter().enumerate().rev() {
            let p = b.ncols();
            let n = symmetric(&(b.transpose() * &share * b));
            let middle = Mat::from_fn(p, p, |i, l| 0.5 * (at_lo[j][(i, l)] + at_hi[j][(i, l)]));
            let spread = &at_lo[j] - &at_hi[j];
            let within = &middle * &n * &middle;
            let around = &spread * Scale(0.25 * trace(&(&n * &spread)).max(0.0));
            let (inner, outer) = (trace(&within), trace(&around).max(0.0));
            let beta = if inner > 0.0 { (outer / inner).sqrt() } else { 1.0 };
            let factor = if beta > 0.0 { 1.0 + beta.recip() } else { 0.0 };
            let mut c = symmetric(&(within * Scale(1.0 + beta) + around * Scale(factor)));
            // Inverses are off by their condition numbers, products by their factors.
            let shifted = Mat::from_fn(p, p, |i, l| f64::from(u8::from(i == l)) * hi - self.a[j][(i, l)]);
            let inverse = at_lo[j].norm_l2();
            let condition = (shifted.norm_l2() * inverse).max(1.0);
            add_to_diagonal(&mut c, 8.0 * rounding_of_sum(p) * condition * inverse * inverse * n.norm_l2());
            let size = c.norm_l2();
            let Some(inverse) =
                inverse_of(&Mat::from_fn(p, p, |i, l| f64::from(u8::from(i == l)) + c[(i, l)]))
            else {
                return Ok(f64::INFINITY);
            };
            share = symmetric(&(&inverse * &c));
            add_to_diagonal(&mut share, 8.0 * rounding_of_sum(p) * size);
        }
        let (values, _) = small_eigen(&share)?;
        Ok(values.first().copied().unwrap_or(0.0))
    }

    /// Rⱼ(t)⁻¹ of every block, where all are positive definite.
    fn inverse_pivots(&self, t: f64) -> Option<Vec<Mat<f64>>> {
        let mut inverses: Vec<Mat<f64>> = Vec::with_capacity(self.a.len());
        for (j, a) in self.a.iter().enumerate() {
            let mut r = Mat::from_fn(a.nrows(), a.nrows(), |i, l| if i == l { t } else { 0.0 } - a[(i, l)]);
            if j > 0 {
                r -= &self.b[j - 1] * &inverses[j - 1] * self.b[j - 1].transpose();
            }
            inverses.push(inverse_of(&symmetric(&r))?);
        }
        Some(inverses)
    }
}

/// (H + Hᵀ)/2.
fn symmetric(h: &Mat<f64>) -> Mat<f64> {
    Mat::from_fn(h.nrows(), h.ncols(), |i, j| 0.5 * (h[(i, j)] + h[(j, i)]))
}

fn trace(h: &Mat<f64>) -> f64 {
    (0..h.nrows()).map(|i| h[(i, i)]).sum()
}

fn add_to_diagonal(h: &mut Mat<f64>, x: f64) {
    (0..h.nrows()).for_each(|i| h[(i, i)] += x);
}

/// H⁻¹ = L⁻ᵀL⁻¹ of a positive definite matrix H = LLᵀ; nothing where it is none.
fn inverse_of(h: &Mat<f64>) -> Option<Mat<f64>> {
    let p = h.nrows();
    let mut l = Mat::<f64>::zeros(p, p);
    for j in 0..p {
        for i in j..p {
            let rest = h[(i, j)] - (0..j).map(|c| l[(i, c)] * l[(j, c)]).sum::<f64>();
            if i > j {
                l[(i, j)] = rest / l[(j, j)];
            } else if rest > 0.0 {
                l[(j, j)] = rest.sqrt();
            } else {
                return None;
            }
        }
    }
    let mut inverse = Mat::<f64>::zeros(p, p);
    for j in 0..p {
        for i in j..p {
            let one = if i == j { 1.0 } else { 0.0 };
            let rest = one - (j..i).map(|c| l[(i, c)] * inverse[(c, j)]).sum::<f64>();
            inverse[(i, j)] = rest / l[(i, i)];
        }
    }
    Some(inverse.transpose() * &inverse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::random_normal;

    /// Blocks of p whose entries are normal, each matrix and each column of a B times a factor between 0.01 and 100.
    fn random(p: usize, m: usize, seed: u64) -> Recurrence {
        let z = random_normal(seed, 2 * m * (p * p + p + 1));
        let mut z = z.into_iter();
        let mut matrix = || {
            let factor = 10.0_f64.powf(z.next().unwrap());
            let scales: Vec<f64> = (0..p).map(|_| 10.0_f64.powf(z.next().unwrap())).collect();
            let entries: Vec<f64> = (0..p * p).map(|_| z.next().unwrap()).collect();
            Mat::from_fn(p, p, |i, j| factor * scales[j] * entries[i * p + j])
        };
        let mut recurrence = Recurrence::default();
        (0..m).for_each(|_| recurrence.push(symmetric(&matrix()), matrix()));
        recurrence
    }

    /// φ(t) by its definition: the largest share of the first block in the space of all y with (tI − T)y = E_mBᵀh.
    fn share(recurrence: &Recurrence, t: f64) -> f64 {
        let (theta, s) = small_eigen(&recurrence.matrix()).unwrap();
        let (size, b) = (theta.len(), recurrence.last().unwrap());
        let (p, first) = (b.nrows(), recurrence.a[0].nrows());
        let mut right = Mat::<f64>::zeros(size, p);
        right.as_mut().submatrix_mut(size - b.ncols(), 0, b.ncols(), p).copy_from(b.transpose());
        let along = s.transpose() * right;
        let y = s * Mat::from_fn(size, p, |i, j| along[(i, j)] / (t - theta[i]));
        let mut whole = y.transpose() * &y;
        add_to_diagonal(&mut whole, 1.0);
        let (values, vectors) = small_eigen(&whole).unwrap();
        let root = Mat::from_fn(p, p, |i, j| vectors[(i, j)] / values[j].sqrt());
        let y1 = y.as_ref().subrows(0, first) * root;
        small_eigen(&(y1.transpose() * &y1)).unwrap().0[0]
    }

    #[test]
    fn shares_over_intervals_are_above_those_within_and_close_for_short_ones() {
        for seed in 0..60 {
            let (p, m) = (1 + seed as usize % 3, 1 + seed as usize / 3 % 4);
            let recurrence = random(p, m, seed);
            let theta = recurrence.largest().unwrap();
            for gap in [0.01, 0.1, 1.0].map(|x| x * recurrence.norm()) {
                let over = recurrence.largest_share(theta + gap, theta + 1.3 * gap).unwrap();
                for t in [1.0, 1.1, 1.2, 1.3].map(|x| theta + x * gap) {
                    assert!(share(&recurrence, t) <= over * (1.0 + 1e-9), "{seed} {gap}");
                }
            }
            let (gap, short) = (0.1 * recurrence.norm(), 1e-7);
            let over = recurrence.largest_share(theta + gap, theta + (1.0 + short) * gap).unwrap();
            let at = share(&recurrence, theta + gap);
            // Each of m blocks adds its spread, √p/(1 + short) of its norm and condition at worst.
            assert!(over <= at * 1.01 + 1e-9, "{seed}: {over:e} {at:e}");
        }
    }

    #[test]
    fn shares_of_blocks_may_grow_and_bounds_know_it() {
        let mut grew = 0;
        for seed in 0..200 {
            let recurrence = random(2, 2 + seed as usize % 3, 1000 + seed);
            let theta = recurrence.largest().unwrap();
            let gaps: Vec<f64> =
                (0..120).map(|i| 10.0_f64.powf(-4.0 + f64::from(i) / 20.0) * recurrence.norm()).collect();
            let shares: Vec<f64> = gaps.iter().map(|gap| share(&recurrence, theta + gap)).collect();
            grew += u32::from(shares.windows(2).any(|w| w[1] > 1.001 * w[0]));
            for q in [0.3_f64, 1e-3, 1e-6] {
                let bound = recurrence.bound(q.sqrt(), 0.0).unwrap();
                for (gap, share) in gaps.iter().zip(&shares) {
                    assert!(
                        *share < q * (1.0 + 1e-9) || theta + gap <= bound,
                        "{seed} {q}: {share} at {gap}, {bound}"
                    );
                }
            }
        }
        assert!(grew > 0, "no example of a share that grows");
    }

    #[test]
    fn one_vector_has_the_bound_that_solves_its_polynomial() {
        // A = 1, B = 2: y₂ = (t − 1)/2·y₁, and (1 + (t − 1)²/4)q = 1.
        let mut one = Recurrence::default();
        one.push(Mat::from_fn(1, 1, |_, _| 1.0), Mat::from_fn(1, 1, |_, _| 2.0));
        for q in [0.5_f64, 1e-2, 1e-9, 1e-20] {
            let exact = 1.0 + 2.0 * (q.recip() - 1.0).sqrt();
            let bound = one.bound(q.sqrt(), 0.0).unwrap();
            assert!(
                bound >= exact && bound - 1.0 <= LEAST_STEP.powi(2) * (exact - 1.0),
                "{q}: {bound} {exact}"
            );
            for scale in [1e-290, 1e290] {
                let mut scaled = Recurrence::default();
                scaled.push(&one.a[0] * Scale(scale), &one.b[0] * Scale(scale));
                let ratio = scaled.bound(q.sqrt(), 0.0).unwrap() / scale;
                assert!(
                    ratio >= exact * (1.0 - 1e-15) && ratio - 1.0 <= 1.01 * (exact - 1.0),
                    "{scale:e}: {ratio} {exact}"
                );
            }
        }
    }

    #[test]
    fn errors_count_and_what_is_no_number_bounds_nothing() {
        let recurrence = random(2, 2, 7);
        let exact = recurrence.bound(1e-2, 0.0).unwrap();
        let error = 1e-3 * recurrence.norm();
        let theta = recurrence.largest().unwrap();
        let bound = recurrence.bound(1e-2, error).unwrap();
        assert!(bound >= exact && bound >= theta + error / 1e-2, "{bound} {exact}");
        for (share, error) in
            [(0.0, 0.0), (-1.0, 0.0), (f64::NAN, 0.0), (0.1, f64::NAN), (0.1, f64::INFINITY)]
        {
            assert!(recurrence.bound(share, error).unwrap().is_infinite());
        }
        let mut unknown = Recurrence::default();
        unknown.push(Mat::from_fn(1, 1, |_, _| f64::NAN), Mat::zeros(1, 1));
        assert!(unknown.bound(0.1, 0.0).unwrap().is_infinite());
    }

    #[test]
    fn an_invariant_space_leaves_nothing_above_its_ritz_values() {
        for rows in [0, 1, 2] {
            let mut closed = Recurrence::default();
            closed.push(Mat::from_fn(2, 2, |i, j| if i == j { 3.0 } else { 1.0 }), Mat::zeros(rows, 2));
            let bound = closed.bound(1e-5, 0.0).unwrap();
            assert!(bound >= 4.0 && bound - 4.0 <= 16.0 * closed.rounding(4.0), "{bound}");
        }
        let mut zero = Recurrence::default();
        zero.push(Mat::zeros(2, 2), Mat::zeros(2, 2));
        assert!((0.0..=2.0 * f64::MIN_POSITIVE).contains(&zero.bound(1e-5, 0.0).unwrap()));
    }
}
