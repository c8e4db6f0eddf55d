//! Genotypes in two bits each, variant after variant: the layout of PLINK's `.bed`.
//!
//! ```text
//! code   00            01        10              11
//! means  two of A1     missing   one of A1       none
//! ```
//!
//! Samples are rows and variants are columns, although the codes of a *column* lie together: four samples in a byte, the first in its
//! lowest bits, and every variant begins with a byte of its own.

use std::hash::Hasher;
use std::ops::Range;

use rayon::prelude::*;
use twox_hash::XxHash3_64;

use super::refuse_empty;
use crate::Error;

/// Samples in a byte.
const PER_BYTE: usize = 4;
/// The dosage of A1 that a code stands for; nothing where it is missing.
const DOSAGE: [Option<u8>; 4] = [Some(2), None, Some(1), Some(0)];

/// n samples and d variants, packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genotypes {
    n: usize,
    d: usize,
    codes: Vec<u8>,
}

/// Where a variant is found, and how its alleles are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantPlace {
    /// Its position.
    pub position: usize,
    /// Whether the other allele is counted there.
    pub flipped: bool,
}

impl Genotypes {
    /// Takes over the codes of `d` variants, each in ⌈n/4⌉ bytes.
    pub fn new(n: usize, d: usize, codes: Vec<u8>) -> Result<Self, Error> {
        refuse_empty(n, d)?;
        let needed = d.saturating_mul(n.div_ceil(PER_BYTE));
        if codes.len() != needed {
            let what = format!("bytes for {n} samples × {d} variants");
            return Err(Error::shape(what, needed, codes.len()));
        }
        Ok(Self { n, d, codes })
    }

    /// n, the number of samples.
    pub fn n_rows(&self) -> usize {
        self.n
    }

    /// d, the number of variants.
    pub fn n_cols(&self) -> usize {
        self.d
    }

    /// Bytes of all codes.
    pub fn bytes(&self) -> usize {
        self.codes.len()
    }

    /// The codes of variant j.
    pub(crate) fn variant(&self, j: usize) -> &[u8] {
        let stride = self.n.div_ceil(PER_BYTE);
        &self.codes[j * stride..(j + 1) * stride]
    }

    /// The code of sample l in the codes of a variant.
    #[inline(always)]
    pub(crate) fn code(variant: &[u8], l: usize) -> usize {
        usize::from(variant[l / PER_BYTE] >> (2 * (l % PER_BYTE)) & 3)
    }

    /// How many copies of A1 sample l has of variant j; nothing where that is missing.
    pub fn dosage(&self, l: usize, j: usize) -> Option<u8> {
        DOSAGE[Self::code(self.variant(j), l)]
    }

    /// How many samples have two copies of A1, one, none, and how many are missing.
    pub fn counts(&self, j: usize) -> Counts {
        let mut of_code = [0_usize; 4];
        let variant = self.variant(j);
        let (whole, rest) = (self.n / PER_BYTE, self.n % PER_BYTE);
        let mut of_byte = [0_usize; 256];
        variant[..whole].iter().for_each(|byte| of_byte[usize::from(*byte)] += 1);
        for (byte, count) in of_byte.iter().enumerate().filter(|(_, count)| **count > 0) {
            (0..PER_BYTE).for_each(|i| of_code[byte >> (2 * i) & 3] += count);
        }
        (self.n - rest..self.n).for_each(|l| of_code[Self::code(variant, l)] += 1);
        let [two, missing, one, none] = of_code;
        Counts { two, one, none, missing }
    }

    /// Whether any genotype is missing.
    pub fn has_missing(&self) -> bool {
        (0..self.d).into_par_iter().any(|j| self.counts(j).missing > 0)
    }

    /// The dosages of some samples, row by row; `missing[j]` stands for what is missing of variant j.
    pub fn dosages(&self, samples: Range<usize>, missing: &[f64]) -> Vec<f64> {
        let mut values = vec![0.0; samples.len() * self.d];
        let (first, d) = (samples.start, self.d);
        values.par_chunks_mut(d).enumerate().for_each(|(l, row)| {
            for (j, (x, missing)) in row.iter_mut().zip(missing).enumerate() {
                *x = self.dosage(first + l, j).map_or(*missing, f64::from);
            }
        });
        values
    }

    /// These variants in this order; where alleles are flipped 2 − x takes the place of x.
    #[must_use]
    pub fn select(&self, variants: &[VariantPlace]) -> Self {
        let stride = self.n.div_ceil(PER_BYTE);
        let mut codes = vec![0; variants.len() * stride];
        codes.par_chunks_mut(stride).zip(variants).for_each(|(to, place)| {
            to.copy_from_slice(self.variant(place.position));
            if place.flipped {
                to.iter_mut().for_each(|byte| *byte = flip(*byte));
            }
        });
        Self { n: self.n, d: variants.len(), codes }
    }

    /// A text that differs where the shape or a byte does, but for a chance of 2⁻⁶⁴.
    pub fn fingerprint(&self) -> String {
        let mut hasher = XxHash3_64::with_seed(0);
        hasher.write(&self.codes);
        format!("{} × {} genotypes {:016x}", self.n, self.d, hasher.finish())
    }
}

/// 00 ↔ 11; missing and heterozygous ones stay: both bits change where they are equal.
fn flip(byte: u8) -> u8 {
    let equal = !(byte ^ byte >> 1) & 0b0101_0101;
    byte ^ (equal | equal << 1)
}

/// How many samples have how many copies of A1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Two copies.
    pub two: usize,
    /// One.
    pub one: usize,
    /// None.
    pub none: usize,
    /// Not known.
    pub missing: usize,
}

impl Counts {
    /// Samples that are known.
    pub fn known(self) -> usize {
        self.two + self.one + self.none
    }

    /// The mean dosage of those that are known; 0 where none is.
    pub fn mean(self) -> f64 {
        let known = self.known();
        if known == 0 { 0.0 } else { (2 * self.two + self.one) as f64 / known as f64 }
    }

    /// Σ(x − mean)² of those that are known, from whole numbers: m·Σx² − (Σx)² is exact.
    pub fn squares(self) -> f64 {
        let (known, sum) = (self.known() as u128, (2 * self.two + self.one) as u128);
        let squares = (4 * self.two + self.one) as u128;
        if known == 0 { 0.0 } else { (known * squares - sum * sum) as f64 / known as f64 }
    }

    /// The smallest and the largest dosage; the mean where all are missing.
    pub fn range(self) -> (f64, f64) {
        let there = [(0.0, self.none), (1.0, self.one), (2.0, self.two)];
        let mut there = there.into_iter().filter(|(_, count)| *count > 0).map(|(dosage, _)| dosage);
        let least = there.next().unwrap_or_else(|| self.mean());
        (least, there.next_back().unwrap_or(least))
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;

    /// Codes of dosages; 9 is missing.
    pub(crate) fn packed(n: usize, d: usize, dosage: impl Fn(usize, usize) -> u8) -> Genotypes {
        let stride = n.div_ceil(4);
        let mut codes = vec![0_u8; d * stride];
        for j in 0..d {
            for l in 0..n {
                let code = match dosage(l, j) {
                    2 => 0,
                    1 => 2,
                    0 => 3,
                    _ => 1,
                };
                codes[j * stride + l / 4] |= code << (2 * (l % 4));
            }
        }
        Genotypes::new(n, d, codes).unwrap()
    }

    #[test]
    fn two_bits_hold_what_was_put_in() {
        let dosage = |l: usize, j: usize| [2, 1, 0, 9][(l * 3 + j * 5 + l * j) % 4];
        let g = packed(11, 6, dosage);
        for l in 0..11 {
            for j in 0..6 {
                assert_eq!(g.dosage(l, j), Some(dosage(l, j)).filter(|x| *x < 9));
            }
        }
        for j in 0..6 {
            let count = |x: u8| (0..11).filter(|l| dosage(*l, j) == x).count();
            let counts = Counts { two: count(2), one: count(1), none: count(0), missing: count(9) };
            assert_eq!(g.counts(j), counts);
            let known: Vec<f64> = (0..11).filter_map(|l| g.dosage(l, j)).map(f64::from).collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            let squares: f64 = known.iter().map(|x| (x - mean).powi(2)).sum();
            assert!((counts.mean() - mean).abs() < 1e-15 && (counts.squares() - squares).abs() < 1e-13);
            let least = known.iter().copied().fold(f64::INFINITY, f64::min);
            let most = known.iter().copied().fold(0.0, f64::max);
            assert_eq!(counts.range(), (least, most));
        }
        assert!(g.has_missing());
        assert!(!packed(5, 2, |_, _| 1).has_missing());
    }

    #[test]
    fn flipped_variants_count_the_other_allele() {
        let g = packed(9, 3, |l, j| [2, 1, 0, 9][(l + j) % 4]);
        let places = [(2, true), (0, false), (2, false)];
        let chosen = g.select(&places.map(|(position, flipped)| VariantPlace { position, flipped }));
        for l in 0..9 {
            assert_eq!(chosen.dosage(l, 0), g.dosage(l, 2).map(|x| 2 - x));
            assert_eq!(chosen.dosage(l, 1), g.dosage(l, 0));
            assert_eq!(chosen.dosage(l, 2), g.dosage(l, 2));
        }
        assert_ne!(chosen.fingerprint(), g.fingerprint());
    }

    #[test]
    fn codes_of_another_number_are_refused() {
        let error = Genotypes::new(5, 3, vec![0; 5]).unwrap_err().to_string();
        assert_eq!(error, "bytes for 5 samples × 3 variants: 5 given where 6 are needed");
        assert!(Genotypes::new(0, 3, Vec::new()).is_err());
        assert!(Genotypes::new(usize::MAX, usize::MAX, Vec::new()).is_err());
    }

    #[test]
    fn a_variant_that_nobody_knows_has_no_spread() {
        let counts = packed(6, 1, |_, _| 9).counts(0);
        assert_eq!((counts.mean(), counts.squares(), counts.range()), (0.0, 0.0, (0.0, 0.0)));
    }
}
