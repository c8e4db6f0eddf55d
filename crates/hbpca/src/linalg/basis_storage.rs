//! The vectors of a basis, stored in f32 or in f64.

use faer::MatRef;

use super::{BlockQr, TallBasis};
use crate::rounding::SINGLE;
use crate::{Archive, Block, CancelToken, Error};

/// A basis in f32, half the memory and half the time, or in f64.
#[derive(Clone, Debug)]
pub(crate) enum BasisStorage {
    Single(TallBasis<f32>),
    Double(TallBasis<f64>),
}

/// The same for either.
macro_rules! either {
    ($storage:expr, $vectors:ident => $do:expr) => {
        match $storage {
            BasisStorage::Single($vectors) => $do,
            BasisStorage::Double($vectors) => $do,
        }
    };
}

impl BasisStorage {
    /// No vectors yet, and room for some.
    pub(crate) fn with_room(d: usize, room: usize, single: bool) -> Self {
        if single {
            Self::Single(TallBasis::with_room(d, room))
        } else {
            Self::Double(TallBasis::with_room(d, room))
        }
    }

    pub(crate) fn is_single(&self) -> bool {
        matches!(self, Self::Single(_))
    }

    /// How much larger its unit roundoff is than that of f64.
    pub(crate) fn unit_ratio(&self) -> f64 {
        if self.is_single() { SINGLE } else { 1.0 }
    }

    pub(crate) fn len(&self) -> usize {
        either!(self, vectors => vectors.len())
    }

    /// Makes room for `most` vectors in all.
    pub(crate) fn reserve(&mut self, most: usize) {
        either!(self, vectors => vectors.reserve(most));
    }

    /// Appends the columns of `block`.
    pub(crate) fn append(&mut self, block: &Block) {
        either!(self, vectors => vectors.append(block));
    }

    /// Q ← QS for coefficients S with as many columns at most.
    pub(crate) fn combine(&mut self, s: MatRef<'_, f64>) {
        either!(self, vectors => vectors.combine(s));
    }

    /// QS, for coefficients S.
    pub(crate) fn product(&self, s: MatRef<'_, f64>) -> Block {
        either!(self, vectors => vectors.product(s))
    }

    /// See [`TallBasis::orthogonalize`].
    pub(crate) fn orthogonalize(
        &mut self,
        z: &Block,
        unit: f64,
        outside: usize,
        x: &mut Block,
        cancel: &CancelToken,
    ) -> Result<BlockQr, Error> {
        either!(self, vectors => vectors.orthogonalize(z, unit, outside, x, cancel))
    }

    /// All vectors, one after another.
    pub(crate) fn to_columns(&self) -> Vec<f64> {
        either!(self, vectors => vectors.to_columns())
    }

    /// Walks over all vectors of length d, any number.
    pub(crate) fn archive(&mut self, name: &str, d: usize, archive: &mut Archive<'_>) -> Result<(), Error> {
        let mut single = self.is_single();
        archive.flag("single", &mut single)?;
        if archive.is_restoring() {
            *self = Self::with_room(d, 0, single);
        }
        either!(self, vectors => vectors.archive(name, archive))
    }
}
