//! Rows as Python hands them over, borrowed from NumPy's memory.
//!
//! The package prepares these named tuples: the name of a file, rows in chunks (`chunks.rs`), dense rows as one contiguous run of values with the distance from row to row,
//! and compressed rows as SciPy's three arrays. Nothing but the n + 1 row starts of compressed rows is copied.

use std::borrow::Cow;
use std::ffi::CString;
use std::path::PathBuf;

use hbpca::missing::Missing;
use hbpca::{Csr, Dense, Error, Matrix};
use hbpca_io::{ByteSize, MissingFields};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::errors::{Failure, Outcome};
use crate::pool::on_own_threads;

/// Columns that a thread copies at a time.
const COPIED_AT_A_TIME: usize = 1 << 16;

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
    /// Chunks of rows that can be iterated again and again.
    Iterated {
        /// Called for a new iterator; it gives rows of the two kinds above.
        begin: Bound<'py, PyAny>,
        /// The names of the columns.
        names: Option<Vec<String>>,
        /// Bytes of memory that may be taken, or text such as `4G`.
        memory_limit: Option<MemoryLimit>,
    },
    /// An array on disk whose rows can be sliced.
    Sliced {
        /// Called with the first row and the one after the last; gives rows of the two kinds above.
        read: Bound<'py, PyAny>,
        /// Called with a number of bytes; gives where chunks of that size start, and the number of rows.
        cut: Bound<'py, PyAny>,
        /// Rows.
        n: usize,
        /// Columns.
        d: usize,
        /// Entries stored, or about so many.
        nnz: usize,
        /// Whether rows are compressed.
        sparse: bool,
        /// Whether numbers are `float32`.
        single: bool,
        /// Bytes of memory that may be taken, or text such as `4G`.
        memory_limit: Option<MemoryLimit>,
    },
    /// A file or a folder of parts, read into memory where it fits.
    File {
        /// Its name.
        path: PathBuf,
        /// Bytes of memory that may be taken, or text such as `4G`.
        memory_limit: Option<MemoryLimit>,
    },
}

/// Memory as users write it.
#[derive(FromPyObject)]
pub enum MemoryLimit {
    /// A number of bytes.
    Bytes(u64),
    /// Text such as `4G`.
    Text(String),
}

impl MemoryLimit {
    /// The number of bytes.
    pub fn size(&self) -> Outcome<ByteSize> {
        match self {
            Self::Bytes(0) => Err(Failure::value("memory_limit = 0: give bytes or a size such as \"4G\"")),
            Self::Bytes(bytes) => Ok(ByteSize(*bytes)),
            Self::Text(text) => {
                text.parse().map_err(|error: String| Failure::value(format!("memory_limit: {error}")))
            }
        }
    }
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

/// When NaN and infinities are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FiniteCheck {
    /// The column statistics of a fit, which read everything anyway.
    Later,
    /// The matrix, now.
    Now,
}

impl Input<'_> {
    /// The names of the columns of chunks.
    pub fn names(&self) -> Option<Vec<String>> {
        match self {
            Self::Iterated { names, .. } => names.clone(),
            _ => None,
        }
    }

    /// The matrix, and the names of its columns where it is a file that has them. What is to be known of these is a warning.
    pub fn named_matrix(
        &self,
        py: Python<'_>,
        check: FiniteCheck,
        missing: Missing,
    ) -> Outcome<(Matrix<'_>, Option<Vec<String>>)> {
        let Self::File { path, .. } = self else { return Ok((self.matrix(check)?, None)) };
        let missing = if missing == Missing::Error { MissingFields::Refused } else { MissingFields::Nan };
        let options = hbpca_io::ReadOptions { missing, ..hbpca_io::ReadOptions::default() };
        let data = hbpca_io::read(hbpca_io::Input::path(path), &options)?;
        for note in &data.notes {
            let text = CString::new(note.as_str()).map_err(|error| Failure::Python(error.into()))?;
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1).map_err(Failure::Python)?;
        }
        Ok((data.matrix, data.column_names))
    }

    /// The matrix, borrowing what it can.
    pub fn matrix(&self, check: FiniteCheck) -> Outcome<Matrix<'_>> {
        match self {
            Self::File { path, .. } => {
                Ok(hbpca_io::read(hbpca_io::Input::path(path), &hbpca_io::ReadOptions::default())?.matrix)
            }
            Self::Iterated { .. } | Self::Sliced { .. } => {
                Err(Failure::value("rows in chunks can be fitted and transformed by PCA alone"))
            }
            Self::Dense { values: Values::F32(x), n, d, stride } => {
                Ok(dense(contiguous(x)?, *n, *d, *stride, check)?.into())
            }
            Self::Dense { values: Values::F64(x), n, d, stride } => {
                Ok(dense(contiguous(x)?, *n, *d, *stride, check)?.into())
            }
            Self::Csr { values, starts, columns, d } => {
                let (starts, columns) = (starts.row_starts()?, columns.columns()?);
                Ok(match values {
                    Values::F32(x) => compressed(*d, starts, columns, contiguous(x)?, check)?.into(),
                    Values::F64(x) => compressed(*d, starts, columns, contiguous(x)?, check)?.into(),
                })
            }
        }
    }
}

fn compressed<'a, T: hbpca::Real>(
    d: usize,
    starts: Vec<usize>,
    columns: Cow<'a, [u32]>,
    values: &'a [T],
    check: FiniteCheck,
) -> Result<Csr<'a, T>, Error> {
    on_own_threads(|| match check {
        FiniteCheck::Later => Csr::deferring_finite_check(d, starts, columns, values),
        FiniteCheck::Now => Csr::new(d, starts, columns, values),
    })
}

fn dense<T: hbpca::Real>(
    values: &[T],
    n: usize,
    d: usize,
    stride: usize,
    check: FiniteCheck,
) -> Result<Dense<'_, T>, Error> {
    on_own_threads(|| match check {
        FiniteCheck::Later if stride == d => Dense::deferring_finite_check(Cow::Borrowed(values), n, d),
        FiniteCheck::Later => Dense::strided_deferring_finite_check(values, n, d, stride),
        FiniteCheck::Now => Dense::strided(values, n, d, stride),
    })
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
            // as such. A copy: another thread may write to the array after it was checked, and kernels take indices at their word.
            Self::I32(x) => {
                let columns: &[u32] = bytemuck::cast_slice(contiguous(x)?);
                let copy = || columns.par_iter().with_min_len(COPIED_AT_A_TIME).copied().collect();
                Ok(Cow::Owned(on_own_threads(copy)))
            }
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
