//! What the columns of a table hold: numbers, texts, gaps.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::input::Part;
use crate::{Data, Format, Input, MissingFields, ReadError, ReadOptions, csv, read};

/// Distinct values counted exactly up to here.
const MOST_DISTINCT: usize = 1000;

/// A table, column by column.
#[derive(Clone, Debug)]
pub struct TableSurvey {
    /// n.
    pub n_rows: usize,
    /// Whether the first line names the columns.
    pub has_names: bool,
    /// The columns.
    pub columns: Vec<ColumnSurvey>,
}

/// A column of any kind.
#[derive(Clone, Debug, Default)]
pub struct ColumnSurvey {
    /// Its name, or its number from 0.
    pub name: String,
    /// Fields that are numbers.
    pub numbers: usize,
    /// Those of them that are whole.
    pub wholes: usize,
    /// Fields that are true or false.
    pub truths: usize,
    /// Fields that are texts.
    pub texts: usize,
    /// Fields that are missing.
    pub missing: usize,
    /// The smallest and the largest number.
    pub range: Option<(f64, f64)>,
    /// The first text.
    pub example: Option<String>,
    values: HashSet<u64>,
}

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers.
    Whole,
    /// Numbers.
    Number,
    /// True and false.
    Truth,
    /// Texts.
    Text,
    /// Nothing but gaps.
    Empty,
}

impl ColumnKind {
    /// The name users see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Number => "number",
            Self::Truth => "true/false",
            Self::Text => "text",
            Self::Empty => "empty",
        }
    }
}

impl ColumnSurvey {
    pub(crate) fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// What it is; one text makes it text.
    pub fn kind(&self) -> ColumnKind {
        match self {
            Self { texts: 1.., .. } => ColumnKind::Text,
            Self { numbers: 1.., .. } if self.wholes == self.numbers && self.truths == 0 => ColumnKind::Whole,
            Self { numbers: 1.., .. } => ColumnKind::Number,
            Self { truths: 1.., .. } => ColumnKind::Truth,
            _ => ColumnKind::Empty,
        }
    }

    /// Distinct values, where they are not too many to count.
    pub fn distinct(&self) -> Option<usize> {
        (self.values.len() <= MOST_DISTINCT).then_some(self.values.len())
    }

    /// Whether it can be a feature as it stands.
    pub fn is_numeric(&self) -> bool {
        self.missing == 0 && !matches!(self.kind(), ColumnKind::Text | ColumnKind::Empty)
    }

    pub(crate) fn note_value(&mut self, hash: u64) {
        if self.values.len() <= MOST_DISTINCT {
            self.values.insert(hash);
        }
    }

    pub(crate) fn note_number(&mut self, value: f64) {
        self.numbers += 1;
        self.wholes += usize::from(value.fract() == 0.0);
        let (low, high) = self.range.unwrap_or((value, value));
        self.range = Some((low.min(value), high.max(value)));
    }

    pub(crate) fn note_text(&mut self, field: &[u8]) {
        self.texts += 1;
        self.example.get_or_insert_with(|| String::from_utf8_lossy(field).chars().take(30).collect());
    }

    pub(crate) fn merge(&mut self, more: Self) {
        self.numbers += more.numbers;
        self.wholes += more.wholes;
        self.truths += more.truths;
        self.texts += more.texts;
        self.missing += more.missing;
        self.range = match (self.range, more.range) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        self.example = self.example.take().or(more.example);
        for hash in more.values {
            self.note_value(hash);
        }
    }
}

/// Looks at every field of CSV or TSV in one file, or at the columns of another dense matrix, with its gaps; nothing for compressed rows, and for a stream or several
/// parts of text.
pub fn survey(input: Input, options: &ReadOptions) -> Result<Option<TableSurvey>, ReadError> {
    let Some(paths) = input.files()? else { return Ok(None) };
    if let [path] = &paths[..] {
        let opened = Part::Path(path.clone()).open(options, &Arc::new(AtomicU64::new(0)))?;
        if matches!(opened.format, Format::Csv | Format::Tsv) {
            return rayon::scope(|_| csv::survey(opened, options)).map(Some);
        }
    }
    let options = ReadOptions { missing: MissingFields::Nan, ..options.clone() };
    let data = read(Input::paths(paths), &options)?;
    Ok((!data.matrix.is_sparse()).then(|| TableSurvey::of_matrix(&data)))
}

impl TableSurvey {
    /// The columns of a dense matrix, whose NaN are gaps.
    fn of_matrix(data: &Data) -> Self {
        let (matrix, names) = (&data.matrix, data.column_names.as_deref());
        let name = |j: usize| names.map_or_else(|| j.to_string(), |names| names[j].clone());
        let mut columns: Vec<ColumnSurvey> =
            (0..matrix.n_cols()).map(|j| ColumnSurvey::new(name(j))).collect();
        for l in 0..matrix.n_rows() {
            matrix.for_each_in_row(l, |j, x| {
                if x.is_nan() {
                    columns[j].missing += 1;
                } else {
                    columns[j].note_value(x.to_bits());
                    columns[j].note_number(x);
                }
            });
        }
        Self { n_rows: matrix.n_rows(), has_names: names.is_some(), columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surveyed(text: &str) -> TableSurvey {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        survey(Input::path(&path), &ReadOptions::default()).unwrap().unwrap()
    }

    #[test]
    fn every_kind_of_column_is_recognised_with_its_gaps() {
        let table = surveyed("id,x,ok,kind,none\n1,0.5,True,a,\n2,NA,False,b,\n3,-2,True,a,\n");
        assert_eq!((table.n_rows, table.has_names), (3, true));
        let kinds: Vec<&str> = table.columns.iter().map(|column| column.kind().name()).collect();
        assert_eq!(kinds, ["whole", "number", "true/false", "text", "empty"]);
        assert_eq!(table.columns.iter().map(|c| c.missing).collect::<Vec<_>>(), [0, 1, 0, 0, 3]);
        assert_eq!(
            table.columns.iter().map(ColumnSurvey::distinct).collect::<Vec<_>>(),
            [3, 2, 2, 2, 0].map(Some)
        );
        assert_eq!(
            (table.columns[1].range, table.columns[3].example.as_deref()),
            (Some((-2.0, 0.5)), Some("a"))
        );
        assert_eq!(
            table.columns.iter().map(ColumnSurvey::is_numeric).collect::<Vec<_>>(),
            [true, false, true, false, false]
        );
    }

    #[test]
    fn many_chunks_make_one_survey_and_many_values_are_not_counted() {
        let rows: Vec<String> = (0..60_000).map(|i| format!("{i},k{}\n", i % 7)).collect();
        let text = String::from("x,kind\n") + &rows.concat();
        let table = surveyed(&text);
        assert_eq!(
            (table.n_rows, table.columns[0].distinct(), table.columns[1].distinct()),
            (60_000, None, Some(7))
        );
        assert_eq!(table.columns[0].range, Some((0.0, 59_999.0)));
    }
}
