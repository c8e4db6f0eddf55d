//! Genotypes as rows of dosages, for whatever reads rows.

use std::path::Path;

use hbpca::ColumnStatistics;

use super::BedFile;
use crate::block::{RowBlock, Values};
use crate::source::{RowSource, Stated};
use crate::{ByteSize, MissingFields, ReadError, machine_memory};

/// Numbers decoded at a time.
const BLOCK: usize = 1 << 18;

/// The samples of a `.bed`, decoded some at a time.
pub(crate) struct BedSource {
    file: BedFile,
    /// What takes the place of missing genotypes.
    mean: Vec<f64>,
    /// Whether all dosages are whole numbers, which f32 holds.
    whole: bool,
    finite: bool,
    next: usize,
}

impl BedSource {
    /// What is missing becomes the mean, or NaN.
    pub(crate) fn open(path: &Path, missing: MissingFields) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        let file = BedFile::read(path)?;
        let source = Self::of(file, &name, missing)?;
        let genotypes = &source.file.genotypes;
        let (n, d) = (genotypes.n_rows() as u64, genotypes.n_cols() as u64);
        let needed = n.saturating_mul(d).saturating_mul(if source.whole { 4 } else { 8 });
        if machine_memory().is_some_and(|memory| needed > memory) {
            let message = format!(
                "as numbers its {n} samples × {d} variants take {}, more than there is memory; fit and transform read it packed",
                ByteSize(needed)
            );
            return Err(ReadError::Memory { file: name, message });
        }
        Ok(source)
    }

    fn of(file: BedFile, name: &str, missing: MissingFields) -> Result<Self, ReadError> {
        let genotypes = &file.genotypes;
        let refused = |error: hbpca::Error| ReadError::malformed(name, error.to_string());
        let whole = genotypes.missing().map_err(refused)?.entries == 0;
        let mean = if missing == MissingFields::Nan {
            // A variant that nobody was typed for counts for nothing, and is no hole.
            let counts = genotypes.counts().map_err(refused)?;
            counts.into_iter().map(|counts| if counts.known() > 0 { f64::NAN } else { 0.0 }).collect()
        } else {
            ColumnStatistics::of_genotypes(genotypes).map_err(refused)?.mean().to_vec()
        };
        Ok(Self { whole, finite: whole || missing != MissingFields::Nan, mean, file, next: 0 })
    }
}

impl RowSource for BedSource {
    fn stated(&self) -> Stated {
        Stated {
            n_columns: Some(self.file.genotypes.n_cols()),
            column_names: Some(self.file.column_names()),
            finite: self.finite,
            ..Stated::default()
        }
    }

    fn next_blocks(&mut self) -> Result<Vec<RowBlock>, ReadError> {
        let (n, d) = (self.file.genotypes.n_rows(), self.file.genotypes.n_cols());
        let samples = self.next..n.min(self.next + (BLOCK / d).max(1));
        if samples.is_empty() {
            return Ok(Vec::new());
        }
        self.next = samples.end;
        let values = self.file.genotypes.dosages(samples, &self.mean);
        let values = values.map_err(|error| ReadError::malformed("the .bed", error.to_string()))?;
        let values = if self.whole {
            Values::F32(values.into_iter().map(|x| x as f32).collect())
        } else {
            Values::F64(values)
        };
        Ok(vec![RowBlock::dense(d, values)])
    }
}
