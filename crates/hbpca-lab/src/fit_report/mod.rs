//! One page about a fit: what the data was, how sure the answer is, what the components are made of, where the rows lie.

mod charts;
mod rows;
mod view;

use hbpca::Matrix;
use hbpca_io::{Labels, StoredModel};
use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};

use crate::LabError;
use rows::Rows;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("charts.js");

/// What a report is about.
pub struct Subject<'a> {
    /// The model and how it came about.
    pub stored: &'a StoredModel,
    /// What the model is called, where it has a file.
    pub model_name: Option<String>,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The data, where it is there.
    pub data: Option<DataSet<'a>>,
    /// The command that was typed.
    pub command: String,
}

/// The data of a report.
pub struct DataSet<'a> {
    /// What it is called.
    pub name: String,
    /// How it is stored, in words.
    pub storage: String,
    /// Its rows, as the model's columns.
    pub matrix: &'a Matrix<'a>,
    /// One label a row.
    pub labels: Option<&'a Labels>,
    /// What the labels are called.
    pub label_name: String,
}

/// The report as HTML.
pub fn render(subject: &Subject<'_>) -> Result<String, LabError> {
    let failed = |error: minijinja::Error| LabError::Drawing(format!("report: {error:#}"));
    let rows = subject.data.as_ref().map(|data| Rows::of(&subject.stored.model, data)).transpose()?;
    let page = view::page(subject, rows.as_ref());
    let data = charts::data(subject, rows.as_ref());
    // Inside a script element `<` could end it.
    let data = data.to_string().replace('<', "\\u003c");
    let mut environment = Environment::new();
    environment.add_template("page.html", TEMPLATE).map_err(failed)?;
    let template = environment.get_template("page.html").map_err(failed)?;
    let page = Value::from(Serde(page));
    template.render(context! { page, data, style => STYLE, script => SCRIPT }).map_err(failed)
}

/// The columns with the largest loadings in `component`, the largest first.
pub fn leading_columns(component: &[f64], most: usize) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..component.len()).collect();
    columns.sort_by(|a, b| component[*b].abs().total_cmp(&component[*a].abs()).then(a.cmp(b)));
    columns.truncate(most);
    columns
}

/// The names of a model's columns: its own, else those of the data at hand, else their numbers.
pub fn column_names(stored: &StoredModel, of_data: Option<&[String]>) -> Vec<String> {
    let numbered = || (1..=stored.model.n_features()).map(|j| format!("column {j}")).collect();
    stored.model.feature_names().or(of_data).map_or_else(numbered, <[String]>::to_vec)
}
