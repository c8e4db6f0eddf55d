//! What the theory says of step sizes.

use hbpca::theory::{LiteralBound, Method, Problem};

use crate::figure::chart::{Dash, Figure, Mark, Panel, Scale, Series, Style};
use crate::figure::palette;
use crate::race::Race;

/// Step sizes a decade.
const PER_DECADE: i32 = 24;

/// ρ(η, K) of the model for the three methods and, where the theorem's own bound is given, of that, with η̄(K), the largest step that it allows, and
/// the progress 1 − ρ that it promises up to there.
pub fn rates(problem: &Problem, bound: Option<&LiteralBound>) -> Figure {
    let largest = bound.and_then(LiteralBound::largest_step_size);
    let mut panels = vec![contraction(problem, bound, largest)];
    panels.extend(bound.zip(largest).map(|(bound, largest)| progress(bound, largest)));
    let (lambda1, lambda2, k, m) =
        (problem.lambda1(), problem.lambda2(), problem.variance(), problem.epoch());
    let note = match (bound, largest) {
        (Some(_), None) => {
            Some("The theorem's own bound is below 1 for no step that double precision can hold.".into())
        }
        _ => None,
    };
    let title = format!("Contraction of an epoch: λ₁ = {lambda1}, λ₂ = {lambda2}, K = {k}, m = {m}");
    Figure { title, note, columns: panels.len(), panels }
}

/// ρ(η, K) of the model for every race, with the largest step for which it is below 1: K is that of the race's batches.
pub fn rates_of_races(races: &[&Race]) -> Figure {
    let panel = |race: &&Race| {
        let [lambda1, lambda2] = race.reference.eigenvalues;
        let problem =
            Problem::new(lambda1, lambda2, race.reference.variance_of(race.batch), race.epoch).ok()?;
        let mut panel = contraction(&problem, None, None);
        panel.title = format!("{}, m = {}", race.title, race.epoch);
        if let Some(largest) = largest_of_model(&problem) {
            let style = Style { dash: Dash::Dashed, ..palette::numbered(8) };
            let line = vec![(largest, 1e-3), (largest, 10.0)];
            panel.series.push(Series::new("η̄(K) of VR HB Power", style, Mark::Line, line));
        }
        Some(panel)
    };
    let panels: Vec<Panel> = races.iter().filter_map(panel).collect();
    let note = "Below 1 an epoch contracts; η̄(K) is the largest step for which it does".to_owned();
    Figure { title: "ρ(η, K)".into(), note: Some(note), columns: panels.len().clamp(1, 3), panels }
}

/// The largest η ≤ 1 for which an epoch of VR HB Power contracts, by bisection between two steps of the drawing.
fn largest_of_model(problem: &Problem) -> Option<f64> {
    let contracts =
        |eta: f64| problem.contraction(Method::VrHbPower { eta }).is_ok_and(|found| found.ln_rate < 0.0);
    let (mut low, mut high) = (steps(8).filter(|eta| contracts(*eta)).last()?, 1.0);
    if low >= 1.0 {
        return Some(1.0);
    }
    high = f64::min(high, low * 10.0_f64.powf(1.0 / f64::from(PER_DECADE)));
    for _ in 0..40 {
        let middle = (low * high).sqrt();
        *(if contracts(middle) { &mut low } else { &mut high }) = middle;
    }
    Some(low)
}

/// Step sizes from 1 down, so many decades.
fn steps(decades: i32) -> impl Iterator<Item = f64> {
    (0..=decades * PER_DECADE).rev().map(|i| 10.0_f64.powf(-f64::from(i) / f64::from(PER_DECADE)))
}

/// Rates between 1e-6 and 10: what is above diverges, and how fast does not matter.
fn drawable(rate: f64) -> bool {
    (1e-6..=10.0).contains(&rate)
}

fn contraction(problem: &Problem, bound: Option<&LiteralBound>, largest: Option<f64>) -> Panel {
    let model = |method: fn(f64) -> Method| -> Vec<(f64, f64)> {
        let rate = |eta: f64| Some((eta, problem.contraction(method(eta)).ok()?.rate()));
        steps(4).filter_map(rate).filter(|point| drawable(point.1)).collect()
    };
    let dashed = |i: usize| Style { dash: Dash::Dashed, ..palette::numbered(i) };
    let mut series = vec![
        Series::new(
            "VR HB Power, model",
            palette::numbered(1),
            Mark::Line,
            model(|eta| Method::VrHbPower { eta }),
        ),
        Series::new("VR-PCA, model", palette::numbered(5), Mark::Line, model(|eta| Method::VrPca { eta })),
    ];
    if let Some(bound) = bound {
        let proved = |eta: f64| Some((eta, bound.rate(eta).ok()?.ln_rate.exp()));
        let points = steps(4).filter_map(proved).filter(|point| drawable(point.1)).collect();
        series.push(Series::new("VR HB Power, proved", dashed(1), Mark::Line, points));
    }
    if let Some(largest) = largest.filter(|eta| *eta >= 1e-4) {
        series.push(Series::new("η̄(K)", dashed(8), Mark::Line, vec![(largest, 1e-3), (largest, 10.0)]));
    }
    Panel {
        title: "ρ(η, K)".into(),
        x_label: "step size η".into(),
        y_label: "factor of the squared error".into(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        y_names: Vec::new(),
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
    }
}

/// 1 − ρ of the proved bound, from a ten-thousandth of η̄ up to it.
fn progress(bound: &LiteralBound, largest: f64) -> Panel {
    let gain = |eta: f64| Some((eta, -bound.rate(eta).ok()?.ln_rate.exp_m1()));
    let points: Vec<(f64, f64)> = steps(4)
        .filter(|share| *share < 1.0)
        .filter_map(|share| gain(share * largest))
        .filter(|point| point.1 > 0.0)
        .collect();
    let ends = |of: fn(f64, f64) -> f64, from: f64| points.iter().map(|point| point.1).fold(from, of);
    let line = vec![(largest, ends(f64::min, f64::INFINITY)), (largest, ends(f64::max, 0.0))];
    let style = Style { dash: Dash::Dashed, ..palette::numbered(8) };
    Panel {
        title: "1 − ρ(η, K), proved".into(),
        x_label: "step size η".into(),
        y_label: "progress of an epoch".into(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        y_names: Vec::new(),
        series: vec![
            Series::new("VR HB Power, proved", palette::numbered(1), Mark::Line, points),
            Series::new("η̄(K)", style, Mark::Line, line),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::svg;

    #[test]
    fn the_largest_step_of_the_model_separates_progress_from_none() {
        let problem = Problem::new(1.0, 0.9, 0.5, 20).unwrap();
        let largest = largest_of_model(&problem).unwrap();
        assert!(largest < 1.0, "{largest}");
        let rate = |eta: f64| problem.contraction(Method::VrHbPower { eta }).unwrap().rate();
        assert!(rate(0.999 * largest) < 1.0 && rate(1.001 * largest) > 1.0);
        assert_eq!(largest_of_model(&Problem::new(1.0, 0.5, 0.0, 5).unwrap()), Some(1.0));
    }

    #[test]
    fn the_largest_step_is_drawn_where_the_bound_ends() {
        let problem = Problem::new(1.0, 0.5, 0.1, 5).unwrap();
        let bound = LiteralBound::new(problem, 3, 4.0).unwrap();
        let figure = rates(&problem, Some(&bound));
        assert_eq!((figure.panels.len(), figure.note.clone()), (2, None));
        let largest = bound.largest_step_size().unwrap();
        let progress = &figure.panels[1].series;
        assert!(progress[0].points.iter().all(|(eta, gain)| *eta <= largest * (1.0 + 1e-12) && *gain > 0.0));
        assert!(progress[1].points.iter().all(|(eta, _)| (eta / largest - 1.0).abs() < 1e-12));
        assert!(svg(&figure).unwrap().contains("η̄(K)"));
        // A bound that proves nothing is said to, and the model is drawn alone without one.
        let long = Problem::new(1.0, 0.9, 0.1, 10_000).unwrap();
        let none = rates(&long, Some(&LiteralBound::new(long, 10, 2.0).unwrap()));
        assert!(none.panels.len() == 1 && none.note.is_some());
        assert_eq!(rates(&problem, None).panels.len(), 1);
    }
}
