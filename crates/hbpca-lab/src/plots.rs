//! Plots of a fitted model: scree, convergence, scores.

use std::path::Path;

use hbpca::{Model, Record};

use crate::figure::chart::{Dash, Figure, Mark, Panel, Scale, Series};
use crate::figure::{palette, png, svg};
use crate::report::environment::environment;
use crate::report::render;
use crate::report::view::{Group, Page, panel_view};
use crate::{LabError, write_atomically};

/// Scores drawn at most; more would only blacken the page.
const MOST_POINTS: usize = 5000;

/// More classes than colours cannot be told apart.
const MOST_CLASSES: usize = 7;

/// Share of the variance of each component, and of all up to it.
pub fn scree(model: &Model) -> Figure {
    let shares = model.explained_variance_ratio();
    let numbered = |i: usize| (i + 1) as f64;
    let bars = shares.iter().enumerate().map(|(i, share)| (numbered(i), 100.0 * share)).collect();
    let mut sum = 0.0;
    let mut cumulative = Vec::new();
    for (i, share) in shares.iter().enumerate() {
        sum += share;
        cumulative.push((numbered(i), 100.0 * sum));
    }
    let series = |label: &str, i, mark, points| Series {
        label: label.into(),
        style: palette::numbered(i),
        mark,
        points,
        band: None,
    };
    let panel = Panel {
        title: "Variance explained".into(),
        x_label: "component".into(),
        y_label: "% of total variance".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series: vec![series("each", 0, Mark::Bars, bars), series("cumulative", 1, Mark::Line, cumulative)],
    };
    Figure { title: "Scree".into(), note: None, panels: vec![panel], columns: 1 }
}

/// Residual (and error, where a reference was known) against passes and seconds.
pub fn convergence(history: &[Record]) -> Figure {
    let panel = |x_label: &str, x_scale, x: fn(&Record) -> f64| {
        let relative =
            |record: &Record| (x(record), record.residual / record.theta.abs().max(f64::MIN_POSITIVE));
        let residual = Series {
            label: "residual ‖Cw − θw‖/θ".into(),
            style: palette::numbered(0),
            mark: Mark::Line,
            points: history.iter().map(relative).collect(),
            band: None,
        };
        let errors: Vec<(f64, f64)> = history.iter().filter_map(|r| Some((x(r), r.error?))).collect();
        let mut style = palette::numbered(1);
        style.dash = Dash::Dashed;
        let error =
            Series {
                label: "error 1 − (wᵀu₁)²".into(), style, mark: Mark::Line, points: errors, band: None
            };
        Panel {
            title: format!("Convergence against {x_label}"),
            x_label: x_label.into(),
            y_label: "residual".into(),
            x_scale,
            y_scale: Scale::Log,
            series: [residual, error].into_iter().filter(|series| !series.points.is_empty()).collect(),
        }
    };
    let panels = vec![
        panel("passes over the data", Scale::Linear, |record| record.passes),
        panel("seconds", Scale::Linear, |record| record.seconds),
    ];
    Figure { title: "Convergence".into(), note: None, panels, columns: 2 }
}

/// The first two columns of k scores a row, coloured by class where classes are given.
pub fn scores(scores: &[f64], k: usize, classes: Option<&[String]>) -> Result<Figure, LabError> {
    if k < 2 || scores.len() < k || !scores.len().is_multiple_of(k) {
        let message =
            format!("{} scores in rows of {k}: a plot of scores needs rows of at least 2", scores.len());
        return Err(LabError::Usage(message));
    }
    let n = scores.len() / k;
    if let Some(classes) = classes.filter(|classes| classes.len() != n) {
        return Err(LabError::Usage(format!("{} classes for {n} rows of scores", classes.len())));
    }
    let every = n.div_ceil(MOST_POINTS);
    let shown: Vec<usize> = (0..n).step_by(every).collect();
    let mut names: Vec<&str> = classes.map_or_else(Vec::new, |c| c.iter().map(String::as_str).collect());
    names.sort_unstable();
    names.dedup();
    if names.is_empty() || names.len() > MOST_CLASSES {
        names = vec![""];
    }
    let belongs = |row: usize, name: &str| name.is_empty() || classes.is_some_and(|c| c[row] == name);
    let series = names.iter().enumerate().map(|(i, name)| Series {
        label: (*name).to_owned(),
        style: palette::numbered(i),
        mark: Mark::Dots,
        points: shown
            .iter()
            .filter(|row| belongs(**row, name))
            .map(|row| (scores[row * k], scores[row * k + 1]))
            .collect(),
        band: None,
    });
    let panel = Panel {
        title: String::new(),
        x_label: "component 1".into(),
        y_label: "component 2".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series: series.collect(),
    };
    let note = (every > 1).then(|| format!("every {every}th of {n} rows is drawn"));
    Ok(Figure { title: "Scores".into(), note, panels: vec![panel], columns: 1 })
}

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
        tables: Vec::new(),
        environment: environment(),
        files: Vec::new(),
    })
}
