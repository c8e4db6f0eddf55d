//! The state of a run as named numbers: what a checkpoint keeps.
//!
//! Solvers, policies and the driver name their numbers once, in a method that walks over them with an [`Archive`]; the same
//! walk writes them out and takes them back, so that neither can forget what the other knows. Numbers come back with the
//! same bits. What is taken back is checked first: a state that does not fit is refused with the name of its first fault.

mod archive;

pub use archive::Archive;

use std::collections::BTreeMap;

use crate::Error;

/// Numbers in a rectangle, the last index running fastest. A single number has no dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Tensor {
    /// Refuses a number of values that is not the product of the shape.
    pub fn new(shape: Vec<usize>, values: Vec<f64>) -> Result<Self, Error> {
        let size = shape.iter().try_fold(1_usize, |size, length| size.checked_mul(*length));
        match size {
            Some(size) if size == values.len() => Ok(Self { shape, values }),
            _ => Err(Error::shape(
                format!("values for a tensor of shape {shape:?}"),
                size.unwrap_or(usize::MAX),
                values.len(),
            )),
        }
    }

    /// Length along every dimension.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// All values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

/// Everything a run needs to go on, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    tensors: BTreeMap<String, Tensor>,
    counts: BTreeMap<String, u64>,
}

impl State {
    /// A state from its parts.
    pub fn from_parts(tensors: BTreeMap<String, Tensor>, counts: BTreeMap<String, u64>) -> Self {
        Self { tensors, counts }
    }

    /// The state of something that can walk over its numbers.
    pub fn of(walk: impl FnOnce(&mut Archive<'_>) -> Result<(), Error>) -> Result<Self, Error> {
        let mut state = Self::default();
        walk(&mut Archive::saving(&mut state))?;
        Ok(state)
    }

    /// Gives the numbers back, by the same walk.
    pub fn restore(&self, walk: impl FnOnce(&mut Archive<'_>) -> Result<(), Error>) -> Result<(), Error> {
        walk(&mut Archive::restoring(self))
    }

    /// Takes over the numbers of another, whose names are others.
    pub(crate) fn merge(&mut self, other: Self) {
        self.tensors.extend(other.tensors);
        self.counts.extend(other.counts);
    }

    /// Real numbers, by name.
    pub fn tensors(&self) -> &BTreeMap<String, Tensor> {
        &self.tensors
    }

    /// Whole numbers, by name.
    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }
}
