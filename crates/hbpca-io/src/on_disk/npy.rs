//! `.npy` files in C order, parts of one matrix: rows of a fixed width at known places.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use bytemuck::Pod;
use hbpca::{Dense, Error, Matrix, Real, RowChunks};

use super::watched::WatchedFile;
use super::{OnDisk, Refusal, failed, part_of, same, usable};
use crate::ReadError;
use crate::element::Number;
use crate::npy::read_header;

/// Chunks until others are cut.
const DEFAULT_CHUNK: u64 = 8 << 20;

/// The rows of one or several arrays, read by position.
#[derive(Debug)]
pub(super) struct NpyOnDisk {
    parts: Vec<Part>,
    number: Number,
    n: usize,
    d: usize,
    starts: Vec<usize>,
}

#[derive(Debug)]
struct Part {
    file: WatchedFile,
    /// Bytes before the first number.
    data_start: u64,
    first_row: usize,
    n_rows: usize,
}

impl NpyOnDisk {
    pub(super) fn open(files: Vec<(String, PathBuf)>) -> Result<Self, Refusal> {
        let mut parts: Vec<Part> = Vec::new();
        let (mut n, mut columns, mut kind) = (0_usize, None, None);
        for (name, path) in files {
            let watched = WatchedFile::open(&name, &path)?;
            let mut head = File::open(&path).map_err(|source| ReadError::io(&name, source))?;
            let header = read_header(&name, &mut head)?;
            let malformed = |text| ReadError::malformed(&name, text);
            let element = header.element().map_err(malformed)?;
            let (n_rows, d) = header.rows_and_columns().map_err(malformed)?;
            let needed = header.data_bytes(element).saturating_add(u128::from(header.data_start));
            if needed > u128::from(watched.size()) {
                let size = watched.size();
                let text = format!(
                    "{n_rows} rows × {d} columns need {needed} bytes, but the file has only {size}: it is cut off or its \
                     header is wrong"
                );
                return Err(malformed(text).into());
            }
            same("columns", &mut columns, d, &name)?;
            let number = usable(element)?;
            if kind.replace(number).is_some_and(|before| before != number) {
                let reason = "some of its parts are f32 and some f64".to_owned();
                return Err(Refusal::Unsuitable { reason, growth: 1.0 });
            }
            if header.fortran_order && d > 1 && n_rows > 1 {
                let reason = "it is stored column by column (Fortran order)".to_owned();
                return Err(Refusal::Unsuitable { reason, growth: 1.0 });
            }
            parts.push(Part { file: watched, data_start: header.data_start, first_row: n, n_rows });
            n += n_rows; // each is at most the size of a file: no overflow
        }
        let (Some(d), Some(number)) = (columns, kind) else {
            return Err(ReadError::option("input", "no file was given").into());
        };
        if n == 0 || d == 0 {
            return Err(ReadError::malformed(&parts[0].file.name, "there are no rows or no columns").into());
        }
        let mut rows = Self { parts, number, n, d, starts: Vec::new() };
        rows.cut_chunks(DEFAULT_CHUNK);
        Ok(rows)
    }

    fn row_bytes(&self) -> u64 {
        (self.d * if self.number == Number::F32 { f32::BYTES } else { f64::BYTES }) as u64
    }

    /// Rows into memory that may have held others before.
    fn read<T: Real + Pod>(
        &mut self,
        rows: Range<usize>,
        mut values: Vec<T>,
    ) -> Result<Dense<'static, T>, Error> {
        let (n, d) = (rows.len(), self.d);
        values.resize(n * d, T::default());
        let mut row = rows.start;
        while row < rows.end {
            let part = part_of(row, self.parts.iter().map(|part| part.first_row));
            let part = &mut self.parts[part];
            let end = rows.end.min(part.first_row + part.n_rows);
            let at = part.data_start + ((row - part.first_row) * d * T::BYTES) as u64;
            let place = (row - rows.start) * d..(end - rows.start) * d;
            part.file.fill(at, &mut values[place]).map_err(failed)?;
            row = end;
        }
        Dense::deferring_finite_check(values.into(), n, d)
    }

    fn read_into(
        &mut self,
        rows: Range<usize>,
        recycled: Option<Matrix<'static>>,
    ) -> Result<Matrix<'static>, Error> {
        Ok(match (self.number, recycled) {
            (Number::F32, Some(Matrix::DenseF32(before))) => self.read(rows, before.into_values())?.into(),
            (Number::F32, _) => self.read::<f32>(rows, Vec::new())?.into(),
            (_, Some(Matrix::DenseF64(before))) => self.read(rows, before.into_values())?.into(),
            _ => self.read::<f64>(rows, Vec::new())?.into(),
        })
    }
}

impl NpyOnDisk {
    /// Cuts chunks of at most `bytes` bytes.
    fn cut_chunks(&mut self, bytes: u64) {
        let rows = usize::try_from(bytes / self.row_bytes()).unwrap_or(usize::MAX).max(1);
        self.starts.clear();
        for part in &self.parts {
            self.starts.extend((0..part.n_rows).step_by(rows).map(|row| part.first_row + row));
        }
        self.starts.push(self.n);
        self.starts.shrink_to_fit();
    }
}

impl RowChunks for NpyOnDisk {
    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        self.cut_chunks(bytes);
        Ok(())
    }

    fn n_rows(&self) -> usize {
        self.n
    }

    fn n_cols(&self) -> usize {
        self.d
    }

    fn nnz(&self) -> usize {
        self.n * self.d
    }

    fn is_sparse(&self) -> bool {
        false
    }

    fn bytes(&self) -> u64 {
        self.n as u64 * self.row_bytes()
    }

    fn starts(&self) -> &[usize] {
        &self.starts
    }

    fn read_chunk(&mut self, i: usize, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        self.read_into(self.starts[i]..self.starts[i + 1], recycled)
    }

    fn version(&self) -> Option<u64> {
        WatchedFile::version_of(self.parts.iter().map(|part| &part.file))
    }

    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        self.read_into(rows, None)
    }
}

impl OnDisk for NpyOnDisk {
    fn chunk_memory(&self) -> u64 {
        let longest = self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        longest as u64 * self.row_bytes()
    }

    fn memory(&self) -> u64 {
        self.bytes()
    }
}
