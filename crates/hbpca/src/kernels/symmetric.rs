//! S += Σ w aaᵀ over dense rows, one triangle of it, in tiles that stay in registers.
//!
//! ```text
//! pack     a = √w(x − shift) of a block of rows, in panels of up to W registers of columns side by side
//! tile     S[i][j] += Σ_r a_r[i]·a_r[j]      up to WN rows i × G columns j: WG accumulators, no sum across lanes
//! ```
//!
//! A panel meets all columns up to its own last one; registers that lie above the diagonal altogether are left out, so that narrow
//! data costs little more than its triangle. A tile's sum over a block of rows is gathered in the arithmetic's own numbers, run
//! by run, and blocks are added up in f64.

use std::sync::atomic::{Ordering, compiler_fence};

use super::lanes::{Arithmetic, Kernel, Lanes};
use super::pack::{Ahead, Source};
use super::{Level, RowWeights};
use crate::Block;
use crate::kernels::Stored;
use crate::matrix::Dense;

/// Rows of a packed block: so much of a panel (24 KiB) stays in the first-level cache. Products of whole numbers up to 255 add up
/// exactly in f32 over so many.
const MOST_ROWS: usize = 128;
/// Rows summed in registers. Equal rows, of which real data has many, round all the same way: runs as short as is cheap keep such
/// errors in f32 small.
const RUN: usize = 32;
/// Additions, one after the other, that lead to the sum of a block.
pub(crate) const ADDITIONS: usize = RUN + MOST_ROWS / RUN;
/// Bytes of a packed block at most: it stays in the second-level cache.
const BLOCK_BYTES: usize = 800 << 10;

/// One triangle of a d×d sum, tile by tile, and room for packed rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Triangle<A> {
    d: usize,
    tiles: Vec<Tile>,
    sums: Vec<f64>,
    packed: Vec<A>,
}

impl<A: Arithmetic> Triangle<A> {
    /// Sets the sum to zero.
    pub(crate) fn clear(&mut self) {
        self.sums.fill(0.0);
    }

    /// Adds √w(x − shift) times itself for the rows of a range.
    pub(crate) fn add_rows<T: Stored>(
        &mut self,
        x: &Dense<'_, T>,
        rows: std::ops::Range<usize>,
        weights: RowWeights<'_>,
        shift: Option<&[f64]>,
    ) {
        self.add_rows_at(Level::best(), x, rows, weights, shift);
    }

    /// [`add_rows`](Self::add_rows) with the instructions of `level`.
    pub(super) fn add_rows_at<T: Stored>(
        &mut self,
        level: Level,
        x: &Dense<'_, T>,
        rows: std::ops::Range<usize>,
        weights: RowWeights<'_>,
        shift: Option<&[f64]>,
    ) {
        assert!(rows.end <= x.n_rows() && shift.is_none_or(|shift| shift.len() == x.n_cols()));
        assert!(self.tiles.is_empty() || self.d == x.n_cols(), "a triangle is of one d");
        A::run(level, Add { x, rows, weights, shift, triangle: self });
    }

    /// Adds the sum of other rows of the same matrix.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.sums.is_empty() {
            self.clone_from(other);
        } else {
            assert!(other.sums.is_empty() || self.d == other.d, "a triangle is of one d");
            self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += other);
        }
    }

    /// Adds the triangle to both halves of the square matrix `c`, its columns to those named of `c`.
    pub(crate) fn add_to(&self, columns: &[usize], c: &mut Block) {
        self.add_to_at(Level::best(), columns, c);
    }

    /// [`add_to`](Self::add_to) where the rows were added with the instructions of `level`.
    pub(super) fn add_to_at(&self, level: Level, columns: &[usize], c: &mut Block) {
        assert!(self.tiles.is_empty() || self.d == columns.len(), "one place for each column");
        A::run(level, Unpack { triangle: self, columns, c });
    }
}

/// Registers of columns that are packed side by side.
#[derive(Clone, Copy, Debug)]
struct Panel {
    first: usize,
    width: usize,
}

/// A part of the triangle that is summed at a time.
#[derive(Clone, Copy, Debug)]
struct Tile {
    /// Its rows: registers `skip ..` of a panel.
    left: Panel,
    skip: usize,
    /// Its G columns: those from `column` on of a panel.
    right: Panel,
    column: usize,
}

impl Tile {
    /// How many registers of rows it has.
    #[inline(always)]
    fn registers(&self) -> usize {
        self.left.width - self.skip
    }
}

/// Registers of a panel at most. Three with four columns are all of sixteen registers: twelve sums, three factors, and one.
const WIDE: usize = 3;

/// G: columns of a tile, a divisor of the lanes.
const fn narrow<L: Lanes>() -> usize {
    if L::REGISTERS >= 32 { 8 } else { 4 }
}

/// Panels of equal width, as nearly as can be.
fn panels<L: Lanes>(d: usize) -> Vec<Panel> {
    let registers = d.div_ceil(L::N);
    let count = registers.div_ceil(WIDE);
    let first = |panel: usize| panel * registers / count;
    (0..count).map(|panel| Panel { first: first(panel), width: first(panel + 1) - first(panel) }).collect()
}

/// The tiles of the lower triangle.
fn tiles_of<L: Lanes>(d: usize) -> Vec<Tile> {
    let panels = panels::<L>(d);
    let mut tiles = Vec::new();
    for (i, &left) in panels.iter().enumerate() {
        for (j, &right) in panels[..=i].iter().enumerate() {
            let columns = (right.width * L::N).min(d - right.first * L::N);
            for column in (0..columns).step_by(narrow::<L>()) {
                let skip = if i == j { column / L::N } else { 0 };
                tiles.push(Tile { left, skip, right, column });
            }
        }
    }
    tiles
}

struct Add<'a, T: Stored, A> {
    x: &'a Dense<'a, T>,
    rows: std::ops::Range<usize>,
    weights: RowWeights<'a>,
    shift: Option<&'a [f64]>,
    triangle: &'a mut Triangle<A>,
}

impl<T: Stored, A: Arithmetic> Kernel<A> for Add<'_, T, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        let d = self.x.n_cols();
        let (padded, largest) = (d.next_multiple_of(L::N), WIDE * L::N * narrow::<L>());
        let block = (BLOCK_BYTES / (padded * A::BYTES)).clamp(8, MOST_ROWS);
        let panels = panels::<L>(d);
        let Triangle { d: known, tiles, sums, packed } = &mut *self.triangle;
        if tiles.is_empty() {
            *known = d;
            *tiles = tiles_of::<L>(d);
            let registers: usize = tiles.iter().map(Tile::registers).sum();
            sums.resize(registers * L::N * narrow::<L>(), 0.0);
        }
        packed.resize(largest + padded + block * padded, A::default());
        let (partial, packed) = packed.split_at_mut(largest);
        let (shift, packed) = packed.split_at_mut(padded);
        shift.fill(A::default());
        if let Some(means) = self.shift {
            shift.iter_mut().zip(means).for_each(|(to, mu)| *to = A::from_f64(*mu));
        }
        let mut roots = [A::default(); MOST_ROWS];
        for start in self.rows.clone().step_by(block) {
            let count = block.min(self.rows.end - start);
            for r in 0..count {
                roots[r] = A::from_f64(self.weights.of(start + r).sqrt());
            }
            for panel in &panels {
                let rows = Source { x: self.x, first: start, roots: &roots[..count] };
                let to = &mut packed[panel.first * L::N * count..][..panel.width * L::N * count];
                // SAFETY: rows have d values, the shift d rounded up to whole registers.
                unsafe {
                    match panel.width {
                        1 => rows.pack::<L, 1>(panel.first, shift, to),
                        2 => rows.pack::<L, 2>(panel.first, shift, to),
                        _ => rows.pack::<L, WIDE>(panel.first, shift, to),
                    }
                }
            }
            let mut ahead = Ahead::new(self.x, start + count, block, tiles.len());
            // Plain loops: the body of a closure would not be compiled for the level.
            let mut sum = sums.as_mut_ptr();
            for tile in &*tiles {
                // SAFETY: panels hold `count` rows of their registers; tiles lie within panels, their sums side by side.
                unsafe {
                    ahead.fetch::<L>();
                    let at = |panel: Panel| packed.as_ptr().add(panel.first * L::N * count);
                    let left =
                        Operand { from: at(tile.left).add(tile.skip * L::N), stride: tile.left.width * L::N };
                    let right =
                        Operand { from: at(tile.right).add(tile.column), stride: tile.right.width * L::N };
                    let partial = partial.as_mut_ptr();
                    match (tile.registers(), L::REGISTERS >= 32) {
                        (1, true) => add_tile::<L, 1, 8>(left, right, count, partial, sum),
                        (2, true) => add_tile::<L, 2, 8>(left, right, count, partial, sum),
                        (_, true) => add_tile::<L, 3, 8>(left, right, count, partial, sum),
                        (1, false) => add_tile::<L, 1, 4>(left, right, count, partial, sum),
                        (2, false) => add_tile::<L, 2, 4>(left, right, count, partial, sum),
                        (_, false) => add_tile::<L, 3, 4>(left, right, count, partial, sum),
                    }
                    sum = sum.add(tile.registers() * L::N * narrow::<L>());
                }
            }
        }
    }
}

/// Rows of packed numbers.
#[derive(Clone, Copy)]
struct Operand<A> {
    from: *const A,
    stride: usize,
}

impl<A> Operand<A> {
    #[inline(always)]
    fn row(&self, r: usize) -> *const A {
        self.from.wrapping_add(r * self.stride)
    }
}

/// `sum[j][i] += Σ_r left[r][i]·right[r][j]` for W registers of rows i and G columns j.
#[inline(always)]
unsafe fn add_tile<L: Lanes, const W: usize, const G: usize>(
    left: Operand<L::Number>,
    right: Operand<L::Number>,
    count: usize,
    partial: *mut L::Number,
    sum: *mut f64,
) {
    // SAFETY: the promise of `Add::run`.
    unsafe {
        for at in (0..W * L::N * G).step_by(L::N) {
            L::store(partial.add(at), L::splat(L::Number::default()));
        }
        for start in (0..count).step_by(RUN) {
            add_run::<L, W, G>(left, right, start..count.min(start + RUN), partial);
            // Runs must not keep `partial` in registers from one to the next: these are all taken.
            compiler_fence(Ordering::SeqCst);
        }
        for at in (0..W * L::N * G).step_by(L::N) {
            L::add_to_f64(sum.add(at), L::load(partial.add(at)));
        }
    }
}

/// `partial[j][i] += Σ_r left[r][i]·right[r][j]` over a few rows, summed in registers.
#[inline(always)]
unsafe fn add_run<L: Lanes, const W: usize, const G: usize>(
    left: Operand<L::Number>,
    right: Operand<L::Number>,
    rows: std::ops::Range<usize>,
    partial: *mut L::Number,
) {
    // SAFETY: the promise of `Add::run`.
    unsafe {
        let mut sums = [[L::splat(L::Number::default()); G]; W];
        let (mut x, mut y) = (left.row(rows.start), right.row(rows.start));
        for _ in rows {
            let mut a = [L::splat(L::Number::default()); W];
            for i in 0..W {
                a[i] = L::load(x.add(i * L::N));
            }
            for j in 0..G {
                let b = L::in_turn(L::splat(y.add(j).read()));
                for i in 0..W {
                    sums[i][j] = L::fma(a[i], b, sums[i][j]);
                }
            }
            (x, y) = (x.wrapping_add(left.stride), y.wrapping_add(right.stride));
        }
        for i in 0..W {
            for j in 0..G {
                let to = partial.add((j * W + i) * L::N);
                L::store(to, L::add(L::load(to), sums[i][j]));
            }
        }
    }
}

struct Unpack<'a, A> {
    triangle: &'a Triangle<A>,
    columns: &'a [usize],
    c: &'a mut Block,
}

impl<A: Arithmetic> Kernel<A> for Unpack<'_, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        let Self { triangle, columns, c } = self;
        let (d, c) = (c.d(), c.values_mut());
        let mut sums = &*triangle.sums;
        for tile in &triangle.tiles {
            let height = tile.registers() * L::N;
            let (sum, others) = sums.split_at(height * narrow::<L>());
            sums = others;
            let (lower, right) =
                ((tile.left.first + tile.skip) * L::N, tile.right.first * L::N + tile.column);
            for (&j, column) in columns[right..].iter().zip(sum.chunks_exact(height)) {
                // Entries above the diagonal of a tile are those of its mirror image.
                for (&i, value) in columns[lower..].iter().zip(column).filter(|(i, _)| **i >= j) {
                    c[i * d + j] += value;
                    if i != j {
                        c[j * d + i] += value;
                    }
                }
            }
        }
    }
}
