//! The report of a reproduction.

use super::view::{Fact, FileView, Page, claim_views, heat_map_view, race_group, solver_views};
use crate::figure::races::thinning_note;
use crate::figure::svg;
use crate::findings::{Claim, Table};
use crate::race::Race;
use crate::reproduce::Results;

/// The page of a reproduction; `facts` say how it was made.
pub fn paper_page(results: &Results, claims: Vec<Claim>, tables: Vec<Table>, facts: Vec<Fact>) -> Page {
    let (claims, counts) = claim_views(claims);
    let races = || results.races.iter().flat_map(|(_, races)| races);
    let done = || results.races.iter().filter(|(_, races)| !races.is_empty());
    let thinned = |race: &Race| Some((race.reference.n, race.thinned_from?));
    let study_thinned = results.studies.iter().filter_map(|study| Some((study.n, study.thinned_from?)));
    let mut files: Vec<FileView> = done()
        .flat_map(|(spec, _)| {
            let file = |suffix: &str, content: &str| FileView {
                name: format!("{}{suffix}.csv", spec.name),
                content: content.to_owned(),
            };
            [
                file("", "every outer iterate of every run: passes, error, λ₂ in force"),
                file("-seconds", "the clock at every outer iterate"),
                file("-step-sizes", "every step size tried, and what it won"),
            ]
        })
        .collect();
    if !results.studies.is_empty() {
        files.push(FileView {
            name: "study.csv".into(),
            content: "final error over step size × batch size".into(),
        });
    }
    files.extend(
        tables
            .iter()
            .map(|table| FileView { name: format!("{}.csv", table.name), content: table.title.clone() }),
    );
    let heat_map = |study: &crate::study::Study| {
        heat_map_view(&format!("study-{}", study.dataset), &study.heat_map(None))
    };
    Page {
        title: "Stochastic Variance-Reduced Heavy Ball Power Iteration, reproduced".into(),
        lead: "The numerical experiments of Kim & Klabjan, run again: the same solvers, settings and, where they could be \
               had, data. Text sets stand in for real-sim and rcv1 and carry their own names."
            .into(),
        warning: thinning_note(races().filter_map(thinned).chain(study_thinned)),
        recommendation: Vec::new(),
        counts,
        claims,
        solvers: solver_views(races()),
        groups: done().map(|(spec, races)| race_group(&spec.name, &spec.title, races)).collect(),
        heat_maps: results.studies.iter().map(heat_map).collect(),
        rates: results.rates().and_then(|figure| svg(&figure).ok()),
        tables,
        environment: facts,
        files,
    }
}
