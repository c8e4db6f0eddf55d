//! Data that may not fit and cannot be read in pieces as it is: a copy in chunks, for as long as the command runs.

use hbpca_io::{ByteSize, ChunkFolder, Input, ReadOptions, TemporaryFolder, WriteOptions, convert};

use super::Source;
use crate::exit::Failure;
use crate::output::progress::Spinner;
use crate::output::say::{self, Verbosity};

/// A part of the copy takes at most this share of the memory while it is written.
const SHARE_OF_MEMORY: u64 = 16;
/// And no more than this.
const MOST_OF_A_PART: u64 = 32 << 20;

impl Source {
    /// Where the data may outgrow `memory` once it is decoded: the same data from a temporary chunk folder, which goes when it is dropped.
    pub fn copied_if_large(
        self,
        memory: u64,
        verbosity: Verbosity,
    ) -> Result<(Self, Option<TemporaryFolder>), Failure> {
        if !hbpca_io::may_outgrow(&self.input, &self.options, memory)? {
            return Ok((self, None));
        }
        let folder = TemporaryFolder::create()?;
        let chunks = folder.path().join("data.chunks");
        let Self { name, input, options, for_unnamed_model, bed } = self;
        let spinner = Spinner::new(verbosity, &format!("copying {name}"));
        let write_options = WriteOptions {
            part_bytes: (memory / SHARE_OF_MEMORY).clamp(1 << 16, MOST_OF_A_PART) as usize,
            ..WriteOptions::default()
        };
        let done = convert(input, &options, &chunks, &write_options)?;
        drop(spinner);
        if verbosity > Verbosity::Quiet {
            done.notes.iter().for_each(|note| say::warning(note));
            say::line(&format!(
                "{name}: it may not fit into {} of memory and is read from a temporary copy, {} in {}, which is removed at the end; TMPDIR \
                 names another place",
                ByteSize(memory),
                ByteSize(hbpca::RowChunks::bytes(&ChunkFolder::open(&chunks)?)),
                folder.path().display(),
            ));
        }
        let source = Self {
            name,
            input: Input::path(chunks),
            options: ReadOptions::default(),
            for_unnamed_model,
            bed,
        };
        Ok((source, Some(folder)))
    }
}
