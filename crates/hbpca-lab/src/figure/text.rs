//! Numbers as people read them on axes and in tables.

/// 10 to a whole power, with the power as superscript.
pub fn power_of_ten(exponent: i32) -> String {
    let superscript = |c: char| match c {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => char::from_u32('⁴' as u32 + (c as u32 - '4' as u32)).unwrap_or(c),
    };
    match exponent {
        0 => "1".to_owned(),
        1 => "10".to_owned(),
        _ => format!("10{}", exponent.to_string().chars().map(superscript).collect::<String>()),
    }
}

/// Three significant digits; very small and very large numbers with a power of ten.
pub fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return if value.is_nan() { "–".to_owned() } else { "∞".to_owned() };
    }
    // The exponent of the rounded number: 0.99999 has that of 1.00.
    let rounded = format!("{value:.2e}");
    let (digits, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-3..6).contains(&exponent) {
        return format!("{value:.*}", usize::try_from(2 - exponent).unwrap_or(0));
    }
    format!("{digits}·{}", power_of_ten(exponent))
}

/// A logarithm with one decimal, without the sign of a rounded zero.
pub fn one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    if text == "-0.0" { "0.0".to_owned() } else { text }
}

/// A whole number with thin spaces between groups of three digits.
pub fn grouped(value: usize) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A share in per cent; number and sign stay on one line.
pub fn per_cent(share: f64) -> String {
    format!("{}\u{a0}%", significant(100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_have_superscripts() {
        assert_eq!(power_of_ten(-15), "10⁻¹⁵");
        assert_eq!(power_of_ten(2), "10²");
        assert_eq!([power_of_ten(0), power_of_ten(1)], ["1", "10"]);
        assert_eq!(power_of_ten(-4_567_890), "10⁻⁴⁵⁶⁷⁸⁹⁰");
    }

    #[test]
    fn numbers_keep_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (12.345, "12.3"),
            (0.012_34, "0.0123"),
            (-1.0, "-1.00"),
            (123_456.0, "123456"),
            (1.5e-9, "1.50·10⁻⁹"),
            (f64::INFINITY, "∞"),
            (f64::NAN, "–"),
            (0.999_99, "1.00"),
            (9.999e-5, "1.00·10⁻⁴"),
            (-9.999e7, "-1.00·10⁸"),
        ] {
            assert_eq!(significant(value), text);
        }
        assert_eq!(per_cent(0.5909), "59.1\u{a0}%");
        assert_eq!([one_decimal(-0.04), one_decimal(-5.06)], ["0.0", "-5.1"]);
    }

    #[test]
    fn groups_have_three_digits() {
        assert_eq!(grouped(581_012), "581\u{202f}012");
        assert_eq!([grouped(7), grouped(1000)], ["7".to_owned(), "1\u{202f}000".to_owned()]);
    }
}
