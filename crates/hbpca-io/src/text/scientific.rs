//! Numbers as programs write them at the end of a line: one digit, a point, up to fifteen digits, and `E-` with one
//! more digit.

use super::decimal::POWERS;
use super::digits::{SHORT_POWERS, digits_value, not_digits, word};

/// The number of this form that starts at byte `start` of `window` and is ended by a line end, and where that is.
/// Whatever is of another form is left to [`number::parse`](super::number::parse).
///
/// Only the question whether there are more than seven digits after the point is a branch, because neither signs
/// nor numbers of digits can be predicted.
#[inline(always)]
pub(crate) fn scientific(window: &[u8; 48], start: usize) -> Option<(f64, usize)> {
    const FORM: u64 = u64::from_le_bytes([b'E', b'-', 0, b'\n', 0, 0, 0, 0]);
    const FORM_MASK: u64 = u64::from_le_bytes([0xFF, 0xFF, 0, 0xFF, 0, 0, 0, 0]);
    let negative = usize::from(*window.get(start)? == b'-');
    let head = word(window, start + negative)?;
    let first = u64::from((head as u8).wrapping_sub(b'0'));
    if first > 9 || (head >> 8) as u8 != b'.' {
        return None;
    }
    let fraction = start + negative + 2;
    let digits = word(window, fraction)?;
    let others = not_digits(digits);
    let (mantissa, n) = if others == 0 {
        let more = word(window, fraction + 8)?;
        let n = not_digits(more).trailing_zeros() as usize / 8;
        let mantissa = first * SHORT_POWERS[8] + digits_value(digits, 8);
        (mantissa * SHORT_POWERS[n] + digits_value(more, n), 8 + n)
    } else {
        let n = others.trailing_zeros() as usize / 8;
        (first * SHORT_POWERS[n] + digits_value(digits, n), n)
    };
    let tail = word(window, fraction + n)?;
    let power = u64::from(((tail >> 16) as u8).wrapping_sub(b'0'));
    if tail & FORM_MASK != FORM || power > 9 || mantissa > 1 << 53 {
        return None;
    }
    // A quotient of two exact numbers, where the power is one, hence one rounding.
    let value = mantissa.cast_signed() as f64 / POWERS.get(n + power as usize)?;
    Some((f64::from_bits(value.to_bits() | (negative as u64) << 63), fraction + n + 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::number;
    use proptest::prelude::*;

    fn read(text: &str, before: usize) -> Option<(f64, usize)> {
        let mut window = [b'7'; 48];
        window[before..before + text.len()].copy_from_slice(text.as_bytes());
        scientific(&window, before)
    }

    #[test]
    fn numbers_of_the_form_are_read() {
        for (text, value) in [
            ("2.596E-3\n", 2.596e-3),
            ("-1.6884E-2\n", -1.6884e-2),
            ("9.86899159742946E-2\n", 9.868_991_597_429_46e-2),
            ("-1.234567890123456E-7\n", -1.234_567_890_123_456e-7),
            ("5.E-1\n", 0.5),
        ] {
            assert_eq!(read(text, 3), Some((value, 3 + text.len() - 1)), "{text}");
        }
        assert_eq!(read("-0.0E-1\n", 0).map(|(x, _)| x.to_bits()), Some((-0.0_f64).to_bits()));
    }

    #[test]
    fn every_other_form_is_left_to_others() {
        for text in [
            "",
            "-",
            "1\n",
            "1E-1\n",
            "1.5\n",
            "1.5e-1\n",
            "1.5E1\n",
            "1.5E-\n",
            "1.5E-12\n",
            "1.5E-1 \n",
            "+1.5E-1\n",
            "15.0E-1\n",
            ".5E-1\n",
            "--1.5E-1\n",
            "9.123456789012345E-1\n",
            "1.1234567890123456E-1\n",
            "1.234567890123456E-8\n",
        ] {
            assert_eq!(read(text, 3), None, "{text}");
        }
        assert_eq!(scientific(&[b'7'; 48], 47), None);
        assert_eq!(scientific(&[b'7'; 48], 48), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_the_general_way_reads(
            text in "-?[0-9]\\.[0-9]{0,16}E-[0-9]\n|-?[0-9x]{0,2}\\.?[0-9]{0,4}[Ee]?[+-]?[0-9]{0,2}\n?",
            before in 0_usize..9,
        ) {
            if let Some((value, end)) = read(&text, before) {
                let general = number::parse(text.as_bytes(), 0).map(|(value, end)| (value.to_bits(), end));
                prop_assert_eq!(Some((value.to_bits(), end - before)), general);
                prop_assert_eq!(text.as_bytes()[end - before], b'\n');
            }
        }
    }
}
