//! Which columns of a table are features, which is the label, which are left out.

use crate::{ColumnRef, ReadError, ReadOptions};

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Nothing.
    Skip,
    /// The value of this column of the matrix.
    Value(usize),
    /// The label of the row.
    Label,
}

/// What becomes of each field of a line.
pub(crate) fn roles(
    file: &str,
    options: &ReadOptions,
    names: Option<&[String]>,
    n_fields: usize,
) -> Result<Vec<Role>, ReadError> {
    let resolve =
        |column: &ColumnRef| column.resolve(names, n_fields).map_err(|text| ReadError::option(file, text));
    let label = options.label_column.as_ref().map(resolve).transpose()?;
    let mut roles = vec![Role::Skip; n_fields];
    if let Some(j) = label {
        roles[j] = Role::Label;
    }
    let chosen: Vec<usize> = match &options.columns {
        Some(columns) => columns.iter().map(resolve).collect::<Result<_, _>>()?,
        None => (0..n_fields).filter(|&j| label != Some(j)).collect(),
    };
    if chosen.is_empty() {
        return Err(ReadError::option(file, "no column is left to be a feature"));
    }
    for (slot, &j) in chosen.iter().enumerate() {
        match roles[j] {
            Role::Skip => roles[j] = Role::Value(slot),
            Role::Label => {
                return Err(ReadError::option(
                    file,
                    format!("column {j} is the label and cannot be a feature too"),
                ));
            }
            Role::Value(_) => return Err(ReadError::option(file, format!("column {j} is chosen twice"))),
        }
    }
    Ok(roles)
}

/// The refusal of a feature that holds text, with the ways out.
pub(crate) fn text_column(file: &str, column: &str, found: &str, n_others: usize) -> ReadError {
    let others = match n_others {
        0 => String::new(),
        1 => ", and so does 1 more column".to_owned(),
        n => format!(", and so do {n} more columns"),
    };
    ReadError::malformed(
        file,
        format!(
            "{column} holds {found}{others}: choose the numeric columns with --columns, or make it the label with \
             --label-column"
        ),
    )
}
