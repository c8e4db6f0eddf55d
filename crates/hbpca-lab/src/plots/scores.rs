//! Rows in the plane of two components, with or without the columns as arrows.

use hbpca::Model;

use super::loadings::too_many;
use crate::LabError;
use crate::colouring::Colouring;
use crate::figure::chart::{Dash, Figure, Mark, Panel, Scale, Series, Style};
use crate::figure::palette;
use crate::figure::text::{per_cent, significant};
use crate::fit_report::leading_columns;

/// Rows up to which every one has its own dot; more are counted in cells, or thinned where they have colours.
const MOST_DOTS: usize = 4000;
/// Rows up to which each has its number or name beside it; of more, so many that lie farthest out have their names.
const MOST_NUMBERS: usize = 40;
/// Cells along each axis.
const CELLS: usize = 60;
/// Arrows of a biplot.
const MOST_ARROWS: usize = 12;

/// Scores of rows, seen along two components.
pub struct Plane<'a> {
    /// n×k, row-major.
    pub scores: &'a [f64],
    /// k.
    pub k: usize,
    /// The two components, counted from 0.
    pub components: [usize; 2],
    /// Shares of the variance of all components, where they are known.
    pub shares: Option<Vec<f64>>,
    /// Colours of the rows, and what they show.
    pub colouring: Option<(Colouring, String)>,
    /// Names of the rows.
    pub labels: Option<Vec<String>>,
}

impl Plane<'_> {
    fn check(&self) -> Result<(), LabError> {
        if self.k == 0 || self.scores.len() < self.k || !self.scores.len().is_multiple_of(self.k) {
            let message =
                format!("{} scores in rows of {}: there are no rows to plot", self.scores.len(), self.k);
            return Err(LabError::Usage(message));
        }
        self.components.iter().find(|c| **c >= self.k).map_or(Ok(()), |c| Err(too_many(*c, self.k)))
    }

    fn n(&self) -> usize {
        self.scores.len() / self.k
    }

    fn point(&self, l: usize) -> (f64, f64) {
        let at = |c: usize| self.scores[l * self.k + c];
        (at(self.components[0]), at(self.components[1]))
    }

    fn panel(&self, title: &str, series: Vec<Series>) -> Panel {
        let label = |c: usize| {
            let share = self.shares.as_ref().and_then(|shares| shares.get(c));
            let share =
                share.map_or_else(String::new, |share| format!(" ({} of the variance)", per_cent(*share)));
            format!("component {}{share}", c + 1)
        };
        Panel {
            title: title.into(),
            x_label: label(self.components[0]),
            y_label: label(self.components[1]),
            x_scale: Scale::Linear,
            y_scale: Scale::Linear,
            y_names: Vec::new(),
            series,
        }
    }

    /// The rows as series, and what a reader must know of them.
    fn rows(&self) -> (Vec<Series>, Option<String>) {
        let n = self.n();
        let every = n.div_ceil(MOST_DOTS).max(1);
        let shown: Vec<usize> = (0..n).step_by(every).collect();
        let thinned = (every > 1).then(|| format!("every {every}th of {n} rows is drawn"));
        match &self.colouring {
            None if n > MOST_DOTS && self.labels.is_none() => self.cells(),
            None => (vec![self.dots("", palette::numbered(0), &shown)], None),
            Some((Colouring::Categories { names, of }, about)) => {
                let series = names.iter().enumerate().map(|(i, name)| {
                    let rows: Vec<usize> = shown.iter().copied().filter(|l| of[*l] == i).collect();
                    self.dots(&format!("{about} {name}"), palette::numbered(i), &rows)
                });
                (series.filter(|series| !series.points.is_empty()).collect(), thinned)
            }
            Some((Colouring::Scale(values), about)) => {
                let finite = || values.iter().copied().filter(|x| x.is_finite());
                let (low, high) =
                    (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
                let mut dots = self.dots("", palette::numbered(0), &shown);
                let share = |l: &usize| if high > low { (values[*l] - low) / (high - low) } else { 0.5 };
                dots.shades = shown.iter().map(share).collect();
                if self.labels.is_none() {
                    dots.texts.clear();
                }
                let note = format!("{about}: light is {}, dark is {}", significant(low), significant(high));
                let note = thinned.map_or_else(|| note.clone(), |thinned| format!("{note}; {thinned}"));
                (vec![dots], Some(note))
            }
        }
    }

    fn dots(&self, label: &str, style: Style, rows: &[usize]) -> Series {
        let mut dots = Series::new(label, style, Mark::Dots, rows.iter().map(|l| self.point(*l)).collect());
        let least = self.least_named_distance();
        dots.texts = match &self.labels {
            Some(labels) => {
                let named = |l: usize| least.is_none_or(|least| self.distance(l) >= least);
                rows.iter().map(|&l| if named(l) { labels[l].clone() } else { String::new() }).collect()
            }
            None if least.is_some() => Vec::new(),
            None => rows.iter().map(|l| (l + 1).to_string()).collect(),
        };
        dots
    }

    /// From the origin, which is the mean of centred rows.
    fn distance(&self, l: usize) -> f64 {
        let (x, y) = self.point(l);
        x.hypot(y)
    }

    /// The distance from which on rows are named, where they are too many for all of them.
    fn least_named_distance(&self) -> Option<f64> {
        let n = self.n();
        if n <= MOST_NUMBERS {
            return None;
        }
        let mut distances: Vec<f64> = (0..n).map(|l| self.distance(l)).collect();
        let (_, least, _) = distances.select_nth_unstable_by(n - MOST_NUMBERS, f64::total_cmp);
        Some(*least)
    }

    /// Rows counted in cells; the colour follows the logarithm of the count.
    fn cells(&self) -> (Vec<Series>, Option<String>) {
        let n = self.n();
        let ends = |pick: fn((f64, f64)) -> f64| {
            let values = || (0..n).map(|l| pick(self.point(l)));
            let (low, high) =
                (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
            if high > low { (low, high) } else { (low - 0.5, low + 0.5) }
        };
        let (x, y) = (ends(|p| p.0), ends(|p| p.1));
        let step = |(low, high): (f64, f64)| (high - low) / CELLS as f64;
        let (width, height) = (step(x), step(y));
        let cell = |low: f64, step: f64, value: f64| (((value - low) / step) as usize).min(CELLS - 1);
        let mut counts = vec![0_usize; CELLS * CELLS];
        for l in 0..n {
            let point = self.point(l);
            counts[cell(y.0, height, point.1) * CELLS + cell(x.0, width, point.0)] += 1;
        }
        let most = counts.iter().copied().max().unwrap_or(1).max(2);
        let filled = || counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let centre =
            |i: usize| (x.0 + ((i % CELLS) as f64 + 0.5) * width, y.0 + ((i / CELLS) as f64 + 0.5) * height);
        let points = filled().map(|(i, _)| centre(i)).collect();
        let mut cells = Series::new("", palette::numbered(0), Mark::Cells { width, height }, points);
        cells.shades = filled().map(|(_, count)| (*count as f64).ln() / (most as f64).ln()).collect();
        let note = format!("{n} rows, counted in cells: light is 1 row, dark is {most}");
        (vec![cells], Some(note))
    }
}

/// Every row as a dot; thousands of rows as cells.
pub fn scores(plane: &Plane<'_>) -> Result<Figure, LabError> {
    plane.check()?;
    let (series, note) = plane.rows();
    Ok(Figure { title: "Scores".into(), note, panels: vec![plane.panel("", series)], columns: 1 })
}

/// Rows as dots, and the columns that weigh most in the two components as arrows.
pub fn biplot(plane: &Plane<'_>, model: &Model, names: &[String]) -> Result<Figure, LabError> {
    plane.check()?;
    let [a, b] = plane.components.map(|c| model.component(c));
    let lengths: Vec<f64> = a.iter().zip(b).map(|(a, b)| a.hypot(*b)).collect();
    let leading = leading_columns(&lengths, MOST_ARROWS);
    let longest = leading.first().map_or(1.0, |j| lengths[*j]).max(f64::MIN_POSITIVE);
    let farthest =
        (0..plane.n()).map(|l| plane.point(l)).map(|(x, y)| x.abs().max(y.abs())).fold(0.0, f64::max);
    let factor = 0.8 * farthest / longest;
    let tips = leading.iter().map(|j| (factor * a[*j], factor * b[*j])).collect();
    let mut arrows =
        Series::new("columns", Style { colour: [0, 0, 0], dash: Dash::Solid }, Mark::Arrows, tips);
    arrows.texts = leading.iter().map(|j| names[*j].clone()).collect();
    let (mut series, note) = plane.rows();
    series.iter_mut().for_each(|series| {
        series.texts.clear();
        // Pale cells, so that arrows and names stand out.
        if matches!(series.mark, Mark::Cells { .. }) {
            series.shades.iter_mut().for_each(|share| *share *= 0.4);
        }
    });
    series.push(arrows);
    let d = names.len();
    let arrows = format!("arrows: {} of {d} columns, loadings times {}", leading.len(), significant(factor));
    let note = Some(note.map_or_else(|| arrows.clone(), |note| format!("{note}; {arrows}")));
    Ok(Figure { title: "Biplot".into(), note, panels: vec![plane.panel("", series)], columns: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(scores: &[f64], components: [usize; 2]) -> Plane<'_> {
        Plane { scores, k: 2, components, shares: Some(vec![0.75, 0.2]), colouring: None, labels: None }
    }

    #[test]
    fn axes_name_component_and_share() {
        let figure = scores(&plane(&[1.0, 2.0, 3.0, 4.0], [1, 0])).unwrap();
        let panel = &figure.panels[0];
        assert_eq!(panel.x_label, "component 2 (20.0\u{a0}% of the variance)");
        assert_eq!(panel.series[0].points, [(2.0, 1.0), (4.0, 3.0)]);
        assert_eq!(panel.series[0].texts, ["1", "2"]);
        let refused = scores(&plane(&[1.0, 2.0], [0, 2])).unwrap_err().to_string();
        assert_eq!(refused, "component 3: there are 2, counted from 1");
    }

    #[test]
    fn thousands_of_rows_are_counted_in_cells_and_none_is_lost() {
        let values: Vec<f64> = (0..10_000).map(|i| f64::from(i * i % 997)).collect();
        let figure = scores(&plane(&values, [0, 1])).unwrap();
        let series = &figure.panels[0].series[0];
        assert!(matches!(series.mark, Mark::Cells { .. }) && series.points.len() == series.shades.len());
        assert!(figure.note.unwrap().starts_with("5000 rows, counted in cells"));
    }

    #[test]
    fn names_stand_beside_all_of_few_rows_and_the_outermost_of_many() {
        for (n, named) in [(6, 6), (300, MOST_NUMBERS)] {
            let values: Vec<f64> = (0..2 * n).map(|i| i as f64).collect();
            let mut plane = plane(&values, [0, 1]);
            plane.labels = Some((0..n).map(|l| format!("row {l}")).collect());
            let texts = scores(&plane).unwrap().panels[0].series[0].texts.clone();
            assert_eq!(texts.len(), n);
            assert_eq!(texts.iter().filter(|text| !text.is_empty()).count(), named);
            assert_eq!(texts[n - 1], format!("row {}", n - 1));
        }
    }

    #[test]
    fn categories_have_a_series_each() {
        let mut plane = plane(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0, 1]);
        let names = vec!["a".to_owned(), "b".to_owned()];
        plane.colouring = Some((Colouring::Categories { names, of: vec![0, 1, 0] }, "kind".into()));
        let series = &scores(&plane).unwrap().panels[0].series;
        assert_eq!(
            series.iter().map(|s| (s.label.as_str(), s.points.len())).collect::<Vec<_>>(),
            [("kind a", 2), ("kind b", 1)]
        );
    }
}
