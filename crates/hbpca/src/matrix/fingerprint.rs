//! Telling data apart: a hash of shape, storage and every value.

use std::hash::Hasher;

use rayon::prelude::*;
use twox_hash::XxHash3_64;

use super::{Csr, Dense, Matrix, Real, RowChunks};
use crate::{Block, Error};

/// Rows hashed by one thread at a time.
const ROWS: usize = 1024;

impl Matrix<'_> {
    /// A text that differs where the shape, the storage, a value or a weight does, but for a chance of 2⁻⁶⁴: XXH3 of every
    /// run of 1024 rows, and of those hashes. One pass at the speed of memory.
    pub fn fingerprint(&self, weights: Option<&[f64]>) -> String {
        let (kind, hash) = match self {
            Self::DenseF32(x) => ("dense f32", of_dense(x)),
            Self::DenseF64(x) => ("dense f64", of_dense(x)),
            Self::CsrF32(x) => ("sparse f32", of_csr(x)),
            Self::CsrF64(x) => ("sparse f64", of_csr(x)),
        };
        let mut text = format!("{} × {} {kind} {hash:016x}", self.n_rows(), self.n_cols());
        text += &of_weights(weights);
        text
    }

    /// XXH3 of the bits of every value, and of the places of compressed ones, on this thread: what passes over rows on disk compare of each chunk.
    pub fn hash_of_bits(&self) -> u64 {
        hash_of_bits(self)
    }
}

pub(super) fn of_weights(weights: Option<&[f64]>) -> String {
    weights
        .map_or_else(String::new, |weights| format!(" weighted {:016x}", of_numbers(weights.iter().copied())))
}

/// A hash of the bits of every value, and of the places of compressed ones: cheap enough for every pass over rows on disk.
pub(crate) fn hash_of_bits(rows: &Matrix<'_>) -> u64 {
    let mut hasher = XxHash3_64::with_seed(0);
    match rows {
        Matrix::DenseF32(x) => {
            (0..x.n_rows()).for_each(|l| write_words(&mut hasher, x.row(l), f32::to_le_bytes));
        }
        Matrix::DenseF64(x) => {
            (0..x.n_rows()).for_each(|l| write_words(&mut hasher, x.row(l), f64::to_le_bytes));
        }
        Matrix::CsrF32(x) => {
            write_places(&mut hasher, x.row_starts(), x.columns());
            write_words(&mut hasher, x.values(), f32::to_le_bytes);
        }
        Matrix::CsrF64(x) => {
            write_places(&mut hasher, x.row_starts(), x.columns());
            write_words(&mut hasher, x.values(), f64::to_le_bytes);
        }
    }
    hasher.finish()
}

fn write_places(hasher: &mut XxHash3_64, starts: &[usize], columns: &[u32]) {
    write_words(hasher, starts, |start| (start as u64).to_le_bytes());
    write_words(hasher, columns, u32::to_le_bytes);
}

/// The bytes of numbers, a buffer at a time.
fn write_words<T: Copy, const B: usize>(hasher: &mut XxHash3_64, values: &[T], bytes: impl Fn(T) -> [u8; B]) {
    let mut buffer = [0_u8; 4096];
    for values in values.chunks(buffer.len() / B) {
        let (words, _) = buffer.as_chunks_mut::<B>();
        words.iter_mut().zip(values).for_each(|(word, value)| *word = bytes(*value));
        hasher.write(&buffer[..values.len() * B]);
    }
}

/// The same for a block of vectors.
pub(crate) fn fingerprint_of_block(block: &Block) -> String {
    format!("{} × {} {:016x}", block.d(), block.p(), of_numbers(block.values().iter().copied()))
}

/// The same for rows on disk: of the shape, of how they are cut into chunks, of short runs of rows all over the data, and of the weights.
pub(crate) fn fingerprint_of_chunks(
    rows: &mut impl RowChunks,
    weights: Option<&[f64]>,
) -> Result<String, Error> {
    /// Runs that are read, and rows in each.
    const RUNS: usize = 64;
    const LENGTH: usize = 4;
    let (n, d, nnz) = (rows.n_rows(), rows.n_cols(), rows.nnz());
    let cuts = of_numbers(rows.starts().iter().map(|start| *start as f64));
    let mut all = XxHash3_64::with_seed(0);
    for i in 0..RUNS.min(n) {
        // The first run begins with the first row, the last ends with the last.
        let start =
            (n.saturating_sub(LENGTH) as u128 * i as u128 / (RUNS.min(n) as u128 - 1).max(1)) as usize;
        let run = rows.read_rows(start..n.min(start + LENGTH))?;
        all.write(run.fingerprint(None).as_bytes());
    }
    let (sampled, weighted) = (all.finish(), of_weights(weights));
    Ok(format!("{n} × {d} on disk, {nnz} entries, cut {cuts:016x}, sampled {sampled:016x}{weighted}"))
}

fn of_dense<T: Real>(x: &Dense<'_, T>) -> u64 {
    of_rows(x.n_rows(), |rows| of_numbers(rows.flat_map(|l| x.row(l)).map(|x| x.to_f64())))
}

fn of_csr<T: Real>(x: &Csr<'_, T>) -> u64 {
    of_rows(x.n_rows(), |rows| {
        // Rows are told apart by their lengths.
        let row = |l: usize| {
            let (columns, values) = x.row_slices(l);
            let entries = columns.iter().zip(values).flat_map(|(j, x)| [f64::from(*j), x.to_f64()]);
            std::iter::once(columns.len() as f64).chain(entries)
        };
        of_numbers(rows.flat_map(row))
    })
}

fn of_rows(n: usize, hash: impl Fn(std::ops::Range<usize>) -> u64 + Sync) -> u64 {
    let chunks = (0..n.div_ceil(ROWS)).into_par_iter();
    let hashes: Vec<u64> = chunks.map(|i| hash(i * ROWS..n.min((i + 1) * ROWS))).collect();
    let mut all = XxHash3_64::with_seed(0);
    hashes.iter().for_each(|hash| all.write(&hash.to_le_bytes()));
    all.finish()
}

fn of_numbers(values: impl Iterator<Item = f64>) -> u64 {
    let mut hasher = XxHash3_64::with_seed(0);
    let mut buffer = [0_u8; 4096];
    let mut used = 0;
    for value in values {
        buffer[used..used + 8].copy_from_slice(&value.to_le_bytes());
        used += 8;
        if used == buffer.len() {
            hasher.write(&buffer);
            used = 0;
        }
    }
    hasher.write(&buffer[..used]);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(values: Vec<f64>, n: usize) -> Matrix<'static> {
        let d = values.len() / n;
        Dense::new(values, n, d).unwrap().into()
    }

    #[test]
    fn every_bit_of_a_chunk_tells() {
        let values: Vec<f64> = (0..3000).map(f64::from).collect();
        let print = hash_of_bits(&dense(values.clone(), 1500));
        for at in [0, 511, 512, 1024, 2999] {
            let mut changed = values.clone();
            changed[at] = f64::from_bits(changed[at].to_bits() ^ 1);
            assert_ne!(hash_of_bits(&dense(changed, 1500)), print, "value {at}");
        }
        let mut seen: Vec<u64> =
            [(vec![0, 1, 2], vec![0, 1]), (vec![0, 0, 2], vec![0, 1]), (vec![0, 1, 2], vec![0, 2])]
                .map(|(starts, columns)| Csr::new(3, starts, columns, vec![1.0_f32, 2.0]).unwrap().into())
                .iter()
                .map(hash_of_bits)
                .collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn every_value_the_shape_the_storage_and_weights_tell_data_apart() {
        let values: Vec<f64> = (0..6000).map(f64::from).collect();
        let original = dense(values.clone(), 3000);
        let print = original.fingerprint(None);
        assert_eq!(print, dense(values.clone(), 3000).fingerprint(None));
        let mut seen = vec![print, dense(values.clone(), 2000).fingerprint(None)];
        for at in [0, 1, 2047, 2048, 5999] {
            let mut values = values.clone();
            values[at] = -values[at] - 1.0;
            seen.push(dense(values, 3000).fingerprint(None));
        }
        let narrow: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        seen.push(Matrix::from(Dense::new(narrow, 3000, 2).unwrap()).fingerprint(None));
        for weights in [vec![1.0; 3000], vec![2.0; 3000]] {
            seen.push(original.fingerprint(Some(&weights)));
        }
        for starts in [vec![0, 1, 2], vec![0, 0, 2], vec![0, 2, 2]] {
            seen.push(
                Matrix::from(Csr::new(2, starts, vec![0, 1], vec![1.0, 2.0]).unwrap()).fingerprint(None),
            );
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
