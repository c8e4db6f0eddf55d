//! How ranks talk: numbers sent, received and broadcast, nothing else.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use crate::Error;

/// One of several ranks that hold different rows of the same matrix and run the same program.
///
/// Messages between two ranks arrive in the order they were sent. Every method returns an error where a rank is gone, and does not wait
/// for it for ever.
pub trait Communicator: Sync {
    /// This rank's number, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// Sends numbers to rank `to`.
    fn send(&self, values: &[f64], to: usize) -> Result<(), Error>;

    /// Receives as many numbers from rank `from` as it sends.
    fn receive(&self, values: &mut [f64], from: usize) -> Result<(), Error>;

    /// Replaces `values` on every rank by those of rank `root`; by default along a binomial tree.
    fn broadcast(&self, values: &mut [f64], root: usize) -> Result<(), Error> {
        let size = self.size();
        let place = (self.rank() + size - root) % size; // as if the root were rank 0
        let rank_at = |place: usize| (place + root) % size;
        let mut step = 1;
        while step < size && place & step == 0 {
            step <<= 1;
        }
        if place > 0 {
            self.receive(values, rank_at(place - step))?;
        }
        while step > 1 {
            step >>= 1;
            if place + step < size {
                self.send(values, rank_at(place + step))?;
            }
        }
        Ok(())
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
    fn send(&self, _values: &[f64], to: usize) -> Result<(), Error> {
        Err(gone(to))
    }
    fn receive(&self, _values: &mut [f64], from: usize) -> Result<(), Error> {
        Err(gone(from))
    }
}

/// A rank that is a thread of this process: many machines, testable on one. A rank that was dropped is gone.
#[derive(Debug)]
pub struct ThreadRank {
    rank: usize,
    to: Vec<Sender<Vec<f64>>>,
    from: Vec<Mutex<Receiver<Vec<f64>>>>,
}

/// `size` ranks for `size` threads.
pub fn thread_ranks(size: usize) -> Vec<ThreadRank> {
    let mut ranks: Vec<_> =
        (0..size).map(|rank| ThreadRank { rank, to: Vec::new(), from: Vec::new() }).collect();
    for from in 0..size {
        for to in 0..size {
            let (sender, receiver) = channel();
            ranks[from].to.push(sender);
            ranks[to].from.push(Mutex::new(receiver));
        }
    }
    ranks
}

impl Communicator for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn send(&self, values: &[f64], to: usize) -> Result<(), Error> {
        self.to[to].send(values.to_vec()).map_err(|_| gone(to))
    }

    fn receive(&self, values: &mut [f64], from: usize) -> Result<(), Error> {
        let sent = self.from[from].lock().unwrap_or_else(PoisonError::into_inner).recv();
        let sent = sent.map_err(|_| gone(from))?;
        if sent.len() != values.len() {
            return Err(Error::shape(format!("numbers sent by rank {from}"), values.len(), sent.len()));
        }
        values.copy_from_slice(&sent);
        Ok(())
    }
}

fn gone(rank: usize) -> Error {
    Error::Communication(format!("rank {rank} is gone"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `body` on `size` thread ranks and returns what each gave.
    fn on_ranks<T: Send>(size: usize, body: impl Fn(ThreadRank) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let body = &body;
            let threads: Vec<_> =
                thread_ranks(size).into_iter().map(|rank| scope.spawn(move || body(rank))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn every_root_reaches_every_rank() {
        for size in [1, 2, 3, 7, 8] {
            for len in [0, 1, 10] {
                let results = on_ranks(size, |rank| {
                    (0..size)
                        .map(|root| {
                            let mut values = vec![rank.rank() as f64; len];
                            rank.broadcast(&mut values, root).unwrap();
                            values
                        })
                        .collect::<Vec<_>>()
                });
                let want: Vec<_> = (0..size).map(|root| vec![root as f64; len]).collect();
                assert!(results.iter().all(|got| *got == want), "{size} ranks, {len} numbers");
            }
        }
    }

    #[test]
    fn messages_go_from_one_rank_to_another_and_arrive_in_order() {
        let got = on_ranks(3, |rank| {
            let mut got = [0.0; 2];
            let next = (rank.rank() + 1) % 3;
            for part in 0..2 {
                rank.send(&[10.0 * rank.rank() as f64 + f64::from(part)], next).unwrap();
            }
            for part in &mut got {
                rank.receive(std::slice::from_mut(part), (rank.rank() + 2) % 3).unwrap();
            }
            got
        });
        assert_eq!(got, [[20.0, 21.0], [0.0, 1.0], [10.0, 11.0]]);
    }

    #[test]
    fn a_message_of_another_length_and_a_rank_that_is_gone_are_told() {
        let errors = on_ranks(2, |rank| {
            if rank.rank() == 1 {
                rank.send(&[1.0, 2.0], 0).unwrap();
                return Vec::new();
            }
            let mut values = [0.0; 3];
            (0..2).map(|_| rank.receive(&mut values, 1).unwrap_err().to_string()).collect()
        });
        assert!(errors[0][0].contains("numbers sent by rank 1: 2 given where 3"), "{errors:?}");
        assert!(errors[0][1].contains("rank 1 is gone"), "{errors:?}");
    }
}
