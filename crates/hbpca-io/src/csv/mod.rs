//! Delimited text: CSV, TSV and their relatives.
//!
//! The delimiter (comma, semicolon, tab, bar or blanks) and the header are found in the first lines. Blank
//! lines and lines that start with `#` are passed over. Fields may be quoted; every field of a chosen column
//! must be a finite number.

mod dialect;
mod parse;
mod plain;
mod write;

pub(crate) use write::CsvSink;

use dialect::{Dialect, is_number, records};
use parse::Plan;

use crate::block::{RowBlock, Values};
use crate::input::Opened;
use crate::roles::{Role, roles, text_column};
use crate::source::{RowSource, Stated};
use crate::text::{RecordEnd, TextChunks};
use crate::{ColumnRef, Precision, ReadError, ReadOptions};

/// The rows of a delimited text.
pub(crate) struct CsvSource {
    text: TextChunks,
    plan: Plan,
    precision: Precision,
    column_names: Option<Vec<String>>,
    /// Whether doubles were met.
    met_doubles: bool,
}

impl CsvSource {
    pub(crate) fn open(opened: Opened, options: &ReadOptions) -> Result<Self, ReadError> {
        let name = opened.name;
        let mut text = TextChunks::new(&name, opened.stream, opened.size);
        let head = text.peek()?;
        let mark = if head.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
        let quoted = head.contains(&b'"');
        text.skip(mark);
        if quoted {
            text.set_record_end(RecordEnd::UnquotedLine)?;
        }
        let head = text.peek()?;
        let dialect = Dialect::detect(opened.format, head);
        let Some((first_at, first)) = records(head).next() else {
            return Err(ReadError::malformed(&name, "there are no rows"));
        };
        let fields = dialect.fields(first);
        let has_header = dialect.has_header(head, options.header, &asked_names(options));
        let lossy = |field: &std::borrow::Cow<[u8]>| String::from_utf8_lossy(field).into_owned();
        let names: Option<Vec<String>> = has_header.then(|| fields.iter().map(lossy).collect());
        let roles = roles(&name, options, names.as_deref(), fields.len())?;
        let plan = Plan::new(dialect, roles, names.clone());
        let skipped = if has_header { (first_at + first.len()).min(head.len()) } else { first_at };
        let skipped = if has_header {
            head[skipped..].iter().position(|&byte| byte == b'\n').map_or(head.len(), |k| skipped + k + 1)
        } else {
            skipped
        };
        match records(&head[skipped..]).next() {
            None => return Err(ReadError::malformed(&name, "there is a header, but there are no rows")),
            Some((_, line)) => refuse_text_columns(&name, &plan, line)?,
        }
        text.skip(skipped);
        let column_names = names.map(|names| plan.chosen_names(&names));
        Ok(Self { text, plan, precision: options.precision, column_names, met_doubles: false })
    }
}

impl RowSource for CsvSource {
    fn stated(&self) -> Stated {
        Stated {
            n_columns: Some(self.plan.n_values()),
            column_names: self.column_names.clone(),
            // Rounded to single precision, a finite number may become infinite.
            finite: self.precision != Precision::F32,
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

/// Names the options ask for, which show that there is a header.
fn asked_names(options: &ReadOptions) -> Vec<&str> {
    let asked = options.label_column.iter().chain(options.columns.iter().flatten());
    asked
        .filter_map(|column| if let ColumnRef::Name(name) = column { Some(name.as_str()) } else { None })
        .collect()
}

/// Refuses columns that hold text, by name, as far as the first row shows them.
fn refuse_text_columns(file: &str, plan: &Plan, line: &[u8]) -> Result<(), ReadError> {
    let fields = plan.dialect.fields(line);
    let is_text = |field: &[u8]| {
        let missing = ["", "na", "n/a", "nan", "null", "none", "?", "-", "inf", "-inf", "infinity", "+inf"];
        let text = String::from_utf8_lossy(field).to_ascii_lowercase();
        !is_number(field)
            && !missing.contains(&text.as_str())
            && !is_number(text.replace(',', ".").as_bytes())
            && text.parse::<f64>().is_err()
    };
    let mut texts = fields
        .iter()
        .enumerate()
        .filter(|&(j, field)| matches!(plan.roles.get(j), Some(Role::Value(_))) && is_text(field));
    let Some((j, field)) = texts.next() else { return Ok(()) };
    let n_others = texts.count();
    let shown: String = String::from_utf8_lossy(field).chars().take(40).collect();
    Err(text_column(file, &plan.describe(j), &format!("text such as `{shown}`"), n_others))
}

#[cfg(test)]
mod tests;
