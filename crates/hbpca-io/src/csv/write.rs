//! Rows of numbers into delimited lines.

use hbpca::Matrix;

use crate::WriteError;
use crate::block::Labels;
use crate::sink::{Out, RowSink, Summary, WriteOptions, for_each_dense, push_number};

/// Writes delimited text, with a header if the columns have names or the labels are wanted.
pub(crate) struct CsvSink {
    out: Out,
    delimiter: u8,
    with_labels: bool,
    kept: Vec<(String, Labels)>,
    rows_before: usize,
}

impl CsvSink {
    pub(crate) fn new(
        mut out: Out,
        delimiter: u8,
        summary: &Summary,
        options: &WriteOptions,
    ) -> Result<Self, WriteError> {
        let with_labels = options.label_column.is_some();
        if with_labels || options.column_names.is_some() || !options.kept.is_empty() {
            let numbered = || (0..summary.n_columns).map(|j| format!("x{j}")).collect();
            let names: Vec<String> = options.column_names.clone().unwrap_or_else(numbered);
            let mut line = Vec::new();
            let kept = options.kept.iter().map(|(name, _)| name);
            for name in kept.chain(&names).chain(&options.label_column) {
                push_field(&mut line, name, delimiter);
                line.push(delimiter);
            }
            line.pop();
            line.push(b'\n');
            out.write(&line)?;
        }
        Ok(Self { out, delimiter, with_labels, kept: options.kept.clone(), rows_before: 0 })
    }
}

impl RowSink for CsvSink {
    fn write_rows(&mut self, rows: &Matrix<'_>, labels: Option<&Labels>) -> Result<(), WriteError> {
        let single = matches!(rows, Matrix::CsrF32(_) | Matrix::DenseF32(_));
        let (delimiter, with_labels) = (self.delimiter, self.with_labels);
        let (kept, before) = (&self.kept, self.rows_before);
        self.rows_before += rows.n_rows();
        self.out.rows(rows, |l, line| {
            for (_, column) in kept {
                push_field(line, &column.text(before + l), delimiter);
                line.push(delimiter);
            }
            for_each_dense(rows, l, |value| {
                push_number(line, value, single);
                line.push(delimiter);
            });
            match labels {
                Some(labels) if with_labels => push_field(line, &labels.text(l), delimiter),
                None if with_labels => line.push(b'0'),
                _ => {
                    line.pop();
                }
            }
        })
    }

    fn finish(self: Box<Self>) -> Result<(), WriteError> {
        self.out.finish()
    }
}

/// A text field, quoted if it must be.
fn push_field(line: &mut Vec<u8>, text: &str, delimiter: u8) {
    let special = |byte: u8| byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r' | b'#');
    if text.bytes().any(special) || text.trim() != text || text.is_empty() {
        line.push(b'"');
        line.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        line.push(b'"');
    } else {
        line.extend_from_slice(text.as_bytes());
    }
}
