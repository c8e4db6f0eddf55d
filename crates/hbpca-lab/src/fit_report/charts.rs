//! The numbers behind the charts, short enough to travel.

use serde_json::{Value, json};

use super::Subject;
use super::rows::Rows;
use super::view::{mapped_columns, n_mapped};
use crate::colouring::Colouring;

/// Components whose scores can be chosen.
pub(super) const MOST_SCORES: usize = 10;

pub(super) fn data(subject: &Subject<'_>, rows: Option<&Rows>) -> Value {
    let (model, origin) = (&subject.stored.model, &subject.stored.origin);
    let columns = mapped_columns(model);
    let loadings = |c: usize| columns.iter().map(|j| rounded(model.component(c)[*j])).collect();
    let values: Vec<Vec<f64>> = (0..n_mapped(model)).map(loadings).collect();
    let largest = values.iter().flatten().fold(0.0_f64, |most, x| most.max(x.abs()));
    let features: Vec<&str> = columns.iter().map(|j| subject.columns[*j].as_str()).collect();
    let relative = |record: &hbpca::Record| {
        if record.theta > 0.0 { finite(record.residual / record.theta) } else { Value::Null }
    };
    json!({
        "scree": { "shares": model.explained_variance_ratio(), "eigenvalues": model.eigenvalues() },
        "loadings": { "features": features, "values": values, "largest": largest.max(f64::MIN_POSITIVE) },
        "convergence": {
            "passes": origin.history.iter().map(|record| rounded(record.passes)).collect::<Vec<_>>(),
            "residuals": origin.history.iter().map(relative).collect::<Vec<_>>(),
            "tol": origin.tol,
        },
        "rows": rows.map(|rows| row_data(rows, subject)),
        "distances": rows.map(distance_data),
    })
}

fn row_data(rows: &Rows, subject: &Subject<'_>) -> Value {
    let score =
        |c: usize| rows.drawn.iter().map(|l| rounded(rows.scores[l * rows.k + c])).collect::<Vec<_>>();
    let name = subject.data.as_ref().map_or("label", |data| data.label_name.as_str());
    let colours = rows.colouring.as_ref().map(|colouring| match colouring {
        Colouring::Categories { names, of } => {
            json!({ "name": name, "categories": names, "of": rows.drawn.iter().map(|l| of[*l]).collect::<Vec<_>>() })
        }
        Colouring::Scale(values) => {
            let (low, high) = ends(values);
            json!({
                "name": name, "low": low, "high": high,
                "values": rows.drawn.iter().map(|l| finite(rounded(values[*l]))).collect::<Vec<_>>(),
            })
        }
    });
    json!({
        "numbers": rows.drawn.iter().map(|l| l + 1).collect::<Vec<_>>(),
        "scores": (0..rows.k.min(MOST_SCORES)).map(score).collect::<Vec<_>>(),
        "colours": colours,
    })
}

fn distance_data(rows: &Rows) -> Value {
    let of = |values: &[f64]| rows.drawn.iter().map(|l| rounded(values[*l])).collect::<Vec<_>>();
    let distances = &rows.distances;
    json!({
        "score": of(&distances.score),
        "orthogonal": of(&distances.orthogonal),
        "score_cutoff": distances.score_cutoff,
        "orthogonal_cutoff": distances.orthogonal_cutoff,
    })
}

/// The smallest and the largest of the finite values.
pub(super) fn ends(values: &[f64]) -> (f64, f64) {
    let finite = || values.iter().copied().filter(|x| x.is_finite());
    (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max))
}

fn finite(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}

/// Five significant digits: what a chart can show.
fn rounded(x: f64) -> f64 {
    format!("{x:.4e}").parse().unwrap_or(x)
}
