//! Every way a run can end, with a history that says so.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare exact values exactly and count small"
)]

mod common;

use std::ops::ControlFlow;

use common::*;
use hbpca::certificate::Status;
use hbpca::operator::{Covariance, Precision, Products};
use hbpca::solver::{Power, Start};
use hbpca::{
    Accuracy, Batch, Block, CancelToken, Driver, Error, Event, FitConfig, Limits, Matrix, Model, Observer,
    Outcome, Preprocessing, RowMap, SolverKind, Summary,
};

/// 50×6 with eigenvalues 1, ratio, ratio², …
fn data(ratio: f64) -> Matrix<'static> {
    dense(with_spectrum(50, &geometric(6, ratio), 1).0, 6)
}

fn limits(tol: f64, max_passes: f64) -> Limits {
    Limits { tol, max_passes, ..Limits::default() }
}

fn power(limits: Limits) -> FitConfig {
    FitConfig { solver: SolverKind::Power, limits, threads: 1, ..FitConfig::default() }
}

#[test]
fn converged_when_the_residual_meets_the_tolerance() {
    let fit = power(limits(1e-6, 1000.0)).fit(&data(0.5)).unwrap();
    assert_eq!(fit.outcome, Outcome::Converged);
    let last = fit.history.last().unwrap();
    assert!(last.residual <= 1e-6 * last.theta);
    assert!(fit.history[..fit.history.len() - 1].iter().all(|r| r.residual > 1e-6 * r.theta));
}

#[test]
fn budget_of_passes_is_used_up_exactly() {
    let fit = power(limits(1e-12, 7.0)).fit(&data(0.99)).unwrap();
    assert_eq!((fit.outcome, fit.history.len(), fit.full_passes), (Outcome::Budget, 7, 7));
    assert!((fit.passes - 7.0).abs() < f64::EPSILON);
}

#[test]
fn budget_of_seconds_stops_after_one_look() {
    let limits = Limits { max_seconds: 0.0, ..limits(1e-12, 1000.0) };
    let fit = power(limits).fit(&data(0.99)).unwrap();
    assert_eq!((fit.outcome, fit.history.len()), (Outcome::Budget, 1));
}

#[test]
fn stagnated_when_no_step_can_reach_tolerance_zero() {
    for solver in SolverKind::ALL.into_iter().filter(|kind| *kind != SolverKind::Oja) {
        let batch = Batch::Share(1.0);
        let config = FitConfig { solver, batch, epoch: 5, ..power(limits(0.0, 5000.0)) };
        let fit = config.fit(&data(0.5)).unwrap();
        assert_eq!(fit.outcome, Outcome::Stagnated, "{solver}: {}", fit.certificate);
        // The best iterate is at the rounding of its image.
        assert!(fit.certificate.residuals[0] <= 1e3 * fit.certificate.image_rounding, "{solver}");
    }
}

#[test]
fn converged_to_rounding_when_residuals_stop_to_fall_below_the_tolerance() {
    let accuracy = Accuracy::Rounding;
    for solver in [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Anchored, SolverKind::Power] {
        let k = if solver.finds_many() { 3 } else { 1 };
        let config = FitConfig { k, solver, ..power(Limits { accuracy, ..limits(1e-6, 5000.0) }) };
        let fit = config.fit(&data(0.5)).unwrap();
        assert_eq!(fit.outcome, Outcome::Converged, "{solver}: {}", fit.certificate);
        assert!(fit.certificate.status.iter().all(|status| *status == Status::Converged), "{solver}");
        assert!(fit.certificate.residuals[0] <= 10.0 * fit.certificate.image_rounding, "{solver}");
        // A tolerance below rounding is missed all the same.
        let config = FitConfig { limits: Limits { accuracy, ..limits(1e-18, 5000.0) }, ..config };
        assert_eq!(config.fit(&data(0.5)).unwrap().outcome, Outcome::Stagnated, "{solver}");
    }
}

#[test]
fn components_without_variance_do_not_keep_a_run_from_converging_to_rounding() {
    for (n, solver) in [(50, SolverKind::Covariance), (50, SolverKind::Krylov), (5, SolverKind::Covariance)] {
        let d = 8;
        let mut spectrum = geometric(4, 0.5);
        spectrum.resize(d.min(n), 0.0);
        let x = dense(with_spectrum(n, &spectrum, 1).0, spectrum.len());
        let limits = Limits { accuracy: Accuracy::Rounding, ..limits(1e-6, 200.0) };
        let fit = FitConfig { k: spectrum.len().min(n), solver, ..power(limits) }.fit(&x).unwrap();
        assert_eq!(fit.outcome, Outcome::Converged, "{solver}: {}", fit.certificate);
        assert!(fit.passes < 100.0, "{solver}: {} passes", fit.passes);
    }
}

#[test]
fn interrupted_by_an_observer_at_the_iterate_it_saw() {
    for (stop_at, looks) in [(0, 1), (1, 1), (4, 4)] {
        let (mut seen, mut finished) = (0, None);
        let mut observer = |event: &Event<'_>| {
            match event {
                Event::Started { solver, n, d, k, .. } => {
                    assert_eq!((*solver, *n, *d, *k), ("power", 50, 6, 1));
                }
                Event::Looked { record, certificate, .. } => {
                    seen += 1;
                    assert_eq!(record.residual.to_bits(), certificate.unwrap().residuals[0].to_bits());
                }
                Event::Finished { outcome, .. } => finished = Some(*outcome),
                other => panic!("this run starts from nothing: {other:?}"),
            }
            if seen >= stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let fit = power(limits(1e-12, 1000.0)).run().observer(&mut observer).fit(&data(0.99)).unwrap();
        assert_eq!((fit.outcome, fit.history.len(), seen), (Outcome::Interrupted, looks, looks));
        assert_eq!(finished, Some(Outcome::Interrupted));
    }
}

#[test]
fn interrupted_by_a_token_from_outside() {
    let cancel = CancelToken::default();
    let config = power(limits(1e-12, 1000.0));
    let mut observer = |event: &Event<'_>| {
        if matches!(event, Event::Looked { record, .. } if record.full_passes == 3) {
            cancel.cancel();
        }
        ControlFlow::Continue(())
    };
    let fit = config.run().observer(&mut observer).cancelled_by(&cancel).fit(&data(0.99)).unwrap();
    assert_eq!((fit.outcome, fit.history.len()), (Outcome::Interrupted, 3));
    assert!(cancel.is_cancelled());
}

/// Keeps the model of every look.
#[derive(Default)]
struct Snapshots {
    prepared: Option<(RowMap, f64)>,
    models: Vec<Model>,
}

impl Observer for Snapshots {
    fn wants_iterates(&self) -> bool {
        true
    }

    fn prepared(&mut self, map: &RowMap, weight: f64) {
        self.prepared = Some((map.clone(), weight));
    }

    fn notify(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if let Event::Looked { certificate: Some(certificate), vectors: Some(vectors), .. } = event {
            let (map, weight) = self.prepared.as_ref().unwrap();
            let summary = Summary {
                n: 50,
                d: 6,
                weight: *weight,
                preprocessing: Preprocessing::CENTER,
                eigenvalues: certificate.eigenvalues.clone(),
                residuals: certificate.residuals.clone(),
                image_rounding: certificate.image_rounding,
                total_variance: map.total_variance(),
            };
            self.models.push(Model::new(vectors, summary, map).unwrap());
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn an_observer_can_put_the_model_of_every_iterate_together() {
    let x = data(0.5);
    for solver in [SolverKind::Power, SolverKind::Krylov, SolverKind::Anchored] {
        let mut snapshots = Snapshots::default();
        let config = FitConfig { solver, ..power(limits(1e-6, 1000.0)) };
        let fit = config.run().observer(&mut snapshots).fit(&x).unwrap();
        assert_eq!(snapshots.models.len(), fit.history.len(), "{solver}");
        assert_eq!(snapshots.models.last(), Some(&fit.model), "{solver}");
    }
}

#[test]
fn a_share_of_the_variance_is_met_by_the_fewest_components_after_forming_c_once() {
    let x = data(0.8);
    for share in [0.1, 0.5, 0.9, 0.999, 1.0] {
        let solver = SolverKind::Covariance;
        let fit = FitConfig { variance_share: Some(share), solver, ..FitConfig::default() }.fit(&x).unwrap();
        assert_eq!((fit.full_passes, fit.outcome), (1, Outcome::Converged), "{share}");
        let total = fit.model.summary().total_variance;
        let explained: f64 = fit.model.eigenvalues().iter().sum();
        let last = *fit.model.eigenvalues().last().unwrap();
        // All six add up to the trace but for rounding.
        assert!(explained >= share * total * (1.0 - 6.0 * f64::EPSILON), "{share}");
        assert!(explained - last <= share * total, "{share}");
    }
}

#[test]
fn an_abandoned_run_ends_without_an_answer() {
    let cancel = CancelToken::default();
    let config = power(limits(1e-12, 1000.0));
    let mut looks = 0;
    let mut observer = |event: &Event<'_>| {
        looks += usize::from(matches!(event, Event::Looked { .. }));
        if looks == 3 {
            cancel.abandon();
        }
        ControlFlow::Continue(())
    };
    // The look at which it is asked still ends as an interruption; the pass that would follow is not begun.
    let fit = config.run().observer(&mut observer).cancelled_by(&cancel).fit(&data(0.99)).unwrap();
    assert_eq!((fit.outcome, fit.history.len(), looks), (Outcome::Interrupted, 3, 3));
    let error = config.run().cancelled_by(&cancel).fit(&data(0.99)).unwrap_err();
    assert!(matches!(error, Error::Abandoned), "{error}");
    assert!(error.to_string().contains("cancel it instead"), "{error}");
}

#[test]
fn an_abandoned_pass_skips_the_chunks_that_are_left() {
    let (x, cancel) = (data(0.5), CancelToken::default());
    let mut c = Covariance::new(&x, Preprocessing::CENTER).unwrap().abandoned_by(&cancel);
    let d = c.dim();
    cancel.abandon();
    assert!(cancel.is_cancelled() && cancel.is_abandoned());
    // Skipped chunks add nothing, so that zeros prove that no row was read.
    let v = Block::from_vector(vec![1.0; d]);
    let mut image = Block::zeros(d, 1);
    assert!(matches!(c.apply(&v, &mut image), Err(Error::Abandoned)));
    assert!(image.values().iter().all(|y| *y == 0.0));
    let mut formed = Block::zeros(0, 0);
    assert!(matches!(c.form(Precision::Double, &mut formed), Err(Error::Abandoned)));
    assert!(formed.values().iter().all(|y| *y == 0.0));
    let mut untroubled = Covariance::new(&x, Preprocessing::CENTER).unwrap();
    untroubled.apply(&v, &mut image).unwrap();
    assert!(image.values().iter().any(|y| *y != 0.0));
}

#[test]
fn every_observer_is_told_even_after_one_said_stop() {
    let (mut first, mut second) = (0, 0);
    let mut stopper = |_: &Event<'_>| {
        first += 1;
        ControlFlow::Break(())
    };
    let mut counter = |_: &Event<'_>| {
        second += 1;
        ControlFlow::Continue(())
    };
    power(limits(1e-12, 9.0)).run().observer(&mut stopper).observer(&mut counter).fit(&data(0.99)).unwrap();
    assert_eq!((first, second), (3, 3)); // started, looked, finished
}

#[test]
fn no_solver_reads_more_than_its_budget_and_the_history_ends_where_the_run_does() {
    let x = data(0.9);
    for solver in SolverKind::ALL {
        for max_passes in [1.0, 1.5, 2.0, 3.7, 11.0] {
            let eta = Some(0.1);
            let config = FitConfig {
                eta,
                solver,
                epoch: 7,
                batch: Batch::Rows(5),
                ..power(limits(1e-12, max_passes))
            };
            let fit = config.fit(&x).unwrap();
            assert!(fit.passes <= max_passes, "{solver}: {} of {max_passes}", fit.passes);
            let last = fit.history.last().unwrap();
            assert_eq!(last.passes.to_bits(), fit.passes.to_bits(), "{solver}");
            assert_eq!(
                (last.full_passes, fit.full_passes as usize),
                (fit.full_passes, fit.history.len()),
                "{solver}"
            );
            assert!(fit.history.windows(2).all(|pair| pair[0].passes < pair[1].passes), "{solver}");
            // The answer is the best iterate seen. `krylov` foresees its residuals without forming a vector: they are those of the
            // vectors to within the rounding of images, of those foreseen and of those formed.
            let best = fit.history.iter().map(|r| r.residual / r.theta).fold(f64::INFINITY, f64::min);
            let rounding = 2.0 * fit.certificate.image_rounding / fit.certificate.eigenvalues[0];
            let room = if solver == SolverKind::Krylov { rounding } else { 0.0 };
            let worst = fit.certificate.worst();
            assert!((worst - best).abs() <= room, "{solver}: {worst:e} is not {best:e} ± {room:e}");
        }
    }
}

#[test]
fn the_error_against_a_reference_is_recorded() {
    let (values, u) = with_spectrum(50, &geometric(6, 0.5), 1);
    let (x, u1) = (dense(values, 6), u.column(0));
    let mut c = Covariance::new(&x, Preprocessing::NONE).unwrap();
    let mut solver = Power::new(6, &Start::Random { seed: 0 }).unwrap();
    let report = Driver::new(limits(1e-9, 1000.0)).reference(&u1).run(&mut solver, &mut c).unwrap();
    let last = report.history.last().unwrap().error.unwrap();
    assert!((last.sqrt() - sine2(&report.vectors.column(0), &u1).sqrt()).abs() < 1e-14);
    assert!(report.history.windows(2).all(|pair| pair[1].error < pair[0].error));
    let short = Driver::new(limits(1e-9, 9.0)).reference(&u1[1..]).run(&mut solver, &mut c).unwrap_err();
    assert_eq!(short.to_string(), "coordinates of the reference vector: 5 given where 6 are needed");
}

#[test]
fn passes_of_an_operator_that_forms_c_by_products_are_counted() {
    // 70 unit vectors in blocks of 32: three passes.
    let rows: Vec<Vec<f64>> = sparse_values(80, 70, 1.0, 2).chunks(70).map(<[f64]>::to_vec).collect();
    let mut solver = hbpca::solver::CovarianceSolver::new(70, 2).unwrap();
    let report = Driver::new(limits(1e-6, 100.0)).run(&mut solver, &mut RowList(rows)).unwrap();
    assert_eq!((report.read.full_passes, report.read.rows), (3, 240));
}
