//! Where an iteration begins.

use crate::matrix::random_direction;
use crate::{Block, Error};

/// The first iterate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Start {
    /// A random direction from a seed, the same on every platform.
    Random {
        /// The seed.
        seed: u64,
    },
    /// The columns of a block; they need not be orthonormal, but none may be zero.
    Given(Block),
}

impl Start {
    /// A unit vector of length d. Of a given block the first column is used.
    pub fn vector(&self, d: usize) -> Result<Block, Error> {
        let mut w = match self {
            Self::Random { seed } => random_direction(*seed, d),
            Self::Given(block) => {
                if block.d() != d || block.p() == 0 {
                    return Err(Error::shape(
                        "coordinates of the start vector",
                        d,
                        block.d() * block.p().min(1),
                    ));
                }
                block.column(0)
            }
        };
        let norm = crate::block::norm(&w);
        if !(norm > 0.0 && norm.is_finite()) {
            let advice = "its length must be positive and finite; leave it out for a random start";
            return Err(Error::parameter("start vector", format!("of length {norm}"), advice));
        }
        w.iter_mut().for_each(|x| *x /= norm);
        Ok(Block::from_vector(w))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_starts_are_unit_vectors_that_depend_on_the_seed_alone() {
        let start = |seed| Start::Random { seed }.vector(50).unwrap();
        assert_eq!(start(3), start(3));
        assert!((start(3).norm() - 1.0).abs() < 4.0 * f64::EPSILON);
        assert!(start(3).dot(&start(4)).abs() < 0.9);
    }

    #[test]
    fn zero_start_vector_is_refused() {
        for bad in [0.0, f64::NAN, f64::INFINITY] {
            let error = Start::Given(Block::from_vector(vec![bad; 3])).vector(3).unwrap_err().to_string();
            assert!(error.contains("leave it out for a random start"), "{error}");
        }
    }

    #[test]
    fn start_of_another_length_is_refused() {
        let error = Start::Given(Block::zeros(4, 1)).vector(3).unwrap_err().to_string();
        assert_eq!(error, "coordinates of the start vector: 4 given where 3 are needed");
    }
}
