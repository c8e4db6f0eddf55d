//! Lines over a linear axis against a logarithmic one.

use std::fmt::Write;

use super::escape;
use crate::output::number;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
// Room for the axes.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 48.0;
/// Errors below this are drawn on the lower edge: f64 shows no less.
const FLOOR: f64 = 1e-16;
const COLOURS: usize = 8;
const DASHES: usize = 3;

/// A named line.
pub struct Series<'a> {
    /// Its name in the legend.
    pub name: &'a str,
    /// Where it goes.
    pub points: &'a [(f64, f64)],
}

/// The picture of several lines.
pub struct LineChart<'a> {
    /// What it shows.
    pub title: &'a str,
    /// The same for those who cannot see it.
    pub description: String,
    /// Under the horizontal axis.
    pub x_label: &'a str,
    /// Beside the vertical axis.
    pub y_label: &'a str,
    /// The lines.
    pub series: Vec<Series<'a>>,
}

impl LineChart<'_> {
    /// A figure with its legend.
    pub fn render(&self) -> String {
        let scale = Scale::of(&self.series);
        let mut svg = format!(
            "<figure>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"chart-t chart-d\">\n\
             <title id=\"chart-t\">{}</title>\n<desc id=\"chart-d\">{}</desc>\n",
            escape(self.title),
            escape(&self.description)
        );
        self.axes(&scale, &mut svg);
        for (i, series) in self.series.iter().enumerate() {
            let points: Vec<String> =
                series.points.iter().map(|&(x, y)| format!("{:.1},{:.1}", scale.x(x), scale.y(y))).collect();
            let class = class(i);
            let _ = match points.as_slice() {
                [single] => {
                    let (x, y) = single.split_once(',').unwrap_or_default();
                    writeln!(svg, "<circle class=\"curve {class}\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>")
                }
                many => writeln!(svg, "<polyline class=\"curve {class}\" points=\"{}\"/>", many.join(" ")),
            };
        }
        svg + "</svg>\n" + &self.legend() + "</figure>\n"
    }

    fn axes(&self, scale: &Scale, svg: &mut String) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for decade in scale.decades() {
            let y = scale.y(10_f64.powi(decade));
            let label = if decade == 0 { "1".to_owned() } else { format!("1e{decade}") };
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            );
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        for tick in scale.ticks() {
            let (x, text) = (scale.x(tick), number::short(tick));
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"
            );
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
                bottom + 18.0
            );
        }
        let middle = f64::midpoint(LEFT, right);
        let _ = writeln!(
            svg,
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - 8.0,
            escape(self.x_label)
        );
        let middle = f64::midpoint(TOP, bottom);
        let _ = writeln!(
            svg,
            "<text transform=\"translate(14 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(self.y_label)
        );
    }

    fn legend(&self) -> String {
        let items = self.series.iter().enumerate().map(|(i, series)| {
            format!(
                "<li><svg viewBox=\"0 0 32 12\" aria-hidden=\"true\"><line class=\"curve {}\" x1=\"0\" x2=\"32\" y1=\"6\" y2=\"6\"/></svg>{}</li>\n",
                class(i),
                escape(series.name)
            )
        });
        format!("<ul class=\"legend\">\n{}</ul>\n", items.collect::<String>())
    }
}

/// Colour and dashes: lines are told apart without colours too.
fn class(i: usize) -> String {
    format!("s{} d{}", i % COLOURS, i % DASHES)
}

/// From data to the picture.
struct Scale {
    x_max: f64,
    /// Decimal exponents at the bottom and at the top.
    low: i32,
    high: i32,
}

impl Scale {
    fn of(series: &[Series<'_>]) -> Self {
        let points = || series.iter().flat_map(|s| s.points.iter());
        let x_max = points().map(|p| p.0).fold(1.0, f64::max);
        let smallest = points().map(|p| p.1).fold(1.0, f64::min).max(FLOOR);
        let low = (smallest.log10().floor() as i32).min(-1);
        Self { x_max, low, high: 0 }
    }

    fn x(&self, x: f64) -> f64 {
        LEFT + x / self.x_max * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, y: f64) -> f64 {
        let share = (f64::from(self.high) - y.max(FLOOR).log10()) / f64::from(self.high - self.low);
        TOP + share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }

    /// Every second decade, or every fourth when there are many.
    fn decades(&self) -> impl Iterator<Item = i32> + use<> {
        let step = if self.high - self.low > 12 { 4 } else { 2 };
        (self.low..=self.high).filter(move |decade| decade % step == 0)
    }

    /// Five or so round numbers.
    fn ticks(&self) -> Vec<f64> {
        let rough = self.x_max / 5.0;
        let magnitude = 10_f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|x| x * magnitude).into_iter().find(|x| *x >= rough).unwrap_or(rough);
        let count = (self.x_max / step * (1.0 + 1e-9)) as u32;
        (0..=count).map(|i| f64::from(i) * step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corners_of_the_data_are_the_corners_of_the_picture() {
        let points = [(0.0, 1.0), (50.0, 1e-8)];
        let scale = Scale::of(&[Series { name: "a", points: &points }]);
        let corner = |(x, y): (f64, f64)| (scale.x(x).round(), scale.y(y).round());
        assert_eq!(corner(points[0]), (LEFT, TOP));
        assert_eq!(corner(points[1]), (WIDTH - RIGHT, HEIGHT - BOTTOM));
        assert_eq!(scale.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(scale.decades().collect::<Vec<_>>(), [-8, -6, -4, -2, 0]);
    }

    #[test]
    fn errors_of_zero_stay_in_the_picture() {
        let points = [(1.0, 0.0)];
        let scale = Scale::of(&[Series { name: "a", points: &points }]);
        assert!((scale.y(0.0) - (HEIGHT - BOTTOM)).abs() < 1e-9);
    }

    #[test]
    fn a_single_point_is_a_dot() {
        let chart = LineChart {
            title: "t",
            description: "d".into(),
            x_label: "x",
            y_label: "y",
            series: vec![
                Series { name: "one", points: &[(1.0, 1e-3)] },
                Series { name: "two", points: &[(1.0, 1.0), (2.0, 0.1)] },
            ],
        };
        let svg = chart.render();
        assert_eq!((svg.matches("<circle").count(), svg.matches("<polyline").count()), (1, 1));
    }
}
