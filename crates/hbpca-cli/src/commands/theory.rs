//! `hbpca theory`: what the paper's analysis says about a problem.

use hbpca::theory::{Contraction, Method, Problem, best_step_size, best_step_size_vr_pca};
use serde::Serialize;

use crate::args::TheoryArgs;
use crate::exit::{Exit, Failure};
use crate::output::table::{Side, Table};
use crate::output::{self, json, number};

/// One method with one step size.
#[derive(Serialize)]
struct Row {
    method: &'static str,
    eta: f64,
    /// Whether η is the best one for this method.
    best: bool,
    g: f64,
    h: f64,
    rate: f64,
    /// Epochs that win one decimal digit of Σ(u_kᵀw)²/(u₁ᵀw)²; nothing where the method does not converge.
    epochs_per_digit: Option<f64>,
}

#[derive(Serialize)]
struct Object<'a> {
    lambda1: f64,
    lambda2: f64,
    variance: f64,
    epoch: usize,
    methods: &'a [Row],
}

/// Runs `hbpca theory`.
pub fn run(args: &TheoryArgs) -> Result<Exit, Failure> {
    let refused = |error: hbpca::Error| Failure::Usage(error.to_string());
    let problem = Problem::new(args.lambda1, args.lambda2, args.variance, args.epoch).map_err(refused)?;
    let rows = rows(&problem, &args.eta).map_err(refused)?;
    if args.json.json {
        let (lambda1, lambda2) = (problem.lambda1(), problem.lambda2());
        let (variance, epoch) = (problem.variance(), problem.epoch());
        json::print(&Object { lambda1, lambda2, variance, epoch, methods: &rows })?;
    } else {
        output::print(&report(&problem, &rows))?;
    }
    Ok(Exit::Success)
}

fn rows(problem: &Problem, etas: &[f64]) -> Result<Vec<Row>, hbpca::Error> {
    let (plain, heavy) = (best_step_size_vr_pca(problem), best_step_size(problem));
    let mut rows = Vec::new();
    for eta in etas {
        let method = Method::VrPca { eta: *eta };
        rows.push(row("vr-pca", *eta, false, problem.contraction(method)?));
    }
    rows.push(row("vr-pca", plain.eta, true, plain.contraction));
    rows.push(row("vr-power-m", 1.0, false, problem.contraction(Method::VrPowerM)?));
    for eta in etas {
        let method = Method::VrHbPower { eta: *eta };
        rows.push(row("vr-hb-power", *eta, false, problem.contraction(method)?));
    }
    rows.push(row("vr-hb-power", heavy.eta, true, heavy.contraction));
    Ok(rows)
}

fn row(method: &'static str, eta: f64, best: bool, contraction: Contraction) -> Row {
    let epochs = std::f64::consts::LN_10 / -contraction.ln_rate;
    Row {
        method,
        eta,
        best,
        g: contraction.g,
        h: contraction.h,
        rate: contraction.rate(),
        epochs_per_digit: (contraction.ln_rate < 0.0).then_some(epochs),
    }
}

fn report(problem: &Problem, rows: &[Row]) -> String {
    let mut table = Table::new(&[
        ("method", Side::Left),
        ("η", Side::Right),
        ("g", Side::Right),
        ("h", Side::Right),
        ("ρ = g + h", Side::Right),
        ("epochs per digit", Side::Right),
        ("", Side::Left),
    ]);
    for row in rows {
        table.row([
            row.method.into(),
            number::short(row.eta),
            number::short(row.g),
            number::short(row.h),
            number::short(row.rate),
            row.epochs_per_digit.map_or_else(|| "diverges".into(), number::short),
            if row.best { "best η".into() } else { String::new() },
        ]);
    }
    format!(
        "λ₁ = {}, λ₂ = {}, K = {}, m = {}\n\n{}\nρ multiplies the squared error over one epoch: g without noise, h from the noise of the batches\n",
        problem.lambda1(),
        problem.lambda2(),
        problem.variance(),
        problem.epoch(),
        table.render()
    )
}
