//! The labels of a chunk folder: written while rows pass by, read as a whole.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::manifest::{Content, LabelFile, LabelKind};
use crate::ReadError;
use crate::block::Labels;
use crate::npy::Header;

/// A file of labels being written, whose checksum is formed on the way.
pub(super) struct LabelWriter {
    kind: LabelKind,
    out: BufWriter<File>,
    checksum: crc32fast::Hasher,
    bytes: u64,
    n_rows: usize,
    n_labels: usize,
}

impl LabelWriter {
    pub(super) fn new(folder: &Path, n_rows: usize, texts: bool) -> io::Result<Self> {
        let kind = if texts { LabelKind::Texts } else { LabelKind::Numbers };
        let out = BufWriter::new(File::create(folder.join(kind.file()))?);
        let mut this = Self { kind, out, checksum: crc32fast::Hasher::new(), bytes: 0, n_rows, n_labels: 0 };
        if kind == LabelKind::Numbers {
            this.write(&Header::bytes("<f8", &[n_rows]))?;
        }
        Ok(this)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    pub(super) fn add(&mut self, labels: &Labels) -> io::Result<()> {
        self.n_labels += labels.len();
        match (labels, self.kind) {
            (Labels::Numbers(numbers), LabelKind::Numbers) => {
                numbers.iter().try_for_each(|x| self.write(&x.to_le_bytes()))
            }
            _ => (0..labels.len()).try_for_each(|l| {
                let mut line = serde_json::to_vec(&labels.text(l))?;
                line.push(b'\n');
                self.write(&line)
            }),
        }
    }

    /// What was written; nothing, and no file, unless every row has a label.
    pub(super) fn finish(mut self, folder: &Path) -> io::Result<Option<LabelFile>> {
        self.out.flush()?;
        if self.n_labels != self.n_rows {
            std::fs::remove_file(folder.join(self.kind.file()))?;
            return Ok(None);
        }
        self.out.get_ref().sync_all()?;
        let content = Content { bytes: self.bytes, crc32: self.checksum.finalize() };
        Ok(Some(LabelFile { kind: self.kind, content }))
    }
}

/// The labels in the bytes of a file.
pub(super) fn decode(bytes: &[u8], kind: LabelKind, n_rows: usize, name: &str) -> Result<Labels, ReadError> {
    let labels = match kind {
        LabelKind::Numbers => {
            let mut rest = bytes;
            let header = crate::npy::read_header(name, &mut rest)?;
            if header.descr != "<f8" {
                let text = format!("expected labels of type `<f8`, found `{}`", header.descr);
                return Err(ReadError::malformed(name, text));
            }
            Labels::Numbers(rest.as_chunks::<8>().0.iter().map(|x| f64::from_le_bytes(*x)).collect())
        }
        LabelKind::Texts => {
            let lines = serde_json::Deserializer::from_slice(bytes).into_iter::<String>();
            let texts: Result<Vec<String>, _> = lines.collect();
            Labels::Texts(texts.map_err(|error| ReadError::malformed(name, error.to_string()))?)
        }
    };
    if labels.len() == n_rows {
        return Ok(labels);
    }
    Err(ReadError::malformed(name, format!("{} labels are there for {n_rows} rows", labels.len())))
}
