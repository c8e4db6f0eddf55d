//! The inner loops: the only home of SIMD and of `unsafe`.
//!
//! Every kernel is a plain function of slices, compiled for AVX-512, for AVX2 with FMA and for the baseline, and
//! chosen at run time. Beside each stands a safe twin written as the formula, and a test that they agree.

#![allow(unsafe_code, reason = "intrinsics and raw pointers live here and nowhere else")]
#![allow(clippy::too_many_arguments, reason = "a kernel names every operand of its formula")]

mod csr;
mod dense;
mod lanes;
mod level;
pub(crate) mod narrow;
mod pack;
mod panel;
#[cfg(test)]
mod plain;
mod skipping;
mod stream;
mod summary;
mod symmetric;
pub(crate) mod tall;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

/// Dense rows whose sum is gathered before it is added to that of others. Equal rows round alike: sums of sums keep such errors small. Changing over takes
/// a hundredth of the time; from single precision to f64, where it takes more, it is done half as often.
pub(crate) const ROWS_IN_SUM: usize = 96;
/// The same in single precision.
pub(crate) const ROWS_IN_SINGLE_SUM: usize = 192;

/// Additions, one after the other, behind a product of dense rows of length d with a vector, in registers of `lanes` numbers at least.
pub(crate) fn additions_in_dot(d: usize, lanes: usize) -> usize {
    d.div_ceil(lanes) + lanes
}

/// Additions, one after the other, behind a sum over so many dense rows.
pub(crate) fn additions_over_rows(rows: usize) -> usize {
    rows.min(ROWS_IN_SUM) + rows.div_ceil(ROWS_IN_SUM)
}

/// Numbers in the narrowest register of f64, and of f32.
pub(crate) const LANES: usize = 4;
pub(crate) const SINGLE_LANES: usize = 8;

pub(crate) use csr::{add_csr, dots_csr, sum_csr};
pub(crate) use dense::{Afterwards, Packing, sum_dense};
pub(crate) use lanes::{Arithmetic, Stored};
use level::Level;
pub(crate) use skipping::{PANEL, QUAD, SkippingTriangle};
pub(crate) use summary::summarise_rows;
pub(crate) use symmetric::{ADDITIONS as TRIANGLE_ADDITIONS, Triangle};

/// Rows of one chunk.
#[derive(Clone, Debug)]
pub(crate) enum RowSet<'a> {
    /// Neighbouring rows.
    Range(Range<usize>),
    /// Rows by number.
    List(&'a [usize]),
}

impl RowSet<'_> {
    /// How many.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::List(rows) => rows.len(),
        }
    }

    /// Some of them, counted from 0.
    pub(crate) fn part(&self, places: Range<usize>) -> Self {
        match self {
            Self::Range(range) => Self::Range(range.start + places.start..range.start + places.end),
            Self::List(rows) => Self::List(&rows[places]),
        }
    }

    /// The i-th of them.
    #[inline(always)]
    pub(crate) fn get(&self, i: usize) -> usize {
        match self {
            Self::Range(range) => range.start + i,
            Self::List(rows) => rows[i],
        }
    }
}

/// Weights of rows, or none: every row counts once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowWeights<'a>(pub(crate) Option<&'a [f64]>);

impl RowWeights<'_> {
    /// The weight of row l.
    #[inline(always)]
    pub(crate) fn of(self, l: usize) -> f64 {
        self.0.map_or(1.0, |weights| weights[l])
    }
}
