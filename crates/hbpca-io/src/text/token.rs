//! A number whose end is known beforehand.

use super::decimal::POWERS;
use super::digits::{digits_value, not_digits, word};

/// The number that fills bytes `start..end` of `window`, if it is short: an optional minus, at most seven digits
/// with a point among them or none, and an exponent of at most two digits. Anything else is left to
/// [`number::parse`](super::number::parse).
#[inline(always)]
pub(crate) fn short_number(window: &[u8; 48], start: usize, end: usize) -> Option<f64> {
    let negative = usize::from(*window.get(start)? == b'-');
    let start = start + negative;
    let length = end.checked_sub(start)?;
    let text = word(window, start)?;
    let others = not_digits(text);
    let n_whole = others.trailing_zeros() as usize / 8;
    let (mantissa, down, up);
    if n_whole == length {
        if n_whole == 0 || n_whole == 8 {
            return None;
        }
        (mantissa, down, up) = (digits_value(text, n_whole), 0, 0);
    } else {
        let after = (others & others.wrapping_sub(1)).trailing_zeros() as usize / 8;
        if after == 8 || after < 2 || window[start + n_whole] != b'.' {
            return None;
        }
        // The point taken out: what is after it moves up by one byte.
        let whole = (1 << (8 * n_whole)) - 1;
        mantissa = digits_value((text & whole) | ((text >> 8) & !whole), after - 1);
        let n_fraction = after - 1 - n_whole;
        if after == length {
            (down, up) = (n_fraction, 0);
        } else {
            let power = exponent(window, start + after, end)?;
            let exponent = power - n_fraction.cast_signed();
            (down, up) = ((-exponent).max(0) as usize, exponent.max(0) as usize);
        }
    }
    // Below 10⁸, hence exact; one of the two powers is 1, hence a single rounding.
    let mut value = mantissa.cast_signed() as f64;
    if down + up > 0 {
        value = value * POWERS.get(up)? / POWERS.get(down)?;
    }
    Some(f64::from_bits(value.to_bits() | (negative as u64) << 63))
}

/// The power after an `e` at byte `at`: one or two digits that end at `end`, with or without a sign.
#[inline(always)]
fn exponent(window: &[u8; 48], at: usize, end: usize) -> Option<isize> {
    let sign = *window.get(at + 1)?;
    let signed = matches!(sign, b'-' | b'+');
    let n = end.checked_sub(at + 1 + usize::from(signed))?;
    let digit = |i: usize| window[i].wrapping_sub(b'0');
    let (ones, tens) = (digit(end - 1), if n == 2 { digit(end - 2) } else { 0 });
    if !matches!(n, 1 | 2) || window[at] | 0x20 != b'e' || ones > 9 || tens > 9 {
        return None;
    }
    let power = isize::from(tens.cast_signed()) * 10 + isize::from(ones.cast_signed());
    Some(if sign == b'-' { -power } else { power })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::number;
    use proptest::prelude::*;

    fn short(text: &str, before: usize) -> Option<f64> {
        let mut window = [b'7'; 48];
        window[before..before + text.len()].copy_from_slice(text.as_bytes());
        window[before + text.len()] = b'\n';
        short_number(&window, before, before + text.len())
    }

    #[test]
    fn short_numbers_are_read() {
        for (text, value) in [
            ("0", 0.0),
            ("-12", -12.0),
            ("2.596E3", 2596.0),
            ("-1.6884E-2", -1.6884e-2),
            (".5", 0.5),
            ("7.", 7.0),
        ] {
            assert_eq!(short(text, 3), Some(value), "{text}");
        }
        assert_eq!(short("-0", 0).map(f64::to_bits), Some((-0.0_f64).to_bits()));
        for text in
            ["", "-", ".", "+1", "1e", "1.5e", "1.5e+", "1.5e123", "nan", "1.2.3", "12345678", "1 2", "1.5 "]
        {
            assert_eq!(short(text, 3), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_the_general_way_reads(text in "-?[0-9]{0,8}(\\.[0-9]{0,8})?([eE][+-]?[0-9x]{0,3})?", before in 0_usize..6) {
            let general = number::parse(text.as_bytes(), 0).filter(|&(_, end)| end == text.len());
            if let Some(value) = short(&text, before) {
                prop_assert_eq!(Some(value.to_bits()), general.map(|(value, _)| value.to_bits()));
            }
        }
    }
}
