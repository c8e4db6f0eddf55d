//! Rows in the order of the file, some at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bed::BedSource;
use crate::block::RowBlock;
use crate::chunk_folder::ChunkSource;
use crate::h5ad::H5adSource;
use crate::input::Part;
use crate::reordered::Reordered;
use crate::weights::WeightsApart;
use crate::{
    BedFile, ChunkFolder, Format, HeaderLine, NumberStyle, ReadError, ReadOptions, csv, idx, libsvm,
    matrix_market, npy, npz,
};

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
    /// The names of the columns that travel beside the matrix.
    pub kept_names: Vec<String>,
    /// How sparse columns are numbered.
    pub numbering: Numbering,
    /// Whether the reader refuses whatever is not finite as it goes.
    pub finite: bool,
}

/// A file's rows, some at a time, in bounded memory where the format permits it.
///
/// LIBSVM, CSV, IDX, `.npy` in C order, Parquet (by row group) and `.h5ad` by rows do; the entries of Matrix Market and of
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
    /// What a person should know of its columns.
    pub(crate) notes: Vec<String>,
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
        let rows: Box<dyn RowSource> = Box::new(ChunkSource::open(path, counter)?);
        let rows = match &options.weight_column {
            None => rows,
            Some(column) => Box::new(WeightsApart::new(&name, rows, column)?),
        };
        return matched(OpenSource { name, format, rows, notes: Vec::new() }, options);
    }
    if let Part::Path(path) = &part
        && options.format.map_or_else(|| BedFile::recognise(path), |format| format == Format::Bed)
    {
        let (name, format) = (part.name(), Format::Bed);
        refuse_options_that_do_not_fit(&name, format, options)?;
        let rows = Box::new(BedSource::open(path, options.missing)?);
        return matched(OpenSource { name, format, rows, notes: Vec::new() }, options);
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
        Format::Bed => {
            return Err(ReadError::option(
                &name,
                "genotypes are three files, and not compressed: name the .bed, with its .bim and .fam beside it",
            ));
        }
        Format::Libsvm => Box::new(libsvm::LibsvmSource::open(opened, options)),
        Format::Csv | Format::Tsv => {
            let table = csv::CsvSource::open(opened, &options.keeping_beside())?;
            let notes = table.notes().to_vec();
            return Ok(OpenSource { name, format, rows: Box::new(table), notes });
        }
        Format::Npy => Box::new(npy::NpySource::open(opened)?),
        Format::Npz => Box::new(npz::NpzSource::open(opened)?),
        Format::MatrixMarket => Box::new(matrix_market::MatrixMarketSource::open(opened, options)?),
        Format::Idx => Box::new(idx::IdxSource::open(opened)?),
        Format::H5ad => {
            let cells = H5adSource::open(opened, options)?;
            let (head, notes) = (counter.load(Ordering::Relaxed), cells.notes().to_vec());
            counter.fetch_add(cells.size().saturating_sub(head), Ordering::Relaxed);
            let open = OpenSource { name, format, rows: Box::new(cells), notes };
            return matched(open, options);
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => {
            let table = crate::parquet::ParquetSource::open(opened, &options.keeping_beside())?;
            let notes = table.notes().to_vec();
            return Ok(OpenSource { name, format, rows: Box::new(table), notes });
        }
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => {
            return Err(ReadError::malformed(
                &name,
                "this build reads no Parquet: enable the feature `parquet`",
            ));
        }
    };
    matched(OpenSource { name, format, rows, notes: Vec::new() }, options)
}

/// Puts the columns of a file that is no table into the order that is wanted.
fn matched(open: OpenSource, options: &ReadOptions) -> Result<OpenSource, ReadError> {
    let Some(wanted) = &options.match_names else { return Ok(open) };
    let found = wanted.find(open.rows.stated().column_names.as_deref(), &open.name)?;
    let rows = match found.positions {
        Some(positions) => Box::new(Reordered::new(open.rows, positions)),
        None => open.rows,
    };
    // Genes that a mask left out of a model are not news.
    let note = found.note.filter(|_| options.cells.mask.is_none());
    let notes = open.notes.into_iter().chain(note).collect();
    Ok(OpenSource { rows, notes, name: open.name, format: open.format })
}

/// The refusal of a column of weights where columns have no names.
pub(crate) fn no_weight_column(file: &str) -> ReadError {
    ReadError::option(
        file,
        "a column of weights can be named for CSV, TSV, Parquet and chunk folders with names only: give the weights in a file of their own \
         with --weights",
    )
}

/// Named columns exist in tables only, a free number of columns in LIBSVM only.
pub(crate) fn refuse_options_that_do_not_fit(
    name: &str,
    format: Format,
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let table = matches!(format, Format::Csv | Format::Tsv | Format::Parquet);
    let refuse = |message: &str| Err(ReadError::option(name, message));
    let cells = format == Format::H5ad;
    if !table && !cells && options.label_column.is_some() {
        return refuse("a label column can be named for CSV, TSV, Parquet and .h5ad only");
    }
    if !table && format != Format::Chunks && options.weight_column.is_some() {
        return Err(no_weight_column(name));
    }
    if !table && !options.one_hot.is_empty() {
        return refuse("categories can be coded in CSV, TSV and Parquet only");
    }
    if !table && !cells && !options.keep.is_empty() {
        return refuse("columns can be kept of CSV, TSV, Parquet and .h5ad only");
    }
    if !table && (!options.exclude.is_empty() || options.features != crate::Features::All) {
        return refuse("columns can be left out of CSV, TSV and Parquet only");
    }
    if !table && options.columns.is_some() {
        return refuse("columns can be chosen from CSV, TSV and Parquet only");
    }
    if options.encoding.is_some() && !format.is_text() {
        return refuse("an encoding can be given for texts only");
    }
    if options.numbers != NumberStyle::default() && !matches!(format, Format::Csv | Format::Tsv) {
        return refuse("marks of decimals and thousands can be given for CSV and TSV only");
    }
    if options.header != HeaderLine::Detect && !matches!(format, Format::Csv | Format::Tsv) {
        return refuse("a header can be told of for CSV and TSV only");
    }
    if format != Format::H5ad
        && let Some(flag) = options.cells.first_given(options.match_names.is_some())
    {
        return refuse(&if flag != "--layer" && options.match_names.is_some() {
            "the model was fitted on counts that were prepared as they were read (--normalize, --log1p), which only .h5ad files are".to_owned()
        } else {
            format!("{flag} is for .h5ad files only")
        });
    }
    if let Some(fault) = options.numbers.fault() {
        return refuse(&fault);
    }
    if format != Format::Libsvm && options.n_columns.is_some() {
        return refuse("the number of columns can be given for LIBSVM only: other formats know it");
    }
    Ok(())
}
