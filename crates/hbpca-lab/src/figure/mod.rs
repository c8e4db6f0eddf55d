//! Figures: described once, drawn as SVG, PNG or HTML.

pub mod chart;
pub mod palette;
pub mod races;
pub mod text;

pub(crate) mod heat_map;
mod png;
mod svg;

pub use heat_map::heat_map_svg;
pub use png::png;
pub use svg::svg;

use std::path::Path;

use crate::{LabError, write_atomically};

/// Writes `name`.svg and `name`.png into `folder`.
pub fn write_svg_and_png(svg: &str, folder: &Path, name: &str) -> Result<(), LabError> {
    write_atomically(&folder.join(format!("{name}.svg")), svg.as_bytes())?;
    write_atomically(&folder.join(format!("{name}.png")), &png(svg)?)
}
