//! Vectors so long that their basis is kept in f32, while rounding allows.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "tests stop at surprises and count small")]

mod common;

use common::Xorshift;
use hbpca::checkpoint::Checkpoints;
use hbpca::{
    Block, Csr, Fit, FitConfig, Limits, Matrix, Outcome, PrecisionChoice, Preprocessing, SolverKind,
};

/// Longer than what is kept in f64 from the start.
const D: usize = 9_000;

/// Rows of a few entries, most of them in few columns, as words are in texts.
fn text(n: usize, seed: u64) -> Matrix<'static> {
    let mut rng = Xorshift(seed);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..n {
        let mut row: Vec<u32> = (0..14).map(|_| (D as f64 * rng.uniform().powi(4)) as u32).collect();
        row.sort_unstable();
        row.dedup();
        values.extend(row.iter().map(|_| rng.uniform() as f32));
        columns.extend(row);
        starts.push(columns.len());
    }
    Csr::new(D, starts, columns, values).unwrap().into()
}

/// Rows that are multiples of one of `weights.len()` vectors with entries in columns of their own: C, not centred, has the
/// eigenvalues w²·8/`weights.len()`.
fn groups(weights: &[f64]) -> Matrix<'static> {
    let g = weights.len();
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for l in 0..5 * g {
        columns.extend((0..8).map(|i| (i * g + l % g) as u32));
        values.extend([weights[l % g] as f32; 8]);
        starts.push(columns.len());
    }
    Csr::new(D, starts, columns, values).unwrap().into()
}

fn config(k: usize, tol: f64, precision: PrecisionChoice) -> FitConfig {
    let limits = Limits { tol, ..Limits::default() };
    let preprocessing = Preprocessing::NONE;
    FitConfig { k, limits, precision, preprocessing, solver: SolverKind::Krylov, ..FitConfig::default() }
}

/// ‖W − UUᵀW‖_F.
fn sine(w: &Block, u: &Block) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut square = 0.0;
    for c in 0..w.p() {
        let mut left = w.column(c);
        for e in 0..u.p() {
            let u = u.column(e);
            let along = dot(&left, &u);
            left.iter_mut().zip(&u).for_each(|(x, u)| *x -= along * u);
        }
        square += dot(&left, &left);
    }
    square.sqrt()
}

fn components(fit: &Fit) -> Block {
    Block::from_columns(&fit.model.components().chunks_exact(D).collect::<Vec<_>>()).unwrap()
}

#[test]
fn the_answer_in_f32_is_that_in_f64_within_its_certificate() {
    for (seed, preprocessing) in
        [(1, Preprocessing::NONE), (2, Preprocessing::CENTER), (3, Preprocessing::STANDARDIZE)]
    {
        let x = text(1500, seed);
        for k in [1, 7] {
            let exact =
                FitConfig { preprocessing, ..config(k, 1e-8, PrecisionChoice::Double) }.fit(&x).unwrap();
            assert_eq!(exact.outcome, Outcome::Converged);
            for tol in [1e-3, 1e-6, 1e-7] {
                let fit =
                    FitConfig { preprocessing, ..config(k, tol, PrecisionChoice::Auto) }.fit(&x).unwrap();
                let label = format!("{preprocessing:?}, k = {k}, tol = {tol:e}");
                assert_eq!(fit.outcome, Outcome::Converged, "{label}");
                let (found, truth) = (&fit.certificate, &exact.certificate);
                assert!(found.orthonormality_loss < 1e-12, "{label}: {:e}", found.orthonormality_loss);
                for i in 0..k {
                    let off = (found.eigenvalues[i] - truth.eigenvalues[i]).abs();
                    assert!(off <= found.residuals[i] + truth.residuals[i], "{label}: λ{i} off by {off:e}");
                }
                let (bound, slack) =
                    (found.subspace_angle_bound.unwrap(), truth.subspace_angle_bound.unwrap());
                let sine = sine(&components(&fit), &components(&exact));
                // A gap that is estimated may be off by what is left in the last Ritz value.
                assert!(sine <= 1.1 * bound + slack, "{label}: sine {sine:e}, bound {bound:e}");
            }
        }
    }
}

#[test]
fn copies_of_an_eigenvalue_are_found_and_what_is_not_there_is_zero() {
    let x = groups(&[2.0; 14]);
    let fit = config(12, 1e-6, PrecisionChoice::Auto).fit(&x).unwrap();
    let lambda = 4.0 * 8.0 / 14.0;
    assert_eq!(fit.outcome, Outcome::Converged);
    for theta in &fit.certificate.eigenvalues {
        assert!((theta - lambda).abs() <= 1e-6 * lambda, "{theta}");
    }
    let few = groups(&[3.0, 2.0, 1.0]);
    let fit = config(5, 1e-6, PrecisionChoice::Auto).fit(&few).unwrap();
    assert_eq!(fit.outcome, Outcome::Converged);
    let want = [24.0, 32.0 / 3.0, 8.0 / 3.0, 0.0, 0.0];
    for (theta, lambda) in fit.certificate.eigenvalues.iter().zip(want) {
        assert!((theta - lambda).abs() <= 24e-6, "{theta} {lambda}");
    }
}

#[test]
fn any_number_of_threads_and_any_break_give_the_same_bits() {
    let x = text(1200, 4);
    let config = config(3, 1e-9, PrecisionChoice::Auto);
    let mut kept = Vec::new();
    let keep = |checkpoint: &hbpca::checkpoint::Checkpoint| {
        kept.push(checkpoint.clone());
        Ok(())
    };
    let data = x.fingerprint(None);
    let checkpoints =
        Checkpoints { data: data.clone(), save: Some(Box::new(keep)), ..Checkpoints::default() };
    let whole = config.run().checkpoints(checkpoints).fit(&x).unwrap();
    for threads in [1, 3] {
        let fit = FitConfig { threads, ..config.clone() }.fit(&x).unwrap();
        assert_eq!(fit.model, whole.model, "{threads} threads");
    }
    assert!(kept.len() > 5, "{}", kept.len());
    for checkpoint in kept {
        let checkpoints =
            Checkpoints { data: data.clone(), resume: Some(checkpoint), ..Checkpoints::default() };
        assert_eq!(config.run().checkpoints(checkpoints).fit(&x).unwrap().model, whole.model);
    }
}
