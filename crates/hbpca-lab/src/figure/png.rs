//! SVG as PNG, with a font that comes along: the same picture on machines with other fonts or none.

use std::sync::Arc;

use resvg::{tiny_skia, usvg};

use crate::LabError;

/// Pixels a unit of the SVG, for sharp text on slides.
const PIXELS: f32 = 2.0;

/// Renders `svg`.
pub fn png(svg: &str) -> Result<Vec<u8>, LabError> {
    let failed = |error: String| LabError::Drawing(format!("PNG: {error}"));
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = usvg::Options {
        font_family: "DejaVu Sans".to_owned(),
        fontdb: Arc::new(fonts),
        ..usvg::Options::default()
    };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| failed(error.to_string()))?;
    let size = tree.size();
    let (width, height) = ((size.width() * PIXELS).ceil() as u32, (size.height() * PIXELS).ceil() as u32);
    let mut picture = tiny_skia::Pixmap::new(width, height)
        .ok_or_else(|| failed(format!("{width} × {height} pixels are too many or none")))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(PIXELS, PIXELS), &mut picture.as_mut());
    picture.encode_png().map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_drawn_without_fonts_of_the_system() {
        let page = |words: &str| {
            let text = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"80\" height=\"20\"><text x=\"5\" y=\"15\" \
                 font-family=\"sans-serif\">{words}</text></svg>"
            );
            png(&text).unwrap()
        };
        assert_ne!(page("λ₂ 10⁻¹⁵"), page(""));
        assert_eq!(page("again"), page("again"));
        assert!(png("no picture").unwrap_err().to_string().contains("PNG"));
    }
}
