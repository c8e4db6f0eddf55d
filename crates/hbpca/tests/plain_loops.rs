//! Every stochastic or nested solver against a plain loop of its box, with batches of some of the rows: full batches cannot tell a wrong
//! coefficient of what is sampled.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "tests stop at surprises and count small")]

mod common;

use common::*;
use hbpca::operator::{Counted, Covariance};
use hbpca::solver::{
    CoordinatePower, DynamicMomentum, Epoch, FixedMomentum, LazySvd, Momentum, OracleMomentum, PowerM,
    ShiftInvertAgd, ShiftInvertSvrg, Solver, Start, VrHbPower, VrPca, VrPcaProjected, VrRiemannian,
};
use hbpca::{Block, Driver, Limits, Outcome, Preprocessing, Replacement, Sampler};

const N: usize = 40;
const D: usize = 6;
const BATCH: usize = 7;
const M: usize = 5;
const EPOCHS: usize = 3;

type Vector = Vec<f64>;

/// Rows, and C_S v by its definition.
struct Rows(Vec<Vector>);

impl Rows {
    fn new() -> Self {
        let (values, _) = with_spectrum(N, &geometric(D, 0.8), 3);
        Self(values.chunks_exact(D).map(<[f64]>::to_vec).collect())
    }
    fn matrix(&self) -> hbpca::Matrix<'static> {
        dense(self.0.concat(), D)
    }
    fn image(&self, batch: &[usize], v: &[f64]) -> Vector {
        let mut out = vec![0.0; D];
        for &l in batch {
            let along = dot(&self.0[l], v) / batch.len() as f64;
            out.iter_mut().zip(&self.0[l]).for_each(|(y, a)| *y += along * a);
        }
        out
    }
    fn exact(&self, v: &[f64]) -> Vector {
        self.image(&(0..N).collect::<Vec<_>>(), v)
    }
    fn trace(&self) -> f64 {
        self.0.iter().map(|a| dot(a, a)).sum::<f64>() / N as f64
    }
    /// C itself.
    fn formed(&self) -> Vec<Vector> {
        (0..D).map(|j| self.exact(&(0..D).map(|i| f64::from(u8::from(i == j))).collect::<Vector>())).collect()
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Σ cᵢvᵢ.
fn sum(terms: &[(f64, &[f64])]) -> Vector {
    (0..terms[0].1.len()).map(|i| terms.iter().map(|(c, v)| c * v[i]).sum()).collect()
}

fn length(v: &[f64]) -> f64 {
    dot(v, v).sqrt()
}

fn unit(v: &[f64]) -> Vector {
    sum(&[(1.0 / length(v), v)])
}

fn start() -> Start {
    Start::Random { seed: 11 }
}

fn first() -> Vector {
    start().vector(D).unwrap().column(0)
}

fn sampler() -> Sampler {
    Sampler::new(N, BATCH, Replacement::Without, 7).unwrap()
}

fn epoch() -> Epoch {
    Epoch::new(M).unwrap()
}

/// The iterate after some steps, and the rows read for them, looks included.
fn run(solver: &mut dyn Solver, rows: &Rows, steps: usize) -> (Vector, u64) {
    let x = rows.matrix();
    let mut covariance = Covariance::new(&x, Preprocessing::NONE).unwrap();
    let mut operator = Counted::new(&mut covariance);
    for _ in 0..steps {
        let before = operator.read().rows;
        let ahead = solver.passes_ahead(N) * N as f64;
        solver.look(&mut operator).unwrap();
        solver.step(&mut operator).unwrap();
        assert!(
            (operator.read().rows - before) as f64 <= ahead + 1e-9,
            "{} foresees its rows",
            solver.name()
        );
    }
    solver.look(&mut operator).unwrap();
    (solver.pairs().vectors.column(0), operator.read().rows)
}

/// Rounding of a few hundred operations a step, amplified by at most λ₁ + 1/η a step against a norm that grows as fast.
#[track_caller]
fn assert_same(got: &[f64], want: &[f64], steps: usize) {
    let want = unit(want);
    let sign = if dot(got, &want) < 0.0 { -1.0 } else { 1.0 };
    let off = length(&sum(&[(1.0, got), (-sign, &want)]));
    assert!(off <= 1e4 * steps as f64 * f64::EPSILON, "{off:e} apart: {got:?} {want:?}");
}

/// Rows of epochs with m − 1 batches, and a look after the last.
fn rows_of(epochs: usize) -> u64 {
    (epochs * (N + (M - 1) * BATCH) + N) as u64
}

#[test]
fn vr_pca_is_the_difference_form_and_its_first_step_reads_no_batch() {
    let (rows, eta, mut batches) = (Rows::new(), 0.4, sampler());
    let mut tilde = first();
    for _ in 0..EPOCHS {
        let exact = rows.exact(&tilde);
        let mut w = unit(&sum(&[(1.0, &tilde), (eta, &exact)]));
        for _ in 1..M {
            let sampled = rows.image(batches.draw(), &sum(&[(1.0, &w), (-1.0, &tilde)]));
            w = unit(&sum(&[(1.0, &w), (eta, &sampled), (eta, &exact)]));
        }
        tilde = w;
    }
    let mut solver = VrPca::new(D, eta, epoch(), sampler(), &start()).unwrap();
    let (got, read) = run(&mut solver, &rows, EPOCHS);
    assert_same(&got, &tilde, EPOCHS * M);
    assert_eq!(read, rows_of(EPOCHS));
}

#[test]
fn vr_pca_projected_samples_what_is_orthogonal_to_the_outer_iterate() {
    let (rows, eta, mut batches) = (Rows::new(), 0.4, sampler());
    let mut w0 = first();
    for _ in 0..EPOCHS {
        let exact = rows.exact(&w0);
        // Not normalised until the epoch's end: lengths change no direction.
        let mut w = sum(&[(1.0, &w0), (eta, &exact)]);
        for _ in 1..M {
            let along = dot(&w, &w0);
            let sampled = rows.image(batches.draw(), &sum(&[(1.0, &w), (-along, &w0)]));
            w = sum(&[(1.0, &w), (eta, &sampled), (eta * along, &exact)]);
        }
        w0 = unit(&w);
    }
    let mut solver = VrPcaProjected::new(D, eta, epoch(), sampler(), &start()).unwrap();
    let (got, read) = run(&mut solver, &rows, EPOCHS);
    assert_same(&got, &w0, EPOCHS * M);
    assert_eq!(read, rows_of(EPOCHS));
    // The same as VR HB Power without momentum, whose step has the shift 1/η as well.
    let none: Box<dyn Momentum> = Box::new(FixedMomentum::new(0.0).unwrap());
    let mut twin = VrHbPower::new(D, eta / (1.0 + eta), epoch(), none, sampler(), &start()).unwrap();
    assert_same(&run(&mut twin, &rows, EPOCHS).0, &w0, EPOCHS * M);
    // And not the same as the difference form, far from the answer.
    let mut other = VrPca::new(D, eta, epoch(), sampler(), &start()).unwrap();
    let difference = run(&mut other, &rows, 1).0;
    let mut solver = VrPcaProjected::new(D, eta, epoch(), sampler(), &start()).unwrap();
    let projected = run(&mut solver, &rows, 1).0;
    assert!(length(&sum(&[(1.0, &difference), (-1.0, &projected)])) > 1e-3);
}

#[test]
fn vr_hb_power_projects_before_it_samples() {
    let (rows, eta, lambda2, mut batches) = (Rows::new(), 0.6, 0.8, sampler());
    let beta = f64::powi(1.0 - eta + eta * lambda2, 2);
    let mut w0 = first();
    for _ in 0..EPOCHS {
        // Of any length: the paper's line divides by ‖w₀‖².
        w0 = sum(&[(3.0, &w0)]);
        let exact = rows.exact(&w0);
        let mut w = vec![w0.clone(), sum(&[(1.0 - eta, &w0), (eta, &exact)])];
        for t in 1..M {
            let along = dot(&w[t], &w0) / dot(&w0, &w0);
            let sampled = rows.image(batches.draw(), &sum(&[(1.0, &w[t]), (-along, &w0)]));
            let g = sum(&[(1.0, &sampled), (along, &exact)]);
            w.push(sum(&[(2.0 * (1.0 - eta), &w[t]), (2.0 * eta, &g), (-beta, &w[t - 1])]));
        }
        w0 = unit(&w[M]);
    }
    let oracle: Box<dyn Momentum> = Box::new(OracleMomentum::new(lambda2).unwrap());
    let mut solver = VrHbPower::new(D, eta, epoch(), oracle, sampler(), &start()).unwrap();
    let (got, read) = run(&mut solver, &rows, EPOCHS);
    assert_same(&got, &w0, EPOCHS * M);
    assert_eq!(read, rows_of(EPOCHS));
}

#[test]
fn riemannian_steps_follow_great_circles() {
    let (rows, eta, mut batches) = (Rows::new(), 0.4, sampler());
    let tangent = |at: &[f64], v: &[f64]| sum(&[(1.0, v), (-dot(at, v), at)]);
    let exp = |w: &[f64], v: &[f64]| sum(&[(length(v).cos(), w), (length(v).sin() / length(v), v)]);
    // Along the great circle from a to b its direction turns with it, and what is orthogonal to both stays.
    let transport = |a: &[f64], b: &[f64], v: &[f64]| {
        let towards = unit(&tangent(a, b));
        let arrived = unit(&sum(&[(1.0, &towards), (-dot(&towards, b), b)]));
        let along = dot(v, &towards);
        sum(&[(1.0, v), (-along, &towards), (along, &arrived)])
    };
    let mut tilde = first();
    for _ in 0..EPOCHS {
        let gradient = tangent(&tilde, &rows.exact(&tilde));
        let mut w = exp(&tilde, &sum(&[(eta, &gradient)]));
        for _ in 1..M {
            let batch = batches.draw();
            let here = tangent(&w, &rows.image(batch, &w));
            let there = tangent(&tilde, &rows.image(batch, &tilde));
            let correction = transport(&tilde, &w, &sum(&[(1.0, &there), (-1.0, &gradient)]));
            w = exp(&w, &sum(&[(eta, &here), (-eta, &correction)]));
        }
        tilde = unit(&w);
    }
    let mut solver = VrRiemannian::new(D, eta, epoch(), sampler(), &start()).unwrap();
    let (got, read) = run(&mut solver, &rows, EPOCHS);
    assert_same(&got, &tilde, EPOCHS * M);
    assert_eq!(read, rows_of(EPOCHS));
}

/// σ, b and x of shift-and-invert, with the rule that ends a system: what both inner solvers share.
struct Plain<'a> {
    rows: &'a Rows,
    sigma: f64,
    b: Vector,
    x: Vector,
    first: f64,
    systems: usize,
}

impl<'a> Plain<'a> {
    fn new(rows: &'a Rows, sigma: f64, b: Vector) -> Self {
        let mut plain = Self { rows, sigma, b, x: Vec::new(), first: 0.0, systems: 1 };
        plain.begin();
        plain
    }
    /// bᵀCb.
    fn theta(&self) -> f64 {
        dot(&self.b, &self.rows.exact(&self.b))
    }
    fn begin(&mut self) {
        self.x = sum(&[(1.0 / (self.sigma - self.theta()), &self.b)]);
        self.first = length(&self.residual(&self.x));
    }
    /// b − (σI − C)x.
    fn residual(&self, x: &[f64]) -> Vector {
        sum(&[(1.0, &self.b), (-self.sigma, x), (1.0, &self.rows.exact(x))])
    }
    /// Line 2; whether a system was solved.
    fn advance(&mut self) -> bool {
        if length(&self.residual(&self.x)) > 0.25 * self.first {
            return false;
        }
        let lowered = self.sigma - 0.25 / dot(&self.b, &self.x);
        self.b = unit(&self.x);
        let image = self.rows.exact(&self.b);
        let theta = dot(&self.b, &image);
        // Above θ by the residual of b.
        self.sigma = lowered.max(theta + length(&sum(&[(1.0, &image), (-theta, &self.b)])));
        self.begin();
        self.systems += 1;
        true
    }
}

#[test]
fn shift_invert_svrg_solves_its_systems_by_reduced_gradients() {
    let (rows, eta, mut batches, steps) = (Rows::new(), 2.0, sampler(), 14);
    let mut plain = Plain::new(&rows, 1.5 * rows.trace(), first());
    for step in 0..steps {
        if step > 0 {
            plain.advance();
        }
        let (h, sigma) = (1.0 / (plain.sigma + 1.0 / eta), plain.sigma);
        let (tilde, e) = (plain.x.clone(), plain.residual(&plain.x));
        let mut x = sum(&[(1.0, &tilde), (h, &e)]);
        for _ in 1..M {
            let difference = sum(&[(1.0, &x), (-1.0, &tilde)]);
            let sampled = rows.image(batches.draw(), &difference);
            x = sum(&[(1.0, &x), (h, &e), (-h * sigma, &difference), (h, &sampled)]);
        }
        plain.x = x;
    }
    assert!(
        plain.systems > 3 && plain.sigma < rows.trace(),
        "{} systems, σ = {}",
        plain.systems,
        plain.sigma
    );
    let mut solver = ShiftInvertSvrg::new(D, eta, epoch(), sampler(), &start()).unwrap();
    let (got, read) = run(&mut solver, &rows, steps);
    assert_same(&got, &plain.x, steps * M);
    assert_eq!(read, rows_of(steps));
}

#[test]
fn shift_invert_agd_solves_its_systems_by_nesterovs_steps() {
    let (rows, steps) = (Rows::new(), 25);
    let mut plain = Plain::new(&rows, 1.5 * rows.trace(), first());
    let mut x = plain.x.clone();
    for step in 0..steps {
        // `plain.x` is y.
        if step > 0 && plain.advance() {
            x.clone_from(&plain.x);
        }
        let q = ((plain.sigma - plain.theta()) / plain.sigma).sqrt();
        let beta = (1.0 - q) / (1.0 + q);
        let next = sum(&[(1.0, &plain.x), (1.0 / plain.sigma, &plain.residual(&plain.x))]);
        plain.x = sum(&[(1.0 + beta, &next), (-beta, &x)]);
        x = next;
    }
    assert!(plain.systems > 5, "{} systems", plain.systems);
    let mut solver = ShiftInvertAgd::new(D, &start()).unwrap();
    let (got, read) = run(&mut solver, &rows, steps);
    assert_same(&got, &plain.x, steps);
    assert_eq!(read, ((steps + 1) * N) as u64);
}

#[test]
fn lazy_svd_for_one_component_is_shift_invert_agd() {
    let rows = Rows::new();
    for steps in [1, 4, 25] {
        let given = Block::from_vector(first());
        let mut lazy = LazySvd::new(D, 1, 0, Some(&given)).unwrap();
        let mut plain = ShiftInvertAgd::new(D, &start()).unwrap();
        assert_same(&run(&mut lazy, &rows, steps).0, &run(&mut plain, &rows, steps).0, steps);
    }
}

#[test]
fn lazy_svd_deflates_and_finds_all_k() {
    let rows = Rows::new();
    let x = rows.matrix();
    let (lambda, u) = dense_eigen(&rows.0.concat(), D);
    for k in [2, 3, D] {
        let mut covariance = Covariance::new(&x, Preprocessing::NONE).unwrap();
        let mut solver = LazySvd::new(D, k, 5, None).unwrap().aiming_at(1e-8);
        let limits = Limits { tol: 1e-8, max_passes: 2000.0, ..Limits::default() };
        let report = Driver::new(limits).run(&mut solver, &mut covariance).unwrap();
        assert_eq!(report.outcome, Outcome::Converged, "k = {k}: {}", report.certificate);
        for i in 0..k {
            // Gaps are a fifth of the larger value.
            let sine = sine2(&report.vectors.column(i), &u.column(i)).sqrt();
            assert!(
                sine <= 10.0 * 1e-8 && (report.certificate.eigenvalues[i] / lambda[i] - 1.0).abs() < 1e-8
            );
        }
    }
}

#[test]
fn coordinate_power_changes_the_coordinates_that_are_furthest_off_and_raises_the_rayleigh_quotient() {
    // 6 columns: one coordinate at a time, six times a step.
    let (rows, steps) = (Rows::new(), 4);
    let c = rows.formed();
    let mut w = first();
    let mut z = rows.exact(&w);
    for _ in 0..steps {
        z = rows.exact(&w);
        for _ in 0..D {
            let theta = dot(&w, &z);
            let change: Vector = (0..D).map(|j| z[j] / theta - w[j]).collect();
            let j = (0..D).max_by(|a, b| change[*a].abs().total_cmp(&change[*b].abs())).unwrap();
            w[j] += change[j];
            z = sum(&[(1.0, &z), (change[j], &c[j])]);
            let norm = length(&w);
            (w, z) = (sum(&[(1.0 / norm, &w)]), sum(&[(1.0 / norm, &z)]));
            let now = dot(&w, &rows.exact(&w));
            assert!(now >= theta * (1.0 - 1e-14), "{now} after {theta}");
        }
    }
    assert!(length(&sum(&[(1.0, &z), (-1.0, &rows.exact(&w))])) < 1e-13);
    let mut solver = CoordinatePower::new(D, &start()).unwrap();
    let (got, read) = run(&mut solver, &rows, steps);
    assert_same(&got, &w, steps * D);
    // C is formed in the first look, which gives the image as well.
    assert_eq!(read, ((steps + 1) * N) as u64);
    let refused = CoordinatePower::new(40_000, &start()).unwrap_err().to_string();
    assert!(
        refused.starts_with("columns = 40000: coordinate-power forms C, of at most 32768 columns"),
        "{refused}"
    );
}

#[test]
fn dynamic_momentum_is_that_of_its_source_and_comes_near_the_oracle() {
    // u₊ = Cx − (β/h)x₋ with β = ν²r²/4, as its authors write it; ours has 2C and 4β.
    let (rows, steps) = (Rows::new(), 30);
    let mut x = vec![first()];
    let (mut residuals, mut ratio): (Vec<f64>, Option<f64>) = (Vec::new(), None);
    let (mut h, mut beta) = (1.0, 0.0);
    for t in 0..steps {
        let image = rows.exact(&x[t]);
        let nu = dot(&image, &x[t]);
        residuals.push(length(&sum(&[(1.0, &image), (-nu, &x[t])])));
        if t > 1 {
            let rho = (residuals[t] / residuals[t - 1]).min(1.0);
            ratio = Some(if ratio.is_none() { rho } else { 2.0 * rho / (1.0 + rho * rho) });
            beta = (nu * ratio.unwrap()).powi(2) / 4.0;
        }
        let u = if t < 2 { image } else { sum(&[(1.0, &image), (-beta / h, &x[t - 1])]) };
        h = length(&u);
        x.push(unit(&u));
    }
    let mut solver = PowerM::new(D, Box::new(DynamicMomentum::new(1)), &start()).unwrap();
    assert_same(&run(&mut solver, &rows, steps).0, &x[steps], 100 * steps);
    // Passes to a residual of 10⁻⁸: λ₂/λ₁ = 0.8, where plain power iteration takes 80.
    let passes = |momentum: Box<dyn Momentum>| {
        let x = rows.matrix();
        let mut covariance = Covariance::new(&x, Preprocessing::NONE).unwrap();
        let mut solver = PowerM::new(D, momentum, &start()).unwrap();
        let limits = Limits { tol: 1e-8, ..Limits::default() };
        let report = Driver::new(limits).run(&mut solver, &mut covariance).unwrap();
        assert_eq!(report.outcome, Outcome::Converged);
        report.passes
    };
    let plain = passes(Box::new(FixedMomentum::new(0.0).unwrap()));
    let oracle = passes(Box::new(OracleMomentum::new(0.8).unwrap()));
    let dynamic = passes(Box::new(DynamicMomentum::new(1)));
    assert!(dynamic < 1.5 * oracle && dynamic < 0.7 * plain, "{dynamic} passes, {oracle} and {plain}");
}

#[test]
fn dynamic_momentum_keeps_up_with_the_oracle_over_epochs() {
    // Full batches, so that the recurrence of an epoch is exact; λ₂/λ₁ = 0.8.
    let rows = Rows::new();
    let x = rows.matrix();
    let n = x.n_rows();
    let looks = |momentum: Box<dyn Momentum>| {
        let mut covariance = Covariance::new(&x, Preprocessing::NONE).unwrap();
        let sampler = Sampler::new(n, n, Replacement::Without, 1).unwrap();
        let mut solver = VrHbPower::new(D, 1.0, Epoch::new(5).unwrap(), momentum, sampler, &start()).unwrap();
        let limits = Limits { tol: 1e-11, ..Limits::default() };
        let report = Driver::new(limits).run(&mut solver, &mut covariance).unwrap();
        assert_eq!(report.outcome, Outcome::Converged);
        report.passes
    };
    let oracle = looks(Box::new(OracleMomentum::new(0.8).unwrap()));
    let dynamic = looks(Box::new(DynamicMomentum::new(5)));
    // Two epochs without momentum and one that learns.
    assert!(dynamic <= 1.5 * oracle, "{dynamic} passes, {oracle} with the oracle");
}

#[test]
fn every_rival_finds_the_answer_of_the_dense_eigensolver() {
    let rows = Rows::new();
    let x = rows.matrix();
    let (_, u) = dense_eigen(&rows.0.concat(), D);
    let solvers: [Box<dyn Solver>; 7] = [
        Box::new(VrPca::new(D, 0.2, epoch(), sampler(), &start()).unwrap()),
        Box::new(VrPcaProjected::new(D, 0.2, epoch(), sampler(), &start()).unwrap()),
        Box::new(ShiftInvertSvrg::new(D, 0.2, epoch(), sampler(), &start()).unwrap()),
        Box::new(ShiftInvertAgd::new(D, &start()).unwrap()),
        Box::new(VrRiemannian::new(D, 0.2, epoch(), sampler(), &start()).unwrap()),
        Box::new(CoordinatePower::new(D, &start()).unwrap()),
        Box::new(PowerM::new(D, Box::new(DynamicMomentum::new(1)), &start()).unwrap()),
    ];
    for mut solver in solvers {
        let mut covariance = Covariance::new(&x, Preprocessing::NONE).unwrap();
        let limits = Limits { tol: 1e-9, max_passes: 5000.0, ..Limits::default() };
        let report = Driver::new(limits).run(&mut *solver, &mut covariance).unwrap();
        assert_eq!(report.outcome, Outcome::Converged, "{}: {}", solver.name(), report.certificate);
        // sin∠ ≤ residual/gap, and the gap is 0.2.
        let sine = sine2(&report.vectors.column(0), &u.column(0)).sqrt();
        assert!(sine <= 1e-9 / 0.2 + 1e-13, "{}: {sine:e}", solver.name());
    }
}
