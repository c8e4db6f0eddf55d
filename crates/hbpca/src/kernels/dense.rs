//! Y += Σ w a(aᵀV) over dense rows: what is done once a chunk, and the walk over blocks of rows and panels of vectors.
//!
//! V and Y are repacked so that the lanes of a register are neighbouring *columns of the data*: a panel of P vectors
//! holds, for every N columns, P registers side by side, the last ones padded with zeros. A block of rows is read
//! from memory once and stays in the second-level cache while every panel takes its products
//! ([`panel`](super::panel)) from it.

use super::lanes::{Arithmetic, Kernel, LINE, Lanes};
use super::panel::{BLOCK, Panel};
use super::stream::OneVector;
use super::{Level, RowSet, RowWeights};
use crate::matrix::{Dense, Real};

/// Bytes of data in a block of rows: a fraction of any second-level cache, the next block being fetched meanwhile.
const BLOCK_BYTES: usize = 192 << 10;

/// Y += Σ w a(aᵀV) over the rows of one chunk, a = x − shift; V and Y are d×p, row-major. Computes in numbers of type `A`.
pub(crate) fn sum_dense<T: Real, A: Arithmetic>(
    x: &Dense<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    shift: Option<&[f64]>,
    v: &[f64],
    p: usize,
    y: &mut [f64],
    scratch: &mut Vec<A>,
) {
    sum_dense_at(Level::best(), x, rows, weights, shift, v, p, y, scratch);
}

/// [`sum_dense`] with the instructions of `level`.
pub(super) fn sum_dense_at<T: Real, A: Arithmetic>(
    level: Level,
    x: &Dense<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    shift: Option<&[f64]>,
    v: &[f64],
    p: usize,
    y: &mut [f64],
    scratch: &mut Vec<A>,
) {
    let d = x.n_cols();
    assert_eq!((v.len(), y.len()), (d * p, d * p), "V and Y are d×p");
    assert!(shift.is_none_or(|shift| shift.len() == d), "one shift for each column");
    if rows.len() > 0 && p == 1 {
        A::run(level, OneVector { x, rows, weights, shift, v, y, scratch });
    } else if rows.len() > 0 && p > 0 {
        A::run(level, Chunk { x, rows, weights, shift, v, p, y, scratch });
    }
}

struct Chunk<'a, T: Real, A> {
    x: &'a Dense<'a, T>,
    rows: &'a RowSet<'a>,
    weights: RowWeights<'a>,
    shift: Option<&'a [f64]>,
    v: &'a [f64],
    p: usize,
    y: &'a mut [f64],
    scratch: &'a mut Vec<A>,
}

impl<T: Real, A: Arithmetic> Kernel<A> for Chunk<'_, T, A> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = A>>(self) {
        let Self { x, rows, weights, shift, v, p, y, scratch } = self;
        let d = x.n_cols();
        let padded = d.next_multiple_of(L::N);
        let width = if L::REGISTERS >= 32 { 8 } else { 4 };
        let [packed_shift, packed_v, packed_y, partial] =
            carve(scratch, [padded, padded * p, padded * p, BLOCK * width * L::N]);
        if let Some(shift) = shift {
            packed_shift.iter_mut().zip(shift).for_each(|(to, mu)| *to = A::from_f64(*mu));
        }
        pack::<L>(v, p, width, packed_v);

        let block_rows = (BLOCK_BYTES / (d * T::BYTES)).clamp(1, BLOCK);
        let mut next = RowBlock::gather(x, rows, weights, 0, block_rows);
        let mut first = 0;
        let mut in_sum = 0;
        while next.len > 0 {
            let block = next;
            first += block.len;
            next = RowBlock::gather(x, rows, weights, first, block_rows);
            for from in (0..p).step_by(width) {
                let at = from * padded;
                let panel = Panel {
                    d,
                    rows: &block.rows[..block.len],
                    weights: &block.weights[..block.len],
                    // Only the last panel fetches ahead: the block itself must not be driven out before.
                    next: if from + width >= p { &next.rows[..next.len] } else { &[] },
                    shift: shift.map(|_| packed_shift.as_ptr()),
                    v: packed_v[at..].as_ptr(),
                    y: packed_y[at..].as_mut_ptr(),
                    partial: partial.as_mut_ptr(),
                };
                // SAFETY: rows are d long; shift is padded to whole registers; V and Y of a panel of P vectors are
                // P·padded long; `partial` holds BLOCK·width registers, more than block·P.
                unsafe { panel.add::<L>(width.min(p - from)) };
            }
            in_sum += block.len;
            if in_sum >= A::ROWS_IN_SUM {
                add_packed::<L>(packed_y, p, width, y);
                packed_y.fill(A::default());
                in_sum = 0;
            }
        }
        add_packed::<L>(packed_y, p, width, y);
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

/// V, d×p and row-major, into panels of `width` vectors.
#[inline(always)]
fn pack<L: Lanes>(v: &[f64], p: usize, width: usize, packed: &mut [L::Number]) {
    let padded = packed.len() / p;
    for from in (0..p).step_by(width) {
        let panel = width.min(p - from);
        let packed = packed[from * padded..][..panel * padded].chunks_exact_mut(panel * L::N);
        for (registers, rows) in packed.zip(v.chunks(L::N * p)) {
            for (lane, row) in rows.chunks_exact(p).enumerate() {
                for (register, v) in registers.chunks_exact_mut(L::N).zip(&row[from..]) {
                    register[lane] = L::Number::from_f64(*v);
                }
            }
        }
    }
}

/// Y += what such panels hold.
#[inline(always)]
fn add_packed<L: Lanes>(packed: &[L::Number], p: usize, width: usize, y: &mut [f64]) {
    let padded = packed.len() / p;
    for from in (0..p).step_by(width) {
        let panel = width.min(p - from);
        let packed = packed[from * padded..][..panel * padded].chunks_exact(panel * L::N);
        for (registers, rows) in packed.zip(y.chunks_mut(L::N * p)) {
            for (lane, row) in rows.chunks_exact_mut(p).enumerate() {
                for (register, y) in registers.chunks_exact(L::N).zip(&mut row[from..]) {
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
