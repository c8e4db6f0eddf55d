//! A matrix as it is stored: compressed rows, compressed columns, or dense.

use std::ops::Range;

use crate::binary::refuse_absurd_rows;
use crate::block::RowBlock;
use crate::element::Element;
use crate::hdf5::{Array, Datatype, Fault, File, Object, Value};
use crate::sparse::{Entries, compressed};

/// Rows and columns, at most.
const MOST: u64 = 1 << 32;

/// The arrays of a matrix.
#[derive(Debug)]
pub(crate) enum Stored {
    /// All values, row by row.
    Dense { values: Array, element: Element },
    /// Entries with their numbers in the other dimension, and where each row or column starts.
    Sparse { order: Order, shape: (usize, usize), arrays: Arrays },
}

/// What follows each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Rows: CSR.
    Rows,
    /// Columns: CSC.
    Columns,
}

/// The three arrays of a sparse matrix.
#[derive(Debug)]
pub(crate) struct Arrays {
    data: Array,
    element: Element,
    indices: Array,
    index: Element,
    starts: Array,
    start: Element,
}

impl Stored {
    pub(super) fn open(file: &mut File, object: &Object) -> Result<Self, Fault> {
        if object.is_array() {
            let values = file.array(object)?;
            let element = number(&values, "values")?;
            if values.shape.len() != 2 || values.shape.iter().any(|n| *n > MOST) {
                return Err(format!("an array of shape {:?} is no matrix", values.shape).into());
            }
            return Ok(Self::Dense { values, element });
        }
        let order = order(file, object)?;
        let (n, d) = shape(file, object)?;
        let mut array = |name: &str| -> Result<(Array, Element), Fault> {
            let found = file.find(object, name)?;
            let found = found.ok_or_else(|| Fault::from(format!("a sparse matrix has no `{name}`")))?;
            let array = file.array(&found).map_err(|fault| fault.at(name))?;
            if array.shape.len() != 1 {
                return Err(format!("`{name}` has two dimensions").into());
            }
            let element = number(&array, name)?;
            Ok((array, element))
        };
        let ((data, element), (indices, index), (starts, start)) =
            (array("data")?, array("indices")?, array("indptr")?);
        let along = if order == Order::Rows { n } else { d };
        if indices.shape != data.shape || starts.shape[0] != along as u64 + 1 {
            return Err(format!(
                "{} column or row numbers stand beside {} values, and {} starts where {along} + 1 are needed",
                indices.shape[0], data.shape[0], starts.shape[0]
            )
            .into());
        }
        Ok(Self::Sparse {
            order,
            shape: (n, d),
            arrays: Arrays { data, element, indices, index, starts, start },
        })
    }

    /// Rows and columns.
    pub(crate) fn shape(&self) -> (usize, usize) {
        match self {
            Self::Dense { values, .. } => (values.shape[0] as usize, values.shape[1] as usize),
            Self::Sparse { shape, .. } => *shape,
        }
    }

    /// The type of the values.
    pub(super) fn element(&self) -> Element {
        match self {
            Self::Dense { element, .. } => *element,
            Self::Sparse { arrays, .. } => arrays.element,
        }
    }

    /// Entries stored.
    pub(crate) fn entries(&self) -> u64 {
        match self {
            Self::Dense { values, .. } => values.shape[0].saturating_mul(values.shape[1]),
            Self::Sparse { arrays, .. } => arrays.data.shape[0],
        }
    }

    pub(crate) fn is_sparse(&self) -> bool {
        matches!(self, Self::Sparse { .. })
    }

    /// Whether columns follow each other rather than rows.
    pub(crate) fn is_by_columns(&self) -> bool {
        matches!(self, Self::Sparse { order: Order::Columns, .. })
    }

    /// Rows that are stored together.
    pub(crate) fn rows_together(&self) -> u64 {
        match self {
            Self::Dense { values, .. } => values.rows_together(),
            Self::Sparse { .. } => 1,
        }
    }

    /// Bytes of all arrays when they are unpacked.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Dense { values, .. } => values.bytes(),
            Self::Sparse { arrays, .. } => {
                arrays.data.bytes() + arrays.indices.bytes() + arrays.starts.bytes()
            }
        }
    }

    /// Where rows `rows` start, and the end of the last of them.
    pub(super) fn row_starts(&self, file: &mut File, rows: Range<usize>) -> Result<Vec<u64>, Fault> {
        match self {
            Self::Dense { values, .. } => {
                Ok((rows.start as u64..=rows.end as u64).map(|l| l * values.shape[1]).collect())
            }
            Self::Sparse { arrays, .. } => arrays.starts(file, rows),
        }
    }

    /// The column numbers of rows `rows`.
    pub(super) fn columns(&self, file: &mut File, rows: Range<usize>) -> Result<Vec<u32>, Fault> {
        let Self::Sparse { arrays, shape, .. } = self else { return Ok(Vec::new()) };
        let starts = arrays.starts(file, rows)?;
        arrays.numbers(file, starts[0]..starts[starts.len() - 1], shape.1)
    }

    /// Rows `rows`; of compressed columns only all of them.
    pub(super) fn rows(&self, file: &mut File, rows: Range<usize>) -> Result<RowBlock, Fault> {
        match self {
            Self::Dense { values, element } => {
                let bytes = file.rows(values, rows.start as u64..rows.end as u64)?;
                Ok(RowBlock::dense(values.shape[1] as usize, element.decode(&bytes)))
            }
            Self::Sparse { order: Order::Rows, shape, arrays } => {
                let starts = arrays.starts(file, rows)?;
                let range = starts[0]..starts[starts.len() - 1];
                let columns = arrays.numbers(file, range.clone(), shape.1)?;
                let values = arrays.element.decode(&file.rows(&arrays.data, range)?);
                Ok(compressed(
                    starts.iter().map(|start| (start - starts[0]) as usize).collect(),
                    columns,
                    values,
                ))
            }
            Self::Sparse { order: Order::Columns, shape: (n, d), arrays } => {
                refuse_absurd_rows(*n, file.storage().size(), "")
                    .map_err(|_| Fault::from(format!("{n} rows are claimed by a small file")))?;
                let starts = arrays.starts(file, 0..*d)?;
                let all = 0..arrays.data.shape[0];
                let rows = arrays.numbers(file, all.clone(), *n)?;
                let values = arrays.element.decode(&file.rows(&arrays.data, all)?);
                let mut columns = Vec::with_capacity(rows.len());
                for (j, ends) in starts.windows(2).enumerate() {
                    columns.resize(columns.len() + (ends[1] - ends[0]) as usize, j as u32);
                }
                Ok(Entries { n_rows: *n, rows, columns, values }.into_block())
            }
        }
    }
}

impl Arrays {
    /// Where rows or columns `range` start, and the end of the last of them.
    fn starts(&self, file: &mut File, range: Range<usize>) -> Result<Vec<u64>, Fault> {
        let (all, n) = (self.data.shape[0], self.starts.shape[0] as usize - 1);
        let bytes = file.rows(&self.starts, range.start as u64..range.end as u64 + 1)?;
        let starts = self.start.decode_indices(&bytes, Some).unwrap_or_default();
        let ascends = starts.len() == range.len() + 1
            && starts.is_sorted()
            && starts[range.len()] <= all
            && (range.start > 0 || starts[0] == 0)
            && (range.end < n || starts[range.len()] == all);
        if ascends {
            Ok(starts)
        } else {
            Err(format!("`indptr` must ascend from 0 to the {all} entries of `data`, but does not").into())
        }
    }

    /// Row or column numbers, each below `bound`.
    fn numbers(&self, file: &mut File, range: Range<u64>, bound: usize) -> Result<Vec<u32>, Fault> {
        let bytes = file.rows(&self.indices, range)?;
        let keep = |x: u64| u32::try_from(x).ok().filter(|x| (*x as usize) < bound);
        let numbers = self.index.decode_indices(&bytes, keep);
        numbers.ok_or_else(|| {
            format!("`indices` holds something else than numbers from 0 to below {bound}").into()
        })
    }
}

/// The type of an array of numbers.
fn number(array: &Array, what: &str) -> Result<Element, Fault> {
    match &array.datatype {
        Datatype::Number(element) => Ok(*element),
        truth @ Datatype::Enumeration { element, .. } if truth.is_truth() => Ok(*element),
        _ => Err(format!(
            "`{what}` does not hold numbers of a type that is read: whole numbers, f32 and f64 are"
        )
        .into()),
    }
}

/// Whether a group holds compressed rows or columns.
fn order(file: &mut File, object: &Object) -> Result<Order, Fault> {
    for name in ["encoding-type", "h5sparse_format"] {
        let Some(Value::Texts(texts)) = file.attribute(object, name)? else { continue };
        return match texts.first().map(String::as_str) {
            Some("csr_matrix" | "csr") => Ok(Order::Rows),
            Some("csc_matrix" | "csc") => Ok(Order::Columns),
            other => Err(format!(
                "it is stored as {:?}, which is no matrix that is read",
                other.unwrap_or_default()
            )
            .into()),
        };
    }
    Err("it is a group and does not say of what: a sparse matrix has the attribute `encoding-type`".into())
}

fn shape(file: &mut File, object: &Object) -> Result<(usize, usize), Fault> {
    for name in ["shape", "h5sparse_shape"] {
        let Some(Value::Wholes(shape)) = file.attribute(object, name)? else { continue };
        return match shape[..] {
            [n, d] if n <= MOST && d <= MOST => Ok((n as usize, d as usize)),
            _ => Err(format!("its shape {shape:?} is none of a matrix that is read").into()),
        };
    }
    Err("a sparse matrix does not tell its shape".into())
}
