//! Data that is to be read.

use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};
use std::time::Instant;

use hbpca::{FitConfig, Matrix, RowChunks};
use hbpca_io::{ByteSize, ColumnRef, Data, Input, Place, Precision, ReadOptions, Share};

use crate::args::DataArgs;
use crate::exit::Failure;
use crate::output::number;
use crate::output::progress::Spinner;
use crate::output::say::{self, Verbosity};

/// Where the data is and how to read it.
pub struct Source {
    /// What messages call it.
    pub name: String,
    input: Input,
    options: ReadOptions,
}

/// What one of several ranks reads.
pub struct RankSource {
    /// What messages call all of the data.
    pub name: String,
    /// This rank's share.
    pub share: Share,
    options: ReadOptions,
}

impl RankSource {
    /// Whether this rank's rows go into its memory.
    pub fn fits(&self) -> bool {
        match &self.share {
            Share::Rows { fits, .. } => *fits,
            Share::Parts(_) => true,
        }
    }

    /// Reads this rank's rows into memory.
    pub fn load(share: Share, options: &ReadOptions) -> Result<Matrix<'static>, hbpca::Error> {
        match share {
            Share::Rows { mut rows, .. } => {
                let n = rows.n_rows();
                rows.read_rows(0..n)
            }
            Share::Parts(input) => match hbpca_io::read(input, options) {
                Ok(data) => Ok(data.matrix),
                Err(error) => Err(hbpca::Error::Source(Box::new(error))),
            },
        }
    }

    /// The share and how to read it.
    pub fn into_parts(self) -> (String, Share, ReadOptions) {
        (self.name, self.share, self.options)
    }
}

/// Data in memory.
pub struct Loaded {
    /// What messages call it.
    pub name: String,
    /// The matrix and what came with it.
    pub data: Data,
    /// Seconds spent reading.
    pub seconds: f64,
}

impl Source {
    /// Finds the data; a file that is not there is named at once.
    pub fn find(args: &DataArgs) -> Result<Self, Failure> {
        let standard_input = Path::new("-");
        let options = ReadOptions {
            format: args.format,
            label_column: args.label_column.as_deref().map(ColumnRef::parse),
            columns: args.columns.as_ref().map(|names| names.iter().map(|x| ColumnRef::parse(x)).collect()),
            n_columns: args.n_columns,
            ..ReadOptions::default()
        };
        let (name, input) = match args.data.as_slice() {
            [path] if path == standard_input => {
                if stdin().is_terminal() {
                    let way_out = "pipe data into it, or name a file";
                    return Err(Failure::Usage(format!("standard input is a terminal: {way_out}")));
                }
                ("standard input".to_owned(), Input::stdin())
            }
            paths => {
                if paths.iter().any(|path| path == standard_input) {
                    let way_out = "give it alone";
                    return Err(Failure::Usage(format!(
                        "- (standard input) cannot be one of several parts: {way_out}"
                    )));
                }
                let mut found = Vec::new();
                for path in paths {
                    found.extend(hbpca_io::expand(path)?);
                }
                found.iter().try_for_each(|path| find(path))?;
                (name(&found), Input::paths(found))
            }
        };
        Ok(Self { name, input, options })
    }

    /// Keeps values in these numbers.
    pub fn keep_in(&mut self, precision: Precision) {
        self.options.precision = precision;
    }

    /// The input and the options, for commands that read it themselves.
    pub fn into_parts(self) -> (Input, ReadOptions) {
        (self.input, self.options)
    }

    /// Whether the data is read into memory or stays on disk.
    pub fn place(&self, config: &FitConfig, memory: Option<ByteSize>) -> Result<Place, Failure> {
        Ok(hbpca_io::place(&self.input, &self.options, memory, |rows| config.memory_beside(rows))?)
    }

    /// What rank `rank` of `size` reads; `memory` is that of a rank.
    pub fn share(
        self,
        of: (usize, usize),
        config: &FitConfig,
        memory: Option<ByteSize>,
    ) -> Result<RankSource, Failure> {
        let beside = |rows: &dyn RowChunks| config.memory_beside(rows);
        let share = hbpca_io::share(&self.input, &self.options, of, memory, beside)?;
        Ok(RankSource { name: self.name, share, options: self.options })
    }

    /// Reads everything.
    pub fn read(self, verbosity: Verbosity) -> Result<Loaded, Failure> {
        let spinner = Spinner::new(verbosity, &format!("reading {}", self.name));
        let clock = Instant::now();
        let data = hbpca_io::read(self.input, &self.options)?;
        give_back_freed_memory();
        let seconds = clock.elapsed().as_secs_f64();
        drop(spinner);
        if verbosity == Verbosity::Verbose {
            let (took, format) = (number::seconds(seconds), data.format);
            say::line(&format!("read {} ({format}, {}) in {took}", self.name, kind(&data.matrix)));
        }
        Ok(Loaded { name: self.name, data, seconds })
    }
}

/// Readers unpack and parse in memory that they free; glibc keeps it unless it is told otherwise, which on a compressed text was
/// nearly as much as the matrix read from it.
fn give_back_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "a foreign function without arguments that could be wrong")]
    // SAFETY: any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn find(path: &Path) -> Result<(), Failure> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Input(format!("{}: {error}", path.display()))),
    }
}

/// The first part's name without its folder, and how many there are besides.
fn name(paths: &[PathBuf]) -> String {
    let first = paths.first().map_or(Path::new(""), PathBuf::as_path);
    let first = first.file_name().map_or_else(|| first.to_string_lossy(), |x| x.to_string_lossy());
    match paths.len() {
        0 | 1 => first.into_owned(),
        2 => format!("{first} and 1 more part"),
        n => format!("{first} and {} more parts", n - 1),
    }
}

/// How a matrix is stored.
pub fn kind(matrix: &Matrix<'_>) -> &'static str {
    match matrix {
        Matrix::DenseF32(_) => "dense f32",
        Matrix::DenseF64(_) => "dense f64",
        Matrix::CsrF32(_) => "sparse f32",
        Matrix::CsrF64(_) => "sparse f64",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_in_the_name() {
        let name = |paths: &[&str]| name(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(name(&["a/b.csv"]), "b.csv");
        assert_eq!(name(&["a/b.csv", "c"]), "b.csv and 1 more part");
        assert_eq!(name(&["b", "c", "d"]), "b and 2 more parts");
        assert_eq!(name(&[".."]), "..");
    }
}
