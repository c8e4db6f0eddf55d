//! Races as CSV. What a seed determines and what the clock says are kept apart: the first file is the same on every
//! machine with the same arithmetic, byte for byte.

use super::{Lane, Race};

const LOOKS: &str = "experiment,dataset,solver,eta,batch,epoch,seed,look,passes,error,lambda2\n";
const SECONDS: &str = "experiment,dataset,solver,seed,look,seconds\n";
const SEARCHES: &str = "experiment,dataset,solver,x,eta,seeds,digits_per_pass,chosen\n";

fn optional(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| format!("{value:e}"))
}

fn lanes(races: &[Race]) -> impl Iterator<Item = (&Race, &Lane)> {
    races.iter().flat_map(|race| race.lanes.iter().map(move |lane| (race, lane)))
}

/// A header and lines of cells.
fn csv(header: &str, lines: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = header.to_owned();
    for cells in lines {
        text += &cells.join(",");
        text += "\n";
    }
    text
}

/// Every look of every run, without times.
pub fn looks_csv(races: &[Race]) -> String {
    let lines = lanes(races).flat_map(|(race, lane)| {
        lane.runs.iter().flat_map(move |run| {
            run.looks.iter().enumerate().map(move |(i, look)| {
                vec![
                    race.experiment.clone(),
                    race.dataset.clone(),
                    lane.contender.id(),
                    optional(run.eta),
                    race.batch.to_string(),
                    race.epoch.to_string(),
                    run.seed.to_string(),
                    i.to_string(),
                    look.passes.to_string(),
                    format!("{:e}", look.error),
                    optional(look.lambda2),
                ]
            })
        })
    });
    csv(LOOKS, lines)
}

/// The times of the looks.
pub fn seconds_csv(races: &[Race]) -> String {
    let lines = lanes(races).flat_map(|(race, lane)| {
        lane.runs.iter().flat_map(move |run| {
            run.looks.iter().enumerate().map(move |(i, look)| {
                let (experiment, dataset) = (race.experiment.clone(), race.dataset.clone());
                let (seed, look, seconds) = (run.seed.to_string(), i.to_string(), look.seconds.to_string());
                vec![experiment, dataset, lane.contender.id(), seed, look, seconds]
            })
        })
    });
    csv(SECONDS, lines)
}

/// Every step size tried.
pub fn searches_csv(races: &[Race]) -> String {
    let lines = lanes(races).flat_map(|(race, lane)| {
        lane.search.iter().flat_map(move |search| {
            search.points.iter().map(move |point| {
                vec![
                    race.experiment.clone(),
                    race.dataset.clone(),
                    lane.contender.id(),
                    format!("{:e}", point.x),
                    format!("{:e}", point.eta),
                    point.seeds.to_string(),
                    point.score.to_string(),
                    u8::from(*point == search.best).to_string(),
                ]
            })
        })
    });
    csv(SEARCHES, lines)
}
