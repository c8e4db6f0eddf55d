//! Products of narrow blocks, whose few values of a coordinate lie side by side: AᵀB and W + AH.
//!
//! A library's matrix product spends more time on packing such operands than on multiplying them. Here a register holds
//! neighbouring columns of B (or of H and W), and everything is read in the order in which it lies. Up to three registers of columns
//! and a few rows of the result are summed up at a time: seven loads for twelve products, where one register of columns and eight rows
//! took nine for eight.

use super::Level;
use super::lanes::{Arithmetic, Kernel, Lanes};

/// `out` ← AᵀB, p×q, for A of p and B of q columns, all row-major.
pub(crate) fn gram(a: &[f64], p: usize, b: &[f64], q: usize, out: &mut [f64]) {
    gram_at(Level::best(), a, p, b, q, out);
}

/// [`gram`] with the instructions of `level`.
pub(super) fn gram_at(level: Level, a: &[f64], p: usize, b: &[f64], q: usize, out: &mut [f64]) {
    let rows = a.len() / p;
    assert!(a.len() == rows * p && b.len() == rows * q && out.len() == p * q, "A, B and AᵀB fit together");
    f64::run(level, Gram { a, p, b, q, out });
}

/// W ← W + AH for A of p and W of r columns, H p×r, all row-major.
pub(crate) fn add_product(w: &mut [f64], r: usize, a: &[f64], p: usize, h: &[f64]) {
    add_product_at(Level::best(), w, r, a, p, h);
}

/// [`add_product`] with the instructions of `level`.
pub(super) fn add_product_at(level: Level, w: &mut [f64], r: usize, a: &[f64], p: usize, h: &[f64]) {
    let rows = w.len() / r;
    assert!(w.len() == rows * r && a.len() == rows * p && h.len() == p * r, "W, A and H fit together");
    f64::run(level, AddProduct { w, r, a, p, h });
}

/// Numbers of A and B, together, that stay in the first-level cache while all tiles of AᵀB take their share: 24 KB.
const IN_CACHE: usize = 3 << 10;

/// Runs `$tile::<L, I, FULL, PART>` for tiles of up to three registers that cover all columns, the last of them perhaps in part.
macro_rules! for_each_group {
    ($columns:expr, $column:ident => $this:ident.$tile:ident::<$l:ident, $i:literal>($row:expr)) => {{
        let mut $column = 0;
        while $column < $columns {
            let left = $columns - $column;
            match (left / $l::N, left % $l::N > 0) {
                (0, _) => $this.$tile::<$l, $i, 0, true>($row, $column),
                (1, false) => $this.$tile::<$l, $i, 1, false>($row, $column),
                (1, true) => $this.$tile::<$l, $i, 1, true>($row, $column),
                (2, false) => $this.$tile::<$l, $i, 2, false>($row, $column),
                (2, true) => $this.$tile::<$l, $i, 2, true>($row, $column),
                _ => $this.$tile::<$l, $i, 3, false>($row, $column),
            }
            $column += 3 * $l::N;
        }
    }};
}

/// Runs `$tile` for all columns of all `$rows`, in tiles of eight rows, where there are registers enough, four, two and one.
macro_rules! for_each_row {
    ($rows:expr, $l:ident, $row:ident => $this:ident.$tile:ident, $columns:expr) => {{
        let mut $row = 0;
        if $l::REGISTERS >= 32 {
            while $row + 8 <= $rows {
                for_each_group!($columns, column => $this.$tile::<$l, 8>($row));
                $row += 8;
            }
        }
        while $row + 4 <= $rows {
            for_each_group!($columns, column => $this.$tile::<$l, 4>($row));
            $row += 4;
        }
        if $row + 2 <= $rows {
            for_each_group!($columns, column => $this.$tile::<$l, 2>($row));
            $row += 2;
        }
        if $row < $rows {
            for_each_group!($columns, column => $this.$tile::<$l, 1>($row));
        }
    }};
}

struct Gram<'a> {
    a: &'a [f64],
    p: usize,
    b: &'a [f64],
    q: usize,
    out: &'a mut [f64],
}

impl Kernel<f64> for Gram<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = f64>>(self) {
        let Self { a, p, b, q, out } = self;
        out.fill(0.0);
        let rows = (IN_CACHE / (p + q)).max(16);
        for (a, b) in a.chunks(rows * p).zip(b.chunks(rows * q)) {
            let mut part = Gram { a, p, b, q, out: &mut *out };
            // SAFETY: the assertion of `gram_at`, which holds for every part too; tiles lie within the result.
            unsafe { for_each_row!(p, L, i => part.tile, q) };
        }
    }
}

impl Gram<'_> {
    /// Adds to rows `i..i + I` of the result, in `FULL` registers of columns from `column` on and, if `PART`, the rest of them.
    #[inline(always)]
    unsafe fn tile<L: Lanes<Number = f64>, const I: usize, const FULL: usize, const PART: bool>(
        &mut self,
        i: usize,
        column: usize,
    ) {
        let (p, q) = (self.p, self.q);
        // SAFETY: as for `run`; fewer columns than lanes are read and written under a mask.
        unsafe {
            let mask = L::mask(if PART { q - column - FULL * L::N } else { 0 });
            let (mut a, mut b) = (self.a.as_ptr().add(i), self.b.as_ptr().add(column));
            let mut sums = Tile::<L, I, FULL, PART>::load(self.out.as_ptr().add(i * q + column), q, mask);
            for _ in 0..self.a.len() / p {
                sums.add_outer(a, 1, b, mask);
                (a, b) = (a.wrapping_add(p), b.wrapping_add(q));
            }
            sums.store(self.out.as_mut_ptr().add(i * q + column), q, mask);
        }
    }
}

struct AddProduct<'a> {
    w: &'a mut [f64],
    r: usize,
    a: &'a [f64],
    p: usize,
    h: &'a [f64],
}

impl Kernel<f64> for AddProduct<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = f64>>(mut self) {
        let rows = self.w.len() / self.r;
        // SAFETY: the assertion of `add_product_at`; tiles lie within W.
        unsafe { for_each_row!(rows, L, row => self.tile, self.r) };
    }
}

impl AddProduct<'_> {
    /// Rows `row..row + I` of W, in `FULL` registers of columns from `column` on and, if `PART`, the rest of them.
    #[inline(always)]
    unsafe fn tile<L: Lanes<Number = f64>, const I: usize, const FULL: usize, const PART: bool>(
        &mut self,
        row: usize,
        column: usize,
    ) {
        let (p, r) = (self.p, self.r);
        // SAFETY: as for `run`; fewer columns than lanes are read and written under a mask.
        unsafe {
            let mask = L::mask(if PART { r - column - FULL * L::N } else { 0 });
            let (mut a, mut h) = (self.a.as_ptr().add(row * p), self.h.as_ptr().wrapping_add(column));
            let mut sums = Tile::<L, I, FULL, PART>::load(self.w.as_ptr().add(row * r + column), r, mask);
            for _ in 0..p {
                sums.add_outer(a, p, h, mask);
                (a, h) = (a.wrapping_add(1), h.wrapping_add(r));
            }
            sums.store(self.w.as_mut_ptr().add(row * r + column), r, mask);
        }
    }
}

/// I rows of `FULL` registers and, if `PART`, another one of which only some lanes count.
struct Tile<L: Lanes<Number = f64>, const I: usize, const FULL: usize, const PART: bool> {
    full: [[L::V; FULL]; I],
    part: [L::V; I],
}

impl<L: Lanes<Number = f64>, const I: usize, const FULL: usize, const PART: bool> Tile<L, I, FULL, PART> {
    /// Rows that lie `stride` apart.
    #[inline(always)]
    unsafe fn load(from: *const f64, stride: usize, mask: L::Mask) -> Self {
        // SAFETY: the caller's promise: I rows are readable, the last register where the mask allows.
        unsafe {
            let (mut full, mut part) = ([[L::splat(0.0); FULL]; I], [L::splat(0.0); I]);
            for i in 0..I {
                let from = from.add(i * stride);
                for k in 0..FULL {
                    full[i][k] = L::load(from.add(k * L::N));
                }
                if PART {
                    part[i] = L::load_masked(from.add(FULL * L::N), mask);
                }
            }
            Self { full, part }
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f64, stride: usize, mask: L::Mask) {
        // SAFETY: as for `load`.
        unsafe {
            for i in 0..I {
                let to = to.add(i * stride);
                for k in 0..FULL {
                    L::store(to.add(k * L::N), self.full[i][k]);
                }
                if PART {
                    L::store_masked(to.add(FULL * L::N), self.part[i], mask);
                }
            }
        }
    }

    /// Adds a·rᵀ, for I values that lie `stride` apart from `a` on and a row r.
    #[inline(always)]
    unsafe fn add_outer(&mut self, a: *const f64, stride: usize, row: *const f64, mask: L::Mask) {
        // SAFETY: as for `load`.
        unsafe {
            let mut full = [L::splat(0.0); FULL];
            for k in 0..FULL {
                full[k] = L::load(row.add(k * L::N));
            }
            let part = if PART { L::load_masked(row.add(FULL * L::N), mask) } else { L::splat(0.0) };
            for i in 0..I {
                let a = L::in_turn(L::splat(a.add(i * stride).read()));
                for k in 0..FULL {
                    self.full[i][k] = L::fma(a, full[k], self.full[i][k]);
                }
                if PART {
                    self.part[i] = L::fma(a, part, self.part[i]);
                }
            }
        }
    }
}
