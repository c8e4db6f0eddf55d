//! How a delimited text is written: its delimiter, and whether its first line names the columns.

use std::borrow::Cow;

use crate::text::number;
use crate::{Format, HeaderLine};

/// Lines looked at to find the delimiter.
const SAMPLE: usize = 20;
/// Candidates, the least likely to be part of a field first; the last stands for runs of blanks.
const DELIMITERS: [u8; 5] = [b'\t', b';', b'|', b',', b' '];

/// Marks of one delimited text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
}

/// A field: its text without quotes, and where it ends in the line.
pub(crate) struct Field<'a> {
    pub(crate) text: Cow<'a, [u8]>,
    pub(crate) end: usize,
}

impl Dialect {
    /// The delimiter that cuts the first lines into the same number of fields.
    pub(crate) fn detect(format: Format, head: &[u8]) -> Self {
        if format == Format::Tsv {
            return Self { delimiter: b'\t' };
        }
        let lines: Vec<&[u8]> = records(head).take(SAMPLE).map(|(_, line)| line).collect();
        let delimiter = DELIMITERS.into_iter().find(|&delimiter| {
            let dialect = Self { delimiter };
            let mut counts = lines.iter().map(|line| dialect.fields(line).len());
            let first = counts.next().unwrap_or(0);
            first > 1 && counts.all(|n| n == first)
        });
        // Ragged lines: the delimiter the first line has most reason to mean, so that the message fits.
        let fallback = || {
            let first = lines.first().copied().unwrap_or_default();
            DELIMITERS.into_iter().find(|delimiter| first.trim_ascii().contains(delimiter)).unwrap_or(b',')
        };
        Self { delimiter: delimiter.unwrap_or_else(fallback) }
    }

    /// Whether `byte` is room around a field.
    #[inline]
    pub(crate) fn is_blank(self, byte: u8) -> bool {
        byte == b' ' || byte == b'\r' || (byte == b'\t' && self.delimiter != b'\t')
    }

    #[inline]
    pub(crate) fn skip_blanks(self, text: &[u8], mut i: usize) -> usize {
        while text.get(i).is_some_and(|&byte| self.is_blank(byte)) {
            i += 1;
        }
        i
    }

    /// Whether a field, or the line, ends at `i`.
    #[inline]
    pub(crate) fn ends_at(self, text: &[u8], i: usize) -> bool {
        match text.get(i) {
            None | Some(b'\n') => true,
            Some(&byte) => byte == self.delimiter || (self.delimiter == b' ' && self.is_blank(byte)),
        }
    }

    /// The field that starts at `i`, quoted or not, without the blanks around it.
    pub(crate) fn field(self, text: &[u8], i: usize) -> Field<'_> {
        let start = self.skip_blanks(text, i);
        if text.get(start) == Some(&b'"') {
            let mut content = Vec::new();
            let mut k = start + 1;
            while k < text.len() {
                if text[k] == b'"' {
                    if text.get(k + 1) != Some(&b'"') {
                        break;
                    }
                    k += 1;
                }
                content.push(text[k]);
                k += 1;
            }
            let after = (k + 1).min(text.len());
            // Anything between the closing quote and the delimiter belongs to the field as it stands.
            let mut end = after;
            while !self.ends_at(text, end) {
                end += 1;
            }
            if text[after..end].iter().all(|&byte| self.is_blank(byte)) {
                return Field { text: Cow::Owned(content), end };
            }
            return Field { text: Cow::Borrowed(&text[start..end]), end };
        }
        let mut end = start;
        while !self.ends_at(text, end) {
            end += 1;
        }
        let mut last = end;
        while last > start && self.is_blank(text[last - 1]) {
            last -= 1;
        }
        Field { text: Cow::Borrowed(&text[start..last]), end }
    }

    /// Where the next field starts after one that ends at `i`; `None` at the line's end.
    #[inline]
    pub(crate) fn next_field(self, text: &[u8], i: usize) -> Option<usize> {
        if self.delimiter != b' ' && text.get(i) == Some(&self.delimiter) {
            return Some(i + 1);
        }
        let i = self.skip_blanks(text, i);
        match text.get(i) {
            None | Some(b'\n') => None,
            Some(&byte) if byte == self.delimiter => Some(i + 1),
            // Runs of blanks were passed over.
            Some(_) => Some(i),
        }
    }

    /// All fields of a line.
    pub(crate) fn fields(self, line: &[u8]) -> Vec<Cow<'_, [u8]>> {
        let mut fields = Vec::new();
        let mut next = Some(if self.delimiter == b' ' { self.skip_blanks(line, 0) } else { 0 });
        while let Some(start) = next {
            let field = self.field(line, start);
            next = self.next_field(line, field.end);
            fields.push(field.text);
        }
        fields
    }

    /// Whether the first line names the columns: a field that is text there and a number in the second line
    /// shows it, or a first line of nothing but text, or one of the names asked for.
    pub(crate) fn has_header(self, head: &[u8], wanted: HeaderLine, names: &[&str]) -> bool {
        match wanted {
            HeaderLine::Present => return true,
            HeaderLine::Absent => return false,
            HeaderLine::Detect => {}
        }
        let mut lines = records(head).map(|(_, line)| self.fields(line));
        let Some(first) = lines.next() else { return false };
        let is_text = |field: &Cow<[u8]>| !field.is_empty() && !is_number(field);
        let named = |field: &Cow<[u8]>| names.iter().any(|name| name.as_bytes() == field.as_ref());
        if first.iter().any(named) {
            return true;
        }
        let second = lines.next().unwrap_or_default();
        first.iter().zip(&second).any(|(a, b)| is_text(a) && is_number(b))
            || first.iter().all(|field| is_text(field) && !is_missing(field))
    }
}

fn is_missing(field: &[u8]) -> bool {
    [&b"na"[..], b"nan", b"null", b"none", b"?", b"inf", b"-inf"]
        .contains(&field.to_ascii_lowercase().as_slice())
}

/// Whether the whole field is a finite number.
pub(crate) fn is_number(field: &[u8]) -> bool {
    number::parse(field, 0).is_some_and(|(_, end)| end == field.len())
}

/// The lines of data, each with the byte where it starts: neither blank nor a comment; quoted line ends are
/// part of a line.
pub(crate) fn records(head: &[u8]) -> impl Iterator<Item = (usize, &[u8])> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        while start < head.len() {
            let mut inside = false;
            let end = head[start..]
                .iter()
                .position(|&byte| {
                    inside ^= byte == b'"';
                    byte == b'\n' && !inside
                })
                .map_or(head.len(), |k| start + k);
            let from = start;
            start = end + 1;
            let line = head[from..end].strip_suffix(b"\r").unwrap_or(&head[from..end]);
            if !line.trim_ascii().is_empty() && !line.starts_with(b"#") {
                return Some((from, line));
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delimiter(text: &str) -> u8 {
        Dialect::detect(Format::Csv, text.as_bytes()).delimiter
    }

    #[test]
    fn the_delimiter_is_the_one_that_cuts_evenly() {
        assert_eq!(delimiter("a,b,c\n1,2,3\n"), b',');
        assert_eq!(delimiter("1;2,5\n3;4,5\n"), b';');
        assert_eq!(delimiter("1\t2\n3\t4\n"), b'\t');
        assert_eq!(delimiter("1|2\n3|4\n"), b'|');
        assert_eq!(delimiter("  1   2\n 3 4 \n"), b' ');
        assert_eq!(delimiter("\"x;y\",1\n\"z\",2\n"), b',');
        assert_eq!(delimiter("name with blanks,x\n1,2\n"), b',');
        assert_eq!(delimiter("1\n2\n"), b',');
        assert_eq!(delimiter("1,2\n3\n"), b',', "ragged");
        assert_eq!(Dialect::detect(Format::Tsv, b"1 2\n").delimiter, b'\t');
    }

    #[test]
    fn fields_lose_quotes_and_blanks_around_them() {
        let fields = |text: &str, delimiter| -> Vec<String> {
            let fields = Dialect { delimiter }.fields(text.as_bytes());
            fields.iter().map(|x| String::from_utf8_lossy(x).into_owned()).collect()
        };
        assert_eq!(fields(r#" a , "b ""c"", d" ,,e"#, b','), ["a", r#"b "c", d"#, "", "e"]);
        assert_eq!(fields("a\t\tb", b'\t'), ["a", "", "b"]);
        assert_eq!(fields("  a   b ", b' '), ["a", "b"]);
        assert_eq!(fields("\"open", b','), ["open"]);
        assert_eq!(fields("\"a\"b,c", b','), ["\"a\"b", "c"]);
        assert_eq!(fields("1,", b','), ["1", ""]);
    }

    #[test]
    fn a_header_is_what_turns_into_numbers_below() {
        let header = |text: &str, names: &[&str]| {
            Dialect::detect(Format::Csv, text.as_bytes()).has_header(
                text.as_bytes(),
                HeaderLine::Detect,
                names,
            )
        };
        assert!(header("a,b\n1,2\n", &[]));
        assert!(header("0,1,class\n5,6,7\n", &[]));
        assert!(header("name,x\nbob,2\n", &[]));
        assert!(header("name,x\n", &[]));
        assert!(!header("1,2\n3,4\n", &[]));
        assert!(!header("bob,1\neve,2\n", &[]));
        assert!(header("0,kind\n5,bob\n", &["kind"]));
        assert!(!header("0,kind\n5,bob\n", &[]));
        let forced = |wanted| Dialect { delimiter: b',' }.has_header(b"a,b\n1,2\n", wanted, &[]);
        assert!(forced(HeaderLine::Present) && !forced(HeaderLine::Absent));
    }

    #[test]
    fn comments_and_blank_lines_are_no_records() {
        let found: Vec<_> = records(b"# c\n\n1\r\n \n\"a\nb\",2\n3").collect();
        assert_eq!(found, [(5, &b"1"[..]), (10, b"\"a\nb\",2"), (18, b"3")]);
    }
}
