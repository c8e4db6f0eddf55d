//! Which solver is cheapest: a model of the arithmetic.
//!
//! All three candidates spend their time in fused multiply-adds on data that streams by, so that what decides between them
//! is a ratio of operation counts, which hardly depends on the machine. The efficiencies below are measured ratios against a
//! matrix–matrix product (`cargo run --release --example pass_speed`).

use crate::Matrix;
use crate::solver::{KrylovSizes, SMALLEST_PARTIAL};

use super::SolverKind;

/// Multiply-adds of a fused pass take this much longer than those of a matrix–matrix product.
const DENSE_PASS: f64 = 2.0;
/// The same for compressed rows, whose entries are scattered.
const SPARSE_PASS: f64 = 12.0;
/// A full dense eigen-solve: about 9d³ multiply-adds at a tenth of the speed of a product.
const EIGEN_SOLVE: f64 = 90.0;
/// Numbers that C may take (1 GiB).
const MOST_NUMBERS: usize = 1 << 27;

/// The cheaper of `covariance` and `krylov` in memory, and the reason in words.
///
/// `anchored` reads the data least often but computes more on each look: it is the choice where a look means reading a disk
/// or a network, never for a matrix in memory.
pub(super) fn choose(matrix: &Matrix<'_>, k: usize) -> (SolverKind, String) {
    let (n, d, entries) = (matrix.n_rows() as f64, matrix.n_cols() as f64, matrix.nnz() as f64);
    let sizes = if matrix.is_sparse() { KrylovSizes::suiting_sparse(k) } else { KrylovSizes::suiting(k) };
    let p = sizes.block.min(matrix.n_cols()) as f64;
    // Passes grow slowly with k; between 6 and 12 on every data set measured.
    let passes = (6.0 + (k as f64).ln_1p() * 2.0).min((d / p).ceil() + 1.0);
    let pass = 2.0 * entries * p * if matrix.is_sparse() { SPARSE_PASS } else { DENSE_PASS };
    let vectors = 4.0 * d * p * passes * p;
    let krylov = passes * (pass + vectors);
    let dense_solve = EIGEN_SOLVE * d.powi(3);
    let partial_solve = 20.0 * 2.0 * d * d * p * DENSE_PASS;
    let covariance = n * d * d / 2.0 + dense_solve.min(partial_solve.max(1e6));
    let fits = matrix.n_cols().checked_mul(matrix.n_cols()).is_some_and(|numbers| numbers <= MOST_NUMBERS);
    let giga = 1e-9;
    if !fits {
        let reason =
            format!("a covariance of {d} columns would need {:.0} GiB", d * d * 8.0 / (1_u64 << 30) as f64);
        return (SolverKind::Krylov, reason);
    }
    let (chosen, word) = if covariance <= krylov {
        (SolverKind::Covariance, "against")
    } else {
        (SolverKind::Krylov, "where")
    };
    let reason = match chosen {
        SolverKind::Covariance => {
            format!(
                "forming C costs about {:.2} G multiply-adds {word} {:.2} for krylov",
                covariance * giga,
                krylov * giga
            )
        }
        _ => format!(
            "about {:.2} G multiply-adds {word} forming C would cost {:.2}",
            krylov * giga,
            covariance * giga
        ),
    };
    (chosen, reason)
}

/// Components to ask `covariance` for first where a share of the variance is wanted, and `k` would be the next guess.
///
/// Every further guess forms C again, n·d²/2 multiply-adds, and four guesses (1, 8, 16, 32) are the usual number; all components
/// at once cost one full eigen-solve, which narrow data get in any case.
pub(super) fn first_k_of_share(n: usize, d: usize, k: usize) -> usize {
    let solve = EIGEN_SOLVE * (d as f64).powi(3);
    let guesses = 4.0 * n as f64 * (d as f64).powi(2) / 2.0;
    if d < SMALLEST_PARTIAL || solve <= guesses { n.min(d) } else { k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Csr, Dense};

    #[test]
    fn shares_ask_for_all_components_at_once_where_that_is_cheaper_than_guessing() {
        let first = |n: usize, d: usize| first_k_of_share(n, d, 8);
        assert_eq!(first(300, 20), 20);
        assert_eq!(first(10, 100), 10);
        assert_eq!(first(300, 1000), 8); // 9·10¹⁰ multiply-adds for the solve, 6·10⁸ for four guesses
        assert_eq!(first(10_000, 200), 200);
    }

    #[test]
    fn few_columns_form_the_covariance_and_many_do_not() {
        let narrow: Matrix = Dense::new(vec![1.0_f32; 20_000 * 20], 20_000, 20).unwrap().into();
        assert_eq!(choose(&narrow, 1).0, SolverKind::Covariance);
        let wide: Matrix = Dense::new(vec![1.0_f32; 100 * 3000], 100, 3000).unwrap().into();
        assert_eq!(choose(&wide, 1).0, SolverKind::Krylov);
        let text: Matrix =
            Csr::new(50_000, vec![0, 1, 2], vec![7, 49_999], vec![1.0_f32, 1.0]).unwrap().into();
        let (solver, reason) = choose(&text, 10);
        assert_eq!(solver, SolverKind::Krylov);
        assert!(reason.contains("50000 columns would need 19 GiB"), "{reason}");
    }
}
