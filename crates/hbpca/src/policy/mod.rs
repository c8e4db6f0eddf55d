//! Choices a solver leaves open, each a small type: momentum, batch, start.

mod batch;
mod dynamic_momentum;
mod momentum;
mod start;

pub use batch::Batch;
pub use dynamic_momentum::DynamicMomentum;
pub use momentum::{AdaptiveMomentum, FixedMomentum, Momentum, OracleMomentum, SecondEigenvalue};
pub use start::Start;
