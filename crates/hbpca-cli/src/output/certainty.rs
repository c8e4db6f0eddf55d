//! What a certificate says of clusters, and what a probe rests on, in words.

use hbpca::Certificate;
use hbpca::probe::ProbeResult;

use super::number;

/// The cost of a probe, and what its probability rests on.
pub fn of_probe(probe: &ProbeResult) -> String {
    let (passes, seed) = (number::plural(probe.passes as f64, "pass", "passes"), probe.seed);
    let given = ", if the start is as good as random for this data";
    format!("a probe of {passes}, seed {seed}{}", if probe.seed_is_given { given } else { "" })
}

/// That k cuts a cluster, where the gap after the last component is known to be too small, and the numbers that do not.
pub fn cut_cluster(certificate: &Certificate) -> Option<String> {
    let varying = certificate.n_varying();
    let whole = certificate.numbers_that_cut_no_cluster();
    let last = varying.checked_sub(1)?;
    certificate.following_eigenvalue()?;
    let is_bounded = certificate.angle_bounds[last].is_some()
        || certificate.cluster_of(last).is_some_and(|cluster| cluster.2.is_some());
    if is_bounded || whole.contains(&varying) {
        return None;
    }
    let others = match whole {
        [] => "no smaller number is known that does not".to_owned(),
        _ => format!("{} would not", list(whole)),
    };
    Some(format!("k = {varying} cuts a cluster of eigenvalues that are too close to tell apart: {others}"))
}

/// Numbers as people list them; the largest few of many.
fn list(numbers: &[usize]) -> String {
    const MOST: usize = 6;
    let shown = &numbers[numbers.len().saturating_sub(MOST)..];
    let texts: Vec<String> = shown.iter().map(|x| format!("k = {x}")).collect();
    match texts.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => texts.concat(),
    }
}

/// Components, counted from 1, in runs: `1–3 and 5`.
pub fn components(indices: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &i in indices {
        match runs.last_mut() {
            Some(run) if run.1 + 1 == i => run.1 = i,
            _ => runs.push((i, i)),
        }
    }
    let run = |(first, last): &(usize, usize)| {
        if first == last { (first + 1).to_string() } else { format!("{}–{}", first + 1, last + 1) }
    };
    let texts: Vec<String> = runs.iter().map(run).collect();
    let noun = if indices.len() == 1 { "component" } else { "components" };
    match texts.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{noun} {} and {last}", before.join(", ")),
        _ => format!("{noun} {}", texts.concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_components_are_joined() {
        assert_eq!(components(&[0]), "component 1");
        assert_eq!(components(&[0, 1, 2, 4]), "components 1–3 and 5");
        assert_eq!(components(&[0, 2, 4, 5]), "components 1, 3 and 5–6");
    }

    #[test]
    fn numbers_are_listed() {
        assert_eq!(list(&[2]), "k = 2");
        assert_eq!(list(&[1, 2, 5]), "k = 1, k = 2 or k = 5");
    }
}
