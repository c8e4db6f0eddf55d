//! Runs of plain fields, of which large tables mostly consist: whole numbers of few digits, nothing around them.

use crate::text::Stored;
use crate::text::digits::{digits_value, eight_single_digits, four_single_digits, not_digits, word};

/// Reads plain fields from byte `i` on, at most `most` of them, each ended by `delimiter`, and says where the first
/// field starts that was not read.
///
/// A field is not plain, or not read as such, if it is anything but one to seven digits, perhaps after a minus, or
/// if the chunk ends soon after it.
#[inline]
pub(super) fn plain_fields<T: Stored>(
    piece: &[u8],
    mut i: usize,
    most: usize,
    delimiter: u8,
    values: &mut Vec<T>,
) -> usize {
    let single_digits = u64::from(delimiter) * 0x0000_0000_0100_0100;
    let mut left = most;
    while left > 0 {
        let Some(text) = word(piece, i) else { return i };
        // Single digits come in company (indicators, grades, counts): two of them are worth a look ahead.
        if text & 0x0000_0000_FF00_FF00 == single_digits && left >= 4 {
            if left >= 8
                && let Some(eight) = piece[i..].first_chunk().and_then(|x| eight_single_digits(x, delimiter))
            {
                values.extend(eight.map(|digit| T::seven_digits(u32::from(digit))));
                (i, left) = (i + 16, left - 8);
                continue;
            }
            if let Some(four) = four_single_digits(text, delimiter) {
                values.extend(four.map(|digit| T::seven_digits(u32::from(digit))));
                (i, left) = (i + 8, left - 4);
                continue;
            }
        }
        let n = not_digits(text).trailing_zeros() as usize / 8;
        if n == 0 {
            let Some((value, n)) = negative::<T>(text, delimiter) else { return i };
            values.push(value);
            i += n + 2;
        } else {
            if n == 8 || (text >> (8 * n)) as u8 != delimiter {
                return i;
            }
            values.push(T::seven_digits(digits_value(text, n) as u32));
            i += n + 1;
        }
        left -= 1;
    }
    i
}

/// The number after a minus, ended by `delimiter`, and how many digits it has.
#[inline]
fn negative<T: Stored>(text: u64, delimiter: u8) -> Option<(T, usize)> {
    // The byte that comes in at the end is 0, hence no digit.
    let digits = text >> 8;
    let n = not_digits(digits).trailing_zeros() as usize / 8;
    let is_plain = text as u8 == b'-' && n > 0 && (digits >> (8 * n)) as u8 == delimiter;
    is_plain.then(|| (-T::seven_digits(digits_value(digits, n) as u32), n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::number;
    use proptest::prelude::*;

    fn read(text: &str, most: usize) -> (Vec<f64>, usize) {
        let mut values = Vec::new();
        let end = plain_fields(text.as_bytes(), 0, most, b',', &mut values);
        (values, end)
    }

    #[test]
    fn fields_are_read_up_to_the_first_that_is_not_plain() {
        assert_eq!(read("12,-3,4567890,+1,5,6,7,8,", 9), (vec![12.0, -3.0, 4_567_890.0], 14));
        assert_eq!(read("1,2,3,4,5,6,7,8,9,1.5,0,0,0", 99), ((1..=9).map(f64::from).collect(), 18));
        assert_eq!(read("1,2,3,4,5,6,7,8,9,0,1,2", 3), (vec![1.0, 2.0, 3.0], 6));
        let negative_zero = read("-0,1,2,3,4,5", 1).0[0];
        assert_eq!(negative_zero.to_bits(), (-0.0_f64).to_bits());
        for text in [
            "",
            "1,2",
            "12345678,1,2",
            "-,1,2,3,4,5",
            "-1234567,1",
            "1\n2,3,4,5,6",
            "1 ,2,3,4,5,6",
            ",1,2,3,4,5",
        ] {
            assert_eq!(read(text, 9), (vec![], 0), "{text:?}");
        }
    }

    proptest! {
        /// Wherever a run starts and ends, and whatever comes after it.
        #[test]
        fn what_is_read_is_what_the_general_way_reads(
            fields in proptest::collection::vec("[0-9]|[0-9]|-?[0-9]{1,8}|[0-9.e+ -]{0,4}", 0..40),
            most in 0_usize..40,
        ) {
            let text = fields.join(",");
            let (values, end) = read(&text, most);
            prop_assert!(values.len() <= most);
            let mut singles = Vec::<f32>::new();
            prop_assert_eq!(plain_fields(text.as_bytes(), 0, most, b',', &mut singles), end);
            let mut at = 0;
            for (k, field) in fields[..values.len()].iter().enumerate() {
                let expected = number::parse(field.as_bytes(), 0).filter(|&(_, end)| end == field.len());
                prop_assert_eq!(Some(values[k].to_bits()), expected.map(|(value, _)| value.to_bits()));
                prop_assert_eq!(f64::from(singles[k]).to_bits(), values[k].to_bits());
                at += field.len() + 1;
            }
            prop_assert_eq!(at, end);
        }
    }
}
