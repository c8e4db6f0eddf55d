//! Krylov spaces of AAᵀ instead of AᵀA: vectors as long as there are rows, and the same truth.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare counts and count small"
)]

mod common;
#[allow(dead_code, reason = "only some of the problems are of use here")]
#[path = "torture/problem.rs"]
mod problem;

use common::*;
use hbpca::operator::{Covariance, CovarianceOperator, Products};
use hbpca::solver::{Krylov, KrylovSizes};
use hbpca::{
    Driver, Fit, FitConfig, Limits, Matrix, Outcome, PrecisionChoice, Preprocessing, Report, SolverKind,
};

fn run(c: &mut Covariance<'_>, k: usize, sizes: KrylovSizes, limits: Limits) -> Report {
    let (n, d) = (c.n_rows(), c.dim());
    let mut krylov = Krylov::new(d, k, sizes, 1, None).unwrap().beginning_with_rows(n).unwrap();
    Driver::new(limits).run(&mut krylov, c).unwrap()
}

/// Every claim about the k leading eigenvalues of the prepared rows that is false.
fn lies(x: &Matrix<'_>, preprocessing: Preprocessing, k: usize, block: usize, tol: f64) -> Vec<String> {
    let (n, d) = (x.n_rows(), x.n_cols());
    let mut c = Covariance::new(x, preprocessing).unwrap();
    let (lambda, _) = dense_eigen(&prepare(&entries(x), d, preprocessing), d);
    let report = run(&mut c, k, KrylovSizes { block, memory: 6 * k }, Limits { tol, ..Limits::default() });
    let certificate = &report.certificate;
    let label = format!("{n}×{d}, k = {k}, p = {block}, tol = {tol:e}, {} passes", report.passes);
    let mut lies = Vec::new();
    // A single row, centred, is zero up to the rounding of its mean: no residual is small against that.
    if report.outcome != Outcome::Converged && c.total_variance() > 0.0 {
        lies.push(format!("{label}: {}", report.outcome));
    }
    // The truth is a product of n terms and an eigen-solve.
    let room = 8.0 * (n + d) as f64 * f64::EPSILON * (c.total_variance() + lambda[0]);
    let spread = certificate.residuals.iter().map(|r| r * r).sum::<f64>().sqrt() + room;
    for (i, (theta, lambda)) in certificate.eigenvalues.iter().zip(&lambda).enumerate() {
        if (theta - lambda).abs() > spread {
            lies.push(format!("{label}: θ{i} = {theta:e} is not λ{i} = {lambda:e} ± {spread:e}"));
            break;
        }
    }
    // Vectors are orthonormal, and residuals are those of the rows themselves.
    let mut images = random_block(d, k, 1);
    c.apply(&report.vectors, &mut images).unwrap();
    for i in 0..k {
        let (w, z) = (report.vectors.column(i), images.column(i));
        for (j, other) in (0..k).map(|j| (j, report.vectors.column(j))) {
            let dot: f64 = w.iter().zip(&other).map(|(a, b)| a * b).sum();
            if (dot - f64::from(u8::from(i == j))).abs() > 1e-12 {
                lies.push(format!("{label}: vectors {i} and {j} have the product {dot:e}"));
            }
        }
        let theta = certificate.eigenvalues[i];
        let residual = w.iter().zip(&z).map(|(w, z)| (z - theta * w).powi(2)).sum::<f64>().sqrt();
        if residual > certificate.residuals[i] + room {
            lies.push(format!("{label}: residual {i} is {residual:e}, not {:e}", certificate.residuals[i]));
        }
    }
    lies
}

#[test]
fn what_is_claimed_of_every_preparation_is_true() {
    let mut wrong = Vec::new();
    for (n, d, k) in [(1, 1, 1), (1, 40, 1), (7, 90, 7), (40, 90, 5), (90, 40, 12), (30, 200, 10)] {
        let x = csr_f32(&sparse_values(n, d, 0.3, 7), d);
        for preprocessing in EVERY_PREPROCESSING {
            for tol in [1e-2, 1e-6, 1e-10] {
                wrong.extend(lies(&x, preprocessing, k, 4.min(n), tol));
            }
        }
    }
    assert!(wrong.is_empty(), "{} false claims:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn repeated_and_missing_values_are_found() {
    let mut wrong = Vec::new();
    for d in [40, 90] {
        for k in [4, 12] {
            for (multiplicity, above) in [(2, 0), (3, 2), (k / 2 + 1, 0), (k, 2), (k + 3, 0), (d / 2, 2)] {
                let x = csr_f32(&problem::diagonal(&problem::repeated(d, multiplicity, above)), d);
                for block in [1, 2, k] {
                    for tol in [1e-3, 1e-6, 1e-10] {
                        wrong.extend(lies(&x, Preprocessing::NONE, k, block, tol));
                    }
                }
            }
            // Of rank below k: what is left has the eigenvalue zero. And nothing at all.
            for rank in [0, 1, k - 1] {
                let lambda: Vec<f64> =
                    (0..d).map(|i| if i < rank { 1.0 / (i + 1) as f64 } else { 0.0 }).collect();
                let x = csr_f32(&problem::diagonal(&lambda), d);
                wrong.extend(lies(&x, Preprocessing::NONE, k, 4, 1e-6));
            }
        }
    }
    assert!(wrong.is_empty(), "{} false claims:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn budgets_are_kept_and_their_last_passes_prove_what_there_is() {
    let (n, d, k) = (60, 300, 5);
    let x = csr_f32(&sparse_values(n, d, 0.2, 3), d);
    let mut c = Covariance::new(&x, Preprocessing::CENTER).unwrap();
    for max_passes in [4.0, 5.0, 6.0, 7.0, 9.0, 14.0] {
        let limits = Limits { tol: 1e-13, max_passes, ..Limits::default() };
        let report = run(&mut c, k, KrylovSizes { block: 5, memory: 30 }, limits);
        assert_eq!(report.outcome, Outcome::Budget);
        // Two passes a look and two for the proof.
        assert!(report.passes <= max_passes && report.passes > max_passes - 2.0, "{}", report.passes);
        assert!(report.certificate.residuals.iter().all(|r| r.is_finite()));
        assert_eq!((report.vectors.d(), report.vectors.p()), (d, k));
    }
}

#[test]
fn an_operator_without_the_other_side_is_served_as_ever() {
    let (n, d, k) = (30, 80, 4);
    let values = sparse_values(n, d, 0.3, 3);
    let sizes = KrylovSizes { block: 4, memory: 24 };
    for x in [csr(&values, d), dense_f32(&values, d)] {
        let mut c = Covariance::new(&x, Preprocessing::CENTER).unwrap();
        let report = run(&mut c, k, sizes, Limits::default());
        let mut plain = Krylov::new(d, k, sizes, 1, None).unwrap();
        let want = Driver::new(Limits::default()).run(&mut plain, &mut c).unwrap();
        assert_eq!((report.vectors, report.passes), (want.vectors, want.passes));
    }
    let k_above_n = Krylov::new(d, 40, sizes, 1, None).unwrap().beginning_with_rows(n);
    assert!(k_above_n.unwrap_err().to_string().contains("from 1 to 30"));
}

/// Rows of a few words, some of which are in many.
fn text(n: usize, d: usize) -> Matrix<'static> {
    let mut values = sparse_values(n, d, 0.01, 5);
    (0..n).for_each(|l| values[l * d + l % 7] += 3.0 / (1 + l % 7) as f64);
    csr_f32(&values, d)
}

#[test]
fn fits_take_the_shorter_side_and_say_the_same() {
    let (n, d) = (80, 9000);
    let x = text(n, d);
    for preprocessing in [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE] {
        let config = FitConfig { k: 3, preprocessing, solver: SolverKind::Krylov, ..FitConfig::default() };
        assert!(Krylov::gains_from_rows(n, d, config.k));
        let by_rows = config.fit(&x).unwrap();
        let columns = |config: FitConfig| -> Fit { config.fit(&x).unwrap() };
        let in_double = columns(FitConfig { precision: PrecisionChoice::Double, ..config.clone() });
        let few = Limits { max_passes: 100.0, ..Limits::default() };
        let counting = columns(FitConfig { limits: few, ..config.clone() });
        // Two passes a product, one to lead back and one to prove it; C takes one each.
        assert_eq!((by_rows.outcome, by_rows.full_passes % 2), (Outcome::Converged, 0));
        assert_eq!(by_rows.history[0].passes, 2.0 * counting.history[0].passes);
        for other in [in_double, counting] {
            for i in 0..config.k {
                let (a, b) = (by_rows.certificate.eigenvalues[i], other.certificate.eigenvalues[i]);
                let room = by_rows.certificate.residuals[i] + other.certificate.residuals[i];
                assert!((a - b).abs() <= room, "{a} {b}");
            }
        }
    }
}

#[test]
fn threads_change_no_bit() {
    let x = text(300, 9000);
    let fit = |threads| {
        let config = FitConfig { k: 5, threads, solver: SolverKind::Krylov, ..FitConfig::default() };
        config.fit(&x).unwrap()
    };
    let (one, three) = (fit(1), fit(3));
    assert_eq!((one.model, one.certificate), (three.model, three.certificate));
}
