//! What is known of the columns: [`ColumnStatistics`] gathered in one stable pass, and the implicit map x ↦ D⁻¹(x − μ) that a
//! [`Preprocessing`] makes of them.

mod entries;
mod gathering;
mod genotypes;
mod preprocessing;
mod statistics;

pub(crate) use entries::weight_and_moment;
pub(crate) use gathering::GatheredStatistics;
pub use preprocessing::{Centering, Preprocessing, RowMap, Scaling};
pub use statistics::ColumnStatistics;
pub(crate) use statistics::{all_weights_zero, check_each_weight, check_weights, heaviest};
