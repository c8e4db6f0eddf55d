//! The data folders that `data.py` writes: `shape` (n, d, dense or sparse, prepared or raw) and raw little-endian arrays.

use std::path::Path;

use crate::Failure;

/// Rows one after the other.
pub struct Dense {
    pub n: usize,
    pub d: usize,
    pub values: Vec<f32>,
    /// The columns still have to be centred and divided by their standard deviations.
    pub raw: bool,
}

/// Compressed rows.
pub struct Sparse {
    pub n: usize,
    pub d: usize,
    pub starts: Vec<u64>,
    pub columns: Vec<u32>,
    pub values: Vec<f32>,
}

pub enum Data {
    Dense(Dense),
    Sparse(Sparse),
}

impl Data {
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let shape = std::fs::read_to_string(folder.join("shape"))?;
        let [n, d, kind, state] = shape.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(
                format!("{}: four words expected in `shape`, found {shape:?}", folder.display()).into()
            );
        };
        let (n, d) = (n.parse()?, d.parse()?);
        let values = array(&folder.join("values"), f32::from_le_bytes)?;
        if kind == "dense" {
            return Ok(Self::Dense(Dense { n, d, values, raw: state == "raw" }));
        }
        let starts = array(&folder.join("starts"), u64::from_le_bytes)?;
        let columns = array(&folder.join("columns"), u32::from_le_bytes)?;
        Ok(Self::Sparse(Sparse { n, d, starts, columns, values }))
    }
}

impl Dense {
    /// Centred columns of variance 1 (constant ones become 0), as scikit-learn's `StandardScaler` makes them.
    pub fn standardised(&self) -> Vec<f32> {
        let mut mean = vec![0.0; self.d];
        for row in self.values.chunks_exact(self.d) {
            mean.iter_mut().zip(row).for_each(|(m, &x)| *m += f64::from(x));
        }
        mean.iter_mut().for_each(|m| *m /= self.n as f64);
        let mut variance = vec![0.0; self.d];
        for row in self.values.chunks_exact(self.d) {
            for ((v, m), &x) in variance.iter_mut().zip(&mean).zip(row) {
                *v += (f64::from(x) - m).powi(2);
            }
        }
        let factor: Vec<f64> =
            variance.iter().map(|&v| if v > 0.0 { (self.n as f64 / v).sqrt() } else { 1.0 }).collect();
        let standardised = |(j, &x): (usize, &f32)| ((f64::from(x) - mean[j]) * factor[j]) as f32;
        self.values.chunks_exact(self.d).flat_map(|row| row.iter().enumerate().map(standardised)).collect()
    }
}

fn array<const SIZE: usize, T>(path: &Path, number: fn([u8; SIZE]) -> T) -> Result<Vec<T>, Failure> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (chunks, rest) = bytes.as_chunks::<SIZE>();
    if !rest.is_empty() {
        return Err(format!("{}: {} bytes are no multiple of {SIZE}", path.display(), bytes.len()).into());
    }
    Ok(chunks.iter().map(|&chunk| number(chunk)).collect())
}
