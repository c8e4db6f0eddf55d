//! Every sentence of the paper's Results section as a check with a rule, its numbers and a verdict.

use super::claim::{Case, Claim, claim, sometimes};
use super::lead::{factor_text, passes, passes_text, speed_up};
use super::tables::{AM, CLOSE_TO_ONE, OM, VR_PCA, VR_POWER_M, converges};
use crate::figure::text::{one_decimal, significant};
use crate::race::{Lane, Race};
use crate::statistics::{mean, standard_deviation};
use crate::study::{Study, StudyLine};

/// A factor up to which two methods count as similar.
const SIMILAR: f64 = 1.2;
/// A factor from which a margin counts as large.
const LARGE: f64 = 1.5;

/// All claims, tried on the small-batch races, the large-batch races and the studies.
#[allow(clippy::too_many_lines, reason = "one paragraph for each sentence of the paper")]
pub fn claims(small: &[Race], large: &[Race], studies: &[Study]) -> Vec<Claim> {
    let both = || small.iter().chain(large);
    let close = |race: &&Race| race.reference.ratio() >= CLOSE_TO_ONE;
    let far = |race: &&Race| race.reference.ratio() < CLOSE_TO_ONE;
    vec![
        claim(
            "With the true value of λ₂, VR HB Power OM consistently outperforms the other algorithms in both cases.",
            "OM reaches the target in fewer passes than each of the other five.",
            cases(both(), |race| against_rivals(race, |factor| factor > 1.0)),
        ),
        claim(
            "It surpasses the other algorithms by a large margin when λ₂/λ₁ is close to 1 (ijcnn and cov).",
            "λ₂/λ₁ ≥ 0.75: the best of the algorithms without VR HB Power needs at least 1.5 times OM’s passes.",
            cases(both().filter(close), |race| against_rivals(race, |factor| factor >= LARGE)),
        ),
        claim(
            "If λ₂/λ₁ is not large, its performance is similar to that of VR-PCA in the small-batch setting.",
            "λ₂/λ₁ < 0.75, small batches: passes of OM and VR-PCA differ by less than a factor 1.2.",
            cases(small.iter().filter(far), |race| {
                duel(race, OM, VR_PCA, |factor| factor < SIMILAR && factor > 1.0 / SIMILAR)
            }),
        ),
        claim(
            "… and slightly better in the large-batch setting (MNIST, sim, rcv1).",
            "λ₂/λ₁ < 0.75, large batches: OM needs fewer passes than VR-PCA.",
            cases(large.iter().filter(far), |race| duel(race, OM, VR_PCA, |factor| factor > 1.0)),
        ),
        claim(
            "VR-PCA is competitive to VR HB Power OM when λ₂/λ₁ and |S| are small.",
            "λ₂/λ₁ < 0.75, small batches: VR-PCA needs at most 1.2 times OM’s passes.",
            cases(small.iter().filter(far), |race| duel(race, VR_PCA, OM, |factor| factor >= 1.0 / SIMILAR)),
        ),
        claim(
            "VR Power+M always falls behind VR-PCA and VR HB Power OM.",
            "VR Power+M needs more passes than either.",
            cases(both(), |race| {
                let (pca, om) = (race.lane(VR_PCA)?, race.lane(OM)?);
                let lane = race.lane(VR_POWER_M)?;
                let passed = speed_up(race, lane, pca) < 1.0 && speed_up(race, lane, om) < 1.0;
                Some((passed, numbers(race, &[lane, pca, om])))
            }),
        ),
        claim(
            "It fails to converge in the small batch setting of ijcnn.",
            "ijcnn1, small batches: the target is not reached and the error no longer falls.",
            cases(small.iter().filter(|race| race.dataset == "ijcnn1"), |race| {
                let lane = race.lane(VR_POWER_M)?;
                Some((!converges(race, lane), numbers(race, &[lane])))
            }),
        ),
        claim(
            "… and is sometimes inferior to Power and Power+M.",
            "Somewhere VR Power+M needs more passes than both; every place is listed, one is enough.",
            sometimes(cases(both(), |race| {
                let (power, momentum) = (race.lane("power")?, race.lane("power-m:oracle")?);
                let lane = race.lane(VR_POWER_M)?;
                let passed = speed_up(race, lane, power) < 1.0 && speed_up(race, lane, momentum) < 1.0;
                Some((passed, numbers(race, &[lane, power, momentum])))
            })),
        ),
        claim(
            "VR HB Power AM does not have the same performance as VR HB Power OM.",
            "AM needs more passes than OM.",
            cases(both(), |race| duel(race, AM, OM, |factor| factor < 1.0)),
        ),
        claim(
            "However, as λ̂₂ approaches λ₂, it asymptotically attains the same rate of convergence.",
            "The contraction of an epoch, fitted between errors of 10⁻⁶ and 10⁻¹³, has a logarithm within 20 % of OM’s.",
            cases(both(), |race| {
                let rate = |id| race.lane(id)?.curve.contraction(1e-6, 1e-13);
                let (adaptive, oracle) = (rate(AM)?, rate(OM)?);
                let quotient = adaptive.ln() / oracle.ln();
                let numbers = format!(
                    "contraction AM {adaptive:.3}, OM {oracle:.3}; quotient of logarithms {quotient:.2}"
                );
                Some((quotient > 0.8 && quotient < 1.25, numbers))
            }),
        ),
        claim(
            "If λ₂/λ₁ is close to 1, slow progress at the start can be compensated by asymptotic performance.",
            "λ₂/λ₁ ≥ 0.75: AM is behind OM after three epochs, and still reaches the target before VR-PCA.",
            cases(both().filter(close), |race| {
                let (am, om, pca) = (race.lane(AM)?, race.lane(OM)?, race.lane(VR_PCA)?);
                let early = |lane: &Lane| lane.curve.mean.get(3).copied().unwrap_or(0.0);
                let passed = early(am) > early(om) && speed_up(race, am, pca) > 1.0;
                let start =
                    format!("log₁₀ error after three epochs: AM {:.1}, OM {:.1}; ", early(am), early(om));
                Some((passed, start + &numbers(race, &[am, pca])))
            }),
        ),
        claim(
            "The estimation of λ₂ becomes stable if the batch size is large.",
            "The standard deviation of λ̂₂/λ₂ over the seeds, averaged over the epochs, is smaller with large batches.",
            cases(large.iter(), |race| {
                let twin = small.iter().find(|twin| twin.dataset == race.dataset)?;
                let (few, many) = (unsteadiness(twin)?, unsteadiness(race)?);
                Some((many < few, format!("small batches {few:.1e}, large batches {many:.1e}")))
            }),
        ),
        claim(
            "AM is superior to VR-PCA and VR Power+M when λ₂/λ₁ is close to 1 and the mini-batch is large (ijcnn and cov).",
            "λ₂/λ₁ ≥ 0.75, large batches: AM needs fewer passes than both.",
            cases(large.iter().filter(close), |race| {
                let (am, pca, vrm) = (race.lane(AM)?, race.lane(VR_PCA)?, race.lane(VR_POWER_M)?);
                let passed = speed_up(race, am, pca) > 1.0 && speed_up(race, am, vrm) > 1.0;
                Some((passed, numbers(race, &[am, pca, vrm])))
            }),
        ),
        claim(
            "By incorporating a step size, the algorithm works with any size of the mini-batch (from the Conclusion).",
            "Step-size study: for every batch size there is a step with which every run halves tan²∠(w̃, u₁) over the first half of the budget and again over the second, or reaches the floor.",
            studies.iter().map(any_batch).collect(),
        ),
    ]
}

fn cases<'a>(
    races: impl Iterator<Item = &'a Race>,
    check: impl Fn(&'a Race) -> Option<(bool, String)>,
) -> Vec<Case> {
    let case = |race: &'a Race| {
        let (passed, numbers) = check(race)?;
        let share = 100.0 * race.batch as f64 / race.reference.n as f64;
        Some(Case { place: format!("{}, |S| = {share:.0} %", race.title), passed, numbers })
    };
    races.filter_map(case).collect()
}

fn numbers(race: &Race, lanes: &[&Lane]) -> String {
    let text = |lane: &&Lane| format!("{} {}", lane.contender.label(), passes_text(race, lane));
    format!("passes: {}", lanes.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// OM against the best of the algorithms that are not VR HB Power.
fn against_rivals(race: &Race, rule: impl Fn(f64) -> bool) -> Option<(bool, String)> {
    let om = race.lane(OM)?;
    let rivals =
        race.lanes.iter().filter(|lane| !lane.extended && lane.contender.solver != om.contender.solver);
    let rank = |lane: &Lane| (passes(race, lane), lane.curve.final_log_error());
    let best = rivals.min_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    let factor = speed_up(race, om, best);
    Some((rule(factor), format!("{}; factor {}", numbers(race, &[om, best]), factor_text(factor))))
}

fn duel(race: &Race, a: &str, b: &str, rule: impl Fn(f64) -> bool) -> Option<(bool, String)> {
    let (a, b) = (race.lane(a)?, race.lane(b)?);
    Some((rule(speed_up(race, a, b)), numbers(race, &[a, b])))
}

/// Mean over the epochs of the standard deviation of λ̂₂/λ₂ over the seeds.
fn unsteadiness(race: &Race) -> Option<f64> {
    let runs = &race.lane(AM)?.runs;
    let looks = runs.iter().map(|run| run.looks.len()).min()?;
    let spread = |i: usize| {
        let estimates: Vec<f64> = runs.iter().filter_map(|run| run.looks[i].lambda2).collect();
        let ratios: Vec<f64> = estimates.iter().map(|x| x / race.reference.eigenvalues[1]).collect();
        (ratios.len() > 1).then(|| standard_deviation(&ratios))
    };
    let spreads: Vec<f64> = (0..looks).filter_map(spread).collect();
    (!spreads.is_empty()).then(|| mean(&spreads))
}

fn any_batch(study: &Study) -> Case {
    let converges = |line: &StudyLine| line.converges.contains(&true);
    let text = |line: &StudyLine| {
        let (column, error) = line.best()?;
        let verdict = if converges(line) { "converges" } else { "does not" };
        let (error, x) = (one_decimal(error), significant(study.x[column]));
        Some(format!("{} rows: {error} at x = {x} ({verdict})", line.batch))
    };
    let numbers: Vec<String> = study.lines.iter().filter_map(text).collect();
    Case {
        place: study.title.clone(),
        passed: study.lines.iter().all(converges),
        numbers: format!(
            "smallest log₁₀ error after {} passes, by batch: {}",
            study.passes,
            numbers.join(", ")
        ),
    }
}
