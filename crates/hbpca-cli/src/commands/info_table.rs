//! Tables that are no matrix as they stand: column by column, and how to fit them all the same.

use hbpca_io::{ColumnKind, ColumnSurvey, TableSurvey, survey};
use serde::Serialize;

use crate::args::DataArgs;
use crate::exit::Failure;
use crate::output::json::SCHEMA;
use crate::output::number;
use crate::output::table::{Side, Table};
use crate::plan::Source;

/// Columns shown; the rest is counted.
const SHOWN: usize = 100;
/// A text with at most this many values is a class.
const MOST_CLASSES: usize = 30;
/// Components that are enough for a first look.
const COMPONENTS: usize = 10;

/// A table with text or gaps.
pub struct MixedTable {
    name: String,
    /// As it was typed.
    file: String,
    survey: TableSurvey,
}

/// `hbpca info TABLE --json` where the table is no matrix.
#[derive(Serialize)]
pub struct TableObject<'a> {
    schema: u32,
    n: usize,
    table: Vec<ColumnObject<'a>>,
    suggestion: Option<String>,
}

#[derive(Serialize)]
struct ColumnObject<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    missing: usize,
    min: Option<f64>,
    max: Option<f64>,
    /// Null where there are more than 1,000.
    distinct: Option<usize>,
}

impl MixedTable {
    /// Looks at a table that could not be read as a matrix; nothing where the reason is another than text and gaps.
    pub fn look(args: &DataArgs) -> Result<Option<Self>, Failure> {
        let source = Source::find(args)?;
        let name = source.name.clone();
        let file = args.data.first().map_or_else(String::new, |path| path.display().to_string());
        let (input, options) = source.into_parts();
        let survey =
            survey(input, &options)?.filter(|table| table.columns.iter().any(|column| !column.is_numeric()));
        Ok(survey.map(|survey| Self { name, file, survey }))
    }

    /// For people.
    pub fn report(&self) -> String {
        let TableSurvey { n_rows, columns, .. } = &self.survey;
        let mut table = Table::new(&[
            ("column", Side::Left),
            ("type", Side::Left),
            ("missing", Side::Right),
            ("distinct", Side::Right),
            ("range", Side::Left),
        ]);
        for column in columns.iter().take(SHOWN) {
            let range =
                column.range.map(|(low, high)| format!("{} … {}", number::short(low), number::short(high)));
            let example = column.example.as_ref().map(|text| format!("such as `{text}`"));
            table.row([
                column.name.clone(),
                column.kind().name().into(),
                number::count(column.missing),
                column.distinct().map_or_else(|| "many".into(), number::count),
                if column.kind() == ColumnKind::Text { example } else { range }.unwrap_or_default(),
            ]);
        }
        let more = columns.len().saturating_sub(SHOWN);
        let more =
            if more > 0 { format!("… and {} more columns\n", number::count(more)) } else { String::new() };
        let numeric = columns.iter().filter(|column| column.is_numeric()).count();
        let way_on = match self.suggestion() {
            Some(command) => format!("To fit it: {command}\n"),
            None => "No column holds numbers: there is nothing to fit.\n".into(),
        };
        format!(
            "{}: {} rows, {} columns, {} of them numbers without gaps\n\n{}{more}\n{way_on}",
            self.name,
            number::count(*n_rows),
            number::count(columns.len()),
            number::count(numeric),
            table.render()
        )
    }

    /// For scripts.
    pub fn object(&self) -> TableObject<'_> {
        let column = |column: &'_ ColumnSurvey| {
            (column.kind().name(), column.missing, column.range, column.distinct())
        };
        let table = self.survey.columns.iter().map(|c| {
            let (kind, missing, range, distinct) = column(c);
            ColumnObject {
                name: &c.name,
                kind,
                missing,
                min: range.map(|r| r.0),
                max: range.map(|r| r.1),
                distinct,
            }
        });
        TableObject {
            schema: SCHEMA,
            n: self.survey.n_rows,
            table: table.collect(),
            suggestion: self.suggestion(),
        }
    }

    /// A command that fits the columns of numbers, with a class beside them where there is one.
    fn suggestion(&self) -> Option<String> {
        let columns = &self.survey.columns;
        let holds_numbers =
            |column: &&ColumnSurvey| !matches!(column.kind(), ColumnKind::Text | ColumnKind::Empty);
        let features = columns.iter().filter(holds_numbers).count();
        if features == 0 {
            return None;
        }
        let is_class = |column: &&ColumnSurvey| {
            column.kind() == ColumnKind::Text
                && column.distinct().is_some_and(|distinct| (2..=MOST_CLASSES).contains(&distinct))
        };
        let label = columns.iter().rfind(is_class).map(|column| column.name.as_str());
        // Columns without a value are no text: --numeric would take them.
        let empty = columns.iter().filter(|column| column.kind() == ColumnKind::Empty);
        let empty: Vec<String> = empty.map(|column| listed(&column.name)).collect();
        let is_table =
            columns.iter().any(|column| matches!(column.kind(), ColumnKind::Text | ColumnKind::Empty));
        let numeric = if is_table { " --numeric" } else { "" };
        let mut command = format!("hbpca fit {}{numeric}", quoted(&self.file));
        if !empty.is_empty() {
            command = command + " --exclude " + &quoted(&empty.join(","));
        }
        if columns.iter().filter(holds_numbers).any(|column| column.missing > 0) {
            command += " --missing mean";
        }
        if let Some(label) = label {
            command = command + " --label-column " + &quoted(label);
        }
        Some(format!("{command} -k {} --scale std", features.min(COMPONENTS)))
    }
}

/// A name in a list: in double quotes where a comma would end it.
fn listed(name: &str) -> String {
    if name.contains(',') { format!("\"{name}\"") } else { name.to_owned() }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./,:+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
