//! A stored model against the data: everything is computed anew, and every claim is compared with what was found.
//!
//! ```text
//! given      a model with what it claims about itself, the data, weights where it was fitted with some
//! 1  column statistics → the preparation, the total variance, the weight
//! 2  CW by passes of its own → eigenvalues, residuals, orthonormality
//! 3  a probe beside W → whether the components lead, and the gap that the angles rest on
//! 4  where the probe does not settle what is called a theorem, and d is small: all of the spectrum
//! 5  every claim against what was found                                                        (`claims.rs`)
//! ```
//!
//! Nothing that is stored decides how strictly it is tested. A claim that is weaker than what was found holds. The model's own tolerance decides which
//! earlier vectors line 2 projects out, and no more.

mod claims;

use serde::Serialize;

pub use claims::{Claim, Verdict};

use crate::certificate::Next;
use crate::certificate::{Certainty, Certificate, check};
use crate::columns::{ColumnStatistics, RowMap};
use crate::config::FitConfig;
use crate::matrix::Matrix;
use crate::operator::{Covariance, CovarianceOperator};
use crate::probe::{ProbeConfig, ProbeResult, probe};
use crate::solver::SolverKind;
use crate::{Block, Error, Model, Outcome};

/// Columns up to which line 4 decomposes C: 3d² numbers are 100 MB.
const MOST_DECOMPOSED: usize = 2048;

/// What a model says about itself.
#[derive(Clone, Copy, Debug)]
pub struct Claims<'a> {
    /// Components, variances, means, scales, rows, weight.
    pub model: &'a Model,
    /// Its certificate.
    pub certificate: &'a Certificate,
    /// The tolerance it was fitted with.
    pub tol: f64,
    /// How its run ended.
    pub outcome: Outcome,
    /// Whether each residual was judged relative to its own eigenvalue; models of early versions say nothing about single components.
    pub judges_each_component: bool,
}

/// What is demanded beyond the model's own claims, and how it is probed.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerifyConfig {
    /// Residuals that must be reached, relative to each eigenvalue.
    pub tol: Option<f64>,
    /// The probe.
    pub probe: ProbeConfig,
}

/// What is known of whether the components lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Leading {
    /// A theorem.
    Proved,
    /// But with the probability of the probe.
    Probability,
    /// The next eigenvalue is too close, or nothing varies.
    Unverified,
    /// There is more variance beside them.
    Refuted,
}

/// What was found, claim by claim.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verification {
    /// Every claim.
    pub claims: Vec<Claim>,
    /// Whether the components lead.
    pub leading: Leading,
    /// The certificate that was computed anew.
    pub certificate: Certificate,
    /// Trace of C.
    pub total_variance: f64,
    /// Sum of the row weights.
    pub weight: f64,
    /// The probe, where there was anything to probe.
    pub probe: Option<ProbeResult>,
}

impl Verification {
    /// Whether no claim fails.
    pub fn holds(&self) -> bool {
        self.faults().next().is_none()
    }

    /// Adds a claim about something that a matrix does not show; it holds, or fails for a reason.
    pub fn require(&mut self, claim: &'static str, fault: Option<String>) {
        self.claims.push(Claim::required(claim, fault));
    }

    /// Claims that fail.
    pub fn faults(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| claim.verdict == Verdict::Fails)
    }
}

/// Computes everything anew from the data and compares every claim with it.
///
/// ```
/// use hbpca::verify::{Claims, VerifyConfig, verify};
/// use hbpca::{Dense, FitConfig, Matrix};
/// let x: Matrix = Dense::new(vec![2.0, 1.0, -2.0, -1.0, 0.1, -0.2, -0.1, 0.2], 4, 2)?.into();
/// let fit = FitConfig::default().fit(&x)?;
/// let (model, certificate) = (&fit.model, &fit.certificate);
/// let claims = Claims { model, certificate, tol: 1e-6, outcome: fit.outcome, judges_each_component: true };
/// assert!(verify(&x, None, &claims, &VerifyConfig::default())?.holds());
/// # Ok::<(), hbpca::Error>(())
/// ```
pub fn verify(
    matrix: &Matrix<'_>,
    weights: Option<&[f64]>,
    claims: &Claims<'_>,
    config: &VerifyConfig,
) -> Result<Verification, Error> {
    let model = claims.model;
    let (d, k) = (model.n_features(), model.n_components());
    if matrix.n_cols() != d {
        return Err(Error::shape("columns, as the model has", d, matrix.n_cols()));
    }
    let statistics = match weights {
        None => ColumnStatistics::new(matrix)?,
        Some(weights) => ColumnStatistics::weighted(matrix, weights)?,
    }; //                                                                                         1
    let map = model.summary().preprocessing.row_map(&statistics);
    let mut operator = match weights {
        None => Covariance::with_map(matrix, map.clone()),
        Some(weights) => Covariance::with_map_and_weights(matrix, map.clone(), weights)?,
    };
    let tol = config.tol.unwrap_or(claims.tol);
    let next = if k < d { Next::Unknown } else { Next::Nothing };
    let found = check(&mut operator, &model.vectors(), next, tol)?.judged(tol, false); //         2
    let (found, probe) = probed(&mut operator, claims, found, &config.probe)?; //                 3
    let found = if claims::theorem_is_settled(claims.certificate, &found) || d > MOST_DECOMPOSED {
        found
    } else {
        decomposed(matrix, weights, model, found, map.total_variance())? //                       4
    };
    let leading = match (found.certainty, &probe) {
        (_, Some(probe)) if found.is_refuted_by(probe.least) => Leading::Refuted,
        (Certainty::Proved, _) => Leading::Proved,
        (Certainty::Probability, _) => Leading::Probability,
        _ => Leading::Unverified,
    };
    let facts = Facts { statistics: &statistics, map: &map, found: &found, probe: probe.as_ref(), leading };
    let claims = claims::compare(claims, &facts, config.tol); //                                  5
    Ok(Verification {
        claims,
        leading,
        total_variance: map.total_variance(),
        weight: statistics.weight(),
        certificate: found,
        probe,
    })
}

/// What the data says.
struct Facts<'a> {
    statistics: &'a ColumnStatistics,
    map: &'a RowMap,
    found: &'a Certificate,
    probe: Option<&'a ProbeResult>,
    leading: Leading,
}

/// The certificate after a probe of the components with variance, where there is something beside them to probe.
fn probed(
    operator: &mut dyn CovarianceOperator,
    claims: &Claims<'_>,
    found: Certificate,
    config: &ProbeConfig,
) -> Result<(Certificate, Option<ProbeResult>), Error> {
    /// No claim makes a probe longer than this.
    const LEAST_FAILURE_PROBABILITY: f64 = 1e-30;
    let (model, varying) = (claims.model, found.n_varying());
    if varying == 0 || varying == model.n_features() {
        return Ok((found, None));
    }
    let columns: Vec<&[f64]> = (0..varying).map(|i| model.component(i)).collect();
    let claimed = claims.certificate.failure_probability.filter(|delta| *delta >= LEAST_FAILURE_PROBABILITY);
    let failure_probability = config.failure_probability.min(claimed.unwrap_or(1.0));
    let config = ProbeConfig { failure_probability, ..*config };
    let (total_variance, d) = (operator.total_variance(), model.n_features());
    let known = |bound: f64| {
        let next = Next::Probable { bound, failure_probability };
        found.clone().knowing(next, total_variance, d)
    };
    let (stored, usual) = (claims.certificate, found.probe_goal());
    let enough = |bound: f64| usual(bound) && claims::theorem_is_settled(stored, &known(bound));
    let result = probe(operator, &Block::from_columns(&columns)?, &config, enough)?;
    let settled = found.gap_is_proved;
    Ok((if settled { found } else { known(result.bound) }, Some(result)))
}

/// The certificate with λ_{k+1} from a decomposition of all of C.
fn decomposed(
    matrix: &Matrix<'_>,
    weights: Option<&[f64]>,
    model: &Model,
    found: Certificate,
    total_variance: f64,
) -> Result<Certificate, Error> {
    let (k, most) = (found.n_varying(), matrix.n_rows().min(matrix.n_cols()));
    if k == 0 || k > most {
        return Ok(found);
    }
    let config = FitConfig {
        k,
        solver: SolverKind::Covariance,
        preprocessing: model.summary().preprocessing,
        threads: rayon::current_num_threads(),
        ..FitConfig::default()
    };
    let spectrum = config.run().weights(weights).fit(matrix)?.certificate;
    Ok(match spectrum.following_eigenvalue().filter(|_| spectrum.gap_is_proved) {
        Some(bound) => found.knowing(Next::Proved(bound), total_variance, model.n_features()),
        None => found,
    })
}
