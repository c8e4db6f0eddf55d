//! One block of rows times one panel of P vectors, everything hot in registers.
//!
//! ```text
//! dots     s[r][c] = w_r Σ_j a_r[j]·V[j][c]     R rows × P vectors of accumulators, V read once for R rows
//! update   Y[j][c] += Σ_r s[r][c]·a_r[j]         J registers of columns × P vectors, Y read and written once a block
//! ```
//!
//! Rows are widened and centred in registers, both times. During the update the next block of rows is fetched: the
//! memory bus works while the arithmetic does.

use super::lanes::{Kernel, LINE, Lanes};
use crate::matrix::Real;

/// Most rows in a block.
pub(super) const BLOCK: usize = 48;
/// Bytes of V taken at a time by the dots: with the rows' own lines they stay in the first-level cache. With fewer
/// registers panels are half as wide, and half of it holds one of 784 columns in f32.
const fn tile_bytes<L: Lanes>() -> usize {
    if L::REGISTERS >= 32 { 24 << 10 } else { 13 << 10 }
}

/// The operands.
pub(super) struct Panel<'a, T, A> {
    pub(super) d: usize,
    pub(super) rows: &'a [*const T],
    pub(super) weights: &'a [f64],
    /// Rows to fetch meanwhile.
    pub(super) next: &'a [*const T],
    pub(super) shift: Option<*const A>,
    pub(super) v: *const A,
    pub(super) y: *mut A,
    /// Room for the accumulators of every row between two tiles, then for s.
    pub(super) partial: *mut A,
}

impl<T: Real, A: Real> Panel<'_, T, A> {
    /// Y += Σ w a(aᵀV) over the block.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]. Every row is readable for d values; `shift` for d values rounded up to whole registers;
    /// `v` and `y` for `p` times as many; `partial` holds a register for each row and vector.
    #[inline(always)]
    pub(super) unsafe fn add<L: Lanes<Number = A>>(self, p: usize) {
        /// P vectors, R rows at once in the dots, J registers of columns at once in the update.
        macro_rules! blocked {
            ($($p:literal: $r:literal $j:literal),*) => {
                match p {
                    $($p => {
                        if self.shift.is_some() {
                            // SAFETY: the caller's promise.
                            unsafe { L::enter(Blocked::<T, A, true, $p, $r, $j>(self)) }
                        } else {
                            // SAFETY: the caller's promise.
                            unsafe { L::enter(Blocked::<T, A, false, $p, $r, $j>(self)) }
                        }
                    })*
                    _ => unreachable!("panels are no wider than the registers allow"),
                }
            };
        }
        if L::REGISTERS >= 32 {
            blocked!(1: 8 8, 2: 8 8, 3: 8 4, 4: 6 4, 5: 4 4, 6: 4 3, 7: 3 2, 8: 3 3);
        } else {
            blocked!(1: 8 6, 2: 4 4, 3: 4 3, 4: 3 2);
        }
    }
}

struct Blocked<'a, T, A, const SHIFT: bool, const P: usize, const R: usize, const J: usize>(Panel<'a, T, A>);

impl<T: Real, A: Real, const SHIFT: bool, const P: usize, const R: usize, const J: usize> Kernel<A>
    for Blocked<'_, T, A, SHIFT, P, R, J>
{
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        // SAFETY: the promise of `Panel::add`.
        unsafe {
            self.dots::<L>();
            self.update::<L>();
        }
    }
}

impl<T: Real, A: Real, const SHIFT: bool, const P: usize, const R: usize, const J: usize>
    Blocked<'_, T, A, SHIFT, P, R, J>
{
    /// `partial[r·P + c]` ← `s[r][c]`.
    #[inline(always)]
    unsafe fn dots<L: Lanes<Number = A>>(&self) {
        let n_registers = self.0.d.div_ceil(L::N);
        let n_rows = self.0.rows.len();
        let n_tiles = (n_registers * P * L::N * A::BYTES).div_ceil(tile_bytes::<L>());
        for tile in 0..n_tiles {
            let columns = n_registers * tile / n_tiles..n_registers * (tile + 1) / n_tiles;
            let mut row = 0;
            while row + R <= n_rows {
                // SAFETY: rows row .. row + R exist; otherwise the promise of `Panel::add`.
                unsafe { self.dots_of_rows::<L, R>(row, columns.clone()) };
                row += R;
            }
            while row < n_rows {
                // SAFETY: the row exists; otherwise the promise of `Panel::add`.
                unsafe { self.dots_of_rows::<L, 1>(row, columns.clone()) };
                row += 1;
            }
        }
        let partial = self.0.partial;
        for (r, w) in self.0.weights.iter().enumerate() {
            for i in r * P..(r + 1) * P {
                // SAFETY: `partial` holds a register for each row and vector. The i-th sum takes the place of a lane of
                // an accumulator already summed.
                unsafe {
                    let sum = L::sum(L::load(partial.add(i * L::N)));
                    partial.add(i).write(A::from_f64(w * sum.to_f64()));
                }
            }
        }
    }

    /// Adds the products of columns `columns` (in registers) to the accumulators of `ROWS` rows.
    #[inline(always)]
    unsafe fn dots_of_rows<L: Lanes<Number = A>, const ROWS: usize>(
        &self,
        first: usize,
        columns: std::ops::Range<usize>,
    ) {
        let Panel { d, rows, partial, .. } = self.0;
        let n_full = d / L::N;
        // SAFETY: the promise of `Panel::add`; whole registers of a row are read below n_full only.
        unsafe {
            let partial = partial.add(first * P * L::N);
            let mut s = [[L::splat(A::default()); P]; ROWS];
            let from: [*const T; ROWS] = std::array::from_fn(|r| rows[first + r]);
            if columns.start > 0 {
                for r in 0..ROWS {
                    for c in 0..P {
                        s[r][c] = L::load(partial.add((r * P + c) * L::N));
                    }
                }
            }
            for j in columns.start..columns.end.min(n_full) {
                let mut a = [L::splat(A::default()); ROWS];
                for r in 0..ROWS {
                    a[r] = self.centred::<L>(T::load::<L>(from[r].add(j * L::N)), j);
                }
                self.multiply::<L, ROWS>(j, a, &mut s);
            }
            if columns.end > n_full {
                let mask = L::mask(d % L::N);
                let mut a = [L::splat(A::default()); ROWS];
                for r in 0..ROWS {
                    a[r] = self.centred::<L>(T::load_masked::<L>(from[r].add(n_full * L::N), mask), n_full);
                }
                self.multiply::<L, ROWS>(n_full, a, &mut s);
            }
            for r in 0..ROWS {
                for c in 0..P {
                    L::store(partial.add((r * P + c) * L::N), s[r][c]);
                }
            }
        }
    }

    /// `s[r][c]` += a_r·V in the j-th register of columns.
    #[inline(always)]
    unsafe fn multiply<L: Lanes<Number = A>, const ROWS: usize>(
        &self,
        j: usize,
        a: [L::V; ROWS],
        s: &mut [[L::V; P]; ROWS],
    ) {
        // SAFETY: the promise of `Panel::add`.
        unsafe {
            for c in 0..P {
                let v = L::load(self.0.v.add((j * P + c) * L::N));
                for r in 0..ROWS {
                    s[r][c] = L::fma(a[r], v, s[r][c]);
                }
            }
        }
    }

    /// `Y[j][c] += Σ_r s[r][c]·a_r[j]`.
    #[inline(always)]
    unsafe fn update<L: Lanes<Number = A>>(&self) {
        let n_full = self.0.d / L::N;
        let mut j = 0;
        // SAFETY: registers below n_full are whole; otherwise the promise of `Panel::add`.
        unsafe {
            while j + J <= n_full {
                self.update_columns::<L, J, false>(j);
                j += J;
            }
            if J > 4 && j + 4 <= n_full {
                self.update_columns::<L, 4, false>(j);
                j += 4;
            }
            if J > 2 && j + 2 <= n_full {
                self.update_columns::<L, 2, false>(j);
                j += 2;
            }
            while j < n_full {
                self.update_columns::<L, 1, false>(j);
                j += 1;
            }
            if !self.0.d.is_multiple_of(L::N) {
                self.update_columns::<L, 1, true>(j);
            }
        }
    }

    /// The same for registers of columns `first .. first + WIDE`.
    #[inline(always)]
    unsafe fn update_columns<L: Lanes<Number = A>, const WIDE: usize, const PART: bool>(&self, first: usize) {
        let Panel { d, rows, next, partial, y, .. } = self.0;
        // SAFETY: the promise of `Panel::add`.
        unsafe {
            let mask = L::mask(if PART { d % L::N } else { 0 });
            let mut sum = [[L::splat(A::default()); P]; WIDE];
            for j in 0..WIDE {
                for c in 0..P {
                    sum[j][c] = L::load(y.add(((first + j) * P + c) * L::N));
                }
            }
            for (r, row) in rows.iter().enumerate() {
                if let Some(next) = next.get(r) {
                    let bytes = WIDE * L::N * T::BYTES;
                    for line in 0..bytes.div_ceil(LINE) {
                        L::prefetch(next.wrapping_add(first * L::N + line * (LINE / T::BYTES)));
                    }
                }
                let mut a = [L::splat(A::default()); WIDE];
                for j in 0..WIDE {
                    let from = row.add((first + j) * L::N);
                    let x = if PART { T::load_masked::<L>(from, mask) } else { T::load::<L>(from) };
                    a[j] = self.centred::<L>(x, first + j);
                }
                for c in 0..P {
                    let s = L::splat(partial.add(r * P + c).read());
                    for j in 0..WIDE {
                        sum[j][c] = L::fma(a[j], s, sum[j][c]);
                    }
                }
            }
            for j in 0..WIDE {
                for c in 0..P {
                    L::store(y.add(((first + j) * P + c) * L::N), sum[j][c]);
                }
            }
        }
    }

    /// x − shift in the j-th register of columns.
    #[inline(always)]
    unsafe fn centred<L: Lanes<Number = A>>(&self, x: L::V, j: usize) -> L::V {
        match self.0.shift {
            // SAFETY: the promise of `Panel::add`.
            Some(shift) if SHIFT => unsafe { L::sub(x, L::load(shift.add(j * L::N))) },
            _ => x,
        }
    }
}
