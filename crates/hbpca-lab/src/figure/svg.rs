//! Figures as SVG.
//!
//! The backend works in whole pixels, so figures are drawn at [`FINE`] times their size and shown smaller: lines stay smooth.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{Dash, Figure, Mark, Panel, Scale, Series};
use super::palette::along_scale;
use super::text::{power_of_ten, significant};
use crate::LabError;

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

pub(super) const FINE: i32 = 4;
const PANEL: (i32, i32) = (400, 290);
/// A panel that stands alone.
const LONE_PANEL: (i32, i32) = (680, 460);
const LEGEND_LINE: i32 = 22;

pub(super) fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::Drawing(error.to_string())
}

/// A count as the signed number that drawing takes; counts beyond its range cannot be drawn anyway.
pub(super) fn pixels(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

pub(super) fn font(size: i32) -> FontDesc<'static> {
    ("sans-serif", size * FINE).into_font()
}

fn colour(series: &Series) -> RGBColor {
    rgb(series.style.colour)
}

fn rgb([r, g, b]: [u8; 3]) -> RGBColor {
    RGBColor(r, g, b)
}

/// The size of every panel.
fn panel_size(figure: &Figure) -> (i32, i32) {
    let (width, height) = if figure.panels.len() == 1 { LONE_PANEL } else { PANEL };
    let names = figure.panels.iter().map(|panel| panel.y_names.len()).max().unwrap_or(0);
    if names == 0 { (width, height) } else { (width.max(440), 100 + 19 * pixels(names)) }
}

/// The figure as SVG.
pub fn svg(figure: &Figure) -> Result<String, LabError> {
    let size = panel_size(figure);
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let rows = figure.panels.len().div_ceil(columns);
    let entries = legend_entries(figure);
    let width = size.0 * pixels(columns);
    let legend = legend_places(&entries, width);
    let legend_height = legend.last().map_or(0, |(_, y)| y + LEGEND_LINE) + 6;
    let head = if figure.note.is_some() { 52 } else { 34 };
    let height = head + size.1 * pixels(rows) + legend_height;
    draw(width, height, |root| {
        heading(root, &figure.title, figure.note.as_deref())?;
        let (_, below) = root.split_vertically(head * FINE);
        let (middle, foot) = below.split_vertically(size.1 * pixels(rows) * FINE);
        for (area, panel) in middle.split_evenly((rows, columns)).iter().zip(&figure.panels) {
            draw_panel(area, panel)?;
        }
        for ((x, y), series) in legend.iter().zip(&entries) {
            draw_entry(&foot, *x, *y, series)?;
        }
        Ok(())
    })
}

/// Draws on a white page of the given size.
pub(super) fn draw(
    width: i32,
    height: i32,
    content: impl FnOnce(&Area<'_>) -> Result<(), LabError>,
) -> Result<String, LabError> {
    let size = |x: i32| u32::try_from(x * FINE).map_err(failed);
    let (wide, high) = (size(width)?, size(height)?);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (wide, high)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        content(&root)?;
        root.present().map_err(failed)?;
    }
    let fine = format!("width=\"{wide}\" height=\"{high}\"");
    let shown = text.replacen(&fine, &format!("width=\"{width}\" height=\"{height}\""), 1);
    Ok(dashes(&shown).replace(" opacity=\"1\"", ""))
}

pub(super) fn heading(root: &Area<'_>, title: &str, note: Option<&str>) -> Result<(), LabError> {
    let left = 12 * FINE;
    root.draw(&Text::new(title.to_owned(), (left, 10 * FINE), font(17))).map_err(failed)?;
    if let Some(note) = note {
        let style = font(12).color(&RGBColor(170, 50, 0));
        root.draw(&Text::new(note.to_owned(), (left, 33 * FINE), style)).map_err(failed)?;
    }
    Ok(())
}

/// One entry for every label, in the order of appearance.
fn legend_entries(figure: &Figure) -> Vec<&Series> {
    let mut entries: Vec<&Series> = Vec::new();
    for series in figure.panels.iter().flat_map(|panel| &panel.series) {
        if !series.label.is_empty() && !entries.iter().any(|entry| entry.label == series.label) {
            entries.push(series);
        }
    }
    entries
}

/// Left upper corners of the entries, in lines that fit the width.
fn legend_places(entries: &[&Series], width: i32) -> Vec<(i32, i32)> {
    let (mut x, mut y) = (14, 4);
    let mut places = Vec::new();
    for entry in entries {
        let wide = 52 + 8 * pixels(entry.label.chars().count());
        if x + wide > width && x > 14 {
            (x, y) = (14, y + LEGEND_LINE);
        }
        places.push((x, y));
        x += wide;
    }
    places
}

fn draw_entry(area: &Area<'_>, x: i32, y: i32, series: &Series) -> Result<(), LabError> {
    let middle = (y + 8) * FINE;
    let (from, to) = ((x * FINE, middle), ((x + 30) * FINE, middle));
    if series.mark == Mark::Line {
        area.draw(&PathElement::new([from, to], stroke(series))).map_err(failed)?;
    } else {
        let dot = Circle::new((from.0 + 15 * FINE, middle), 4 * FINE, colour(series).filled());
        area.draw(&dot).map_err(failed)?;
    }
    let style = font(13).color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(series.label.clone(), (to.0 + 6 * FINE, middle), style)).map_err(failed)
}

/// The width of a line. The backend has no dashes, so while a page is drawn the width also tells the dash; see [`dashes`].
fn line_width(dash: Dash) -> i32 {
    match dash {
        Dash::Solid => 2 * FINE,
        Dash::Dashed => 2 * FINE + 1,
        Dash::Dotted => 2 * FINE - 1,
    }
}

fn stroke(series: &Series) -> ShapeStyle {
    colour(series).stroke_width(line_width(series.style.dash).unsigned_abs())
}

/// Gives lines their dashes; one element a line keeps the file small.
fn dashes(svg: &str) -> String {
    let width = |dash| format!("stroke-width=\"{}\"", line_width(dash));
    let broken = |on: i32, off: i32| {
        format!("{} stroke-dasharray=\"{} {}\"", width(Dash::Solid), on * FINE, off * FINE)
    };
    svg.replace(&width(Dash::Dashed), &broken(10, 5)).replace(&width(Dash::Dotted), &broken(3, 5))
}

/// The text of a tick on an axis of this length; sums of steps may miss 0 by a rounding.
fn tick(scale: Scale, value: f64, length: f64) -> String {
    match scale {
        Scale::Linear => {
            let text = significant(if value.abs() < 1e-9 * length { 0.0 } else { value });
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            }
        }
        // Ticks between powers of ten would need labels such as 10^−1.5.
        Scale::Log if (value - value.round()).abs() > 1e-9 => String::new(),
        Scale::Log => power_of_ten(value.round() as i32),
    }
}

/// Width of the names of ordinates.
fn name_width(panel: &Panel) -> i32 {
    let longest = panel.y_names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    (pixels(longest) * 7 + 16).clamp(58, 190)
}

/// A name that fits [`name_width`].
fn shortened(name: &str) -> String {
    const MOST: usize = 24;
    if name.chars().count() <= MOST {
        name.to_owned()
    } else {
        name.chars().take(MOST - 1).chain(['…']).collect()
    }
}

fn draw_panel(area: &Area<'_>, panel: &Panel) -> Result<(), LabError> {
    let ((x0, x1), (y0, y1)) = panel.window();
    let numbered = panel.series.iter().any(|series| series.mark == Mark::Bars);
    let named = !panel.y_names.is_empty();
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, font(15))
        .margin(8 * FINE)
        .margin_right(14 * FINE)
        .x_label_area_size(38 * FINE)
        .y_label_area_size(name_width(panel) * FINE)
        .build_cartesian_2d(x0..x1, y0..y1)
        .map_err(failed)?;
    let whole = |value: f64| (value - value.round()).abs() < 1e-9;
    let x_text =
        |x: &f64| if numbered && !whole(*x) { String::new() } else { tick(panel.x_scale, *x, x1 - x0) };
    let y_text = |y: &f64| {
        if !named {
            return tick(panel.y_scale, *y, y1 - y0);
        }
        let position = if whole(*y) { y.round() as usize } else { 0 };
        position
            .checked_sub(1)
            .and_then(|i| panel.y_names.get(i))
            .map_or_else(String::new, |name| shortened(name))
    };
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225).stroke_width(FINE as u32))
        .axis_style(RGBColor(90, 90, 90).stroke_width(FINE as u32))
        .set_all_tick_mark_size(4 * FINE)
        .x_labels(if numbered { 16 } else { 7 })
        .y_labels(if named { panel.y_names.len() + 2 } else { 8 })
        .x_label_formatter(&x_text)
        .y_label_formatter(&y_text)
        .label_style(font(12))
        .axis_desc_style(font(13))
        .x_desc(panel.x_label.clone())
        .y_desc(panel.y_label.clone());
    if numbered {
        mesh.disable_x_mesh();
    }
    if named {
        mesh.disable_y_mesh();
    }
    mesh.draw().map_err(failed)?;
    for series in &panel.series {
        draw_series(&mut chart, panel, series)?;
    }
    Ok(())
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn draw_series(chart: &mut Chart<'_, '_>, panel: &Panel, series: &Series) -> Result<(), LabError> {
    let is_drawn = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
    if let Some(band) = &series.band {
        let edge = |pick: fn(&(f64, f64)) -> f64| {
            let ends = series.points.iter().zip(band).map(|(point, band)| panel.place((point.0, pick(band))));
            ends.filter(is_drawn).collect::<Vec<_>>()
        };
        let mut outline = edge(|band| band.0);
        outline.extend(edge(|band| band.1).into_iter().rev());
        if outline.len() > 2 {
            let shade = Polygon::new(outline, colour(series).mix(0.18).filled());
            chart.draw_series([shade]).map_err(failed)?;
        }
    }
    let points: Vec<(f64, f64)> =
        series.points.iter().map(|point| panel.place(*point)).filter(is_drawn).collect();
    let shade =
        |i: usize| series.shades.get(i).map_or_else(|| colour(series), |share| rgb(along_scale(*share)));
    match series.mark {
        // Done after one look: a line would have no length.
        Mark::Line if points.len() == 1 => {
            let dot = Circle::new(points[0], 4 * FINE, colour(series).filled());
            chart.draw_series([dot]).map_err(failed)?;
        }
        Mark::Line => {
            chart.draw_series(LineSeries::new(points.clone(), stroke(series))).map_err(failed)?;
        }
        Mark::Dots => {
            let size = if points.len() > 1000 { 2 * FINE } else { 3 * FINE };
            let dot =
                |(i, point): (usize, &(f64, f64))| Circle::new(*point, size, shade(i).mix(0.7).filled());
            chart.draw_series(points.iter().enumerate().map(dot)).map_err(failed)?;
        }
        Mark::Bars => {
            let bar = |(x, y): &(f64, f64)| {
                Rectangle::new([(x - 0.38, 0.0), (x + 0.38, *y)], colour(series).mix(0.75).filled())
            };
            chart.draw_series(points.iter().map(bar)).map_err(failed)?;
        }
        Mark::SideBars => {
            let bar = |(i, (x, y)): (usize, &(f64, f64))| {
                Rectangle::new([(0.0, y - 0.36), (*x, y + 0.36)], shade(i).mix(0.85).filled())
            };
            chart.draw_series(points.iter().enumerate().map(bar)).map_err(failed)?;
        }
        Mark::Arrows => {
            for tip in &points {
                chart.draw_series(LineSeries::new([(0.0, 0.0), *tip], stroke(series))).map_err(failed)?;
            }
            let head = |tip: &(f64, f64)| Circle::new(*tip, 3 * FINE, colour(series).filled());
            chart.draw_series(points.iter().map(head)).map_err(failed)?;
        }
        Mark::Cells { width, height } => {
            let cell = |(i, (x, y)): (usize, &(f64, f64))| {
                let corners = [(x - width / 2.0, y - height / 2.0), (x + width / 2.0, y + height / 2.0)];
                Rectangle::new(corners, shade(i).filled())
            };
            chart.draw_series(points.iter().enumerate().map(cell)).map_err(failed)?;
        }
    }
    let text = |(point, text): (&(f64, f64), &String)| {
        // Beside the point, away from the middle.
        let (offset, side) = if point.0 < 0.0 { (-6 * FINE, HPos::Right) } else { (6 * FINE, HPos::Left) };
        let style = font(11).color(&RGBColor(40, 40, 40)).pos(Pos::new(side, VPos::Center));
        EmptyElement::at(*point) + Text::new(shortened(text), (offset, 0), style)
    };
    let named = points.iter().zip(&series.texts).filter(|(_, text)| !text.is_empty());
    chart.draw_series(named.map(text)).map_err(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::chart::Style;

    fn line(label: &str, dash: Dash, points: Vec<(f64, f64)>) -> Series {
        let style = Style { colour: [18, 52, 86], dash };
        Series::new(label, style, Mark::Line, points)
    }

    fn drawn(series: Vec<Series>) -> String {
        let (x_scale, y_scale) = (Scale::Linear, Scale::Log);
        let text = |text: &str| text.to_owned();
        let (title, x_label, y_label) = (text("T"), text("x"), text("y"));
        let panels = vec![Panel { title, x_label, y_label, x_scale, y_scale, y_names: Vec::new(), series }];
        svg(&Figure { title: text("F"), note: None, panels, columns: 1 }).unwrap()
    }

    #[test]
    fn a_line_is_one_element_with_its_dash_and_its_entry_in_the_legend_another() {
        let points = || vec![(1.0, 1e-1), (2.0, 1e-3), (3.0, 1e-8)];
        let of = |dash| drawn(vec![line("a", dash, points())]);
        let strokes = |svg: &str| svg.matches("stroke=\"#123456\"").count();
        let dashed = |svg: &str| svg.matches("stroke-width=\"8\" stroke-dasharray=").count();
        let [solid, broken, dotted] = [Dash::Solid, Dash::Dashed, Dash::Dotted].map(of);
        assert_eq!([&solid, &broken, &dotted].map(|svg| strokes(svg)), [2; 3]);
        assert_eq!([&solid, &broken, &dotted].map(|svg| dashed(svg)), [0, 2, 2]);
        assert!(broken.contains("\"40 20\"") && dotted.contains("\"12 20\""));
    }

    #[test]
    fn a_single_point_is_drawn_as_a_dot() {
        assert!(drawn(vec![line("a", Dash::Solid, vec![(1.0, 1e-15)])]).contains("<circle"));
        assert!(!drawn(vec![line("a", Dash::Solid, vec![(1.0, 1e-15), (2.0, 1e-16)])]).contains("<circle"));
    }
}
