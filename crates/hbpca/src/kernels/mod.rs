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

/// Rows whose sum single precision gathers before it is added up in f64.
pub(crate) const SINGLE_ROWS: usize = <f32 as lanes::Arithmetic>::ROWS_IN_SUM;

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
