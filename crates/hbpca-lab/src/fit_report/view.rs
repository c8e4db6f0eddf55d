//! What the page shows: every number is text by now, the template only places it.

use hbpca::certificate::Certainty;
use hbpca::{Centering, Model, Outcome, Preprocessing, Scaling};
use hbpca_io::{CertificateRule, Origin};
use serde::Serialize;

use super::charts::{MOST_SCORES, ends};
use super::rows::Rows;
use super::{DataSet, Subject, leading_columns};
use crate::colouring::Colouring;
use crate::figure::text::{grouped, per_cent, significant};
use crate::findings::Table;
use crate::report::environment::fact;
use crate::report::view::Fact;

/// Columns and components on the heat map.
const MOST_MAPPED: (usize, usize) = (40, 30);
/// Components with a list of their leading columns, and columns on it.
const MOST_CARDS: (usize, usize) = (9, 8);
/// Rows of the table of components.
const MOST_LISTED: usize = 50;
/// Rows of the table of outliers.
const MOST_OUTLIERS: usize = 10;

#[derive(Serialize)]
pub(super) struct Page {
    title: String,
    lead: String,
    figures: Vec<Fact>,
    data: Vec<Fact>,
    converged: bool,
    verdict: String,
    meaning: String,
    certificate: String,
    components: Table,
    scree_words: String,
    loadings_words: String,
    n_mapped: usize,
    cards: Vec<Card>,
    scores: Option<Scores>,
    outliers: Option<Outliers>,
    convergence_words: String,
    made: Vec<Fact>,
}

/// The leading columns of a component.
#[derive(Serialize)]
struct Card {
    number: usize,
    share: String,
    loadings: Vec<Loading>,
}

#[derive(Serialize)]
struct Loading {
    name: String,
    value: String,
    sign: &'static str,
    /// Of its half of the track, in per cent.
    width: String,
}

#[derive(Serialize)]
struct Scores {
    caption: String,
    words: String,
    /// Components to choose from.
    n: usize,
    /// The one that is drawn upwards at first.
    second: usize,
    colour_name: String,
    categories: Option<Vec<String>>,
    scale: Option<[String; 2]>,
}

#[derive(Serialize)]
struct Outliers {
    caption: String,
    words: String,
    table: Table,
}

pub(super) fn page(subject: &Subject<'_>, rows: Option<&Rows>) -> Page {
    let stored = subject.stored;
    let (model, origin, summary) = (&stored.model, &stored.origin, stored.model.summary());
    let (k, d) = (model.n_components(), model.n_features());
    let explained: f64 = model.explained_variance_ratio().iter().sum();
    let about = subject.data.as_ref().map(|data| data.name.clone()).or_else(|| subject.model_name.clone());
    Page {
        title: format!(
            "Principal components{}",
            about.map_or_else(String::new, |name| format!(" of {name}"))
        ),
        lead: format!(
            "{} explain {} of the variance of {} rows with {} columns.",
            counted(k, "component"),
            per_cent(explained),
            grouped(summary.n),
            grouped(d)
        ),
        figures: vec![
            fact("rows", grouped(summary.n)),
            fact("columns", grouped(d)),
            fact("components", grouped(k)),
            fact("of the variance explained", per_cent(explained)),
            fact("outcome", origin.outcome),
        ],
        data: data_facts(subject),
        converged: origin.outcome == Outcome::Converged,
        verdict: verdict(origin),
        meaning: meaning(origin),
        certificate: sentence(&origin.certificate.to_string()),
        components: component_table(model, origin),
        scree_words: scree_words(model),
        loadings_words: loadings_words(model),
        n_mapped: n_mapped(model),
        cards: cards(model, &subject.columns),
        scores: subject.data.as_ref().zip(rows).map(|(data, rows)| scores(data, rows)),
        outliers: subject.data.as_ref().zip(rows).map(|(data, rows)| outliers(data, rows)),
        convergence_words: convergence_words(origin),
        made: made(subject),
    }
}

fn data_facts(subject: &Subject<'_>) -> Vec<Fact> {
    let summary = subject.stored.model.summary();
    let mut facts = Vec::new();
    match &subject.data {
        Some(data) => {
            facts.push(fact("file", &data.name));
            facts.push(fact("stored as", &data.storage));
            if data.matrix.n_rows() != summary.n {
                let text = format!(
                    "{}; the model was fitted on {}",
                    grouped(data.matrix.n_rows()),
                    grouped(summary.n)
                );
                facts.push(fact("rows shown", text));
            }
        }
        None => facts.push(fact("file", "not given to this report: scores and outliers are left out")),
    }
    facts.push(fact("size", format!("{} rows × {} columns", grouped(summary.n), grouped(summary.d))));
    facts.push(fact("preparation", preparation(summary.preprocessing)));
    facts.push(fact("total variance", significant(summary.total_variance)));
    if let Some(data) = subject.data.as_ref().filter(|data| data.labels.is_some()) {
        facts.push(fact("labels", format!("column {}, no part of the fit", data.label_name)));
    }
    facts
}

fn preparation(preprocessing: Preprocessing) -> String {
    let centred = match preprocessing.centering {
        Centering::None => "columns as they are, nothing subtracted",
        _ => "every column minus its mean",
    };
    match preprocessing.scaling {
        Scaling::None => format!("{centred}, not scaled"),
        Scaling::Std => format!("{centred}, divided by its standard deviation"),
        Scaling::MinMax => format!("{centred}, divided by its range"),
        other => format!("{centred}, scaled: {}", other.name()),
    }
}

fn verdict(origin: &Origin) -> String {
    match origin.outcome {
        Outcome::Converged => format!("Converged to a tolerance of {:.0e}.", origin.tol),
        Outcome::Stagnated => "Not converged: rounding allows no more.".to_owned(),
        Outcome::Interrupted => "Not converged: the run was interrupted.".to_owned(),
        _ => "Not converged: passes or seconds were used up.".to_owned(),
    }
}

/// The certificate for those who do not know what a residual is.
fn meaning(origin: &Origin) -> String {
    let eigenvalues = "Every eigenvalue below was checked against the data: a true one lies within the stated ±, whatever \
        the solver did.";
    let angles = match origin.certificate.certainty {
        Certainty::Proved => "That no larger component was missed, and the bounds on angles, are proved.".to_owned(),
        Certainty::Probability => format!(
            "That no larger component was missed, and the bounds on angles, hold {}.",
            origin.certificate.certainty_in_words()
        ),
        _ => "That no larger component was missed, and the bounds on angles, rest on an estimate of the next eigenvalue; \
              fit with --certify 1e-9 to bound it."
            .to_owned(),
    };
    let rule = match origin.rule {
        CertificateRule::EachEigenvalue => "",
        CertificateRule::FirstEigenvalue => {
            " The certificate was made by an earlier rule, with residuals relative to the first eigenvalue."
        }
    };
    format!("{eigenvalues} {angles}{rule}")
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).chain(['.']).collect())
}

fn component_table(model: &Model, origin: &Origin) -> Table {
    let certificate = &origin.certificate;
    let k = model.n_components();
    let has_status = (0..k).any(|i| !certificate.status_in_words(i).is_empty());
    let header = ["component", "eigenvalue", "± at most", "share", "cumulative", "angle at most", "status"];
    let mut table = Table::new("components", "Components", &header[..if has_status { 7 } else { 6 }]);
    let mut cumulative = 0.0;
    for (i, ratio) in model.explained_variance_ratio().iter().enumerate().take(MOST_LISTED) {
        cumulative += ratio;
        let mut row = vec![
            (i + 1).to_string(),
            exact(model.eigenvalues()[i]),
            format!("{:.1e}", certificate.residuals.get(i).copied().unwrap_or(f64::NAN)),
            per_cent(*ratio),
            per_cent(cumulative),
            certificate.angle_in_words(i),
        ];
        row.extend(has_status.then(|| certificate.status_in_words(i).to_owned()));
        table.rows.push(row);
    }
    if k > MOST_LISTED {
        table.notes.push(format!("The first {MOST_LISTED} of {} components.", grouped(k)));
    }
    table.notes.push(
        "Eigenvalues are variances along the components (denominator n); angles are sines of the angle to the true direction."
            .into(),
    );
    table
}

/// Nine significant digits, as many as a bound beside them deserves.
fn exact(x: f64) -> String {
    let magnitude = x.abs();
    if magnitude != 0.0 && !(1e-4..1e9).contains(&magnitude) {
        return format!("{x:.8e}");
    }
    let before = if magnitude >= 1.0 { magnitude.log10().floor() as usize + 1 } else { 1 };
    format!("{x:.*}", 9_usize.saturating_sub(before))
}

fn scree_words(model: &Model) -> String {
    let shares = model.explained_variance_ratio();
    let total: f64 = shares.iter().sum();
    let mut sum = 0.0;
    let half = shares.iter().position(|share| {
        sum += share;
        sum >= 0.5 * total
    });
    let most = half.filter(|_| shares.len() > 2).map_or_else(String::new, |i| {
        format!(
            " {} of it in the first {}.",
            per_cent(shares[..=i].iter().sum::<f64>() / total.max(f64::MIN_POSITIVE)),
            i + 1
        )
    });
    format!("Together {}.{most}", per_cent(total))
}

/// Components on the heat map.
pub(super) fn n_mapped(model: &Model) -> usize {
    model.n_components().min(MOST_MAPPED.1)
}

/// Columns on the heat map, in their order: those of which the components explain most variance, Σᵢ λᵢuᵢⱼ².
pub(super) fn mapped_columns(model: &Model) -> Vec<usize> {
    let mut weights = vec![0.0; model.n_features()];
    for (i, eigenvalue) in model.eigenvalues().iter().enumerate() {
        weights.iter_mut().zip(model.component(i)).for_each(|(weight, u)| *weight += eigenvalue * u * u);
    }
    let mut columns = leading_columns(&weights, MOST_MAPPED.0);
    columns.sort_unstable();
    columns
}

fn loadings_words(model: &Model) -> String {
    let (d, most) = (model.n_features(), MOST_MAPPED.0);
    if d <= most {
        return String::new();
    }
    format!(
        "The map shows the {most} of {} columns of which the components explain most variance.",
        grouped(d)
    )
}

fn cards(model: &Model, names: &[String]) -> Vec<Card> {
    let shares = model.explained_variance_ratio();
    let card = |i: usize| {
        let component = model.component(i);
        let leading = leading_columns(component, MOST_CARDS.1);
        let largest = leading.first().map_or(1.0, |j| component[*j].abs().max(f64::MIN_POSITIVE));
        let loading = |j: &usize| Loading {
            name: names[*j].clone(),
            value: signed(component[*j]),
            sign: if component[*j] < 0.0 { "negative" } else { "positive" },
            width: format!("{:.1}", 50.0 * component[*j].abs() / largest),
        };
        Card { number: i + 1, share: per_cent(shares[i]), loadings: leading.iter().map(loading).collect() }
    };
    (0..model.n_components().min(MOST_CARDS.0)).map(card).collect()
}

/// Three decimals, with a minus that is as wide as a plus.
fn signed(x: f64) -> String {
    format!("{x:+.3}").replace('-', "−")
}

fn scores(data: &DataSet<'_>, rows: &Rows) -> Scores {
    let (n, drawn) = (rows.n(), rows.drawn.len());
    let thinned = if drawn < n {
        format!(
            " {} of {} rows are drawn, at even steps and the farthest besides.",
            grouped(drawn),
            grouped(n)
        )
    } else {
        String::new()
    };
    let (categories, scale) = match &rows.colouring {
        Some(Colouring::Categories { names, .. }) => (Some(names.clone()), None),
        Some(Colouring::Scale(values)) => {
            let (low, high) = ends(values);
            (None, Some([significant(low), significant(high)]))
        }
        None => (None, None),
    };
    let coloured = match (&categories, &scale) {
        (Some(_), _) => format!(" Colours show {}; press one to hide it.", data.label_name),
        (None, Some(_)) => format!(" Colours show {}.", data.label_name),
        (None, None) => String::new(),
    };
    let shown = rows.k.min(MOST_SCORES);
    Scores {
        caption: format!(
            "Every dot is a row, seen along two components; near dots are similar rows.{coloured}{thinned}"
        ),
        words: format!("{} rows in the plane of two components.{coloured}", grouped(drawn)),
        n: shown,
        second: usize::from(shown > 1),
        colour_name: data.label_name.clone(),
        categories,
        scale,
    }
}

fn outliers(data: &DataSet<'_>, rows: &Rows) -> Outliers {
    let (distances, n) = (&rows.distances, rows.n());
    let share = rows.outliers.len() as f64 / n.max(1) as f64;
    let times = |distance: f64, cutoff: f64| {
        if cutoff > 0.0 {
            format!("{} ({:.1}×)", significant(distance), distance / cutoff)
        } else {
            significant(distance)
        }
    };
    let mut header = vec!["row"];
    header.extend(data.labels.map(|_| data.label_name.as_str()));
    header.extend(["score distance (× cutoff)", "orthogonal distance (× cutoff)"]);
    let mut table = Table::new("outliers", "The farthest rows", &header);
    for l in rows.outliers.iter().take(MOST_OUTLIERS) {
        let mut row = vec![(l + 1).to_string()];
        row.extend(data.labels.map(|labels| labels.text(*l).into_owned()));
        row.push(times(distances.score[*l], distances.score_cutoff));
        row.push(distances.orthogonal_cutoff.map_or_else(
            || significant(distances.orthogonal[*l]),
            |cutoff| times(distances.orthogonal[*l], cutoff),
        ));
        table.rows.push(row);
    }
    let beside = if distances.orthogonal_cutoff.is_none() {
        " The components hold all variance: nothing lies beside them."
    } else {
        ""
    };
    Outliers {
        caption: format!(
            "Score distance: how far a row lies from the centre within the components, in standard deviations. Orthogonal \
             distance: how much of it the components do not reproduce. Of regular, normally distributed rows \
             {} lie below each dashed line.{beside}",
            per_cent(hbpca::model::Distances::SHARE)
        ),
        words: format!(
            "{} of {} rows ({}) lie beyond a cutoff.",
            grouped(rows.outliers.len()),
            grouped(n),
            per_cent(share)
        ),
        table,
    }
}

fn convergence_words(origin: &Origin) -> String {
    let looks = origin.history.len();
    let last = origin
        .history
        .last()
        .filter(|record| record.theta > 0.0)
        .map(|record| record.residual / record.theta);
    let end = last
        .map_or_else(String::new, |x| format!(" The largest residual ended at {x:.1e} of its eigenvalue."));
    format!(
        "{} after {} of {}, {} looked at.{end}",
        sentence(&origin.outcome.to_string()).trim_end_matches('.'),
        counted_f64(origin.passes, "pass", "passes"),
        origin.solver,
        counted(looks, "iterate")
    )
}

fn made(subject: &Subject<'_>) -> Vec<Fact> {
    let origin = &subject.stored.origin;
    let mut facts = vec![
        fact("solver", format!("{} ({})", origin.solver, origin.chosen_because)),
        fact("tolerance", format!("{:.0e}", origin.tol)),
        fact("seed", origin.seed),
        fact(
            "cost",
            format!("{} in {} s", counted_f64(origin.passes, "pass", "passes"), significant(origin.seconds)),
        ),
    ];
    if let Some(probe) = &origin.probe {
        let given = if probe.seed_is_given { ", given" } else { "" };
        facts.push(fact("probe", format!("{} passes, seed {}{given}", probe.passes, probe.seed)));
    }
    facts.extend(subject.model_name.as_ref().map(|name| fact("model", name)));
    facts.push(fact("model made by", &origin.software));
    facts.push(fact("report made by", concat!("hbpca ", env!("CARGO_PKG_VERSION"))));
    facts.push(fact("command", &subject.command));
    facts
}

fn counted(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

fn counted_f64(x: f64, one: &str, many: &str) -> String {
    let text = format!("{x:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    format!("{text} {}", if text == "1" { one } else { many })
}
