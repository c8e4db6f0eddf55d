//! Matrix Market: text, dense (array, column by column) or sparse (coordinate, in any order).
//!
//! Neither order is by rows, so the matrix comes in one block. Symmetric and skew-symmetric matrices are
//! completed, entries given twice are summed.

mod header;
mod write;

pub(crate) use write::{ArraySink, CoordinateSink};

use header::{Header, Listing, Symmetry, coordinate};

use crate::binary::refuse_absurd_rows;
use crate::block::{RowBlock, Values};
use crate::input::Opened;
use crate::npy::transposed;
use crate::source::{RowSource, Stated};
use crate::sparse::Entries;
use crate::text::{Fault, RecordEnd, TextChunks, number};
use crate::{Precision, ReadError, ReadOptions};

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
        let mut text = TextChunks::new(&opened.name, stream, RecordEnd::Line);
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
        let mut all = Entries {
            n_rows: header.n_rows as usize,
            rows: vec![],
            columns: vec![],
            values: Values::F32(vec![]),
        };
        let mut text_bytes = 0;
        let parse = |piece: &[u8]| {
            parse_coordinates(piece, header, precision).map(|entries| (piece.len() as u64, entries))
        };
        let mut append = |all: &mut Entries, pieces: Vec<(u64, Entries)>| {
            for (length, piece) in pieces {
                text_bytes += length;
                all.rows.extend_from_slice(&piece.rows);
                all.columns.extend_from_slice(&piece.columns);
                all.values.append(piece.values);
            }
        };
        let mut pieces = self.text.parse(parse)?;
        while !pieces.is_empty() && all.rows.len() as u128 <= header.n_listed {
            let ((), next) = rayon::join(|| append(&mut all, pieces), || self.text.parse(parse));
            pieces = next?;
        }
        self.check_count(all.rows.len())?;
        refuse_absurd_rows(all.n_rows, self.size.unwrap_or(text_bytes), &self.name)?;
        complete(&mut all, header.symmetry);
        Ok(all.into_block())
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
        Ok(RowBlock::dense(d, values))
    }
}

impl RowSource for MatrixMarketSource {
    fn stated(&self) -> Stated {
        Stated { n_columns: Some(self.header.n_columns as usize), ..Stated::default() }
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

fn parse_coordinates(piece: &[u8], header: Header, precision: Precision) -> Result<Entries, Fault> {
    let room = piece.len() / 8;
    let (mut rows, mut columns) = (Vec::with_capacity(room), Vec::with_capacity(room));
    let mut values = Vec::with_capacity(room);
    let mut i = next_line(piece, 0);
    while i < piece.len() {
        let wrong = |at: usize, what: &str, bound: u64| Fault::new(at, expected(piece, at, what, bound));
        let Some((row, end)) = coordinate(piece, i, header.n_rows) else {
            return Err(wrong(i, "row", header.n_rows));
        };
        i = skip_blanks(piece, end);
        let Some((column, end)) = coordinate(piece, i, header.n_columns).filter(|_| i > end) else {
            return Err(wrong(i, "column", header.n_columns));
        };
        let mut value = 1.0;
        let mut line_end = end;
        if !header.pattern {
            i = skip_blanks(piece, end);
            let Some((found, end)) = number::parse(piece, i).filter(|_| i > end) else {
                return Err(Fault::new(i, number::complaint(word(piece, i))));
            };
            value = rounded(found, &piece[i..end], precision);
            line_end = end;
        }
        i = skip_blanks(piece, line_end);
        if !matches!(piece.get(i), None | Some(b'\n')) {
            let found = String::from_utf8_lossy(word(piece, i));
            return Err(Fault::new(i, format!("expected the end of the line, found `{found}`")));
        }
        if row == column && header.symmetry == Symmetry::Skew && value != 0.0 {
            return Err(Fault::new(i, "the diagonal of a skew-symmetric matrix is zero"));
        }
        rows.push(row);
        columns.push(column);
        values.push(value);
        i = next_line(piece, i);
    }
    Ok(Entries { n_rows: 0, rows, columns, values: Values::from_text(values, precision) })
}

#[inline]
fn rounded(value: f64, token: &[u8], precision: Precision) -> f64 {
    if precision == Precision::F32 { f64::from(number::to_f32(value, token)) } else { value }
}

fn word(piece: &[u8], i: usize) -> &[u8] {
    let rest = piece.get(i..).unwrap_or_default();
    &rest[..rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len())]
}

fn expected(piece: &[u8], i: usize, what: &str, bound: u64) -> String {
    format!("expected a {what} from 1 to {bound}, found `{}`", String::from_utf8_lossy(word(piece, i)))
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

/// Adds the mirror of every entry off the diagonal.
fn complete(entries: &mut Entries, symmetry: Symmetry) {
    if symmetry == Symmetry::General {
        return;
    }
    let sign = if symmetry == Symmetry::Skew { -1.0 } else { 1.0 };
    for at in 0..entries.rows.len() {
        let (row, column) = (entries.rows[at], entries.columns[at]);
        if row != column {
            entries.rows.push(column);
            entries.columns.push(row);
            match &mut entries.values {
                Values::F32(x) => x.push(sign as f32 * x[at]),
                Values::F64(x) => x.push(sign * x[at]),
            }
        }
    }
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
