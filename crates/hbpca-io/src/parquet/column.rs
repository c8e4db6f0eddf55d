//! One column of one row group.

use ::parquet::basic::ConvertedType;
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::schema::types::ColumnDescriptor;

use crate::block::Labels;
use crate::{MissingFields, ReadError};

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
    /// What becomes of nulls.
    pub(super) missing: MissingFields,
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
                Self::Single(place.numbers(x, levels, f32::NAN, |x| f32::from(u8::from(x)))?)
            }
            ColumnReader::FloatColumnReader(x) => Self::Single(place.numbers(x, levels, f32::NAN, |x| x)?),
            ColumnReader::DoubleColumnReader(x) => Self::Double(place.numbers(x, levels, f64::NAN, |x| x)?),
            ColumnReader::Int32ColumnReader(x) => {
                if small {
                    Self::Single(place.numbers(x, levels, f32::NAN, |x| x as f32)?)
                } else if unsigned {
                    Self::Double(place.numbers(x, levels, f64::NAN, |x| f64::from(x.cast_unsigned()))?)
                } else {
                    Self::Double(place.numbers(x, levels, f64::NAN, f64::from)?)
                }
            }
            ColumnReader::Int64ColumnReader(x) => {
                if unsigned {
                    Self::Double(place.numbers(x, levels, f64::NAN, |x| x.cast_unsigned() as f64)?)
                } else {
                    Self::Double(place.numbers(x, levels, f64::NAN, |x| x as f64)?)
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
    /// All values as numbers, nulls as NaN where they may be.
    fn numbers<T: DataType, N: Copy>(
        &self,
        reader: ColumnReaderImpl<T>,
        levels: i16,
        nan: N,
        number: impl Fn(T::T) -> N,
    ) -> Result<Vec<N>, ReadError> {
        let (values, present) = self.values_and_nulls(reader, levels)?;
        let mut values = values.into_iter().map(number);
        match present {
            None => Ok(values.collect()),
            Some(present) => Ok(present
                .into_iter()
                .map(|there| if there { values.next() } else { None }.unwrap_or(nan))
                .collect()),
        }
    }

    /// All values, none of them null.
    fn values<T: DataType>(&self, reader: ColumnReaderImpl<T>, levels: i16) -> Result<Vec<T::T>, ReadError> {
        let refusing = ColumnPlace { missing: MissingFields::Refused, ..*self };
        Ok(refusing.values_and_nulls(reader, levels)?.0)
    }

    /// All values, and for each row whether it has one where some have none. Memory grows with the pages that are there, not with the rows that are claimed.
    fn values_and_nulls<T: DataType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
        levels: i16,
    ) -> Result<(Vec<T::T>, Option<Vec<bool>>), ReadError> {
        const AT_ONCE: usize = 1 << 16;
        let (mut values, mut defined) = (Vec::new(), Vec::new());
        let mut n_rows = 0;
        let mut present: Option<Vec<bool>> = None;
        loop {
            defined.clear();
            let (n, n_values, _) = reader
                .read_records(AT_ONCE, (levels > 0).then_some(&mut defined), None, &mut values)
                .map_err(|error| ReadError::malformed(self.file, error.to_string()))?;
            if n == 0 {
                break;
            }
            if self.missing == MissingFields::Nan && (n_values < n || present.is_some()) {
                let present = present.get_or_insert_with(|| vec![true; n_rows]);
                if levels > 0 {
                    present.extend(defined.iter().map(|&level| level == levels));
                } else {
                    present.resize(n_rows + n, true);
                }
            } else if n_values < n {
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
        let there = present.as_ref().map_or(n_rows, |present| present.iter().filter(|there| **there).count());
        let whole = present.as_ref().is_none_or(|present| present.len() == n_rows);
        if n_rows != self.n_rows || values.len() != there || !whole {
            let text = format!(
                "a row group claims {} rows, but column {} has {}{n_rows}",
                self.n_rows,
                self.column + 1,
                if n_rows > self.n_rows { "at least " } else { "" }
            );
            return Err(ReadError::malformed(self.file, text));
        }
        Ok((values, present))
    }
}
