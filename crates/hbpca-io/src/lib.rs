//! Readers and writers of the matrices that hbpca analyses.
//!
//! [`read()`] turns a file, a folder of parts or a stream into a [`Data`], [`write()`] a matrix into a file, and
//! [`convert()`] one file into another in bounded memory. Formats are found by name or content ([`Format`]), and
//! so is compression ([`Compression`]). In between, rows travel in blocks: a [`RowSource`] yields them, a
//! [`RowSink`] takes them. One module per format holds its reader and its writer.
//!
//! Whatever a file claims is checked against the bytes that are there before memory is taken, and messages
//! name the file, the place, what was expected and what was found.

#![allow(
    clippy::missing_errors_doc,
    reason = "`ReadError` and `WriteError` say what can go wrong, everywhere alike"
)]

mod bed;
mod binary;
mod block;
mod byte_size;
mod checkpoint_file;
mod chunk_folder;
mod column_names;
mod compression;
mod convert;
mod csv;
mod element;
mod encoding;
mod error;
mod format;
mod gather;
mod h5ad;
mod hdf5;
mod idx;
mod input;
mod kept;
mod libsvm;
mod machine_memory;
mod matrix_market;
mod model_file;
mod natural_order;
mod npy;
mod npz;
mod occurring;
mod on_disk;
mod one_hot;
mod options;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod parts;
mod read;
mod reordered;
mod roles;
mod share;
mod shuffle;
mod sink;
mod source;
mod sparse;
mod survey;
mod temporary_folder;
mod text;
mod weights;

pub use bed::{
    BedFile, Matched, Sample, Variant, VariantNames, write_eigenvalues, write_eigenvectors,
    write_variant_weights,
};
pub use block::{Labels, Layout, RowBlock, Values};
pub use byte_size::ByteSize;
pub use checkpoint_file::{checkpoint_from_bytes, read_checkpoint, recognise_checkpoint, write_checkpoint};
pub use chunk_folder::{ChunkFolder, Manifest as ChunkManifest};
pub use column_names::{NamesOf, NamesToMatch, positions_by_name, score_names};
pub use compression::Compression;
pub use convert::{Converted, convert};
pub use encoding::Encoding;
pub use error::{ConvertError, ReadError, WriteError};
pub use format::Format;
pub use h5ad::CellOptions;
pub use input::Input;
pub use kept::join_kept;
pub use machine_memory::machine_memory;
pub use model_file::{CertificateRule, Origin, Probe, Reading, StoredModel};
pub use npy::MappedNpy;
pub use occurring::OccurringColumns;
pub use on_disk::{OnDisk, Place, RowRange, Storage, may_outgrow, on_disk, place};
pub use one_hot::{Categories, OneHot};
pub use options::{ColumnRef, Features, HeaderLine, MissingFields, Precision, ReadOptions};
pub use output::{OutputFile, remove_unfinished};
pub use read::{Data, read, read_bytes};
pub use share::{Cut, NOMINAL_MEMORY, Share, expand, share};
pub use sink::{RowSink, Summary, WriteOptions, create_sink, write};
pub use source::{Numbering, RowSource, Stated};
pub use survey::{ColumnKind, ColumnSurvey, TableSurvey, survey};
pub use temporary_folder::TemporaryFolder;
pub use text::NumberStyle;
