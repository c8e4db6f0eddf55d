//! What can go wrong, and what to do about it.
//!
//! An [`Error`] means bad input or a broken environment. A solver that does not converge is not an error:
//! it is an [`Outcome`](crate::Outcome) with numbers.

/// Bad input or a failing environment. Every message names the value, the bound it broke and a way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A matrix without rows or without columns.
    #[error("the matrix is empty ({n} rows × {d} columns): give at least one row and one column")]
    Empty {
        /// Rows given.
        n: usize,
        /// Columns given.
        d: usize,
    },
    /// The number of values does not fit the shape.
    #[error("{what}: {found} given where {expected} are needed")]
    Shape {
        /// What was counted.
        what: String,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A NaN or an infinity in the data.
    #[error(
        "row {row}, column {column} (counted from 0) holds {value}: every entry must be finite; {}",
        if value.is_nan() {
            "where values are missing, choose what becomes of them (missing: drop-rows, mean or em)"
        } else {
            "drop the row or replace the value first"
        }
    )]
    NotFinite {
        /// Row of the first offending entry.
        row: usize,
        /// Column of the first offending entry.
        column: usize,
        /// The entry.
        value: f64,
    },
    /// A column in which every value is missing.
    #[error(
        "every value of column {column} (counted from 0) is missing: there is nothing to fill it with; leave the column out"
    )]
    NothingInColumn {
        /// The column.
        column: usize,
    },
    /// Finite entries whose squares leave the range of f64.
    #[error(
        "column {column} (counted from 0) has entries near {magnitude:e}, whose squares overflow: \
         divide the column by a constant first"
    )]
    Overflow {
        /// The column.
        column: usize,
        /// Its largest magnitude.
        magnitude: f64,
    },
    /// Entries that differ by so little that the squares of their differences leave the range of f64.
    #[error(
        "the entries of column {column} (counted from 0) differ by no more than {range:e}, and the squares of such numbers underflow: \
         multiply the data by a constant first, or leave the column out"
    )]
    Underflow {
        /// The column.
        column: usize,
        /// Its largest less its smallest entry.
        range: f64,
    },
    /// A row that has no likelihood.
    #[error("row {row} of X holds NaN or inf, or entries too large to be squared")]
    Unbounded {
        /// The first such row.
        row: usize,
    },
    /// A covariance without an inverse.
    #[error(
        "the {k} components of {d} features leave no variance for some directions: the covariance is singular and has \
         neither an inverse nor a density; fit with a smaller k"
    )]
    Singular {
        /// Components.
        k: usize,
        /// Features.
        d: usize,
    },
    /// Compressed rows whose pointers or indices are not those of a matrix.
    #[error("malformed sparse rows: {0}")]
    Csr(String),
    /// A parameter outside its range.
    #[error("{name} = {value}: {advice}")]
    Parameter {
        /// The parameter, as users write it.
        name: &'static str,
        /// The value given.
        value: String,
        /// The bound, and the way out.
        advice: String,
    },
    /// Work that would take more memory than it may.
    #[error("not enough memory: {what} need {}, and {} are allowed; {advice}", human(*needed), human(*limit))]
    Memory {
        /// What needs it.
        what: String,
        /// Bytes needed, at most.
        needed: u64,
        /// Bytes that may be taken.
        limit: u64,
        /// The way out.
        advice: String,
    },
    /// A checkpoint of another run, other data or another version, or one that contradicts itself.
    #[error("the run cannot be resumed from this checkpoint: {0}")]
    Checkpoint(String),
    /// [`CancelToken::abandon`](crate::CancelToken::abandon) was called.
    #[error(
        "the run was abandoned in the middle of a pass: there is no result; cancel it instead to keep what it has"
    )]
    Abandoned,
    /// Another rank failed.
    #[error("rank {rank}: {message}")]
    Rank {
        /// The rank.
        rank: usize,
        /// Whether a [parameter](Error::Parameter) is at fault.
        of_parameter: bool,
        /// What it said.
        message: String,
    },
    /// Ranks that cannot reach each other, or do not belong together.
    #[error("the ranks cannot go on together: {0}")]
    Communication(String),
    /// An eigen-solve that did not converge, or threads that could not be started: no fault of the data.
    #[error("the computation failed: {0}")]
    Numerical(String),
    /// The storage or the network behind an operator failed.
    #[error("the data could not be read: {0}")]
    Source(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// A parameter outside its range; `advice` gives the bound and the way out.
    #[allow(clippy::needless_pass_by_value, reason = "callers hand over numbers and texts alike")]
    pub fn parameter(name: &'static str, value: impl ToString, advice: impl Into<String>) -> Self {
        Self::Parameter { name, value: value.to_string(), advice: advice.into() }
    }

    /// A count that does not fit.
    pub fn shape(what: impl Into<String>, expected: usize, found: usize) -> Self {
        Self::Shape { what: what.into(), expected, found }
    }
}

/// A number of bytes as people write it.
pub(crate) fn human(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}
