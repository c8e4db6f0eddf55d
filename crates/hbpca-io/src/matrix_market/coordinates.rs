//! Lines `row column value` into entries.
//!
//! Most files list their entries by rows, so rows are kept as runs: neither is a row number parsed again where
//! the line before had the same one, nor are row numbers stored where they ascend.

use super::header::{Header, Symmetry, coordinate};
use super::listed::{Parsed, Place};
use super::{next_line, rounded, skip_blanks, word};
use crate::Precision;
use crate::text::{Fault, Stored, digits, number, scientific};

/// Parses a chunk of whole lines into its place.
pub(super) fn parse(
    piece: &[u8],
    place: Place<'_>,
    header: Header,
    precision: Precision,
) -> Result<Parsed, Fault> {
    // Other kinds need checks or a rounding of their own.
    let plain = !header.pattern && header.symmetry != Symmetry::Skew && precision != Precision::F32;
    let lines = Lines { piece, header, precision, plain };
    let mut state = State { at: 0, n_entries: 0, runs: Vec::new() };
    let mut doubles = None;
    match place {
        Place::Double(columns, values) => lines.read(&mut state, columns, values)?,
        Place::Single(columns, values) => {
            lines.read(&mut state, columns, values)?;
            if state.at < piece.len() {
                let mut wide: Vec<f64> = values.iter().copied().map(f64::from).collect();
                lines.read(&mut state, columns, &mut wide)?;
                doubles = Some(wide);
            }
        }
    }
    Ok(Parsed { runs: state.runs, n_entries: state.n_entries, doubles, length: piece.len() })
}

/// How far a chunk was parsed.
struct State {
    at: usize,
    n_entries: usize,
    runs: Vec<(u32, u32)>,
}

impl State {
    /// Counts `n` more entries of the row, in a new run if another row came before.
    fn count(&mut self, row: u32, n: usize) {
        self.n_entries += n;
        match self.runs.last_mut() {
            // A chunk holds far fewer than 2³² entries.
            Some(last) if last.0 == row => last.1 += n as u32,
            _ if n > 0 => self.runs.push((row, n as u32)),
            _ => {}
        }
    }
}

/// The lines of a chunk.
struct Lines<'a> {
    piece: &'a [u8],
    header: Header,
    precision: Precision,
    /// Whether lines may be as [`Lines::read_plain`] wants them.
    plain: bool,
}

/// An entry, counted from 0.
struct Entry {
    row: u32,
    column: u32,
    value: f64,
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
    /// Parses lines up to the end, or up to a value that `T` does not hold exactly. There is room for every line.
    fn read<T: Stored>(&self, state: &mut State, columns: &mut [u32], values: &mut [T]) -> Result<(), Fault> {
        loop {
            if self.plain {
                self.read_plain(state, columns, values);
            }
            state.at = next_line(self.piece, state.at);
            if state.at >= self.piece.len() {
                return Ok(());
            }
            let (entry, next) = self.any(state.at)?;
            let Some(value) = T::exactly(entry.value) else { return Ok(()) };
            columns[state.n_entries] = entry.column;
            values[state.n_entries] = value;
            state.count(entry.row, 1);
            state.at = next;
        }
    }

    /// Parses plain lines, up to the first line of another kind, or near the end.
    ///
    /// A plain line is what programs write: one blank between row, column and value, none elsewhere, and a row
    /// and a column of few digits.
    fn read_plain<T: Stored>(&self, state: &mut State, columns: &mut [u32], values: &mut [T]) {
        let (columns, values) = (&mut columns[state.n_entries..], &mut values[state.n_entries..]);
        // No text fits the first one, because its byte is outside of its mask.
        let mut row_text = RowText { bytes: 1, mask: 0, length: 0 };
        let (mut row, mut run_start) = (0, 0);
        let mut n = 0;
        let mut at = state.at;
        for (column_place, value_place) in columns.iter_mut().zip(values) {
            let Some(window) = self.piece.get(at..).and_then(|rest| rest.first_chunk()) else { break };
            let Some(text) = digits::word(window, 0) else { break };
            if text & row_text.mask != row_text.bytes {
                let Some((new_row, new_text)) = RowText::new(text, self.header.n_rows) else { break };
                state.count(row, n - run_start);
                (row, row_text, run_start) = (new_row, new_text, n);
            }
            let Some((column, value, end)) = self.column_and_value(window, row_text.length, at) else {
                break;
            };
            (*column_place, *value_place) = (column, value);
            n += 1;
            at += end + 1;
        }
        state.count(row, n - run_start);
        state.at = at;
    }

    /// Column and value of a plain line, whose row ends before byte `start` of the window at `at`, and where in the
    /// window the line ends; nothing if `T` does not hold the value exactly.
    #[inline(always)]
    fn column_and_value<T: Stored>(
        &self,
        window: &[u8; 48],
        start: usize,
        at: usize,
    ) -> Option<(u32, T, usize)> {
        let text = digits::word(window, start)?;
        let (column, n) = digits::leading_digits(text);
        // Shifted by all 64 bits, the text is where it was, with a digit in front.
        let behind = text.wrapping_shr(8 * n as u32);
        if column.wrapping_sub(1) >= self.header.n_columns || behind as u8 != b' ' {
            return None;
        }
        // What files list most: a single digit, or a measurement.
        let digit = ((behind >> 8) as u8).wrapping_sub(b'0');
        let value_start = start + n + 1;
        let (value, end) = if (behind >> 16) as u8 == b'\n' && digit <= 9 {
            (T::seven_digits(u32::from(digit)), value_start + 1)
        } else if let Some((value, end)) = scientific(window, value_start) {
            (T::exactly(value)?, end)
        } else {
            let (value, end) = self.number_of_line(at + value_start)?;
            (T::exactly(value)?, end - at)
        };
        Some((column as u32 - 1, value, end))
    }

    /// Any number that starts at `at` and is ended by a line end, and where that is.
    #[inline(never)]
    fn number_of_line(&self, at: usize) -> Option<(f64, usize)> {
        number::parse(self.piece, at).filter(|&(_, end)| self.piece.get(end) == Some(&b'\n'))
    }

    /// Parses any line and says where the next one starts.
    fn any(&self, i: usize) -> Result<(Entry, usize), Fault> {
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
        Ok((Entry { row, column, value }, i + 1))
    }
}

fn expected(piece: &[u8], i: usize, what: &str, bound: u64) -> String {
    format!("expected a {what} from 1 to {bound}, found `{}`", String::from_utf8_lossy(word(piece, i)))
}
