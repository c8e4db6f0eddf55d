//! S += Σ w aaᵀ over dense rows, one triangle of it, in tiles that stay in registers.
//!
//! ```text
//! pack     a = √w(x − shift) of a block of rows, in panels of W = 3N columns side by side
//! tile     S[i][j] += Σ_r a_r[i]·a_r[j]      W rows i × G columns j: 3G accumulators, no sum across lanes
//! ```
//!
//! A tile's sum over a block of rows is gathered in the arithmetic's own numbers and added up in f64.

use super::lanes::{Arithmetic, Kernel, Lanes};
use super::{Level, RowWeights};
use crate::matrix::{Dense, Real};

/// Registers of a panel.
const WIDE: usize = 3;
/// Bytes of a packed block: it stays in the second-level cache.
const BLOCK_BYTES: usize = 800 << 10;
/// Rows of a packed block at most. Products of whole numbers up to 255 add up exactly in f32 over so many.
pub(crate) const MOST_ROWS: usize = 256;

/// One triangle of a d×d sum, tile by tile, and room for packed rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Triangle<A> {
    tiles: Vec<f64>,
    packed: Vec<A>,
}

impl<A: Arithmetic> Triangle<A> {
    /// Sets the sum to zero.
    pub(crate) fn clear(&mut self) {
        self.tiles.fill(0.0);
    }

    /// Adds √w(x − shift) times itself for the rows of a range.
    pub(crate) fn add_rows<T: Real>(
        &mut self,
        x: &Dense<'_, T>,
        rows: std::ops::Range<usize>,
        weights: RowWeights<'_>,
        shift: Option<&[f64]>,
    ) {
        self.add_rows_at(Level::best(), x, rows, weights, shift);
    }

    /// [`add_rows`](Self::add_rows) with the instructions of `level`.
    pub(super) fn add_rows_at<T: Real>(
        &mut self,
        level: Level,
        x: &Dense<'_, T>,
        rows: std::ops::Range<usize>,
        weights: RowWeights<'_>,
        shift: Option<&[f64]>,
    ) {
        assert!(rows.end <= x.n_rows() && shift.is_none_or(|shift| shift.len() == x.n_cols()));
        A::run(level, Add { x, rows, weights, shift, triangle: self });
    }

    /// Adds the triangle to both halves of the d×d matrix `c`.
    pub(crate) fn add_to(&self, d: usize, c: &mut [f64]) {
        self.add_to_at(Level::best(), d, c);
    }

    /// [`add_to`](Self::add_to) where the rows were added with the instructions of `level`.
    pub(super) fn add_to_at(&self, level: Level, d: usize, c: &mut [f64]) {
        if !self.tiles.is_empty() {
            A::run(level, Unpack { tiles: &self.tiles, d, c });
        }
    }
}

/// The shape of the tiles at a level.
struct Shape {
    /// W: rows of a tile.
    wide: usize,
    /// G: columns of a tile.
    narrow: usize,
}

impl Shape {
    fn of<L: Lanes>() -> Self {
        Self { wide: WIDE * L::N, narrow: if L::REGISTERS >= 32 { 8 } else { 4 } }
    }

    /// Groups of columns that panel `i` meets: those up to its own last column, or the matrix' last.
    fn groups(&self, panel: usize, d: usize) -> usize {
        d.min((panel + 1) * self.wide).div_ceil(self.narrow)
    }

    /// How many tiles the triangle has.
    fn n_tiles(&self, d: usize) -> usize {
        (0..d.div_ceil(self.wide)).map(|panel| self.groups(panel, d)).sum()
    }

    fn tile_len(&self) -> usize {
        self.wide * self.narrow
    }
}

struct Add<'a, T: Real, A> {
    x: &'a Dense<'a, T>,
    rows: std::ops::Range<usize>,
    weights: RowWeights<'a>,
    shift: Option<&'a [f64]>,
    triangle: &'a mut Triangle<A>,
}

impl<T: Real, A: Arithmetic> Kernel<A> for Add<'_, T, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        let d = self.x.n_cols();
        let shape = Shape::of::<L>();
        let padded = d.next_multiple_of(shape.wide);
        let block = (BLOCK_BYTES / (padded * A::BYTES)).clamp(8, MOST_ROWS);
        let Triangle { tiles, packed } = &mut *self.triangle;
        tiles.resize(shape.n_tiles(d) * shape.tile_len(), 0.0);
        packed.resize(shape.tile_len() + padded + block * padded, A::default());
        let (partial, packed) = packed.split_at_mut(shape.tile_len());
        let (shift, packed) = packed.split_at_mut(padded);
        shift.fill(A::default());
        if let Some(means) = self.shift {
            shift.iter_mut().zip(means).for_each(|(to, mu)| *to = A::from_f64(*mu));
        }
        for start in self.rows.clone().step_by(block) {
            let count = block.min(self.rows.end - start);
            for r in 0..count {
                let row = self.x.row(start + r);
                let root = A::from_f64(self.weights.of(start + r).sqrt());
                // SAFETY: the row has d values, the shift d rounded up to whole panels, and so has row r of every panel.
                unsafe { pack_row::<T, L>(row, shift, root, r, count, packed) };
            }
            // Plain loops: the body of a closure would not be compiled for the level.
            let mut tile = tiles.as_mut_ptr();
            for panel in 0..d.div_ceil(shape.wide) {
                for group in 0..shape.groups(panel, d) {
                    let columns = group * shape.narrow;
                    // SAFETY: panels hold `count` rows of W values each; groups lie within panels, tiles within `tiles`.
                    unsafe {
                        let left = packed.as_ptr().add(panel * count * shape.wide);
                        let first = columns / shape.wide * count * shape.wide + columns % shape.wide;
                        let right = packed.as_ptr().add(first);
                        if L::REGISTERS >= 32 {
                            add_tile::<L, 8>(left, right, count, partial.as_mut_ptr(), tile);
                        } else {
                            add_tile::<L, 4>(left, right, count, partial.as_mut_ptr(), tile);
                        }
                        tile = tile.add(shape.tile_len());
                    }
                }
            }
        }
    }
}

/// Writes √w(x − shift) into row r of every panel of `count` rows.
#[inline(always)]
unsafe fn pack_row<T: Real, L: Lanes>(
    row: &[T],
    shift: &[L::Number],
    root: L::Number,
    r: usize,
    count: usize,
    packed: &mut [L::Number],
) {
    let (d, wide) = (row.len(), WIDE * L::N);
    // SAFETY: the promise of `Add::run`; only whole registers of the row are read without a mask.
    unsafe {
        let (root, zero) = (L::splat(root), L::splat(L::Number::default()));
        for j in (0..d.next_multiple_of(wide)).step_by(L::N) {
            let from = row.as_ptr().wrapping_add(j);
            let x = if j + L::N <= d {
                T::load::<L>(from)
            } else if j < d {
                T::load_masked::<L>(from, L::mask(d - j))
            } else {
                zero
            };
            let a = L::fma(root, L::sub(x, L::load(shift.as_ptr().add(j))), zero);
            L::store(packed.as_mut_ptr().add((j / wide * count + r) * wide + j % wide), a);
        }
    }
}

/// `tile[j][i] += Σ_r left[r][i]·right[r][j]` for W rows i and G columns j.
#[inline(always)]
unsafe fn add_tile<L: Lanes, const G: usize>(
    left: *const L::Number,
    right: *const L::Number,
    count: usize,
    partial: *mut L::Number,
    tile: *mut f64,
) {
    let wide = WIDE * L::N;
    // SAFETY: the promise of `Add::run`.
    unsafe {
        let mut sums = [[L::splat(L::Number::default()); G]; WIDE];
        for r in 0..count {
            let (left, right) = (left.add(r * wide), right.add(r * wide));
            let mut a = [L::splat(L::Number::default()); WIDE];
            for i in 0..WIDE {
                a[i] = L::load(left.add(i * L::N));
            }
            for j in 0..G {
                let b = L::splat(right.add(j).read());
                for i in 0..WIDE {
                    sums[i][j] = L::fma(a[i], b, sums[i][j]);
                }
            }
        }
        // Stored first and added up in a loop of its own: added in place they would leave the registers in the loop above.
        for i in 0..WIDE {
            for j in 0..G {
                L::store(partial.add((j * WIDE + i) * L::N), sums[i][j]);
            }
        }
        for at in (0..wide * G).step_by(L::N) {
            L::add_to_f64(tile.add(at), L::load(partial.add(at)));
        }
    }
}

struct Unpack<'a> {
    tiles: &'a [f64],
    d: usize,
    c: &'a mut [f64],
}

impl<A: Arithmetic> Kernel<A> for Unpack<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        let Self { tiles, d, c } = self;
        let shape = Shape::of::<L>();
        let mut tiles = tiles.chunks_exact(shape.tile_len());
        for panel in 0..d.div_ceil(shape.wide) {
            for (group, tile) in (0..shape.groups(panel, d)).zip(&mut tiles) {
                for (j, column) in (group * shape.narrow..d).zip(tile.chunks_exact(shape.wide)) {
                    // Entries above the diagonal of a tile are those of its mirror image.
                    for (i, value) in (panel * shape.wide..d).zip(column).filter(|(i, _)| *i >= j) {
                        c[i * d + j] += value;
                        if i != j {
                            c[j * d + i] += value;
                        }
                    }
                }
            }
        }
    }
}
