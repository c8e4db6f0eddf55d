//! The JSON object of a model file.

use hbpca::certificate::{Certainty, Cluster, Status};
use hbpca::{Certificate, Outcome, Preprocessing, Record, Summary};
use serde::{Deserialize, Serialize};

use super::{CertificateRule, Origin, Probe, Reading, StoredModel};

/// What `format` must say.
const FORMAT: &str = "hbpca-model";
/// The version of the layout that this software writes, and the newest it reads.
const FORMAT_VERSION: u32 = 1;
/// Longest header that is read; a model's takes a few hundred bytes a component.
pub(super) const MOST_BYTES: u64 = 100 << 20;

/// Everything but the tensors.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    format_version: u32,
    software: String,
    n: usize,
    d: usize,
    k: usize,
    weight: f64,
    preprocessing: Preprocessing,
    total_variance: f64,
    solver: String,
    chosen_because: String,
    seed: u64,
    tol: f64,
    outcome: Outcome,
    passes: f64,
    full_passes: u64,
    seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probe: Option<Probe>,
    #[serde(default, skip_serializing_if = "is_default")]
    reading: Reading,
    certificate: StoredCertificate,
}

/// A certificate in JSON, which has no infinity: a bound that is not finite is `null`. One without `status` was made before version 0.3, whose residuals were
/// relative to the first eigenvalue.
#[derive(Debug, Serialize, Deserialize)]
struct StoredCertificate {
    residuals: Vec<Option<f64>>,
    relative_residuals: Vec<Option<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<Vec<Status>>,
    eigenvalue_intervals: Vec<[Option<f64>; 2]>,
    angle_bounds: Vec<Option<f64>>,
    #[serde(default)]
    clusters: Vec<Cluster>,
    subspace_angle_bound: Option<f64>,
    gap_is_proved: bool,
    certainty: Option<Certainty>,
    failure_probability: Option<f64>,
    orthonormality_loss: Option<f64>,
    image_rounding: Option<f64>,
}

fn is_default(reading: &Reading) -> bool {
    *reading == Reading::default()
}

fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

fn unbounded(x: Option<f64>) -> f64 {
    x.unwrap_or(f64::INFINITY)
}

/// ρᵢ/θᵢ, infinite where θᵢ is not positive.
fn relative_to_each(residuals: &[f64], eigenvalues: &[f64]) -> Vec<f64> {
    let relative = |(r, theta): (&f64, &f64)| if *theta > 0.0 { r / theta } else { f64::INFINITY };
    residuals.iter().zip(eigenvalues).map(relative).collect()
}

/// What a file holds of a certificate: all that it says, without what it was computed from.
pub(super) fn as_stored(certificate: &Certificate) -> Certificate {
    let mut stored = Certificate::default();
    stored.eigenvalues.clone_from(&certificate.eigenvalues);
    stored.residuals.clone_from(&certificate.residuals);
    stored.relative_residuals.clone_from(&certificate.relative_residuals);
    stored.status.clone_from(&certificate.status);
    stored.eigenvalue_intervals.clone_from(&certificate.eigenvalue_intervals);
    stored.angle_bounds.clone_from(&certificate.angle_bounds);
    stored.clusters.clone_from(&certificate.clusters);
    stored.subspace_angle_bound = certificate.subspace_angle_bound;
    stored.gap_is_proved = certificate.gap_is_proved;
    stored.certainty = certificate.certainty;
    stored.failure_probability = certificate.failure_probability;
    stored.orthonormality_loss = certificate.orthonormality_loss;
    stored.image_rounding = certificate.image_rounding;
    stored
}

impl StoredCertificate {
    fn of(certificate: &Certificate, rule: CertificateRule) -> Self {
        let all = |values: &[f64]| values.iter().copied().map(finite).collect();
        Self {
            residuals: all(&certificate.residuals),
            relative_residuals: all(&certificate.relative_residuals),
            status: (rule == CertificateRule::EachEigenvalue).then(|| certificate.status.clone()),
            eigenvalue_intervals: certificate.eigenvalue_intervals.iter().map(|x| x.map(finite)).collect(),
            angle_bounds: certificate.angle_bounds.clone(),
            clusters: certificate.clusters.clone(),
            subspace_angle_bound: certificate.subspace_angle_bound,
            gap_is_proved: certificate.gap_is_proved,
            certainty: Some(certificate.certainty),
            failure_probability: certificate.failure_probability,
            orthonormality_loss: finite(certificate.orthonormality_loss),
            image_rounding: finite(certificate.image_rounding),
        }
    }

    /// The rule by which it was made.
    fn rule(&self) -> CertificateRule {
        if self.status.is_some() { CertificateRule::EachEigenvalue } else { CertificateRule::FirstEigenvalue }
    }

    fn restore(self, eigenvalues: &[f64]) -> Result<Certificate, String> {
        let k = eigenvalues.len();
        let lengths = [
            self.residuals.len(),
            self.relative_residuals.len(),
            self.eigenvalue_intervals.len(),
            self.angle_bounds.len(),
            self.status.as_ref().map_or(k, Vec::len),
        ];
        let is_outside = |Cluster(first, last, _): &Cluster| first > last || *last >= k;
        if lengths.iter().any(|length| *length != k) || self.clusters.iter().any(is_outside) {
            return Err(format!("its certificate is not one of {k} components"));
        }
        let all = |values: Vec<Option<f64>>| values.into_iter().map(unbounded).collect();
        let interval = |[low, high]: [Option<f64>; 2]| [low.unwrap_or(0.0), unbounded(high)];
        let mut certificate = Certificate::default();
        certificate.eigenvalues = eigenvalues.to_vec();
        certificate.residuals = all(self.residuals);
        certificate.relative_residuals = match self.status {
            Some(_) => all(self.relative_residuals),
            None => relative_to_each(&certificate.residuals, eigenvalues),
        };
        // Whether a component of an earlier version converged by the rule of today is not known.
        certificate.status = self.status.unwrap_or_else(|| vec![Status::Open; k]);
        certificate.eigenvalue_intervals = self.eigenvalue_intervals.into_iter().map(interval).collect();
        certificate.angle_bounds = self.angle_bounds;
        certificate.subspace_angle_bound = self.subspace_angle_bound;
        certificate.clusters = self.clusters;
        certificate.gap_is_proved = self.gap_is_proved;
        let earlier = if self.gap_is_proved { Certainty::Proved } else { Certainty::Estimated };
        certificate.certainty = self.certainty.unwrap_or(earlier);
        certificate.failure_probability = self.failure_probability;
        certificate.orthonormality_loss = unbounded(self.orthonormality_loss);
        certificate.image_rounding = unbounded(self.image_rounding);
        Ok(certificate)
    }
}

impl Header {
    pub(super) fn of(stored: &StoredModel) -> Self {
        let (summary, origin) = (stored.model.summary(), &stored.origin);
        Self {
            format: FORMAT.into(),
            format_version: FORMAT_VERSION,
            software: origin.software.clone(),
            n: summary.n,
            d: summary.d,
            k: summary.eigenvalues.len(),
            weight: summary.weight,
            preprocessing: summary.preprocessing,
            total_variance: summary.total_variance,
            solver: origin.solver.clone(),
            chosen_because: origin.chosen_because.clone(),
            seed: origin.seed,
            tol: origin.tol,
            outcome: origin.outcome,
            passes: origin.passes,
            full_passes: origin.full_passes,
            seconds: origin.seconds,
            probe: origin.probe,
            reading: origin.reading.clone(),
            certificate: StoredCertificate::of(&origin.certificate, origin.rule),
        }
    }

    pub(super) fn to_json(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }

    pub(super) fn from_json(text: &str) -> Result<Self, String> {
        /// Enough to tell what the rest means.
        #[derive(Deserialize)]
        struct Kind {
            format: String,
            format_version: u32,
        }
        let unreadable = |error: serde_json::Error| format!("its header cannot be understood: {error}");
        let kind: Kind = serde_json::from_str(text).map_err(unreadable)?;
        if kind.format != FORMAT {
            return Err(format!("its header says `{}` where `{FORMAT}` is expected", kind.format));
        }
        if kind.format_version != FORMAT_VERSION {
            return Err(format!(
                "it has format version {}, and this software reads version {FORMAT_VERSION}: use the version that wrote it",
                kind.format_version
            ));
        }
        serde_json::from_str(text).map_err(unreadable)
    }

    /// The model's numbers, checked against each other.
    pub(super) fn summary(&self, eigenvalues: Vec<f64>) -> Result<Summary, String> {
        if self.n == 0 || self.d == 0 || self.k == 0 {
            return Err(format!(
                "its header says n = {}, d = {}, k = {}: none may be 0",
                self.n, self.d, self.k
            ));
        }
        if self.k > self.d {
            return Err(format!("its header says k = {} of d = {} columns", self.k, self.d));
        }
        if eigenvalues.len() != self.k {
            return Err(format!(
                "`eigenvalues` has {} numbers where k = {} are needed",
                eigenvalues.len(),
                self.k
            ));
        }
        for (what, value) in
            [("weight", self.weight), ("total_variance", self.total_variance), ("tol", self.tol)]
        {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(format!("its header says {what} = {value}, which is negative or not finite"));
            }
        }
        Ok(Summary {
            n: self.n,
            d: self.d,
            weight: self.weight,
            preprocessing: self.preprocessing,
            eigenvalues,
            residuals: self.certificate.residuals.iter().copied().map(unbounded).collect(),
            image_rounding: unbounded(self.certificate.image_rounding),
            total_variance: self.total_variance,
        })
    }

    /// d, as the header says.
    pub(super) fn d(&self) -> usize {
        self.d
    }

    /// k, as the header says.
    pub(super) fn k(&self) -> usize {
        self.k
    }

    pub(super) fn origin(self, eigenvalues: &[f64], history: Vec<Record>) -> Result<Origin, String> {
        Ok(Origin {
            rule: self.certificate.rule(),
            certificate: self.certificate.restore(eigenvalues)?,
            software: self.software,
            solver: self.solver,
            chosen_because: self.chosen_because,
            seed: self.seed,
            tol: self.tol,
            outcome: self.outcome,
            passes: self.passes,
            full_passes: self.full_passes,
            seconds: self.seconds,
            probe: self.probe,
            reading: self.reading,
            history,
        })
    }
}
