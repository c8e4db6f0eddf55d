//! Lines `row column value` into entries, and entries into compressed rows.
//!
//! Most files list their entries by rows, so rows are kept as runs: neither is a row number parsed again where
//! the line before had the same one, nor are row numbers stored where they ascend.

use super::header::{Header, Symmetry, coordinate};
use super::{next_line, rounded, skip_blanks, word};
use crate::Precision;
use crate::block::{RowBlock, Values};
use crate::sparse::{Entries, compressed};
use crate::text::{Fault, digits, number, token};

/// Entries in the order of the file.
pub(super) struct Listed {
    /// Each row in turn with how many entries of it follow each other.
    runs: Vec<(u32, u32)>,
    columns: Vec<u32>,
    values: Values,
}

impl Listed {
    /// Room for what the header promises, if the size of the file vouches for it.
    pub(super) fn new(header: Header, size_is_known: bool) -> Self {
        let room = if size_is_known { header.n_listed as usize } else { 0 };
        Self {
            runs: Vec::new(),
            columns: Vec::with_capacity(room),
            values: Values::F32(Vec::with_capacity(room)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn append(&mut self, more: Self) {
        self.runs.extend_from_slice(&more.runs);
        self.columns.extend_from_slice(&more.columns);
        self.values.append(more.values);
    }

    /// The rows of the matrix; symmetric ones are completed.
    pub(super) fn into_block(self, header: Header) -> RowBlock {
        let n_rows = header.n_rows as usize;
        if header.symmetry != Symmetry::General || !self.runs.is_sorted_by_key(|run| run.0) {
            let mut entries = self.into_entries(n_rows);
            complete(&mut entries, header.symmetry);
            return entries.into_block();
        }
        let mut starts = vec![0_usize; n_rows + 1];
        for &(row, n) in &self.runs {
            starts[row as usize + 1] += n as usize;
        }
        drop(self.runs);
        for l in 0..n_rows {
            starts[l + 1] += starts[l];
        }
        compressed(starts, self.columns, self.values)
    }

    fn into_entries(self, n_rows: usize) -> Entries {
        let mut rows = Vec::with_capacity(self.columns.len());
        for (row, n) in self.runs {
            rows.resize(rows.len() + n as usize, row);
        }
        Entries { n_rows, rows, columns: self.columns, values: self.values }
    }
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

/// The entries of a piece of whole lines.
pub(super) fn parse(piece: &[u8], header: Header, precision: Precision) -> Result<Listed, Fault> {
    let room = piece.len() / 8;
    let mut lines = Lines {
        piece,
        header,
        precision,
        runs: Vec::new(),
        columns: Vec::with_capacity(room),
        values: Vec::with_capacity(room),
    };
    // Other kinds need checks or a rounding of their own.
    let plain = !header.pattern && header.symmetry != Symmetry::Skew && precision != Precision::F32;
    let mut i = 0;
    loop {
        if plain {
            i = lines.plain(i);
        }
        i = next_line(piece, i);
        if i >= piece.len() {
            break;
        }
        i = lines.any(i)?;
    }
    let Lines { runs, columns, values, .. } = lines;
    Ok(Listed { runs, columns, values: Values::from_text(values, precision) })
}

/// The lines of a piece, as they are parsed.
struct Lines<'a> {
    piece: &'a [u8],
    header: Header,
    precision: Precision,
    runs: Vec<(u32, u32)>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

/// How a line starts: its row and the blank after it.
#[derive(Clone, Copy)]
struct RowText {
    bytes: u64,
    mask: u64,
    length: usize,
}

impl RowText {
    /// The row of at most seven digits, within `bound`, that `text` starts with, counted from 0.
    #[inline]
    fn new(text: u64, bound: u64) -> Option<(u32, Self)> {
        let (row, n) = digits::leading_digits(text);
        // A blank ends the row, hence n < 8 and the mask fits.
        if n == 8 || row == 0 || row > bound || (text >> (8 * n)) as u8 != b' ' {
            return None;
        }
        let mask = u64::MAX >> (56 - 8 * n);
        Some((row as u32 - 1, Self { bytes: text & mask, mask, length: n + 1 }))
    }
}

impl Lines<'_> {
    /// Parses plain lines, and says where it stopped: at the first line of another kind, or near the end.
    ///
    /// A plain line is what programs write: one blank between row, column and value, none elsewhere, and a row
    /// and a column of few digits.
    fn plain(&mut self, mut i: usize) -> usize {
        // No text fits the first one, because its byte is outside of its mask.
        let mut row_text = RowText { bytes: 1, mask: 0, length: 0 };
        let mut run_start = self.columns.len();
        while let Some(text) = digits::word(self.piece, i) {
            if text & row_text.mask != row_text.bytes {
                let Some((row, new)) = RowText::new(text, self.header.n_rows) else { break };
                self.end_run(run_start);
                run_start = self.columns.len();
                self.runs.push((row, 0));
                row_text = new;
            }
            let Some((column, value, length)) = self.column_and_value(i + row_text.length) else { break };
            self.columns.push(column);
            self.values.push(value);
            i += row_text.length + length + 1;
        }
        self.end_run(run_start);
        i
    }

    /// Column, value and length of the rest of a plain line.
    #[inline(always)]
    fn column_and_value(&self, at: usize) -> Option<(u32, f64, usize)> {
        let window = self.piece.get(at..)?.first_chunk::<48>()?;
        let length = digits::short_line_length(window)?;
        let (column, n) = digits::leading_digits(digits::word(window, 0)?);
        if column == 0 || column > self.header.n_columns || window[n] != b' ' {
            return None;
        }
        // What is longer may have more digits than a short number: one way for all such lines can be predicted.
        let value = if length - n <= 9 {
            token::short_number(window, n + 1, length)?
        } else {
            number::parse(self.piece, at + n + 1).filter(|&(_, end)| end == at + length)?.0
        };
        Some((column as u32 - 1, value, length))
    }

    /// Counts the entries from number `start` on into the last run, which is dropped if it has none.
    fn end_run(&mut self, start: usize) {
        if let Some(last) = self.runs.last_mut() {
            // A piece holds far fewer than 2³² entries.
            last.1 += (self.columns.len() - start) as u32;
            if last.1 == 0 {
                self.runs.pop();
            }
        }
    }

    /// Parses any line and says where it ends.
    fn any(&mut self, i: usize) -> Result<usize, Fault> {
        let (piece, header) = (self.piece, self.header);
        let wrong = |at: usize, what: &str, bound: u64| Fault::new(at, expected(piece, at, what, bound));
        let Some((row, end)) = coordinate(piece, i, header.n_rows) else {
            return Err(wrong(i, "row", header.n_rows));
        };
        let mut i = skip_blanks(piece, end);
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
            value = rounded(found, &piece[i..end], self.precision);
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
        match self.runs.last_mut() {
            Some(last) if last.0 == row => last.1 += 1,
            _ => self.runs.push((row, 1)),
        }
        self.columns.push(column);
        self.values.push(value);
        Ok(i + 1)
    }
}

fn expected(piece: &[u8], i: usize, what: &str, bound: u64) -> String {
    format!("expected a {what} from 1 to {bound}, found `{}`", String::from_utf8_lossy(word(piece, i)))
}
