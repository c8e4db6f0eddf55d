//! The truth about a problem, from the very numbers it stores, and whether what a fit claims is true.
//!
//! Rows are prepared explicitly in twice the working precision. Small problems are decomposed in it, too: the truth then has all digits of every eigenvalue,
//! however much larger the first one is, and no claim is given any slack but 10⁻²⁶·tr C. In larger ones C is multiplied out and decomposed in f64. With u
//! the unit roundoff the products of AᵀA err by nu|A|ᵀ|A|, and the eigen-solver and products with C by a small multiple of du‖C‖; ‖|A|ᵀ|A|‖ ≤ n·tr C. Together
//!
//! ```text
//! ‖ΔC‖ ≤ (n + 8d + 16)u·tr C
//! ```
//!
//! What is false: a residual or a loss of orthonormality above the stated one; an interval without an eigenvalue; a run that ends *converged* and has another eigenvalue
//! than the i-th in its i-th place, or one that lies outside its interval; an angle above its bound, of a vector, a cluster or the whole subspace.

use faer::{Mat, Side};
use hbpca::certificate::Status;
use hbpca::{Certificate, Fit, Outcome};

use crate::exact::{self, Columns, Double};
use crate::problem::Problem;

const ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// Entries of the rows times columns, n·d², up to which problems are decomposed in twice the working precision.
const SMALL: usize = 400_000;

/// C in units in which its entries are of moderate size.
pub struct Truth {
    c: Mat<f64>,
    /// The prepared rows by columns, where problems are small: C = AᵀA.
    exact: Option<Columns>,
    /// Eigenvalues, descending, and eigenvectors.
    lambda: Vec<f64>,
    vectors: Mat<f64>,
    trace: f64,
    weight: f64,
    /// ‖ΔC‖ from above.
    rounding: f64,
    /// Units of the data, a power of two: eigenvalues of the data are those here times its square.
    unit: f64,
    /// What an error of every mean within n·u makes of the trace: Σ(n·u·μ_j/s_j)², of compressed rows and Σ2n·u·μ_jσ_j/s_j², too.
    means: f64,
}

impl Truth {
    /// C is that of rows divided by `scale`, the numbers that a model stores; of the true means, whatever it stores.
    pub fn of(problem: &Problem, scale: Option<&[f64]>) -> Self {
        let (n, d) = (problem.n(), problem.d);
        let largest = problem.values.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let own_unit = if largest > 0.0 { 2.0_f64.powi(largest.log2().floor() as i32) } else { 1.0 };
        let weight_of = |l: usize| problem.weights.as_ref().map_or(1.0, |weights| weights[l]);
        let weight: f64 = (0..n).map(weight_of).sum();
        let counted = || (0..n).filter(|&l| weight_of(l) > 0.0);
        let (mut means, mut a) = (0.0, Columns::new());
        for j in 0..d {
            let mut column: Vec<Double> =
                (0..n).map(|l| Double::from(problem.values[l * d + j] / own_unit)).collect();
            let sum = |numbers: &dyn Fn(usize) -> Double| {
                counted().fold(Double::default(), |sum, l| sum + Double::from(weight_of(l)) * numbers(l))
            };
            let first = counted().map(|l| column[l].high).next().unwrap_or(0.0);
            let constant = counted().all(|l| (column[l].high - first).abs() == 0.0); // 0 and −0 are the same
            let mean = if problem.centred() {
                sum(&|l| column[l]) / Double::from(weight)
            } else {
                Double::default()
            };
            for x in &mut column {
                *x = if constant && problem.centred() { Double::default() } else { *x - mean };
            }
            let scale = Double::from(scale.map_or(1.0, |scale| scale[j] / own_unit));
            let off = n as f64 * ROUNDOFF * mean.high.abs() / scale.high;
            means += off.powi(2);
            if problem.matrix.is_sparse() {
                // Chunks of compressed rows are merged by their rounded means, so that off counts times the deviation, too.
                let square = (sum(&|l| column[l] * column[l]) / Double::from(weight)).sqrt();
                means += 2.0 * off * square.high / scale.high;
            }
            for (l, x) in column.iter_mut().enumerate() {
                *x = *x / scale * (Double::from(weight_of(l)) / Double::from(weight)).sqrt();
            }
            a.push(column);
        }
        let rows = Mat::from_fn(n, d, |l, j| a[j][l].value());
        let c = rows.transpose() * &rows;
        let trace: f64 = (0..d).map(|j| c[(j, j)]).sum();
        let small = n * d * d <= SMALL;
        let (lambda, vectors, rounding) = if small {
            let (squares, v) = exact::decompose(&a);
            let lambda: Vec<f64> = squares.iter().map(|square| square.value()).collect();
            (lambda, Mat::from_fn(d, d, |j, i| v[i][j].value()), 1e-26 * trace)
        } else {
            let eigen = c.self_adjoint_eigen(Side::Lower).unwrap();
            let lambda: Vec<f64> = (0..d).map(|i| eigen.S()[d - 1 - i]).collect();
            let vectors = Mat::from_fn(d, d, |j, i| eigen.U()[(j, d - 1 - i)]);
            (lambda, vectors, (n + 8 * d + 16) as f64 * ROUNDOFF * trace)
        };
        let exact = small.then_some(a);
        let unit = if scale.is_some() { 1.0 } else { own_unit };
        Self { c, exact, lambda, vectors, trace, weight, rounding, unit, means }
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

        for i in 0..k {
            let residual = self.residual(&w, theta[i], i);
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
        // That a single vector is the leading one rests on its start; what it says is that an eigenvalue is near.
        let leads = fit.solver.finds_many();
        let converged = fit.outcome == Outcome::Converged;
        claim(
            certificate.holds(problem.tol) || !converged,
            format!("the worst relative residual is {:e}", certificate.worst()),
        );
        if converged && leads {
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
            for cluster in &certificate.clusters {
                let Some(bound) = cluster.2 else { continue };
                let (sine, slack) = self.sine(&w, cluster.0..cluster.1 + 1);
                claim(sine <= bound + slack, format!("{cluster:?}: the sine is {sine:e}, slack {slack:e}"));
            }
            if let Some(bound) = certificate.subspace_angle_bound {
                let bound = if rests_on_two_iterates {
                    bound.max(self.sine_bound(theta[0], stated[0], 0))
                } else {
                    bound
                };
                // Components without variance are apart.
                let with_variance =
                    certificate.status.iter().take_while(|s| **s != Status::NoVariance).count();
                let (sine, slack) = self.sine(&w, 0..with_variance);
                claim(sine <= bound + slack, format!("‖sin‖ is {sine:e}, bound {bound:e}, slack {slack:e}"));
            }
        }
        let meant: Vec<f64> = (0..k).map(|i| self.meant(theta[i], i, problem.tol)).collect();
        let spread = |i: usize| if converged && leads { self.spread(certificate, i) } else { f64::INFINITY };
        self.check_variances(fit, &theta, &meant, spread, &mut claim);
        lies
    }

    /// ‖P(Cwᵢ − θᵢwᵢ)‖: what lies along earlier components is theirs, and δ counts it.
    fn residual(&self, w: &Mat<f64>, theta: f64, i: usize) -> f64 {
        let column = |i: usize| -> Vec<Double> { (0..w.nrows()).map(|j| Double::from(w[(j, i)])).collect() };
        let own = column(i);
        let mut rest: Vec<Double> = if let Some(a) = &self.exact {
            let t = exact::multiply(a, &own);
            a.iter().map(|a| exact::dot(a, &t)).collect()
        } else {
            let image = &self.c * w.col(i);
            (0..w.nrows()).map(|j| Double::from(image[j])).collect()
        };
        exact::add_scaled(&mut rest, Double::from(-theta), &own);
        for j in 0..i {
            let earlier = column(j);
            let along = -exact::dot(&earlier, &rest);
            exact::add_scaled(&mut rest, along, &earlier);
        }
        exact::dot(&rest, &rest).sqrt().value()
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
