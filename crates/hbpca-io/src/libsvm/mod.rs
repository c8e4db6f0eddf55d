//! LIBSVM and SVMlight: `label index:value index:value … # comment`.
//!
//! Indices ascend; they count from 0 if any index of the whole input is 0, else from 1. A `qid:` and comments
//! are left out. Several labels (`1,4`), or none before a blank, are kept as text.

mod write;

pub(crate) use write::LibsvmSink;

use crate::block::{Labels, Layout, RowBlock, Values};
use crate::input::Opened;
use crate::source::{Numbering, RowSource, Stated};
use crate::text::{Fault, TextChunks, digits, number};
use crate::{Precision, ReadError, ReadOptions};

/// The rows of a LIBSVM file.
pub(crate) struct LibsvmSource {
    text: TextChunks,
    highest_index: u32,
    n_columns: Option<usize>,
    precision: Precision,
}

impl LibsvmSource {
    pub(crate) fn open(opened: Opened, options: &ReadOptions) -> Self {
        let text = TextChunks::new(&opened.name, opened.stream, opened.size);
        let highest = options.n_columns.map_or(u32::MAX, |d| u32::try_from(d).unwrap_or(u32::MAX));
        Self { text, highest_index: highest, n_columns: options.n_columns, precision: options.precision }
    }
}

impl RowSource for LibsvmSource {
    fn stated(&self) -> Stated {
        // Rounded to single precision, a finite number may become infinite.
        let finite = self.precision != Precision::F32;
        Stated { n_columns: self.n_columns, numbering: Numbering::FromZeroOrOne, finite, ..Stated::default() }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        let (highest, precision) = (self.highest_index, self.precision);
        self.text.parse(|piece| parse_piece(piece, highest, precision))
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// The byte at `i`; beyond the end a line end, with which every chunk ends anyway.
fn byte_at(piece: &[u8], i: usize) -> u8 {
    piece.get(i).copied().unwrap_or(b'\n')
}

fn skip_blanks(piece: &[u8], mut i: usize) -> usize {
    while is_blank(byte_at(piece, i)) {
        i += 1;
    }
    i
}

fn word_end(piece: &[u8], mut i: usize) -> usize {
    while !matches!(byte_at(piece, i), b' ' | b'\t' | b'\r' | b'\n' | b'#') {
        i += 1;
    }
    i
}

fn line_end(piece: &[u8], i: usize) -> usize {
    piece.get(i..).and_then(|rest| memchr::memchr(b'\n', rest)).map_or(piece.len(), |k| i + k)
}

fn parse_piece(piece: &[u8], highest: u32, precision: Precision) -> Result<RowBlock, Fault> {
    let mut rows = Rows {
        precision,
        row_ends: Vec::with_capacity(piece.len() / 128),
        columns: Vec::with_capacity(piece.len() / 8),
        values: Vec::with_capacity(piece.len() / 8),
        labels: Labels::Numbers(Vec::with_capacity(piece.len() / 128)),
        narrowed: false,
    };
    let mut i = 0;
    while i < piece.len() {
        let start = i;
        i = skip_blanks(piece, i);
        match byte_at(piece, i) {
            b'\n' => i += 1,
            b'#' => i = line_end(piece, i) + 1,
            _ => {
                i = rows.label(piece, i, i > start)?;
                i = rows.pairs(piece, i, highest)?;
                rows.row_ends.push(rows.columns.len());
            }
        }
    }
    Ok(rows.into_block())
}

/// The rows of a chunk, as they are found.
struct Rows {
    precision: Precision,
    row_ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    labels: Labels,
    /// Whether a value was rounded to single precision.
    narrowed: bool,
}

impl Rows {
    /// Reads the label at `i`; a line that starts with blanks may have none.
    fn label(&mut self, piece: &[u8], i: usize, after_blanks: bool) -> Result<usize, Fault> {
        if let Some((value, end)) = number::parse(piece, i) {
            let next = byte_at(piece, end);
            if is_blank(next) || next == b'\n' || next == b'#' {
                match &mut self.labels {
                    Labels::Numbers(numbers) => numbers.push(value),
                    Labels::Texts(texts) => texts.push(value.to_string()),
                }
                return Ok(end);
            }
        }
        let end = word_end(piece, i);
        let word = &piece[i..end];
        if after_blanks && word.contains(&b':') {
            self.labels.push_text(String::new());
            return Ok(i);
        }
        let is_number = |label: &[u8]| number::parse(label, 0).is_some_and(|(_, end)| end == label.len());
        if !word.split(|&byte| byte == b',').all(is_number) {
            let found = String::from_utf8_lossy(word);
            return Err(Fault::new(
                i,
                format!("expected a label (a number, or several as in 1,4), found `{found}`"),
            ));
        }
        self.labels.push_text(String::from_utf8_lossy(word).into_owned());
        Ok(end)
    }

    /// Reads `index:value` pairs from `i` to the line's end, and says where the next line starts.
    #[inline]
    fn pairs(&mut self, piece: &[u8], mut i: usize, highest: u32) -> Result<usize, Fault> {
        let mut previous = None;
        loop {
            i = skip_blanks(piece, i);
            match byte_at(piece, i) {
                b'\n' => return Ok(i + 1),
                b'#' => return Ok(line_end(piece, i) + 1),
                _ => {}
            }
            let pair = digits::parse_index(piece, i)
                .filter(|&(_, colon)| byte_at(piece, colon) == b':')
                .and_then(|(index, colon)| Some((index, colon + 1, number::parse(piece, colon + 1)?)));
            let Some((index, value_at, (value, end))) = pair else {
                if previous.is_none() && piece[i..].starts_with(b"qid:") {
                    i = word_end(piece, i);
                    continue;
                }
                return Err(wrong_pair(piece, i));
            };
            if !matches!(byte_at(piece, end), b' ' | b'\n' | b'\t' | b'\r' | b'#') {
                return Err(wrong_pair(piece, i));
            }
            if previous.is_some_and(|previous| index <= previous) {
                return Err(out_of_order(i, index, previous.unwrap_or_default()));
            }
            if index > highest {
                return Err(Fault::new(
                    i,
                    format!("index {index} is beyond the {highest} columns asked for"),
                ));
            }
            previous = Some(index);
            self.columns.push(index);
            self.push_value(value, &piece[value_at..end]);
            i = end;
        }
    }

    #[inline]
    fn push_value(&mut self, value: f64, token: &[u8]) {
        let stored =
            if self.precision == Precision::F32 { f64::from(number::to_f32(value, token)) } else { value };
        self.narrowed |= stored.to_bits() != value.to_bits();
        self.values.push(stored);
    }

    fn into_block(self) -> RowBlock {
        RowBlock {
            layout: Layout::Sparse { row_ends: self.row_ends, columns: self.columns },
            values: Values::from_text(self.values, self.precision),
            labels: Some(self.labels),
            kept: Vec::new(),
            narrowed: self.narrowed,
        }
    }
}

fn out_of_order(at: usize, index: u32, previous: u32) -> Fault {
    let fault = if index == previous { "is given twice" } else { "comes after" };
    let larger = if index == previous { String::new() } else { format!(" {previous}") };
    Fault::new(at, format!("index {index} {fault}{larger}: indices must ascend within a line"))
}

/// Says which part of the pair at `i` is wrong.
fn wrong_pair(piece: &[u8], i: usize) -> Fault {
    let end = word_end(piece, i);
    let word = &piece[i..end];
    let shown: String = String::from_utf8_lossy(word).chars().take(40).collect();
    let Some(colon) = memchr::memchr(b':', word) else {
        return Fault::new(i, format!("expected index:value, found `{shown}`"));
    };
    let index = &word[..colon];
    if digits::parse_index(index, 0).is_none_or(|(_, end)| end != index.len()) {
        let index = String::from_utf8_lossy(index);
        return Fault::new(
            i,
            format!("expected an index from 0 to {} before the colon, found `{index}`", u32::MAX),
        );
    }
    Fault::new(i + colon + 1, number::complaint(&word[colon + 1..]))
}

#[cfg(test)]
mod tests;
