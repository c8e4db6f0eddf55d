//! Claims of binary files checked against their bytes, and rows of numbers as bytes.

use std::io::Read;

use hbpca::Matrix;

use crate::sink::for_each_dense;
use crate::{ReadError, WriteError};

/// Exactly `n` bytes. Memory grows with the bytes that are there, not with the claim.
pub(crate) fn read_claimed(reader: &mut dyn Read, n: usize, name: &str) -> Result<Vec<u8>, ReadError> {
    const AT_FIRST: usize = 4 << 20;
    let mut bytes = Vec::with_capacity(n.min(AT_FIRST));
    reader.take(n as u64).read_to_end(&mut bytes).map_err(|source| ReadError::io(name, source))?;
    if bytes.len() == n {
        Ok(bytes)
    } else {
        Err(ReadError::io(name, std::io::ErrorKind::UnexpectedEof.into()))
    }
}

/// Refuses more rows than a file of `bytes` bytes can mean: empty rows cost nothing in a sparse file, but
/// each takes memory, so a few bytes must not claim billions of them.
pub(crate) fn refuse_absurd_rows(n_rows: usize, bytes: u64, name: &str) -> Result<(), ReadError> {
    let bound = (1_u64 << 20).saturating_add(bytes.saturating_mul(16));
    if n_rows as u64 <= bound {
        return Ok(());
    }
    Err(ReadError::malformed(
        name,
        format!(
            "{n_rows} rows are claimed by a file of {bytes} bytes, for which at most {bound} are believed"
        ),
    ))
}

/// Hands all rows, zeros included, to `write` as bytes made by `push`, some megabytes at a time.
pub(crate) fn write_dense(
    rows: &Matrix<'_>,
    push: impl Fn(&mut Vec<u8>, f64),
    mut write: impl FnMut(&[u8]) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    const BLOCK: usize = 1 << 20;
    let mut bytes = Vec::with_capacity(BLOCK + 64);
    for l in 0..rows.n_rows() {
        for_each_dense(rows, l, |value| push(&mut bytes, value));
        if bytes.len() >= BLOCK {
            write(&bytes)?;
            bytes.clear();
        }
    }
    write(&bytes)
}
