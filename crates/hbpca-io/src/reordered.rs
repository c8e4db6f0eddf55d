//! Rows with some of their columns, in another order.

use crate::ReadError;
use crate::block::{Layout, RowBlock};
use crate::source::{RowSource, Stated};

/// Hands on the columns at `positions` of another source.
pub(crate) struct Reordered {
    rows: Box<dyn RowSource>,
    positions: Vec<usize>,
}

impl Reordered {
    pub(crate) fn new(rows: Box<dyn RowSource>, positions: Vec<usize>) -> Self {
        Self { rows, positions }
    }
}

impl RowSource for Reordered {
    fn stated(&self) -> Stated {
        let stated = self.rows.stated();
        let pick = |names: Vec<String>| self.positions.iter().map(|&j| names[j].clone()).collect();
        Stated {
            n_columns: Some(self.positions.len()),
            column_names: stated.column_names.map(pick),
            ..stated
        }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        let blocks = self.rows.next_blocks()?;
        Ok(blocks.into_iter().map(|block| reordered(block, &self.positions)).collect())
    }
}

/// The columns at `positions` of a block that has them all.
pub(crate) fn reordered(block: RowBlock, positions: &[usize]) -> RowBlock {
    let n = block.n_rows();
    let mut values = block.values.empty_like(n * positions.len().min(block.values.len() / n.max(1)));
    let layout = match &block.layout {
        Layout::Dense(d) => {
            for l in 0..n {
                positions.iter().for_each(|&j| values.push(block.values.get(l * d + j)));
            }
            Layout::Dense(positions.len())
        }
        Layout::Sparse { row_ends, columns } => {
            let most = positions.iter().max().map_or(0, |j| j + 1);
            let mut slots = vec![None; most];
            for (slot, &j) in positions.iter().enumerate() {
                slots[j] = Some(slot as u32);
            }
            let (mut ends, mut kept) = (Vec::with_capacity(n), Vec::new());
            let mut start = 0;
            for &end in row_ends {
                let slot = |at: usize| slots.get(columns[at] as usize).copied().flatten();
                let mut row: Vec<(u32, usize)> =
                    (start..end).filter_map(|at| slot(at).map(|slot| (slot, at))).collect();
                row.sort_unstable();
                for (slot, at) in row {
                    kept.push(slot);
                    values.push(block.values.get(at));
                }
                ends.push(kept.len());
                start = end;
            }
            Layout::Sparse { row_ends: ends, columns: kept }
        }
    };
    RowBlock { layout, values, labels: block.labels, kept: block.kept, narrowed: block.narrowed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Values;

    #[test]
    fn dense_and_sparse_rows_keep_what_is_asked_for() {
        let dense = RowBlock::dense(3, Values::F32(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let picked = reordered(dense, &[2, 0]);
        assert_eq!((picked.layout, picked.values), (Layout::Dense(2), Values::F32(vec![3.0, 1.0, 6.0, 4.0])));
        // (·, 2, 3, 4), (), (5, ·, ·, 6)
        let layout = Layout::Sparse { row_ends: vec![3, 3, 5], columns: vec![1, 2, 3, 0, 3] };
        let sparse = RowBlock {
            layout,
            values: Values::F64(vec![2.0, 3.0, 4.0, 5.0, 6.0]),
            labels: None,
            kept: Vec::new(),
            narrowed: false,
        };
        let picked = reordered(sparse, &[3, 1, 0]);
        assert_eq!(picked.values, Values::F64(vec![4.0, 2.0, 6.0, 5.0]));
        assert_eq!(picked.layout, Layout::Sparse { row_ends: vec![2, 2, 4], columns: vec![0, 1, 0, 2] });
    }
}
