//! y += Σ w a(aᵀv) over dense rows for one vector, at the speed of the memory.
//!
//! Arithmetic on one vector takes half as long as fetching the rows, so that the bus must never wait for it. A row is needed
//! twice, and one walk over the columns does both, each for another group of R rows:
//!
//! ```text
//! for each register j of columns
//!     s[r] += a_r[j]·v[j]             rows of this group
//!     y[j] += Σ_r s'[r]·a'_r[j]       rows of the group before, whose s' are known
//!     fetch x_r[j] of the group after into the second-level cache
//! ```

use super::dense::carve;
use super::lanes::{Arithmetic, Kernel, LINE, Lanes};
use super::{RowSet, RowWeights};
use crate::kernels::Stored;
use crate::matrix::Dense;

/// The operands; `v` and `y` are d long, rounded up to whole registers.
pub(super) struct OneVector<'a, T: Stored, A> {
    pub(super) x: &'a Dense<'a, T>,
    pub(super) rows: &'a RowSet<'a>,
    pub(super) weights: RowWeights<'a>,
    pub(super) shift: Option<&'a [f64]>,
    pub(super) v: &'a [A],
    pub(super) y: &'a mut [f64],
    pub(super) scratch: &'a mut Vec<A>,
}

impl<T: Stored, A: Arithmetic> Kernel<A> for OneVector<'_, T, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        let Self { x, rows, weights, shift, v, y, scratch } = self;
        let padded = x.n_cols().next_multiple_of(L::N);
        let [packed_shift, packed_y] = carve(scratch, [padded; 2]);
        if let Some(shift) = shift {
            packed_shift.iter_mut().zip(shift).for_each(|(to, mu)| *to = A::from_f64(*mu));
        }
        for from in (0..rows.len()).step_by(A::ROWS_IN_SUM) {
            let walk = Walk {
                x,
                rows,
                weights,
                shift: packed_shift.as_ptr(),
                v: v.as_ptr(),
                y: packed_y.as_mut_ptr(),
            };
            let n_rows = A::ROWS_IN_SUM.min(rows.len() - from);
            // SAFETY: all three are d values long, rounded up to whole registers.
            unsafe {
                if shift.is_some() {
                    walk.over::<L, true>(from, n_rows);
                } else {
                    walk.over::<L, false>(from, n_rows);
                }
            }
            y.iter_mut().zip(&*packed_y).for_each(|(y, sum)| *y += sum.to_f64());
            packed_y.fill(A::default());
        }
    }
}

/// Rows and packed vectors.
struct Walk<'a, T: Stored, A> {
    x: &'a Dense<'a, T>,
    rows: &'a RowSet<'a>,
    weights: RowWeights<'a>,
    shift: *const A,
    v: *const A,
    y: *mut A,
}

impl<T: Stored, A: Stored> Walk<'_, T, A> {
    /// Adds `n_rows` rows from the `from`-th on: most in groups as large as the registers allow, the last ones in smaller.
    #[inline(always)]
    unsafe fn over<L: Lanes<Number = A>, const SHIFT: bool>(&self, from: usize, n_rows: usize) {
        // SAFETY: the caller's promise; all groups lie below from + n_rows.
        unsafe {
            let large = if L::REGISTERS >= 32 { n_rows / 12 * 12 } else { 0 };
            let medium = large + (n_rows - large) / 4 * 4;
            self.in_groups::<L, SHIFT, 12>(from..from + large);
            self.in_groups::<L, SHIFT, 4>(from + large..from + medium);
            self.in_groups::<L, SHIFT, 1>(from + medium..from + n_rows);
        }
    }

    /// The same in whole groups of R.
    #[inline(always)]
    unsafe fn in_groups<L: Lanes<Number = A>, const SHIFT: bool, const R: usize>(
        &self,
        range: std::ops::Range<usize>,
    ) {
        if range.is_empty() {
            return;
        }
        let nothing = [A::default(); R];
        let mut group = self.group::<R>(range.start);
        // SAFETY: the caller's promise; `group` and `before` point to rows.
        unsafe {
            let mut after = self.group::<R>(range.start + R);
            let sums = self.sweep::<L, SHIFT, R, true, false>(&group, &group, &nothing, &after);
            let mut s = self.weighted(range.start, sums);
            for first in range.clone().step_by(R).skip(1) {
                let before = group;
                group = after;
                after = self.group::<R>(first + R);
                let sums = self.sweep::<L, SHIFT, R, true, true>(&group, &before, &s, &after);
                s = self.weighted(first, sums);
            }
            self.sweep::<L, SHIFT, R, false, true>(&group, &group, &s, &after);
        }
    }

    /// Where R rows lie; the last one instead of those that are none.
    #[inline(always)]
    fn group<const R: usize>(&self, first: usize) -> [*const T; R] {
        let mut group = [std::ptr::null(); R];
        for r in 0..R {
            group[r] = self.x.row(self.rows.get((first + r).min(self.rows.len() - 1))).as_ptr();
        }
        group
    }

    /// w aᵀv of the rows from `first` on.
    #[inline(always)]
    fn weighted<const R: usize>(&self, first: usize, sums: [A; R]) -> [A; R] {
        let mut s = sums;
        for r in 0..R {
            let weight = self.weights.of(self.rows.get(first + r));
            s[r] = A::from_f64(weight * sums[r].to_f64());
        }
        s
    }

    /// One walk over the columns: aᵀv of `group` if DOTS, y += Σ s a over `before` if UPDATE.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]; the rows of `group` and `before` are d long.
    #[inline(always)]
    unsafe fn sweep<
        L: Lanes<Number = A>,
        const SHIFT: bool,
        const R: usize,
        const DOTS: bool,
        const UPDATE: bool,
    >(
        &self,
        group: &[*const T; R],
        before: &[*const T; R],
        s: &[A; R],
        after: &[*const T; R],
    ) -> [A; R] {
        let d = self.x.n_cols();
        let n_full = d / L::N;
        let registers_in_line = (LINE / (L::N * T::BYTES)).max(1);
        // SAFETY: whole registers of a row are read below n_full only, and the rest under its mask; v, y and shift are padded.
        unsafe {
            let mut dots = [L::splat(A::default()); R];
            let mut factors = dots;
            for r in 0..R {
                factors[r] = L::splat(s[r]);
            }
            for j in 0..n_full {
                if DOTS && j % registers_in_line == 0 {
                    for r in 0..R {
                        L::prefetch(after[r].wrapping_add(j * L::N));
                    }
                }
                let mut a = [dots[0]; R];
                let mut a_before = a;
                for r in 0..R {
                    a[r] = T::load::<L>(group[r].add(j * L::N));
                    a_before[r] = T::load::<L>(before[r].add(j * L::N));
                }
                self.add::<L, SHIFT, R, DOTS, UPDATE>(j, &a, &a_before, &factors, &mut dots);
            }
            if !d.is_multiple_of(L::N) {
                let mask = L::mask(d % L::N);
                let mut a = [dots[0]; R];
                let mut a_before = a;
                for r in 0..R {
                    a[r] = T::load_masked::<L>(group[r].add(n_full * L::N), mask);
                    a_before[r] = T::load_masked::<L>(before[r].add(n_full * L::N), mask);
                }
                self.add::<L, SHIFT, R, DOTS, UPDATE>(n_full, &a, &a_before, &factors, &mut dots);
            }
            let mut sums = [A::default(); R];
            if DOTS {
                for r in 0..R {
                    sums[r] = L::sum(dots[r]);
                }
            }
            sums
        }
    }

    /// Both sums in the j-th register of columns. What pads a row is zero less the padding of `shift`, zero.
    #[inline(always)]
    unsafe fn add<
        L: Lanes<Number = A>,
        const SHIFT: bool,
        const R: usize,
        const DOTS: bool,
        const UPDATE: bool,
    >(
        &self,
        j: usize,
        a: &[L::V; R],
        a_before: &[L::V; R],
        factors: &[L::V; R],
        dots: &mut [L::V; R],
    ) {
        // SAFETY: the promise of `sweep`.
        unsafe {
            let shift = L::load(self.shift.add(j * L::N));
            let v = L::load(self.v.add(j * L::N));
            let mut y = L::load(self.y.add(j * L::N));
            for r in 0..R {
                if DOTS {
                    let a = if SHIFT { L::sub(a[r], shift) } else { a[r] };
                    dots[r] = L::fma(a, v, dots[r]);
                }
                if UPDATE {
                    let a = if SHIFT { L::sub(a_before[r], shift) } else { a_before[r] };
                    y = L::fma(a, factors[r], y);
                }
            }
            if UPDATE {
                L::store(self.y.add(j * L::N), y);
            }
        }
    }
}
