//! Rows spread over ranks: the same certified answer as on one machine, the same bits every time, and one error where a rank fails.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, count small, and compare bits"
)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::chunked::{dense_problem, sparse_problem};
use common::ranked::*;
use hbpca::checkpoint::{Checkpoint, CheckpointEvery, Checkpoints};
use hbpca::operator::{Communicator, SingleRank, ThreadRank};
use hbpca::{
    CancelToken, Csr, Dense, Error, Fit, FitConfig, Limits, Matrix, Outcome, Preprocessing, RankRows,
    SolverKind,
};

const N: usize = 400;
const D: usize = 12;
const SIZES: [usize; 4] = [1, 2, 3, 7];
const STORAGES: [Storage; 2] = [Storage::Memory, Storage::Disk];

/// Every kind of matrix.
fn kinds() -> [Matrix<'static>; 4] {
    let (dense, sparse) = (dense_problem(N, D), sparse_problem(N, D));
    let (Matrix::DenseF32(x), Matrix::CsrF32(y)) = (&dense, &sparse) else { unreachable!() };
    let wide: Matrix<'_> =
        Dense::new(x.values().iter().map(|x| f64::from(*x)).collect(), N, D).unwrap().into();
    let values: Vec<f64> = y.values().iter().map(|x| f64::from(*x)).collect();
    let wide_sparse = Csr::new(D, y.row_starts().to_vec(), y.columns().to_vec(), values).unwrap();
    [dense, sparse, wide, wide_sparse.into()]
}

fn config(solver: SolverKind) -> FitConfig {
    let k = if solver.finds_many() { 3 } else { 1 };
    // Oja's rule nears the answer like 1/t: it ends with its budget, wherever the rows are.
    let max_passes = if solver == SolverKind::Oja { 20.0 } else { Limits::default().max_passes };
    let limits = Limits { max_passes, ..Limits::default() };
    FitConfig { solver, k, threads: 1, limits, ..FitConfig::default() }
}

/// Both are certified: their eigenvalues differ by no more than both certificates allow.
fn agree(one: &Fit, other: &Fit, what: &str) {
    assert_eq!(one.outcome, other.outcome, "{what}");
    if one.outcome == Outcome::Budget && !one.solver.finds_many() {
        return; // iterates on their way, from batches that differ
    }
    for (i, (a, b)) in one.model.eigenvalues().iter().zip(other.model.eigenvalues()).enumerate() {
        let allowed = one.certificate.residuals[i] + other.certificate.residuals[i];
        assert!((a - b).abs() <= allowed, "{what}: {a} and {b} of component {i}, {allowed:e} allowed");
    }
}

#[test]
fn every_solver_storage_and_precision_agrees_with_one_machine_on_any_number_of_ranks() {
    for matrix in &kinds() {
        for solver in SolverKind::ALL {
            let config = config(solver);
            for storage in STORAGES {
                let alone = match storage {
                    Storage::Memory => config.fit(matrix).unwrap(),
                    Storage::Disk => config.run().fit_streamed(chunked(matrix), 64 << 20).unwrap(),
                };
                for ranks in SIZES {
                    let what = format!("{solver} {storage:?} {ranks} ranks sparse {}", matrix.is_sparse());
                    agree(&alone, &fit(&config, matrix, ranks, storage), &what);
                }
            }
        }
    }
}

#[test]
fn preparation_is_that_of_all_rows_and_not_of_each_rank() {
    for preprocessing in [Preprocessing::NONE, Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE] {
        for matrix in &kinds()[..2] {
            let config = FitConfig { preprocessing, ..config(SolverKind::Auto) };
            let alone = config.fit(matrix).unwrap();
            for storage in STORAGES {
                let ranked = fit(&config, matrix, 3, storage);
                agree(&alone, &ranked, &format!("{preprocessing:?} {storage:?}"));
                let trace = alone.model.summary().total_variance;
                let off = (ranked.model.summary().total_variance - trace).abs();
                assert!(off <= 64.0 * N as f64 * f64::EPSILON * trace, "{off:e}");
            }
        }
    }
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    for matrix in &kinds()[..2] {
        for solver in SolverKind::ALL {
            for storage in STORAGES {
                let fits: Vec<Fit> = [1, 2, 3]
                    .map(|threads| fit(&FitConfig { threads, ..config(solver) }, matrix, 3, storage))
                    .into();
                assert!(fits.iter().all(|fit| fit.model == fits[0].model), "{solver} {storage:?}");
                assert!(fits.iter().all(|fit| fit.passes == fits[0].passes), "{solver} {storage:?}");
            }
        }
    }
}

#[test]
fn auto_decides_for_all_rows() {
    let matrix = dense_problem(N, D);
    let fit = fit(&config(SolverKind::Auto), &matrix, 3, Storage::Memory);
    assert_eq!(fit.solver, SolverKind::Covariance);
    assert!(fit.chosen_because.starts_with("forming C takes"), "{}", fit.chosen_because);
    assert_eq!(fit.ranks, 3);
    assert_eq!(fit.model.summary().n, N);
}

#[test]
fn weights_are_shared_over_ranks() {
    let matrix = dense_problem(N, D);
    let weights: Vec<f64> = (0..N).map(|l| 0.5 + (l % 5) as f64).collect();
    for solver in [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Power] {
        let config = config(solver);
        let alone = config.run().weights(&weights[..]).fit(&matrix).unwrap();
        let parts = parts(&matrix, 3);
        let starts = [0, parts[0].n_rows(), parts[0].n_rows() + parts[1].n_rows(), N];
        let fits = on_ranks(3, |rank| {
            let r = rank.rank();
            let run = config.run().weights(&weights[starts[r]..starts[r + 1]]);
            run.fit_on_ranks(Ok(RankRows::Memory(&parts[r])), &rank).unwrap()
        });
        let ranked = fits[0].as_ref().unwrap();
        agree(&alone, ranked, solver.name());
        let (want, got) = (alone.model.summary().weight, ranked.model.summary().weight);
        assert!((want - got).abs() <= N as f64 * f64::EPSILON * want);
    }
}

#[test]
fn a_rank_may_have_one_row_and_one_rank_is_enough() {
    let matrix = dense_problem(40, 5);
    let config = config(SolverKind::Auto);
    let alone = config.fit(&matrix).unwrap();
    let cut = [part(&matrix, 0, 1), part(&matrix, 1, 39), part(&matrix, 39, 40)];
    for storage in STORAGES {
        let fits = fit_parts(&config, &cut, storage);
        agree(&alone, fits[0].as_ref().unwrap().as_ref().unwrap(), &format!("{storage:?}"));
    }
    let single = config.run().fit_on_ranks(Ok(RankRows::Memory(&matrix)), &SingleRank).unwrap().unwrap();
    agree(&alone, &single, "one rank");
}

/// The errors of all ranks, in words.
fn errors(results: Vec<Result<Option<Fit>, Error>>) -> Vec<String> {
    results.into_iter().map(|result| result.map(|_| ()).unwrap_err().to_string()).collect()
}

#[test]
fn ranks_that_do_not_belong_together_all_say_so() {
    let matrix = dense_problem(60, 5);
    let good = parts(&matrix, 3);
    let with = |bad: Matrix<'static>| vec![good[0].clone(), good[1].clone(), bad];
    let config = config(SolverKind::Auto);
    let narrow = Dense::new(vec![1.0_f32; 40], 10, 4).unwrap().into();
    for error in errors(fit_parts(&config, &with(narrow), Storage::Memory)) {
        assert!(error.contains("rank 2: 4 columns where rank 0 has 5"), "{error}");
    }
    let sparse = sparse_problem(10, 5);
    for error in errors(fit_parts(&config, &with(sparse), Storage::Disk)) {
        assert!(error.contains("rank 2: compressed rows where rank 0 has dense"), "{error}");
    }
    let results = on_ranks(3, |rank| {
        let r = rank.rank();
        let seed = u64::from(r == 1);
        FitConfig { seed, ..config.clone() }.run().fit_on_ranks(Ok(rows(&good[r], Storage::Memory)), &rank)
    });
    for error in errors(results) {
        assert!(error.contains("rank 1: it was given other choices"), "{error}");
    }
    let results = on_ranks(3, |rank| {
        let storage = if rank.rank() == 2 { Storage::Disk } else { Storage::Memory };
        config.run().fit_on_ranks(Ok(rows(&good[rank.rank()], storage)), &rank)
    });
    for error in errors(results) {
        assert!(error.contains("rank 2: its rows are on disk, those of rank 0 in memory"), "{error}");
    }
    let results = on_ranks(2, |rank| {
        let weights = vec![1.0; good[0].n_rows()];
        let run = config.run().weights((rank.rank() == 0).then_some(&weights[..]));
        run.fit_on_ranks(Ok(RankRows::Memory(&good[0])), &rank).map(|_| None)
    });
    for error in errors(results) {
        assert!(error.contains("rank 1: it has weights where rank 0 has none, or none"), "{error}");
    }
}

#[test]
fn what_a_rank_could_not_read_ends_all_of_them() {
    let matrix = dense_problem(60, 5);
    let good = parts(&matrix, 3);
    for bad in 0..3 {
        let results = on_ranks(3, |rank| {
            let r = rank.rank();
            let own =
                if r == bad { Err(Error::Empty { n: 0, d: 5 }) } else { Ok(rows(&good[r], Storage::Memory)) };
            config(SolverKind::Auto).run().fit_on_ranks(own, &rank)
        });
        for (r, error) in errors(results).into_iter().enumerate() {
            let named = error.starts_with(&format!("rank {bad}: the matrix is empty"));
            assert!(if r == bad { error.starts_with("the matrix is empty") } else { named }, "{error}");
        }
    }
    // A parameter stays a parameter on every rank.
    let results = fit_parts(&FitConfig { k: 9, ..config(SolverKind::Auto) }, &good, Storage::Memory);
    for (r, result) in results.into_iter().enumerate() {
        match result.unwrap_err() {
            Error::Parameter { name: "k", .. } => assert_eq!(r, 0),
            Error::Rank { rank: 0, of_parameter: true, message } => assert!(message.contains("k = 9")),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_rank_whose_rows_and_vectors_do_not_fit_refuses_before_it_begins() {
    let wide = |entries: usize| -> Matrix<'static> {
        let columns = (0..entries).map(|i| i as u32).collect::<Vec<_>>();
        Csr::new(1 << 28, vec![0, entries], columns, vec![1.0_f32; entries]).unwrap().into()
    };
    let wide_parts = [wide(3), wide(2)];
    for memory in [1 << 30, 60 << 30] {
        let config = FitConfig { memory: Some(memory), k: 2, ..config(SolverKind::Krylov) };
        let said = errors(fit_parts(&config, &wide_parts, Storage::Memory));
        assert!(
            said[0].starts_with("not enough memory: 1 rows × 268435456 columns of this rank"),
            "{said:?}"
        );
        assert!(said[1].starts_with("rank 0: not enough memory"), "{said:?}");
    }
    let small = FitConfig { memory: Some(1 << 20), ..config(SolverKind::Krylov) };
    let all = dense_problem(60, 5);
    assert!(fit_parts(&small, &parts(&all, 3), Storage::Memory).iter().all(Result::is_ok));
}

#[test]
fn nan_and_chunks_that_are_gone_end_all_ranks_with_that_ranks_message() {
    let matrix = dense_problem(300, 5);
    let mut cut = parts(&matrix, 3);
    let n = cut[1].n_rows();
    for solver in [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Anchored, SolverKind::Oja] {
        for bad in 0..3 {
            let results = on_ranks(3, |rank| {
                let r = rank.rank();
                let rows = chunked(&cut[r]);
                let rows = if r == bad { rows.failing_at(0) } else { rows };
                let rows = RankRows::Disk { rows: Box::new(rows), memory: 64 << 20 };
                config(solver).run().fit_on_ranks(Ok(rows), &rank)
            });
            for error in errors(results) {
                assert!(error.contains("chunk 0 is gone"), "{solver}: {error}");
            }
        }
    }
    let values = vec![f32::NAN; n * 5];
    cut[1] = Dense::deferring_finite_check(values.into(), n, 5).unwrap().into();
    for storage in STORAGES {
        let results = errors(fit_parts(&config(SolverKind::Auto), &cut, storage));
        assert!(results[1].starts_with("row 0, column 0"), "{}", results[1]);
        assert!(results[0].starts_with("rank 1: row 0, column 0") && results[2] == results[0]);
    }
}

/// A rank whose n-th message fails, and every one after it.
struct Failing {
    inner: ThreadRank,
    at: usize,
    calls: AtomicUsize,
}

impl Failing {
    fn go_on(&self) -> Result<(), Error> {
        if self.calls.fetch_add(1, Ordering::Relaxed) >= self.at {
            return Err(Error::Communication("the cable was cut".into()));
        }
        Ok(())
    }
}

impl Communicator for Failing {
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn send(&self, values: &[f64], to: usize) -> Result<(), Error> {
        self.go_on()?;
        self.inner.send(values, to)
    }
    fn receive(&self, values: &mut [f64], from: usize) -> Result<(), Error> {
        self.go_on()?;
        self.inner.receive(values, from)
    }
}

#[test]
fn a_message_lost_anywhere_ends_every_rank_and_nobody_waits() {
    let matrix = dense_problem(120, 5);
    let cut = parts(&matrix, 3);
    for (solver, storage) in [
        (SolverKind::Covariance, Storage::Memory),
        (SolverKind::Krylov, Storage::Disk),
        (SolverKind::Anchored, Storage::Disk),
        (SolverKind::Oja, Storage::Memory),
    ] {
        let config = FitConfig { limits: Limits { max_passes: 8.0, ..Limits::default() }, ..config(solver) };
        for broken in 0..3 {
            let (mut at, mut others_done) = (0, None);
            loop {
                let results = on_ranks(3, |rank| {
                    let at = if rank.rank() == broken { at } else { usize::MAX };
                    let failing = Failing { inner: rank, at, calls: AtomicUsize::new(0) };
                    let rows = rows(&cut[failing.rank()], storage);
                    let result = config.run().fit_on_ranks(Ok(rows), &failing).map(drop);
                    (result, failing.calls.into_inner())
                });
                let (own, calls) = &results[broken];
                if *calls <= at {
                    assert!(*calls > 10 && results.iter().all(|(result, _)| result.is_ok()));
                    // Others are done only where the last messages, those that end the fit, are lost.
                    assert!(others_done.is_none_or(|at| at + 2 >= *calls), "{others_done:?} of {calls}");
                    break;
                }
                assert!(own.is_err(), "{solver} {broken} {at}");
                if results.iter().any(|(result, _)| result.is_ok()) {
                    others_done.get_or_insert(at);
                }
                at += if at < 40 { 1 } else { 31 };
            }
        }
    }
}

#[test]
fn a_rank_that_was_abandoned_ends_all() {
    let matrix = dense_problem(300, 5);
    let cut = parts(&matrix, 3);
    let results = on_ranks(3, |rank| {
        let token = CancelToken::default();
        let rows = chunked(&cut[rank.rank()]);
        let rows = if rank.rank() == 2 { rows.abandoning_at(0, &token) } else { rows };
        let rows = RankRows::Disk { rows: Box::new(rows), memory: 64 << 20 };
        config(SolverKind::Krylov).run().cancelled_by(&token).fit_on_ranks(Ok(rows), &rank)
    });
    assert!(results.into_iter().all(|result| matches!(result, Err(Error::Abandoned))));
}

#[test]
fn rank_0_alone_decides_when_to_stop() {
    let matrix = dense_problem(N, D);
    let cut = parts(&matrix, 3);
    for storage in STORAGES {
        let results = on_ranks(3, |rank| {
            let token = CancelToken::default();
            if rank.rank() < 2 {
                token.cancel(); // that of rank 1 means nothing
            }
            let rows = rows(&cut[rank.rank()], storage);
            config(SolverKind::Power).run().cancelled_by(&token).fit_on_ranks(Ok(rows), &rank).unwrap()
        });
        assert_eq!(results[0].as_ref().unwrap().outcome, Outcome::Interrupted);
    }
}

/// A fit whose checkpoints are collected, or that goes on from one.
fn with_checkpoints(
    config: &FitConfig,
    cut: &[Matrix<'static>],
    storage: Storage,
    resume: Option<&Checkpoint>,
) -> Result<(Fit, Vec<Checkpoint>), Error> {
    let results = on_ranks(cut.len(), |rank| {
        let mut saved = Vec::new();
        let save = |checkpoint: &Checkpoint| {
            saved.push(checkpoint.clone());
            Ok(())
        };
        let checkpoints = Checkpoints {
            every: CheckpointEvery::Passes(0.5),
            save: Some(Box::new(save)),
            resume: resume.cloned(),
            ..Checkpoints::default()
        };
        let rows = rows(&cut[rank.rank()], storage);
        let fit = config.run().checkpoints(checkpoints).fit_on_ranks(Ok(rows), &rank)?;
        Ok::<_, Error>((fit, saved))
    });
    let mut results = results.into_iter();
    let first = results.next().unwrap().map(|(fit, saved)| (fit.unwrap(), saved));
    assert!(results.all(|other| other.is_ok() == first.is_ok()));
    first
}

#[test]
fn a_checkpoint_resumes_to_the_same_bits_on_as_many_ranks_and_on_no_others() {
    let matrix = dense_problem(N, D);
    for solver in [SolverKind::Krylov, SolverKind::Anchored, SolverKind::VrHbPower] {
        for storage in STORAGES {
            let limits = Limits { tol: 1e-9, ..Limits::default() };
            let config = FitConfig { limits, ..config(solver) };
            let cut = parts(&matrix, 3);
            let (whole, saved) = with_checkpoints(&config, &cut, storage, None).unwrap();
            // Some are done after one look.
            assert!(saved.len() > usize::from(solver == SolverKind::Krylov), "{solver}");
            for checkpoint in &saved {
                let (resumed, _) = with_checkpoints(&config, &cut, storage, Some(checkpoint)).unwrap();
                assert_eq!(resumed.model, whole.model, "{solver} {storage:?}");
                assert_eq!(resumed.passes, whole.passes, "{solver} {storage:?}");
            }
            let error = with_checkpoints(&config, &parts(&matrix, 2), storage, Some(&saved[0])).unwrap_err();
            assert!(error.to_string().contains("on 3 ranks"), "{error}");
            assert!(error.to_string().contains("on 2 ranks"), "{error}");
        }
    }
}

#[test]
fn a_share_of_the_variance_and_a_probe_work_on_ranks() {
    let matrix = dense_problem(N, D);
    let base = FitConfig {
        variance_share: Some(0.8),
        certify: Some(1e-6),
        probe_seed: Some(1),
        ..config(SolverKind::Auto)
    };
    let alone = base.fit(&matrix).unwrap();
    for storage in STORAGES {
        let ranked = fit(&base, &matrix, 3, storage);
        assert_eq!(ranked.model.n_components(), alone.model.n_components());
        agree(&alone, &ranked, &format!("{storage:?}"));
    }
}
