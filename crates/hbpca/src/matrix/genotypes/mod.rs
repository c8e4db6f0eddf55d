//! Genotypes in two bits each, variant after variant: the layout of PLINK's `.bed`.
//!
//! ```text
//! code   00            01        10              11
//! means  two of A1     missing   one of A1       none
//! ```
//!
//! Samples are rows and variants are columns, although the codes of a *column* lie together: four samples in a byte, the first in its
//! lowest bits, and every variant begins with a byte of its own.

mod counts;
mod holes;
mod selection;
mod storage;

use std::hash::Hasher;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rayon::prelude::*;
use twox_hash::XxHash3_64;

use super::fingerprint::of_weights;
use super::refuse_empty;
use crate::Error;
pub(crate) use counts::MissingScan;
pub use counts::{Counts, MissingGenotypes};
pub(crate) use holes::FilledHoles;
pub use selection::VariantPlace;
use storage::Storage;
pub(crate) use storage::{GROUP, Order, Span};
pub use storage::{SharedBytes, VariantSource};

/// Samples in a byte.
const PER_BYTE: usize = 4;
/// The dosage of A1 that a code stands for; nothing where it is missing.
const DOSAGE: [Option<u8>; 4] = [Some(2), None, Some(1), Some(0)];
/// What is missing.
pub(crate) const MISSING: usize = 1;

/// n samples and d variants, packed: in memory, in a map of a file, or read anew in every pass.
#[derive(Clone, Debug)]
pub struct Genotypes {
    n: usize,
    d: usize,
    storage: Storage,
}

impl Genotypes {
    /// Takes over the codes of `d` variants, each in ⌈n/4⌉ bytes.
    pub fn new(n: usize, d: usize, codes: Vec<u8>) -> Result<Self, Error> {
        check_bytes(n, d, codes.len())?;
        Ok(Self { n, d, storage: Storage::Held(Arc::new(codes)) })
    }

    /// The same for codes that someone else holds, such as a map of a file. Products walk over them in their order, a few megabytes at a time.
    pub fn mapped(n: usize, d: usize, codes: SharedBytes) -> Result<Self, Error> {
        check_bytes(n, d, (*codes).as_ref().len())?;
        Ok(Self { n, d, storage: Storage::Mapped(codes) })
    }

    /// The same for codes that lie elsewhere, and are read from there in every pass.
    pub fn read_from(n: usize, d: usize, source: Arc<dyn VariantSource>) -> Result<Self, Error> {
        refuse_empty(n, d)?;
        let needed = d.checked_mul(n.div_ceil(PER_BYTE));
        if needed.is_none() {
            return Err(Error::shape(format!("bytes for {n} samples × {d} variants"), usize::MAX, 0));
        }
        let bytes_read = Arc::new(AtomicU64::new(0));
        Ok(Self { n, d, storage: Storage::Read { source, bytes_read } })
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
        self.d * self.stride()
    }

    /// The code of sample l in the codes of a variant.
    #[inline(always)]
    pub(crate) fn code(variant: &[u8], l: usize) -> usize {
        usize::from(variant[l / PER_BYTE] >> (2 * (l % PER_BYTE)) & 3)
    }

    /// How many copies of A1 sample l has of variant j; nothing where that is missing.
    pub fn dosage(&self, l: usize, j: usize) -> Result<Option<u8>, Error> {
        if l >= self.n || j >= self.d {
            let what = format!("place ({l}, {j}) of {} samples × {} variants", self.n, self.d);
            return Err(Error::parameter("place", what, "both are counted from 0"));
        }
        let mut codes = vec![0; self.stride()];
        self.read_variants(j, &mut codes)?;
        Ok(DOSAGE[Self::code(&codes, l)])
    }

    /// The dosages of some samples, row by row; `missing[j]` stands for what is missing of variant j.
    pub fn dosages(&self, samples: Range<usize>, missing: &[f64]) -> Result<Vec<f64>, Error> {
        let (first, d) = (samples.start, self.d);
        let mut values = vec![0.0; samples.len() * d];
        self.for_each_span(Order::Ascending, |span| {
            values.par_chunks_mut(d).enumerate().for_each(|(l, row)| {
                for j in span.variants.clone() {
                    let dosage = DOSAGE[Self::code(span.codes_of(j), first + l)];
                    row[j] = dosage.map_or(missing[j], f64::from);
                }
            });
            Ok(())
        })?;
        Ok(values)
    }

    /// A text that differs where the shape, a byte or a weight does, but for a chance of 2⁻⁶⁴.
    pub fn fingerprint(&self, weights: Option<&[f64]>) -> Result<String, Error> {
        let mut hasher = XxHash3_64::with_seed(0);
        self.for_each_span(Order::Ascending, |span| {
            span.variants.clone().for_each(|j| hasher.write(span.codes_of(j)));
            Ok(())
        })?;
        let of_weights = of_weights(weights);
        Ok(format!("{} × {} genotypes {:016x}{of_weights}", self.n, self.d, hasher.finish()))
    }
}

/// Refuses codes of another number.
fn check_bytes(n: usize, d: usize, found: usize) -> Result<(), Error> {
    refuse_empty(n, d)?;
    let needed = d.saturating_mul(n.div_ceil(PER_BYTE));
    if found == needed {
        return Ok(());
    }
    Err(Error::shape(format!("bytes for {n} samples × {d} variants"), needed, found))
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

    /// Codes that are read.
    pub(crate) struct Elsewhere(pub(crate) Genotypes);

    impl VariantSource for Elsewhere {
        fn read(&self, first: usize, codes: &mut [u8]) -> Result<(), Error> {
            self.0.read_variants(first, codes)
        }
    }

    /// The same codes in memory, mapped and read.
    pub(crate) fn everywhere(g: &Genotypes) -> [Genotypes; 3] {
        let mut codes = vec![0; g.bytes()];
        g.read_variants(0, &mut codes).unwrap();
        let mapped = Genotypes::mapped(g.n, g.d, Arc::new(codes)).unwrap();
        let read = Genotypes::read_from(g.n, g.d, Arc::new(Elsewhere(g.clone()))).unwrap();
        [g.clone(), mapped, read]
    }

    #[test]
    fn two_bits_hold_what_was_put_in() {
        let dosage = |l: usize, j: usize| [2, 1, 0, 9][(l * 3 + j * 5 + l * j) % 4];
        for g in everywhere(&packed(11, 6, dosage)) {
            let known = |l: usize, j: usize| Some(dosage(l, j)).filter(|x| *x < 9);
            for (l, j) in (0..66).map(|i| (i / 6, i % 6)) {
                assert_eq!(g.dosage(l, j).unwrap(), known(l, j));
            }
            for (j, counts) in g.counts().unwrap().into_iter().enumerate() {
                let count = |x: u8| (0..11).filter(|l| dosage(*l, j) == x).count();
                let want = Counts { two: count(2), one: count(1), none: count(0), missing: count(9) };
                assert_eq!(counts, want);
                let known: Vec<f64> = (0..11).filter_map(|l| known(l, j)).map(f64::from).collect();
                let mean = known.iter().sum::<f64>() / known.len() as f64;
                let squares: f64 = known.iter().map(|x| (x - mean).powi(2)).sum();
                assert!((counts.mean() - mean).abs() < 1e-15 && (counts.squares() - squares).abs() < 1e-13);
                let least = known.iter().copied().fold(f64::INFINITY, f64::min);
                let most = known.iter().copied().fold(0.0, f64::max);
                assert_eq!(counts.range(), (least, most));
            }
            let missing = g.missing().unwrap();
            let holes = (0..66).filter(|i| dosage(i / 6, i % 6) == 9).count();
            let samples: Vec<usize> = (0..11).filter(|l| (0..6).any(|j| dosage(*l, j) == 9)).collect();
            assert_eq!((missing.entries, missing.samples), (holes, samples));
            assert!(g.dosage(11, 0).is_err() && g.dosage(0, 6).is_err());
        }
        assert_eq!(packed(5, 2, |_, _| 1).missing().unwrap().entries, 0);
    }

    #[test]
    fn what_fills_the_last_byte_is_not_missing() {
        let g = Genotypes::new(5, 1, vec![0b1111_1111, 0b0101_0111]).unwrap();
        assert_eq!(g.missing().unwrap().entries, 0);
        let g = Genotypes::new(4, 1, vec![0b0101_1101]).unwrap();
        assert_eq!(g.missing().unwrap().samples, [0, 2, 3]);
    }

    #[test]
    fn flipped_variants_count_the_other_allele() {
        let first = packed(9, 3, |l, j| [2, 1, 0, 9][(l + j) % 4]);
        let places = [(2, true), (0, false), (1, false), (2, false)];
        let places = places.map(|(position, flipped)| VariantPlace { position, flipped });
        for g in everywhere(&first) {
            let chosen = g.select(&places).unwrap();
            for l in 0..9 {
                assert_eq!(chosen.dosage(l, 0).unwrap(), g.dosage(l, 2).unwrap().map(|x| 2 - x));
                assert_eq!(chosen.dosage(l, 1).unwrap(), g.dosage(l, 0).unwrap());
                assert_eq!(chosen.dosage(l, 3).unwrap(), g.dosage(l, 2).unwrap());
            }
            assert_eq!(
                chosen.fingerprint(None).unwrap(),
                first.select(&places).unwrap().fingerprint(None).unwrap()
            );
            assert_ne!(chosen.fingerprint(None).unwrap(), g.fingerprint(None).unwrap());
            assert!(g.select(&[VariantPlace { position: 3, flipped: false }]).is_err());
        }
    }

    #[test]
    fn a_source_that_fails_ends_the_walk_with_its_error() {
        struct Torn;
        impl VariantSource for Torn {
            fn read(&self, first: usize, _: &mut [u8]) -> Result<(), Error> {
                if first > 0 { Err(Error::Source("the tape is torn".into())) } else { Ok(()) }
            }
        }
        let g = Genotypes::read_from(1 << 16, 2000, Arc::new(Torn)).unwrap();
        let mut spans = 0;
        let error = g.for_each_span(Order::Ascending, |_| {
            spans += 1;
            Ok(())
        });
        assert_eq!((error.unwrap_err().to_string().contains("the tape is torn"), spans), (true, 1));
        let refused = || Err(Error::Abandoned);
        assert!(matches!(g.for_each_span(Order::Ascending, |_| refused()), Err(Error::Abandoned)));
    }

    #[test]
    fn codes_of_another_number_are_refused() {
        let error = Genotypes::new(5, 3, vec![0; 5]).unwrap_err().to_string();
        assert_eq!(error, "bytes for 5 samples × 3 variants: 5 given where 6 are needed");
        assert!(Genotypes::new(0, 3, Vec::new()).is_err());
        assert!(Genotypes::new(usize::MAX, usize::MAX, Vec::new()).is_err());
        assert!(Genotypes::mapped(5, 3, Arc::new(vec![0; 7])).is_err());
        assert!(
            Genotypes::read_from(usize::MAX, usize::MAX, Arc::new(Elsewhere(packed(1, 1, |_, _| 0))))
                .is_err()
        );
    }

    #[test]
    fn a_variant_that_nobody_knows_has_no_spread() {
        let counts = packed(6, 1, |_, _| 9).counts().unwrap()[0];
        assert_eq!((counts.mean(), counts.squares(), counts.range()), (0.0, 0.0, (0.0, 0.0)));
    }
}
