//! LIBSVM and SVMlight: `label index:value index:value … # comment`.
//!
//! Indices ascend; they count from 0 if any index of the whole input is 0, else from 1. A `qid:` and comments
//! are left out. Several labels (`1,4`), or none before a blank, are kept as text.

use std::io::Write;

use hbpca::Matrix;

use crate::block::{Labels, Layout, RowBlock, Values};
use crate::input::Opened;
use crate::sink::{Out, RowSink, push_number};
use crate::source::{Numbering, RowSource, Stated};
use crate::text::{Fault, RecordEnd, TextChunks, number};
use crate::{Precision, ReadError, ReadOptions, WriteError};

/// The rows of a LIBSVM file.
pub(crate) struct LibsvmSource {
    text: TextChunks,
    highest_index: u32,
    n_columns: Option<usize>,
    precision: Precision,
}

impl LibsvmSource {
    pub(crate) fn open(opened: Opened, options: &ReadOptions) -> Self {
        let text = TextChunks::new(&opened.name, opened.stream, RecordEnd::Line);
        let highest = options.n_columns.map_or(u32::MAX, |d| u32::try_from(d).unwrap_or(u32::MAX));
        Self { text, highest_index: highest, n_columns: options.n_columns, precision: options.precision }
    }
}

impl RowSource for LibsvmSource {
    fn stated(&self) -> Stated {
        Stated { n_columns: self.n_columns, numbering: Numbering::FromZeroOrOne, ..Stated::default() }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        let (highest, precision) = (self.highest_index, self.precision);
        self.text.parse(|piece| parse_piece(piece, highest, precision))
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// The byte at `i`; beyond the end a line end, with which every piece ends anyway.
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

/// The rows of a piece, as they are found.
struct Rows {
    precision: Precision,
    row_ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    labels: Labels,
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
            let pair = number::parse_index(piece, i)
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
        let value =
            if self.precision == Precision::F32 { f64::from(number::to_f32(value, token)) } else { value };
        self.values.push(value);
    }

    fn into_block(self) -> RowBlock {
        RowBlock {
            layout: Layout::Sparse { row_ends: self.row_ends, columns: self.columns },
            values: Values::from_text(self.values, self.precision),
            labels: Some(self.labels),
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
    if number::parse_index(index, 0).is_none_or(|(_, end)| end != index.len()) {
        let index = String::from_utf8_lossy(index);
        return Fault::new(
            i,
            format!("expected an index from 0 to {} before the colon, found `{index}`", u32::MAX),
        );
    }
    Fault::new(i + colon + 1, number::complaint(&word[colon + 1..]))
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, read_bytes};

    fn read(text: &str) -> Result<crate::Data, ReadError> {
        read_bytes(text.as_bytes(), Format::Libsvm, &ReadOptions::default())
    }

    fn rows(text: &str) -> (usize, Vec<Vec<(usize, f64)>>) {
        let data = read(text).unwrap();
        let row = |l| {
            let mut entries = Vec::new();
            data.matrix.for_each_in_row(l, |j, v| entries.push((j, v)));
            entries
        };
        (data.matrix.n_cols(), (0..data.matrix.n_rows()).map(row).collect())
    }

    #[test]
    fn indices_count_from_one_unless_a_zero_appears() {
        assert_eq!(rows("1 1:5 3:7\n-1 2:1\n"), (3, vec![vec![(0, 5.0), (2, 7.0)], vec![(1, 1.0)]]));
        assert_eq!(rows("1 1:5 3:7\n-1 0:1\n"), (4, vec![vec![(1, 5.0), (3, 7.0)], vec![(0, 1.0)]]));
    }

    #[test]
    fn comments_qid_blanks_and_line_ends_are_no_data() {
        let text = "# head\n\n 1.5 qid:3 1:5\t2:6  # tail\r\n2#none\n\t\r\n3 qid:4\n";
        assert_eq!(rows(text), (2, vec![vec![(0, 5.0), (1, 6.0)], vec![], vec![]]));
        assert_eq!(read(text).unwrap().labels, Some(Labels::Numbers(vec![1.5, 2.0, 3.0])));
    }

    #[test]
    fn several_labels_or_none_are_texts() {
        let labels = read("1,4 1:1\n 1:2\n7 1:3\n").unwrap().labels;
        assert_eq!(labels, Some(Labels::Texts(["1,4", "", "7"].map(String::from).to_vec())));
    }

    #[test]
    fn explicit_zeros_are_kept() {
        assert_eq!(read("1 1:0 2:1\n").unwrap().matrix.nnz(), 2);
    }

    #[test]
    fn each_fault_is_placed() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            error("1 1:1\n1 2:1 2:3\n"),
            "-:2:7: index 2 is given twice: indices must ascend within a line"
        );
        assert_eq!(error("1 3:1 2:3\n"), "-:1:7: index 2 comes after 3: indices must ascend within a line");
        assert_eq!(error("1 3\n"), "-:1:3: expected index:value, found `3`");
        assert_eq!(error("1 3:abc\n"), "-:1:5: expected a number, found `abc`");
        assert_eq!(error("1 3:1x\n"), "-:1:5: expected a number, found `1x`");
        assert!(error("1 3:\n").starts_with("-:1:5: a value is missing here"));
        assert!(error("1 3:nan\n").starts_with("-:1:5: expected a number, found the missing value `nan`"));
        assert!(error("1 3:1e999\n").starts_with("-:1:5: expected a finite number, found `1e999`"));
        assert!(error("1 x:1\n").starts_with("-:1:3: expected an index from 0 to 4294967295"));
        assert!(error("1 -1:1\n").starts_with("-:1:3: expected an index"));
        assert!(error("1 99999999999:1\n").contains("found `99999999999`"));
        assert!(error("dog 1:1\n").starts_with("-:1:1: expected a label"));
        assert!(error("1:1 2:1\n").starts_with("-:1:1: expected a label"));
        assert!(error("# nothing\n").contains("no rows"));
        assert!(error("").contains("no rows"));
        assert!(error("1\n2\n").contains("no columns"));
    }

    #[test]
    fn the_number_of_columns_can_be_given() {
        let options = ReadOptions { n_columns: Some(5), ..ReadOptions::default() };
        let read = |text: &str| read_bytes(text.as_bytes(), Format::Libsvm, &options);
        assert_eq!(read("1 5:1\n").unwrap().matrix.n_cols(), 5);
        assert_eq!(read("1 0:1 4:1\n").unwrap().matrix.n_cols(), 5);
        assert!(read("1 6:1\n").unwrap_err().to_string().contains("-:1:3: index 6 is beyond the 5 columns"));
        assert!(read("1 0:1 5:1\n").unwrap_err().to_string().contains("6 columns, but 5 were asked for"));
    }
}
