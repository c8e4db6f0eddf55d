//! One thread, two, three or eight: the same bits.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare exact values exactly and count small"
)]

mod common;

use common::*;
use hbpca::operator::{Covariance, Precision, Products};
use hbpca::{
    Batch, Block, ColumnStatistics, Fit, FitConfig, Limits, Matrix, Preprocessing, Record, SolverKind,
    Whitening,
};

const OTHER_THREADS: [usize; 3] = [2, 3, 8];

/// With at least 2¹⁵ entries a chunk: 16 chunks of all dense rows, 8 of the compressed ones, 4 of every third row.
const N: usize = 6000;
const D: usize = 100;

fn storages() -> [(&'static str, Matrix<'static>); 4] {
    every_storage(&sparse_values(N, D, 0.6, 3), D)
}

fn bits(block: &Block) -> Vec<u64> {
    block.values().iter().map(|x| x.to_bits()).collect()
}

#[test]
fn products_batches_and_formed_matrices_do_not_depend_on_threads() {
    let weights: Vec<f64> = (0..N).map(|l| 0.5 + (l % 7) as f64).collect();
    let batch: Vec<usize> = (0..N).step_by(3).collect();
    for (storage, x) in storages() {
        for weights in [None, Some(&weights[..])] {
            let products = || {
                let mut c = match weights {
                    None => Covariance::new(&x, Preprocessing::STANDARDIZE).unwrap(),
                    Some(weights) => Covariance::weighted(&x, Preprocessing::STANDARDIZE, weights).unwrap(),
                };
                let mut results = Vec::new();
                let mut out = Block::zeros(0, 0);
                for p in [1, 3, 8] {
                    let v = random_block(D, p, 1);
                    c.apply(&v, &mut out).unwrap();
                    results.push(bits(&out));
                    c.apply_batch(&batch, &v, &mut out).unwrap();
                    results.push(bits(&out));
                }
                c.form(Precision::Double, &mut out).unwrap();
                results.push(bits(&out));
                results
            };
            let one = with_threads(1, products);
            for threads in OTHER_THREADS {
                assert!(one == with_threads(threads, products), "{storage}, {threads} threads");
            }
        }
    }
}

#[test]
fn an_operator_may_move_between_pools() {
    let (_, x) = &storages()[0];
    let mut c = Covariance::new(x, Preprocessing::CENTER).unwrap();
    let v = random_block(D, 3, 2);
    let mut first: Option<Vec<u64>> = None;
    for threads in [8, 1, 3, 2] {
        let mut out = Block::zeros(D, 3);
        with_threads(threads, || c.apply(&v, &mut out).unwrap());
        assert!(*first.get_or_insert_with(|| bits(&out)) == bits(&out), "{threads} threads");
    }
}

#[test]
fn statistics_do_not_depend_on_threads() {
    let weights: Vec<f64> = (0..N).map(|l| (l % 5) as f64 / 3.0).collect();
    for (storage, x) in storages() {
        let statistics = || {
            let of = |s: ColumnStatistics| {
                let numbers = [s.mean(), &s.variance(), s.min(), s.max(), &[s.weight()]].concat();
                numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            (of(ColumnStatistics::new(&x).unwrap()), of(ColumnStatistics::weighted(&x, &weights).unwrap()))
        };
        let one = with_threads(1, statistics);
        for threads in OTHER_THREADS {
            assert!(one == with_threads(threads, statistics), "{storage}, {threads} threads");
        }
    }
}

/// A history without its clock.
fn timeless(fit: &Fit) -> Vec<Record> {
    let without_clock = |record: &Record| {
        let mut record = record.clone();
        record.seconds = 0.0;
        record
    };
    fit.history.iter().map(without_clock).collect()
}

#[test]
fn a_small_fit_stays_on_its_thread_and_has_the_same_bits() {
    // Sums over the second are cut into chunks.
    for (n, d) in [(300, 40), (1900, 70)] {
        let x = dense(sparse_values(n, d, 0.6, 3), d);
        assert!(x.is_small());
        for solver in SolverKind::ALL {
            let k = if solver.finds_many() { 9 } else { 1 };
            let limits = Limits { max_passes: 8.0, ..Limits::default() };
            let fit = |threads| {
                FitConfig { k, solver, threads, limits, epoch: 6, ..FitConfig::default() }.fit(&x).unwrap()
            };
            let (alone, two) = (fit(0), fit(2));
            assert_eq!((alone.threads, two.threads), (1, 2));
            assert_eq!((alone.model, alone.certificate), (two.model, two.certificate), "{solver}");
        }
    }
    // Rows or columns that are worth threads.
    for (n, d) in [(2048, 10), (300, 129)] {
        assert!(!dense(vec![1.0; n * d], d).is_small(), "{n} × {d}");
    }
}

#[test]
fn whole_fits_with_every_solver_do_not_depend_on_threads() {
    let values = sparse_values(N, D, 0.6, 3);
    for x in [dense_f32(&values, D), csr(&values, D)] {
        for solver in SolverKind::ALL {
            let fit = |threads: usize| {
                let config = FitConfig {
                    solver,
                    threads,
                    preprocessing: Preprocessing::STANDARDIZE,
                    limits: Limits { tol: 1e-9, max_passes: 8.0, ..Limits::default() },
                    batch: Batch::Share(0.3),
                    epoch: 6,
                    ..FitConfig::default()
                };
                config.fit(&x).unwrap()
            };
            let one = fit(1);
            let scores = |fit: &Fit| fit.model.transform(&x, Whitening::On).unwrap();
            assert!(one.history.len() > 1 || solver == SolverKind::Covariance);
            for threads in OTHER_THREADS {
                let other = fit(threads);
                assert_eq!(other.threads, threads);
                assert_eq!(one.model, other.model, "{solver}, {threads} threads");
                assert_eq!(one.certificate, other.certificate, "{solver}, {threads} threads");
                assert_eq!(one.outcome, other.outcome);
                assert_eq!(timeless(&one), timeless(&other), "{solver}, {threads} threads");
                assert!(
                    scores(&one) == with_threads(threads, || scores(&other)),
                    "{solver}, {threads} threads"
                );
            }
        }
    }
}

#[test]
fn fits_with_the_solver_left_to_choose_do_not_depend_on_threads() {
    // Of these a few are as cheap by forming C as by passes.
    for (n, d) in [(1000, 300), (1000, 600), (2000, 400)] {
        let x = dense_f32(&sparse_values(n, d, 1.0, 5), d);
        for k in [1, 10, 30] {
            let fit = |threads: usize| {
                let limits = Limits { tol: 1e-3, max_passes: 20.0, ..Limits::default() };
                FitConfig { k, threads, limits, ..FitConfig::default() }.fit(&x).unwrap()
            };
            let one = fit(1);
            for threads in [2, 16] {
                let other = fit(threads);
                assert_eq!((one.solver, &one.chosen_because), (other.solver, &other.chosen_because));
                assert_eq!(one.model, other.model, "{n} × {d}, k = {k}, {threads} threads");
                assert_eq!(one.certificate, other.certificate, "{n} × {d}, k = {k}, {threads} threads");
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_fit_and_another_seed_another() {
    let x = dense(with_spectrum(200, &geometric(8, 0.9), 1).0, 8);
    for solver in SolverKind::ALL.into_iter().filter(|kind| *kind != SolverKind::Covariance) {
        let fit = |seed| {
            let limits = Limits { max_passes: 6.0, ..Limits::default() };
            let config = FitConfig { solver, seed, limits, epoch: 10, threads: 1, ..FitConfig::default() };
            config.fit(&x).unwrap()
        };
        assert_eq!(fit(1).model, fit(1).model, "{solver}");
        assert_ne!(fit(1).model, fit(2).model, "{solver}");
    }
}
