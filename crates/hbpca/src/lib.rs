//! Certified principal components of large and sparse data in few passes.

pub mod theory;

mod block;
mod error;
mod kernels;
mod matrix;
mod operator;
mod ordered;

pub use block::Block;
pub use error::Error;
pub use matrix::{
    Centering, ColumnStatistics, Csr, Dense, Matrix, Preprocessing, Real, Replacement, RowMap, Sampler,
    Scaling,
};
pub use operator::{
    Communicator, Counted, Covariance, CovarianceOperator, Rows, RowsRead, Sharded, SingleRank, ThreadRank,
    thread_ranks,
};
