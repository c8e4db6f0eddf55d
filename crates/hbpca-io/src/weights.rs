//! Weights of the rows, from a column of the data.
//!
//! In a table the column travels beside the matrix, as the last of those that are kept. The columns of a chunk folder are one matrix: there
//! it is taken out of every block, or of every chunk that is read.

use std::ops::Range;

use hbpca::{Csr, Dense, Error, Matrix, Real, RowChunks};

use crate::block::{Labels, Layout, RowBlock};
use crate::on_disk::{OnDisk, failed};
use crate::reordered::reordered;
use crate::source::{RowSource, Stated};
use crate::{ColumnRef, ReadError, ReadOptions};

impl ReadOptions {
    /// The same, keeping the columns of categories and, as the last, that of the weights.
    pub(crate) fn keeping_beside(&self) -> Self {
        let mut options = self.clone();
        options.keep.extend(self.columns_of_categories());
        options.keep.extend(self.weight_column.clone());
        options
    }
}

/// The numbers of a column that was kept for its weights.
pub(crate) fn weights_of(file: &str, (name, column): (String, Labels)) -> Result<Vec<f64>, ReadError> {
    let refused = |row: usize, value: &str, why: &str| {
        let place = format!("column `{name}`, row {} (counted from 1)", row + 1);
        ReadError::malformed(file, format!("{place} holds {value}: {why}"))
    };
    let numbers = match column {
        Labels::Numbers(numbers) => numbers,
        Labels::Texts(texts) => {
            let is_text = |text: &String| text.parse::<f64>().map_or(true, |x| !x.is_finite());
            let row = texts.iter().position(is_text).unwrap_or(0);
            let shown: String = texts[row].chars().take(40).collect();
            let value = if shown.is_empty() { "nothing".to_owned() } else { format!("`{shown}`") };
            let why = "a weight is a number; leave the row out or give it the weight 0";
            return Err(refused(row, &value, why));
        }
    };
    match numbers.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
        Some(row) => Err(refused(row, &numbers[row].to_string(), "a weight is finite and not negative")),
        None => Ok(numbers),
    }
}

/// The position of the column of weights among columns that have names.
fn position(file: &str, column: &ColumnRef, names: Option<&[String]>) -> Result<usize, ReadError> {
    let Some(names) = names else {
        let text = format!(
            "the weights are in column `{column}`, but its columns have no names: give the weights in a file of their own"
        );
        return Err(ReadError::option(file, text));
    };
    column.resolve(Some(names), names.len()).map_err(|text| ReadError::option(file, text))
}

/// Hands on a source without its column of weights, which is kept beside.
pub(crate) struct WeightsApart {
    rows: Box<dyn RowSource>,
    at: usize,
    name: String,
}

impl WeightsApart {
    pub(crate) fn new(file: &str, rows: Box<dyn RowSource>, column: &ColumnRef) -> Result<Self, ReadError> {
        let names = rows.stated().column_names.unwrap_or_default();
        let at = position(file, column, Some(&names[..]).filter(|names| !names.is_empty()))?;
        if names.len() == 1 {
            return Err(ReadError::option(file, "no column is left to be a feature beside the weights"));
        }
        Ok(Self { rows, at, name: names[at].clone() })
    }

    fn others(&self, d: usize) -> Vec<usize> {
        (0..d).filter(|&j| j != self.at).collect()
    }
}

impl RowSource for WeightsApart {
    fn stated(&self) -> Stated {
        let stated = self.rows.stated();
        let mut kept_names = stated.kept_names.clone();
        kept_names.push(self.name.clone());
        let without = |mut names: Vec<String>| {
            names.remove(self.at);
            names
        };
        Stated {
            n_columns: stated.n_columns.map(|d| d - 1),
            column_names: stated.column_names.map(without),
            kept_names,
            ..stated
        }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        let d = self.rows.stated().n_columns.unwrap_or(0);
        let others = self.others(d);
        let apart = |block: RowBlock| {
            let numbers = numbers_of_block(&block, self.at);
            let mut block = reordered(block, &others);
            block.kept.push(Labels::Numbers(numbers));
            block
        };
        Ok(self.rows.next_blocks()?.into_iter().map(apart).collect())
    }
}

/// Column j of a block.
fn numbers_of_block(block: &RowBlock, j: usize) -> Vec<f64> {
    let mut numbers = vec![0.0; block.n_rows()];
    match &block.layout {
        Layout::Dense(d) => {
            numbers.iter_mut().enumerate().for_each(|(l, number)| *number = block.values.get(l * d + j));
        }
        Layout::Sparse { row_ends, columns } => {
            let mut start = 0;
            for (number, &end) in numbers.iter_mut().zip(row_ends) {
                if let Some(at) = (start..end).find(|&at| columns[at] as usize == j) {
                    *number = block.values.get(at);
                }
                start = end;
            }
        }
    }
    numbers
}

/// Column j.
fn numbers_of(matrix: &Matrix<'_>, j: usize) -> Vec<f64> {
    let mut numbers = vec![0.0; matrix.n_rows()];
    for (l, number) in numbers.iter_mut().enumerate() {
        matrix.for_each_in_row(l, |column, x| {
            if column == j {
                *number = x;
            }
        });
    }
    numbers
}

/// Rows on disk without their column of weights.
pub(crate) struct WeightsApartOnDisk {
    file: String,
    rows: Box<dyn OnDisk>,
    at: usize,
    names: Vec<String>,
}

impl WeightsApartOnDisk {
    pub(crate) fn new(file: &str, rows: Box<dyn OnDisk>, column: &ColumnRef) -> Result<Self, ReadError> {
        let at = position(file, column, rows.column_names())?;
        let mut names = rows.column_names().map_or_else(Vec::new, <[String]>::to_vec);
        if names.len() == 1 {
            return Err(ReadError::option(file, "no column is left to be a feature beside the weights"));
        }
        names.remove(at);
        Ok(Self { file: file.to_owned(), rows, at, names })
    }

    fn without(&self, matrix: Matrix<'static>) -> Result<Matrix<'static>, Error> {
        Ok(match matrix {
            Matrix::DenseF32(x) => dense_without(x, self.at)?.into(),
            Matrix::DenseF64(x) => dense_without(x, self.at)?.into(),
            Matrix::CsrF32(x) => csr_without(x, self.at)?.into(),
            Matrix::CsrF64(x) => csr_without(x, self.at)?.into(),
        })
    }
}

fn dense_without<T: Real>(x: Dense<'static, T>, at: usize) -> Result<Dense<'static, T>, Error> {
    let (n, d) = (x.n_rows(), x.n_cols());
    let mut values = x.into_values();
    let mut kept = 0;
    for i in 0..n * d {
        values[kept] = values[i];
        kept += usize::from(i % d != at);
    }
    values.truncate(kept);
    Dense::deferring_finite_check(values.into(), n, d - 1)
}

fn csr_without<T: Real>(x: Csr<'static, T>, at: usize) -> Result<Csr<'static, T>, Error> {
    let d = x.n_cols();
    let (starts, columns, values) = x.into_parts();
    let (mut new_starts, mut new_columns, mut new_values) = (vec![0], Vec::new(), Vec::new());
    for row in starts.windows(2) {
        for i in (row[0]..row[1]).filter(|&i| columns[i] as usize != at) {
            new_columns.push(columns[i] - u32::from(columns[i] as usize > at));
            new_values.push(values[i]);
        }
        new_starts.push(new_columns.len());
    }
    Csr::deferring_finite_check(d - 1, new_starts, new_columns, new_values)
}

impl RowChunks for WeightsApartOnDisk {
    fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }
    fn n_cols(&self) -> usize {
        self.rows.n_cols() - 1
    }
    /// The entries of the weights are among those of compressed rows: at most this many.
    fn nnz(&self) -> usize {
        if self.is_sparse() { self.rows.nnz() } else { self.n_rows() * self.n_cols() }
    }
    fn is_sparse(&self) -> bool {
        self.rows.is_sparse()
    }
    fn bytes(&self) -> u64 {
        self.rows.bytes()
    }
    fn cut(&mut self, bytes: u64) -> Result<(), Error> {
        self.rows.cut(bytes)
    }
    fn starts(&self) -> &[usize] {
        self.rows.starts()
    }
    fn read_chunk(&mut self, i: usize, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        let rows = self.rows.read_chunk(i, recycled)?;
        self.without(rows)
    }
    fn version(&self) -> Option<u64> {
        self.rows.version()
    }
    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        let rows = self.rows.read_rows(rows)?;
        self.without(rows)
    }
}

impl OnDisk for WeightsApartOnDisk {
    fn chunk_memory(&self) -> u64 {
        self.rows.chunk_memory()
    }
    fn memory(&self) -> u64 {
        self.rows.memory()
    }
    fn column_names(&self) -> Option<&[String]> {
        Some(&self.names)
    }
    fn read_weights(&mut self, wanted: Range<usize>) -> Result<Option<Vec<f64>>, Error> {
        let mut weights = Vec::with_capacity(wanted.len());
        let starts = self.rows.starts().to_vec();
        for chunk in starts.windows(2) {
            let (from, to) = (chunk[0].max(wanted.start), chunk[1].min(wanted.end));
            if from < to {
                weights.extend(numbers_of(&self.rows.read_rows(from..to)?, self.at));
            }
        }
        let name = self.rows.column_names().map_or_else(String::new, |names| names[self.at].clone());
        weights_of(&self.file, (name, Labels::Numbers(weights))).map(Some).map_err(failed)
    }
}
