//! One part of a chunk folder: rows on their way to a file that NumPy or SciPy opens, and back.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use hbpca::{Csr, Dense, Error, Matrix};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::manifest::{Content, Part};
use crate::ReadError;
use crate::block::{Layout, RowBlock, Values};
use crate::element::Element;
use crate::npy::{self, Header};

/// Rows that wait to be written.
pub(super) struct Rows {
    n_columns: usize,
    sparse: bool,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Values,
}

impl Rows {
    pub(super) fn new(n_columns: usize, sparse: bool, single: bool) -> Self {
        let values = if single { Values::F32(Vec::new()) } else { Values::F64(Vec::new()) };
        Self { n_columns, sparse, starts: vec![0], columns: Vec::new(), values }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Bytes they take in a file, headers aside.
    pub(super) fn bytes(&self) -> usize {
        let value = if matches!(self.values, Values::F32(_)) { 4 } else { 8 };
        let places = if self.sparse { 4 * self.columns.len() + 8 * self.starts.len() } else { 0 };
        value * self.values.len() + places
    }

    /// Adds row `l` of `rows`, with its zeros if rows are stored whole.
    pub(super) fn push(&mut self, rows: &Matrix<'_>, l: usize) {
        let start = self.values.len();
        if self.sparse {
            rows.for_each_in_row(l, |j, value| {
                self.columns.push(j as u32);
                self.values.push(value);
            });
        } else {
            crate::sink::for_each_dense(rows, l, |value| self.values.push(value));
        }
        debug_assert!(self.sparse || self.values.len() == start + self.n_columns);
        self.starts.push(self.values.len());
    }

    pub(super) fn clear(&mut self) {
        self.starts.truncate(1);
        self.columns.clear();
        match &mut self.values {
            Values::F32(x) => x.clear(),
            Values::F64(x) => x.clear(),
        }
    }

    pub(super) fn matrix(&self) -> Result<Matrix<'_>, Error> {
        let (n, d) = (self.len(), self.n_columns);
        let (starts, columns) = (&self.starts[..], &self.columns[..]);
        Ok(match (&self.values, self.sparse) {
            (Values::F32(x), true) => Csr::new(d, starts, columns, &x[..])?.into(),
            (Values::F64(x), true) => Csr::new(d, starts, columns, &x[..])?.into(),
            (Values::F32(x), false) => Dense::deferring_finite_check(x[..].into(), n, d)?.into(),
            (Values::F64(x), false) => Dense::deferring_finite_check(x[..].into(), n, d)?.into(),
        })
    }

    /// The same rows as a block.
    pub(super) fn into_block(mut self) -> RowBlock {
        self.starts.remove(0);
        let layout = if self.sparse {
            Layout::Sparse { row_ends: self.starts, columns: self.columns }
        } else {
            Layout::Dense(self.n_columns)
        };
        RowBlock { layout, values: self.values, labels: None, kept: Vec::new(), narrowed: false }
    }

    /// The file: one array, or the arrays of a SciPy CSR matrix, uncompressed.
    pub(super) fn file(&self) -> zip::result::ZipResult<Vec<u8>> {
        let single = matches!(self.values, Values::F32(_));
        let values: Vec<u8> = match &self.values {
            Values::F32(x) => x.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Values::F64(x) => x.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        if !self.sparse {
            let mut bytes = Header::bytes(npy::descr(single), &[self.len(), self.n_columns]);
            bytes.extend(values);
            return Ok(bytes);
        }
        // SciPy's own types of index, as long as they hold every column.
        let column_type = if i32::try_from(self.n_columns).is_ok() { "<i4" } else { "<u4" };
        let columns: Vec<u8> = self.columns.iter().flat_map(|j| j.to_le_bytes()).collect();
        let starts: Vec<u8> = self.starts.iter().flat_map(|&start| (start as u64).to_le_bytes()).collect();
        let shape: Vec<u8> =
            [self.len(), self.n_columns].iter().flat_map(|&x| (x as u64).to_le_bytes()).collect();
        let mut zip = ZipWriter::new(Cursor::new(Vec::with_capacity(self.bytes() + 2048)));
        for (name, header, bytes) in [
            ("format", Header::bytes("|S3", &[]), &b"csr"[..]),
            ("shape", Header::bytes("<i8", &[2]), &shape),
            ("indptr", Header::bytes("<i8", &[self.starts.len()]), &starts),
            ("indices", Header::bytes(column_type, &[self.columns.len()]), &columns),
            ("data", Header::bytes(npy::descr(single), &[self.values.len()]), &values),
        ] {
            let options =
                SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
            zip.start_file(format!("{name}.npy"), options)?;
            zip.write_all(&header)?;
            zip.write_all(bytes)?;
        }
        Ok(zip.finish()?.into_inner())
    }
}

/// All bytes of a file whose content the manifest knows.
pub(super) fn read_checked(path: &Path, content: Content) -> Result<Vec<u8>, ReadError> {
    let name = path.display().to_string();
    let refused = |source| ReadError::io(&name, source);
    let mut file = open_sized(path, content)?;
    // The size was compared with the manifest's: the claim is backed by bytes that are there.
    let mut bytes = Vec::with_capacity(content.bytes as usize);
    file.read_to_end(&mut bytes).map_err(refused)?;
    let found = Content::of(&bytes);
    if found == content {
        return Ok(bytes);
    }
    Err(ReadError::malformed(
        &name,
        format!(
            "its checksum is {:08x}, but {:08x} was written: the disk or a copy damaged it; restore it from a copy, or \
             convert the data again",
            found.crc32, content.crc32
        ),
    ))
}

/// Opens a file that must have the size the manifest says.
pub(super) fn open_sized(path: &Path, content: Content) -> Result<File, ReadError> {
    let name = path.display().to_string();
    let way_out = "restore it from a copy, or convert the data again";
    let file = File::open(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            ReadError::malformed(&name, format!("this file of the chunk folder is missing: {way_out}"))
        }
        _ => ReadError::io(&name, source),
    })?;
    let found = file.metadata().map_err(|source| ReadError::io(&name, source))?.len();
    if found == content.bytes {
        return Ok(file);
    }
    let text = format!("it has {found} bytes, but {} were written: {way_out}", content.bytes);
    Err(ReadError::malformed(&name, text))
}

/// Some rows of a part, found without reading the others. Only what is read can be checked.
pub(super) struct Window<'a> {
    pub(super) path: &'a Path,
    pub(super) part: &'a Part,
    pub(super) n_columns: usize,
}

/// An array within a file.
struct Place {
    element: Element,
    length: u64,
    start: u64,
}

impl Window<'_> {
    /// Rows within the part, counted from its first.
    pub(super) fn read(&self, rows: Range<usize>, sparse: bool) -> Result<Matrix<'static>, ReadError> {
        let mut file = open_sized(self.path, self.part.content)?;
        let matrix = if sparse { self.sparse(file, rows)? } else { self.dense(&mut file, rows)? };
        matrix.map_err(|error| self.malformed(error.to_string()))
    }

    fn malformed(&self, text: impl Into<String>) -> ReadError {
        ReadError::malformed(&self.path.display().to_string(), text)
    }

    fn dense(
        &self,
        file: &mut File,
        rows: Range<usize>,
    ) -> Result<Result<Matrix<'static>, Error>, ReadError> {
        let d = self.n_columns;
        let header = npy::read_header(&self.path.display().to_string(), file)?;
        if header.fortran_order || header.shape != [self.part.rows as usize, d] {
            return Err(self.wrong_shape(&header.shape));
        }
        let element = header.element().map_err(|text| self.malformed(text))?;
        let place = Place { element, length: self.part.entries, start: header.data_start };
        let values = self.values(file, &place, rows.start * d..rows.end * d)?;
        Ok(match values {
            Values::F32(x) => Dense::new(x, rows.len(), d).map(Matrix::from),
            Values::F64(x) => Dense::new(x, rows.len(), d).map(Matrix::from),
        })
    }

    fn sparse(&self, file: File, rows: Range<usize>) -> Result<Result<Matrix<'static>, Error>, ReadError> {
        let mut zip = ZipArchive::new(file).map_err(|error| self.malformed(error.to_string()))?;
        let starts = self.place(&mut zip, "indptr", self.part.rows + 1)?;
        let columns = self.place(&mut zip, "indices", self.part.entries)?;
        let values = self.place(&mut zip, "data", self.part.entries)?;
        let mut file = zip.into_inner();
        let starts = self.indices(&mut file, &starts, rows.start..rows.end + 1, u64::MAX)?;
        let (first, last) = (starts[0], starts[starts.len() - 1]);
        if !starts.is_sorted() || last > self.part.entries {
            return Err(self.malformed("`indptr` does not ascend to the number of entries"));
        }
        let entries = first as usize..last as usize;
        let columns = self.indices(&mut file, &columns, entries.clone(), u64::from(u32::MAX))?;
        let columns: Vec<u32> = columns.into_iter().map(|j| j as u32).collect();
        let values = self.values(&mut file, &values, entries)?;
        let starts: Vec<usize> = starts.into_iter().map(|start| (start - first) as usize).collect();
        Ok(match values {
            Values::F32(x) => Csr::new(self.n_columns, starts, columns, x).map(Matrix::from),
            Values::F64(x) => Csr::new(self.n_columns, starts, columns, x).map(Matrix::from),
        })
    }

    /// Where the numbers of an array lie in the file.
    fn place(&self, zip: &mut ZipArchive<File>, array: &str, length: u64) -> Result<Place, ReadError> {
        let wrong = |text: String| self.malformed(format!("`{array}`: {text}"));
        let mut entry = zip.by_name(&format!("{array}.npy")).map_err(|error| wrong(error.to_string()))?;
        if entry.compression() != CompressionMethod::Stored {
            return Err(wrong("compressed, but parts are not".into()));
        }
        let offset = entry.data_start().ok_or_else(|| wrong("its place is unknown".into()))?;
        let header = npy::read_header(&self.path.display().to_string(), &mut entry)?;
        if header.shape != [length as usize] {
            return Err(self.wrong_shape(&header.shape));
        }
        let element = header.element().map_err(wrong)?;
        Ok(Place { element, length, start: offset + header.data_start })
    }

    fn wrong_shape(&self, found: &[usize]) -> ReadError {
        let Part { rows, entries, .. } = self.part;
        self.malformed(format!(
            "an array of shape {found:?} does not fit {rows} rows × {} columns with {entries} entries",
            self.n_columns
        ))
    }

    fn values(&self, file: &mut File, place: &Place, range: Range<usize>) -> Result<Values, ReadError> {
        Ok(place.element.decode(&self.bytes(file, place, range)?))
    }

    fn indices(
        &self,
        file: &mut File,
        place: &Place,
        range: Range<usize>,
        most: u64,
    ) -> Result<Vec<u64>, ReadError> {
        let bytes = self.bytes(file, place, range)?;
        let found = place.element.decode_indices(&bytes, |x| (x <= most).then_some(x));
        found.ok_or_else(|| self.malformed("indices must be whole numbers from 0 on"))
    }

    fn bytes(&self, file: &mut File, place: &Place, range: Range<usize>) -> Result<Vec<u8>, ReadError> {
        debug_assert!(range.end as u64 <= place.length);
        let size = place.element.size();
        let mut bytes = vec![0; range.len() * size];
        file.seek(SeekFrom::Start(place.start + (range.start * size) as u64))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|source| ReadError::io(&self.path.display().to_string(), source))?;
        Ok(bytes)
    }
}
