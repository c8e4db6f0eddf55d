//! m·10ᵉ as the nearest f64, for the mantissas and powers that files of measurements have.

/// Powers of ten that are exact in f64.
pub(super) const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The powers of five below 2⁶⁴.
const FIVES: [u64; 28] = {
    let mut powers = [1; 28];
    let mut k = 1;
    while k < powers.len() {
        powers[k] = 5 * powers[k - 1];
        k += 1;
    }
    powers
};

/// The f64 nearest to mantissa · 10^exponent, ties to even; `None` beyond the powers that are tabulated.
#[inline(always)]
pub(super) fn scaled(mantissa: u64, exponent: i64) -> Option<f64> {
    let size = exponent.unsigned_abs() as usize;
    if mantissa <= 1 << 53
        && let Some(&power) = POWERS.get(size)
    {
        // One product or quotient of two exact numbers, hence one rounding.
        let exact = mantissa.cast_signed() as f64;
        return Some(if exponent < 0 { exact / power } else { exact * power });
    }
    let &five = FIVES.get(size)?;
    if mantissa == 0 {
        return Some(0.0);
    }
    Some(if exponent < 0 { quotient(mantissa, five, exponent) } else { product(mantissa, five, exponent) })
}

/// m/5ᵏ · 2⁻ᵏ for m > 0: the quotient to 63 bits or more, with its remainder, if any, in the last one.
///
/// Ten bits or more are rounded away, so that the last one only has to tell a tie from what is above it.
#[inline]
fn quotient(mantissa: u64, five: u64, exponent: i64) -> f64 {
    let (up, up_five) = (mantissa.leading_zeros(), five.leading_zeros());
    // Both have 64 bits now, hence 2⁶² < quotient < 2⁶⁴.
    let (mantissa, five) = (mantissa << up, five << up_five);
    let quotient = ((u128::from(mantissa) << 63) / u128::from(five)) as u64;
    // The remainder is below 2⁶⁴, where arithmetic modulo 2⁶⁴ is exact; so is the low word of the dividend.
    let remainder = (mantissa << 63).wrapping_sub(quotient.wrapping_mul(five));
    (quotient | u64::from(remainder != 0)) as f64
        * power_of_two(exponent - 63 + i64::from(up_five) - i64::from(up))
}

/// m·5ᵏ · 2ᵏ: the first 64 bits of the product, with the others, if any is set, in the last one.
#[inline]
fn product(mantissa: u64, five: u64, exponent: i64) -> f64 {
    let product = u128::from(mantissa) * u128::from(five);
    let excess = 64_u32.saturating_sub(product.leading_zeros());
    let first = (product >> excess) as u64;
    let rest = product != u128::from(first) << excess;
    (first | u64::from(rest)) as f64 * power_of_two(exponent + i64::from(excess))
}

/// 2ᵏ for |k| < 1023.
#[inline]
fn power_of_two(k: i64) -> f64 {
    f64::from_bits(((1023 + k) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nearest(mantissa: u64, exponent: i64) -> f64 {
        format!("{mantissa}e{exponent}").parse().unwrap()
    }

    #[test]
    fn powers_beyond_the_tables_are_left_to_others() {
        assert_eq!(scaled(1 << 60, 28), None);
        assert_eq!(scaled(1 << 60, -28), None);
        assert_eq!(scaled(0, -27), Some(0.0));
        assert_eq!(scaled(u64::MAX, -27).map(f64::to_bits), Some(nearest(u64::MAX, -27).to_bits()));
    }

    #[test]
    fn ties_go_to_the_even_neighbour_and_a_little_more_does_not() {
        // 2⁵³ + 1 is half-way between two f64, and so is each of its products with a power of two.
        for (mantissa, exponent) in [((1 << 53) + 1, 0), ((1 << 53) + 3, 0), (((1 << 53) + 1) * 5, -1)] {
            for change in [-1_i64, 0, 1] {
                let mantissa = u64::checked_add_signed(mantissa, change).unwrap();
                let found = scaled(mantissa, exponent).unwrap();
                assert_eq!(found.to_bits(), nearest(mantissa, exponent).to_bits(), "{mantissa}e{exponent}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_result_is_that_of_the_standard_library(mantissa: u64, few in 0_u32..64, exponent in -27_i64..=27) {
            let mantissa = mantissa >> few;
            let found = scaled(mantissa, exponent).map(f64::to_bits);
            prop_assert_eq!(found, Some(nearest(mantissa, exponent).to_bits()));
        }
    }
}
