//! Every sentence of the paper's Results section as a check with a rule, its numbers and a verdict.

use super::claim::{Case, Claim, Finding, claim, sometimes};
use super::lead::{factor_text, passes, passes_text, speed_up};
use super::tables::{AM, AM_FIXED, CLOSE_TO_ONE, OM, VR_PCA, VR_PCA_BOUNDED, VR_POWER_M, converges};
use crate::figure::text::{one_decimal, significant};
use crate::race::{Curve, Lane, Race, Run};
use crate::statistics::{Interval, mean};
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
            "OM is faster than the best of the algorithms without VR HB Power: factor above 1.",
            cases(both(), |race| against_rivals(race, |factor| Finding::above(1.0, factor))),
        ),
        claim(
            "The same, with VR-PCA’s step held at η ≤ 1: the paper does not print its grid.",
            "OM is faster than VR-PCA with η ≤ 1: factor above 1.",
            cases(both(), |race| duel(race, OM, VR_PCA_BOUNDED, |factor| Finding::above(1.0, factor))),
        ),
        claim(
            "It surpasses the other algorithms by a large margin when λ₂/λ₁ is close to 1 (ijcnn and cov).",
            "λ₂/λ₁ ≥ 0.75: OM is at least 1.5 times as fast as the best of the algorithms without VR HB Power.",
            cases(both().filter(close), |race| against_rivals(race, |factor| Finding::above(LARGE, factor))),
        ),
        claim(
            "If λ₂/λ₁ is not large, its performance is similar to that of VR-PCA in the small-batch setting.",
            "λ₂/λ₁ < 0.75, small batches: OM and VR-PCA differ by less than a factor 1.2.",
            cases(small.iter().filter(far), |race| {
                duel(race, OM, VR_PCA, |factor| Finding::between(1.0 / SIMILAR, factor, SIMILAR))
            }),
        ),
        claim(
            "… and slightly better in the large-batch setting (MNIST, sim, rcv1).",
            "λ₂/λ₁ < 0.75, large batches: OM is faster than VR-PCA.",
            cases(large.iter().filter(far), |race| {
                duel(race, OM, VR_PCA, |factor| Finding::above(1.0, factor))
            }),
        ),
        claim(
            "VR-PCA is competitive to VR HB Power OM when λ₂/λ₁ and |S| are small.",
            "λ₂/λ₁ < 0.75, small batches: VR-PCA is at most 1.2 times slower than OM.",
            cases(small.iter().filter(far), |race| {
                duel(race, VR_PCA, OM, |factor| Finding::above(1.0 / SIMILAR, factor))
            }),
        ),
        claim(
            "VR Power+M always falls behind VR-PCA and VR HB Power OM.",
            "VR Power+M is slower than either.",
            cases(both(), |race| behind(race, VR_POWER_M, [VR_PCA, OM], Finding::and)),
        ),
        claim(
            "It fails to converge in the small batch setting of ijcnn.",
            "ijcnn1, small batches: the target is not reached and the error no longer falls.",
            cases(small.iter().filter(|race| race.dataset == "ijcnn1"), |race| {
                let lane = race.lane(VR_POWER_M)?;
                Some((Finding::of(!converges(race, lane)), numbers(race, &[lane])))
            }),
        ),
        claim(
            "… and is sometimes inferior to Power and Power+M (read as: to both).",
            "Somewhere VR Power+M is slower than both; every such place is listed, one is enough.",
            sometimes(cases(both(), |race| behind(race, VR_POWER_M, [POWER, POWER_M], Finding::and))),
        ),
        claim(
            "… and is sometimes inferior to Power and Power+M (read as: to one of them).",
            "Somewhere VR Power+M is slower than one of them; every such place is listed, one is enough.",
            sometimes(cases(both(), |race| behind(race, VR_POWER_M, [POWER, POWER_M], Finding::or))),
        ),
        claim(
            "VR HB Power AM does not have the same performance as VR HB Power OM.",
            "AM is slower than OM.",
            cases(both(), |race| duel(race, AM, OM, |factor| Finding::below(factor, 1.0))),
        ),
        claim(
            "However, as λ̂₂ approaches λ₂, it asymptotically attains the same rate of convergence.",
            "The contraction of an epoch, fitted seed by seed between errors of 10⁻⁶ and 10⁻¹³: the logarithm of AM’s is at least 0.8 times OM’s. One-sided: a better rate is no objection.",
            cases(both(), same_rate),
        ),
        claim(
            "If λ₂/λ₁ is close to 1, slow progress at the start can be compensated by asymptotic performance.",
            "λ₂/λ₁ ≥ 0.75: AM has fewer digits than OM after three epochs, and is still faster to the target than VR-PCA.",
            cases(both().filter(close), |race| {
                let (am, om, pca) = (race.lane(AM)?, race.lane(OM)?, race.lane(VR_PCA)?);
                let behind = paired(am, om, |run| run.looks.get(3).map_or(0.0, |look| look.error.log10()));
                let factor = speed_up(race, am, pca);
                let finding = Finding::above(0.0, behind).and(Finding::above(1.0, factor));
                let start = format!(
                    "after three epochs AM is {:.1} [{:.1}, {:.1}] digits behind OM; ",
                    behind.mean, behind.low, behind.high
                );
                Some((finding, start + &compared(race, am, pca, factor)))
            }),
        ),
        claim(
            "The estimation of λ₂ becomes stable if the batch size is large.",
            "The same step size with both batch sizes (x = 0.1), the last third of the epochs before the floor: |log₁₀(λ̂₂/λ₂)| averaged, seed by seed, is smaller with large batches.",
            cases(large.iter(), |race| {
                let twin = small.iter().find(|twin| twin.dataset == race.dataset)?;
                let (few, many) = (unsteadiness(twin)?, unsteadiness(race)?);
                let pairs: Vec<f64> = few.iter().zip(&many).map(|(few, many)| (few / many).ln()).collect();
                let factor = Interval::of_mean(&pairs).exp();
                let text = format!(
                    "small batches {:.1e}, large batches {:.1e}; factor {}",
                    mean(&few),
                    mean(&many),
                    factor_text(factor)
                );
                Some((Finding::above(1.0, factor), text))
            }),
        ),
        claim(
            "AM is superior to VR-PCA and VR Power+M when λ₂/λ₁ is close to 1 and the mini-batch is large (ijcnn and cov).",
            "λ₂/λ₁ ≥ 0.75, large batches: AM is faster than both.",
            cases(large.iter().filter(close), |race| {
                let am = race.lane(AM)?;
                let factors =
                    [VR_PCA, VR_POWER_M].map(|id| Some((race.lane(id)?, speed_up(race, am, race.lane(id)?))));
                let [(pca, first), (momentum, second)] = [factors[0]?, factors[1]?];
                let finding = Finding::above(1.0, first).and(Finding::above(1.0, second));
                let text = format!(
                    "{}; factors {} and {}",
                    numbers(race, &[am, pca, momentum]),
                    factor_text(first),
                    factor_text(second)
                );
                Some((finding, text))
            }),
        ),
        claim(
            "By incorporating a step size, the algorithm works with any size of the mini-batch (from the Conclusion).",
            "Step-size study: for every batch size there is a step with which every run halves tan²∠(w̃, u₁) over the first half of the budget and again over the second, or reaches the floor.",
            studies.iter().map(any_batch).collect(),
        ),
    ]
}

/// Without variance reduction.
const POWER: &str = "power";
const POWER_M: &str = "power-m:oracle";

fn cases<'a>(
    races: impl Iterator<Item = &'a Race>,
    check: impl Fn(&'a Race) -> Option<(Finding, String)>,
) -> Vec<Case> {
    let case = |race: &'a Race| {
        let (finding, numbers) = check(race)?;
        let share = 100.0 * race.batch as f64 / race.reference.n as f64;
        Some(Case::new(format!("{}, |S| = {share:.0} %", race.title), finding, numbers))
    };
    races.filter_map(case).collect()
}

fn numbers(race: &Race, lanes: &[&Lane]) -> String {
    let text = |lane: &&Lane| format!("{} {}", lane.contender.label(), passes_text(race, lane));
    format!("passes: {}", lanes.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// Two lanes and how much faster the first is.
fn compared(race: &Race, a: &Lane, b: &Lane, factor: Interval) -> String {
    format!("{}; factor {}", numbers(race, &[a, b]), factor_text(factor))
}

/// OM against the best of the algorithms of the paper that are not VR HB Power.
fn against_rivals(race: &Race, rule: impl Fn(Interval) -> Finding) -> Option<(Finding, String)> {
    let om = race.lane(OM)?;
    let rivals =
        race.lanes.iter().filter(|lane| !lane.extended && lane.contender.solver != om.contender.solver);
    let rank = |lane: &Lane| (passes(race, lane), lane.curve.final_log_error());
    let best = rivals.min_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    let factor = speed_up(race, om, best);
    Some((rule(factor), compared(race, om, best, factor)))
}

fn duel(race: &Race, a: &str, b: &str, rule: impl Fn(Interval) -> Finding) -> Option<(Finding, String)> {
    let (a, b) = (race.lane(a)?, race.lane(b)?);
    let factor = speed_up(race, a, b);
    Some((rule(factor), compared(race, a, b, factor)))
}

/// Whether a lane is slower than two others, or than one of them.
fn behind(
    race: &Race,
    lane: &str,
    others: [&str; 2],
    both: impl Fn(Finding, Finding) -> Finding,
) -> Option<(Finding, String)> {
    let (lane, a, b) = (race.lane(lane)?, race.lane(others[0])?, race.lane(others[1])?);
    let [first, second] = [a, b].map(|other| speed_up(race, lane, other));
    let finding = both(Finding::below(first, 1.0), Finding::below(second, 1.0));
    let factors = format!("factors {} and {}", factor_text(first), factor_text(second));
    Some((finding, format!("{}; {factors}", numbers(race, &[lane, a, b]))))
}

/// The mean difference, over the seeds, of a number of two lanes.
fn paired(a: &Lane, b: &Lane, number: impl Fn(&Run) -> f64) -> Interval {
    let pair = |a: &Run| b.runs.iter().find(|b| b.seed == a.seed).map(|b| number(a) - number(b));
    Interval::of_mean(&a.runs.iter().filter_map(pair).collect::<Vec<_>>())
}

/// AM's rate against OM's, seed by seed.
fn same_rate(race: &Race) -> Option<(Finding, String)> {
    const PART: f64 = 0.8;
    let (am, om) = (race.lane(AM)?, race.lane(OM)?);
    let rate = |run: &Run| Curve::new(std::slice::from_ref(run)).contraction(1e-6, 1e-13);
    let pair = |am: &Run| {
        let om = om.runs.iter().find(|om| om.seed == am.seed)?;
        Some(rate(am)?.ln() / rate(om)?.ln())
    };
    let quotients: Vec<f64> = am.runs.iter().filter_map(pair).collect();
    if quotients.len() < 2 {
        return None; // too fast to be fitted
    }
    let quotient = Interval::of_mean(&quotients);
    let text = format!("quotient of logarithms {}, {} seeds", factor_text(quotient), quotients.len());
    Some((Finding::above(PART, quotient), text))
}

/// |log₁₀(λ̂₂/λ₂)| of every run with the fixed step, averaged over the last third of its epochs above the floor.
fn unsteadiness(race: &Race) -> Option<Vec<f64>> {
    /// An estimate that is right to rounding.
    const NOTHING: f64 = 1e-16;
    let of_run = |run: &Run| {
        let estimates: Vec<f64> = run.looks.iter().filter_map(|look| look.lambda2).collect();
        let late = &estimates[estimates.len() * 2 / 3..];
        let off = |x: &f64| (x / race.reference.eigenvalues[1]).abs().max(f64::MIN_POSITIVE).log10().abs();
        (!late.is_empty()).then(|| mean(&late.iter().map(off).collect::<Vec<_>>()).max(NOTHING))
    };
    race.lane(AM_FIXED)?.runs.iter().map(of_run).collect()
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
    Case::new(
        study.title.clone(),
        Finding::of(study.lines.iter().all(converges)),
        format!("smallest log₁₀ error after {} passes, by batch: {}", study.passes, numbers.join(", ")),
    )
}
