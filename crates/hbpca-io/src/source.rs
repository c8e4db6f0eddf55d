//! Rows in the order of the file, some at a time.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::block::RowBlock;
use crate::chunk_folder::ChunkSource;
use crate::input::Part;
use crate::{ChunkFolder, Format, ReadError, ReadOptions, csv, idx, libsvm, matrix_market, npy, npz};

/// How the file numbers its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// From 0.
    #[default]
    FromZero,
    /// From 0 if a column of this number appears anywhere in the input, else from 1.
    FromZeroOrOne,
}

/// What a file says about itself before its rows are read.
#[derive(Clone, Debug, Default)]
pub struct Stated {
    /// d, if known.
    pub n_columns: Option<usize>,
    /// The names of the columns.
    pub column_names: Option<Vec<String>>,
    /// How sparse columns are numbered.
    pub numbering: Numbering,
    /// Whether the reader refuses whatever is not finite as it goes.
    pub finite: bool,
}

/// A file's rows, some at a time, in bounded memory where the format permits it.
///
/// LIBSVM, CSV, IDX, `.npy` in C order and Parquet (by row group) do; the entries of Matrix Market and of
/// `.npz` need not be ordered by row, and `.npy` in Fortran order is not, so these come in one block.
pub trait RowSource: Send {
    /// What the file says about itself.
    fn stated(&self) -> Stated;

    /// The next rows, in one or more blocks; no block means that there are no more.
    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError>;
}

/// A part that was opened: its name, its format and its rows.
pub(crate) struct OpenSource {
    pub(crate) name: String,
    pub(crate) format: Format,
    pub(crate) rows: Box<dyn RowSource>,
}

/// Opens a part in the reader of its format.
pub(crate) fn open(
    part: Part,
    options: &ReadOptions,
    counter: &Arc<AtomicU64>,
) -> Result<OpenSource, ReadError> {
    if let Part::Path(path) = &part
        && ChunkFolder::recognise(path)
    {
        let (name, format) = (part.name(), Format::Chunks);
        refuse_options_that_do_not_fit(&name, format, options)?;
        return Ok(OpenSource { name, format, rows: Box::new(ChunkSource::open(path, counter)?) });
    }
    let opened = part.open(options, counter)?;
    let (name, format) = (opened.name.clone(), opened.format);
    refuse_options_that_do_not_fit(&name, format, options)?;
    let rows: Box<dyn RowSource> = match format {
        Format::Chunks => {
            return Err(ReadError::option(
                &name,
                "a chunk folder is a folder: name it instead of one of its files",
            ));
        }
        Format::Libsvm => Box::new(libsvm::LibsvmSource::open(opened, options)),
        Format::Csv | Format::Tsv => Box::new(csv::CsvSource::open(opened, options)?),
        Format::Npy => Box::new(npy::NpySource::open(opened)?),
        Format::Npz => Box::new(npz::NpzSource::open(opened)?),
        Format::MatrixMarket => Box::new(matrix_market::MatrixMarketSource::open(opened, options)?),
        Format::Idx => Box::new(idx::IdxSource::open(opened)?),
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(crate::parquet::ParquetSource::open(opened, options)?),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => {
            return Err(ReadError::malformed(
                &name,
                "this build reads no Parquet: enable the feature `parquet`",
            ));
        }
    };
    Ok(OpenSource { name, format, rows })
}

/// Named columns exist in tables only, a free number of columns in LIBSVM only.
fn refuse_options_that_do_not_fit(
    name: &str,
    format: Format,
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let table = matches!(format, Format::Csv | Format::Tsv | Format::Parquet);
    let refuse = |message: &str| Err(ReadError::option(name, message));
    if !table && options.label_column.is_some() {
        return refuse("a label column can be named for CSV, TSV and Parquet only");
    }
    if !table && options.columns.is_some() {
        return refuse("columns can be chosen from CSV, TSV and Parquet only");
    }
    if format != Format::Libsvm && options.n_columns.is_some() {
        return refuse("the number of columns can be given for LIBSVM only: other formats know it");
    }
    Ok(())
}
