//! Missing values: NaN in the rows, and what becomes of them.
//!
//! ```text
//! error        the first one is named, and nothing is fitted
//! drop-rows    rows with a hole count for nothing, as if they were not there
//! mean         a hole holds the mean of what its column has: zero once centred
//! em           a hole holds what the components say of it, and these are the components of the matrix so completed
//! ```
//!
//! A certificate speaks of the *completed* matrix: the rows that are left, or all of them with their holes filled. n − 1 is that of a complete matrix.
//! Infinities are no missing values, and are refused.

mod complete;
mod filled_rows;
mod holes;
mod means;
mod policy;
mod report;
mod survey;

pub(crate) use complete::no_row_left;
pub use complete::{Completed, complete};
pub(crate) use filled_rows::{FilledRows, Scanned, ScannedChunks};
pub use holes::Holes;
pub(crate) use means::Filling;
pub use policy::{EmLimits, HolesInRows, Missing};
pub use report::{MissingReport, StationaryPoint};
pub use survey::RowSurvey;
pub(crate) use survey::Surveyed;
