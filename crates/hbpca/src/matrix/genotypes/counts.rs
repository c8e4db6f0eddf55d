//! How often each genotype occurs, and where it is missing.

use rayon::prelude::*;

use super::{Genotypes, MISSING, Order, PER_BYTE, Span};
use crate::Error;

impl Genotypes {
    /// How many samples have two copies of A1, one, none, and how many are missing, of each variant.
    pub fn counts(&self) -> Result<Vec<Counts>, Error> {
        let mut counts = Vec::with_capacity(self.d);
        self.for_each_span(Order::Ascending, |span| {
            let of = |j: usize| Counts::of(span.codes_of(j), self.n);
            counts.par_extend(span.variants.clone().into_par_iter().map(of));
            Ok(())
        })?;
        Ok(counts)
    }

    /// How many genotypes are missing, and of which samples any is.
    pub fn missing(&self) -> Result<MissingGenotypes, Error> {
        let mut scan = MissingScan::of(self);
        self.for_each_span(Order::Ascending, |span| {
            scan.add(span);
            Ok(())
        })?;
        Ok(scan.finish())
    }

    /// The first variant of which sample l is missing.
    pub(crate) fn first_missing_of(&self, l: usize) -> Result<Option<usize>, Error> {
        let mut found = None;
        self.for_each_span(Order::Ascending, |span| {
            let is_missing = |j: &usize| Self::code(span.codes_of(*j), l) == MISSING;
            found = found.or_else(|| span.variants.clone().find(is_missing));
            Ok(())
        })?;
        Ok(found)
    }
}

/// What is missing in the spans of one walk.
pub(crate) struct MissingScan {
    n: usize,
    entries: usize,
    /// Codes: of samples of which anything is missing, missing.
    any: Vec<u8>,
}

impl MissingScan {
    /// Of nothing yet.
    pub(crate) fn of(genotypes: &Genotypes) -> Self {
        Self { n: genotypes.n, entries: 0, any: vec![0; genotypes.stride()] }
    }

    /// Adds the variants of a span.
    pub(crate) fn add(&mut self, span: &Span<'_>) {
        /// A bit for each of the four samples of a byte.
        fn missing_in(byte: u8) -> u8 {
            byte & !(byte >> 1) & 0b0101_0101
        }
        let (beyond, end) = (self.n % PER_BYTE, self.any.len() - 1);
        let of_last = if beyond == 0 { !0 } else { (1_u8 << (2 * beyond)) - 1 };
        let of_variant = |(mut entries, mut any): (usize, Vec<u8>), j: usize| {
            for (i, (any, byte)) in any.iter_mut().zip(span.codes_of(j)).enumerate() {
                let missing = missing_in(*byte) & if i == end { of_last } else { !0 };
                entries += missing.count_ones() as usize;
                *any |= missing;
            }
            (entries, any)
        };
        let none = || (0, vec![0_u8; end + 1]);
        let both = |(x, mut any): (usize, Vec<u8>), (y, other): (usize, Vec<u8>)| {
            any.iter_mut().zip(other).for_each(|(any, other)| *any |= other);
            (x + y, any)
        };
        let variants = span.variants.clone().into_par_iter().with_min_len(GRAIN);
        let (entries, found) = variants.fold(none, of_variant).reduce(none, both);
        self.entries += entries;
        self.any.iter_mut().zip(found).for_each(|(any, found)| *any |= found);
    }

    /// What was found.
    pub(crate) fn finish(self) -> MissingGenotypes {
        let Self { n, entries, any } = self;
        let samples = (0..n).filter(|&l| Genotypes::code(&any, l) == MISSING).collect();
        MissingGenotypes { entries, samples }
    }
}

/// Variants that a thread looks through at a time.
const GRAIN: usize = 64;

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingGenotypes {
    /// How many genotypes.
    pub entries: usize,
    /// Samples of which any is, ascending.
    pub samples: Vec<usize>,
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
    /// Of the codes of n samples.
    pub(crate) fn of(codes: &[u8], n: usize) -> Self {
        let mut of_code = [0_usize; 4];
        let (whole, rest) = (n / PER_BYTE, n % PER_BYTE);
        let mut of_byte = [0_usize; 256];
        codes[..whole].iter().for_each(|byte| of_byte[usize::from(*byte)] += 1);
        for (byte, count) in of_byte.iter().enumerate().filter(|(_, count)| **count > 0) {
            (0..PER_BYTE).for_each(|i| of_code[byte >> (2 * i) & 3] += count);
        }
        (n - rest..n).for_each(|l| of_code[Genotypes::code(codes, l)] += 1);
        let [two, missing, one, none] = of_code;
        Self { two, one, none, missing }
    }

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
