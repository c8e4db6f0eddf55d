//! One column of one row group.

use ::parquet::basic::ConvertedType;
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::schema::types::ColumnDescriptor;

use crate::ReadError;
use crate::block::Labels;

/// The values of a column.
pub(super) enum Column {
    Single(Vec<f32>),
    Double(Vec<f64>),
    Texts(Vec<String>),
}

/// Where a column is, for messages and for checking claims.
pub(super) struct ColumnPlace<'a> {
    pub(super) file: &'a str,
    pub(super) column: usize,
    /// Rows that the group claims to have.
    pub(super) n_rows: usize,
    pub(super) rows_before: usize,
}

impl Column {
    pub(super) fn read(
        reader: ColumnReader,
        descriptor: &ColumnDescriptor,
        place: &ColumnPlace<'_>,
    ) -> Result<Self, ReadError> {
        use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
        let levels = descriptor.max_def_level();
        let small = matches!(
            descriptor.converted_type(),
            ConvertedType::INT_8 | ConvertedType::INT_16 | UINT_8 | UINT_16
        );
        let unsigned = matches!(descriptor.converted_type(), UINT_32 | UINT_64);
        Ok(match reader {
            ColumnReader::BoolColumnReader(x) => {
                Self::Single(place.values(x, levels)?.into_iter().map(|x| f32::from(u8::from(x))).collect())
            }
            ColumnReader::FloatColumnReader(x) => Self::Single(place.values(x, levels)?),
            ColumnReader::DoubleColumnReader(x) => Self::Double(place.values(x, levels)?),
            ColumnReader::Int32ColumnReader(x) => {
                let values = place.values(x, levels)?;
                if small {
                    Self::Single(values.into_iter().map(|x| x as f32).collect())
                } else if unsigned {
                    Self::Double(values.into_iter().map(|x| f64::from(x.cast_unsigned())).collect())
                } else {
                    Self::Double(values.into_iter().map(f64::from).collect())
                }
            }
            ColumnReader::Int64ColumnReader(x) => {
                let values = place.values(x, levels)?;
                if unsigned {
                    Self::Double(values.into_iter().map(|x| x.cast_unsigned() as f64).collect())
                } else {
                    Self::Double(values.into_iter().map(|x| x as f64).collect())
                }
            }
            ColumnReader::ByteArrayColumnReader(x) => {
                let text =
                    |x: &::parquet::data_type::ByteArray| String::from_utf8_lossy(x.data()).into_owned();
                Self::Texts(place.values(x, levels)?.iter().map(text).collect())
            }
            _ => {
                let text = format!("column `{}` holds neither numbers nor text", descriptor.path().string());
                return Err(ReadError::malformed(place.file, text));
            }
        })
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Single(x) => x.len(),
            Self::Double(x) => x.len(),
            Self::Texts(x) => x.len(),
        }
    }

    /// Value i; texts, which are labels only, have none.
    pub(super) fn single(&self, i: usize) -> f32 {
        match self {
            Self::Single(x) => x[i],
            Self::Double(x) => x[i] as f32,
            Self::Texts(_) => f32::NAN,
        }
    }

    /// Value i; texts, which are labels only, have none.
    pub(super) fn double(&self, i: usize) -> f64 {
        match self {
            Self::Single(x) => f64::from(x[i]),
            Self::Double(x) => x[i],
            Self::Texts(_) => f64::NAN,
        }
    }
}

impl From<Column> for Labels {
    fn from(column: Column) -> Self {
        match column {
            Column::Single(x) => Self::Numbers(x.into_iter().map(f64::from).collect()),
            Column::Double(x) => Self::Numbers(x),
            Column::Texts(x) => Self::Texts(x),
        }
    }
}

impl ColumnPlace<'_> {
    /// All values. Memory grows with the pages that are there, not with the rows that are claimed.
    fn values<T: DataType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        levels: i16,
    ) -> Result<Vec<T::T>, ReadError> {
        const AT_ONCE: usize = 1 << 16;
        let (mut values, mut defined) = (Vec::new(), Vec::new());
        let mut n_rows = 0;
        loop {
            defined.clear();
            let (n, n_values, _) = reader
                .read_records(AT_ONCE, (levels > 0).then_some(&mut defined), None, &mut values)
                .map_err(|error| ReadError::malformed(self.file, error.to_string()))?;
            if n == 0 {
                break;
            }
            if n_values < n {
                let missing = defined.iter().position(|&level| level < levels).unwrap_or(0);
                return Err(ReadError::Entry {
                    file: self.file.to_owned(),
                    row: (self.rows_before as u64).saturating_add((n_rows + missing) as u64 + 1),
                    column: self.column as u64 + 1,
                    value: "no value (null)".into(),
                });
            }
            n_rows += n;
            if n_rows > self.n_rows {
                break;
            }
        }
        if n_rows != self.n_rows || values.len() != n_rows {
            let text = format!(
                "a row group claims {} rows, but column {} has {}{n_rows}",
                self.n_rows,
                self.column + 1,
                if n_rows > self.n_rows { "at least " } else { "" }
            );
            return Err(ReadError::malformed(self.file, text));
        }
        Ok(values)
    }
}
