//! Numbers as binary files store them.

use crate::block::Values;

/// A type of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

/// A type of number and the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) number: Number,
    pub(crate) big_endian: bool,
}

impl Element {
    /// Bytes of one number.
    pub(crate) fn size(self) -> usize {
        match self.number {
            Number::I8 | Number::U8 => 1,
            Number::I16 | Number::U16 => 2,
            Number::I32 | Number::U32 | Number::F32 => 4,
            Number::I64 | Number::U64 | Number::F64 => 8,
        }
    }

    /// Whether the number is whole by its type.
    pub(crate) fn is_integer(self) -> bool {
        !matches!(self.number, Number::F32 | Number::F64)
    }

    /// The numbers in `bytes`, in the smallest of f32 and f64 that holds every number of the type; integers of
    /// 64 bits beyond 2⁵³ are rounded. A rest shorter than a number is left out.
    pub(crate) fn decode(self, bytes: &[u8]) -> Values {
        let big = self.big_endian;
        match self.number {
            Number::I8 => Values::F32(bytes.iter().map(|&x| f32::from(x.cast_signed())).collect()),
            Number::U8 => Values::F32(bytes.iter().map(|&x| f32::from(x)).collect()),
            Number::I16 => Values::F32(words(bytes, big, |x| f32::from(i16::from_le_bytes(x)))),
            Number::U16 => Values::F32(words(bytes, big, |x| f32::from(u16::from_le_bytes(x)))),
            Number::I32 => Values::F64(words(bytes, big, |x| f64::from(i32::from_le_bytes(x)))),
            Number::U32 => Values::F64(words(bytes, big, |x| f64::from(u32::from_le_bytes(x)))),
            Number::I64 => Values::F64(words(bytes, big, |x| i64::from_le_bytes(x) as f64)),
            Number::U64 => Values::F64(words(bytes, big, |x| u64::from_le_bytes(x) as f64)),
            Number::F32 => Values::F32(words(bytes, big, f32::from_le_bytes)),
            Number::F64 => Values::F64(words(bytes, big, f64::from_le_bytes)),
        }
    }

    /// The whole numbers in `bytes` through `keep`; `None` if the type is not whole, a number is negative, or
    /// `keep` refuses one.
    pub(crate) fn decode_indices<T>(self, bytes: &[u8], keep: impl Fn(u64) -> Option<T>) -> Option<Vec<T>> {
        let big = self.big_endian;
        let signed = |x: i64| u64::try_from(x).ok().and_then(&keep);
        match self.number {
            Number::F32 | Number::F64 => None,
            Number::I8 => all(bytes.iter().map(|&x| signed(i64::from(x.cast_signed()))), bytes.len()),
            Number::U8 => all(bytes.iter().map(|&x| keep(u64::from(x))), bytes.len()),
            Number::I16 => all_words(bytes, big, |x| signed(i64::from(i16::from_le_bytes(x)))),
            Number::U16 => all_words(bytes, big, |x| keep(u64::from(u16::from_le_bytes(x)))),
            Number::I32 => all_words(bytes, big, |x| signed(i64::from(i32::from_le_bytes(x)))),
            Number::U32 => all_words(bytes, big, |x| keep(u64::from(u32::from_le_bytes(x)))),
            Number::I64 => all_words(bytes, big, |x| signed(i64::from_le_bytes(x))),
            Number::U64 => all_words(bytes, big, |x| keep(u64::from_le_bytes(x))),
        }
    }
}

/// All items in one allocation, or `None` at the first that is none.
fn all<T>(items: impl Iterator<Item = Option<T>>, n: usize) -> Option<Vec<T>> {
    let mut kept = Vec::with_capacity(n);
    for item in items {
        kept.push(item?);
    }
    Some(kept)
}

/// Every N bytes, put in little-endian order, through `number`, or `None` at the first that is none.
fn all_words<const N: usize, T>(
    bytes: &[u8],
    big: bool,
    number: impl Fn([u8; N]) -> Option<T>,
) -> Option<Vec<T>> {
    let (words, _) = bytes.as_chunks::<N>();
    let ordered = words.iter().map(|word| {
        let mut word = *word;
        if big {
            word.reverse();
        }
        number(word)
    });
    all(ordered, words.len())
}

/// Every N bytes, put in little-endian order, through `number`.
fn words<const N: usize, T>(bytes: &[u8], big_endian: bool, number: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (words, _) = bytes.as_chunks::<N>();
    if big_endian {
        let reversed = |word: &[u8; N]| {
            let mut word = *word;
            word.reverse();
            number(word)
        };
        words.iter().map(reversed).collect()
    } else {
        words.iter().map(|word| number(*word)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(number: Number, big_endian: bool) -> Element {
        Element { number, big_endian }
    }

    #[test]
    fn every_type_is_decoded_in_both_orders() {
        let cases: [(Number, Vec<u8>, f64); 10] = [
            (Number::I8, (-3_i8).to_be_bytes().into(), -3.0),
            (Number::U8, vec![200], 200.0),
            (Number::I16, (-300_i16).to_be_bytes().into(), -300.0),
            (Number::U16, 60_000_u16.to_be_bytes().into(), 60_000.0),
            (Number::I32, (-70_001_i32).to_be_bytes().into(), -70_001.0),
            (Number::U32, 4_000_000_000_u32.to_be_bytes().into(), 4e9),
            (Number::I64, (-(1_i64 << 40)).to_be_bytes().into(), -1_099_511_627_776.0),
            (Number::U64, (1_u64 << 50).to_be_bytes().into(), 1_125_899_906_842_624.0),
            (Number::F32, 0.1_f32.to_be_bytes().into(), f64::from(0.1_f32)),
            (Number::F64, 0.1_f64.to_be_bytes().into(), 0.1),
        ];
        for (number, mut bytes, expected) in cases {
            assert_eq!(bytes.len(), element(number, true).size());
            assert_eq!(
                element(number, true).decode(&bytes).get(0).to_bits(),
                expected.to_bits(),
                "{number:?}"
            );
            let indices = element(number, true).decode_indices(&bytes, Some);
            let whole = expected >= 0.0 && element(number, true).is_integer();
            assert_eq!(indices, whole.then(|| vec![expected as u64]), "{number:?}");
            bytes.reverse();
            assert_eq!(
                element(number, false).decode(&bytes).get(0).to_bits(),
                expected.to_bits(),
                "{number:?}"
            );
        }
    }
}
