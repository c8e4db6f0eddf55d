//! `hbpca theory`: what the paper's analysis says about a problem.

use hbpca::theory::{
    Contraction, LiteralBound, Method, NoisyPower, Problem, best_step_size, best_step_size_vr_pca,
};
use serde::Serialize;

use crate::args::TheoryArgs;
use crate::exit::{Exit, Failure};
use crate::output::table::{Side, Table};
use crate::output::{self, json, number};
use crate::plan;

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
    /// 4√K/Δ: the tangent that power iteration with batches in place of C ends at.
    noise_floor: f64,
    /// The theorem's own bound, where --dimension is given.
    bound: Option<&'a Bound>,
}

/// The theorem's bound, with every constant of its proof.
#[derive(Serialize)]
struct Bound {
    dimension: usize,
    worst_batch: f64,
    /// η̄(K); nothing where no step that f64 can hold is small enough.
    largest_step: Option<f64>,
    /// η₂(K), where ρ is smallest.
    best_step: Option<f64>,
    /// 1 − ρ(η₂, K).
    progress: Option<f64>,
    /// log₁₀ of the first coefficients of P₁,ₘ at η₂, or at 1.
    log10_coefficients: Vec<f64>,
    /// Its degree.
    degree: usize,
    /// log₁₀ ρ of VR-PCA with the same step.
    log10_rate_vr_pca: f64,
}

impl Bound {
    /// Coefficients that are shown.
    const SHOWN: usize = 4;

    fn of(
        bound: &LiteralBound,
        dimension: usize,
        worst_batch: f64,
        epoch: usize,
    ) -> Result<Self, hbpca::Error> {
        let (best, largest_step) = (bound.best_step_size(), bound.largest_step_size());
        let eta = best.map_or(1.0, |best| best.eta);
        let polynomial = bound.polynomial_up_to(Method::VrHbPower { eta }, Self::SHOWN)?;
        let degree = epoch - 1;
        let log10 = |ln: f64| ln / std::f64::consts::LN_10;
        Ok(Self {
            dimension,
            worst_batch,
            largest_step,
            best_step: best.map(|best| best.eta),
            progress: best.map(|best| -best.rate.ln_rate.exp_m1()),
            log10_coefficients: (1..=polynomial.degree())
                .map(|l| log10(polynomial.ln_coefficient(l)))
                .collect(),
            degree,
            log10_rate_vr_pca: log10(bound.rate_of(Method::VrPca { eta })?.ln_rate),
        })
    }

    fn report(&self) -> String {
        let head = format!(
            "The theorem's own bound, with every constant of its proof, for d = {} and max ‖C_S − C‖²/K = {}:",
            self.dimension,
            number::short(self.worst_batch)
        );
        let power = |x: &f64| format!("10^{x:.1}");
        let coefficients: Vec<String> = self.log10_coefficients.iter().map(power).collect();
        let at = self.best_step.unwrap_or(1.0);
        let polynomial = format!(
            "P₁,ₘ(K) has degree {} and, at η = {}, coefficients {}{}",
            self.degree,
            number::short(at),
            coefficients.join(", "),
            if self.degree > Self::SHOWN { ", …" } else { "" }
        );
        let steps = match (self.largest_step, self.best_step, self.progress) {
            (Some(largest), Some(best), Some(progress)) => format!(
                "ρ(η, K) < 1 for every η up to η̄(K) = {}; it is smallest, 1 − {}, at η₂(K) = {},\nand every η from some η₁ to η₂ has a rate of at most ρ(η₁, K)",
                number::short(largest),
                number::small(progress),
                number::short(best)
            ),
            _ => "ρ(η, K) is below 1 for no step that double precision can hold: epochs are too long for this proof".into(),
        };
        format!("{head}\n{steps}\n{polynomial}\n")
    }
}

/// Runs `hbpca theory`.
pub fn run(args: &TheoryArgs) -> Result<Exit, Failure> {
    let refused = |error: hbpca::Error| Failure::Usage(error.to_string());
    let problem = Problem::new(args.lambda1, args.lambda2, args.variance, args.epoch).map_err(refused)?;
    let rows = rows(&problem, &args.eta).map_err(refused)?;
    let literal = match args.dimension.zip(args.worst_batch) {
        Some((d, worst)) => Some(LiteralBound::new(problem, d, worst).map_err(refused)?),
        None => None,
    };
    let bound = match (&literal, args.dimension.zip(args.worst_batch)) {
        (Some(literal), Some((d, worst))) => {
            Some(Bound::of(literal, d, worst, problem.epoch()).map_err(refused)?)
        }
        _ => None,
    };
    let noise_floor =
        NoisyPower::new(args.lambda1, args.lambda2).map_err(refused)?.floor(args.variance.sqrt());
    if let Some(path) = &args.output {
        // Begun and given up: an output that cannot be written is said to be before anything is drawn.
        drop(plan::create(path)?);
        hbpca_lab::plots::write(&hbpca_lab::plots::rates(&problem, literal.as_ref()), path)?;
    }
    if args.json.json {
        let (lambda1, lambda2) = (problem.lambda1(), problem.lambda2());
        let (variance, epoch) = (problem.variance(), problem.epoch());
        let (methods, bound) = (&rows[..], bound.as_ref());
        json::print(&Object { lambda1, lambda2, variance, epoch, methods, noise_floor, bound })?;
    } else {
        let bound = bound.map_or_else(String::new, |bound| format!("\n{}", bound.report()));
        output::print(&format!("{}{}{bound}", report(&problem, &rows), floor(noise_floor)))?;
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

/// What a method without variance reduction is promised.
fn floor(tangent: f64) -> String {
    let value = number::short(tangent);
    if tangent == 0.0 {
        String::new()
    } else if tangent < 1.0 {
        format!(
            "Power iteration with such batches in place of C, were none off by more than √K, ends at a tangent of at most 4√K/Δ = {value} (Hardt & Price)\n"
        )
    } else {
        format!(
            "Power iteration with such batches in place of C is promised nothing: 4√K/Δ = {value} (Hardt & Price)\n"
        )
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
