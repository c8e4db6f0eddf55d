//! How ranks talk: sums and broadcasts of numbers, nothing else.

use std::sync::{Arc, Barrier, Mutex, PoisonError};

use crate::Error;

/// One of several ranks that hold different rows of the same matrix and run the same program.
///
/// Every rank calls the same methods in the same order with slices of the same length.
pub trait Communicator {
    /// This rank's number, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// Replaces `values` on every rank by their sum over all ranks, added in rank order: the same bits everywhere.
    fn all_reduce_sum(&self, values: &mut [f64]) -> Result<(), Error>;

    /// Replaces `values` on every rank by those of rank `root`.
    fn broadcast(&self, values: &mut [f64], root: usize) -> Result<(), Error>;

    /// Everyone's `values`, one after the other in rank order.
    fn all_gather(&self, values: &[f64]) -> Result<Vec<f64>, Error> {
        let mut all = vec![0.0; values.len() * self.size()];
        all[values.len() * self.rank()..][..values.len()].copy_from_slice(values);
        self.all_reduce_sum(&mut all)?;
        Ok(all)
    }
}

/// The only rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleRank;

impl Communicator for SingleRank {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn all_reduce_sum(&self, _values: &mut [f64]) -> Result<(), Error> {
        Ok(())
    }
    fn broadcast(&self, _values: &mut [f64], _root: usize) -> Result<(), Error> {
        Ok(())
    }
}

/// A rank that is a thread of this process: many machines, testable on one.
#[derive(Clone, Debug)]
pub struct ThreadRank {
    rank: usize,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// What each rank brought to the exchange under way.
    brought: Vec<Mutex<Vec<f64>>>,
    barrier: Barrier,
}

/// `size` ranks for `size` threads.
pub fn thread_ranks(size: usize) -> Vec<ThreadRank> {
    let brought = (0..size).map(|_| Mutex::default()).collect();
    let shared = Arc::new(Shared { brought, barrier: Barrier::new(size) });
    (0..size).map(|rank| ThreadRank { rank, shared: Arc::clone(&shared) }).collect()
}

impl ThreadRank {
    /// Puts `values` where all ranks see them, lets `read` look at everyone's, and clears the table.
    fn exchange(&self, values: &[f64], mut read: impl FnMut(usize, &[f64])) -> Result<(), Error> {
        let lock = |rank: usize| self.shared.brought[rank].lock().unwrap_or_else(PoisonError::into_inner);
        lock(self.rank).clear();
        lock(self.rank).extend_from_slice(values);
        self.shared.barrier.wait();
        let mut mismatch = None;
        for rank in 0..self.size() {
            let brought = lock(rank);
            if brought.len() == values.len() {
                read(rank, &brought);
            } else {
                mismatch =
                    Some(Error::shape(format!("numbers sent by rank {rank}"), values.len(), brought.len()));
            }
        }
        self.shared.barrier.wait();
        mismatch.map_or(Ok(()), Err)
    }
}

impl Communicator for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.brought.len()
    }

    fn all_reduce_sum(&self, values: &mut [f64]) -> Result<(), Error> {
        let mut sum = vec![0.0; values.len()];
        self.exchange(values, |_, brought| sum.iter_mut().zip(brought).for_each(|(sum, x)| *sum += x))?;
        values.copy_from_slice(&sum);
        Ok(())
    }

    fn broadcast(&self, values: &mut [f64], root: usize) -> Result<(), Error> {
        let mut roots = Vec::new();
        self.exchange(values, |rank, brought| {
            if rank == root {
                roots.extend_from_slice(brought);
            }
        })?;
        values.copy_from_slice(&roots);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `body` on `size` thread ranks and returns what each gave.
    fn on_ranks<T: Send>(size: usize, body: impl Fn(&ThreadRank) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = thread_ranks(size)
                .into_iter()
                .map(|rank| {
                    scope.spawn({
                        let body = &body;
                        move || body(&rank)
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn sums_broadcasts_and_gathers_also_with_messages_shorter_than_the_world() {
        for size in [1, 2, 3, 7] {
            for len in [0, 1, 2, 10] {
                let results = on_ranks(size, |rank| {
                    let mine = vec![rank.rank() as f64 + 1.0; len];
                    let (mut sum, mut first) = (mine.clone(), mine.clone());
                    rank.all_reduce_sum(&mut sum).unwrap();
                    rank.broadcast(&mut first, size - 1).unwrap();
                    (sum, first, rank.all_gather(&mine).unwrap())
                });
                let total = (size * (size + 1) / 2) as f64;
                let gathered: Vec<f64> = (0..size).flat_map(|r| vec![r as f64 + 1.0; len]).collect();
                for (sum, last, all) in results {
                    assert_eq!(
                        (sum, last, all),
                        (vec![total; len], vec![size as f64; len], gathered.clone())
                    );
                }
            }
        }
    }

    #[test]
    fn ranks_that_send_different_lengths_are_told() {
        let errors = on_ranks(3, |rank| {
            let mut values = vec![0.0; if rank.rank() == 1 { 2 } else { 3 }];
            rank.all_reduce_sum(&mut values).unwrap_err().to_string()
        });
        assert!(errors[0].contains("numbers sent by rank 1"), "{errors:?}");
    }
}
