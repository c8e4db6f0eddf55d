//! Block Lanczos with thick restart.
//!
//! ```text
//! 1  X ← p random orthonormal directions
//! 2  repeat
//! 3      Z ← CX                                     one full pass
//! 4      Q ← [Q, X],  CQ ← [CQ, Z];  Rayleigh–Ritz  W, CW: the k best Ritz pairs
//! 5      X ← orth(Z − Q(QᵀZ))                       the next Krylov block, fully re-orthogonalised
//! 6      if Q is full: Q ← its best Ritz vectors    thick restart; the converged ones are locked by staying in
//! ```
//!
//! Source: Golub & Underwood 1977; Wu & Simon 2000 for the restart. Deviations: the images CQ are stored instead of the
//! block-tridiagonal H, which costs memory and makes every residual exact; a block that breaks down (an invariant subspace,
//! fewer than p directions left) is filled up with random directions, so that repeated eigenvalues are found.
//! Choose it as the best method without sampling. Cost of a step: 1 pass.

use super::basis::RitzBasis;
use super::{Pairs, Solver};
use crate::certificate::Next;
use crate::linalg::{beside, orthonormal_complement, random_complement};
use crate::{Block, CovarianceOperator, Error};

/// Sizes of the block and of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KrylovSizes {
    /// p, vectors multiplied in one pass.
    pub block: usize,
    /// Vectors kept before a restart.
    pub memory: usize,
}

impl KrylovSizes {
    /// Sizes that suit k components: a block of at least eight, since one pass with eight vectors costs little more than
    /// with one, and room for the Krylov space to grow between restarts.
    pub fn suiting(k: usize) -> Self {
        let block = (k + k / 2).clamp(8, 32);
        Self { block, memory: (4 * k).max(12 * block).max(96) }
    }
}

/// The k leading eigenvectors from a block Krylov space.
#[derive(Clone, Debug)]
pub struct Krylov {
    k: usize,
    sizes: KrylovSizes,
    seed: u64,
    basis: RitzBasis,
    /// X, the next block, orthonormal and orthogonal to Q; Z = CX.
    x: Block,
    z: Block,
    /// W and CW.
    vectors: Block,
    images: Block,
    step: u64,
}

impl Krylov {
    /// k ≤ d components, starting from random directions and, where given, the columns of `start`.
    pub fn new(
        d: usize,
        k: usize,
        sizes: KrylovSizes,
        seed: u64,
        start: Option<&Block>,
    ) -> Result<Self, Error> {
        super::check_components(k, d)?;
        let block = sizes.block.clamp(1, d);
        let nothing = Block::zeros(d, 0);
        let mut x = match start {
            None => nothing.clone(),
            Some(start) => {
                super::check_start(start, d).and_then(|()| orthonormal_complement(start.clone(), &nothing))?
            }
        };
        let fill = random_complement(&x, block.saturating_sub(x.p()), seed)?;
        x = beside(&x, &fill);
        let sizes = KrylovSizes { block, memory: sizes.memory.max(k + 2 * block).min(d) };
        let (basis, z) = (RitzBasis::empty(d), nothing);
        Ok(Self {
            k,
            sizes,
            seed,
            basis,
            x,
            z,
            vectors: Block::zeros(d, k),
            images: Block::zeros(d, k),
            step: 0,
        })
    }
}

impl Solver for Krylov {
    fn name(&self) -> &'static str {
        "krylov"
    }

    fn n_components(&self) -> usize {
        self.k
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        if self.x.p() == 0 {
            // The basis spans the whole space: only fresher images can help.
            self.basis.refresh(operator)?;
        } else {
            operator.apply(&self.x, &mut self.z)?; // 3
            self.basis.append(&self.x, &self.z, operator.image_rounding())?; // 4
        }
        (self.vectors, self.images) = self.basis.best(self.k);
        super::sort_descending(&mut self.vectors, &mut self.images);
        Ok(())
    }

    fn pairs(&self) -> Pairs<'_> {
        let next = match self.basis.theta.get(self.k) {
            Some(theta) => Next::Estimated(*theta),
            None if self.k == self.vectors.d() => Next::Nothing,
            None => Next::Unknown,
        };
        Pairs { vectors: &self.vectors, images: &self.images, image_error: self.basis.image_error(), next }
    }

    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.step += 1;
        let z = std::mem::replace(&mut self.z, Block::zeros(self.vectors.d(), 0));
        let mut x = orthonormal_complement(z, &self.basis.q)?; // 5
        if x.p() < self.sizes.block {
            let known = beside(&self.basis.q, &x);
            let fill = random_complement(&known, self.sizes.block - x.p(), self.seed ^ self.step)?;
            x = beside(&x, &fill);
        }
        self.x = x;
        // 6; X stays orthogonal to what is kept.
        if self.basis.len() + self.x.p() > self.sizes.memory && self.basis.len() < self.vectors.d() {
            let keep = (self.k + self.sizes.block).max(self.sizes.memory / 2).min(self.basis.len());
            self.basis.compress(keep);
        }
        Ok(())
    }

    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        1.0
    }
}
