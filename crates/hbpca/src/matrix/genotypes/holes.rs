//! What stands where genotypes are missing.

use std::ops::Range;

use rayon::prelude::*;

use super::{Counts, Genotypes, MISSING, Order};
use crate::Error;

/// A number for every missing genotype, variant after variant: 12 bytes each.
#[derive(Clone, Debug)]
pub(crate) struct FilledHoles {
    /// Those of variant j are `starts[j]..starts[j + 1]`.
    starts: Vec<usize>,
    /// Ascending within a variant.
    samples: Vec<u32>,
    values: Vec<f64>,
}

impl FilledHoles {
    /// With the same number in all holes of a variant.
    pub(crate) fn of(genotypes: &Genotypes, means: &[f64]) -> Result<Self, Error> {
        let n = genotypes.n_rows();
        if u32::try_from(n).is_err() {
            let advice = "em takes fewer than 2³² samples: choose mean";
            return Err(Error::parameter("samples", n, advice));
        }
        let mut holes = Self { starts: vec![0], samples: Vec::new(), values: Vec::new() };
        genotypes.for_each_span(Order::Ascending, |span| {
            let missing = |j: usize| Counts::of(span.codes_of(j), n).missing;
            let more = span.variants.clone().into_par_iter().map(missing).sum();
            holes.samples.reserve_exact(more);
            holes.values.reserve_exact(more);
            for j in span.variants.clone() {
                let codes = span.codes_of(j);
                let missing = (0..n).filter(|&l| Genotypes::code(codes, l) == MISSING);
                holes.samples.extend(missing.map(|l| l as u32));
                holes.values.resize(holes.samples.len(), means[j]);
                holes.starts.push(holes.samples.len());
            }
            Ok(())
        })?;
        Ok(holes)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    /// Samples and numbers of variant j.
    pub(crate) fn of_variant(&self, j: usize) -> (&[u32], &[f64]) {
        let places = self.starts[j]..self.starts[j + 1];
        (&self.samples[places.clone()], &self.values[places])
    }

    /// The same for some samples that follow each other.
    pub(crate) fn among(&self, j: usize, samples: &Range<usize>) -> (&[u32], &[f64]) {
        let (of_variant, values) = self.of_variant(j);
        let [from, to] =
            [samples.start, samples.end].map(|l| of_variant.partition_point(|&at| (at as usize) < l));
        (&of_variant[from..to], &values[from..to])
    }

    /// What stands in the hole of sample l.
    pub(crate) fn at(&self, l: usize, j: usize) -> Option<f64> {
        let (samples, values) = self.of_variant(j);
        samples.binary_search(&(l as u32)).ok().map(|i| values[i])
    }

    /// The numbers of each variant, to be changed.
    pub(crate) fn variants_mut(&mut self) -> Vec<(&[u32], &mut [f64])> {
        let Self { starts, samples, values } = self;
        let mut rest = &mut values[..];
        let lengths = starts.windows(2).map(|pair| pair[0]..pair[1]);
        lengths
            .map(|places| {
                let (here, after) = std::mem::take(&mut rest).split_at_mut(places.len());
                rest = after;
                (&samples[places], here)
            })
            .collect()
    }
}
