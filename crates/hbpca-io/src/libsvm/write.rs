//! Rows as LIBSVM lines.

use std::io::Write;

use hbpca::Matrix;

use crate::WriteError;
use crate::block::Labels;
use crate::sink::{Out, RowSink, push_number};

/// Writes LIBSVM lines, indices counted from 1. Zeros of dense rows are left out; labels that are missing are 0.
pub(crate) struct LibsvmSink {
    out: Out,
}

impl LibsvmSink {
    pub(crate) fn new(out: Out) -> Self {
        Self { out }
    }
}

impl RowSink for LibsvmSink {
    fn write_rows(&mut self, rows: &Matrix<'_>, labels: Option<&Labels>) -> Result<(), WriteError> {
        let (sparse, single) = (rows.is_sparse(), matches!(rows, Matrix::CsrF32(_) | Matrix::DenseF32(_)));
        self.out.rows(rows, |l, line| {
            match labels {
                Some(labels) => line.extend_from_slice(labels.text(l).as_bytes()),
                None => line.push(b'0'),
            }
            rows.for_each_in_row(l, |j, value| {
                if sparse || value != 0.0 {
                    // A Vec never refuses.
                    let _ = write!(line, " {}:", j + 1);
                    push_number(line, value, single);
                }
            });
        })
    }

    fn finish(self: Box<Self>) -> Result<(), WriteError> {
        self.out.finish()
    }
}
