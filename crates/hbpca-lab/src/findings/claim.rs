//! A sentence of the paper, the cases in which it was tried, and the verdict.

use serde::Serialize;

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// In every case.
    Holds,
    /// In some cases.
    HoldsInPart,
    /// In none.
    DoesNotHold,
    /// No case could be tried.
    NotTested,
}

impl Verdict {
    /// From the cases.
    pub fn of(cases: &[Case]) -> Self {
        match (cases.len(), cases.iter().filter(|case| case.passed).count()) {
            (0, _) => Self::NotTested,
            (all, passed) if all == passed => Self::Holds,
            (_, 0) => Self::DoesNotHold,
            _ => Self::HoldsInPart,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::HoldsInPart => "holds in part",
            Self::DoesNotHold => "does not hold here",
            Self::NotTested => "not tested",
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
    /// What was measured.
    pub numbers: String,
}

/// A sentence and what came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// What the paper says.
    pub sentence: String,
    /// When a case counts as passed.
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
    if cases.iter().any(|case| case.passed) {
        cases.into_iter().filter(|case| case.passed).collect()
    } else {
        cases
    }
}

/// The claims as Markdown: sentence, verdict, rule, numbers.
pub fn claims_markdown(claims: &[Claim]) -> String {
    let mut text = "| the paper says | verdict | rule | cases |\n|---|---|---|---|\n".to_owned();
    for claim in claims {
        let case =
            |case: &Case| format!("{} {}: {}", if case.passed { "✓" } else { "✗" }, case.place, case.numbers);
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

    fn case(passed: bool) -> Case {
        Case { place: String::new(), passed, numbers: String::new() }
    }

    #[test]
    fn verdicts_count_the_cases() {
        assert_eq!(Verdict::of(&[]), Verdict::NotTested);
        assert_eq!(Verdict::of(&[case(true), case(true)]), Verdict::Holds);
        assert_eq!(Verdict::of(&[case(true), case(false)]), Verdict::HoldsInPart);
        assert_eq!(Verdict::of(&[case(false)]), Verdict::DoesNotHold);
    }

    #[test]
    fn sometimes_needs_one_place_only() {
        assert_eq!(Verdict::of(&sometimes(vec![case(false), case(true)])), Verdict::Holds);
        assert_eq!(Verdict::of(&sometimes(vec![case(false), case(false)])), Verdict::DoesNotHold);
    }
}
