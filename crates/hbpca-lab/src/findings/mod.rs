//! What the races say: the paper's tables, measured, and its claims, checked.

mod claim;
mod claims;
mod lead;
mod table;
mod tables;

pub use claim::{Case, Claim, Finding, Verdict, claims_markdown};
pub use claims::claims;
pub use lead::{factor_text, passes, passes_text, speed_up};
pub use table::Table;
pub use tables::{table1, table2, table3};
