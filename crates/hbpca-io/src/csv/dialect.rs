//! How a delimited text is written: its delimiter, and whether its first line names the columns.

use std::borrow::Cow;

use super::parse::truth;
use crate::{Format, NumberStyle};

/// Lines looked at to find the delimiter.
pub(super) const SAMPLE: usize = 20;
/// Candidates, the least likely to be part of a field first; the last stands for runs of blanks.
const DELIMITERS: [u8; 5] = [b'\t', b';', b'|', b',', b' '];

/// Marks of one delimited text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    /// How numbers are written.
    pub(crate) numbers: NumberStyle,
}

/// A field: its text without quotes, and where it ends in the line.
pub(crate) struct Field<'a> {
    pub(crate) text: Cow<'a, [u8]>,
    pub(crate) end: usize,
}

impl Dialect {
    /// The delimiter that cuts the first lines into the same number of fields. A mark of the numbers delimits only what is quoted.
    pub(crate) fn detect(format: Format, head: &[u8], numbers: NumberStyle) -> Self {
        if format == Format::Tsv {
            return Self { delimiter: b'\t', numbers };
        }
        let lines: Vec<&[u8]> = records(head).take(SAMPLE).map(|(_, line)| line).collect();
        let is_quoted = lines.iter().any(|line| line.contains(&b'"'));
        let may_delimit = |delimiter: &u8| is_quoted || !numbers.uses(*delimiter);
        let delimiter = DELIMITERS.into_iter().filter(may_delimit).find(|&delimiter| {
            let dialect = Self { delimiter, numbers };
            let mut counts = lines.iter().map(|line| dialect.fields(line).len());
            let first = counts.next().unwrap_or(0);
            first > 1 && counts.all(|n| n == first)
        });
        // Ragged lines: the delimiter the first line has most reason to mean, so that the message fits.
        let fallback = || {
            let first = lines.first().copied().unwrap_or_default();
            let stands_there =
                |delimiter: &u8| may_delimit(delimiter) && first.trim_ascii().contains(delimiter);
            let other = if numbers.uses(b',') { b';' } else { b',' };
            DELIMITERS.into_iter().find(stands_there).unwrap_or(other)
        };
        Self { delimiter: delimiter.unwrap_or_else(fallback), numbers }
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

    /// Whether the whole field is a finite number, or true or false.
    pub(crate) fn is_number(self, field: &[u8]) -> bool {
        self.numbers.number(field).is_some() || truth(field).is_some()
    }
}

/// The lines of data, each with the byte where it starts: neither blank nor a comment; quoted line ends are
/// part of a line.
pub(crate) fn records(head: &[u8]) -> impl Iterator<Item = (usize, &[u8])> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        while start < head.len() {
            // Quotes mean nothing in a comment.
            let may_quote = head[start] != b'#';
            let mut inside = false;
            let end = memchr::memchr2_iter(b'"', b'\n', &head[start..])
                .find(|&k| {
                    let is_quote = head[start + k] == b'"';
                    inside ^= is_quote && may_quote;
                    !is_quote && !inside
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
        Dialect::detect(Format::Csv, text.as_bytes(), NumberStyle::default()).delimiter
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
        assert_eq!(Dialect::detect(Format::Tsv, b"1 2\n", NumberStyle::default()).delimiter, b'\t');
    }

    #[test]
    fn fields_lose_quotes_and_blanks_around_them() {
        let fields = |text: &str, delimiter| -> Vec<String> {
            let fields = Dialect { delimiter, numbers: NumberStyle::default() }.fields(text.as_bytes());
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
    fn marks_of_numbers_do_not_delimit_unless_fields_are_quoted() {
        let comma = NumberStyle { decimal: ',', thousands: None };
        let delimiter = |text: &str| Dialect::detect(Format::Csv, text.as_bytes(), comma).delimiter;
        assert_eq!(delimiter("1,5;2,5\n3,5;4,5\n"), b';');
        assert_eq!(delimiter("1,5\n3,5\n"), b';', "one column");
        assert_eq!(delimiter("\"1,5\",\"2,5\"\n\"3,5\",\"4,5\"\n"), b',');
    }

    #[test]
    fn comments_and_blank_lines_are_no_records() {
        let found: Vec<_> = records(b"# c\n\n1\r\n \n\"a\nb\",2\n3").collect();
        assert_eq!(found, [(5, &b"1"[..]), (10, b"\"a\nb\",2"), (18, b"3")]);
        let found: Vec<_> = records(b"# 5\" long\n1\n2\n").map(|(_, line)| line).collect();
        assert_eq!(found, [b"1", b"2"]);
    }
}
