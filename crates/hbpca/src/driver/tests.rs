//! Tests of the driver alone.
#![allow(clippy::float_cmp, reason = "values that are exact by construction")]

use super::*;
use crate::operator::{Capabilities, Covariance, Product};
use crate::rounding::RoundingBound;
use crate::solver::{Anchored, AnchoredSizes, Krylov, KrylovSizes, Power, Start};
use crate::stopwatch::ahead;
use crate::{Dense, Matrix, Preprocessing};

#[test]
fn squared_sines_have_no_cancellation() {
    let u = [0.6, 0.8];
    for tiny in [1e-3, 1e-9, 1e-12] {
        let w = [0.6 - 0.8 * tiny, 0.8 + 0.6 * tiny]; // u turned by arctan(tiny)
        let want = tiny * tiny / (1.0 + tiny * tiny);
        // The coordinates of w are rounded by ε/2 each.
        assert!((squared_sine(&w, &u).sqrt() - want.sqrt()).abs() <= 4.0 * f64::EPSILON);
    }
    assert_eq!(squared_sine(&[-3.0, 0.0], &[1.0, 0.0]), 0.0);
}

/// Seconds that a product takes on the clock of these tests.
const PRODUCT: f64 = 10.0;

/// An operator whose products take ten seconds each, and of which one is broken off.
struct Slow<'a> {
    covariance: Covariance<'a>,
    token: CancelToken,
    products: usize,
    /// The product in the middle of which the time is up.
    last: usize,
}

impl CovarianceOperator for Slow<'_> {
    fn shape(&self) -> Shape {
        self.covariance.shape()
    }

    fn total_variance(&self) -> f64 {
        self.covariance.total_variance()
    }

    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        self.products += 1;
        ahead::put(PRODUCT * self.products as f64);
        if self.products == self.last {
            self.token.break_off_in(0.0);
        }
        self.covariance.sum_rows(product, out)
    }

    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        None
    }
}

/// Rows with a slowly falling spectrum.
fn rows(n: usize, d: usize) -> Matrix<'static> {
    let mut values = crate::matrix::random_direction(5, n * d);
    values.iter_mut().enumerate().for_each(|(i, x)| *x *= 1.0 + 1.0 / (1.0 + (i % d) as f64));
    Dense::new(values, n, d).unwrap().into()
}

fn run(solver: &mut dyn Solver, matrix: &Matrix<'_>, limits: Limits, last: usize) -> Result<Report, Error> {
    ahead::put(0.0);
    let token = CancelToken::default();
    let covariance = Covariance::new(matrix, Preprocessing::CENTER).unwrap().abandoned_by(&token);
    let mut operator = Slow { covariance, token: token.clone(), products: 0, last };
    let report = Driver::new(limits).cancelled_by(&token).run(solver, &mut operator);
    assert!(token.go_on().is_ok(), "the time limit is lifted");
    report
}

fn solvers(n: usize, d: usize) -> Vec<Box<dyn Solver>> {
    let (block, memory) = (2, 12);
    let anchored = AnchoredSizes { block: 2, anchors: 6, batch: 10, start_rows: 20 };
    vec![
        Box::new(Power::new(d, &Start::Random { seed: 1 }).unwrap()),
        Box::new(Krylov::new(d, 2, KrylovSizes { block, memory }, 1, None).unwrap()),
        Box::new(Anchored::new(n, d, 2, anchored, 1, None).unwrap()),
    ]
}

/// A pass that is cut is thrown away: the answer is that of the look before, which a budget of so many passes ends with.
#[test]
fn a_run_whose_time_is_up_in_a_pass_returns_the_look_before() {
    let (n, d) = (60, 40);
    let matrix = rows(n, d);
    let limits = Limits { tol: 1e-14, ..Limits::default() };
    for which in 0..3 {
        // Looks of a run without a limit, by the products before each.
        let whole = run(&mut *solvers(n, d).remove(which), &matrix, Limits { max_passes: 40.0, ..limits }, 0)
            .unwrap();
        let mut cut_ones = 0;
        for last in 2..30 {
            // The run is over a product or so later, as far as it knows.
            let limits = Limits { max_seconds: PRODUCT * last as f64 + 1.0, ..limits };
            let mut solver = solvers(n, d).remove(which);
            let name = solver.name();
            let report = match run(&mut *solver, &matrix, limits, last) {
                // No driver sets a limit before its first look; here the operator does.
                Err(Error::OutOfTime) if cut_ones == 0 && last < 8 => continue,
                report => report.unwrap(),
            };
            assert_eq!(report.outcome, Outcome::Budget, "{name} {last}");
            let seen = report.history.len();
            assert!(seen >= 1 && whole.history.len() >= seen, "{name} {last}");
            for (cut, whole) in report.history.iter().zip(&whole.history) {
                assert_eq!(
                    (cut.passes, cut.theta, cut.residual),
                    (whole.passes, whole.theta, whole.residual)
                );
            }
            let (look, passes) = (report.history.last().unwrap(), report.passes);
            assert!(passes >= look.passes && report.certificate.eigenvalues.len() == report.vectors.p());
            // The vectors have the residuals that the certificate says.
            let mut c = Covariance::new(&matrix, Preprocessing::CENTER).unwrap();
            let mut images = Block::zeros(0, 0);
            c.apply(&report.vectors, &mut images).unwrap();
            let theta = &report.certificate.eigenvalues;
            let measured = crate::linalg::residual_norms(&report.vectors, &images, theta);
            for (measured, claimed) in measured.iter().zip(&report.certificate.residuals) {
                assert!(measured <= &(claimed * (1.0 + 1e-9)), "{name} {last}: {measured:e} {claimed:e}");
            }
            let short = run(
                &mut *solvers(n, d).remove(which),
                &matrix,
                Limits { max_passes: look.passes, ..limits },
                0,
            );
            let short = short.unwrap();
            if short.history.len() == seen {
                assert_eq!(short.vectors, report.vectors, "{name} {last}");
                cut_ones += 1;
            }
        }
        assert!(cut_ones > 5, "{which}: {cut_ones}");
    }
}

#[test]
fn a_limit_that_is_far_away_changes_no_bit() {
    let (n, d) = (60, 40);
    let matrix = rows(n, d);
    let limits = Limits { tol: 1e-9, ..Limits::default() };
    for which in 0..3 {
        let [without, with] = [f64::INFINITY, 1e9].map(|max_seconds| {
            let mut solver = solvers(n, d).remove(which);
            run(&mut *solver, &matrix, Limits { max_seconds, ..limits }, 0).unwrap()
        });
        assert_eq!((without.vectors, without.passes), (with.vectors, with.passes));
    }
}
