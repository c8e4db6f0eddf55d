//! Colours that people with every kind of colour vision can tell apart (Okabe & Ito 2008), and dashes besides.

use super::chart::{Dash, Style};
use crate::race::{Contender, Lambda2};

const BLACK: [u8; 3] = [0, 0, 0];
const GREY: [u8; 3] = [128, 128, 128];
const ORANGE: [u8; 3] = [230, 159, 0];
const SKY_BLUE: [u8; 3] = [86, 180, 233];
const GREEN: [u8; 3] = [0, 158, 115];
const BLUE: [u8; 3] = [0, 114, 178];
const VERMILION: [u8; 3] = [213, 94, 0];
const PURPLE: [u8; 3] = [204, 121, 167];
const BROWN: [u8; 3] = [140, 86, 75];
const VIOLET: [u8; 3] = [122, 62, 201];
const OLIVE: [u8; 3] = [163, 163, 0];

/// The colour and dash that a contender has in every figure.
pub fn style_of(contender: Contender) -> Style {
    let (colour, dash) = match (contender.solver.name(), contender.lambda2) {
        ("power", _) => (GREY, Dash::Dotted),
        ("power-m", _) => (ORANGE, Dash::Dotted),
        ("oja", _) => (BROWN, Dash::Solid),
        ("vr-pca", _) => (SKY_BLUE, Dash::Dashed),
        ("vr-power-m", _) => (PURPLE, Dash::Dashed),
        ("vr-hb-power", Lambda2::Oracle) => (VERMILION, Dash::Solid),
        ("vr-hb-power", Lambda2::Adaptive) => (BLUE, Dash::Solid),
        ("krylov", _) => (GREEN, Dash::Solid),
        ("anchored", _) => (BLACK, Dash::Solid),
        _ => (VIOLET, Dash::Dotted),
    };
    Style { colour, dash }
}

/// A colour along a scale: amber at 0, dark violet at 1.
pub fn along_scale(share: f64) -> [u8; 3] {
    const ENDS: [[f64; 3]; 3] = [[242.0, 177.0, 52.0], [190.0, 70.0, 110.0], [59.0, 31.0, 143.0]];
    let at = share.clamp(0.0, 1.0) * 2.0;
    let from = usize::from(at >= 1.0);
    let mix = |c: usize| ENDS[from][c] + (at - from as f64) * (ENDS[from + 1][c] - ENDS[from][c]);
    [0, 1, 2].map(|c| mix(c).round() as u8)
}

/// The i-th colour for classes without a meaning of their own.
pub fn numbered(i: usize) -> Style {
    const COLOURS: [[u8; 3]; 10] =
        [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY_BLUE, VIOLET, BROWN, GREY, OLIVE];
    Style { colour: COLOURS[i % COLOURS.len()], dash: Dash::Solid }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hbpca::SolverKind;

    #[test]
    fn every_solver_has_a_colour_of_its_own() {
        let style = |kind: SolverKind| style_of(kind.name().parse().unwrap());
        let mut colours: Vec<[u8; 3]> = SolverKind::ALL.into_iter().map(|kind| style(kind).colour).collect();
        colours.push(style_of("vr-hb-power:oracle".parse().unwrap()).colour);
        let all = colours.len();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), all);
        let mut classes: Vec<[u8; 3]> = (0..10).map(|i| numbered(i).colour).collect();
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes.len(), 10);
    }
}
