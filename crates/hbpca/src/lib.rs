//! Certified principal components of large and sparse data in few passes.

pub mod theory;

mod block;
mod certificate;
mod driver;
mod error;
mod fit;
mod kernels;
mod linalg;
mod matrix;
mod model;
mod observe;
mod operator;
mod ordered;
mod policy;
mod solver;

pub use block::Block;
pub use certificate::{Certificate, Next, check};
pub use driver::{Driver, Limits, Outcome, Report};
pub use error::Error;
pub use fit::{Fit, FitConfig, MomentumChoice, SolverKind};
pub use matrix::{
    Centering, ColumnStatistics, Csr, Dense, Matrix, Preprocessing, Real, Replacement, RowMap, Sampler,
    Scaling,
};
pub use model::{Model, Summary, Whitening};
pub use observe::{CancelToken, Event, Observer, Record};
pub use operator::{
    Communicator, Counted, Covariance, CovarianceOperator, Rows, RowsRead, Sharded, SingleRank, ThreadRank,
    thread_ranks,
};
pub use policy::{AdaptiveMomentum, Batch, FixedMomentum, Momentum, OracleMomentum, SecondEigenvalue, Start};
pub use solver::{
    Anchored, AnchoredSizes, CovarianceSolver, Epoch, Krylov, KrylovSizes, Oja, Pairs, Power, PowerM, Solver,
    StepParameters, VrHbPower, VrPca, VrPowerM,
};
