//! Warnings: the fact, the likely cause, the flag to try.

use hbpca::certificate::Status;
use hbpca::{Fit, Limits, Outcome, Record, Scaling, SolverKind};

use super::{certainty, number};

/// Everything worth knowing about a fit that its numbers do not say by themselves.
pub fn of_fit(fit: &Fit, limits: &Limits, idle_flags: &[&str], names: Option<&[String]>) -> Vec<String> {
    let mut warnings = Vec::new();
    if !idle_flags.is_empty() {
        let (flags, verb) = (idle_flags.join(" and "), if idle_flags.len() == 1 { "has" } else { "have" });
        let advice = "leave it out or choose another --solver";
        warnings.push(format!("{flags} {verb} no effect on solver {}: {advice}", fit.solver));
    }
    warnings.extend(not_converged(fit, limits));
    warnings.extend(open_share(fit));
    warnings.extend(one_column_rules(fit, names));
    warnings.extend(no_sample_variance(fit));
    warnings
}

/// That residuals leave open how many components reach the share of variance.
fn open_share(fit: &Fit) -> Option<String> {
    let possible = fit.possible_k.as_ref()?;
    let (fewest, most) = (possible.start(), possible.end());
    let kept = fit.model.n_components();
    Some(format!(
        "between {fewest} and {most} components explain the share of variance, {kept} are kept: residuals leave that open; a smaller --tol may decide"
    ))
}

fn not_converged(fit: &Fit, limits: &Limits) -> Option<String> {
    let reached = format!(
        "the largest residual is {} of its eigenvalue, the tolerance {}",
        number::small(fit.certificate.worst()),
        number::small(limits.tol)
    );
    let angle = missed_angle(fit, limits);
    match fit.outcome {
        Outcome::Converged => None,
        Outcome::Interrupted => {
            Some(format!("interrupted: {reached}; --start with the model written by -o goes on"))
        }
        Outcome::Stagnated => Some(stagnated(fit, limits, &reached, angle.as_deref())),
        _ if fit.missing.is_some_and(|m| m.stationary_point.is_some_and(|point| !point.is_reached())) => Some(
            "em did not reach a fixed point: try a larger --em-max-rounds or --max-passes, a larger --em-tol, fewer components or an --em-ridge".into(),
        ),
        _ => {
            let reached = angle.unwrap_or(reached);
            Some(format!("stopped after {}: {reached}. {}", spent(fit), advice(fit)))
        }
    }
}

/// That every residual is small enough but the angle is not, where one was asked for.
fn missed_angle(fit: &Fit, limits: &Limits) -> Option<String> {
    let wanted = limits.angle.filter(|_| fit.certificate.holds(limits.tol))?;
    let bound = fit.certificate.subspace_angle_bound;
    let known = bound.map_or_else(|| "has no bound".into(), |x| format!("is {} at most", number::small(x)));
    (bound.is_none_or(|bound| bound > wanted))
        .then(|| format!("the angle to the true components {known}, {} was asked for", number::small(wanted)))
}

/// The floor that rounding sets, and the components that hold.
fn stagnated(fit: &Fit, limits: &Limits, reached: &str, angle: Option<&str>) -> String {
    let certificate = &fit.certificate;
    if fit.probe.is_some_and(|probe| certificate.is_refuted_by(probe.least)) {
        return "the probe found more variance beside the components than along the last: they do not lead; try \
                another --seed, or leave --start out"
            .into();
    }
    if let Some(angle) = angle {
        return format!(
            "stagnated: {angle}; rounding or a cluster of eigenvalues leaves no more: try a larger --angle"
        );
    }
    let (holding, failing): (Vec<usize>, Vec<usize>) = (0..certificate.status.len())
        .filter(|i| certificate.status[*i] != Status::NoVariance)
        .partition(|i| certificate.relative_residuals[*i] <= limits.tol);
    let Some(&worst) = failing
        .iter()
        .max_by(|a, b| certificate.relative_residuals[**a].total_cmp(&certificate.relative_residuals[**b]))
    else {
        return "stagnated: every residual is within the tolerance, but the variance that is left proves that these are \
                not the leading components: try another --seed or --solver"
            .into();
    };
    let floor = certificate.rounding(worst) / certificate.eigenvalues[worst];
    let holds = match holding.as_slice() {
        [] => "no component holds".to_owned(),
        [_] => format!("{} holds", certainty::components(&holding)),
        _ => format!("{} hold", certainty::components(&holding)),
    };
    // A residual near the eigenvalue itself says nothing: no tolerance makes it right.
    let reachable = 2.0 * certificate.worst();
    let way_out = if reachable < 0.1 {
        format!("try --tol {}", number::small(reachable))
    } else {
        "ask for fewer components with -k, or scale the columns alike with --scale std".into()
    };
    format!(
        "stagnated: {reached}, and rounding allows no less than {} for component {}; {holds}, {} not: {way_out}",
        number::small(floor),
        worst + 1,
        if let [_] = failing[..] {
            format!("{} does", certainty::components(&failing))
        } else {
            format!("{} do", certainty::components(&failing))
        },
    )
}

fn spent(fit: &Fit) -> String {
    let passes = number::plural(fit.passes, "pass", "passes");
    format!("{passes} and {}", number::seconds(fit.seconds))
}

/// The likely cause of slowness, and what to try.
fn advice(fit: &Fit) -> String {
    if fit.solver.has_batches() && noisy(&fit.history) {
        return match fit.solver {
            SolverKind::VrPowerM => "Batches this small are too noisy for a full step: try --solver vr-hb-power with an \
                                     --eta below 1, or a larger --batch"
                .into(),
            SolverKind::Oja => {
                "Its residual is the noise of the batches: try --solver vr-pca or a smaller --eta".into()
            }
            _ => "The residual does not fall: the noise of the batches, or the momentum estimated from them, is too large: \
                  try a larger --batch or a smaller --eta"
                .into(),
        };
    }
    let ratio = fit.history.last().and_then(|last| last.lambda2.map(|lambda2| lambda2 / last.theta));
    let cause = match ratio {
        Some(ratio) if ratio > 0.9 && ratio < 1.0 => {
            format!("λ₂/λ₁ is about {}, a small gap", number::short(ratio))
        }
        _ => "The gap between the first two eigenvalues is likely small".into(),
    };
    let remedy = match fit.solver {
        SolverKind::Power => "--solver power-m, --solver covariance or a larger --max-passes",
        SolverKind::Oja => "--solver vr-hb-power, or a looser --tol",
        _ => "--solver covariance, or a larger --max-passes",
    };
    format!("{cause}: try {remedy}")
}

/// Whether the later half of the history brought less than a factor of two, or rose at every fourth look or more often.
fn noisy(history: &[Record]) -> bool {
    if history.len() < 4 {
        return false;
    }
    let best = |records: &[Record]| records.iter().map(|r| r.residual).fold(f64::INFINITY, f64::min);
    let (early, late) = history.split_at(history.len() / 2);
    let rises = late.windows(2).filter(|pair| pair[1].residual > pair[0].residual).count();
    best(late) > 0.5 * best(early) || 4 * rises >= late.len()
}

/// That there is no n − 1 to divide by.
fn no_sample_variance(fit: &Fit) -> Option<String> {
    (!fit.model.has_sample_variance()).then(|| {
        format!(
            "the rows weigh {} in all, which leaves no n − 1: explained variances are 0. Weights count rows; eigenvalues do not depend on \
             their scale",
            number::short(fit.model.summary().weight)
        )
    })
}

/// Columns in different units: one of them makes up the first component, which carries most of the variance.
fn one_column_rules(fit: &Fit, names: Option<&[String]>) -> Option<String> {
    const ALMOST_ALL: f64 = 0.99;
    const MOST: f64 = 0.9;
    let model = &fit.model;
    if model.summary().preprocessing.scaling != Scaling::None || model.n_features() < 3 {
        return None;
    }
    if model.explained_variance_ratio()[0] < MOST {
        return None;
    }
    let column = model.component(0).iter().position(|x| x * x > ALMOST_ALL)?;
    let name =
        names.and_then(|names| names.get(column)).map_or_else(|| column.to_string(), |x| format!("`{x}`"));
    Some(format!(
        "component 1 is almost only column {name} ({} of its squared weight): columns in different units? Try --scale std",
        number::percent(model.component(0)[column].powi(2))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(residuals: &[f64]) -> Vec<Record> {
        let record = |residual: &f64| {
            let mut record = Record::default();
            (record.passes, record.full_passes, record.seconds) = (1.0, 1, 1.0);
            (record.theta, record.residual) = (1.0, *residual);
            record
        };
        residuals.iter().map(record).collect()
    }

    #[test]
    fn noise_is_told_from_slowness() {
        assert!(!noisy(&history(&[1.0, 0.5, 0.2, 0.1, 0.05, 0.02]))); // falls steadily
        assert!(noisy(&history(&[1.0, 0.1, 0.09, 0.1, 0.08, 0.09]))); // hangs
        assert!(noisy(&history(&[1.0, 0.5, 0.4, 0.01, 0.6, 0.3, 0.5, 0.001]))); // jumps
        assert!(!noisy(&history(&[1.0, 2.0, 3.0]))); // too short to tell
    }
}
