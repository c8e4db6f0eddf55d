//! The columns that weigh most in components.

use hbpca::Model;

use crate::LabError;
use crate::figure::chart::{Figure, Mark, Panel, Scale, Series};
use crate::figure::palette;
use crate::figure::text::per_cent;
use crate::fit_report::leading_columns;

/// Columns shown of each component.
const MOST_COLUMNS: usize = 15;

/// One panel a component, the largest loading above; negative ones have a colour of their own.
pub fn loadings(model: &Model, names: &[String], components: &[usize]) -> Result<Figure, LabError> {
    let shares = model.explained_variance_ratio();
    let mut panels = Vec::new();
    for &c in components {
        let share = shares.get(c).ok_or_else(|| too_many(c, model.n_components()))?;
        let component = model.component(c);
        let mut leading = leading_columns(component, MOST_COLUMNS);
        leading.reverse();
        let bars = |positive: bool| {
            let wanted = |(_, j): &(usize, &usize)| (component[**j] >= 0.0) == positive;
            let bar = |(i, j): (usize, &usize)| (component[*j], (i + 1) as f64);
            leading.iter().enumerate().filter(wanted).map(bar).collect::<Vec<_>>()
        };
        let series = [("positive", 0, true), ("negative", 1, false)].map(|(label, colour, positive)| {
            Series::new(label, palette::numbered(colour), Mark::SideBars, bars(positive))
        });
        panels.push(Panel {
            title: format!("Component {} ({})", c + 1, per_cent(*share)),
            x_label: "loading".into(),
            y_label: String::new(),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            y_names: leading.iter().map(|j| names[*j].clone()).collect(),
            series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        });
    }
    let d = model.n_features();
    let note =
        (d > MOST_COLUMNS).then(|| format!("the {MOST_COLUMNS} largest of {d} loadings of each component"));
    Ok(Figure { title: "Loadings".into(), note, columns: panels.len().min(2), panels })
}

/// A component that there is not.
pub(super) fn too_many(c: usize, k: usize) -> LabError {
    LabError::Usage(format!("component {}: there are {k}, counted from 1", c + 1))
}
