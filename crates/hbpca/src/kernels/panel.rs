//! One block of rows times one or two panels of vectors, everything hot in registers.
//!
//! ```text
//! dots     s[r][c] = w_r Σ_j a_r[j]·V[j][c]     R rows × P vectors of accumulators, V read once for R rows
//! update   Y[j][c] += Σ_r s[r][c]·a_r[j]         J registers of columns × P vectors, Y read and written once a block
//! ```
//!
//! The first dots widen and centre a row and *keep* it; everything after takes it from there, in whole and aligned
//! registers. Rows that need no widening, and whose means may be taken out of s and of Y afterwards, are multiplied as they
//! lie. A second panel takes its turn while what the first one used is in the first-level cache: with several
//! vectors a pass runs out of loads before it runs out of products. The next block of rows is fetched meanwhile, some of
//! it by the dots, most by the update: the memory bus works while the arithmetic does.

use std::ops::Range;

use super::lanes::{Kernel, LINE, Lanes};
use crate::kernels::Stored;
use crate::matrix::Real;

/// Most rows in a block.
pub(super) const BLOCK: usize = 24;

/// Most vectors of any panel.
const WIDEST: usize = 8;

/// Most vectors of a panel.
pub(super) const fn widest<L: Lanes>() -> usize {
    if L::REGISTERS >= 32 { WIDEST } else { 4 }
}

/// Panels that take turns. Wide ones need no other, and plain arrays no speed.
pub(super) const fn together<L: Lanes>() -> usize {
    if L::REGISTERS >= 32 || L::IS_PLAIN { 1 } else { 2 }
}

/// Bytes of V taken at a time by the dots: with the rows' own lines they stay in the first-level cache.
const fn tile_bytes<L: Lanes>() -> usize {
    if L::REGISTERS >= 32 { 24 << 10 } else { 13 << 10 }
}

/// From one kept row to the next: whole registers, and an odd number of cache lines, so that rows as long as a power
/// of two do not all fall into the same few places of a cache.
pub(super) fn stride<L: Lanes>(d: usize) -> usize {
    let line = LINE / L::Number::BYTES;
    (d.next_multiple_of(L::N).div_ceil(line) | 1) * line
}

/// A block of rows.
#[derive(Clone, Copy)]
pub(super) struct Block<'a, T, A> {
    pub(super) d: usize,
    pub(super) rows: &'a [*const T],
    pub(super) weights: Option<&'a [f64]>,
    /// Rows to fetch meanwhile.
    pub(super) next: &'a [*const T],
    /// Taken from every row.
    pub(super) shift: *const A,
    /// The rows as they are multiplied, `stride` apart.
    pub(super) kept: *mut A,
    pub(super) stride: usize,
    /// Whether they have been kept before, or lie there anyway.
    pub(super) are_kept: bool,
    /// Whether they lie there, and the next ones behind them.
    pub(super) lies: bool,
}

/// Vectors, and what is summed up for them.
#[derive(Clone, Copy)]
pub(super) struct Panel<A> {
    pub(super) p: usize,
    pub(super) v: *const A,
    pub(super) y: *mut A,
    /// Room for the accumulators of every row between two tiles, then for s.
    pub(super) partial: *mut A,
    /// Where means are taken out afterwards: Vᵀμ of every vector, and the sum of its s.
    pub(super) centre: Option<(*const f64, *mut f64)>,
}

impl<T: Stored, A: Stored> Block<'_, T, A> {
    /// Y += Σ w a(aᵀV) over the block for one panel, or for `together` panels the second of which is as wide as the first
    /// or has one vector less.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]. Every row is readable for d values; `shift` for d values rounded up to whole registers;
    /// `kept` holds `stride` values for each row, and is only read where they are kept; `v` and `y` are readable for `p` times d rounded
    /// up; `partial` holds a register for each row and vector, and either part of `centre` p values.
    #[inline(always)]
    pub(super) unsafe fn add_to<L: Lanes<Number = A>>(self, panels: &[Panel<A>]) {
        /// P vectors and those of the second panel, R rows at once in the dots, J registers of columns in the update.
        macro_rules! shapes {
            ($($p:literal $second:literal: $r:literal $j:literal),*) => {
                match (panels[0].p, panels.get(1).map_or(0, |panel| panel.p)) {
                    $(
                        // SAFETY: the caller's promise.
                        ($p, $second) => unsafe { L::enter(Shape::<_, _, $p, $second, $r, $j> { block: self, panels }) },
                    )*
                    _ => unreachable!("panels of two vectors or more, nearly equal, no wider than the registers allow"),
                }
            };
        }
        match (widest::<L>(), together::<L>()) {
            (8, _) => shapes!(2 0: 6 4, 3 0: 6 4, 4 0: 6 4, 5 0: 4 4, 6 0: 4 3, 7 0: 3 2, 8 0: 3 3),
            (_, 1) => shapes!(2 0: 4 4, 3 0: 3 3, 4 0: 3 2),
            _ => shapes!(2 0: 4 4, 3 0: 3 3, 4 0: 3 2, 3 2: 3 3, 3 3: 3 3, 4 3: 3 2, 4 4: 3 2),
        }
    }
}

/// A block and its panels, with the sizes by which registers are dealt out; none of P and SECOND is one, which has a kernel of
/// its own.
struct Shape<'a, T, A, const P: usize, const SECOND: usize, const R: usize, const J: usize> {
    block: Block<'a, T, A>,
    panels: &'a [Panel<A>],
}

impl<T: Stored, A: Stored, const P: usize, const SECOND: usize, const R: usize, const J: usize> Kernel<A>
    for Shape<'_, T, A, P, SECOND, R, J>
{
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        // SAFETY: the promise of `Block::add_to`.
        unsafe {
            self.dots::<L>();
            self.block.sum_up::<L, P>(&self.panels[0]);
            if SECOND > 0 {
                self.block.sum_up::<L, SECOND>(&self.panels[1]);
            }
            self.update::<L>();
        }
    }
}

impl<T: Stored, A: Stored, const P: usize, const SECOND: usize, const R: usize, const J: usize>
    Shape<'_, T, A, P, SECOND, R, J>
{
    #[inline(always)]
    unsafe fn dots<L: Lanes<Number = A>>(&self) {
        let n_registers = self.block.d.div_ceil(L::N);
        let n_tiles = (n_registers * (P + SECOND) * L::N * A::BYTES).div_ceil(tile_bytes::<L>());
        for tile in 0..n_tiles {
            let columns = n_registers * tile / n_tiles..n_registers * (tile + 1) / n_tiles;
            let mut row = 0;
            // SAFETY: the rows exist; otherwise the promise of `Block::add_to`.
            unsafe {
                while row + R <= self.block.rows.len() {
                    self.dots_of_rows::<L, R>(row, &columns);
                    row += R;
                }
                while row < self.block.rows.len() {
                    self.dots_of_rows::<L, 1>(row, &columns);
                    row += 1;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn dots_of_rows<L: Lanes<Number = A>, const ROWS: usize>(
        &self,
        row: usize,
        columns: &Range<usize>,
    ) {
        let fetch = self.block.next.get(row / R).copied();
        let first_fetches = fetch.filter(|_| SECOND == 0);
        // SAFETY: the promise of `Block::add_to`.
        unsafe {
            if self.block.are_kept {
                self.block.dots::<L, true, P, ROWS>(&self.panels[0], row, columns, first_fetches);
            } else {
                self.block.dots::<L, false, P, ROWS>(&self.panels[0], row, columns, first_fetches);
            }
            if SECOND > 0 {
                self.block.dots::<L, true, SECOND, ROWS>(&self.panels[1], row, columns, fetch);
            }
        }
    }

    #[inline(always)]
    unsafe fn update<L: Lanes<Number = A>>(&self) {
        let n_registers = self.block.d.div_ceil(L::N);
        let mut j = 0;
        // SAFETY: the promise of `Block::add_to`.
        unsafe {
            while j + J <= n_registers {
                self.update_columns::<L, J>(j);
                j += J;
            }
            while j < n_registers {
                self.update_columns::<L, 1>(j);
                j += 1;
            }
        }
    }

    #[inline(always)]
    unsafe fn update_columns<L: Lanes<Number = A>, const WIDE: usize>(&self, first: usize) {
        // What the dots have not fetched.
        let next = &self.block.next[self.block.next.len().min(self.block.rows.len() / R)..];
        // SAFETY: the promise of `Block::add_to`.
        unsafe {
            self.block.update::<L, P, WIDE>(&self.panels[0], first, next);
            if SECOND > 0 {
                self.block.update::<L, SECOND, WIDE>(&self.panels[1], first, &[]);
            }
        }
    }
}

impl<T: Stored, A: Stored> Block<'_, T, A> {
    /// Adds the products of columns `columns` (in registers) to the accumulators of R rows from `first`.
    #[inline(always)]
    unsafe fn dots<L: Lanes<Number = A>, const KEPT: bool, const P: usize, const R: usize>(
        &self,
        panel: &Panel<A>,
        first: usize,
        columns: &Range<usize>,
        fetch: Option<*const T>,
    ) {
        let Block { d, rows, shift, kept, stride, .. } = *self;
        let n_full = d / L::N;
        let v = panel.v;
        // SAFETY: the promise of `add_to`; whole registers of a row are read below n_full only.
        unsafe {
            let from: [*const T; R] = std::array::from_fn(|r| rows[first + r]);
            let kept: [*mut A; R] = std::array::from_fn(|r| kept.add((first + r) * stride));
            let partial = panel.partial.add(first * P * L::N);
            let mut s = [[L::splat(A::default()); P]; R];
            if columns.start > 0 {
                for r in 0..R {
                    for c in 0..P {
                        s[r][c] = L::load(partial.add((r * P + c) * L::N));
                    }
                }
            }
            let n_whole = if KEPT { columns.end } else { columns.end.min(n_full) };
            let registers_in_line = (LINE / (L::N * T::BYTES)).max(1);
            for j in columns.start..n_whole {
                if let Some(fetch) = fetch
                    && j % registers_in_line == 0
                {
                    L::prefetch(fetch.wrapping_add(j * L::N));
                }
                let mut a = [L::splat(A::default()); R];
                if KEPT {
                    for r in 0..R {
                        a[r] = L::load(kept[r].add(j * L::N));
                    }
                } else {
                    let mu = L::load(shift.add(j * L::N));
                    for r in 0..R {
                        a[r] = L::sub(T::load::<L>(from[r].add(j * L::N)), mu);
                        L::store(kept[r].add(j * L::N), a[r]);
                    }
                }
                multiply::<L, P, R>(a, v, j, &mut s);
            }
            if columns.end > n_whole {
                let mask = L::mask(d % L::N);
                let mu = L::load(shift.add(n_full * L::N));
                let mut a = [L::splat(A::default()); R];
                for r in 0..R {
                    a[r] = L::sub(T::load_masked::<L>(from[r].add(n_full * L::N), mask), mu);
                    L::store(kept[r].add(n_full * L::N), a[r]);
                }
                multiply::<L, P, R>(a, v, n_full, &mut s);
            }
            for r in 0..R {
                for c in 0..P {
                    L::store(partial.add((r * P + c) * L::N), s[r][c]);
                }
            }
        }
    }

    /// `partial[r·P + c]` ← `s[r][c]`.
    #[inline(always)]
    unsafe fn sum_up<L: Lanes<Number = A>, const P: usize>(&self, panel: &Panel<A>) {
        let Panel { partial, centre, .. } = *panel;
        let n_sums = self.rows.len() * P;
        let n_grouped = n_sums / L::N * L::N;
        // SAFETY: `partial` holds a register for each row and vector. Sums take the places of accumulators already summed.
        unsafe {
            for i in (0..n_grouped).step_by(L::N) {
                L::store(partial.add(i), L::sums(partial.add(i * L::N)));
            }
            for i in n_grouped..n_sums {
                partial.add(i).write(L::sum(L::load(partial.add(i * L::N))));
            }
            if let Some((c, s_sum)) = centre {
                let c = c.cast::<[f64; P]>().read_unaligned();
                let mut sums = [0.0; P];
                for r in 0..self.rows.len() {
                    let w = self.weights.map_or(1.0, |weights| weights[r]);
                    let partial = partial.add(r * P).cast::<[A; P]>();
                    let s = partial.read();
                    let s: [A; P] = std::array::from_fn(|i| A::from_f64(w * (s[i].to_f64() - c[i])));
                    partial.write(s);
                    sums.iter_mut().zip(s).for_each(|(sum, s)| *sum += s.to_f64());
                }
                for (i, sum) in sums.into_iter().enumerate() {
                    *s_sum.add(i) += sum;
                }
                return;
            }
            for (r, w) in self.weights.into_iter().flatten().enumerate() {
                for i in r * P..(r + 1) * P {
                    partial.add(i).write(A::from_f64(w * partial.add(i).read().to_f64()));
                }
            }
        }
    }

    /// `Y[j][c] += Σ_r s[r][c]·a_r[j]` for the J registers of columns from `first`.
    #[inline(always)]
    unsafe fn update<L: Lanes<Number = A>, const P: usize, const J: usize>(
        &self,
        panel: &Panel<A>,
        first: usize,
        next: &[*const T],
    ) {
        let stride = self.stride;
        // SAFETY: the promise of `add_to`.
        unsafe {
            let y = panel.y.add(first * P * L::N);
            let mut at = Place { a: self.kept.add(first * L::N).cast_const(), s: panel.partial.cast_const() };
            let mut sum = [[L::splat(A::default()); P]; J];
            for j in 0..J {
                for c in 0..P {
                    sum[j][c] = L::load(y.add((j * P + c) * L::N));
                }
            }
            let n_next = next.len().min(self.rows.len());
            let lines = (J * L::N * T::BYTES).div_ceil(LINE);
            if self.lies {
                // The next rows follow these, as far ahead in every step: no load for where they are.
                let ahead = (self.rows.len() + (self.next.len() - next.len())) * stride;
                for _ in 0..n_next {
                    for line in 0..lines {
                        L::prefetch(at.a.wrapping_add(ahead + line * (LINE / T::BYTES)));
                    }
                    at.add_row::<L, P, J>(stride, &mut sum);
                }
            } else {
                for next in &next[..n_next] {
                    for line in 0..lines {
                        L::prefetch(next.wrapping_add(first * L::N + line * (LINE / T::BYTES)));
                    }
                    at.add_row::<L, P, J>(stride, &mut sum);
                }
            }
            for _ in n_next..self.rows.len() {
                at.add_row::<L, P, J>(stride, &mut sum);
            }
            for j in 0..J {
                for c in 0..P {
                    L::store(y.add((j * P + c) * L::N), sum[j][c]);
                }
            }
        }
    }
}

/// `s[r][c]` += a_r·V in the j-th register of columns.
#[inline(always)]
unsafe fn multiply<L: Lanes, const P: usize, const R: usize>(
    a: [L::V; R],
    v: *const L::Number,
    j: usize,
    s: &mut [[L::V; P]; R],
) {
    // SAFETY: the promise of `Block::add_to`.
    unsafe {
        for c in 0..P {
            let v = L::load(v.add((j * P + c) * L::N));
            for r in 0..R {
                s[r][c] = L::fma(a[r], v, s[r][c]);
            }
        }
    }
}

/// Where an update is: a row's columns, and its s.
struct Place<A> {
    a: *const A,
    s: *const A,
}

impl<A: Stored> Place<A> {
    /// `sum[j][c] += s[c]·a[j]`, and on to the next row.
    #[inline(always)]
    unsafe fn add_row<L: Lanes<Number = A>, const P: usize, const J: usize>(
        &mut self,
        stride: usize,
        sum: &mut [[L::V; P]; J],
    ) {
        // SAFETY: the promise of `Block::add_to`; past the last row, no more than its address is taken.
        unsafe {
            let mut a = [L::splat(A::default()); J];
            for j in 0..J {
                a[j] = L::load(self.a.add(j * L::N));
            }
            for c in 0..P {
                let s = L::splat(self.s.add(c).read());
                for j in 0..J {
                    sum[j][c] = L::fma(a[j], s, sum[j][c]);
                }
            }
            self.a = self.a.wrapping_add(stride);
            self.s = self.s.wrapping_add(P);
        }
    }
}
