//! C = (1/n)Σaₗaₗᵀ of packed genotypes: codes of two bits become numbers a tile at a time.
//!
//! A variant has four values a = D⁻¹(x − μ), one for each code; what is missing has that of the mean, 0 where that is subtracted. With A n×d,
//!
//! ```text
//! T ← AV       samples in blocks, each by one thread; variants in order, sums of a group added to T
//! Y ← AᵀT      variants in tiles, each by one thread; samples in order, sums of a block added to Y
//! ```
//!
//! Every number is summed by one thread in one order: the same bits for any number of them. The codes are walked over twice, which
//! takes an eighth of the bytes that one walk over f32 would.

use rayon::prelude::*;

use super::{CovarianceOperator, Product, RoundingBound, Rows, Shape, reshape};
use crate::columns::RowMap;
use crate::kernels::{RowSet, narrow};
use crate::matrix::Genotypes;
use crate::rounding::rounding_of_sum;
use crate::{Block, CancelToken, Error};

/// Samples of a tile.
const SAMPLES: usize = 512;
/// Variants of a tile: with that many samples 64 KB, which stay in cache.
const VARIANTS: usize = 16;
/// Variants whose sum is gathered before it is added to that of others.
const GROUP: usize = 512;
/// Roundings of a value: (x − μ)/s, in both factors of a product.
const ROUNDINGS_OF_A_VALUE: usize = 6;

/// Packed genotypes and what their codes stand for: the rows a.
pub(crate) struct PackedRows<'g> {
    genotypes: &'g Genotypes,
    /// For each variant the number that each code stands for.
    values: Vec<[f64; 4]>,
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
        Self { genotypes, values, cancel: CancelToken::default() }
    }

    /// AV, one row a sample.
    pub(crate) fn product(&self, v: &Block) -> Vec<f64> {
        let mut t = vec![0.0; self.genotypes.n_rows() * v.p()];
        if v.p() > 0 {
            self.multiply(&RowSet::Range(0..self.genotypes.n_rows()), v, &mut t);
        }
        t
    }

    /// `t` ← AV for the samples of `rows`.
    fn multiply(&self, rows: &RowSet<'_>, v: &Block, t: &mut [f64]) {
        let blocks = t.par_chunks_mut(SAMPLES * v.p()).enumerate();
        blocks.for_each_init(Tile::default, |tile, (i, t)| {
            let end = rows.len().min((i + 1) * SAMPLES);
            self.multiply_block(&rows.part(i * SAMPLES..end), v, tile, t);
        });
    }

    /// The same for the samples of one block.
    fn multiply_block(&self, rows: &RowSet<'_>, v: &Block, tile: &mut Tile, t: &mut [f64]) {
        let (d, p) = (self.genotypes.n_cols(), v.p());
        t.fill(0.0);
        tile.sum.resize(t.len(), 0.0);
        for group in (0..d).step_by(GROUP) {
            if self.cancel.is_abandoned() {
                return; // what was computed is never handed out
            }
            tile.sum.fill(0.0);
            let end = d.min(group + GROUP);
            for first in (group..end).step_by(VARIANTS) {
                let variants = first..end.min(first + VARIANTS);
                let width = variants.len();
                let v = &v.values()[variants.start * p..variants.end * p];
                tile.decode(self.genotypes, &self.values, variants, rows);
                narrow::add_product(&mut tile.sum, p, &tile.values, width, v);
            }
            t.iter_mut().zip(&tile.sum).for_each(|(t, sum)| *t += sum);
        }
    }

    /// `out` ← AᵀT for the samples of `rows`.
    fn combine(&self, rows: &RowSet<'_>, t: &[f64], p: usize, out: &mut [f64]) {
        let tiles = out.par_chunks_mut(VARIANTS * p).enumerate();
        tiles.for_each_init(Tile::default, |tile, (i, out)| {
            out.fill(0.0);
            if self.cancel.is_abandoned() {
                return;
            }
            let width = out.len() / p;
            tile.sum.resize(out.len(), 0.0);
            for (block, t) in t.chunks(SAMPLES * p).enumerate() {
                let samples = rows.part(block * SAMPLES..block * SAMPLES + t.len() / p);
                tile.decode(self.genotypes, &self.values, i * VARIANTS..i * VARIANTS + width, &samples);
                narrow::gram(&tile.values, width, t, p, &mut tile.sum);
                out.iter_mut().zip(&tile.sum).for_each(|(out, sum)| *out += sum);
            }
        });
    }
}

/// The covariance of packed genotypes, centred and scaled implicitly.
pub(crate) struct GenotypeCovariance<'g> {
    rows: PackedRows<'g>,
    map: RowMap,
}

impl<'g> GenotypeCovariance<'g> {
    /// The operator for genotypes whose rows are mapped so; `missing` are the dosages that take the place of missing ones.
    pub(crate) fn with_map(genotypes: &'g Genotypes, map: RowMap, missing: &[f64]) -> Self {
        Self { rows: PackedRows::new(genotypes, map.shift(), map.scale(), missing), map }
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

    /// A bound for sums over `n` samples.
    fn rounding(&self, n: usize) -> RoundingBound {
        let (d, n) = (self.rows.genotypes.n_cols(), n.max(1));
        let in_dot = d.min(GROUP) + d.div_ceil(GROUP);
        let over_samples = n.min(SAMPLES) + n.div_ceil(SAMPLES);
        let relative = rounding_of_sum(in_dot + over_samples + ROUNDINGS_OF_A_VALUE);
        // Rows that are not centred are as long as their second moment says, which is the trace then.
        RoundingBound::of_sums(relative, self.map.total_variance()).plus(self.map.blur())
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
            self.rows.multiply(&rows, v, &mut t);
            self.rows.combine(&rows, &t, p, out.values_mut());
        }
        self.rows.cancel.go_on()?;
        Ok(self.rounding(rows.len()))
    }
}

/// The numbers of A for some variants and samples: one row a sample.
#[derive(Default)]
struct Tile {
    values: Vec<f64>,
    sum: Vec<f64>,
}

impl Tile {
    /// Turns codes into numbers.
    fn decode(
        &mut self,
        genotypes: &Genotypes,
        values: &[[f64; 4]],
        variants: std::ops::Range<usize>,
        rows: &RowSet<'_>,
    ) {
        let width = variants.len();
        self.values.resize(rows.len() * width, 0.0);
        for (at, j) in variants.enumerate() {
            let (codes, values) = (genotypes.variant(j), &values[j]);
            let column = self.values[at..].iter_mut().step_by(width);
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Dense, Matrix, random_filling};
    use crate::operator::{Covariance, Products};
    use crate::{Centering, ColumnStatistics, Preprocessing, Scaling};

    /// Genotypes in which one in eleven is missing, and the rows that they stand for.
    fn problem(n: usize, d: usize) -> (Genotypes, Matrix<'static>, ColumnStatistics) {
        let stride = n.div_ceil(4);
        let noise = random_filling(5, d * stride);
        let codes: Vec<u8> = noise.iter().map(|x| (x.abs() * 9973.0) as u64 as u8).collect();
        let g = Genotypes::new(n, d, codes).unwrap();
        let statistics = ColumnStatistics::of_genotypes(&g).unwrap();
        let values = g.dosages(0..n, statistics.mean());
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
