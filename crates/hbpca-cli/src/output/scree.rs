//! A scree plot made of letters.

use super::number;
use super::table::{Side, Table};

/// Bars of this many characters at most.
const WIDTH: usize = 40;
/// Components drawn; the rest is counted.
const SHOWN: usize = 20;

/// One bar for each eigenvalue, in eighths of a character, with its share and the cumulative share of the total variance.
pub fn plot(eigenvalues: &[f64], ratios: &[f64]) -> String {
    let largest = eigenvalues.iter().copied().fold(0.0, f64::max);
    let mut table = Table::new(&[
        ("component", Side::Right),
        ("eigenvalue", Side::Right),
        ("share", Side::Right),
        ("cumulative", Side::Right),
        ("", Side::Left),
    ]);
    let mut cumulative = 0.0;
    for (i, (eigenvalue, ratio)) in eigenvalues.iter().zip(ratios).enumerate().take(SHOWN) {
        cumulative += ratio;
        table.row([
            (i + 1).to_string(),
            number::value(*eigenvalue),
            number::percent(*ratio),
            number::percent(cumulative),
            bar(if largest > 0.0 { eigenvalue / largest } else { 0.0 }),
        ]);
    }
    let more = eigenvalues.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!("… and {more} more\n") } else { String::new() };
    table.render() + &rest
}

fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (8 * WIDTH) as f64).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_proportional() {
        assert_eq!(bar(1.0).chars().count(), WIDTH);
        assert_eq!(bar(0.5), "█".repeat(WIDTH / 2));
        assert_eq!(bar(1.0 / 64.0), "▋"); // 5 eighths
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(f64::NAN), "");
    }

    #[test]
    fn shares_add_up_and_long_spectra_are_cut() {
        let text = plot(&[3.0, 1.0], &[0.6, 0.2]);
        assert!(text.lines().nth(2).unwrap().contains("80.00 %"), "{text}");
        let long = plot(&[1.0; 25], &[0.04; 25]);
        assert!(long.ends_with("… and 5 more\n") && long.lines().count() == 22);
    }
}
