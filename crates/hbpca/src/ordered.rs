//! Parallel sums with one fixed order: the same bits for any number of threads.
//!
//! Rows are cut into chunks whose number depends on the data alone. Workers take chunks in ascending order,
//! fill a buffer of their own, and add it to the result when it is their chunk's turn. Memory is one buffer
//! a worker, or two where they are small, not one a chunk.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Largest number of chunks: enough to feed and balance many cores.
pub(crate) const MOST_CHUNKS: usize = 64;
/// Entries below which a chunk is not worth handing to another thread (about ten microseconds of work).
const ENTRIES_PER_CHUNK: usize = 1 << 15;

thread_local! {
    /// Whether chunks are left to the thread that asks for their sum.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Does `work` without handing chunks to other threads, whose waking would take longer than the chunks; the sums have the same bits.
pub(crate) fn alone<T>(work: impl FnOnce() -> T) -> T {
    struct Restored(bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _restored = Restored(ALONE.replace(true));
    work()
}

/// How many chunks to cut `entries` stored entries over `d` columns into. A power of two, so that few threads
/// share them evenly; clearing and merging a d-long buffer stays below a quarter of the chunk's own work.
pub(crate) fn n_chunks(entries: usize, d: usize) -> usize {
    let wanted = (entries / ENTRIES_PER_CHUNK).min(entries / (8 * d)).clamp(1, MOST_CHUNKS);
    1 << wanted.ilog2()
}

/// The `i`-th of `parts` nearly equal chunks of `0..n`.
pub(crate) fn chunk(n: usize, i: usize, parts: usize) -> Range<usize> {
    let cut = |i: usize| (n as u128 * i as u128 / parts as u128) as usize;
    cut(i)..cut(i + 1)
}

/// Calls `work(i, buffer)` for every chunk i on the current thread pool, one worker for each buffer, and
/// `merge(i, buffer)` in the order i = 0, 1, 2, …
///
/// `work` must not use the thread pool itself: a worker waiting for its turn would then block the work it
/// waits for.
pub(crate) fn for_each_chunk<B: Send>(
    n_chunks: usize,
    buffers: &mut [B],
    work: impl Fn(usize, &mut B) + Sync,
    merge: impl FnMut(usize, &mut B) + Send,
) {
    for_each_chunk_parking(n_chunks, buffers, work, merge, None);
}

/// [`for_each_chunk`] for buffers with room for a second sum, which `park` exchanges with the first: a worker whose turn has not
/// come goes on to its next chunk instead of waiting, and adds the parked sum after that.
pub(crate) fn for_each_chunk_parking<B: Send>(
    n_chunks: usize,
    buffers: &mut [B],
    work: impl Fn(usize, &mut B) + Sync,
    merge: impl FnMut(usize, &mut B) + Send,
    park: Option<fn(&mut B)>,
) {
    let threads = if ALONE.get() { 1 } else { rayon::current_num_threads() };
    let workers = n_chunks.min(buffers.len()).min(threads);
    if workers <= 1 {
        let mut merge = merge;
        for i in 0..n_chunks {
            work(i, &mut buffers[0]);
            merge(i, &mut buffers[0]);
        }
        return;
    }
    let next = AtomicUsize::new(0);
    let turn = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let merge = Mutex::new(merge);
    for_each_own(0, &mut buffers[..workers], &|_, buffer| {
        let _alarm = Alarm(&failed);
        // Chunk i − 1 was taken by a worker that already runs, so its turn comes. False when another worker panicked.
        let merge_in_turn = |i: usize, buffer: &mut B| {
            let mut spins = 0_u32;
            while turn.load(Ordering::Acquire) != i {
                if failed.load(Ordering::Relaxed) {
                    return false;
                }
                spins += 1;
                if spins < 1 << 10 { std::hint::spin_loop() } else { std::thread::yield_now() }
            }
            let mut merge = merge.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            merge(i, buffer);
            turn.store(i + 1, Ordering::Release);
            true
        };
        let mut parked = None;
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i < n_chunks {
                work(i, buffer);
            }
            if let (Some(before), Some(park)) = (parked.take(), park) {
                park(buffer);
                if !merge_in_turn(before, buffer) {
                    return;
                }
                park(buffer);
            }
            if i >= n_chunks {
                return;
            }
            match park {
                Some(park) if turn.load(Ordering::Acquire) != i => {
                    park(buffer);
                    parked = Some(i);
                }
                _ if !merge_in_turn(i, buffer) => return,
                _ => {}
            }
        }
    });
}

/// Calls `work(first + i, buffer)` for every buffer i, on other threads where some are free. Joins do not allocate; scopes do.
pub(crate) fn for_each_own<B: Send>(first: usize, buffers: &mut [B], work: &(impl Fn(usize, &mut B) + Sync)) {
    match buffers {
        [] => {}
        [buffer] => work(first, buffer),
        _ => {
            let half = buffers.len() / 2;
            let (left, right) = buffers.split_at_mut(half);
            rayon::join(|| for_each_own(first, left, work), || for_each_own(first + half, right, work));
        }
    }
}

/// Tells the other workers when one panics, so that none waits for it.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sum, and room for another.
    type Buffer = [f64; 2];

    fn sum_with(threads: usize, park: Option<fn(&mut Buffer)>) -> f64 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (mut total, mut order) = (0.0, Vec::new());
        pool.install(|| {
            let mut buffers = vec![[0.0; 2]; threads];
            let harmonic = |i: usize| chunk(1_000_003, i, 64).map(|x| 1.0 / (x + 1) as f64).sum();
            let merge = |i: usize, b: &mut Buffer| {
                order.push(i);
                total += b[0];
            };
            for_each_chunk_parking(64, &mut buffers, |i, b| b[0] = harmonic(i), merge, park);
        });
        assert_eq!(order, (0..64).collect::<Vec<_>>(), "{threads} threads");
        total
    }

    #[test]
    fn every_number_of_threads_gives_the_same_bits() {
        let one = sum_with(1, None);
        for threads in [1, 2, 3, 8] {
            for park in [None, Some((|b: &mut Buffer| b.swap(0, 1)) as fn(&mut Buffer))] {
                assert_eq!(one.to_bits(), sum_with(threads, park).to_bits(), "{threads} threads");
            }
        }
    }

    #[test]
    fn what_is_done_alone_stays_on_its_thread_in_the_same_order() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let (mut order, worked) = (Vec::new(), Mutex::new(std::collections::BTreeSet::new()));
        pool.install(|| {
            let note = |_, (): &mut ()| {
                worked.lock().unwrap().insert(rayon::current_thread_index());
            };
            alone(|| for_each_chunk(64, &mut [(); 3], note, |i, ()| order.push(i)));
            assert!(!ALONE.get());
        });
        assert_eq!(order, (0..64).collect::<Vec<_>>());
        assert_eq!(worked.into_inner().unwrap().len(), 1);
    }

    #[test]
    fn pieces_cover_everything_once() {
        for n in [0, 1, 7, 64, 1000] {
            for parts in [1, 2, 7, 64] {
                let all: Vec<usize> = (0..parts).flat_map(|i| chunk(n, i, parts)).collect();
                assert_eq!(all, (0..n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_panic_in_one_worker_reaches_the_caller() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.install(|| for_each_chunk(16, &mut [(); 4], |i, ()| assert!(i != 3), |_, ()| ()));
        }));
        assert!(result.is_err());
    }
}
