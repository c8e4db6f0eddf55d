//! Text in pieces: read and decompressed ahead, cut at line ends, parsed in parallel, in order.
//!
//! While one chunk is parsed by all threads, one of them fetches the next. Pieces depend on the text only,
//! so that results and messages are the same for any number of threads.

pub(crate) mod number;

use std::io::Read;

use rayon::prelude::*;

use crate::ReadError;

/// Bytes fetched at a time.
const CHUNK: usize = 4 << 20;
/// Bytes parsed by one task: small enough to stay in cache, large enough to be worth a task.
const PIECE: usize = 256 << 10;

/// Something wrong at byte `at` of a piece.
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

/// A text file, read in chunks of whole records.
pub(crate) struct TextChunks {
    file: String,
    reader: Box<dyn Read + Send>,
    record_end: RecordEnd,
    /// The chunk to parse next, if it was fetched; it ends with a line end.
    ready: Option<Vec<u8>>,
    /// The start of a record whose end was not yet fetched.
    carry: Vec<u8>,
    /// The memory of a chunk that was parsed.
    spare: Vec<u8>,
    lines_before: u64,
    exhausted: bool,
}

impl TextChunks {
    pub(crate) fn new(file: &str, reader: Box<dyn Read + Send>, record_end: RecordEnd) -> Self {
        Self {
            file: file.to_owned(),
            reader,
            record_end,
            ready: None,
            carry: Vec::new(),
            spare: Vec::new(),
            lines_before: 0,
            exhausted: false,
        }
    }

    /// The first chunk, to look at before parsing; empty for an empty file.
    pub(crate) fn peek(&mut self) -> Result<&[u8], ReadError> {
        if self.ready.is_none() {
            self.ready = Some(self.fetch()?);
        }
        Ok(self.ready.as_deref().unwrap_or_default())
    }

    /// Leaves out the first `n` bytes of the chunk that was peeked at, which must be whole lines.
    pub(crate) fn skip(&mut self, n: usize) {
        if let Some(ready) = &mut self.ready {
            let n = n.min(ready.len());
            self.lines_before += count_lines(&ready[..n]);
            ready.drain(..n);
        }
    }

    /// Chooses where records end; to be called before the first chunk is parsed, with no quote before.
    pub(crate) fn set_record_end(&mut self, record_end: RecordEnd) -> Result<(), ReadError> {
        self.record_end = record_end;
        if let Some(mut ready) = self.ready.take() {
            ready.append(&mut self.carry);
            self.carry = ready;
            self.ready = Some(self.fetch()?);
        }
        Ok(())
    }

    /// Parses the next chunk, piece by piece; nothing is left when the result is empty.
    pub(crate) fn parse<T: Send>(
        &mut self,
        parse: impl Fn(&[u8]) -> Result<T, Fault> + Sync,
    ) -> Result<Vec<T>, ReadError> {
        let chunk = match self.ready.take() {
            Some(chunk) => chunk,
            None => self.fetch()?,
        };
        if chunk.is_empty() {
            return Ok(Vec::new());
        }
        let pieces = cut(&chunk, self.record_end);
        let (next, parsed) = rayon::join(
            || self.fetch(),
            || pieces.par_iter().map(|piece| (count_lines(piece), parse(piece))).collect::<Vec<_>>(),
        );
        let mut values = Vec::with_capacity(parsed.len());
        for (piece, (n_lines, parsed)) in pieces.iter().zip(parsed) {
            match parsed {
                Ok(value) => values.push(value),
                Err(fault) => return Err(self.at(piece, &fault)),
            }
            self.lines_before += n_lines;
        }
        self.ready = Some(next?);
        self.spare = chunk;
        Ok(values)
    }

    /// The error for a fault in a piece that starts after `lines_before` lines.
    fn at(&self, piece: &[u8], fault: &Fault) -> ReadError {
        let before = &piece[..fault.at.min(piece.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |i| i + 1);
        ReadError::Text {
            file: self.file.clone(),
            line: self.lines_before + count_lines(before) + 1,
            column: String::from_utf8_lossy(&before[line_start..]).chars().count() as u64 + 1,
            message: fault.message.clone(),
        }
    }

    /// The next chunk of whole records, ended by a line end; empty at the end of the file.
    fn fetch(&mut self) -> Result<Vec<u8>, ReadError> {
        let mut chunk = std::mem::take(&mut self.spare);
        chunk.clear();
        chunk.append(&mut self.carry);
        loop {
            if !self.exhausted {
                let before = chunk.len();
                chunk.reserve(CHUNK);
                (&mut self.reader)
                    .take(CHUNK as u64)
                    .read_to_end(&mut chunk)
                    .map_err(|source| ReadError::io(&self.file, source))?;
                self.exhausted = chunk.len() - before < CHUNK;
            }
            if self.exhausted {
                if chunk.last().is_some_and(|&byte| byte != b'\n') {
                    chunk.push(b'\n');
                }
                return Ok(chunk);
            }
            if let Some(end) = last_record_end(&chunk, self.record_end) {
                self.carry.extend_from_slice(&chunk[end..]);
                chunk.truncate(end);
                return Ok(chunk);
            }
        }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
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

/// Pieces of whole records that together are the chunk.
fn cut(chunk: &[u8], record_end: RecordEnd) -> Vec<&[u8]> {
    let mut pieces = Vec::with_capacity(chunk.len() / PIECE + 1);
    let mut start = 0;
    match record_end {
        RecordEnd::Line => {
            while start < chunk.len() {
                let target = chunk.len().min(start + PIECE) - 1;
                let end = memchr::memchr(b'\n', &chunk[target..]).map_or(chunk.len(), |i| target + i + 1);
                pieces.push(&chunk[start..end]);
                start = end;
            }
        }
        RecordEnd::UnquotedLine => {
            for end in unquoted_line_ends(chunk) {
                if end - start >= PIECE {
                    pieces.push(&chunk[start..end]);
                    start = end;
                }
            }
            if start < chunk.len() {
                pieces.push(&chunk[start..]);
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn chunks(text: String, end: RecordEnd) -> TextChunks {
        TextChunks::new("f", Box::new(Cursor::new(text.into_bytes())), end)
    }

    fn all(mut text: TextChunks) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        loop {
            let more = text.parse(|piece| Ok(piece.to_vec())).unwrap();
            if more.is_empty() {
                return pieces;
            }
            pieces.extend(more);
        }
    }

    #[test]
    fn pieces_are_whole_lines_and_make_up_the_text() {
        let text = (0..3_000_000).map(|i| i.to_string()).collect::<Vec<_>>().join("\n") + "\n";
        let pieces = all(chunks(text.clone(), RecordEnd::Line));
        assert!(pieces.len() > 30);
        assert!(pieces.iter().all(|piece| piece.ends_with(b"\n")));
        assert_eq!(pieces.concat(), text.as_bytes());
    }

    #[test]
    fn quoted_line_ends_do_not_cut() {
        let record = format!("\"a \"\"b\"\"\n{}\",1\n", "x".repeat(1000));
        let text = record.repeat(20_000);
        let pieces = all(chunks(text.clone(), RecordEnd::UnquotedLine));
        assert!(pieces.len() > 10);
        assert!(pieces.iter().all(|piece| piece.starts_with(b"\"a") && piece.ends_with(b",1\n")));
        assert_eq!(pieces.concat(), text.as_bytes());
    }

    #[test]
    fn a_line_longer_than_a_chunk_stays_whole() {
        let text = format!("{}\nend", "7".repeat(2 * CHUNK + 5));
        let pieces = all(chunks(text.clone(), RecordEnd::Line));
        assert_eq!(pieces.concat(), format!("{text}\n").as_bytes());
        assert_eq!(pieces[0].len(), 2 * CHUNK + 6);
    }

    #[test]
    fn a_fault_is_placed_by_line_and_character() {
        let mut lines = vec!["good"; 4_000_000];
        lines[3_900_000] = "žluť bad";
        let mut text = chunks(lines.join("\n"), RecordEnd::Line);
        let find = |piece: &[u8]| match memchr::memmem::find(piece, b"bad") {
            Some(at) => Err(Fault::new(at, "oh")),
            None => Ok(()),
        };
        let error = loop {
            if let Err(error) = text.parse(find) {
                break error;
            }
        };
        assert_eq!(error.to_string(), "f:3900001:6: oh");
    }

    #[test]
    fn skipped_lines_are_counted() {
        let mut text = chunks("header\nx\n".into(), RecordEnd::Line);
        assert_eq!(text.peek().unwrap(), b"header\nx\n");
        text.skip(7);
        text.set_record_end(RecordEnd::UnquotedLine).unwrap();
        let error = text.parse(|_| Err::<(), _>(Fault::new(0, "no"))).unwrap_err();
        assert_eq!(error.to_string(), "f:2:1: no");
        assert!(all(chunks(String::new(), RecordEnd::Line)).is_empty());
    }
}
