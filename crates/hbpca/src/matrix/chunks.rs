//! Rows that lie elsewhere and are read chunk by chunk.

use std::ops::Range;

use super::Matrix;
use crate::Error;

/// A matrix on disk (or anywhere else) that can be read in chunks, any number of times.
///
/// Chunks are runs of rows that follow each other, cut where the storage likes to be read: reading all of them in order is
/// one pass at the speed of the device.
pub trait RowChunks: Send {
    /// n, the number of observations.
    fn n_rows(&self) -> usize;

    /// d, the number of features.
    fn n_cols(&self) -> usize;

    /// Entries stored: n·d for dense rows, explicit entries for compressed ones.
    fn nnz(&self) -> usize;

    /// Whether rows are compressed.
    fn is_sparse(&self) -> bool;

    /// Bytes of one pass.
    fn bytes(&self) -> u64;

    /// Cuts chunks of at most `bytes` bytes of memory, but of at least one row. Storage whose chunks are fixed leaves them.
    fn cut(&mut self, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Chunk i holds rows `starts[i]..starts[i + 1]`; the first number is 0, the last is n.
    fn starts(&self) -> &[usize];

    /// The rows of chunk i, checked in every way the storage allows. `recycled` is a chunk read before, whose memory may be
    /// used again.
    fn read_chunk(&mut self, i: usize, recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error>;

    /// A number that differs, in all likelihood, after the storage was written to: modification times. Nothing where there are none; whoever needs
    /// to know then reads the rows.
    fn version(&self) -> Option<u64> {
        None
    }

    /// Some rows that follow each other, within a chunk or across several: for samples and mini-batches.
    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error>;
}

/// What stands for rows by pointing to them hands out the same ones.
macro_rules! rows_pointed_to {
    ($pointer:ty) => {
        impl<R: RowChunks + ?Sized> RowChunks for $pointer {
            fn n_rows(&self) -> usize {
                (**self).n_rows()
            }
            fn n_cols(&self) -> usize {
                (**self).n_cols()
            }
            fn nnz(&self) -> usize {
                (**self).nnz()
            }
            fn is_sparse(&self) -> bool {
                (**self).is_sparse()
            }
            fn bytes(&self) -> u64 {
                (**self).bytes()
            }
            fn cut(&mut self, bytes: u64) -> Result<(), Error> {
                (**self).cut(bytes)
            }
            fn starts(&self) -> &[usize] {
                (**self).starts()
            }
            fn read_chunk(
                &mut self,
                i: usize,
                recycled: Option<Matrix<'static>>,
            ) -> Result<Matrix<'static>, Error> {
                (**self).read_chunk(i, recycled)
            }
            fn version(&self) -> Option<u64> {
                (**self).version()
            }
            fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
                (**self).read_rows(rows)
            }
        }
    };
}

rows_pointed_to!(Box<R>);
rows_pointed_to!(&mut R);

/// What is said of a chunk that a later pass finds changed.
pub(crate) fn chunk_changed(i: usize, rows: Range<usize>) -> String {
    let place = place_of_chunk(i, rows);
    format!("{place} have changed since the first pass read them; run again when nobody writes to the data")
}

/// Chunk i and its rows.
pub(crate) fn place_of_chunk(i: usize, rows: Range<usize>) -> String {
    format!("chunk {i}: rows {} to {} (counted from 0)", rows.start, rows.end - 1)
}
