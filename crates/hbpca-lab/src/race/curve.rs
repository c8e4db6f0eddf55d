//! Many runs of one solver as one curve with a spread.

use super::run::Run;
use crate::statistics::{first_crossing, mean, slope, standard_deviation};

/// log₁₀ of the error over the runs of a race, look by look. A run that stopped early (at the floor) keeps its last error.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Passes at every look.
    pub passes: Vec<f64>,
    /// Mean seconds at every look, of the runs that got there; never decreasing.
    pub seconds: Vec<f64>,
    /// Mean of log₁₀ error.
    pub mean: Vec<f64>,
    /// Standard deviation of log₁₀ error.
    pub deviation: Vec<f64>,
}

impl Curve {
    /// The curve of `runs`, which look at the same passes.
    pub fn new(runs: &[Run]) -> Self {
        let looks = runs.iter().map(|run| run.looks.len()).max().unwrap_or(0);
        let mut curve = Self { passes: vec![], seconds: vec![], mean: vec![], deviation: vec![] };
        for i in 0..looks {
            let here: Vec<_> = runs.iter().filter_map(|run| run.looks.get(i)).collect();
            let held = runs.iter().filter_map(|run| run.looks.get(i).or_else(|| run.looks.last()));
            let logs: Vec<f64> = held.map(|look| look.error.log10()).collect();
            let seconds = mean(&here.iter().map(|look| look.seconds).collect::<Vec<_>>());
            curve.passes.push(here[0].passes);
            curve.seconds.push(curve.seconds.last().map_or(seconds, |before: &f64| before.max(seconds)));
            curve.mean.push(mean(&logs));
            curve.deviation.push(standard_deviation(&logs));
        }
        curve
    }

    /// Passes to an error, on the mean curve.
    pub fn passes_to(&self, error: f64) -> Option<f64> {
        first_crossing(&self.points(&self.passes), error.log10())
    }

    /// Seconds to an error, on the mean curve.
    pub fn seconds_to(&self, error: f64) -> Option<f64> {
        first_crossing(&self.points(&self.seconds), error.log10())
    }

    /// Mean log₁₀ error at the end.
    pub fn final_log_error(&self) -> f64 {
        self.mean.last().copied().unwrap_or(0.0)
    }

    /// Mean log₁₀ error after `passes`, by straight lines; at the end the last value is kept.
    pub fn log_error_at(&self, passes: f64) -> f64 {
        let points = self.points(&self.passes);
        let after = points.partition_point(|(x, _)| *x < passes);
        match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
            (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (passes - x0) / (x1 - x0),
            (None, Some((_, y))) => *y,
            (Some((_, y)), None) => y,
            (None, None) => 0.0,
        }
    }

    /// The factor by which one look multiplies the error, fitted over errors from `from` down to `to`; nothing with
    /// fewer than three looks in between.
    pub fn contraction(&self, from: f64, to: f64) -> Option<f64> {
        let (from, to) = (from.log10(), to.log10());
        let within = |y: &f64| *y <= from && *y >= to;
        let points: Vec<(f64, f64)> =
            self.mean.iter().enumerate().filter(|(_, y)| within(y)).map(|(i, y)| (i as f64, *y)).collect();
        if points.len() < 3 {
            return None;
        }
        slope(&points).map(|slope| 10.0_f64.powf(slope))
    }

    fn points(&self, x: &[f64]) -> Vec<(f64, f64)> {
        x.iter().copied().zip(self.mean.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::run::Look;
    use hbpca::Outcome;

    fn run(errors: &[f64]) -> Run {
        let look = |(i, error): (usize, &f64)| Look {
            passes: 1.0 + 2.0 * i as f64,
            seconds: 0.1 * i as f64,
            error: *error,
            lambda2: None,
        };
        let looks = errors.iter().enumerate().map(look).collect();
        Run { seed: 0, eta: None, outcome: Outcome::Budget, looks }
    }

    #[test]
    fn means_and_spreads_are_taken_in_logarithms_and_short_runs_keep_their_last_error() {
        let curve = Curve::new(&[run(&[1e-1, 1e-3, 1e-5]), run(&[1e-1, 1e-5])]);
        assert_eq!(curve.passes, [1.0, 3.0, 5.0]);
        for (mean, want) in curve.mean.iter().zip([-1.0, -4.0, -5.0]) {
            assert!((mean - want).abs() < 1e-14);
        }
        for (sd, want) in curve.deviation.iter().zip([0.0, 2.0_f64.sqrt(), 0.0]) {
            assert!((sd - want).abs() < 1e-14);
        }
    }

    #[test]
    fn a_geometric_error_has_its_ratio_as_contraction_and_is_crossed_where_it_should_be() {
        let errors: Vec<f64> = (0..9).map(|i| 0.1_f64.powi(i)).collect();
        let curve = Curve::new(&[run(&errors)]);
        assert!((curve.contraction(1e-1, 1e-7).unwrap() - 0.1).abs() < 1e-14);
        assert_eq!(curve.contraction(1e-3, 1e-4), None);
        assert!((curve.passes_to(10.0_f64.powf(-2.5)).unwrap() - 6.0).abs() < 1e-12);
        assert!((curve.seconds_to(1e-3).unwrap() - 0.3).abs() < 1e-12);
        assert_eq!(curve.passes_to(1e-9), None);
        assert!((curve.log_error_at(6.0) + 2.5).abs() < 1e-12);
        assert!(
            (curve.log_error_at(0.5) - 0.0).abs() < 1e-12 && (curve.log_error_at(99.0) + 8.0).abs() < 1e-12
        );
    }
}
