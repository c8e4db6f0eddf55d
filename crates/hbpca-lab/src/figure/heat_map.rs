//! Heat maps as SVG.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::HeatMap;
use super::svg::{FINE, draw, failed, font, heading, pixels};
use super::text::{one_decimal, significant};
use crate::LabError;

const CELL: (i32, i32) = (50, 36);
const LEFT: i32 = 96;
const TOP: i32 = 62;

/// From dark blue (small) over green to yellow (large), even in lightness: anchors of the cividis kind.
const ANCHORS: [[f64; 3]; 5] = [
    [0.0, 32.0, 77.0],
    [66.0, 78.0, 108.0],
    [124.0, 123.0, 120.0],
    [188.0, 174.0, 108.0],
    [255.0, 234.0, 70.0],
];

/// The colour of a share from 0 to 1.
pub(crate) fn shade(share: f64) -> [u8; 3] {
    let at = share.clamp(0.0, 1.0) * (ANCHORS.len() - 1) as f64;
    let i = (at as usize).min(ANCHORS.len() - 2);
    let within = at - i as f64;
    std::array::from_fn(|c| (ANCHORS[i][c] * (1.0 - within) + ANCHORS[i + 1][c] * within).round() as u8)
}

/// Smallest and largest finite value.
pub(crate) fn range(map: &HeatMap) -> (f64, f64) {
    let values = || map.values.iter().flatten().copied().filter(|value| value.is_finite());
    (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
}

/// The map as SVG.
pub fn heat_map_svg(map: &HeatMap) -> Result<String, LabError> {
    let (columns, rows) = (pixels(map.x.len()), pixels(map.y.len()));
    let (width, height) = ((LEFT + columns * CELL.0 + 20).max(560), TOP + rows * CELL.1 + 92);
    let (low, high) = range(map);
    let share = |value: f64| if high > low { (value - low) / (high - low) } else { 0.5 };
    draw(width, height, |root| {
        heading(root, &map.title, map.note.as_deref())?;
        let text = |words: String, x: i32, y: i32, size: i32, colour: RGBColor, pos: Pos| {
            let style = font(size).color(&colour).pos(pos);
            root.draw(&Text::new(words, (x * FINE, y * FINE), style)).map_err(failed)
        };
        let middle = Pos::new(HPos::Center, VPos::Center);
        let row_top = |row: usize| TOP + (rows - 1 - pixels(row)) * CELL.1;
        for (row, values) in map.values.iter().enumerate() {
            let top = row_top(row);
            for (column, value) in values.iter().enumerate() {
                let left = LEFT + pixels(column) * CELL.0;
                let [r, g, b] = shade(share(*value));
                let corners = [(left * FINE, top * FINE), ((left + CELL.0) * FINE, (top + CELL.1) * FINE)];
                root.draw(&Rectangle::new(corners, RGBColor(r, g, b).filled())).map_err(failed)?;
            }
            let right = Pos::new(HPos::Right, VPos::Center);
            text(map.y[row].clone(), LEFT - 8, top + CELL.1 / 2, 12, BLACK, right)?;
            if let Some(x) = map.marks.get(row).copied().flatten().and_then(|mark| position(&map.x, mark)) {
                let centre = f64::from(LEFT) + (x + 0.5) * f64::from(CELL.0);
                let at = ((centre * f64::from(FINE)) as i32, (top + CELL.1 / 2) * FINE);
                let ring = |radius: i32, colour: RGBColor, stroke: i32| {
                    Circle::new(at, radius * FINE, colour.stroke_width((stroke * FINE) as u32))
                };
                root.draw(&ring(15, WHITE, 4)).map_err(failed)?;
                root.draw(&ring(15, RGBColor(213, 94, 0), 2)).map_err(failed)?;
            }
            // Numbers come after the rings, which must not cross them out.
            for (column, value) in values.iter().enumerate() {
                let left = LEFT + pixels(column) * CELL.0;
                let ink = if share(*value) < 0.55 { WHITE } else { BLACK };
                text(one_decimal(*value), left + CELL.0 / 2, top + CELL.1 / 2, 12, ink, middle)?;
            }
        }
        let below = TOP + rows * CELL.1;
        for (column, x) in map.x.iter().enumerate() {
            let centre = LEFT + pixels(column) * CELL.0 + CELL.0 / 2;
            text(significant(*x), centre, below + 12, 11, BLACK, middle)?;
        }
        let left = Pos::new(HPos::Left, VPos::Center);
        text(format!("→ {}", map.x_label), LEFT, below + 34, 12, BLACK, left)?;
        text(format!("↑ {}", map.y_label), 12, TOP - 10, 12, BLACK, left)?;
        text(format!("cells: {}", map.value_label), LEFT, below + 54, 12, BLACK, left)?;
        let at = ((LEFT + 7) * FINE, (below + 74) * FINE);
        let ring = Circle::new(at, 6 * FINE, RGBColor(213, 94, 0).stroke_width(2 * FINE as u32));
        root.draw(&ring).map_err(failed)?;
        text(map.mark_label.clone(), LEFT + 20, below + 74, 12, BLACK, left)
    })
}

/// Where `mark` lies among the columns, as a fraction of their number; at the nearer end when it is outside.
pub(crate) fn position(x: &[f64], mark: f64) -> Option<f64> {
    let (first, last) = (x.first()?.ln(), x.last()?.ln());
    if x.len() < 2 || mark.is_nan() {
        return None;
    }
    let at = (mark.ln() - first) / (last - first) * (x.len() - 1) as f64;
    Some(at.clamp(-0.3, x.len() as f64 - 0.7))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_meet_their_anchors_and_grow_lighter() {
        assert_eq!(shade(0.0), [0, 32, 77]);
        assert_eq!(shade(1.0), [255, 234, 70]);
        assert_eq!(shade(0.5), [124, 123, 120]);
        let light = |share| shade(share).iter().map(|c| u32::from(*c)).sum::<u32>();
        assert!((1..20).all(|i| light(f64::from(i) / 20.0) > light(f64::from(i - 1) / 20.0)));
    }

    #[test]
    fn marks_are_placed_between_columns_in_logarithms() {
        let x = [0.01, 0.1, 1.0];
        assert!((position(&x, 0.1).unwrap() - 1.0).abs() < 1e-12);
        assert!((position(&x, 0.1 * 10.0_f64.sqrt()).unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(position(&x, 100.0), Some(2.3), "the right end");
        assert_eq!(position(&x, f64::INFINITY), Some(2.3));
        assert_eq!(position(&[1.0], 1.0), None);
    }
}
