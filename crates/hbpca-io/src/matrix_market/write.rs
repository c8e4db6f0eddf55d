//! Matrices as Matrix Market text.

use std::io::Write;

use hbpca::Matrix;

use crate::WriteError;
use crate::block::Labels;
use crate::sink::{Out, RowSink, Summary, for_each_dense, push_number};

/// Writes the entries of sparse rows.
pub(crate) struct CoordinateSink {
    out: Out,
    rows_before: usize,
}

impl CoordinateSink {
    pub(crate) fn new(mut out: Out, summary: &Summary) -> Result<Self, WriteError> {
        let header = format!(
            "%%MatrixMarket matrix coordinate real general\n{} {} {}\n",
            summary.n_rows, summary.n_columns, summary.n_entries
        );
        out.write(header.as_bytes())?;
        Ok(Self { out, rows_before: 0 })
    }
}

impl RowSink for CoordinateSink {
    fn write_rows(&mut self, rows: &Matrix<'_>, _: Option<&Labels>) -> Result<(), WriteError> {
        let single = matches!(rows, Matrix::CsrF32(_) | Matrix::DenseF32(_));
        let before = self.rows_before;
        self.rows_before += rows.n_rows();
        self.out.pieces(rows, |l, text| {
            rows.for_each_in_row(l, |j, value| {
                // A Vec never refuses.
                let _ = write!(text, "{} {} ", before + l + 1, j + 1);
                push_number(text, value, single);
                text.push(b'\n');
            });
        })
    }

    fn finish(self: Box<Self>) -> Result<(), WriteError> {
        self.out.finish()
    }
}

/// Writes dense rows. The format lists columns, so all rows are kept until the last one came.
pub(crate) struct ArraySink {
    out: Out,
    n_columns: usize,
    single: bool,
    values: Vec<f64>,
}

impl ArraySink {
    pub(crate) fn new(out: Out, summary: &Summary) -> Self {
        Self { out, n_columns: summary.n_columns, single: summary.single, values: Vec::new() }
    }
}

impl RowSink for ArraySink {
    fn write_rows(&mut self, rows: &Matrix<'_>, _: Option<&Labels>) -> Result<(), WriteError> {
        for l in 0..rows.n_rows() {
            for_each_dense(rows, l, |value| self.values.push(value));
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        let d = self.n_columns;
        let header = format!("%%MatrixMarket matrix array real general\n{} {d}\n", self.values.len() / d);
        self.out.write(header.as_bytes())?;
        let mut text = Vec::new();
        for j in 0..d {
            for value in self.values[j..].iter().step_by(d) {
                push_number(&mut text, *value, self.single);
                text.push(b'\n');
            }
            self.out.write(&text)?;
            text.clear();
        }
        self.out.finish()
    }
}
