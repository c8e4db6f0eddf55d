//! The result of a fit: a model with its origin, the content of a model file.

use std::path::PathBuf;

use hbpca::certificate::{Certainty, Cluster};
use hbpca::missing::Missing;
use hbpca::{Fit, Record, Whitening};
use hbpca_io::{BedFile, OutputFile, ReadOptions, Reading, StoredModel};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyType};

use crate::chunks::memory_of;
use crate::errors::{Failure, Outcome};
use crate::pool::detach;
use crate::scores::{Holes, table};

/// A fitted model. Immutable; arrays are copies.
#[pyclass(frozen, module = "hbpca._hbpca")]
pub struct Fitted {
    stored: StoredModel,
    /// Whether the solver knows anything of the eigenvalue that follows, so that an angle without a bound means something.
    gap_is_known: bool,
    /// The fewest and the most components that may explain the share of variance that was asked for, where residuals leave it open.
    possible_k: Option<(usize, usize)>,
}

impl Fitted {
    /// Of a fit that was asked for the tolerance `tol`.
    pub fn of_fit(fit: &Fit, tol: f64) -> Self {
        let certificate = &fit.certificate;
        let gap_is_known = certificate.gap_is_proved
            || certificate.following_eigenvalue().is_some()
            || fit.solver.finds_many();
        let possible_k = fit.possible_k.as_ref().map(|k| (*k.start(), *k.end()));
        Self { stored: StoredModel::of_fit(fit, &fit.chosen_because, tol), gap_is_known, possible_k }
    }

    /// Of a file, which holds the model alone.
    fn of_model(stored: StoredModel) -> Self {
        Self { stored, gap_is_known: false, possible_k: None }
    }

    /// The same, with what became of missing values.
    pub fn treating(self, missing: Missing, fit: &Fit) -> Self {
        let reading = Reading { missing, missing_values: fit.missing, ..Reading::default() };
        Self { stored: self.stored.with_reading(reading), ..self }
    }

    /// A file of a model needs something to hold.
    fn check_components(&self) -> Outcome<()> {
        match self.stored.model.n_components() {
            0 => Err(Failure::value(
                "n_components = 0: a model without components cannot be saved, copied or sent",
            )),
            _ => Ok(()),
        }
    }
}

impl Fitted {
    /// The same, with the names of the columns.
    pub fn named(self, names: Option<Vec<String>>) -> Outcome<Self> {
        Ok(Self { stored: self.stored.with_feature_names(names)?, ..self })
    }
}

#[pymethods]
impl Fitted {
    /// n×k scores of the samples of a .bed, whose variants are matched with those of the model; what is missing is the mean where nothing else is said.
    #[allow(clippy::needless_pass_by_value, reason = "this type is what the argument is converted into")]
    fn transform_genotypes<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        whiten: bool,
        holes: Holes,
    ) -> Outcome<Bound<'py, PyAny>> {
        let rule = holes.rule_for_genotypes()?;
        let (model, name) = (&self.stored.model, path.display().to_string());
        let whitening = if whiten { Whitening::On } else { Whitening::Off };
        let (n, scores) = detach(py, || -> Outcome<_> {
            let memory = memory_of(None)?;
            let beside = |n, _| 8 * (n * model.n_components()) as u64;
            let file = BedFile::place(&path, &ReadOptions::default(), memory, beside)?;
            let genotypes = file.for_model(model, &name)?.genotypes;
            let scores = model.transform_genotypes_with_holes(&genotypes, whitening, rule)?;
            Ok((genotypes.n_rows(), scores))
        })?;
        table(py, scores, n, model.n_components())
    }

    /// k×d, one component a row.
    #[getter]
    fn components<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        use numpy::PyArrayMethods;
        let model = &self.stored.model;
        PyArray1::from_slice(py, model.components()).reshape([model.n_components(), model.n_features()])
    }

    /// Eigenvalues of C = (1/n)Σaaᵀ.
    #[getter]
    fn eigenvalues<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.stored.model.eigenvalues())
    }

    /// Variances with denominator n − 1.
    #[getter]
    fn explained_variance<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.stored.model.explained_variance())
    }

    /// Shares of the total variance.
    #[getter]
    fn explained_variance_ratio<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.stored.model.explained_variance_ratio())
    }

    /// Singular values of the prepared data.
    #[getter]
    fn singular_values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.stored.model.singular_values())
    }

    /// What is subtracted from every row, if anything.
    #[getter]
    fn shift<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.stored.model.shift().map(|x| PyArray1::from_slice(py, x))
    }

    /// What every column is divided by, if anything.
    #[getter]
    fn scale<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.stored.model.scale().map(|x| PyArray1::from_slice(py, x))
    }

    /// What whitening divides scores by; infinite for components without variance.
    #[getter]
    fn whitening_factors<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.stored.model.whitening_factors())
    }

    /// Mean of the variances left out.
    #[getter]
    fn noise_variance(&self) -> f64 {
        self.stored.model.noise_variance()
    }

    /// Trace of C.
    #[getter]
    fn total_variance(&self) -> f64 {
        self.stored.model.summary().total_variance
    }

    /// What becomes of missing values, and the ridge of `em`.
    #[getter]
    fn missing(&self) -> (&'static str, f64) {
        let reading = &self.stored.origin.reading;
        (reading.missing.name(), reading.ridge())
    }

    /// What was done about missing values, where there were such.
    #[getter]
    fn missing_values<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(report) = self.stored.origin.reading.missing_values else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("sentence", report.to_string())?;
        dict.set_item("policy", report.policy.name())?;
        dict.set_item("entries", report.entries)?;
        dict.set_item("rows", report.rows)?;
        dict.set_item("dropped", report.dropped)?;
        if let Some(point) = report.stationary_point {
            dict.set_item("rounds", point.rounds)?;
            dict.set_item("distance", point.distance)?;
            dict.set_item("is_stationary_point", point.is_reached())?;
        }
        Ok(Some(dict))
    }

    /// Sum of the row weights; n without weights.
    #[getter]
    fn weight(&self) -> f64 {
        self.stored.model.summary().weight
    }

    /// Whether there is an n − 1 to divide by.
    #[getter]
    fn has_sample_variance(&self) -> bool {
        self.stored.model.has_sample_variance()
    }

    /// n.
    #[getter]
    fn n_samples(&self) -> usize {
        self.stored.model.summary().n
    }

    /// The names of the columns, where the data had them.
    #[getter]
    fn feature_names(&self) -> Option<Vec<String>> {
        self.stored.model.feature_names().map(<[String]>::to_vec)
    }

    /// Whether means were subtracted, and what columns were divided by: "none", "std" or "minmax".
    #[getter]
    fn preprocessing(&self) -> (bool, &'static str) {
        let preprocessing = self.stored.model.summary().preprocessing;
        (preprocessing.centering == hbpca::Centering::Mean, preprocessing.scaling.name())
    }

    /// The solver that ran.
    #[getter]
    fn solver(&self) -> &str {
        &self.stored.origin.solver
    }

    /// Why that solver.
    #[getter]
    fn chosen_because(&self) -> &str {
        &self.stored.origin.chosen_because
    }

    /// How the run ended.
    #[getter]
    fn outcome(&self) -> String {
        self.stored.origin.outcome.to_string()
    }

    /// Rows read by the solver, divided by n.
    #[getter]
    fn passes(&self) -> f64 {
        self.stored.origin.passes
    }

    /// Complete passes.
    #[getter]
    fn full_passes(&self) -> u64 {
        self.stored.origin.full_passes
    }

    /// Seconds of the fit within Rust.
    #[getter]
    fn seconds(&self) -> f64 {
        self.stored.origin.seconds
    }

    /// The tolerance asked for.
    #[getter]
    fn tol(&self) -> f64 {
        self.stored.origin.tol
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.stored.origin.seed
    }

    /// Whether an angle without a bound means that eigenvalues are too close, rather than that nothing is known of them.
    #[getter]
    fn gap_is_known(&self) -> bool {
        self.gap_is_known
    }

    /// The fewest and the most components that may explain the share of variance, where residuals leave it open.
    #[getter]
    fn possible_k(&self) -> Option<(usize, usize)> {
        self.possible_k
    }

    /// One dict for every certified iterate.
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let records = self.stored.origin.history.iter().map(|record| record_dict(py, record));
        PyList::new(py, records.collect::<PyResult<Vec<_>>>()?)
    }

    /// The certificate's numbers, and its sentence.
    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let certificate = &self.stored.origin.certificate;
        let dict = PyDict::new(py);
        dict.set_item("sentence", certificate.to_string())?;
        dict.set_item("eigenvalues", &certificate.eigenvalues)?;
        dict.set_item("residuals", &certificate.residuals)?;
        let relative = |x: &f64| if x.is_finite() { *x } else { f64::NAN };
        let relative: Vec<f64> = certificate.relative_residuals.iter().map(relative).collect();
        dict.set_item("relative_residuals", relative)?;
        let status: Vec<&str> = certificate.status.iter().map(|status| status.name()).collect();
        dict.set_item("status", status)?;
        dict.set_item("eigenvalue_intervals", &certificate.eigenvalue_intervals)?;
        dict.set_item("angle_bounds", &certificate.angle_bounds)?;
        dict.set_item("subspace_angle_bound", certificate.subspace_angle_bound)?;
        let clusters: Vec<(usize, usize, Option<f64>)> =
            certificate.clusters.iter().map(|Cluster(first, last, angle)| (*first, *last, *angle)).collect();
        dict.set_item("clusters", clusters)?;
        dict.set_item("gap_is_proved", certificate.gap_is_proved)?;
        let certainty = match certificate.certainty {
            Certainty::Proved => "proved",
            Certainty::Probability => "probability",
            _ => "estimated",
        };
        dict.set_item("certainty", certainty)?;
        dict.set_item("failure_probability", certificate.failure_probability)?;
        let probe = self.stored.origin.probe;
        dict.set_item("probe_passes", probe.map_or(0, |probe| probe.passes))?;
        dict.set_item("probe_seed", probe.map(|probe| probe.seed))?;
        dict.set_item("orthonormality_loss", certificate.orthonormality_loss)?;
        dict.set_item("image_rounding", certificate.image_rounding)?;
        Ok(dict)
    }

    /// Writes the model file of the command line, with these names of the columns.
    // Owned, because a path is what the argument is converted into.
    #[allow(clippy::needless_pass_by_value)]
    #[pyo3(signature = (path, feature_names=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, feature_names: Option<Vec<String>>) -> Outcome<()> {
        self.check_components()?;
        detach(py, || {
            let named = self.stored.clone().with_feature_names(feature_names)?;
            Ok(named.write(OutputFile::create(&path)?)?)
        })
    }

    /// Reads a model file.
    #[classmethod]
    // Owned, because a path is what the argument is converted into.
    #[allow(clippy::needless_pass_by_value)]
    fn load(_class: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> Outcome<Self> {
        detach(py, || Ok(Self::of_model(StoredModel::read(&path)?)))
    }

    /// The content of a model file, for pickle.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        self.check_components()?;
        Ok(PyBytes::new(py, &self.stored.to_bytes().map_err(Failure::value)?))
    }

    /// From the content of a model file.
    #[classmethod]
    fn from_bytes(_class: &Bound<'_, PyType>, bytes: &[u8]) -> Outcome<Self> {
        Ok(Self::of_model(StoredModel::from_bytes(bytes).map_err(Failure::value)?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Outcome<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let rebuild = slf.get_type().getattr("from_bytes")?;
        Ok((rebuild, (slf.get().to_bytes(slf.py())?,)))
    }
}

/// A line of the history as a dict; numbers that a solver does not have are `None`.
pub fn record_dict<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("passes", record.passes)?;
    dict.set_item("full_passes", record.full_passes)?;
    dict.set_item("seconds", record.seconds)?;
    dict.set_item("theta", record.theta)?;
    dict.set_item("residual", record.residual)?;
    dict.set_item("eta", record.eta)?;
    dict.set_item("beta", record.beta)?;
    dict.set_item("lambda2", record.lambda2)?;
    Ok(dict)
}
