//! After a first call neither a product nor a solver's step asks for memory.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare exact values exactly and count small"
)]
#![allow(unsafe_code, reason = "a global allocator is unsafe to implement; this one only counts")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;
use hbpca::operator::{Covariance, Products};
use hbpca::{Batch, Block, FitConfig, MomentumChoice, Preprocessing, Replacement, SolverKind};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of all threads while `body` runs.
fn allocations(mut body: impl FnMut()) -> usize {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    body();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// A pool whose threads have all run: what a thread allocates once in its life is allocated.
fn awake_pool(threads: usize) -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let meeting = std::sync::Barrier::new(threads);
    pool.broadcast(|_| meeting.wait());
    if threads == 2 {
        pool.install(|| rayon::join(|| meeting.wait(), || meeting.wait()));
    }
    pool
}

/// The solvers whose blocks keep their shape; the others grow a basis.
const SINGLE_VECTOR: [SolverKind; 11] = [
    SolverKind::Power,
    SolverKind::PowerM,
    SolverKind::Oja,
    SolverKind::VrPca,
    SolverKind::VrPcaProjected,
    SolverKind::VrPowerM,
    SolverKind::VrHbPower,
    SolverKind::ShiftInvertSvrg,
    SolverKind::ShiftInvertAgd,
    SolverKind::VrRiemannian,
    SolverKind::CoordinatePower,
];

/// Everything in one test, so that no other test allocates meanwhile.
#[test]
fn nothing_is_allocated_after_the_first_call() {
    assert!(allocations(|| drop(vec![1_u8; 100])) > 0, "the counter counts");
    // The same pools throughout: threads that end allocate too.
    let pools = [awake_pool(1), awake_pool(2)];
    let (n, d) = (4000, 50);
    let values = sparse_values(n, d, 0.7, 1);
    let batch: Vec<usize> = (0..n).step_by(2).collect();
    for (storage, x) in every_storage(&values, d) {
        for preprocessing in EVERY_PREPROCESSING {
            for pool in &pools {
                pool.install(|| {
                    let threads = pool.current_num_threads();
                    let label = format!("{storage} {preprocessing:?} {threads} threads");
                    let mut c = Covariance::new(&x, preprocessing).unwrap();
                    for p in [1, 3, 8] {
                        let (v, mut out) = (random_block(d, p, 1), Block::zeros(d, p));
                        let mut products = || {
                            c.apply(&v, &mut out).unwrap();
                            c.apply_batch(&batch, &v, &mut out).unwrap();
                        };
                        products();
                        assert_eq!(
                            allocations(|| (0..5).for_each(|_| products())),
                            0,
                            "products, {label}, p = {p}"
                        );
                    }
                });
            }
        }
        for kind in SINGLE_VECTOR {
            for replacement in [Replacement::With, Replacement::Without] {
                for momentum in [MomentumChoice::Adaptive, MomentumChoice::Oracle(0.5)] {
                    pools[1].install(|| {
                        let batch = Batch::Share(0.5);
                        let config = FitConfig {
                            solver: kind,
                            batch,
                            epoch: 3,
                            replacement,
                            momentum,
                            ..FitConfig::default()
                        };
                        let mut solver = config.solver(n, d).unwrap();
                        let mut c = Covariance::new(&x, Preprocessing::STANDARDIZE).unwrap();
                        let mut step = || {
                            solver.look(&mut c).unwrap();
                            solver.step(&mut c).unwrap();
                        };
                        // Twice: coordinate-power forms C in its first look and multiplies in its second.
                        step();
                        step();
                        // The queues of the thread pool take a new block now and then: what a step allocates shows every time.
                        let least = (0..3).map(|_| allocations(|| (0..2).for_each(|_| step()))).min();
                        assert_eq!(least, Some(0), "{kind}, {storage}, {replacement:?}");
                    });
                }
            }
        }
    }
}
