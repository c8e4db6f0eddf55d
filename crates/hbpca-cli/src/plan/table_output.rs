//! A matrix that is to be written.

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use hbpca::Matrix;
use hbpca_io::{Format, Labels, OutputFile, Summary, WriteOptions, create_sink, join_kept};

use super::create;
use crate::exit::Failure;

/// A file that was begun and whose format is known.
pub struct TableOutput {
    path: PathBuf,
    format: Format,
    file: OutputFile,
    goes_to: Destination,
}

/// Where the table goes.
enum Destination {
    File,
    /// Through a temporary file, so that a failure leaves no half of it behind.
    StandardOutput,
}

/// Refuses a table and an object that would both go to standard output.
pub fn refuse_two_on_standard_output(path: &Path, json: bool) -> Result<(), Failure> {
    if json && path == Path::new("-") {
        let text = "-o - and --json both write to standard output: name a file, or leave --json out";
        return Err(Failure::Usage(text.into()));
    }
    Ok(())
}

impl TableOutput {
    /// The format that is written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Refuses names that show no format, and begins the file. `-` is standard output, whose format must be given.
    pub fn begin(path: &Path, format: Option<Format>) -> Result<Self, Failure> {
        if path != Path::new("-") {
            let format = format.map_or_else(|| known_format(path), Ok)?;
            return Ok(Self {
                path: path.to_owned(),
                format,
                file: create(path)?,
                goes_to: Destination::File,
            });
        }
        let format = format.ok_or_else(|| {
            Failure::Usage(
                "-o -: standard output has no name to show a format; add --output-format, such as csv".into(),
            )
        })?;
        let path = std::env::temp_dir().join(format!("hbpca-{}.{format}", std::process::id()));
        Ok(Self { file: create(&path)?, path, format, goes_to: Destination::StandardOutput })
    }

    /// Writes the kept columns and the matrix, and gives the file its name. LIBSVM keeps the labels.
    pub fn write(
        self,
        matrix: &Matrix<'_>,
        names: Vec<String>,
        labels: Option<Labels>,
        kept: Vec<(String, Labels)>,
    ) -> Result<(), Failure> {
        let mut options = WriteOptions {
            format: Some(self.format),
            column_names: Some(names),
            labels,
            kept,
            ..WriteOptions::default()
        };
        if options.kept.is_empty() || self.format.has_texts() {
            return self.write_with(matrix, &options);
        }
        let joined = join_kept(&self.path.display().to_string(), matrix, &options.kept)?;
        options.kept.clear();
        self.write_with(&joined, &options)
    }

    fn write_with(self, matrix: &Matrix<'_>, options: &WriteOptions) -> Result<(), Failure> {
        let mut sink = create_sink(self.file, &self.path, &Summary::of(matrix), options)?;
        sink.write_rows(matrix, options.labels.as_ref())?;
        sink.finish()?;
        match self.goes_to {
            Destination::File => Ok(()),
            Destination::StandardOutput => pour(&self.path),
        }
    }
}

/// Copies a file to standard output and removes it. A reader that has seen enough is no failure.
fn pour(path: &Path) -> Result<(), Failure> {
    let copied = std::fs::File::open(path).and_then(|mut file| {
        let mut out = io::stdout().lock();
        io::copy(&mut file, &mut out)?;
        out.flush()
    });
    // What was copied is no longer needed; a file that stays in the temporary folder is no failure of the copy.
    let _ = std::fs::remove_file(path);
    match copied {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::output("standard output", error)),
        _ => Ok(()),
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
