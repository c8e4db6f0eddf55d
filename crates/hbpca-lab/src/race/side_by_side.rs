//! Several jobs at once: runs whose seconds are not shown.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does `work` for every job, as many at once as there are threads, and returns the results in the order of the jobs. After
/// a failure no further job is begun; of several failures that of the earliest job is returned.
///
/// These are threads of their own: a worker of a rayon pool that waits for another pool begins further jobs meanwhile,
/// until all run at once.
pub(crate) fn side_by_side<J: Sync, T: Send, E: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some((i, job)) = {
            let i = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(i).map(|job| (i, job))
        } {
            let result = work(job);
            if result.is_err() {
                next.store(jobs.len(), Ordering::Relaxed);
            }
            done.push((i, result));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let n_workers = rayon::current_num_threads().min(jobs.len());
        let workers: Vec<_> = (0..n_workers).map(|_| scope.spawn(worker)).collect();
        let results =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        results.flatten().collect::<Vec<_>>()
    });
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        let squares = side_by_side(&jobs, |i| Ok::<_, Infallible>(i * i)).unwrap();
        assert!(squares.iter().zip(&jobs).all(|(square, i)| *square == i * i) && squares.len() == 100);
        assert!(side_by_side(&[], |i: &u64| Ok::<_, Infallible>(*i)).unwrap().is_empty());
    }

    #[test]
    fn the_earliest_failure_is_returned_and_nothing_is_begun_after_it() {
        let begun = AtomicUsize::new(0);
        let failed = side_by_side(&[3, 1, 4, 1, 5, 9, 2, 6], |_| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>("no")
        });
        assert_eq!(failed, Err("no"));
        assert!(begun.into_inner() <= rayon::current_num_threads());
    }
}
