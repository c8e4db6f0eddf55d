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

/// The colour and dash that a contender has in every figure.
pub fn style_of(contender: Contender) -> Style {
    let (colour, dash) = match (contender.solver.name(), contender.lambda2) {
        ("power", _) => (GREY, Dash::Dotted),
        ("power-m", _) => (ORANGE, Dash::Dotted),
        ("oja", _) => (GREY, Dash::Solid),
        ("vr-pca", _) => (SKY_BLUE, Dash::Dashed),
        ("vr-power-m", _) => (PURPLE, Dash::Dashed),
        ("vr-hb-power", Lambda2::Oracle) => (VERMILION, Dash::Solid),
        ("vr-hb-power", Lambda2::Adaptive) => (BLUE, Dash::Solid),
        ("krylov", _) => (GREEN, Dash::Solid),
        ("anchored", _) => (BLACK, Dash::Solid),
        _ => (BLACK, Dash::Dotted),
    };
    Style { colour, dash }
}

/// The i-th colour for classes without a meaning of their own.
pub fn numbered(i: usize) -> Style {
    const COLOURS: [[u8; 3]; 7] = [BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY_BLUE, GREY];
    Style { colour: COLOURS[i % COLOURS.len()], dash: Dash::Solid }
}
