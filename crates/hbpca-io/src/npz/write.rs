//! Archives of arrays, as NumPy and SciPy write them.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use hbpca::Matrix;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

use crate::WriteError;
use crate::binary::write_dense;
use crate::block::Labels;
use crate::npy::{self, Header};
use crate::sink::{Out, RowSink, Summary};

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
