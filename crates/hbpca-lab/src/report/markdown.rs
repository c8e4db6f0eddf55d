//! A reproduction as a page of Markdown, beside its figures.

use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use serde::Serialize;

use super::view::Page;
use crate::LabError;
use crate::findings::{Claim, claims_markdown};
use crate::reproduce::Results;

const TEMPLATE: &str = include_str!("reproduction.md");

/// A figure of the page.
#[derive(Clone, Debug, Serialize)]
struct Figure {
    title: String,
    text: String,
    file: String,
}

/// A table of the page.
#[derive(Clone, Debug, Serialize)]
struct TableText {
    title: String,
    markdown: String,
}

/// The page as Markdown, from that of the report.
pub fn reproduction_page(page: &Page, claims: &[Claim], results: &Results) -> Result<String, LabError> {
    let failed = |error: minijinja::Error| LabError::Drawing(format!("reproduction.md: {error:#}"));
    let tables: Vec<TableText> = page
        .tables
        .iter()
        .map(|table| TableText { title: table.title.clone(), markdown: table.markdown() })
        .collect();
    let mut environment = Environment::new();
    environment.add_template("reproduction.md", TEMPLATE).map_err(failed)?;
    let context = context! {
        warning => page.warning.clone(),
        claims => claims_markdown(claims),
        figures => Value::from(Serde(figures(results))),
        tables => Value::from(Serde(tables)),
        facts => Value::from(Serde(&page.environment)),
    };
    environment.get_template("reproduction.md").map_err(failed)?.render(context).map_err(failed)
}

/// The figures, in the order of the page.
fn figures(results: &Results) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (spec, races) in results.races.iter().filter(|(_, races)| !races.is_empty()) {
        let names: Vec<&str> = races.iter().map(|race| race.title.as_str()).collect();
        let mut add = |suffix: &str, what: &str| {
            figures.push(Figure {
                title: format!("{}{what}", spec.title),
                text: format!("{}{what}: error on {}", spec.title, names.join(", ")),
                file: format!("{}{suffix}.svg", spec.name),
            });
        };
        add("", "");
        if races.iter().any(|race| race.lanes.iter().any(|lane| lane.extended)) {
            add("-extended", ", with solvers that the paper does not have");
            add("-extended-seconds", ", against processor seconds of one thread");
        }
    }
    if results.rates().is_some() {
        figures.push(Figure {
            title: "What the theory says of step sizes".into(),
            text: "ρ(η, K) of the model for VR HB Power and VR-PCA on every data set, with the largest step that contracts".into(),
            file: "rates.svg".into(),
        });
    }
    figures.extend(results.studies.iter().map(|study| Figure {
        title: format!("Step size and batch size: {}", study.title),
        text: format!(
            "Final error on {} over step size and batch size; rings show the step that the theory's model prefers",
            study.title
        ),
        file: format!("study-{}.svg", study.dataset),
    }));
    figures
}
