//! The paper, reproduced: data sets read one after the other, every experiment run on them, everything written out.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::dataset::Dataset;
use crate::experiment::{Catalogue, DatasetSpec, RaceSpec, StudySpec};
use crate::figure::chart::Figure;
use crate::figure::races::{Abscissa, Field, race_figure, thinning_note};
use crate::figure::{heat_map_svg, svg, write_svg_and_png};
use crate::findings::{Claim, claims, claims_markdown, table1, table2, table3};
use crate::plots::rates_of_races;
use crate::progress::Progress;
use crate::race::{Race, RunStore, Track, looks_csv, searches_csv, seconds_csv};
use crate::reference::Reference;
use crate::report::environment::{environment, fact};
use crate::report::markdown::reproduction_page;
use crate::report::paper::paper_page;
use crate::report::render;
use crate::report::view::Fact;
use crate::study::Study;
use crate::{LabError, write_atomically};

/// What to reproduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// Small batches: |S| = 1 % of n, m = 100
    Figure1,
    /// Large batches: |S| = 5 % of n, m = 20
    Figure2,
    /// Convergence and acceleration of the variance-reduced methods, measured
    Table1,
    /// Rates of the theory beside measured contractions
    Table2,
    /// Data sets beside the paper's
    Table3,
    /// Every sentence of the Results section, checked
    Claims,
    /// Final error over step size × batch size
    Study,
    /// All of it
    All,
}

/// How to reproduce.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What.
    pub target: Target,
    /// Folder of the data sets.
    pub data: PathBuf,
    /// Folder of the results.
    pub out: PathBuf,
    /// Fewer rows, seeds and step sizes.
    pub quick: bool,
    /// An experiment instead of the built-in figures.
    pub experiment: Option<PathBuf>,
    /// The command that was typed.
    pub command: String,
}

/// What a reproduction found, for people as text and for scripts as an object.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// The sentences of the paper that were tried.
    pub claims: Vec<Claim>,
    /// The report.
    pub output: PathBuf,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for claim in &self.claims {
            writeln!(f, "{}: {}", claim.verdict.words(), claim.sentence)?;
        }
        write!(f, "report: {}", self.output.display())
    }
}

/// A data set that was used, and what is true of it.
#[derive(Clone, Debug)]
pub struct Used {
    /// Its description.
    pub spec: DatasetSpec,
    /// What is true of it.
    pub reference: Reference,
    /// Rows of the files, where only some were used.
    pub thinned_from: Option<usize>,
}

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The races, experiment by experiment, with the experiments' titles.
    pub races: Vec<(RaceSpec, Vec<Race>)>,
    /// The studies.
    pub studies: Vec<Study>,
    /// The data sets.
    pub used: Vec<Used>,
    /// Data sets whose files are not in the folder.
    pub absent: Vec<DatasetSpec>,
}

impl Results {
    /// What the theory says of the step sizes of the races.
    pub fn rates(&self) -> Option<Figure> {
        let races: Vec<&Race> = self.races.iter().flat_map(|(_, races)| races).collect();
        (!races.is_empty()).then(|| rates_of_races(&races))
    }
}

impl Plan {
    fn races(&self) -> Result<Vec<RaceSpec>, LabError> {
        let mut specs = match &self.experiment {
            Some(path) => vec![RaceSpec::from_file(path)?],
            None => RaceSpec::figures()?,
        };
        match self.target {
            Target::Figure1 => specs.retain(|spec| self.experiment.is_some() || spec.name == "figure1"),
            Target::Figure2 => specs.retain(|spec| self.experiment.is_some() || spec.name == "figure2"),
            Target::Study => specs.clear(),
            _ => {}
        }
        Ok(if self.quick { specs.into_iter().map(RaceSpec::quickened).collect() } else { specs })
    }

    fn study(&self) -> Result<Option<StudySpec>, LabError> {
        if !matches!(self.target, Target::Study | Target::Claims | Target::All) || self.experiment.is_some() {
            return Ok(None);
        }
        let spec = StudySpec::built_in()?;
        Ok(Some(if self.quick { spec.quickened() } else { spec }))
    }

    /// Runs every experiment that the target needs; finished runs are taken from the folder of results.
    pub fn measure(&self, progress: &Progress) -> Result<Results, LabError> {
        let catalogue = Catalogue::built_in()?;
        let (races, study) = (self.races()?, self.study()?);
        let mut datasets: Vec<DatasetSpec> = Vec::new();
        let mut add = |specs: Vec<DatasetSpec>| {
            for spec in specs {
                if !datasets.iter().any(|known| known.id == spec.id) {
                    datasets.push(spec);
                }
            }
        };
        races.iter().try_for_each(|race| race.resolve(&catalogue).map(&mut add))?;
        study.iter().try_for_each(|study| study.resolve(&catalogue).map(&mut add))?;
        let only_references = self.target == Target::Table3;
        let quick_rows = |rows: Option<usize>| rows.filter(|_| self.quick);
        let rows = quick_rows(races.iter().filter_map(|race| race.quick).map(|quick| quick.rows).max())
            .or(quick_rows(study.as_ref().and_then(|study| study.quick).map(|quick| quick.rows)));

        // Generated rows stand beside data, and are none.
        let is_here = |spec: &DatasetSpec| {
            spec.generated.is_none() && Dataset::missing_files(spec, &self.data).is_empty()
        };
        if !datasets.iter().any(is_here) {
            let files: Vec<_> =
                datasets.iter().flat_map(|spec| spec.files.iter().map(String::as_str)).collect();
            let message = format!(
                "{}: none of the data sets is here; at least one of {} is needed",
                self.data.display(),
                files.join(", ")
            );
            return Err(LabError::Usage(message));
        }
        let store = RunStore::open(&self.out.join("runs"))?;
        let races = races.into_iter().map(|race| (race, Vec::new())).collect();
        let mut results = Results { races, ..Results::default() };
        for spec in datasets {
            if !Dataset::missing_files(&spec, &self.data).is_empty() {
                progress.announce(&format!("{}: not in {}, left out", spec.title, self.data.display()));
                results.absent.push(spec);
                continue;
            }
            progress.announce(&format!("{}: reading", spec.title));
            let dataset = Dataset::load(&spec, &self.data, rows)?;
            let reference = Reference::obtain(&dataset, &self.out.join("references"), 1)?;
            progress.announce(&format!(
                "{}: n = {}, d = {}, λ₂/λ₁ = {:.5}, residual of u₁ {:.1e}",
                spec.title,
                reference.n,
                reference.d,
                reference.ratio(),
                reference.relative_residual
            ));
            let track = Track::new(&dataset, &reference)?;
            for (race, done) in &mut results.races {
                if race.datasets.contains(&spec.id) && !only_references {
                    done.push(Race::run(race, &track, &store, progress)?);
                }
            }
            if let Some(study) = study.as_ref().filter(|study| study.datasets.contains(&spec.id)) {
                results.studies.push(Study::run(study, &track, &store, progress)?);
            }
            let thinned_from = dataset.thinned_from;
            results.used.push(Used { spec, reference, thinned_from });
        }
        Ok(results)
    }
}

/// Writes the raw numbers and the figures.
pub fn write_figures(results: &Results, out: &Path) -> Result<(), LabError> {
    for (spec, races) in results.races.iter().filter(|(_, races)| !races.is_empty()) {
        let name = &spec.name;
        let file = |suffix: &str| out.join(format!("{name}{suffix}.csv"));
        write_atomically(&file(""), looks_csv(races).as_bytes())?;
        write_atomically(&file("-seconds"), seconds_csv(races).as_bytes())?;
        write_atomically(&file("-step-sizes"), searches_csv(races).as_bytes())?;
        let mut views =
            vec![("", Abscissa::Passes, Field::Paper), ("-seconds", Abscissa::Seconds, Field::Paper)];
        if races.iter().any(|race| race.lanes.iter().any(|lane| lane.extended)) {
            views.push(("-extended", Abscissa::Passes, Field::Extended));
            views.push(("-extended-seconds", Abscissa::Seconds, Field::Extended));
        }
        for (suffix, abscissa, field) in views {
            let figure = race_figure(&spec.title, races, abscissa, field);
            write_svg_and_png(&svg(&figure)?, out, &format!("{name}{suffix}"))?;
        }
    }
    if !results.studies.is_empty() {
        let lines: String = results.studies.iter().map(Study::csv).collect();
        write_atomically(&out.join("study.csv"), format!("{}{lines}", Study::CSV_HEADER).as_bytes())?;
    }
    if let Some(rates) = results.rates() {
        write_svg_and_png(&svg(&rates)?, out, "rates")?;
    }
    for study in &results.studies {
        let note = thinning_note(study.thinned_from.map(|from| (study.n, from)).into_iter());
        write_svg_and_png(&heat_map_svg(&study.heat_map(note))?, out, &format!("study-{}", study.dataset))?;
    }
    Ok(())
}

/// Tables and claims that the target asks for, as Markdown and CSV, and the report; returns the summary.
pub fn write_findings(results: &Results, plan: &Plan, progress: &Progress) -> Result<Findings, LabError> {
    let races = |name: &str| {
        let found = results.races.iter().find(|(spec, _)| spec.name == name);
        found.map_or(&[][..], |(_, races)| races.as_slice())
    };
    let (small, large) = (races("figure1"), races("figure2"));
    let wanted = |target: Target| plan.target == target || plan.target == Target::All;
    let mut tables = Vec::new();
    if wanted(Target::Table1) {
        tables.push(table1(small, large));
    }
    if wanted(Target::Table2) {
        tables.push(table2(&small.iter().chain(large).collect::<Vec<_>>()));
    }
    if wanted(Target::Table3) {
        tables.push(table3(results));
    }
    let claims = if wanted(Target::Claims) { claims(small, large, &results.studies) } else { Vec::new() };
    if !claims.is_empty() {
        write_atomically(&plan.out.join("claims.md"), claims_markdown(&claims).as_bytes())?;
    }
    for table in &tables {
        write_atomically(&plan.out.join(format!("{}.md", table.name)), table.markdown().as_bytes())?;
        write_atomically(&plan.out.join(format!("{}.csv", table.name)), table.csv().as_bytes())?;
    }
    let page = paper_page(results, claims.clone(), tables, plan.facts(results, progress));
    let report = plan.out.join("report.html");
    write_atomically(&report, render(&page)?.as_bytes())?;
    if plan.target == Target::All {
        let text = reproduction_page(&page, &claims, results)?;
        write_atomically(&plan.out.join("reproduction.md"), text.as_bytes())?;
    }
    Ok(Findings { claims, output: report })
}

impl Plan {
    fn facts(&self, results: &Results, progress: &Progress) -> Vec<Fact> {
        let mut facts = environment();
        facts.push(fact("command", &self.command));
        for (spec, _) in &results.races {
            facts.push(fact(
                &spec.name,
                format!(
                    "|S| = {}, m = {}, seeds 0 to {}, {} step sizes refined {} times with {} of {} other seeds, the best with all, and {} of the passes, target {:e}, floor {:e}; seconds are {}",
                    spec.batch,
                    spec.epoch,
                    spec.seeds.saturating_sub(1),
                    spec.grid.points,
                    spec.grid.refinements,
                    spec.grid.screening.unwrap_or(spec.grid.seeds),
                    spec.grid.seeds,
                    spec.grid.budget,
                    spec.target,
                    spec.floor,
                    spec.clock.words()
                ),
            ));
        }
        for used in &results.used {
            let sums = match used.spec.sha256.join(", ") {
                none if none.is_empty() => "generated".to_owned(),
                sums => format!("sha256 {sums}"),
            };
            let residual = used.reference.relative_residual;
            facts.push(fact(&used.spec.title, format!("residual of u₁ {residual:.1e} λ₁; {sums}")));
        }
        let runs = results.races.iter().flat_map(|(_, races)| races).flat_map(|race| &race.lanes);
        let solving: f64 = runs
            .flat_map(|lane| &lane.runs)
            .filter_map(|run| run.looks.last())
            .map(|look| look.seconds)
            .sum();
        facts.push(fact(
            "seconds in the runs shown",
            format!("{solving:.0} (step-size searches and studies come on top)"),
        ));
        facts.push(fact(
            "time taken by this call",
            format!("{:.0} s; finished runs were taken from `runs/`", progress.seconds()),
        ));
        facts
    }
}
