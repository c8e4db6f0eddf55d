//! `hbpca check`: a model's claims, tested on the data by a pass of their own.
//!
//! The column statistics are gathered anew and the products Cw are computed anew; from the file come only the vectors and
//! what it says about them. With T = tol·θ₁ the model holds if
//!
//! - every residual ‖Cwᵢ − θᵢwᵢ‖ is at most T and the vectors are orthonormal to tol: k different eigenpairs;
//! - the stored eigenvalues are the data's to T;
//! - the stored preparation is the data's: means that are off by δ (in scaled units) change C by δδᵀ, so ‖δ‖² ≤ T; divisors
//!   that are off by a factor 1 + e change it by 2|e|θ₁ at most to first order, so 2|e| ≤ tol;
//! - it was fitted on as many rows.

use hbpca::operator::Covariance;
use hbpca::{Certificate, ColumnStatistics, Model, Next, RowMap};
use hbpca_io::StoredModel;
use serde::Serialize;

use crate::args::CheckArgs;
use crate::exit::{Exit, Failure};
use crate::output::progress::Spinner;
use crate::output::say::Verbosity;
use crate::output::table::facts;
use crate::output::{self, json, number};
use crate::plan::{self, Loaded, Source};

/// `hbpca check --json`.
#[derive(Serialize)]
struct Object {
    holds: bool,
    tol: f64,
    n: usize,
    d: usize,
    k: usize,
    eigenvalues: Vec<f64>,
    stored_eigenvalues: Vec<f64>,
    total_variance: f64,
    certificate: Certificate,
    /// What does not hold, in words.
    faults: Vec<String>,
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
    let loaded = Source::find(&args.data)?.read(verbosity)?;
    let spinner = Spinner::new(verbosity, "checking");
    let object = examine(&model, &loaded, tol)?;
    drop(spinner);
    if args.json {
        json::print(&object)?;
    } else {
        output::print(&report(&object, &args.model.display().to_string(), &loaded.name))?;
    }
    Ok(if object.holds { Exit::Success } else { Exit::NotConverged })
}

fn examine(model: &Model, loaded: &Loaded, tol: f64) -> Result<Object, Failure> {
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
    let certificate = hbpca::check(&mut operator, &model.vectors(), next).map_err(refused)?;
    let faults = faults(model, &certificate, &map, matrix.n_rows(), tol);
    Ok(Object {
        holds: faults.is_empty(),
        tol,
        n: matrix.n_rows(),
        d,
        k,
        eigenvalues: certificate.eigenvalues.clone(),
        stored_eigenvalues: model.eigenvalues().to_vec(),
        total_variance,
        certificate,
        faults,
    })
}

fn faults(model: &Model, certificate: &Certificate, map: &RowMap, n: usize, tol: f64) -> Vec<String> {
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
        format!("a residual is {} of the largest eigenvalue, the tolerance {}", small(worst), small(tol)),
    );
    // Inner products of d numbers round by dε each, k² of them.
    let rounding = (k * model.n_features()) as f64 * f64::EPSILON;
    let loss = certificate.orthonormality_loss;
    require(
        loss <= tol.max(rounding),
        format!("the components are not orthonormal: ‖WᵀW − I‖ = {}", small(loss)),
    );

    let pairs = certificate.eigenvalues.iter().zip(model.eigenvalues());
    let off = pairs.map(|(found, stored)| (found - stored).abs()).fold(0.0, f64::max);
    let rounding = 2.0 * certificate.image_rounding;
    require(off <= allowed.max(rounding), format!("a stored eigenvalue is off by {}", small(off)));

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
        (
            "largest residual",
            format!("{} of the first eigenvalue", number::small(object.certificate.worst())),
        ),
        ("orthonormality loss", number::small(object.certificate.orthonormality_loss)),
        ("certificate", format!("{}", object.certificate)),
    ]);
    let faults = object.faults.iter().flat_map(|fault| ["fault: ", fault, "\n"]);
    text.extend(faults);
    text
}
