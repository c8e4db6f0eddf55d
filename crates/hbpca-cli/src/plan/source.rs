//! Data that is to be read.

use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};
use std::time::Instant;

use hbpca::missing::Missing;
use hbpca::{CountTransform, FitConfig, Matrix, RankRows, RowChunks};
use hbpca_io::{
    BedFile, ByteSize, CellOptions, ColumnRef, Cut, Data, Features, Input, MissingFields, NamesToMatch,
    OccurringColumns, OnDisk, OneHot, Place, Precision, ReadOptions, Reading, RowRange, Share, Storage,
    StoredModel,
};

use super::Weights;
use crate::args::{CellArgs, DataArgs};
use crate::exit::Failure;
use crate::output::number;
use crate::output::progress::Spinner;
use crate::output::say::{self, Verbosity};

/// Threads of a rank that plans count with where results must not depend on the machine.
const NOMINAL_THREADS: usize = 4;

/// Where the data is and how to read it.
pub struct Source {
    /// What messages call it.
    pub name: String,
    pub(super) input: Input,
    pub(super) options: ReadOptions,
    /// The file, where it holds genotypes.
    pub(super) bed: Option<PathBuf>,
    /// Whether the columns are those of a model without names.
    pub(super) for_unnamed_model: bool,
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

    /// This rank's rows and their weights, in memory where those of all ranks fit.
    pub fn rows(self, fits: bool, weights: &Weights) -> Result<OwnRows, Failure> {
        let Self { share, options, name } = self;
        match share {
            Share::Rows { mut shards, first, n, memory, .. } => {
                let column_names = shards[0].column_names().map(<[String]>::to_vec);
                let weights = weights.of_some(&mut shards, (first, n), &name)?;
                let rows = if fits {
                    let read = |mut rows: RowRange| rows.read_rows(0..rows.n_rows());
                    let matrices = shards.into_iter().map(read).collect::<Result<_, _>>();
                    Held::Memory(matrices.map_err(|error| Failure::refused(&error, &name))?)
                } else {
                    Held::Disk { shards, memory }
                };
                Ok(OwnRows { rows, weights, column_names, narrowed: false })
            }
            Share::Parts(input) => {
                let mut data = hbpca_io::read(input, &options)?;
                let weights = weights.of_parts(&mut data)?;
                let Data { matrix, column_names, narrowed, .. } = data;
                Ok(OwnRows { rows: Held::Memory(vec![matrix]), weights, column_names, narrowed })
            }
        }
    }
}

/// The rows of one rank.
pub struct OwnRows {
    /// The rows.
    pub rows: Held,
    /// Their weights.
    pub weights: Option<Vec<f64>>,
    /// The names of their columns.
    pub column_names: Option<Vec<String>>,
    /// Whether they were rounded to single precision.
    pub narrowed: bool,
}

/// Shards of rows in the memory of this rank, or on its disk.
pub enum Held {
    Memory(Vec<Matrix<'static>>),
    Disk { shards: Vec<RowRange>, memory: u64 },
}

impl Held {
    /// Whether they are sparse, how many entries they have, and where they are.
    pub fn about(&self) -> (bool, usize, &'static str) {
        match self {
            Self::Memory(shards) => {
                (shards[0].is_sparse(), shards.iter().map(Matrix::nnz).sum(), "in memory")
            }
            Self::Disk { shards, .. } => {
                (shards[0].is_sparse(), shards.iter().map(RowChunks::nnz).sum(), "on disk")
            }
        }
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            Self::Memory(shards) => (shards.iter().map(Matrix::n_rows).sum(), shards[0].n_cols()),
            Self::Disk { shards, .. } => (shards.iter().map(RowChunks::n_rows).sum(), shards[0].n_cols()),
        }
    }

    /// As the core takes them; matrices are kept in `place`.
    pub fn for_rank<'a>(self, place: &'a mut Vec<Matrix<'static>>) -> Vec<RankRows<'a>> {
        match self {
            Self::Memory(matrices) => {
                *place = matrices;
                place.iter().map(RankRows::Memory).collect()
            }
            Self::Disk { shards, memory } => {
                let on_disk = |rows| RankRows::Disk { rows: Box::new(rows), memory };
                shards.into_iter().map(on_disk).collect()
            }
        }
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
            columns: args.columns.as_deref().map(ColumnRef::parse_list),
            exclude: args.exclude.as_deref().map_or_else(Vec::new, ColumnRef::parse_list),
            features: if args.numeric { Features::Numeric } else { Features::All },
            n_columns: args.n_columns,
            cells: CellOptions { layer: args.layer.clone(), ..CellOptions::default() },
            ..args.table.options()
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
                (name(&found), input(&found)?)
            }
        };
        let bed = match args.data.as_slice() {
            [path] if options.format.is_none() && BedFile::recognise(path) => Some(path.clone()),
            _ => None,
        };
        Ok(Self { name, input, options, bed, for_unnamed_model: false })
    }

    /// Uses some of the genes, and prepares the counts of cells.
    pub fn prepare_cells(&mut self, args: &CellArgs) -> Result<(), Failure> {
        let counts = CountTransform { total: args.normalize, log1p: args.log1p };
        counts.check().map_err(|error| Failure::Usage(format!("--{error}")))?;
        self.options.cells = CellOptions { mask: args.mask.clone(), counts, ..self.options.cells.clone() };
        Ok(())
    }

    /// Keeps values in these numbers.
    pub fn keep_in(&mut self, precision: Precision) {
        self.options.precision = precision;
    }

    /// Takes the columns that a model was fitted on: by name where both have names, else by position, or by number where it knows only those that occurred.
    /// Categories become those that it knows.
    pub fn for_model(&mut self, stored: &StoredModel) {
        let categories = &stored.origin.reading.categories;
        let coded: usize = categories.iter().map(|column| column.categories.len()).sum();
        let names = stored.model.feature_names().map(|names| &names[..names.len().saturating_sub(coded)]);
        let columns = stored.origin.reading.columns.clone();
        self.options.match_names = names.filter(|_| columns.is_none()).map(NamesToMatch::of_model);
        self.options.occurring = columns;
        self.options.one_hot = categories.iter().cloned().map(OneHot::Known).collect();
        self.for_unnamed_model = self.options.match_names.is_none();
        // Its genes are found by name; counts are prepared as those that it was fitted on.
        let Reading { layer, mask, counts, .. } = &stored.origin.reading;
        let cells = &mut self.options.cells;
        cells.usual_layer.clone_from(layer);
        cells.mask.clone_from(mask);
        cells.counts = *counts;
    }

    /// Makes columns of zeros and ones of the categories of these columns.
    pub fn code(&mut self, columns: &str) {
        self.options.one_hot = ColumnRef::parse_list(columns).into_iter().map(OneHot::Found).collect();
    }

    /// Reads missing values as NaN, unless they are an error.
    pub fn hold_missing(&mut self, missing: Missing) {
        self.options.missing =
            if missing == Missing::Error { MissingFields::Refused } else { MissingFields::Nan };
    }

    /// Reads the weights of the rows from this column, which is no feature.
    pub fn weigh_by(&mut self, column: ColumnRef) {
        self.options.weight_column = Some(column);
    }

    /// Takes the scores of `k` components, by name where they have those that `transform` gives them.
    pub fn for_scores(&mut self, k: usize) {
        self.options.match_names = Some(NamesToMatch::of_scores(k));
    }

    /// Reads these columns too, as they are.
    pub fn keep(&mut self, columns: &str) {
        self.options.keep = ColumnRef::parse_list(columns);
    }

    /// Whether the data are genotypes, which stay packed.
    pub fn is_genotypes(&self) -> bool {
        self.bed.is_some()
    }

    /// The file of genotypes, and the options.
    pub fn into_genotypes(self) -> Result<(PathBuf, ReadOptions), Failure> {
        let name = self.name;
        let path = self.bed.ok_or_else(|| Failure::Input(format!("{name}: these are no genotypes")))?;
        Ok((path, self.options))
    }

    /// The input and the options, for commands that read it themselves.
    pub fn into_parts(self) -> (Input, ReadOptions) {
        (self.input, self.options)
    }

    /// Whether the data is read into memory or stays on disk; `beside` are the bytes that a fit takes besides.
    pub fn place(
        &self,
        memory: Option<ByteSize>,
        beside: impl Fn(&dyn RowChunks) -> u64,
    ) -> Result<Place, Failure> {
        Ok(hbpca_io::place(&self.input, &self.options, memory, beside)?)
    }

    /// Whether the data can be read in chunks; headers alone are read.
    pub fn storage(&self) -> Result<Storage, Failure> {
        Ok(hbpca_io::on_disk(&self.input, &self.options)?)
    }

    /// What rank `rank` of `size` reads; `memory` is that of a rank.
    pub fn share(
        self,
        of: (usize, usize),
        cut: Cut,
        config: &FitConfig,
        memory: Option<ByteSize>,
    ) -> Result<RankSource, Failure> {
        // What depends on the machine must not decide between memory and disk where bits may not differ.
        let beside = |rows: &dyn RowChunks| match cut {
            Cut::ByRanks => config.memory_beside(rows),
            Cut::ByData => config.memory_beside_on(rows, NOMINAL_THREADS),
        };
        let share = hbpca_io::share(&self.input, &self.options, of, cut, memory, beside)?;
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
        if verbosity > Verbosity::Quiet {
            data.notes.iter().for_each(|note| say::warning(note));
            if self.for_unnamed_model && data.column_names.is_some() {
                let name = &self.name;
                say::warning(&format!(
                    "the model has no column names: the columns of {name} are taken in their order"
                ));
            }
        }
        Ok(Loaded { name: self.name, data, seconds })
    }
}

impl Loaded {
    /// Where vectors as long as the largest column number says do not fit: the data with the columns that occur, which are announced.
    pub fn within(
        self,
        config: &FitConfig,
        verbosity: Verbosity,
    ) -> Result<(Self, Option<OccurringColumns>), Failure> {
        if config.fits_memory(&self.data.matrix) {
            return Ok((self, None));
        }
        let Some(columns) = self.data.occurring_columns() else { return Ok((self, None)) };
        if verbosity > Verbosity::Quiet {
            let (name, all, d) =
                (&self.name, number::count(columns.all), number::count(columns.numbers.len()));
            let memory = config.memory.map_or_else(String::new, |bytes| format!(" {} of", ByteSize(bytes)));
            say::line(&format!(
                "{name}: vectors of {all} numbers do not fit into{memory} memory; the {d} columns that occur are used, under their numbers: the others have no \
                 loadings"
            ));
        }
        let data = self.data.with_columns(&columns)?;
        Ok((Self { data, ..self }, Some(columns)))
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

/// Files that can be read any number of times, or one pipe, which is opened once.
fn input(paths: &[PathBuf]) -> Result<Input, Failure> {
    let is_stream =
        |path: &PathBuf| std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir());
    let Some(stream) = paths.iter().find(|path| is_stream(path)) else {
        return Ok(Input::paths(paths.iter().cloned()));
    };
    let name = stream.display();
    if paths.len() > 1 {
        let text = "it is a pipe or a device and cannot be one of several parts: give it alone, or write it to a file first";
        return Err(Failure::Usage(format!("{name}: {text}")));
    }
    let file = std::fs::File::open(stream).map_err(|error| Failure::Input(format!("{name}: {error}")))?;
    Ok(Input::reader(name.to_string(), file))
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
