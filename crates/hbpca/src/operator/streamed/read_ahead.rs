//! Reading and computing at the same time.
//!
//! A thread of its own reads ahead into recycled memory. Three chunks are in flight at most: one being read, one ready,
//! one being computed on. They are handed over in order, so that nothing depends on timing.

use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::thread;

use super::chunk_hashes::ChunkHashes;
use crate::matrix::{Matrix, RowChunks, hash_of_bits};
use crate::{CancelToken, Error};

/// Chunks in flight at most.
pub(crate) const IN_FLIGHT: usize = 3;

/// What to read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chunks<'a> {
    /// Every chunk in order: a full pass.
    AllChunks,
    /// These ranges of rows, one after the other.
    Ranges(&'a [Range<usize>]),
}

/// A source of rows, read ahead, and what was read from it.
pub(super) struct Reader<'s> {
    pub(super) source: Box<dyn RowChunks + 's>,
    /// Memory of chunks read before.
    spare: Vec<Matrix<'static>>,
    pub(super) bytes_read: u64,
    pub(super) cancel: CancelToken,
    /// Of the chunks of full passes.
    pub(super) hashes: ChunkHashes,
    /// Rows of weight zero are handed over as zeros: what they hold must not spoil a sum.
    pub(super) weights: Option<Arc<[f64]>>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: Box<dyn RowChunks + 's>) -> Self {
        let hashes = ChunkHashes::default();
        Self {
            source,
            spare: Vec::new(),
            bytes_read: 0,
            cancel: CancelToken::default(),
            hashes,
            weights: None,
        }
    }

    /// Frees the memory of chunks read before.
    pub(super) fn forget_spare(&mut self) {
        self.spare = Vec::new();
    }

    /// Calls `each(first_row, rows)` for every chunk in order, while the next ones are being read. Chunks of a full pass must be those of the passes
    /// before.
    pub(super) fn for_each(
        &mut self,
        what: Chunks<'_>,
        mut each: impl FnMut(usize, &Matrix<'static>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let n_chunks = match what {
            Chunks::AllChunks => self.source.starts().len() - 1,
            Chunks::Ranges(ranges) => ranges.len(),
        };
        let (source, cancel, hashes) = (&mut self.source, &self.cancel, &mut self.hashes);
        let weights = self.weights.as_deref();
        let bytes_per_entry = source.bytes() as f64 / source.nnz().max(1) as f64;
        // Room for one: with the chunk being read and the one being computed on, three.
        let (hand_over, ready) = mpsc::sync_channel(IN_FLIGHT - 2);
        let (give_back, returned) = mpsc::channel();
        self.spare.drain(..).for_each(|rows| drop(give_back.send(rows)));
        let mut entries = 0;
        let result = thread::scope(|scope| {
            let reading = scope.spawn(move || {
                for i in 0..n_chunks {
                    if cancel.breaks_off() {
                        break;
                    }
                    let chunk = match what {
                        Chunks::AllChunks => {
                            let first = source.starts()[i];
                            let chunk = source.read_chunk(i, returned.try_recv().ok());
                            chunk.map(|rows| (first, Some((i, hash_of_bits(&rows))), rows))
                        }
                        Chunks::Ranges(ranges) => {
                            source.read_rows(ranges[i].clone()).map(|rows| (ranges[i].start, None, rows))
                        }
                    };
                    let chunk = chunk.map(|(first, hash, mut rows)| {
                        if let Some(weights) = weights {
                            rows.clear_rows_without_weight(&weights[first..first + rows.n_rows()]);
                        }
                        (first, hash, rows)
                    });
                    let failed = chunk.is_err();
                    // Nobody listens any more once the other side failed.
                    if hand_over.send(chunk).is_err() || failed {
                        break;
                    }
                }
                returned
            });
            let result = (|| {
                for _ in 0..n_chunks {
                    let Ok(chunk) = ready.recv() else {
                        return Err(cancel.go_on().err().unwrap_or(Error::Abandoned));
                    };
                    let (first, hash, rows): (usize, Option<(usize, u64)>, Matrix<'static>) = chunk?;
                    cancel.go_on()?;
                    if let Some((i, hash)) = hash {
                        hashes.compare(i, hash, first..first + rows.n_rows())?;
                    }
                    entries += rows.nnz();
                    each(first, &rows)?;
                    drop(give_back.send(rows));
                }
                Ok(())
            })();
            drop(ready);
            drop(give_back);
            let returned = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if matches!(what, Chunks::AllChunks) {
                self.spare.extend(returned.try_iter());
            }
            result
        });
        self.bytes_read += (entries as f64 * bytes_per_entry) as u64;
        result
    }
}
