//! How a run went.

use hbpca::Record;

use crate::figure::chart::{Dash, Figure, Mark, Panel, Scale, Series};
use crate::figure::palette;

/// Residual (and error, where a reference was known) against passes and seconds.
pub fn convergence(history: &[Record]) -> Figure {
    let panel = |x_label: &str, x: fn(&Record) -> f64| {
        let relative =
            |record: &Record| (x(record), record.residual / record.theta.abs().max(f64::MIN_POSITIVE));
        let residuals = history.iter().map(relative).collect();
        let errors: Vec<(f64, f64)> = history.iter().filter_map(|r| Some((x(r), r.error?))).collect();
        let mut style = palette::numbered(1);
        style.dash = Dash::Dashed;
        let series = [
            Series::new("residual ‖Cw − θw‖/θ", palette::numbered(0), Mark::Line, residuals),
            Series::new("error 1 − (wᵀu₁)²", style, Mark::Line, errors),
        ];
        Panel {
            title: format!("Convergence against {x_label}"),
            x_label: x_label.into(),
            y_label: "residual".into(),
            x_scale: Scale::Linear,
            y_scale: Scale::Log,
            y_names: Vec::new(),
            series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        }
    };
    let panels = vec![
        panel("passes over the data", |record| record.passes),
        panel("seconds", |record| record.seconds),
    ];
    Figure { title: "Convergence".into(), note: None, panels, columns: 2 }
}
