//! Which columns of a table are features, which is the label, which are left out.

use crate::column_names::places;
use crate::{ColumnRef, Features, ReadError, ReadOptions};

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

/// The columns of a table.
pub(crate) struct Table<'a> {
    pub(crate) file: &'a str,
    pub(crate) names: Option<&'a [String]>,
    pub(crate) n_columns: usize,
    /// Columns in which the program that wrote it keeps its index: no features unless they are asked for.
    pub(crate) index: &'a [usize],
    /// Whether a column holds text, as far as the first rows show it.
    pub(crate) is_text: &'a dyn Fn(usize) -> bool,
}

impl Table<'_> {
    /// The positions of the columns that are kept beside the matrix, in the order asked for, and their names.
    pub(crate) fn kept(&self, options: &ReadOptions) -> Result<Vec<(usize, String)>, ReadError> {
        let mut kept = Vec::new();
        for column in &options.keep {
            for j in self.resolve_all(column)? {
                let name = self.names.map_or_else(|| format!("column_{j}"), |names| names[j].clone());
                kept.push((j, name));
            }
        }
        Ok(kept)
    }

    fn resolve_all(&self, column: &ColumnRef) -> Result<Vec<usize>, ReadError> {
        column.resolve_all(self.names, self.n_columns).map_err(|text| ReadError::option(self.file, text))
    }
}

/// What becomes of each field of a line, and what a person should know of it.
pub(crate) fn roles(
    table: &Table<'_>,
    options: &ReadOptions,
) -> Result<(Vec<Role>, Option<String>), ReadError> {
    let Table { file, names, n_columns, index, is_text } = *table;
    let known =
        names.filter(|_| options.columns.as_ref().is_some_and(|columns| columns.len() > 1)).map(places);
    let resolve = |column: &ColumnRef| match (column, &known) {
        (ColumnRef::Name(name), Some(known)) if known.contains_key(name.as_str()) => {
            Ok(vec![known[name.as_str()][0]])
        }
        _ => table.resolve_all(column),
    };
    let one =
        |column: &ColumnRef| column.resolve(names, n_columns).map_err(|text| ReadError::option(file, text));
    let label = options.label_column.as_ref().map(one).transpose()?;
    let mut left_out = vec![false; n_columns];
    for column in &options.exclude {
        resolve(column)?.into_iter().for_each(|j| left_out[j] = true);
    }
    let is_wanted = |name: &str| {
        options.match_names.as_ref().is_some_and(|wanted| wanted.names.iter().any(|x| x == name))
    };
    for (j, name) in table.kept(options)? {
        left_out[j] |= options.columns.is_none() && !is_wanted(&name);
    }
    let weights = options.weight_column.as_ref().map(one).transpose()?;
    let mut categories = Vec::new();
    for column in options.columns_of_categories() {
        categories.push(one(&column)?);
    }
    let is_feature = |j: usize| options.features == Features::All || !is_text(j);
    let mut roles = vec![Role::Skip; n_columns];
    if let Some(j) = label {
        roles[j] = Role::Label;
    }
    let mut chosen: Vec<usize> = match &options.columns {
        Some(columns) => columns.iter().map(resolve).collect::<Result<Vec<_>, _>>()?.concat(),
        None => {
            (0..n_columns).filter(|&j| label != Some(j) && !index.contains(&j) && is_feature(j)).collect()
        }
    };
    if options.columns.is_some()
        && let Some(j) = weights.filter(|j| chosen.contains(j))
    {
        return Err(ReadError::option(
            file,
            format!("column {j} holds the weights and cannot be a feature too"),
        ));
    }
    chosen.retain(|&j| !left_out[j] && weights != Some(j) && !categories.contains(&j));
    let mut note = None;
    if let Some(wanted) = &options.match_names {
        let offered: Option<Vec<String>> =
            names.map(|names| chosen.iter().map(|&j| names[j].clone()).collect());
        let found = wanted.find(offered.as_deref(), file)?;
        if let Some(positions) = found.positions {
            chosen = positions.iter().map(|&slot| chosen[slot]).collect();
        }
        note = found.note;
    }
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
    Ok((roles, note))
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
            "{column} holds {found}{others}: choose the numeric columns with --numeric or --columns, leave it out with --exclude, make it the \
             label with --label-column, or code its categories with --one-hot"
        ),
    )
}
