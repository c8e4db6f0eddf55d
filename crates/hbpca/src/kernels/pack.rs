//! Rows on their way into the symmetric kernel: prepared and packed, and fetched before that.

use super::lanes::{LINE, Lanes};
use crate::kernels::Stored;
use crate::matrix::Dense;

/// Bytes of rows at most that are fetched ahead: they come to lie beside the packed block. Wider rows, with more to multiply, hardly
/// wait for memory.
const AHEAD_BYTES: usize = 128 << 10;

/// Rows from `first` on, as many as there are roots of weights.
pub(super) struct Source<'a, T: Stored, A> {
    pub(super) x: &'a Dense<'a, T>,
    pub(super) first: usize,
    pub(super) roots: &'a [A],
}

impl<T: Stored, A: Stored> Source<'_, T, A> {
    /// Writes √w(x − shift) of W registers of columns from the `register`-th on.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]; `shift` is d long, rounded up to whole registers, and the registers lie within that.
    #[inline(always)]
    pub(super) unsafe fn pack<L: Lanes<Number = A>, const W: usize>(
        &self,
        register: usize,
        shift: &[A],
        to: &mut [A],
    ) {
        let (d, from) = (self.x.n_cols(), register * L::N);
        assert_eq!(to.len(), self.roots.len() * W * L::N);
        let whole = from + W * L::N <= d;
        let mut to = to.as_mut_ptr();
        // SAFETY: the caller's promise; only whole registers of a row are read without a mask.
        unsafe {
            let zero = L::splat(A::default());
            let mask = L::mask(d % L::N);
            let mut mu = [zero; W];
            for i in 0..W {
                mu[i] = L::load(shift.as_ptr().add(from + i * L::N));
            }
            for (r, root) in self.roots.iter().enumerate() {
                let row = self.x.row(self.first + r).as_ptr().add(from);
                let root = L::splat(*root);
                for i in 0..W {
                    let x = if whole || i + 1 < W {
                        T::load::<L>(row.add(i * L::N))
                    } else {
                        T::load_masked::<L>(row.add(i * L::N), mask)
                    };
                    L::store(to.add(i * L::N), L::fma(root, L::sub(x, mu[i]), zero));
                }
                to = to.add(W * L::N);
            }
        }
    }
}

/// Rows of the next block, fetched while the present one is multiplied: a few cache lines with each tile.
pub(super) struct Ahead<T> {
    at: *const T,
    end: *const T,
    lines: usize,
}

impl<T: Stored> Ahead<T> {
    pub(super) fn new(x: &Dense<'_, T>, first: usize, rows: usize, n_tiles: usize) -> Self {
        let values = x.values();
        let [at, end] = [first, first + rows].map(|row| (row * x.stride()).min(values.len()));
        let bytes = (end - at) * T::BYTES;
        let lines = if bytes <= AHEAD_BYTES { bytes.div_ceil(LINE).div_ceil(n_tiles) } else { 0 };
        let [at, end] = [at, end].map(|at| values.as_ptr().wrapping_add(at));
        Self { at, end, lines }
    }

    /// Fetches the share of a tile.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`].
    #[inline(always)]
    pub(super) unsafe fn fetch<L: Lanes>(&mut self) {
        for _ in 0..self.lines {
            if self.at < self.end {
                // SAFETY: the caller's promise; any address may be asked for.
                unsafe { L::prefetch(self.at) };
                self.at = self.at.wrapping_add(LINE / T::BYTES);
            }
        }
    }
}
