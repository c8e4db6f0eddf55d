//! Races as CSV. What a seed determines and what the clock says are kept apart: the first file is the same on every
//! machine with the same arithmetic, byte for byte.

use super::{Lane, Race};

const LOOKS: &str = "experiment,dataset,solver,eta,batch,epoch,seed,look,passes,error,lambda2\n";
const SECONDS: &str = "experiment,dataset,solver,seed,look,seconds\n";
const SEARCHES: &str = "experiment,dataset,solver,x,eta,digits_per_pass,chosen\n";

fn optional(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| format!("{value:e}"))
}

fn lanes(races: &[Race]) -> impl Iterator<Item = (&Race, &Lane)> {
    races.iter().flat_map(|race| race.lanes.iter().map(move |lane| (race, lane)))
}

/// Every look of every run, without times.
pub fn looks_csv(races: &[Race]) -> String {
    let mut text = LOOKS.to_owned();
    for (race, lane) in lanes(races) {
        for run in &lane.runs {
            for (i, look) in run.looks.iter().enumerate() {
                text += &format!(
                    "{},{},{},{},{},{},{},{i},{},{:e},{}\n",
                    race.experiment,
                    race.dataset,
                    lane.contender,
                    optional(run.eta),
                    race.batch,
                    race.epoch,
                    run.seed,
                    look.passes,
                    look.error,
                    optional(look.lambda2),
                );
            }
        }
    }
    text
}

/// The times of the looks.
pub fn seconds_csv(races: &[Race]) -> String {
    let mut text = SECONDS.to_owned();
    for (race, lane) in lanes(races) {
        for run in &lane.runs {
            for (i, look) in run.looks.iter().enumerate() {
                let (experiment, dataset) = (&race.experiment, &race.dataset);
                text +=
                    &format!("{experiment},{dataset},{},{},{i},{}\n", lane.contender, run.seed, look.seconds);
            }
        }
    }
    text
}

/// Every step size tried.
pub fn searches_csv(races: &[Race]) -> String {
    let mut text = SEARCHES.to_owned();
    for (race, lane) in lanes(races) {
        for (point, search) in lane.search.iter().flat_map(|s| s.points.iter().map(move |p| (p, s))) {
            let chosen = u8::from(*point == search.best);
            let (experiment, dataset) = (&race.experiment, &race.dataset);
            text += &format!(
                "{experiment},{dataset},{},{:e},{:e},{},{chosen}\n",
                lane.contender, point.x, point.eta, point.score
            );
        }
    }
    text
}
