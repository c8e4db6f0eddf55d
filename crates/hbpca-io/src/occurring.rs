//! The columns that occur in sparse data, where all of them are too many for vectors of full length.
//!
//! A column without entries has no variance and no loading: a fit of the others finds the same components. The model keeps their numbers, by which the
//! columns of other data are found again.

use hbpca::{Csr, Matrix, Real};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Data, ReadError};

/// Columns of sparse data, by their numbers among all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OccurringColumns {
    /// Their numbers from 0, ascending. A model file has them as a tensor.
    #[serde(skip)]
    pub numbers: Vec<u32>,
    /// How many columns there are in all.
    pub all: usize,
    /// The number that the file gives the first of all columns, 0 or 1, where its format leaves that open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u32>,
}

impl OccurringColumns {
    /// The names of the columns: their numbers, counted as the file does, else from 1.
    pub fn names(&self) -> Vec<String> {
        let first = u64::from(self.first.unwrap_or(1));
        self.numbers.iter().map(|j| format!("column {}", u64::from(*j) + first)).collect()
    }

    /// The same with the numbers of a file's d columns, or what is wrong with them.
    pub(crate) fn with_numbers(self, numbers: Vec<u32>, d: usize) -> Result<Self, String> {
        let ascends = numbers.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = numbers.last().is_some_and(|last| (*last as usize) < self.all);
        if numbers.len() != d || !ascends || !inside || self.first.is_some_and(|first| first > 1) {
            return Err(format!(
                "the tensor `columns` does not name {d} of {} columns in ascending order",
                self.all
            ));
        }
        Ok(Self { numbers, ..self })
    }

    /// These columns of a matrix that has all of them, and how many others have entries that are not zero.
    pub(crate) fn of(
        &self,
        matrix: Matrix<'static>,
        file: &str,
    ) -> Result<(Matrix<'static>, usize), ReadError> {
        match matrix {
            Matrix::CsrF32(x) => self.of_rows(x, file),
            Matrix::CsrF64(x) => self.of_rows(x, file),
            Matrix::DenseF32(_) | Matrix::DenseF64(_) => {
                let (d, all) = (self.numbers.len(), self.all);
                Err(ReadError::malformed(
                    file,
                    format!(
                        "it is dense, and the model knows {d} columns of sparse data by their numbers among {all}: give sparse data (LIBSVM, .npz, .mtx)"
                    ),
                ))
            }
        }
    }

    /// Refuses a file that says that it has another number of columns.
    pub(crate) fn refuse_other_shape(&self, stated: Option<usize>, file: &str) -> Result<(), ReadError> {
        match stated {
            Some(d) if d != self.all => Err(ReadError::malformed(
                file,
                format!(
                    "{d} columns, and the model was fitted on {}, of which {} occur",
                    self.all,
                    self.numbers.len()
                ),
            )),
            _ => Ok(()),
        }
    }

    fn of_rows<T: Real>(
        &self,
        rows: Csr<'static, T>,
        file: &str,
    ) -> Result<(Matrix<'static>, usize), ReadError>
    where
        Matrix<'static>: From<Csr<'static, T>>,
    {
        /// No column has this number: there are fewer than 2³² besides the last.
        const OTHER: u32 = u32::MAX;
        let (mut starts, mut columns, mut values) = rows.into_parts();
        let place = |j: &u32| self.numbers.binary_search(j).map_or(OTHER, |place| place as u32);
        let places: Vec<u32> = columns.par_iter().map(place).collect();
        let mut others = Vec::new();
        let mut kept = 0;
        let mut from = 0;
        for start in starts.iter_mut().skip(1) {
            let to = *start;
            for at in from..to {
                if places[at] == OTHER {
                    if values[at] != T::default() {
                        others.push(columns[at]);
                    }
                    continue;
                }
                (columns[kept], values[kept]) = (places[at], values[at]);
                kept += 1;
            }
            (from, *start) = (to, kept);
        }
        columns.truncate(kept);
        values.truncate(kept);
        others.sort_unstable();
        others.dedup();
        let rows = Csr::deferring_finite_check(self.numbers.len(), starts, columns, values)
            .map_err(|error| ReadError::malformed(file, error.to_string()))?;
        Ok((rows.into(), others.len()))
    }
}

/// What a person should know of columns that are not among those of a model.
pub(crate) fn note_of_others(others: usize, file: &str) -> Option<String> {
    let columns = if others == 1 { "column has" } else { "columns have" };
    let they = if others == 1 { "it has" } else { "they have" };
    (others > 0).then(|| {
        format!(
            "{file}: {others} {columns} entries, and had none where the model was fitted: {they} no loadings"
        )
    })
}

impl Data {
    /// The columns that occur, where the data is sparse, has no names, and not all columns occur.
    pub fn occurring_columns(&self) -> Option<OccurringColumns> {
        let columns = match &self.matrix {
            Matrix::CsrF32(x) => x.columns(),
            Matrix::CsrF64(x) => x.columns(),
            _ => return None,
        };
        let mut numbers = columns.to_vec();
        numbers.par_sort_unstable();
        numbers.dedup();
        numbers.shrink_to_fit();
        let all = self.matrix.n_cols();
        let fewer = !numbers.is_empty() && numbers.len() < all;
        let wanted = fewer && self.column_names.is_none();
        wanted.then_some(OccurringColumns { numbers, all, first: self.first_column })
    }

    /// The same data with these columns only, named by their numbers.
    pub fn with_columns(self, columns: &OccurringColumns) -> Result<Self, ReadError> {
        let (matrix, other_columns) = columns.of(self.matrix, "data")?;
        Ok(Self { matrix, other_columns, column_names: Some(columns.names()), ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, ReadOptions, read_bytes};

    fn svm(text: &str, options: &ReadOptions) -> Result<Data, String> {
        read_bytes(text.as_bytes(), Format::Libsvm, options).map_err(|error| error.to_string())
    }

    fn of_model(columns: &OccurringColumns) -> ReadOptions {
        ReadOptions { occurring: Some(columns.clone()), ..ReadOptions::default() }
    }

    fn entries(data: &Data) -> Vec<Vec<(usize, f64)>> {
        (0..data.matrix.n_rows())
            .map(|l| {
                let mut row = Vec::new();
                data.matrix.for_each_in_row(l, |j, x| row.push((j, x)));
                row
            })
            .collect()
    }

    #[test]
    fn columns_are_numbered_anew_in_their_order() {
        let data = svm("1 5:2 2147483648:1\n0 3:1 7:2\n", &ReadOptions::default()).unwrap();
        let columns = data.occurring_columns().unwrap();
        assert_eq!(columns.numbers, [2, 4, 6, 2_147_483_647]);
        assert_eq!((columns.all, columns.first), (1 << 31, Some(1)));
        assert_eq!(columns.names(), ["column 3", "column 5", "column 7", "column 2147483648"]);
        let data = data.with_columns(&columns).unwrap();
        assert_eq!(data.matrix.n_cols(), 4);
        assert_eq!(entries(&data), [vec![(1, 2.0), (3, 1.0)], vec![(0, 1.0), (2, 2.0)]]);
        assert_eq!(data.other_columns, 0);
    }

    #[test]
    fn other_data_is_matched_by_number_and_what_is_unknown_is_counted() {
        let columns = OccurringColumns { numbers: vec![2, 4, 900], all: 1000, first: Some(1) };
        let data = svm(
            "1 2:7 3:1 9:0 901:5\n1\n1 2:1 6:4 5:3 \n".replace("6:4 5:3", "5:3 6:4").as_str(),
            &of_model(&columns),
        )
        .unwrap();
        assert_eq!(entries(&data), [vec![(0, 1.0), (2, 5.0)], vec![], vec![(1, 3.0)]]);
        assert_eq!((data.matrix.n_cols(), data.other_columns), (3, 2), "columns 2 and 6; 9 is zero");
        assert_eq!(
            data.notes,
            ["-: 2 columns have entries, and had none where the model was fitted: they have no loadings"]
        );
    }

    #[test]
    fn columns_are_counted_as_where_the_model_was_fitted() {
        let from = |first| OccurringColumns { numbers: vec![2, 4], all: 9, first: Some(first) };
        // Without an index 0 this file would count from 1.
        let data = svm("1 2:1 4:2\n", &of_model(&from(0))).unwrap();
        assert_eq!(entries(&data), [vec![(0, 1.0), (1, 2.0)]]);
        let text = svm("1 0:1 4:2\n", &of_model(&from(1))).unwrap_err();
        assert!(text.contains("index 0, but the model counts columns from 1"), "{text}");
    }

    #[test]
    fn another_number_of_columns_and_dense_rows_are_refused() {
        let columns = OccurringColumns { numbers: vec![0, 2], all: 3, first: None };
        let read = |text: &str, format| {
            read_bytes(text.as_bytes(), format, &of_model(&columns))
                .map(|data| entries(&data))
                .map_err(|error| error.to_string())
        };
        let market = |d| format!("%%MatrixMarket matrix coordinate real general\n1 {d} 1\n1 3 2\n");
        assert_eq!(read(&market(3), Format::MatrixMarket), Ok(vec![vec![(1, 2.0)]]));
        let text = read(&market(4), Format::MatrixMarket).unwrap_err();
        assert!(text.contains("4 columns, and the model was fitted on 3"), "{text}");
        let text = read("1,2,3\n4,5,6\n", Format::Csv).unwrap_err();
        assert!(text.contains("it is dense"), "{text}");
    }
}
