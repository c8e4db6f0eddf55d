//! C of all ranks' rows, as rank 0 sees it.

use std::sync::{Arc, OnceLock};

use super::command::Command;
use super::member::Status;
use super::{Member, ShardStatistics};
use crate::columns::{ColumnStatistics, Preprocessing, RowMap};
use crate::matrix::{Matrix, Replacement, Sampler};
use crate::operator::forming::form::{mirror, scale_both_sides};
use crate::operator::streamed::fold::{Fold, MOST_STRETCH};
use crate::operator::{
    Capabilities, CovarianceOperator, ExplicitCovariance, FirstPass, OperatorState, Precision, Product,
    Products, RowSample, Rows, Shape, reshape,
};
use crate::rounding::{RoundingBound, rounding_of_sum};
use crate::{Archive, Block, Error};

/// The covariance of all ranks' rows, on rank 0. Row numbers run over rank 0's rows first, then rank 1's, and so on.
pub(crate) struct Sharded<'a> {
    member: Member<'a>,
    preprocessing: Preprocessing,
    columns: Columns,
    sparse: bool,
    single: bool,
    on_disk: bool,
    /// Σw, where rows on disk have weights.
    weight: Option<f64>,
    /// The resident rows of all ranks, where others are on disk.
    resident: Vec<usize>,
    /// Rows of a sample that rank 0 has, where rows are in memory.
    sample: Option<RowSample>,
    passes: u64,
    statistics_passes: u64,
    /// The map and the rows' weight, for observers that wait for them.
    found: Arc<OnceLock<(RowMap, f64)>>,
}

enum Columns {
    Unknown,
    Guessed(RowMap),
    Known { statistics: ColumnStatistics, map: RowMap },
}

impl<'a> Sharded<'a> {
    /// Rank 0 among its ranks, whose rows are all in memory or all on disk. Nothing is known of the columns yet.
    pub(crate) fn new(member: Member<'a>, preprocessing: Preprocessing, sparse: bool, on_disk: bool) -> Self {
        Self {
            member,
            preprocessing,
            columns: Columns::Unknown,
            sparse,
            single: false,
            on_disk,
            weight: None,
            resident: Vec::new(),
            sample: None,
            passes: 0,
            statistics_passes: 0,
            found: Arc::default(),
        }
    }

    /// The same where rows on disk have weights that add up to `weight`.
    pub(crate) fn weighing(self, weight: Option<f64>) -> Self {
        Self { weight, ..self }
    }

    /// Guesses μ and D from about `rows` rows, until the first full pass.
    pub(crate) fn guess_columns(&mut self, rows: usize, seed: u64) -> Result<(), Error> {
        self.member.ask(Command::Guess { rows, seed }, &mut [])?;
        let sampled = self.member.guess(rows, seed)?;
        self.member.settle()?;
        if sampled.weight() <= 0.0 {
            return self.gather_columns(); // the sample weighs nothing
        }
        let sampled = sampled.about_zero(&[])?; // told so by every rank
        self.columns = Columns::Guessed(self.preprocessing.row_map(&sampled));
        self.tell(&ShardStatistics::Guessed(sampled))?;
        self.find_resident_rows()
    }

    /// One pass for the column statistics.
    pub(crate) fn gather_columns(&mut self) -> Result<(), Error> {
        self.member.ask(Command::Statistics, &mut [])?;
        let statistics = self.member.statistics()?;
        self.member.settle()?;
        self.statistics_passes += 1;
        self.passes += 1;
        self.know(self.of_all_rows(statistics)?)?;
        self.find_resident_rows()
    }

    /// Merged statistics, about zero and of the weight that the rows were given.
    fn of_all_rows(&self, merged: ColumnStatistics) -> Result<ColumnStatistics, Error> {
        let statistics = self.member.about_zero(merged)?;
        Ok(match self.weight {
            None => statistics,
            Some(weight) => statistics.weighing(weight),
        })
    }

    /// The statistics of all rows, found now or before.
    pub(crate) fn know(&mut self, statistics: ColumnStatistics) -> Result<(), Error> {
        let map = self.preprocessing.row_map(&statistics);
        self.found.get_or_init(|| (map.clone(), statistics.weight()));
        self.columns = Columns::Known { statistics: statistics.clone(), map };
        self.tell(&ShardStatistics::Known(statistics))
    }

    fn tell(&mut self, statistics: &ShardStatistics) -> Result<(), Error> {
        let (ShardStatistics::Guessed(numbers) | ShardStatistics::Known(numbers)) = statistics;
        let guessed = matches!(statistics, ShardStatistics::Guessed(_));
        self.member.ask(Command::Know { guessed }, &mut [&mut numbers.to_flat()])?;
        let status = self.member.know(statistics)?;
        self.member.settle()?;
        self.single = status.single && !guessed;
        Ok(())
    }

    fn find_resident_rows(&mut self) -> Result<(), Error> {
        if self.on_disk {
            self.member.ask(Command::Residents, &mut [])?;
            self.resident = self.member.resident_rows()?;
        }
        Ok(())
    }

    /// A hash of what every rank has read, in two numbers each.
    fn digests(&mut self) -> Result<Vec<f64>, Error> {
        self.member.ask(Command::Digests, &mut [])?;
        self.member.digests()
    }

    /// After a checkpoint's passes were read again: the same rows, or none.
    fn refuse_changed_rows(&mut self, before: &[f64]) -> Result<(), Error> {
        let now = self.digests()?;
        if now.len() != before.len() {
            let (before, now) = (before.len() / 2, now.len() / 2);
            return Err(Error::Checkpoint(format!(
                "it is of {before} ranks, and there are {now}: start as many as before, or begin anew"
            )));
        }
        match now.chunks(2).zip(before.chunks(2)).position(|(now, before)| now != before) {
            None => Ok(()),
            Some(rank) => Err(Error::Checkpoint(format!(
                "the rows of rank {rank} have changed since it was written: give the data it was made from, or begin anew"
            ))),
        }
    }

    /// The map of rows and their column statistics, once they are known.
    pub(crate) fn columns(&self) -> Option<(&RowMap, &ColumnStatistics)> {
        match &self.columns {
            Columns::Known { statistics, map } => Some((map, statistics)),
            Columns::Unknown | Columns::Guessed(_) => None,
        }
    }

    /// Where the map and the weight of the rows will be found after the first full pass.
    pub(crate) fn columns_when_found(&self) -> Arc<OnceLock<(RowMap, f64)>> {
        Arc::clone(&self.found)
    }

    /// Full passes made for column statistics alone.
    pub(crate) fn statistics_passes(&self) -> u64 {
        self.statistics_passes
    }

    /// Bytes that all ranks have read from disk.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.member.bytes_read()
    }

    /// The rows named, or the resident rows of all ranks where rows are on disk.
    pub(crate) fn sample(&mut self, named: &[usize]) -> Result<Option<Matrix<'static>>, Error> {
        let named = (!self.on_disk).then_some(named);
        let mut numbers: Vec<f64> = named.unwrap_or_default().iter().map(|row| *row as f64).collect();
        let command = Command::Rows { named: named.map(<[usize]>::len) };
        if named.is_some() {
            self.member.ask(command, &mut [&mut numbers])?;
        } else {
            self.member.ask(command, &mut [])?;
        }
        let rows = self.member.rows(named)?;
        self.member.settle()?;
        Ok(rows)
    }

    /// Fetches a sample of rows that mini-batches are drawn from: none of them takes a round then. Rows in memory without weights.
    pub(crate) fn keep_sample(&mut self, count: usize, seed: u64) -> Result<(), Error> {
        let mut sampler = Sampler::new(self.n_rows(), count, Replacement::Without, seed)?;
        let numbers = sampler.draw().to_vec();
        if let Some(rows) = self.sample(&numbers)? {
            self.sample = Some(RowSample::new(numbers, rows, self.map()?.clone())?);
        }
        Ok(())
    }

    /// The last thing to do: ends the fit on all ranks, as it ended here.
    pub(crate) fn end<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.member.end(result)
    }

    fn map(&self) -> Result<&RowMap, Error> {
        match &self.columns {
            Columns::Known { map, .. } => Ok(map),
            _ => Err(Error::Numerical("no pass was made: nothing is known of the columns".into())),
        }
    }

    /// Adding the ranks' sums rounds, and so do the multiplications that make sums of means and back.
    fn with_adding(&self, rounding: RoundingBound) -> RoundingBound {
        rounding.with_sums(rounding_of_sum(self.member.n_shards() + 2), self.total_variance())
    }

    /// A bound for a pass about guessed means.
    fn rounding_of_fold(&self, status: Status, moment: f64) -> RoundingBound {
        self.with_adding(RoundingBound::of_sums(rounding_of_sum(status.additions), moment))
    }

    fn guess(&self) -> Option<RowMap> {
        match &self.columns {
            Columns::Guessed(map) => Some(map.clone()),
            _ => None,
        }
    }

    /// What a full pass changes beside its product.
    fn passed(&mut self) -> Result<(), Error> {
        self.member.settle()?;
        self.passes += 1;
        self.find_resident_rows()
    }
}

impl CovarianceOperator for Sharded<'_> {
    fn shape(&self) -> Shape {
        Shape { n: self.member.n_rows(), d: self.member.dim() }
    }

    fn total_variance(&self) -> f64 {
        match &self.columns {
            Columns::Unknown => f64::NAN,
            Columns::Guessed(map) | Columns::Known { map, .. } => map.total_variance(),
        }
    }

    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let Product { rows, precision, v } = product;
        let (d, p) = (self.dim(), v.p());
        if v.d() != d {
            return Err(Error::shape("coordinates of the vectors to multiply", d, v.d()));
        }
        if p == 0 {
            reshape(out, d, 0);
            return Ok(RoundingBound::default());
        }
        let full = matches!(rows, Rows::All);
        if matches!(self.columns, Columns::Unknown) || full && self.columns().is_none() {
            self.gather_columns()?;
        }
        if let (Rows::Batch(batch), Some(sample)) = (rows, &self.sample)
            && let Some(done) = sample.sum(batch, v, out)
        {
            return done;
        }
        let mut numbers = v.values().to_vec();
        let status = match rows {
            Rows::All => {
                let command = Command::Sum { p, batch: None, precision };
                self.member.ask(command, &mut [&mut numbers])?;
                self.member.sum(product, out)?
            }
            Rows::Batch(rows) => {
                let command = Command::Sum { p, batch: Some(rows.len()), precision };
                let mut rows: Vec<f64> = rows.iter().map(|row| *row as f64).collect();
                self.member.ask(command, &mut [&mut numbers, &mut rows])?;
                self.member.sum(product, out)?
            }
        };
        if full {
            self.passed()?;
            self.single = status.single;
        } else {
            self.member.settle()?;
        }
        Ok(self.with_adding(status.rounding))
    }

    fn capabilities(&mut self) -> Option<&mut dyn Capabilities> {
        Some(self)
    }
}

impl Capabilities for Sharded<'_> {
    fn single_precision(&mut self) -> bool {
        self.single
    }

    fn resident_rows(&mut self) -> Option<&[usize]> {
        let sampled = self.sample.as_ref().map(RowSample::numbers);
        if self.on_disk { Some(&self.resident) } else { sampled }
    }

    fn first_pass(&mut self) -> Option<&mut dyn FirstPass> {
        matches!(self.columns, Columns::Guessed(_)).then_some(self as _)
    }

    fn explicit_covariance(&mut self) -> Option<&mut dyn ExplicitCovariance> {
        Some(self)
    }

    fn state(&mut self) -> Option<&mut dyn OperatorState> {
        // Rows in memory have statistics that a checkpoint has anyway.
        self.on_disk.then_some(self as _)
    }
}

impl FirstPass for Sharded<'_> {
    fn first_image(&mut self, x: &mut Block, z: &mut Block) -> Result<RoundingBound, Error> {
        let Some(guess) = self.guess().filter(|_| x.p() > 0) else { return self.apply(x, z) };
        let p = x.p();
        self.member.ask(Command::FirstSum { p }, &mut [x.values_mut()])?;
        let (status, statistics) = self.member.first_sum(x, z)?;
        self.passed()?;
        self.know(self.of_all_rows(statistics)?)?;
        let Columns::Known { statistics, map } = &self.columns else { unreachable!("just gathered") };
        let fold = Fold::new(statistics, &guess, map, self.sparse);
        let stretch = fold.image(self.n_rows(), x, z)?;
        let (moment, folding) = (fold.moment(), fold.rounding() + fold.rounding_of_combining(p));
        if stretch > MOST_STRETCH {
            self.statistics_passes += 1;
            return self.apply(x, z);
        }
        let rounding = self.rounding_of_fold(status, moment).of_image() + folding;
        Ok(RoundingBound::new(stretch * rounding))
    }
}

impl ExplicitCovariance for Sharded<'_> {
    fn covariance(&mut self, precision: Precision, c: &mut Block) -> Result<RoundingBound, Error> {
        let per_row = 1.0 / self.n_rows() as f64;
        if let Some(guess) = self.guess() {
            let guess = guess.without_scale();
            self.member.ask(Command::FirstForm, &mut [])?;
            let (status, statistics) = self.member.first_form(c)?;
            self.passed()?;
            self.know(self.of_all_rows(statistics)?)?;
            mirror(c, per_row);
            let Columns::Known { statistics, map } = &self.columns else { unreachable!("just gathered") };
            let fold = Fold::new(statistics, &guess, map, self.sparse);
            fold.formed(c);
            let (moment, folding) = (fold.moment(), fold.rounding());
            scale_both_sides(self.map()?, c);
            return Ok(self.rounding_of_fold(status, moment).plus(folding));
        }
        if self.columns().is_none() {
            self.gather_columns()?;
        }
        self.member.ask(Command::Form { precision }, &mut [])?;
        let status = self.member.form(precision, c)?;
        self.passed()?;
        mirror(c, per_row);
        Ok(self.with_adding(status.rounding))
    }
}

impl OperatorState for Sharded<'_> {
    /// The pools are a matter of the seed and the number of passes: they are read again, not stored.
    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        let known = self.columns().map(|(_, statistics)| statistics.clone());
        let mut statistics = known.unwrap_or_else(|| ColumnStatistics::empty(self.dim()));
        archive.part("statistics", |archive| statistics.archive(archive))?;
        archive.check("statistics", statistics.n_rows() == self.n_rows(), "is of another number of rows")?;
        let mut single = self.single;
        archive.flag("single", &mut single)?;
        archive.count("passes", &mut self.passes)?;
        archive.count("statistics_passes", &mut self.statistics_passes)?;
        archive.check("passes", self.passes > 0, "is zero")?;
        let mut digests = if archive.is_restoring() { Vec::new() } else { self.digests()? };
        archive.list("digests", &mut digests)?;
        if archive.is_restoring() {
            self.know(statistics)?;
            self.member.ask(Command::Refill { passes: self.passes, single }, &mut [])?;
            self.member.refill(self.passes, single)?;
            self.member.settle()?;
            self.find_resident_rows()?;
            self.single = single;
            self.refuse_changed_rows(&digests)?;
        }
        Ok(())
    }
}
