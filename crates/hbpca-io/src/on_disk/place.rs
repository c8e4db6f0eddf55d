//! Whether data is read into memory or left on disk.

use std::sync::Arc;

use hbpca::RowChunks;

use super::{OnDisk, Storage, on_disk};
use crate::input::Part;
use crate::{ByteSize, Format, Input, ReadError, ReadOptions, machine_memory};

/// Where the rows are while they are worked on.
pub enum Place {
    /// In memory, once they are read.
    Memory,
    /// On disk, read in every pass.
    Disk {
        /// The rows.
        rows: Box<dyn OnDisk>,
        /// Bytes of memory that may be taken.
        memory: u64,
    },
}

/// Half of what there is; the rest is for the page cache, which makes reading fast, and for others.
const DEFAULT_SHARE: u64 = 2;
/// What compressed numbers grow by, where little more than chance decides.
const COMPRESSED: u64 = 100;
/// Dense data passes through buffers while it is read.
const READING_DENSE: f64 = 1.25;
/// Compressed rows are decoded into a second copy, array by array.
const READING_SPARSE: f64 = 2.0;

/// Bytes that rows take while they are read, of those that they take when this is done.
pub(super) fn bytes_while_reading(bytes: u64, sparse: bool) -> u64 {
    (bytes as f64 * if sparse { READING_SPARSE } else { READING_DENSE }) as u64
}

/// Whether data that is read as a whole may take more than `memory` bytes when it is decoded, and can be written in chunks row by row: numbers grow up to
/// eightfold, and what is compressed by far more.
pub fn may_outgrow(input: &Input, options: &ReadOptions, memory: u64) -> Result<bool, ReadError> {
    let Storage::Whole { least_memory: Some(bytes), .. } = on_disk(input, options)? else { return Ok(false) };
    let mut growth = 0;
    for path in input.files()?.unwrap_or_default().into_iter().filter(|path| path.is_file()) {
        let opened = Part::Path(path).open(options, &Arc::default())?;
        growth = growth.max(
            match opened.format {
                // A digit and a comma become a number of eight bytes; pixels of one byte, numbers of four.
                Format::Csv | Format::Tsv | Format::Libsvm | Format::Idx => 4,
                Format::Npy => 8,
                Format::Parquet => COMPRESSED,
                _ => return Ok(false),
            } * if opened.plain.is_some() { 1 } else { COMPRESSED },
        );
    }
    Ok(bytes.saturating_mul(growth) > memory)
}

/// Decides by what the data and the work `beside` it need and what they may take: `memory`, or half of what the machine or its
/// control group has. Data that neither fits nor can be read in chunks is refused.
pub fn place(
    input: &Input,
    options: &ReadOptions,
    memory: Option<ByteSize>,
    beside: impl Fn(&dyn RowChunks) -> u64,
) -> Result<Place, ReadError> {
    let Some(ByteSize(memory)) = memory.or_else(|| machine_memory().map(|all| ByteSize(all / DEFAULT_SHARE)))
    else {
        return Ok(Place::Memory); // nothing is known of this machine
    };
    match on_disk(input, options)? {
        Storage::OnDisk(mut rows) => {
            let fits = |rows: &dyn OnDisk| {
                let reading = bytes_while_reading(rows.memory(), rows.is_sparse());
                reading.max(rows.memory().saturating_add(beside(rows))) <= memory
            };
            if !fits(&*rows) {
                rows.count_entries()?;
            }
            Ok(if fits(&*rows) { Place::Memory } else { Place::Disk { rows, memory } })
        }
        Storage::Whole { least_memory: Some(least), reason } if least > memory => {
            let message = format!(
                "its {} do not fit into {} of memory, and it cannot be read in pieces because {reason}: convert it once with \
                 hbpca convert to a chunk folder (a name ending in .chunks) and use that, or allow more memory",
                ByteSize(least),
                ByteSize(memory),
            );
            Err(ReadError::Memory { file: input.name(), message })
        }
        Storage::Whole { .. } => Ok(Place::Memory),
    }
}
