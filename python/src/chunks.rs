//! Rows that a Python object hands out, any number of times: chunks that are iterated, or an array that can be sliced.
//!
//! The thread that reads ahead attaches to the interpreter for each chunk, copies it and lets go. An exception of the object ends
//! the fit, and is raised as it is.

use std::ops::Range;

use hbpca::{Csr, Dense, Error, FitConfig, Matrix, Real, RowChunks, RowSurvey};
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::errors::{Failure, Outcome};
use crate::input::{FiniteCheck, Input, MemoryLimit};
use crate::pool::detach;

/// Half of what there is, as for files.
const DEFAULT_SHARE: u64 = 2;
/// Chunks that the Python side holds beside those of the core: the one being converted, and what it is converted from.
const HELD_IN_PYTHON: u64 = 2;

/// Bytes that a fit may take.
pub fn memory_of(limit: Option<&MemoryLimit>) -> Outcome<u64> {
    let given = limit.map(MemoryLimit::size).transpose()?.map(|size| size.0);
    Ok(given.or_else(|| hbpca_io::machine_memory().map(|all| all / DEFAULT_SHARE)).unwrap_or(u64::MAX))
}

/// What all chunks have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    d: usize,
    sparse: bool,
    single: bool,
}

impl Kind {
    fn of(rows: &Matrix<'_>) -> Self {
        let single = matches!(rows, Matrix::DenseF32(_) | Matrix::CsrF32(_));
        Self { d: rows.n_cols(), sparse: rows.is_sparse(), single }
    }

    /// Bytes of an entry in memory.
    fn entry(self) -> u64 {
        (if self.single { 4 } else { 8 }) + if self.sparse { 4 } else { 0 }
    }

    /// Bytes of so many rows and entries in memory.
    fn bytes(self, n: usize, nnz: usize) -> u64 {
        nnz as u64 * self.entry() + if self.sparse { 8 * n as u64 } else { 0 }
    }

    /// Refuses a chunk of another kind.
    fn check(self, i: usize, chunk: &Matrix<'_>) -> PyResult<()> {
        let found = Self::of(chunk);
        if found == self {
            return Ok(());
        }
        let text = if found.d != self.d {
            let (now, before) = (found.d, self.d);
            format!(
                "chunk {i} has {now} columns, and those before it have {before}: all must have the same columns"
            )
        } else if found.sparse != self.sparse {
            let word = |sparse| if sparse { "sparse" } else { "dense" };
            let (now, before) = (word(found.sparse), word(self.sparse));
            format!(
                "chunk {i} is {now}, and those before it are {before}: make all of them dense, or all sparse"
            )
        } else {
            let word = |single| if single { "float32" } else { "float64" };
            let (now, before) = (word(found.single), word(self.single));
            format!("chunk {i} is {now}, and those before it are {before}: convert all of them to one type")
        };
        Err(PyErr::from(Failure::value(text)))
    }
}

/// A copy of the rows that Python prepared, in memory that may have held others before.
fn owned(rows: &Bound<'_, PyAny>, recycled: Option<Matrix<'static>>) -> PyResult<Matrix<'static>> {
    let input: Input<'_> = rows.extract()?;
    let matrix = input.matrix(FiniteCheck::Later)?;
    Ok(copy(&matrix, recycled).map_err(Failure::from)?)
}

fn copy(rows: &Matrix<'_>, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
    Ok(match (rows, recycled) {
        (Matrix::DenseF32(x), Some(Matrix::DenseF32(before))) => copy_dense(x, before.into_values())?.into(),
        (Matrix::DenseF64(x), Some(Matrix::DenseF64(before))) => copy_dense(x, before.into_values())?.into(),
        (Matrix::CsrF32(x), Some(Matrix::CsrF32(before))) => copy_csr(x, before.into_parts())?.into(),
        (Matrix::CsrF64(x), Some(Matrix::CsrF64(before))) => copy_csr(x, before.into_parts())?.into(),
        (Matrix::DenseF32(x), _) => copy_dense(x, Vec::new())?.into(),
        (Matrix::DenseF64(x), _) => copy_dense(x, Vec::new())?.into(),
        (Matrix::CsrF32(x), _) => copy_csr(x, Default::default())?.into(),
        (Matrix::CsrF64(x), _) => copy_csr(x, Default::default())?.into(),
    })
}

fn copy_dense<T: Real>(x: &Dense<'_, T>, mut values: Vec<T>) -> Result<Dense<'static, T>, Error> {
    values.clear();
    values.reserve_exact(x.n_rows() * x.n_cols());
    (0..x.n_rows()).for_each(|l| values.extend_from_slice(x.row(l)));
    Dense::deferring_finite_check(values.into(), x.n_rows(), x.n_cols())
}

fn copy_csr<T: Real>(x: &Csr<'_, T>, room: (Vec<usize>, Vec<u32>, Vec<T>)) -> Result<Csr<'static, T>, Error> {
    let (mut starts, mut columns, mut values) = room;
    starts.clear();
    columns.clear();
    values.clear();
    starts.extend_from_slice(x.row_starts());
    columns.extend_from_slice(x.columns());
    values.extend_from_slice(x.values());
    Csr::deferring_finite_check(x.n_cols(), starts, columns, values)
}

/// An exception, as the core carries it.
fn raised(error: PyErr) -> Error {
    Error::Source(Box::new(error))
}

fn changed(text: &str) -> Error {
    let text = format!("{text}: every iteration must give the same chunks, in the same order");
    Error::Source(text.into())
}

/// Chunks that are iterated anew in every pass.
pub struct Iterated {
    /// Called for a new iterator.
    begin: Py<PyAny>,
    kind: Kind,
    starts: Vec<usize>,
    nnz: usize,
    held: u64,
    /// The iterator of the current pass, and the chunk it gives next.
    reading: Option<(usize, Py<PyIterator>)>,
}

/// Chunks after the pass that counted them.
pub enum Surveyed {
    /// All of them fit.
    InMemory(Matrix<'static>),
    /// They are read in every pass, within so many bytes.
    Streamed(Iterated, Box<RowSurvey>, u64),
}

impl Iterated {
    /// Iterates once: counts rows, gathers statistics or finds holes, and keeps the chunks as long as they fit beside a fit.
    pub fn survey(
        py: Python<'_>,
        begin: &Bound<'_, PyAny>,
        limit: Option<&MemoryLimit>,
        config: &FitConfig,
        weights: Option<&[f64]>,
    ) -> Outcome<Surveyed> {
        let memory = memory_of(limit)?;
        let mut found: Option<(Kind, RowSurvey)> = None;
        let (mut kept, mut longest) = (Some(Vec::new()), 0);
        for (i, rows) in begin.call0()?.try_iter()?.enumerate() {
            let chunk = owned(&rows?, None)?;
            let (kind, survey) = found.get_or_insert_with(|| {
                let kind = Kind::of(&chunk);
                (kind, RowSurvey::of_columns(kind.d).completed_by(config.missing))
            });
            kind.check(i, &chunk)?;
            detach(py, || add(survey, &chunk, weights))?;
            longest = longest.max(kind.bytes(chunk.n_rows(), chunk.nnz()));
            let bytes = kind.bytes(survey.n_rows(), survey.nnz());
            if bytes.saturating_add(HELD_IN_PYTHON * longest) > memory {
                kept = None;
            }
            if let Some(kept) = &mut kept {
                kept.push(chunk);
            }
        }
        let Some((kind, survey)) = found else {
            return Err(Failure::value("the source gives no chunk: there are no rows"));
        };
        let (starts, nnz) = (survey.starts().to_vec(), survey.nnz());
        if let Some(weights) = weights.filter(|weights| weights.len() != survey.n_rows()) {
            return Err(Error::shape("row weights, one for each row", survey.n_rows(), weights.len()).into());
        }
        let rows = Self {
            begin: begin.clone().unbind(),
            kind,
            starts,
            nnz,
            held: HELD_IN_PYTHON * longest,
            reading: None,
        };
        let beside = config.memory_beside(&rows);
        if let Some(kept) = kept
            && rows.bytes().saturating_add(beside) <= memory
        {
            return Ok(Surveyed::InMemory(detach(py, || joined(kept, rows.n_rows(), nnz))?));
        }
        Ok(Surveyed::Streamed(rows, Box::new(survey), memory))
    }

    /// Bytes that Python holds beside the core: two of the longest chunks.
    pub fn held_in_python(&self) -> u64 {
        self.held
    }

    /// The next chunk, which must be the i-th.
    fn next(
        &mut self,
        py: Python<'_>,
        i: usize,
        recycled: Option<Matrix<'static>>,
    ) -> Result<Matrix<'static>, Error> {
        let iterator = match self.reading.take() {
            Some((next, iterator)) if next == i => iterator.into_bound(py),
            _ if i == 0 => {
                let begun = self.begin.bind(py).call0().and_then(|chunks| chunks.try_iter());
                begun.map_err(raised)?
            }
            _ => return Err(changed(&format!("chunk {i} was asked for out of order"))),
        };
        let n_chunks = self.starts.len() - 1;
        let mut chunks = iterator.clone();
        let Some(rows) = chunks.next() else {
            return Err(changed(&format!(
                "chunk {i}: the source ends before it, and had {n_chunks} chunks the first time"
            )));
        };
        let rows = rows.map_err(raised)?;
        let chunk = owned(&rows, recycled).map_err(raised)?;
        self.kind.check(i, &chunk).map_err(raised)?;
        let (expected, found) = (self.starts[i + 1] - self.starts[i], chunk.n_rows());
        if found != expected {
            return Err(changed(&format!("chunk {i} has {found} rows, and had {expected} the first time")));
        }
        if i + 1 < n_chunks {
            self.reading = Some((i + 1, iterator.unbind()));
        } else if chunks.next().is_some() {
            return Err(changed(&format!(
                "chunk {n_chunks}: the source had {n_chunks} chunks the first time, and now has more"
            )));
        }
        Ok(chunk)
    }
}

impl RowChunks for Iterated {
    fn n_rows(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    fn n_cols(&self) -> usize {
        self.kind.d
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn is_sparse(&self) -> bool {
        self.kind.sparse
    }

    fn bytes(&self) -> u64 {
        self.kind.bytes(self.n_rows(), self.nnz)
    }

    fn starts(&self) -> &[usize] {
        &self.starts
    }

    fn read_chunk(&mut self, i: usize, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        Python::attach(|py| self.next(py, i, recycled))
    }

    fn read_rows(&mut self, _rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        let text = "this solver draws single rows, and chunks can only be read from the first one on: choose the solver auto, \
                    covariance, krylov, anchored or power, or allow more memory";
        Err(Error::Source(text.into()))
    }
}

/// Adds the next chunk, with its part of the weights. Rows beyond the last weight are counted, for the message.
fn add(survey: &mut RowSurvey, chunk: &Matrix<'_>, weights: Option<&[f64]>) -> Result<(), Error> {
    let Some(weights) = weights else { return survey.add(chunk) };
    let first = survey.n_rows();
    match weights.get(first..first + chunk.n_rows()) {
        Some(weights) => survey.add_weighted(chunk, weights),
        None => survey.add_weighted(chunk, &vec![1.0; chunk.n_rows()]),
    }
}

/// All chunks as one matrix; each is given back as soon as it is copied.
fn joined(chunks: Vec<Matrix<'static>>, n: usize, nnz: usize) -> Result<Matrix<'static>, Error> {
    let d = chunks.first().map_or(0, Matrix::n_cols);
    Ok(match chunks.first() {
        Some(Matrix::DenseF32(_)) => {
            let mut all: Vec<f32> = Vec::with_capacity(nnz);
            for chunk in chunks {
                if let Matrix::DenseF32(x) = chunk {
                    all.extend_from_slice(x.values());
                }
            }
            Dense::deferring_finite_check(all.into(), n, d)?.into()
        }
        Some(Matrix::CsrF32(_)) => {
            let mut all = Joined::<f32>::of(n, nnz);
            for chunk in chunks {
                if let Matrix::CsrF32(x) = chunk {
                    all.push(&x);
                }
            }
            all.finish(d)?.into()
        }
        Some(Matrix::CsrF64(_)) => {
            let mut all = Joined::<f64>::of(n, nnz);
            for chunk in chunks {
                if let Matrix::CsrF64(x) = chunk {
                    all.push(&x);
                }
            }
            all.finish(d)?.into()
        }
        _ => {
            let mut all: Vec<f64> = Vec::with_capacity(nnz);
            for chunk in chunks {
                if let Matrix::DenseF64(x) = chunk {
                    all.extend_from_slice(x.values());
                }
            }
            Dense::deferring_finite_check(all.into(), n, d)?.into()
        }
    })
}

/// Compressed rows one after the other.
struct Joined<T> {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Real> Joined<T> {
    fn of(n: usize, nnz: usize) -> Self {
        let mut starts = Vec::with_capacity(n + 1);
        starts.push(0);
        Self { starts, columns: Vec::with_capacity(nnz), values: Vec::with_capacity(nnz) }
    }

    fn push(&mut self, x: &Csr<'_, T>) {
        let before = self.columns.len();
        self.starts.extend(x.row_starts()[1..].iter().map(|end| before + end));
        self.columns.extend_from_slice(x.columns());
        self.values.extend_from_slice(x.values());
    }

    fn finish(self, d: usize) -> Result<Csr<'static, T>, Error> {
        Csr::deferring_finite_check(d, self.starts, self.columns, self.values)
    }
}

/// An array on disk whose rows can be sliced.
pub struct Sliced {
    /// Called with the first row and the one after the last.
    read: Py<PyAny>,
    /// Called with a number of bytes for where chunks of that size start.
    cut: Py<PyAny>,
    n: usize,
    nnz: usize,
    kind: Kind,
    starts: Vec<usize>,
}

impl Sliced {
    /// The rows of an object with the attributes of [`Input::Sliced`]; nothing is read.
    pub fn open(rows: &Input<'_>) -> Option<Self> {
        let Input::Sliced { read, cut, n, d, nnz, sparse, single, .. } = rows else { return None };
        let kind = Kind { d: *d, sparse: *sparse, single: *single };
        Some(Self {
            read: read.clone().unbind(),
            cut: cut.clone().unbind(),
            n: *n,
            nnz: *nnz,
            kind,
            starts: vec![0, *n],
        })
    }

    /// Whether all rows fit into `memory` beside a fit, and while they are read.
    pub fn fits(&self, memory: u64, config: &FitConfig) -> bool {
        let bytes = self.bytes();
        bytes.saturating_mul(2).max(bytes.saturating_add(config.memory_beside(self))) <= memory
    }

    /// All rows.
    pub fn whole(&mut self, py: Python<'_>) -> Outcome<Matrix<'static>> {
        if self.n == 0 {
            return Err(Error::Empty { n: 0, d: self.kind.d }.into());
        }
        Ok(self.slice(py, 0..self.n, None)?)
    }

    fn slice(
        &self,
        py: Python<'_>,
        rows: Range<usize>,
        recycled: Option<Matrix<'static>>,
    ) -> PyResult<Matrix<'static>> {
        let found = self.read.bind(py).call1((rows.start, rows.end))?;
        let found = owned(&found, recycled)?;
        if found.n_rows() != rows.len() || Kind::of(&found) != self.kind {
            let Range { start, end } = rows;
            let (n, d) = (found.n_rows(), found.n_cols());
            let text = format!(
                "rows {start} to {end} of the array came as {n} rows of {d} columns, or in another type than it states ({} columns)",
                self.kind.d
            );
            return Err(PyErr::from(Failure::value(text)));
        }
        Ok(found)
    }
}

impl RowChunks for Sliced {
    fn n_rows(&self) -> usize {
        self.n
    }

    fn n_cols(&self) -> usize {
        self.kind.d
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn is_sparse(&self) -> bool {
        self.kind.sparse
    }

    fn bytes(&self) -> u64 {
        self.kind.bytes(self.n, self.nnz)
    }

    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        let starts: PyResult<Vec<usize>> =
            Python::attach(|py| self.cut.bind(py).call1((bytes,))?.extract::<Vec<usize>>());
        let starts = starts.map_err(raised)?;
        if starts.first() != Some(&0) || starts.last() != Some(&self.n) || !starts.is_sorted_by(|a, b| a < b)
        {
            return Err(Error::Source(format!("chunks must ascend from row 0 to row {}", self.n).into()));
        }
        self.starts = starts;
        Ok(())
    }

    fn starts(&self) -> &[usize] {
        &self.starts
    }

    fn read_chunk(&mut self, i: usize, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        let rows = self.starts[i]..self.starts[i + 1];
        Python::attach(|py| self.slice(py, rows, recycled)).map_err(raised)
    }

    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        Python::attach(|py| self.slice(py, rows, None)).map_err(raised)
    }
}
