//! What a reader may be told.

use crate::column_names::listed;
use crate::{Encoding, Format, NamesToMatch, NumberStyle};

/// A column, as users name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRef {
    /// Its name in the header.
    Name(String),
    /// Its number from 0; negative numbers count from the end, −1 being the last.
    Index(i64),
}

impl ColumnRef {
    /// A whole number is an index, anything else a name; a header that has the text itself as a name wins.
    pub fn parse(text: &str) -> Self {
        text.trim().parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Index)
    }

    /// The column's position among `n_columns`, or what is wrong with it.
    pub(crate) fn resolve(&self, names: Option<&[String]>, n_columns: usize) -> Result<usize, String> {
        let position = |name: &str| names.and_then(|names| names.iter().position(|x| x == name));
        match self {
            Self::Name(name) => position(name).ok_or_else(|| match names {
                Some(names) => format!("there is no column `{name}`; the columns are {}", listed(names)),
                None => format!("column `{name}` was asked for, but the file has no header: give its number"),
            }),
            Self::Index(index) => {
                if let Some(found) = position(&index.to_string()) {
                    return Ok(found);
                }
                let from_start = if *index < 0 { *index + n_columns.cast_signed() as i64 } else { *index };
                usize::try_from(from_start).ok().filter(|&j| j < n_columns).ok_or_else(|| {
                    format!(
                        "there is no column {index}: the {n_columns} columns are numbered from 0 (or from −1, \
                         the last, downwards)"
                    )
                })
            }
        }
    }
}

/// The type in which values are kept in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// The file's own: f32 and f64 as they are, integers of at most 16 bits as f32, wider ones as f64, and
    /// text as f32 when every value in it is exactly an f32, else as f64.
    #[default]
    Auto,
    /// The nearest f32.
    F32,
    /// f64.
    F64,
}

/// Whether the first line of a CSV file names the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderLine {
    /// Found out by comparing the first two lines.
    #[default]
    Detect,
    /// It does.
    Present,
    /// It is data.
    Absent,
}

/// What a reader may be told; the default finds everything out from the file.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format, when neither name nor content should decide.
    pub format: Option<Format>,
    /// The column of CSV or Parquet that holds the label; it is no feature.
    pub label_column: Option<ColumnRef>,
    /// The columns of CSV or Parquet to use, in this order.
    pub columns: Option<Vec<ColumnRef>>,
    /// The type of the values in memory.
    pub precision: Precision,
    /// d for LIBSVM files, whose last columns may be empty.
    pub n_columns: Option<usize>,
    /// Whether the first line of a CSV file names the columns.
    pub header: HeaderLine,
    /// The names by which columns are found, in this order; files without names go by position.
    pub match_names: Option<NamesToMatch>,
    /// How the numbers of CSV and TSV are written.
    pub numbers: NumberStyle,
    /// How the characters of a text are stored; UTF-8 and UTF-16 are recognised.
    pub encoding: Option<Encoding>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["a", "b", "7"].map(String::from).to_vec()
    }

    #[test]
    fn columns_are_found_by_name_number_and_from_the_end() {
        let names = names();
        let find = |text: &str| ColumnRef::parse(text).resolve(Some(&names), 3);
        assert_eq!(find("b"), Ok(1));
        assert_eq!(find("0"), Ok(0));
        assert_eq!(find("-1"), Ok(2));
        assert_eq!(find("7"), Ok(2), "a name that looks like a number is a name");
    }

    #[test]
    fn columns_that_do_not_exist_are_refused() {
        let names = names();
        let text = |column: &str, names| ColumnRef::parse(column).resolve(names, 3).unwrap_err();
        assert!(text("z", Some(&names[..])).contains("no column `z`; the columns are `a`, `b`, `7`"));
        assert!(text("z", None).contains("has no header"));
        assert!(text("3", None).contains("no column 3: the 3 columns"));
        assert!(text("-4", None).contains("no column -4"));
        let many: Vec<String> = (0..20).map(|j| format!("x{j}")).collect();
        assert!(text("z", Some(&many[..])).contains("and 12 more"));
    }
}
