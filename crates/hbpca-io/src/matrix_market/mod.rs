//! Matrix Market: text, dense (array, column by column) or sparse (coordinate, in any order).
//!
//! Neither order is by rows, so the matrix comes in one block. Symmetric and skew-symmetric matrices are
//! completed, entries given twice are summed.

mod coordinates;
mod header;
mod listed;
mod write;

pub(crate) use write::{ArraySink, CoordinateSink};

use header::{Header, Listing, Symmetry};
use listed::Listed;

use crate::binary::refuse_absurd_rows;
use crate::block::{RowBlock, Values};
use crate::gather::checked;
use crate::input::Opened;
use crate::npy::transposed;
use crate::source::{RowSource, Stated};
use crate::text::{Fault, TextChunks, number};
use crate::{MissingFields, Precision, ReadError, ReadOptions};

/// The one block of a Matrix Market file.
pub(crate) struct MatrixMarketSource {
    name: String,
    text: TextChunks,
    header: Header,
    size: Option<u64>,
    precision: Precision,
    done: bool,
}

impl MatrixMarketSource {
    pub(crate) fn open(mut opened: Opened, options: &ReadOptions) -> Result<Self, ReadError> {
        let stream = std::mem::replace(&mut opened.stream, Box::new(std::io::empty()));
        let mut text = TextChunks::new(&opened.name, stream, opened.size);
        let head = text.peek()?;
        if head.is_empty() {
            return Err(ReadError::malformed(&opened.name, "the file is empty: there are no rows"));
        }
        let header = Header::parse(head).map_err(|(at, message)| {
            let line = memchr::memchr_iter(b'\n', &head[..at]).count() as u64 + 1;
            ReadError::Text { file: opened.name.clone(), line, column: 1, message }
        })?;
        let needed = header.fewest_bytes().saturating_add(header.length as u128);
        opened.refuse_more_than_there_is(needed, &format!("{} entries", header.n_listed))?;
        text.skip(header.length);
        let (name, size) = (opened.name, opened.size);
        Ok(Self { name, text, header, size, precision: options.precision, done: false })
    }

    /// Refuses more or fewer entries than the header says.
    fn check_count(&self, found: usize) -> Result<(), ReadError> {
        if found as u128 == self.header.n_listed {
            return Ok(());
        }
        let text = format!("the sizes promise {} entries, but {found} are listed", self.header.n_listed);
        Err(ReadError::malformed(&self.name, text))
    }

    fn read_coordinates(&mut self) -> Result<RowBlock, ReadError> {
        let (header, precision) = (self.header, self.precision);
        let mut listed = Listed::new(header, self.size.is_some(), precision);
        while listed.len() as u128 <= header.n_listed {
            let mut sizes = Vec::new();
            let pieces = self.text.parse_into(
                |n_lines| {
                    sizes.extend_from_slice(n_lines);
                    listed.places(n_lines)
                },
                |piece, place| coordinates::parse(piece, place, header, precision),
            )?;
            if pieces.is_empty() {
                break;
            }
            listed.accept(pieces, &sizes);
        }
        self.check_count(listed.len())?;
        let bytes = self.size.unwrap_or(listed.text_bytes);
        refuse_absurd_rows(header.n_rows as usize, bytes, &self.name)?;
        let n_listed = listed.len();
        let block = listed.into_block(header);
        // What was read is finite, but sums and what is rounded to single precision need not be.
        let as_read = header.symmetry == Symmetry::General && block.values.len() == n_listed;
        if as_read && precision != Precision::F32 {
            Ok(block)
        } else {
            Ok(self.narrowed(checked(block, precision, MissingFields::Refused, &self.name, 0)?))
        }
    }

    /// Numbers of text were rounded one by one: whether any lost digits is not known.
    fn narrowed(&self, block: RowBlock) -> RowBlock {
        RowBlock { narrowed: self.precision == Precision::F32 && !self.header.pattern, ..block }
    }

    fn read_array(&mut self) -> Result<RowBlock, ReadError> {
        let precision = self.precision;
        let mut all = Values::F32(Vec::new());
        loop {
            let pieces = self.text.parse(|piece| parse_values(piece, precision))?;
            if pieces.is_empty() || all.len() as u128 > self.header.n_listed {
                break;
            }
            for piece in pieces {
                all.append(piece);
            }
        }
        self.check_count(all.len())?;
        let (n, d) = (self.header.n_rows as usize, self.header.n_columns as usize);
        let symmetry = self.header.symmetry;
        let values = match all {
            Values::F32(x) => Values::F32(array_rows(x, n, d, symmetry)),
            Values::F64(x) => Values::F64(array_rows(x, n, d, symmetry)),
        };
        Ok(self.narrowed(checked(
            RowBlock::dense(d, values),
            precision,
            MissingFields::Refused,
            &self.name,
            0,
        )?))
    }
}

impl RowSource for MatrixMarketSource {
    fn stated(&self) -> Stated {
        Stated { n_columns: Some(self.header.n_columns as usize), finite: true, ..Stated::default() }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        if std::mem::replace(&mut self.done, true) || self.header.n_rows == 0 || self.header.n_columns == 0 {
            return Ok(Vec::new());
        }
        let block = match self.header.listing {
            Listing::Coordinate => self.read_coordinates()?,
            Listing::Array => self.read_array()?,
        };
        Ok(vec![block])
    }
}

/// Where the next word of data starts at or after `i`: blank lines and comments are passed over.
fn next_line(piece: &[u8], mut i: usize) -> usize {
    loop {
        match piece.get(i) {
            Some(b' ' | b'\t' | b'\r' | b'\n') => i += 1,
            Some(b'%') => i = memchr::memchr(b'\n', &piece[i..]).map_or(piece.len(), |k| i + k + 1),
            _ => return i,
        }
    }
}

#[inline]
fn skip_blanks(piece: &[u8], mut i: usize) -> usize {
    while matches!(piece.get(i), Some(b' ' | b'\t' | b'\r')) {
        i += 1;
    }
    i
}

#[inline]
fn rounded(value: f64, token: &[u8], precision: Precision) -> f64 {
    if precision == Precision::F32 { f64::from(number::to_f32(value, token)) } else { value }
}

fn word(piece: &[u8], i: usize) -> &[u8] {
    let rest = piece.get(i..).unwrap_or_default();
    &rest[..rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len())]
}

fn parse_values(piece: &[u8], precision: Precision) -> Result<Values, Fault> {
    let mut values = Vec::with_capacity(piece.len() / 4);
    let mut i = next_line(piece, 0);
    while i < piece.len() {
        let token = word(piece, i);
        match number::parse(token, 0) {
            Some((value, end)) if end == token.len() => {
                let value = rounded(value, token, precision);
                values.push(value);
            }
            _ => return Err(Fault::new(i, number::complaint(token))),
        }
        i = next_line(piece, i + token.len());
    }
    Ok(Values::from_text(values, precision))
}

/// Row-major values of an array listed by columns, completed by symmetry.
fn array_rows<T: Copy + Default + std::ops::Neg<Output = T>>(
    listed: Vec<T>,
    n: usize,
    d: usize,
    symmetry: Symmetry,
) -> Vec<T> {
    if symmetry == Symmetry::General {
        return if d == 1 { listed } else { transposed(&listed, n, d) };
    }
    let mut values = vec![T::default(); n * n];
    let mut next = listed.into_iter();
    for j in 0..n {
        for i in (if symmetry == Symmetry::Skew { j + 1 } else { j })..n {
            let value = next.next().unwrap_or_default();
            values[i * n + j] = value;
            if i != j {
                values[j * n + i] = if symmetry == Symmetry::Skew { -value } else { value };
            }
        }
    }
    values
}

#[cfg(test)]
mod tests;
