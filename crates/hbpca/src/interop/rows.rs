//! Rows of any view: borrowed or copied.

use rayon::prelude::*;

use crate::{Dense, Error, Real};

/// Says that a copy of a view does not fit in memory.
pub(super) fn too_large(n: usize, d: usize, bytes_each: usize) -> Error {
    Error::parameter(
        "view",
        format!("{n} rows × {d} columns"),
        format!(
            "this layout has to be copied, and {bytes_each} bytes for each of its numbers cannot be had; give fewer rows \
             or columns, or a layout that is borrowed"
        ),
    )
}

/// Row-major values of n×d numbers.
pub(super) fn row_major<T: Real>(
    n: usize,
    d: usize,
    at: impl Fn(usize, usize) -> T + Sync,
) -> Result<Vec<T>, Error> {
    /// Rows and columns of a square that stays in cache whichever way it is laid out.
    const TILE: usize = 32;
    let mut values = Vec::new();
    let fits = n.checked_mul(d).filter(|&len| values.try_reserve_exact(len).is_ok());
    let len = fits.ok_or_else(|| too_large(n, d, T::BYTES))?;
    if len == 0 {
        return Ok(values);
    }
    values.resize(len, T::default());
    values.par_chunks_mut(TILE * d).enumerate().for_each(|(tile, rows)| {
        for first in (0..d).step_by(TILE) {
            for (i, row) in rows.chunks_exact_mut(d).enumerate() {
                for (j, value) in row.iter_mut().enumerate().skip(first).take(TILE) {
                    *value = at(tile * TILE + i, j);
                }
            }
        }
    });
    Ok(values)
}

/// n×d rows of a view: borrowed where they lie one after another, else copied.
///
/// # Safety
/// `first` points to entry (0, 0) of a view that is alive for `'a`; entry (i, j) lies `i·row_stride + j·column_stride` values
/// after it.
#[allow(unsafe_code, reason = "these views give no slice of several rows")]
pub(super) unsafe fn rows_of_view<'a, T: Real>(
    first: *const T,
    [n, d]: [usize; 2],
    [row_stride, column_stride]: [isize; 2],
    at: impl Fn(usize, usize) -> T + Sync,
) -> Result<Dense<'a, T>, Error> {
    let empty = n == 0 || d == 0;
    let gapless = (d == 1 || column_stride == 1) && (n == 1 || isize::try_from(d) == Ok(row_stride));
    if empty || !gapless {
        return Dense::new(row_major(n, d, at)?, n, d);
    }
    // SAFETY: the entries are the view's own, alive for 'a, and no other memory is between them: with these strides entry
    // (i, j) is number i·d + j, so that n·d of them lie one after another.
    let values = unsafe { std::slice::from_raw_parts(first, n * d) };
    Dense::borrowed(values, n, d)
}
