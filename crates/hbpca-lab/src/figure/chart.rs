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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line through them.
    Line,
    /// A dot at each.
    Dots,
    /// A bar up to each.
    Bars,
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
            let ends = series
                .band
                .iter()
                .flatten()
                .zip(&series.points)
                .flat_map(|(band, point)| [(point.0, band.0), (point.0, band.1)]);
            series.points.iter().copied().chain(ends)
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
        let series = Series { label: String::new(), style, mark: Mark::Line, points, band: None };
        let text = String::new;
        Panel {
            title: text(),
            x_label: text(),
            y_label: text(),
            x_scale: Scale::Linear,
            y_scale,
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
    fn colours_are_written_in_hexadecimal_digits() {
        assert_eq!(Style { colour: [1, 2, 255], dash: Dash::Solid }.hex(), "#0102ff");
    }
}
