//! Some of the variants, in another order.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Genotypes, VariantSource};
use crate::Error;

/// Where a variant is found, and how its alleles are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariantPlace {
    /// Its position.
    pub position: usize,
    /// Whether the other allele is counted there.
    pub flipped: bool,
}

impl Genotypes {
    /// These variants in this order; where alleles are flipped 2 − x takes the place of x. Codes in memory are copied, others are found when they are read.
    pub fn select(&self, variants: &[VariantPlace]) -> Result<Self, Error> {
        if let Some(place) = variants.iter().find(|place| place.position >= self.d) {
            return Err(Error::parameter("variant", place.position, format!("there are {}", self.d)));
        }
        if !self.is_held() {
            let selection = Selection { of: self.clone(), variants: variants.to_vec() };
            return Self::read_from(self.n, variants.len(), Arc::new(selection));
        }
        let stride = self.stride();
        let mut codes = vec![0; variants.len() * stride];
        codes.par_chunks_mut(stride).zip(variants).try_for_each(|(to, place)| {
            self.read_variants(place.position, to)?;
            flip_if(place.flipped, to);
            Ok::<_, Error>(())
        })?;
        Self::new(self.n, variants.len(), codes)
    }
}

/// Variants of others.
struct Selection {
    of: Genotypes,
    variants: Vec<VariantPlace>,
}

impl VariantSource for Selection {
    fn read(&self, first: usize, codes: &mut [u8]) -> Result<(), Error> {
        let stride = self.of.stride();
        let places = &self.variants[first..first + codes.len() / stride];
        // Those that follow each other are read together.
        let neighbours = places.chunk_by(|a, b| a.position + 1 == b.position);
        let mut rest = codes;
        for run in neighbours {
            let (here, after) = rest.split_at_mut(run.len() * stride);
            self.of.read_variants(run[0].position, here)?;
            for (codes, place) in here.chunks_exact_mut(stride).zip(run) {
                flip_if(place.flipped, codes);
            }
            rest = after;
        }
        Ok(())
    }
}

fn flip_if(flipped: bool, codes: &mut [u8]) {
    if flipped {
        codes.iter_mut().for_each(|byte| *byte = flip(*byte));
    }
}

/// 00 ↔ 11; missing and heterozygous ones stay: both bits change where they are equal.
fn flip(byte: u8) -> u8 {
    let equal = !(byte ^ byte >> 1) & 0b0101_0101;
    byte ^ (equal | equal << 1)
}
