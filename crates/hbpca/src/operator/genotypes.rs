//! C = (1/n)Σwₗaₗaₗᵀ of packed genotypes: codes of two bits become numbers a tile at a time.
//!
//! A variant has four values a = D⁻¹(x − μ), one for each code; what is missing has that of the mean, 0 where that is subtracted, or of the number that
//! stands in its place. With A n×d and W the weights, scaled to mean 1,
//!
//! ```text
//! T ← AV       samples in blocks, each by one thread; variants in order, sums of a group added to T
//! T ← WT
//! Y ← AᵀT      variants in tiles, each by one thread; samples in order, sums of a block added to Y
//! ```
//!
//! Every number is summed by one thread in one order: the same bits for any number of them, wherever the codes are. These are walked over twice, which
//! takes an eighth of the bytes that one walk over f32 would: forwards, and then backwards, so that the second walk of codes that are read begins with those
//! that the page cache still has.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::{CovarianceOperator, Product, RoundingBound, Rows, Shape, reshape};
use crate::columns::{RowMap, check_weights};
use crate::kernels::{RowSet, narrow};
use crate::matrix::{FilledHoles, GROUP, Genotypes, MISSING, Order, Span};
use crate::rounding::rounding_of_sum;
use crate::{Block, CancelToken, Error};

/// Samples of a tile.
const SAMPLES: usize = 512;
/// Variants of a tile: with that many samples 64 KB, which stay in cache.
const VARIANTS: usize = 16;
/// Roundings of a value: (x − μ)/s, in both factors of a product.
const ROUNDINGS_OF_A_VALUE: usize = 6;
/// Roundings of a weight: scaling it, and multiplying by it.
const ROUNDINGS_OF_A_WEIGHT: usize = 4;

/// Packed genotypes and what their codes stand for: the rows a.
pub(crate) struct PackedRows<'g> {
    genotypes: &'g Genotypes,
    /// For each variant the number that each code stands for.
    values: Vec<[f64; 4]>,
    /// What stands in holes instead, and the map that makes values of it.
    holes: Option<(&'g FilledHoles, RowMap)>,
    cancel: CancelToken,
}

impl<'g> PackedRows<'g> {
    /// Rows D⁻¹(x − μ), where `missing` are the dosages that take the place of missing ones.
    pub(crate) fn new(
        genotypes: &'g Genotypes,
        shift: Option<&[f64]>,
        scale: Option<&[f64]>,
        missing: &[f64],
    ) -> Self {
        let of_variant = |j: usize| {
            let (shift, scale) = (shift.map_or(0.0, |shift| shift[j]), scale.map_or(1.0, |scale| scale[j]));
            [2.0, missing[j], 1.0, 0.0].map(|x| (x - shift) / scale)
        };
        let values = (0..genotypes.n_cols()).map(of_variant).collect();
        Self { genotypes, values, holes: None, cancel: CancelToken::default() }
    }

    /// The same, where what is missing counts for nothing: a is 0 there.
    pub(crate) fn of_what_is_there(
        genotypes: &'g Genotypes,
        shift: Option<&[f64]>,
        scale: Option<&[f64]>,
    ) -> Self {
        let mut rows = Self::new(genotypes, shift, scale, &vec![0.0; genotypes.n_cols()]);
        rows.values.iter_mut().for_each(|values| values[MISSING] = 0.0);
        rows
    }

    /// AV, one row a sample.
    pub(crate) fn product(&self, v: &Block) -> Result<Vec<f64>, Error> {
        let mut t = vec![0.0; self.genotypes.n_rows() * v.p()];
        if v.p() > 0 {
            self.multiply(&RowSet::Range(0..self.genotypes.n_rows()), v, &mut t)?;
        }
        Ok(t)
    }

    /// `t` ← AV for the samples of `rows`.
    fn multiply(&self, rows: &RowSet<'_>, v: &Block, t: &mut [f64]) -> Result<(), Error> {
        t.fill(0.0);
        self.genotypes.for_each_span(Order::Ascending, |span| {
            let blocks = t.par_chunks_mut(SAMPLES * v.p()).enumerate();
            blocks.for_each_init(Tile::default, |tile, (i, t)| {
                let end = rows.len().min((i + 1) * SAMPLES);
                self.multiply_block(span, &rows.part(i * SAMPLES..end), v, tile, t);
            });
            self.cancel.go_on()
        })
    }

    /// `t` += AV for the samples of one block and the variants of one span.
    fn multiply_block(&self, span: &Span<'_>, rows: &RowSet<'_>, v: &Block, tile: &mut Tile, t: &mut [f64]) {
        let (d, p) = (span.variants.end, v.p());
        tile.sum.resize(t.len(), 0.0);
        for group in span.variants.clone().step_by(GROUP) {
            if self.cancel.is_abandoned() {
                return; // what was computed is never handed out
            }
            tile.sum.fill(0.0);
            let end = d.min(group + GROUP);
            for first in (group..end).step_by(VARIANTS) {
                let variants = first..end.min(first + VARIANTS);
                let width = variants.len();
                let v = &v.values()[variants.start * p..variants.end * p];
                self.decode(span, variants, rows, &mut tile.values);
                narrow::add_product(&mut tile.sum, p, &tile.values, width, v);
            }
            t.iter_mut().zip(&tile.sum).for_each(|(t, sum)| *t += sum);
        }
    }

    /// `out` ← AᵀT for the samples of `rows`.
    fn combine(&self, rows: &RowSet<'_>, t: &[f64], p: usize, out: &mut [f64]) -> Result<(), Error> {
        self.genotypes.for_each_span(Order::Descending, |span| {
            let first = span.variants.start;
            let tiles = out[first * p..span.variants.end * p].par_chunks_mut(VARIANTS * p).enumerate();
            tiles.for_each_init(Tile::default, |tile, (i, out)| {
                out.fill(0.0);
                if self.cancel.is_abandoned() {
                    return;
                }
                let width = out.len() / p;
                let variants = first + i * VARIANTS..first + i * VARIANTS + width;
                tile.sum.resize(out.len(), 0.0);
                for (block, t) in t.chunks(SAMPLES * p).enumerate() {
                    let samples = rows.part(block * SAMPLES..block * SAMPLES + t.len() / p);
                    self.decode(span, variants.clone(), &samples, &mut tile.values);
                    narrow::gram(&tile.values, width, t, p, &mut tile.sum);
                    out.iter_mut().zip(&tile.sum).for_each(|(out, sum)| *out += sum);
                }
            });
            self.cancel.go_on()
        })
    }

    /// The numbers of A for some variants and samples: one row a sample.
    fn decode(&self, span: &Span<'_>, variants: Range<usize>, rows: &RowSet<'_>, numbers: &mut Vec<f64>) {
        let width = variants.len();
        numbers.resize(rows.len() * width, 0.0);
        for (at, j) in variants.enumerate() {
            let (codes, values) = (span.codes_of(j), &self.values[j]);
            let column = numbers[at..].iter_mut().step_by(width);
            match rows {
                RowSet::Range(range) if range.start.is_multiple_of(4) => {
                    let bytes = codes[range.start / 4..].iter();
                    let of_byte = bytes.flat_map(|byte| [0, 2, 4, 6].map(|shift| byte >> shift & 3));
                    column.zip(of_byte).for_each(|(x, code)| *x = values[usize::from(code)]);
                }
                _ => {
                    let code = |i: usize| Genotypes::code(codes, rows.get(i));
                    column.enumerate().for_each(|(i, x)| *x = values[code(i)]);
                }
            }
            if let Some((holes, map)) = &self.holes {
                fill(&mut numbers[at..], width, rows, |y| prepared(map, j, y), j, holes, codes);
            }
        }
    }
}

/// (y − μ)/s of variant j.
fn prepared(map: &RowMap, j: usize, y: f64) -> f64 {
    (y - map.shift().map_or(0.0, |shift| shift[j])) / map.scale().map_or(1.0, |scale| scale[j])
}

/// Writes what stands in the holes of variant j into its column of a tile.
fn fill(
    column: &mut [f64],
    width: usize,
    rows: &RowSet<'_>,
    value: impl Fn(f64) -> f64,
    j: usize,
    holes: &FilledHoles,
    codes: &[u8],
) {
    match rows {
        RowSet::Range(range) => {
            let (samples, fillings) = holes.among(j, range);
            for (l, y) in samples.iter().zip(fillings) {
                column[(*l as usize - range.start) * width] = value(*y);
            }
        }
        RowSet::List(list) => {
            for (i, &l) in list.iter().enumerate().filter(|(_, l)| Genotypes::code(codes, **l) == MISSING) {
                if let Some(y) = holes.at(l, j) {
                    column[i * width] = value(y);
                }
            }
        }
    }
}

/// The covariance of packed genotypes, centred and scaled implicitly.
pub(crate) struct GenotypeCovariance<'g> {
    rows: PackedRows<'g>,
    map: RowMap,
    /// Scaled to mean 1, so that Σ over n or |S| samples divides by their number.
    weights: Option<Arc<[f64]>>,
    /// How far rounding what stands in holes moves C.
    moved: f64,
}

impl<'g> GenotypeCovariance<'g> {
    /// The operator for genotypes whose rows are mapped so; `missing` are the dosages that take the place of missing ones.
    pub(crate) fn with_map(genotypes: &'g Genotypes, map: RowMap, missing: &[f64]) -> Self {
        let rows = PackedRows::new(genotypes, map.shift(), map.scale(), missing);
        Self { rows, map, weights: None, moved: 0.0 }
    }

    /// The same with a weight for every sample: C = Σwₗaₗaₗᵀ/Σwₗ.
    pub(crate) fn with_weights(mut self, weights: &[f64]) -> Result<Self, Error> {
        let n = self.rows.genotypes.n_rows();
        check_weights(n, weights)?;
        let mean = weights.iter().sum::<f64>() / n as f64;
        self.weights = Some(weights.iter().map(|w| w / mean).collect());
        Ok(self)
    }

    /// The same with these numbers in the holes.
    #[must_use]
    pub(crate) fn filled_with(mut self, holes: &'g FilledHoles) -> Self {
        self.rows.holes = Some((holes, self.map.clone()));
        self
    }

    /// Counts that what stands in holes was rounded, which moves C by this much.
    #[must_use]
    pub(crate) fn moved_by(self, moved: f64) -> Self {
        Self { moved, ..self }
    }

    /// Breaks off in the middle of a pass when `token` says so.
    #[must_use]
    pub(crate) fn abandoned_by(mut self, token: &CancelToken) -> Self {
        self.rows.cancel = token.clone();
        self
    }

    /// The map of rows x ↦ D⁻¹(x − μ).
    pub(crate) fn map(&self) -> &RowMap {
        &self.map
    }

    /// Bytes read from where the codes lie.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.rows.genotypes.bytes_read()
    }

    /// A bound for sums over `n` samples.
    fn rounding(&self, n: usize) -> RoundingBound {
        let (d, n) = (self.rows.genotypes.n_cols(), n.max(1));
        let in_dot = d.min(GROUP) + d.div_ceil(GROUP);
        let over_samples = n.min(SAMPLES) + n.div_ceil(SAMPLES);
        let of_weights = if self.weights.is_some() { ROUNDINGS_OF_A_WEIGHT } else { 0 };
        let relative = rounding_of_sum(in_dot + over_samples + ROUNDINGS_OF_A_VALUE + of_weights);
        // Rows that are not centred are as long as their second moment says, which is the trace then.
        RoundingBound::of_sums(relative, self.map.total_variance()).plus(self.map.blur() + self.moved)
    }
}

impl CovarianceOperator for GenotypeCovariance<'_> {
    fn shape(&self) -> Shape {
        Shape { n: self.rows.genotypes.n_rows(), d: self.rows.genotypes.n_cols() }
    }

    fn total_variance(&self) -> f64 {
        self.map.total_variance()
    }

    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let (v, Shape { n, d }) = (product.v, self.shape());
        let p = v.p();
        if v.d() != d {
            return Err(Error::shape("coordinates of the vectors to multiply", d, v.d()));
        }
        reshape(out, d, p);
        let rows = match product.rows {
            Rows::All => RowSet::Range(0..n),
            Rows::Batch(rows) => RowSet::List(rows),
        };
        if p > 0 {
            let mut t = vec![0.0; rows.len() * p];
            self.rows.multiply(&rows, v, &mut t)?;
            if let Some(weights) = &self.weights {
                for (i, t) in t.chunks_exact_mut(p).enumerate() {
                    let w = weights[rows.get(i)];
                    t.iter_mut().for_each(|t| *t *= w);
                }
            }
            self.rows.combine(&rows, &t, p, out.values_mut())?;
        }
        self.rows.cancel.go_on()?;
        Ok(self.rounding(rows.len()))
    }
}

/// Memory of a thread: the numbers of a tile, and a sum.
#[derive(Default)]
struct Tile {
    values: Vec<f64>,
    sum: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Dense, Matrix, VariantSource, random_filling};
    use crate::operator::{Covariance, Products};
    use crate::{Centering, ColumnStatistics, Preprocessing, Scaling};

    /// Genotypes in which one in eleven is missing, and the rows that they stand for.
    fn problem(n: usize, d: usize) -> (Genotypes, Matrix<'static>, ColumnStatistics) {
        let stride = n.div_ceil(4);
        let noise = random_filling(5, d * stride);
        let codes: Vec<u8> = noise.iter().map(|x| (x.abs() * 9973.0) as u64 as u8).collect();
        let g = Genotypes::new(n, d, codes).unwrap();
        let statistics = ColumnStatistics::of_genotypes(&g).unwrap();
        let values = g.dosages(0..n, statistics.mean()).unwrap();
        (g, Dense::new(values, n, d).unwrap().into(), statistics)
    }

    #[test]
    fn products_are_those_of_the_rows_that_codes_stand_for() {
        let scalings = [Scaling::None, Scaling::Std, Scaling::MinMax, Scaling::Hwe];
        for (n, d) in [(1, 3), (37, 5), (1031, 37), (6, 1111), (515, 530)] {
            let (g, x, statistics) = problem(n, d);
            for scaling in scalings {
                for centering in [Centering::Mean, Centering::None] {
                    let map = Preprocessing { centering, scaling }.row_map(&statistics);
                    let mut packed = GenotypeCovariance::with_map(&g, map.clone(), statistics.mean());
                    let mut dense = Covariance::with_map(&x, map);
                    let batch: Vec<usize> = (0..n).filter(|l| l % 3 != 1).chain([n - 1]).collect();
                    for p in [1, 3, 17] {
                        let v = Block::from_values(d, p, random_filling(7, d * p)).unwrap();
                        let longest = (0..p).map(|i| crate::block::norm(&v.column(i))).fold(0.0, f64::max);
                        for rows in [None, Some(&batch)] {
                            let [mut got, mut want] = [0, 1].map(|_| Block::zeros(0, 0));
                            let bound = match rows {
                                None => {
                                    dense.apply(&v, &mut want).unwrap();
                                    packed.apply(&v, &mut got).unwrap()
                                }
                                Some(rows) => {
                                    dense.apply_batch(rows, &v, &mut want).unwrap();
                                    packed.apply_batch(rows, &v, &mut got).unwrap()
                                }
                            };
                            // Rows of a batch may be longer than others, up to n times.
                            let both = 2.0
                                * bound.of_image()
                                * longest
                                * if rows.is_some() { n as f64 } else { 1.0 };
                            for (got, want) in got.values().iter().zip(want.values()) {
                                assert!(
                                    (got - want).abs() <= both,
                                    "{n} × {d}, p = {p}: {got} {want} ± {both:e}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn weights_and_numbers_in_holes_are_those_of_the_dense_rows() {
        for (n, d) in [(37, 5), (1031, 37), (6, 1111)] {
            let (g, x, _) = problem(n, d);
            let weights: Vec<f64> = (0..n).map(|l| f64::from((l % 5) as u32) / 2.0 + 0.1).collect();
            let mut holes = FilledHoles::of(&g, &vec![0.0; d]).unwrap();
            for (j, (samples, values)) in holes.variants_mut().into_iter().enumerate() {
                samples
                    .iter()
                    .zip(values)
                    .for_each(|(l, y)| *y = 0.3 + (j % 3) as f64 - 1e-3 * f64::from(*l));
            }
            let mut filled = vec![0.0; n * d];
            for l in 0..n {
                x.for_each_in_row(l, |j, x| filled[l * d + j] = holes.at(l, j).unwrap_or(x));
            }
            let x: Matrix = Dense::new(filled, n, d).unwrap().into();
            for weights in [None, Some(&weights[..])] {
                let statistics =
                    ColumnStatistics::of_completed_genotypes(&g, weights, Some(&holes), None).unwrap();
                let map = Preprocessing::STANDARDIZE.row_map(&statistics);
                let packed =
                    GenotypeCovariance::with_map(&g, map.clone(), statistics.mean()).filled_with(&holes);
                let (mut packed, mut dense) = match weights {
                    None => (packed, Covariance::with_map(&x, map)),
                    Some(w) => (
                        packed.with_weights(w).unwrap(),
                        Covariance::with_map_and_weights(&x, map, w).unwrap(),
                    ),
                };
                let v = Block::from_values(d, 3, random_filling(7, 3 * d)).unwrap();
                let longest = (0..3).map(|i| crate::block::norm(&v.column(i))).fold(0.0, f64::max);
                let batch: Vec<usize> = (0..n).filter(|l| l % 3 != 1).chain([n - 1]).collect();
                for rows in [None, Some(&batch)] {
                    let [mut got, mut want] = [0, 1].map(|_| Block::zeros(0, 0));
                    let bound = match rows {
                        None => {
                            dense.apply(&v, &mut want).unwrap();
                            packed.apply(&v, &mut got).unwrap()
                        }
                        Some(rows) => {
                            dense.apply_batch(rows, &v, &mut want).unwrap();
                            packed.apply_batch(rows, &v, &mut got).unwrap()
                        }
                    };
                    let both = 2.0 * bound.of_image() * longest * if rows.is_some() { n as f64 } else { 1.0 };
                    for (got, want) in got.values().iter().zip(want.values()) {
                        assert!((got - want).abs() <= both, "{n} × {d}: {got} {want} ± {both:e}");
                    }
                }
            }
        }
    }

    #[test]
    fn codes_give_the_same_bits_wherever_they_are() {
        struct Elsewhere(Vec<u8>, usize);
        impl VariantSource for Elsewhere {
            fn read(&self, first: usize, codes: &mut [u8]) -> Result<(), Error> {
                let at = first * self.1;
                codes.copy_from_slice(&self.0[at..at + codes.len()]);
                Ok(())
            }
        }
        // More variants than a span of so many samples has.
        let (n, d) = (9000, 2500);
        let stride = n / 4;
        let codes: Vec<u8> = (0..d * stride).map(|i| (i * i / 7 + i / 3) as u8).collect();
        let read = Arc::new(Elsewhere(codes.clone(), stride));
        let everywhere = [
            Genotypes::new(n, d, codes.clone()).unwrap(),
            Genotypes::mapped(n, d, Arc::new(codes)).unwrap(),
            Genotypes::read_from(n, d, read).unwrap(),
        ];
        let v = Block::from_values(d, 2, random_filling(3, 2 * d)).unwrap();
        let images = everywhere.map(|g| {
            let statistics = ColumnStatistics::of_genotypes(&g).unwrap();
            let map =
                Preprocessing { centering: Centering::Mean, scaling: Scaling::Hwe }.row_map(&statistics);
            let mut packed = GenotypeCovariance::with_map(&g, map, statistics.mean());
            let mut image = Block::zeros(0, 0);
            packed.apply(&v, &mut image).unwrap();
            (image, packed.bytes_read() as usize, g.bytes())
        });
        assert_eq!(images[0].0, images[1].0);
        assert_eq!(images[0].0, images[2].0);
        // Once for the statistics, and twice for a product.
        assert_eq!(images[2].1, 3 * images[2].2);
    }

    #[test]
    fn any_number_of_threads_gives_the_same_bits() {
        let (g, _, statistics) = problem(1500, 300);
        let map = Preprocessing { centering: Centering::Mean, scaling: Scaling::Hwe }.row_map(&statistics);
        let v = Block::from_values(300, 5, random_filling(3, 1500)).unwrap();
        let image = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut packed = GenotypeCovariance::with_map(&g, map.clone(), statistics.mean());
            let mut image = Block::zeros(0, 0);
            pool.install(|| packed.apply(&v, &mut image)).unwrap();
            image
        };
        assert_eq!(image(1), image(2));
        assert_eq!(image(1), image(7));
    }
}
