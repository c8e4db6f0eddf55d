//! Data that is left on disk and read in chunks, any number of times.
//!
//! Plain `.npy` in C order and uncompressed SciPy CSR archives can be, in one file or in parts, and so can a chunk folder and one `.h5ad` file whose matrix is
//! dense or stored by rows; everything else has to be read into memory or converted first.

mod chunks;
mod csr;
mod h5ad;
mod npy;
mod place;
mod row_range;
mod watched;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hbpca::{Error, RowChunks};

use crate::element::{Element, Number};
use crate::h5ad::Cells;
use crate::input::Part;
use crate::source::{no_weight_column, refuse_options_that_do_not_fit};
use crate::weights::WeightsApartOnDisk;
use crate::{ChunkFolder, Format, Input, Precision, ReadError, ReadOptions};

use csr::CsrOnDisk;
use h5ad::CellsOnDisk;
use npy::NpyOnDisk;
pub use place::{Place, may_outgrow, place};
pub use row_range::RowRange;
pub(crate) use watched::WatchedFile;

/// Rows on disk.
pub trait OnDisk: RowChunks {
    /// Bytes of memory of the largest chunk.
    fn chunk_memory(&self) -> u64;

    /// Bytes that all rows would take in memory.
    fn memory(&self) -> u64;

    /// Whether all rows can be read within this memory, vectors beside them not counted.
    fn fits_reading(&self, memory: u64) -> bool {
        place::bytes_while_reading(self.memory(), self.is_sparse()) <= memory
    }

    /// The names of the columns, if they have any.
    fn column_names(&self) -> Option<&[String]> {
        None
    }

    /// Counts the entries where [`RowChunks::nnz`] is a bound only: one reading of where they are.
    fn count_entries(&mut self) -> Result<(), ReadError> {
        Ok(())
    }

    /// Reads the weights of these rows, where a column was named that holds them: one reading of the rows.
    fn read_weights(&mut self, _rows: Range<usize>) -> Result<Option<Vec<f64>>, Error> {
        Ok(None)
    }
}

/// Where a matrix can be read from.
pub enum Storage {
    /// Chunk by chunk from disk.
    OnDisk(Box<dyn OnDisk>),
    /// As a whole only.
    Whole {
        /// Why not in chunks.
        reason: String,
        /// Bytes in memory, at least; unknown for streams.
        least_memory: Option<u64>,
    },
}

/// Finds out whether `input` can be read in chunks. Reads headers only, and for compressed rows where they start.
pub fn on_disk(input: &Input, options: &ReadOptions) -> Result<Storage, ReadError> {
    let Some(parts) = input.files()? else {
        return Ok(Storage::Whole { reason: "a stream can be read only once".into(), least_memory: None });
    };
    let chosen = options.label_column.is_some()
        || options.columns.is_some()
        || options.n_columns.is_some()
        || !options.keep.is_empty()
        || !options.exclude.is_empty()
        || !options.one_hot.is_empty()
        || options.features != crate::Features::All;
    if chosen || options.precision != Precision::Auto {
        return whole("columns or a type of number are chosen while reading", &parts, 1.0);
    }
    if let [folder] = &parts[..]
        && ChunkFolder::recognise(folder)
    {
        let rows = Box::new(ChunkFolder::open(folder)?);
        return Ok(Storage::OnDisk(match &options.weight_column {
            None => rows,
            Some(column) => Box::new(WeightsApartOnDisk::new(&folder.display().to_string(), rows, column)?),
        }));
    }
    if parts.iter().any(|path| ChunkFolder::recognise(path)) {
        return whole("a chunk folder is one of several parts", &parts, 1.0);
    }
    if let [path] = &parts[..]
        && let Some(cells) = cells(path, options)?
    {
        return match cells {
            Ok(rows) => Ok(Storage::OnDisk(Box::new(rows))),
            Err(Refusal::Faulty(error)) => Err(error),
            Err(Refusal::Unsuitable { reason, growth }) => whole(&reason, &parts, growth),
        };
    }
    let mut plain = Vec::new();
    let mut format = None;
    for path in &parts {
        let opened = Part::Path(path.clone()).open(options, &Arc::new(AtomicU64::new(0)))?;
        let reason = match (opened.plain.is_some(), opened.format) {
            (false, _) => "it is compressed".to_owned(),
            (true, Format::Npy | Format::Npz) => {
                if options.weight_column.is_some() {
                    return Err(no_weight_column(&opened.name));
                }
                if format.replace(opened.format).is_some_and(|before| before != opened.format) {
                    return whole("its parts have different formats", &parts, 1.0);
                }
                plain.push((opened.name, path.clone()));
                continue;
            }
            (true, other) => format!("{other} files are not stored row by row in a fixed width"),
        };
        return whole(&reason, &parts, 1.0);
    }
    let found: Result<Box<dyn OnDisk>, Refusal> = match format {
        Some(Format::Npz) => CsrOnDisk::open(plain).map(|rows| Box::new(rows) as Box<dyn OnDisk>),
        _ => NpyOnDisk::open(plain).map(|rows| Box::new(rows) as Box<dyn OnDisk>),
    };
    match found {
        Ok(rows) => Ok(Storage::OnDisk(rows)),
        Err(Refusal::Faulty(error)) => Err(error),
        Err(Refusal::Unsuitable { reason, growth }) => whole(&reason, &parts, growth),
    }
}

/// The cells of an `.h5ad` file that is not compressed as a whole; nothing if it is another file.
fn cells(path: &Path, options: &ReadOptions) -> Result<Option<Result<CellsOnDisk, Refusal>>, ReadError> {
    let opened = Part::Path(path.to_owned()).open(options, &Arc::default())?;
    if opened.format != Format::H5ad || opened.plain.is_none() {
        return Ok(None);
    }
    refuse_options_that_do_not_fit(&opened.name, opened.format, options)?;
    Cells::open(opened, options).map(|cells| Some(CellsOnDisk::open(cells)))
}

/// Data that must be read as a whole, at least `growth` times as large in memory as on disk.
fn whole(reason: &str, parts: &[std::path::PathBuf], growth: f64) -> Result<Storage, ReadError> {
    let mut bytes = 0;
    for path in parts {
        if ChunkFolder::recognise(path) {
            bytes += ChunkFolder::open(path)?.bytes();
            continue;
        }
        let about =
            fs::metadata(path).map_err(|source| ReadError::io(&path.display().to_string(), source))?;
        bytes += about.len();
    }
    Ok(Storage::Whole { reason: reason.to_owned(), least_memory: Some((bytes as f64 * growth) as u64) })
}

/// Why a file cannot be read in chunks.
enum Refusal {
    /// It cannot be read at all.
    Faulty(ReadError),
    /// It is fine, and must be read as a whole.
    Unsuitable {
        reason: String,
        /// Bytes in memory for each byte on disk.
        growth: f64,
    },
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        Self::Faulty(error)
    }
}

/// Only f32 and f64 in this machine's byte order can be used as they lie.
fn usable(element: Element) -> Result<Number, Refusal> {
    let own_order = element.big_endian == cfg!(target_endian = "big");
    if element.is_integer() {
        let narrow = matches!(element.number, Number::I8 | Number::U8 | Number::I16 | Number::U16);
        let growth = if narrow { 4.0 } else { 8.0 } / element.size() as f64;
        return Err(Refusal::Unsuitable { reason: "it holds whole numbers, not f32 or f64".into(), growth });
    }
    if !own_order {
        return Err(Refusal::Unsuitable {
            reason: "its byte order is not this machine's".into(),
            growth: 1.0,
        });
    }
    Ok(element.number)
}

/// A file that failed, as the core names it.
pub(crate) fn failed(error: ReadError) -> Error {
    Error::Source(Box::new(error))
}

/// Parts of one matrix must agree.
fn same<T: PartialEq + std::fmt::Display>(
    what: &str,
    before: &mut Option<T>,
    now: T,
    name: &str,
) -> Result<(), ReadError> {
    if let Some(before) = before.as_ref()
        && *before != now
    {
        let text =
            format!("{now} {what}, but the parts before it have {before}: parts of one matrix must agree");
        return Err(ReadError::malformed(name, text));
    }
    *before = Some(now);
    Ok(())
}

/// The part that row `row` lies in, given the first row of each.
fn part_of(row: usize, first_rows: impl ExactSizeIterator<Item = usize>) -> usize {
    first_rows.take_while(|first| *first <= row).count().saturating_sub(1)
}
