//! Every way a run can end and every error there is, by its text.

mod common;

use std::ops::ControlFlow;

use common::*;
use hbpca::{
    Batch, Block, CancelToken, ColumnStatistics, Covariance, CovarianceOperator, Csr, Dense, Driver, Epoch,
    Error, Event, FitConfig, FixedMomentum, Limits, Matrix, MomentumChoice, Next, Outcome, Power,
    Preprocessing, Replacement, Rows, Sampler, SolverKind, Start, Whitening, check,
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

/// The text of the error a changed configuration gives on 50×6 data.
fn refused(change: impl FnOnce(&mut FitConfig)) -> String {
    let mut config = FitConfig { solver: SolverKind::VrHbPower, threads: 1, ..FitConfig::default() };
    change(&mut config);
    config.fit(&data(0.5)).unwrap_err().to_string()
}

// How runs end.

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
fn interrupted_by_an_observer_at_the_iterate_it_saw() {
    for (stop_at, looks) in [(0, 1), (1, 1), (4, 4)] {
        let (mut seen, mut finished) = (0, None);
        let mut observer = |event: &Event<'_>| {
            match event {
                Event::Started { solver, n, d, k } => assert_eq!((*solver, *n, *d, *k), ("power", 50, 6, 1)),
                Event::Looked { record, certificate } => {
                    seen += 1;
                    assert_eq!(record.residual.to_bits(), certificate.residuals[0].to_bits());
                }
                Event::Finished { outcome } => finished = Some(*outcome),
            }
            if seen >= stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let fit = power(limits(1e-12, 1000.0)).fit_observed(&data(0.99), None, &mut [&mut observer]).unwrap();
        assert_eq!((fit.outcome, fit.history.len(), seen), (Outcome::Interrupted, looks, looks));
        assert_eq!(finished, Some(Outcome::Interrupted));
    }
}

#[test]
fn interrupted_by_a_token_from_outside() {
    let cancel = CancelToken::default();
    let config = power(Limits { cancel: cancel.clone(), ..limits(1e-12, 1000.0) });
    let mut observer = |event: &Event<'_>| {
        if matches!(event, Event::Looked { record, .. } if record.full_passes == 3) {
            cancel.cancel();
        }
        ControlFlow::Continue(())
    };
    let fit = config.fit_observed(&data(0.99), None, &mut [&mut observer]).unwrap();
    assert_eq!((fit.outcome, fit.history.len()), (Outcome::Interrupted, 3));
    assert!(cancel.is_cancelled());
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
    power(limits(1e-12, 9.0)).fit_observed(&data(0.99), None, &mut [&mut stopper, &mut counter]).unwrap();
    assert_eq!((first, second), (3, 3)); // started, looked, finished
}

#[test]
fn no_solver_reads_more_than_its_budget_and_the_history_ends_where_the_run_does() {
    let x = data(0.9);
    for solver in SolverKind::ALL {
        for max_passes in [1.0, 1.5, 2.0, 3.7, 11.0] {
            let config =
                FitConfig { solver, epoch: 7, batch: Batch::Rows(5), ..power(limits(1e-12, max_passes)) };
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
            // The answer is the best iterate seen.
            let best = fit.history.iter().map(|r| r.residual / r.theta).fold(f64::INFINITY, f64::min);
            assert_eq!(fit.certificate.worst().to_bits(), best.to_bits(), "{solver}");
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

// What is refused.

#[test]
fn k_outside_one_to_the_smaller_side_is_refused() {
    for k in [0, 7] {
        let text = refused(|config| (config.k, config.solver) = (k, SolverKind::Covariance));
        assert_eq!(text, format!("k = {k}: 50 rows × 6 columns have from 1 to 6 components"));
    }
    let wide = dense(sparse_values(3, 5, 1.0, 1), 5);
    let text = FitConfig { k: 4, ..FitConfig::default() }.fit(&wide).unwrap_err().to_string();
    assert_eq!(text, "k = 4: 3 rows × 5 columns have from 1 to 3 components");
    let text = hbpca::CovarianceSolver::new(6, 7).unwrap_err().to_string();
    assert_eq!(text, "k = 7: give a number of components from 1 to 6");
}

#[test]
fn more_than_one_component_is_refused_by_solvers_for_one() {
    for solver in SolverKind::ALL.into_iter().filter(|kind| !kind.finds_many()) {
        let text = refused(|config| (config.k, config.solver) = (2, solver));
        let want = format!("k = 2: solver {solver} finds one component; choose --solver covariance for more");
        assert_eq!(text, want);
    }
}

#[test]
fn eta_outside_zero_to_one_is_refused() {
    for eta in [0.0, -0.1, 1.000_001, f64::NAN, f64::INFINITY] {
        let text = refused(|config| config.eta = eta);
        assert_eq!(
            text,
            format!("eta = {eta}: the step size must lie above 0 and at most at 1; try 0.1, or auto")
        );
    }
    for solver in [SolverKind::Oja, SolverKind::VrPca] {
        for eta in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            let text = refused(|config| (config.eta, config.solver) = (eta, solver));
            assert_eq!(
                text,
                format!("eta = {eta}: the step size must be positive and finite; try 0.1, or auto")
            );
        }
    }
}

#[test]
fn epoch_shorter_than_two_is_refused() {
    for solver in [SolverKind::Oja, SolverKind::VrPca, SolverKind::VrPowerM, SolverKind::VrHbPower] {
        for m in [0, 1] {
            let text = refused(|config| (config.epoch, config.solver) = (m, solver));
            assert_eq!(
                text,
                format!("epoch = {m}: an epoch has at least 2 steps; m·|S| = n is the usual choice")
            );
        }
    }
}

#[test]
fn batch_of_no_rows_is_refused() {
    let text = refused(|config| config.batch = Batch::Rows(0));
    assert_eq!(text, "batch = 0 rows: give at least 1, or a share such as 1%");
}

#[test]
fn batch_larger_than_n_is_refused() {
    let text = refused(|config| config.batch = Batch::Rows(51));
    assert_eq!(text, "batch = 51 rows: the data has only 50 rows; give at most that, or a share such as 1%");
}

#[test]
fn batch_share_outside_zero_to_one_is_refused() {
    let text = refused(|config| config.batch = Batch::Share(1.5));
    assert_eq!(text, "batch = 150%: a share must lie above 0% and at most at 100%");
}

#[test]
fn sampling_from_no_rows_is_refused() {
    for replacement in [Replacement::With, Replacement::Without] {
        assert!(Sampler::new(0, 1, replacement, 0).unwrap_err().to_string().contains("only 0 rows"));
    }
}

#[test]
fn tolerance_outside_zero_to_one_is_refused() {
    for tol in [-1e-9, 1.0, f64::NAN] {
        let text = refused(|config| config.limits.tol = tol);
        assert_eq!(
            text,
            format!("tol = {tol}: the relative tolerance must lie from 0 up to below 1; try 1e-6")
        );
    }
}

#[test]
fn budget_below_one_pass_is_refused() {
    for max_passes in [0.0, 0.5, f64::NAN] {
        let text = refused(|config| config.limits.max_passes = max_passes);
        assert_eq!(text, format!("max-passes = {max_passes}: a certificate takes at least 1 pass"));
    }
}

#[test]
fn negative_budget_of_seconds_is_refused() {
    for max_seconds in [-1.0, f64::NAN] {
        let text = refused(|config| config.limits.max_seconds = max_seconds);
        assert_eq!(text, format!("max-seconds = {max_seconds}: give a number of seconds of at least 0"));
    }
}

#[test]
fn negative_lambda2_is_refused() {
    for lambda2 in [-1.0, f64::NAN, f64::INFINITY] {
        let text = refused(|config| config.momentum = MomentumChoice::Oracle(lambda2));
        assert_eq!(text, format!("lambda2 = {lambda2}: give a finite number of at least 0"));
    }
    let text = FixedMomentum::new(-0.5).unwrap_err().to_string();
    assert_eq!(text, "beta = -0.5: give a finite number of at least 0");
}

#[test]
fn zero_start_vector_is_refused() {
    let text = refused(|config| config.start = Some(Block::zeros(6, 1)));
    assert_eq!(
        text,
        "start vector = of length 0: its length must be positive and finite; leave it out for a random start"
    );
    let text = refused(|config| config.start = Some(Block::from_vector(vec![f64::NAN; 6])));
    assert!(text.starts_with("start vector = of length NaN"), "{text}");
}

#[test]
fn start_of_wrong_length_is_refused() {
    let text = refused(|config| config.start = Some(Block::zeros(5, 1)));
    assert_eq!(text, "coordinates of the start vector: 5 given where 6 are needed");
    let text = refused(|config| config.start = Some(Block::zeros(6, 0)));
    assert_eq!(text, "coordinates of the start vector: 0 given where 6 are needed");
}

#[test]
fn start_that_is_not_orthogonal_gives_its_first_column() {
    let start = |columns: &[[f64; 6]]| {
        let start = Some(Block::from_columns(columns).unwrap());
        FitConfig { start, ..power(limits(1e-6, 5.0)) }.fit(&data(0.9)).unwrap().model
    };
    let e1 = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(start(&[e1.map(|x| 3.0 * x), [1.0; 6]]), start(&[e1]));
}

#[test]
fn bad_weights_are_refused() {
    let x = data(0.5);
    let text = |weights: &[f64]| {
        FitConfig::default().fit_observed(&x, Some(weights), &mut []).unwrap_err().to_string()
    };
    let mut weights = [1.0; 50];
    assert_eq!(text(&weights[1..]), "row weights, one for each row: 49 given where 50 are needed");
    weights[3] = -2.0;
    assert_eq!(text(&weights), "weight = -2 (row 3): weights must be finite and not negative");
    assert_eq!(text(&[0.0; 50]), "weights = all 0: at least one row needs a positive weight");
}

#[test]
fn unknown_solver_is_refused_with_the_names() {
    let text = "svd".parse::<SolverKind>().unwrap_err().to_string();
    let names = "covariance, power, power-m, oja, vr-pca, vr-power-m, vr-hb-power";
    assert_eq!(text, format!("solver = svd: choose one of {names}"));
    assert_eq!("vr-hb-power".parse::<SolverKind>().unwrap(), SolverKind::VrHbPower);
}

#[test]
fn empty_matrices_are_refused() {
    let text = |x: Result<Dense<'_, f64>, Error>| x.unwrap_err().to_string();
    let want = |n: usize, d: usize| {
        format!("the matrix is empty ({n} rows × {d} columns): give at least one row and one column")
    };
    assert_eq!(text(Dense::new(vec![], 0, 3)), want(0, 3));
    assert_eq!(text(Dense::new(vec![], 3, 0)), want(3, 0));
    assert_eq!(Csr::<f64>::new(4, vec![0], vec![], vec![]).unwrap_err().to_string(), want(0, 4));
}

#[test]
fn malformed_compressed_rows_are_refused() {
    let text = Csr::new(2, vec![0, 1], vec![5], vec![1.0]).unwrap_err().to_string();
    assert_eq!(text, "malformed sparse rows: row 0 has column 5, but there are only 2 columns");
}

#[test]
fn nan_and_infinity_are_refused_with_their_place() {
    for (value, shown) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        let want = format!(
            "row 1, column 2 (counted from 0) holds {shown}: every entry must be finite; \
             drop the row or fill in the value first"
        );
        let mut values = vec![1.0; 9];
        values[5] = value;
        assert_eq!(Dense::new(values.clone(), 3, 3).unwrap_err().to_string(), want);
        let x: Matrix = Dense::deferring_finite_check(values.into(), 3, 3).unwrap().into();
        assert_eq!(FitConfig::default().fit(&x).unwrap_err().to_string(), want);
        let sparse = Csr::new(3, vec![0, 1, 2], vec![0, 2], vec![1.0, value]);
        assert_eq!(sparse.unwrap_err().to_string(), want);
    }
}

#[test]
fn squares_that_overflow_are_refused() {
    let want = |column: usize, magnitude: f64| {
        format!(
            "column {column} (counted from 0) has entries near {magnitude:e}, whose squares overflow: \
             divide the column by a constant first"
        )
    };
    let text =
        |values: Vec<f64>, d: usize| FitConfig::default().fit(&dense(values, d)).unwrap_err().to_string();
    assert_eq!(text(vec![0.0, 1e200, 0.0, -1e200], 2), want(1, 1e200));
    // Also where only the sum of the squares leaves the range, or only that of a constant column.
    let wide: Vec<f64> = (0..200).map(|i| if i < 100 { 9e153 } else { -9e153 }).collect();
    assert_eq!(text(wide, 100), want(0, 9e153));
    assert_eq!(text(vec![1.0, 1e200, 2.0, 1e200], 2), want(1, 1e200));
}

#[test]
fn vectors_of_another_length_are_refused_everywhere() {
    let x = data(0.5);
    let mut c = Covariance::new(&x, Preprocessing::NONE).unwrap();
    let text = check(&mut c, &Block::zeros(5, 1), Next::Unknown).unwrap_err().to_string();
    assert_eq!(text, "coordinates of the vectors to multiply: 5 given where 6 are needed");
    let model = FitConfig { k: 2, ..FitConfig::default() }.fit(&x).unwrap().model;
    let narrow = dense(vec![1.0; 10], 5);
    let text = model.transform(&narrow, Whitening::Off).unwrap_err().to_string();
    assert_eq!(text, "columns of the data to transform: 5 given where 6 are needed");
    let text = model.inverse_transform(&[1.0; 5], Whitening::Off).unwrap_err().to_string();
    assert_eq!(text, "scores in rows of 2: 5 given where 4 are needed");
}

#[test]
fn products_over_nothing_are_defined() {
    let values = sparse_values(50, 6, 0.5, 1);
    for x in [dense(values.clone(), 6), csr(&values, 6)] {
        for preprocessing in EVERY_PREPROCESSING {
            let mut c = Covariance::new(&x, preprocessing).unwrap();
            let mut out = Block::zeros(1, 1);
            c.apply(&Block::zeros(6, 0), &mut out).unwrap();
            assert_eq!((out.d(), out.p()), (6, 0));
            c.apply_batch(&[], &random_block(6, 2, 1), &mut out).unwrap();
            assert_eq!(out, Block::zeros(6, 2));
        }
    }
}

/// An operator whose storage fails after a number of sums.
struct Failing(RowList, usize);

impl CovarianceOperator for Failing {
    fn dim(&self) -> usize {
        self.0.dim()
    }
    fn n_rows(&self) -> usize {
        self.0.n_rows()
    }
    fn sum_rows(&mut self, rows: Rows<'_>, v: &Block, out: &mut Block) -> Result<(), Error> {
        self.1 = self.1.checked_sub(1).ok_or_else(|| Error::Source("the disk is gone".into()))?;
        self.0.sum_rows(rows, v, out)
    }
    fn total_variance(&self) -> f64 {
        self.0.total_variance()
    }
    fn image_rounding(&self) -> f64 {
        self.0.image_rounding()
    }
}

#[test]
fn storage_that_fails_ends_every_solver_with_its_error() {
    let rows: Vec<Vec<f64>> =
        with_spectrum(50, &geometric(6, 0.9), 1).0.chunks(6).map(<[f64]>::to_vec).collect();
    for kind in SolverKind::ALL {
        for sums in [0, 1, 4] {
            let config = FitConfig { solver: kind, epoch: 3, batch: Batch::Rows(5), ..FitConfig::default() };
            let mut solver = config.solver(50, 6).unwrap();
            let mut operator = Failing(RowList(rows.clone()), sums);
            let result = Driver::new(limits(1e-12, 100.0)).run(&mut *solver, &mut operator);
            if kind == SolverKind::Covariance && sums > 0 {
                assert!(result.is_ok(), "one sum forms C");
                continue;
            }
            let error = result.unwrap_err();
            assert_eq!(error.to_string(), "the data could not be read: the disk is gone", "{kind}");
            assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the disk is gone");
        }
    }
}

#[test]
fn statistics_of_overflowing_data_never_reach_an_operator() {
    let x = dense(vec![1e160, -1e160], 1);
    assert!(matches!(ColumnStatistics::new(&x), Err(Error::Overflow { column: 0, .. })));
    assert!(matches!(Covariance::new(&x, Preprocessing::CENTER), Err(Error::Overflow { .. })));
    assert!(Epoch::new(2).is_ok());
}

#[test]
fn passes_of_an_operator_that_forms_c_by_products_are_counted() {
    // 70 unit vectors in blocks of 32: three passes.
    let rows: Vec<Vec<f64>> = sparse_values(80, 70, 1.0, 2).chunks(70).map(<[f64]>::to_vec).collect();
    let mut solver = hbpca::CovarianceSolver::new(70, 2).unwrap();
    let report = Driver::new(limits(1e-6, 100.0)).run(&mut solver, &mut RowList(rows)).unwrap();
    assert_eq!((report.read.full_passes, report.read.rows), (3, 240));
}
