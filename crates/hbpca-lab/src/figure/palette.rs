//! Colours that people with every kind of colour vision can tell apart (Okabe & Ito 2008), and dashes besides.

use super::chart::{Dash, Style};
use crate::race::{Contender, Lambda2, Step};

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
        _ if contender.step == Step::Bounded => (VIOLET, Dash::Dashed),
        _ if contender.step == Step::Fixed => (VIOLET, Dash::Solid),
        ("power", _) => (GREY, Dash::Dotted),
        ("power-m", Lambda2::Dynamic) => (ORANGE, Dash::Dashed),
        ("power-m", _) => (ORANGE, Dash::Dotted),
        ("oja", _) => (BROWN, Dash::Solid),
        ("vr-pca", _) => (SKY_BLUE, Dash::Dashed),
        ("vr-power-m", _) => (PURPLE, Dash::Dashed),
        ("vr-hb-power", Lambda2::Oracle) => (VERMILION, Dash::Solid),
        ("vr-hb-power", Lambda2::Adaptive) => (BLUE, Dash::Solid),
        ("vr-hb-power", Lambda2::Dynamic) => (BLUE, Dash::Dashed),
        ("krylov", _) => (GREEN, Dash::Solid),
        ("anchored", _) => (BLACK, Dash::Solid),
        ("vr-pca-projected", _) => (SKY_BLUE, Dash::Dotted),
        ("shift-invert-svrg", _) => (OLIVE, Dash::Dashed),
        ("shift-invert-agd", _) => (OLIVE, Dash::Solid),
        ("lazy-svd", _) => (GREEN, Dash::Dashed),
        ("vr-riemannian", _) => (BROWN, Dash::Dashed),
        ("coordinate-power", _) => (GREY, Dash::Solid),
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
    fn every_solver_has_a_colour_and_dash_of_its_own() {
        let style = |name: &str| {
            let Style { colour, dash } = style_of(name.parse().unwrap());
            format!("{colour:?} {dash:?}")
        };
        let names = SolverKind::ALL.into_iter().map(SolverKind::name);
        let mut styles: Vec<String> =
            names.chain(["vr-hb-power:oracle", "vr-hb-power:dynamic"]).map(style).collect();
        let all = styles.len();
        styles.sort_unstable();
        styles.dedup();
        assert_eq!(styles.len(), all);
        let mut classes: Vec<[u8; 3]> = (0..10).map(|i| numbered(i).colour).collect();
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes.len(), 10);
    }
}
