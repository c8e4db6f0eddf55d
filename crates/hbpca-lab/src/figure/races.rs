//! Races as figures: error against passes or seconds, one panel a data set.

use super::chart::{Figure, Mark, Panel, Scale, Series};
use super::palette::style_of;
use crate::race::{Clock, Lane, Race};

/// What the abscissa of a race is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abscissa {
    /// Data read, divided by n.
    Passes,
    /// Seconds by the race's clock.
    Seconds,
}

/// Which solvers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Those of the paper's figure.
    Paper,
    /// All.
    Extended,
}

/// The panels of a figure of the paper.
pub fn race_figure(title: &str, races: &[Race], abscissa: Abscissa, field: Field) -> Figure {
    let extended = if field == Field::Extended { ", with solvers that the paper does not have" } else { "" };
    Figure {
        title: format!("{title}{extended}"),
        note: thinning_note(races.iter().filter_map(|race| Some((race.reference.n, race.thinned_from?)))),
        panels: races.iter().map(|race| race_panel(race, abscissa, field)).collect(),
        columns: 3,
    }
}

/// What every figure of a quick run says.
pub fn thinning_note(thinned: impl Iterator<Item = (usize, usize)>) -> Option<String> {
    let (kept, _) = thinned.max()?;
    Some(format!(
        "quick run: at most {kept} rows of each data set, few seeds and step sizes; not the paper's result"
    ))
}

/// One race as a panel: mean of log₁₀ error with a band of one standard deviation to either side.
pub fn race_panel(race: &Race, abscissa: Abscissa, field: Field) -> Panel {
    let shown = race.lanes.iter().filter(|lane| field == Field::Extended || !lane.extended);
    let ratio = race.reference.ratio();
    Panel {
        title: match race.reference.k() {
            1 => format!("{}  (λ₂/λ₁ = {ratio:.4})", race.title),
            k => format!("{}, {k} components", race.title),
        },
        x_label: match abscissa {
            Abscissa::Passes => "passes over the data".into(),
            Abscissa::Seconds => seconds_label(race.clock).into(),
        },
        y_label: error_in_symbols(race).into(),
        x_scale: match abscissa {
            Abscissa::Passes => Scale::Linear,
            Abscissa::Seconds => Scale::Log,
        },
        y_scale: Scale::Log,
        y_names: Vec::new(),
        series: shown.map(|lane| lane_series(lane, abscissa)).collect(),
    }
}

/// What the error of a race is.
pub fn error_in_symbols(race: &Race) -> &'static str {
    if race.reference.k() == 1 { "1 − (w̃ᵀu₁)²" } else { "‖(I − UUᵀ)W̃‖²" }
}

fn seconds_label(clock: Clock) -> &'static str {
    match clock {
        Clock::Processor => "processor seconds, one thread",
        Clock::Wall => "seconds",
    }
}

fn lane_series(lane: &Lane, abscissa: Abscissa) -> Series {
    let curve = &lane.curve;
    let x = match abscissa {
        Abscissa::Passes => &curve.passes,
        Abscissa::Seconds => &curve.seconds,
    };
    let power = |log: f64| 10.0_f64.powf(log);
    let band = curve.mean.iter().zip(&curve.deviation);
    Series {
        label: lane.contender.label(),
        style: style_of(lane.contender),
        mark: Mark::Line,
        points: x.iter().zip(&curve.mean).map(|(x, log)| (*x, power(*log))).collect(),
        // An error is at most 1.
        band: Some(band.map(|(log, sd)| (power(log - sd), power((log + sd).min(0.0)))).collect()),
        texts: Vec::new(),
        shades: Vec::new(),
    }
}
