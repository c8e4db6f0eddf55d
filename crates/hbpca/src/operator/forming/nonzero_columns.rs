//! Columns that do not vanish, where so many others do that C is formed without them.

use std::ops::Range;

/// Columns that vanish are left out of so many at least,
const LEAST_COLUMNS: usize = 200;
/// and where they are one in so many.
const LEAST_SHARE: usize = 16;

/// The columns that do not vanish.
pub(super) struct NonzeroColumns {
    runs: Vec<Range<usize>>,
    /// How many they are.
    pub(super) len: usize,
}

impl NonzeroColumns {
    /// Those of d but for the `vanishing` ones; nothing where copying them together, a few per cent of the time, would hardly pay.
    pub(super) fn of(vanishing: &[usize], d: usize) -> Option<Self> {
        if d < LEAST_COLUMNS || vanishing.len() * LEAST_SHARE < d || vanishing.len() == d {
            return None;
        }
        let starts = std::iter::once(0).chain(vanishing.iter().map(|j| j + 1));
        let ends = vanishing.iter().copied().chain([d]);
        let runs = starts.zip(ends).map(|(start, end)| start..end).filter(|run| !run.is_empty()).collect();
        Some(Self { runs, len: d - vanishing.len() })
    }

    /// Appends their numbers.
    pub(super) fn gather<T: Copy>(&self, row: &[T], to: &mut Vec<T>) {
        self.runs.iter().for_each(|run| to.extend_from_slice(&row[run.clone()]));
    }

    /// Their numbers in the matrix.
    pub(super) fn columns(&self) -> Vec<usize> {
        self.runs.iter().cloned().flatten().collect()
    }
}
