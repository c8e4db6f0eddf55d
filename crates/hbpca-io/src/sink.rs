//! Writing: rows in, a file out, whole or not at all.

use std::io::Write;
use std::path::Path;

use hbpca::Matrix;
use rayon::prelude::*;

use crate::block::Labels;
use crate::chunk_folder::{ChunkSink, OutputFolder};
use crate::compression::Compressor;
use crate::shuffle::Shuffle;
use crate::{Compression, Format, OutputFile, WriteError, csv, idx, kept, libsvm, matrix_market, npy, npz};

/// What a writer may be told.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// The format, when the file's name should not decide.
    pub format: Option<Format>,
    /// The names of the columns, for CSV, TSV and Parquet.
    pub column_names: Option<Vec<String>>,
    /// Labels, one a row. LIBSVM always holds them.
    pub labels: Option<Labels>,
    /// The name of the last column of CSV, TSV or Parquet, in which labels are written; without it they are not.
    pub label_column: Option<String>,
    /// Columns written before the others, by name: numbers or texts. Formats without texts take numbers as columns of the matrix.
    pub kept: Vec<(String, Labels)>,
    /// The most bytes that sparse rows may take in a format that stores their zeros.
    pub dense_limit: u64,
    /// Write the rows in a random order that this seed decides.
    pub shuffle: Option<u64>,
    /// The bytes after which a part of a chunk folder ends.
    pub part_bytes: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            format: None,
            column_names: None,
            labels: None,
            label_column: None,
            kept: Vec::new(),
            dense_limit: 16 << 30,
            shuffle: None,
            part_bytes: 32 << 20,
        }
    }
}

/// What must be known of a matrix before its first row is written.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "four facts that do not depend on each other")]
pub struct Summary {
    /// n.
    pub n_rows: usize,
    /// d.
    pub n_columns: usize,
    /// Entries stored: all of dense rows, the explicit ones of sparse rows.
    pub n_entries: usize,
    /// Whether rows are sparse.
    pub sparse: bool,
    /// Whether the values are f32.
    pub single: bool,
    /// Whether every value is a whole number from 0 to 255.
    pub all_bytes: bool,
    /// Whether a label is text.
    pub text_labels: bool,
}

impl Summary {
    /// The summary of a matrix in memory.
    pub fn of(matrix: &Matrix<'_>) -> Self {
        let mut all_bytes = true;
        for l in 0..matrix.n_rows() {
            matrix.for_each_in_row(l, |_, value| all_bytes &= is_byte(value));
            if !all_bytes {
                break;
            }
        }
        Self {
            n_rows: matrix.n_rows(),
            n_columns: matrix.n_cols(),
            n_entries: matrix.nnz(),
            sparse: matrix.is_sparse(),
            single: matches!(matrix, Matrix::DenseF32(_) | Matrix::CsrF32(_)),
            all_bytes,
            text_labels: false,
        }
    }
}

/// Whether `value` is a whole number from 0 to 255 (and not −0, whose sign a byte would lose).
pub(crate) fn is_byte(value: f64) -> bool {
    f64::from(value as u8).to_bits() == value.to_bits()
}

/// Takes rows, in order, and makes them a file.
pub trait RowSink {
    /// Writes the next rows.
    fn write_rows(&mut self, rows: &Matrix<'_>, labels: Option<&Labels>) -> Result<(), WriteError>;

    /// Completes the file and gives it its name.
    fn finish(self: Box<Self>) -> Result<(), WriteError>;
}

/// Writes a matrix to a file, in the format and compression that its name says.
///
/// ```
/// use hbpca::{Dense, Matrix};
/// use hbpca_io::{Input, ReadOptions, WriteOptions, read, write};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("x.csv.gz");
/// let x: Matrix = Dense::new(vec![1.0, 0.1, 3.0, 4.0], 2, 2)?.into();
/// write(&path, &x, &WriteOptions::default())?;
/// let back = read(Input::path(&path), &ReadOptions::default())?;
/// assert_eq!((back.matrix.n_rows(), back.matrix.n_cols()), (2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(path: &Path, matrix: &Matrix<'_>, options: &WriteOptions) -> Result<(), WriteError> {
    let format = output_format(path, options)?;
    if !options.kept.is_empty() && !format.has_texts() {
        let joined = kept::join_kept(&path.display().to_string(), matrix, &options.kept)?;
        return write(path, &joined, &WriteOptions { kept: Vec::new(), ..options.clone() });
    }
    let out = Output::create(path, format)?;
    let text_labels = matches!(options.labels, Some(Labels::Texts(_)));
    let summary = Summary { text_labels, ..Summary::of(matrix) };
    let mut sink = out.into_sink(path, &summary, options)?;
    sink.write_rows(matrix, options.labels.as_ref())?;
    sink.finish()
}

/// What is being written: a file, or a folder of them.
pub(crate) enum Output {
    File(OutputFile),
    Folder(OutputFolder),
}

impl Output {
    /// Starts the file or the folder.
    pub(crate) fn create(path: &Path, format: Format) -> Result<Self, WriteError> {
        if format != Format::Chunks {
            return Ok(Self::File(OutputFile::create(path)?));
        }
        if let Some(how) = Compression::from_path(path) {
            let text = format!("a chunk folder is not compressed: leave out .{}", how.extension());
            return Err(WriteError::unsuitable(&path.display().to_string(), text));
        }
        Ok(Self::Folder(OutputFolder::create(path)?))
    }

    /// A folder for what must be kept aside meanwhile.
    pub(crate) fn folder(&self) -> &Path {
        match self {
            Self::File(file) => file.folder(),
            Self::Folder(folder) => folder.place(),
        }
    }

    /// The sink, through a shuffle if one is wanted.
    pub(crate) fn into_sink(
        self,
        path: &Path,
        summary: &Summary,
        options: &WriteOptions,
    ) -> Result<Box<dyn RowSink>, WriteError> {
        let aside = self.folder().to_owned();
        let sink: Box<dyn RowSink> = match self {
            Self::File(file) => create_sink(file, path, summary, options)?,
            Self::Folder(folder) => Box::new(ChunkSink::new(folder, summary, options)?),
        };
        let Some(seed) = options.shuffle else { return Ok(sink) };
        let name = path.display().to_string();
        Ok(Box::new(Shuffle::new(sink, &name, &aside, summary, seed, options.part_bytes)?))
    }
}

/// A sink for rows of the matrix that `summary` describes, in the format and compression that `path` says.
pub fn create_sink(
    out: OutputFile,
    path: &Path,
    summary: &Summary,
    options: &WriteOptions,
) -> Result<Box<dyn RowSink>, WriteError> {
    let format = output_format(path, options)?;
    refuse_too_dense(out.name(), format, summary, options.dense_limit)?;
    let name = out.name().to_owned();
    let folder = out.folder().to_owned();
    let compressed = Compression::compress(Compression::from_path(path), out);
    let out = Out { compressor: compressed.map_err(|source| WriteError::io(&name, source))?, name };
    Ok(match format {
        Format::Chunks => {
            let text = "a chunk folder is written by `hbpca convert`: write a file such as .npy first";
            return Err(WriteError::unsuitable(&out.name, text));
        }
        Format::Bed => {
            let text = "genotypes are read and not written: write numbers, such as .npy or .csv";
            return Err(WriteError::unsuitable(&out.name, text));
        }
        Format::H5ad => {
            let text = "cells are read and not written: write numbers, such as .npz or .csv, and let anndata take them in";
            return Err(WriteError::unsuitable(&out.name, text));
        }
        Format::Libsvm => Box::new(libsvm::LibsvmSink::new(out)),
        Format::Csv => Box::new(csv::CsvSink::new(out, b',', summary, options)?),
        Format::Tsv => Box::new(csv::CsvSink::new(out, b'\t', summary, options)?),
        Format::Npy => Box::new(npy::NpySink::new(out, summary)?),
        Format::Npz if summary.sparse => Box::new(npz::SparseNpzSink::new(out, &folder, summary)?),
        Format::Npz => Box::new(npz::DenseNpzSink::new(out, summary)?),
        Format::MatrixMarket if summary.sparse => Box::new(matrix_market::CoordinateSink::new(out, summary)?),
        Format::MatrixMarket => Box::new(matrix_market::ArraySink::new(out, summary)),
        Format::Idx => Box::new(idx::IdxSink::new(out, summary)?),
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(crate::parquet::ParquetSink::new(out, summary, options)?),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => {
            let text = "this build writes no Parquet: enable the feature `parquet`";
            return Err(WriteError::unsuitable(&out.name, text));
        }
    })
}

/// The format that the options or the file's name ask for.
pub(crate) fn output_format(path: &Path, options: &WriteOptions) -> Result<Format, WriteError> {
    options.format.or_else(|| Format::from_path(path)).ok_or_else(|| {
        let names = Format::ALL.map(Format::name).join(", ");
        WriteError::unsuitable(
            &path.display().to_string(),
            format!("the name shows no format: end it in one of {names}, {}", Format::Chunks),
        )
    })
}

fn refuse_too_dense(name: &str, format: Format, summary: &Summary, limit: u64) -> Result<(), WriteError> {
    let stores_zeros =
        matches!(format, Format::Csv | Format::Tsv | Format::Npy | Format::Idx | Format::Parquet);
    let size = if summary.single { 4 } else { 8 };
    let bytes = summary.n_rows as u128 * summary.n_columns as u128 * size;
    if summary.sparse && stores_zeros && bytes > u128::from(limit) {
        return Err(WriteError::unsuitable(
            name,
            format!(
                "with its zeros the matrix of {} rows × {} columns takes {bytes} bytes, more than the limit of \
                 {limit}: write .npz, .mtx or .svm, which leave zeros out, or raise the limit",
                summary.n_rows, summary.n_columns
            ),
        ));
    }
    Ok(())
}

/// A file being written through its compression.
pub(crate) struct Out {
    compressor: Compressor<OutputFile>,
    name: String,
}

impl Out {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.compressor.write_all(bytes).map_err(|source| WriteError::io(&self.name, source))
    }

    /// Writes one line for each row, made by `line(row, text)`; lines are made in parallel.
    pub(crate) fn rows(
        &mut self,
        rows: &Matrix<'_>,
        line: impl Fn(usize, &mut Vec<u8>) + Sync,
    ) -> Result<(), WriteError> {
        self.pieces(rows, |l, text| {
            line(l, text);
            text.push(b'\n');
        })
    }

    /// Writes what `chunk(row, text)` makes of each row; chunks are made in parallel.
    pub(crate) fn pieces(
        &mut self,
        rows: &Matrix<'_>,
        piece: impl Fn(usize, &mut Vec<u8>) + Sync,
    ) -> Result<(), WriteError> {
        const ENTRIES: usize = 1 << 14;
        const PIECES_AT_ONCE: usize = 64;
        let n = rows.n_rows();
        let width = if rows.is_sparse() { rows.nnz() / n } else { rows.n_cols() };
        let at_once = (ENTRIES / width.max(1)).max(1);
        let starts: Vec<usize> = (0..n).step_by(at_once).collect();
        for batch in starts.chunks(PIECES_AT_ONCE) {
            let make = |&start: &usize| {
                let mut text = Vec::new();
                for l in start..n.min(start + at_once) {
                    piece(l, &mut text);
                }
                text
            };
            let texts: Vec<Vec<u8>> = batch.par_iter().map(make).collect();
            for text in texts {
                self.write(&text)?;
            }
        }
        Ok(())
    }

    /// Ends the compression and gives the file its name.
    pub(crate) fn finish(self) -> Result<(), WriteError> {
        let out = self.compressor.finish().map_err(|source| WriteError::io(&self.name, source))?;
        out.commit()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.compressor.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.compressor.flush()
    }
}

/// The shortest decimal that reads back as `value`, in f32 if `single`.
pub(crate) fn push_number(line: &mut Vec<u8>, value: f64, single: bool) {
    let magnitude = value.abs();
    let plain = magnitude == 0.0 || (1e-5..1e16).contains(&magnitude);
    // A Vec never refuses.
    let _ = match (single, plain) {
        (true, true) => write!(line, "{}", value as f32),
        (true, false) => write!(line, "{:e}", value as f32),
        (false, true) => write!(line, "{value}"),
        (false, false) => write!(line, "{value:e}"),
    };
}

/// Calls `each` with every value of a row, zeros included.
pub(crate) fn for_each_dense(rows: &Matrix<'_>, l: usize, mut each: impl FnMut(f64)) {
    let mut next = 0;
    rows.for_each_in_row(l, |j, value| {
        (next..j).for_each(|_| each(0.0));
        each(value);
        next = j + 1;
    });
    (next..rows.n_cols()).for_each(|_| each(0.0));
}
