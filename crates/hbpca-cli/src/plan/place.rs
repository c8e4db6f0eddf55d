//! Whether data is loaded or left on disk.

use hbpca::{FitConfig, RowChunks, StreamPlan};
use hbpca_io::{ByteSize, OnDisk, Storage, machine_memory};

use super::Source;
use crate::exit::Failure;

/// Where the rows are while they are fitted.
pub enum Place {
    /// In memory, once they are read.
    Memory,
    /// On disk, read in every pass.
    Disk(Streamed),
}

/// Rows that stay on disk, and what fitting them will cost.
pub struct Streamed {
    /// The rows, cut as planned.
    pub rows: Box<dyn OnDisk>,
    /// The plan.
    pub plan: StreamPlan,
    /// The budget.
    pub memory: u64,
}

/// Half of what there is; the rest is for the page cache, which makes reading fast, and for others.
const DEFAULT_SHARE: u64 = 2;
/// Dense data passes through buffers while it is loaded.
const LOADING_DENSE: f64 = 1.25;
/// Compressed rows are decoded into a second copy, array by array.
const LOADING_SPARSE: f64 = 2.0;

impl Place {
    /// Decides by what the data needs and what it may take.
    pub fn decide(source: &Source, config: &FitConfig, asked: Option<ByteSize>) -> Result<Self, Failure> {
        let Some(memory) = asked.map(|size| size.0).or_else(|| machine_memory().map(|x| x / DEFAULT_SHARE))
        else {
            return Ok(Self::Memory); // nothing is known of this machine
        };
        match source.storage()? {
            Storage::Pieces(rows) => {
                let factor = if rows.is_sparse() { LOADING_SPARSE } else { LOADING_DENSE };
                let loaded = (rows.memory() as f64 * factor) as u64;
                if loaded <= memory {
                    return Ok(Self::Memory);
                }
                Streamed::plan(rows, config, memory, &source.name).map(Self::Disk)
            }
            Storage::Whole { least_memory: Some(least), reason } if least > memory => {
                Err(Failure::Usage(format!(
                    "{}: its {} do not fit into {} of memory, and it cannot be read in pieces because {reason}: convert it once \
                     with hbpca convert {} OUT.npy and fit that, or raise --memory",
                    source.name,
                    ByteSize(least),
                    ByteSize(memory),
                    source.name
                )))
            }
            Storage::Whole { .. } => Ok(Self::Memory),
        }
    }
}

impl Streamed {
    fn plan(mut rows: Box<dyn OnDisk>, config: &FitConfig, memory: u64, name: &str) -> Result<Self, Failure> {
        let refused = |error: hbpca::Error| Failure::refused(&error, name);
        let plan = config.plan_streamed(&rows, memory).map_err(refused)?;
        rows.cut(plan.chunk_bytes)?;
        Ok(Self { rows, plan, memory })
    }

    /// The choice in words, before the work starts.
    pub fn announcement(&self, name: &str) -> String {
        let Self { rows, plan, memory } = self;
        let pool = if plan.pool_rows > 0 {
            format!(", {} rows at hand for mini-batches", crate::output::number::count(plan.pool_rows))
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
            crate::output::number::plural(plan.passes, "pass", "passes"),
            ByteSize(plan.bytes),
            ByteSize(rows.chunk_memory()),
            ByteSize(plan.memory),
        )
    }
}
