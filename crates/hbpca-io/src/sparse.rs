//! Entries in any order into compressed rows: sorted by column, duplicates summed.

use rayon::prelude::*;

use crate::block::{Layout, RowBlock, Values};

/// Entries of an n-row matrix, each with its row and column.
pub(crate) struct Entries {
    pub(crate) n_rows: usize,
    pub(crate) rows: Vec<u32>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Values,
}

impl Entries {
    /// The rows, sorted. Every row number must be below `n_rows`.
    pub(crate) fn into_block(self) -> RowBlock {
        let Self { n_rows, rows, columns, values } = self;
        let mut starts = vec![0_usize; n_rows + 1];
        for &row in &rows {
            starts[row as usize + 1] += 1;
        }
        for l in 0..n_rows {
            starts[l + 1] += starts[l];
        }
        if rows.is_sorted() {
            drop(rows);
            return compressed(starts, columns, values);
        }
        let (columns, values) = match values {
            Values::F32(x) => {
                let (columns, x) = scattered(&starts, &rows, &columns, &x);
                (columns, Values::F32(x))
            }
            Values::F64(x) => {
                let (columns, x) = scattered(&starts, &rows, &columns, &x);
                (columns, Values::F64(x))
            }
        };
        compressed(starts, columns, values)
    }
}

/// Each entry at the next free place of its row.
fn scattered<T: Copy + Default>(
    starts: &[usize],
    rows: &[u32],
    columns: &[u32],
    values: &[T],
) -> (Vec<u32>, Vec<T>) {
    let mut next = starts[..starts.len() - 1].to_vec();
    let (mut sorted_columns, mut sorted_values) = (vec![0; columns.len()], vec![T::default(); values.len()]);
    for ((&row, &column), &value) in rows.iter().zip(columns).zip(values) {
        let at = &mut next[row as usize];
        sorted_columns[*at] = column;
        sorted_values[*at] = value;
        *at += 1;
    }
    (sorted_columns, sorted_values)
}

/// Compressed rows whose columns may be in any order, as a block in which they ascend.
pub(crate) fn compressed(starts: Vec<usize>, columns: Vec<u32>, values: Values) -> RowBlock {
    match values {
        Values::F32(x) => tidy(starts, columns, x, Values::F32),
        Values::F64(x) => tidy(starts, columns, x, Values::F64),
    }
}

fn tidy<T: Copy + Sync + std::ops::AddAssign>(
    mut starts: Vec<usize>,
    mut columns: Vec<u32>,
    mut values: Vec<T>,
    wrap: impl Fn(Vec<T>) -> Values,
) -> RowBlock {
    let is_tidy = starts.par_windows(2).all(|ends| ascends(&columns[ends[0]..ends[1]]));
    if !is_tidy {
        sort_rows(&mut starts, &mut columns, &mut values);
    }
    starts.remove(0);
    RowBlock {
        layout: Layout::Sparse { row_ends: starts, columns },
        values: wrap(values),
        labels: None,
        kept: Vec::new(),
        narrowed: false,
    }
}

/// Whether the columns of a row ascend strictly.
pub(crate) fn ascends(row: &[u32]) -> bool {
    row.windows(2).all(|pair| pair[0] < pair[1])
}

/// Sorts every row by column and sums duplicates.
pub(crate) fn sort_rows<T: Copy + std::ops::AddAssign>(
    starts: &mut [usize],
    columns: &mut Vec<u32>,
    values: &mut Vec<T>,
) {
    let mut kept = 0;
    let mut row: Vec<(u32, T)> = Vec::new();
    for l in 0..starts.len() - 1 {
        let range = starts[l]..starts[l + 1];
        row.clear();
        row.extend(columns[range.clone()].iter().copied().zip(values[range].iter().copied()));
        row.sort_by_key(|&(column, _)| column);
        starts[l] = kept;
        for &(column, value) in &row {
            if kept > starts[l] && columns[kept - 1] == column {
                values[kept - 1] += value;
            } else {
                columns[kept] = column;
                values[kept] = value;
                kept += 1;
            }
        }
    }
    *starts.last_mut().expect("n + 1 starts") = kept;
    columns.truncate(kept);
    values.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_in_any_order_make_the_same_rows() {
        let sorted = [(0, 1, 1.0), (0, 4, 2.0), (2, 0, 3.0), (2, 3, 4.0)];
        let expected = Layout::Sparse { row_ends: vec![2, 2, 4], columns: vec![1, 4, 0, 3] };
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [1, 0, 3, 2]] {
            let pick = |k: usize| sorted[order[k]];
            let block = Entries {
                n_rows: 3,
                rows: (0..4).map(|k| pick(k).0).collect(),
                columns: (0..4).map(|k| pick(k).1).collect(),
                values: Values::F64((0..4).map(|k| pick(k).2).collect()),
            }
            .into_block();
            assert_eq!(block.layout, expected);
            assert_eq!(block.values, Values::F64(vec![1.0, 2.0, 3.0, 4.0]));
        }
    }

    #[test]
    fn duplicates_are_summed_within_their_row_only() {
        let block = Entries {
            n_rows: 2,
            rows: vec![0, 1, 0, 0, 1],
            columns: vec![2, 2, 1, 2, 2],
            values: Values::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0]),
        }
        .into_block();
        assert_eq!(block.layout, Layout::Sparse { row_ends: vec![2, 3], columns: vec![1, 2, 2] });
        assert_eq!(block.values, Values::F32(vec![3.0, 5.0, 7.0]));
    }
}
