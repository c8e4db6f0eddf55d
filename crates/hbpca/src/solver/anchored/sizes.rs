//! How large an anchored run is.

use super::START_PRODUCTS;

/// Sizes of an anchored run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchoredSizes {
    /// p, vectors iterated on.
    pub block: usize,
    /// a, anchors stored.
    pub anchors: usize,
    /// |S|, rows of a mini-batch.
    pub batch: usize,
    /// Rows of the start sample; 0 for a random start.
    pub start_rows: usize,
}

impl AnchoredSizes {
    /// Sizes that suit k components of n rows.
    ///
    /// A pass is counted by its rows, whatever p is, so that the block is generous; a start sample of at least 1,500 rows
    /// (but a tenth of the data at most) is worth one to two passes; batches of 1 % are read in the shadow of a pass.
    /// What each part buys is measured in `docs/design/0004-anchored.md`.
    pub fn suiting(n: usize, k: usize) -> Self {
        let block = k.saturating_add(k / 2).max(40);
        let start_rows = (n / 50).max(1500.min(n / 10));
        Self { block, anchors: block.saturating_mul(4), batch: n.div_ceil(100), start_rows }
    }

    /// The same without a start sample where the sample and the first look would read more than `max_passes`.
    #[must_use]
    pub fn within(self, max_passes: f64, n: usize) -> Self {
        let passes = 1.0 + (START_PRODUCTS * self.start_rows) as f64 / n as f64;
        Self { start_rows: if passes <= max_passes { self.start_rows } else { 0 }, ..self }
    }
}
