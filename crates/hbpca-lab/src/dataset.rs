//! Data sets on disk: found, checked against their checksums, read, and for quick runs thinned.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hbpca::{Csr, Dense, Matrix, Preprocessing, Real, Replacement, Sampler};
use hbpca_io::{ColumnRef, Input, ReadOptions};
use sha2::{Digest, Sha256};

use crate::LabError;
use crate::experiment::{DatasetSpec, GeneratedSpec};

/// A matrix with all that tells it apart from others.
#[derive(Debug)]
pub struct Dataset {
    /// Short name, used in file names.
    pub id: String,
    /// Name on figures.
    pub title: String,
    /// The rows.
    pub matrix: Matrix<'static>,
    /// What is done to them.
    pub preprocessing: Preprocessing,
    /// Checksum of the files and of the thinning.
    pub fingerprint: String,
    /// Rows of the files, where only some are used.
    pub thinned_from: Option<usize>,
    /// Budget of a race.
    pub passes: f64,
}

impl Dataset {
    /// The files of `spec` that are not in `folder`.
    pub fn missing_files(spec: &DatasetSpec, folder: &Path) -> Vec<PathBuf> {
        spec.files.iter().map(|file| folder.join(file)).filter(|path| !path.is_file()).collect()
    }

    /// Reads the files of `spec` in `folder`; keeps at most `most_rows` of them.
    pub fn load(spec: &DatasetSpec, folder: &Path, most_rows: Option<usize>) -> Result<Self, LabError> {
        let preprocessing = spec.preprocessing.preprocessing();
        if let Some(generated) = spec.generated {
            let (matrix, sum) = (normal_rows(generated)?, format!("{generated:?}"));
            return Self::new(&spec.id, &spec.title, matrix, preprocessing, &sum, most_rows, spec.passes);
        }
        let paths: Vec<PathBuf> = spec.files.iter().map(|file| folder.join(file)).collect();
        let mut sums = Vec::new();
        for (i, path) in paths.iter().enumerate() {
            let found = sha256(path)?;
            if let Some(expected) = spec.sha256.get(i).filter(|expected| **expected != found) {
                let (file, expected) = (path.display().to_string(), expected.clone());
                return Err(LabError::Checksum { file, expected, found });
            }
            sums.push(found);
        }
        let options = ReadOptions {
            label_column: spec.label_column.as_deref().map(ColumnRef::parse),
            ..ReadOptions::default()
        };
        let data = hbpca_io::read(Input::paths(paths), &options)?;
        Self::new(&spec.id, &spec.title, data.matrix, preprocessing, &sums.join("+"), most_rows, spec.passes)
    }

    /// A data set from a matrix; `checksum` stands for its content.
    pub fn new(
        id: &str,
        title: &str,
        matrix: Matrix<'static>,
        preprocessing: Preprocessing,
        checksum: &str,
        most_rows: Option<usize>,
        passes: f64,
    ) -> Result<Self, LabError> {
        let n = matrix.n_rows();
        let (matrix, thinned_from) = match most_rows.filter(|&rows| rows < n) {
            Some(rows) => (thin(&matrix, rows)?, Some(n)),
            None => (matrix, None),
        };
        let whole = format!("{checksum}|{}×{}|{preprocessing:?}", matrix.n_rows(), matrix.n_cols());
        let fingerprint = hex(&Sha256::digest(whole.as_bytes()));
        Ok(Self {
            id: id.into(),
            title: title.into(),
            matrix,
            preprocessing,
            fingerprint,
            thinned_from,
            passes,
        })
    }

    /// Share of the entries that are not zero.
    pub fn density(&self) -> f64 {
        let mut nonzero = 0_usize;
        for row in 0..self.matrix.n_rows() {
            self.matrix.for_each_in_row(row, |_, value| nonzero += usize::from(value != 0.0));
        }
        nonzero as f64 / (self.matrix.n_rows() as f64 * self.matrix.n_cols() as f64)
    }
}

/// Independent normal columns whose variances are 1, ρ, ρ/2, ρ/3, …
fn normal_rows(spec: GeneratedSpec) -> Result<Matrix<'static>, LabError> {
    let GeneratedSpec { n, d, ratio, seed } = spec;
    let mut state = seed;
    // SplitMix64 (Steele, Lea & Flood 2014), in (0, 1).
    let mut uniform = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON / 4.0
    };
    // Box & Muller.
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let deviation = |j: usize| if j == 0 { 1.0 } else { (ratio / j as f64).sqrt() };
    let values: Vec<f32> = (0..n * d).map(|i| (normal() * deviation(i % d)) as f32).collect();
    Ok(Dense::new(values, n, d)?.into())
}

/// The sha256 of a file, in hexadecimal digits.
pub fn sha256(path: &Path) -> Result<String, LabError> {
    let mut file = File::open(path).map_err(LabError::io(path))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(&digest.finalize())),
            Ok(read) => digest.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(LabError::io(path)(error)),
        }
    }
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// `rows` rows, drawn without replacement, in their order.
fn thin(matrix: &Matrix<'_>, rows: usize) -> Result<Matrix<'static>, LabError> {
    let chosen = Sampler::new(matrix.n_rows(), rows, Replacement::Without, 0)?.draw().to_vec();
    Ok(match matrix {
        Matrix::DenseF32(x) => thin_dense(x, &chosen)?.into(),
        Matrix::DenseF64(x) => thin_dense(x, &chosen)?.into(),
        Matrix::CsrF32(x) => thin_csr(x, &chosen)?.into(),
        Matrix::CsrF64(x) => thin_csr(x, &chosen)?.into(),
    })
}

fn thin_dense<T: Real>(x: &Dense<'_, T>, rows: &[usize]) -> Result<Dense<'static, T>, hbpca::Error> {
    let values = rows.iter().flat_map(|&row| x.row(row).iter().copied()).collect();
    Dense::new(values, rows.len(), x.n_cols())
}

fn thin_csr<T: Real>(x: &Csr<'_, T>, rows: &[usize]) -> Result<Csr<'static, T>, hbpca::Error> {
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for &row in rows {
        let (row_columns, row_values) = x.row_slices(row);
        columns.extend_from_slice(row_columns);
        values.extend_from_slice(row_values);
        starts.push(columns.len());
    }
    Csr::new(x.n_cols(), starts, columns, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&path).unwrap(), expected);
        assert!(sha256(&folder.path().join("none")).unwrap_err().to_string().contains("none"));
    }

    #[test]
    fn generated_rows_have_the_ratio_they_are_asked_for() {
        let spec = GeneratedSpec { n: 40_000, d: 5, ratio: 0.6776, seed: 3 };
        let matrix = normal_rows(spec).unwrap();
        let variances = hbpca::ColumnStatistics::new(&matrix).unwrap().variance();
        // A variance of n normal numbers scatters by √(2/n) of itself.
        for (variance, want) in variances.iter().zip([1.0, 0.6776, 0.3388, 0.6776 / 3.0, 0.1694]) {
            assert!((variance / want - 1.0).abs() < 5.0 * (2.0_f64 / 40_000.0).sqrt(), "{variance} {want}");
        }
    }

    #[test]
    fn thinned_rows_are_rows_of_the_matrix_dense_or_compressed() {
        let values: Vec<f64> = (0..60).map(|i| f64::from(i % 7 * (i % 3))).collect();
        let dense: Matrix<'static> = Dense::new(values.clone(), 20, 3).unwrap().into();
        let (mut starts, mut columns, mut kept) = (vec![0], Vec::new(), Vec::new());
        for row in values.chunks(3) {
            for (j, x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                columns.push(j as u32);
                kept.push(*x);
            }
            starts.push(columns.len());
        }
        let compressed: Matrix<'static> = Csr::new(3, starts, columns, kept).unwrap().into();
        let rows = |matrix: &Matrix<'_>| -> Vec<Vec<f64>> {
            (0..matrix.n_rows())
                .map(|l| {
                    let mut row = vec![0.0; 3];
                    matrix.for_each_in_row(l, |j, x| row[j] = x);
                    row
                })
                .collect()
        };
        let (a, b) = (rows(&thin(&dense, 5).unwrap()), rows(&thin(&compressed, 5).unwrap()));
        assert_eq!(a, b);
        assert!(a.len() == 5 && a.iter().all(|row| values.chunks(3).any(|x| x == row)));
    }

    #[test]
    fn fingerprints_tell_thinnings_and_preprocessings_apart() {
        let data = |rows, preprocessing| {
            let matrix = Dense::new(vec![1.0; 40], 20, 2).unwrap().into();
            Dataset::new("a", "A", matrix, preprocessing, "sum", rows, 5.0).unwrap()
        };
        let (whole, thinned) = (data(None, Preprocessing::NONE), data(Some(10), Preprocessing::NONE));
        let scaled = data(None, Preprocessing::STANDARDIZE);
        assert!(whole.fingerprint != thinned.fingerprint && whole.fingerprint != scaled.fingerprint);
        assert_eq!((whole.thinned_from, thinned.thinned_from), (None, Some(20)));
        assert_eq!(data(Some(50), Preprocessing::NONE).fingerprint, whole.fingerprint);
    }
}
