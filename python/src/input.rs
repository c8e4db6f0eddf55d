//! Rows as Python hands them over, borrowed from NumPy's memory.
//!
//! The package prepares two kinds of named tuples: dense rows as one contiguous run of values with the distance from row to row,
//! and compressed rows as SciPy's three arrays. Nothing but the n + 1 row starts of compressed rows is copied.

use std::borrow::Cow;

use hbpca::{Csr, Dense, Error, Matrix};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::errors::{Failure, Outcome};

/// Rows in NumPy's memory. Variants are told apart by their attributes.
#[derive(FromPyObject)]
pub enum Input<'py> {
    /// Row l starts at `l·stride`.
    Dense {
        /// All values, with gaps where the stride exceeds d.
        values: Values<'py>,
        /// Rows.
        n: usize,
        /// Columns.
        d: usize,
        /// Values from one row's start to the next.
        stride: usize,
    },
    /// Compressed rows.
    Csr {
        /// One value an entry.
        values: Values<'py>,
        /// Where each row starts, and the end.
        starts: Integers<'py>,
        /// One column an entry.
        columns: Integers<'py>,
        /// Columns.
        d: usize,
    },
}

/// A contiguous run of numbers.
#[derive(FromPyObject)]
pub enum Values<'py> {
    /// Single precision.
    F32(PyReadonlyArray1<'py, f32>),
    /// Double precision.
    F64(PyReadonlyArray1<'py, f64>),
}

/// SciPy's two types of indices.
#[derive(FromPyObject)]
pub enum Integers<'py> {
    /// The usual one.
    I32(PyReadonlyArray1<'py, i32>),
    /// For more than 2³¹ entries.
    I64(PyReadonlyArray1<'py, i64>),
}

/// Who looks for NaN and infinities.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FiniteCheck {
    /// The column statistics of a fit, which read everything anyway.
    Later,
    /// The matrix, now.
    Now,
}

impl Input<'_> {
    /// The matrix, borrowing what it can.
    pub fn matrix(&self, check: FiniteCheck) -> Outcome<Matrix<'_>> {
        match self {
            Self::Dense { values: Values::F32(x), n, d, stride } => {
                Ok(dense(contiguous(x)?, *n, *d, *stride, check)?.into())
            }
            Self::Dense { values: Values::F64(x), n, d, stride } => {
                Ok(dense(contiguous(x)?, *n, *d, *stride, check)?.into())
            }
            Self::Csr { values, starts, columns, d } => {
                let (starts, columns) = (starts.row_starts()?, columns.columns()?);
                Ok(match values {
                    Values::F32(x) => Csr::new(*d, starts, columns, contiguous(x)?)?.into(),
                    Values::F64(x) => Csr::new(*d, starts, columns, contiguous(x)?)?.into(),
                })
            }
        }
    }
}

fn dense<T: hbpca::Real>(
    values: &[T],
    n: usize,
    d: usize,
    stride: usize,
    check: FiniteCheck,
) -> Result<Dense<'_, T>, Error> {
    match check {
        FiniteCheck::Later if stride == d => Dense::deferring_finite_check(Cow::Borrowed(values), n, d),
        _ => Dense::strided(values, n, d, stride),
    }
}

/// The array's memory.
pub fn contiguous<'a, T: numpy::Element>(x: &'a PyReadonlyArray1<'_, T>) -> Outcome<&'a [T]> {
    x.as_slice().map_err(|error| Failure::Python(error.into()))
}

impl Integers<'_> {
    fn row_starts(&self) -> Outcome<Vec<usize>> {
        match self {
            Self::I32(x) => contiguous(x)?.iter().map(|&start| offset(start.into())).collect(),
            Self::I64(x) => contiguous(x)?.iter().map(|&start| offset(start)).collect(),
        }
    }

    fn columns(&self) -> Outcome<Cow<'_, [u32]>> {
        match self {
            // The same 32 bits: a negative number becomes one above 2³¹, beyond every d of 32-bit indices, and is refused
            // as such.
            Self::I32(x) => Ok(Cow::Borrowed(bytemuck::cast_slice(contiguous(x)?))),
            Self::I64(x) => {
                let narrow = contiguous(x)?.iter().map(|&column| {
                    u32::try_from(column).map_err(|_| {
                        let fault = format!("column {column} does not lie between 0 and 2³² − 1");
                        Failure::Core(Error::Csr(fault))
                    })
                });
                narrow.collect::<Outcome<Vec<u32>>>().map(Cow::Owned)
            }
        }
    }
}

fn offset(start: i64) -> Outcome<usize> {
    let fault = || Failure::Core(Error::Csr(format!("a row starts at entry {start}")));
    usize::try_from(start).map_err(|_| fault())
}
