//! Cells in the order of the file.

use super::Cells;
use crate::block::RowBlock;
use crate::input::Opened;
use crate::source::{RowSource, Stated};
use crate::{ReadError, ReadOptions};

/// Entries read at a time, about.
const ENTRIES: u64 = 8 << 20;

/// The rows of an `.h5ad` file.
pub(crate) struct H5adSource {
    cells: Cells,
    next: usize,
}

impl H5adSource {
    pub(crate) fn open(opened: Opened, options: &ReadOptions) -> Result<Self, ReadError> {
        Ok(Self { cells: Cells::open(opened, options)?, next: 0 })
    }

    /// What a person should know of its columns.
    pub(crate) fn notes(&self) -> &[String] {
        &self.cells.notes
    }

    /// Bytes of the file.
    pub(crate) fn size(&self) -> u64 {
        self.cells.size()
    }

    /// Rows that have about so many entries as are read at a time; all where columns follow each other.
    fn rows_at_once(&self) -> usize {
        let (stored, n) = (self.cells.stored(), self.cells.n_rows());
        if stored.is_by_columns() {
            return n;
        }
        let rows = (u128::from(ENTRIES) * n as u128 / u128::from(stored.entries().max(1))) as u64;
        rows.clamp(1, ENTRIES).next_multiple_of(stored.rows_together().max(1).min(ENTRIES)) as usize
    }
}

impl RowSource for H5adSource {
    fn stated(&self) -> Stated {
        Stated {
            n_columns: Some(self.cells.n_columns()),
            column_names: self.cells.genes().map(<[String]>::to_vec),
            kept_names: self.cells.kept_names(),
            ..Stated::default()
        }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        let start = self.next;
        let end = self.cells.n_rows().min(start.saturating_add(self.rows_at_once()));
        if start >= end {
            return Ok(Vec::new());
        }
        self.next = end;
        self.cells.block(start..end).map(|block| vec![block])
    }
}
