//! Algorithm 1 in plain loops, against Lemma 1, the theorem's bound and the model of the contraction.

use faer::{Mat, Side};

use super::{BoundConstants, ErrorDirection, GradientVariance, LiteralBound, Method, Problem, p, q};
use crate::block::dot;
use crate::matrix::random_direction;
use crate::{ColumnStatistics, Dense, Matrix, Preprocessing, Replacement, Sampler};

/// Rows, and the eigenpairs of their C in descending order.
pub(super) struct Data {
    pub(super) rows: Vec<Vec<f64>>,
    pub(super) lambda: Vec<f64>,
    pub(super) u: Vec<Vec<f64>>,
}

impl Data {
    fn new(rows: Vec<Vec<f64>>) -> Self {
        let (n, d) = (rows.len(), rows[0].len());
        let c = Mat::from_fn(d, d, |i, j| rows.iter().map(|a| a[i] * a[j]).sum::<f64>() / n as f64);
        let eigen = c.self_adjoint_eigen(Side::Lower).unwrap();
        let lambda = (0..d).rev().map(|k| eigen.S()[k]).collect();
        let u = (0..d).rev().map(|k| (0..d).map(|i| eigen.U()[(i, k)]).collect()).collect();
        Self { rows, lambda, u }
    }

    /// Random rows whose standard deviations fall from one column to the next.
    pub(super) fn random(seed: u64, n: usize, d: usize, ratio: f64) -> Self {
        let x = random_direction(seed, n * d);
        let scaled = |row: &[f64]| row.iter().enumerate().map(|(j, x)| x * ratio.powf(j as f64)).collect();
        Self::new(x.chunks_exact(d).map(scaled).collect())
    }

    fn matrix(&self) -> Matrix<'static> {
        Dense::new(self.rows.concat(), self.rows.len(), self.rows[0].len()).unwrap().into()
    }

    pub(super) fn variance(&self, batch: usize, replacement: Replacement) -> f64 {
        let x = self.matrix();
        let map = Preprocessing::NONE.row_map(&ColumnStatistics::new(&x).unwrap());
        GradientVariance::measure(&x, &map, 1e-6, 0).unwrap().of_batch(batch, replacement).unwrap()
    }

    /// C_S v.
    pub(super) fn image(&self, batch: impl ExactSizeIterator<Item = usize>, v: &[f64]) -> Vec<f64> {
        let (mut out, count) = (vec![0.0; v.len()], batch.len() as f64);
        for l in batch {
            let along = dot(&self.rows[l], v) / count;
            out.iter_mut().zip(&self.rows[l]).for_each(|(y, a)| *y += along * a);
        }
        out
    }

    pub(super) fn full_image(&self, v: &[f64]) -> Vec<f64> {
        self.image(0..self.rows.len(), v)
    }

    /// E[xᵀM_kx | x] = E(u_kᵀ(C_S − C)x)² for one row drawn at random: the variance of (u_kᵀa)(aᵀx).
    pub(super) fn noise(&self, k: usize, x: &[f64]) -> f64 {
        let (u, n) = (&self.u[k], self.rows.len() as f64);
        let values: Vec<f64> = self.rows.iter().map(|a| dot(u, a) * dot(a, x)).collect();
        let mean = values.iter().sum::<f64>() / n;
        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n
    }

    /// max ‖aaᵀ − C‖² over the rows.
    pub(super) fn worst_row(&self) -> f64 {
        let (n, d) = (self.rows.len(), self.rows[0].len());
        let deviation = |l: usize| {
            let c = |i: usize, j: usize| self.rows.iter().map(|a| a[i] * a[j]).sum::<f64>() / n as f64;
            let c = Mat::from_fn(d, d, |i, j| self.rows[l][i] * self.rows[l][j] - c(i, j));
            c.singular_values().unwrap()[0].powi(2)
        };
        (0..n).map(deviation).fold(0.0, f64::max)
    }

    /// w₀ … w_m of one epoch of Algorithm 1 (or of VR-PCA in its projected form), without scaling.
    pub(super) fn epoch(
        &self,
        method: Method,
        w0: &[f64],
        m: usize,
        mut draw: impl FnMut(usize) -> Vec<usize>,
    ) -> Vec<Vec<f64>> {
        let combine = |terms: &[(f64, &[f64])]| -> Vec<f64> {
            (0..w0.len()).map(|i| terms.iter().map(|(c, v)| c * v[i]).sum()).collect()
        };
        let eta = method.eta();
        let beta = (1.0 - eta + eta * self.lambda[1]).powi(2);
        let exact = self.full_image(w0);
        let plain = matches!(method, Method::VrPca { .. });
        let keep = if plain { 1.0 } else { 1.0 - eta };
        let mut w = vec![w0.to_vec(), combine(&[(keep, w0), (eta, &exact)])];
        for t in 1..m {
            let along = dot(&w[t], w0) / dot(w0, w0);
            let rest = combine(&[(1.0, &w[t]), (-along, w0)]);
            let sampled = self.image(draw(t).into_iter(), &rest);
            let g = combine(&[(1.0, &sampled), (along, &exact)]);
            w.push(if plain {
                combine(&[(1.0, &w[t]), (eta, &g)])
            } else {
                combine(&[(2.0 * (1.0 - eta), &w[t]), (2.0 * eta, &g), (-beta, &w[t - 1])])
            });
        }
        w
    }
}

pub(super) fn without(w: &[f64], w0: &[f64]) -> Vec<f64> {
    let along = dot(w, w0) / dot(w0, w0);
    w.iter().zip(w0).map(|(w, v)| w - along * v).collect()
}

/// The three terms of Lemma 1 on one path: E\[left − start − noise\] = 0.
struct Lemma1 {
    left: f64,
    start: f64,
    noise: f64,
}

impl Lemma1 {
    /// `correction` is what a batch multiplies the variance of one row by.
    fn new(data: &Data, w: &[Vec<f64>], eta: f64, k: usize, t: usize, correction: f64) -> Self {
        let alpha = 4.0 * (1.0 - eta + eta * data.lambda[k]).powi(2);
        let beta = (1.0 - eta + eta * data.lambda[1]).powi(2);
        let noise = (1..t).map(|r| q(alpha, beta, t - r - 1) * data.noise(k, &without(&w[r], &w[0])));
        Self {
            left: dot(&data.u[k], &w[t]).powi(2),
            start: p(alpha, beta, t) * dot(&data.u[k], &w[0]).powi(2),
            noise: 4.0 * eta * eta * correction * noise.sum::<f64>(),
        }
    }

    fn difference(&self) -> f64 {
        self.left - self.start - self.noise
    }
}

/// Calls `visit` with every sequence of m − 1 single-row batches.
pub(super) fn for_every_sequence(n: usize, m: usize, mut visit: impl FnMut(&[usize])) {
    for code in 0..n.pow(m as u32 - 1) {
        let rows: Vec<usize> = (0..m - 1).map(|i| code / n.pow(i as u32) % n).collect();
        visit(&rows);
    }
}

#[test]
fn lemma1_holds_exactly_over_all_sequences_of_batches() {
    let (n, m) = (4, 5);
    let data = Data::random(11, n, 3, 0.7);
    let w0 = random_direction(12, 3);
    for eta in [0.1, 0.6, 1.0] {
        for (k, t) in (0..3).flat_map(|k| (0..=m).map(move |t| (k, t))) {
            let (mut sum, mut size) = (0.0, 0.0);
            for_every_sequence(n, m, |rows| {
                let w = data.epoch(Method::VrHbPower { eta }, &w0, m, |t| vec![rows[t - 1]]);
                let terms = Lemma1::new(&data, &w, eta, k, t, 1.0);
                sum += terms.difference();
                size += terms.left + terms.start + terms.noise;
            });
            // 256 paths of a few dozen operations each; the eigenvectors are accurate to ε/gap.
            assert!(sum.abs() <= 1e-12 * size, "eta {eta} k {k} t {t}: {sum:e} of {size:e}");
        }
    }
}

#[test]
fn lemma1_holds_within_sampling_error_over_many_seeds() {
    let (n, d, batch, m, eta, paths) = (120, 5, 4, 8, 0.7, 3000);
    let data = Data::random(21, n, d, 0.8);
    let w0 = random_direction(22, d);
    let correction = (n - batch) as f64 / (n - 1) as f64 / batch as f64;
    let mut sampler = Sampler::new(n, batch, Replacement::Without, 23).unwrap();
    let (mut sums, mut squares, mut noise) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
    for _ in 0..paths {
        let w = data.epoch(Method::VrHbPower { eta }, &w0, m, |_| sampler.draw().to_vec());
        for k in 0..d {
            let terms = Lemma1::new(&data, &w, eta, k, m, correction);
            sums[k] += terms.difference();
            squares[k] += terms.difference().powi(2);
            noise[k] += terms.noise;
        }
    }
    for k in 0..d {
        let five_standard_errors = 5.0 * squares[k].sqrt();
        assert!(sums[k].abs() < five_standard_errors, "k {k}: {} {five_standard_errors}", sums[k]);
        // Without its noise term the lemma would be refuted by the same paths.
        assert!(sums[k] + noise[k] > five_standard_errors, "k {k}: {} {five_standard_errors}", noise[k]);
    }
}

#[test]
fn literal_bound_holds_over_all_sequences_of_batches() {
    let (n, d, m) = (4, 3, 4);
    let data = Data::random(31, n, d, 0.6);
    let k = data.variance(1, Replacement::With);
    let problem = Problem::new(data.lambda[0], data.lambda[1], k, m).unwrap();
    let bound = LiteralBound::new(problem, d, data.worst_row() / k).unwrap();
    let best = bound.best_step_size().unwrap();
    assert!(bound.with_constants(BoundConstants::Printed).rate(best.eta).unwrap().ln_h < best.rate.ln_h);
    for eta in [best.eta, 0.1 * best.eta, 0.7, 1.0] {
        let w0 = random_direction(32, d);
        let mut moments = vec![0.0; d];
        for_every_sequence(n, m, |rows| {
            let w = data.epoch(Method::VrHbPower { eta }, &w0, m, |t| vec![rows[t - 1]]);
            (0..d).for_each(|k| moments[k] += dot(&data.u[k], &w[m]).powi(2));
        });
        let start: Vec<f64> = data.u.iter().map(|u| dot(u, &w0).powi(2)).collect();
        let contraction =
            (moments[1..].iter().sum::<f64>() / moments[0]) / (start[1..].iter().sum::<f64>() / start[0]);
        let ln_rate = bound.rate(eta).unwrap().ln_rate;
        assert!(contraction.ln() <= ln_rate, "{eta}: {} {ln_rate}", contraction.ln());
    }
}

/// Mean and standard error of Σ_{k≥2}(u_kᵀw_m)²/φ² over paths from w₀ = u₁ + φv, and the mean of (u₁ᵀw_m)².
fn simulate(
    data: &Data,
    method: Method,
    v: &[f64],
    m: usize,
    sampler: &mut Sampler,
    paths: u32,
) -> (f64, f64) {
    let phi = 1e-5;
    let w0: Vec<f64> = data.u[0].iter().zip(v).map(|(u, v)| u + phi * v).collect();
    let (mut sum, mut squares, mut leading) = (0.0, 0.0, 0.0);
    for _ in 0..paths {
        let w = data.epoch(method, &w0, m, |_| sampler.draw().to_vec());
        let error = data.u[1..].iter().map(|u| (dot(u, &w[m]) / phi).powi(2)).sum::<f64>();
        sum += error;
        squares += error * error;
        leading += dot(&data.u[0], &w[m]).powi(2);
    }
    let paths = f64::from(paths);
    let mean = sum / paths;
    let deviation = (squares / paths - mean * mean).sqrt();
    let leading = leading / paths;
    (mean / leading, deviation / paths.sqrt() / leading)
}

#[test]
fn model_is_exact_where_its_bounds_are_equalities() {
    // Rows √(dλ_k)e_k: C_S is diagonal, an error along u₂ stays there, and the variance of (C_S)₂₂ is (d−1)λ₂²/b.
    let (d, batch, m) = (4, 30, 12);
    let lambda: [f64; 4] = [1.0, 0.8, 0.8, 0.8];
    let rows = (0..d)
        .map(|k| (0..d).map(|j| if j == k { (d as f64 * lambda[k]).sqrt() } else { 0.0 }).collect())
        .collect();
    let mut data = Data::new(rows);
    data.u = (0..d).map(|k| (0..d).map(|j| f64::from(u8::from(j == k))).collect()).collect();
    let k = (d - 1) as f64 * lambda[1].powi(2) / batch as f64;
    let problem = Problem::new(1.0, 0.8, k, m).unwrap();
    for method in [Method::VrHbPower { eta: 0.6 }, Method::VrPowerM, Method::VrPca { eta: 1.5 }] {
        let mut sampler = Sampler::new(d, batch, Replacement::With, 41).unwrap();
        let (mean, error) = simulate(&data, method, &data.u[1], m, &mut sampler, 8000);
        let model = problem.contraction(method).unwrap();
        // Five standard errors; terms of order φ² = 10⁻¹⁰ are far below them.
        assert!((mean - model.rate()).abs() < 5.0 * error, "{method:?}: {mean} ± {error} {model:?}");
        assert!(
            model.h > 20.0 * error,
            "{method:?}: the noise term is too small to be seen, {error} {model:?}"
        );
    }
}

#[test]
fn model_bounds_the_contraction_on_ordinary_data() {
    let (n, d, batch, m) = (200, 6, 10, 15);
    let data = Data::random(51, n, d, 0.85);
    let k = data.variance(batch, Replacement::Without);
    let problem = Problem::new(data.lambda[0], data.lambda[1], k, m).unwrap();
    let mixed: Vec<f64> =
        (0..d).map(|i| (1..d).map(|k| data.u[k][i]).sum::<f64>() / (d as f64 - 1.0).sqrt()).collect();
    for method in [Method::VrHbPower { eta: 0.3 }, Method::VrHbPower { eta: 0.8 }, Method::VrPca { eta: 1.0 }]
    {
        for (v, direction) in [
            (&data.u[1], ErrorDirection::Second),
            (&mixed, ErrorDirection::Worst),
            (&data.u[d - 1], ErrorDirection::Worst),
        ] {
            let mut sampler = Sampler::new(n, batch, Replacement::Without, 52).unwrap();
            let (mean, error) = simulate(&data, method, v, m, &mut sampler, 400);
            let model = problem.contraction_from(method, direction).unwrap().rate();
            assert!(mean - 5.0 * error <= model, "{method:?} {direction:?}: {mean} ± {error}, {model}");
        }
    }
}
