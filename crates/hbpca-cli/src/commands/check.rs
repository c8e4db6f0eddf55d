//! `hbpca check`: a model's claims, compared with what the data says.
//!
//! The [core](hbpca::verify) computes everything anew; here it is asked and shown.

use std::path::Path;

use hbpca::missing::{Completed, Holes, Missing, complete};
use hbpca::probe::{ProbeConfig, ProbeResult, ProbeSeed};
use hbpca::verify::{Claim, Claims, Leading, Verdict, Verification, VerifyConfig, verify};
use hbpca::{Certificate, Matrix};
use hbpca_io::{CertificateRule, StoredModel};
use serde::Serialize;

use crate::args::CheckArgs;
use crate::exit::{Exit, Failure};
use crate::output::progress::Spinner;
use crate::output::say::Verbosity;
use crate::output::table::facts;
use crate::output::{self, certainty, json, number};
use crate::plan::{self, Source, Weights};

/// `hbpca check --json`.
#[derive(Serialize)]
struct Object {
    holds: bool,
    /// Whether the components are the leading ones: `proved`, `probability`, `unverified` or `refuted`.
    leading: Leading,
    /// The tolerance that was demanded.
    tol: Option<f64>,
    /// The tolerance that the model was fitted with, as it says.
    stored_tol: f64,
    n: usize,
    d: usize,
    k: usize,
    weight: f64,
    eigenvalues: Vec<f64>,
    stored_eigenvalues: Vec<f64>,
    total_variance: f64,
    probe_passes: u64,
    probe_seed: Option<u64>,
    #[serde(skip)]
    probe: Option<ProbeResult>,
    certificate: Certificate,
    /// Every claim, and what became of it.
    claims: Vec<Claim>,
    /// What does not hold, in words.
    faults: Vec<String>,
}

/// Runs `hbpca check`.
pub fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads, (&args.verbosity).into())?;
    let verbosity = Verbosity::from(&args.verbosity);
    if let Some(tol) = args.tol
        && !(0.0..1.0).contains(&tol)
    {
        return Err(Failure::Usage(format!("--tol {tol}: the relative tolerance lies from 0 up to below 1")));
    }
    let failure_probability = args.certify;
    if !(failure_probability > 0.0 && failure_probability <= 0.5) {
        let advice = "a probability of failure lies above 0 and at most at 0.5; try 1e-9";
        return Err(Failure::Usage(format!("--certify {failure_probability}: {advice}")));
    }
    let stored = plan::open_model(&args.model)?;
    let seed = args.seed.map_or(ProbeSeed::FromSystem, ProbeSeed::Given);
    let probe = ProbeConfig { failure_probability, seed, ..ProbeConfig::default() };
    let mut source = Source::find(&args.data)?;
    source.for_model(&stored);
    source.hold_missing(stored.origin.reading.missing);
    source.keep_in(plan::storage(args.precision));
    let weights = weights(args, &stored);
    weights.ask(&mut source);
    let mut loaded = source.read(verbosity)?;
    let weights = weights.of(&mut loaded.data)?;
    let (name, n, other_columns) = (loaded.name, loaded.data.matrix.n_rows(), loaded.data.other_columns);
    let Completed { matrix, weights, .. } = completed(loaded.data.matrix, weights.as_deref(), &stored)
        .map_err(|error| error.of(&args.model, &name))?;
    if weights.is_none() {
        refuse_unknown_weights(args, &stored, n)?;
    }
    let spinner = Spinner::new(verbosity, "checking");
    let config = VerifyConfig { tol: args.tol, probe };
    let mut found = verify(&matrix, weights.as_deref(), &claims(&stored), &config)
        .map_err(|error| Failure::refused(&error, &name))?;
    drop(spinner);
    if stored.origin.reading.columns.is_some() {
        found.require("columns", other_columns_fault(other_columns));
    }
    let object = Object::new(&stored, found, matrix.n_rows(), args.tol);
    if args.json.json {
        json::print(&object)?;
    } else {
        output::print_report(&report(&object, &args.model.display().to_string(), &name))?;
    }
    Ok(if object.holds { Exit::Success } else { Exit::NotConverged })
}

/// A model of the columns that occur says that all others are zero.
fn other_columns_fault(others: usize) -> Option<String> {
    let columns = if others == 1 { "column has" } else { "columns have" };
    (others > 0).then(|| format!("{others} {columns} entries, and the model says that there are none"))
}

fn claims(stored: &StoredModel) -> Claims<'_> {
    let StoredModel { model, origin } = stored;
    Claims {
        model,
        certificate: &origin.certificate,
        tol: origin.tol,
        outcome: origin.outcome,
        judges_each_component: origin.rule == CertificateRule::EachEigenvalue,
    }
}

/// The matrix that the model speaks of.
fn completed(
    matrix: Matrix<'static>,
    weights: Option<&[f64]>,
    stored: &StoredModel,
) -> Result<Completed<'static>, Incomplete> {
    let missing = stored.origin.reading.missing;
    if missing == Missing::Em && !Holes::of(&matrix).is_empty() {
        return Err(Incomplete::Em);
    }
    complete(matrix, weights, missing).map_err(Incomplete::Refused)
}

/// Why there is no completed matrix.
enum Incomplete {
    /// What `em` filled in is not part of the model.
    Em,
    Refused(hbpca::Error),
}

impl Incomplete {
    fn of(&self, model: &Path, data: &str) -> Failure {
        match self {
            Self::Em => Failure::Input(format!(
                "{data}: it has missing values, and {} speaks of the matrix that em completed: write that with `hbpca impute`, with the same flags, \
                 and check the model on it",
                model.display()
            )),
            Self::Refused(error) => Failure::refused(error, data),
        }
    }
}

/// Where the weights of the rows are: where it was said, or in the column that the model names.
fn weights(args: &CheckArgs, stored: &StoredModel) -> Weights {
    match (Weights::from(&args.weights), &stored.origin.reading.weight_column) {
        (Weights::None, Some(column)) => Weights::Column(column.clone()),
        (given, _) => given,
    }
}

/// Refuses a model that was fitted with weights where none are known.
fn refuse_unknown_weights(args: &CheckArgs, stored: &StoredModel, n: usize) -> Result<(), Failure> {
    let summary = stored.model.summary();
    #[allow(clippy::float_cmp, reason = "without weights this is a count")]
    let weighted = summary.weight != summary.n as f64 && summary.n == n;
    if !weighted {
        return Ok(());
    }
    let advice = "give the weights it was fitted with by --weights FILE, one number for each row, or by --weight-column";
    let (model, weight) = (args.model.display(), summary.weight);
    Err(Failure::Input(format!("{model}: its {n} rows weigh {weight} in all: {advice}")))
}

impl Object {
    fn new(stored: &StoredModel, found: Verification, n: usize, tol: Option<f64>) -> Self {
        let model = &stored.model;
        Self {
            holds: found.holds(),
            leading: found.leading,
            tol,
            stored_tol: stored.origin.tol,
            n,
            d: model.n_features(),
            k: model.n_components(),
            weight: found.weight,
            eigenvalues: found.certificate.eigenvalues.clone(),
            stored_eigenvalues: model.eigenvalues().to_vec(),
            total_variance: found.total_variance,
            probe_passes: found.probe.map_or(0, |probe| probe.passes),
            probe_seed: found.probe.map(|probe| probe.seed),
            probe: found.probe,
            faults: found.faults().map(|claim| format!("{}: {}", claim.claim, claim.found)).collect(),
            certificate: found.certificate,
            claims: found.claims,
        }
    }
}

fn report(object: &Object, model: &str, data: &str) -> String {
    let verdict = if object.holds { "holds" } else { "does not hold" };
    let mut text = format!("{model} {verdict} on {data}\n\n");
    let list =
        |values: &[f64]| values.iter().take(5).map(|x| number::value(*x)).collect::<Vec<_>>().join("  ");
    let more = if object.k > 5 { format!("  … {} in all", object.k) } else { String::new() };
    let kept = |verdict: Verdict| object.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let tolerance = match object.tol {
        Some(tol) => format!("{} demanded", number::small(tol)),
        None => format!("none demanded; the fit's own was {}, as it says", number::small(object.stored_tol)),
    };
    text += &facts(&[
        ("eigenvalues found", list(&object.eigenvalues) + &more),
        ("eigenvalues stored", list(&object.stored_eigenvalues) + &more),
        ("largest residual", format!("{} of its eigenvalue", number::small(object.certificate.worst()))),
        ("tolerance", tolerance),
        ("orthonormality loss", number::small(object.certificate.orthonormality_loss)),
        ("leading", leading(object)),
        ("certificate", format!("{}", object.certificate)),
        ("claims", format!("{} of {} hold", kept(Verdict::Holds), object.claims.len())),
    ]);
    for claim in &object.claims {
        let label = match claim.verdict {
            Verdict::Holds => continue,
            Verdict::Fails => "fault",
            Verdict::Unverified => "not verified",
        };
        text += &[label, ": ", claim.claim, ": ", &claim.found, "\n"].concat();
    }
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
        _ if object.certificate.n_varying() == 0 => "nothing varies".to_owned(),
        _ => "could not be verified: the next eigenvalue is too close, or the probe too short".to_owned(),
    };
    match &object.probe {
        Some(probe) if object.leading != Leading::Proved => {
            format!("{words} ({})", certainty::of_probe(probe))
        }
        _ => words,
    }
}
