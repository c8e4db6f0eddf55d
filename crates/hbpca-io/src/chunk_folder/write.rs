//! Rows into parts.

use std::fs::File;
use std::io::{self, Write};

use hbpca::{ColumnStatistics, Matrix};

use super::labels::LabelWriter;
use super::manifest::{Content, Dtype, MANIFEST, Manifest, Part, STATISTICS, part_name};
use super::output_folder::OutputFolder;
use super::part::Rows;
use crate::WriteError;
use crate::block::Labels;
use crate::npy::Header;
use crate::sink::{RowSink, Summary, WriteOptions};

/// Writes a chunk folder; what waits in memory is one part and the bytes of its file.
pub(crate) struct ChunkSink {
    folder: OutputFolder,
    manifest: Manifest,
    part_bytes: usize,
    rows: Rows,
    statistics: Option<ColumnStatistics>,
    labels: LabelWriter,
}

impl ChunkSink {
    pub(crate) fn new(
        folder: OutputFolder,
        summary: &Summary,
        options: &WriteOptions,
    ) -> Result<Self, WriteError> {
        let Summary { n_rows, n_columns, sparse, single, text_labels, .. } = *summary;
        let mut manifest = Manifest::new(n_columns, sparse, if single { Dtype::F32 } else { Dtype::F64 });
        manifest.column_names.clone_from(&options.column_names);
        manifest.shuffle_seed = options.shuffle;
        let labels = LabelWriter::new(folder.place(), n_rows, text_labels)
            .map_err(|source| WriteError::io(folder.name(), source))?;
        let rows = Rows::new(n_columns, sparse, single);
        Ok(Self { folder, manifest, part_bytes: options.part_bytes, rows, statistics: None, labels })
    }

    fn refused(&self, source: io::Error) -> WriteError {
        WriteError::io(self.folder.name(), source)
    }

    /// Writes a file of the folder and says what it holds.
    fn store(&self, file: &str, bytes: &[u8]) -> Result<Content, WriteError> {
        let stored = File::create(self.folder.place().join(file)).and_then(|mut out| {
            out.write_all(bytes)?;
            out.sync_all()
        });
        stored.map_err(|source| self.refused(source))?;
        Ok(Content::of(bytes))
    }

    /// Writes the rows that wait.
    fn end_part(&mut self) -> Result<(), WriteError> {
        if self.rows.len() == 0 {
            return Ok(());
        }
        let unsuitable = |error: hbpca::Error| WriteError::unsuitable(self.folder.name(), error.to_string());
        let matrix = self.rows.matrix().map_err(unsuitable)?;
        let statistics = ColumnStatistics::new(&matrix).map_err(unsuitable)?;
        let (n, entries) = (matrix.n_rows() as u64, matrix.nnz() as u64);
        for l in 0..matrix.n_rows() {
            matrix.for_each_in_row(l, |_, value| self.manifest.nonzeros += u64::from(value != 0.0));
        }
        match &mut self.statistics {
            Some(all) => all.merge(&statistics),
            None => self.statistics = Some(statistics),
        }
        let bytes = self.rows.file().map_err(|error| self.refused(io::Error::other(error)))?;
        self.rows.clear();
        let file = part_name(self.manifest.parts.len(), self.manifest.sparse);
        let content = self.store(&file, &bytes)?;
        self.manifest.rows += n;
        self.manifest.entries += entries;
        self.manifest.parts.push(Part { file, rows: n, entries, content });
        Ok(())
    }
}

impl RowSink for ChunkSink {
    fn write_rows(&mut self, rows: &Matrix<'_>, labels: Option<&Labels>) -> Result<(), WriteError> {
        if let Some(labels) = labels {
            self.labels.add(labels).map_err(|source| WriteError::io(self.folder.name(), source))?;
        }
        for l in 0..rows.n_rows() {
            self.rows.push(rows, l);
            if self.rows.bytes() >= self.part_bytes {
                self.end_part()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        self.end_part()?;
        let Some(statistics) = self.statistics.take() else {
            return Err(WriteError::unsuitable(self.folder.name(), "there are no rows"));
        };
        let variance = statistics.variance();
        let columns = [statistics.mean(), &variance, statistics.min(), statistics.max()];
        let mut bytes = Header::bytes("<f8", &[4, variance.len()]);
        bytes.extend(columns.concat().iter().flat_map(|x| x.to_le_bytes()));
        self.manifest.statistics = self.store(STATISTICS, &bytes)?;
        let Self { folder, mut manifest, labels, .. } = *self;
        let refused = |source| WriteError::io(folder.name(), source);
        manifest.labels = labels.finish(folder.place()).map_err(refused)?;
        let json = manifest.to_json().map_err(io::Error::from).map_err(refused)?;
        // The manifest comes last: a folder without one is no chunk folder.
        let written = File::create(folder.place().join(MANIFEST)).and_then(|mut out| {
            out.write_all(&json)?;
            out.sync_all()
        });
        written.map_err(refused)?;
        folder.commit()
    }
}
