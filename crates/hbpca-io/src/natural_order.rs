//! File names as people order them: `part-2` before `part-10`.

use std::cmp::Ordering;

/// Compares runs of digits as numbers, everything else byte by byte; equal numbers by their leading zeros.
pub(crate) fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a.as_bytes(), b.as_bytes());
    while let (Some(&first), Some(&second)) = (x.first(), y.first()) {
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let (number_x, rest_x) = split_number(x);
            let (number_y, rest_y) = split_number(y);
            let order = number_x.len().cmp(&number_y.len()).then_with(|| number_x.cmp(number_y));
            if order != Ordering::Equal {
                return order;
            }
            (x, y) = (rest_x, rest_y);
        } else {
            if first != second {
                return first.cmp(&second);
            }
            (x, y) = (&x[1..], &y[1..]);
        }
    }
    x.len().cmp(&y.len()).then_with(|| a.cmp(b))
}

/// The digits at the start, without leading zeros, and what follows them.
fn split_number(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    let zeros = bytes[..end].iter().take_while(|&&byte| byte == b'0').count();
    (&bytes[zeros..end], &bytes[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_order_by_value_and_the_order_is_total() {
        let sorted = ["a", "a0", "a00", "a1", "a01", "a1b", "a2", "a10", "a10.9", "a10.10", "b"];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                // a0/a00 and a1/a01 are equal numbers: byte order decides between the whole names.
                let by_zeros = a.replace('0', "") == b.replace('0', "");
                if !by_zeros {
                    assert_eq!(natural_order(a, b), i.cmp(&j), "{a} {b}");
                }
                assert_eq!(natural_order(a, b), natural_order(b, a).reverse());
                assert_eq!(natural_order(a, b) == Ordering::Equal, i == j);
            }
        }
    }
}
