//! Products of vectors that lie one after another, over a chunk of their coordinates: QᵀW and W + QH.
//!
//! The lanes of a register are neighbouring coordinates of one vector, so that nothing is packed or transposed. A chunk is
//! short enough for the second-level cache, and its sums are gathered in numbers of the same precision.

use super::Level;
use super::lanes::{Arithmetic, Kernel, Lanes};

/// Chunks have a multiple of so many coordinates: whole registers at every level.
pub(crate) const REGISTERS_FULL: usize = 16;

/// `out` ← QᵀW, a×p row-major, for a vectors Q and p vectors W of `rows` coordinates each.
pub(crate) fn gram<A: Arithmetic>(q: &[A], w: &[A], rows: usize, out: &mut [f64]) {
    gram_at(Level::best(), q, w, rows, out);
}

/// [`gram`] with the instructions of `level`.
pub(super) fn gram_at<A: Arithmetic>(level: Level, q: &[A], w: &[A], rows: usize, out: &mut [f64]) {
    let (a, p) = check(q, w, rows);
    assert_eq!(out.len(), a * p, "QᵀW is a×p");
    A::run(level, Gram { q, w, rows, a, p, out });
}

/// W ← W + QH for a vectors Q and p vectors W of `rows` coordinates each, H a×p row-major.
pub(crate) fn add_product<A: Arithmetic>(w: &mut [A], q: &[A], rows: usize, h: &[A]) {
    add_product_at(Level::best(), w, q, rows, h);
}

/// [`add_product`] with the instructions of `level`.
pub(super) fn add_product_at<A: Arithmetic>(level: Level, w: &mut [A], q: &[A], rows: usize, h: &[A]) {
    let (a, p) = check(q, w, rows);
    assert_eq!(h.len(), a * p, "H is a×p");
    A::run(level, AddProduct { w, q, rows, a, p, h });
}

/// a and p.
fn check<A>(q: &[A], w: &[A], rows: usize) -> (usize, usize) {
    let (a, p) = (q.len() / rows, w.len() / rows);
    assert!(
        rows.is_multiple_of(REGISTERS_FULL) && q.len() == a * rows && w.len() == p * rows,
        "whole vectors"
    );
    (a, p)
}

/// Runs `$tile` for as many columns at a time as the registers allow, `$from` being the first of them.
macro_rules! in_tiles {
    ($from:ident < $end:expr, $lanes:ident, $this:ident.$tile:ident::<$rows:literal>($($at:expr),*)) => {{
        while $from + 8 <= $end && $lanes::REGISTERS >= 32 {
            $this.$tile::<$lanes, $rows, 8>($($at),*);
            $from += 8;
        }
        while $from + 4 <= $end {
            $this.$tile::<$lanes, $rows, 4>($($at),*);
            $from += 4;
        }
        while $from < $end {
            $this.$tile::<$lanes, $rows, 1>($($at),*);
            $from += 1;
        }
    }};
}

struct Gram<'a, A> {
    q: &'a [A],
    w: &'a [A],
    rows: usize,
    a: usize,
    p: usize,
    out: &'a mut [f64],
}

impl<A: Arithmetic> Kernel<A> for Gram<'_, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(mut self) {
        let (mut i, a, p) = (0, self.a, self.p);
        // SAFETY: the assertions of `gram_at`: vectors i … and j … exist, and registers divide their coordinates.
        unsafe {
            while i + 3 <= a {
                let mut j = 0;
                in_tiles!(j < p, L, self.tile::<3>(i, j));
                i += 3;
            }
            while i < a {
                let mut j = 0;
                in_tiles!(j < p, L, self.tile::<1>(i, j));
                i += 1;
            }
        }
    }
}

impl<A: Arithmetic> Gram<'_, A> {
    /// Products of the vectors `i..i + I` of Q with `j..j + J` of W.
    #[inline(always)]
    unsafe fn tile<L: Lanes<Number = A>, const I: usize, const J: usize>(&mut self, i: usize, j: usize) {
        // SAFETY: as for `run`.
        unsafe {
            let (q, w) = (self.q.as_ptr().add(i * self.rows), self.w.as_ptr().add(j * self.rows));
            let mut sums = [[L::splat(A::default()); J]; I];
            let mut row = 0;
            while row < self.rows {
                let mut left = [L::splat(A::default()); I];
                for k in 0..I {
                    left[k] = L::load(q.add(k * self.rows + row));
                }
                for l in 0..J {
                    let right = L::load(w.add(l * self.rows + row));
                    for k in 0..I {
                        sums[k][l] = L::fma(left[k], right, sums[k][l]);
                    }
                }
                row += L::N;
            }
            for k in 0..I {
                for l in 0..J {
                    self.out[(i + k) * self.p + j + l] = L::sum(sums[k][l]).to_f64();
                }
            }
        }
    }
}

struct AddProduct<'a, A> {
    w: &'a mut [A],
    q: &'a [A],
    rows: usize,
    a: usize,
    p: usize,
    h: &'a [A],
}

impl<A: Arithmetic> Kernel<A> for AddProduct<'_, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(mut self) {
        let (mut row, p) = (0, self.p);
        // SAFETY: the assertions of `add_product_at`: vectors j … exist, and registers divide their coordinates.
        unsafe {
            while row + 2 * L::N <= self.rows {
                let mut j = 0;
                in_tiles!(j < p, L, self.tile::<2>(row, j));
                row += 2 * L::N;
            }
            while row < self.rows {
                let mut j = 0;
                in_tiles!(j < p, L, self.tile::<1>(row, j));
                row += L::N;
            }
        }
    }
}

impl<A: Arithmetic> AddProduct<'_, A> {
    /// R registers of the vectors `j..j + J` of W, from coordinate `row` on.
    #[inline(always)]
    unsafe fn tile<L: Lanes<Number = A>, const R: usize, const J: usize>(&mut self, row: usize, j: usize) {
        // SAFETY: as for `run`.
        unsafe {
            let w = self.w.as_mut_ptr().add(j * self.rows + row);
            let (mut q, mut h) = (self.q.as_ptr().wrapping_add(row), self.h.as_ptr().wrapping_add(j));
            let mut sums = [[L::splat(A::default()); R]; J];
            for l in 0..J {
                for k in 0..R {
                    sums[l][k] = L::load(w.add(l * self.rows + k * L::N));
                }
            }
            for _ in 0..self.a {
                let mut left = [L::splat(A::default()); R];
                for k in 0..R {
                    left[k] = L::load(q.add(k * L::N));
                }
                for l in 0..J {
                    let factor = L::splat(h.add(l).read());
                    for k in 0..R {
                        sums[l][k] = L::fma(left[k], factor, sums[l][k]);
                    }
                }
                (q, h) = (q.wrapping_add(self.rows), h.wrapping_add(self.p));
            }
            for l in 0..J {
                for k in 0..R {
                    L::store(w.add(l * self.rows + k * L::N), sums[l][k]);
                }
            }
        }
    }
}
