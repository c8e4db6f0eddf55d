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
use crate::kernels::Stored;
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

/// How V and Y, d×p, lie for [`sum_dense`] in arithmetic of one kind on this processor.
#[derive(Clone, Copy)]
pub(crate) struct Packing {
    d: usize,
    lanes: usize,
    panels: Panels,
}

impl Packing {
    pub(crate) fn new<A: Arithmetic>(d: usize, p: usize) -> Self {
        Self::at::<A>(Level::best(), d, p)
    }

    /// The same with the instructions of `level`.
    pub(super) fn at<A: Arithmetic>(level: Level, d: usize, p: usize) -> Self {
        A::run(level, Find { d, p })
    }

    /// How many numbers that are.
    pub(crate) fn len(self) -> usize {
        self.d.next_multiple_of(self.lanes) * self.panels.p
    }

    /// V, row-major before.
    pub(crate) fn pack<'a, A: Stored>(self, v: &[f64], room: &'a mut Vec<A>) -> &'a [A] {
        assert_eq!(v.len(), self.d * self.panels.p, "V is d×p");
        let [packed] = carve(room, [self.len()]);
        self.for_each(|at, i| packed[at] = A::from_f64(v[i]));
        packed
    }

    /// `y` ← Y, row-major after.
    pub(crate) fn unpack(self, packed: &[f64], y: &mut [f64]) {
        assert_eq!(y.len(), self.d * self.panels.p, "Y is d×p");
        self.for_each(|at, i| y[i] = packed[at]);
    }

    /// Calls `visit` with every number's place when packed and when row-major.
    #[inline(always)]
    fn for_each(self, mut visit: impl FnMut(usize, usize)) {
        let Self { d, lanes, panels } = self;
        for panel in (0..panels.n).map(|i| panels.vectors(i)) {
            for j in 0..d {
                let register = panel.start * d.next_multiple_of(lanes) + j / lanes * lanes * panel.len();
                for (i, vector) in panel.clone().enumerate() {
                    visit(register + i * lanes + j % lanes, j * panels.p + vector);
                }
            }
        }
    }
}

/// Finds the packing.
struct Find {
    d: usize,
    p: usize,
}

impl<A: Arithmetic> Kernel<A> for Find {
    type Output = Packing;

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) -> Packing {
        Packing { d: self.d, lanes: L::N, panels: Panels::new(self.p, widest::<L>()) }
    }
}

/// Y += Σ w a(aᵀV) over the rows of one chunk, a = x − shift; V and Y are packed. Computes in numbers of type `A`.
///
/// Where the shift is small against the rows it may be left for `afterwards`, c = Vᵀshift and room for Σs: then
/// Y += Σ x sᵀ, s = w(Vᵀx − c), lacks − shift·Σsᵀ, or Σs is left at zero and nothing is lacking.
pub(crate) fn sum_dense<T: Stored, A: Arithmetic>(
    x: &Dense<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    shift: Option<&[f64]>,
    afterwards: Option<Afterwards<'_>>,
    v: &[A],
    p: usize,
    y: &mut [f64],
    scratch: &mut Vec<A>,
) {
    sum_dense_at(Level::best(), x, rows, weights, shift, afterwards, v, p, y, scratch);
}

/// [`sum_dense`] with the instructions of `level`.
pub(super) fn sum_dense_at<T: Stored, A: Arithmetic>(
    level: Level,
    x: &Dense<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    shift: Option<&[f64]>,
    afterwards: Option<Afterwards<'_>>,
    v: &[A],
    p: usize,
    y: &mut [f64],
    scratch: &mut Vec<A>,
) {
    let d = x.n_cols();
    let packed = Packing::at::<A>(level, d, p).len();
    assert_eq!((v.len(), y.len()), (packed, packed), "V and Y are d×p, packed");
    assert!(shift.is_none_or(|shift| shift.len() == d), "one shift for each column");
    let fits = |after: &Afterwards<'_>| after.c.len() == p && after.s_sum.len() == p;
    assert!(afterwards.as_ref().is_none_or(fits), "one c and one sum for each vector");
    if rows.len() > 0 && p == 1 {
        A::run(level, OneVector { x, rows, weights, shift, v, y, scratch });
    } else if rows.len() > 0 && p > 0 {
        A::run(level, Chunk { x, rows, weights, shift, afterwards, v, p, y, scratch });
    }
}

struct Chunk<'a, T: Stored, A> {
    x: &'a Dense<'a, T>,
    rows: &'a RowSet<'a>,
    weights: RowWeights<'a>,
    shift: Option<&'a [f64]>,
    afterwards: Option<Afterwards<'a>>,
    v: &'a [A],
    p: usize,
    y: &'a mut [f64],
    scratch: &'a mut Vec<A>,
}

impl<T: Stored, A: Arithmetic> Kernel<A> for Chunk<'_, T, A> {
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
        let partials = block_rows * widest::<L>() * L::N;
        let kept = if lying.is_some() { 0 } else { stride * block_rows };
        let [packed_shift, packed_y, kept, partial] =
            carve(scratch, [padded, padded * p, kept, together::<L>() * partials]);
        if let Some(shift) = shift.filter(|_| lying.is_none()) {
            packed_shift.iter_mut().zip(shift).for_each(|(to, mu)| *to = A::from_f64(*mu));
        }
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
                    v: v[at..].as_ptr(),
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
                    lies: lying.is_some(),
                };
                // SAFETY: rows are d long; shift is padded to whole registers; V and Y of a panel of P vectors are
                // P·padded long; `kept` and `partial` were made for block_rows rows and the widest panels, or rows lie as if kept.
                unsafe { block.add_to::<L>(&turns[..together::<L>().min(panels.n - i)]) };
            }
            in_sum += block.len;
            // What was added up so far goes to the sum of all, in f64.
            if next.len == 0 || in_sum + next.len > A::ROWS_IN_SUM {
                for (packed, y) in packed_y.chunks_exact_mut(L::N).zip(y.chunks_exact_mut(L::N)) {
                    // SAFETY: both are a register long.
                    unsafe {
                        L::add_to_f64(y.as_mut_ptr(), L::load(packed.as_ptr()));
                        L::store(packed.as_mut_ptr(), L::splat(A::default()));
                    }
                }
                in_sum = 0;
            }
        }
    }
}

/// Where the rows lie one after another as numbers to be multiplied, in whole registers, and not so that many of them fall into the same
/// places of a cache.
fn as_they_lie<T: Stored, L: Lanes>(x: &Dense<'_, T>, rows: &RowSet<'_>) -> Option<*const L::Number> {
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

impl<T: Stored> RowBlock<T> {
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

/// Cuts `scratch` into zeroed pieces that start at cache lines.
pub(super) fn carve<A: Stored, const PIECES: usize>(
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
