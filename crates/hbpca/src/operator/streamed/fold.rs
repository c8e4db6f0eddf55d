//! The first pass: statistics and products at the same time.
//!
//! Products need μ and D, which only a full pass tells. With guesses μ₀ and D₀ from a sample, V′ = D₀⁻¹V and S_m the second
//! moment of the rows about m,
//!
//! ```text
//! Y = Σ (x − μ₀)((x − μ₀)ᵀV′)                                   while the statistics are gathered
//! S_m V′ = Y/n − (x̄ − μ₀)(x̄ − μ₀)ᵀV′ + (x̄ − m)(x̄ − m)ᵀV′         m = μ: what the map subtracts
//! C (DV′) = D⁻¹ S_μ V′                                          since C = D⁻¹ S_μ D⁻¹
//! DV′ = XR,  CX = (D⁻¹ S_μ V′) R⁻¹                               X orthonormal
//! ```
//!
//! Nothing is approximate but the choice of the space: X spans DD₀⁻¹V instead of V, and its images are exact.
//!
//! Rounding. A column v of V′ scaled so that ‖Dv‖ = 1 has an image that errs by ρM with M = (1/n)Σ‖D⁻¹(x − μ₀)‖² =
//! (1/n)Σ‖D⁻¹(x − x̄)‖² + ‖D⁻¹(x̄ − μ₀)‖², as for any sum of products (ρ of `rounding_of_moment`); the two corrections err by their own
//! size times that of a dot. R⁻¹ stretches all p errors together by at most ‖R⁻¹‖, which is computed.
//! Where guesses are so far off that ‖R⁻¹‖ > 4 the images are thrown away and computed in a pass of their own.

use super::{MOST_MERGES, Streamed};
use crate::columns::{ColumnStatistics, RowMap};
use crate::linalg::{gram, product, svqb_transform};
use crate::operator::products::sum::unscale;
use crate::operator::{Precision, Products};
use crate::rounding::{RoundingBound, rounding_of_sum};
use crate::{Block, Error};

/// ‖R⁻¹‖ beyond which the images of the first pass are not used.
pub(in crate::operator) const MOST_STRETCH: f64 = 4.0;

impl Streamed<'_> {
    /// X ← a basis of DD₀⁻¹ span X and Z ← CX, in the pass that gathers the statistics.
    pub(super) fn fold_image(
        &mut self,
        guess: &RowMap,
        x: &mut Block,
        z: &mut Block,
    ) -> Result<RoundingBound, Error> {
        let mut gathered = self.gathering();
        self.sum_all(guess, x, Precision::Double, Some(&mut gathered), z)?;
        self.know(gathered.finish()?);
        let fold = self.fold(guess);
        let stretch = fold.image(self.n_rows(), x, z)?;
        let (moment, folding) = (fold.moment(), fold.rounding());
        let combining = fold.rounding_of_combining(x.p());
        if stretch > MOST_STRETCH {
            self.statistics_passes += 1;
            return self.apply(x, z);
        }
        let rounding = self.rounding_of_moment(moment, 1).of_image();
        Ok(RoundingBound::new(stretch * (rounding + folding + combining) + self.moved))
    }

    /// C about the guessed mean becomes C about the map's shift, D left aside; returns the bound on its rounding.
    pub(super) fn fold_formed(&self, guess: &RowMap, c: &mut Block) -> RoundingBound {
        let fold = self.fold(guess);
        fold.formed(c);
        self.rounding_of_moment(fold.moment(), MOST_MERGES).plus(fold.rounding() + self.moved)
    }

    fn fold<'a>(&'a self, guess: &'a RowMap) -> Fold<'a> {
        let (map, statistics) = self.columns().unwrap_or_else(|| unreachable!("just gathered"));
        Fold::new(statistics, guess, map, self.reader.source.is_sparse())
    }
}

/// Sums about a guessed mean, and what the statistics make of them.
pub(in crate::operator) struct Fold<'a> {
    statistics: &'a ColumnStatistics,
    guess: &'a RowMap,
    map: &'a RowMap,
    sparse: bool,
    offsets: Offsets,
}

impl<'a> Fold<'a> {
    pub(in crate::operator) fn new(
        statistics: &'a ColumnStatistics,
        guess: &'a RowMap,
        map: &'a RowMap,
        sparse: bool,
    ) -> Self {
        Self { statistics, guess, map, sparse, offsets: Offsets::new(statistics, guess, map) }
    }

    /// Z = Y of n rows becomes CX, and X the basis it is the image of; returns ‖R⁻¹‖.
    pub(in crate::operator) fn image(&self, n: usize, x: &mut Block, z: &mut Block) -> Result<f64, Error> {
        let p = x.p();
        unscale(self.guess, p, x.values_mut()); // V′ = D₀⁻¹X
        z.scale(1.0 / n as f64);
        self.offsets.correct(x, z);
        unscale(self.map, p, z.values_mut());
        match self.map.scale() {
            None => Ok(1.0), // X is what it was
            Some(scale) => {
                let rows = x.values_mut().chunks_exact_mut(p).zip(scale);
                rows.for_each(|(row, s)| row.iter_mut().for_each(|v| *v *= s));
                orthonormalize(x, z)
            }
        }
    }

    /// X and Z are combined with the same p×p coefficients, twice, and round alike.
    pub(in crate::operator) fn rounding_of_combining(&self, p: usize) -> f64 {
        4.0 * rounding_of_sum(p) * self.map.total_variance()
    }

    /// What the corrections err by.
    pub(in crate::operator) fn rounding(&self) -> f64 {
        self.offsets.rounding(self.map)
    }

    /// C about the guessed mean becomes C about the map's shift, D left aside.
    pub(in crate::operator) fn formed(&self, c: &mut Block) {
        let (d, offsets) = (c.d(), &self.offsets);
        for (i, row) in c.values_mut().chunks_exact_mut(d).enumerate() {
            for (j, c) in row.iter_mut().enumerate() {
                *c += offsets.wanted[i] * offsets.wanted[j] - offsets.guessed[i] * offsets.guessed[j];
            }
        }
    }

    /// M of the module's text with both corrections; for compressed rows, whose μ₀ is subtracted after the products, relative to
    /// the origin instead.
    pub(in crate::operator) fn moment(&self) -> f64 {
        let Self { statistics, guess, map, sparse, offsets } = self;
        let variance = statistics.variance();
        let column = |j: usize| {
            let from_origin =
                guess.shift().map_or(0.0, |shift| shift[j].powi(2)) + statistics.mean()[j].powi(2);
            let about = if *sparse { from_origin } else { offsets.guessed[j].powi(2) };
            let corrections = offsets.guessed[j].powi(2) + offsets.wanted[j].powi(2);
            let inverse = map.inverse_scale(j);
            (variance[j] + about + corrections) * inverse * inverse
        };
        (0..variance.len()).map(column).sum()
    }
}

/// x̄ − μ₀ and x̄ − m.
struct Offsets {
    guessed: Vec<f64>,
    wanted: Vec<f64>,
}

impl Offsets {
    fn new(statistics: &ColumnStatistics, guess: &RowMap, map: &RowMap) -> Self {
        let from = |shift: Option<&[f64]>| {
            let less = |(j, mean): (usize, &f64)| mean - shift.map_or(0.0, |shift| shift[j]);
            statistics.mean().iter().enumerate().map(less).collect()
        };
        Self { guessed: from(guess.shift()), wanted: from(map.shift()) }
    }

    /// What the corrections err by: dots of d products, and means that are off by δ, ‖D⁻¹δ‖² at most the map's [blur](RowMap::blur).
    fn rounding(&self, map: &RowMap) -> f64 {
        let size = |offset: &[f64]| -> f64 {
            offset.iter().enumerate().map(|(j, x)| (x * map.inverse_scale(j)).powi(2)).sum()
        };
        let (guessed, wanted) = (size(&self.guessed), size(&self.wanted));
        let dots = rounding_of_sum(self.guessed.len()) * (guessed + wanted);
        dots + 2.0 * (map.blur() * guessed.max(wanted)).sqrt() + map.blur()
    }

    /// Z ← Z − (x̄ − μ₀)(x̄ − μ₀)ᵀV′ + (x̄ − m)(x̄ − m)ᵀV′.
    fn correct(&self, v: &Block, z: &mut Block) {
        for (offset, sign) in [(&self.guessed, -1.0), (&self.wanted, 1.0)] {
            if offset.iter().all(|x| *x == 0.0) {
                continue;
            }
            let p = v.p();
            let mut along = vec![0.0; p];
            for (row, x) in v.values().chunks_exact(p).zip(offset) {
                along.iter_mut().zip(row).for_each(|(sum, v)| *sum += v * x);
            }
            for (row, x) in z.values_mut().chunks_exact_mut(p).zip(offset) {
                row.iter_mut().zip(&along).for_each(|(z, along)| *z += sign * x * along);
            }
        }
    }
}

/// Makes the columns of X orthonormal and transforms Z alike; returns ‖R⁻¹‖ of X = QR, columns of X brought to length 1 first.
fn orthonormalize(x: &mut Block, z: &mut Block) -> Result<f64, Error> {
    let mut stretch = None;
    for _ in 0..2 {
        // The second round removes what the first leaves: its own rounding times the condition of X.
        let (transform, least) = svqb_transform(&gram(x, x))?;
        stretch.get_or_insert(1.0 / least.sqrt());
        *x = product(x, transform.as_ref());
        *z = product(z, transform.as_ref());
    }
    Ok(stretch.unwrap_or(1.0))
}
