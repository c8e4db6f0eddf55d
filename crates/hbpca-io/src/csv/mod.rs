//! Delimited text: CSV, TSV and their relatives.
//!
//! The delimiter (comma, semicolon, tab, bar or blanks) and the header are found in the first lines. Blank
//! lines and lines that start with `#` are passed over. Fields may be quoted; every field of a chosen column
//! must be a finite number.

mod dialect;
mod header;
mod parse;
mod plain;
mod survey;
mod write;

pub(crate) use header::stands_for_nothing;
pub(crate) use survey::survey;
pub(crate) use write::CsvSink;

use dialect::{Dialect, records};
use header::{FirstLines, has_index};
use parse::Plan;

use crate::block::{RowBlock, Values};
use crate::input::Opened;
use crate::roles::{Role, Table, roles, text_column};
use crate::source::{RowSource, Stated};
use crate::text::TextChunks;
use crate::{Features, Precision, ReadError, ReadOptions};

/// The rows of a delimited text.
pub(crate) struct CsvSource {
    text: TextChunks,
    plan: Plan,
    precision: Precision,
    column_names: Option<Vec<String>>,
    notes: Vec<String>,
    /// Whether doubles were met.
    met_doubles: bool,
}

/// A delimited text whose first lines were looked at; what comes next are rows.
struct Begun {
    name: String,
    text: TextChunks,
    dialect: Dialect,
    names: Option<Vec<String>>,
    n_columns: usize,
    /// Whether the first column is an index.
    has_index: bool,
    /// Whether the first rows show text in a column; empty where nobody asks.
    is_text: Vec<bool>,
    first_row: Vec<u8>,
}

impl Begun {
    fn new(opened: Opened, options: &ReadOptions) -> Result<Self, ReadError> {
        let name = opened.name;
        let mut text = TextChunks::new(&name, opened.stream, opened.size);
        text.respect_quotes();
        let mark = if text.peek()?.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
        text.skip(mark);
        // A header and a row, however long they are.
        let head = text.peek_until(|head| records(head).nth(1).is_some())?;
        if head.iter().take(MOST_LOOKED_AT).any(|&byte| byte == 0) {
            return Err(ReadError::malformed(
                &name,
                "it holds bytes of 0 and is no text in UTF-8: give its --encoding",
            ));
        }
        let dialect = Dialect::detect(opened.format, head, options.numbers);
        let Some((first_at, first)) = records(head).next() else {
            return Err(ReadError::malformed(&name, "there are no rows"));
        };
        let fields = dialect.fields(first);
        let lines = FirstLines::new(dialect, &fields, head);
        let has_header = lines.has_header(options).map_err(|text| ReadError::malformed(&name, text))?;
        let names: Option<Vec<String>> = if has_header {
            Some(fields.iter().map(|x| decoded(&name, x)).collect::<Result<_, _>>()?)
        } else {
            None
        };
        let has_index = names.as_ref().is_some_and(|names| has_index(names, options));
        let is_text = match options.features {
            Features::All => Vec::new(),
            Features::Numeric => {
                (0..fields.len()).map(|j| lines.is_text(j, usize::from(has_header))).collect()
            }
        };
        let skipped = if has_header {
            let end = first_at + first.len();
            head[end..].iter().position(|&byte| byte == b'\n').map_or(head.len(), |k| end + k + 1)
        } else {
            first_at
        };
        let Some((_, line)) = records(&head[skipped..]).next() else {
            return Err(ReadError::malformed(&name, "there is a header, but there are no rows"));
        };
        let (n_columns, first_row) = (fields.len(), line.to_vec());
        text.skip(skipped);
        Ok(Self { name, text, dialect, names, n_columns, has_index, is_text, first_row })
    }
}

impl CsvSource {
    pub(crate) fn open(opened: Opened, options: &ReadOptions) -> Result<Self, ReadError> {
        let begun = Begun::new(opened, options)?;
        let Begun { name, text, dialect, names, n_columns, has_index, is_text, first_row } = begun;
        let index: &[usize] = if has_index { &[0] } else { &[] };
        let is_text = |j: usize| is_text.get(j).copied().unwrap_or(false);
        let table = Table { file: &name, names: names.as_deref(), n_columns, index, is_text: &is_text };
        let kept = table.kept(options)?;
        let (roles, note) = roles(&table, options)?;
        let left_out = has_index.then(|| {
            format!("{name}: the first column has no name and is left out as an index; --columns 0,… takes it in by its number")
        });
        let notes = left_out.into_iter().chain(note).collect();
        let plan = Plan::new(dialect, roles, names.clone(), kept, options.missing);
        refuse_text_columns(&name, &plan, &first_row)?;
        let column_names = names.map(|names| plan.chosen_names(&names));
        Ok(Self { text, plan, precision: options.precision, column_names, notes, met_doubles: false })
    }

    /// What a person should know of its columns.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl RowSource for CsvSource {
    fn stated(&self) -> Stated {
        Stated {
            n_columns: Some(self.plan.n_values()),
            column_names: self.column_names.clone(),
            kept_names: self.plan.kept_names(),
            // Rounded to single precision, a finite number may become infinite.
            finite: self.precision != Precision::F32, // or missing, where that is allowed
            ..Stated::default()
        }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        let (plan, precision, doubles) = (&self.plan, self.precision, self.met_doubles);
        let blocks = self.text.parse_into(<[usize]>::to_vec, |piece, n_lines| {
            parse::parse_piece(piece, n_lines, plan, precision, doubles)
        })?;
        self.met_doubles |= blocks.iter().any(|block| matches!(block.values, Values::F64(_)));
        Ok(blocks)
    }
}

/// Bytes in which a file that is no text shows it.
const MOST_LOOKED_AT: usize = 4096;

/// A name or a label as text.
fn decoded(file: &str, field: &[u8]) -> Result<String, ReadError> {
    std::str::from_utf8(field).map(str::to_owned).map_err(|_| {
        let shown = String::from_utf8_lossy(field);
        let advice = "give its --encoding, such as latin1 or windows-1252";
        ReadError::malformed(file, format!("the name `{shown}` of a column is not UTF-8: {advice}"))
    })
}

/// Refuses columns that hold text, by name, as far as the first row shows them.
fn refuse_text_columns(file: &str, plan: &Plan, line: &[u8]) -> Result<(), ReadError> {
    let fields = plan.dialect.fields(line);
    let is_text = |field: &[u8]| {
        let missing = ["", "na", "n/a", "nan", "null", "none", "?", "-", "inf", "-inf", "infinity", "+inf"];
        let text = String::from_utf8_lossy(field).to_ascii_lowercase();
        !plan.dialect.is_number(field)
            && !missing.contains(&text.as_str())
            && plan.dialect.numbers.way_out(field).is_none()
            && text.parse::<f64>().is_err()
    };
    let mut texts = fields
        .iter()
        .enumerate()
        .filter(|&(j, field)| matches!(plan.roles.get(j), Some(Role::Value(_))) && is_text(field));
    let Some((j, field)) = texts.next() else { return Ok(()) };
    let n_others = texts.count();
    let shown: String = String::from_utf8_lossy(field).chars().take(40).collect();
    let what = if header::is_date(field) { "dates" } else { "text" };
    Err(text_column(file, &plan.describe(j), &format!("{what} such as `{shown}`"), n_others))
}

#[cfg(test)]
mod tests;
