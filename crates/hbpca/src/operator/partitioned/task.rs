//! What a partition is asked for.

use super::answer::Answer;
use crate::columns::{ColumnStatistics, RowMap};
use crate::matrix::Matrix;
use crate::operator::{
    Capabilities, Covariance, CovarianceOperator, ExplicitCovariance, Precision, Product, Rows,
};
use crate::{Block, CancelToken, Error};

/// One round's task.
#[derive(Clone, Copy, Debug)]
pub enum Task<'a> {
    /// Column statistics.
    Survey,
    /// Σ a(aᵀV) of prepared rows.
    Sum {
        /// How rows are prepared.
        map: &'a RowMap,
        /// The precision of the products, where there is a choice.
        precision: Precision,
        /// V.
        v: &'a Block,
    },
    /// The lower triangle of Σ aaᵀ.
    Form {
        /// How rows are prepared.
        map: &'a RowMap,
        /// The precision of the products, where there is a choice.
        precision: Precision,
    },
    /// The rows themselves that are named.
    Rows {
        /// The number of the first row of every partition.
        starts: &'a [usize],
        /// The numbers of the rows wanted, ascending.
        rows: &'a [usize],
    },
}

const SURVEY: u8 = 0;
const SUM: u8 = 1;
const FORM: u8 = 2;
const ROWS: u8 = 3;

impl Task<'_> {
    /// As numbers: kind, precision, p, the map, V.
    pub fn encode(&self) -> Vec<f64> {
        let single = |precision: Precision| f64::from(u8::from(precision == Precision::Single));
        match *self {
            Task::Survey => vec![f64::from(SURVEY)],
            Task::Sum { map, precision, v } => {
                let mut numbers = vec![f64::from(SUM), single(precision), v.p() as f64];
                numbers.extend(map.to_flat(v.d()));
                numbers.extend_from_slice(v.values());
                numbers
            }
            Task::Form { map, precision } => {
                let d = map.shift().or(map.scale()).map_or(0, <[f64]>::len);
                let mut numbers = vec![f64::from(FORM), single(precision), 0.0];
                numbers.extend(map.to_flat(d));
                numbers
            }
            Task::Rows { starts, rows } => {
                let head = std::iter::once(f64::from(ROWS));
                head.chain(starts.iter().chain(rows).map(|row| *row as f64)).collect()
            }
        }
    }
}

/// The answer of partition `index` of `count`, whose rows are `matrix`, to an encoded task.
pub fn answer(task: &[f64], matrix: &Matrix<'_>, (index, count): (usize, usize)) -> Result<Vec<f64>, Error> {
    if index >= count {
        return Err(Error::shape("partitions", count, index + 1));
    }
    let mut answer = Answer::of(matrix, index, count);
    let (kind, rest) = task.split_first().ok_or_else(not_a_task)?;
    match (*kind as u8, rest) {
        (SURVEY, []) => {
            let pivot = ColumnStatistics::pivot_at(matrix, 0);
            let statistics = ColumnStatistics::relative_to(&pivot, matrix, None, &CancelToken::default());
            statistics.refuse_not_finite(matrix)?;
            answer.tell_statistics(&pivot, &statistics);
        }
        (SUM, [single, p, rest @ ..]) => {
            let (map, v) = RowMap::from_flat(rest, matrix.n_cols()).ok_or_else(not_a_task)?;
            let p = *p as usize;
            let v = if v.len() == matrix.n_cols() * p { v.to_vec() } else { return Err(not_a_task()) };
            let v = Block::from_values(matrix.n_cols(), p, v)?;
            let mut operator = Covariance::with_map(matrix, map);
            let mut sums = Block::zeros(0, 0);
            let product = Product { rows: Rows::All, precision: precision(*single), v: &v };
            let rounding = operator.sum_rows(product, &mut sums)?;
            answer.tell_sums(rounding, sums.values().iter().copied());
        }
        (FORM, [single, _, rest @ ..]) => {
            let (map, nothing) = RowMap::from_flat(rest, matrix.n_cols()).ok_or_else(not_a_task)?;
            if !nothing.is_empty() {
                return Err(not_a_task());
            }
            let mut operator = Covariance::with_map(matrix, map);
            let mut c = Block::zeros(0, 0);
            let single = if operator.single_precision() { precision(*single) } else { Precision::Double };
            let rounding = operator.covariance(single, &mut c)?;
            let (d, n) = (matrix.n_cols(), matrix.n_rows() as f64);
            let triangle = c.values().chunks_exact(d).enumerate().flat_map(|(i, row)| &row[..=i]);
            answer.tell_sums(rounding, triangle.map(|x| x * n));
        }
        (ROWS, rest) if rest.len() >= count => {
            let (starts, rows) = rest.split_at(count);
            let first = starts[index] as usize;
            let own = first..first.saturating_add(matrix.n_rows());
            let mine: Vec<usize> =
                rows.iter().map(|row| *row as usize).filter(|row| own.contains(row)).collect();
            let places: Vec<usize> = mine.iter().map(|row| row - first).collect();
            answer.tell_rows(&mine, &matrix.select_rows(&places));
        }
        _ => return Err(not_a_task()),
    }
    Ok(answer.encode())
}

fn precision(single: f64) -> Precision {
    if single > 0.0 { Precision::Single } else { Precision::Double }
}

fn not_a_task() -> Error {
    Error::Communication("a partition was given a task that is none for its columns".into())
}
