//! Numbers as people read them.

/// 1234567 as 1,234,567.
pub fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Nine significant digits, in plain notation where that is readable.
pub fn value(x: f64) -> String {
    let magnitude = x.abs();
    if x == 0.0 || (1e-4..1e9).contains(&magnitude) {
        let before = if magnitude >= 1.0 { magnitude.log10().floor() as usize + 1 } else { 0 };
        return format!("{x:.*}", 9_usize.saturating_sub(before.max(1)));
    }
    format!("{x:.8e}")
}

/// Two significant digits in scientific notation.
pub fn small(x: f64) -> String {
    if x == 0.0 { "0".into() } else { format!("{x:.1e}") }
}

/// A share as a percentage.
pub fn percent(x: f64) -> String {
    format!("{:.2} %", 100.0 * x)
}

/// A share that may be tiny, such as a density.
pub fn density(x: f64) -> String {
    if x >= 0.01 { percent(x) } else { format!("{} %", short(100.0 * x)) }
}

/// Four significant digits without trailing zeros.
pub fn short(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    if !(1e-3..1e7).contains(&x.abs()) {
        return format!("{x:.3e}");
    }
    let after = (3 - x.abs().log10().floor() as i64).max(0) as usize;
    let text = format!("{x:.after$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A duration with its unit.
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.2} s"),
        s if s < 3600.0 => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), (s % 60.0).floor()),
        s => format!("{:.0} h {:02.0} min", (s / 3600.0).floor(), (s % 3600.0 / 60.0).floor()),
    }
}

/// A number of things: `1 pass`, `2 passes`.
pub fn plural(n: f64, one: &str, many: &str) -> String {
    format!("{} {}", short(n), if (n - 1.0).abs() < f64::EPSILON { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas() {
        assert_eq!(
            [0, 12, 123, 1234, 581_012, 1_000_000].map(count),
            ["0", "12", "123", "1,234", "581,012", "1,000,000"]
        );
    }

    #[test]
    fn values_keep_nine_digits() {
        assert_eq!(value(2.524_889_523), "2.52488952");
        assert_eq!(value(40.571_148_914), "40.5711489");
        assert_eq!(value(0.027_581_764_9), "0.02758176");
        assert_eq!(value(0.0), "0.00000000");
        assert_eq!(value(1.5e-7), "1.50000000e-7");
        assert_eq!(value(2.5e12), "2.50000000e12");
    }

    #[test]
    fn shorts_have_four_digits_and_no_idle_zeros() {
        assert_eq!(
            [3.0, 1.5, 127.25, 0.012_344, 12345.6].map(short),
            ["3", "1.5", "127.2", "0.01234", "12346"]
        );
        assert_eq!(short(1.0e-9), "1.000e-9");
        assert_eq!(short(-2.0), "-2");
    }

    #[test]
    fn durations_choose_their_unit() {
        assert_eq!(
            [2e-5, 0.0123, 3.456, 75.0, 7260.0].map(seconds),
            ["20 µs", "12.3 ms", "3.46 s", "1 min 15 s", "2 h 01 min"]
        );
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(plural(1.0, "pass", "passes"), "1 pass");
        assert_eq!(plural(2.5, "pass", "passes"), "2.5 passes");
    }

    #[test]
    fn densities_do_not_vanish() {
        assert_eq!(density(0.5909), "59.09 %");
        assert_eq!(density(0.001_181), "0.1181 %");
    }
}
