//! Every public trait with the smallest type that satisfies it: traits ask for no more than they say.

#![allow(clippy::unwrap_used, clippy::float_cmp, clippy::cast_possible_wrap, reason = "tests count small")]

mod common;

use std::ops::{ControlFlow, Range};

use common::{RowList, geometric, with_spectrum};
use hbpca::certificate::Next;
use hbpca::checkpoint::{Archive, CheckpointSink, Paused, Progress};
use hbpca::operator::{
    Capabilities, CovarianceOperator, ExplicitCovariance, ExplicitRowGram, FirstPass, OperatorState,
    Precision, Product, Products, RoundingBound, RowGram, RowSpectrum, Shape,
};
use hbpca::solver::{
    Anchored, AnchoredSizes, CovarianceSolver, Krylov, KrylovSizes, Momentum, Pairs, Power, PowerM, Solver,
    Start,
};
use hbpca::{
    Block, Dense, Driver, Error, Event, FitConfig, Limits, Matrix, Outcome, Preprocessing, RowChunks,
    SolverKind,
};

const N: usize = 40;
const D: usize = 6;

fn rows() -> Vec<Vec<f64>> {
    with_spectrum(N, &geometric(D, 0.5), 1).0.chunks(D).map(<[f64]>::to_vec).collect()
}

/// What an operator was asked for.
#[derive(Default)]
struct Asked {
    products: Vec<Precision>,
    batches: Vec<Vec<usize>>,
    formed: usize,
    grams: usize,
    combined: usize,
    spectra: usize,
    first: usize,
}

/// One capability on top of rows in a list.
#[derive(Clone, Copy, PartialEq)]
enum Has {
    Nothing,
    SinglePrecision,
    ResidentRows,
    FirstPass,
    ExplicitCovariance,
    RowGram,
    ExplicitRowGram,
    State,
}

/// Rows in a list, with one capability.
struct Capable {
    rows: RowList,
    has: Has,
    asked: Asked,
    resident: Vec<usize>,
    /// What it remembers.
    passes: u64,
}

impl Capable {
    fn new(has: Has) -> Self {
        let resident = (0..N).step_by(2).collect();
        Self { rows: RowList(rows()), has, asked: Asked::default(), resident, passes: 0 }
    }

    /// AᵀU.
    fn combined(&self, u: &Block) -> Block {
        let mut out = Block::zeros(D, u.p());
        for (l, a) in self.rows.0.iter().enumerate() {
            for (j, a) in a.iter().enumerate() {
                (0..u.p()).for_each(|c| out.values_mut()[j * u.p() + c] += a * u.get(l, c));
            }
        }
        out
    }

    fn run(&mut self, solver: &mut dyn Solver) -> hbpca::Report {
        let report = Driver::new(Limits { tol: 1e-9, ..Limits::default() }).run(solver, self).unwrap();
        assert_eq!(report.outcome, Outcome::Converged, "{}", solver.name());
        assert!((report.certificate.eigenvalues[0] - 1.0).abs() <= 1e-9, "λ₁ = 1");
        report
    }
}

impl CovarianceOperator for Capable {
    fn shape(&self) -> Shape {
        self.rows.shape()
    }
    fn total_variance(&self) -> f64 {
        self.rows.total_variance()
    }
    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        match product.rows {
            hbpca::operator::Rows::All => self.asked.products.push(product.precision),
            hbpca::operator::Rows::Batch(rows) => self.asked.batches.push(rows.to_vec()),
        }
        self.passes += 1;
        let rounding = self.rows.sum_rows(product, out)?;
        // Products in single precision say that they are no better.
        let single = self.has == Has::SinglePrecision && product.precision == Precision::Single;
        Ok(if single { RoundingBound::new(1e-6) } else { rounding })
    }
    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        (self.has != Has::Nothing).then_some(self as _)
    }
}

impl Capabilities for Capable {
    fn single_precision(&mut self) -> bool {
        self.has == Has::SinglePrecision
    }
    fn resident_rows(&mut self) -> Option<&[usize]> {
        (self.has == Has::ResidentRows).then_some(&self.resident)
    }
    fn first_pass(&mut self) -> Option<&mut dyn FirstPass> {
        (self.has == Has::FirstPass && self.asked.first == 0).then_some(self as _)
    }
    fn explicit_covariance(&mut self) -> Option<&mut dyn ExplicitCovariance> {
        (self.has == Has::ExplicitCovariance).then_some(self as _)
    }
    fn row_gram(&mut self) -> Option<&mut dyn RowGram> {
        (self.has == Has::RowGram).then_some(self as _)
    }
    fn explicit_row_gram(&mut self) -> Option<&mut dyn ExplicitRowGram> {
        (self.has == Has::ExplicitRowGram).then_some(self as _)
    }
    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        (self.has == Has::State).then_some(self as _)
    }
}

impl FirstPass for Capable {
    fn first_image(&mut self, x: &mut Block, z: &mut Block) -> Result<RoundingBound, Error> {
        self.asked.first += 1;
        self.rows.apply(x, z)
    }
}

impl ExplicitCovariance for Capable {
    fn covariance(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        self.asked.formed += 1;
        self.rows.form(precision, c)
    }
}

impl RowGram for Capable {
    fn apply_gram(&mut self, u: &Block, out: &mut Block) -> Result<RoundingBound, Error> {
        self.asked.grams += 1;
        let v = self.combined(u);
        *out = Block::zeros(N, u.p());
        for (l, a) in self.rows.0.iter().enumerate() {
            for c in 0..u.p() {
                let dot: f64 = a.iter().enumerate().map(|(j, a)| a * v.get(j, c)).sum();
                out.values_mut()[l * u.p() + c] = dot / N as f64;
            }
        }
        Ok(RoundingBound::new((N + D) as f64 * f64::EPSILON * self.total_variance()))
    }
    fn combine_rows(&mut self, u: &Block, out: &mut Block) -> Result<(), Error> {
        self.asked.combined += 1;
        *out = self.combined(u);
        Ok(())
    }
}

impl ExplicitRowGram for Capable {
    fn leading(&mut self, k: usize) -> Result<RowSpectrum, Error> {
        self.asked.spectra += 1;
        let fit = FitConfig { k, solver: SolverKind::Covariance, ..FitConfig::default() };
        let fit = fit.fit_operator(&mut self.rows)?;
        Ok(RowSpectrum::new(fit.model.vectors(), fit.model.eigenvalues().to_vec()))
    }
}

impl OperatorState for Capable {
    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.count("passes", &mut self.passes)
    }
}

fn krylov() -> Krylov {
    Krylov::new(D, 1, KrylovSizes { block: 2, memory: 6 }, 0, None).unwrap()
}

fn anchored() -> Anchored {
    let sizes = AnchoredSizes { block: 2, anchors: 4, batch: 5, start_rows: 10 };
    Anchored::new(N, D, 1, sizes, 0, None).unwrap()
}

#[test]
fn products_alone_are_enough_for_every_solver_and_make_a_model() {
    for solver in SolverKind::ALL {
        let config = FitConfig { solver, epoch: 5, ..FitConfig::default() };
        let mut operator = Capable::new(Has::Nothing);
        let fit = config.fit_operator(&mut operator).unwrap();
        assert!(fit.outcome == Outcome::Converged || solver == SolverKind::Oja, "{solver}");
        assert_eq!((fit.model.summary().n, fit.model.n_features()), (N, D));
        assert_eq!(fit.model.summary().preprocessing, Preprocessing::NONE);
        let (theta, residual) = (fit.model.eigenvalues()[0], fit.certificate.residuals[0]);
        assert!(geometric(D, 0.5).iter().any(|lambda| (lambda - theta).abs() <= residual), "{solver}");
    }
}

#[test]
fn weights_are_refused_where_they_would_be_ignored() {
    let (config, weights) = (FitConfig::default(), [1.0; N]);
    let error =
        config.run().weights(&weights[..]).fit_operator(&mut RowList(rows())).unwrap_err().to_string();
    assert!(error.starts_with("weights = 40 numbers: an operator cannot take any"), "{error}");
    let rows = Elsewhere(rows().concat());
    let fit = config.run().weights(&weights[..]).fit_streamed(rows, 64 << 20).unwrap();
    assert_eq!(fit.model.summary().weight, 40.0);
}

#[test]
fn a_bound_that_bounds_nothing_never_converges() {
    for bound in [-1.0, f64::NAN, f64::NEG_INFINITY] {
        assert_eq!(RoundingBound::new(bound).of_image(), f64::INFINITY);
    }
}

#[test]
fn single_precision_is_asked_for_where_it_is_offered_and_double_at_the_end() {
    let mut offers = Capable::new(Has::SinglePrecision);
    offers.run(&mut krylov());
    assert_eq!(offers.asked.products.first(), Some(&Precision::Single));
    assert_eq!(offers.asked.products.last(), Some(&Precision::Double));
    let mut plain = Capable::new(Has::Nothing);
    plain.run(&mut krylov());
    assert!(plain.asked.products.iter().all(|precision| *precision == Precision::Double));
}

#[test]
fn mini_batches_come_from_resident_rows_alone() {
    let mut operator = Capable::new(Has::ResidentRows);
    operator.run(&mut anchored());
    assert!(!operator.asked.batches.is_empty());
    assert!(operator.asked.batches.iter().flatten().all(|row| row % 2 == 0));
}

#[test]
fn the_first_image_is_the_first_pass_and_counted() {
    for solver in [&mut krylov() as &mut dyn Solver, &mut anchored()] {
        let mut operator = Capable::new(Has::FirstPass);
        let report = operator.run(solver);
        assert_eq!(operator.asked.first, 1);
        assert_eq!(report.read.full_passes, 1 + operator.asked.products.len() as u64);
    }
}

#[test]
fn c_is_formed_in_one_pass_where_that_is_offered() {
    let mut operator = Capable::new(Has::ExplicitCovariance);
    let report = operator.run(&mut CovarianceSolver::new(D, 1).unwrap());
    assert_eq!((operator.asked.formed, report.read.full_passes, operator.asked.products.len()), (1, 1, 0));
}

#[test]
fn the_row_gram_matrix_serves_krylov_until_rows_are_combined() {
    let mut operator = Capable::new(Has::RowGram);
    let report = operator.run(&mut krylov().beginning_with_rows(N).unwrap());
    let Asked { grams, combined, products, .. } = &operator.asked;
    assert!(*grams > 0 && *combined == 1 && !products.is_empty());
    assert_eq!(report.read.full_passes, (2 * grams + combined + products.len()) as u64);
    // Without the capability it works on C from the start.
    Capable::new(Has::Nothing).run(&mut krylov().beginning_with_rows(N).unwrap());
}

#[test]
fn the_spectrum_of_the_row_gram_matrix_serves_covariance() {
    let mut operator = Capable::new(Has::ExplicitRowGram);
    let report = operator.run(&mut CovarianceSolver::new(D, 1).unwrap());
    assert_eq!((operator.asked.spectra, operator.asked.products.len(), report.read.full_passes), (1, 1, 3));
}

/// Remembers the first paused run.
#[derive(Default)]
struct First(Option<Paused>);

impl CheckpointSink for First {
    fn wants(&mut self, _progress: Progress) -> bool {
        self.0.is_none()
    }
    fn save(&mut self, paused: Paused) -> Result<(), Error> {
        self.0 = Some(paused);
        Ok(())
    }
}

#[test]
fn what_an_operator_remembers_is_saved_and_given_back() {
    let limits = Limits { tol: 1e-9, ..Limits::default() };
    let (mut operator, mut first) = (Capable::new(Has::State), First::default());
    let whole = Driver::new(limits).checkpoints(&mut first).run(&mut krylov(), &mut operator).unwrap();
    let mut resumed = Capable::new(Has::State);
    let paused = first.0.unwrap();
    let rest = Driver::new(limits).resuming(paused).run(&mut krylov(), &mut resumed).unwrap();
    assert_eq!((rest.vectors, rest.passes), (whole.vectors, whole.passes));
    assert_eq!(resumed.passes, operator.passes);
}

/// w ← the first unit vector, for ever.
struct Stubborn(Block, Block);

impl Solver for Stubborn {
    fn name(&self) -> &'static str {
        "stubborn"
    }
    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        operator.apply(&self.0, &mut self.1).map(drop)
    }
    fn pairs(&mut self) -> Pairs<'_> {
        Pairs::new(&self.0, &self.1, 0.0, Next::Unknown)
    }
    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        Ok(())
    }
    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        1.0
    }
    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.block("w", &mut self.0)
    }
}

#[test]
fn a_solver_that_gets_nowhere_ends_with_its_budget() {
    let mut solver =
        Stubborn(Block::from_vector([1.0].into_iter().chain([0.0; D - 1]).collect()), Block::zeros(D, 1));
    let mut looks = 0;
    let mut count = |event: &Event<'_>| {
        looks += usize::from(matches!(event, Event::Looked { .. }));
        ControlFlow::Continue(())
    };
    let limits = Limits { max_passes: 7.0, ..Limits::default() };
    let mut driver = Driver::new(limits).observer(&mut count);
    let report = driver.run(&mut solver, &mut RowList(rows())).unwrap();
    drop(driver);
    assert_eq!((report.outcome, report.read.full_passes, looks), (Outcome::Budget, 7, 7));
}

/// β = 0.
#[derive(Debug)]
struct NoMomentum;

impl Momentum for NoMomentum {
    fn observe(&mut self, _w_tilde: &Block, _g_tilde: &Block) {}
    fn lambda2(&self) -> Option<f64> {
        None
    }
    fn beta(&self, _eta: f64) -> f64 {
        0.0
    }
}

#[test]
fn power_with_no_momentum_is_power() {
    let start = Start::Random { seed: 1 };
    let mut with = PowerM::new(D, Box::new(NoMomentum), &start).unwrap();
    let mut without = Power::new(D, &start).unwrap();
    let [a, b] = [&mut with as &mut dyn Solver, &mut without].map(|solver| {
        Driver::new(Limits { tol: 1e-9, ..Limits::default() }).run(solver, &mut RowList(rows())).unwrap()
    });
    assert_eq!(a.passes, b.passes);
}

/// Rows in memory that pretend to be elsewhere.
struct Elsewhere(Vec<f64>);

impl RowChunks for Elsewhere {
    fn n_rows(&self) -> usize {
        N
    }
    fn n_cols(&self) -> usize {
        D
    }
    fn nnz(&self) -> usize {
        N * D
    }
    fn is_sparse(&self) -> bool {
        false
    }
    fn bytes(&self) -> u64 {
        (8 * N * D) as u64
    }
    fn starts(&self) -> &[usize] {
        &[0, 15, N]
    }
    fn read_chunk(&mut self, i: usize, _recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        self.read_rows(self.starts()[i]..self.starts()[i + 1])
    }
    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        Ok(Dense::new(self.0[rows.start * D..rows.end * D].to_vec(), rows.len(), D)?.into())
    }
}

#[test]
fn rows_elsewhere_are_fitted_like_rows_here() {
    let values: Vec<f64> = rows().concat();
    let here: Matrix = Dense::new(values.clone(), N, D).unwrap().into();
    let config = FitConfig { k: 2, ..FitConfig::default() };
    let want = config.fit(&here).unwrap();
    let got = config.run().fit_streamed(Elsewhere(values), 64 << 20).unwrap();
    for (got, want) in got.model.eigenvalues().iter().zip(want.model.eigenvalues()) {
        assert!((got - want).abs() <= 1e-12 * want, "{got} {want}");
    }
}
