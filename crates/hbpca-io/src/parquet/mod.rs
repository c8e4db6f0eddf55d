//! Apache Parquet: numeric columns of flat tables. Row groups and columns are decoded in parallel.
//!
//! Columns named `__index_level_…__`, in which pandas keeps its index, are left out unless they are asked for.

mod column;
mod file;
mod pages;
mod write;

pub(crate) use write::ParquetSink;

use ::parquet::basic::{ConvertedType, LogicalType, Type};
use ::parquet::file::reader::{FileReader, Length, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;
use rayon::prelude::*;

use column::{Column, ColumnPlace};
use file::SharedBytes;

use crate::binary::refuse_absurd_rows;
use crate::block::{Labels, RowBlock, Values};
use crate::input::Opened;
use crate::roles::{Role, Table, roles, text_column};
use crate::source::{RowSource, Stated};
use crate::{MissingFields, ReadError, ReadOptions};

/// Entries decoded at a time, at least one row group.
const ENTRIES: u64 = 8 << 20;

/// The rows of a Parquet file.
pub(crate) struct ParquetSource {
    name: String,
    bytes: SharedBytes,
    reader: SerializedFileReader<SharedBytes>,
    /// For each column of the matrix its column of the file.
    features: Vec<usize>,
    label: Option<usize>,
    /// The columns that travel beside the matrix: position and name.
    kept: Vec<(usize, String)>,
    single: bool,
    column_names: Vec<String>,
    note: Option<String>,
    missing: MissingFields,
    next_group: usize,
}

impl ParquetSource {
    pub(crate) fn open(opened: Opened, options: &ReadOptions) -> Result<Self, ReadError> {
        let name = opened.name.clone();
        let bytes = SharedBytes::open(opened)?;
        let reader = guarded(&name, || {
            SerializedFileReader::new(bytes.clone())
                .map_err(|error| ReadError::malformed(&name, error.to_string()))
        })?;
        let n_rows =
            reader.metadata().row_groups().iter().fold(0_usize, |sum, group| {
                sum.saturating_add(usize::try_from(group.num_rows()).unwrap_or(0))
            });
        refuse_absurd_rows(n_rows, bytes.len(), &name)?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let descriptors = schema.columns();
        let names: Vec<String> = descriptors.iter().map(|column| column.path().string()).collect();
        let index: Vec<usize> = (0..names.len()).filter(|&j| is_pandas_index(&names[j])).collect();
        let is_text = |j: usize| Kind::of(&descriptors[j]) == Kind::Other;
        let table = Table {
            file: &name,
            names: Some(&names),
            n_columns: names.len(),
            index: &index,
            is_text: &is_text,
        };
        let kept = table.kept(options)?;
        let (roles, note) = roles(&table, options)?;
        let mut features =
            vec![usize::MAX; roles.iter().filter(|role| matches!(role, Role::Value(_))).count()];
        for (j, role) in roles.iter().enumerate() {
            if let Role::Value(slot) = *role {
                features[slot] = j;
            }
        }
        if features.is_empty() {
            return Err(ReadError::option(&name, "no column is left to be a feature"));
        }
        let mut refused = features.iter().filter(|&&j| Kind::of(&descriptors[j]) == Kind::Other);
        if let Some(&j) = refused.next() {
            let found = format!("{} and no numbers", type_name(&descriptors[j]));
            return Err(text_column(&name, &format!("column `{}`", names[j]), &found, refused.count()));
        }
        let single = features.iter().all(|&j| Kind::of(&descriptors[j]) == Kind::Single);
        let label = roles.iter().position(|role| *role == Role::Label);
        let column_names = features.iter().map(|&j| names[j].clone()).collect();
        let (missing, next_group) = (options.missing, 0);
        Ok(Self {
            name,
            bytes,
            reader,
            features,
            label,
            kept,
            single,
            column_names,
            note,
            missing,
            next_group,
        })
    }

    /// What a person should know of its columns.
    pub(crate) fn notes(&self) -> &[String] {
        self.note.as_slice()
    }

    /// Row groups to decode together: as many as make enough entries, at least one.
    fn next_groups(&mut self) -> std::ops::Range<usize> {
        let metadata = self.reader.metadata();
        let first = self.next_group;
        let mut entries = 0;
        while self.next_group < metadata.num_row_groups() && entries < ENTRIES {
            let n_rows = u64::try_from(metadata.row_group(self.next_group).num_rows()).unwrap_or(0);
            entries = entries.saturating_add(n_rows.saturating_mul(self.features.len() as u64));
            self.next_group += 1;
        }
        first..self.next_group
    }

    fn rows_of(&self, group: usize) -> usize {
        usize::try_from(self.reader.metadata().row_group(group).num_rows()).unwrap_or(0)
    }

    fn place(&self, group: usize, column: usize) -> ColumnPlace<'_> {
        let rows_before = (0..group).fold(0_usize, |sum, group| sum.saturating_add(self.rows_of(group)));
        // A label or a weight that is not there is none.
        let missing = if self.features.contains(&column) { self.missing } else { MissingFields::Refused };
        ColumnPlace { file: &self.name, column, n_rows: self.rows_of(group), rows_before, missing }
    }

    fn decode(&self, group: usize, column: usize) -> Result<Column, ReadError> {
        guarded(&self.name, || {
            let wrong =
                |error: ::parquet::errors::ParquetError| ReadError::malformed(&self.name, error.to_string());
            let group_reader = self.reader.get_row_group(group).map_err(wrong)?;
            pages::check(&self.bytes, group_reader.metadata().column(column))
                .map_err(|text| ReadError::malformed(&self.name, text))?;
            let descriptor = group_reader.metadata().column(column).column_descr_ptr();
            let reader = group_reader.get_column_reader(column).map_err(wrong)?;
            Column::read(reader, &descriptor, &self.place(group, column))
        })
    }

    /// One group's columns, row by row.
    fn block(&self, columns: &[Column], label: Option<Column>, kept: Vec<Column>) -> RowBlock {
        let d = self.features.len();
        let n = columns[0].len();
        let values = if self.single {
            Values::F32(interleaved(n, d, |i, j| columns[j].single(i)))
        } else {
            Values::F64(interleaved(n, d, |i, j| columns[j].double(i)))
        };
        let kept = kept.into_iter().map(Labels::from).collect();
        RowBlock { labels: label.map(Labels::from), kept, ..RowBlock::dense(d, values) }
    }
}

impl RowSource for ParquetSource {
    fn stated(&self) -> Stated {
        Stated {
            n_columns: Some(self.features.len()),
            column_names: Some(self.column_names.clone()),
            kept_names: self.kept.iter().map(|(_, name)| name.clone()).collect(),
            ..Stated::default()
        }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        loop {
            let groups = self.next_groups();
            if groups.is_empty() {
                return Ok(Vec::new());
            }
            let kept = self.kept.iter().map(|(j, _)| *j);
            let wanted: Vec<usize> = self.features.iter().copied().chain(self.label).chain(kept).collect();
            let tasks: Vec<(usize, usize)> =
                groups.flat_map(|group| wanted.iter().map(move |&column| (group, column))).collect();
            // All are decoded before the first fault is looked for: which thread fails first is chance.
            let decoded: Vec<Result<Column, ReadError>> =
                tasks.par_iter().map(|&(group, column)| self.decode(group, column)).collect();
            let mut decoded = decoded.into_iter().collect::<Result<Vec<Column>, ReadError>>()?.into_iter();
            let mut blocks = Vec::new();
            loop {
                let columns: Vec<Column> = decoded.by_ref().take(self.features.len()).collect();
                if columns.is_empty() {
                    break;
                }
                let label = self.label.and_then(|_| decoded.next());
                let kept: Vec<Column> = decoded.by_ref().take(self.kept.len()).collect();
                if columns[0].len() > 0 {
                    blocks.push(self.block(&columns, label, kept));
                }
            }
            if !blocks.is_empty() {
                return Ok(blocks);
            }
        }
    }
}

/// n×d values by row, in parallel.
fn interleaved<T: Copy + Default + Send>(
    n: usize,
    d: usize,
    value: impl Fn(usize, usize) -> T + Sync,
) -> Vec<T> {
    const ROWS: usize = 256;
    let mut values = vec![T::default(); n * d];
    values.par_chunks_mut(ROWS * d).enumerate().for_each(|(chunk, rows)| {
        for j in 0..d {
            for (i, row) in rows.chunks_mut(d).enumerate() {
                row[j] = value(chunk * ROWS + i, j);
            }
        }
    });
    values
}

/// What a column becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Exact in f32.
    Single,
    /// f64.
    Double,
    /// No number.
    Other,
}

impl Kind {
    fn of(column: &ColumnDescriptor) -> Self {
        use ConvertedType::{INT_8, INT_16, INT_32, INT_64, NONE, UINT_8, UINT_16, UINT_32, UINT_64};
        let plain = matches!(column.logical_type_ref(), None | Some(LogicalType::Integer { .. }));
        if column.max_rep_level() > 0 || !plain {
            return Self::Other;
        }
        match (column.physical_type(), column.converted_type()) {
            (Type::FLOAT | Type::BOOLEAN, NONE) | (Type::INT32, INT_8 | INT_16 | UINT_8 | UINT_16) => {
                Self::Single
            }
            (Type::DOUBLE, NONE)
            | (Type::INT32, NONE | INT_32 | UINT_32)
            | (Type::INT64, NONE | INT_64 | UINT_64) => Self::Double,
            _ => Self::Other,
        }
    }
}

fn type_name(column: &ColumnDescriptor) -> String {
    if column.max_rep_level() > 0 {
        return "lists".into();
    }
    let physical = column.physical_type();
    match column.logical_type_ref() {
        Some(LogicalType::String) => "text".into(),
        Some(LogicalType::Date) => "dates".into(),
        Some(LogicalType::Timestamp { .. }) => "dates with times".into(),
        Some(LogicalType::Time { .. }) => "times".into(),
        Some(logical) => format!("{logical:?}"),
        None => format!("{physical} values"),
    }
}

/// The name under which pandas stores its index, which is no feature.
fn is_pandas_index(name: &str) -> bool {
    name.starts_with("__index_level_") && name.ends_with("__")
}

/// The decoder is not ours and may panic on a file made to hurt it: that file is at fault, not the program.
fn guarded<T>(name: &str, decode: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        Err(ReadError::malformed(name, "the Parquet file is damaged: its decoder gave up"))
    })
}

#[cfg(test)]
mod tests;
