//! A zip archive of NumPy arrays: a SciPy sparse matrix (CSR, CSC, COO), or one dense array.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Cursor, Read, Seek, Write};
use std::path::Path;

use hbpca::Matrix;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::binary::{read_claimed, refuse_absurd_rows, write_dense};
use crate::block::{Labels, RowBlock, Values};
use crate::element::Element;
use crate::input::Opened;
use crate::npy::{self, Header, transposed};
use crate::sink::{Out, RowSink, Summary};
use crate::source::{RowSource, Stated};
use crate::sparse::{Entries, compressed};
use crate::{ReadError, WriteError};

trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// The archive and the bytes it was made of.
struct Archive {
    name: String,
    zip: ZipArchive<Box<dyn ReadSeek>>,
    size: u64,
}

/// An array of an archive.
struct Array {
    header: Header,
    bytes: Vec<u8>,
}

impl Archive {
    fn open(mut opened: Opened) -> Result<Self, ReadError> {
        let name = opened.name.clone();
        let bytes: Box<dyn ReadSeek> = match &opened.plain {
            Some(path) => {
                Box::new(BufReader::new(File::open(path).map_err(|source| ReadError::io(&name, source))?))
            }
            None => Box::new(Cursor::new(opened.read_all()?)),
        };
        let mut bytes = bytes;
        let size = bytes.seek(io::SeekFrom::End(0)).map_err(|source| ReadError::io(&name, source))?;
        let zip = ZipArchive::new(bytes).map_err(|error| unzip_error(&name, error))?;
        Ok(Self { name, zip, size })
    }

    fn has(&self, array: &str) -> bool {
        self.zip.index_for_name(&format!("{array}.npy")).is_some()
    }

    fn array(&mut self, array: &str) -> Result<Array, ReadError> {
        let place = format!("{}({array})", self.name);
        let mut entry = self.zip.by_name(&format!("{array}.npy")).map_err(|error| match error {
            zip::result::ZipError::FileNotFound => {
                ReadError::malformed(&self.name, format!("the archive holds no array `{array}`"))
            }
            other => unzip_error(&place, other),
        })?;
        let header = npy::read_header(&place, &mut entry)?;
        let size = match header.element() {
            Ok(element) => header.data_bytes(element),
            // Texts (`format`) have no numbers in them but a length in bytes or characters.
            Err(_) => text_bytes(&header.descr).map_err(|text| ReadError::malformed(&place, text))?,
        };
        let room = entry.size().saturating_sub(header.data_start);
        if size > u128::from(room) {
            let text = format!("shape {:?} needs {size} bytes, but there are only {room}", header.shape);
            return Err(ReadError::malformed(&place, text));
        }
        let bytes = read_claimed(&mut entry, size as usize, &place)?;
        Ok(Array { header, bytes })
    }

    /// The whole numbers of an array of one dimension.
    fn indices(&mut self, array: &str) -> Result<Vec<u64>, ReadError> {
        let found = self.array(array)?;
        let element = self.element(array, &found)?;
        element.decode_indices(&found.bytes, Some).ok_or_else(|| {
            ReadError::malformed(&self.name, format!("`{array}` holds something else than numbers from 0 on"))
        })
    }

    /// Row or column numbers, each below `bound`.
    fn places(&mut self, array: &str, bound: usize) -> Result<Vec<u32>, ReadError> {
        let found = self.array(array)?;
        let element = self.element(array, &found)?;
        let keep = |x: u64| u32::try_from(x).ok().filter(|&x| (x as usize) < bound);
        element.decode_indices(&found.bytes, keep).ok_or_else(|| {
            let text = format!("`{array}` holds something else than numbers from 0 to below {bound}");
            ReadError::malformed(&self.name, text)
        })
    }

    fn values(&mut self, array: &str) -> Result<Values, ReadError> {
        let found = self.array(array)?;
        Ok(self.element(array, &found)?.decode(&found.bytes))
    }

    fn element(&self, array: &str, found: &Array) -> Result<Element, ReadError> {
        found.header.element().map_err(|text| ReadError::malformed(&self.name, format!("`{array}`: {text}")))
    }
}

fn unzip_error(name: &str, error: zip::result::ZipError) -> ReadError {
    match error {
        zip::result::ZipError::Io(source) => ReadError::io(name, source),
        other => ReadError::malformed(name, format!("not a zip archive that can be read: {other}")),
    }
}

/// Bytes of a text of NumPy's type `S3` or `U3`.
fn text_bytes(descr: &str) -> Result<u128, String> {
    let kind = descr.trim_start_matches(['<', '>', '|', '=']);
    let unit = match kind.bytes().next() {
        Some(b'S') => 1,
        Some(b'U') => 4,
        _ => return Err(format!("entries of type `{descr}` are not read")),
    };
    let length: u128 = kind[1..].parse().map_err(|_| format!("entries of type `{descr}` are not read"))?;
    if length > 64 {
        Err(format!("a text of {length} characters is no name of a format"))
    } else {
        Ok(length * unit)
    }
}

/// The one block of an archive.
pub(crate) struct NpzSource {
    n_columns: usize,
    block: Option<RowBlock>,
}

impl NpzSource {
    pub(crate) fn open(opened: Opened) -> Result<Self, ReadError> {
        let mut archive = Archive::open(opened)?;
        if archive.has("format") { sparse(&mut archive) } else { dense(&mut archive) }
    }
}

fn dense(archive: &mut Archive) -> Result<NpzSource, ReadError> {
    let names: Vec<String> =
        archive.zip.file_names().filter_map(|name| name.strip_suffix(".npy")).map(str::to_owned).collect();
    let [name] = &names[..] else {
        return Err(ReadError::malformed(
            &archive.name,
            format!(
                "the archive holds {} arrays and is no SciPy sparse matrix: store one array, or use \
                 scipy.sparse.save_npz",
                names.len()
            ),
        ));
    };
    let array = archive.array(name)?;
    let malformed = |text| ReadError::malformed(&archive.name, format!("`{name}`: {text}"));
    let (n, d) = array.header.rows_and_columns().map_err(malformed)?;
    let mut values = archive.element(name, &array)?.decode(&array.bytes);
    if array.header.fortran_order {
        values = match values {
            Values::F32(x) => Values::F32(transposed(&x, n, d)),
            Values::F64(x) => Values::F64(transposed(&x, n, d)),
        };
    }
    let block = (n > 0 && d > 0).then(|| RowBlock::dense(d, values));
    Ok(NpzSource { n_columns: d, block })
}

fn sparse(archive: &mut Archive) -> Result<NpzSource, ReadError> {
    let format: Vec<u8> = archive.array("format")?.bytes.into_iter().filter(|&byte| byte != 0).collect();
    let shape = archive.indices("shape")?;
    let name = archive.name.clone();
    let malformed = |text: String| ReadError::malformed(&name, text);
    let &[n, d] = &shape[..] else {
        return Err(malformed(format!("`shape` has {} numbers, a matrix has 2", shape.len())));
    };
    let bounded = |x: u64| usize::try_from(x).ok().filter(|&x| x <= u32::MAX as usize + 1);
    let (Some(n), Some(d)) = (bounded(n), bounded(d)) else {
        return Err(malformed(format!("{n} rows × {d} columns: at most 2³² of each are read")));
    };
    let values = archive.values("data")?;
    let agree = |what: &str, found: usize| {
        let text = format!("`{what}` has {found} numbers, `data` has {}", values.len());
        if found == values.len() { Ok(()) } else { Err(malformed(text)) }
    };
    let block = match &format[..] {
        b"csr" => {
            let starts = archive.indices("indptr")?;
            let columns = archive.places("indices", d)?;
            agree("indices", columns.len())?;
            compressed(pointers(starts, n, values.len()).map_err(malformed)?, columns, values)
        }
        b"csc" => {
            let starts = archive.indices("indptr")?;
            let rows = archive.places("indices", n)?;
            agree("indices", rows.len())?;
            refuse_absurd_rows(n, archive.size, &name)?;
            let starts = pointers(starts, d, values.len()).map_err(malformed)?;
            let mut columns = Vec::with_capacity(rows.len());
            for (j, ends) in starts.windows(2).enumerate() {
                columns.resize(columns.len() + ends[1] - ends[0], j as u32);
            }
            Entries { n_rows: n, rows, columns, values }.into_block()
        }
        b"coo" => {
            let (rows, columns) = (archive.places("row", n)?, archive.places("col", d)?);
            agree("row", rows.len())?;
            agree("col", columns.len())?;
            refuse_absurd_rows(n, archive.size, &name)?;
            Entries { n_rows: n, rows, columns, values }.into_block()
        }
        other => {
            let other = String::from_utf8_lossy(other);
            return Err(malformed(format!("sparse format `{other}` is not read: store x.tocsr() instead")));
        }
    };
    Ok(NpzSource { n_columns: d, block: (n > 0).then_some(block) })
}

/// Row pointers: n + 1 numbers from 0 to the number of entries that never descend.
fn pointers(starts: Vec<u64>, n: usize, n_entries: usize) -> Result<Vec<usize>, String> {
    if starts.len() != n + 1 {
        return Err(format!("`indptr` has {} numbers where {} are needed", starts.len(), n + 1));
    }
    if starts[0] != 0 || starts[n] != n_entries as u64 || !starts.is_sorted() {
        return Err(format!(
            "`indptr` must ascend from 0 to the {n_entries} entries of `data`, but does not"
        ));
    }
    Ok(starts.into_iter().map(|x| x as usize).collect())
}

impl RowSource for NpzSource {
    fn stated(&self) -> Stated {
        Stated { n_columns: Some(self.n_columns), ..Stated::default() }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        Ok(self.block.take().into_iter().collect())
    }
}

/// An archive being written.
struct ZipOut {
    zip: ZipWriter<StreamWriter<Out>>,
    name: String,
}

impl ZipOut {
    fn new(out: Out) -> Self {
        Self { name: out.name().to_owned(), zip: ZipWriter::new_stream(out) }
    }

    fn start(&mut self, array: &str, header: &[u8]) -> Result<(), WriteError> {
        let options =
            SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(true);
        self.zip
            .start_file(format!("{array}.npy"), options)
            .map_err(|error| WriteError::io(&self.name, io::Error::other(error)))?;
        self.write(header)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.zip.write_all(bytes).map_err(|source| WriteError::io(&self.name, source))
    }

    fn finish(self) -> Result<(), WriteError> {
        let out = self.zip.finish().map_err(|error| WriteError::io(&self.name, io::Error::other(error)))?;
        out.into_inner().finish()
    }
}

/// Writes one dense array, named as NumPy names it.
pub(crate) struct DenseNpzSink {
    zip: ZipOut,
    single: bool,
}

impl DenseNpzSink {
    pub(crate) fn new(out: Out, summary: &Summary) -> Result<Self, WriteError> {
        let mut zip = ZipOut::new(out);
        zip.start("arr_0", &Header::bytes(npy::descr(summary.single), &[summary.n_rows, summary.n_columns]))?;
        Ok(Self { zip, single: summary.single })
    }
}

impl RowSink for DenseNpzSink {
    fn write_rows(&mut self, rows: &Matrix<'_>, _: Option<&Labels>) -> Result<(), WriteError> {
        let single = self.single;
        write_dense(rows, |bytes, value| push_value(bytes, value, single), |bytes| self.zip.write(bytes))
    }

    fn finish(self: Box<Self>) -> Result<(), WriteError> {
        self.zip.finish()
    }
}

fn push_value(bytes: &mut Vec<u8>, value: f64, single: bool) {
    if single {
        bytes.extend((value as f32).to_le_bytes());
    } else {
        bytes.extend(value.to_le_bytes());
    }
}

/// Writes a SciPy CSR matrix. Its three arrays follow each other in the archive but grow together, so they
/// wait in unnamed files beside it.
pub(crate) struct SparseNpzSink {
    zip: ZipOut,
    shape: [usize; 2],
    single: bool,
    n_entries: u64,
    row_ends: BufWriter<File>,
    columns: BufWriter<File>,
    values: BufWriter<File>,
}

impl SparseNpzSink {
    pub(crate) fn new(out: Out, folder: &Path, summary: &Summary) -> Result<Self, WriteError> {
        let aside = || {
            let file = tempfile::tempfile_in(folder).map_err(|source| WriteError::io(out.name(), source))?;
            Ok(BufWriter::new(file))
        };
        Ok(Self {
            row_ends: aside()?,
            columns: aside()?,
            values: aside()?,
            zip: ZipOut::new(out),
            shape: [summary.n_rows, summary.n_columns],
            single: summary.single,
            n_entries: 0,
        })
    }

    fn set_aside(&mut self, rows: &Matrix<'_>) -> io::Result<()> {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for l in 0..rows.n_rows() {
            columns.clear();
            values.clear();
            rows.for_each_in_row(l, |j, value| {
                columns.extend((j as u32).to_le_bytes());
                push_value(&mut values, value, self.single);
            });
            self.n_entries += columns.len() as u64 / 4;
            self.row_ends.write_all(&self.n_entries.to_le_bytes())?;
            self.columns.write_all(&columns)?;
            self.values.write_all(&values)?;
        }
        Ok(())
    }

    /// Moves an array from its file into the archive.
    fn take(zip: &mut ZipOut, array: &str, header: &[u8], file: BufWriter<File>) -> Result<(), WriteError> {
        zip.start(array, header)?;
        if array == "indptr" {
            zip.write(&0_u64.to_le_bytes())?;
        }
        let copied = file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|mut file| {
            file.rewind()?;
            io::copy(&mut file, &mut zip.zip)
        });
        copied.map(drop).map_err(|source| WriteError::io(&zip.name, source))
    }
}

impl RowSink for SparseNpzSink {
    fn write_rows(&mut self, rows: &Matrix<'_>, _: Option<&Labels>) -> Result<(), WriteError> {
        self.set_aside(rows).map_err(|source| WriteError::io(&self.zip.name, source))
    }

    fn finish(self: Box<Self>) -> Result<(), WriteError> {
        let mut zip = self.zip;
        let (n_entries, [n, d]) = (self.n_entries as usize, self.shape);
        // SciPy's index type is signed: i4 where the largest column fits.
        let index_type = if i32::try_from(d).is_ok() { "<i4" } else { "<u4" };
        Self::take(&mut zip, "indices", &Header::bytes(index_type, &[n_entries]), self.columns)?;
        Self::take(&mut zip, "indptr", &Header::bytes("<i8", &[n + 1]), self.row_ends)?;
        zip.start("format", &Header::bytes("|S3", &[]))?;
        zip.write(b"csr")?;
        zip.start("shape", &Header::bytes("<i8", &[2]))?;
        zip.write(&[(n as u64).to_le_bytes(), (d as u64).to_le_bytes()].concat())?;
        Self::take(&mut zip, "data", &Header::bytes(npy::descr(self.single), &[n_entries]), self.values)?;
        zip.finish()
    }
}

#[cfg(test)]
mod tests;
