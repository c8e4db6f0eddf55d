//! The readers of the command line.

use std::path::PathBuf;

use hbpca::Matrix;
use hbpca_io::{
    ColumnRef, Encoding, Format, HeaderLine, Input, Labels, MissingFields, NumberStyle, Precision,
    ReadOptions,
};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Failure, Outcome};
use crate::pool::detach;

/// A column by number or by name.
#[derive(FromPyObject)]
pub enum Column {
    /// Its number; negative ones count from the end.
    Index(i64),
    /// Its name.
    Name(String),
}

impl From<Column> for ColumnRef {
    fn from(column: Column) -> Self {
        match column {
            Column::Index(index) => Self::Index(index),
            Column::Name(name) => Self::Name(name),
        }
    }
}

/// Reads a file or a folder of parts into a dict of arrays; the package makes a matrix of them.
#[pyfunction]
#[pyo3(signature = (path, *, format=None, label_column=None, columns=None, precision=None, n_columns=None, header=None, decimal='.', thousands=None, encoding=None, missing="error"))]
// One keyword for each option of the reader.
#[allow(clippy::too_many_arguments)]
pub fn read<'py>(
    py: Python<'py>,
    path: PathBuf,
    format: Option<&str>,
    label_column: Option<Column>,
    columns: Option<Vec<Column>>,
    precision: Option<&str>,
    n_columns: Option<usize>,
    header: Option<bool>,
    decimal: char,
    thousands: Option<char>,
    encoding: Option<&str>,
    missing: &str,
) -> Outcome<Bound<'py, PyDict>> {
    let options = ReadOptions {
        format: format.map(named_format).transpose()?,
        label_column: label_column.map(Into::into),
        columns: columns.map(|columns| columns.into_iter().map(Into::into).collect()),
        precision: match precision {
            None => Precision::Auto,
            Some("f32") => Precision::F32,
            Some("f64") => Precision::F64,
            Some(other) => {
                return Err(Failure::value(format!("precision = {other:?}: choose \"f32\" or \"f64\"")));
            }
        },
        n_columns,
        header: match header {
            None => HeaderLine::Detect,
            Some(true) => HeaderLine::Present,
            Some(false) => HeaderLine::Absent,
        },
        numbers: NumberStyle { decimal, thousands },
        encoding: encoding.map(named_encoding).transpose()?,
        missing: match missing {
            "error" => MissingFields::Refused,
            "nan" => MissingFields::Nan,
            other => return Err(Failure::value(format!("missing = {other:?}: choose \"error\" or \"nan\""))),
        },
        ..ReadOptions::default()
    };
    let data = detach(py, || hbpca_io::read(Input::path(path), &options))?;
    let dict = PyDict::new(py);
    dict.set_item("shape", (data.matrix.n_rows(), data.matrix.n_cols()))?;
    match data.matrix {
        Matrix::DenseF32(x) => dense(py, &dict, x)?,
        Matrix::DenseF64(x) => dense(py, &dict, x)?,
        Matrix::CsrF32(x) => sparse(py, &dict, x)?,
        Matrix::CsrF64(x) => sparse(py, &dict, x)?,
    }
    match data.labels {
        None => dict.set_item("labels", py.None())?,
        Some(Labels::Numbers(labels)) => dict.set_item("labels", PyArray1::from_vec(py, labels))?,
        Some(Labels::Texts(labels)) => dict.set_item("labels", labels)?,
    }
    dict.set_item("column_names", data.column_names)?;
    dict.set_item("notes", data.notes)?;
    Ok(dict)
}

fn named_encoding(name: &str) -> Outcome<Encoding> {
    Encoding::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Encoding::ALL.iter().map(|encoding| encoding.name()).collect();
        Failure::value(format!("encoding = {name:?}: choose one of {}", names.join(", ")))
    })
}

fn named_format(name: &str) -> Outcome<Format> {
    Format::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
        Failure::value(format!("format = {name:?}: choose one of {}", names.join(", ")))
    })
}

fn dense<T: hbpca::Real + numpy::Element>(
    py: Python<'_>,
    dict: &Bound<'_, PyDict>,
    x: hbpca::Dense<'static, T>,
) -> PyResult<()> {
    let shape = [x.n_rows(), x.n_cols()];
    dict.set_item("values", PyArray1::from_vec(py, x.into_values()).reshape(shape)?)
}

/// The three arrays of SciPy's compressed rows. Columns below 2³¹ keep their bits; the package narrows the row
/// starts where they allow.
// Vectors hold fewer than 2⁶³ entries.
#[allow(clippy::cast_possible_wrap)]
fn sparse<T: hbpca::Real + numpy::Element>(
    py: Python<'_>,
    dict: &Bound<'_, PyDict>,
    x: hbpca::Csr<'static, T>,
) -> PyResult<()> {
    let narrow = i32::try_from(x.n_cols()).is_ok();
    let (starts, columns, values) = x.into_parts();
    dict.set_item("values", PyArray1::from_vec(py, values))?;
    let starts: Vec<i64> = starts.into_iter().map(|start| start as i64).collect();
    dict.set_item("starts", PyArray1::from_vec(py, starts))?;
    if narrow {
        dict.set_item("columns", PyArray1::from_slice(py, bytemuck::cast_slice::<u32, i32>(&columns)))
    } else {
        let columns: Vec<i64> = columns.into_iter().map(i64::from).collect();
        dict.set_item("columns", PyArray1::from_vec(py, columns))
    }
}
