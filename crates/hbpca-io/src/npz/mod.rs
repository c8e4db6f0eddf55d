//! A zip archive of NumPy arrays: a SciPy sparse matrix (CSR, CSC, COO), or one dense array.

mod archive;
mod write;

pub(crate) use write::{DenseNpzSink, SparseNpzSink};

use archive::Archive;

use crate::ReadError;
use crate::binary::refuse_absurd_rows;
use crate::block::{RowBlock, Values};
use crate::input::Opened;
use crate::npy::transposed;
use crate::source::{RowSource, Stated};
use crate::sparse::{Entries, compressed};

/// The one block of an archive.
pub(crate) struct NpzSource {
    n_columns: usize,
    block: Option<RowBlock>,
}

impl NpzSource {
    pub(crate) fn open(opened: Opened) -> Result<Self, ReadError> {
        let mut archive = Archive::open(opened)?;
        if archive.has("format") { sparse(&mut archive) } else { dense(&mut archive) }
    }
}

fn dense(archive: &mut Archive) -> Result<NpzSource, ReadError> {
    let names = archive.names();
    let [name] = &names[..] else {
        return Err(ReadError::malformed(
            &archive.name,
            format!(
                "the archive holds {} arrays and is no SciPy sparse matrix: store one array, or use \
                 scipy.sparse.save_npz",
                names.len()
            ),
        ));
    };
    let array = archive.array(name)?;
    let malformed = |text| ReadError::malformed(&archive.name, format!("`{name}`: {text}"));
    let (n, d) = array.header.rows_and_columns().map_err(malformed)?;
    let mut values = archive.element(name, &array)?.decode(&array.bytes);
    if array.header.fortran_order {
        values = match values {
            Values::F32(x) => Values::F32(transposed(&x, n, d)),
            Values::F64(x) => Values::F64(transposed(&x, n, d)),
        };
    }
    let block = (n > 0 && d > 0).then(|| RowBlock::dense(d, values));
    Ok(NpzSource { n_columns: d, block })
}

fn sparse(archive: &mut Archive) -> Result<NpzSource, ReadError> {
    let format: Vec<u8> = archive.array("format")?.bytes.into_iter().filter(|&byte| byte != 0).collect();
    let shape = archive.indices("shape")?;
    let name = archive.name.clone();
    let malformed = |text: String| ReadError::malformed(&name, text);
    let &[n, d] = &shape[..] else {
        return Err(malformed(format!("`shape` has {} numbers, a matrix has 2", shape.len())));
    };
    let bounded = |x: u64| usize::try_from(x).ok().filter(|&x| x <= u32::MAX as usize + 1);
    let (Some(n), Some(d)) = (bounded(n), bounded(d)) else {
        return Err(malformed(format!("{n} rows × {d} columns: at most 2³² of each are read")));
    };
    let values = archive.values("data")?;
    let agree = |what: &str, found: usize| {
        let text = format!("`{what}` has {found} numbers, `data` has {}", values.len());
        if found == values.len() { Ok(()) } else { Err(malformed(text)) }
    };
    let block = match &format[..] {
        b"csr" => {
            let starts = archive.indices("indptr")?;
            let columns = archive.places("indices", d)?;
            agree("indices", columns.len())?;
            compressed(pointers(starts, n, values.len()).map_err(malformed)?, columns, values)
        }
        b"csc" => {
            let starts = archive.indices("indptr")?;
            let rows = archive.places("indices", n)?;
            agree("indices", rows.len())?;
            refuse_absurd_rows(n, archive.size, &name)?;
            let starts = pointers(starts, d, values.len()).map_err(malformed)?;
            let mut columns = Vec::with_capacity(rows.len());
            for (j, ends) in starts.windows(2).enumerate() {
                columns.resize(columns.len() + ends[1] - ends[0], j as u32);
            }
            Entries { n_rows: n, rows, columns, values }.into_block()
        }
        b"coo" => {
            let (rows, columns) = (archive.places("row", n)?, archive.places("col", d)?);
            agree("row", rows.len())?;
            agree("col", columns.len())?;
            refuse_absurd_rows(n, archive.size, &name)?;
            Entries { n_rows: n, rows, columns, values }.into_block()
        }
        other => {
            let other = String::from_utf8_lossy(other);
            return Err(malformed(format!("sparse format `{other}` is not read: store x.tocsr() instead")));
        }
    };
    Ok(NpzSource { n_columns: d, block: (n > 0).then_some(block) })
}

/// Row pointers: n + 1 numbers from 0 to the number of entries that never descend.
fn pointers(starts: Vec<u64>, n: usize, n_entries: usize) -> Result<Vec<usize>, String> {
    if starts.len() != n + 1 {
        return Err(format!("`indptr` has {} numbers where {} are needed", starts.len(), n + 1));
    }
    if starts[0] != 0 || starts[n] != n_entries as u64 || !starts.is_sorted() {
        return Err(format!(
            "`indptr` must ascend from 0 to the {n_entries} entries of `data`, but does not"
        ));
    }
    Ok(starts.into_iter().map(|x| x as usize).collect())
}

impl RowSource for NpzSource {
    fn stated(&self) -> Stated {
        Stated { n_columns: Some(self.n_columns), ..Stated::default() }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        Ok(self.block.take().into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
