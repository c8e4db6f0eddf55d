//! Sums over ranks along one fixed tree.
//!
//! ```text
//! rank      0   1   2   3   4   5   6
//! step 1    ←───┘   ←───┘   ←───┘   │
//! step 2    ←───────┘       ←───────┘
//! step 4    ←───────────────┘
//! ```

use super::Communicator;
use crate::Error;

/// `values` of rank 0 ← those of all ranks, combined two by two; what other ranks hold afterwards means nothing.
pub(super) fn reduce(
    ranks: &dyn Communicator,
    values: &mut [f64],
    combine: impl Fn(&mut [f64], &[f64]),
) -> Result<(), Error> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let mut theirs = Vec::new();
    let mut step = 1;
    while step < size {
        if rank & step != 0 {
            return ranks.send(values, rank - step);
        }
        if rank + step < size {
            theirs.resize(values.len(), 0.0);
            ranks.receive(&mut theirs, rank + step)?;
            combine(values, &theirs);
        }
        step <<= 1;
    }
    Ok(())
}

/// `values` of rank 0 ← their sum over all ranks.
pub(crate) fn sum_over_ranks(ranks: &dyn Communicator, values: &mut [f64]) -> Result<(), Error> {
    reduce(ranks, values, |mine, theirs| {
        mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
    })
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the same bits are meant")]
mod tests {
    use super::*;
    use crate::operator::thread_ranks;

    #[test]
    fn everything_is_added_once_and_in_the_same_order_every_time() {
        for size in [1, 2, 3, 7, 8] {
            let sums: Vec<_> = (0..5)
                .map(|_| {
                    std::thread::scope(|scope| {
                        let threads: Vec<_> = thread_ranks(size)
                            .into_iter()
                            .map(|rank| {
                                scope.spawn(move || {
                                    let mut values = [1.0 / (rank.rank() as f64 + 3.0), 1.0];
                                    let add = |a: &mut [f64], b: &[f64]| {
                                        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                                    };
                                    reduce(&rank, &mut values, add).unwrap();
                                    (rank.rank() == 0).then_some(values)
                                })
                            })
                            .collect();
                        threads.into_iter().find_map(|t| t.join().unwrap()).unwrap()
                    })
                })
                .collect();
            assert!(sums.iter().all(|sum| *sum == sums[0]));
            let want: f64 = (0..size).map(|r| 1.0 / (r as f64 + 3.0)).sum();
            assert!((sums[0][0] - want).abs() <= 8.0 * f64::EPSILON && sums[0][1] == size as f64);
        }
    }
}
