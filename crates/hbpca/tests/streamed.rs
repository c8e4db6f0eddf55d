//! Rows read chunk by chunk give what rows in memory give: the same sums up to rounding, the same bits for any number of threads.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    reason = "what cannot go on in a test has failed; sizes are small"
)]

mod common;

use common::chunked::{Chunked, decaying_problem, dense_problem, sparse_problem};
use hbpca::checkpoint::{Checkpoint, Checkpoints};
use hbpca::operator::{Covariance, CovarianceOperator, Precision, Products, Streamed};
use hbpca::solver::{Anchored, AnchoredSizes, Krylov, KrylovSizes};
use hbpca::{
    Block, Centering, Driver, Error, FitConfig, Limits, Matrix, Outcome, Preprocessing, RowChunks, RowSurvey,
    Scaling, SolverKind,
};

const PREPARATIONS: [Preprocessing; 5] = [
    Preprocessing::NONE,
    Preprocessing::CENTER,
    Preprocessing::STANDARDIZE,
    Preprocessing::UNIT_RANGE,
    Preprocessing { centering: Centering::Mean, scaling: Scaling::MinMax },
];

/// A block of orthonormal vectors that is not special: the first columns of a Householder reflection.
fn basis(d: usize, p: usize) -> Block {
    let mut x = Block::zeros(d, p);
    let u: Vec<f64> = (0..d).map(|j| ((j * j + 3 * j + 1) as f64).sin()).collect();
    let square: f64 = u.iter().map(|u| u * u).sum();
    for j in 0..d {
        for c in 0..p {
            x.values_mut()[j * p + c] = f64::from(u8::from(j == c)) - 2.0 * u[j] * u[c] / square;
        }
    }
    x
}

fn distance(a: &Block, b: &Block) -> f64 {
    a.values().iter().zip(b.values()).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// Chunks of one row, of a few, with a short last one, and all in one.
fn cuts(n: usize) -> [Vec<usize>; 4] {
    let every = |step: usize| (0..n).step_by(step).chain([n]).collect();
    [every(1), every(7), every(n / 2 + 1), every(n)]
}

fn problems() -> [Matrix<'static>; 2] {
    [dense_problem(90, 12), sparse_problem(90, 12)]
}

#[test]
fn products_are_those_of_the_matrix_in_memory() {
    for x in problems() {
        let (n, d) = (x.n_rows(), x.n_cols());
        let v = basis(d, 3);
        let batch: Vec<usize> = vec![0, 1, 2, 2, 3, 40, n - 1];
        for preprocessing in PREPARATIONS {
            let mut memory = Covariance::new(&x, preprocessing).unwrap();
            let [mut want, mut want_batch, mut want_c] = [0, 1, 2].map(|_| Block::zeros(0, 0));
            memory.apply(&v, &mut want).unwrap();
            memory.apply_batch(&batch, &v, &mut want_batch).unwrap();
            memory.form(Precision::Double, &mut want_c).unwrap();
            for starts in cuts(n) {
                let mut stream = Streamed::new(Chunked::new(&x, &starts), preprocessing).unwrap();
                let [mut got, mut got_batch, mut got_c] = [0, 1, 2].map(|_| Block::zeros(0, 0));
                let stated = stream.apply(&v, &mut got).unwrap();
                // The bounds hold for unit vectors; there are three. Statistics round too.
                let bound = 4.0 * (memory.rounding().of_image() + stated.of_image());
                assert!(distance(&got, &want) <= bound, "{preprocessing:?} {starts:?}");
                stream.apply_batch(&batch, &v, &mut got_batch).unwrap();
                // A batch's moment is at most n/|S| times that of all rows.
                assert!(distance(&got_batch, &want_batch) <= bound * n as f64 / batch.len() as f64);
                stream.form(Precision::Double, &mut got_c).unwrap();
                assert!(distance(&got_c, &want_c) <= bound * (d as f64).sqrt());
                assert!((stream.total_variance() / memory.total_variance() - 1.0).abs() <= 1e-14);
                assert_eq!(stream.statistics_passes(), 1);
            }
        }
    }
}

#[test]
fn the_first_pass_gives_exact_images_of_a_basis_it_may_choose() {
    for x in problems() {
        let (n, d) = (x.n_rows(), x.n_cols());
        for preprocessing in PREPARATIONS {
            let mut memory = Covariance::new(&x, preprocessing).unwrap();
            for sample in [6, 30, n] {
                let mut stream = Streamed::new(Chunked::new(&x, &cuts(n)[1]), preprocessing).unwrap();
                stream.guess_columns(sample, 5).unwrap();
                let (mut v, mut image, mut want) = (basis(d, 4), Block::zeros(0, 0), Block::zeros(0, 0));
                let stated = stream.first_pass().unwrap().first_image(&mut v, &mut image).unwrap();
                memory.apply(&v, &mut want).unwrap();
                // ‖E‖_F ≤ √p times the bound of one image.
                let bound = 2.0 * (memory.rounding().of_image() + stated.of_image()) * 2.0;
                let off = distance(&image, &want);
                assert!(off <= bound, "{preprocessing:?} {sample}: {off:e} > {bound:e}");
                for a in 0..4 {
                    for b in 0..4 {
                        let dot: f64 = v.column(a).iter().zip(v.column(b)).map(|(x, y)| x * y).sum();
                        let want = f64::from(u8::from(a == b));
                        assert!((dot - want).abs() <= 16.0 * d as f64 * f64::EPSILON, "{dot}");
                    }
                }
                // Without scaling the basis is the one given.
                if preprocessing.scaling == Scaling::None {
                    assert_eq!(v, basis(d, 4));
                    assert_eq!(stream.statistics_passes(), 0);
                }
                assert!(stream.first_pass().is_none());
                stream.apply(&basis(d, 4), &mut image).unwrap();
                memory.apply(&basis(d, 4), &mut want).unwrap();
                assert!(distance(&image, &want) <= bound);
            }
        }
    }
}

#[test]
fn forming_c_in_the_first_pass_gives_c() {
    for x in problems() {
        let (n, d) = (x.n_rows(), x.n_cols());
        for preprocessing in PREPARATIONS {
            let mut memory = Covariance::new(&x, preprocessing).unwrap();
            let (mut want, mut got) = (Block::zeros(0, 0), Block::zeros(0, 0));
            memory.form(Precision::Double, &mut want).unwrap();
            for starts in cuts(n) {
                let mut stream = Streamed::new(Chunked::new(&x, &starts), preprocessing).unwrap();
                stream.guess_columns(9, 1).unwrap();
                let stated = stream.form(Precision::Double, &mut got).unwrap();
                let bound = 2.0 * (memory.rounding().of_image() + stated.of_image()) * (d as f64).sqrt();
                assert!(distance(&got, &want) <= bound, "{preprocessing:?}");
                assert_eq!(stream.statistics_passes(), 0);
            }
        }
    }
}

#[test]
fn guesses_that_are_far_off_cost_a_pass_and_not_the_answer() {
    // One column wakes up in a single row only: its range in the sample is that of a constant.
    let (n, d) = (64, 3);
    let mut values: Vec<f64> = (0..n * d).map(|i| ((i * i) as f64).sin()).collect();
    values.iter_mut().skip(2).step_by(d).for_each(|x| *x = 0.0);
    values[33 * d + 2] = 1e6;
    let x: Matrix = hbpca::Dense::new(values, n, d).unwrap().into();
    let mut memory = Covariance::new(&x, Preprocessing::STANDARDIZE).unwrap();
    // Some seed's sample misses row 33.
    let mut missed = 0;
    for seed in 0..8 {
        let mut stream = Streamed::new(Chunked::new(&x, &cuts(n)[1]), Preprocessing::STANDARDIZE).unwrap();
        stream.guess_columns(8, seed).unwrap();
        let (mut v, mut image, mut want) = (basis(d, 3), Block::zeros(0, 0), Block::zeros(0, 0));
        let stated = stream.first_pass().unwrap().first_image(&mut v, &mut image).unwrap();
        memory.apply(&v, &mut want).unwrap();
        assert!(distance(&image, &want) <= 4.0 * (memory.rounding().of_image() + stated.of_image()));
        missed += stream.statistics_passes();
    }
    assert!(missed > 0);
}

#[test]
fn every_number_of_threads_gives_the_same_bits() {
    for x in [dense_problem(3000, 40), sparse_problem(3000, 40)] {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let starts: Vec<usize> = (0..3000).step_by(700).chain([3000]).collect();
                let stream = Streamed::new(Chunked::new(&x, &starts), Preprocessing::STANDARDIZE).unwrap();
                let mut stream = stream.with_pool(500, 1);
                stream.guess_columns(300, 0).unwrap();
                let sizes = AnchoredSizes { block: 6, anchors: 24, batch: 60, start_rows: 200 };
                let mut solver = Anchored::new(500, 40, 2, sizes, 0, None).unwrap();
                let report = Driver::new(Limits::default()).run(&mut solver, &mut stream).unwrap();
                assert_eq!(report.outcome, Outcome::Converged);
                report.vectors.values().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            })
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(3));
    }
}

#[test]
fn mini_batches_come_from_the_pool_without_reading() {
    let x = dense_problem(400, 10);
    let stream = Streamed::new(Chunked::new(&x, &cuts(400)[1]), Preprocessing::CENTER).unwrap();
    let mut stream = stream.with_pool(100, 3);
    assert_eq!(stream.resident_rows(), Some(&[][..]));
    stream.gather_columns().unwrap();
    let (first, bytes) = (stream.resident_rows().unwrap().to_vec(), stream.bytes_read());
    assert_eq!((first.len(), bytes), (100, 400 * 10 * 4));
    let (v, mut got, mut want) = (basis(10, 2), Block::zeros(0, 0), Block::zeros(0, 0));
    stream.apply_batch(&first[5..50], &v, &mut got).unwrap();
    assert_eq!(stream.bytes_read(), bytes);
    let mut memory = Covariance::new(&x, Preprocessing::CENTER).unwrap();
    memory.apply_batch(&first[5..50], &v, &mut want).unwrap();
    assert!(distance(&got, &want) <= 1e-13 * want.norm());
    // Another row costs reading all of the batch; another pass brings other rows.
    let missing = (0..400).find(|l| !first.contains(l)).unwrap();
    stream.apply_batch(&[missing], &v, &mut got).unwrap();
    assert_eq!(stream.bytes_read(), bytes + 40);
    stream.apply(&v, &mut got).unwrap();
    assert_ne!(stream.resident_rows().unwrap(), first);
    assert_eq!(stream.bytes_read(), 2 * bytes + 40);
}

#[test]
fn krylov_uses_single_precision_on_a_stream_too() {
    let x = dense_problem(500, 30);
    let mut stream = Streamed::new(Chunked::new(&x, &cuts(500)[2]), Preprocessing::STANDARDIZE).unwrap();
    stream.guess_columns(100, 0).unwrap();
    assert!(!stream.has_single_precision());
    let mut krylov = Krylov::new(30, 2, KrylovSizes::suiting(2), 0, None).unwrap();
    let limits = Limits { tol: 1e-11, ..Limits::default() };
    let report = Driver::new(limits).run(&mut krylov, &mut stream).unwrap();
    assert!(stream.has_single_precision());
    assert_eq!(report.outcome, Outcome::Converged);
    assert_eq!(stream.statistics_passes(), 0);
    let mut memory = Covariance::new(&x, Preprocessing::STANDARDIZE).unwrap();
    let certificate =
        hbpca::certificate::check(&mut memory, &report.vectors, hbpca::certificate::Next::Unknown, 1e-6)
            .unwrap();
    assert!(certificate.holds(1e-11));
}

#[test]
fn compressed_rows_on_a_stream_are_multiplied_in_single_precision_within_its_bound() {
    let x = sparse_problem(900, 40);
    let v = basis(40, 3);
    for preprocessing in [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE] {
        let mut memory = Covariance::new(&x, preprocessing).unwrap();
        let mut want = Block::zeros(0, 0);
        memory.apply(&v, &mut want).unwrap();
        for starts in cuts(900) {
            let mut stream = Streamed::new(Chunked::new(&x, &starts), preprocessing).unwrap();
            stream.gather_columns().unwrap();
            assert!(stream.has_single_precision());
            let mut got = Block::zeros(0, 0);
            let stated = stream.apply_in(Precision::Single, &v, &mut got).unwrap();
            // The bound holds for each of three unit vectors.
            let bound = 3.0_f64.sqrt() * (memory.rounding().of_image() + stated.of_image());
            let off = distance(&got, &want);
            assert!(off <= bound, "{preprocessing:?} {starts:?}: {off} > {bound}");
            let in_double = stream.apply(&v, &mut got).unwrap();
            assert!(off > distance(&got, &want) && stated.of_image() > in_double.of_image());
        }
    }
}

#[test]
fn krylov_on_compressed_rows_of_a_stream_ends_in_double_precision() {
    let x = sparse_problem(900, 40);
    let mut stream = Streamed::new(Chunked::new(&x, &cuts(900)[2]), Preprocessing::CENTER).unwrap();
    stream.guess_columns(100, 0).unwrap();
    let mut krylov = Krylov::new(40, 2, KrylovSizes::suiting(2), 0, None).unwrap();
    let limits = Limits { tol: 1e-11, ..Limits::default() };
    let report = Driver::new(limits).run(&mut krylov, &mut stream).unwrap();
    assert_eq!(report.outcome, Outcome::Converged);
    let mut memory = Covariance::new(&x, Preprocessing::CENTER).unwrap();
    let next = hbpca::certificate::Next::Unknown;
    assert!(hbpca::certificate::check(&mut memory, &report.vectors, next, 1e-6).unwrap().holds(1e-11));
}

#[test]
fn nan_is_named_by_its_row_in_the_whole_matrix() {
    let mut values = vec![1.0_f32; 60];
    values[47] = f32::NAN;
    let x: Matrix = hbpca::Dense::deferring_finite_check(values.into(), 20, 3).unwrap().into();
    let mut stream = Streamed::new(Chunked::new(&x, &[0, 4, 9, 20]), Preprocessing::CENTER).unwrap();
    let error = stream.apply(&basis(3, 1), &mut Block::zeros(0, 0)).unwrap_err().to_string();
    assert!(error.starts_with("row 15, column 2 (counted from 0) holds NaN"), "{error}");
}

#[test]
fn a_source_that_fails_ends_the_pass_with_its_reason() {
    let x = dense_problem(40, 5);
    let source = Chunked::new(&x, &cuts(40)[1]).failing_at(3);
    let mut stream = Streamed::new(source, Preprocessing::CENTER).unwrap();
    let error = stream.apply(&basis(5, 1), &mut Block::zeros(0, 0)).unwrap_err().to_string();
    assert_eq!(error, "the data could not be read: chunk 3 is gone");
}

#[test]
fn an_abandoned_pass_ends_at_once() {
    let x = dense_problem(400, 5);
    let token = hbpca::CancelToken::default();
    let source = Chunked::new(&x, &cuts(400)[0]).abandoning_at(20, &token);
    let mut stream = Streamed::new(source, Preprocessing::CENTER).unwrap().abandoned_by(&token);
    let error = stream.apply(&basis(5, 1), &mut Block::zeros(0, 0)).unwrap_err();
    assert!(matches!(error, hbpca::Error::Abandoned), "{error}");
    assert!(stream.bytes_read() <= 22 * 5 * 4);
}

#[test]
fn vectors_of_another_length_are_refused() {
    let x = dense_problem(40, 5);
    let mut stream = Streamed::new(Chunked::new(&x, &[0, 40]), Preprocessing::CENTER).unwrap();
    let error = stream.apply(&basis(4, 1), &mut Block::zeros(0, 0)).unwrap_err().to_string();
    assert_eq!(error, "coordinates of the vectors to multiply: 4 given where 5 are needed");
    stream.apply(&Block::zeros(5, 0), &mut Block::zeros(5, 2)).unwrap();
}

/// Notes after how many full passes the iterates come close to a reference.
struct Approach {
    reference: Block,
    reached: Vec<(u64, f64)>,
}

impl hbpca::Observer for Approach {
    fn notify(&mut self, event: &hbpca::Event<'_>) -> std::ops::ControlFlow<()> {
        if let hbpca::Event::Looked { record, vectors: Some(vectors), .. } = event {
            self.reached.push((record.full_passes, squared_sines(vectors, &self.reference)));
        }
        std::ops::ControlFlow::Continue(())
    }

    fn wants_iterates(&self) -> bool {
        true
    }
}

/// ‖(I − UUᵀ)W‖_F², which bounds the largest squared sine.
fn squared_sines(w: &Block, u: &Block) -> f64 {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let mut sum = 0.0;
    for c in 0..w.p() {
        let mut rest = w.column(c);
        for u in (0..u.p()).map(|c| u.column(c)) {
            let along = dot(&rest, &u);
            rest.iter_mut().zip(&u).for_each(|(r, u)| *r -= along * u);
        }
        sum += dot(&rest, &rest);
    }
    sum
}

#[test]
fn few_reads_of_the_disk_suffice() {
    // Eigenvalues fall by 2 % each.
    let (n, d) = (16_000, 120);
    let x = common::chunked::decaying_problem(n, d, 0.98);
    let starts: Vec<usize> = (0..n).step_by(3000).chain([n]).collect();
    for (k, to_single, to_double) in [(1, 3, 5), (10, 12, 12)] {
        let config = hbpca::FitConfig {
            k,
            solver: hbpca::SolverKind::Covariance,
            limits: Limits { tol: 1e-10, ..Limits::default() },
            ..hbpca::FitConfig::default()
        };
        let reference = config.fit(&x).unwrap().model.vectors();
        let config = hbpca::FitConfig { solver: hbpca::SolverKind::Anchored, ..config };
        let mut approach = Approach { reference, reached: Vec::new() };
        let fit =
            config.run().observer(&mut approach).fit_streamed(Chunked::new(&x, &starts), 48 << 20).unwrap();
        assert_eq!((fit.outcome, fit.statistics_passes as u64), (Outcome::Converged, 0));
        let passes_to = |error: f64| approach.reached.iter().find(|look| look.1 <= error).unwrap().0;
        assert!(passes_to(1e-6) <= to_single, "{:?}", approach.reached);
        assert!(passes_to(1e-12) <= to_double, "{:?}", approach.reached);
        let pass = x.bytes_per_pass() as u64;
        assert!(fit.bytes_read >= fit.full_passes * pass && fit.bytes_read < (fit.full_passes + 1) * pass);
    }
}

#[test]
fn every_solver_runs_on_a_stream_and_agrees_with_memory() {
    for x in [dense_problem(3000, 20), sparse_problem(3000, 20)] {
        let starts: Vec<usize> = (0..3000).step_by(450).chain([3000]).collect();
        for (i, solver) in hbpca::SolverKind::ALL.into_iter().chain([hbpca::SolverKind::Auto]).enumerate() {
            let config = hbpca::FitConfig {
                k: if solver.finds_many() { 3 } else { 1 },
                solver,
                preprocessing: PREPARATIONS[i % PREPARATIONS.len()],
                limits: Limits { tol: 1e-4, max_passes: 60.0, ..Limits::default() },
                epoch: 20,
                ..hbpca::FitConfig::default()
            };
            let memory = config.fit(&x).unwrap();
            let streamed = config.run().fit_streamed(Chunked::new(&x, &starts), 64 << 20).unwrap();
            let residuals = |fit: &hbpca::Fit| fit.certificate.residuals.clone();
            for (j, pair) in memory.model.eigenvalues().iter().zip(streamed.model.eigenvalues()).enumerate() {
                let bound = residuals(&memory)[j] + residuals(&streamed)[j];
                // Intervals of different eigenvalues may both be right where a run did not converge.
                let both = memory.outcome == Outcome::Converged && streamed.outcome == Outcome::Converged;
                assert!((pair.0 - pair.1).abs() <= bound || !both, "{solver} {j}: {pair:?}");
            }
            let own_pass = u64::from(!matches!(
                solver,
                hbpca::SolverKind::Covariance
                    | hbpca::SolverKind::Krylov
                    | hbpca::SolverKind::Anchored
                    | hbpca::SolverKind::Auto
            ));
            assert!(streamed.statistics_passes as u64 >= own_pass, "{solver}");
            let ratio = memory.model.summary().total_variance / streamed.model.summary().total_variance;
            assert!((ratio - 1.0).abs() <= 1e-13, "{solver}");
        }
    }
}

#[test]
fn a_share_of_the_variance_is_reached_on_a_stream() {
    let x = dense_problem(2000, 30);
    let config = hbpca::FitConfig { variance_share: Some(0.9), ..hbpca::FitConfig::default() };
    let memory = config.fit(&x).unwrap();
    let streamed = config.run().fit_streamed(Chunked::new(&x, &[0, 700, 2000]), 64 << 20).unwrap();
    assert_eq!(memory.model.n_components(), streamed.model.n_components());
}

#[test]
fn observers_learn_how_rows_are_prepared_before_the_first_look() {
    #[derive(Default)]
    struct Order(Vec<&'static str>);
    impl hbpca::Observer for Order {
        fn notify(&mut self, event: &hbpca::Event<'_>) -> std::ops::ControlFlow<()> {
            if let hbpca::Event::Looked { .. } = event {
                self.0.push("looked");
            }
            std::ops::ControlFlow::Continue(())
        }
        fn prepared(&mut self, map: &hbpca::RowMap, weight: f64) {
            assert!(map.shift().is_some() && (weight - 300.0).abs() < 0.5);
            self.0.push("prepared");
        }
    }
    let x = dense_problem(300, 8);
    for solver in [hbpca::SolverKind::Krylov, hbpca::SolverKind::Power] {
        let mut order = Order::default();
        let config = hbpca::FitConfig { solver, ..hbpca::FitConfig::default() };
        config.run().observer(&mut order).fit_streamed(Chunked::new(&x, &[0, 300]), 64 << 20).unwrap();
        assert_eq!(order.0[..2], ["prepared", "looked"]);
        assert_eq!(order.0.iter().filter(|what| **what == "prepared").count(), 1);
    }
}

#[test]
fn streams_go_on_from_every_checkpoint_to_the_same_bits() {
    let memory = 256 << 20;
    for x in [dense_problem(600, 25), sparse_problem(600, 25)] {
        let starts: Vec<usize> = (0..600).step_by(90).chain([600]).collect();
        let rows = || Chunked::new(&x, &starts);
        for solver in SolverKind::ALL.into_iter().filter(|kind| *kind != SolverKind::Auto) {
            let limits = Limits { max_passes: 12.0, tol: 1e-10, ..Limits::default() };
            let preprocessing = Preprocessing::STANDARDIZE;
            let config = FitConfig { solver, limits, preprocessing, epoch: 5, ..FitConfig::default() };
            let mut kept: Vec<Checkpoint> = Vec::new();
            let keep = |checkpoint: &Checkpoint| {
                kept.push(checkpoint.clone());
                Ok(())
            };
            let checkpoints = Checkpoints { save: Some(Box::new(keep)), ..Checkpoints::default() };
            let whole = config.run().checkpoints(checkpoints).fit_streamed(rows(), memory).unwrap();
            assert!(!kept.is_empty(), "{solver}");
            for from in kept {
                let checkpoints = Checkpoints { resume: Some(from), ..Checkpoints::default() };
                let resumed = config.run().checkpoints(checkpoints).fit_streamed(rows(), memory).unwrap();
                assert_eq!(resumed.model, whole.model, "{solver}");
                assert_eq!(resumed.certificate, whole.certificate, "{solver}");
                assert_eq!(resumed.passes.to_bits(), whole.passes.to_bits(), "{solver}");
                assert_eq!(resumed.history.len(), whole.history.len(), "{solver}");
            }
        }
    }
}

#[test]
fn a_checkpoint_of_other_rows_or_other_chunks_is_refused() {
    let x = dense_problem(600, 25);
    let other = dense_problem(601, 25);
    let config = FitConfig { solver: SolverKind::Krylov, ..FitConfig::default() };
    let mut kept = None;
    let keep = |checkpoint: &Checkpoint| {
        kept = Some(checkpoint.clone());
        Ok(())
    };
    let checkpoints = Checkpoints { save: Some(Box::new(keep)), ..Checkpoints::default() };
    config.run().checkpoints(checkpoints).fit_streamed(Chunked::new(&x, &[0, 300, 600]), 1 << 28).unwrap();
    for (rows, starts) in [(&x, &[0, 200, 600]), (&other, &[0, 300, 601])] {
        let checkpoints = Checkpoints { resume: kept.clone(), ..Checkpoints::default() };
        let refused = config.run().checkpoints(checkpoints).fit_streamed(Chunked::new(rows, starts), 1 << 28);
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Checkpoint(_)) && error.to_string().contains("other data"), "{error}");
    }
}

#[test]
fn a_survey_saves_the_pass_for_statistics_and_is_held_against_the_rows() {
    let x = dense_problem(400, 12);
    let starts: Vec<usize> = (0..400).step_by(50).chain([400]).collect();
    let survey = |of: &Matrix<'_>| {
        let (mut chunks, mut survey) = (Chunked::new(of, &starts), RowSurvey::of_columns(12));
        (0..8).for_each(|i| survey.add(&chunks.read_chunk(i, None).unwrap()).unwrap());
        survey
    };
    assert_eq!((survey(&x).n_rows(), survey(&x).nnz(), survey(&x).starts()), (400, 4800, &starts[..]));
    for solver in [SolverKind::Krylov, SolverKind::Anchored, SolverKind::Covariance, SolverKind::PowerM] {
        for preprocessing in PREPARATIONS {
            let config = FitConfig { k: 1, solver, preprocessing, ..FitConfig::default() };
            let rows = Chunked::new(&x, &starts);
            let fit = config.run().surveyed(survey(&x)).fit_streamed(rows, 1 << 30).unwrap();
            let want = config.fit(&x).unwrap();
            assert_eq!(fit.outcome, Outcome::Converged);
            assert!((fit.statistics_passes - 1.0).abs() < f64::EPSILON);
            let (got, off) = (fit.model.eigenvalues()[0], fit.certificate.residuals[0]);
            let (want, want_off) = (want.model.eigenvalues()[0], want.certificate.residuals[0]);
            assert!((got - want).abs() <= off + want_off, "{solver} {preprocessing:?}: {got} {want}");
        }
    }
    // Another matrix in the place of the surveyed one, and other chunks.
    let other = decaying_problem(400, 12, 0.9);
    let config = FitConfig { k: 1, solver: SolverKind::Krylov, ..FitConfig::default() };
    let said = config.run().surveyed(survey(&x)).fit_streamed(Chunked::new(&other, &starts), 1 << 30);
    let said = said.unwrap_err().to_string();
    assert!(said.contains("chunk 0: rows 0 to 49 (counted from 0) have changed"), "{said}");
    let said = config.run().surveyed(survey(&x)).fit_streamed(Chunked::new(&x, &[0, 200, 400]), 1 << 30);
    assert!(matches!(said, Err(Error::Shape { .. })), "{said:?}");
}
