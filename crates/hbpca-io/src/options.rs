//! What a reader may be told.

use crate::column_names::listed;
use crate::{CellOptions, Encoding, Format, NamesToMatch, NumberStyle, OccurringColumns, OneHot};

/// A column, as users name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRef {
    /// Its name in the header.
    Name(String),
    /// Its number from 0; negative numbers count from the end, −1 being the last.
    Index(i64),
    /// All columns from the first to the last, both included.
    Range(Box<Self>, Box<Self>),
}

impl ColumnRef {
    /// A whole number is an index, `first..last` a range, anything else a name; a header that has the text itself as a name wins.
    pub fn parse(text: &str) -> Self {
        match text.split_once("..") {
            Some((first, last)) if !first.is_empty() && !last.is_empty() => {
                Self::Range(Box::new(Self::parse(first)), Box::new(Self::parse(last)))
            }
            _ => text.trim().parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Index),
        }
    }

    /// A list with commas between the columns; names in double quotes may hold commas.
    pub fn parse_list(text: &str) -> Vec<Self> {
        let mut columns = Vec::new();
        let (mut name, mut inside, mut quoted) = (String::new(), false, false);
        let mut finish = |name: &mut String, quoted: bool| {
            let text = std::mem::take(name);
            columns.push(if quoted { Self::Name(text) } else { Self::parse(&text) });
        };
        for letter in text.chars() {
            match letter {
                '"' => (inside, quoted) = (!inside, true),
                ',' if !inside => {
                    finish(&mut name, quoted);
                    quoted = false;
                }
                other => name.push(other),
            }
        }
        finish(&mut name, quoted);
        columns
    }

    /// The columns' positions among `n_columns`, or what is wrong with them.
    pub(crate) fn resolve_all(
        &self,
        names: Option<&[String]>,
        n_columns: usize,
    ) -> Result<Vec<usize>, String> {
        let Self::Range(first, last) = self else { return Ok(vec![self.resolve(names, n_columns)?]) };
        if let Some(j) = names.and_then(|names| names.iter().position(|name| *name == self.to_string())) {
            return Ok(vec![j]);
        }
        let (from, to) = (first.resolve(names, n_columns)?, last.resolve(names, n_columns)?);
        if from > to {
            return Err(format!("the range {self} runs backwards: column {from} comes before column {to}"));
        }
        Ok((from..=to).collect())
    }

    /// The column's position among `n_columns`, or what is wrong with it.
    pub(crate) fn resolve(&self, names: Option<&[String]>, n_columns: usize) -> Result<usize, String> {
        let position = |name: &str| names.and_then(|names| names.iter().position(|x| x == name));
        match self {
            Self::Name(name) => position(name).ok_or_else(|| match names {
                Some(names) => match nearest(name, names) {
                    Some(near) => format!("there is no column `{name}`; did you mean `{near}`?"),
                    None => format!("there is no column `{name}`; the columns are {}", listed(names)),
                },
                None => format!("column `{name}` was asked for, but the file has no header: give its number"),
            }),
            Self::Range(..) => match self.resolve_all(names, n_columns)?[..] {
                [j] => Ok(j),
                _ => Err(format!("{self} names several columns where one is needed")),
            },
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

impl std::fmt::Display for ColumnRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Index(index) => index.fmt(f),
            Self::Range(first, last) => write!(f, "{first}..{last}"),
        }
    }
}

/// The name that differs least from a wrong one, where it differs little: by case, or by a third of the letters at most.
fn nearest<'a>(wrong: &str, names: &'a [String]) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    let allowed = lower.chars().count() / 3;
    let distance = |name: &str| edits(&lower, &name.to_lowercase());
    let near = names.iter().take(10_000).map(|name| (distance(name), name.as_str()));
    near.filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Letters to insert, remove or replace to turn one text into another (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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

/// Which columns are features where none are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Features {
    /// All; a column of text is refused by name.
    #[default]
    All,
    /// Those that hold numbers, as far as the first rows show it.
    Numeric,
}

/// What becomes of values that are missing: empty fields and the likes of `NA` in CSV, nulls in Parquet, NaN in every format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingFields {
    /// The first one is an error.
    #[default]
    Refused,
    /// They are NaN in the matrix.
    Nan,
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
    /// Columns of CSV or Parquet that are left out.
    pub exclude: Vec<ColumnRef>,
    /// Which columns of CSV or Parquet are features where none are chosen.
    pub features: Features,
    /// Columns of CSV or Parquet that travel beside the matrix, as numbers or texts. They are features only where a model wants them.
    pub keep: Vec<ColumnRef>,
    /// The column of CSV, Parquet or a chunk folder with names that holds the weights of the rows; it is no feature.
    pub weight_column: Option<ColumnRef>,
    /// Columns of CSV or Parquet whose categories become columns of zeros and ones, behind all others.
    pub one_hot: Vec<OneHot>,
    /// What becomes of values that are missing.
    pub missing: MissingFields,
    /// The type of the values in memory.
    pub precision: Precision,
    /// d for LIBSVM files, whose last columns may be empty.
    pub n_columns: Option<usize>,
    /// Whether the first line of a CSV file names the columns.
    pub header: HeaderLine,
    /// The names by which columns are found, in this order; files without names go by position.
    pub match_names: Option<NamesToMatch>,
    /// The columns of sparse data that are wanted, by their numbers; those of a model that knows no others.
    pub occurring: Option<OccurringColumns>,
    /// How the numbers of CSV and TSV are written.
    pub numbers: NumberStyle,
    /// How the characters of a text are stored; UTF-8 and UTF-16 are recognised.
    pub encoding: Option<Encoding>,
    /// Which matrix of an `.h5ad` file is read, and what is done with it.
    pub cells: CellOptions,
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

    #[test]
    fn names_that_nearly_fit_are_suggested() {
        let names: Vec<String> = ["Elevation", "Cover_Type", "Slope"].map(String::from).to_vec();
        let text = |column: &str| ColumnRef::parse(column).resolve(Some(&names), 3).unwrap_err();
        assert_eq!(text("cover_type"), "there is no column `cover_type`; did you mean `Cover_Type`?");
        assert_eq!(text("Slop"), "there is no column `Slop`; did you mean `Slope`?");
        assert!(text("weight").contains("the columns are"));
        assert_eq!((edits("kitten", "sitting"), edits("", "ab"), edits("ab", "")), (3, 2, 2));
    }

    #[test]
    fn lists_have_ranges_and_names_with_commas() {
        let names: Vec<String> = ["a", "b, c", "x..y", "d"].map(String::from).to_vec();
        let all = |text: &str| {
            let found =
                ColumnRef::parse_list(text).into_iter().map(|column| column.resolve_all(Some(&names), 4));
            found.collect::<Result<Vec<_>, _>>().map(|found| found.concat())
        };
        assert_eq!(all("a,\"b, c\",d"), Ok(vec![0, 1, 3]));
        assert_eq!(all("1..3"), Ok(vec![1, 2, 3]));
        assert_eq!(all("a..d"), Ok(vec![0, 1, 2, 3]));
        assert_eq!(all("x..y"), Ok(vec![2]), "a name of that form is a name");
        assert_eq!(all("0..-1"), Ok(vec![0, 1, 2, 3]));
        assert!(all("3..1").unwrap_err().contains("runs backwards"));
    }
}
