//! Rows on their way from a file to a matrix, or to another file.

use std::borrow::Cow;

use hbpca::{Csr, Dense, Error, Matrix};
use rayon::prelude::*;

use crate::{MissingFields, Precision};

/// Numbers in one of the two types a matrix can have.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(x) => x.len(),
            Self::F64(x) => x.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Value number `at`, exactly.
    pub fn get(&self, at: usize) -> f64 {
        match self {
            Self::F32(x) => f64::from(x[at]),
            Self::F64(x) => x[at],
        }
    }

    /// Values read from text: f32 when that was asked for, or when it loses nothing and nothing was asked for.
    pub(crate) fn from_text(values: Vec<f64>, precision: Precision) -> Self {
        if precision == Precision::F64 || (precision == Precision::Auto && !all_f32(&values)) {
            return Self::F64(values);
        }
        Self::F32(values.iter().map(|&x| x as f32).collect())
    }

    /// No values of the same type, with room for `room`.
    pub(crate) fn empty_like(&self, room: usize) -> Self {
        match self {
            Self::F32(_) => Self::F32(Vec::with_capacity(room)),
            Self::F64(_) => Self::F64(Vec::with_capacity(room)),
        }
    }

    /// Adds a value, rounded to the type.
    pub(crate) fn push(&mut self, value: f64) {
        match self {
            Self::F32(x) => x.push(value as f32),
            Self::F64(x) => x.push(value),
        }
    }

    /// Adds `more` at the end, without copying it when it comes first and no room was made; f32 meeting f64 becomes f64.
    pub(crate) fn append(&mut self, more: Self) {
        match (&mut *self, more) {
            (Self::F32(all), Self::F32(more)) if all.capacity() == 0 => *all = more,
            (Self::F64(all), Self::F64(more)) if all.capacity() == 0 => *all = more,
            (Self::F32(all), Self::F32(more)) => all.extend_from_slice(&more),
            (Self::F64(all), Self::F64(more)) => all.extend_from_slice(&more),
            (Self::F64(all), Self::F32(more)) => all.extend(more.into_iter().map(f64::from)),
            (Self::F32(all), Self::F64(more)) => {
                if all.capacity() == 0 {
                    *self = Self::F64(more);
                } else {
                    // As much room as there was, because the caller that made it knew how much will come.
                    let mut wide = Vec::with_capacity(all.capacity().max(all.len() + more.len()));
                    wide.extend(all.iter().copied().map(f64::from));
                    wide.extend_from_slice(&more);
                    *self = Self::F64(wide);
                }
            }
        }
    }

    /// The position of the first value that is refused: an infinity, and NaN unless that is a missing value.
    pub(crate) fn first_refused(&self, missing: MissingFields) -> Option<usize> {
        let first = self.first_not_finite()?;
        if missing == MissingFields::Refused {
            return Some(first);
        }
        (first..self.len()).find(|&at| self.get(at).is_infinite())
    }

    /// The position of the first NaN or infinity.
    pub(crate) fn first_not_finite(&self) -> Option<usize> {
        const CHUNK: usize = 1 << 14;
        // 0·x is 0 for finite x and NaN otherwise: sums of such products vectorise, `position` does not.
        match self {
            Self::F32(x) => x.par_chunks(CHUNK).enumerate().find_map_first(|(c, chunk)| {
                let sum: f32 = lanes(chunk, 0.0, |x| x * 0.0);
                if sum == 0.0 {
                    None
                } else {
                    chunk.iter().position(|x| !x.is_finite()).map(|i| c * CHUNK + i)
                }
            }),
            Self::F64(x) => x.par_chunks(CHUNK).enumerate().find_map_first(|(c, chunk)| {
                let sum: f64 = lanes(chunk, 0.0, |x| x * 0.0);
                if sum == 0.0 {
                    None
                } else {
                    chunk.iter().position(|x| !x.is_finite()).map(|i| c * CHUNK + i)
                }
            }),
        }
    }
}

/// Whether every value is exactly an f32; blocks are compared as a whole, which vectorises.
fn all_f32(values: &[f64]) -> bool {
    let exact = |x: &f64| f64::from(*x as f32).to_bits() == x.to_bits();
    values.chunks(256).all(|chunk| chunk.iter().fold(true, |all, x| all & exact(x)))
}

/// Σ f(x) in eight independent sums.
fn lanes<T: Copy + std::ops::Add<Output = T>>(values: &[T], zero: T, f: impl Fn(T) -> T) -> T {
    let mut sums = [zero; 8];
    let (blocks, rest) = values.as_chunks::<8>();
    for block in blocks {
        for (sum, &x) in sums.iter_mut().zip(block) {
            *sum = *sum + f(x);
        }
    }
    let total = sums.into_iter().fold(zero, |a, b| a + b);
    rest.iter().fold(total, |a, &x| a + f(x))
}

/// Labels that came with the rows. They are no features; they are kept for plots and for writing.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// One number a row.
    Numbers(Vec<f64>),
    /// One text a row: class names, or several labels such as `1,4`.
    Texts(Vec<String>),
}

impl Labels {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(x) => x.len(),
            Self::Texts(x) => x.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a label; the first one that is no number turns all into texts.
    pub(crate) fn push_text(&mut self, text: String) {
        self.texts().push(text);
    }

    /// Adds `more` at the end.
    pub(crate) fn append(&mut self, mut more: Self) {
        match (&mut *self, &mut more) {
            (Self::Numbers(all), Self::Numbers(more)) => all.append(more),
            _ => self.texts().append(more.texts()),
        }
    }

    /// `n` labels from number `start` on, if there are as many.
    pub(crate) fn slice(&self, start: usize, n: usize) -> Option<Self> {
        match self {
            Self::Numbers(x) => x.get(start..start + n).map(|x| Self::Numbers(x.to_vec())),
            Self::Texts(x) => x.get(start..start + n).map(|x| Self::Texts(x.to_vec())),
        }
    }

    /// The labels as texts, turned into them if they were numbers.
    fn texts(&mut self) -> &mut Vec<String> {
        if let Self::Numbers(numbers) = self {
            *self = Self::Texts(numbers.iter().map(f64::to_string).collect());
        }
        match self {
            Self::Texts(texts) => texts,
            Self::Numbers(_) => unreachable!("just turned into texts"),
        }
    }

    /// Label `row` as a file shows it.
    pub fn text(&self, row: usize) -> Cow<'_, str> {
        match self {
            Self::Numbers(x) => Cow::Owned(x[row].to_string()),
            Self::Texts(x) => Cow::Borrowed(&x[row]),
        }
    }
}

/// How the values of a block lie in its rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// Every row has this many values.
    Dense(usize),
    /// Row l ends before entry `row_ends[l]`; each entry has a column, ascending within a row.
    Sparse {
        /// Where each row ends.
        row_ends: Vec<usize>,
        /// The column of each entry, as the file numbers it.
        columns: Vec<u32>,
    },
}

/// Some consecutive rows of a file.
#[derive(Clone, Debug)]
pub struct RowBlock {
    /// How the values lie in rows.
    pub layout: Layout,
    /// The values.
    pub values: Values,
    /// One label a row, if the file has them.
    pub labels: Option<Labels>,
    /// Columns that travel beside the matrix.
    pub kept: Vec<Labels>,
    /// Whether values were rounded to single precision.
    pub narrowed: bool,
}

impl RowBlock {
    /// Dense rows of `d` values.
    pub(crate) fn dense(d: usize, values: Values) -> Self {
        Self { layout: Layout::Dense(d), values, labels: None, kept: Vec::new(), narrowed: false }
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        match &self.layout {
            Layout::Dense(d) => self.values.len().checked_div(*d).unwrap_or(0),
            Layout::Sparse { row_ends, .. } => row_ends.len(),
        }
    }

    /// Row and column of entry number `at`, from 0.
    pub(crate) fn place(&self, at: usize) -> (usize, usize) {
        match &self.layout {
            Layout::Dense(d) => (at / d, at % d),
            Layout::Sparse { row_ends, columns } => {
                (row_ends.partition_point(|&end| end <= at), columns[at] as usize)
            }
        }
    }

    /// The block as a matrix of `d` columns whose first is numbered `first_column` in the block.
    pub(crate) fn into_matrix(self, d: usize, first_column: u32) -> Result<Matrix<'static>, Error> {
        let n = self.n_rows();
        match (self.layout, self.values) {
            (Layout::Dense(d), Values::F32(x)) => Ok(Dense::new(x, n, d)?.into()),
            (Layout::Dense(d), Values::F64(x)) => Ok(Dense::new(x, n, d)?.into()),
            (Layout::Sparse { row_ends, mut columns }, values) => {
                for j in &mut columns {
                    *j = j.saturating_sub(first_column);
                }
                let starts: Vec<usize> = std::iter::once(0).chain(row_ends).collect();
                match values {
                    Values::F32(x) => Ok(Csr::new(d, starts, columns, x)?.into()),
                    Values::F64(x) => Ok(Csr::new(d, starts, columns, x)?.into()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_precision_widens_when_it_meets_double() {
        let mut all = Values::F32(vec![0.5]);
        all.append(Values::F32(vec![1.5]));
        all.append(Values::F64(vec![0.1]));
        all.append(Values::F32(vec![2.0]));
        assert_eq!(all, Values::F64(vec![0.5, 1.5, 0.1, 2.0]));
    }

    #[test]
    fn what_comes_first_is_not_copied() {
        let more = vec![1.5_f32; 9];
        let place = more.as_ptr();
        let mut all = Values::F32(Vec::new());
        all.append(Values::F32(more));
        assert!(matches!(&all, Values::F32(x) if x.as_ptr() == place));
    }

    #[test]
    fn the_first_value_that_is_not_finite_is_found() {
        let mut x = vec![1.0_f32; 10_000];
        assert_eq!(Values::F32(x.clone()).first_not_finite(), None);
        x[4099] = f32::INFINITY;
        x[9000] = f32::NAN;
        assert_eq!(Values::F32(x).first_not_finite(), Some(4099));
        assert_eq!(Values::F64(vec![f64::MAX, f64::NAN]).first_not_finite(), Some(1));
    }

    #[test]
    fn labels_become_texts_as_soon_as_one_is() {
        let mut labels = Labels::Numbers(vec![1.0, 2.5]);
        labels.append(Labels::Numbers(vec![3.0]));
        assert_eq!(labels.len(), 3);
        labels.append(Labels::Texts(vec!["cat".into()]));
        labels.push_text("dog".into());
        assert_eq!(labels, Labels::Texts(["1", "2.5", "3", "cat", "dog"].map(String::from).to_vec()));
        assert_eq!(labels.text(1), "2.5");
    }

    #[test]
    fn entries_know_their_place() {
        let layout = Layout::Sparse { row_ends: vec![0, 2, 2, 3], columns: vec![4, 7, 1] };
        let block = RowBlock {
            layout,
            values: Values::F64(vec![1.0; 3]),
            labels: None,
            kept: Vec::new(),
            narrowed: false,
        };
        assert_eq!((block.n_rows(), block.place(1), block.place(2)), (4, (1, 7), (3, 1)));
        assert_eq!(RowBlock::dense(3, Values::F64(vec![0.0; 6])).place(4), (1, 1));
    }
}
