//! Memory beyond the data: vectors of d numbers for the basis, the block and every thread, and nothing that grows with the rows.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, and sizes are small"
)]
#![allow(unsafe_code, reason = "a global allocator is unsafe to implement; this one only counts")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use common::*;
use hbpca::operator::Covariance;
use hbpca::solver::{Anchored, AnchoredSizes, Krylov, KrylovSizes, Solver};
use hbpca::{Csr, Dense, Driver, Limits, Matrix, Preprocessing};

struct Watching;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed) + layout.size() as isize;
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static WATCHING: Watching = Watching;

const THREADS: usize = 2;
const K: usize = 5;

/// The most bytes in use beyond the data during a run, statistics included.
fn peak(x: &Matrix<'_>, solver: impl FnOnce(usize, usize) -> Box<dyn Solver>) -> f64 {
    // Nothing converges, so that every basis gets full.
    let limits = Limits { tol: 0.0, max_passes: 30.0, ..Limits::default() };
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let mut operator = Covariance::new(x, Preprocessing::CENTER).unwrap();
    let run = Driver::new(limits).run(&mut *solver(x.n_rows(), x.n_cols()), &mut operator).unwrap();
    assert!(run.passes > 10.0, "{}", run.passes);
    (PEAK.load(Ordering::Relaxed) - before) as f64
}

fn pictures(n: usize, d: usize) -> Matrix<'static> {
    let mut random = Xorshift(n as u64);
    // Columns of falling size, so that passes have something to find.
    let entry = |at: usize| (random.uniform() / (1.0 + (at % d) as f64 / 50.0)) as f32;
    Dense::new((0..n * d).map(entry).collect(), n, d).unwrap().into()
}

fn texts(n: usize, d: usize) -> Matrix<'static> {
    const WORDS: usize = 20;
    let mut random = Xorshift(n as u64);
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let mut row: Vec<u32> = (0..WORDS).map(|_| (d as f64 * random.uniform().powi(3)) as u32).collect();
        row.sort_unstable();
        row.dedup();
        values.extend(row.iter().map(|_| random.uniform() as f32));
        columns.push(row);
    }
    let starts = std::iter::once(0).chain(columns.iter().scan(0, |end, row| {
        *end += row.len();
        Some(*end)
    }));
    Csr::new(d, starts.collect::<Vec<_>>(), columns.concat(), values).unwrap().into()
}

/// Vectors that a solver with a block of p and a basis of a may hold, as `ARCHITECTURE.md` says.
fn vectors(p: usize, a: usize) -> f64 {
    (3 * (a + p) + 9 * p + 18 + THREADS * (3 * p + 8)) as f64
}

/// Everything in one test, so that no other test allocates meanwhile.
#[test]
fn memory_is_a_number_of_vectors_whatever_the_rows_are() {
    with_threads(THREADS, || {
        // What threads allocate once in their lives, for products of matrices, is allocated.
        rayon::broadcast(|_| {
            let square = faer::Mat::<f64>::identity(200, 200);
            assert!((&square * &square)[(7, 7)] > 0.0);
        });
        for (name, make, n, d) in [("pictures", pictures as Make, 1000, 1500), ("texts", texts, 2000, 9000)] {
            let sizes =
                if name == "texts" { KrylovSizes::suiting_sparse(K) } else { KrylovSizes::suiting(K) };
            let krylov = |_, d| -> Box<dyn Solver> { Box::new(Krylov::new(d, K, sizes, 1, None).unwrap()) };
            check("krylov", make, n, d, (sizes.block, sizes.memory), krylov);
            let sizes = AnchoredSizes::suiting(n, K);
            let anchored =
                |n, d| -> Box<dyn Solver> { Box::new(Anchored::new(n, d, K, sizes, 1, None).unwrap()) };
            check("anchored", make, n, d, (sizes.block, sizes.anchors), anchored);
        }
    });
}

type Make = fn(usize, usize) -> Matrix<'static>;

/// Compares twice the columns, and four times the rows, with n rows of d columns.
fn check(
    solver: &str,
    make: Make,
    n: usize,
    d: usize,
    (p, a): (usize, usize),
    start: impl Fn(usize, usize) -> Box<dyn Solver>,
) {
    let [narrow, wide, long] = [make(n, d), make(n, 2 * d), make(4 * n, d)].map(|x| peak(&x, &start));
    let a_column = (wide - narrow) / d as f64;
    let most = 8.0 * vectors(p, a);
    assert!(a_column <= most, "{solver}, d = {d}: {a_column} bytes a column, {most} at most");
    // At least the basis, be it in f32: otherwise nothing was measured.
    assert!(a_column >= 4.0 * a as f64, "{solver}, d = {d}: {a_column} bytes a column");
    // Samples are lists of rows, 8 bytes for each of a start sample (a tenth) and of batches (a hundredth); and how many threads
    // hold temporary vectors at the same time is chance.
    let (more, chance) = (long - narrow, 8.0 * (d * THREADS * 3 * p) as f64);
    assert!(more <= (3 * n * 8) as f64 + chance, "{solver}: {more} bytes more for {} rows more", 3 * n);
}
