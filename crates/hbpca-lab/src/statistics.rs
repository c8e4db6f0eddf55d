//! Means, spreads and rates of repeated runs.

/// The arithmetic mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation with denominator n − 1; 0 for a single value.
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let centre = mean(values);
    let squares: f64 = values.iter().map(|x| (x - centre).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// A mean and the ends of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The mean.
    pub mean: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Student's interval for the mean of independent values: mean ± t·s/√n. A single value leaves everything open.
    pub fn of_mean(values: &[f64]) -> Self {
        let mean = mean(values);
        let n = values.len() as f64;
        let half = if values.len() < 2 {
            f64::INFINITY
        } else {
            student(values.len() - 1) * standard_deviation(values) / n.sqrt()
        };
        Self { low: mean - half, mean, high: mean + half }
    }

    /// The same of eˣ, end by end.
    #[must_use]
    pub fn exp(self) -> Self {
        Self { low: self.low.exp(), mean: self.mean.exp(), high: self.high.exp() }
    }
}

/// The 0.975-quantile of Student's t with ν degrees of freedom (Cornish & Fisher; exact for ν = 1 and 2, elsewhere to 0.2 %).
fn student(nu: usize) -> f64 {
    let z = 1.959_963_984_540_054_f64;
    match nu {
        0 => f64::INFINITY,
        1 => 12.706_204_736_174_7,
        2 => 4.302_652_729_749_46,
        _ => {
            let (n, z2) = (nu as f64, z * z);
            let first = (z2 + 1.0) / 4.0;
            let second = (5.0 * z2 * z2 + 16.0 * z2 + 3.0) / 96.0;
            let third = (3.0 * z2.powi(3) + 19.0 * z2 * z2 + 17.0 * z2 - 15.0) / 384.0;
            let fourth =
                (79.0 * z2.powi(4) + 776.0 * z2.powi(3) + 1482.0 * z2 * z2 - 1920.0 * z2 - 945.0) / 92160.0;
            z * (1.0 + first / n + second / n.powi(2) + third / n.powi(3) + fourth / n.powi(4))
        }
    }
}

/// The slope of the least-squares line through the points; nothing where fewer than two abscissae differ.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (x_mean, y_mean) = (mean(&xs), mean(&ys));
    let square: f64 = xs.iter().map(|x| (x - x_mean).powi(2)).sum();
    let product: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    (square > 0.0).then(|| product / square)
}

/// Where a curve given by its points first comes down to `level`, by straight lines between the points.
pub fn first_crossing(points: &[(f64, f64)], level: f64) -> Option<f64> {
    let at = points.iter().position(|(_, y)| *y <= level)?;
    let (x1, y1) = points[at];
    let Some((x0, y0)) = at.checked_sub(1).map(|before| points[before]) else { return Some(x1) };
    Some(x0 + (x1 - x0) * (y0 - level) / (y0 - y1))
}

/// `count` numbers from `smallest` to `largest`, evenly spaced in logarithms.
pub fn log_spaced(smallest: f64, largest: f64, count: usize) -> Vec<f64> {
    let steps = count.saturating_sub(1).max(1) as f64;
    let ratio = (largest / smallest).ln();
    (0..count).map(|i| smallest * (ratio * i as f64 / steps).exp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding of a sum of n terms of size at most `size`.
    fn close(a: f64, b: f64, size: f64) -> bool {
        (a - b).abs() <= 16.0 * f64::EPSILON * size
    }

    #[test]
    fn mean_and_deviation_of_one_to_n_have_their_closed_forms() {
        for n in [2_u32, 5, 10, 101] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let n = f64::from(n);
            assert!(close(mean(&values), f64::midpoint(n, 1.0), n));
            // Σ(k − (n+1)/2)² = n(n²−1)/12, divided by n − 1.
            assert!(close(standard_deviation(&values), (n * (n + 1.0) / 12.0).sqrt(), n));
        }
    }

    #[test]
    fn deviation_ignores_shifts_and_is_zero_for_one_value() {
        let values = [0.5, 1.5, 4.0];
        let shifted: Vec<f64> = values.iter().map(|x| x + 1024.0).collect();
        assert!(close(standard_deviation(&values), standard_deviation(&shifted), 1024.0));
        assert_eq!(standard_deviation(&[3.0]).to_bits(), 0);
    }

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (nu, table) in
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (19, 2.093), (99, 1.984)]
        {
            assert!((student(nu) / table - 1.0).abs() < 2e-3, "{nu}: {}", student(nu));
        }
        let interval = Interval::of_mean(&[1.0, 2.0, 3.0]);
        assert!(close(interval.mean, 2.0, 2.0));
        assert!((interval.high - 2.0 - 4.302_65 / 3.0_f64.sqrt()).abs() < 1e-4);
        assert!(Interval::of_mean(&[1.0]).high.is_infinite(), "one value tells nothing of its spread");
    }

    #[test]
    fn slope_of_a_line_is_its_slope_and_noise_orthogonal_to_it_does_not_count() {
        let line: Vec<_> = (0..7).map(|x| (f64::from(x), 3.0 - 0.25 * f64::from(x))).collect();
        assert!(close(slope(&line).unwrap(), -0.25, 3.0));
        // (1, −2, 1) is orthogonal to 1 and to x on three equidistant points.
        let bent = [(0.0, 1.0), (1.0, 2.0 - 2.0), (2.0, 3.0 + 2.0)];
        let straight = [(0.0, 0.0), (1.0, 2.0), (2.0, 4.0)];
        assert!(close(slope(&bent).unwrap(), slope(&straight).unwrap(), 4.0));
        assert_eq!(slope(&[(1.0, 2.0)]), None);
        assert_eq!(slope(&[]), None);
    }

    #[test]
    fn crossings_are_interpolated() {
        let points = [(1.0, 0.0), (3.0, -4.0), (5.0, -2.0)];
        assert_eq!(first_crossing(&points, -1.0), Some(1.5));
        assert_eq!(first_crossing(&points, -4.0), Some(3.0));
        assert_eq!(first_crossing(&points, 0.5), Some(1.0), "already there at the first point");
        assert_eq!(first_crossing(&points, -4.5), None);
    }

    #[test]
    fn log_spacing_has_a_constant_ratio_and_meets_its_ends() {
        let grid = log_spaced(0.01, 100.0, 9);
        assert!(close(grid[0], 0.01, 0.01) && close(grid[8], 100.0, 100.0));
        for pair in grid.windows(2) {
            assert!(close(pair[1] / pair[0], 10.0_f64.sqrt(), 4.0));
        }
        assert_eq!(log_spaced(2.0, 8.0, 1), [2.0]);
    }
}
