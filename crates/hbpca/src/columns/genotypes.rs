//! Statistics of packed genotypes: a variant has four codes, and sums over its samples are those of their weights.
//!
//! Without weights they are counts, and exact. Otherwise means are told relative to the dosage c of the largest weight,
//!
//! ```text
//! μ = c + Σw(x − c)/Σw,      M₂ = Σw(x − μ)²
//! ```
//!
//! with sums in runs, so that a mean is as accurate as that of other data. What is missing is the mean of what is known, and changes neither that nor
//! M₂, or it holds a number of its own.

use rayon::prelude::*;

use super::ColumnStatistics;
use super::statistics::check_weights;
use crate::Error;
use crate::matrix::{Counts, FilledHoles, Genotypes, MissingScan, Order};

/// Samples whose weights are added one after the other; a multiple of 4.
const RUN: usize = 64;

/// Mean, M₂, minimum and maximum of a variant.
type Column = (f64, f64, f64, f64);

impl ColumnStatistics {
    /// Of genotypes; what is missing is the mean.
    pub fn of_genotypes(genotypes: &Genotypes) -> Result<Self, Error> {
        Self::of_completed_genotypes(genotypes, None, None, None)
    }

    /// The same with a weight for every sample.
    pub fn of_weighted_genotypes(genotypes: &Genotypes, weights: &[f64]) -> Result<Self, Error> {
        Self::of_completed_genotypes(genotypes, Some(weights), None, None)
    }

    /// The same with weights or without, and with numbers in the holes or the mean; `scan` finds out on the way what is missing.
    pub(crate) fn of_completed_genotypes(
        genotypes: &Genotypes,
        weights: Option<&[f64]>,
        holes: Option<&FilledHoles>,
        mut scan: Option<&mut MissingScan>,
    ) -> Result<Self, Error> {
        let n = genotypes.n_rows();
        weights.map_or(Ok(()), |weights| check_weights(n, weights))?;
        let mut columns: Vec<Column> = Vec::with_capacity(genotypes.n_cols());
        genotypes.for_each_span(Order::Ascending, |span| {
            let column = |j: usize| match (weights, holes) {
                (None, None) => counted(Counts::of(span.codes_of(j), n)),
                _ => weighed(span.codes_of(j), n, weights, holes.map(|holes| holes.of_variant(j))),
            };
            if let Some(scan) = &mut scan {
                scan.add(span);
            }
            columns.par_extend(span.variants.clone().into_par_iter().map(column));
            Ok(())
        })?;
        let weight = weights.map_or(n as f64, |weights| weights.iter().sum());
        let mean = columns.iter().map(|column| column.0).collect();
        let variance: Vec<f64> = columns.iter().map(|column| column.1 / weight).collect();
        let (min, max) = columns.iter().map(|column| (column.2, column.3)).unzip();
        let statistics = Self::from_columns(n, mean, &variance, min, max)?;
        Ok(if weights.is_some() { statistics.weighing(weight) } else { statistics })
    }
}

fn counted(counts: Counts) -> Column {
    let (min, max) = counts.range();
    (counts.mean(), counts.squares(), min, max)
}

/// The same with weights, and with numbers in the holes of these samples.
fn weighed(codes: &[u8], n: usize, weights: Option<&[f64]>, holes: Option<(&[u32], &[f64])>) -> Column {
    let weight = |l: usize| weights.map_or(1.0, |weights| weights[l]);
    let [two, _, one, none] = if let Some(weights) = weights {
        weights_of_codes(codes, weights)
    } else {
        let Counts { two, one, none, missing } = Counts::of(codes, n);
        [two, missing, one, none].map(|count| count as f64)
    };
    let dosages = [(0.0, none), (1.0, one), (2.0, two)];
    let holes = holes.unwrap_or_default();
    let filled =
        || holes.0.iter().zip(holes.1).map(|(&l, &y)| (y, weight(l as usize))).filter(|(_, w)| *w > 0.0);
    let heavier = |a: (f64, f64), b: (f64, f64)| if b.1 > a.1 { b } else { a };
    let (pivot, _) = dosages.into_iter().fold((0.0, 0.0), heavier);
    let all = none + one + two + in_runs(filled().map(|(_, w)| w));
    if all == 0.0 {
        return (0.0, 0.0, 0.0, 0.0);
    }
    let known: f64 = dosages.into_iter().map(|(x, w)| w * (x - pivot)).sum();
    let offset = (known + in_runs(filled().map(|(y, w)| w * (y - pivot)))) / all;
    let square = |(x, w): (f64, f64)| w * (x - pivot - offset).powi(2);
    let squares = dosages.into_iter().map(square).sum::<f64>() + in_runs(filled().map(square));
    let there = dosages.into_iter().filter(|(_, w)| *w > 0.0).chain(filled()).map(|(x, _)| x);
    let (min, max) = there.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), x| (x.min(min), x.max(max)));
    // The mean lies within the range, whatever rounding says.
    ((pivot + offset).max(min).min(max), squares, min, max)
}

/// How much weighs what has each code.
fn weights_of_codes(codes: &[u8], weights: &[f64]) -> [f64; 4] {
    let mut total = [0.0; 4];
    for (codes, weights) in codes.chunks(RUN / 4).zip(weights.chunks(RUN)) {
        let mut run = [0.0; 4];
        for (byte, weights) in codes.iter().zip(weights.chunks(4)) {
            for (i, w) in weights.iter().enumerate() {
                run[usize::from(byte >> (2 * i) & 3)] += w;
            }
        }
        total.iter_mut().zip(run).for_each(|(total, run)| *total += run);
    }
    total
}

/// A sum of sums of a run each.
fn in_runs(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut run, mut count) = (0.0, 0.0, 0);
    for x in terms {
        run += x;
        count += 1;
        if count == RUN {
            total += run;
            (run, count) = (0.0, 0);
        }
    }
    total + run
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Dense, Matrix, random_filling};

    /// Genotypes in which one in four is missing, and their codes repeated as counts say.
    fn problem(n: usize, d: usize, counts: &[usize]) -> (Genotypes, Genotypes) {
        let stride = n.div_ceil(4);
        let codes: Vec<u8> =
            random_filling(5, d * stride).iter().map(|x| (x.abs() * 9973.0) as u64 as u8).collect();
        let rows: Vec<usize> = (0..n).flat_map(|l| vec![l; counts[l]]).collect();
        let mut repeated = vec![0_u8; d * rows.len().div_ceil(4)];
        for j in 0..d {
            let to = &mut repeated[j * rows.len().div_ceil(4)..];
            for (at, &l) in rows.iter().enumerate() {
                let code = Genotypes::code(&codes[j * stride..], l);
                to[at / 4] |= (code as u8) << (2 * (at % 4));
            }
        }
        (Genotypes::new(n, d, codes).unwrap(), Genotypes::new(rows.len(), d, repeated).unwrap())
    }

    #[test]
    fn integer_weights_are_repeated_samples() {
        let n = 203;
        let counts: Vec<usize> = (0..n).map(|l| (l * l + l / 7) % 4).collect();
        let weights: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
        let (g, repeated) = problem(n, 9, &counts);
        let got = ColumnStatistics::of_weighted_genotypes(&g, &weights).unwrap();
        let want = ColumnStatistics::of_genotypes(&repeated).unwrap();
        assert_eq!((got.min(), got.max()), (want.min(), want.max()));
        assert!((got.weight() - want.weight()).abs() < 1e-12);
        for j in 0..9 {
            assert!((got.mean()[j] - want.mean()[j]).abs() <= 8.0 * f64::EPSILON);
            assert!((got.variance()[j] - want.variance()[j]).abs() <= 16.0 * f64::EPSILON);
        }
    }

    #[test]
    fn filled_holes_are_those_of_the_dense_matrix() {
        let (n, d) = (150, 7);
        let weights: Vec<f64> = (0..n).map(|l| f64::from(l as u32 % 3) / 2.0).collect();
        let (g, _) = problem(n, d, &vec![1; n]);
        let mut holes = FilledHoles::of(&g, &vec![0.0; d]).unwrap();
        for (j, (samples, values)) in holes.variants_mut().into_iter().enumerate() {
            samples.iter().zip(values).for_each(|(l, y)| *y = 0.7 * j as f64 - 0.01 * f64::from(*l));
        }
        let mut rows = g.dosages(0..n, &vec![f64::NAN; d]).unwrap();
        for (at, x) in rows.iter_mut().enumerate().filter(|(_, x)| x.is_nan()) {
            *x = holes.at(at / d, at % d).unwrap();
        }
        let x: Matrix = Dense::new(rows, n, d).unwrap().into();
        for weights in [None, Some(&weights[..])] {
            let got = ColumnStatistics::of_completed_genotypes(&g, weights, Some(&holes), None).unwrap();
            let want = match weights {
                None => ColumnStatistics::new(&x).unwrap(),
                Some(weights) => ColumnStatistics::weighted(&x, weights).unwrap(),
            };
            assert_eq!((got.min(), got.max()), (want.min(), want.max()));
            for j in 0..d {
                assert!((got.mean()[j] - want.mean()[j]).abs() <= 1e-14);
                assert!((got.variance()[j] - want.variance()[j]).abs() <= 1e-13);
            }
        }
    }

    #[test]
    fn a_weight_of_zero_leaves_out_what_nobody_else_has() {
        // Codes of four samples: none, one, two, missing.
        let g = Genotypes::new(4, 1, vec![0b0100_1011]).unwrap();
        let s = ColumnStatistics::of_weighted_genotypes(&g, &[3.0, 1.0, 0.0, 2.0]).unwrap();
        assert_eq!((s.min()[0].to_bits(), s.max()[0].to_bits()), (0.0_f64.to_bits(), 1.0_f64.to_bits()));
        assert_eq!((s.mean()[0].to_bits(), s.weight().to_bits()), (0.25_f64.to_bits(), 6.0_f64.to_bits()));
        assert!((s.variance()[0] - 0.75 / 6.0).abs() < 1e-15);
        let s = ColumnStatistics::of_weighted_genotypes(&g, &[0.0, 0.0, 0.0, 2.0]).unwrap();
        assert_eq!((s.mean()[0].to_bits(), s.variance()[0].to_bits()), (0, 0));
        assert!(ColumnStatistics::of_weighted_genotypes(&g, &[0.0; 4]).is_err());
        assert!(ColumnStatistics::of_weighted_genotypes(&g, &[1.0; 3]).is_err());
    }
}
