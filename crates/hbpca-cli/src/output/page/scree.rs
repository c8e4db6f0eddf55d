//! Eigenvalues as bars, their cumulative share as a line.

use std::fmt::Write;

use crate::output::number;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 48.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

/// A figure of the spectrum.
pub fn render(eigenvalues: &[f64], ratios: &[f64]) -> String {
    let largest = eigenvalues.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let (width, height) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let slot = width / eigenvalues.len().max(1) as f64;
    let bottom = HEIGHT - BOTTOM;
    let share: f64 = ratios.iter().sum();
    let mut svg = format!(
        "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"scree-t scree-d\">\n\
         <title id=\"scree-t\">Leading eigenvalues and their cumulative share of the variance</title>\n\
         <desc id=\"scree-d\">Bars fall from {} to {}; together the {} components carry {} of the variance.</desc>\n",
        number::short(largest),
        number::short(eigenvalues.last().copied().unwrap_or(0.0)),
        eigenvalues.len(),
        number::percent(share),
    );
    for percent in [0, 50, 100] {
        let y = bottom - height * f64::from(percent) / 100.0;
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/>",
            WIDTH - RIGHT
        );
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{percent} %</text>", WIDTH - RIGHT + 6.0, y + 4.0);
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        LEFT - 6.0,
        TOP + 8.0,
        number::short(largest)
    );
    let mut cumulative = 0.0;
    let mut line = Vec::new();
    for (i, (eigenvalue, ratio)) in eigenvalues.iter().zip(ratios).enumerate() {
        let (left, tall) = (LEFT + slot * i as f64, height * (eigenvalue / largest).clamp(0.0, 1.0));
        cumulative += ratio;
        let _ = writeln!(
            svg,
            "<rect class=\"bar\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\"/>",
            left + 0.15 * slot,
            bottom - tall,
            0.7 * slot
        );
        let middle = left + slot / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 18.0,
            i + 1
        );
        line.push(format!("{middle:.1},{:.1}", bottom - height * cumulative.clamp(0.0, 1.0)));
    }
    let _ = writeln!(svg, "<polyline class=\"cumulative\" points=\"{}\"/>", line.join(" "));
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">component (bars: eigenvalue; line: cumulative share)</text>",
        WIDTH / 2.0,
        HEIGHT - 6.0
    );
    svg + "</svg>\n</figure>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_bar_for_every_eigenvalue_and_one_line() {
        let svg = render(&[2.0, 1.0, 0.0], &[0.5, 0.25, 0.0]);
        assert_eq!((svg.matches("<rect").count(), svg.matches("<polyline").count()), (3, 1));
        assert!(svg.contains("carry 75.00 % of the variance"));
        assert!(
            svg.contains("height=\"204.0\"")
                && svg.contains("height=\"102.0\"")
                && svg.contains("height=\"0.0\"")
        );
    }
}
