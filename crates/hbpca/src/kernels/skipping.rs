//! S += Σ w yyᵀ, y = x − mode, over dense rows whose numbers mostly are the modes, the most frequent values, of their columns.
//!
//! ```text
//! pack     y = √w(x − mode) of a block of rows, in panels of 8 columns, and a bit for each row and 4 columns: is any y ≠ 0?
//! tile     S[i][j] += Σ_r y_r[i]·y_r[j]      8 rows i × G columns j, over the rows r in which both sides are occupied
//! ```
//!
//! Pictures have their background, one-hot columns their zeros, however they were shifted and scaled afterwards: of all products that the
//! triangle of such data consists of, most are zero times something. A tile takes the rows that are left from the bits of both sides: of the
//! products of handwritten digits 15 % are left with tiles as small as these, 59 % with 24×24.
//!
//! A row of a tile is little work, and where its bits end is not foreseen: a multiply-add takes twice as long as in the plain triangle.

use super::lanes::{Kernel, LINE, Lanes};
use super::{Arithmetic, Level, RowWeights};
use crate::Block;
use crate::kernels::Stored;
use crate::matrix::Dense;

/// Columns packed side by side: a cache line of numbers.
pub(crate) const PANEL: usize = 8;
/// Columns that share a bit.
pub(crate) const QUAD: usize = 4;
/// Words of bits a block has, one row a bit: a block of 784 columns, as far as it is occupied, stays in the second-level cache.
const WORDS: usize = 2;
/// Rows of a block.
const ROWS: usize = WORDS * 64;
/// Numbers of a packed panel: its rows, and one that all blank rows are written to.
const STRIDE: usize = (ROWS + 1) * PANEL;
/// Panels that meet another one while that is in the first-level cache.
const GROUP: usize = 8;
/// One bit a row.
type Bits = [u64; WORDS];

/// One triangle of a d×d sum, 8×8 numbers at a time, and room for packed rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct SkippingTriangle {
    d: usize,
    /// Panel i with the panels j ≤ i: the numbers `S[i][j]`, j by j.
    sums: Vec<f64>,
    /// Σ w(x − mode).
    column_sums: Vec<f64>,
    packed: Vec<f64>,
    /// Which rows are occupied, for each 4 columns.
    occupied: Vec<Bits>,
}

impl SkippingTriangle {
    /// Rows that are packed together.
    pub(crate) const ROWS: usize = ROWS;

    /// Additions, one after the other, that a sum over so many rows consists of at most.
    pub(crate) fn additions(rows: usize) -> usize {
        ROWS + rows / 64 + 1
    }

    /// Sets the sums to zero.
    pub(crate) fn clear(&mut self) {
        self.sums.fill(0.0);
        self.column_sums.fill(0.0);
    }

    /// Adds √w(x − mode) times itself for the rows of a range.
    pub(crate) fn add_rows<T: Stored>(
        &mut self,
        x: &Dense<'_, T>,
        rows: std::ops::Range<usize>,
        weights: RowWeights<'_>,
        mode: &[f64],
    ) {
        self.add_rows_at(Level::best(), x, rows, weights, mode);
    }

    /// [`add_rows`](Self::add_rows) with the instructions of `level`.
    pub(super) fn add_rows_at<T: Stored>(
        &mut self,
        level: Level,
        x: &Dense<'_, T>,
        rows: std::ops::Range<usize>,
        weights: RowWeights<'_>,
        mode: &[f64],
    ) {
        assert!(rows.end <= x.n_rows() && mode.len() == x.n_cols());
        assert!(self.sums.is_empty() || self.d == x.n_cols(), "a triangle is of one d");
        if self.sums.is_empty() {
            let panels = x.n_cols().div_ceil(PANEL);
            self.d = x.n_cols();
            self.sums.resize(panels * (panels + 1) / 2 * PANEL * PANEL, 0.0);
            self.column_sums.resize(panels * PANEL, 0.0);
        }
        f64::run(level, Add { x, rows, weights, mode, triangle: self });
    }

    /// Adds the sums of other rows of the same matrix.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.sums.is_empty() {
            let (sums, column_sums) = (other.sums.clone(), other.column_sums.clone());
            *self = Self { d: other.d, sums, column_sums, ..Self::default() };
        } else if !other.sums.is_empty() {
            assert_eq!(self.d, other.d, "a triangle is of one d");
            self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += other);
            self.column_sums.iter_mut().zip(&other.column_sums).for_each(|(sum, other)| *sum += other);
        }
    }

    /// Σ w(x − mode).
    pub(crate) fn column_sums(&self) -> &[f64] {
        &self.column_sums[..self.d]
    }

    /// Adds the triangle to both halves of the square matrix `c`.
    pub(crate) fn add_to(&self, c: &mut Block) {
        let d = self.d;
        let values = c.values_mut();
        assert_eq!(values.len(), d * d, "a square of one d");
        let mut tiles = self.sums.chunks_exact(PANEL * PANEL);
        for left in (0..d).step_by(PANEL) {
            for right in (0..=left).step_by(PANEL) {
                let tile = tiles.next().expect("panels were counted");
                for (j, column) in (right..d).zip(tile.chunks_exact(PANEL)) {
                    // Entries above the diagonal of a tile are those of its mirror image.
                    for (i, value) in (left..d).zip(column).filter(|(i, _)| *i >= j) {
                        values[i * d + j] += value;
                        if i != j {
                            values[j * d + i] += value;
                        }
                    }
                }
            }
        }
    }
}

struct Add<'a, T: Stored> {
    x: &'a Dense<'a, T>,
    rows: std::ops::Range<usize>,
    weights: RowWeights<'a>,
    mode: &'a [f64],
    triangle: &'a mut SkippingTriangle,
}

impl<T: Stored> Kernel<f64> for Add<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<L: Lanes<Number = f64>>(self) {
        let SkippingTriangle { d, sums, column_sums, packed, occupied } = &mut *self.triangle;
        let panels = d.div_ceil(PANEL);
        packed.resize(panels * STRIDE + LINE / 8, 0.0);
        // Rows of a panel are lines of the cache.
        let misplaced = packed.as_ptr().align_offset(LINE);
        let packed = &mut packed[misplaced..];
        let mut mode = self.mode.to_vec();
        mode.resize(panels * PANEL, 0.0);
        for start in self.rows.clone().step_by(ROWS) {
            let block = start..self.rows.end.min(start + ROWS);
            occupied.clear();
            occupied.resize(2 * panels, [0; WORDS]);
            for (word, first) in block.clone().step_by(64).enumerate() {
                let count = 64.min(block.end - first);
                let mut roots = [0.0; 64];
                for (r, root) in roots[..count].iter_mut().enumerate() {
                    *root = self.weights.of(first + r).sqrt();
                }
                let roots = &roots[..count];
                // Plain loops: the body of a closure would not be compiled for the level.
                for panel in 0..panels {
                    // SAFETY: panels lie within `packed`, with one more row than a block; sums and modes are whole panels.
                    unsafe {
                        let columns = Columns {
                            from: panel * PANEL,
                            mode: mode.as_ptr().add(panel * PANEL),
                            sums: column_sums.as_mut_ptr().add(panel * PANEL),
                            to: packed.as_mut_ptr().add(panel * STRIDE + word * 64 * PANEL),
                            spare: (ROWS - word * 64) * PANEL,
                        };
                        let bits = if L::N == PANEL {
                            columns.pack::<T, L, 1>(self.x, first, roots)
                        } else {
                            columns.pack::<T, L, 2>(self.x, first, roots)
                        };
                        (occupied[2 * panel][word], occupied[2 * panel + 1][word]) = bits;
                    }
                }
            }
            for group in (0..panels).step_by(GROUP) {
                let end = panels.min(group + GROUP);
                for right in 0..end {
                    for left in group.max(right)..end {
                        // SAFETY: as above; the sums of a tile stand where `add_to` looks for them.
                        unsafe {
                            let sum = sums.as_mut_ptr().add((left * (left + 1) / 2 + right) * PANEL * PANEL);
                            let [x, y] = [left, right].map(|panel| packed.as_ptr().add(panel * STRIDE));
                            let both = |panel: usize| either(occupied[2 * panel], occupied[2 * panel + 1]);
                            let rows = both(left);
                            if L::N == PANEL {
                                add_tile::<L, 1, 8>(x, y, shared(rows, both(right)), sum);
                            } else {
                                add_tile::<L, 2, 4>(x, y, shared(rows, occupied[2 * right]), sum);
                                let (y, sum) = (y.add(QUAD), sum.add(QUAD * PANEL));
                                add_tile::<L, 2, 4>(x, y, shared(rows, occupied[2 * right + 1]), sum);
                            }
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn either(a: Bits, b: Bits) -> Bits {
    std::array::from_fn(|word| a[word] | b[word])
}

#[inline(always)]
fn shared(a: Bits, b: Bits) -> Bits {
    std::array::from_fn(|word| a[word] & b[word])
}

/// A panel's columns of the data, and where they go.
struct Columns {
    from: usize,
    mode: *const f64,
    sums: *mut f64,
    to: *mut f64,
    /// Where blank rows go, counted from `to`.
    spare: usize,
}

impl Columns {
    /// Packs W registers of columns of up to 64 rows, those from `row` on with the given roots of weights, and adds them up; which rows
    /// are occupied in the first and the last four columns.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`]; the pointers hold a panel, `to` one of so many rows.
    #[inline(always)]
    unsafe fn pack<T: Stored, L: Lanes<Number = f64>, const W: usize>(
        self,
        x: &Dense<'_, T>,
        row: usize,
        roots: &[f64],
    ) -> (u64, u64) {
        let whole = self.from + PANEL <= x.n_cols();
        let (mut first, mut last) = (0, 0);
        // SAFETY: the caller's promise; only what lies within a row is read.
        unsafe {
            let zero = L::splat(0.0);
            let (mut mode, mut sums, mut masks) = ([zero; W], [zero; W], [L::mask(0); W]);
            let mut inside = [0; W];
            for i in 0..W {
                mode[i] = L::load(self.mode.add(i * L::N));
                inside[i] = x.n_cols().saturating_sub(self.from + i * L::N);
                masks[i] = L::mask(inside[i].min(L::N - 1));
            }
            let mut row = x.row(row).as_ptr().wrapping_add(self.from);
            for (r, root) in roots.iter().enumerate() {
                // The row that is packed 64 rows later: columns are walked down, which the processor does not foresee.
                L::prefetch(row.wrapping_add(64 * x.stride()));
                let root = L::splat(*root);
                let (mut y, mut occupied) = ([zero; W], 0);
                for i in 0..W {
                    let x = if whole || inside[i] >= L::N {
                        T::load::<L>(row.add(i * L::N))
                    } else {
                        T::load_masked::<L>(row.wrapping_add(i * L::N), masks[i])
                    };
                    y[i] = L::fma(root, L::sub(x, mode[i]), zero);
                    occupied |= L::nonzero(y[i]) << (i * L::N);
                    sums[i] = L::fma(root, y[i], sums[i]);
                }
                first |= u64::from(occupied & 0xF != 0) << r;
                last |= u64::from(occupied >> QUAD != 0) << r;
                // Without a branch, which could not be foreseen: blank rows all go to one place.
                let keep = usize::from(occupied != 0).wrapping_neg();
                let to = self.to.add(self.spare ^ ((self.spare ^ (r * PANEL)) & keep));
                for i in 0..W {
                    L::store(to.add(i * L::N), y[i]);
                }
                row = row.wrapping_add(x.stride());
            }
            for i in 0..W {
                L::add_to_f64(self.sums.add(i * L::N), sums[i]);
            }
        }
        (first, last)
    }
}

/// `sum[j][i] += Σ_r left[r][i]·right[r][j]` for 8 rows i and G columns j, over the rows r that have a bit.
///
/// # Safety
///
/// As for [`Lanes`]; both operands have the rows that have bits.
#[inline(always)]
unsafe fn add_tile<L: Lanes<Number = f64>, const W: usize, const G: usize>(
    left: *const f64,
    right: *const f64,
    rows: Bits,
    sum: *mut f64,
) {
    if rows == [0; WORDS] {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[L::splat(0.0); W]; G];
        for word in 0..WORDS {
            let mut bits = rows[word];
            while bits != 0 {
                let at = (word * 64 + bits.trailing_zeros() as usize) * PANEL;
                bits &= bits - 1;
                let mut x = [L::splat(0.0); W];
                for i in 0..W {
                    x[i] = L::load(left.add(at + i * L::N));
                }
                for j in 0..G {
                    let y = L::splat(right.add(at + j).read());
                    for i in 0..W {
                        sums[j][i] = L::fma(x[i], y, sums[j][i]);
                    }
                }
            }
        }
        for j in 0..G {
            for i in 0..W {
                L::add_to_f64(sum.add(j * PANEL + i * L::N), sums[j][i]);
            }
        }
    }
}
