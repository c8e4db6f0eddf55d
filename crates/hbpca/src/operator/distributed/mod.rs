//! Rows spread over many machines.

mod communicator;
mod sharded;

pub use communicator::{Communicator, SingleRank, ThreadRank, thread_ranks};
pub use sharded::Sharded;
