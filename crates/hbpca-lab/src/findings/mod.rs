//! What the races say: the paper's tables, measured, and its claims, checked.

mod claims;
mod lead;
mod table;
mod tables;

pub use claims::{Case, Claim, Verdict, claims, claims_markdown};
pub use lead::{factor_text, passes, passes_text, speed_up};
pub use table::Table;
pub use tables::{table1, table2, table3};
