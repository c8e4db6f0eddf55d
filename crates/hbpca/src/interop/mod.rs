//! Matrices of other crates, as data and as results. Each crate is an optional feature of the same name.
//!
//! | feature | becomes [`Dense`](crate::Dense), [`Csr`](crate::Csr) or [`Matrix`](crate::Matrix) | borrowed, not copied | results |
//! |---|---|---|---|
//! | `ndarray` | `ArrayView2`, `&Array2` and all others of two axes | standard layout: rows one after another | `ArrayView2` |
//! | `faer` | `MatRef`, `&Mat` | row-major, row stride = number of columns | `MatRef` |
//! | `nalgebra` | `&DMatrix`, references to all other matrices and views | row-major views, single columns; with `columns_as_rows` every `DMatrix` | `DMatrixView` |
//! | `sprs` | `CsMatViewI`, `&CsMatI` | CSR: values always, columns of `u32`, row starts of `usize` | |
//!
//! All of it is `try_from`: values are checked as by [`Dense::new`](crate::Dense::new) and [`Csr::new`](crate::Csr::new), and
//! what is not borrowed is copied into rows, negative and zero strides included.
//! [`Model::components`](crate::Model::components) and [`Block`](crate::Block)s are borrowed in the other direction.
//!
//! Rows with gaps between them are copied: a view says nothing about what lies in its gaps, and someone else may be writing
//! there. Whoever has all of it as one slice borrows the rows with [`Dense::strided`](crate::Dense::strided).

#[cfg(feature = "faer")]
pub mod faer;
#[cfg(feature = "nalgebra")]
pub mod nalgebra;
#[cfg(feature = "ndarray")]
pub mod ndarray;
#[cfg(any(feature = "faer", feature = "nalgebra", feature = "ndarray", feature = "sprs"))]
#[allow(dead_code, reason = "every feature uses its own part")]
mod rows;
#[cfg(feature = "sprs")]
pub mod sprs;
