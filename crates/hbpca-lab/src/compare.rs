//! The same race on the user's own data, ending in advice.

use std::fmt;
use std::path::{Path, PathBuf};

use hbpca::SolverKind;
use serde::Serialize;

use crate::LabError;
use crate::dataset::Dataset;
use crate::experiment::{GridSpec, RaceSpec, StudySpec};
use crate::figure::races::{Abscissa, Field, race_figure};
use crate::figure::text::{grouped, per_cent, significant};
use crate::figure::{svg, write_svg_and_png};
use crate::findings::{Table, factor_text, passes, passes_text, speed_up};
use crate::progress::Progress;
use crate::race::{
    Clock, Contender, Lane, Race, RunStore, StepScale, Track, looks_csv, searches_csv, seconds_csv,
};
use crate::reference::Reference;
use crate::report::environment::{environment, fact};
use crate::report::render;
use crate::report::view::{FileView, Page, heat_map_view, race_group, solver_views};
use crate::study::Study;
use crate::write_atomically;

/// What to race.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// k, the components sought.
    pub k: usize,
    /// The solvers; those that suit the data where none are named.
    pub solvers: Vec<Contender>,
    /// Repetitions.
    pub seeds: u64,
    /// |S|.
    pub batch: String,
    /// m.
    pub epoch: usize,
    /// Whether to study step sizes and batches too.
    pub study: StudyChoice,
    /// The report.
    pub report: PathBuf,
    /// The command that was typed.
    pub command: String,
}

/// Whether a comparison includes the study of step sizes and batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudyChoice {
    /// It does.
    With,
    /// It does not.
    Without,
}

/// Columns up to which forming the covariance matrix is worth trying.
const MOST_COLUMNS_FOR_COVARIANCE: usize = 2000;

/// The folder of the raw numbers, beside the report.
pub fn files_folder(report: &Path) -> PathBuf {
    let stem = report.file_stem().map_or("report".into(), |stem| stem.to_string_lossy().into_owned());
    report.with_file_name(format!("{stem}-files"))
}

impl Comparison {
    /// Races on `dataset` and writes the report, with the raw numbers in a folder beside it.
    pub fn run(&self, dataset: &Dataset, progress: &Progress) -> Result<Race, LabError> {
        let folder = files_folder(&self.report);
        let folder_name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let store = RunStore::open(&folder.join("runs"))?;
        self.refuse_solvers_of_one_component()?;
        let reference = Reference::obtain(dataset, &folder, self.k)?;
        let track = Track::new(dataset, &reference)?;
        let spec = self.race_spec(dataset);
        let race = Race::run(&spec, &track, &store, progress)?;
        let study = match self.study {
            StudyChoice::Without => None,
            StudyChoice::With => {
                let spec = StudySpec { passes: dataset.passes.min(16.0), ..StudySpec::built_in()? };
                Some(Study::run(&spec, &track, &store, progress)?)
            }
        };
        let races = std::slice::from_ref(&race);
        write_atomically(&folder.join("race.csv"), looks_csv(races).as_bytes())?;
        write_atomically(&folder.join("race-seconds.csv"), seconds_csv(races).as_bytes())?;
        write_atomically(&folder.join("race-step-sizes.csv"), searches_csv(races).as_bytes())?;
        for (name, abscissa) in [("race", Abscissa::Passes), ("race-seconds-figure", Abscissa::Seconds)] {
            let figure = race_figure(&spec.title, races, abscissa, Field::Extended);
            write_svg_and_png(&svg(&figure)?, &folder, name)?;
        }
        let page = self.page(&race, study.as_ref(), &folder_name, progress);
        write_atomically(&self.report, render(&page)?.as_bytes())?;
        Ok(race)
    }

    /// Refuses what cannot find k components, by name.
    fn refuse_solvers_of_one_component(&self) -> Result<(), LabError> {
        let alone: Vec<&str> = self
            .solvers
            .iter()
            .map(|c| c.solver)
            .filter(|s| self.k > 1 && !s.finds_many())
            .map(SolverKind::name)
            .collect();
        if self.k > 1 && self.study == StudyChoice::With {
            let message =
                format!("-k {}: --study is about solvers of one component; leave one of the two out", self.k);
            return Err(LabError::Usage(message));
        }
        if alone.is_empty() {
            return Ok(());
        }
        Err(LabError::Usage(format!(
            "-k {}: {} finds one component only; leave it out of --solvers, or race for one with -k 1",
            self.k,
            alone.join(", ")
        )))
    }

    /// What was written, for people.
    fn announcement(&self) -> String {
        let (report, folder) = (self.report.display(), files_folder(&self.report));
        let folder = folder.display();
        format!(
            "Wrote {report}, and into {folder}: race.csv, race-seconds.csv, race-step-sizes.csv, race.svg, race.png, \
             race-seconds-figure.svg, race-seconds-figure.png, the reference, and finished runs (runs), which a repetition does not make \
             again."
        )
    }

    fn race_spec(&self, dataset: &Dataset) -> RaceSpec {
        let solvers = if self.solvers.is_empty() {
            suitable(dataset.matrix.n_cols(), self.k)
        } else {
            self.solvers.clone()
        };
        RaceSpec {
            name: "race".into(),
            title: format!("Race on {}", dataset.title),
            batch: self.batch.clone(),
            epoch: self.epoch,
            datasets: vec![dataset.id.clone()],
            dataset: Vec::new(),
            solvers,
            variants: Vec::new(),
            extended: Vec::new(),
            seeds: self.seeds,
            extended_seeds: None,
            target: 1e-10,
            floor: 1e-15,
            clock: Clock::Wall,
            grid: GridSpec {
                smallest: 0.03,
                largest: 100.0,
                points: 8,
                refinements: 1,
                seeds: 1,
                screening: None,
                budget: 1.0,
            },
            quick: None,
        }
    }

    fn page(&self, race: &Race, study: Option<&Study>, folder: &str, progress: &Progress) -> Page {
        let reference = &race.reference;
        let mut facts = environment();
        facts.push(fact("command", &self.command));
        facts.push(fact("seeds", format!("0 to {}", self.seeds.saturating_sub(1))));
        facts.push(fact("batch and epoch", format!("|S| = {} rows, m = {}", race.batch, race.epoch)));
        facts.push(fact(
            "reference",
            format!("block Lanczos in f64, residual {:.1e} λ₁", reference.relative_residual),
        ));
        facts.push(fact("components", self.k));
        facts.push(fact("time taken", format!("{:.0} s", progress.seconds())));
        let file = |name: &str, content: &str| FileView {
            name: format!("{folder}/{name}"),
            content: content.into(),
        };
        Page {
            title: format!("Which solver for {}?", race.title),
            lead: format!(
                "n = {}, d = {}, {} of the entries not zero, λ₂/λ₁ = {:.5}.",
                grouped(reference.n),
                grouped(reference.d),
                per_cent(reference.density),
                reference.ratio()
            ),
            warning: None,
            recommendation: recommendation(race),
            counts: Vec::new(),
            claims: Vec::new(),
            solvers: solver_views(std::iter::once(race)),
            groups: vec![race_group("race", "The race", std::slice::from_ref(race))],
            heat_maps: study.iter().map(|study| heat_map_view("study", &study.heat_map(None))).collect(),
            rates: None,
            tables: vec![ranking(race)],
            environment: facts,
            files: vec![
                file("race.csv", "every outer iterate of every run: passes, error, λ₂ in force"),
                file("race-seconds.csv", "the clock at every outer iterate"),
                file("race-step-sizes.csv", "every step size tried, and what it won"),
            ],
        }
    }
}

/// What a comparison found, for people as text and for scripts as an object.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// k, the components sought.
    pub k: usize,
    /// The error that solvers are compared at.
    pub target: f64,
    /// Advice in words, one sentence each.
    pub recommendation: Vec<String>,
    /// The solvers, the one with the fewest passes first.
    pub solvers: Vec<Ranked>,
    /// The report.
    pub output: PathBuf,
    /// The folder of the raw numbers.
    pub files: PathBuf,
    #[serde(skip)]
    announcement: String,
}

/// One solver of a comparison, by the mean of its runs.
#[derive(Clone, Debug, Serialize)]
pub struct Ranked {
    /// Its name, and what was given to it.
    pub solver: String,
    /// Its step size, where it has one.
    pub eta: Option<f64>,
    /// Passes to the target; none where it was not reached.
    pub passes: Option<f64>,
    /// Seconds to the target; none where it was not reached.
    pub seconds: Option<f64>,
    /// log₁₀ of the error at the end.
    pub log10_error: f64,
}

impl Compared {
    pub(crate) fn new(comparison: &Comparison, race: &Race) -> Self {
        let ranked = |lane: &Lane| Ranked {
            solver: lane.contender.label(),
            eta: lane.eta,
            passes: lane.curve.passes_to(race.target),
            seconds: lane.curve.seconds_to(race.target),
            log10_error: lane.curve.final_log_error(),
        };
        Self {
            k: comparison.k,
            target: race.target,
            recommendation: recommendation(race),
            solvers: in_order(race).into_iter().map(ranked).collect(),
            output: comparison.report.clone(),
            files: files_folder(&comparison.report),
            announcement: comparison.announcement(),
        }
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.recommendation.join("\n"), self.announcement)
    }
}

/// Every solver that suits d columns and k components. `auto` is a choice among the others, not a solver of its own.
fn suitable(d: usize, k: usize) -> Vec<Contender> {
    let all = SolverKind::ALL.into_iter().filter(|kind| k == 1 || kind.finds_many());
    let fits = all.filter(|kind| !kind.forms_covariance() || d <= MOST_COLUMNS_FOR_COVARIANCE);
    fits.filter_map(|kind| kind.name().parse().ok()).collect()
}

/// Lanes that reach the target, by a measure.
fn best_by(race: &Race, measure: impl Fn(&Lane) -> Option<f64>) -> Option<(&Lane, f64)> {
    let measured = race.lanes.iter().filter_map(|lane| Some((lane, measure(lane)?)));
    measured.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Advice in words: for this data …, because ….
pub fn recommendation(race: &Race) -> Vec<String> {
    let k = race.reference.k();
    let sought = if k > 1 { format!("-k {k} ") } else { String::new() };
    let name =
        |lane: &Lane| format!("{sought}--solver {} ({})", lane.contender.solver, lane.contender.label());
    let fewest = best_by(race, |lane| lane.curve.passes_to(race.target));
    let quickest = best_by(race, |lane| lane.curve.seconds_to(race.target));
    let (Some((fewest, passes)), Some((quickest, seconds))) = (fewest, quickest) else {
        let nearest = best_by(race, |lane| Some(lane.curve.final_log_error()));
        let nearest = nearest.map_or_else(String::new, |(lane, error)| {
            format!(" {} came nearest, with a mean log₁₀ error of {error:.1}.", lane.contender.label())
        });
        return vec![format!(
            "No solver reached an error of {:.0e} within {} passes.{nearest} Give a larger --passes, or add krylov to --solvers.",
            race.target, race.passes
        )];
    };
    let mut lines = Vec::new();
    let because = format!(
        "it reached an error of {:.0e} after {passes:.1} passes and in {} s",
        race.target,
        significant(fewest.curve.seconds_to(race.target).unwrap_or(f64::NAN))
    );
    if std::ptr::eq(fewest, quickest) {
        lines.push(format!(
            "For this data: {}, because {because}; no other solver needed fewer passes or less time.",
            name(fewest)
        ));
    } else {
        lines.push(format!(
            "For this data in memory: {}, because it was the quickest, {} s to an error of {:.0e}.",
            name(quickest),
            significant(seconds),
            race.target
        ));
        lines.push(format!(
            "Where a pass is expensive (data on disk or on other machines): {}, because {because}.",
            name(fewest)
        ));
    }
    let searched = [fewest, quickest].into_iter().find(|lane| lane.contender.step_scale() != StepScale::None);
    if let Some(lane) = searched {
        lines.push(format!(
            "{} was given the best step of a search, η = {}; the search’s own passes are not counted above.",
            lane.contender.label(),
            lane.eta.map_or_else(|| "–".into(), significant)
        ));
    }
    lines
}

/// The lanes, the one with the fewest passes first.
fn in_order(race: &Race) -> Vec<&Lane> {
    let mut lanes: Vec<&Lane> = race.lanes.iter().collect();
    let rank = |lane: &Lane| (passes(race, lane), lane.curve.final_log_error());
    lanes.sort_by(|a, b| rank(a).0.total_cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1)));
    lanes
}

fn ranking(race: &Race) -> Table {
    let header = [
        "solver",
        "η",
        "passes to the target",
        "seconds to the target",
        "times the passes of the best",
        "log₁₀ error at the end",
    ];
    let mut table = Table::new("ranking", "Ranking", &header);
    let best = best_by(race, |lane| lane.curve.passes_to(race.target)).map(|(lane, _)| lane);
    for lane in in_order(race) {
        table.rows.push(vec![
            lane.contender.label(),
            lane.eta.map_or_else(|| "–".into(), significant),
            passes_text(race, lane),
            lane.curve.seconds_to(race.target).map_or_else(|| "–".into(), significant),
            best.map_or_else(|| "–".into(), |best| factor_text(speed_up(race, best, lane))),
            format!("{:.1}", lane.curve.final_log_error()),
        ]);
    }
    table.notes.push(format!("The target is a mean log₁₀ error of {:.0}.", race.target.log10()));
    table
}
