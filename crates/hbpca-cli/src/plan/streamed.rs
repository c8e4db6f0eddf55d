//! Rows that stay on disk, and what fitting them will cost.

use hbpca::plan::StreamPlan;
use hbpca::{FitConfig, RowChunks};
use hbpca_io::{ByteSize, OnDisk};

use super::Weights;
use crate::exit::Failure;
use crate::output::number;

/// A fit of rows on disk that is about to begin.
pub struct Streamed {
    /// The rows, cut as planned.
    pub rows: Box<dyn OnDisk>,
    /// Their weights.
    pub weights: Option<Vec<f64>>,
    /// The plan.
    pub plan: StreamPlan,
    /// The budget.
    pub memory: u64,
}

impl Streamed {
    /// Reads the weights where there are such, plans, and cuts the rows accordingly.
    pub fn plan(
        mut rows: Box<dyn OnDisk>,
        weights: &Weights,
        config: &FitConfig,
        memory: u64,
        name: &str,
    ) -> Result<Self, Failure> {
        let refused = |error: hbpca::Error| Failure::refused(&error, name);
        let weights = weights.of_disk(&mut *rows, name)?;
        let beside = config.bytes_of_weights(rows.n_rows(), weights.as_deref());
        let plan = config.plan_streamed_beside(&mut rows, memory, beside).map_err(refused)?;
        Ok(Self { rows, weights, plan, memory })
    }

    /// The choice in words, before the work starts.
    pub fn announcement(&self, name: &str) -> String {
        let Self { rows, plan, memory, .. } = self;
        let pool = if plan.pool_rows > 0 {
            format!(", {} rows in memory for mini-batches", number::count(plan.pool_rows))
        } else {
            String::new()
        };
        format!(
            "{name}: {} do not fit into {} of memory and are read from disk in every pass: {} ({}); about {}, {} to read, in \
             chunks of {}{pool}, in at most {} of memory",
            ByteSize(rows.memory()),
            ByteSize(*memory),
            plan.solver,
            plan.chosen_because,
            number::plural(plan.passes, "pass", "passes"),
            ByteSize(plan.bytes),
            ByteSize(rows.chunk_memory()),
            ByteSize(plan.memory),
        )
    }
}
