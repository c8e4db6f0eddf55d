//! The covariance operator C = (1/n)Σaₗaₗᵀ: applied, never formed unless asked for.
//!
//! One primitive carries everything: the sum Σ aₗ(aₗᵀV) over all rows or over a batch. [`Covariance`] computes it
//! from a matrix in memory, [`Streamed`] from rows on disk; [`Counted`] counts the rows read. Many machines add up their sums
//! through a [`Communicator`]. Solvers multiply through [`Products`], whose methods follow from the primitive.
//!
//! | folder | what is computed |
//! |---|---|
//! | `products/` | Σ aₗ(aₗᵀV), and products with AAᵀ |
//! | `forming/` | C itself, and AAᵀ itself |
//! | `streamed/` | the same for rows that are read anew for every product |
//! | `distributed/` | sums over ranks |
//! | `partitioned/` | sums over partitions that a cluster's scheduler owns |

mod capabilities;
mod counted;
mod distributed;
mod forming;
mod genotypes;
mod in_memory;
mod partitioned;
mod products;
mod projected;
mod row_sample;
mod streamed;

pub use capabilities::{
    Capabilities, ExplicitCovariance, ExplicitRowGram, FirstPass, OperatorState, RowGram, RowSpectrum,
};
pub use counted::{Counted, RowsRead};
pub use distributed::{Communicator, SingleRank, ThreadRank, thread_ranks};
pub(crate) use distributed::{Holders, MatrixShard, Member, Shard, Sharded, hear, sum_over_ranks};
pub(crate) use forming::ColumnModes;
pub(crate) use genotypes::{GenotypeCovariance, PackedRows};
pub use in_memory::Covariance;
pub(crate) use partitioned::Partitioned;
pub use partitioned::{Partitions, answer, combine};
pub use products::Products;
pub(crate) use projected::{Projected, project_out};
pub(crate) use row_sample::RowSample;
pub(crate) use streamed::IN_FLIGHT;
pub use streamed::Streamed;

use serde::{Deserialize, Serialize};

pub use crate::rounding::RoundingBound;
use crate::{Block, Error};

/// n rows and d columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Observations.
    pub n: usize,
    /// Features.
    pub d: usize,
}

/// Which rows a sum runs over.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// Every row: a full pass.
    All,
    /// Rows by number, ascending; a row listed twice counts twice.
    Batch(&'a [usize]),
}

impl Rows<'_> {
    /// How many rows are read out of n.
    pub fn count(&self, n: usize) -> usize {
        match self {
            Self::All => n,
            Self::Batch(rows) => rows.len(),
        }
    }
}

/// The numbers that rows are multiplied in. Sums over many rows are f64 either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// f32, where the operator [has such products](Capabilities::single_precision); else f64.
    Single,
    /// f64.
    Double,
}

/// The precisions that a fit may use for f32 rows. f64 rows are multiplied in f64 whatever is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PrecisionChoice {
    /// Single precision while that is exact enough, double for the last passes.
    #[default]
    Auto,
    /// Single precision for every full pass: the certificate counts its rounding, of which the bound is about 1e-5 of the total
    /// variance.
    Single,
    /// Double precision throughout.
    Double,
}

impl PrecisionChoice {
    /// What is really used where `asked` is asked for.
    fn resolve(self, asked: Precision) -> Precision {
        match self {
            Self::Auto => asked,
            Self::Single => Precision::Single,
            Self::Double => Precision::Double,
        }
    }
}

/// One product Σ aₗ(aₗᵀV).
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// The rows that are summed over.
    pub rows: Rows<'a>,
    /// The numbers that they are multiplied in, as a wish.
    pub precision: Precision,
    /// V, d×p.
    pub v: &'a Block,
}

/// A covariance matrix known through its products with blocks of vectors.
///
/// Three methods are needed. A solver that works on this trait works on any storage:
///
/// ```
/// use hbpca::operator::{CovarianceOperator, Product, RoundingBound, Shape};
/// use hbpca::{Block, Error, FitConfig, Outcome};
///
/// /// C = diag(9, 4, 1), as if of 100 rows.
/// struct Diagonal;
///
/// impl CovarianceOperator for Diagonal {
///     fn shape(&self) -> Shape {
///         Shape { n: 100, d: 3 }
///     }
///     fn total_variance(&self) -> f64 {
///         14.0
///     }
///     fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
///         out.copy_from(product.v);
///         let n = product.rows.count(100) as f64;
///         out.values_mut().iter_mut().enumerate().for_each(|(i, x)| *x *= n * [9.0, 4.0, 1.0][i / product.v.p()]);
///         Ok(RoundingBound::new(2.0 * f64::EPSILON * 9.0))
///     }
/// }
///
/// let fit = FitConfig { k: 2, ..FitConfig::default() }.fit_operator(&mut Diagonal)?;
/// assert_eq!(fit.outcome, Outcome::Converged);
/// assert!((fit.model.eigenvalues()[1] - 4.0).abs() < 1e-9);
/// # Ok::<(), hbpca::Error>(())
/// ```
pub trait CovarianceOperator {
    /// n and d.
    fn shape(&self) -> Shape;

    /// Trace of C, the sum of all its eigenvalues.
    fn total_variance(&self) -> f64;

    /// `out` ← Σ aₗ(aₗᵀV) over some rows, reading each of them once. `out` takes the shape of V. Returns how far the mean over
    /// these rows, the image of V, is off by rounding.
    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error>;

    /// What it can do beyond products. A wrapper that changes nothing of this hands on the operator's own.
    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        None
    }
}

impl<O: CovarianceOperator + ?Sized> CovarianceOperator for &mut O {
    fn shape(&self) -> Shape {
        (**self).shape()
    }
    fn total_variance(&self) -> f64 {
        (**self).total_variance()
    }
    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        (**self).sum_rows(product, out)
    }
    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        (**self).capabilities()
    }
}

/// Gives `block` the shape d×p, keeping its memory when it fits.
fn reshape(block: &mut Block, d: usize, p: usize) {
    if (block.d(), block.p()) != (d, p) {
        *block = Block::zeros(d, p);
    }
}
