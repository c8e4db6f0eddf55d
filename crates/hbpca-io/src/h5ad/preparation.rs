//! What becomes of rows on their way: counts brought to a total and their logarithms taken, then genes left out.

use hbpca::{CountTransform, Real};
use rayon::prelude::*;

use crate::ReadError;
use crate::block::{Layout, RowBlock, Values};
use crate::element::{Element, Number};

/// Entries that one thread takes at a time.
const ENTRIES: usize = 1 << 14;
/// Stands for a column that is left out.
const OUT: u32 = u32::MAX;

/// The steps, in the order in which they are done.
#[derive(Debug)]
pub(crate) struct Preparation {
    counts: CountTransform,
    mask: Option<ColumnMask>,
    /// Whether what comes out is rounded to single precision: whole numbers are, once they are none any more.
    narrows: bool,
    single: bool,
}

/// Columns that are used.
#[derive(Debug)]
struct ColumnMask {
    positions: Vec<usize>,
    /// For each column its new number, or [`OUT`].
    slots: Vec<u32>,
}

impl Preparation {
    pub(super) fn new(counts: CountTransform, mask: Option<Vec<bool>>, element: Element) -> Self {
        let mask = mask.map(|mask| {
            let positions: Vec<usize> = (0..mask.len()).filter(|&j| mask[j]).collect();
            let mut slots = vec![OUT; mask.len()];
            positions.iter().zip(0..).for_each(|(&j, slot)| slots[j] = slot);
            ColumnMask { positions, slots }
        });
        let narrows = !counts.is_identity() && element.is_integer();
        let narrow =
            matches!(element.number, Number::I8 | Number::U8 | Number::I16 | Number::U16 | Number::F32);
        Self { counts, mask, narrows, single: narrow || narrows }
    }

    pub(super) fn is_masked(&self) -> bool {
        self.mask.is_some()
    }

    pub(super) fn is_single(&self) -> bool {
        self.single
    }

    pub(super) fn n_columns(&self, all: usize) -> usize {
        self.mask.as_ref().map_or(all, |mask| mask.positions.len())
    }

    /// Those of all names that are used.
    pub(super) fn names(&self, mut all: Vec<String>) -> Vec<String> {
        match &self.mask {
            None => all,
            Some(mask) => mask.positions.iter().map(|&j| std::mem::take(&mut all[j])).collect(),
        }
    }

    /// How many of these columns are used.
    pub(super) fn count(&self, columns: &[u32]) -> u64 {
        match &self.mask {
            None => columns.len() as u64,
            Some(mask) => columns.par_iter().filter(|&&j| mask.slots[j as usize] != OUT).count() as u64,
        }
    }

    /// Prepares rows, of which the first is number `first` of the file.
    pub(super) fn apply(&self, block: RowBlock, first: usize, file: &str) -> Result<RowBlock, ReadError> {
        let RowBlock { layout, values, .. } = block;
        let (layout, values) = match values {
            Values::F32(x) => {
                let (layout, x) = self.prepared(layout, x, first, file)?;
                (layout, Values::F32(x))
            }
            Values::F64(x) => {
                let (layout, x) = self.prepared(layout, x, first, file)?;
                (layout, Values::F64(x))
            }
        };
        let values = match values {
            Values::F64(x) if self.narrows => Values::F32(x.par_iter().map(|&x| x as f32).collect()),
            other => other,
        };
        Ok(RowBlock { layout, values, ..RowBlock::dense(1, Values::F32(Vec::new())) })
    }

    fn prepared<T: Real>(
        &self,
        layout: Layout,
        values: Vec<T>,
        first: usize,
        file: &str,
    ) -> Result<(Layout, Vec<T>), ReadError> {
        let factors = self.factors(&layout, &values, first, file)?;
        let (layout, mut values) = match &self.mask {
            None => (layout, values),
            Some(mask) => mask.of(layout, values),
        };
        if let Some(factors) = factors {
            for_rows(&layout, &mut values, |l, row| {
                for x in row {
                    *x = T::from_f64(self.counts.of(x.to_f64(), factors[l]));
                }
            });
        }
        Ok((layout, values))
    }

    /// The factor of every row, over all columns; nothing where values stay what they are.
    fn factors<T: Real>(
        &self,
        layout: &Layout,
        values: &[T],
        first: usize,
        file: &str,
    ) -> Result<Option<Vec<f64>>, ReadError> {
        if self.counts.is_identity() {
            return Ok(None);
        }
        let row = |l: usize| &values[range(layout, l)];
        let factor = |l: usize| match self.counts.first_refused(row(l)) {
            None => Ok(self.counts.factor(row(l))),
            Some(at) => Err((l, at)),
        };
        let all: Vec<Result<f64, (usize, usize)>> =
            (0..n_rows(layout, values.len())).into_par_iter().map(factor).collect();
        all.into_iter().collect::<Result<Vec<_>, _>>().map(Some).map_err(|(l, at)| {
            let entry = range(layout, l).start + at;
            let column = match layout {
                Layout::Dense(_) => at,
                Layout::Sparse { columns, .. } => columns[entry] as usize,
            };
            let value = values[entry].to_f64();
            ReadError::option(
                file,
                format!(
                    "row {}, column {} holds {value}: --normalize and --log1p are for counts, which are 0 or more; name the layer that has them \
                     with --layer, or leave out both flags",
                    first + l + 1,
                    column + 1
                ),
            )
        })
    }
}

impl ColumnMask {
    /// The columns that are used, in their order.
    fn of<T: Real>(&self, layout: Layout, mut values: Vec<T>) -> (Layout, Vec<T>) {
        match layout {
            Layout::Dense(d) => {
                let rows = values.chunks_exact(d);
                let kept = rows.flat_map(|row| self.positions.iter().map(|&j| row[j])).collect();
                (Layout::Dense(self.positions.len()), kept)
            }
            Layout::Sparse { mut row_ends, mut columns } => {
                let (mut kept, mut start) = (0, 0);
                for end in &mut row_ends {
                    for at in start..*end {
                        let slot = self.slots[columns[at] as usize];
                        if slot != OUT {
                            (columns[kept], values[kept]) = (slot, values[at]);
                            kept += 1;
                        }
                    }
                    start = *end;
                    *end = kept;
                }
                columns.truncate(kept);
                values.truncate(kept);
                (Layout::Sparse { row_ends, columns }, values)
            }
        }
    }
}

fn n_rows(layout: &Layout, n_values: usize) -> usize {
    match layout {
        Layout::Dense(d) => n_values.checked_div(*d).unwrap_or(0),
        Layout::Sparse { row_ends, .. } => row_ends.len(),
    }
}

/// The entries of row l.
fn range(layout: &Layout, l: usize) -> std::ops::Range<usize> {
    match layout {
        Layout::Dense(d) => l * d..(l + 1) * d,
        Layout::Sparse { row_ends, .. } => (if l == 0 { 0 } else { row_ends[l - 1] })..row_ends[l],
    }
}

/// Hands every row with its number to `each`, many rows at a time to one thread.
fn for_rows<T: Send>(layout: &Layout, mut values: &mut [T], each: impl Fn(usize, &mut [T]) + Sync) {
    let n = n_rows(layout, values.len());
    let mut tasks = Vec::new();
    let (mut l, mut done) = (0, 0);
    while l < n {
        let first = l;
        while l < n && (l == first || range(layout, l).end - done <= ENTRIES) {
            l += 1;
        }
        let end = range(layout, l - 1).end;
        let (these, rest) = values.split_at_mut(end - done);
        tasks.push((first..l, these));
        (values, done) = (rest, end);
    }
    tasks.into_par_iter().for_each(|(rows, these)| {
        let start = range(layout, rows.start).start;
        for l in rows {
            let row = range(layout, l);
            each(l, &mut these[row.start - start..row.end - start]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINGLE: Element = Element { number: Number::F32, big_endian: false };

    fn sparse(row_ends: &[usize], columns: &[u32], values: Values) -> RowBlock {
        let layout = Layout::Sparse { row_ends: row_ends.to_vec(), columns: columns.to_vec() };
        RowBlock { layout, values, ..RowBlock::dense(1, Values::F32(Vec::new())) }
    }

    #[test]
    fn totals_are_taken_over_all_genes_and_the_mask_comes_after() {
        let counts = CountTransform { total: Some(10.0), log1p: false };
        let mask = vec![false, true, true];
        let preparation = Preparation::new(counts, Some(mask), SINGLE);
        // (6, 2, ·), (), (·, ·, 5)
        let block = sparse(&[2, 2, 3], &[0, 1, 2], Values::F32(vec![6.0, 2.0, 5.0]));
        let block = preparation.apply(block, 0, "x").unwrap();
        assert_eq!(block.layout, Layout::Sparse { row_ends: vec![1, 1, 2], columns: vec![0, 1] });
        assert_eq!(block.values, Values::F32(vec![2.5, 10.0]));
        let dense = RowBlock::dense(3, Values::F32(vec![6.0, 2.0, 0.0, 0.0, 0.0, 5.0]));
        let dense = preparation.apply(dense, 0, "x").unwrap();
        assert_eq!((dense.layout, dense.values), (Layout::Dense(2), Values::F32(vec![2.5, 0.0, 0.0, 10.0])));
        assert_eq!(preparation.count(&[0, 1, 2, 0]), 2);
    }

    #[test]
    fn values_that_are_no_counts_are_placed() {
        let counts = CountTransform { total: None, log1p: true };
        let preparation = Preparation::new(counts, None, SINGLE);
        let block = sparse(&[1, 1, 3], &[4, 0, 7], Values::F32(vec![1.0, 2.0, -0.5]));
        let text = preparation.apply(block, 100, "x").unwrap_err().to_string();
        assert!(text.starts_with("x: row 103, column 8 holds -0.5"), "{text}");
    }

    #[test]
    fn many_rows_are_cut_into_tasks_that_cover_all() {
        let counts = CountTransform { total: None, log1p: true };
        let element = Element { number: Number::I64, big_endian: false };
        let preparation = Preparation::new(counts, None, element);
        let n = 5 * ENTRIES;
        // Rows of 0, 1, …, 6 entries in turn, one of them very long.
        let mut ends = vec![2 * ENTRIES];
        while ends[ends.len() - 1] < n {
            ends.push((ends[ends.len() - 1] + ends.len() % 7).min(n));
        }
        let values: Vec<f64> = (0..n).map(|i| (i % 9) as f64).collect();
        let expected: Vec<f32> = values.iter().map(|x| x.ln_1p() as f32).collect();
        let block = preparation.apply(sparse(&ends, &vec![0; n], Values::F64(values)), 0, "x").unwrap();
        assert_eq!(block.values, Values::F32(expected));
        assert!(preparation.is_single());
    }
}
