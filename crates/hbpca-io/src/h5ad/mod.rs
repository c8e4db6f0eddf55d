//! `.h5ad`: the matrices of AnnData, with the names of genes, a mask of genes, and counts prepared as they are read.
//!
//! Both layouts are read: the present one (attributes `encoding-type`, tables as groups of columns) and the one before version 0.7
//! (attributes `h5sparse_format`, tables as arrays of records, `raw.X` at the root).

mod frame;
mod matrix;
mod preparation;
mod source;

pub(crate) use source::H5adSource;

use std::ops::Range;

use hbpca::CountTransform;
use twox_hash::XxHash3_64;

use crate::block::{Labels, RowBlock};
use crate::column_names::listed;
use crate::hdf5::{Fault, File, Object, Storage};
use crate::input::Opened;
use crate::on_disk::WatchedFile;
use crate::{ColumnRef, ReadError, ReadOptions};
use frame::Frame;
use matrix::Stored;
use preparation::Preparation;

/// Which matrix of an `.h5ad` file is read, and what is done with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellOptions {
    /// The layer instead of X; `raw` is `.raw` where no layer has that name.
    pub layer: Option<String>,
    /// The layer that is read where none is named: that of a model.
    pub usual_layer: Option<String>,
    /// The column of `.var` that is true for the genes to use. Where columns are matched by name, the names choose them.
    pub mask: Option<String>,
    /// What is done with the counts of each cell, before genes are left out.
    pub counts: CountTransform,
}

impl CellOptions {
    /// The first of them that is given and matters, as users know it. Where columns are matched by name a mask does not.
    pub(crate) fn first_given(&self, by_name: bool) -> Option<&'static str> {
        let given = [
            ("--layer", self.layer.is_some()),
            ("--mask", self.mask.is_some() && !by_name),
            ("--normalize", self.counts.total.is_some()),
            ("--log1p", self.counts.log1p),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }
}

/// A matrix of an `.h5ad` file, whose rows are cells.
#[derive(Debug)]
pub(crate) struct Cells {
    name: String,
    file: File,
    stored: Stored,
    preparation: Preparation,
    /// The names of the genes that are used.
    genes: Option<Vec<String>>,
    /// What a person should know of its columns.
    pub(crate) notes: Vec<String>,
    /// Columns of the table of cells that were asked for: those to keep, by name, and the label.
    beside: Beside,
    /// A number that differs where the options do.
    choices: u64,
}

/// Columns of the table of cells.
#[derive(Debug, Default)]
struct Beside {
    kept: Vec<(String, Labels)>,
    labels: Option<Labels>,
}

impl Cells {
    pub(crate) fn open(mut opened: Opened, options: &ReadOptions) -> Result<Self, ReadError> {
        let storage = match &opened.plain {
            Some(path) => Storage::File(WatchedFile::open(&opened.name, path)?),
            None => Storage::Memory(opened.read_all()?),
        };
        let (name, cells) = (&opened.name, &options.cells);
        cells.counts.check().map_err(|error| ReadError::option(name, error.to_string()))?;
        let mut file = File::open(storage).map_err(|fault| fault.of(name))?;
        let found = find(&mut file, cells.layer.as_deref().or(cells.usual_layer.as_deref()))
            .map_err(|fault| fault.of(name))?;
        let place = found.place;
        let of = |fault: Fault| fault.at(&place).of(name);
        let stored = Stored::open(&mut file, &found.matrix).map_err(of)?;
        let (n, d) = stored.shape();
        refuse_other_cells(&mut file, n).map_err(of)?;
        let mut genes = None;
        let mut mask = None;
        let mut notes = Vec::new();
        if let Some(var) = found.var {
            let of = |fault: Fault| fault.at("var").of(name);
            let var = Frame::open(&mut file, var).map_err(of)?;
            genes = var.index(&mut file).map_err(of)?;
            // The names of a model choose genes, where they are known.
            match cells.mask.as_deref().filter(|_| options.match_names.is_none()) {
                Some(column) => mask = Some(var.mask(&mut file, column).map_err(|fault| fault.of(name))?),
                None => notes.extend(hint(&mut file, &var, options)),
            }
        } else if let Some(column) = cells.mask.as_ref().filter(|_| options.match_names.is_none()) {
            return Err(ReadError::option(
                name,
                format!("--mask {column}: there is no table of genes (var)"),
            ));
        }
        for (what, n) in
            [("names", genes.as_ref().map(Vec::len)), ("values of the mask", mask.as_ref().map(Vec::len))]
        {
            if let Some(n) = n.filter(|n| *n != d) {
                return Err(ReadError::malformed(
                    name,
                    format!("`var` has {n} {what} for the {d} columns of `{place}`"),
                ));
            }
        }
        if let (Some(mask), Some(column)) = (&mask, &cells.mask)
            && !mask.contains(&true)
        {
            return Err(ReadError::option(name, format!("--mask {column}: it is false for all {d} genes")));
        }
        let beside = Beside::read(&mut file, options, stored.shape().0).map_err(|fault| fault.of(name))?;
        let preparation = Preparation::new(cells.counts, mask, stored.element());
        let genes = genes.map(|genes| preparation.names(genes));
        let choices = XxHash3_64::oneshot(format!("{cells:?}").as_bytes());
        Ok(Self { name: name.clone(), file, stored, preparation, genes, notes, beside, choices })
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.stored.shape().0
    }

    /// Columns that are used.
    pub(crate) fn n_columns(&self) -> usize {
        self.preparation.n_columns(self.stored.shape().1)
    }

    pub(crate) fn genes(&self) -> Option<&[String]> {
        self.genes.as_deref()
    }

    /// The names of the columns that travel beside the matrix.
    pub(crate) fn kept_names(&self) -> Vec<String> {
        self.beside.kept.iter().map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn stored(&self) -> &Stored {
        &self.stored
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether genes are left out.
    pub(crate) fn is_masked(&self) -> bool {
        self.preparation.is_masked()
    }

    /// Whether its rows come in single precision.
    pub(crate) fn is_single(&self) -> bool {
        self.preparation.is_single()
    }

    /// A number that differs after the file was written to, and where other choices were made; nothing where it is not on disk.
    pub(crate) fn version(&self) -> Option<u64> {
        match self.file.storage() {
            Storage::File(file) => {
                WatchedFile::version_of([file].into_iter()).map(|version| version ^ self.choices)
            }
            Storage::Memory(_) => None,
        }
    }

    /// Bytes of the file.
    pub(crate) fn size(&self) -> u64 {
        self.file.storage().size()
    }

    /// Where rows `rows` start among all entries, and the end of the last of them.
    pub(crate) fn row_starts(&mut self, rows: Range<usize>) -> Result<Vec<u64>, ReadError> {
        self.stored.row_starts(&mut self.file, rows).map_err(|fault| fault.of(&self.name))
    }

    /// Entries of rows `rows` in the genes that are used.
    pub(crate) fn count(&mut self, rows: Range<usize>) -> Result<u64, ReadError> {
        let columns = self.stored.columns(&mut self.file, rows).map_err(|fault| fault.of(&self.name))?;
        Ok(self.preparation.count(&columns))
    }

    /// Rows `rows`, prepared.
    pub(crate) fn block(&mut self, rows: Range<usize>) -> Result<RowBlock, ReadError> {
        let first = rows.start;
        let block = self.stored.rows(&mut self.file, rows).map_err(|fault| fault.of(&self.name))?;
        let mut block = self.preparation.apply(block, first, &self.name)?;
        let n = block.n_rows();
        block.kept = self.beside.kept.iter().filter_map(|(_, labels)| labels.slice(first, n)).collect();
        block.labels = self.beside.labels.as_ref().and_then(|labels| labels.slice(first, n));
        Ok(block)
    }
}

impl Beside {
    fn read(file: &mut File, options: &ReadOptions, n: usize) -> Result<Self, Fault> {
        if options.keep.is_empty() && options.label_column.is_none() {
            return Ok(Self::default());
        }
        let root = file.root()?;
        let Some(obs) = file.find(&root, "obs")? else {
            return Err("there is no table of cells (obs)".into());
        };
        let obs = Frame::open(file, obs).map_err(|fault| fault.at("obs"))?;
        let uns = file.find(&root, "uns")?;
        let mut column = |column: &ColumnRef| -> Result<(String, Labels), Fault> {
            let name = column.to_string();
            let categories = match &uns {
                Some(uns) if obs.is_records() => file.find(uns, &format!("{name}_categories"))?,
                _ => None,
            };
            let categories = categories.map(|names| frame::names(file, &names)).transpose()?;
            let labels =
                obs.labels(file, &name, categories).map_err(|fault| fault.at(&format!("obs/{name}")))?;
            if labels.len() == n {
                Ok((name, labels))
            } else {
                Err(format!("`obs/{name}` has {} values for {n} cells", labels.len()).into())
            }
        };
        let kept = options.keep.iter().map(&mut column).collect::<Result<Vec<_>, _>>()?;
        let labels = options.label_column.as_ref().map(column).transpose()?.map(|(_, labels)| labels);
        Ok(Self { kept, labels })
    }
}

/// A matrix, and the table of its columns.
struct Found {
    place: String,
    matrix: Object,
    var: Option<Object>,
}

/// X, a layer, or raw.
fn find(file: &mut File, layer: Option<&str>) -> Result<Found, Fault> {
    let root = file.root()?;
    let layers = file.find(&root, "layers")?;
    let Some(layer) = layer else {
        let Some(matrix) = file.find(&root, "X")? else {
            let names = layers.map_or_else(|| Ok(Vec::new()), |layers| file.names(&layers))?;
            let way_out = if names.is_empty() {
                "is this an .h5ad file?".to_owned()
            } else {
                format!("name one of its layers with --layer: {}", listed(&names))
            };
            return Err(format!("there is no X in it: {way_out}").into());
        };
        return Ok(Found { place: "X".into(), matrix, var: file.find(&root, "var")? });
    };
    let mut names = Vec::new();
    if let Some(layers) = &layers {
        if let Some(matrix) = file.find(layers, layer)? {
            return Ok(Found { place: format!("layers/{layer}"), matrix, var: file.find(&root, "var")? });
        }
        names = file.names(layers)?;
    }
    if layer == "raw" {
        if let Some(raw) = file.find(&root, "raw")?
            && let Some(matrix) = file.find(&raw, "X")?
        {
            return Ok(Found { place: "raw/X".into(), matrix, var: file.find(&raw, "var")? });
        }
        if let Some(matrix) = file.find(&root, "raw.X")? {
            return Ok(Found { place: "raw.X".into(), matrix, var: file.find(&root, "raw.var")? });
        }
    }
    let there = if names.is_empty() { "it has none".into() } else { format!("it has {}", listed(&names)) };
    Err(format!("--layer {layer}: there is no such layer; {there}").into())
}

/// Refuses a matrix of another number of rows than the table of cells has.
fn refuse_other_cells(file: &mut File, n: usize) -> Result<(), Fault> {
    let root = file.root()?;
    let Some(obs) = file.find(&root, "obs")? else { return Ok(()) };
    match frame::length(file, &obs)? {
        Some(cells) if cells != n as u64 => {
            Err(format!("it has {n} rows, but the table of cells (obs) has {cells}").into())
        }
        _ => Ok(()),
    }
}

/// What scanpy would do by default.
fn hint(file: &mut File, var: &Frame, options: &ReadOptions) -> Option<String> {
    const COLUMN: &str = "highly_variable";
    if options.match_names.is_some() {
        return None;
    }
    let mask = var.mask(file, COLUMN).ok()?;
    let chosen = mask.iter().filter(|chosen| **chosen).count();
    (chosen > 0 && chosen < mask.len()).then(|| {
        format!("all {} genes are used, of which {chosen} are marked: --mask {COLUMN} uses these alone, as scanpy does", mask.len())
    })
}

#[cfg(test)]
mod tests;
