//! Y += Σ w a(aᵀV) over dense rows: what is done once a chunk, and the walk over blocks of rows and panels of vectors.
//!
//! V and Y are repacked so that the lanes of a register are neighbouring *columns of the data*: a panel of P vectors
//! holds, for every N columns, P registers side by side, the last ones padded with zeros. A block of rows is read
//! from memory once and stays in the second-level cache while every pair of panels takes its products
//! ([`panel`](super::panel)) from it.

use std::ops::Range;

use super::lanes::{Arithmetic, Kernel, LINE, Lanes};
use super::panel::{BLOCK, Block, Panel, stride, together, widest};
use super::stream::OneVector;
use super::{Level, RowSet, RowWeights};
use crate::matrix::{Dense, Real};

/// Bytes of kept rows in a block. Beside them lie the rows as they were read, the next ones being fetched, V and Y.
const KEPT_BYTES: usize = 160 << 10;

/// What it takes to subtract a shift from sums instead of rows.
pub(crate) struct Afterwards<'a> {
    /// Vᵀshift.
    pub(crate) c: &'a [f64],
    /// To which the s of every row are added.
    pub(crate) s_sum: &'a mut [f64],
}

/// Y += Σ w a(aᵀV) over the rows of one chunk, a = x − shift; V and Y are d×p, row-major. Computes in numbers of type `A`.
///
/// Where the shift is small against the rows it may be left for `afterwards`, c = Vᵀshift and room for Σs: then
/// Y += Σ x sᵀ, s = w(Vᵀx − c), lacks − shift·Σsᵀ, or Σs is left at zero and nothing is lacking.
pub(crate) fn sum_dense<T: Real, A: Arithmetic>(
    x: &Dense<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    shift: Option<&[f64]>,
    afterwards: Option<Afterwards<'_>>,
    v: &[f64],
    p: usize,
    y: &mut [f64],
    scratch: &mut Vec<A>,
) {
    sum_dense_at(Level::best(), x, rows, weights, shift, afterwards, v, p, y, scratch);
}

/// [`sum_dense`] with the instructions of `level`.
pub(super) fn sum_dense_at<T: Real, A: Arithmetic>(
    level: Level,
    x: &Dense<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    shift: Option<&[f64]>,
    afterwards: Option<Afterwards<'_>>,
    v: &[f64],
    p: usize,
    y: &mut [f64],
    scratch: &mut Vec<A>,
) {
    let d = x.n_cols();
    assert_eq!((v.len(), y.len()), (d * p, d * p), "V and Y are d×p");
    assert!(shift.is_none_or(|shift| shift.len() == d), "one shift for each column");
    let fits = |after: &Afterwards<'_>| after.c.len() == p && after.s_sum.len() == p;
    assert!(afterwards.as_ref().is_none_or(fits), "one c and one sum for each vector");
    if rows.len() > 0 && p == 1 {
        A::run(level, OneVector { x, rows, weights, shift, v, y, scratch });
    } else if rows.len() > 0 && p > 0 {
        A::run(level, Chunk { x, rows, weights, shift, afterwards, v, p, y, scratch });
    }
}

struct Chunk<'a, T: Real, A> {
    x: &'a Dense<'a, T>,
    rows: &'a RowSet<'a>,
    weights: RowWeights<'a>,
    shift: Option<&'a [f64]>,
    afterwards: Option<Afterwards<'a>>,
    v: &'a [f64],
    p: usize,
    y: &'a mut [f64],
    scratch: &'a mut Vec<A>,
}

impl<T: Real, A: Arithmetic> Kernel<A> for Chunk<'_, T, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        let Self { x, rows, weights, shift, afterwards, v, p, y, scratch } = self;
        let d = x.n_cols();
        let may_lie = shift.is_none() || afterwards.is_some();
        let lying = if may_lie { as_they_lie::<T, L>(x, rows) } else { None };
        let centre = afterwards.filter(|_| lying.is_some()).map(|after| (after.c, after.s_sum.as_mut_ptr()));
        let (padded, stride) =
            (d.next_multiple_of(L::N), if lying.is_some() { x.stride() } else { stride::<L>(d) });
        let block_rows = block_rows(stride * A::BYTES).min(rows.len());
        let panels = Panels::new(p, widest::<L>());
        // What coarse numbers have added up so far, in f64.
        let is_coarse = A::ROWS_IN_SUM < rows.len();
        let gathered = if is_coarse { padded * p * (f64::BYTES / A::BYTES) } else { 0 };
        let partials = block_rows * widest::<L>() * L::N;
        let kept = if lying.is_some() { 0 } else { stride * block_rows };
        let [packed_shift, packed_v, packed_y, gathered, kept, partial] =
            carve(scratch, [padded, padded * p, padded * p, gathered, kept, together::<L>() * partials]);
        // SAFETY: zeros are zeros in either; a piece begins at a cache line.
        let (_, gathered, _) = unsafe { gathered.align_to_mut::<f64>() };
        if let Some(shift) = shift.filter(|_| lying.is_none()) {
            packed_shift.iter_mut().zip(shift).for_each(|(to, mu)| *to = A::from_f64(*mu));
        }
        pack::<L>(v, panels, packed_v);
        let mut next = RowBlock::gather(x, rows, weights, 0, block_rows);
        let (mut first, mut in_sum) = (0, 0);
        while next.len > 0 {
            let block = next;
            first += block.len;
            next = RowBlock::gather(x, rows, weights, first, block_rows);
            let (sums, partial) = (packed_y.as_mut_ptr(), partial.as_mut_ptr());
            let kept = lying
                .map_or(kept.as_mut_ptr(), |rows| rows.wrapping_add((first - block.len) * stride).cast_mut());
            let panel = |i: usize| {
                let vectors = panels.vectors(i);
                let (at, turn) = (vectors.start * padded, i % together::<L>());
                Panel {
                    p: vectors.len(),
                    v: packed_v[at..].as_ptr(),
                    y: sums.wrapping_add(at),
                    partial: partial.wrapping_add(turn * partials),
                    centre: centre
                        .map(|(c, s_sum)| (c[vectors.start..].as_ptr(), s_sum.wrapping_add(vectors.start))),
                }
            };
            for i in (0..panels.n).step_by(together::<L>()) {
                let last = panels.n - 1;
                let turns = [panel(i), panel((i + 1).min(last))];
                let is_last = i + together::<L>() > last;
                let block = Block {
                    d,
                    rows: &block.rows[..block.len],
                    weights: weights.0.map(|_| &block.weights[..block.len]),
                    // Only the last panels fetch ahead: the block itself must not be driven out before.
                    next: if is_last { &next.rows[..next.len] } else { &[] },
                    shift: packed_shift.as_ptr(),
                    kept,
                    stride,
                    are_kept: i > 0 || lying.is_some(),
                };
                // SAFETY: rows are d long; shift is padded to whole registers; V and Y of a panel of P vectors are
                // P·padded long; `kept` and `partial` were made for block_rows rows and the widest panels, or rows lie as if kept.
                unsafe { block.add_to::<L>(&turns[..together::<L>().min(panels.n - i)]) };
            }
            in_sum += block.len;
            if is_coarse && (in_sum + next.len > A::ROWS_IN_SUM || next.len == 0) {
                for (packed, gathered) in packed_y.chunks_exact(L::N).zip(gathered.chunks_exact_mut(L::N)) {
                    // SAFETY: both are a register long.
                    unsafe { L::add_to_f64(gathered.as_mut_ptr(), L::load(packed.as_ptr())) };
                }
                packed_y.fill(A::default());
                in_sum = 0;
            }
        }
        if is_coarse {
            add_packed::<L, f64>(gathered, panels, y);
        } else {
            add_packed::<L, A>(packed_y, panels, y);
        }
    }
}

/// Where the rows lie one after another as numbers to be multiplied, in whole registers, and not so that many of them fall into the same
/// places of a cache.
fn as_they_lie<T: Real, L: Lanes>(x: &Dense<'_, T>, rows: &RowSet<'_>) -> Option<*const L::Number> {
    let in_whole_registers = T::BYTES == L::Number::BYTES && x.n_cols().is_multiple_of(L::N);
    let scattered = !(x.stride() * T::BYTES).is_multiple_of(4 * LINE);
    match rows {
        RowSet::Range(rows) if in_whole_registers && scattered => {
            Some(x.values()[rows.start * x.stride()..].as_ptr().cast())
        }
        _ => None,
    }
}

/// Rows in a block, of so many bytes each when kept. A multiple of the rows that dots take at once.
fn block_rows(bytes: usize) -> usize {
    if BLOCK * bytes <= KEPT_BYTES { BLOCK } else { BLOCK / 2 }
}

/// How p vectors are dealt out to n panels: nearly equal numbers, the larger ones first.
#[derive(Clone, Copy)]
struct Panels {
    p: usize,
    n: usize,
}

impl Panels {
    fn new(p: usize, widest: usize) -> Self {
        Self { p, n: p.div_ceil(widest) }
    }

    /// Those of the i-th panel.
    fn vectors(self, i: usize) -> Range<usize> {
        let start = |i: usize| i * (self.p / self.n) + i.min(self.p % self.n);
        start(i)..start(i + 1)
    }
}

/// Where the rows of a block lie, and their weights.
#[derive(Clone, Copy)]
struct RowBlock<T> {
    len: usize,
    rows: [*const T; BLOCK],
    weights: [f64; BLOCK],
}

impl<T: Real> RowBlock<T> {
    fn gather(
        x: &Dense<'_, T>,
        rows: &RowSet<'_>,
        weights: RowWeights<'_>,
        from: usize,
        most: usize,
    ) -> Self {
        let len = most.min(rows.len() - from);
        let mut block = Self { len, rows: [std::ptr::null(); BLOCK], weights: [0.0; BLOCK] };
        for i in 0..len {
            let l = rows.get(from + i);
            block.rows[i] = x.row(l).as_ptr();
            block.weights[i] = weights.of(l);
        }
        block
    }
}

/// V, d×p and row-major, into panels.
#[inline(always)]
fn pack<L: Lanes>(v: &[f64], panels: Panels, packed: &mut [L::Number]) {
    let Panels { p, .. } = panels;
    let padded = packed.len() / p;
    for panel in (0..panels.n).map(|i| panels.vectors(i)) {
        let packed = packed[panel.start * padded..panel.end * padded].chunks_exact_mut(panel.len() * L::N);
        for (registers, rows) in packed.zip(v.chunks(L::N * p)) {
            for (lane, row) in rows.chunks_exact(p).enumerate() {
                for (register, v) in registers.chunks_exact_mut(L::N).zip(&row[panel.clone()]) {
                    register[lane] = L::Number::from_f64(*v);
                }
            }
        }
    }
}

/// Y += what such panels hold.
#[inline(always)]
fn add_packed<L: Lanes, A: Real>(packed: &[A], panels: Panels, y: &mut [f64]) {
    let Panels { p, .. } = panels;
    let padded = packed.len() / p;
    for panel in (0..panels.n).map(|i| panels.vectors(i)) {
        let packed = packed[panel.start * padded..panel.end * padded].chunks_exact(panel.len() * L::N);
        for (registers, rows) in packed.zip(y.chunks_mut(L::N * p)) {
            for (lane, row) in rows.chunks_exact_mut(p).enumerate() {
                for (register, y) in registers.chunks_exact(L::N).zip(&mut row[panel.clone()]) {
                    *y += register[lane].to_f64();
                }
            }
        }
    }
}

/// Cuts `scratch` into zeroed pieces that start at cache lines.
pub(super) fn carve<A: Real, const PIECES: usize>(
    scratch: &mut Vec<A>,
    lens: [usize; PIECES],
) -> [&mut [A]; PIECES] {
    let line = LINE / A::BYTES;
    let needed = lens.iter().map(|len| len.next_multiple_of(line)).sum::<usize>() + line;
    scratch.clear();
    scratch.resize(needed, A::default());
    let misaligned = scratch.as_ptr().addr() / A::BYTES % line;
    let mut rest = &mut scratch[(line - misaligned) % line..];
    lens.map(|len| {
        let (piece, after) = std::mem::take(&mut rest).split_at_mut(len.next_multiple_of(line));
        rest = after;
        &mut piece[..len]
    })
}
