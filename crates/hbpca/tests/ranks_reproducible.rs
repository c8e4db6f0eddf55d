//! Shards give the same bits on any number of ranks.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, count small, and compare bits"
)]

mod common;

use std::sync::{Arc, Mutex};

use common::chunked::{dense_problem, sparse_problem};
use common::ranked::*;
use hbpca::checkpoint::{Checkpoint, CheckpointEvery, Checkpoints};
use hbpca::{Error, Fit, FitConfig, Limits, Matrix, SolverKind};

const N: usize = 400;
const D: usize = 12;
const STORAGES: [Storage; 2] = [Storage::Memory, Storage::Disk];

fn config(solver: SolverKind) -> FitConfig {
    let k = if solver.finds_many() { 3 } else { 1 };
    let limits = Limits { max_passes: 30.0, ..Limits::default() };
    FitConfig { solver, k, threads: 1, limits, ..FitConfig::default() }
}

fn fitted(
    config: &FitConfig,
    shards: &[Matrix<'static>],
    weights: Option<&[f64]>,
    ranks: usize,
    storage: Storage,
) -> Fit {
    fit_shards(config, shards, weights, ranks, storage, Checkpoints::default).unwrap()
}

fn same_bits(one: &Fit, other: &Fit, what: &str) {
    assert!(one.model == other.model, "{what}");
    let numbers =
        |fit: &Fit| (fit.passes, fit.certificate.residuals.clone(), fit.solver, fit.chosen_because.clone());
    assert_eq!(numbers(one), numbers(other), "{what}");
}

/// Weights of which those of whole shards vanish.
fn weights() -> Vec<f64> {
    (0..N).map(|l| if (100..160).contains(&l) { 0.0 } else { 0.5 + (l % 5) as f64 }).collect()
}

#[test]
fn every_solver_and_storage_gives_the_same_bits_on_any_number_of_ranks() {
    for matrix in [dense_problem(N, D), sparse_problem(N, D)] {
        let shards = parts(&matrix, 9);
        for solver in SolverKind::ALL {
            for storage in STORAGES {
                let config = config(solver);
                let alone = fitted(&config, &shards, None, 1, storage);
                for ranks in [2, 3, 7, 9] {
                    let threads = 1 + ranks % 2;
                    let there =
                        fitted(&FitConfig { threads, ..config.clone() }, &shards, None, ranks, storage);
                    same_bits(
                        &alone,
                        &there,
                        &format!("{solver} {storage:?} {ranks} sparse {}", matrix.is_sparse()),
                    );
                    assert_eq!(there.ranks, ranks);
                }
            }
        }
    }
}

#[test]
fn weights_agree_with_one_machine_where_shards_weigh_nothing_and_nan_counts_for_nothing() {
    let weights = weights();
    let Matrix::DenseF32(mut dense) = dense_problem(N, D) else { unreachable!() };
    let mut spoilt = dense.clone().into_values();
    spoilt[120 * D] = f32::NAN;
    let spoilt: Matrix<'_> = hbpca::Dense::deferring_finite_check(spoilt.into(), N, D).unwrap().into();
    dense = dense.clone();
    for (matrix, clean) in
        [(Matrix::from(dense.clone()), true), (spoilt, false), (sparse_problem(N, D), true)]
    {
        // The second shard is rows 100 to 160, which weigh nothing.
        let shards: Vec<_> =
            [0, 100, 160, 250, 251, N].windows(2).map(|cut| part_of(&matrix, cut[0], cut[1])).collect();
        for solver in [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Power, SolverKind::Anchored] {
            for storage in STORAGES {
                let what = format!("{solver} {storage:?} clean {clean} sparse {}", matrix.is_sparse());
                let config = config(solver);
                let whole = config.run().weights(&weights[..]).fit(&matrix).unwrap();
                let alone = fitted(&config, &shards, Some(&weights), 1, storage);
                same_bits(&alone, &fitted(&config, &shards, Some(&weights), 3, storage), &what);
                for i in 0..whole.model.n_components() {
                    let allowed = whole.certificate.residuals[i] + alone.certificate.residuals[i];
                    let (a, b) = (whole.model.eigenvalues()[i], alone.model.eigenvalues()[i]);
                    assert!((a - b).abs() <= allowed, "{what}: {a} and {b}, {allowed:e} allowed");
                }
                let (want, got) = (whole.model.summary().weight, alone.model.summary().weight);
                assert!((want - got).abs() <= N as f64 * f64::EPSILON * want, "{what}: {want} and {got}");
            }
        }
    }
}

/// Rows that may hold NaN.
fn part_of(matrix: &Matrix<'_>, from: usize, to: usize) -> Matrix<'static> {
    match matrix {
        Matrix::DenseF32(x) => {
            let values: Vec<f32> = (from..to).flat_map(|l| x.row(l)).copied().collect();
            hbpca::Dense::deferring_finite_check(values.into(), to - from, x.n_cols()).unwrap().into()
        }
        sparse => part(sparse, from, to),
    }
}

#[test]
fn weights_that_are_all_zero_are_refused_on_every_rank() {
    let shards = parts(&dense_problem(N, D), 4);
    for storage in STORAGES {
        let config = config(SolverKind::Krylov);
        let error =
            fit_shards(&config, &shards, Some(&[0.0; N]), 2, storage, Checkpoints::default).unwrap_err();
        assert!(error.to_string().contains("at least one row needs a positive weight"), "{error}");
    }
}

#[test]
fn a_checkpoint_goes_on_to_the_same_bits_on_another_number_of_ranks() {
    let shards = parts(&dense_problem(N, D), 6);
    for solver in [SolverKind::Krylov, SolverKind::Anchored, SolverKind::VrHbPower] {
        for storage in STORAGES {
            let limits = Limits { tol: 1e-9, max_passes: 40.0, ..Limits::default() };
            let config = FitConfig { limits, ..config(solver) };
            let saved: Arc<Mutex<Vec<Checkpoint>>> = Arc::default();
            let saving = || {
                let saved = Arc::clone(&saved);
                let save = move |checkpoint: &Checkpoint| -> Result<(), Error> {
                    saved.lock().unwrap().push(checkpoint.clone());
                    Ok(())
                };
                Checkpoints {
                    every: CheckpointEvery::Passes(0.5),
                    save: Some(Box::new(save)),
                    ..Checkpoints::default()
                }
            };
            let whole = fit_shards(&config, &shards, None, 3, storage, saving).unwrap();
            let saved = saved.lock().unwrap().clone();
            assert!(!saved.is_empty());
            for checkpoint in &saved {
                for ranks in [1, 2, 6] {
                    let resume =
                        || Checkpoints { resume: Some(checkpoint.clone()), ..Checkpoints::default() };
                    let resumed = fit_shards(&config, &shards, None, ranks, storage, resume).unwrap();
                    same_bits(&whole, &resumed, &format!("{solver} {storage:?} {ranks} ranks"));
                }
            }
        }
    }
}
