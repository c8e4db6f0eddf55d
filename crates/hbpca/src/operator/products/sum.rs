//! Σ (x − μ)((x − μ)ᵀV′) over some rows of a matrix: the one loop behind every product.
//!
//! What is done once a product (V′ = D⁻¹V before, D⁻¹ after) and what is done once a chunk of the rows are separate
//! steps, so that a matrix that comes in many chunks pays for the former only once.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::columns::RowMap;
use crate::kernels::{self, Afterwards, Packing, RowSet, RowWeights};
use crate::matrix::{Matrix, Real};
use crate::operator::{Precision, Rows};
use crate::{Block, CancelToken, ordered};

/// Numbers that a thread takes at a time where all of a block are rounded, added or scaled.
const CHUNK: usize = 1 << 14;
/// Vectors that compressed rows are multiplied with at a time: those of a coordinate fill whole cache lines, and what is read and written at random stays
/// small.
const PANEL: usize = 16;
/// Numbers of a sum that a worker may park: 1 MB.
const MOST_PARKED: usize = 1 << 17;

/// Columns that many compressed rows have gather long sums: in f32 their error falls as the number of chunks grows, to so many times that of f64.
pub(in crate::operator) const CHUNKS_IN_SINGLE: usize = 2;

/// Entries that make adding a coordinate once more cheap.
const ENTRIES_PER_ADDITION: usize = 16;

/// Rows and how they are prepared.
#[derive(Clone, Copy, Debug)]
pub(in crate::operator) struct Prepared<'a> {
    pub(in crate::operator) matrix: &'a Matrix<'a>,
    pub(in crate::operator) map: &'a RowMap,
    /// Columns, in ascending order, that are known to be zero in every prepared row that counts.
    pub(in crate::operator) vanishing: &'a [usize],
    pub(in crate::operator) weights: Option<&'a [f64]>,
    pub(in crate::operator) cancel: &'a CancelToken,
}

/// What rows are multiplied with: V′ = D⁻¹V, d×p, in one of two precisions; kernels of dense rows get it packed.
#[derive(Clone, Copy, Debug)]
pub(in crate::operator) struct Operand<'a> {
    pub(in crate::operator) v: &'a [f64],
    /// V′ rounded, for rows in single precision, instead of `v`.
    pub(in crate::operator) rounded: &'a [f32],
    pub(in crate::operator) p: usize,
    /// V′ᵀμ, where there is a μ.
    pub(in crate::operator) c: Option<&'a [f64]>,
    /// Where `rounded` is no V′ but has, n×p, what stands for (x − μ)ᵀV′ in every row.
    pub(in crate::operator) of_rows: bool,
}

/// Memory for an [`Operand`].
#[derive(Debug, Default)]
pub(in crate::operator) struct OperandRoom {
    scaled: Vec<f64>,
    rounded: Vec<f32>,
    c: Vec<f64>,
}

/// Memory for the sums, kept between calls.
#[derive(Debug, Default)]
pub(in crate::operator) struct Scratch {
    /// Σt of the last sum; zero where rows were centred one by one.
    pub(in crate::operator) t_sum: Vec<f64>,
    /// One a worker.
    workers: Vec<Worker>,
    packed: Packed,
    /// Some of many vectors, and their sum.
    panel: Packed,
}

/// V′ and the sum in the order that kernels of dense rows take: changed into and back once a sum, not once a chunk.
#[derive(Debug, Default)]
struct Packed {
    v: Vec<f64>,
    single_v: Vec<f32>,
    sum: Vec<f64>,
}

#[derive(Debug, Default)]
struct Worker {
    y: Vec<f64>,
    /// The y of a chunk whose turn has not come.
    parked_y: Vec<f64>,
    t_sum: Vec<f64>,
    parked_t_sum: Vec<f64>,
    kernel: Vec<f64>,
    /// y of a run of compressed rows.
    run: Vec<f64>,
    /// y of compressed rows in f32.
    single_y: Vec<f32>,
    /// What the kernel needs for arithmetic in f32.
    single_kernel: Vec<f32>,
}

impl<'a> Operand<'a> {
    /// V′ = D⁻¹V and c = V′ᵀμ, in the memory given; V′ rounded to f32, if asked for.
    pub(in crate::operator) fn new(
        map: &RowMap,
        v: &'a Block,
        round: bool,
        room: &'a mut OperandRoom,
    ) -> Self {
        let (p, v) = (v.p(), v.values());
        let OperandRoom { scaled, rounded, c } = room;
        let c = map.shift().map(|shift| {
            c.clear();
            c.resize(p, 0.0);
            for (j, (row, mu)) in v.chunks_exact(p).zip(shift).enumerate() {
                let mu = mu * map.inverse_scale(j);
                c.iter_mut().zip(row).for_each(|(c, v)| *c += v * mu);
            }
            &**c
        });
        // One of the two is empty: a change of precision gives the memory of the other back.
        use_for(scaled, if map.scale().is_some() && !round { v.len() } else { 0 });
        use_for(rounded, if round { v.len() } else { 0 });
        divide(map, v, p, scaled);
        divide(map, v, p, rounded);
        Self { v: if map.scale().is_some() { scaled } else { v }, rounded, p, c, of_rows: false }
    }
}

/// `into` ← D⁻¹V in its own precision, unless it is empty.
fn divide<T: Real>(map: &RowMap, v: &[f64], p: usize, into: &mut [T]) {
    let chunk = CHUNK.next_multiple_of(p);
    into.par_chunks_mut(chunk).zip(v.par_chunks(chunk)).enumerate().for_each(|(i, (into, v))| {
        let rows = into.chunks_exact_mut(p).zip(v.chunks_exact(p));
        for (j, (into, v)) in rows.enumerate().map(|(j, row)| (i * chunk / p + j, row)) {
            let scale = map.scale().map_or(1.0, |scale| scale[j]);
            into.iter_mut().zip(v).for_each(|(into, v)| *into = T::from_f64(v / scale));
        }
    });
}

/// `panel` ← some columns of `all`, which has p.
fn take_columns<T: Copy + Default + Send + Sync>(
    all: &[T],
    p: usize,
    columns: &Range<usize>,
    panel: &mut Vec<T>,
) {
    let (width, size) = (columns.len(), (CHUNK / p).max(1));
    panel.resize(all.len() / p * width, T::default());
    panel.par_chunks_mut(size * width).zip(all.par_chunks(size * p)).for_each(|(panel, all)| {
        let each = panel.chunks_exact_mut(width).zip(all.chunks_exact(p));
        each.for_each(|(panel, all)| panel.copy_from_slice(&all[columns.clone()]));
    });
}

/// Makes room for `len` numbers; memory that is not used is given back, because solvers change their arithmetic once.
fn use_for<T: Copy + Default>(room: &mut Vec<T>, len: usize) {
    if len == 0 {
        *room = Vec::new();
    }
    room.resize(len, T::default());
}

impl Prepared<'_> {
    pub(in crate::operator) fn n_rows(&self) -> usize {
        self.matrix.n_rows()
    }

    pub(in crate::operator) fn dim(&self) -> usize {
        self.matrix.n_cols()
    }

    /// How many chunks a sum over `n_read` rows is cut into.
    pub(in crate::operator) fn n_chunks(&self, n_read: usize) -> usize {
        let entries = (self.matrix.nnz() as f64 * (n_read as f64 / self.n_rows() as f64)) as usize;
        ordered::n_chunks(entries, self.dim())
    }

    /// Additions, one after the other, behind a number of a sum over all rows in `n_chunks` chunks, and of the products with rows before it: in f64, and in
    /// f32, which has more chunks of compressed rows and no runs in them.
    pub(in crate::operator) fn additions(&self, n_chunks: usize) -> [usize; 2] {
        let row_starts = match self.matrix {
            Matrix::CsrF32(x) => x.row_starts(),
            Matrix::CsrF64(x) => x.row_starts(),
            _ => {
                let dot = kernels::additions_in_dot(self.dim(), kernels::LANES);
                return [dot + kernels::additions_over_rows(self.n_rows().div_ceil(n_chunks)) + n_chunks; 2];
            }
        };
        let longest = row_starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let most_rows =
            |n_chunks: usize| (0..n_chunks).map(|i| self.chunk(i, n_chunks).len()).max().unwrap_or(0);
        let rows = most_rows(n_chunks);
        let in_runs = if self.sums_in_runs() { kernels::additions_over_rows(rows) } else { rows };
        let in_single = CHUNKS_IN_SINGLE * n_chunks;
        [longest + in_runs + n_chunks, longest + most_rows(in_single) + in_single]
    }

    /// Whether f64 sums over compressed rows are sums of the sums of a few, as those of dense rows are: where these have so many entries that the additions
    /// cost little.
    fn sums_in_runs(&self) -> bool {
        let entries = self.matrix.nnz() as f64 / self.n_rows() as f64 * kernels::ROWS_IN_SUM as f64;
        self.matrix.is_sparse() && entries >= (ENTRIES_PER_ADDITION * self.dim()) as f64
    }

    /// `out` ← Σ aₗ(aₗᵀV) over `rows`, d×p, or for an operand of rows Σ aₗtₗᵀ. After an abandoned run it holds nothing of use.
    pub(in crate::operator) fn product(
        &self,
        rows: Rows<'_>,
        operand: Operand<'_>,
        precision: Precision,
        scratch: &mut Scratch,
        out: &mut [f64],
    ) {
        let in_double = self.n_chunks(rows.count(self.n_rows()));
        let n_chunks = if operand.rounded.is_empty() { in_double } else { CHUNKS_IN_SINGLE * in_double };
        self.sum(rows, operand, precision, n_chunks, scratch, out);
        center(self.map, &scratch.t_sum, out);
        unscale(self.map, operand.p, out);
    }

    /// `out` ← Σ (x − μ)((x − μ)ᵀV′) over `rows`, in `n_chunks` chunks. Compressed rows, and dense ones that need not be centred one by
    /// one, leave − μΣt to [`center`], with Σt in the scratch. After an abandoned run `out` holds nothing of use.
    pub(in crate::operator) fn sum(
        &self,
        rows: Rows<'_>,
        operand: Operand<'_>,
        precision: Precision,
        n_chunks: usize,
        scratch: &mut Scratch,
        out: &mut [f64],
    ) {
        let (d, p) = (self.dim(), operand.p);
        if self.matrix.is_sparse() && p > PANEL {
            return self.sum_in_panels(rows, operand, n_chunks, scratch, out);
        }
        if self.matrix.is_sparse() || p == 0 {
            return self.sum_in_chunks(rows, operand, n_chunks, scratch, out);
        }
        let mut packed = std::mem::take(&mut scratch.packed);
        let Packed { v, single_v, sum } = &mut packed;
        let single = precision == Precision::Single && matches!(self.matrix, Matrix::DenseF32(_));
        let (packing, operand) = if single {
            let packing = Packing::new::<f32>(d, p);
            (packing, Operand { v: &[], rounded: packing.pack(operand.v, single_v), ..operand })
        } else {
            let packing = Packing::new::<f64>(d, p);
            (packing, Operand { v: packing.pack(operand.v, v), ..operand })
        };
        sum.resize(packing.len(), 0.0);
        self.sum_in_chunks(rows, operand, n_chunks, scratch, sum);
        packing.unpack(sum, out);
        scratch.packed = packed;
    }

    /// The same for compressed rows and many vectors, some of them at a time.
    fn sum_in_panels(
        &self,
        rows: Rows<'_>,
        operand: Operand<'_>,
        n_chunks: usize,
        scratch: &mut Scratch,
        out: &mut [f64],
    ) {
        let (d, p) = (self.dim(), operand.p);
        let mut panel = std::mem::take(&mut scratch.panel);
        let Packed { v, single_v, sum } = &mut panel;
        let mut t_sum = Vec::with_capacity(p);
        for from in (0..p).step_by(PANEL) {
            let columns = from..p.min(from + PANEL);
            let width = columns.len();
            take_columns(operand.v, p, &columns, v);
            take_columns(operand.rounded, p, &columns, single_v);
            sum.resize(d * width, 0.0);
            let c = operand.c.map(|c| &c[columns.clone()]);
            let part = Operand { v, rounded: single_v, p: width, c, ..operand };
            self.sum_in_chunks(rows, part, n_chunks, scratch, sum);
            t_sum.extend_from_slice(&scratch.t_sum);
            let size = (CHUNK / p).max(1);
            let chunks = out.par_chunks_mut(size * p).zip(sum.par_chunks(size * width));
            chunks.for_each(|(out, sum)| {
                let each = out.chunks_exact_mut(p).zip(sum.chunks_exact(width));
                each.for_each(|(out, sum)| out[columns.clone()].copy_from_slice(sum));
            });
        }
        (scratch.panel, scratch.t_sum) = (panel, t_sum);
    }

    /// The same in the order of the kernels, in which operand and `out` are.
    fn sum_in_chunks(
        &self,
        rows: Rows<'_>,
        operand: Operand<'_>,
        n_chunks: usize,
        scratch: &mut Scratch,
        out: &mut [f64],
    ) {
        let (len, p) = (out.len(), operand.p);
        let n_workers = rayon::current_num_threads().min(n_chunks);
        if scratch.workers.len() < n_workers {
            scratch.workers.resize_with(n_workers, Worker::default);
        }
        // Every chunk has a worker of its own, and the first one adds up in `out` itself, if that has the same numbers.
        let own = n_chunks == n_workers;
        let single = self.matrix.is_sparse() && !operand.rounded.is_empty();
        let parks = !own && !self.matrix.is_sparse() && len <= MOST_PARKED;
        // All are ready, also those that get no chunk this time: the next call must not allocate.
        for (i, worker) in scratch.workers[..n_workers].iter_mut().enumerate() {
            use_for(&mut worker.single_y, if single { len } else { 0 });
            if single || i > 0 || !own {
                use_for(&mut worker.y, if single { 0 } else { len });
            }
            if parks {
                worker.parked_y.resize(len, 0.0);
                worker.parked_t_sum.resize(p, 0.0);
            }
            if !single && self.sums_in_runs() {
                worker.run.resize(len, 0.0);
            }
            worker.t_sum.resize(p, 0.0);
        }
        scratch.t_sum.clear();
        scratch.t_sum.resize(p, 0.0);
        let Scratch { t_sum, workers, .. } = scratch;
        let workers = &mut workers[..n_workers];
        let work = |i: usize, worker: &mut Worker, into: Option<&mut [f64]>| {
            if self.cancel.breaks_off() {
                return; // what is merged instead is never handed out
            }
            let rows = match rows {
                Rows::All => RowSet::Range(self.chunk(i, n_chunks)),
                Rows::Batch(list) => RowSet::List(&list[ordered::chunk(list.len(), i, n_chunks)]),
            };
            worker.sum(self, &rows, operand, into);
        };
        if own {
            let first = Mutex::new((!single).then_some(&mut *out));
            ordered::for_each_own(0, workers, &|i, worker: &mut Worker| {
                let taken = || first.lock().unwrap_or_else(PoisonError::into_inner).take();
                let into = if i == 0 { taken() } else { None };
                work(i, worker, into);
            });
            // All threads share the merging, coordinate by coordinate.
            out.par_chunks_mut(CHUNK).enumerate().for_each(|(at, out)| {
                let others = workers.iter().enumerate().skip(usize::from(!single));
                others.for_each(|(i, worker)| worker.add_to(out, at * CHUNK, i == 0));
            });
            workers.iter().for_each(|worker| worker.add_sums_to(t_sum));
        } else {
            let park = |worker: &mut Worker| {
                std::mem::swap(&mut worker.y, &mut worker.parked_y);
                std::mem::swap(&mut worker.t_sum, &mut worker.parked_t_sum);
            };
            ordered::for_each_chunk_parking(
                n_chunks,
                workers,
                |i, worker| work(i, worker, None),
                |i, worker| {
                    worker.add_to(out, 0, i == 0);
                    worker.add_sums_to(t_sum);
                },
                parks.then_some(park),
            );
        }
        share_room(&mut scratch.workers);
    }

    /// Where chunk i of all rows lies: equal rows when dense, equal entries when sparse.
    fn chunk(&self, i: usize, n_chunks: usize) -> std::ops::Range<usize> {
        let row_starts = match self.matrix {
            Matrix::CsrF32(x) => x.row_starts(),
            Matrix::CsrF64(x) => x.row_starts(),
            _ => return ordered::chunk(self.n_rows(), i, n_chunks),
        };
        let entries = ordered::chunk(self.matrix.nnz(), i, n_chunks);
        let cut = |entry: usize| row_starts.partition_point(|&start| start < entry);
        let end = if i + 1 == n_chunks { self.n_rows() } else { cut(entries.end).min(self.n_rows()) };
        cut(entries.start).min(self.n_rows())..end
    }
}

/// `out` ← `out` − μΣt, where means are left for afterwards: Σt is zero elsewhere.
pub(in crate::operator) fn center(map: &RowMap, t_sum: &[f64], out: &mut [f64]) {
    if let Some(shift) = map.shift()
        && t_sum.iter().any(|t| *t != 0.0)
    {
        for (row, mu) in out.chunks_exact_mut(t_sum.len()).zip(shift) {
            row.iter_mut().zip(t_sum).for_each(|(y, t)| *y -= mu * t);
        }
    }
}

/// `out` ← D⁻¹ `out`.
pub(in crate::operator) fn unscale(map: &RowMap, p: usize, out: &mut [f64]) {
    if let Some(scale) = map.scale() {
        let rows = out.chunks_exact_mut(p).zip(scale);
        rows.for_each(|(row, s)| row.iter_mut().for_each(|y| *y /= s));
    }
}

impl Worker {
    /// `out` ← `out` + y, or ← y for the `first`, from coordinate `from` of y on.
    fn add_to(&self, out: &mut [f64], from: usize, first: bool) {
        if first {
            out.fill(0.0);
        }
        if self.single_y.is_empty() {
            out.iter_mut().zip(&self.y[from..]).for_each(|(out, y)| *out += y);
        } else {
            out.iter_mut().zip(&self.single_y[from..]).for_each(|(out, y)| *out += f64::from(*y));
        }
    }

    fn add_sums_to(&self, t_sum: &mut [f64]) {
        t_sum.iter_mut().zip(&self.t_sum).for_each(|(sum, t)| *sum += t);
    }

    /// y, or `into`, ← Σ over one chunk, and the sum of t where means are left for afterwards.
    fn sum(
        &mut self,
        prepared: &Prepared<'_>,
        rows: &RowSet<'_>,
        operand: Operand<'_>,
        into: Option<&mut [f64]>,
    ) {
        let Operand { v, rounded, p, c, of_rows } = operand;
        let y = into.unwrap_or(&mut self.y);
        y.fill(0.0);
        self.single_y.fill(0.0);
        self.t_sum.fill(0.0);
        let weights = RowWeights(prepared.weights);
        let shift = prepared.map.shift();
        let (kernel, t_sum) = (&mut self.kernel, &mut self.t_sum);
        match prepared.matrix {
            Matrix::DenseF32(x) if !rounded.is_empty() => {
                let c = c.filter(|_| prepared.map.is_nearly_centred());
                let afterwards = c.map(|c| Afterwards { c, s_sum: t_sum });
                let kernel = &mut self.single_kernel;
                kernels::sum_dense(x, rows, weights, shift, afterwards, rounded, p, y, kernel);
            }
            Matrix::DenseF32(x) => kernels::sum_dense(x, rows, weights, shift, None, v, p, y, kernel),
            Matrix::DenseF64(x) => kernels::sum_dense(x, rows, weights, shift, None, v, p, y, kernel),
            Matrix::CsrF32(x) if of_rows => kernels::add_csr(x, rows, rounded, p, &mut self.single_y, t_sum),
            Matrix::CsrF32(x) if !rounded.is_empty() => {
                let (y, kernel) = (&mut self.single_y, &mut self.single_kernel);
                kernels::sum_csr(x, rows, weights, c, rounded, p, y, kernel, t_sum);
            }
            Matrix::CsrF32(x) => {
                in_runs(rows, prepared, y, &mut self.run, |rows, y| {
                    kernels::sum_csr(x, rows, weights, c, v, p, y, kernel, t_sum);
                });
            }
            Matrix::CsrF64(x) => {
                in_runs(rows, prepared, y, &mut self.run, |rows, y| {
                    kernels::sum_csr(x, rows, weights, c, v, p, y, kernel, t_sum);
                });
            }
        }
    }
}

/// `y` ← Σ over compressed rows, `sum` adding up those of a run.
fn in_runs(
    rows: &RowSet<'_>,
    prepared: &Prepared<'_>,
    y: &mut [f64],
    run: &mut Vec<f64>,
    mut sum: impl FnMut(&RowSet<'_>, &mut [f64]),
) {
    if !prepared.sums_in_runs() || rows.len() <= kernels::ROWS_IN_SUM {
        return sum(rows, y);
    }
    run.resize(y.len(), 0.0);
    for start in (0..rows.len()).step_by(kernels::ROWS_IN_SUM) {
        run.fill(0.0);
        sum(&rows.part(start..rows.len().min(start + kernels::ROWS_IN_SUM)), run);
        y.iter_mut().zip(&*run).for_each(|(y, run)| *y += run);
    }
}

/// Gives every worker the room that the kernel of one of them needed.
fn share_room(workers: &mut [Worker]) {
    let room = workers.iter().map(|worker| worker.kernel.capacity()).max().unwrap_or(0);
    let single = workers.iter().map(|worker| worker.single_kernel.capacity()).max().unwrap_or(0);
    for worker in workers {
        worker.kernel.reserve_exact(room - worker.kernel.len());
        worker.single_kernel.reserve_exact(single - worker.single_kernel.len());
    }
}
