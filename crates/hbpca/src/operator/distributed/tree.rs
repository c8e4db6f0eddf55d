//! Sums over shards along one fixed tree, whichever ranks hold them.
//!
//! ```text
//! shard     0   1   2   3   4   5   6
//! step 1    ←───┘   ←───┘   ←───┘   │
//! step 2    ←───────┘       ←───────┘
//! step 4    ←───────────────┘
//! ```
//!
//! Two shards of one rank are added there, as soon as both are known; sums of different ranks travel. The additions and their order
//! are those of the tree: the same bits for the same shards on any number of ranks.

use super::Communicator;
use crate::Error;

/// The sums that one rank holds on their way to shard 0.
pub(super) struct Tree<'a, F> {
    ranks: &'a dyn Communicator,
    /// The rank of every shard, ascending.
    owners: &'a [usize],
    combine: F,
    /// Sums of this rank, each at the place of the first shard in it, over so many shards.
    sums: Vec<(usize, usize, Vec<f64>)>,
}

impl<'a, F: Fn(&mut [f64], &[f64])> Tree<'a, F> {
    pub(super) fn new(ranks: &'a dyn Communicator, owners: &'a [usize], combine: F) -> Self {
        Self { ranks, owners, combine, sums: Vec::new() }
    }

    /// Takes the values of a shard of this rank, one after the other: only sums that wait for others stay in memory.
    pub(super) fn add(&mut self, shard: usize, values: Vec<f64>) {
        self.sums.push((shard, 1, values));
        while let [.., (first, count, _), (_, last_count, _)] = &self.sums[..] {
            if count != last_count || first % (2 * count) != 0 {
                return;
            }
            if let Some((_, count, theirs)) = self.sums.pop()
                && let Some((_, all, mine)) = self.sums.last_mut()
            {
                *all += count;
                (self.combine)(mine, &theirs);
            }
        }
    }

    /// The sum over all shards, on the rank of shard 0. All ranks go through the same pairs in the same order.
    pub(super) fn finish(mut self) -> Result<Option<Vec<f64>>, Error> {
        let rank = self.ranks.rank();
        let mut step = 1;
        while step < self.owners.len() {
            for first in (0..self.owners.len() - step).step_by(2 * step) {
                let (to, from) = (self.owners[first], self.owners[first + step]);
                if rank != to && rank != from {
                    continue;
                }
                let theirs = if rank == from {
                    let Some(theirs) = self.take(first + step) else { continue }; // added before
                    theirs
                } else {
                    let length = self.at(first).map_or(0, Vec::len);
                    let mut theirs = vec![0.0; length];
                    self.ranks.receive(&mut theirs, from)?;
                    theirs
                };
                if rank != to {
                    self.ranks.send(&theirs, to)?;
                } else if let Some(at) = self.place(first) {
                    (self.combine)(&mut self.sums[at].2, &theirs);
                }
            }
            step <<= 1;
        }
        Ok(self.take(0))
    }

    fn place(&self, shard: usize) -> Option<usize> {
        self.sums.iter().position(|(first, ..)| *first == shard)
    }

    fn at(&self, shard: usize) -> Option<&Vec<f64>> {
        self.place(shard).map(|at| &self.sums[at].2)
    }

    fn take(&mut self, shard: usize) -> Option<Vec<f64>> {
        self.place(shard).map(|at| self.sums.remove(at).2)
    }
}

/// `values` of rank 0 ← their sum over all ranks; what other ranks hold afterwards means nothing.
pub(crate) fn sum_over_ranks(ranks: &dyn Communicator, values: &mut [f64]) -> Result<(), Error> {
    let owners: Vec<usize> = (0..ranks.size()).collect();
    let mut tree = Tree::new(ranks, &owners, add);
    tree.add(ranks.rank(), values.to_vec());
    if let Some(sum) = tree.finish()? {
        values.copy_from_slice(&sum);
    }
    Ok(())
}

/// Number by number.
pub(super) fn add(mine: &mut [f64], theirs: &[f64]) {
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the same bits are meant")]
mod tests {
    use super::*;
    use crate::operator::thread_ranks;

    /// The sum of 1/(shard + 3) and the number of shards, which `size` ranks hold.
    fn sum_of(shards: usize, size: usize) -> Vec<f64> {
        let owners: Vec<usize> = (0..shards).map(|shard| shard * size / shards).collect();
        std::thread::scope(|scope| {
            let owners = &owners;
            let threads: Vec<_> = thread_ranks(size)
                .into_iter()
                .map(|rank| {
                    scope.spawn(move || {
                        let mut tree = Tree::new(&rank, owners, add);
                        for shard in (0..shards).filter(|shard| owners[*shard] == rank.rank()) {
                            tree.add(shard, vec![1.0 / (shard as f64 + 3.0), 1.0]);
                        }
                        tree.finish().unwrap()
                    })
                })
                .collect();
            let sums: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            assert!(sums[1..].iter().all(Option::is_none));
            sums[0].clone().unwrap()
        })
    }

    #[test]
    fn shards_give_the_same_bits_on_any_number_of_ranks() {
        for shards in [1, 2, 3, 7, 8, 21, 64] {
            let alone = sum_of(shards, 1);
            let want: f64 = (0..shards).map(|shard| 1.0 / (shard as f64 + 3.0)).sum();
            assert!((alone[0] - want).abs() <= 8.0 * f64::EPSILON && alone[1] == shards as f64);
            for size in (2..=shards.min(9)).chain([shards]) {
                assert_eq!(sum_of(shards, size), alone, "{shards} shards, {size} ranks");
            }
        }
    }

    #[test]
    fn few_sums_wait() {
        let owners = [0; 64];
        let mut tree = Tree::new(&crate::operator::SingleRank, &owners, add);
        for shard in 0..64 {
            tree.add(shard, vec![1.0]);
            assert!(tree.sums.len() <= 6);
        }
        assert_eq!(tree.finish().unwrap().unwrap(), [64.0]);
    }
}
