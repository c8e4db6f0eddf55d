//! Up to sixteen digits at once.
//!
//! Measurements are written with up to sixteen digits, and a line of a Matrix Market file is little else. Vector instructions
//! take all of them in one go; the same code is compiled for them and without.

use super::digits::{SHORT_POWERS, digits_value, not_digits, word};

/// A way to read the first digits of some bytes.
pub(crate) trait Sixteen {
    /// The number that the digits from byte `at` on write, up to sixteen of them, and how many they are.
    fn leading_digits(window: &[u8; 48], at: usize) -> Option<(u64, usize)>;
}

/// Eight bytes at a time.
pub(crate) struct Words;

impl Sixteen for Words {
    #[inline(always)]
    fn leading_digits(window: &[u8; 48], at: usize) -> Option<(u64, usize)> {
        let digits = word(window, at)?;
        let others = not_digits(digits);
        if others != 0 {
            let n = others.trailing_zeros() as usize / 8;
            return Some((digits_value(digits, n), n));
        }
        let more = word(window, at + 8)?;
        let n = not_digits(more).trailing_zeros() as usize / 8;
        Some((digits_value(digits, 8) * SHORT_POWERS[n] + digits_value(more, n), 8 + n))
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Vectors, vectors_are_there};

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "vector instructions, used only after the processor was asked for them")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_loadu_si128, _mm_madd_epi16, _mm_maddubs_epi16,
        _mm_max_epu8, _mm_movemask_epi8, _mm_packus_epi32, _mm_set1_epi8, _mm_set1_epi16, _mm_set1_epi32,
        _mm_shuffle_epi8, _mm_sub_epi8,
    };

    use super::Sixteen;

    /// Sixteen bytes at a time, for code that is compiled with AVX2, BMI1 and BMI2 and entered only where
    /// [they are there](vectors_are_there).
    pub(crate) struct Vectors;

    /// Whether the processor has what [`Vectors`] needs.
    pub(crate) fn vectors_are_there() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
    }

    /// From byte n on: moves the first n of sixteen bytes to the end, behind zeros.
    static TO_THE_END: [u8; 32] = {
        let mut places = [0x80; 32];
        let mut i = 0;
        while i < 16 {
            places[16 + i] = i as u8;
            i += 1;
        }
        places
    };

    impl Sixteen for Vectors {
        #[inline(always)]
        fn leading_digits(window: &[u8; 48], at: usize) -> Option<(u64, usize)> {
            let bytes = window.get(at..)?.first_chunk::<16>()?;
            // SAFETY: both loads are of 16 bytes that are there, the second because n ≤ 16; the processor has the instructions.
            unsafe {
                let values =
                    _mm_sub_epi8(_mm_loadu_si128(bytes.as_ptr().cast::<__m128i>()), _mm_set1_epi8(0x30));
                let others = _mm_cmpeq_epi8(_mm_max_epu8(values, _mm_set1_epi8(10)), values);
                let n = (_mm_movemask_epi8(others) | 1 << 16).trailing_zeros() as usize;
                let places = _mm_loadu_si128(TO_THE_END.as_ptr().add(n).cast::<__m128i>());
                // Neighbouring digits into pairs, pairs into fours, fours into eights.
                let pairs = _mm_maddubs_epi16(_mm_shuffle_epi8(values, places), _mm_set1_epi16(0x010A));
                let fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x0001_0064));
                let eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi32(0x0001_2710));
                let both = _mm_cvtsi128_si64(eights).cast_unsigned();
                Some(((both & 0xFFFF_FFFF) * 100_000_000 + (both >> 32), n))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Those that this processor has.
    fn ways() -> Vec<fn(&[u8; 48], usize) -> Option<(u64, usize)>> {
        let mut ways: Vec<fn(&[u8; 48], usize) -> Option<(u64, usize)>> = vec![Words::leading_digits];
        #[cfg(target_arch = "x86_64")]
        if vectors_are_there() {
            ways.push(Vectors::leading_digits);
        }
        ways
    }

    #[test]
    fn windows_end_where_they_end() {
        for way in ways() {
            assert_eq!(way(&[b'1'; 48], 32), Some((1_111_111_111_111_111, 16)));
            assert_eq!(way(&[b'1'; 48], 33), None);
            assert_eq!(way(&[b'1'; 48], 49), None);
        }
    }

    proptest! {
        #[test]
        fn all_ways_read_the_same(digits in "[0-9]{0,18}", end: u8, at in 0_usize..14) {
            prop_assume!(!end.is_ascii_digit());
            let mut window = [end; 48];
            window[at..at + digits.len()].copy_from_slice(digits.as_bytes());
            let first = &digits[..digits.len().min(16)];
            let expected = Some((first.parse().unwrap_or(0), first.len()));
            for way in ways() {
                prop_assert_eq!(way(&window, at), expected);
            }
        }
    }
}
