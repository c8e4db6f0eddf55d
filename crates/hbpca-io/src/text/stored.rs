//! The two types a value can have in memory.

/// A type of value in memory.
pub(crate) trait Stored: Copy + Default + std::ops::Neg<Output = Self> {
    /// The value, if the type holds it exactly.
    fn exactly(value: f64) -> Option<Self>;

    /// A number of at most seven digits, which both types hold: 10⁷ < 2²⁴.
    fn seven_digits(number: u32) -> Self;
}

impl Stored for f64 {
    #[inline(always)]
    fn exactly(value: f64) -> Option<Self> {
        Some(value)
    }

    #[inline(always)]
    fn seven_digits(number: u32) -> Self {
        Self::from(number.cast_signed())
    }
}

impl Stored for f32 {
    #[inline(always)]
    fn exactly(value: f64) -> Option<Self> {
        let single = value as Self;
        (f64::from(single).to_bits() == value.to_bits()).then_some(single)
    }

    #[inline(always)]
    fn seven_digits(number: u32) -> Self {
        number.cast_signed() as Self
    }
}
