//! A matrix that is to be written.

use std::path::{Path, PathBuf};

use hbpca::Matrix;
use hbpca_io::{Format, Labels, OutputFile, Summary, WriteOptions, create_sink};

use super::create;
use crate::exit::Failure;

/// A file that was begun and whose format is known.
pub struct TableOutput {
    path: PathBuf,
    file: OutputFile,
}

impl TableOutput {
    /// Refuses names that show no format, and begins the file.
    pub fn begin(path: &Path) -> Result<Self, Failure> {
        known_format(path)?;
        Ok(Self { path: path.to_owned(), file: create(path)? })
    }

    /// Writes the matrix and gives the file its name. LIBSVM keeps the labels.
    pub fn write(
        self,
        matrix: &Matrix<'_>,
        names: Vec<String>,
        labels: Option<Labels>,
    ) -> Result<(), Failure> {
        let options = WriteOptions { column_names: Some(names), labels, ..WriteOptions::default() };
        let mut sink = create_sink(self.file, &self.path, &Summary::of(matrix), &options)?;
        sink.write_rows(matrix, options.labels.as_ref())?;
        Ok(sink.finish()?)
    }
}

/// The format that a file's name shows.
pub fn known_format(path: &Path) -> Result<Format, Failure> {
    Format::from_path(path).ok_or_else(|| {
        let names = Format::ALL.map(|format| format!(".{format}")).join(" ");
        Failure::Usage(format!(
            "{}: the name shows no format; end it in one of {names}, with .gz .bz2 .xz .zst for compression",
            path.display()
        ))
    })
}
