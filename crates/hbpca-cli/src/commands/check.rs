//! `hbpca check`: a model's claims, tested on the data by a pass of their own.
//!
//! The column statistics are gathered anew and the products Cw are computed anew; from the file come only the vectors and
//! what it says about them. With T = tol·θ₁ the model holds if
//!
//! - every component has a residual ρᵢ ≤ tol·θᵢ or no variance to rounding, and the vectors are orthonormal to tol: k different eigenpairs;
//! - a probe with random vectors finds no variance beside them that would make them other than the leading ones;
//! - the stored eigenvalues are the data's, each to tol·θᵢ or its rounding;
//! - the stored preparation is the data's: means that are off by δ (in scaled units) change C by δδᵀ, so ‖δ‖² ≤ T; divisors
//!   that are off by a factor 1 + e change it by 2|e|θ₁ at most to first order, so 2|e| ≤ tol;
//! - it was fitted on as many rows.

use hbpca::certificate::Certainty;
use hbpca::operator::{Covariance, CovarianceOperator};
use hbpca::probe::{ProbeConfig, ProbeResult, ProbeSeed, probe};
use hbpca::{Block, Certificate, ColumnStatistics, Model, Next, RowMap};
use hbpca_io::StoredModel;
use serde::Serialize;

use crate::args::CheckArgs;
use crate::exit::{Exit, Failure};
use crate::output::progress::Spinner;
use crate::output::say::Verbosity;
use crate::output::table::facts;
use crate::output::{self, certainty, json, number};
use crate::plan::{self, Loaded, Source};

/// `hbpca check --json`.
#[derive(Serialize)]
struct Object {
    schema: u32,
    holds: bool,
    /// Whether the components are the leading ones: `proved`, `probability`, `unverified` or `refuted`.
    leading: Leading,
    tol: f64,
    n: usize,
    d: usize,
    k: usize,
    eigenvalues: Vec<f64>,
    stored_eigenvalues: Vec<f64>,
    total_variance: f64,
    probe_passes: u64,
    probe_seed: Option<u64>,
    #[serde(skip)]
    probe: Option<ProbeResult>,
    certificate: Certificate,
    /// What does not hold, in words.
    faults: Vec<String>,
}

/// What is known of whether the components lead.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Leading {
    Proved,
    Probability,
    Unverified,
    Refuted,
}

/// Runs `hbpca check`.
pub fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads)?;
    let verbosity = Verbosity::from(&args.verbosity);
    let StoredModel { model, origin } = plan::open_model(&args.model)?;
    let tol = args.tol.unwrap_or(origin.tol);
    if !(0.0..1.0).contains(&tol) {
        return Err(Failure::Usage(format!("--tol {tol}: the relative tolerance lies from 0 up to below 1")));
    }
    let failure_probability = args.certify;
    if !(failure_probability > 0.0 && failure_probability <= 0.5) {
        let advice = "a probability of failure lies above 0 and at most at 0.5; try 1e-9";
        return Err(Failure::Usage(format!("--certify {failure_probability}: {advice}")));
    }
    let seed = args.seed.map_or(ProbeSeed::FromSystem, ProbeSeed::Given);
    let probing = ProbeConfig { failure_probability, seed, ..ProbeConfig::default() };
    let mut source = Source::find(&args.data)?;
    source.for_model(&model);
    let loaded = source.read(verbosity)?;
    let spinner = Spinner::new(verbosity, "checking");
    let object = examine(&model, &loaded, tol, &probing)?;
    drop(spinner);
    if args.json {
        json::print(&object)?;
    } else {
        output::print_report(&report(&object, &args.model.display().to_string(), &loaded.name))?;
    }
    Ok(if object.holds { Exit::Success } else { Exit::NotConverged })
}

fn examine(model: &Model, loaded: &Loaded, tol: f64, probing: &ProbeConfig) -> Result<Object, Failure> {
    let refused = |error| Failure::refused(&error, &loaded.name);
    let matrix = &loaded.data.matrix;
    let (d, k) = (model.n_features(), model.n_components());
    if matrix.n_cols() != d {
        return Err(refused(hbpca::Error::shape("columns, as the model has", d, matrix.n_cols())));
    }
    let statistics = ColumnStatistics::new(matrix).map_err(refused)?;
    let map = model.summary().preprocessing.row_map(&statistics);
    let total_variance = map.total_variance();
    let mut operator = Covariance::with_map(matrix, map.clone());
    let next = if k < d { Next::Unknown } else { Next::Nothing };
    let vectors = model.vectors();
    let certificate = hbpca::check(&mut operator, &vectors, next, tol).map_err(refused)?.judged(tol, false);
    let (certificate, probe) = probed(&mut operator, model, certificate, probing).map_err(refused)?;
    let leading = match (certificate.certainty, &probe) {
        (_, Some(probe)) if certificate.is_refuted_by(probe.least) => Leading::Refuted,
        (Certainty::Proved, _) => Leading::Proved,
        (Certainty::Probability, _) => Leading::Probability,
        _ => Leading::Unverified,
    };
    let faults = faults(model, &certificate, &map, matrix.n_rows(), tol, leading);
    Ok(Object {
        schema: json::SCHEMA,
        holds: faults.is_empty(),
        leading,
        tol,
        n: matrix.n_rows(),
        d,
        k,
        eigenvalues: certificate.eigenvalues.clone(),
        stored_eigenvalues: model.eigenvalues().to_vec(),
        total_variance,
        probe_passes: probe.map_or(0, |probe| probe.passes),
        probe_seed: probe.map(|probe| probe.seed),
        probe,
        certificate,
        faults,
    })
}

/// The certificate after a probe of the components with variance, where there is something beside them to probe.
fn probed(
    operator: &mut dyn CovarianceOperator,
    model: &Model,
    certificate: Certificate,
    probing: &ProbeConfig,
) -> Result<(Certificate, Option<ProbeResult>), hbpca::Error> {
    let varying = certificate.n_varying();
    if varying == 0 || varying == model.n_features() {
        return Ok((certificate, None));
    }
    let columns: Vec<&[f64]> = (0..varying).map(|i| model.component(i)).collect();
    let found = probe(operator, &Block::from_columns(&columns)?, probing, certificate.probe_goal())?;
    if certificate.gap_is_proved {
        return Ok((certificate, Some(found)));
    }
    let failure_probability = probing.failure_probability;
    let next = Next::Probable { bound: found.bound, failure_probability };
    let certificate = certificate.knowing(next, operator.total_variance(), model.n_features());
    Ok((certificate, Some(found)))
}

fn faults(
    model: &Model,
    certificate: &Certificate,
    map: &RowMap,
    n: usize,
    tol: f64,
    leading: Leading,
) -> Vec<String> {
    let mut faults = Vec::new();
    let mut require = |holds: bool, fault: String| {
        if !holds {
            faults.push(fault);
        }
    };
    let theta = certificate.eigenvalues.first().copied().unwrap_or(0.0);
    let (allowed, small) = (tol * theta, number::small);
    let k = model.n_components();

    let worst = certificate.worst();
    require(
        certificate.holds(tol),
        format!("a residual is {} of its eigenvalue, the tolerance {}", small(worst), small(tol)),
    );
    require(
        leading != Leading::Refuted,
        "the components do not lead: there is more variance beside them than along the last".to_owned(),
    );
    // Inner products of d numbers round by dε each, k² of them.
    let rounding = (k * model.n_features()) as f64 * f64::EPSILON;
    let loss = certificate.orthonormality_loss;
    require(
        loss <= tol.max(rounding),
        format!("the components are not orthonormal: ‖WᵀW − I‖ = {}", small(loss)),
    );

    let pairs = certificate.eigenvalues.iter().zip(model.eigenvalues());
    // Each to its own tolerance, or to what it is known to.
    let excess = |(i, (found, stored)): (usize, (&f64, &f64))| {
        let off = (found - stored).abs();
        let known_to = (tol * found).max(2.0 * certificate.rounding(i));
        (off > known_to).then_some(off)
    };
    let off = pairs
        .enumerate()
        .filter_map(excess)
        .fold(None, |most: Option<f64>, off| Some(most.map_or(off, |most| most.max(off))));
    require(off.is_none(), format!("a stored eigenvalue is off by {}", small(off.unwrap_or(0.0))));
    let rounding = 2.0 * certificate.image_rounding;

    let shift = squared_distance(map, model);
    require(shift <= allowed.max(rounding), format!("the stored means change C by {}", small(shift)));
    let scale = largest_factor(map, model);
    require(
        2.0 * scale <= tol.max(2.0 * f64::EPSILON),
        format!("the stored scales are off by a factor of 1 + {}", small(scale)),
    );
    let stored = model.summary().n;
    require(
        n == stored,
        format!("the model was fitted on {} rows, the data has {}", number::count(stored), number::count(n)),
    );
    faults
}

/// ‖D⁻¹(μ − μ′)‖² between the data's means and the model's.
fn squared_distance(map: &RowMap, model: &Model) -> f64 {
    let at = |part: Option<&[f64]>, j: usize, otherwise: f64| part.map_or(otherwise, |values| values[j]);
    (0..model.n_features())
        .map(|j| ((at(map.shift(), j, 0.0) - at(model.shift(), j, 0.0)) / at(map.scale(), j, 1.0)).powi(2))
        .sum()
}

/// Largest |s′/s − 1| between the data's scales and the model's.
fn largest_factor(map: &RowMap, model: &Model) -> f64 {
    match (map.scale(), model.scale()) {
        (None, None) => 0.0,
        (found, stored) => (0..model.n_features())
            .map(|j| (stored.map_or(1.0, |s| s[j]) / found.map_or(1.0, |s| s[j]) - 1.0).abs())
            .fold(0.0, f64::max),
    }
}

fn report(object: &Object, model: &str, data: &str) -> String {
    let verdict = if object.holds { "holds" } else { "does not hold" };
    let mut text = format!("{model} {verdict} on {data}, tolerance {}\n\n", number::small(object.tol));
    let list =
        |values: &[f64]| values.iter().take(5).map(|x| number::value(*x)).collect::<Vec<_>>().join("  ");
    let more = if object.k > 5 { format!("  … {} in all", object.k) } else { String::new() };
    text += &facts(&[
        ("eigenvalues found", list(&object.eigenvalues) + &more),
        ("eigenvalues stored", list(&object.stored_eigenvalues) + &more),
        ("largest residual", format!("{} of its eigenvalue", number::small(object.certificate.worst()))),
        ("orthonormality loss", number::small(object.certificate.orthonormality_loss)),
        ("leading", leading(object)),
        ("certificate", format!("{}", object.certificate)),
    ]);
    let faults = object.faults.iter().flat_map(|fault| ["fault: ", fault, "\n"]);
    text.extend(faults);
    text
}

/// Whether the components lead, in words.
fn leading(object: &Object) -> String {
    let words = match object.leading {
        Leading::Proved => "proved".to_owned(),
        Leading::Probability => object.certificate.certainty_in_words(),
        Leading::Refuted => {
            "refuted: there is more variance beside the components than along the last".to_owned()
        }
        Leading::Unverified if object.certificate.n_varying() == 0 => "nothing varies".to_owned(),
        Leading::Unverified => {
            "could not be verified: the next eigenvalue is too close, or the probe too short".to_owned()
        }
    };
    match &object.probe {
        Some(probe) if object.leading != Leading::Proved => {
            format!("{words} ({})", certainty::of_probe(probe))
        }
        _ => words,
    }
}
