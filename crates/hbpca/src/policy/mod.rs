//! Choices a solver leaves open, each a small type: momentum, batch, start, step size.

mod batch;
mod momentum;
mod start;
mod step_size;

pub use batch::Batch;
pub use momentum::{AdaptiveMomentum, FixedMomentum, Momentum, OracleMomentum, SecondEigenvalue};
pub use start::Start;
pub(crate) use step_size::{Suggestion, most_rows_read, sample_rows, suggest_step_size};
