//! The laboratory from end to end, on generated data.
#![allow(clippy::unwrap_used, reason = "tests")]

mod comparison;
mod page;
mod reproduction;

use std::fmt::Write as _;

/// n×d rows as CSV: independent columns with standard deviations 1, ratio, ratio², …; uniform numbers from a small
/// generator.
pub fn generated_csv(n: usize, d: usize, ratio: f64) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    let mut text = (0..d).map(|j| format!("x{j}")).collect::<Vec<_>>().join(",") + "\n";
    for _ in 0..n {
        let row: Vec<String> = (0..d).map(|j| format!("{:.6}", uniform() * ratio.powf(j as f64))).collect();
        writeln!(text, "{}", row.join(",")).unwrap();
    }
    text
}
