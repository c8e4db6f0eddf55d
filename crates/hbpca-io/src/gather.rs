//! Rows gathered into one matrix in memory.

use std::borrow::Cow;

use hbpca::{Csr, Dense, Matrix};

use crate::block::{Labels, Layout, RowBlock, Values};
use crate::source::{Numbering, Stated};
use crate::{MissingFields, Precision, ReadError};

/// Facts about rows that were seen: enough to know the matrix before holding it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) n_rows: usize,
    pub(crate) sparse: Option<bool>,
    /// d of dense rows, or as stated by a sparse file.
    stated_columns: Option<usize>,
    /// Columns of entries whose file numbers them from 0 or 1.
    lowest_undecided: Option<u32>,
    highest_undecided: u32,
    /// The number of the first of these columns, where a model says it.
    pub(crate) first_of_model: Option<u32>,
}

impl Shape {
    /// Takes note of what a part says about itself.
    pub(crate) fn state(&mut self, stated: &Stated, part: &str) -> Result<(), ReadError> {
        if let Some(d) = stated.n_columns {
            self.same_columns(d, part)?;
        }
        Ok(())
    }

    fn same_columns(&mut self, d: usize, part: &str) -> Result<(), ReadError> {
        match self.stated_columns.replace(d) {
            Some(before) if before != d => Err(ReadError::malformed(
                part,
                format!("{d} columns, but the parts before it have {before}: parts of one matrix must agree"),
            )),
            _ => Ok(()),
        }
    }

    /// Takes note of rows.
    pub(crate) fn add(
        &mut self,
        block: &RowBlock,
        numbering: Numbering,
        part: &str,
    ) -> Result<(), ReadError> {
        let sparse = matches!(block.layout, Layout::Sparse { .. });
        if self.sparse.replace(sparse).is_some_and(|before| before != sparse) {
            return Err(ReadError::malformed(
                part,
                "dense and sparse parts cannot make one matrix: convert them to one kind first",
            ));
        }
        self.n_rows += block.n_rows();
        match &block.layout {
            Layout::Dense(d) => self.same_columns(*d, part)?,
            Layout::Sparse { row_ends, columns } if numbering == Numbering::FromZeroOrOne => {
                // Columns ascend within a row: the ends of the rows are enough.
                let mut start = 0;
                for &end in row_ends {
                    if end > start {
                        let lowest = self.lowest_undecided.unwrap_or(u32::MAX);
                        self.lowest_undecided = Some(lowest.min(columns[start]));
                        self.highest_undecided = self.highest_undecided.max(columns[end - 1]);
                    }
                    start = end;
                }
            }
            Layout::Sparse { .. } => {}
        }
        Ok(())
    }

    /// The number of the first column where the file left it open.
    pub(crate) fn first_undecided(&self) -> u32 {
        self.first_of_model.unwrap_or_else(|| u32::from(self.lowest_undecided != Some(0)))
    }

    /// The same, nothing where no file left it open.
    pub(crate) fn first_column(&self) -> Option<u32> {
        self.lowest_undecided.map(|_| self.first_undecided())
    }

    /// d, once all rows were seen.
    pub(crate) fn n_columns(&self, file: &str) -> Result<usize, ReadError> {
        if self.n_rows == 0 {
            return Err(ReadError::malformed(file, "there are no rows"));
        }
        if self.lowest_undecided < self.first_of_model && self.lowest_undecided.is_some() {
            return Err(ReadError::malformed(file, "it has an index 0, but the model counts columns from 1"));
        }
        let seen = match self.lowest_undecided {
            Some(_) => self.highest_undecided as usize + 1 - self.first_undecided() as usize,
            None => 0,
        };
        let d = self.stated_columns.unwrap_or(seen);
        if seen > d {
            return Err(ReadError::option(
                file,
                format!("the indices count from 0 and need {seen} columns, but {d} were asked for"),
            ));
        }
        if d == 0 {
            return Err(ReadError::malformed(file, "there are no columns"));
        }
        Ok(d)
    }
}

/// A matrix that grows.
pub(crate) struct Gather {
    precision: Precision,
    pub(crate) shape: Shape,
    row_starts: Vec<usize>,
    columns: Vec<u32>,
    values: Values,
    labels: Option<Labels>,
    kept: Vec<Labels>,
    /// Entries before this one are numbered; those of the current part may be waiting to be.
    undecided: Vec<std::ops::Range<usize>>,
    /// Whether numbers were rounded to single precision.
    pub(crate) narrowed: bool,
    missing: MissingFields,
}

impl Gather {
    pub(crate) fn new(precision: Precision) -> Self {
        let values =
            if precision == Precision::F64 { Values::F64(Vec::new()) } else { Values::F32(Vec::new()) };
        Self {
            precision,
            shape: Shape::default(),
            row_starts: vec![0],
            columns: Vec::new(),
            values,
            labels: None,
            kept: Vec::new(),
            undecided: Vec::new(),
            narrowed: false,
            missing: MissingFields::Refused,
        }
    }

    /// The same, with this done about missing values.
    pub(crate) fn holding(self, missing: MissingFields) -> Self {
        Self { missing, ..self }
    }

    /// Adds rows; `rows_before` of the same part came earlier.
    pub(crate) fn add(
        &mut self,
        block: RowBlock,
        stated: &Stated,
        part: &str,
        rows_before: usize,
    ) -> Result<(), ReadError> {
        let numbering = stated.numbering;
        self.shape.add(&block, numbering, part)?;
        let block = if stated.finite {
            block
        } else {
            checked(block, self.precision, self.missing, part, rows_before)?
        };
        self.narrowed |= block.narrowed;
        let labels_so_far = self.labels.as_ref().map_or(0, Labels::len);
        if let Some(labels) = block.labels
            && labels_so_far + labels.len() == self.shape.n_rows
        {
            match &mut self.labels {
                Some(all) => all.append(labels),
                None => self.labels = Some(labels),
            }
        }
        if self.kept.is_empty() {
            self.kept = block.kept;
        } else {
            self.kept.iter_mut().zip(block.kept).for_each(|(all, more)| all.append(more));
        }
        if let Layout::Sparse { row_ends, columns } = block.layout {
            let before = self.columns.len();
            self.row_starts.extend(row_ends.iter().map(|end| before + end));
            append(&mut self.columns, columns);
            if numbering == Numbering::FromZeroOrOne {
                match self.undecided.last_mut() {
                    Some(last) if last.end == before => last.end = self.columns.len(),
                    _ => self.undecided.push(before..self.columns.len()),
                }
            }
        }
        self.values.append(block.values);
        Ok(())
    }

    /// The columns that travel beside the matrix.
    pub(crate) fn take_kept(&mut self) -> Vec<Labels> {
        std::mem::take(&mut self.kept)
    }

    /// The matrix and its labels; labels that not every row has are dropped.
    pub(crate) fn finish(mut self, file: &str) -> Result<(Matrix<'static>, Option<Labels>), ReadError> {
        let (n, d) = (self.shape.n_rows, self.shape.n_columns(file)?);
        let labels = self.labels.filter(|labels| labels.len() == n);
        let first = self.shape.first_undecided();
        if first > 0 {
            for range in self.undecided {
                self.columns[range].iter_mut().for_each(|j| *j -= first);
            }
        }
        let wrong = |error: hbpca::Error| ReadError::malformed(file, error.to_string());
        // Every value was checked when it came.
        let matrix = match (self.shape.sparse, self.values) {
            (Some(true), Values::F32(x)) => {
                Csr::deferring_finite_check(d, self.row_starts, self.columns, x).map_err(wrong)?.into()
            }
            (Some(true), Values::F64(x)) => {
                Csr::deferring_finite_check(d, self.row_starts, self.columns, x).map_err(wrong)?.into()
            }
            (_, Values::F32(x)) => Dense::deferring_finite_check(Cow::Owned(x), n, d).map_err(wrong)?.into(),
            (_, Values::F64(x)) => Dense::deferring_finite_check(Cow::Owned(x), n, d).map_err(wrong)?.into(),
        };
        Ok((matrix, labels))
    }
}

/// Adds `more` at the end, without copying it when it comes first.
fn append(all: &mut Vec<u32>, more: Vec<u32>) {
    if all.is_empty() { *all = more } else { all.extend_from_slice(&more) }
}

/// The block in the precision asked for, every value finite, or missing where that is allowed.
pub(crate) fn checked(
    mut block: RowBlock,
    precision: Precision,
    missing: MissingFields,
    part: &str,
    rows_before: usize,
) -> Result<RowBlock, ReadError> {
    let not_finite = |block: &RowBlock, at: usize, value: f64| {
        let (row, column) = block.place(at);
        ReadError::Entry {
            file: part.to_owned(),
            row: (rows_before + row) as u64 + 1,
            column: column as u64 + 1,
            value: value.to_string(),
        }
    };
    if let Some(at) = block.values.first_refused(missing) {
        return Err(not_finite(&block, at, block.values.get(at)));
    }
    if precision == Precision::F32
        && let Values::F64(wide) = &block.values
    {
        let narrow = Values::F32(wide.iter().map(|&x| x as f32).collect());
        if let Some(at) = narrow.first_refused(missing) {
            return Err(ReadError::option(
                part,
                format!("{} does not fit single precision: read it in double precision", wide[at]),
            ));
        }
        block.narrowed |= wide.iter().any(|&x| f64::from(x as f32).to_bits() != x.to_bits());
        block.values = narrow;
    }
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(d: usize, values: &[f64]) -> RowBlock {
        RowBlock::dense(d, Values::F64(values.to_vec()))
    }

    #[test]
    fn entries_that_are_not_finite_are_placed() {
        let mut all = Gather::new(Precision::Auto);
        all.add(dense(2, &[1.0, 2.0]), &Stated::default(), "f", 0).unwrap();
        let error = all.add(dense(2, &[1.0, f64::NAN]), &Stated::default(), "f", 1).unwrap_err();
        assert!(error.to_string().starts_with("f: row 2, column 2 holds NaN"));
    }

    #[test]
    fn values_too_large_for_single_precision_are_refused() {
        let mut all = Gather::new(Precision::F32);
        let error = all.add(dense(1, &[1e300]), &Stated::default(), "f", 0).unwrap_err();
        assert!(error.to_string().contains("does not fit single precision"));
    }

    #[test]
    fn parts_must_agree() {
        let mut all = Gather::new(Precision::Auto);
        all.add(dense(2, &[1.0, 2.0]), &Stated::default(), "a", 0).unwrap();
        let error = all.add(dense(3, &[1.0, 2.0, 3.0]), &Stated::default(), "b", 0).unwrap_err();
        assert!(error.to_string().starts_with("b: 3 columns, but the parts before it have 2"));
        let layout = Layout::Sparse { row_ends: vec![1], columns: vec![0] };
        let sparse = RowBlock {
            layout,
            values: Values::F64(vec![1.0]),
            labels: None,
            kept: Vec::new(),
            narrowed: false,
        };
        let error = all.add(sparse, &Stated::default(), "c", 0).unwrap_err();
        assert!(error.to_string().starts_with("c: dense and sparse parts"));
    }
}
