//! `sprs`: compressed matrices.
//!
//! CSR is borrowed part by part: values always, columns where the indices are `u32`, row starts where they are `usize` and the
//! view begins at the matrix's first row. `CsMatI<_, u32, usize>` is therefore borrowed whole. Other index types are converted,
//! CSC is converted to CSR.
//!
//! ```
//! use hbpca::{Csr, FitConfig, Matrix};
//! use sprs::{CsMatI, TriMatI};
//!
//! let mut entries = TriMatI::<f64, u32>::new((4, 3));
//! for (row, column, value) in [(0, 0, 2.0), (0, 2, 1.0), (1, 0, -2.0), (1, 2, -1.0), (3, 1, 0.1)] {
//!     entries.add_triplet(row, column, value);
//! }
//! let x: CsMatI<f64, u32, usize> = entries.to_csr();
//! let rows = Csr::try_from(&x)?; // no copy
//! assert_eq!(rows.columns().as_ptr(), x.indices().as_ptr());
//! let fit = FitConfig::default().fit(&rows.into())?;
//!
//! let by_columns: CsMatI<f64, u32, usize> = entries.to_csc();
//! assert_eq!(FitConfig::default().fit(&Matrix::try_from(&by_columns)?)?.model, fit.model);
//! # Ok::<(), hbpca::Error>(())
//! ```

use std::borrow::Cow;
use std::ops::Deref;

use ::sprs::{CompressedStorage, CsMatBase, CsMatViewI, SpIndex};

use super::rows::too_large;
use crate::{Csr, Error, Matrix, Real};

/// Every index type of sprs.
pub trait Index: SpIndex + sealed::Sealed {
    /// Columns; borrowed where they are `u32`.
    fn columns(indices: &[Self]) -> Result<Cow<'_, [u32]>, Error> {
        indices.iter().map(|&j| column(j.try_index())).collect::<Result<Vec<_>, _>>().map(Cow::Owned)
    }

    /// Starts of rows or columns, the first of them 0; borrowed where they are `usize` and are so already.
    fn starts(starts: &[Self]) -> Result<Cow<'_, [usize]>, Error> {
        let first = starts.first().and_then(|first| first.try_index()).unwrap_or(0);
        let from_first = |start: &Self| start.try_index()?.checked_sub(first);
        let converted: Option<Vec<usize>> = starts.iter().map(from_first).collect();
        converted.map(Cow::Owned).ok_or_else(|| {
            Error::Csr(format!(
                "a start is negative or before the first, {first}; build the matrix with checks"
            ))
        })
    }
}

impl Index for u32 {
    fn columns(indices: &[Self]) -> Result<Cow<'_, [u32]>, Error> {
        Ok(Cow::Borrowed(indices))
    }
}

impl Index for usize {
    fn starts(starts: &[Self]) -> Result<Cow<'_, [usize]>, Error> {
        match starts.first() {
            None | Some(0) => Ok(Cow::Borrowed(starts)),
            Some(&first) => Ok(starts.iter().map(|start| start.saturating_sub(first)).collect()),
        }
    }
}

macro_rules! converted_indices {
    ($($index:ty),*) => {$(impl Index for $index {})*};
}
converted_indices!(i16, u16, i32, i64, u64, isize);

/// Only sprs's own index types.
mod sealed {
    pub trait Sealed {}
    macro_rules! sealed {
        ($($index:ty),*) => {$(impl Sealed for $index {})*};
    }
    sealed!(i16, u16, i32, u32, i64, u64, isize, usize);
}

/// A column as it is stored here.
fn column(j: Option<usize>) -> Result<u32, Error> {
    j.and_then(|j| u32::try_from(j).ok()).ok_or_else(|| {
        let given = j.map_or("a negative column".to_owned(), |j| format!("column {j}"));
        Error::Csr(format!("{given} is given where columns are 0 to {}; drop or renumber columns", u32::MAX))
    })
}

/// A matrix of sprs in pieces.
struct Parts<'a, T, I, P> {
    storage: CompressedStorage,
    n: usize,
    d: usize,
    starts: &'a [P],
    indices: &'a [I],
    values: &'a [T],
}

impl<'a, T: Real, I: Index, P: Index> Parts<'a, T, I, P> {
    fn csr(self) -> Result<Csr<'a, T>, Error> {
        match self.storage {
            CompressedStorage::CSR => {
                Csr::new(self.d, P::starts(self.starts)?, I::columns(self.indices)?, self.values)
            }
            CompressedStorage::CSC => self.transposed(),
        }
    }

    /// Entries by rows, in each row by columns.
    fn transposed(self) -> Result<Csr<'static, T>, Error> {
        let Self { n, d, indices, .. } = self;
        if n == 0 || d == 0 {
            return Err(Error::Empty { n, d });
        }
        let starts = P::starts(self.starts)?;
        if !starts.is_sorted() || starts.last() != Some(&self.values.len()) {
            let entries = self.values.len();
            return Err(Error::Csr(format!(
                "the starts of columns do not ascend from 0 to {entries}, the number of entries; build the matrix with checks"
            )));
        }
        let row_of = |e: usize| {
            let row = indices.get(e).and_then(|row| row.try_index()).filter(|&row| row < n);
            row.ok_or_else(|| {
                Error::Csr(format!("entry {e} is in none of the {n} rows; build the matrix with checks"))
            })
        };
        // Counts of row i at i + 2; summed up, the start of row i is at i + 1; moved on entry by entry, it is the start of
        // the next row in the end.
        let mut row_starts = Vec::new();
        let fits = n.checked_add(2).filter(|&len| row_starts.try_reserve_exact(len).is_ok());
        row_starts.resize(fits.ok_or_else(|| too_large(n, d, size_of::<usize>()))?, 0_usize);
        for e in 0..self.values.len() {
            row_starts[row_of(e)? + 2] += 1;
        }
        for i in 2..row_starts.len() {
            row_starts[i] += row_starts[i - 1];
        }
        let mut columns = vec![0; self.values.len()];
        let mut values = vec![T::default(); self.values.len()];
        for (j, pair) in starts.windows(2).enumerate() {
            for e in pair[0]..pair[1] {
                let place = &mut row_starts[row_of(e)? + 1];
                (columns[*place], values[*place]) = (column(Some(j))?, self.values[e]);
                *place += 1;
            }
        }
        row_starts.pop();
        Csr::new(d, row_starts, columns, values)
    }
}

impl<'a, T: Real, I: Index, P: Index> TryFrom<CsMatViewI<'a, T, I, P>> for Csr<'a, T> {
    type Error = Error;

    fn try_from(x: CsMatViewI<'a, T, I, P>) -> Result<Self, Error> {
        let (storage, n, d) = (x.storage(), x.rows(), x.cols());
        let (starts, indices, values) = x.into_raw_storage();
        Parts { storage, n, d, starts, indices, values }.csr()
    }
}

impl<'a, T: Real, I: Index, P: Index, Starts, Indices, Values>
    TryFrom<&'a CsMatBase<T, I, Starts, Indices, Values, P>> for Csr<'a, T>
where
    Starts: Deref<Target = [P]>,
    Indices: Deref<Target = [I]>,
    Values: Deref<Target = [T]>,
{
    type Error = Error;

    fn try_from(x: &'a CsMatBase<T, I, Starts, Indices, Values, P>) -> Result<Self, Error> {
        x.view().try_into()
    }
}

impl<'a, T: Real, I: Index, P: Index> TryFrom<CsMatViewI<'a, T, I, P>> for Matrix<'a>
where
    Matrix<'a>: From<Csr<'a, T>>,
{
    type Error = Error;

    fn try_from(x: CsMatViewI<'a, T, I, P>) -> Result<Self, Error> {
        Csr::try_from(x).map(Into::into)
    }
}

impl<'a, T: Real, I: Index, P: Index, Starts, Indices, Values>
    TryFrom<&'a CsMatBase<T, I, Starts, Indices, Values, P>> for Matrix<'a>
where
    Matrix<'a>: From<Csr<'a, T>>,
    Starts: Deref<Target = [P]>,
    Indices: Deref<Target = [I]>,
    Values: Deref<Target = [T]>,
{
    type Error = Error;

    fn try_from(x: &'a CsMatBase<T, I, Starts, Indices, Values, P>) -> Result<Self, Error> {
        x.view().try_into()
    }
}
