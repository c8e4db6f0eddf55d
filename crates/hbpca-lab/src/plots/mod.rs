//! Plots of a fitted model: scree, loadings, scores, both together, convergence; and of what the theory says of step sizes.

mod convergence;
mod loadings;
mod rates;
mod scores;
mod scree;

pub use convergence::convergence;
pub use loadings::loadings;
pub use rates::{rates, rates_of_races};
pub use scores::{Plane, biplot, scores};
pub use scree::scree;

use std::path::Path;

use crate::figure::chart::{Figure, Panel};
use crate::figure::{png, svg};
use crate::report::environment::environment;
use crate::report::render;
use crate::report::view::{Group, Page, panel_view};
use crate::{LabError, write_atomically};

/// Writes a figure as SVG, PNG or HTML, by the extension.
pub fn write(figure: &Figure, path: &Path) -> Result<(), LabError> {
    let extension = path.extension().map(|x| x.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let bytes = match extension.as_str() {
        "svg" => svg(figure)?.into_bytes(),
        "png" => png(&svg(figure)?)?,
        "html" | "htm" => html(figure)?.into_bytes(),
        other => {
            let message = format!(
                "{}: `{other}` is no kind of plot; end the name in .svg, .png or .html",
                path.display()
            );
            return Err(LabError::Usage(message));
        }
    };
    write_atomically(path, &bytes)
}

fn html(figure: &Figure) -> Result<String, LabError> {
    let describe = |panel: &Panel| {
        let ends = panel.series.iter().filter_map(|series| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            let named = if series.label.is_empty() { "points" } else { &series.label };
            Some(format!(
                "{named}: from ({:.3e}, {:.3e}) to ({:.3e}, {:.3e})",
                first.0, first.1, last.0, last.1
            ))
        });
        ends.collect::<Vec<_>>().join("; ")
    };
    let chart = |(i, panel): (usize, &Panel)| panel_view(&format!("panel-{i}"), panel, &describe(panel));
    let group = Group {
        title: "Charts".into(),
        caption: "Drag to zoom, double-click to zoom out; with the keyboard: + and − zoom, arrows move, 0 goes back.".into(),
        charts: figure.panels.iter().enumerate().map(chart).collect(),
    };
    render(&Page {
        title: figure.title.clone(),
        lead: String::new(),
        warning: figure.note.clone(),
        recommendation: Vec::new(),
        counts: Vec::new(),
        claims: Vec::new(),
        solvers: Vec::new(),
        groups: vec![group],
        heat_maps: Vec::new(),
        rates: None,
        tables: Vec::new(),
        environment: environment(),
        files: Vec::new(),
    })
}
