//! Reading a matrix into memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hbpca::Matrix;

use crate::block::{Labels, RowBlock};
use crate::gather::Gather;
use crate::input::{Input, Part};
use crate::occurring::note_of_others;
use crate::one_hot::encode;
use crate::parts::Parts;
use crate::source::{OpenSource, Stated};
use crate::weights::weights_of;
use crate::{Categories, Format, ReadError, ReadOptions};

/// A matrix that was read, and what came with it.
#[derive(Debug)]
pub struct Data {
    /// The matrix: rows are observations.
    pub matrix: Matrix<'static>,
    /// The names of its columns, if the file has them.
    pub column_names: Option<Vec<String>>,
    /// One label a row, if every part has them.
    pub labels: Option<Labels>,
    /// Columns that travel beside the matrix, by name.
    pub kept: Vec<(String, Labels)>,
    /// The weights of the rows, where a column was named that holds them.
    pub weights: Option<Vec<f64>>,
    /// The columns of categories that became the last columns of the matrix.
    pub categories: Vec<Categories>,
    /// The number that the file gives its first column, 0 or 1, where its format leaves that open.
    pub first_column: Option<u32>,
    /// Columns with entries that are not among those wanted by their numbers.
    pub other_columns: usize,
    /// Whether numbers were rounded to single precision, because that was asked for.
    pub narrowed: bool,
    /// The format (of the first part).
    pub format: Format,
    /// Bytes read from files, before decompression.
    pub bytes_read: u64,
    /// What a person should know of how columns were found or left out, a sentence each.
    pub notes: Vec<String>,
}

/// Reads a file, the parts of a matrix, or a stream.
///
/// ```no_run
/// use hbpca_io::{Input, ReadOptions, read};
/// let data = read(Input::path("train.svm.bz2"), &ReadOptions::default())?;
/// println!("{} rows, {} columns", data.matrix.n_rows(), data.matrix.n_cols());
/// # Ok::<(), hbpca_io::ReadError>(())
/// ```
pub fn read(input: Input, options: &ReadOptions) -> Result<Data, ReadError> {
    read_parts(input.into_parts()?, options)
}

/// Reads a file's content, compressed or not, from memory. Messages call it `-`.
pub fn read_bytes(bytes: &[u8], format: Format, options: &ReadOptions) -> Result<Data, ReadError> {
    let options = ReadOptions { format: Some(format), ..options.clone() };
    read_parts(vec![Part::from_bytes(bytes.to_vec())], &options)
}

/// Reads on a thread of the pool: from any other, every chunk of text would have to wake one and wait for it.
fn read_parts(parts: Vec<Part>, options: &ReadOptions) -> Result<Data, ReadError> {
    rayon::scope(|_| gather_parts(parts, options))
}

fn gather_parts(parts: Vec<Part>, options: &ReadOptions) -> Result<Data, ReadError> {
    let counter = Arc::new(AtomicU64::new(0));
    let mut gather = Gather::new(options.precision).holding(options.missing);
    gather.shape.first_of_model = options.occurring.as_ref().and_then(|columns| columns.first);
    let mut opening = Parts::new(options);
    let mut first: Option<(String, Format, Stated)> = None;
    for part in parts {
        let mut source = opening.open(part, &counter)?;
        let stated = source.rows.stated();
        gather.shape.state(&stated, &source.name)?;
        gather_part(&mut gather, &mut source)?;
        first.get_or_insert((source.name, source.format, stated));
    }
    let (name, format, stated) = first.ok_or_else(|| ReadError::option("input", "no file was given"))?;
    let mut kept: Vec<(String, Labels)> = stated.kept_names.into_iter().zip(gather.take_kept()).collect();
    let weights = match &options.weight_column {
        None => None,
        Some(_) => kept.pop().map(|column| weights_of(&name, column)).transpose()?,
    };
    let (narrowed, first_column) = (gather.narrowed, gather.shape.first_column());
    let (mut matrix, labels) = gather.finish(&name)?;
    let mut column_names = stated.column_names;
    let mut other_columns = 0;
    if let Some(columns) = &options.occurring {
        (matrix, other_columns) = columns.of(matrix, &name)?;
        columns.refuse_other_shape(stated.n_columns, &name)?;
        opening.notes.extend(note_of_others(other_columns, &name));
        column_names = None;
    }
    let mut categories = Vec::new();
    if !options.one_hot.is_empty() {
        let columns = kept.split_off(kept.len() - options.one_hot.len());
        (matrix, categories) = encode(&name, &matrix, &columns, options)?;
        if let Some(names) = &mut column_names {
            names.extend(categories.iter().flat_map(Categories::column_names));
        }
    }
    let (bytes_read, notes) = (counter.load(Ordering::Relaxed), opening.notes);
    Ok(Data {
        matrix,
        column_names,
        labels,
        kept,
        weights,
        categories,
        first_column,
        other_columns,
        narrowed,
        format,
        bytes_read,
        notes,
    })
}

/// Adds all rows of a part; while some are added, the next are read.
fn gather_part(gather: &mut Gather, source: &mut OpenSource) -> Result<(), ReadError> {
    let stated = source.rows.stated();
    let name = &source.name;
    let mut rows_before = 0;
    let mut add = |gather: &mut Gather, blocks: Vec<RowBlock>| {
        for block in blocks {
            let n_rows = block.n_rows();
            gather.add(block, &stated, name, rows_before)?;
            rows_before += n_rows;
        }
        Ok(())
    };
    let mut blocks = source.rows.next_blocks()?;
    while !blocks.is_empty() {
        // What is read next is what all would wait for, so this thread goes on with it and leaves the rest to others.
        let (next, added) = rayon::join(|| source.rows.next_blocks(), || add(gather, blocks));
        added?;
        blocks = next?;
    }
    Ok(())
}
