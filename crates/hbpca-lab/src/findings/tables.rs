//! The paper's tables, measured.

use hbpca::theory::{Method, Problem};

use super::lead::{factor_text, passes_text, speed_up};
use super::table::Table;
use crate::experiment::PaperRow;
use crate::figure::text::{grouped, per_cent, significant};
use crate::race::{Lane, Race};
use crate::reproduce::{Results, Used};

/// Variance-reduced methods as the experiments write them.
pub(super) const VR_PCA: &str = "vr-pca";
pub(super) const VR_POWER_M: &str = "vr-power-m:oracle";
pub(super) const OM: &str = "vr-hb-power:oracle";
pub(super) const AM: &str = "vr-hb-power:adaptive";
/// VR-PCA with η ≤ 1, and AM with a step that does not depend on the batch.
pub(super) const VR_PCA_BOUNDED: &str = "vr-pca:bounded";
pub(super) const AM_FIXED: &str = "vr-hb-power:adaptive:fixed";

/// λ₂/λ₁ from which a gap counts as small: the paper says so of ijcnn and cov (0.79).
pub(super) const CLOSE_TO_ONE: f64 = 0.75;

/// Convergence with small batches and acceleration with large ones, for each data set.
pub fn table1(small: &[Race], large: &[Race]) -> Table {
    let header = [
        "method",
        "data",
        "small batches: passes to the target",
        "converges",
        "large batches: passes to the target",
        "times faster than VR-PCA [95 % interval]",
    ];
    let mut table = Table::new(
        "table1",
        "Convergence with small batches and acceleration with large ones, measured",
        &header,
    );
    for id in [VR_PCA, VR_POWER_M, OM] {
        for race in small {
            let Some(lane) = race.lane(id) else { continue };
            let other = large.iter().find(|other| other.dataset == race.dataset);
            let there = other.and_then(|other| Some((other, other.lane(id)?, other.lane(VR_PCA)?)));
            table.rows.push(vec![
                lane.contender.label(),
                race.title.clone(),
                passes_text(race, lane),
                if converges(race, lane) { "yes" } else { "no" }.to_owned(),
                there.map_or("–".into(), |(other, lane, _)| passes_text(other, lane)),
                there.map_or("–".into(), |(other, lane, pca)| factor_text(speed_up(other, lane, pca))),
            ]);
        }
    }
    if let Some(race) = small.first() {
        table.notes.push(format!(
            "The target is a mean log₁₀ error of {:.0}. “Converges” means that the target is reached, or that the \
             mean error at the end of the budget is below a tenth of that at half the budget.",
            race.target.log10()
        ));
    }
    table
}

/// Whether the target is reached, or the error still falls: tenfold over the second half of the budget.
pub(super) fn converges(race: &Race, lane: &Lane) -> bool {
    let curve = &lane.curve;
    curve.passes_to(race.target).is_some()
        || curve.final_log_error() < curve.log_error_at(race.passes / 2.0) - 1.0
}

/// g and h of the theory beside the measured contraction of an epoch.
pub fn table2(races: &[&Race]) -> Table {
    let header = ["data", "|S|", "m", "K", "method", "η", "g", "h", "g + h", "measured"];
    let mut table = Table::new(
        "table2",
        "Contraction of the squared error by one epoch: theory and measurement",
        &header,
    );
    for race in races {
        let [lambda1, lambda2] = race.reference.eigenvalues;
        let variance = race.reference.variance_of(race.batch);
        let Ok(problem) = Problem::new(lambda1, lambda2, variance, race.epoch) else { continue };
        for id in [VR_PCA, VR_POWER_M, OM] {
            let Some(lane) = race.lane(id) else { continue };
            let method = match (id, lane.eta) {
                (VR_PCA, Some(eta)) => Method::VrPca { eta },
                (OM, Some(eta)) => Method::VrHbPower { eta },
                _ => Method::VrPowerM,
            };
            let Ok(contraction) = problem.contraction(method) else { continue };
            let measured = lane.curve.contraction(1e-2, 1e-13);
            table.rows.push(vec![
                race.title.clone(),
                grouped(race.batch),
                race.epoch.to_string(),
                significant(variance),
                lane.contender.label(),
                lane.eta.map_or("1".into(), significant),
                significant(contraction.g),
                significant(contraction.h),
                significant(contraction.rate()),
                measured.map_or_else(|| stalled(race, lane), significant),
            ]);
        }
    }
    table.notes.push(
        "g is the contraction without noise, h what the mini-batches add by the small-angle model for an error along \
         u₂ and noise of the full variance K in every direction, so that g + h is above the truth; above 1 the model \
         does not promise convergence. Measured: factor of the mean log error per epoch, fitted between errors of \
         10⁻² and 10⁻¹³. “Too fast” means fewer than three epochs in that range."
            .into(),
    );
    table
}

fn stalled(race: &Race, lane: &Lane) -> String {
    if converges(race, lane) { "too fast to fit".into() } else { "does not converge".into() }
}

/// The data sets beside the paper's.
pub fn table3(results: &Results) -> Table {
    let header =
        ["data", "n", "d", "not zero", "λ₂/λ₁", "paper's name", "n", "d", "not zero", "λ₂/λ₁", "remark"];
    let mut table = Table::new("table3", "Data sets, beside the paper’s", &header);
    let paper = |row: &PaperRow| {
        let ratio = format!("{:.4}", row.ratio);
        [row.name.clone(), grouped(row.n), grouped(row.d), per_cent(row.density), ratio]
    };
    for Used { spec, reference, thinned_from } in &results.used {
        let mut row = vec![
            spec.title.clone(),
            grouped(reference.n),
            grouped(reference.d),
            per_cent(reference.density),
            format!("{:.4}", reference.ratio()),
        ];
        row.extend(spec.paper.as_ref().map_or_else(|| ["–"; 5].map(String::from), paper));
        let thinned =
            thinned_from.map(|from| format!(" Quick run: {} of {} rows.", reference.n, grouped(from)));
        row.push(format!("{}{}", spec.remark, thinned.unwrap_or_default()));
        table.rows.push(row);
    }
    for spec in &results.absent {
        let mut row = vec![spec.title.clone()];
        row.extend(["–"; 4].map(String::from));
        row.extend(spec.paper.as_ref().map_or_else(|| ["–"; 5].map(String::from), paper));
        let found = spec.found.as_ref().map(|found| format!(" The public copy: {found}."));
        row.push(format!("Not at hand: {}.{}", spec.files.join(", "), found.unwrap_or_default()));
        table.rows.push(row);
    }
    table
}
