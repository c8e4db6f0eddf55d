//! The report: one HTML file that works from disk, with everything inside.

pub mod environment;
pub mod markdown;
pub mod paper;
pub mod view;

mod charts;

use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};

use crate::LabError;
use view::Page;

const TEMPLATE: &str = include_str!("page.html");

/// The page as HTML.
pub fn render(page: &Page) -> Result<String, LabError> {
    let failed = |error: minijinja::Error| LabError::Drawing(format!("report: {error:#}"));
    let mut environment = Environment::new();
    environment.add_template("page.html", TEMPLATE).map_err(failed)?;
    let template = environment.get_template("page.html").map_err(failed)?;
    let charts: Vec<_> = page.groups.iter().flat_map(|group| &group.charts).chain(&page.heat_maps).collect();
    let data: Vec<String> = charts
        .iter()
        .map(|chart| {
            let seconds = chart.seconds.as_deref().unwrap_or("null");
            format!("{{\"id\":{:?},\"passes\":{},\"seconds\":{seconds}}}", chart.id, chart.passes)
        })
        .collect();
    // Inside a script element `<` could end it.
    let data = format!("[{}]", data.join(",\n")).replace('<', "\\u003c");
    let library = charts::library_script();
    template.render(context! { page => Value::from(Serde(page)), data, library }).map_err(failed)
}
