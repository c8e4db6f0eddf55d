//! How many vectors `krylov` multiplies in a pass, and how many it keeps: what is cheapest depends on the data and on where it is.
//!
//! What each size costs is measured in `docs/design/0005-krylov.md`.

/// Coordinates from which on the vectors of the basis, rather than the rows, take most of the time.
pub(super) const LONG: usize = 8192;

/// Components up to which products with compressed rows, rather than the basis, take most of the time.
pub(super) const FEW: usize = 24;

/// Components of dense rows in memory that are found sooner with four vectors in a pass than with eight.
const FEW_OF_DENSE: usize = 6;

/// Sizes of the block and of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KrylovSizes {
    /// p, vectors multiplied in one pass.
    pub block: usize,
    /// Vectors kept before a restart.
    pub memory: usize,
}

impl KrylovSizes {
    /// Sizes that suit k components of dense data: a block of eight, since one pass with eight vectors costs hardly more
    /// than with one and nearly every further vector its own arithmetic, and room for the Krylov space to grow between
    /// restarts.
    pub fn suiting(k: usize) -> Self {
        Self { block: 8, memory: k.saturating_mul(3).max(96) }
    }

    /// The same where rows are in memory and a pass costs little: few components take half a block. Up to four vectors are multiplied
    /// in the time it takes to read the rows, and eight take longer by more than the passes that they save.
    pub fn suiting_in_memory(k: usize) -> Self {
        let suiting = Self::suiting(k);
        if k <= FEW_OF_DENSE { Self { block: 4, ..suiting } } else { suiting }
    }

    /// Sizes that suit k components of compressed rows, whose products cost nearly as much for each further vector as for the
    /// first: a narrow block of as many as fill a register, and a short memory, because the vectors of the basis are longer
    /// than the rows.
    pub fn suiting_sparse(k: usize) -> Self {
        match k {
            0..=FEW => Self { block: 4, memory: (3 * k + 10).max(24) },
            _ => Self { block: 8, memory: k.saturating_mul(5) / 2 + 10 },
        }
    }

    /// The same where rows are in memory and a pass costs little: few components of long vectors take two at a time, which stay in
    /// cache with their sums, and show a largest value that is there twice. Memory is as short as costs no pass on the text
    /// collections of `docs/benchmarks.md`.
    pub fn suiting_sparse_in_memory(d: usize, k: usize) -> Self {
        match k {
            1 if d >= LONG => Self { block: 2, memory: 18 },
            2..=4 if d >= LONG => Self { block: 2, memory: (4 * k + 2).max(14) },
            _ => Self::suiting_sparse(k),
        }
    }
}
