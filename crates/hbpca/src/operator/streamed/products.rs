//! What solvers see of rows on disk.

use super::{Columns, GatheredStatistics, MOST_MERGES, Prepared, Streamed};
use crate::columns::RowMap;
use crate::operator::forming::form::{ChunkByChunk, additions, mirror, scale_both_sides};
use crate::operator::in_memory::{single_rounding, single_rounding_of_compressed};
use crate::operator::products::sum::unscale;
use crate::operator::{
    Capabilities, CovarianceOperator, ExplicitCovariance, FirstPass, OperatorState, Precision,
    PrecisionChoice, Product, Products, Rows, Shape, reshape,
};
use crate::rounding::RoundingBound;
use crate::{Archive, Block, ColumnStatistics, Error};

impl Streamed<'_> {
    /// The lower triangle of `c` ← Σ(x − μ)(x − μ)ᵀ in one pass. Rows on disk are multiplied in double precision: reading them takes
    /// longer.
    pub(super) fn sum_squares(
        &mut self,
        about: &RowMap,
        statistics: Option<&mut GatheredStatistics>,
        c: &mut Block,
    ) -> Result<(), Error> {
        let (d, cancel) = (self.dim(), self.cancel());
        *c = Block::zeros(d, d);
        let mut sums = ChunkByChunk::default();
        self.full_pass(statistics, |rows, weights, work| {
            work.additions[0] = work.additions[0].max(additions(rows.n_rows(), 1) + 6);
            sums.add(&Prepared { matrix: rows, map: about, vanishing: &[], weights, cancel: &cancel }, c);
        })
    }

    /// How far images in single precision are off, where there are such products and the columns are known. Compressed rows count the additions of the
    /// passes so far.
    fn rounding_in_single(&self) -> Option<RoundingBound> {
        let (map, _) = self.columns().filter(|_| self.single)?;
        let n = self.n_rows();
        let bound = if self.reader.source.is_sparse() {
            single_rounding_of_compressed(map, n, self.work.additions[1] + self.n_chunks())
        } else {
            single_rounding(map, n, self.dim())
        };
        bound.map(|bound| RoundingBound::new(bound + map.blur() + self.moved))
    }
}

impl CovarianceOperator for Streamed<'_> {
    fn shape(&self) -> Shape {
        Shape { n: self.reader.source.n_rows(), d: self.reader.source.n_cols() }
    }

    fn total_variance(&self) -> f64 {
        match &self.columns {
            Columns::Unknown => f64::NAN,
            Columns::Guessed(map) | Columns::Known { map, .. } => map.total_variance(),
        }
    }

    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let Product { rows, precision, v } = product;
        if v.p() == 0 {
            reshape(out, self.dim(), 0);
            return Ok(RoundingBound::default());
        }
        let (rounding, map) = match rows {
            Rows::All => {
                let map = self.known_map()?;
                let wanted = self.precision.resolve(precision) == Precision::Single;
                let single = wanted && self.rounding_in_single().is_some();
                let precision = if single { Precision::Single } else { Precision::Double };
                self.sum_all(&map, v, precision, None, out)?;
                let in_single = self.rounding_in_single().filter(|_| single);
                (in_single.unwrap_or_else(|| self.known_rounding(&map, 1)), map)
            }
            Rows::Batch(batch) => {
                let map = self.best_map()?;
                self.sum_batch(&map, batch, v, out)?;
                (self.known_rounding(&map, 1), map)
            }
        };
        unscale(&map, v.p(), out.values_mut());
        Ok(rounding)
    }

    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        Some(self)
    }
}

impl Capabilities for Streamed<'_> {
    fn single_precision(&mut self) -> bool {
        self.precision == PrecisionChoice::Auto && self.rounding_in_single().is_some()
    }

    fn resident_rows(&mut self) -> Option<&[usize]> {
        Some(self.pool.rows())
    }

    fn first_pass(&mut self) -> Option<&mut dyn FirstPass> {
        matches!(self.columns, Columns::Guessed(_)).then_some(self as _)
    }

    fn explicit_covariance(&mut self) -> Option<&mut dyn ExplicitCovariance> {
        Some(self)
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        Some(self)
    }
}

impl FirstPass for Streamed<'_> {
    fn first_image(&mut self, x: &mut Block, z: &mut Block) -> Result<RoundingBound, Error> {
        match &self.columns {
            Columns::Guessed(guess) if x.p() > 0 => {
                let guess = guess.clone();
                self.fold_image(&guess, x, z)
            }
            _ => self.apply(x, z),
        }
    }
}

impl OperatorState for Streamed<'_> {
    /// The pool is a matter of the seed and the number of passes: it is read again, not stored.
    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        let known = self.columns().map(|(_, statistics)| statistics.clone());
        let mut statistics = known.unwrap_or_else(|| ColumnStatistics::empty(self.dim()));
        archive.part("statistics", |archive| statistics.archive(archive))?;
        archive.check("statistics", statistics.n_rows() == self.n_rows(), "is of another number of rows")?;
        archive.flag("single", &mut self.single)?;
        archive.count("passes", &mut self.passes)?;
        archive.count("statistics_passes", &mut self.statistics_passes)?;
        archive.check("passes", self.passes > 0, "is zero")?;
        let version = self.reader.source.version();
        let mut halves: Vec<f64> =
            version.map_or_else(Vec::new, |time| vec![(time >> 32) as f64, (time & 0xffff_ffff) as f64]);
        let here = halves.clone();
        if archive.has("hashes") {
            self.reader.hashes.archive(archive)?;
            archive.list("version", &mut halves)?;
        }
        if archive.is_restoring() {
            self.know(statistics);
            self.fill_pool_again(halves.is_empty() || halves != here)?;
        }
        Ok(())
    }
}

impl ExplicitCovariance for Streamed<'_> {
    fn covariance(&mut self, _precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        let n = self.n_rows();
        let guessed = match &self.columns {
            Columns::Guessed(map) => Some(map.without_scale()),
            _ => None,
        };
        let about = match &guessed {
            Some(guess) => guess.clone(),
            None => self.known_map()?.without_scale(),
        };
        let mut gathered = guessed.as_ref().map(|_| self.gathering());
        self.sum_squares(&about, gathered.as_mut(), c)?;
        mirror(c, 1.0 / n as f64);
        let folded = match gathered {
            None => None,
            Some(gathered) => {
                self.know(gathered.finish()?);
                Some(self.fold_formed(&about, c))
            }
        };
        let map = self.known_map()?;
        scale_both_sides(&map, c);
        Ok(folded.unwrap_or_else(|| self.known_rounding(&map, MOST_MERGES)))
    }
}
