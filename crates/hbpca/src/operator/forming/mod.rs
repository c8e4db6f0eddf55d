//! C itself, or AAᵀ itself where that is smaller.

mod column_modes;
pub(super) mod form;
mod nonzero_columns;
pub(super) mod row_spectrum;

pub(crate) use column_modes::ColumnModes;
