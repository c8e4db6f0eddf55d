//! Block Lanczos from p vectors sees at most p copies of a repeated eigenvalue. Blocks narrower than k must not take that
//! for the whole truth.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "tests stop at surprises and count small")]

mod common;
#[allow(dead_code, reason = "only some of the problems are of use here")]
#[path = "torture/problem.rs"]
mod problem;

use common::{csr, dense, with_leading_spectrum};
use hbpca::operator::{Covariance, CovarianceOperator};
use hbpca::solver::{Krylov, KrylovSizes};
use hbpca::{Driver, Limits, Outcome, Preprocessing};

/// Runs `krylov` with every width of block up to k on the spectrum given; what it claims that is false.
fn lies(what: &str, lambda: &[f64], k: usize, sparse: bool) -> Vec<String> {
    let d = lambda.len();
    let rows = if sparse { problem::diagonal(lambda) } else { with_leading_spectrum(2 * d, d, lambda, 4).0 };
    let x = if sparse { csr(&rows, d) } else { dense(rows, d) };
    let mut lies = Vec::new();
    for block in [1, 2, k / 2, k] {
        for tol in [1e-3, 1e-6, 1e-10] {
            let mut c = Covariance::new(&x, Preprocessing::NONE).unwrap();
            let sizes = KrylovSizes { block, memory: 6 * k };
            let mut krylov = Krylov::new(d, k, sizes, 1, None).unwrap();
            let limits = Limits { tol, max_passes: 2000.0, ..Limits::default() };
            let report = Driver::new(limits).run(&mut krylov, &mut c).unwrap();
            let certificate = &report.certificate;
            let label =
                format!("{what}, d = {d}, k = {k}, p = {block}, tol = {tol:e}, {} passes", report.passes);
            if report.outcome != Outcome::Converged {
                lies.push(format!("{label}: {}", report.outcome));
                continue;
            }
            let spread = certificate.residuals.iter().map(|r| r * r).sum::<f64>().sqrt();
            // Rows are made from square roots and, if dense, products of d terms.
            let room = spread + 8.0 * d as f64 * f64::EPSILON * c.total_variance();
            for (i, (theta, lambda)) in certificate.eigenvalues.iter().zip(lambda).enumerate() {
                if (theta - lambda).abs() > room {
                    lies.push(format!("{label}: θ{i} = {theta:e} is not λ{i} = {lambda:e}"));
                    break;
                }
            }
        }
    }
    lies
}

#[test]
fn blocks_narrower_than_a_multiplicity_claim_nothing_false() {
    let mut wrong = Vec::new();
    let mut runs = 0;
    for d in [40, 90] {
        for k in [4, 12] {
            for multiplicity in [2, 3, k / 2 + 1, k, k + 3, d / 2] {
                for above in [0, 2] {
                    for sparse in [false, true] {
                        let what = format!("{multiplicity} copies below {above}, sparse {sparse}");
                        wrong.extend(lies(&what, &problem::repeated(d, multiplicity, above), k, sparse));
                        runs += 12;
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {runs} runs:\n{}", wrong.len(), wrong.join("\n"));
}
