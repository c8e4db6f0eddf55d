//! Panels and heat maps as interactive charts of the plotly library.

use plotly::color::Rgb;
use plotly::common::{
    Anchor, ColorBar, ColorScale, ColorScaleElement, DashType, Fill, HoverInfo, Line, Marker, MarkerSymbol,
    Mode, Orientation, Title,
};
use plotly::configuration::DisplayModeBar;
use plotly::layout::{Axis, AxisType, HoverMode, Layout, Legend, Margin};
use plotly::{Bar, Configuration, HeatMap as HeatTrace, Plot, Scatter};

use crate::figure::chart::{Dash, HeatMap, Mark, Panel, Scale, Series};
use crate::figure::heat_map::{position, shade};
use crate::figure::palette::along_scale;
use crate::figure::text::{power_of_ten, significant};

const CLEAR: &str = "rgba(0,0,0,0)";

/// A panel as the JSON of a chart. Lines and their bands share a legend group, so that they come and go together.
pub fn panel_json(panel: &Panel) -> String {
    let mut plot = Plot::new();
    for series in &panel.series {
        if let Some(band) = &series.band {
            let edge = |pick: fn(&(f64, f64)) -> f64, fill: bool| {
                let x: Vec<f64> = series.points.iter().map(|point| point.0).collect();
                let trace = Scatter::new(x, band.iter().map(pick).collect())
                    .mode(Mode::Lines)
                    .line(Line::new().width(0.0).color(CLEAR))
                    .legend_group(&series.label)
                    .show_legend(false)
                    .hover_info(HoverInfo::Skip);
                let [r, g, b] = series.style.colour;
                if fill {
                    trace.fill(Fill::ToNextY).fill_color(format!("rgba({r},{g},{b},0.18)"))
                } else {
                    trace
                }
            };
            plot.add_trace(edge(|band| band.0, false));
            plot.add_trace(edge(|band| band.1, true));
        }
        add_series(&mut plot, panel, series);
    }
    plot.set_layout(layout(panel));
    plot.set_configuration(configuration());
    plot.to_json()
}

fn add_series(plot: &mut Plot, panel: &Panel, series: &Series) {
    let (x, y): (Vec<f64>, Vec<f64>) = series.points.iter().copied().unzip();
    let hover = format!("%{{x:.4~g}} {}<br>%{{y:.3~g}}", panel.x_label);
    let marker = Marker::new().color(series.style.hex()).size(6);
    match series.mark {
        Mark::Bars => {
            let bars = Bar::new(x, y).name(&series.label).marker(marker).hover_template(hover);
            plot.add_trace(bars.legend_group(&series.label));
        }
        Mark::Dots => {
            let marker = marker.opacity(0.7);
            let marker = if series.shades.is_empty() { marker } else { marker.color_array(colours(series)) };
            let dots = Scatter::new(x, y).name(&series.label).mode(Mode::Markers).marker(marker);
            let dots = dots.legend_group(&series.label);
            plot.add_trace(match series.texts.as_slice() {
                [] => dots.hover_template(hover),
                texts => {
                    dots.text_array(texts.to_vec()).hover_template(format!("%{{text}}<br>{hover}").as_str())
                }
            });
        }
        Mark::SideBars => {
            let marker = if series.shades.is_empty() { marker } else { marker.color_array(colours(series)) };
            let bars = Bar::new(x, y).orientation(Orientation::Horizontal).name(&series.label).marker(marker);
            plot.add_trace(bars.text_array(series.texts.clone()).hover_template("%{x:.4~g}<extra></extra>"));
        }
        Mark::Arrows => add_arrows(plot, series),
        Mark::Cells { .. } => add_cells(plot, series),
        Mark::Line => {
            let dash = match series.style.dash {
                Dash::Solid => DashType::Solid,
                Dash::Dashed => DashType::Dash,
                Dash::Dotted => DashType::Dot,
            };
            let line = Line::new().color(series.style.hex()).width(2.5).dash(dash);
            let lines = Scatter::new(x, y).name(&series.label).mode(Mode::LinesMarkers).line(line);
            let lines = lines.marker(Marker::new().color(series.style.hex()).size(4));
            plot.add_trace(lines.legend_group(&series.label).hover_template(hover));
        }
    }
}

/// Lines from the origin, each with its text at the tip; a gap follows every line.
fn add_arrows(plot: &mut Plot, series: &Series) {
    let line = |pick: fn(&(f64, f64)) -> f64| {
        series.points.iter().flat_map(|tip| [Some(0.0), Some(pick(tip)), None]).collect::<Vec<Option<f64>>>()
    };
    let texts = series.texts.iter().flat_map(|text| [String::new(), text.clone(), String::new()]).collect();
    let arrows = Scatter::new(line(|tip| tip.0), line(|tip| tip.1))
        .name(&series.label)
        .mode(Mode::LinesText)
        .line(Line::new().color(series.style.hex()).width(2.0))
        .text_array(texts)
        .hover_template("%{text}<extra></extra>");
    plot.add_trace(arrows.legend_group(&series.label));
}

/// Cells as a heat map without a bar of colours: the note of the figure tells what they count.
fn add_cells(plot: &mut Plot, series: &Series) {
    let positions = |pick: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = series.points.iter().map(pick).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    };
    let (x, y) = (positions(|p| p.0), positions(|p| p.1));
    let mut shades = vec![vec![None; x.len()]; y.len()];
    let mut words = vec![vec![String::new(); x.len()]; y.len()];
    for (i, point) in series.points.iter().enumerate() {
        let at = |all: &[f64], value: f64| all.partition_point(|a| *a < value);
        let (row, column) = (at(&y, point.1), at(&x, point.0));
        shades[row][column] = series.shades.get(i).copied();
        words[row][column] = series.texts.get(i).cloned().unwrap_or_default();
    }
    let anchor = |i: u8| {
        let [r, g, b] = along_scale(f64::from(i) / 8.0);
        ColorScaleElement(f64::from(i) / 8.0, format!("rgb({r},{g},{b})"))
    };
    let cells = HeatTrace::new(x, y, shades)
        .name(&series.label)
        .color_scale(ColorScale::Vector((0..=8).map(anchor).collect()))
        .show_scale(false)
        .text_matrix(words)
        .hover_template("%{text}<extra></extra>");
    plot.add_trace(cells);
}

fn colours(series: &Series) -> Vec<Rgb> {
    let colour = |share: &f64| {
        let [r, g, b] = along_scale(*share);
        Rgb::new(r, g, b)
    };
    series.shades.iter().map(colour).collect()
}

fn axis(label: &str, scale: Scale) -> Axis {
    let axis = Axis::new().title(Title::with_text(label)).auto_margin(true).zero_line(false);
    match scale {
        Scale::Linear => axis,
        Scale::Log => axis.type_(AxisType::Log).exponent_format(plotly::common::ExponentFormat::Power),
    }
}

fn layout(panel: &Panel) -> Layout {
    let y = axis(&panel.y_label, panel.y_scale);
    // Errors span fifteen powers of ten: a label every third is enough.
    let y = if panel.y_scale == Scale::Log { y.dtick(3.0) } else { y };
    // Names instead of numbers.
    let y = if panel.y_names.is_empty() {
        y
    } else {
        let positions = (1..=panel.y_names.len()).map(|i| i as f64).collect();
        y.tick_values(positions).tick_text(panel.y_names.clone())
    };
    let labels = panel.series.iter().filter(|series| !series.label.is_empty()).count();
    // Races have switches of their own.
    let has_legend = labels > 1 && panel.series.iter().all(|series| series.band.is_none());
    let above = Legend::new().orientation(Orientation::Horizontal).y(1.02).y_anchor(Anchor::Bottom);
    Layout::new()
        .show_legend(has_legend)
        .legend(above)
        .hover_mode(HoverMode::Closest)
        .margin(Margin::new().left(64).right(12).top(12).bottom(48))
        .paper_background_color(CLEAR)
        .plot_background_color(CLEAR)
        .x_axis(axis(&panel.x_label, panel.x_scale))
        .y_axis(y)
}

fn configuration() -> Configuration {
    Configuration::new().responsive(true).display_logo(false).display_mode_bar(DisplayModeBar::False)
}

/// A heat map as the JSON of a chart, the marks as rings.
pub fn heat_map_json(map: &HeatMap) -> String {
    let hover: Vec<Vec<String>> = map
        .y
        .iter()
        .map(|y| map.x.iter().map(|x| format!("x = {}<br>|S| = {y}", significant(*x))).collect())
        .collect();
    let columns: Vec<f64> = (0..map.x.len()).map(|i| i as f64).collect();
    let rows: Vec<f64> = (0..map.y.len()).map(|i| i as f64).collect();
    let anchors = (0..=8).map(|i| {
        let [r, g, b] = shade(f64::from(i) / 8.0);
        ColorScaleElement(f64::from(i) / 8.0, format!("rgb({r},{g},{b})"))
    });
    let heat = HeatTrace::new(columns.clone(), rows.clone(), map.values.clone())
        .name("final error")
        .color_scale(ColorScale::Vector(anchors.collect()))
        .color_bar(ColorBar::new().title(Title::with_text("log₁₀ error")).outline_width(0))
        .text_matrix(hover)
        .hover_template("%{text}<br>log₁₀ error %{z:.2f}<extra></extra>");
    let (mut mark_x, mut mark_y) = (Vec::new(), Vec::new());
    for (row, mark) in map.marks.iter().enumerate() {
        if let Some(x) = mark.and_then(|mark| position(&map.x, mark)) {
            mark_x.push(x);
            mark_y.push(row as f64);
        }
    }
    let ring =
        Marker::new().symbol(MarkerSymbol::CircleOpen).size(16).color("#D55E00").line(Line::new().width(3.0));
    let marks = Scatter::new(mark_x, mark_y)
        .name("theory's best step")
        .mode(Mode::Markers)
        .marker(ring)
        .clip_on_axis(false)
        .hover_info(HoverInfo::Name);
    let mut plot = Plot::new();
    plot.add_trace(heat);
    plot.add_trace(marks);
    let (ticks, names) = powers_of_ten(&map.x);
    let named = |label: &str, cells: usize, values: Vec<f64>, names: Vec<String>| {
        // Cells reach half a step beyond their centres.
        let range = vec![-0.5, cells as f64 - 0.5];
        let axis = Axis::new().title(Title::with_text(label)).auto_margin(true).range(range);
        axis.tick_values(values).tick_text(names)
    };
    plot.set_layout(
        Layout::new()
            .show_legend(false)
            .margin(Margin::new().left(64).right(12).top(12).bottom(48))
            .paper_background_color(CLEAR)
            .plot_background_color(CLEAR)
            .x_axis(named(&map.x_label, columns.len(), ticks, names))
            .y_axis(named(&map.y_label, rows.len(), rows, map.y.clone())),
    );
    plot.set_configuration(configuration());
    plot.to_json()
}

/// The columns that are whole powers of ten and their names: a narrow page has room for no more. All columns where none is.
fn powers_of_ten(x: &[f64]) -> (Vec<f64>, Vec<String>) {
    let whole = |x: f64| (x.log10() - x.log10().round()).abs() < 1e-9;
    let any = x.iter().any(|x| whole(*x));
    let shown = x.iter().enumerate().filter(|(_, x)| whole(**x) || !any);
    let name = |x: f64| if any { power_of_ten(x.log10().round() as i32) } else { significant(x) };
    shown.map(|(i, x)| (i as f64, name(*x))).unzip()
}

/// The library's script in its tag, from the dependency that carries it. Its second script, for typeset formulas, is not needed.
pub fn library_script() -> String {
    const END: &str = "</script>";
    let both = Plot::offline_js_sources();
    let end = both.find(END).map_or(both.len(), |at| at + END.len());
    both[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_by_powers_of_ten_where_there_are_any() {
        let (ticks, names) = powers_of_ten(&[0.01, 0.031_6, 0.1, 0.316, 1.0]);
        assert_eq!((ticks, names.join(" ")), (vec![0.0, 2.0, 4.0], "10⁻² 10⁻¹ 1".to_owned()));
        let (ticks, names) = powers_of_ten(&[0.03, 3.0]);
        assert_eq!((ticks, names.join(" ")), (vec![0.0, 1.0], "0.0300 3.00".to_owned()));
    }

    #[test]
    fn the_library_comes_along_once_and_without_an_address() {
        let script = library_script();
        assert!(script.starts_with("<script") && script.ends_with("</script>"));
        assert!(script.contains("plotly.js v") && script.len() > 1_000_000);
        assert!(!script.contains("MathJax = {"));
    }
}
