//! What the columns of a delimited text hold, whatever it is.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Begun;
use super::dialect::{Dialect, records};
use super::header::is_missing;
use super::parse::truth;
use crate::input::Opened;
use crate::survey::{ColumnSurvey, TableSurvey};
use crate::text::Fault;
use crate::{ReadError, ReadOptions};

/// Looks at every field of a text.
pub(crate) fn survey(opened: Opened, options: &ReadOptions) -> Result<TableSurvey, ReadError> {
    let Begun { mut text, dialect, names, n_columns, .. } = Begun::new(opened, options)?;
    let has_names = names.is_some();
    let name = |j: usize| names.as_ref().map_or_else(|| j.to_string(), |names| names[j].clone());
    let mut columns: Vec<ColumnSurvey> = (0..n_columns).map(|j| ColumnSurvey::new(name(j))).collect();
    let mut n_rows = 0;
    loop {
        let pieces = text.parse(|piece| look(dialect, piece, n_columns))?;
        if pieces.is_empty() {
            return Ok(TableSurvey { n_rows, has_names, columns });
        }
        for (rows, found) in pieces {
            n_rows += rows;
            columns.iter_mut().zip(found).for_each(|(column, more)| column.merge(more));
        }
    }
}

/// The rows of a chunk, and what their fields hold.
fn look(dialect: Dialect, piece: &[u8], n_columns: usize) -> Result<(usize, Vec<ColumnSurvey>), Fault> {
    let mut columns: Vec<ColumnSurvey> = (0..n_columns).map(|_| ColumnSurvey::new(String::new())).collect();
    let mut n_rows = 0;
    for (at, line) in records(piece) {
        n_rows += 1;
        let fields = dialect.fields(line);
        if fields.len() != n_columns {
            let message = format!("expected {n_columns} fields as in the first line, found {}", fields.len());
            return Err(Fault::new(at, message));
        }
        for (column, field) in columns.iter_mut().zip(&fields) {
            let field: &[u8] = field;
            if field.is_empty() || is_missing(field) {
                column.missing += 1;
                continue;
            }
            let mut hasher = DefaultHasher::new();
            field.hash(&mut hasher);
            column.note_value(hasher.finish());
            match (dialect.numbers.number(field), truth(field)) {
                (Some(value), _) => column.note_number(value),
                (None, Some(_)) => column.truths += 1,
                (None, None) => column.note_text(field),
            }
        }
    }
    Ok((n_rows, columns))
}
