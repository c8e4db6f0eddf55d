//! Frequency weights: an integer weight is a repeated row, a zero weight a row left out, in memory, on disk and in chunks.

#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "what cannot go on in a test has failed")]

mod common;

use common::chunked::{Chunked, dense_problem, sparse_problem};
use common::{csr_f32, dense, dense_f32, entries};
use hbpca::checkpoint::{Checkpoint, Checkpoints};
use hbpca::missing::Missing;
use hbpca::operator::{Covariance, CovarianceOperator, Precision, Products, Streamed};
use hbpca::{Fit, FitConfig, Limits, Matrix, Moments, Outcome, Preprocessing, SolverKind};

const PREPARATIONS: [Preprocessing; 4] =
    [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE];

/// 2, 0, 1, 3, 1, 2, 0, …: as many as rows.
fn counts(n: usize) -> Vec<usize> {
    (0..n).map(|l| [2, 0, 1, 3, 1][(l * l + l / 7) % 5]).collect()
}

fn as_weights(counts: &[usize]) -> Vec<f64> {
    counts.iter().map(|&count| count as f64).collect()
}

/// Every row as often as it counts.
fn repeated(x: &Matrix<'_>, counts: &[usize]) -> Matrix<'static> {
    let (d, all) = (x.n_cols(), entries(x));
    let row = |l: usize| all[l * d..(l + 1) * d].to_vec();
    let values: Vec<f64> = (0..counts.len()).flat_map(|l| row(l).repeat(counts[l])).collect();
    if x.is_sparse() { csr_f32(&values, d) } else { dense_f32(&values, d) }
}

/// Some of the rows.
fn some_of(x: &Matrix<'_>, rows: &[usize]) -> Matrix<'static> {
    let mut once = vec![0; x.n_rows()];
    rows.iter().for_each(|&l| once[l] = 1);
    repeated(x, &once)
}

fn starts(n: usize, step: usize) -> Vec<usize> {
    (0..n).step_by(step).chain([n]).collect()
}

/// Both certificates hold for the same C, and both models for the same rows.
fn assert_same(a: &Fit, b: &Fit, what: &str) {
    let (x, y) = (a.model.summary(), b.model.summary());
    let n = x.n.max(y.n) as f64;
    assert!((x.weight - y.weight).abs() <= n * f64::EPSILON * y.weight, "{what}");
    assert!((x.total_variance / y.total_variance - 1.0).abs() <= n * f64::EPSILON, "{what}");
    for i in 0..a.model.n_components() {
        let bound = a.certificate.residuals[i] + b.certificate.residuals[i];
        assert!((x.eigenvalues[i] - y.eigenvalues[i]).abs() <= bound, "{what}: eigenvalue {i}");
    }
    let variances = a.model.explained_variance().into_iter().zip(b.model.explained_variance());
    for (i, (x, y)) in variances.enumerate() {
        let bound = 1.1 * (a.certificate.residuals[i] + b.certificate.residuals[i]);
        assert!((x - y).abs() <= bound + n * f64::EPSILON * y, "{what}: variance {i} with its n − 1");
    }
    for (s, t) in a.model.shift().unwrap_or_default().iter().zip(b.model.shift().unwrap_or_default()) {
        assert!((s - t).abs() <= n * f64::EPSILON * (1.0 + t.abs()), "{what}: mean");
    }
}

#[test]
fn an_integer_weight_is_a_repeated_row_where_chunks_are_read_in_order_alone() {
    let n = 1500;
    for x in [dense_problem(n, 12), sparse_problem(n, 12)] {
        let counts = counts(n);
        let (weights, repeated) = (as_weights(&counts), repeated(&x, &counts));
        let counting: Vec<usize> = (0..n).filter(|&l| counts[l] > 0).collect();
        let left = some_of(&x, &counting);
        let of_left: Vec<f64> = counting.iter().map(|&l| weights[l]).collect();
        for (i, solver) in
            [SolverKind::Auto, SolverKind::Krylov, SolverKind::Anchored, SolverKind::Covariance]
                .into_iter()
                .enumerate()
        {
            let preprocessing = PREPARATIONS[i % PREPARATIONS.len()];
            let limits = Limits { tol: 1e-8, ..Limits::default() };
            let config = FitConfig { k: 3, solver, preprocessing, limits, ..FitConfig::default() };
            let truth = config.fit(&repeated).unwrap();
            for (x, weights) in [(&x, &weights), (&left, &of_left)] {
                let mut rows = Chunked::new(x, &starts(x.n_rows(), 450)).in_order();
                let survey = rows.survey(Some(weights), Missing::Error).unwrap();
                let run = config.run().weights(&weights[..]).surveyed(survey);
                let fit = run.fit_streamed(rows, 64 << 20).unwrap();
                assert_eq!(fit.outcome, Outcome::Converged);
                assert_same(&fit, &truth, &format!("{solver} of {} rows", x.n_rows()));
            }
        }
    }
}

#[test]
fn an_integer_weight_is_a_repeated_row_for_every_solver_in_memory_and_on_disk() {
    let n = 3000;
    for x in [dense_problem(n, 20), sparse_problem(n, 20)] {
        let counts = counts(n);
        let (weights, repeated) = (as_weights(&counts), repeated(&x, &counts));
        for (i, solver) in SolverKind::ALL.into_iter().chain([SolverKind::Auto]).enumerate() {
            let config = FitConfig {
                k: if solver.finds_many() { 3 } else { 1 },
                solver,
                preprocessing: PREPARATIONS[i % PREPARATIONS.len()],
                limits: Limits { tol: 1e-5, max_passes: 60.0, ..Limits::default() },
                epoch: 20,
                ..FitConfig::default()
            };
            let truth =
                FitConfig { solver: SolverKind::Covariance, ..config.clone() }.fit(&repeated).unwrap();
            let memory = config.run().weights(&weights[..]).fit(&x).unwrap();
            let rows = Chunked::new(&x, &starts(n, 450));
            let disk = config.run().weights(&weights[..]).fit_streamed(rows, 64 << 20).unwrap();
            for (fit, where_) in [(memory, "in memory"), (disk, "on disk")] {
                // Intervals of a run that did not converge may hold another eigenvalue.
                if fit.outcome == Outcome::Converged {
                    assert_same(&fit, &truth, &format!("{solver} {where_}"));
                } else {
                    let quick = solver.finds_many() && solver != SolverKind::LazySvd;
                    assert!(!quick, "{solver} {where_}: {:?}", fit.outcome);
                }
            }
        }
    }
}

#[test]
fn products_with_weights_are_those_in_memory() {
    let n = 90;
    for x in [dense_problem(n, 12), sparse_problem(n, 12)] {
        let weights: Vec<f64> = (0..n).map(|l| ((l * 37) % 11) as f64 / 4.0).collect();
        let v = common::random_block(12, 3, 5);
        let batch = [0, 1, 2, 2, 3, 40, n - 1];
        for preprocessing in PREPARATIONS {
            let mut memory = Covariance::weighted(&x, preprocessing, &weights).unwrap();
            let [mut want, mut want_batch, mut want_c] = [0, 1, 2].map(|_| hbpca::Block::zeros(0, 0));
            memory.apply(&v, &mut want).unwrap();
            memory.apply_batch(&batch, &v, &mut want_batch).unwrap();
            memory.form(Precision::Double, &mut want_c).unwrap();
            for (step, pool) in [(1, 0), (7, 30), (46, 90), (n, 90)] {
                let stream = Streamed::new(Chunked::new(&x, &starts(n, step)), preprocessing).unwrap();
                let mut stream = stream.with_weights(&weights).unwrap().with_pool(pool, 3);
                let [mut got, mut got_batch, mut got_c] = [0, 1, 2].map(|_| hbpca::Block::zeros(0, 0));
                let stated = stream.apply(&v, &mut got).unwrap();
                let size = v.values().iter().map(|x| x * x).sum::<f64>().sqrt();
                let bound = 4.0 * size * (memory.rounding().of_image() + stated.of_image());
                assert!(common::distance(&got, &want) <= bound, "{preprocessing:?} {step}");
                stream.apply_batch(&batch, &v, &mut got_batch).unwrap();
                assert!(common::distance(&got_batch, &want_batch) <= bound * n as f64 / batch.len() as f64);
                stream.form(Precision::Double, &mut got_c).unwrap();
                assert!(common::distance(&got_c, &want_c) <= 4.0 * bound);
                let total: f64 = weights.iter().sum();
                let (_, statistics) = stream.columns().unwrap();
                assert!((statistics.weight() - total).abs() <= 1e-12 * total);
                assert!((stream.total_variance() / memory.total_variance() - 1.0).abs() <= 1e-13);
            }
        }
    }
}

#[test]
fn rows_of_weight_zero_may_hold_anything() {
    let (n, d) = (400, 6);
    let clean = entries(&dense_problem(n, d));
    let mut spoiled = clean.clone();
    let mut weights = vec![1.0; n];
    for (l, value) in [(0, f64::NAN), (17, f64::INFINITY), (n - 1, 1e300)] {
        weights[l] = 0.0;
        spoiled[l * d + 2] = value;
    }
    let kept: Vec<f64> =
        (0..n).filter(|&l| weights[l] > 0.0).flat_map(|l| clean[l * d..(l + 1) * d].to_vec()).collect();
    let x: Matrix = hbpca::Dense::deferring_finite_check(spoiled.into(), n, d).unwrap().into();
    let config = FitConfig { k: 2, preprocessing: Preprocessing::STANDARDIZE, ..FitConfig::default() };
    let truth = config.fit(&dense(kept, d)).unwrap();
    assert_same(&config.run().weights(&weights[..]).fit(&x).unwrap(), &truth, "in memory");
    for step in [1, 60, n] {
        let rows = Chunked::new(&x, &starts(n, step));
        let fit = config.run().weights(&weights[..]).fit_streamed(rows, 64 << 20).unwrap();
        assert_same(&fit, &truth, "on disk");
    }
    let moments = Moments::of(&x, Some(&weights)).unwrap();
    assert_eq!(moments.n_rows(), n);
    assert_same(&config.fit_moments(&moments).unwrap(), &truth, "moments");
}

#[test]
fn chunks_that_weigh_nothing_change_nothing() {
    let x = dense_problem(60, 4);
    let weights: Vec<f64> = (0..60).map(|l| if l < 40 { 1.5 } else { 0.0 }).collect();
    let config = FitConfig { k: 2, ..FitConfig::default() };
    let rows = |from: usize, to: usize| dense(entries(&x)[from * 4..to * 4].to_vec(), 4);
    let mut moments = Moments::of(&rows(0, 40), Some(&weights[..40])).unwrap();
    let before = config.fit_moments(&moments).unwrap();
    moments.add(&rows(40, 60), Some(&weights[40..])).unwrap();
    assert_eq!(moments.n_rows(), 60);
    assert_same(&config.fit_moments(&moments).unwrap(), &before, "the same");
    // The sample from which columns are guessed weighs nothing: the last row alone counts, and one before it.
    let mut last = vec![0.0; 60];
    (last[58], last[59]) = (2.0, 2.0);
    let fit = config.run().weights(&last[..]).fit_streamed(Chunked::new(&x, &[0, 30, 60]), 64 << 20).unwrap();
    let config = FitConfig { solver: SolverKind::Covariance, ..config };
    assert_same(&fit, &config.run().weights(&[2.0, 2.0][..]).fit(&rows(58, 60)).unwrap(), "two rows");
}

#[test]
fn weights_of_one_or_less_have_no_sample_variance() {
    let x = dense_problem(50, 4);
    let fit = |weight: f64| FitConfig::default().run().weights(&[weight / 50.0; 50][..]).fit(&x).unwrap();
    let (none, some) = (fit(0.5).model, fit(50.0).model);
    assert!(!none.has_sample_variance() && some.has_sample_variance());
    assert_eq!(none.explained_variance(), [0.0]);
    // C and the shares do not depend on the scale of the weights.
    assert!((none.eigenvalues()[0] / some.eigenvalues()[0] - 1.0).abs() < 1e-13);
    assert!((none.explained_variance_ratio()[0] - some.explained_variance_ratio()[0]).abs() < 1e-13);
}

#[test]
fn bad_weights_are_refused_on_disk_too() {
    let x = dense_problem(50, 4);
    let text = |weights: &[f64]| {
        let rows = Chunked::new(&x, &[0, 20, 50]);
        FitConfig::default().run().weights(weights).fit_streamed(rows, 64 << 20).unwrap_err().to_string()
    };
    let mut weights = [1.0; 50];
    assert_eq!(text(&weights[1..]), "row weights, one for each row: 49 given where 50 are needed");
    weights[3] = f64::NAN;
    assert_eq!(text(&weights), "weight = NaN (row 3): weights must be finite and not negative");
    assert_eq!(text(&[0.0; 50]), "weights = all zero: at least one row needs a positive weight");
    let mut spoiled = entries(&x);
    spoiled[0] = f64::NAN;
    let spoiled: Matrix = hbpca::Dense::deferring_finite_check(spoiled.into(), 50, 4).unwrap().into();
    weights[3] = -1.0;
    weights[0] = 0.0;
    let refused = FitConfig::default().run().weights(&weights[..]).fit(&spoiled).unwrap_err().to_string();
    assert_eq!(refused, "weight = -1 (row 3): weights must be finite and not negative");
}

#[test]
fn a_checkpoint_on_disk_knows_its_weights() {
    let x = dense_problem(900, 10);
    let weights = as_weights(&counts(900));
    let config = FitConfig {
        k: 2,
        solver: SolverKind::Krylov,
        limits: Limits { tol: 1e-10, ..Limits::default() },
        ..FitConfig::default()
    };
    let mut saved: Vec<Checkpoint> = Vec::new();
    let save = |checkpoint: &Checkpoint| {
        saved.push(checkpoint.clone());
        Ok(())
    };
    let rows = || Chunked::new(&x, &[0, 200, 400, 600, 800, 900]);
    let checkpoints = Checkpoints { save: Some(Box::new(save)), ..Checkpoints::default() };
    let whole =
        config.run().weights(&weights[..]).checkpoints(checkpoints).fit_streamed(rows(), 64 << 20).unwrap();
    let resume = |weights| {
        let checkpoints = Checkpoints { resume: Some(saved[0].clone()), ..Checkpoints::default() };
        config.run().weights(weights).checkpoints(checkpoints).fit_streamed(rows(), 64 << 20)
    };
    assert_eq!(resume(&weights[..]).unwrap().model, whole.model);
    let mut others = weights.clone();
    others.swap(0, 1);
    assert!(resume(&others[..]).unwrap_err().to_string().contains("other data"));
}
