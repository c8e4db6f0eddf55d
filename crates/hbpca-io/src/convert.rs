//! One file into another, in bounded memory.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::block::{Labels, RowBlock, Values};
use crate::gather::{Shape, checked};
use crate::input::{Input, Part};
use crate::parts;
use crate::sink::{self, Output, RowSink, Summary, is_byte};
use crate::source::{Numbering, Stated};
use crate::{ConvertError, Format, Precision, ReadError, ReadOptions, WriteOptions};

/// What was converted.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The matrix that was written.
    pub summary: Summary,
    /// The format of the (first) input.
    pub from: Format,
    /// The format of the output.
    pub to: Format,
    /// Bytes read from files, before decompression.
    pub bytes_read: u64,
    /// What a person should know of how columns were found or left out, a sentence each.
    pub notes: Vec<String>,
}

/// Reads `input` twice, some rows at a time: once to learn its shape and type (and to find every fault before
/// anything is written), once to write it to `output`.
///
/// A stream is first copied to an unnamed temporary file. Input formats that are not ordered by row (see
/// [`RowSource`](crate::RowSource)) and dense Matrix Market output are held in memory as a whole. Column names
/// and labels go along where the output holds them; those in `write_options` win.
pub fn convert(
    input: Input,
    read_options: &ReadOptions,
    output: &Path,
    write_options: &WriteOptions,
) -> Result<Converted, ConvertError> {
    let to = sink::output_format(output, write_options)?;
    let out = Output::create(output, to)?;
    let mut parts = Parts::new(input, out.folder())?;
    let mut survey = Survey::of(&mut parts, read_options)?;
    let mut write_options = write_options.clone();
    write_options.column_names = write_options.column_names.or_else(|| survey.column_names.clone());
    survey.summary.text_labels |= matches!(write_options.labels, Some(Labels::Texts(_)));
    let mut sink = out.into_sink(output, &survey.summary, &write_options)?;
    let precision = if survey.summary.single { Precision::F32 } else { Precision::F64 };
    let read_options = ReadOptions { precision, ..read_options.clone() };
    let mut rows = Writing { sink: sink.as_mut(), survey: &survey, options: &write_options, rows_before: 0 };
    let notes =
        parts.for_each_block(&read_options, |part, _, block| rows.write(block, part.stated.numbering))?;
    if rows.rows_before != survey.summary.n_rows {
        return Err(changed("the number of rows differs").into());
    }
    sink.finish()?;
    let bytes_read = parts.counter.load(Ordering::Relaxed);
    Ok(Converted { summary: survey.summary, from: survey.format, to, bytes_read, notes })
}

/// The two readings saw different rows.
fn changed(how: &str) -> ReadError {
    ReadError::malformed("input", format!("it changed while it was read: {how}"))
}

/// The parts of an input that can be read again.
struct Parts {
    parts: Vec<Source>,
    counter: Arc<AtomicU64>,
}

enum Source {
    Path(std::path::PathBuf),
    /// A stream, copied.
    Copy {
        name: String,
        file: File,
    },
}

impl Parts {
    fn new(input: Input, folder: &Path) -> Result<Self, ReadError> {
        let is_stream = input.is_stream();
        let mut parts = Vec::new();
        for part in input.into_parts()? {
            parts.push(match part {
                Part::Path(path) if !is_stream && (path.is_file() || path.is_dir()) => Source::Path(path),
                Part::Path(path) => {
                    let name = path.display().to_string();
                    let mut file = File::open(&path).map_err(|source| ReadError::io(&name, source))?;
                    Source::copy(name, &mut file, folder)?
                }
                Part::Reader { name, mut reader, .. } => Source::copy(name, &mut reader, folder)?,
            });
        }
        Ok(Self { parts, counter: Arc::new(AtomicU64::new(0)) })
    }

    /// Reads everything from the start and hands on blocks whose values are finite; says what is to be known of the columns.
    fn for_each_block(
        &mut self,
        options: &ReadOptions,
        mut each: impl FnMut(&OpenPart, Format, RowBlock) -> Result<(), ConvertError>,
    ) -> Result<Vec<String>, ConvertError> {
        self.counter.store(0, Ordering::Relaxed);
        let mut opening = parts::Parts::new(options);
        for part in &self.parts {
            let mut open = opening.open(part.again()?, &self.counter)?;
            let about = OpenPart { name: open.name.clone(), stated: open.rows.stated() };
            let mut rows_before = 0;
            loop {
                let blocks = open.rows.next_blocks()?;
                if blocks.is_empty() {
                    break;
                }
                for block in blocks {
                    let n_rows = block.n_rows();
                    each(
                        &about,
                        open.format,
                        checked(block, options.precision, options.missing, &open.name, rows_before)?,
                    )?;
                    rows_before += n_rows;
                }
            }
        }
        Ok(opening.notes)
    }
}

struct OpenPart {
    name: String,
    stated: Stated,
}

impl Source {
    fn copy(name: String, reader: &mut dyn io::Read, folder: &Path) -> Result<Self, ReadError> {
        let copied = tempfile::tempfile_in(folder).and_then(|mut file| {
            io::copy(reader, &mut file)?;
            Ok(file)
        });
        match copied {
            Ok(file) => Ok(Self::Copy { name, file }),
            Err(source) => Err(ReadError::io(&name, source)),
        }
    }

    fn again(&self) -> Result<Part, ReadError> {
        match self {
            Self::Path(path) => Ok(Part::Path(path.clone())),
            Self::Copy { name, file } => {
                let again = file.try_clone().and_then(|mut file| {
                    io::Seek::rewind(&mut file)?;
                    Ok((file.metadata()?.len(), file))
                });
                let (size, file) = again.map_err(|source| ReadError::io(name, source))?;
                Ok(Part::Reader { name: name.clone(), reader: Box::new(file), size: Some(size) })
            }
        }
    }
}

/// What the first reading found.
struct Survey {
    summary: Summary,
    first_undecided: u32,
    column_names: Option<Vec<String>>,
    format: Format,
}

impl Survey {
    fn of(parts: &mut Parts, options: &ReadOptions) -> Result<Self, ConvertError> {
        let mut shape = Shape::default();
        let mut first: Option<(String, Format, Option<Vec<String>>)> = None;
        let (mut n_entries, mut text_labels) = (0, false);
        let (mut single, mut all_bytes) = (options.precision != Precision::F64, true);
        parts.for_each_block(options, |part, format, block| {
            first.get_or_insert_with(|| (part.name.clone(), format, part.stated.column_names.clone()));
            shape.state(&part.stated, &part.name)?;
            shape.add(&block, part.stated.numbering, &part.name)?;
            n_entries += block.values.len();
            text_labels |= matches!(block.labels, Some(Labels::Texts(_)));
            single &= matches!(block.values, Values::F32(_));
            all_bytes = all_bytes && (0..block.values.len()).all(|at| is_byte(block.values.get(at)));
            Ok(())
        })?;
        let Some((name, format, column_names)) = first else {
            let name = parts.parts.first().map_or("input".into(), |part| match part {
                Source::Path(path) => path.display().to_string(),
                Source::Copy { name, .. } => name.clone(),
            });
            return Err(ReadError::malformed(&name, "there are no rows").into());
        };
        let n_columns = shape.n_columns(&name)?;
        let sparse = shape.sparse == Some(true);
        let summary =
            Summary { n_rows: shape.n_rows, n_columns, n_entries, sparse, single, all_bytes, text_labels };
        Ok(Self { summary, first_undecided: shape.first_undecided(), column_names, format })
    }
}

/// The second reading on its way out.
struct Writing<'a> {
    sink: &'a mut dyn RowSink,
    survey: &'a Survey,
    options: &'a WriteOptions,
    rows_before: usize,
}

impl Writing<'_> {
    fn write(&mut self, mut block: RowBlock, numbering: Numbering) -> Result<(), ConvertError> {
        let n_rows = block.n_rows();
        if n_rows == 0 {
            return Ok(());
        }
        let given = self.options.labels.as_ref().map(|all| all.slice(self.rows_before, n_rows));
        let labels = given.flatten().or_else(|| block.labels.take());
        let first_column = if numbering == Numbering::FromZero { 0 } else { self.survey.first_undecided };
        let matrix = block
            .into_matrix(self.survey.summary.n_columns, first_column)
            .map_err(|error| changed(&error.to_string()))?;
        self.rows_before += n_rows;
        Ok(self.sink.write_rows(&matrix, labels.as_ref())?)
    }
}
