//! Ranges of rows: what a disk reads well.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::matrix::{RowChunks, below};

/// Rows of the longest chunk: what the memory for one chunk holds.
pub(super) fn longest_chunk(source: &(impl RowChunks + ?Sized)) -> usize {
    source.starts().windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(1)
}

/// Cuts ascending row numbers into ranges of at most `longest` that follow each other; a row listed twice starts a new one.
pub(super) fn ranges_of(rows: &[usize], longest: usize, ranges: &mut Vec<Range<usize>>) {
    ranges.clear();
    for &row in rows {
        match ranges.last_mut() {
            Some(range) if range.end == row && range.len() < longest => range.end += 1,
            _ => ranges.push(row..row + 1),
        }
    }
}

/// About `count` of n rows in ranges of `length` rows, one at a random place in each of equal parts of the data.
pub(super) fn spread_ranges(n: usize, count: usize, length: usize, seed: u64) -> Vec<Range<usize>> {
    /// Ranges that make a sample of sorted data fair.
    const FEWEST_RANGES: usize = 32;
    let count = count.clamp(1, n);
    let length = length.min(count.div_ceil(FEWEST_RANGES)).max(1);
    let parts = count.div_ceil(length).min(n / length).max(1);
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(1 << 32); // far from those of batches, start vectors and pools
    (0..parts)
        .map(|i| {
            let part = crate::ordered::chunk(n, i, parts);
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
    fn rows_that_follow_each_other_make_ranges() {
        let mut ranges = Vec::new();
        ranges_of(&[2, 3, 4, 4, 5, 9], 10, &mut ranges);
        assert_eq!(ranges, [2..5, 4..6, 9..10]);
        ranges_of(&[2, 3, 4, 5, 6], 2, &mut ranges);
        assert_eq!(ranges, [2..4, 4..6, 6..7]);
        ranges_of(&[], 2, &mut ranges);
        assert!(ranges.is_empty());
    }

    #[test]
    fn spread_ranges_cover_all_parts_and_never_overlap() {
        for (n, count, length) in [(1, 1, 1), (10, 10, 3), (1000, 64, 16), (1000, 1000, 7), (5, 100, 100)] {
            let ranges = spread_ranges(n, count, length, 7);
            assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{ranges:?}");
            assert!(ranges.iter().all(|range| !range.is_empty() && range.end <= n));
            let total: usize = ranges.iter().map(Range::len).sum();
            assert!(total <= count.max(1) + length && 2 * total >= count.min(n), "{n} {count}: {total}");
        }
        assert_ne!(spread_ranges(10_000, 64, 1, 1), spread_ranges(10_000, 64, 1, 2));
    }
}
