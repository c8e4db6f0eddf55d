//! Rows into Parquet columns.

use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, FloatType};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{Type, TypePtr};
use hbpca::Matrix;

use crate::WriteError;
use crate::block::Labels;
use crate::sink::{Out, RowSink, Summary, WriteOptions, for_each_dense};

/// Values in a row group.
const GROUP: usize = 4 << 20;

/// Writes a table of f32 or f64 columns, and a last column of labels if one is named.
pub(crate) struct ParquetSink {
    writer: SerializedFileWriter<Out>,
    name: String,
    single: bool,
    columns: Vec<Vec<f64>>,
    labels: Option<Labels>,
    kept: Vec<(String, Labels)>,
    /// Rows in the groups before.
    rows_before: usize,
}

impl ParquetSink {
    pub(crate) fn new(out: Out, summary: &Summary, options: &WriteOptions) -> Result<Self, WriteError> {
        let name = out.name().to_owned();
        let schema = schema(summary, options).map_err(|error| refused(&name, error))?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties))
            .map_err(|error| refused(&name, error))?;
        let no_labels = || if summary.text_labels { Labels::Texts(vec![]) } else { Labels::Numbers(vec![]) };
        Ok(Self {
            writer,
            name,
            single: summary.single,
            columns: vec![Vec::new(); summary.n_columns],
            labels: options.label_column.as_ref().map(|_| no_labels()),
            kept: options.kept.clone(),
            rows_before: 0,
        })
    }

    /// Writes the rows that wait as a row group.
    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.columns[0].is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        let n_rows = self.columns[0].len();
        for (_, column) in &self.kept {
            if let Some(mut out) = group.next_column()? {
                match column.slice(self.rows_before, n_rows) {
                    Some(Labels::Numbers(x)) => out.typed::<DoubleType>().write_batch(&x, None, None)?,
                    Some(Labels::Texts(x)) => {
                        let texts: Vec<ByteArray> =
                            x.into_iter().map(|text| text.into_bytes().into()).collect();
                        out.typed::<ByteArrayType>().write_batch(&texts, None, None)?
                    }
                    None => {
                        return Err(ParquetError::General("a kept column is shorter than the matrix".into()));
                    }
                };
                out.close()?;
            }
        }
        self.rows_before += n_rows;
        for column in &mut self.columns {
            if let Some(mut out) = group.next_column()? {
                if self.single {
                    let values: Vec<f32> = column.iter().map(|&x| x as f32).collect();
                    out.typed::<FloatType>().write_batch(&values, None, None)?;
                } else {
                    out.typed::<DoubleType>().write_batch(column, None, None)?;
                }
                out.close()?;
            }
            column.clear();
        }
        if let Some(labels) = &mut self.labels
            && let Some(mut out) = group.next_column()?
        {
            match labels {
                Labels::Numbers(x) => {
                    out.typed::<DoubleType>().write_batch(x, None, None)?;
                    x.clear();
                }
                Labels::Texts(x) => {
                    let texts: Vec<ByteArray> = x.drain(..).map(|text| text.into_bytes().into()).collect();
                    out.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
                }
            }
            out.close()?;
        }
        group.close()?;
        Ok(())
    }
}

fn refused(name: &str, error: ParquetError) -> WriteError {
    WriteError::io(name, std::io::Error::other(error))
}

fn schema(summary: &Summary, options: &WriteOptions) -> Result<TypePtr, ParquetError> {
    let number = if summary.single { Physical::FLOAT } else { Physical::DOUBLE };
    let column = |name: &str, physical, logical| {
        let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        builder.with_logical_type(logical).build().map(Arc::new)
    };
    let mut fields = Vec::with_capacity(summary.n_columns + 1 + options.kept.len());
    for (name, kept) in &options.kept {
        fields.push(match kept {
            Labels::Numbers(_) => column(name, Physical::DOUBLE, None)?,
            Labels::Texts(_) => column(name, Physical::BYTE_ARRAY, Some(LogicalType::String))?,
        });
    }
    for j in 0..summary.n_columns {
        let named = options.column_names.as_ref().and_then(|names| names.get(j));
        fields.push(column(named.map_or(&format!("x{j}"), |name| name), number, None)?);
    }
    if let Some(label) = &options.label_column {
        fields.push(if summary.text_labels {
            column(label, Physical::BYTE_ARRAY, Some(LogicalType::String))?
        } else {
            column(label, Physical::DOUBLE, None)?
        });
    }
    Ok(Arc::new(Type::group_type_builder("matrix").with_fields(fields).build()?))
}

impl RowSink for ParquetSink {
    fn write_rows(&mut self, rows: &Matrix<'_>, labels: Option<&Labels>) -> Result<(), WriteError> {
        for l in 0..rows.n_rows() {
            let mut columns = self.columns.iter_mut();
            for_each_dense(rows, l, |value| {
                if let Some(column) = columns.next() {
                    column.push(value);
                }
            });
            match (&mut self.labels, labels) {
                (None, _) => {}
                (Some(Labels::Numbers(all)), Some(Labels::Numbers(given))) => all.push(given[l]),
                (Some(Labels::Numbers(all)), _) => all.push(0.0),
                (Some(Labels::Texts(all)), given) => {
                    all.push(given.map_or(String::new(), |x| x.text(l).into_owned()));
                }
            }
            if self.columns[0].len() * self.columns.len() >= GROUP {
                self.flush().map_err(|error| refused(&self.name, error))?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        self.flush().map_err(|error| refused(&self.name, error))?;
        let out = self.writer.into_inner().map_err(|error| refused(&self.name, error))?;
        out.finish()
    }
}
