//! Whether the first line names the columns, and whether the first column is an index.

use std::borrow::Cow;

use super::dialect::{Dialect, SAMPLE, records};
use crate::{ColumnRef, HeaderLine, ReadOptions};

/// The fields of a line.
type Fields<'a> = Vec<Cow<'a, [u8]>>;

/// The first lines of a table, cut into fields.
pub(super) struct FirstLines<'a> {
    dialect: Dialect,
    first: &'a Fields<'a>,
    others: Vec<Fields<'a>>,
}

impl<'a> FirstLines<'a> {
    /// `first` are the fields of the first line of `head`.
    pub(super) fn new(dialect: Dialect, first: &'a Fields<'a>, head: &'a [u8]) -> Self {
        let others = records(head).skip(1).take(SAMPLE).map(|(_, line)| dialect.fields(line)).collect();
        Self { dialect, first, others }
    }

    /// Whether the first line names the columns, or why that is for the user to say.
    ///
    /// A field that is text there and a number in the second line shows it, or a first line of nothing but text, or the names
    /// asked for. Numbers that look like names are asked about: as data they would be a row that never was.
    pub(super) fn has_header(&self, options: &ReadOptions) -> Result<bool, String> {
        match options.header {
            HeaderLine::Present => return Ok(true),
            HeaderLine::Absent => return Ok(false),
            HeaderLine::Detect => {}
        }
        if self.has_names_asked_for(options) {
            return Ok(true);
        }
        let is_text =
            |field: &[u8]| !field.is_empty() && !self.dialect.is_number(field) && !is_missing(field);
        let no_line = Vec::new();
        let second = self.others.first().unwrap_or(&no_line);
        if self.first.iter().zip(second).any(|(a, b)| is_text(a) && self.dialect.is_number(b))
            || self.first.iter().all(|field| is_text(field))
        {
            return Ok(true);
        }
        let looks_like_names = numbered(self.first).is_some_and(|kind| self.only_first_line_is(kind));
        if !looks_like_names {
            return Ok(false);
        }
        let shown: Vec<_> = self.first.iter().take(4).map(|field| String::from_utf8_lossy(field)).collect();
        let more = if self.first.len() > 4 { ",…" } else { "" };
        Err(format!(
            "the first line, {}{more}, may be names or data: say so with --header yes or --header no (header=True or False in \
             Python)",
            shown.join(",")
        ))
    }

    /// Whether the first line has a name that was asked for, or all names of a model or of the first part.
    fn has_names_asked_for(&self, options: &ReadOptions) -> bool {
        let asked = options
            .label_column
            .iter()
            .chain(options.columns.iter().flatten())
            .chain(&options.keep)
            .chain(&options.exclude);
        let names: Vec<&[u8]> = asked
            .filter_map(|column| match column {
                ColumnRef::Name(name) => Some(name.as_bytes()),
                ColumnRef::Index(_) | ColumnRef::Range(..) => None,
            })
            .collect();
        if self.first.iter().any(|field| names.contains(&field.as_ref())) {
            return true;
        }
        options.match_names.as_ref().is_some_and(|wanted| {
            let found: std::collections::HashSet<&[u8]> = self.first.iter().map(AsRef::as_ref).collect();
            wanted.names.iter().all(|name| found.contains(name.as_bytes()))
        })
    }

    /// Whether a field of column j in these lines, from line number `from` on, is neither a number nor missing.
    pub(super) fn is_text(&self, j: usize, from: usize) -> bool {
        let lines = std::iter::once(self.first).chain(&self.others).skip(from);
        let is_text =
            |field: &[u8]| !field.is_empty() && !is_missing(field) && !self.dialect.is_number(field);
        lines.filter_map(|fields| fields.get(j)).any(|field| is_text(field))
    }

    /// Whether the lines below are numbers of another kind.
    fn only_first_line_is(&self, kind: Numbered) -> bool {
        let is_number = |field: &Cow<[u8]>| self.dialect.is_number(field);
        let has_fraction = |field: &Cow<[u8]>| is_number(field) && !field.iter().all(u8::is_ascii_digit);
        let all_have_fractions = self.others.len() > 1 && self.others.iter().flatten().all(has_fraction);
        let is_clear = kind == Numbered::Years || self.first.len() > 2 || all_have_fractions;
        let is_like_the_first = |fields: &Fields| match (kind, numbered(fields)) {
            (Numbered::Years, other) => other == Some(Numbered::Years),
            (Numbered::InTurn, other) => other.is_some(),
        };
        is_clear && !self.others.is_empty() && !self.others.iter().any(is_like_the_first)
    }
}

/// Whether the first column is an index, as pandas and R write it: under a header without a name of its own.
pub(super) fn has_index(names: &[String], options: &ReadOptions) -> bool {
    let [first, others @ ..] = names else { return false };
    let is_unnamed = first.is_empty() || first == "Unnamed: 0";
    let is_wanted = options.match_names.as_ref().is_some_and(|wanted| wanted.names.contains(first));
    let is_label = match &options.label_column {
        Some(ColumnRef::Index(0)) => true,
        Some(ColumnRef::Name(name)) => name == first,
        _ => false,
    };
    is_unnamed
        && options.columns.is_none()
        && !is_wanted
        && !is_label
        && !others.is_empty()
        && others.iter().all(|name| !name.is_empty())
}

/// Numbers that could be names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbered {
    /// 0, 1, 2, … or from any other number on; the first may be missing, where pandas has its index.
    InTurn,
    /// Years that ascend.
    Years,
}

fn numbered(fields: &Fields<'_>) -> Option<Numbered> {
    let fields = match &fields[..] {
        [first, rest @ ..] if first.is_empty() => rest,
        all => all,
    };
    let number = |field: &Cow<[u8]>| {
        let digits = (1..=9).contains(&field.len()) && field.iter().all(u8::is_ascii_digit);
        digits.then(|| std::str::from_utf8(field).ok()?.parse::<u32>().ok()).flatten()
    };
    let numbers: Vec<u32> = fields.iter().map(number).collect::<Option<_>>()?;
    if numbers.len() < 2 {
        return None;
    }
    if numbers.iter().all(|year| (1800..=2100).contains(year)) && numbers.is_sorted_by(|a, b| a < b) {
        return Some(Numbered::Years);
    }
    numbers.windows(2).all(|pair| pair[1] == pair[0] + 1).then_some(Numbered::InTurn)
}

/// A field that says that there is no value: empty, or one of the usual words.
pub(crate) fn stands_for_nothing(field: &[u8]) -> bool {
    let text = field.trim_ascii().to_ascii_lowercase();
    [&b""[..], b"na", b"n/a", b"nan", b"null", b"none", b"?", b"-"].contains(&text.as_slice())
}

/// Whether a field is a date, with a time or without: 2024-01-31, 31.01.2024, 1/31/2024, 2024-01-31T12:00:00Z.
pub(crate) fn is_date(field: &[u8]) -> bool {
    let text = String::from_utf8_lossy(field.trim_ascii()).into_owned();
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text.as_str(), None),
    };
    let is_time =
        |time: &str| time.contains(':') && time.bytes().all(|b| b.is_ascii_digit() || b":.+-Z".contains(&b));
    let Some(mark) = date.chars().find(|c| "-/.".contains(*c)) else { return false };
    let parts: Vec<&str> = date.split(mark).collect();
    let digits = |part: &&str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
    };
    let [a, b, c] = &parts[..] else { return false };
    let in_order =
        (digits(a, 4) && a.len() == 4 && digits(c, 2)) || (digits(a, 2) && digits(c, 4) && c.len() != 3);
    in_order && digits(b, 2) && time.is_none_or(is_time)
}

/// A field that stands for no number, infinities included.
pub(super) fn is_missing(field: &[u8]) -> bool {
    [&b"na"[..], b"n/a", b"nan", b"null", b"none", b"?", b"inf", b"-inf"]
        .contains(&field.to_ascii_lowercase().as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, NamesToMatch, NumberStyle};

    fn judged<T>(text: &str, judge: impl Fn(&FirstLines<'_>) -> T) -> T {
        let dialect = Dialect::detect(Format::Csv, text.as_bytes(), NumberStyle::default());
        let first = dialect.fields(records(text.as_bytes()).next().unwrap().1);
        judge(&FirstLines::new(dialect, &first, text.as_bytes()))
    }

    fn header_with(text: &str, options: &ReadOptions) -> Result<bool, String> {
        judged(text, |lines| lines.has_header(options))
    }

    fn header(text: &str) -> Result<bool, String> {
        header_with(text, &ReadOptions::default())
    }

    #[test]
    fn a_header_is_what_turns_into_numbers_below() {
        for text in ["a,b\n1,2\n", "0,1,class\n5,6,7\n", "name,x\nbob,2\n", "name,x\n"] {
            assert_eq!(header(text), Ok(true), "{text}");
        }
        for text in ["1,2\n3,4\n", "bob,1\neve,2\n", "0,kind\n5,bob\n", "1,nan\n2,3\n"] {
            assert_eq!(header(text), Ok(false), "{text}");
        }
        let asked = ReadOptions { label_column: Some(ColumnRef::parse("kind")), ..ReadOptions::default() };
        assert_eq!(header_with("0,kind\n5,bob\n", &asked), Ok(true));
        let told = |header| header_with("a,b\n1,2\n", &ReadOptions { header, ..ReadOptions::default() });
        assert_eq!((told(HeaderLine::Present), told(HeaderLine::Absent)), (Ok(true), Ok(false)));
    }

    #[test]
    fn dates_are_told_from_numbers_and_texts() {
        for text in [
            "2024-01-31",
            "31.01.2024",
            "1/31/2024",
            "1/2/24",
            "2024-01-31T12:00:00Z",
            "2024-01-31 12:00:00.5",
        ] {
            assert!(is_date(text.as_bytes()), "{text}");
        }
        for text in
            ["1.5", "1.2.345", "192.168.0.1", "2024", "a-b-c", "2024-01", "1-2-345", "2024-01-31 noon"]
        {
            assert!(!is_date(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn numbers_that_look_like_names_are_asked_about() {
        for text in [
            "2019,2020,2021\n5,6.5,7\n",
            "2019,2020\n5,6\n",
            "0,1,2\n0.5,0.1,0.7\n0.1,0.2,0.3\n",
            "0,1\n0.5,0.1\n0.1,0.2\n",
            "1,2,3\n9,9,9\n",
            ",0,1,2\n0,0.5,0.1,0.7\n",
        ] {
            assert!(header(text).unwrap_err().contains("--header yes or --header no"), "{text}");
        }
        for text in [
            "1,2,3\n4,5,6\n",
            "2019,2020\n2021,2022\n",
            "1,2\n3,9\n",
            "1,3,2\n9,9,9\n",
            "1.0,2.0,3.0\n5,5,9\n",
            "1,2,3\n",
            "2019,5\n2020,7\n",
        ] {
            assert_eq!(header(text), Ok(false), "{text}");
        }
    }

    #[test]
    fn names_of_a_model_show_a_header_of_numbers() {
        let names = ["2020", "2019"].map(String::from);
        let options =
            ReadOptions { match_names: Some(NamesToMatch::of_model(&names)), ..ReadOptions::default() };
        assert_eq!(header_with("2019,2020\n5,6\n", &options), Ok(true));
        assert_eq!(header_with("2019,7\n5,6\n", &options), Ok(false));
    }

    #[test]
    fn an_index_has_no_name_of_its_own() {
        let index = |names: &[&str], options: &ReadOptions| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            has_index(&names, options)
        };
        let none = ReadOptions::default();
        assert!(index(&["", "a"], &none) && index(&["Unnamed: 0", "a"], &none));
        assert!(!index(&["a", ""], &none) && !index(&["", ""], &none) && !index(&[""], &none));
        let chosen = ReadOptions { columns: Some(vec![ColumnRef::Index(0)]), ..ReadOptions::default() };
        let label = ReadOptions { label_column: Some(ColumnRef::Index(0)), ..ReadOptions::default() };
        assert!(!index(&["", "a"], &chosen) && !index(&["", "a"], &label));
    }
}
