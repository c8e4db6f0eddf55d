//! Columns that travel beside a matrix: identifiers, classes.

use hbpca::{Dense, Matrix};

use crate::block::Labels;
use crate::{Format, WriteError};

impl Format {
    /// Whether a file of this format can hold texts beside numbers.
    pub fn has_texts(self) -> bool {
        matches!(self, Self::Csv | Self::Tsv | Self::Parquet)
    }
}

/// The kept columns and then those of `matrix`, for formats that hold numbers only.
pub fn join_kept(
    file: &str,
    matrix: &Matrix<'_>,
    kept: &[(String, Labels)],
) -> Result<Matrix<'static>, WriteError> {
    let (n, d, m) = (matrix.n_rows(), matrix.n_cols(), kept.len());
    let mut values = vec![0.0; n * (m + d)];
    for (j, (name, column)) in kept.iter().enumerate() {
        let Labels::Numbers(numbers) = column else {
            let text = format!(
                "column `{name}` holds texts, which this format cannot: write .csv, .tsv or .parquet, or leave the column out"
            );
            return Err(WriteError::unsuitable(file, text));
        };
        values.chunks_exact_mut(m + d).zip(numbers).for_each(|(row, x)| row[j] = *x);
    }
    for (l, row) in values.chunks_exact_mut(m + d).enumerate() {
        matrix.for_each_in_row(l, |j, x| row[m + j] = x);
    }
    let joined =
        Dense::new(values, n, m + d).map_err(|error| WriteError::unsuitable(file, error.to_string()))?;
    Ok(joined.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, ReadOptions, WriteOptions, read, write};

    fn options() -> WriteOptions {
        WriteOptions {
            column_names: Some(vec!["component_1".into()]),
            kept: vec![
                ("id".into(), Labels::Numbers(vec![7.0, 8.0])),
                ("kind".into(), Labels::Texts(vec!["a, b".into(), "c".into()])),
            ],
            ..WriteOptions::default()
        }
    }

    #[test]
    fn kept_columns_come_first_and_texts_where_the_format_has_them() {
        let folder = tempfile::tempdir().unwrap();
        let x: Matrix = Dense::new(vec![0.5, 1.5], 2, 1).unwrap().into();
        let path = folder.path().join("x.csv");
        write(&path, &x, &options()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "id,kind,component_1\n7,\"a, b\",0.5\n8,c,1.5\n");
        let refused = write(&folder.path().join("x.npy"), &x, &options()).unwrap_err().to_string();
        assert!(refused.contains("column `kind` holds texts"), "{refused}");
        let mut numbers = options();
        numbers.kept.truncate(1);
        let path = folder.path().join("x.npy");
        write(&path, &x, &numbers).unwrap();
        let back = read(Input::path(&path), &ReadOptions::default()).unwrap().matrix;
        let mut entries = Vec::new();
        (0..2).for_each(|l| back.for_each_in_row(l, |_, x| entries.push(x)));
        assert_eq!(entries, [7.0, 0.5, 8.0, 1.5]);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_holds_them_too() {
        let folder = tempfile::tempdir().unwrap();
        let x: Matrix = Dense::new(vec![0.5, 1.5], 2, 1).unwrap().into();
        let path = folder.path().join("x.parquet");
        write(&path, &x, &options()).unwrap();
        let label = |name: &str, columns: &[&str]| {
            let reading = ReadOptions {
                label_column: Some(crate::ColumnRef::parse(name)),
                columns: Some(columns.iter().map(|x| crate::ColumnRef::parse(x)).collect()),
                ..ReadOptions::default()
            };
            read(Input::path(&path), &reading).unwrap()
        };
        let kinds = label("kind", &["id", "component_1"]);
        assert_eq!(kinds.labels, Some(Labels::Texts(vec!["a, b".into(), "c".into()])));
        assert_eq!((kinds.matrix.n_rows(), kinds.matrix.n_cols()), (2, 2));
        assert_eq!(label("id", &["component_1"]).labels, Some(Labels::Numbers(vec![7.0, 8.0])));
    }
}
