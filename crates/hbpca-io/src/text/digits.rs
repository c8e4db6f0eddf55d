//! Runs of decimal digits, eight bytes at a time.

/// 10ⁿ for as many digits as one word holds.
pub(crate) const SHORT_POWERS: [u64; 9] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

const ALL: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ALL * 0x80;

/// The eight bytes that start at `i`, the first one lowest.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], i: usize) -> Option<u64> {
    bytes.get(i..)?.first_chunk::<8>().map(|eight| u64::from_le_bytes(*eight))
}

/// The high bit of every byte of `word` that is no digit, and nothing else.
#[inline(always)]
pub(crate) fn not_digits(word: u64) -> u64 {
    let values = word ^ (ALL * 0x30);
    // 0x76 carries a value above 9 into the high bit, and no further without a high bit to begin with.
    ((values & !HIGH).wrapping_add(ALL * 0x76) | values) & HIGH
}

/// The number that the first `n` ≤ 8 bytes of `word`, all of them digits, write in decimal.
#[inline(always)]
pub(crate) fn digits_value(word: u64, n: usize) -> u64 {
    const EVEN: u64 = 0x0000_00FF_0000_00FF;
    // Zeros in front: the digits move to the high bytes, which are the last of the eight. Half of the way twice,
    // because a shift by all 64 bits is none.
    let half = 4 * (8 - n);
    let padded = ((word & (ALL * 0x0F)) << half) << half;
    // Neighbouring digits into pairs, pairs into fours, fours into the number.
    let pairs = padded.wrapping_mul(10).wrapping_add(padded >> 8);
    let high = (pairs & EVEN).wrapping_mul(0x000F_4240_0000_0064);
    let low = ((pairs >> 16) & EVEN).wrapping_mul(0x0000_2710_0000_0001);
    high.wrapping_add(low) >> 32
}

/// The number that the first bytes of `word` write in decimal, and how many they are.
/// No branch depends on their number, which in real files cannot be predicted.
#[inline(always)]
pub(crate) fn leading_digits(word: u64) -> (u64, usize) {
    let n = not_digits(word).trailing_zeros() as usize / 8;
    (digits_value(word, n), n)
}

/// Reads digits from `i` on into `number` (modulo 2⁶⁴) and says where they end.
#[inline(always)]
pub(crate) fn read_digits(bytes: &[u8], mut i: usize, number: &mut u64) -> usize {
    while let Some(eight) = word(bytes, i) {
        let (value, n) = leading_digits(eight);
        *number = number.wrapping_mul(SHORT_POWERS[n]).wrapping_add(value);
        i += n;
        if n < 8 {
            return i;
        }
    }
    while let Some(&byte) = bytes.get(i) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        *number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
        i += 1;
    }
    i
}

/// The unsigned whole number below 2³² that starts at `at`, and where it ends.
#[inline]
pub(crate) fn parse_index(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let mut number = 0;
    let end = read_digits(bytes, at, &mut number);
    // Ten digits cannot overflow 64 bits.
    if end == at || end - at > 10 { None } else { Some((u32::try_from(number).ok()?, end)) }
}

/// The digits of the first, third, fifth and seventh byte, if a `delimiter` follows each.
#[inline(always)]
pub(crate) fn four_single_digits(word: u64, delimiter: u8) -> Option<[u8; 4]> {
    const DIGIT_PLACES: u64 = 0x00FF_00FF_00FF_00FF;
    let expected = (u64::from(delimiter) << 8 | 0x30) * 0x0001_0001_0001_0001;
    let values = word ^ expected;
    let too_large = values.wrapping_add(DIGIT_PLACES & (ALL * 0x76)) & HIGH;
    if values & !(DIGIT_PLACES & (ALL * 0x0F)) != 0 || too_large != 0 {
        return None;
    }
    let [a, _, b, _, c, _, d, _] = values.to_le_bytes();
    Some([a, b, c, d])
}

/// The digits of every other byte from the first on, if a `delimiter` follows each.
#[inline(always)]
pub(crate) fn eight_single_digits(bytes: &[u8; 16], delimiter: u8) -> Option<[u16; 8]> {
    let expected = u16::from_le_bytes([b'0', delimiter]);
    let (pairs, _) = bytes.as_chunks::<2>();
    // Only a digit before a delimiter leaves less than ten.
    let is_digit = |pair: u16| pair < 10;
    let digits: [u16; 8] = std::array::from_fn(|k| u16::from_le_bytes(pairs[k]) ^ expected);
    digits.iter().fold(true, |all, &digit| all & is_digit(digit)).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_number_of_leading_digits_is_read_at_once() {
        for n in 0..=8 {
            for end in [b'.', b'/', b':', b' ', b'\n', 0, 0xFF] {
                let mut eight = [end; 8];
                eight[..n].copy_from_slice(&b"98765432"[..n]);
                let expected = std::str::from_utf8(&eight[..n]).unwrap().parse().unwrap_or(0);
                assert_eq!(leading_digits(u64::from_le_bytes(eight)), (expected, n), "{eight:?}");
            }
        }
    }

    #[test]
    fn an_index_ends_where_it_ends() {
        assert_eq!(parse_index(b"42:1", 0), Some((42, 2)));
        assert_eq!(parse_index(b"4294967295", 0), Some((u32::MAX, 10)));
        assert_eq!(parse_index(b"4294967296", 0), None);
        assert_eq!(parse_index(b"99999999999999999999999", 0), None);
        assert_eq!(parse_index(b":", 0), None);
    }

    proptest! {
        #[test]
        fn four_digits_are_found_where_there_are_four(digits in proptest::array::uniform4(0_u8..10), at in 0_usize..8, other: u8) {
            let mut eight = [b','; 8];
            (0..4).for_each(|k| eight[2 * k] = b'0' + digits[k]);
            prop_assert_eq!(four_single_digits(u64::from_le_bytes(eight), b','), Some(digits));
            prop_assert_eq!(four_single_digits(u64::from_le_bytes(eight), b';'), None);
            eight[at] = other;
            let fits = if at % 2 == 0 { other.is_ascii_digit() } else { other == b',' };
            prop_assert_eq!(four_single_digits(u64::from_le_bytes(eight), b',').is_some(), fits);
        }

        #[test]
        fn eight_digits_are_found_where_there_are_eight(digits in proptest::array::uniform8(0_u8..10), at in 0_usize..16, other: u8) {
            let mut bytes = [b','; 16];
            (0..8).for_each(|k| bytes[2 * k] = b'0' + digits[k]);
            prop_assert_eq!(eight_single_digits(&bytes, b','), Some(digits.map(u16::from)));
            prop_assert_eq!(eight_single_digits(&bytes, b';'), None);
            bytes[at] = other;
            let fits = if at % 2 == 0 { other.is_ascii_digit() } else { other == b',' };
            prop_assert_eq!(eight_single_digits(&bytes, b',').is_some(), fits);
        }
    }
}
