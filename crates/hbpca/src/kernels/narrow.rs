//! Products of narrow blocks, whose few values of a coordinate lie side by side: AᵀB and W + AH.
//!
//! A library's matrix product spends more time on packing such operands than on multiplying them. Here a register holds
//! neighbouring columns of B (or of H and W), and everything is read in the order in which it lies.

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
    unsafe fn run<L: Lanes<Number = f64>>(mut self) {
        for column in (0..self.q).step_by(L::N) {
            let mut i = 0;
            // SAFETY: the assertion of `gram_at`; rows i up to i + I of the result lie below p.
            unsafe {
                while i + 8 <= self.p {
                    self.tile::<L, 8>(i, column);
                    i += 8;
                }
                if i + 4 <= self.p {
                    self.tile::<L, 4>(i, column);
                    i += 4;
                }
                if i + 2 <= self.p {
                    self.tile::<L, 2>(i, column);
                    i += 2;
                }
                if i < self.p {
                    self.tile::<L, 1>(i, column);
                }
            }
        }
    }
}

impl Gram<'_> {
    /// Rows `i..i + I` of the result and a register of its columns from `column` on.
    #[inline(always)]
    unsafe fn tile<L: Lanes<Number = f64>, const I: usize>(&mut self, i: usize, column: usize) {
        let (p, q, left) = (self.p, self.q, self.q - column);
        // SAFETY: as for `run`; fewer columns than lanes are read and written under a mask.
        unsafe {
            let (mut a, mut b) = (self.a.as_ptr().add(i), self.b.as_ptr().add(column));
            let mut sums = [L::splat(0.0); I];
            let out = self.out.as_mut_ptr().add(i * q + column);
            if left >= L::N {
                for _ in 0..self.a.len() / p {
                    let row = L::load(b);
                    for k in 0..I {
                        sums[k] = L::fma(L::splat(a.add(k).read()), row, sums[k]);
                    }
                    (a, b) = (a.wrapping_add(p), b.wrapping_add(q));
                }
                for k in 0..I {
                    L::store(out.add(k * q), sums[k]);
                }
            } else {
                let mask = L::mask(left);
                for _ in 0..self.a.len() / p {
                    let row = L::load_masked(b, mask);
                    for k in 0..I {
                        sums[k] = L::fma(L::splat(a.add(k).read()), row, sums[k]);
                    }
                    (a, b) = (a.wrapping_add(p), b.wrapping_add(q));
                }
                for k in 0..I {
                    L::store_masked(out.add(k * q), sums[k], mask);
                }
            }
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
        /// Rows at a time: as many sums, none of which waits for another.
        const ROWS: usize = 8;
        let rows = self.w.len() / self.r;
        for column in (0..self.r).step_by(L::N) {
            let whole = rows - rows % ROWS;
            // SAFETY: the assertion of `add_product_at`; rows lie below those of W.
            unsafe {
                for row in (0..whole).step_by(ROWS) {
                    self.tile::<L, ROWS>(row, column);
                }
                for row in whole..rows {
                    self.tile::<L, 1>(row, column);
                }
            }
        }
    }
}

impl AddProduct<'_> {
    /// Rows `row..row + ROWS` of W and a register of its columns from `column` on.
    #[inline(always)]
    unsafe fn tile<L: Lanes<Number = f64>, const ROWS: usize>(&mut self, row: usize, column: usize) {
        let (p, r, left) = (self.p, self.r, self.r - column);
        // SAFETY: as for `run`; fewer columns than lanes are read and written under a mask.
        unsafe {
            let (a, w) = (self.a.as_ptr().add(row * p), self.w.as_mut_ptr().add(row * r + column));
            let mut h = self.h.as_ptr().wrapping_add(column);
            let mut sums = [L::splat(0.0); ROWS];
            if left >= L::N {
                for i in 0..ROWS {
                    sums[i] = L::load(w.add(i * r));
                }
                for j in 0..p {
                    let row = L::load(h);
                    for i in 0..ROWS {
                        sums[i] = L::fma(L::splat(a.add(i * p + j).read()), row, sums[i]);
                    }
                    h = h.wrapping_add(r);
                }
                for i in 0..ROWS {
                    L::store(w.add(i * r), sums[i]);
                }
            } else {
                let mask = L::mask(left);
                for i in 0..ROWS {
                    sums[i] = L::load_masked(w.add(i * r), mask);
                }
                for j in 0..p {
                    let row = L::load_masked(h, mask);
                    for i in 0..ROWS {
                        sums[i] = L::fma(L::splat(a.add(i * p + j).read()), row, sums[i]);
                    }
                    h = h.wrapping_add(r);
                }
                for i in 0..ROWS {
                    L::store_masked(w.add(i * r), sums[i], mask);
                }
            }
        }
    }
}
