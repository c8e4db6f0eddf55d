//! The truth about a problem, from the very numbers it stores, and whether what a fit claims is true.
//!
//! Rows are prepared explicitly, with means and variances in twice the working precision, C is multiplied out and decomposed
//! by a dense eigen-solver. With u the unit roundoff, the entries of the prepared rows A err by at most 8u|A|, the products
//! of AᵀA by nu|A|ᵀ|A|, and the eigen-solver and products with C by a small multiple of du‖C‖; ‖|A|ᵀ|A|‖ ≤ n·tr C. Together
//!
//! ```text
//! ‖ΔC‖ ≤ (n + 8d + 16)u·tr C
//! ```
//!
//! which is the only slack that any claim is given.

use faer::{Mat, Side};
use hbpca::{Certificate, Fit, Outcome, Scaling};

use crate::problem::Problem;

const ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// Σ in twice the working precision (Knuth's exact sum of two, and of a product by a fused multiply-add).
#[derive(Clone, Copy, Default)]
struct Twice {
    high: f64,
    low: f64,
}

impl Twice {
    fn add(&mut self, x: f64) {
        let sum = self.high + x;
        let moved = sum - self.high;
        self.low += (self.high - (sum - moved)) + (x - moved);
        self.high = sum;
    }

    fn add_product(&mut self, x: f64, y: f64) {
        let product = x * y;
        self.add(product);
        self.low += x.mul_add(y, -product);
    }

    /// The sum over `divisor`, as a number and what it lacks.
    fn over(self, divisor: f64) -> (f64, f64) {
        let quotient = (self.high + self.low) / divisor;
        let rest = quotient.mul_add(-divisor, self.high) + self.low;
        (quotient, rest / divisor)
    }
}

/// C in units in which its entries are of moderate size.
pub struct Truth {
    c: Mat<f64>,
    /// Eigenvalues, descending, and eigenvectors.
    lambda: Vec<f64>,
    vectors: Mat<f64>,
    trace: f64,
    weight: f64,
    /// ‖ΔC‖ from above.
    rounding: f64,
    /// Units of the data, a power of two: eigenvalues of the data are those here times its square.
    unit: f64,
    /// Σ(n·u·μ_j/s_j)²: what an error of every mean within n·u makes of the trace.
    means: f64,
}

impl Truth {
    pub fn of(problem: &Problem) -> Self {
        let (n, d) = (problem.n(), problem.d);
        let largest = problem.values.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let standardised = problem.preprocessing.scaling == Scaling::Std;
        let own_unit = if largest > 0.0 { 2.0_f64.powi(largest.log2().floor() as i32) } else { 1.0 };
        let weight_of = |l: usize| problem.weights.as_ref().map_or(1.0, |weights| weights[l]);
        let weight: f64 = (0..n).map(weight_of).sum();
        let mut rows = Mat::from_fn(n, d, |l, j| problem.values[l * d + j] / own_unit);
        let mut means = 0.0;
        for j in 0..d {
            let counted = || (0..n).filter(|&l| weight_of(l) > 0.0);
            let mut sum = Twice::default();
            counted().for_each(|l| sum.add_product(weight_of(l), rows[(l, j)]));
            let (mean, lack) = if problem.centred() { sum.over(weight) } else { (0.0, 0.0) };
            let first = counted().map(|l| rows[(l, j)]).next().unwrap_or(0.0);
            let constant = counted().all(|l| rows[(l, j)].to_bits() == first.to_bits());
            for l in 0..n {
                rows[(l, j)] = if constant && problem.centred() { 0.0 } else { (rows[(l, j)] - mean) - lack };
            }
            let mut scale = 1.0;
            if standardised && !constant {
                let mut squares = Twice::default();
                counted().for_each(|l| squares.add(weight_of(l) * rows[(l, j)] * rows[(l, j)]));
                scale = squares.over(weight).0.sqrt();
                (0..n).for_each(|l| rows[(l, j)] /= scale);
            }
            means += (n as f64 * ROUNDOFF * mean / scale).powi(2);
            for l in 0..n {
                rows[(l, j)] *= (weight_of(l) / weight).sqrt();
            }
        }
        let c = rows.transpose() * &rows;
        let eigen = c.self_adjoint_eigen(Side::Lower).unwrap();
        let lambda: Vec<f64> = (0..d).map(|i| eigen.S()[d - 1 - i]).collect();
        let vectors = Mat::from_fn(d, d, |j, i| eigen.U()[(j, d - 1 - i)]);
        let trace: f64 = (0..d).map(|j| c[(j, j)]).sum();
        let rounding = (n + 8 * d + 16) as f64 * ROUNDOFF * trace;
        let unit = if standardised { 1.0 } else { own_unit };
        Self { c, lambda, vectors, trace, weight, rounding, unit, means }
    }

    /// A number that scales like C, in the units here.
    fn here(&self, x: f64) -> f64 {
        x / self.unit / self.unit
    }

    /// Every claim of `fit` that is false.
    pub fn lies(&self, problem: &Problem, fit: &Fit) -> Vec<String> {
        let mut lies = Vec::new();
        let mut claim = |holds: bool, text: String| {
            if !holds {
                lies.push(format!("{text} ({}, {})", fit.outcome, fit.certificate));
            }
        };
        let certificate = &fit.certificate;
        let (d, k) = (problem.d, problem.k);
        let w = Mat::from_fn(d, k, |j, i| fit.model.component(i)[j]);
        let theta: Vec<f64> = certificate.eigenvalues.iter().map(|x| self.here(*x)).collect();
        let stated: Vec<f64> = certificate.residuals.iter().map(|x| self.here(*x)).collect();

        let gram = w.transpose() * &w;
        let loss = (&gram - Mat::<f64>::identity(k, k)).norm_l2();
        let dots = (k * (d + 2)) as f64 * ROUNDOFF;
        claim(
            loss <= certificate.orthonormality_loss + 2.0 * dots,
            format!("orthonormality is lost by {loss:e}, stated {:e}", certificate.orthonormality_loss),
        );
        claim(theta.is_sorted_by(|a, b| a >= b), format!("eigenvalues do not descend: {theta:?}"));

        let images = &self.c * &w;
        for i in 0..k {
            // What lies along earlier components is theirs: δ counts it.
            let mut rest = images.col(i) - w.col(i) * faer::Scale(theta[i]);
            for j in 0..i {
                let along = w.col(j).transpose() * &rest;
                rest -= w.col(j) * faer::Scale(along);
            }
            let residual = rest.norm_l2();
            claim(
                residual <= stated[i] + self.rounding,
                format!("residual {i} is {residual:e}, stated {:e}", stated[i]),
            );
            let [lo, hi] = certificate.eigenvalue_intervals[i].map(|x| self.here(x));
            claim(
                self.lambda.iter().any(|x| lo - self.rounding <= *x && *x <= hi + self.rounding),
                format!("no eigenvalue in interval {i}, [{lo:e}, {hi:e}]"),
            );
        }
        let converged = fit.outcome == Outcome::Converged;
        claim(
            certificate.holds(problem.tol) || !converged,
            format!("the worst relative residual is {:e}", certificate.worst()),
        );
        if converged {
            for i in 0..k {
                let spread = self.spread(certificate, i);
                let meant = self.meant(theta[i], i, problem.tol);
                let off = (theta[i] - meant).abs();
                claim(
                    off <= spread + self.rounding,
                    format!("θ{i} = {:e} is off λ{i} = {meant:e} by {off:e}, spread {spread:e}", theta[i]),
                );
            }
        }
        // One vector's two last iterates estimate λ₂ from below, and the certificate says that its bounds rest on that: they
        // are true if the estimate is, and otherwise no worse than with the true λ₂.
        let rests_on_two_iterates = !certificate.gap_is_proved && !fit.solver.finds_many();
        if converged || certificate.gap_is_proved {
            for i in 0..k {
                let Some(bound) = certificate.angle_bounds[i] else { continue };
                let bound = if rests_on_two_iterates {
                    bound.max(self.sine_bound(theta[i], stated[i], i))
                } else {
                    bound
                };
                let (sine, slack) = self.sine(&w, i..i + 1);
                claim(
                    sine <= bound + slack,
                    format!("sine {i} is {sine:e}, bound {bound:e}, slack {slack:e}"),
                );
            }
            if let Some(bound) = certificate.subspace_angle_bound {
                let bound = if rests_on_two_iterates {
                    bound.max(self.sine_bound(theta[0], stated[0], 0))
                } else {
                    bound
                };
                let (sine, slack) = self.sine(&w, 0..k);
                claim(sine <= bound + slack, format!("‖sin‖ is {sine:e}, bound {bound:e}, slack {slack:e}"));
            }
        }
        let meant: Vec<f64> = (0..k).map(|i| self.meant(theta[i], i, problem.tol)).collect();
        let spread = |i: usize| if converged { self.spread(certificate, i) } else { f64::INFINITY };
        self.check_variances(fit, &theta, &meant, spread, &mut claim);
        lies
    }

    /// The eigenvalue that θᵢ stands for. Those closer than the tolerance are one to a run that stops there, since any turn of
    /// their vectors has residuals within it: of them, the nearest.
    fn meant(&self, theta: f64, i: usize, tol: f64) -> f64 {
        let told_apart = tol * self.lambda[i].abs();
        let same = self.lambda.iter().filter(|x| (**x - self.lambda[i]).abs() <= told_apart);
        same.copied().min_by(|a, b| (theta - a).abs().total_cmp(&(theta - b).abs())).unwrap_or(self.lambda[i])
    }

    /// r/min|θ − λ_j| over all other eigenvalues (Davis & Kahan).
    fn sine_bound(&self, theta: f64, residual: f64, i: usize) -> f64 {
        let others = self.lambda.iter().enumerate().filter(|(j, _)| *j != i);
        residual / others.map(|(_, x)| (theta - x).abs()).fold(f64::INFINITY, f64::min)
    }

    /// ‖R‖_F/σ_min(W) of component i and those after it, within which as many Ritz values lie of eigenvalues (Kahan); earlier ones have residuals
    /// in their own proportion, and move it by their squares.
    fn spread(&self, certificate: &Certificate, i: usize) -> f64 {
        let largest = certificate.residuals[i..].iter().map(|r| self.here(*r)).fold(0.0, f64::max);
        let count = certificate.residuals.len() as f64;
        (count / (1.0 - certificate.orthonormality_loss).max(0.0)).sqrt() * largest
    }

    /// ‖sin∠‖_F between the given columns of W and the eigenvectors of the same numbers, taking along those whose
    /// eigenvalues the reference itself cannot tell from theirs; and what its rounding adds (Davis & Kahan).
    fn sine(&self, w: &Mat<f64>, which: std::ops::Range<usize>) -> (f64, f64) {
        let near = 1e3 * self.rounding;
        let (mut from, mut to) = (which.start, which.end);
        while from > 0 && self.lambda[from - 1] - self.lambda[from] <= near {
            from -= 1;
        }
        while to < self.lambda.len() && self.lambda[to - 1] - self.lambda[to] <= near {
            to += 1;
        }
        let w = w.subcols(which.start, which.len());
        let u = self.vectors.subcols(from, to - from);
        let across = w - u * (u.transpose() * w);
        let above = if from > 0 { self.lambda[from - 1] - self.lambda[from] } else { f64::INFINITY };
        let below = self.lambda.get(to).map_or(f64::INFINITY, |next| self.lambda[to - 1] - next);
        let columns = (which.len() as f64).sqrt();
        let own = 4.0 * self.lambda.len() as f64 * f64::EPSILON;
        (across.norm_l2(), columns * (self.rounding / above.min(below) + own))
    }

    /// Total variance, shares, variances with n − 1 and singular values; eigenvalues lie within `spread` of the leading ones.
    fn check_variances(
        &self,
        fit: &Fit,
        theta: &[f64],
        meant: &[f64],
        spread: impl Fn(usize) -> f64,
        claim: &mut impl FnMut(bool, String),
    ) {
        let (n, model) = (fit.model.summary().n as f64, &fit.model);
        let total = self.here(model.summary().total_variance);
        let room = self.rounding + 4.0 * n * ROUNDOFF * self.trace + self.means;
        claim(
            (total - self.trace).abs() <= room,
            format!("total variance {total:e} instead of {:e}", self.trace),
        );
        let factor = if self.weight > 1.0 { self.weight / (self.weight - 1.0) } else { 0.0 };
        let few = 8.0 * f64::EPSILON;
        for i in 0..theta.len() {
            let variance = self.here(model.explained_variance()[i]);
            claim(
                (variance - theta[i] * factor).abs() <= few * theta[i].abs() * factor,
                format!("variance {i} is {variance:e}, λ{i} {:e}", theta[i]),
            );
            let share = model.explained_variance_ratio()[i];
            let want = if self.trace > 0.0 { meant[i] / self.trace } else { 0.0 };
            let off = if self.trace > 0.0 { (spread(i) + room) / self.trace * (1.0 + want) } else { 0.0 };
            claim((share - want).abs() <= off + few, format!("share {i} is {share:e} instead of {want:e}"));
            let singular = model.singular_values()[i] / self.unit;
            let want = (theta[i].max(0.0) * self.weight).sqrt();
            claim(
                (singular - want).abs() <= few * want,
                format!("singular value {i} is {singular:e}, not {want:e}"),
            );
        }
    }
}
