//! Uncompressed SciPy CSR archives: three arrays at known places in a zip file, and parts of one matrix in several of them.
//!
//! Where rows start is read along with them, so that memory does not grow with n.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use hbpca::{Csr, Error, Matrix, Real, RowChunks};
use zip::{CompressionMethod, ZipArchive};

use super::watched::WatchedFile;
use super::{OnDisk, Refusal, failed, part_of, same, usable};
use crate::ReadError;
use crate::element::{Element, Number};
use crate::npy::read_header;
use crate::sparse::{ascends, sort_rows};

/// Chunks until others are cut.
const DEFAULT_CHUNK: u64 = 8 << 20;
/// Row starts looked at together while chunks are cut.
const STARTS_AT_ONCE: usize = 1 << 16;

/// The rows of one or several archives, read by position.
#[derive(Debug)]
pub(super) struct CsrOnDisk {
    parts: Vec<Part>,
    number: Number,
    n: usize,
    d: usize,
    nnz: usize,
    starts: Vec<usize>,
    chunk_memory: u64,
}

#[derive(Debug)]
struct Part {
    file: WatchedFile,
    data: Array,
    indices: Array,
    indptr: Array,
    first_row: usize,
    n_rows: usize,
    nnz: usize,
}

/// Where the numbers of an array lie.
#[derive(Clone, Copy, Debug)]
struct Array {
    start: u64,
    element: Element,
    length: usize,
}

impl CsrOnDisk {
    pub(super) fn open(files: Vec<(String, PathBuf)>) -> Result<Self, Refusal> {
        let mut parts: Vec<Part> = Vec::new();
        let (mut n, mut nnz, mut columns, mut kind) = (0_usize, 0_usize, None, None);
        for (name, path) in files {
            let (part, d) = Part::open(&name, &path, n)?;
            same("columns", &mut columns, d, &name)?;
            let number = usable(part.data.element)?;
            if kind.replace(number).is_some_and(|before| before != number) {
                let reason = "some of its parts are f32 and some f64".to_owned();
                return Err(Refusal::Unsuitable { reason, growth: 1.0 });
            }
            (n, nnz) = (n + part.n_rows, nnz + part.nnz);
            parts.push(part);
        }
        let (Some(d), Some(number)) = (columns, kind) else {
            return Err(ReadError::option("input", "no file was given").into());
        };
        if n == 0 || d == 0 {
            return Err(ReadError::malformed(&parts[0].file.name, "there are no rows or no columns").into());
        }
        let mut rows = Self { parts, number, n, d, nnz, starts: Vec::new(), chunk_memory: 0 };
        rows.cut_chunks(DEFAULT_CHUNK)?;
        Ok(rows)
    }

    fn entry_memory(&self) -> u64 {
        4 + if self.number == Number::F32 { 4 } else { 8 }
    }

    /// Rows into memory that may have held others before.
    fn read<T: Real + Pod + std::ops::AddAssign>(
        &mut self,
        rows: Range<usize>,
        room: (Vec<usize>, Vec<u32>, Vec<T>),
    ) -> Result<Csr<'static, T>, Error> {
        let (mut starts, mut columns, mut values) = room;
        starts.clear();
        starts.push(0);
        columns.clear();
        values.clear();
        let mut row = rows.start;
        while row < rows.end {
            let part = part_of(row, self.parts.iter().map(|part| part.first_row));
            let part = &mut self.parts[part];
            let end = rows.end.min(part.first_row + part.n_rows);
            let within = row - part.first_row..end - part.first_row;
            part.append(within, &mut starts, &mut columns, &mut values).map_err(failed)?;
            row = end;
        }
        if !starts.windows(2).all(|ends| ascends(&columns[ends[0]..ends[1]])) {
            sort_rows(&mut starts, &mut columns, &mut values);
        }
        Csr::deferring_finite_check(self.d, starts, columns, values)
    }

    fn read_into(
        &mut self,
        rows: Range<usize>,
        recycled: Option<Matrix<'static>>,
    ) -> Result<Matrix<'static>, Error> {
        Ok(match (self.number, recycled) {
            (Number::F32, Some(Matrix::CsrF32(before))) => self.read(rows, before.into_parts())?.into(),
            (Number::F32, _) => self.read::<f32>(rows, Default::default())?.into(),
            (_, Some(Matrix::CsrF64(before))) => self.read(rows, before.into_parts())?.into(),
            _ => self.read::<f64>(rows, Default::default())?.into(),
        })
    }
}

impl Part {
    /// Finds the arrays of an archive; also d.
    fn open(name: &str, path: &Path, first_row: usize) -> Result<(Self, usize), Refusal> {
        let file = WatchedFile::open(name, path)?;
        let bytes = BufReader::new(File::open(path).map_err(|source| ReadError::io(name, source))?);
        let malformed = |text: String| Refusal::from(ReadError::malformed(name, text));
        let mut zip = ZipArchive::new(bytes)
            .map_err(|error| malformed(format!("not a zip archive that can be read: {error}")))?;
        if zip.index_for_name("format.npy").is_none() {
            let reason = "it is an archive of a dense array: store a plain .npy".to_owned();
            return Err(Refusal::Unsuitable { reason, growth: 1.0 });
        }
        let mut find = |array: &str| -> Result<Array, Refusal> {
            let entry = zip
                .by_name(&format!("{array}.npy"))
                .map_err(|error| malformed(format!("array `{array}`: {error}")))?;
            if entry.compression() != CompressionMethod::Stored {
                let reason = "its arrays are compressed: scipy.sparse.save_npz(…, compressed=False) does not"
                    .to_owned();
                return Err(Refusal::Unsuitable { reason, growth: 1.0 });
            }
            let (start, size) = (entry.data_start(), entry.size());
            let start =
                start.ok_or_else(|| malformed(format!("array `{array}` has no place in the archive")))?;
            let mut entry = entry;
            let header = read_header(&format!("{name}({array})"), &mut entry)?;
            let element = header.element().map_err(|text| malformed(format!("`{array}`: {text}")))?;
            let needed = header.data_bytes(element).saturating_add(u128::from(header.data_start));
            if needed > u128::from(size) || header.shape.len() != 1 {
                let shape = &header.shape;
                return Err(malformed(format!("`{array}` of shape {shape:?} does not fit its {size} bytes")));
            }
            Ok(Array { start: start + header.data_start, element, length: header.shape[0] })
        };
        let (data, indices, indptr, shape) =
            (find("data")?, find("indices")?, find("indptr")?, find("shape")?);
        let mut format = [0_u8; 16];
        let found = read_text(&mut zip, &mut format);
        if &format[..found] != b"csr" {
            let reason = format!(
                "its rows are not stored one after the other ({})",
                String::from_utf8_lossy(&format[..found])
            );
            return Err(Refusal::Unsuitable { reason, growth: 1.0 });
        }
        let mut part = Self { file, data, indices, indptr, first_row, n_rows: 0, nnz: data.length };
        let shape = part.whole_numbers("shape", shape, 0..shape.length)?;
        let &[n, d] = &shape[..] else {
            return Err(malformed(format!("`shape` has {} numbers, a matrix has 2", shape.len())));
        };
        if d > u64::from(u32::MAX) + 1 {
            return Err(malformed(format!("{d} columns: at most 2³² are read")));
        }
        if indptr.length as u64 != n.saturating_add(1) || indices.length != data.length {
            let text = format!(
                "{n} rows need {} row starts, but there are {}; {} column numbers stand beside {} values",
                n.saturating_add(1),
                indptr.length,
                indices.length,
                data.length
            );
            return Err(malformed(text));
        }
        part.n_rows = n as usize;
        Ok((part, d as usize))
    }

    /// Whole numbers of an array that are not negative.
    fn whole_numbers(
        &mut self,
        array: &str,
        place: Array,
        range: Range<usize>,
    ) -> Result<Vec<u64>, ReadError> {
        let size = place.element.size();
        let mut bytes = vec![0_u8; range.len() * size];
        self.file.fill(place.start + (range.start * size) as u64, &mut bytes)?;
        place.element.decode_indices(&bytes, Some).ok_or_else(|| {
            let text = format!("`{array}` holds something else than numbers from 0 on");
            ReadError::malformed(&self.file.name, text)
        })
    }

    /// Where rows `rows` start, and the end of the last of them.
    fn row_starts(&mut self, rows: Range<usize>) -> Result<Vec<u64>, ReadError> {
        let starts = self.whole_numbers("indptr", self.indptr, rows.start..rows.end + 1)?;
        let first_is_zero = rows.start > 0 || starts[0] == 0;
        let last_is_nnz = rows.end < self.n_rows || starts[rows.len()] == self.nnz as u64;
        if starts.is_sorted() && first_is_zero && last_is_nnz && starts[rows.len()] <= self.nnz as u64 {
            return Ok(starts);
        }
        let text = format!("`indptr` must ascend from 0 to the {} entries of `data`, but does not", self.nnz);
        Err(ReadError::malformed(&self.file.name, text))
    }

    /// Appends the entries of some rows.
    fn append<T: Real + Pod>(
        &mut self,
        rows: Range<usize>,
        starts: &mut Vec<usize>,
        columns: &mut Vec<u32>,
        values: &mut Vec<T>,
    ) -> Result<(), ReadError> {
        let row_starts = self.row_starts(rows)?;
        let (from, to) = (row_starts[0] as usize, row_starts[row_starts.len() - 1] as usize);
        let (before, length) = (columns.len(), to - from);
        starts.extend(row_starts[1..].iter().map(|end| before + (*end as usize - from)));
        values.resize(before + length, T::default());
        let at = self.data.start + (from * T::BYTES) as u64;
        self.file.fill(at, &mut values[before..])?;
        let own_order = self.indices.element.big_endian == cfg!(target_endian = "big");
        if own_order && matches!(self.indices.element.number, Number::I32 | Number::U32) {
            // The core refuses numbers of d and above, to which negative ones belong when read this way.
            columns.resize(before + length, 0);
            return self.file.fill(self.indices.start + (from * 4) as u64, &mut columns[before..]);
        }
        let wide = self.whole_numbers("indices", self.indices, from..to)?;
        columns.extend(wide.iter().map(|x| u32::try_from(*x).unwrap_or(u32::MAX)));
        Ok(())
    }
}

/// The text in `format.npy`, zero bytes left out; returns its length.
fn read_text(zip: &mut ZipArchive<BufReader<File>>, text: &mut [u8]) -> usize {
    use std::io::Read;
    let Ok(mut entry) = zip.by_name("format.npy") else { return 0 };
    let mut bytes = Vec::new();
    if read_header("format", &mut entry).is_err() || entry.by_ref().take(256).read_to_end(&mut bytes).is_err()
    {
        return 0;
    }
    let letters = bytes.into_iter().filter(|byte| *byte != 0);
    text.iter_mut().zip(letters).map(|(to, letter)| *to = letter).count()
}

impl CsrOnDisk {
    /// Cuts chunks of at most `bytes` bytes; looks at all row starts once.
    fn cut_chunks(&mut self, bytes: u64) -> Result<(), ReadError> {
        let entry = self.entry_memory();
        let mut starts = Vec::new();
        let mut largest = 0;
        for part in &mut self.parts {
            let mut chunk = 0;
            starts.push(part.first_row);
            for from in (0..part.n_rows).step_by(STARTS_AT_ONCE) {
                let rows = from..part.n_rows.min(from + STARTS_AT_ONCE);
                let row_starts = part.row_starts(rows.clone())?;
                for (row, pair) in rows.zip(row_starts.windows(2)) {
                    let memory = (pair[1] - pair[0]) * entry + 8;
                    if chunk > 0 && chunk + memory > bytes {
                        starts.push(part.first_row + row);
                        chunk = 0;
                    }
                    chunk += memory;
                    largest = largest.max(chunk);
                }
            }
            if part.n_rows == 0 {
                starts.pop();
            }
        }
        starts.push(self.n);
        starts.shrink_to_fit();
        (self.starts, self.chunk_memory) = (starts, largest);
        Ok(())
    }
}

impl RowChunks for CsrOnDisk {
    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        self.cut_chunks(bytes).map_err(failed)
    }

    fn n_rows(&self) -> usize {
        self.n
    }

    fn n_cols(&self) -> usize {
        self.d
    }

    fn nnz(&self) -> usize {
        self.nnz
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn bytes(&self) -> u64 {
        let of = |array: &Array| array.length as u64 * array.element.size() as u64;
        self.parts.iter().map(|part| of(&part.data) + of(&part.indices) + of(&part.indptr)).sum()
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

impl OnDisk for CsrOnDisk {
    fn chunk_memory(&self) -> u64 {
        // Row starts and wide column numbers pass through memory of their own.
        2 * self.chunk_memory
    }

    fn memory(&self) -> u64 {
        self.nnz as u64 * self.entry_memory() + 8 * self.n as u64
    }
}
