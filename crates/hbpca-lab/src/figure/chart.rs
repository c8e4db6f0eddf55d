//! What a figure shows, before it is known how it is drawn: the same description becomes SVG, PNG or an interactive chart.

/// How an axis runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Powers of ten evenly.
    Log,
}

/// How a line is broken, so that colour is not the only difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// ———
    Solid,
    /// – – –
    Dashed,
    /// · · ·
    Dotted,
}

/// A colour and a dash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Red, green, blue.
    pub colour: [u8; 3],
    /// The dash.
    pub dash: Dash,
}

impl Style {
    /// `#rrggbb`.
    pub fn hex(self) -> String {
        let [r, g, b] = self.colour;
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

/// What is drawn at the points of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    /// A line through them.
    Line,
    /// A dot at each.
    Dots,
    /// A bar up to each.
    Bars,
    /// A bar from the left or right of 0 to each.
    SideBars,
    /// An arrow from the origin to each.
    Arrows,
    /// A cell around each, the darker the larger its weight.
    Cells {
        /// Width of a cell.
        width: f64,
        /// Height of a cell.
        height: f64,
    },
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend; series of the same name in several panels share one entry.
    pub label: String,
    /// Colour and dash.
    pub style: Style,
    /// What is drawn.
    pub mark: Mark,
    /// The points.
    pub points: Vec<(f64, f64)>,
    /// Lower and upper end of a band at every point.
    pub band: Option<Vec<(f64, f64)>>,
    /// A text beside each point; none where there are none.
    pub texts: Vec<String>,
    /// A share from 0 to 1 for each point, shown as a colour along a scale; none where all have the series' colour.
    pub shades: Vec<f64>,
}

impl Series {
    /// Points without band, texts and shades.
    pub fn new(label: impl Into<String>, style: Style, mark: Mark, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), style, mark, points, band: None, texts: Vec::new(), shades: Vec::new() }
    }
}

/// One pair of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Title.
    pub title: String,
    /// What the abscissa is.
    pub x_label: String,
    /// What the ordinate is.
    pub y_label: String,
    /// How the abscissa runs.
    pub x_scale: Scale,
    /// How the ordinate runs.
    pub y_scale: Scale,
    /// Names of the ordinates 1, 2, …; none where they are numbers.
    pub y_names: Vec<String>,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// Panels under one title.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Title.
    pub title: String,
    /// What a reader must know, such as that rows were thinned.
    pub note: Option<String>,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// Panels side by side.
    pub columns: usize,
}

/// A map of numbers over two lists.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Title.
    pub title: String,
    /// What a reader must know.
    pub note: Option<String>,
    /// What the columns are.
    pub x_label: String,
    /// The columns' positions, increasing, spaced evenly in logarithms.
    pub x: Vec<f64>,
    /// What the lines are.
    pub y_label: String,
    /// The lines, from below.
    pub y: Vec<String>,
    /// What is mapped.
    pub value_label: String,
    /// Values, line by line.
    pub values: Vec<Vec<f64>>,
    /// Position of a mark on each line, where there is one.
    pub marks: Vec<Option<f64>>,
    /// What the marks are.
    pub mark_label: String,
}

impl Panel {
    /// Smallest and largest coordinates of the points that can be drawn, as (x, y).
    pub(super) fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let points = self.series.iter().flat_map(|series| {
            let half = if let Mark::Cells { width, height } = series.mark {
                (width / 2.0, height / 2.0)
            } else {
                (0.0, 0.0)
            };
            let corners = series
                .points
                .iter()
                .flat_map(move |(x, y)| [(x - half.0, y - half.1), (x + half.0, y + half.1)]);
            let origin = (series.mark == Mark::Arrows).then_some((0.0, 0.0));
            let ends = series
                .band
                .iter()
                .flatten()
                .zip(&series.points)
                .flat_map(|(band, point)| [(point.0, band.0), (point.0, band.1)]);
            corners.chain(origin).chain(ends)
        });
        let drawn: Vec<_> =
            points.map(|point| self.place(point)).filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
        let range = |pick: fn(&(f64, f64)) -> f64| {
            let low = drawn.iter().map(pick).fold(f64::INFINITY, f64::min);
            let high = drawn.iter().map(pick).fold(f64::NEG_INFINITY, f64::max);
            if low < high {
                (low, high)
            } else if low.is_finite() {
                (low - 0.5, low + 0.5)
            } else {
                (0.0, 1.0)
            }
        };
        (range(|p| p.0), range(|p| p.1))
    }

    /// The part of the plane that is shown, on evenly running axes: no point lies on its frame, no bar is cut.
    pub(super) fn window(&self) -> ((f64, f64), (f64, f64)) {
        const ROOM: f64 = 0.05;
        let ((x0, x1), (y0, y1)) = self.ranges();
        let wide = |low: f64, high: f64| (low - ROOM * (high - low), high + ROOM * (high - low));
        let has = |wanted: fn(&Mark) -> bool| self.series.iter().any(|series| wanted(&series.mark));
        if has(|mark| matches!(mark, Mark::Bars)) {
            return ((x0 - 0.6, x1 + 0.6), (y0.min(0.0), y1 + ROOM * (y1 - y0.min(0.0))));
        }
        if has(|mark| matches!(mark, Mark::SideBars)) {
            let (low, high) = wide(x0.min(0.0), x1.max(0.0));
            return ((low, high), (y0 - 0.6, y1 + 0.6));
        }
        if !has(|mark| matches!(mark, Mark::Line)) {
            return (wide(x0, x1), wide(y0, y1));
        }
        let from_zero = self.x_scale == Scale::Linear && x0 >= 0.0;
        let x_low = if from_zero { 0.0 } else { x0 - 0.02 * (x1 - x0) };
        let y_low = if self.y_scale == Scale::Linear && y0 >= 0.0 { 0.0 } else { y0 - ROOM * (y1 - y0) };
        ((x_low, x1 + 0.02 * (x1 - x_low)), (y_low, y1 + ROOM * (y1 - y_low)))
    }

    /// A point on evenly running axes.
    pub(super) fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let on = |scale, value: f64| if scale == Scale::Log { value.log10() } else { value };
        (on(self.x_scale, x), on(self.y_scale, y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(points: Vec<(f64, f64)>, y_scale: Scale) -> Panel {
        let style = Style { colour: [1, 2, 255], dash: Dash::Solid };
        let series = Series::new("", style, Mark::Line, points);
        let text = String::new;
        Panel {
            title: text(),
            x_label: text(),
            y_label: text(),
            x_scale: Scale::Linear,
            y_scale,
            y_names: Vec::new(),
            series: vec![series],
        }
    }

    #[test]
    fn ranges_leave_out_what_a_logarithm_cannot_show() {
        let (x, y) = panel(vec![(1.0, 0.0), (2.0, 0.1), (4.0, 0.001)], Scale::Log).ranges();
        assert_eq!(x, (2.0, 4.0));
        assert!((y.0 + 3.0).abs() < 1e-15 && (y.1 + 1.0).abs() < 1e-15);
    }

    #[test]
    fn single_points_and_nothing_still_have_a_range() {
        assert_eq!(panel(vec![(3.0, 2.0)], Scale::Linear).ranges(), ((2.5, 3.5), (1.5, 2.5)));
        assert_eq!(panel(vec![], Scale::Linear).ranges(), ((0.0, 1.0), (0.0, 1.0)));
    }

    #[test]
    fn bars_are_whole_and_dots_stay_off_the_frame() {
        let mut bars = panel(vec![(1.0, 3.0), (2.0, 1.0)], Scale::Linear);
        bars.series[0].mark = Mark::Bars;
        let ((x0, x1), (y0, y1)) = bars.window();
        assert!(x0 < 0.5 && x1 > 2.5 && y0.abs() < 1e-15 && y1 > 3.0);
        let mut dots = panel(vec![(-1.0, 5.0), (2.0, 9.0)], Scale::Linear);
        dots.series[0].mark = Mark::Dots;
        let ((x0, x1), (y0, y1)) = dots.window();
        assert!(x0 < -1.0 && x1 > 2.0 && y0 < 5.0 && y1 > 9.0);
    }

    #[test]
    fn colours_are_written_in_hexadecimal_digits() {
        assert_eq!(Style { colour: [1, 2, 255], dash: Dash::Solid }.hex(), "#0102ff");
    }
}
