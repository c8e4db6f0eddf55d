//! Rows spread over many machines.
//!
//! Rank 0 leads: it runs the solver, solves the small problems and decides when to stop. The other ranks serve: each waits for a
//! [command](command::Command), does its part with its own rows, and waits for the next.
//!
//! ```text
//! a product     rank 0 broadcasts V  →  every rank sums over its rows  →  sums travel up a fixed tree to rank 0
//! a failure     travels up that tree with the sums  →  rank 0 names the rank  →  that rank broadcasts its message, and all end
//! ```
//!
//! A rank has one *shard* of the rows, or several. The tree depends on the number of shards alone: the same bits every time, and on any number of
//! ranks where the shards are the same. What is not a sum over rows is computed once, on rank 0, so that ranks with different processors cannot
//! disagree.

mod command;
mod communicator;
mod in_memory;
mod member;
pub(super) mod rows_sent;
mod shard;
mod sharded;
mod tree;

pub use communicator::{Communicator, SingleRank, ThreadRank, thread_ranks};
pub(crate) use in_memory::MatrixShard;
pub(crate) use member::{Holders, Member, hear};
pub(crate) use shard::{Shard, ShardStatistics};
pub(crate) use sharded::Sharded;
pub(crate) use tree::sum_over_ranks;
