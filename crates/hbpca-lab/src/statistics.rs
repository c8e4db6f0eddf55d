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
