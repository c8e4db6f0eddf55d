//! Y += Σ x tᵀ over compressed rows, t = w(Vᵀx − c); and either half of it alone.
//!
//! The lanes of a register are neighbouring *vectors*: the p values of a coordinate lie side by side in V and Y, so
//! that an entry reads and writes whole cache lines. Up to four registers of vectors are taken at a time; with more,
//! the row, by then in the first-level cache, is walked again.
//!
//! V and Y are what a pass moves: they are read and written at random, once an entry. In f32 they take half the room, and a
//! pass over text half the time or less.

use super::lanes::{Arithmetic, Kernel, Lanes};
use super::{Level, RowSet, RowWeights};
use crate::kernels::Stored;
use crate::matrix::{Csr, Real};

/// Lanes of the widest register.
const MOST_LANES: usize = 16;

/// For the rows of one chunk, with t = w(Vᵀx − c): Y += x tᵀ and `t_sum` += t; V and Y are d×p, row-major.
///
/// A shift μ is brought in afterwards: with c = Vᵀμ, Σ w a(aᵀV) = Y − μ·`t_sum`ᵀ for a = x − μ, so that zeros stay
/// unstored.
pub(crate) fn sum_csr<T: Stored, A: Arithmetic>(
    x: &Csr<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    c: Option<&[f64]>,
    v: &[A],
    p: usize,
    y: &mut [A],
    t: &mut Vec<A>,
    t_sum: &mut [f64],
) {
    sum_csr_at(suiting_level::<A>(p), x, rows, weights, c, v, p, y, t, t_sum);
}

/// A load that follows a store under a mask, as from one row to the next in a column that many have, waits for it: the widest
/// registers are for blocks that fill them.
fn suiting_level<A: Arithmetic>(p: usize) -> Level {
    let narrow = p * A::BYTES <= 32 && Level::best() == Level::Avx512;
    if narrow { Level::Avx2 } else { Level::best() }
}

/// [`sum_csr`] with the instructions of `level`.
pub(super) fn sum_csr_at<T: Stored, A: Arithmetic>(
    level: Level,
    x: &Csr<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    c: Option<&[f64]>,
    v: &[A],
    p: usize,
    y: &mut [A],
    t: &mut Vec<A>,
    t_sum: &mut [f64],
) {
    let d = x.n_cols();
    assert_eq!((v.len(), y.len(), t_sum.len()), (d * p, d * p, p), "V and Y are d×p, Σt has p values");
    assert!(c.is_none_or(|c| c.len() == p), "one c for each vector");
    t.clear();
    t.resize(p, A::default());
    A::run(level, Chunk { x, rows, weights, c, v, p, y, t, t_sum });
}

/// `t` ← Vᵀx for the compressed rows from `first` on, p values each, one row after another.
pub(crate) fn dots_csr<T: Stored, A: Arithmetic>(
    x: &Csr<'_, T>,
    first: usize,
    v: &[A],
    p: usize,
    t: &mut [A],
) {
    dots_csr_at(suiting_level::<A>(p), x, first, v, p, t);
}

/// [`dots_csr`] with the instructions of `level`.
pub(super) fn dots_csr_at<T: Stored, A: Arithmetic>(
    level: Level,
    x: &Csr<'_, T>,
    first: usize,
    v: &[A],
    p: usize,
    t: &mut [A],
) {
    assert_eq!((v.len(), t.len() % p), (x.n_cols() * p, 0), "V is d×p, and a row has p dots");
    A::run(level, Dots { x, first, v, p, t });
}

struct Dots<'a, T: Stored, A> {
    x: &'a Csr<'a, T>,
    first: usize,
    v: &'a [A],
    p: usize,
    t: &'a mut [A],
}

impl<T: Stored, A: Arithmetic> Kernel<A> for Dots<'_, T, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        let Self { x, first, v, p, t } = self;
        for (i, t) in t.chunks_exact_mut(p).enumerate() {
            let (columns, values) = x.row_slices(first + i);
            let row = Row { columns, values, v: v.as_ptr(), y: std::ptr::null_mut(), p };
            // SAFETY: `Csr` holds columns below d only and as many values as columns; V has d·p values, and t has p.
            unsafe { row.dots::<L>(t) };
        }
    }
}

/// Y += x tᵀ and `t_sum` += t for the rows of one chunk, with a t of p values given for every row of `x`.
pub(crate) fn add_csr<T: Stored, A: Arithmetic>(
    x: &Csr<'_, T>,
    rows: &RowSet<'_>,
    t: &[A],
    p: usize,
    y: &mut [A],
    t_sum: &mut [f64],
) {
    add_csr_at(suiting_level::<A>(p), x, rows, t, p, y, t_sum);
}

/// [`add_csr`] with the instructions of `level`.
pub(super) fn add_csr_at<T: Stored, A: Arithmetic>(
    level: Level,
    x: &Csr<'_, T>,
    rows: &RowSet<'_>,
    t: &[A],
    p: usize,
    y: &mut [A],
    t_sum: &mut [f64],
) {
    let sizes = (t.len(), y.len(), t_sum.len());
    assert_eq!(sizes, (x.n_rows() * p, x.n_cols() * p, p), "t is n×p, Y is d×p, Σt has p values");
    A::run(level, Add { x, rows, t, p, y, t_sum });
}

struct Add<'a, T: Stored, A> {
    x: &'a Csr<'a, T>,
    rows: &'a RowSet<'a>,
    t: &'a [A],
    p: usize,
    y: &'a mut [A],
    t_sum: &'a mut [f64],
}

impl<T: Stored, A: Arithmetic> Kernel<A> for Add<'_, T, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        let Self { x, rows, t, p, y, t_sum } = self;
        for i in 0..rows.len() {
            let l = rows.get(i);
            let (columns, values) = x.row_slices(l);
            let t = &t[l * p..(l + 1) * p];
            t_sum.iter_mut().zip(t).for_each(|(sum, t)| *sum += t.to_f64());
            let row = Row { columns, values, v: std::ptr::null(), y: y.as_mut_ptr(), p };
            // SAFETY: `Csr` holds columns below d only and as many values as columns; Y has d·p values, and t has p.
            unsafe { row.update::<L>(t) };
        }
    }
}

struct Chunk<'a, T: Stored, A> {
    x: &'a Csr<'a, T>,
    rows: &'a RowSet<'a>,
    weights: RowWeights<'a>,
    c: Option<&'a [f64]>,
    v: &'a [A],
    p: usize,
    y: &'a mut [A],
    t: &'a mut [A],
    t_sum: &'a mut [f64],
}

impl<T: Stored, A: Arithmetic> Kernel<A> for Chunk<'_, T, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        let Self { x, rows, weights, c, v, p, y, t, t_sum } = self;
        for i in 0..rows.len() {
            let l = rows.get(i);
            let (columns, values) = x.row_slices(l);
            let w = weights.of(l);
            // SAFETY: `Csr` holds columns below d only and as many values as columns; V and Y have d·p values.
            unsafe {
                let row = Row { columns, values, v: v.as_ptr(), y: y.as_mut_ptr(), p };
                row.dots::<L>(t);
                for (i, t) in t.iter_mut().enumerate() {
                    let weighted = w * (t.to_f64() - c.map_or(0.0, |c| c[i]));
                    *t = A::from_f64(weighted);
                    t_sum[i] += weighted;
                }
                row.update::<L>(t);
            }
        }
    }
}

/// A compressed row and what it is multiplied with.
struct Row<'a, T, A> {
    columns: &'a [u32],
    values: &'a [T],
    /// Read by the dots.
    v: *const A,
    /// Read and written by the update.
    y: *mut A,
    p: usize,
}

/// Runs `$whole::<FULL, PART>(from)` for panels of up to four registers that cover p vectors.
macro_rules! for_each_panel {
    ($p:expr, $lanes:expr, $from:ident => $row:ident.$panel:ident::<$l:ident>($t:expr)) => {{
        let mut $from = 0;
        while $from < $p {
            let (full, part) = (($p - $from) / $lanes, ($p - $from) % $lanes > 0);
            match (full, part) {
                (0, _) => $row.$panel::<$l, 0, true>($from, $t),
                (1, false) => $row.$panel::<$l, 1, false>($from, $t),
                (1, true) => $row.$panel::<$l, 1, true>($from, $t),
                (2, false) => $row.$panel::<$l, 2, false>($from, $t),
                (2, true) => $row.$panel::<$l, 2, true>($from, $t),
                (3, false) => $row.$panel::<$l, 3, false>($from, $t),
                (3, true) => $row.$panel::<$l, 3, true>($from, $t),
                _ => $row.$panel::<$l, 4, false>($from, $t),
            }
            $from += if full < 4 { $p - $from } else { 4 * $lanes };
        }
    }};
}

impl<T: Stored, A: Arithmetic> Row<'_, T, A> {
    /// Where five to seven vectors fill no register of AVX2 either.
    const IN_SINGLE: bool = A::BYTES == f32::BYTES;

    /// t ← Vᵀx.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]; columns are below d, there are as many values, V has d·p values and t has p.
    #[inline(always)]
    unsafe fn dots<L: Lanes<Number = A>>(&self, t: &mut [A]) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.p {
                1 => t[0] = self.dot_of_one::<L>(),
                2 => self.dots_of_few::<L, 2>(t),
                3 => self.dots_of_few::<L, 3>(t),
                4 => self.dots_of_few::<L, 4>(t),
                5 if Self::IN_SINGLE => self.dots_of_few::<L, 5>(t),
                6 if Self::IN_SINGLE => self.dots_of_few::<L, 6>(t),
                7 if Self::IN_SINGLE => self.dots_of_few::<L, 7>(t),
                _ => for_each_panel!(self.p, L::N, from => self.dots_of_panel::<L>(t)),
            }
        }
    }

    /// Y += x tᵀ.
    ///
    /// # Safety
    ///
    /// As for [`Row::dots`], with Y for V.
    #[inline(always)]
    unsafe fn update<L: Lanes<Number = A>>(&self, t: &[A]) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.p {
                1 => self.update_few::<L, 1>(t),
                2 => self.update_few::<L, 2>(t),
                3 => self.update_few::<L, 3>(t),
                4 => self.update_few::<L, 4>(t),
                5 if Self::IN_SINGLE => self.update_few::<L, 5>(t),
                6 if Self::IN_SINGLE => self.update_few::<L, 6>(t),
                7 if Self::IN_SINGLE => self.update_few::<L, 7>(t),
                _ => for_each_panel!(self.p, L::N, from => self.update_panel::<L>(t)),
            }
        }
    }

    /// Column and value of entry i.
    #[inline(always)]
    unsafe fn entry(&self, i: usize) -> (usize, A) {
        // SAFETY: i is below the number of entries by the caller's promise.
        unsafe {
            (*self.columns.get_unchecked(i) as usize, A::from_f64(self.values.get_unchecked(i).to_f64()))
        }
    }

    /// vᵀx in four partial sums: one would wait for itself.
    #[inline(always)]
    unsafe fn dot_of_one<L: Lanes<Number = A>>(&self) -> A {
        let mut sums = [A::default(); 4];
        let n = self.columns.len();
        let whole = n - n % 4;
        // SAFETY: the promise of `Row::dots`.
        unsafe {
            for i in (0..whole).step_by(4) {
                for k in 0..4 {
                    let (j, a) = self.entry(i + k);
                    sums[k] = L::fma_one(a, self.v.add(j).read(), sums[k]);
                }
            }
            for i in whole..n {
                let (j, a) = self.entry(i);
                sums[i - whole] = L::fma_one(a, self.v.add(j).read(), sums[i - whole]);
            }
        }
        let [a, b, c, d] = sums.map(Real::to_f64);
        A::from_f64((a + c) + (b + d))
    }

    /// t ← Vᵀx for P vectors that fill no register; the compiler takes one that is as narrow. Two partial sums, for even and
    /// odd entries.
    #[inline(always)]
    unsafe fn dots_of_few<L: Lanes<Number = A>, const P: usize>(&self, t: &mut [A]) {
        let mut sums = [[A::default(); P]; 2];
        let n = self.columns.len();
        // SAFETY: the promise of `Row::dots`.
        unsafe {
            for i in (0..n - n % 2).step_by(2) {
                for odd in 0..2 {
                    let (j, a) = self.entry(i + odd);
                    let v = self.v.add(j * P);
                    for k in 0..P {
                        sums[odd][k] = L::fma_one(a, v.add(k).read(), sums[odd][k]);
                    }
                }
            }
            if n % 2 == 1 {
                let (j, a) = self.entry(n - 1);
                let v = self.v.add(j * P);
                for k in 0..P {
                    sums[0][k] = L::fma_one(a, v.add(k).read(), sums[0][k]);
                }
            }
        }
        for k in 0..P {
            t[k] = A::from_f64(sums[0][k].to_f64() + sums[1][k].to_f64());
        }
    }

    /// Y += x tᵀ for P vectors.
    #[inline(always)]
    unsafe fn update_few<L: Lanes<Number = A>, const P: usize>(&self, t: &[A]) {
        let mut few = [A::default(); P];
        few.copy_from_slice(&t[..P]);
        for i in 0..self.columns.len() {
            // SAFETY: the promise of `Row::dots`.
            unsafe {
                let (j, a) = self.entry(i);
                let y = self.y.add(j * P);
                for k in 0..P {
                    y.add(k).write(L::fma_one(a, few[k], y.add(k).read()));
                }
            }
        }
    }

    /// t[from ..] ← Vᵀx for `FULL` registers of vectors and, if `PART`, the rest of them.
    #[inline(always)]
    unsafe fn dots_of_panel<L: Lanes<Number = A>, const FULL: usize, const PART: bool>(
        &self,
        from: usize,
        t: &mut [A],
    ) {
        let n = self.columns.len();
        // SAFETY: the promise of `Row::dots`; the rest of the vectors is less than a register.
        unsafe {
            let mask = L::mask(if PART { self.p - from - FULL * L::N } else { 0 });
            // Two partial sums each, for even and odd entries: one would wait for itself.
            let mut sums = [[L::splat(A::default()); FULL]; 2];
            let mut rest = [L::splat(A::default()); 2];
            let mut i = 0;
            while i < n {
                for odd in 0..2 {
                    if i + odd < n {
                        let (j, a) = self.entry(i + odd);
                        let (v, a) = (self.v.add(j * self.p + from), L::splat(a));
                        for k in 0..FULL {
                            sums[odd][k] = L::fma(a, L::load(v.add(k * L::N)), sums[odd][k]);
                        }
                        if PART {
                            rest[odd] = L::fma(a, L::load_masked(v.add(FULL * L::N), mask), rest[odd]);
                        }
                    }
                }
                i += 2;
            }
            let t = t[from..].as_mut_ptr();
            for k in 0..FULL {
                L::store(t.add(k * L::N), L::add(sums[0][k], sums[1][k]));
            }
            if PART {
                L::store_masked(t.add(FULL * L::N), L::add(rest[0], rest[1]), mask);
            }
        }
    }

    /// Y += x tᵀ for `FULL` registers of vectors from `from` on and, if `PART`, the rest of them.
    #[inline(always)]
    unsafe fn update_panel<L: Lanes<Number = A>, const FULL: usize, const PART: bool>(
        &self,
        from: usize,
        t: &[A],
    ) {
        let p = self.p;
        // SAFETY: the promise of `Row::dots`; the rest of the vectors is less than a register.
        unsafe {
            let mut whole = [L::splat(A::default()); FULL];
            for k in 0..FULL {
                whole[k] = L::load(t.as_ptr().add(from + k * L::N));
            }
            if PART && p < L::N {
                let mask = L::mask(p);
                let t = L::load_masked(t.as_ptr(), mask);
                for i in 0..self.columns.len() {
                    let (j, a) = self.entry(i);
                    let y = self.y.add(j * p);
                    L::store_masked(y, L::fma(L::splat(a), t, L::load_masked(y, mask)), mask);
                }
                return;
            }
            // The last whole register that there is, with zeros for those vectors that others take care of: a store under a mask
            // costs many of those without.
            let mut last = [A::default(); MOST_LANES];
            if PART {
                let rest = from + FULL * L::N..p;
                last[L::N - rest.len()..L::N].copy_from_slice(&t[rest]);
            }
            let last = L::load(last.as_ptr());
            for i in 0..self.columns.len() {
                let (j, a) = self.entry(i);
                let (y, a) = (self.y.add(j * p), L::splat(a));
                let mut sums = [L::splat(A::default()); FULL];
                for k in 0..FULL {
                    sums[k] = L::fma(a, whole[k], L::load(y.add(from + k * L::N)));
                }
                if PART {
                    let y = y.add(p - L::N);
                    L::store(y, L::fma(a, last, L::load(y)));
                }
                for k in 0..FULL {
                    L::store(y.add(from + k * L::N), sums[k]);
                }
            }
        }
    }
}
