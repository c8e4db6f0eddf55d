//! `hbpca demo`: every solver on a small real data set that ships inside the program.

use std::io::Write;
use std::path::Path;

use hbpca::operator::Covariance;
use hbpca::theory::{GradientVariance, Problem};
use hbpca::{
    Batch, CancelToken, ColumnStatistics, Driver, Fit, FitConfig, Limits, Matrix, MomentumChoice, Outcome,
    Preprocessing, RowMap, SolverKind,
};
use serde::Serialize;

use super::sample::digits;
use crate::args::DemoArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Running;
use crate::output::page::{Page, Run};
use crate::output::say::Verbosity;
use crate::output::table::{Side, Table};
use crate::output::{self, json, number};
use crate::plan;

const DATA: &str = "The data: 1,797 handwritten digits of 8 × 8 pixels (64 columns), every column scaled to mean 0 and \
    standard deviation 1.";
const SOURCE: &str = "Data: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning \
    Repository, 1998, doi.org/10.24432/C50P49, CC BY 4.0.";

const PREPROCESSING: Preprocessing = Preprocessing::STANDARDIZE;
/// Components of the reference, for the scree plot.
const SPECTRUM: usize = 20;
/// The paper's larger setting: batches of 5 % of the rows, m = 20.
const BATCH: Batch = Batch::Share(0.05);
const EPOCH: usize = 20;

/// `hbpca demo --json`.
#[derive(Serialize)]
struct Object<'a> {
    solvers: Vec<Row<'a>>,
    output: &'a Path,
}

#[derive(Serialize)]
struct Row<'a> {
    solver: &'a str,
    passes: f64,
    seconds: f64,
    /// 1 − (wᵀu₁)².
    error: f64,
    outcome: &'a str,
}

impl<'a> Object<'a> {
    fn of(runs: &'a [Run], output: &'a Path) -> Self {
        let row = |run: &'a Run| Row {
            solver: run.name,
            passes: run.passes,
            seconds: run.seconds,
            error: run.error,
            outcome: &run.outcome,
        };
        Self { solvers: runs.iter().map(row).collect(), output }
    }
}

/// Runs `hbpca demo`.
pub fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads, Verbosity::Normal)?;
    plan::refuse_misleading_name("--output", &args.output, "a page", &["html", "htm"])?;
    let mut file = plan::create(&args.output)?;
    let refused = |error: hbpca::Error| Failure::refused(&error, "digits");
    let matrix = digits()?.matrix;
    let problem = Demo::prepare(&matrix).map_err(refused)?;
    let runs = SolverKind::ALL.into_iter().map(|solver| problem.run(solver));
    let runs: Vec<Run> = runs.collect::<Result<_, _>>().map_err(refused)?;

    let name = args.output.display();
    if args.json.json {
        json::print(&Object::of(&runs, &args.output))?;
    } else {
        output::print(&format!("{DATA}\n\n{}\n{name} shows how each of them got there.\n", table(&runs)))?;
    }
    let page = problem.page(runs).render();
    file.write_all(page.as_bytes()).map_err(|error| Failure::output(name, error))?;
    file.commit()?;
    Ok(if problem.cancel.is_cancelled() { crate::interrupt::exit() } else { Exit::Success })
}

/// The digits and all that is known about them beforehand.
struct Demo<'a> {
    matrix: &'a Matrix<'a>,
    map: RowMap,
    limits: Limits,
    cancel: CancelToken,
    /// The answer, from C itself.
    reference: Fit,
    /// λ₁, λ₂, K and m, from which the theory chooses step sizes.
    problem: Problem,
}

impl<'a> Demo<'a> {
    fn prepare(matrix: &'a Matrix<'a>) -> Result<Self, hbpca::Error> {
        let map = PREPROCESSING.row_map(&ColumnStatistics::new(matrix)?);
        let limits = Limits { tol: 1e-6, max_passes: 100.0, ..Limits::default() };
        let config = FitConfig {
            k: SPECTRUM,
            solver: SolverKind::Covariance,
            preprocessing: PREPROCESSING,
            ..FitConfig::default()
        };
        let reference = config.fit(matrix)?;
        let [lambda1, lambda2] = [0, 1].map(|i| reference.model.eigenvalues()[i]);
        let variance = GradientVariance::measure(matrix, &map, 0.01, 0)?;
        let variance = variance.of_batch(BATCH.rows(matrix.n_rows())?, config.replacement)?;
        let problem = Problem::new(lambda1, lambda2, variance, EPOCH)?;
        Ok(Self { matrix, map, limits, cancel: CancelToken::default(), reference, problem })
    }

    fn config(&self, solver: SolverKind) -> FitConfig {
        let eta = solver.best_step_size(&self.problem);
        let momentum = MomentumChoice::Oracle(self.problem.lambda2());
        FitConfig {
            solver,
            eta,
            momentum,
            batch: BATCH,
            epoch: EPOCH,
            limits: self.limits,
            ..FitConfig::default()
        }
    }

    fn run(&self, kind: SolverKind) -> Result<Run, hbpca::Error> {
        let config = self.config(kind);
        let mut solver = config.solver(self.matrix.n_rows(), self.matrix.n_cols())?;
        let mut operator = Covariance::with_map(self.matrix, self.map.clone());
        let running = Running::with(&self.cancel);
        let report = Driver::new(config.limits)
            .cancelled_by(&self.cancel)
            .reference(self.reference.model.component(0))
            .run(&mut *solver, &mut operator)?;
        drop(running);
        // The answer is the iterate with the smallest residual.
        let best = report.history.iter().min_by(|a, b| a.residual.total_cmp(&b.residual));
        Ok(Run {
            name: kind.name(),
            parameters: parameters(&solver.parameters(), kind),
            passes: report.passes,
            seconds: report.seconds,
            error: best.and_then(|record| record.error).unwrap_or(1.0),
            outcome: verdict(report.outcome).into(),
            curve: report.history.iter().filter_map(|record| Some((record.passes, record.error?))).collect(),
        })
    }

    fn page(&self, runs: Vec<Run>) -> Page {
        let ratio = self.problem.lambda2() / self.problem.lambda1();
        Page {
            data: DATA.into(),
            source: SOURCE.into(),
            task: format!(
                "The task: the first principal component, until the residual is below 1e-6 of the eigenvalue, in at \
                 most 100 passes over the data. λ₂/λ₁ = {}. Momentum uses the true λ₂, step sizes are those that the theory \
                 calls best for batches of 5 % and epochs of {EPOCH} steps.",
                number::short(ratio)
            ),
            runs,
            eigenvalues: self.reference.model.eigenvalues().to_vec(),
            ratios: self.reference.model.explained_variance_ratio(),
        }
    }
}

fn verdict(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Converged => "converged",
        Outcome::Stagnated => "stagnated",
        Outcome::Interrupted => "interrupted",
        _ => "not converged",
    }
}

fn parameters(step: &hbpca::solver::StepParameters, kind: SolverKind) -> String {
    let eta = step.eta.filter(|_| kind != SolverKind::Oja).map(|eta| format!("η = {}", number::short(eta)));
    let falling = (kind == SolverKind::Oja).then(|| "η falling".to_owned());
    let beta = step.beta.map(|beta| format!("β = {}", number::short(beta)));
    [eta, falling, beta].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn table(runs: &[Run]) -> String {
    let mut table = Table::new(&[
        ("solver", Side::Left),
        ("passes", Side::Right),
        ("seconds", Side::Right),
        ("error", Side::Right),
        ("converged", Side::Left),
    ]);
    for run in runs {
        let converged = if run.outcome == verdict(Outcome::Converged) { "yes" } else { "no" };
        table.row([
            run.name.into(),
            number::short(run.passes),
            format!("{:.4}", run.seconds),
            number::small(run.error),
            converged.into(),
        ]);
    }
    table.render()
}
