//! One NumPy array: rows of numbers after a short header.
//!
//! Arrays in C order are read some rows at a time; arrays in Fortran order as a whole. An array of one
//! dimension is one column.

mod header;
mod mapped;

pub(crate) use header::Header;
pub use mapped::MappedNpy;
pub(crate) use mapped::map;

use std::io::Read;

use hbpca::Matrix;

use crate::binary::{read_claimed, write_dense};
use crate::block::{Labels, RowBlock, Values};
use crate::element::Element;
use crate::input::Opened;
use crate::sink::{Out, RowSink, Summary};
use crate::source::{RowSource, Stated};
use crate::{ReadError, WriteError};

/// Bytes decoded at a time.
const BLOCK: usize = 4 << 20;

/// The rows of an array.
pub(crate) struct NpySource {
    name: String,
    stream: Box<dyn Read + Send>,
    element: Element,
    fortran_order: bool,
    n_rows: usize,
    n_columns: usize,
    rows_read: usize,
}

impl NpySource {
    pub(crate) fn open(mut opened: Opened) -> Result<Self, ReadError> {
        let header = read_header(&opened.name, &mut opened.stream)?;
        let malformed = |message| ReadError::malformed(&opened.name, message);
        let element = header.element().map_err(malformed)?;
        let (n_rows, n_columns) = header.rows_and_columns().map_err(malformed)?;
        let needed = header.data_bytes(element).saturating_add(u128::from(header.data_start));
        opened.refuse_more_than_there_is(needed, &format!("{n_rows} rows × {n_columns} columns"))?;
        Ok(Self {
            name: opened.name,
            stream: opened.stream,
            element,
            fortran_order: header.fortran_order,
            n_rows,
            n_columns,
            rows_read: 0,
        })
    }

    /// The next `n` rows as they are stored (for Fortran order only all of them make sense).
    fn decode(&mut self, n: usize) -> Result<Values, ReadError> {
        // The product is at most what the header claimed, which was checked to fit.
        let bytes = read_claimed(&mut self.stream, n * self.n_columns * self.element.size(), &self.name)?;
        self.rows_read += n;
        Ok(self.element.decode(&bytes))
    }
}

/// Reads a header; what is wrong with it is the file's fault, not the system's.
pub(crate) fn read_header(name: &str, stream: &mut dyn Read) -> Result<Header, ReadError> {
    Header::read(stream).map_err(|source| match source.kind() {
        std::io::ErrorKind::InvalidData => ReadError::malformed(name, source.to_string()),
        _ => ReadError::io(name, source),
    })
}

impl RowSource for NpySource {
    fn stated(&self) -> Stated {
        Stated { n_columns: Some(self.n_columns), ..Stated::default() }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        let left = self.n_rows - self.rows_read;
        if left == 0 || self.n_columns == 0 {
            return Ok(Vec::new());
        }
        let (n, d) = (self.n_rows, self.n_columns);
        if self.fortran_order && d > 1 {
            let values = match self.decode(n)? {
                Values::F32(x) => Values::F32(transposed(&x, n, d)),
                Values::F64(x) => Values::F64(transposed(&x, n, d)),
            };
            return Ok(vec![RowBlock::dense(d, values)]);
        }
        let at_once = (BLOCK / (d * self.element.size())).clamp(1, left);
        Ok(vec![RowBlock::dense(d, self.decode(at_once)?)])
    }
}

/// Row-major order of n×d values given column by column. Goes through tiles, so that both sides stay in cache.
pub(crate) fn transposed<T: Copy + Default>(by_column: &[T], n: usize, d: usize) -> Vec<T> {
    const TILE: usize = 32;
    let mut by_row = vec![T::default(); by_column.len()];
    for rows in (0..n).step_by(TILE) {
        for columns in (0..d).step_by(TILE) {
            for i in rows..n.min(rows + TILE) {
                for j in columns..d.min(columns + TILE) {
                    by_row[i * d + j] = by_column[j * n + i];
                }
            }
        }
    }
    by_row
}

/// Writes a C-ordered array of f32 or f64.
pub(crate) struct NpySink {
    out: Out,
    single: bool,
}

impl NpySink {
    pub(crate) fn new(mut out: Out, summary: &Summary) -> Result<Self, WriteError> {
        out.write(&Header::bytes(descr(summary.single), &[summary.n_rows, summary.n_columns]))?;
        Ok(Self { out, single: summary.single })
    }
}

/// NumPy's name of the type, little-endian on every machine.
pub(crate) fn descr(single: bool) -> &'static str {
    if single { "<f4" } else { "<f8" }
}

impl RowSink for NpySink {
    fn write_rows(&mut self, rows: &Matrix<'_>, _: Option<&Labels>) -> Result<(), WriteError> {
        let single = self.single;
        write_dense(
            rows,
            |bytes, value| {
                if single {
                    bytes.extend((value as f32).to_le_bytes());
                } else {
                    bytes.extend(value.to_le_bytes());
                }
            },
            |bytes| self.out.write(bytes),
        )
    }

    fn finish(self: Box<Self>) -> Result<(), WriteError> {
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, ReadOptions, read_bytes};

    fn file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Matrix<'static>, ReadError> {
        read_bytes(bytes, Format::Npy, &ReadOptions::default()).map(|data| data.matrix)
    }

    fn values(matrix: &Matrix<'_>) -> Vec<f64> {
        let mut all = Vec::new();
        for l in 0..matrix.n_rows() {
            matrix.for_each_in_row(l, |_, v| all.push(v));
        }
        all
    }

    #[test]
    fn both_orders_give_the_same_matrix() {
        let by_row = read(&file("|u1", "False", "(2, 3)", &[1, 2, 3, 4, 5, 6])).unwrap();
        let by_column = read(&file("|u1", "True", "(2, 3)", &[1, 4, 2, 5, 3, 6])).unwrap();
        assert_eq!(values(&by_row), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(values(&by_column), values(&by_row));
        assert!(matches!(by_row, Matrix::DenseF32(_)));
    }

    #[test]
    fn transposing_moves_every_entry() {
        let (n, d) = (70, 45);
        let by_column: Vec<usize> = (0..d).flat_map(|j| (0..n).map(move |i| i * d + j)).collect();
        assert_eq!(transposed(&by_column, n, d), (0..n * d).collect::<Vec<_>>());
    }

    #[test]
    fn one_dimension_is_one_column() {
        let x = read(&file(">i2", "True", "(3,)", &[0, 1, 0, 2, 255, 255])).unwrap();
        assert_eq!((x.n_rows(), x.n_cols(), values(&x)), (3, 1, vec![1.0, 2.0, -1.0]));
    }

    #[test]
    fn each_fault_is_named() {
        let error = |bytes: Vec<u8>| read(&bytes).unwrap_err().to_string();
        let text = error(file("<f4", "False", "(100000000000, 100000000000)", &[0; 8]));
        assert!(
            text.contains("100000000000 rows × 100000000000 columns need") && text.contains("has only"),
            "{text}"
        );
        assert!(error(file("<f4", "False", "(2, 3)", &[0; 23])).contains("cut off"));
        assert!(error(file("<c8", "False", "(2, 3)", &[0; 48])).contains("type `<c8` are not read"));
        assert!(error(file("<f4", "False", "(0, 3)", &[])).contains("no rows"));
        assert!(error(file("<f4", "False", "(3, 0)", &[])).contains("no rows"));
        assert!(
            error(file("<f4", "False", "(1, 2)", &[0, 0, 0, 0, 0, 0, 192, 127]))
                .contains("row 1, column 2 holds NaN")
        );
        assert!(error(b"\x93NUMPY\x01\x00\xff".to_vec()).contains("cut off"));
        assert!(error(b"junkjunkjunk".to_vec()).contains("no NumPy array"));
    }

    #[test]
    fn a_lie_about_the_shape_in_a_compressed_file_costs_no_memory() {
        use std::io::Write;
        let lie = file("<f4", "False", "(1000000, 1000000)", &[0; 8]);
        let mut out = crate::Compression::compress(Some(crate::Compression::Gzip), Vec::new()).unwrap();
        out.write_all(&lie).unwrap();
        assert!(read(&out.finish().unwrap()).unwrap_err().to_string().contains("cut off"));
    }
}
