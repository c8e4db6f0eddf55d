//! Certified principal components of large and sparse data in few passes.
//!
//! The data flows through the modules in this order: a [`Matrix`] of rows, a [`operator`] that multiplies by
//! C = (1/n)Σaaᵀ without forming it, a [`solver`] that iterates, a [`Driver`] that runs it, a [`Certificate`] that says what
//! is known, and a [`Model`]. [`FitConfig`] is the front door to all of it.
//!
//! ```
//! use hbpca::{Dense, FitConfig, Matrix, Outcome, Whitening};
//!
//! // Four observations of two features.
//! let x: Matrix = Dense::new(vec![2.0, 1.0, -2.0, -1.0, 0.1, -0.2, -0.1, 0.2], 4, 2)?.into();
//! let fit = FitConfig { k: 1, ..FitConfig::default() }.fit(&x)?;
//!
//! assert_eq!(fit.outcome, Outcome::Converged);
//! assert!(fit.certificate.residuals[0] <= 1e-6 * fit.model.eigenvalues()[0]);
//! let scores = fit.model.transform(&x, Whitening::Off)?;
//! assert_eq!(scores.len(), 4);
//! # Ok::<(), hbpca::Error>(())
//! ```
//!
//! Matrices of `ndarray`, `faer`, `nalgebra` and `sprs` are taken and given by the optional features of these names: [`interop`].
//!
//! The paper behind it is *Stochastic Variance-Reduced Heavy Ball Power Iteration* by Kim & Klabjan; [`theory`] is its analysis,
//! and each solver's documentation is its algorithm box.

mod block;
mod cancel;
pub mod certificate;
pub mod checkpoint;
mod choose;
mod columns;
mod config;
mod driver;
mod error;
pub mod interop;
mod kernels;
mod limits;
mod linalg;
mod matrix;
pub mod missing;
pub mod model;
mod moments;
mod observe;
pub mod operator;
mod ordered;
mod policy;
pub mod probe;
mod rounding;
mod run;
pub mod solver;
mod state;
mod stopwatch;
pub mod theory;
pub mod verify;

pub use block::Block;
pub use cancel::CancelToken;
pub use certificate::Certificate;
pub use columns::{Centering, ColumnStatistics, Preprocessing, RowMap, Scaling};
pub use config::{FitConfig, MomentumChoice, Tuning};
pub use driver::{Driver, Report};
pub use error::Error;
pub use limits::{Accuracy, Limits};
pub use matrix::{CountTransform, Csr, Dense, Matrix, Real, Replacement, RowChunks, Sampler};
pub use missing::RowSurvey;
pub use model::{Model, Summary, Whitening};
pub use moments::Moments;
pub use observe::{Event, Observer, Outcome, Record};
pub use operator::PrecisionChoice;
pub use policy::Batch;
pub use run::{CompletedFit, Fit, RankRows, Run};
pub use solver::SolverKind;

use state::{Archive, State};

/// Genotypes, packed in two bits each.
pub mod genotypes {
    pub use crate::matrix::{Counts, Genotypes, MissingGenotypes, SharedBytes, VariantPlace, VariantSource};
}

/// What a fit will take, before it begins: rows on disk within a memory, rows on ranks over a network.
pub mod plan {
    pub use crate::choose::{Forecast, Network, StreamPlan};
    pub use crate::run::most_threads;
}

/// The examples of the README are tested too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
