//! The weights of the rows.

use std::path::{Path, PathBuf};

use hbpca::{Matrix, RowChunks};
use hbpca_io::{ColumnRef, Data, Input, OnDisk, ReadOptions};

use super::Source;
use crate::args::WeightArgs;
use crate::exit::Failure;
use crate::output::number;

/// Where the weights of the rows come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Weights {
    /// There are none: every row counts once.
    #[default]
    None,
    /// A column of the data, as it was named.
    Column(String),
    /// A file of their own.
    File(PathBuf),
}

impl From<&WeightArgs> for Weights {
    fn from(args: &WeightArgs) -> Self {
        match (&args.weight_column, &args.weights) {
            (Some(column), _) => Self::Column(column.clone()),
            (None, Some(file)) => Self::File(file.clone()),
            (None, None) => Self::None,
        }
    }
}

impl Weights {
    /// Has the column of weights read beside the data.
    pub fn ask(&self, source: &mut Source) {
        if let Self::Column(column) = self {
            source.weigh_by(ColumnRef::parse(column));
        }
    }

    /// The name of the column, for a model.
    pub fn column(&self) -> Option<String> {
        match self {
            Self::Column(column) => Some(column.clone()),
            Self::None | Self::File(_) => None,
        }
    }

    /// The weights of data in memory.
    pub fn of(&self, data: &mut Data) -> Result<Option<Vec<f64>>, Failure> {
        match self {
            Self::File(path) => read(path, data.matrix.n_rows()).map(Some),
            Self::None | Self::Column(_) => Ok(data.weights.take()),
        }
    }

    /// The same for n samples of genotypes, which have no columns of another kind.
    pub fn of_genotypes(&self, n: usize) -> Result<Option<Vec<f64>>, Failure> {
        match self {
            Self::File(path) => read(path, n).map(Some),
            Self::None | Self::Column(_) => Ok(None),
        }
    }

    /// The same for whole parts on one of several ranks, which does not know where in a file of weights theirs are.
    pub fn of_parts(&self, data: &mut Data) -> Result<Option<Vec<f64>>, Failure> {
        match self {
            Self::File(path) => Err(Failure::Usage(format!(
                "--weights {} on several ranks needs rows that can be read in ranges: convert the data with hbpca convert to .npy, .npz or a \
                 chunk folder, or give the weights in a column (--weight-column)",
                path.display()
            ))),
            Self::None | Self::Column(_) => Ok(data.weights.take()),
        }
    }

    /// The weights of rows on disk.
    pub fn of_disk(&self, rows: &mut dyn OnDisk, name: &str) -> Result<Option<Vec<f64>>, Failure> {
        match self {
            Self::File(path) => read(path, rows.n_rows()).map(Some),
            Self::None | Self::Column(_) => {
                let all = 0..rows.n_rows();
                rows.read_weights(all).map_err(|error| Failure::refused(&error, name))
            }
        }
    }

    /// The weights of the rows of one rank, in shards that follow each other from row `first` of n on.
    pub fn of_some(
        &self,
        shards: &mut [impl OnDisk],
        (first, n): (usize, usize),
        name: &str,
    ) -> Result<Option<Vec<f64>>, Failure> {
        match self {
            Self::None => Ok(None),
            Self::File(path) => {
                let own: usize = shards.iter().map(RowChunks::n_rows).sum();
                Ok(Some(read(path, n)?[first..first + own].to_vec()))
            }
            Self::Column(_) => {
                let weights = shards.iter_mut().map(|rows| {
                    let all = 0..rows.n_rows();
                    rows.read_weights(all)
                });
                let weights = weights.collect::<Result<Option<Vec<_>>, _>>();
                let weights = weights.map_err(|error| Failure::refused(&error, name))?;
                Ok(weights.map(|weights| weights.concat()))
            }
        }
    }
}

/// A file with one number for each of n rows.
fn read(path: &Path, n: usize) -> Result<Vec<f64>, Failure> {
    let name = path.display();
    let matrix = hbpca_io::read(Input::path(path), &ReadOptions::default())?.matrix;
    let (rows, columns) = (matrix.n_rows(), matrix.n_cols());
    if columns != 1 || rows != n {
        let needed = format!("one number for each of the {} rows is needed", number::count(n));
        return Err(Failure::Input(format!("{name}: it has {rows} rows × {columns} columns where {needed}")));
    }
    Ok(column(&matrix))
}

/// The numbers of a matrix of one column.
fn column(matrix: &Matrix<'_>) -> Vec<f64> {
    let mut values = vec![0.0; matrix.n_rows()];
    for (row, value) in values.iter_mut().enumerate() {
        matrix.for_each_in_row(row, |_, x| *value = x);
    }
    values
}
