//! One of the ranks: its part in everything that all ranks do together.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::command::Command;
use super::tree::{self, Tree, add};
use super::{Communicator, Shard, ShardStatistics, rows_sent};
use crate::columns::ColumnStatistics;
use crate::matrix::Matrix;
use crate::operator::{Precision, Product, Rows, reshape};
use crate::rounding::RoundingBound;
use crate::{Block, Error};

/// What travels with every sum.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Status {
    /// The largest of all bounds.
    pub(super) rounding: RoundingBound,
    /// Whether every rank has products in single precision.
    pub(super) single: bool,
    /// The most additions behind a number of a rank's sum.
    pub(super) additions: usize,
    /// Bytes that all ranks have read from disk.
    bytes: f64,
}

/// Numbers of a status, and of the rank that failed.
const STATUS: usize = 7;

impl Status {
    fn of(rounding: RoundingBound) -> Self {
        Self { rounding, ..Self::default() }
    }

    fn encode(self, failed: usize) -> [f64; STATUS] {
        let [relative, moment, fixed] = self.rounding.parts();
        let (single, additions) = (f64::from(u8::from(self.single)), self.additions as f64);
        [failed as f64, single, relative, moment, fixed, additions, self.bytes]
    }

    fn decode(numbers: &[f64]) -> (usize, Self) {
        let rounding = RoundingBound::of_parts([numbers[2], numbers[3], numbers[4]]);
        let (single, additions, bytes) = (numbers[1] > 0.0, numbers[5] as usize, numbers[6]);
        (numbers[0] as usize, Self { rounding, single, additions, bytes })
    }

    /// The first rank that failed, single precision if both have it, all bytes, the larger of all else. NaN stays.
    fn combine(mine: &mut [f64], theirs: &[f64]) {
        mine[STATUS - 1] += theirs[STATUS - 1];
        mine[..STATUS - 1].iter_mut().zip(theirs).enumerate().for_each(|(i, (mine, theirs))| {
            let replaces = if i < 2 { *theirs < *mine } else { *theirs > *mine || theirs.is_nan() };
            if replaces && !mine.is_nan() {
                *mine = *theirs;
            }
        });
    }
}

/// Which rank holds which shard: rank 0 the first ones, rank 1 those that follow, and so on.
#[derive(Clone, Debug)]
pub(crate) struct Holders {
    /// The rank of every shard, ascending; every rank has at least one.
    owners: Vec<usize>,
    /// The first row of every shard, and n.
    starts: Vec<usize>,
}

impl Holders {
    pub(crate) fn new(owners: Vec<usize>, n_rows: &[usize]) -> Self {
        let mut starts = vec![0];
        starts.extend(n_rows.iter().scan(0, |sum, n| {
            *sum += n;
            Some(*sum)
        }));
        Self { owners, starts }
    }

    /// The first shard of a rank.
    fn first_of(&self, rank: usize) -> usize {
        self.owners.partition_point(|owner| *owner < rank)
    }

    /// What falls to a shard of `total`, in proportion to its rows, rounded up.
    fn share(&self, shard: usize, total: usize) -> usize {
        let mine = self.rows_of(shard).len();
        (total as u128 * mine as u128).div_ceil(self.n_rows() as u128) as usize
    }

    fn rows_of(&self, shard: usize) -> Range<usize> {
        self.starts[shard]..self.starts[shard + 1]
    }

    fn n_rows(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }
}

/// One of the ranks, with its shards of the rows.
pub(crate) struct Member<'a> {
    own: Vec<Box<dyn Shard + 'a>>,
    ranks: &'a dyn Communicator,
    holders: Holders,
    /// A row, the same for all ranks, that means are told relative to while they are gathered.
    pivot: Vec<f64>,
    compressed: bool,
    /// What this rank could not do.
    failure: Option<Error>,
    /// The first rank that failed, as far as rank 0 knows.
    failed: usize,
    /// Whether all ranks were told to end.
    over: bool,
    /// Bytes that all ranks have read from disk, on rank 0.
    bytes_read: u64,
}

impl<'a> Member<'a> {
    /// A rank whose rows are `own`, one shard or several; the `pivot`, the `holders`, and whether samples travel compressed, are the same on
    /// all ranks.
    pub(crate) fn new(
        own: Vec<Box<dyn Shard + 'a>>,
        ranks: &'a dyn Communicator,
        pivot: Vec<f64>,
        holders: Holders,
        compressed: bool,
    ) -> Self {
        let failed = ranks.size();
        Self { own, ranks, holders, pivot, compressed, failure: None, failed, over: false, bytes_read: 0 }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.holders.n_rows()
    }

    pub(super) fn dim(&self) -> usize {
        self.pivot.len()
    }

    /// How many sums are added.
    pub(super) fn n_shards(&self) -> usize {
        self.holders.owners.len()
    }

    /// Statistics of all ranks are checked as those of one are.
    pub(super) fn about_zero(&self, merged: ColumnStatistics) -> Result<ColumnStatistics, Error> {
        merged.about_zero(&self.pivot)
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Does what rank 0 asks for until the fit is over. What ends the fit early is the error of every rank.
    pub(crate) fn serve(mut self) -> Result<(), Error> {
        let d = self.dim();
        loop {
            match Command::End.exchange(self.ranks)? {
                Command::End => return Ok(()),
                Command::Failed { rank } => return Err(self.hear(rank)),
                Command::Statistics => drop(self.statistics()?),
                Command::Guess { rows, seed } => drop(self.guess(rows, seed)?),
                Command::Know { guessed } => {
                    let mut flat = ColumnStatistics::empty(d).to_flat();
                    self.ranks.broadcast(&mut flat, 0)?;
                    let statistics = ColumnStatistics::from_flat(&flat);
                    self.know(&if guessed {
                        ShardStatistics::Guessed(statistics)
                    } else {
                        ShardStatistics::Known(statistics)
                    })?;
                }
                Command::Sum { p, batch, precision } => {
                    let v = self.receive_block(p)?;
                    let batch = batch.map(|count| self.receive_rows(count)).transpose()?;
                    let rows = batch.as_deref().map_or(Rows::All, Rows::Batch);
                    self.sum(Product { rows, precision, v: &v }, &mut Block::zeros(0, 0))?;
                }
                Command::FirstSum { p } => {
                    let v = self.receive_block(p)?;
                    self.first_sum(&v, &mut Block::zeros(0, 0))?;
                }
                Command::Form { precision } => drop(self.form(precision, &mut Block::zeros(0, 0))?),
                Command::FirstForm => drop(self.first_form(&mut Block::zeros(0, 0))?),
                Command::Rows { named } => {
                    let named = named.map(|count| self.receive_rows(count)).transpose()?;
                    self.rows(named.as_deref())?;
                }
                Command::Residents => drop(self.resident_rows()?),
                Command::Digests => drop(self.digests()?),
                Command::Refill { passes, single } => self.refill(passes, single)?,
            }
        }
    }

    fn receive_block(&self, p: usize) -> Result<Block, Error> {
        let mut v = Block::zeros(self.dim(), p);
        self.ranks.broadcast(v.values_mut(), 0)?;
        Ok(v)
    }

    fn receive_rows(&self, count: usize) -> Result<Vec<usize>, Error> {
        let mut numbers = vec![0.0; count];
        self.ranks.broadcast(&mut numbers, 0)?;
        Ok(numbers.into_iter().map(|row| row as usize).collect())
    }

    /// Rank 0 says what is next, and sends what belongs to it.
    pub(super) fn ask(&self, command: Command, with: &mut [&mut [f64]]) -> Result<(), Error> {
        command.exchange(self.ranks)?;
        with.iter_mut().try_for_each(|numbers| self.ranks.broadcast(numbers, 0))
    }

    /// On rank 0 the values of all shards, combined: `local` finds those of a shard, which begin as `neutral`. A failure of this rank or of
    /// others travels with them.
    fn reduce(
        &mut self,
        neutral: &[f64],
        mut local: impl FnMut(usize, &mut dyn Shard, &mut [f64]) -> Result<Status, Error>,
        combine: impl Fn(&mut [f64], &[f64]),
    ) -> Result<(Status, Vec<f64>), Error> {
        let Self { own, ranks, holders, failure, .. } = self;
        let (ranks, first) = (*ranks, holders.first_of(ranks.rank()));
        let alone = own.len() == 1;
        let mut tree = Tree::new(ranks, &holders.owners, |mine: &mut [f64], theirs: &[f64]| {
            let (status, mine) = mine.split_at_mut(STATUS);
            Status::combine(status, &theirs[..STATUS]);
            combine(mine, &theirs[STATUS..]);
        });
        for (i, shard) in own.iter_mut().enumerate() {
            let mut message = vec![0.0; STATUS];
            message.extend_from_slice(neutral);
            let found = attempt(|| local(first + i, &mut **shard, &mut message[STATUS..]));
            let mut status = found.unwrap_or_else(|error| {
                failure.get_or_insert(error);
                message[STATUS..].copy_from_slice(neutral);
                Status::default()
            });
            status.bytes = shard.bytes_read() as f64;
            let failed = if failure.is_some() { ranks.rank() } else { ranks.size() };
            message[..STATUS].copy_from_slice(&status.encode(failed));
            if !alone {
                shard.release();
            }
            tree.add(first + i, message);
        }
        let Some(mut message) = tree.finish()? else { return Ok((Status::default(), neutral.to_vec())) };
        let values = message.split_off(STATUS);
        let (failed, status) = Status::decode(&message);
        self.failed = self.failed.min(failed);
        self.bytes_read = status.bytes as u64;
        Ok((status, values))
    }

    /// The same where nothing is to be combined.
    fn all(
        &mut self,
        local: impl FnMut(usize, &mut dyn Shard) -> Result<Status, Error>,
    ) -> Result<Status, Error> {
        let mut local = local;
        self.reduce(&[], |i, shard, _| local(i, shard), |_, _| ()).map(|(status, _)| status)
    }

    fn merge(
        &mut self,
        local: impl Fn(usize, &mut dyn Shard, &[f64]) -> Result<ColumnStatistics, Error>,
    ) -> Result<ColumnStatistics, Error> {
        let pivot = self.pivot.clone();
        let found = |i: usize, shard: &mut dyn Shard, flat: &mut [f64]| {
            flat.copy_from_slice(&local(i, shard, &pivot)?.to_flat());
            Ok(Status::default())
        };
        let (_, flat) = self.reduce(&ColumnStatistics::empty(pivot.len()).to_flat(), found, merge_flat)?;
        Ok(ColumnStatistics::from_flat(&flat))
    }

    pub(super) fn statistics(&mut self) -> Result<ColumnStatistics, Error> {
        self.merge(|_, shard, pivot| shard.statistics(pivot))
    }

    /// In proportion to the rows there are; another sample of every shard.
    pub(super) fn guess(&mut self, rows: usize, seed: u64) -> Result<ColumnStatistics, Error> {
        let holders = self.holders.clone();
        self.merge(|i, shard, _| shard.guess(holders.share(i, rows), seed.wrapping_add(i as u64)))
    }

    pub(super) fn know(&mut self, statistics: &ShardStatistics) -> Result<Status, Error> {
        self.all(|_, shard| {
            shard.know(statistics.clone())?;
            Ok(Status { single: shard.single_precision(), ..Status::default() })
        })
    }

    pub(super) fn sum(&mut self, product: Product<'_>, out: &mut Block) -> Result<Status, Error> {
        let holders = self.holders.clone();
        let local = |i: usize, shard: &mut dyn Shard, sum: &mut [f64]| {
            let mine: Vec<usize>;
            let rows = match product.rows {
                Rows::All => Rows::All,
                Rows::Batch(rows) => {
                    // Rows are ascending, so that those of a shard lie side by side.
                    let own = holders.rows_of(i);
                    let [from, to] = [own.start, own.end].map(|at| rows.partition_point(|l| *l < at));
                    mine = rows[from..to].iter().map(|l| l - own.start).collect();
                    Rows::Batch(&mine)
                }
            };
            let rounding = shard.sum(Product { rows, ..product }, out)?;
            sum.copy_from_slice(out.values());
            Ok(Status { single: shard.single_precision(), ..Status::of(rounding) })
        };
        let (d, p) = (product.v.d(), product.v.p());
        let (status, sum) = self.reduce(&vec![0.0; d * p], local, add)?;
        *out = Block::from_values(d, p, sum)?;
        Ok(status)
    }

    /// Sums and statistics travel together.
    pub(super) fn first_sum(
        &mut self,
        v: &Block,
        out: &mut Block,
    ) -> Result<(Status, ColumnStatistics), Error> {
        let local = |shard: &mut dyn Shard, pivot: &[f64], sum: &mut [f64]| {
            let found = shard.first_sum(pivot, v, out)?;
            sum.copy_from_slice(out.values());
            Ok(found)
        };
        let (status, sum, statistics) = self.first(v.values().len(), local)?;
        *out = Block::from_values(v.d(), v.p(), sum)?;
        Ok((status, statistics))
    }

    pub(super) fn form(&mut self, precision: Precision, c: &mut Block) -> Result<Status, Error> {
        let local = |_, shard: &mut dyn Shard, triangle: &mut [f64]| {
            let rounding = shard.form(precision, c)?;
            write_triangle(c, triangle);
            Ok(Status::of(rounding))
        };
        let d = self.dim();
        let (status, triangle) = self.reduce(&vec![0.0; d * (d + 1) / 2], local, add)?;
        read_triangle(&triangle, d, c);
        Ok(status)
    }

    pub(super) fn first_form(&mut self, c: &mut Block) -> Result<(Status, ColumnStatistics), Error> {
        let local = |shard: &mut dyn Shard, pivot: &[f64], triangle: &mut [f64]| {
            let found = shard.first_form(pivot, c)?;
            write_triangle(c, triangle);
            Ok(found)
        };
        let d = self.dim();
        let (status, triangle, statistics) = self.first(d * (d + 1) / 2, local)?;
        read_triangle(&triangle, d, c);
        Ok((status, statistics))
    }

    /// What a first pass finds: a sum of so many numbers, and statistics.
    fn first(
        &mut self,
        length: usize,
        mut local: impl FnMut(&mut dyn Shard, &[f64], &mut [f64]) -> Result<(ColumnStatistics, usize), Error>,
    ) -> Result<(Status, Vec<f64>, ColumnStatistics), Error> {
        let pivot = self.pivot.clone();
        let mut neutral = vec![0.0; length];
        neutral.extend(ColumnStatistics::empty(pivot.len()).to_flat());
        let found = |_, shard: &mut dyn Shard, values: &mut [f64]| {
            let (sum, flat) = values.split_at_mut(length);
            let (statistics, additions) = local(shard, &pivot, sum)?;
            flat.copy_from_slice(&statistics.to_flat());
            Ok(Status { additions, ..Status::default() })
        };
        let combine = |mine: &mut [f64], theirs: &[f64]| {
            let (sum, flat) = mine.split_at_mut(length);
            add(sum, &theirs[..length]);
            merge_flat(flat, &theirs[length..]);
        };
        let (status, mut values) = self.reduce(&neutral, found, combine)?;
        let flat = values.split_off(length);
        Ok((status, values, ColumnStatistics::from_flat(&flat)))
    }

    /// The resident rows of all ranks, by their numbers among all rows, on rank 0.
    pub(super) fn resident_rows(&mut self) -> Result<Vec<usize>, Error> {
        let first = self.holders.first_of(self.ranks.rank());
        let starts = &self.holders.starts[first..];
        let own = self.own.iter().zip(starts);
        let mut all: Vec<f64> = own
            .flat_map(|(shard, start)| shard.resident_rows().iter().map(move |row| (start + row) as f64))
            .collect();
        if self.ranks.rank() > 0 {
            self.ranks.send(&[all.len() as f64], 0)?;
            self.ranks.send(&all, 0)?;
            return Ok(Vec::new());
        }
        for rank in 1..self.ranks.size() {
            let mut count = [0.0];
            self.ranks.receive(&mut count, rank)?;
            let from = all.len();
            all.resize(from + count[0] as usize, 0.0);
            self.ranks.receive(&mut all[from..], rank)?;
        }
        Ok(all.into_iter().map(|row| row as usize).collect())
    }

    /// The digests of all shards, in two halves each, on rank 0.
    pub(super) fn digests(&mut self) -> Result<Vec<f64>, Error> {
        let first = self.holders.first_of(self.ranks.rank());
        let mut all = vec![0.0; 2 * self.n_shards()];
        for (halves, shard) in all[2 * first..].chunks_exact_mut(2).zip(&self.own) {
            let digest = shard.digest();
            halves.copy_from_slice(&[(digest >> 32) as f64, (digest & 0xffff_ffff) as f64]);
        }
        tree::sum_over_ranks(self.ranks, &mut all)?;
        Ok(all)
    }

    /// Some rows of all ranks, on rank 0: those named, or the resident ones.
    pub(super) fn rows(&mut self, named: Option<&[usize]>) -> Result<Option<Matrix<'static>>, Error> {
        let (holders, mut found) = (self.holders.clone(), Vec::new());
        self.all(|i, shard| {
            let own = holders.rows_of(i);
            let mine = named.map(|rows| {
                rows.iter().filter(|l| own.contains(l)).map(|l| l - own.start).collect::<Vec<_>>()
            });
            if mine.as_ref().is_none_or(|rows| !rows.is_empty()) {
                found.push(shard.rows(mine.as_deref())?);
            }
            Ok(Status::default())
        })?;
        rows_sent::gather(self.ranks, &found, self.dim(), self.compressed)
    }

    pub(super) fn refill(&mut self, passes: u64, single: bool) -> Result<(), Error> {
        self.all(|_, shard| shard.refill(passes, single).map(|()| Status::default())).map(drop)
    }

    /// On rank 0 after everything that a command asks for: ends the fit on all ranks where one failed.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        if self.failed == self.ranks.size() {
            return Ok(());
        }
        self.over = true;
        Command::Failed { rank: self.failed }.exchange(self.ranks)?;
        Err(self.hear(self.failed))
    }

    /// The last thing that rank 0 does: ends the fit on all ranks, as it ended here.
    pub(super) fn end<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if self.over || matches!(result, Err(Error::Communication(_))) {
            return result;
        }
        self.over = true;
        match result {
            Ok(value) => Command::End.exchange(self.ranks).map(|_| value),
            Err(error) => {
                Command::Failed { rank: 0 }.exchange(self.ranks)?;
                Err(hear(self.ranks, 0, Some(error)))
            }
        }
    }

    fn hear(&mut self, rank: usize) -> Error {
        let own = self.failure.take().filter(|_| rank == self.ranks.rank());
        hear(self.ranks, rank, own)
    }
}

fn merge_flat(mine: &mut [f64], theirs: &[f64]) {
    let mut merged = ColumnStatistics::from_flat(mine);
    merged.merge(&ColumnStatistics::from_flat(theirs));
    mine.copy_from_slice(&merged.to_flat());
}

/// The lower triangle, which alone travels.
fn write_triangle(c: &Block, triangle: &mut [f64]) {
    let mut from = 0;
    for (i, row) in c.values().chunks_exact(c.d()).enumerate() {
        triangle[from..=from + i].copy_from_slice(&row[..=i]);
        from += i + 1;
    }
}

fn read_triangle(triangle: &[f64], d: usize, c: &mut Block) {
    reshape(c, d, d);
    let mut from = 0;
    for (i, row) in c.values_mut().chunks_exact_mut(d).enumerate() {
        row[..=i].copy_from_slice(&triangle[from..=from + i]);
        from += i + 1;
    }
}

/// A rank that panics must say so: the others wait for it.
fn attempt<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Error::Numerical(text.unwrap_or_else(|| "a rank panicked".into())))
    })
}

/// Rank `rank` tells all others why it failed. Its own error stays what it was.
pub(crate) fn hear(ranks: &dyn Communicator, rank: usize, own: Option<Error>) -> Error {
    match exchange_failure(ranks, rank, own.as_ref()) {
        Ok(theirs) => own.unwrap_or(theirs),
        Err(error) => error,
    }
}

fn exchange_failure(ranks: &dyn Communicator, rank: usize, own: Option<&Error>) -> Result<Error, Error> {
    const PARAMETER: f64 = 1.0;
    const ABANDONED: f64 = 2.0;
    let text = own.map_or_else(String::new, ToString::to_string);
    let kind = match own {
        Some(Error::Parameter { .. } | Error::Rank { of_parameter: true, .. }) => PARAMETER,
        Some(Error::Abandoned) => ABANDONED,
        _ => 0.0,
    };
    let mut head = [kind, text.len() as f64];
    ranks.broadcast(&mut head, rank)?;
    let mut bytes: Vec<f64> = text.bytes().map(f64::from).collect();
    bytes.resize(head[1] as usize, 0.0);
    ranks.broadcast(&mut bytes, rank)?;
    if head[0] >= ABANDONED {
        return Ok(Error::Abandoned);
    }
    let bytes: Vec<u8> = bytes.into_iter().map(|x| x as u8).collect();
    let message = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Error::Rank { rank, of_parameter: head[0] >= PARAMETER, message })
}
