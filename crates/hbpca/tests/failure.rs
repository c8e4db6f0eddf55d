//! Every error there is, by its text; each constraint is a test whose name is the sentence.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare exact values exactly and count small"
)]

mod common;

use common::*;
use hbpca::certificate::{Next, check};
use hbpca::operator::{Covariance, CovarianceOperator, Product, Products, RoundingBound, Shape};
use hbpca::solver::FixedMomentum;
use hbpca::{
    Batch, Block, ColumnStatistics, Csr, Dense, Driver, Error, FitConfig, Limits, Matrix, MomentumChoice,
    Preprocessing, Replacement, Sampler, SolverKind, Whitening,
};

/// 50×6 with eigenvalues 1, ratio, ratio², …
fn data(ratio: f64) -> Matrix<'static> {
    dense(with_spectrum(50, &geometric(6, ratio), 1).0, 6)
}

/// The text of the error a changed configuration gives on 50×6 data.
fn refused(change: impl FnOnce(&mut FitConfig)) -> String {
    let mut config = FitConfig { solver: SolverKind::VrHbPower, threads: 1, ..FitConfig::default() };
    change(&mut config);
    config.fit(&data(0.5)).unwrap_err().to_string()
}

#[test]
fn k_outside_one_to_the_smaller_side_is_refused() {
    for k in [0, 7] {
        let text = refused(|config| (config.k, config.solver) = (k, SolverKind::Covariance));
        assert_eq!(text, format!("k = {k}: 50 rows × 6 columns have from 1 to 6 components"));
    }
    let wide = dense(sparse_values(3, 5, 1.0, 1), 5);
    let text = FitConfig { k: 4, ..FitConfig::default() }.fit(&wide).unwrap_err().to_string();
    assert_eq!(text, "k = 4: 3 rows × 5 columns have from 1 to 3 components");
    let text = hbpca::solver::CovarianceSolver::new(6, 7).unwrap_err().to_string();
    assert_eq!(text, "k = 7: give a number of components from 1 to 6");
}

#[test]
fn more_than_one_component_is_refused_by_solvers_for_one() {
    for solver in SolverKind::ALL.into_iter().filter(|kind| !kind.finds_many()) {
        let text = refused(|config| (config.k, config.solver) = (2, solver));
        let want = format!(
            "k = 2: solver {solver} finds one component; choose auto, covariance, krylov, anchored or lazy-svd"
        );
        assert_eq!(text, want);
    }
}

#[test]
fn eta_outside_zero_to_one_is_refused() {
    for eta in [0.0, -0.1, 1.000_001, f64::NAN, f64::INFINITY] {
        let text = refused(|config| config.eta = Some(eta));
        assert_eq!(
            text,
            format!("eta = {eta}: the step size must lie above 0 and at most at 1; try 0.1, or auto")
        );
    }
    for solver in SolverKind::ALL.into_iter().filter(|kind| kind.has_positive_step()) {
        for eta in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            let text = refused(|config| (config.eta, config.solver) = (Some(eta), solver));
            assert_eq!(
                text,
                format!("eta = {eta}: the step size must be positive and finite; try 0.1, or auto")
            );
        }
    }
}

#[test]
fn epoch_shorter_than_two_is_refused() {
    for solver in SolverKind::ALL.into_iter().filter(|kind| kind.has_batches()) {
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
        let limits = Limits { max_passes: 5.0, ..Limits::default() };
        let config =
            FitConfig { solver: SolverKind::Power, start, limits, threads: 1, ..FitConfig::default() };
        config.fit(&data(0.9)).unwrap().model
    };
    let e1 = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(start(&[e1.map(|x| 3.0 * x), [1.0; 6]]), start(&[e1]));
}

#[test]
fn bad_weights_are_refused() {
    let x = data(0.5);
    let text = |weights: &[f64]| FitConfig::default().run().weights(weights).fit(&x).unwrap_err().to_string();
    let mut weights = [1.0; 50];
    assert_eq!(text(&weights[1..]), "row weights, one for each row: 49 given where 50 are needed");
    weights[3] = -2.0;
    assert_eq!(text(&weights), "weight = -2 (row 3): weights must be finite and not negative");
    assert_eq!(text(&[0.0; 50]), "weights = all zero: at least one row needs a positive weight");
}

#[test]
fn unknown_solver_is_refused_with_the_names() {
    let text = "svd".parse::<SolverKind>().unwrap_err().to_string();
    let names = "auto, covariance, krylov, anchored, power, power-m, oja, vr-pca, vr-pca-projected, vr-power-m, \
                 vr-hb-power, shift-invert-svrg, shift-invert-agd, lazy-svd, vr-riemannian, coordinate-power";
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
        let advice = if value.is_nan() {
            "where values are missing, choose what becomes of them (missing: drop-rows, mean or em)"
        } else {
            "drop the row or replace the value first"
        };
        let want =
            format!("row 1, column 2 (counted from 0) holds {shown}: every entry must be finite; {advice}");
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
    let text = check(&mut c, &Block::zeros(5, 1), Next::Unknown, 1e-6).unwrap_err().to_string();
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
struct Failing {
    rows: RowList,
    sums_left: usize,
    failed: bool,
}

impl CovarianceOperator for Failing {
    fn shape(&self) -> Shape {
        self.rows.shape()
    }
    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let Some(left) = self.sums_left.checked_sub(1) else {
            self.failed = true;
            return Err(Error::Source("the disk is gone".into()));
        };
        self.sums_left = left;
        self.rows.sum_rows(product, out)
    }
    fn total_variance(&self) -> f64 {
        self.rows.total_variance()
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
            let mut operator = Failing { rows: RowList(rows.clone()), sums_left: sums, failed: false };
            let result =
                Driver::new(Limits { tol: 1e-12, ..Limits::default() }).run(&mut *solver, &mut operator);
            if !operator.failed {
                assert!(result.is_ok() && sums > 0, "{kind} may be done before the disk is gone");
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
}
