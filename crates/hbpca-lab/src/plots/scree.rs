//! Share of the variance of each component, and of all up to it.

use hbpca::Model;

use crate::figure::chart::{Figure, Mark, Panel, Scale, Series};
use crate::figure::palette;

/// The scree plot of a model.
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
    let panel = Panel {
        title: "Variance explained".into(),
        x_label: "component".into(),
        y_label: "% of total variance".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        y_names: Vec::new(),
        series: vec![
            Series::new("each", palette::numbered(0), Mark::Bars, bars),
            Series::new("cumulative", palette::numbered(1), Mark::Line, cumulative),
        ],
    };
    Figure { title: "Scree".into(), note: None, panels: vec![panel], columns: 1 }
}
