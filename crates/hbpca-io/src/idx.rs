//! IDX, the format of MNIST: two zero bytes, a type, a number of dimensions, their lengths, the numbers, all
//! big-endian. The first dimension counts rows, the others together make the columns.

use std::io::Read;

use hbpca::Matrix;

use crate::binary::{read_claimed, write_dense};
use crate::block::{Labels, RowBlock};
use crate::element::{Element, Number};
use crate::input::Opened;
use crate::sink::{Out, RowSink, Summary};
use crate::source::{RowSource, Stated};
use crate::{ReadError, WriteError};

/// Bytes decoded at a time.
const BLOCK: usize = 2 << 20;

/// The rows of an IDX file.
pub(crate) struct IdxSource {
    name: String,
    stream: Box<dyn Read + Send>,
    element: Element,
    n_columns: usize,
    rows_left: usize,
}

impl IdxSource {
    pub(crate) fn open(mut opened: Opened) -> Result<Self, ReadError> {
        let start = read_claimed(&mut opened.stream, 4, &opened.name)?;
        let malformed = |message: String| ReadError::malformed(&opened.name, message);
        if start[..2] != [0, 0] {
            return Err(malformed("this is no IDX file: it does not start with two zero bytes".into()));
        }
        let number = match start[2] {
            0x08 => Number::U8,
            0x09 => Number::I8,
            0x0B => Number::I16,
            0x0C => Number::I32,
            0x0D => Number::F32,
            0x0E => Number::F64,
            other => return Err(malformed(format!("type 0x{other:02X} of IDX is unknown"))),
        };
        let n_dimensions = usize::from(start[3]);
        if n_dimensions == 0 {
            return Err(malformed("a single number is no matrix".into()));
        }
        let lengths = read_claimed(&mut opened.stream, 4 * n_dimensions, &opened.name)?;
        let lengths: Vec<u32> = lengths.as_chunks::<4>().0.iter().map(|x| u32::from_be_bytes(*x)).collect();
        let n_columns = lengths[1..].iter().fold(1_u128, |product, &x| product.saturating_mul(u128::from(x)));
        let element = Element { number, big_endian: true };
        let n_rows = lengths[0] as usize;
        let data = n_columns.saturating_mul(n_rows as u128).saturating_mul(element.size() as u128);
        let needed = data.saturating_add(4 + 4 * n_dimensions as u128);
        opened.refuse_more_than_there_is(needed, &format!("{n_rows} rows × {n_columns} columns"))?;
        let n_columns = if n_rows == 0 { 0 } else { n_columns as usize };
        Ok(Self { name: opened.name, stream: opened.stream, element, n_columns, rows_left: n_rows })
    }
}

impl RowSource for IdxSource {
    fn stated(&self) -> Stated {
        Stated { n_columns: Some(self.n_columns), ..Stated::default() }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        if self.rows_left == 0 || self.n_columns == 0 {
            return Ok(Vec::new());
        }
        let row_bytes = self.n_columns * self.element.size();
        let n = (BLOCK / row_bytes).clamp(1, self.rows_left);
        let bytes = read_claimed(&mut self.stream, n * row_bytes, &self.name)?;
        self.rows_left -= n;
        Ok(vec![RowBlock::dense(self.n_columns, self.element.decode(&bytes))])
    }
}

/// Writes IDX of two dimensions: bytes where every value is one, else f32 or f64.
pub(crate) struct IdxSink {
    out: Out,
    number: Number,
}

impl IdxSink {
    pub(crate) fn new(mut out: Out, summary: &Summary) -> Result<Self, WriteError> {
        let length = |x: usize| {
            let refused = || {
                WriteError::unsuitable(out.name(), format!("IDX holds at most {} rows or columns", u32::MAX))
            };
            u32::try_from(x).map(u32::to_be_bytes).map_err(|_| refused())
        };
        let (n, d) = (length(summary.n_rows)?, length(summary.n_columns)?);
        let (code, number) = match (summary.all_bytes, summary.single) {
            (true, _) => (0x08, Number::U8),
            (false, true) => (0x0D, Number::F32),
            (false, false) => (0x0E, Number::F64),
        };
        out.write(&[&[0, 0, code, 2][..], &n, &d].concat())?;
        Ok(Self { out, number })
    }
}

impl RowSink for IdxSink {
    fn write_rows(&mut self, rows: &Matrix<'_>, _: Option<&Labels>) -> Result<(), WriteError> {
        let number = self.number;
        let push = |bytes: &mut Vec<u8>, value: f64| match number {
            Number::U8 => bytes.push(value as u8),
            Number::F32 => bytes.extend((value as f32).to_be_bytes()),
            _ => bytes.extend(value.to_be_bytes()),
        };
        write_dense(rows, push, |bytes| self.out.write(bytes))
    }

    fn finish(self: Box<Self>) -> Result<(), WriteError> {
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadOptions, read_bytes};

    fn read(bytes: &[u8]) -> Result<hbpca::Matrix<'static>, crate::ReadError> {
        read_bytes(bytes, Format::Idx, &ReadOptions::default()).map(|data| data.matrix)
    }

    #[test]
    fn dimensions_after_the_first_make_the_columns() {
        let mut bytes = vec![0, 0, 0x0B, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1];
        bytes.extend([0, 1, 0, 2, 1, 0, 255, 255]);
        let x = read(&bytes).unwrap();
        let mut rows = vec![Vec::new(); 2];
        (0..2).for_each(|l| x.for_each_in_row(l, |_, v| rows[l].push(v)));
        assert_eq!(rows, [[1.0, 2.0], [256.0, -1.0]]);
        let labels = read(&[0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]).unwrap();
        assert_eq!((labels.n_rows(), labels.n_cols()), (3, 1));
    }

    #[test]
    fn each_fault_is_named() {
        let error = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(error(b"abcd").contains("no IDX file"));
        assert!(error(&[0, 0, 7, 1, 0, 0, 0, 1, 0]).contains("type 0x07"));
        assert!(error(&[0, 0, 8, 0]).contains("single number"));
        assert!(error(&[0, 0, 8]).contains("cut off"));
        assert!(error(&[0, 0, 8, 2, 0, 0, 0, 1]).contains("cut off"));
        assert!(
            error(&[0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3])
                .contains("2 rows × 2 columns need 16 bytes")
        );
        let huge = [&[0, 0, 14, 255][..], &[255; 4 * 255]].concat();
        assert!(error(&huge).contains("the file has only 1024"));
        assert!(error(&[0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 5]).contains("no rows"));
        assert!(error(&[0, 0, 8, 2, 0, 0, 0, 5, 0, 0, 0, 0]).contains("no rows"));
        let nan = [&[0, 0, 13, 2, 0, 0, 0, 1, 0, 0, 0, 1][..], &f32::NAN.to_be_bytes()].concat();
        assert!(error(&nan).contains("row 1, column 1 holds NaN"));
    }
}
