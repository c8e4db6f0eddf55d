//! A folder of parts with a manifest: what text, compressed files and Parquet become, once, to be read many times.
//!
//! ```text
//! x.chunks/manifest.json     n, d, entries, type, size and checksum of every file, column names, seed of the shuffle
//!         /part-000000.npy   some rows: an array of NumPy, or …
//!         /part-000000.npz   … a CSR matrix of SciPy, uncompressed
//!         /statistics.npy    4×d: mean, variance, minimum and maximum of every column
//!         /labels.npy        one number a row, or labels.jsonl, one text a row
//! ```
//!
//! Every file is of a public format, so nothing is lost without this program. The folder appears when it is complete.

mod labels;
mod manifest;
mod output_folder;
mod part;
mod source;
mod write;

pub use manifest::Manifest;
pub(crate) use output_folder::OutputFolder;
pub(crate) use source::ChunkSource;
pub(crate) use write::ChunkSink;

use std::hash::Hasher;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use hbpca::{ColumnStatistics, Error, Matrix, RowChunks};
use twox_hash::XxHash3_64;

use crate::ReadError;
use crate::block::{Labels, RowBlock, Values};
use crate::input::Opened;
use crate::npz::NpzSource;
use crate::source::RowSource;
use manifest::{Dtype, MANIFEST, STATISTICS};
use part::{Window, open_sized, read_checked};

/// The most bytes of a manifest: some millions of column names.
const LONGEST_MANIFEST: u64 = 256 << 20;

/// A chunk folder, ready to be read part by part, any number of times.
///
/// ```
/// use hbpca::{Dense, Matrix, RowChunks};
/// use hbpca_io::{ChunkFolder, WriteOptions, write};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("x.chunks");
/// let x: Matrix = Dense::new(vec![1.0, 0.1, 3.0, 4.0], 2, 2)?.into();
/// write(&path, &x, &WriteOptions::default())?;
/// let mut chunks = ChunkFolder::open(&path)?;
/// assert_eq!(chunks.starts(), [0, 2]);
/// assert_eq!(chunks.read_chunk(0, None)?.n_rows(), 2);
/// assert_eq!(chunks.statistics()?.mean(), [2.0, 2.05]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChunkFolder {
    path: PathBuf,
    manifest: Manifest,
    starts: Vec<usize>,
}

impl ChunkFolder {
    /// Whether there is a manifest in the folder.
    pub fn recognise(path: &Path) -> bool {
        path.join(MANIFEST).is_file()
    }

    /// Opens a folder. Every file that the manifest names must be there and have its size; contents are compared with
    /// their checksums when they are read.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let manifest_path = path.join(MANIFEST);
        let name = manifest_path.display().to_string();
        let refused = |source| ReadError::io(&name, source);
        let file = std::fs::File::open(&manifest_path).map_err(refused)?;
        let mut json = Vec::new();
        file.take(LONGEST_MANIFEST + 1).read_to_end(&mut json).map_err(refused)?;
        if json.len() as u64 > LONGEST_MANIFEST {
            return Err(ReadError::malformed(
                &name,
                format!("a manifest has at most {LONGEST_MANIFEST} bytes"),
            ));
        }
        let manifest = Manifest::parse(&json, &name)?;
        for part in &manifest.parts {
            open_sized(&path.join(&part.file), part.content)?;
        }
        open_sized(&path.join(STATISTICS), manifest.statistics)?;
        if let Some(labels) = &manifest.labels {
            open_sized(&path.join(labels.kind.file()), labels.content)?;
        }
        let mut starts = vec![0];
        for part in &manifest.parts {
            starts.push(starts[starts.len() - 1] + part.rows as usize);
        }
        Ok(Self { path: path.to_owned(), manifest, starts })
    }

    /// Mean, variance, minimum and maximum of every column, as they were when the folder was written.
    pub fn statistics(&self) -> Result<ColumnStatistics, ReadError> {
        let path = self.path.join(STATISTICS);
        let name = path.display().to_string();
        let bytes = read_checked(&path, self.manifest.statistics)?;
        let mut rest = &bytes[..];
        let header = npy_header(&name, &mut rest)?;
        let d = self.manifest.columns as usize;
        let values: Vec<f64> = rest.as_chunks::<8>().0.iter().map(|x| f64::from_le_bytes(*x)).collect();
        if header.shape != [4, d] || header.descr != "<f8" || values.len() != 4 * d {
            let text = format!("expected 4×{d} numbers of f64, found shape {:?}", header.shape);
            return Err(ReadError::malformed(&name, text));
        }
        let row = |i: usize| values[i * d..(i + 1) * d].to_vec();
        let n = self.manifest.rows as usize;
        ColumnStatistics::from_columns(n, row(0), &row(1), row(2), row(3))
            .map_err(|error| ReadError::malformed(&name, error.to_string()))
    }

    /// The names of the columns, if the data had them.
    pub fn column_names(&self) -> Option<&[String]> {
        self.manifest.column_names.as_deref()
    }

    /// Entries that are not zero.
    pub fn nonzeros(&self) -> usize {
        self.manifest.nonzeros as usize
    }

    /// Whether the values are f32.
    pub fn is_single(&self) -> bool {
        self.manifest.dtype == Dtype::F32
    }

    /// Bytes of the largest part.
    pub(crate) fn largest_part(&self) -> u64 {
        self.manifest.parts.iter().map(|part| part.content.bytes).max().unwrap_or(0)
    }

    /// Whether every row has a label.
    pub fn has_labels(&self) -> bool {
        self.manifest.labels.is_some()
    }

    /// The seed of the permutation, if the rows were permuted.
    pub fn shuffle_seed(&self) -> Option<u64> {
        self.manifest.shuffle_seed
    }

    /// The labels, if there are any.
    pub fn labels(&self) -> Result<Option<Labels>, ReadError> {
        let Some(file) = &self.manifest.labels else { return Ok(None) };
        let path = self.path.join(file.kind.file());
        let bytes = read_checked(&path, file.content)?;
        labels::decode(&bytes, file.kind, self.manifest.rows as usize, &path.display().to_string()).map(Some)
    }

    /// The rows of part `k`, compared with their checksum.
    fn block(&self, k: usize) -> Result<RowBlock, ReadError> {
        let part = &self.manifest.parts[k];
        let path = self.path.join(&part.file);
        let name = path.display().to_string();
        let bytes = read_checked(&path, part.content)?;
        let (n, d) = (part.rows as usize, self.manifest.columns as usize);
        let block = if self.manifest.sparse {
            let size = Some(bytes.len() as u64);
            let stream = Box::new(std::io::Cursor::new(bytes));
            let opened = Opened { name: name.clone(), format: crate::Format::Npz, stream, size, plain: None };
            let mut source = NpzSource::open(opened)?;
            (source.stated().n_columns == Some(d)).then_some(()).and(source.next_blocks()?.pop())
        } else {
            let mut rest = &bytes[..];
            let header = npy_header(&name, &mut rest)?;
            let element = header.element().map_err(|text| ReadError::malformed(&name, text))?;
            let fits =
                header.shape == [n, d] && !header.fortran_order && rest.len() == n * d * element.size();
            fits.then(|| RowBlock::dense(d, element.decode(rest)))
        };
        let single = |block: &RowBlock| matches!(block.values, Values::F32(_));
        let fits = |block: &RowBlock| {
            block.n_rows() == n
                && block.values.len() as u64 == part.entries
                && single(block) == self.is_single()
        };
        block.filter(fits).ok_or_else(|| {
            let entries = part.entries;
            let text = format!(
                "it is not the {n} rows × {d} columns with {entries} entries that the manifest promises"
            );
            ReadError::malformed(&name, text)
        })
    }
}

fn npy_header(name: &str, rest: &mut &[u8]) -> Result<crate::npy::Header, ReadError> {
    crate::npy::read_header(name, rest)
}

/// An error of the storage, for solvers.
fn storage(error: ReadError) -> Error {
    Error::Source(Box::new(error))
}

impl RowChunks for ChunkFolder {
    fn n_rows(&self) -> usize {
        self.manifest.rows as usize
    }

    fn n_cols(&self) -> usize {
        self.manifest.columns as usize
    }

    fn nnz(&self) -> usize {
        self.manifest.entries as usize
    }

    fn is_sparse(&self) -> bool {
        self.manifest.sparse
    }

    fn bytes(&self) -> u64 {
        self.manifest.parts.iter().map(|part| part.content.bytes).sum()
    }

    fn starts(&self) -> &[usize] {
        &self.starts
    }

    fn read_chunk(&mut self, i: usize, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        // Its memory makes room for the bytes of this part before these are decoded.
        drop(recycled);
        self.block(i).map_err(storage)?.into_matrix(self.n_cols(), 0)
    }

    /// The checksums of the manifest, with which every part is compared when it is read.
    fn version(&self) -> Option<u64> {
        let mut hasher = XxHash3_64::with_seed(0);
        for part in &self.manifest.parts {
            hasher.write(&part.content.bytes.to_le_bytes());
            hasher.write(&part.content.crc32.to_le_bytes());
        }
        Some(hasher.finish())
    }

    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        if rows.is_empty() || rows.end > self.n_rows() {
            let advice = format!("give at least one of the rows 0..{}", self.n_rows());
            return Err(Error::parameter("rows", format!("{rows:?}"), advice));
        }
        let d = self.n_cols();
        let mut pieces = Vec::new();
        let mut k = self.starts.partition_point(|&start| start <= rows.start) - 1;
        while k < self.manifest.parts.len() && self.starts[k] < rows.end {
            let (first, last) = (rows.start.max(self.starts[k]), rows.end.min(self.starts[k + 1]));
            let part = &self.manifest.parts[k];
            let window = Window { path: &self.path.join(&part.file), part, n_columns: d };
            let within = first - self.starts[k]..last - self.starts[k];
            pieces.push(window.read(within, self.manifest.sparse).map_err(storage)?);
            k += 1;
        }
        match (pieces.pop(), pieces.is_empty()) {
            (Some(only), true) => Ok(only),
            (last, _) => {
                pieces.extend(last);
                joined(&pieces, d, self.is_single())
            }
        }
    }
}

/// Matrices below each other.
fn joined(pieces: &[Matrix<'_>], d: usize, single: bool) -> Result<Matrix<'static>, Error> {
    let mut rows = part::Rows::new(d, pieces.iter().any(Matrix::is_sparse), single);
    for piece in pieces {
        (0..piece.n_rows()).for_each(|l| rows.push(piece, l));
    }
    rows.into_block().into_matrix(d, 0)
}

#[cfg(test)]
mod tests;
