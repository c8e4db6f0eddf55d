//! The model as it stands at an iterate, as if the fit had stopped there.

use hbpca::{Block, Certificate, Error, Fit, FitConfig, Model, Record, RowMap, SolverKind, Summary};

use crate::components::Selection;
use crate::fitted::Fitted;

/// Puts models together; learns what it needs as the run goes on.
pub struct Snapshots<'a> {
    config: &'a FitConfig,
    /// Rows and columns of the data.
    shape: (usize, usize),
    selection: Selection,
    rows: Option<(RowMap, f64)>,
    solver: SolverKind,
    history: Vec<Record>,
}

impl<'a> Snapshots<'a> {
    /// Of a fit with these choices.
    pub fn new(config: &'a FitConfig, shape: (usize, usize), selection: Selection) -> Self {
        Self { config, shape, selection, rows: None, solver: config.solver, history: Vec::new() }
    }

    /// How rows are prepared, and their weight.
    pub fn prepared(&mut self, map: &RowMap, weight: f64) {
        self.rows = Some((map.clone(), weight));
    }

    /// A run of the named solver begins.
    pub fn started(&mut self, solver: &str) {
        self.solver = solver.parse().unwrap_or(self.solver);
        self.history.clear();
    }

    /// The model of an iterate.
    pub fn take(
        &mut self,
        record: &Record,
        certificate: &Certificate,
        vectors: &Block,
    ) -> Result<Option<Fitted>, Error> {
        self.history.push(record.clone());
        let Some((map, weight)) = &self.rows else { return Ok(None) };
        let (vectors, certificate) =
            self.config.cut_to_share(vectors.clone(), certificate.clone(), map.total_variance());
        let summary = Summary {
            n: self.shape.0,
            d: self.shape.1,
            weight: *weight,
            preprocessing: self.config.preprocessing,
            eigenvalues: certificate.eigenvalues.clone(),
            residuals: certificate.residuals.clone(),
            image_rounding: certificate.image_rounding,
            total_variance: map.total_variance(),
        };
        let model = Model::new(&vectors, summary, map)?;
        let fit = Fit::at_iterate(model, certificate, self.solver, self.history.clone(), self.config);
        Ok(Some(Fitted::of_fit(&self.selection.of(fit), self.config.limits.tol)))
    }
}
