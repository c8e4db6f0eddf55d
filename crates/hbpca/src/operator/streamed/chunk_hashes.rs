//! Whether every pass reads the same rows: the hash of each chunk, as it was read first.

use std::hash::Hasher;
use std::ops::Range;

use twox_hash::XxHash3_64;

use crate::matrix::{chunk_changed, place_of_chunk};
use crate::{Archive, Error};

/// The hash of each chunk that a full pass has read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChunkHashes {
    known: Vec<Option<u64>>,
    /// Whether they come from a checkpoint: the data then changed since it was written.
    from_checkpoint: bool,
}

impl ChunkHashes {
    /// Those of a pass that was made before.
    pub(super) fn of_pass(hashes: Vec<u64>) -> Self {
        Self { known: hashes.into_iter().map(Some).collect(), from_checkpoint: false }
    }

    /// Remembers the hash of chunk i, or refuses another one than before.
    pub(super) fn compare(&mut self, i: usize, hash: u64, rows: Range<usize>) -> Result<(), Error> {
        if self.known.len() <= i {
            self.known.resize(i + 1, None);
        }
        match self.known[i].replace(hash) {
            Some(before) if before != hash => Err(if self.from_checkpoint {
                let place = place_of_chunk(i, rows);
                Error::Checkpoint(format!(
                    "{place} have changed since it was written: give the data it was made from, or begin anew"
                ))
            } else {
                Error::Source(chunk_changed(i, rows).into())
            }),
            _ => Ok(()),
        }
    }

    /// One hash of all.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = XxHash3_64::with_seed(0);
        self.known.iter().flatten().for_each(|hash| hasher.write_u64(*hash));
        hasher.finish()
    }

    /// Walks over the hashes, each as two halves that a number holds exactly.
    pub(super) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        let mut halves: Vec<f64> = Vec::new();
        if self.known.iter().all(Option::is_some) {
            halves.extend(
                self.known.iter().flatten().flat_map(|hash| [(hash >> 32) as f64, (hash & HALF) as f64]),
            );
        }
        archive.list("hashes", &mut halves)?;
        let sound = |x: &f64| *x >= 0.0 && *x <= HALF as f64 && x.fract() == 0.0;
        archive.check(
            "hashes",
            halves.len().is_multiple_of(2) && halves.iter().all(sound),
            "are no hashes",
        )?;
        if archive.is_restoring() {
            let (pairs, _) = halves.as_chunks::<2>();
            self.known = pairs.iter().map(|[high, low]| Some((*high as u64) << 32 | *low as u64)).collect();
            self.from_checkpoint = true;
        }
        Ok(())
    }
}

const HALF: u64 = 0xffff_ffff;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn another_hash_is_refused_with_its_rows() {
        let mut hashes = ChunkHashes::default();
        hashes.compare(1, 7, 10..20).unwrap();
        hashes.compare(0, u64::MAX, 0..10).unwrap();
        hashes.compare(1, 7, 10..20).unwrap();
        let said = hashes.clone().compare(1, 8, 10..20).unwrap_err().to_string();
        assert!(said.contains("rows 10 to 19 (counted from 0) have changed since the first pass"), "{said}");

        let state = State::of(|archive| hashes.archive(archive)).unwrap();
        let mut restored = ChunkHashes::default();
        state.restore(|archive| restored.archive(archive)).unwrap();
        assert_eq!(restored.known, hashes.known);
        let said = restored.compare(0, 3, 0..10).unwrap_err().to_string();
        assert!(said.contains("cannot be resumed") && said.contains("rows 0 to 9"), "{said}");
    }
}
