//! A sentence of the paper, the cases in which it was tried, and the verdict.

use serde::Serialize;

use crate::statistics::Interval;

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// In every case.
    Holds,
    /// In some cases, and in no case the contrary.
    HoldsOrTies,
    /// In some cases, and in others the contrary.
    HoldsInPart,
    /// In no case, and in some the contrary.
    DoesNotHold,
    /// The seeds decide no case.
    Tie,
    /// No case could be tried.
    NotTested,
}

impl Verdict {
    /// From the cases.
    pub fn of(cases: &[Case]) -> Self {
        let count = |finding: Finding| cases.iter().filter(|case| case.finding == finding).count();
        match (count(Finding::Yes), count(Finding::Tie), count(Finding::No)) {
            (0, 0, 0) => Self::NotTested,
            (0, _, 0) => Self::Tie,
            (0, _, _) => Self::DoesNotHold,
            (_, 0, 0) => Self::Holds,
            (_, _, 0) => Self::HoldsOrTies,
            _ => Self::HoldsInPart,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::HoldsOrTies => "holds or ties",
            Self::HoldsInPart => "holds in part",
            Self::DoesNotHold => "does not hold here",
            Self::Tie => "a tie",
            Self::NotTested => "not tested",
        }
    }
}

/// What the seeds say of a rule in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The whole interval meets the rule.
    Yes,
    /// Only a part of it does.
    Tie,
    /// No part of it does.
    No,
}

impl Finding {
    /// Of a rule that is met or not.
    pub(super) fn of(met: bool) -> Self {
        if met { Self::Yes } else { Self::No }
    }

    /// Whether numbers lie between two, as far as their interval tells.
    pub(super) fn between(low: f64, interval: Interval, high: f64) -> Self {
        if interval.low > low && interval.high < high {
            Self::Yes
        } else if interval.high < low || interval.low > high {
            Self::No
        } else {
            Self::Tie
        }
    }

    /// Whether numbers are above one.
    pub(super) fn above(low: f64, interval: Interval) -> Self {
        Self::between(low, interval, f64::INFINITY)
    }

    /// Whether numbers are below one.
    pub(super) fn below(interval: Interval, high: f64) -> Self {
        Self::between(f64::NEG_INFINITY, interval, high)
    }

    /// Both rules.
    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Tie,
        }
    }

    /// One of two rules.
    #[must_use]
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            _ => Self::Tie,
        }
    }

    /// As a sign.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Yes => "✓",
            Self::Tie => "≈",
            Self::No => "✗",
        }
    }
}

/// A claim tried in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Data set and batch.
    pub place: String,
    /// Whether the rule is met.
    pub passed: bool,
    /// What the seeds say of the rule.
    pub finding: Finding,
    /// What was measured.
    pub numbers: String,
}

impl Case {
    /// A case, and what was measured in it.
    pub(super) fn new(place: String, finding: Finding, numbers: String) -> Self {
        Self { place, passed: finding == Finding::Yes, finding, numbers }
    }
}

/// A sentence and what came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// What the paper says.
    pub sentence: String,
    /// When a case counts as met.
    pub rule: String,
    /// The cases.
    pub cases: Vec<Case>,
    /// What came out.
    pub verdict: Verdict,
}

/// A claim with the verdict of its cases.
pub(super) fn claim(sentence: &str, rule: &str, cases: Vec<Case>) -> Claim {
    let verdict = Verdict::of(&cases);
    Claim { sentence: sentence.into(), rule: rule.into(), cases, verdict }
}

/// “Sometimes”: the places where it happens, or all of them when it never does.
pub(super) fn sometimes(cases: Vec<Case>) -> Vec<Case> {
    if cases.iter().any(|case| case.finding == Finding::Yes) {
        cases.into_iter().filter(|case| case.finding == Finding::Yes).collect()
    } else {
        cases
    }
}

/// The claims as Markdown: sentence, verdict, rule, numbers.
pub fn claims_markdown(claims: &[Claim]) -> String {
    let mut text = "| the paper says | verdict | rule | cases |\n|---|---|---|---|\n".to_owned();
    for claim in claims {
        let case = |case: &Case| format!("{} {}: {}", case.finding.sign(), case.place, case.numbers);
        let cases = claim.cases.iter().map(case).collect::<Vec<_>>().join("<br>");
        let cells = [&claim.sentence, claim.verdict.words(), &claim.rule, &cases];
        text += "| ";
        text += &cells.map(|cell| cell.replace('|', "\\|")).join(" | ");
        text += " |\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(finding: Finding) -> Case {
        Case::new(String::new(), finding, String::new())
    }

    #[test]
    fn verdicts_count_the_cases() {
        use Finding::{No, Tie, Yes};
        let of = |findings: &[Finding]| Verdict::of(&findings.iter().map(|f| case(*f)).collect::<Vec<_>>());
        assert_eq!(of(&[]), Verdict::NotTested);
        assert_eq!(of(&[Yes, Yes]), Verdict::Holds);
        assert_eq!(of(&[Yes, Tie]), Verdict::HoldsOrTies);
        assert_eq!(of(&[Yes, Tie, No]), Verdict::HoldsInPart);
        assert_eq!(of(&[Tie, No]), Verdict::DoesNotHold);
        assert_eq!(of(&[Tie]), Verdict::Tie);
    }

    #[test]
    fn an_interval_meets_a_rule_wholly_in_part_or_not() {
        let interval = |low, high| Interval { low, mean: f64::midpoint(low, high), high };
        assert_eq!(Finding::above(1.0, interval(1.01, 1.4)), Finding::Yes);
        assert_eq!(Finding::above(1.0, interval(0.9, 1.4)), Finding::Tie);
        assert_eq!(Finding::above(1.0, interval(0.5, 0.9)), Finding::No);
        assert_eq!(Finding::above(1.0, interval(1.0, 1.0)), Finding::Tie, "the same runs");
        assert_eq!(Finding::above(1.0, interval(f64::NEG_INFINITY, f64::INFINITY)), Finding::Tie, "one seed");
        assert_eq!(Finding::between(0.8, interval(0.9, 1.1), 1.2), Finding::Yes);
        assert_eq!(Finding::between(0.8, interval(1.3, 1.4), 1.2), Finding::No);
        assert_eq!(Finding::Yes.and(Finding::Tie), Finding::Tie);
        assert_eq!(Finding::No.and(Finding::Tie), Finding::No);
        assert_eq!(Finding::No.or(Finding::Tie), Finding::Tie);
    }

    #[test]
    fn sometimes_needs_one_place_only() {
        use Finding::{No, Yes};
        assert_eq!(Verdict::of(&sometimes(vec![case(No), case(Yes)])), Verdict::Holds);
        assert_eq!(Verdict::of(&sometimes(vec![case(No), case(No)])), Verdict::DoesNotHold);
    }
}
