//! What a partition answers, and how answers are combined.
//!
//! ```text
//! head          columns, partitions, sparse, entries, single, bound (ρ, M, fixed)
//! partitions    answers (one), rows and hash of each; zeros where it is another answer's
//! values        sums, or a pivot with the statistics relative to it, or rows: the number of each, how many numbers follow, and these
//! ```
//!
//! Statistics are told relative to a row of the partition, as everywhere: combining first moves the means of one to the pivot of the other, by
//! the difference of two rows, which rounds by no more than the spread does.

use crate::Error;
use crate::columns::ColumnStatistics;
use crate::matrix::{Matrix, hash_of_bits};
use crate::operator::distributed::rows_sent;
use crate::rounding::RoundingBound;

const HEAD: usize = 9;
/// Numbers that are told of each partition.
pub(super) const TOLD: usize = 4;
const SURVEYS: f64 = 0.0;
const SUMS: f64 = 1.0;
const ROWS: f64 = 2.0;

/// The answer of one partition, or of several combined.
#[derive(Clone, Debug)]
pub struct Answer {
    head: [f64; HEAD],
    partitions: Vec<f64>,
    values: Vec<f64>,
}

impl Answer {
    /// Nothing told yet, but whose it is.
    pub(super) fn of(matrix: &Matrix<'_>, index: usize, count: usize) -> Self {
        let flag = |x: bool| f64::from(u8::from(x));
        let single = matches!(matrix, Matrix::DenseF32(_) | Matrix::CsrF32(_));
        let (d, entries) = (matrix.n_cols() as f64, matrix.nnz() as f64);
        let head = [SURVEYS, d, count as f64, flag(matrix.is_sparse()), entries, flag(single), 0.0, 0.0, 0.0];
        let mut partitions = vec![0.0; TOLD * count];
        let hash = hash_of_bits(matrix);
        let own = [1.0, matrix.n_rows() as f64, (hash >> 32) as f64, (hash & 0xffff_ffff) as f64];
        partitions[TOLD * index..][..TOLD].copy_from_slice(&own);
        Self { head, partitions, values: Vec::new() }
    }

    pub(super) fn tell_statistics(&mut self, pivot: &[f64], relative: &ColumnStatistics) {
        self.head[0] = SURVEYS;
        self.values = [pivot, &relative.to_flat()].concat();
    }

    pub(super) fn tell_sums(&mut self, rounding: RoundingBound, sums: impl Iterator<Item = f64>) {
        self.head[0] = SUMS;
        self.head[HEAD - 3..].copy_from_slice(&rounding.parts());
        self.values = sums.collect();
    }

    pub(super) fn tell_rows(&mut self, numbers: &[usize], rows: &Matrix<'_>) {
        self.head[0] = ROWS;
        for (place, number) in numbers.iter().enumerate() {
            let row = rows_sent::encode(&rows.select_rows(&[place]), rows.is_sparse());
            self.values.extend([*number as f64, row.len() as f64]);
            self.values.extend(row);
        }
    }

    /// As numbers.
    pub fn encode(&self) -> Vec<f64> {
        [&self.head[..], &self.partitions, &self.values].concat()
    }

    /// The inverse of [`encode`](Self::encode).
    pub fn decode(numbers: &[f64]) -> Result<Self, Error> {
        let count = numbers.get(2).map_or(0, |count| *count as usize);
        let from = HEAD.saturating_add(count.saturating_mul(TOLD));
        let (Some(head), Some(partitions)) = (numbers.first_chunk(), numbers.get(HEAD..from)) else {
            return Err(Error::Communication("what a partition answered is no answer".into()));
        };
        Ok(Self { head: *head, partitions: partitions.to_vec(), values: numbers[from..].to_vec() })
    }

    fn tells_sums(&self) -> bool {
        self.head[0] as u8 == SUMS as u8
    }

    fn tells_rows(&self) -> bool {
        self.head[0] as u8 == ROWS as u8
    }

    /// The rows that were told, in the order of their numbers.
    pub(super) fn rows(&self) -> Result<(Vec<usize>, Matrix<'static>), Error> {
        let not_rows = || Error::Communication("what partitions answered are no rows".into());
        let mut found: Vec<(usize, &[f64])> = Vec::new();
        let mut rest = if self.tells_rows() { &self.values[..] } else { return Err(not_rows()) };
        while let [number, length, more @ ..] = rest {
            let (row, others) = more.split_at_checked(*length as usize).ok_or_else(not_rows)?;
            found.push((*number as usize, row));
            rest = others;
        }
        if !rest.is_empty() {
            return Err(not_rows());
        }
        found.sort_unstable_by_key(|(number, _)| *number);
        let (numbers, rows): (Vec<usize>, Vec<&[f64]>) = found.into_iter().unzip();
        let d = self.head[1] as usize;
        let matrix = rows_sent::decode(rows.concat(), numbers.len(), d, self.is_sparse())?;
        Ok((numbers, matrix))
    }

    /// Rows, and two halves of the hash, of each of `count` partitions. Refuses one that did not answer, or more than once.
    pub(super) fn partitions(&self, count: usize) -> Result<Vec<[usize; TOLD - 1]>, Error> {
        if self.partitions.len() != TOLD * count {
            return Err(Error::shape("partitions that answered", count, self.partitions.len() / TOLD));
        }
        let told = self.partitions.chunks_exact(TOLD).enumerate();
        told.map(|(i, told)| match told[0] as usize {
            1 => Ok([told[1], told[2], told[3]].map(|x| x as usize)),
            0 => Err(Error::Communication(format!("partition {i} (counted from 0) did not answer"))),
            n => Err(Error::Communication(format!("partition {i} (counted from 0) answered {n} times"))),
        })
        .collect()
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.head[3] > 0.0
    }

    pub(super) fn entries(&self) -> usize {
        self.head[4] as usize
    }

    /// Whether all partitions have products in single precision.
    pub(super) fn has_single(&self) -> bool {
        self.head[5] > 0.0
    }

    /// The bound of the partition that rounds most: relative to the moment of all rows, it bounds the mean over all of them.
    pub(super) fn rounding(&self) -> RoundingBound {
        RoundingBound::of_parts([self.head[6], self.head[7], self.head[8]])
    }

    pub(super) fn sums(&self, length: usize) -> Result<&[f64], Error> {
        let found = self.values.len();
        if self.tells_sums() && found == length {
            return Ok(&self.values);
        }
        Err(Error::shape("sums that partitions answered", length, found))
    }

    pub(super) fn into_statistics(self) -> Result<ColumnStatistics, Error> {
        let d = self.head[1] as usize;
        if self.tells_sums() || self.tells_rows() || self.values.len() != 5 * d + 2 {
            return Err(Error::shape("statistics that partitions answered", 5 * d + 2, self.values.len()));
        }
        let (pivot, flat) = self.values.split_at(d);
        ColumnStatistics::from_flat(flat).about_zero(pivot)
    }

    fn add(&mut self, other: &Self) -> Result<(), Error> {
        let (mine, theirs) = (&self.head, &other.head);
        let sizes = |head: &[f64; HEAD]| [head[0], head[2]].map(|x| x as usize);
        if mine[1] as usize != theirs[1] as usize {
            let (mine, theirs) = (mine[1], theirs[1]);
            return Err(Error::Communication(format!(
                "partitions have {mine} and {theirs} columns; all must have the same"
            )));
        }
        if (mine[3] > 0.0) != (theirs[3] > 0.0) {
            return Err(Error::Communication(
                "some partitions are sparse and some dense; make all alike".into(),
            ));
        }
        let alike = self.tells_rows() || self.values.len() == other.values.len();
        if sizes(mine) != sizes(theirs) || !alike {
            return Err(Error::Communication("partitions answered different tasks".into()));
        }
        self.head[4] += other.head[4];
        self.head[5] = self.head[5].min(other.head[5]);
        for i in 6..HEAD {
            // NaN bounds nothing, and stays.
            self.head[i] = if other.head[i] > self.head[i] || other.head[i].is_nan() {
                other.head[i]
            } else {
                self.head[i]
            };
        }
        let add = |mine: &mut [f64], theirs: &[f64]| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        };
        add(&mut self.partitions, &other.partitions);
        if self.tells_rows() {
            self.values.extend_from_slice(&other.values);
        } else if self.tells_sums() {
            add(&mut self.values, &other.values);
        } else {
            self.merge_statistics(other)?;
        }
        Ok(())
    }

    fn merge_statistics(&mut self, other: &Self) -> Result<(), Error> {
        let d = self.head[1] as usize;
        if self.values.len() != 5 * d + 2 {
            return Err(Error::shape("statistics that partitions answered", 5 * d + 2, self.values.len()));
        }
        let (pivot, flat) = self.values.split_at_mut(d);
        let (their_pivot, theirs) = other.values.split_at(d);
        let moved: Vec<f64> = their_pivot.iter().zip(&*pivot).map(|(theirs, mine)| theirs - mine).collect();
        let mut theirs = ColumnStatistics::from_flat(theirs);
        theirs.move_by(&moved);
        let mut merged = ColumnStatistics::from_flat(flat);
        merged.merge(&theirs);
        flat.copy_from_slice(&merged.to_flat());
        Ok(())
    }
}

/// Two encoded answers as one.
pub fn combine(mine: &[f64], theirs: &[f64]) -> Result<Vec<f64>, Error> {
    let mut mine = Answer::decode(mine)?;
    mine.add(&Answer::decode(theirs)?)?;
    Ok(mine.encode())
}
