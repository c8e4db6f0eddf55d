//! Decimal numbers from bytes, correctly rounded.

use super::decimal::scaled;
use super::digits::{SHORT_POWERS, leading_digits, read_digits, word};

/// The finite number that starts at `at`, and where it ends; `None` if there is no finite number.
#[inline(always)]
pub(crate) fn parse(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    match short(bytes, at) {
        Some(found) => Some(found),
        None => long(bytes, at),
    }
}

/// A number of at most seven digits before the point and sixteen after it (nineteen in all), an exponent of at
/// most two digits, and 40 bytes to look at. The sign and the numbers of digits, which cannot be predicted, cost
/// no branch, except that more than seven digits after the point take a second look.
#[inline(always)]
fn short(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let window = bytes.get(at..)?.first_chunk::<40>()?;
    let negative = usize::from(window[0] == b'-');
    let first = window[negative].wrapping_sub(b'0');
    let (whole, n_whole) = if window[negative + 1] == b'.' && first <= 9 {
        (u64::from(first), 1)
    } else {
        leading_digits(word(window, negative)?)
    };
    let point = negative + n_whole;
    if n_whole == 8 {
        return None;
    }
    let (mut mantissa, mut n_fraction, mut end) = (whole, 0, point);
    if window[point] == b'.' {
        let (fraction, n) = leading_digits(word(window, point + 1)?);
        mantissa = whole * SHORT_POWERS[n] + fraction;
        n_fraction = n;
        if n == 8 {
            let (fraction, n) = leading_digits(word(window, point + 9)?);
            if n_whole + 8 + n > 19 || (n == 8 && window[point + 17].is_ascii_digit()) {
                return None;
            }
            mantissa = mantissa * SHORT_POWERS[n] + fraction;
            n_fraction += n;
        }
        end = point + 1 + n_fraction;
    }
    if n_whole + n_fraction == 0 {
        return None;
    }
    let mut exponent = -(n_fraction.cast_signed() as i64);
    if window[end] | 0x20 == b'e' {
        let sign = window[end + 1];
        let first = end + 1 + usize::from(matches!(sign, b'-' | b'+'));
        let digit = |i: usize| window[i].wrapping_sub(b'0');
        let mut power = i64::from(digit(first));
        end = first + 1;
        if digit(end) <= 9 {
            power = 10 * power + i64::from(digit(end));
            end += 1;
        }
        if digit(first) > 9 || digit(end) <= 9 {
            return None;
        }
        exponent += if sign == b'-' { -power } else { power };
    }
    let value = scaled(mantissa, exponent)?;
    Some((f64::from_bits(value.to_bits() | (negative as u64) << 63), at + end))
}

/// Any number.
#[inline(never)]
fn long(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let rest = bytes.get(at..)?;
    let mut i = usize::from(matches!(rest.first(), Some(b'-' | b'+')));
    let negative = rest.first() == Some(&b'-');
    let start = i;
    let mut mantissa = 0_u64;
    i = read_digits(rest, i, &mut mantissa);
    let mut n_digits = i - start;
    let mut exponent = 0_i64;
    if rest.get(i) == Some(&b'.') {
        let point = i + 1;
        i = read_digits(rest, point, &mut mantissa);
        n_digits += i - point;
        exponent = -((i - point).cast_signed() as i64);
    }
    if n_digits == 0 {
        return None;
    }
    if matches!(rest.get(i), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(i + 1), Some(b'-' | b'+')));
        let first = i + 1 + sign;
        let mut power = 0_u64;
        let end = read_digits(rest, first, &mut power);
        if end > first {
            // Beyond a few digits the power only says "zero" or "infinite", which the general algorithm knows.
            let power = if end - first > 6 { 1_000_000 } else { power.cast_signed() };
            exponent += if rest[i + 1] == b'-' { -power } else { power };
            i = end;
        }
    }
    // Nineteen digits do not overflow 64 bits.
    let fast = if n_digits <= 19 { scaled(mantissa, exponent) } else { None };
    let magnitude = match fast {
        Some(magnitude) => magnitude,
        None => general(&rest[start..i])?,
    };
    Some((if negative { -magnitude } else { magnitude }, at + i))
}

/// Any decimal without a sign.
#[cold]
fn general(digits: &[u8]) -> Option<f64> {
    fast_float2::parse::<f64, _>(digits).ok().filter(|x| x.is_finite())
}

/// The f32 nearest to the decimal `token`, whose nearest f64 is `value`.
///
/// Rounding twice goes wrong only where `value` is exactly half-way between two f32 (its 29 low bits are
/// 100…0, or it is subnormal as f32): there the decimal itself must decide.
pub(crate) fn to_f32(value: f64, token: &[u8]) -> f32 {
    let half_way = value.to_bits() & 0x1FFF_FFFF == 0x1000_0000;
    if half_way || value.abs() < f64::from(f32::MIN_POSITIVE) {
        fast_float2::parse(token.strip_prefix(b"+").unwrap_or(token)).unwrap_or(value as f32)
    } else {
        value as f32
    }
}

/// Why `token` is no finite number, for a message.
pub(crate) fn complaint(token: &[u8]) -> String {
    let text = String::from_utf8_lossy(token);
    let text = text.trim();
    if text.is_empty() {
        return "a value is missing here: drop the row or fill in the value first".into();
    }
    if ["na", "n/a", "nan", "null", "none", "?", "-"].contains(&text.to_ascii_lowercase().as_str()) {
        return format!(
            "expected a number, found the missing value `{text}`: drop the row or fill it in first"
        );
    }
    if text.parse::<f64>().is_ok() {
        return format!("expected a finite number, found `{text}`: drop the row or replace the value first");
    }
    let shown: String = text.chars().take(40).collect();
    if text.replace(',', ".").parse::<f64>().is_ok() {
        return format!(
            "expected a number, found `{shown}`: numbers have a decimal point and no marks between thousands"
        );
    }
    format!("expected a number, found `{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(text: &str) -> Option<f64> {
        parse(text.as_bytes(), 0).filter(|&(_, end)| end == text.len()).map(|(value, _)| value)
    }

    #[test]
    fn decimals_are_those_of_the_standard_library() {
        for text in [
            "0",
            "-0",
            "+1",
            "1.",
            ".5",
            "-.5e1",
            "1e22",
            "1e23",
            "1E-22",
            "9007199254740993",
            "123456789012345678",
            "0.1",
            "1.7976931348623157e308",
            "4.9e-324",
            "2.2250738585072011e-308",
            "1e-400",
            "00000000000000000000012.50",
            "0.000000000000000000000001",
            "1e0000000005",
            "9007199254740992e22",
            "3.14159265358979323846264338327950288",
        ] {
            let expected: f64 = text.parse().unwrap();
            assert_eq!(whole(text).map(f64::to_bits), Some(expected.to_bits()), "{text}");
        }
    }

    #[test]
    fn what_is_no_finite_number_is_none() {
        for text in
            ["", "-", ".", "e5", "nan", "inf", "-Infinity", "1e400", "1e99999999999999999999", "abc", "+-1"]
        {
            assert_eq!(whole(text), None, "{text}");
        }
    }

    #[test]
    fn a_number_ends_where_it_ends() {
        assert_eq!(parse(b"a12.5e3:7", 1), Some((12.5e3, 7)));
        assert_eq!(parse(b"5e", 0), Some((5.0, 1)));
        assert_eq!(parse(b"5e+x", 0), Some((5.0, 1)));
        assert_eq!(parse(b"1", 5), None);
    }

    #[test]
    fn single_precision_is_not_rounded_twice() {
        // 1 + 2⁻²⁴ is half-way between two f32; a little above it in decimal, f64 cannot see the difference.
        let token = "1.000000059604644775390625000000000001";
        let value = whole(token).unwrap();
        assert_eq!((value as f32).to_bits(), 1.0_f32.to_bits(), "the naive way rounds down");
        let expected: f32 = token.parse().unwrap();
        assert_eq!(to_f32(value, token.as_bytes()).to_bits(), expected.to_bits());
        assert_eq!(to_f32(whole("+1.5").unwrap(), b"+1.5").to_bits(), 1.5_f32.to_bits());
    }

    #[test]
    fn complaints_say_what_is_wrong() {
        assert!(complaint(b" ").contains("missing here"));
        assert!(complaint(b"NA").contains("missing value `NA`"));
        assert!(complaint(b"inf").contains("finite number, found `inf`"));
        assert!(complaint(b"1,5").contains("decimal point and no marks between thousands"));
        assert_eq!(complaint(b"abc"), "expected a number, found `abc`");
    }

    proptest! {
        #[test]
        fn any_f64_survives_printing(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            for text in [format!("{value}"), format!("{value:e}")] {
                prop_assert_eq!(whole(&text).map(f64::to_bits), Some(bits));
            }
        }

        #[test]
        fn any_f32_survives_printing(bits: u32) {
            let value = f32::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = format!("{value}");
            prop_assert_eq!(to_f32(whole(&text).unwrap(), text.as_bytes()).to_bits(), bits);
        }

        #[test]
        fn short_decimals_match_the_standard_library(text in "[+-]?[0-9]{1,12}(\\.[0-9]{0,12})?(e[+-]?[0-9]{1,2})?") {
            let expected: f64 = text.parse().unwrap();
            prop_assert_eq!(whole(&text).map(f64::to_bits), Some(expected.to_bits()));
        }

        /// With and without the bytes behind it that the way for short numbers needs.
        #[test]
        fn both_ways_agree(text in "[+-]?[0-9]{0,9}(\\.[0-9]{0,9})?([eE][+-]?[0-9]{0,3})?[ ,:x]?") {
            let alone = parse(text.as_bytes(), 0);
            let padded = format!("{text};{}", "7".repeat(40));
            prop_assert_eq!(parse(padded.as_bytes(), 0).map(|(x, end)| (x.to_bits(), end)), alone.map(|(x, end)| (x.to_bits(), end)));
        }
    }
}
