//! What the page shows: every number is text by now, the template only places it.

use serde::Serialize;

use super::charts::{heat_map_json, panel_json};
use crate::figure::chart::{HeatMap, Panel};
use crate::figure::palette::style_of;
use crate::figure::races::{Abscissa, Field, error_in_symbols, race_panel};
use crate::findings::{Claim, Table, Verdict, passes_text};
use crate::race::Race;

/// The whole page.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    /// Title.
    pub title: String,
    /// One paragraph under it.
    pub lead: String,
    /// What a reader must know first, such as that the run was quick.
    pub warning: Option<String>,
    /// The recommendation, where one is made.
    pub recommendation: Vec<String>,
    /// Verdicts, counted.
    pub counts: Vec<Count>,
    /// The claims.
    pub claims: Vec<ClaimView>,
    /// Solvers of the charts, for switching them on and off.
    pub solvers: Vec<SolverView>,
    /// Groups of charts.
    pub groups: Vec<Group>,
    /// Heat maps.
    pub heat_maps: Vec<ChartView>,
    /// ρ(η, K), drawn as SVG.
    pub rates: Option<String>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Facts about machine, software and run.
    pub environment: Vec<Fact>,
    /// Files beside the page.
    pub files: Vec<FileView>,
}

/// How often a verdict was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Class of the page's style.
    pub class: Verdict,
    /// In words.
    pub words: String,
    /// How often.
    pub count: usize,
}

/// A claim on the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimView {
    /// The claim.
    #[serde(flatten)]
    pub claim: Claim,
    /// Its verdict in words.
    pub words: String,
}

/// A solver that can be switched on and off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SolverView {
    /// Name in the charts.
    pub label: String,
    /// `#rrggbb`.
    pub colour: String,
}

/// Charts under one heading.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// The heading.
    pub title: String,
    /// How the charts are to be read.
    pub caption: String,
    /// The charts.
    pub charts: Vec<ChartView>,
}

/// An interactive chart.
#[derive(Clone, Debug, Serialize)]
pub struct ChartView {
    /// Identifier in the page.
    pub id: String,
    /// Title.
    pub title: String,
    /// What it shows, in words.
    pub description: String,
    /// The chart against passes, or the only one.
    pub passes: String,
    /// The chart against seconds.
    pub seconds: Option<String>,
}

/// A name and a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// A file beside the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileView {
    /// Name.
    pub name: String,
    /// What is in it.
    pub content: String,
}

/// The claims, and how often each verdict was given.
pub fn claim_views(claims: Vec<Claim>) -> (Vec<ClaimView>, Vec<Count>) {
    let verdicts = [
        Verdict::Holds,
        Verdict::HoldsOrTies,
        Verdict::HoldsInPart,
        Verdict::Tie,
        Verdict::DoesNotHold,
        Verdict::NotTested,
    ];
    let count = |class: Verdict| Count {
        class,
        words: class.words().to_owned(),
        count: claims.iter().filter(|claim| claim.verdict == class).count(),
    };
    let counts = verdicts.into_iter().map(count).filter(|count| count.count > 0).collect();
    let view = |claim: Claim| ClaimView { words: claim.verdict.words().to_owned(), claim };
    (claims.into_iter().map(view).collect(), counts)
}

/// The charts of an experiment.
pub fn race_group(name: &str, title: &str, races: &[Race]) -> Group {
    let chart = |race: &Race| ChartView {
        id: format!("{name}-{}", race.dataset),
        title: match race.reference.k() {
            1 => format!("{} (λ₂/λ₁ = {:.4})", race.title, race.reference.ratio()),
            k => format!("{}, {k} components", race.title),
        },
        description: describe(race),
        passes: panel_json(&race_panel(race, Abscissa::Passes, Field::Extended)),
        seconds: Some(panel_json(&race_panel(race, Abscissa::Seconds, Field::Extended))),
    };
    let caption = races.first().map_or_else(String::new, |race| {
        let seeds = race.lanes.first().map_or(0, |lane| lane.runs.len());
        format!(
            "Error gap {} of the outer iterates; m = {}; lines are means of log₁₀ over {seeds} seeds, bands one \
             standard deviation of log₁₀ to either side. Seconds are {}. Untick a solver above to hide it; drag to zoom, \
             double-click to zoom out; with the keyboard: + and − zoom, arrows move, 0 goes back.",
            error_in_symbols(race),
            race.epoch,
            race.clock.words()
        )
    });
    Group { title: title.into(), caption, charts: races.iter().map(chart).collect() }
}

/// The race in words, for those who do not see the chart.
pub fn describe(race: &Race) -> String {
    let lanes =
        race.lanes.iter().map(|lane| format!("{}: {}", lane.contender.label(), passes_text(race, lane)));
    format!(
        "Passes to a mean log₁₀ error of {:.0} on {}. {}.",
        race.target.log10(),
        race.title,
        lanes.collect::<Vec<_>>().join("; ")
    )
}

/// The solvers of all races, in the order of appearance.
pub fn solver_views<'a>(races: impl Iterator<Item = &'a Race>) -> Vec<SolverView> {
    let mut solvers: Vec<SolverView> = Vec::new();
    for lane in races.flat_map(|race| &race.lanes) {
        let view = SolverView { label: lane.contender.label(), colour: style_of(lane.contender).hex() };
        if !solvers.contains(&view) {
            solvers.push(view);
        }
    }
    solvers
}

/// A heat map on the page.
pub fn heat_map_view(id: &str, map: &HeatMap) -> ChartView {
    let best = |(name, values): (&String, &Vec<f64>)| {
        let best = values.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(i, value)| format!("|S| = {name}: {value:.1} at x = {:.3}", map.x[i]))
    };
    let lines: Vec<String> = map.y.iter().zip(&map.values).filter_map(best).collect();
    ChartView {
        id: id.into(),
        title: map.title.clone(),
        description: format!(
            "Smallest log₁₀ error by batch. {}. Rings: {}.",
            lines.join("; "),
            map.mark_label
        ),
        passes: heat_map_json(map),
        seconds: None,
    }
}

/// A single panel on the page.
pub fn panel_view(id: &str, panel: &Panel, description: &str) -> ChartView {
    ChartView {
        id: id.into(),
        title: panel.title.clone(),
        description: description.into(),
        passes: panel_json(panel),
        seconds: None,
    }
}
