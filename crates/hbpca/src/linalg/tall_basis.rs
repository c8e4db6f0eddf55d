//! A tall basis: many long vectors, stored in f32 or f64, cut into chunks of their coordinates.
//!
//! ```text
//! chunk 0: coordinates 0 … r − 1 of vector 0, of vector 1, …     chunk 1: coordinates r … 2r − 1 of vector 0, …     r ≈ 2000
//! ```
//!
//! A chunk of all vectors stays in the second-level cache while several things are done with it, and threads share the work
//! chunk by chunk. Sums run over the chunks in their order, so that they have the same bits for any number of threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use faer::{Mat, MatRef};
use rayon::prelude::*;

use crate::kernels::{Arithmetic, tall};
use crate::{Archive, Block, Error, ordered};

/// Coordinates of a chunk, about.
const CHUNK: usize = 2000;

/// Coordinates of each chunk of d: nearly equal numbers, in whole registers, and of cache lines (in f32) an odd number, so that vectors
/// do not compete for the same places in the cache.
fn rows_of_chunk(d: usize) -> usize {
    let registers = d.div_ceil(d.div_ceil(CHUNK).max(1)).div_ceil(tall::REGISTERS_FULL);
    (registers | 1) * tall::REGISTERS_FULL
}

/// Vectors of length d.
#[derive(Clone, Debug)]
pub(crate) struct TallBasis<A> {
    d: usize,
    /// Coordinates of a chunk; those beyond d are zero.
    rows: usize,
    /// Vectors there is room for.
    room: usize,
    len: usize,
    values: Vec<A>,
}

impl<A: Arithmetic> TallBasis<A> {
    pub(crate) fn with_room(d: usize, room: usize) -> Self {
        let rows = rows_of_chunk(d);
        let values = vec![A::default(); d.div_ceil(rows.max(1)) * rows * room];
        Self { d, rows, room, len: 0, values }
    }

    /// The columns of `block`.
    pub(crate) fn of(block: &Block) -> Self {
        let mut basis = Self::with_room(block.d(), block.p());
        basis.append(block);
        basis
    }

    /// d.
    pub(crate) fn dim(&self) -> usize {
        self.d
    }

    /// The number of vectors.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes room for `most` vectors in all.
    pub(crate) fn reserve(&mut self, most: usize) {
        if most > self.room {
            let mut larger = Self::with_room(self.d, most);
            let (from, to) = (self.rows * self.room, self.rows * most);
            if from > 0 {
                let chunks = larger.values.chunks_exact_mut(to).zip(self.values.chunks_exact(from));
                chunks.for_each(|(to, from)| to[..from.len()].copy_from_slice(from));
            }
            *self = Self { len: self.len, ..larger };
        }
    }

    /// Appends the columns of `block`.
    pub(crate) fn append(&mut self, block: &Block) {
        let (p, rows, first) = (block.p(), self.rows, self.len);
        self.reserve(first + p);
        self.for_each_chunk_of_coordinates(
            (),
            |i, chunk, ()| load(block, 1.0, i, rows, &mut chunk[first * rows..(first + p) * rows]),
            |()| {},
        );
        self.len += p;
    }

    /// Q ← QS for coefficients S with as many columns at most.
    pub(crate) fn combine(&mut self, s: MatRef<'_, f64>) {
        let (a, r, rows) = (self.len, s.ncols(), self.rows);
        assert!(s.nrows() == a && r <= a, "{a} vectors combined by {}×{r} coefficients", s.nrows());
        let s: Vec<A> = row_major(s);
        self.for_each_chunk_of_coordinates(
            Vec::new(),
            |_, chunk, before| rotate(chunk, rows, a, r, &s, before),
            |_| {},
        );
        self.len = r;
    }

    /// QS, for coefficients S.
    pub(crate) fn product(&self, s: MatRef<'_, f64>) -> Block {
        let (a, r, rows) = (self.len, s.ncols(), self.rows);
        assert_eq!(s.nrows(), a, "one row of coefficients for each vector");
        let s: Vec<A> = row_major(s);
        let mut out = Block::zeros(self.d, r);
        let chunks = out.values_mut().chunks_mut((rows * r).max(1)).map(Mutex::new).collect::<Vec<_>>();
        let step = self.rows * self.room;
        ordered::for_each_chunk(
            chunks.len(),
            &mut vec![Vec::new(); rayon::current_num_threads()],
            |i, sums: &mut Vec<A>| {
                sums.clear();
                sums.resize(rows * r, A::default());
                tall::add_product(sums, &self.values[i * step..][..a * rows], rows, &s);
                unload(sums, rows, r, &mut lock(&chunks[i]));
            },
            |_, _| {},
        );
        out
    }

    /// QᵀZ.
    pub(crate) fn gram(&self, z: &Block) -> Mat<f64> {
        let (p, rows) = (z.p(), self.rows);
        self.sum_of_products(p, |i, _, h, room: &mut Vec<A>| {
            room.resize(p * rows, A::default());
            load(z, 1.0, i, rows, room);
            tall::gram(self.chunk(i), room, rows, h);
        })
    }

    /// QᵀP for as many vectors P of the same length.
    pub(crate) fn gram_with(&self, other: &Self) -> Mat<f64> {
        self.sum_of_products(other.len, |i, rows, h, _| tall::gram(self.chunk(i), other.chunk(i), rows, h))
    }

    /// W ← (I − QQᵀ)W, once; returns QᵀW.
    pub(crate) fn project_out(&self, w: &mut Block) -> Mat<f64> {
        let h = self.gram(w);
        self.add_product_to(w, (-&h).as_ref());
        h
    }

    /// W ← W + QH.
    pub(crate) fn add_product_to(&self, w: &mut Block, h: MatRef<'_, f64>) {
        let (p, rows) = (w.p(), self.rows);
        if p == 0 || self.len == 0 {
            return;
        }
        let h: Vec<A> = row_major(h);
        w.values_mut().par_chunks_mut(rows * p).enumerate().for_each_init(Vec::new, |sums, (i, w)| {
            sums.clear();
            sums.resize(rows * p, A::default());
            tall::add_product(sums, self.chunk(i), rows, &h);
            each_entry(sums, rows, p, w, |w, x| *w += x.to_f64());
        });
    }

    /// All vectors.
    pub(crate) fn to_block(&self) -> Block {
        let columns = self.to_columns();
        let columns: Vec<&[f64]> = columns.chunks_exact(self.d.max(1)).collect();
        if columns.is_empty() {
            return Block::zeros(self.d, 0);
        }
        Block::from_columns(&columns).unwrap_or_else(|_| unreachable!("all have d values"))
    }

    /// Walks over all vectors, any number.
    pub(crate) fn archive(&mut self, name: &str, archive: &mut Archive<'_>) -> Result<(), Error> {
        let mut columns = self.to_columns();
        archive.columns_of(name, self.d, &mut columns)?;
        if archive.is_restoring() {
            *self = Self::from_columns(self.d, &columns);
        }
        Ok(())
    }

    /// Chunk i of all vectors.
    fn chunk(&self, i: usize) -> &[A] {
        &self.values[i * self.rows * self.room..][..self.len * self.rows]
    }

    /// The a×p sums over all chunks of what `multiply(i, rows, sum, room)` finds in chunk i.
    fn sum_of_products(
        &self,
        p: usize,
        multiply: impl Fn(usize, usize, &mut [f64], &mut Vec<A>) + Sync,
    ) -> Mat<f64> {
        let (a, n_chunks) = (self.len, self.d.div_ceil(self.rows.max(1)));
        let mut total = Mat::zeros(a, p);
        if a > 0 && p > 0 {
            let workers = rayon::current_num_threads().min(n_chunks);
            ordered::for_each_chunk(
                n_chunks,
                &mut vec![(vec![0.0; a * p], Vec::new()); workers],
                |i, (h, room)| multiply(i, self.rows, h, room),
                |_, (h, _)| total += MatRef::from_row_major_slice(h, a, p),
            );
        }
        total
    }

    /// All vectors, one after another.
    pub(crate) fn to_columns(&self) -> Vec<f64> {
        let mut columns = Vec::with_capacity(self.len * self.d);
        for c in 0..self.len {
            let chunks = self.values.chunks_exact((self.rows * self.room).max(1));
            let column = chunks.flat_map(|chunk| &chunk[c * self.rows..(c + 1) * self.rows]);
            columns.extend(column.take(self.d).map(|x| x.to_f64()));
        }
        columns
    }

    /// The inverse of [`to_columns`](Self::to_columns); values that do not fill another vector are left out.
    pub(crate) fn from_columns(d: usize, values: &[f64]) -> Self {
        let columns: Vec<&[f64]> = values.chunks_exact(d.max(1)).collect();
        let mut vectors = Self::with_room(d, columns.len());
        let block = Block::from_columns(&columns).unwrap_or_else(|_| unreachable!("all have d values"));
        if !columns.is_empty() {
            vectors.append(&block);
        }
        vectors
    }

    /// W ← Z/`unit`, stored behind Q; QᵀW and WᵀW.
    pub(super) fn begin(&mut self, z: &Block, unit: f64) -> Products {
        let (a, p, rows) = (self.len, z.p(), self.rows);
        self.reserve(a + p);
        self.measured(a, p, true, |i, _, w, _| load(z, 1.0 / unit, i, rows, &mut w[..p * rows]))
    }

    /// W ← W − QH for the p vectors W behind Q; QᵀW and WᵀW of what is left.
    pub(super) fn project(&mut self, p: usize, h: &Mat<f64>) -> Products {
        let (a, rows) = (self.len, self.rows);
        let h: Vec<A> = row_major((-h).as_ref());
        self.measured(a, p, true, |_, q, w, _| tall::add_product(&mut w[..p * rows], q, rows, &h))
    }

    /// W ← WT − QH for the p vectors W behind Q, H where there is one; WᵀW, and QᵀW where it is asked for.
    pub(super) fn transform(&mut self, t: &Mat<f64>, h: Option<&Mat<f64>>, overlap: bool) -> Products {
        let (a, rows, p, r) = (self.len, self.rows, t.nrows(), t.ncols());
        let t: Vec<A> = row_major(t.as_ref());
        let h: Option<Vec<A>> = h.map(|h| row_major((-h).as_ref()));
        self.measured(a, r, overlap, |_, q, w, before| {
            rotate(w, rows, p, r, &t, before);
            if let Some(h) = &h {
                tall::add_product(&mut w[..r * rows], q, rows, h);
            }
        })
    }

    /// X ← WT, for the p vectors W behind Q.
    pub(super) fn finish(&mut self, t: &Mat<f64>, x: &mut Block) {
        let (a, rows, p, r) = (self.len, self.rows, t.nrows(), t.ncols());
        let t: Vec<A> = row_major(t.as_ref());
        if (x.d(), x.p()) != (self.d, r) {
            *x = Block::zeros(self.d, r);
        }
        let out = x.values_mut().chunks_mut((rows * r).max(1)).map(Mutex::new).collect::<Vec<_>>();
        self.for_each_chunk_of_coordinates(
            Vec::new(),
            |i, chunk, before| {
                let w = &mut chunk[a * rows..];
                rotate(w, rows, p, r, &t, before);
                if let Some(out) = out.get(i) {
                    unload(w, rows, r, &mut lock(out));
                }
            },
            |_| {},
        );
    }

    /// Calls `change(i, Q, W, room)` for every chunk, W being all that lies behind Q, then sums up QᵀW for the first p of them, if
    /// asked for, and WᵀW.
    fn measured(
        &mut self,
        a: usize,
        p: usize,
        overlap: bool,
        change: impl Fn(usize, &[A], &mut [A], &mut Vec<A>) + Sync,
    ) -> Products {
        let rows = self.rows;
        let mut total = Products { overlap: Mat::zeros(a, p), gram: Mat::zeros(p, p) };
        let (h, g) = (vec![0.0; a * p], vec![0.0; p * p]);
        self.for_each_chunk_of_coordinates(
            (h, g, Vec::new()),
            |i, chunk, (h, g, room)| {
                let (q, w) = chunk.split_at_mut(a * rows);
                change(i, q, w, room);
                let w = &w[..p * rows];
                if overlap {
                    tall::gram(q, w, rows, h);
                }
                tall::gram(w, w, rows, g);
            },
            |(h, g, _)| {
                total.overlap += MatRef::from_row_major_slice(h, a, p);
                total.gram += MatRef::from_row_major_slice(g, p, p);
            },
        );
        total
    }

    /// Calls `work(i, chunk, partial)` for every chunk on the threads there are, and `merge` in the order of the chunks.
    fn for_each_chunk_of_coordinates<P: Clone + Send>(
        &mut self,
        partial: P,
        work: impl Fn(usize, &mut [A], &mut P) + Sync,
        merge: impl FnMut(&mut P) + Send,
    ) {
        let mut merge = merge;
        let size = (self.rows * self.room).max(1);
        let chunks: Vec<Mutex<&mut [A]>> = self.values.chunks_exact_mut(size).map(Mutex::new).collect();
        ordered::for_each_chunk(
            chunks.len(),
            &mut vec![partial; rayon::current_num_threads().min(chunks.len())],
            |i, partial| work(i, &mut lock(&chunks[i]), partial),
            |_, partial| merge(partial),
        );
    }
}

/// QᵀW and WᵀW.
pub(super) struct Products {
    pub(super) overlap: Mat<f64>,
    pub(super) gram: Mat<f64>,
}

/// Every chunk has its own lock, which no thread waits for.
fn lock<T>(chunk: &Mutex<T>) -> MutexGuard<'_, T> {
    chunk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Coordinates that are transposed at a time: with some dozen vectors they stay in the first-level cache.
const TRANSPOSED: usize = 64;

/// The columns of chunk i of `block`, times `factor`; zeros beyond its end.
fn load<A: Arithmetic>(block: &Block, factor: f64, i: usize, rows: usize, columns: &mut [A]) {
    let p = block.p();
    let from = (i * rows * p).min(block.values().len());
    let values = &block.values()[from..block.values().len().min(from + rows * p)];
    columns.fill(A::default());
    for (at, values) in values.chunks((TRANSPOSED * p).max(1)).enumerate() {
        for (c, column) in columns.chunks_exact_mut(rows).enumerate() {
            let given = values.iter().skip(c).step_by(p);
            column[at * TRANSPOSED..].iter_mut().zip(given).for_each(|(to, x)| *to = A::from_f64(x * factor));
        }
    }
}

/// The first rows of `columns`, side by side.
fn unload<A: Arithmetic>(columns: &[A], rows: usize, p: usize, out: &mut [f64]) {
    each_entry(columns, rows, p, out, |to, x| *to = x.to_f64());
}

/// Calls `change(out, x)` for the first rows of `columns`, p of them, side by side in `out`.
fn each_entry<A: Arithmetic>(
    columns: &[A],
    rows: usize,
    p: usize,
    out: &mut [f64],
    change: impl Fn(&mut f64, &A),
) {
    for (at, out) in out.chunks_mut((TRANSPOSED * p).max(1)).enumerate() {
        for (c, column) in columns.chunks_exact(rows).take(p).enumerate() {
            out.iter_mut()
                .skip(c)
                .step_by(p)
                .zip(&column[at * TRANSPOSED..])
                .for_each(|(to, x)| change(to, x));
        }
    }
}

/// W ← WT for the first p vectors of `w`, T p×r with r ≤ p.
fn rotate<A: Arithmetic>(w: &mut [A], rows: usize, p: usize, r: usize, t: &[A], before: &mut Vec<A>) {
    before.clear();
    before.extend_from_slice(&w[..p * rows]);
    let rotated = &mut w[..r * rows];
    rotated.fill(A::default());
    tall::add_product(rotated, before, rows, t);
}

fn row_major<A: Arithmetic>(m: MatRef<'_, f64>) -> Vec<A> {
    let at = |at: usize| A::from_f64(m[(at / m.ncols(), at % m.ncols())]);
    (0..m.nrows() * m.ncols()).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{beside, product, view};
    use crate::matrix::random_direction;

    #[test]
    fn vectors_go_in_and_come_out_combined() {
        for d in [1, 15, 17, CHUNK, 2 * CHUNK + 7] {
            let [first, second] =
                [3, 2].map(|p| Block::from_values(d, p, random_direction(p as u64, d * p)).unwrap());
            let mut vectors = TallBasis::<f64>::with_room(d, 1);
            vectors.append(&first);
            vectors.append(&second);
            let columns: Vec<f64> = [(&first, 3), (&second, 2)]
                .iter()
                .flat_map(|(b, p)| (0..*p).flat_map(|c| b.column(c)))
                .collect();
            assert_eq!((vectors.len(), vectors.to_columns()), (5, columns.clone()));
            let again = TallBasis::<f64>::from_columns(d, &columns);
            let s = Mat::from_fn(5, 4, |i, j| (i * 4 + j) as f64 / 7.0);
            let want = product(&beside(&first, &second), s.as_ref());
            let combined = again.product(s.as_ref());
            vectors.combine(s.as_ref());
            let stored = vectors.product(Mat::<f64>::identity(4, 4).as_ref());
            for got in [combined, stored] {
                // Five products each, in another order perhaps.
                let off = (view(&got) - view(&want)).norm_max();
                assert!(off <= 16.0 * f64::EPSILON * view(&want).norm_max().max(1.0), "{d}: {off:e}");
            }
        }
        let none = TallBasis::<f32>::from_columns(3, &[]);
        assert_eq!((none.len(), none.to_columns()), (0, vec![]));
    }
}
