//! Text in chunks: read and decompressed ahead, cut at line ends, parsed in parallel, in order.
//!
//! While one chunk is parsed by all threads, one of them fetches the next. Pieces depend on the text only,
//! so that results and messages are the same for any number of threads.

mod decimal;
pub(crate) mod digits;
pub(crate) mod number;
mod number_style;
mod scientific;
mod stored;

pub use number_style::NumberStyle;
pub(crate) use scientific::scientific;
pub(crate) use stored::Stored;

use std::io::{self, Read};

use rayon::prelude::*;

use crate::ReadError;

/// Bytes fetched at a time: a small share of what was fetched before, so that neither the first chunk keeps all waiting
/// nor what is on its way takes much memory beside the matrix, but not so few that threads often wait for each other,
/// as they do after every chunk. Where decompression, or a pipe, is what all wait for, the smallest will do.
const SMALLEST_CHUNK: usize = 256 << 10;
const LARGEST_CHUNK: usize = 512 << 10;
const CHUNK_SHARE: usize = 16;
/// Bytes parsed by one task: small enough that the last ones keep nobody waiting, large enough to be worth a task.
const PIECE: usize = 16 << 10;

/// Something wrong at byte `at` of a chunk.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// Where a record may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordEnd {
    /// At every line end.
    Line,
    /// At line ends outside of double quotes.
    UnquotedLine,
}

/// Whole records, ended by a line end.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// Where the chunks end that are parsed by one task each, and how many lines each of them has.
    pieces: Vec<(usize, usize)>,
}

impl Chunk {
    fn new(bytes: Vec<u8>, record_end: RecordEnd) -> Self {
        let mut start = 0;
        let counted = |end| {
            let n_lines = count_lines(&bytes[start..end]);
            start = end;
            (end, n_lines)
        };
        let pieces = piece_ends(&bytes, record_end).into_iter().map(counted).collect();
        Self { bytes, pieces }
    }

    fn pieces(&self) -> Vec<&[u8]> {
        let mut start = 0;
        let piece = |&(end, _): &(usize, usize)| &self.bytes[std::mem::replace(&mut start, end)..end];
        self.pieces.iter().map(piece).collect()
    }
}

/// A text file, read in chunks of whole records.
pub(crate) struct TextChunks {
    file: String,
    reader: Box<dyn Read + Send>,
    /// Whether the bytes are there as soon as they are asked for.
    is_plain_file: bool,
    record_end: RecordEnd,
    /// Whether double quotes may hide line ends, from the first one on.
    may_quote: bool,
    /// The chunk to parse next, if it was fetched.
    ready: Option<Chunk>,
    /// The start of a record whose end was not yet fetched.
    carry: Vec<u8>,
    /// The memory of a chunk that was parsed.
    spare: Vec<u8>,
    lines_before: u64,
    /// Bytes fetched so far.
    fetched: usize,
    exhausted: bool,
}

impl TextChunks {
    /// A text of `size` bytes, which is known for plain files only.
    pub(crate) fn new(file: &str, reader: Box<dyn Read + Send>, size: Option<u64>) -> Self {
        Self {
            file: file.to_owned(),
            reader,
            is_plain_file: size.is_some(),
            record_end: RecordEnd::Line,
            may_quote: false,
            ready: None,
            carry: Vec::new(),
            spare: Vec::new(),
            lines_before: 0,
            fetched: 0,
            exhausted: false,
        }
    }

    /// The first chunk, to look at before parsing; empty for an empty file.
    pub(crate) fn peek(&mut self) -> Result<&[u8], ReadError> {
        if self.ready.is_none() {
            self.ready = Some(self.fetch()?);
        }
        Ok(self.ready.as_ref().map(|chunk| &chunk.bytes[..]).unwrap_or_default())
    }

    /// The first chunk, with as many of the next as it takes until there is `enough`; less only where the file ends.
    pub(crate) fn peek_until(&mut self, enough: impl Fn(&[u8]) -> bool) -> Result<&[u8], ReadError> {
        while !enough(self.peek()?) {
            let mut more = self.fetch_bytes()?;
            if more.is_empty() {
                break;
            }
            let mut bytes = self.ready.take().unwrap_or_default().bytes;
            bytes.append(&mut more);
            self.ready = Some(Chunk::new(bytes, self.record_end));
        }
        self.peek()
    }

    /// Leaves out the first `n` bytes of the chunk that was peeked at, which must be whole lines.
    pub(crate) fn skip(&mut self, n: usize) {
        if let Some(Chunk { mut bytes, .. }) = self.ready.take() {
            let skipped = bytes.drain(..n.min(bytes.len()));
            self.lines_before += count_lines(skipped.as_slice()) as u64;
            drop(skipped);
            self.ready = Some(Chunk::new(bytes, self.record_end));
        }
    }

    /// Lets records end outside of double quotes only; to be called before anything is fetched. Texts without quotes, and all
    /// that comes before the first one, are cut at line ends, which are found faster.
    pub(crate) fn respect_quotes(&mut self) {
        self.may_quote = true;
    }

    /// Parses the next chunk, chunk by chunk; nothing is left when the result is empty.
    pub(crate) fn parse<T: Send>(
        &mut self,
        parse: impl Fn(&[u8]) -> Result<T, Fault> + Sync,
    ) -> Result<Vec<T>, ReadError> {
        self.parse_into(|n_lines| vec![(); n_lines.len()], |piece, ()| parse(piece))
    }

    /// Parses the next chunk into places made for it: `places` is told how many lines each chunk has.
    pub(crate) fn parse_into<P: Send, T: Send>(
        &mut self,
        places: impl FnOnce(&[usize]) -> Vec<P>,
        parse: impl Fn(&[u8], P) -> Result<T, Fault> + Sync,
    ) -> Result<Vec<T>, ReadError> {
        let chunk = match self.ready.take() {
            Some(chunk) if !chunk.bytes.is_empty() => chunk,
            _ => self.fetch()?,
        };
        if chunk.bytes.is_empty() {
            return Ok(Vec::new());
        }
        let pieces = chunk.pieces();
        let n_lines: Vec<usize> = chunk.pieces.iter().map(|&(_, n_lines)| n_lines).collect();
        let places = places(&n_lines);
        let (next, parsed) = rayon::join(
            || self.fetch(),
            || {
                // One by one: with two threads, larger shares would leave one of them waiting at the end of every chunk.
                let work = pieces.par_iter().zip(places).with_max_len(1);
                work.map(|(piece, place)| parse(piece, place)).collect::<Vec<_>>()
            },
        );
        let mut values = Vec::with_capacity(parsed.len());
        for ((piece, n_lines), parsed) in pieces.iter().zip(n_lines).zip(parsed) {
            match parsed {
                Ok(value) => values.push(value),
                Err(fault) => return Err(self.at(piece, &fault)),
            }
            self.lines_before += n_lines as u64;
        }
        self.ready = Some(next?);
        self.spare = chunk.bytes;
        Ok(values)
    }

    /// The error for a fault in a chunk that starts after `lines_before` lines.
    fn at(&self, piece: &[u8], fault: &Fault) -> ReadError {
        let before = &piece[..fault.at.min(piece.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |i| i + 1);
        ReadError::Text {
            file: self.file.clone(),
            line: self.lines_before + count_lines(before) as u64 + 1,
            column: String::from_utf8_lossy(&before[line_start..]).chars().count() as u64 + 1,
            message: fault.message.clone(),
        }
    }

    /// The next chunk; empty at the end of the file.
    fn fetch(&mut self) -> Result<Chunk, ReadError> {
        let bytes = self.fetch_bytes()?;
        Ok(Chunk::new(bytes, self.record_end))
    }

    /// The next whole records, ended by a line end; nothing at the end of the file.
    fn fetch_bytes(&mut self) -> Result<Vec<u8>, ReadError> {
        // The memory of an earlier chunk is read over as it is: clearing it would cost as much as filling it.
        let mut chunk = std::mem::take(&mut self.spare);
        let mut filled = self.carry.len();
        chunk.resize(chunk.len().max(filled), 0);
        chunk[..filled].copy_from_slice(&self.carry);
        self.carry.clear();
        let mut least = 0;
        loop {
            if !self.exhausted {
                let usual = if self.is_plain_file {
                    (self.fetched / CHUNK_SHARE).clamp(SMALLEST_CHUNK, LARGEST_CHUNK)
                } else {
                    SMALLEST_CHUNK
                };
                let size = usual.max(least);
                chunk.resize(chunk.len().max(filled + size), 0);
                let n = read_full(&mut *self.reader, &mut chunk[filled..filled + size])
                    .map_err(|source| ReadError::io(&self.file, source))?;
                if self.may_quote && memchr::memchr(b'"', &chunk[filled..filled + n]).is_some() {
                    self.record_end = RecordEnd::UnquotedLine;
                }
                filled += n;
                self.fetched += n;
                self.exhausted = n < size;
            }
            if self.exhausted {
                chunk.truncate(filled);
                if chunk.last().is_some_and(|&byte| byte != b'\n') {
                    chunk.push(b'\n');
                }
                return Ok(chunk);
            }
            if let Some(end) = last_record_end(&chunk[..filled], self.record_end) {
                self.carry.extend_from_slice(&chunk[end..filled]);
                chunk.truncate(end);
                return Ok(chunk);
            }
            // As much again as there is: a record of many megabytes is looked through a few times, not hundreds of times.
            least = filled;
        }
    }
}

/// Fills `buffer` as far as there are bytes, and says how many there were.
fn read_full(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn count_lines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// The byte after the last record's end.
fn last_record_end(chunk: &[u8], record_end: RecordEnd) -> Option<usize> {
    match record_end {
        RecordEnd::Line => memchr::memrchr(b'\n', chunk).map(|i| i + 1),
        RecordEnd::UnquotedLine => unquoted_line_ends(chunk).last(),
    }
}

/// Bytes after line ends with an even number of quotes before them (a quote within quotes is doubled).
fn unquoted_line_ends(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut inside = false;
    memchr::memchr2_iter(b'"', b'\n', bytes).filter_map(move |i| {
        if bytes[i] == b'"' {
            inside = !inside;
            None
        } else {
            (!inside).then_some(i + 1)
        }
    })
}

/// Where chunks of whole records end that together are the chunk.
fn piece_ends(chunk: &[u8], record_end: RecordEnd) -> Vec<usize> {
    let mut ends = Vec::with_capacity(chunk.len() / PIECE + 1);
    let mut start = 0;
    match record_end {
        RecordEnd::Line => {
            while start < chunk.len() {
                let target = chunk.len().min(start + PIECE) - 1;
                start = memchr::memchr(b'\n', &chunk[target..]).map_or(chunk.len(), |i| target + i + 1);
                ends.push(start);
            }
        }
        RecordEnd::UnquotedLine => {
            for end in unquoted_line_ends(chunk) {
                if end - start >= PIECE {
                    ends.push(end);
                    start = end;
                }
            }
            if start < chunk.len() {
                ends.push(chunk.len());
            }
        }
    }
    ends
}

#[cfg(test)]
mod tests;
