//! Runs of rows that follow each other: what a disk reads well.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::matrix::{RowChunks, below};

/// Rows of the longest chunk: what the memory for one piece holds.
pub(super) fn longest_run(source: &(impl RowChunks + ?Sized)) -> usize {
    source.starts().windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(1)
}

/// Cuts ascending row numbers into runs of at most `longest` that follow each other; a row listed twice starts a new one.
pub(super) fn runs_of(rows: &[usize], longest: usize, runs: &mut Vec<Range<usize>>) {
    runs.clear();
    for &row in rows {
        match runs.last_mut() {
            Some(run) if run.end == row && run.len() < longest => run.end += 1,
            _ => runs.push(row..row + 1),
        }
    }
}

/// About `count` of n rows in runs of `length` rows, one at a random place in each of equal parts of the data.
pub(super) fn spread_runs(n: usize, count: usize, length: usize, seed: u64) -> Vec<Range<usize>> {
    /// Runs that make a sample of sorted data fair.
    const FEWEST_RUNS: usize = 32;
    let count = count.clamp(1, n);
    let length = length.min(count.div_ceil(FEWEST_RUNS)).max(1);
    let parts = count.div_ceil(length).min(n / length).max(1);
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(1 << 32); // far from those of batches, start vectors and pools
    (0..parts)
        .map(|i| {
            let part = crate::ordered::piece(n, i, parts);
            let places = part.len().saturating_sub(length) + 1;
            let start = part.start + below(&mut generator, places as u64) as usize;
            start..(start + length).min(part.end)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_follow_each_other_make_runs() {
        let mut runs = Vec::new();
        runs_of(&[2, 3, 4, 4, 5, 9], 10, &mut runs);
        assert_eq!(runs, [2..5, 4..6, 9..10]);
        runs_of(&[2, 3, 4, 5, 6], 2, &mut runs);
        assert_eq!(runs, [2..4, 4..6, 6..7]);
        runs_of(&[], 2, &mut runs);
        assert!(runs.is_empty());
    }

    #[test]
    fn spread_runs_cover_all_parts_and_never_overlap() {
        for (n, count, length) in [(1, 1, 1), (10, 10, 3), (1000, 64, 16), (1000, 1000, 7), (5, 100, 100)] {
            let runs = spread_runs(n, count, length, 7);
            assert!(runs.windows(2).all(|pair| pair[0].end <= pair[1].start), "{runs:?}");
            assert!(runs.iter().all(|run| !run.is_empty() && run.end <= n));
            let total: usize = runs.iter().map(Range::len).sum();
            assert!(total <= count.max(1) + length && 2 * total >= count.min(n), "{n} {count}: {total}");
        }
        assert_ne!(spread_runs(10_000, 64, 1, 1), spread_runs(10_000, 64, 1, 2));
    }
}
