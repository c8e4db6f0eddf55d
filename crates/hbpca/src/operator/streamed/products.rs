//! What solvers see of rows on disk.

use super::{Arithmetic, Columns, GatheredStatistics, MOST_MERGES, Prepared, Streamed};
use crate::operator::form::{PieceByPiece, mirror, scale_both_sides};
use crate::operator::fused::{coarse_rounding, reshape};
use crate::operator::sum::unscale;
use crate::operator::{CovarianceOperator, Rows};
use crate::{Archive, Block, ColumnStatistics, Error};

impl CovarianceOperator for Streamed<'_> {
    fn dim(&self) -> usize {
        self.reader.source.n_cols()
    }

    fn n_rows(&self) -> usize {
        self.reader.source.n_rows()
    }

    fn total_variance(&self) -> f64 {
        match &self.columns {
            Columns::Unknown => f64::NAN,
            Columns::Guessed(map) | Columns::Known { map, .. } => map.total_variance(),
        }
    }

    fn image_rounding(&self) -> f64 {
        if self.rounding.is_nan() { self.known_rounding(1) } else { self.rounding }
    }

    fn rows_at_hand(&self) -> Option<&[usize]> {
        Some(self.pool.rows())
    }

    fn sum_rows(&mut self, rows: Rows<'_>, v: &Block, out: &mut Block) -> Result<(), Error> {
        if v.p() == 0 {
            reshape(out, self.dim(), 0);
            return Ok(());
        }
        let map = match rows {
            Rows::All => {
                let map = self.known_map()?;
                self.sum_all(&map, v, Arithmetic::Double, None, out)?;
                self.rounding = self.known_rounding(1);
                map
            }
            Rows::Batch(batch) => {
                let map = self.best_map()?;
                self.sum_batch(&map, batch, v, out)?;
                map
            }
        };
        unscale(&map, v.p(), out.values_mut());
        Ok(())
    }

    fn first_image(&mut self, x: &mut Block, z: &mut Block) -> Result<(), Error> {
        match &self.columns {
            Columns::Guessed(guess) if x.p() > 0 => {
                let guess = guess.clone();
                self.fold_image(&guess, x, z)
            }
            _ => self.apply(x, z),
        }
    }

    fn coarse_rounding(&self) -> Option<f64> {
        let (map, _) = self.columns().filter(|_| self.single)?;
        coarse_rounding(map, self.n_rows(), self.dim())
    }

    fn apply_coarsely(&mut self, v: &Block, out: &mut Block) -> Result<(), Error> {
        let map = self.known_map()?;
        self.sum_all(&map, v, Arithmetic::Single, None, out)?;
        unscale(&map, v.p(), out.values_mut());
        out.scale(1.0 / self.n_rows() as f64);
        Ok(())
    }

    /// The pool is a matter of the seed and the number of passes: it is read again, not kept.
    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        let known = self.columns().map(|(_, statistics)| statistics.clone());
        let mut statistics = known.unwrap_or_else(|| ColumnStatistics::empty(self.dim()));
        archive.part("statistics", |archive| statistics.archive(archive))?;
        archive.check("statistics", statistics.n_rows() == self.n_rows(), "is of another number of rows")?;
        let mut rounding = Some(self.rounding).filter(|rounding| !rounding.is_nan());
        archive.optional("rounding", &mut rounding)?;
        archive.flag("single", &mut self.single)?;
        archive.count("passes", &mut self.passes)?;
        archive.count("statistics_passes", &mut self.statistics_passes)?;
        archive.check("passes", self.passes > 0, "is zero")?;
        if archive.is_restoring() {
            self.rounding = rounding.unwrap_or(f64::NAN);
            self.know(statistics);
            self.fill_pool_again()?;
        }
        Ok(())
    }

    fn passes_to_form(&self) -> u64 {
        1
    }

    fn form(&mut self, c: &mut Block) -> Result<f64, Error> {
        let (n, d) = (self.n_rows(), self.dim());
        let cancel = self.cancel();
        *c = Block::zeros(d, d);
        let mut sums = PieceByPiece::default();
        let guessed = match &self.columns {
            Columns::Guessed(map) => Some(map.without_scale()),
            _ => None,
        };
        let about = match &guessed {
            Some(guess) => guess.clone(),
            None => self.known_map()?.without_scale(),
        };
        let mut gathered = guessed.as_ref().map(|_| GatheredStatistics::of_columns(d));
        self.full_pass(gathered.as_mut(), |rows, _| {
            sums.add(
                &Prepared { matrix: rows, map: &about, vanishing: &[], weights: None, cancel: &cancel },
                c,
            );
        })?;
        drop(sums);
        mirror(c, 1.0 / n as f64);
        self.rounding = match gathered {
            None => self.known_rounding(MOST_MERGES),
            Some(gathered) => {
                self.know(gathered.finish()?);
                self.fold_formed(&about, c)
            }
        };
        let map = self.known_map()?;
        scale_both_sides(&map, c);
        Ok(self.image_rounding())
    }
}
