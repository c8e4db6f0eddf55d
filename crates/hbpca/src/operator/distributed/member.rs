//! One of the ranks: its part in everything that all ranks do together.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::command::Command;
use super::{Communicator, Shard, ShardStatistics, rows_sent, tree};
use crate::columns::ColumnStatistics;
use crate::matrix::Matrix;
use crate::operator::{Precision, Product, Rows};
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

/// One of the ranks, with its rows.
pub(crate) struct Member<'a> {
    local: Box<dyn Shard + 'a>,
    ranks: &'a dyn Communicator,
    /// A row, the same for all ranks, that means are told relative to while they are gathered.
    pivot: Vec<f64>,
    /// The first row of every rank, and n.
    starts: Vec<usize>,
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
    /// A rank whose rows are `local`; the `pivot`, `n_rows` of every rank, and whether samples travel compressed, are the same on all of them.
    pub(crate) fn new(
        local: Box<dyn Shard + 'a>,
        ranks: &'a dyn Communicator,
        pivot: Vec<f64>,
        n_rows: &[usize],
        compressed: bool,
    ) -> Self {
        let mut starts = vec![0];
        starts.extend(n_rows.iter().scan(0, |sum, n| {
            *sum += n;
            Some(*sum)
        }));
        let failed = ranks.size();
        Self { local, ranks, pivot, starts, compressed, failure: None, failed, over: false, bytes_read: 0 }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    pub(super) fn dim(&self) -> usize {
        self.local.dim()
    }

    pub(super) fn size(&self) -> usize {
        self.ranks.size()
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
                    self.know(if guessed {
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

    /// `values` of rank 0 ← those of all ranks, combined; a failure of this rank or of others travels with them.
    fn reduce(
        &mut self,
        local: Result<Status, Error>,
        values: &mut [f64],
        combine: impl Fn(&mut [f64], &[f64]),
    ) -> Result<Status, Error> {
        let mut status = local.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            Status::default()
        });
        status.bytes = self.local.bytes_read() as f64;
        let failed = if self.failure.is_some() { self.ranks.rank() } else { self.ranks.size() };
        let mut message = Vec::with_capacity(STATUS + values.len());
        message.extend(status.encode(failed));
        message.extend_from_slice(values);
        tree::reduce(self.ranks, &mut message, |mine, theirs| {
            let (mine_status, mine) = mine.split_at_mut(STATUS);
            Status::combine(mine_status, &theirs[..STATUS]);
            combine(mine, &theirs[STATUS..]);
        })?;
        values.copy_from_slice(&message[STATUS..]);
        let (failed, status) = Status::decode(&message);
        self.failed = self.failed.min(failed);
        self.bytes_read = status.bytes as u64;
        Ok(status)
    }

    fn merge(&mut self, local: Result<ColumnStatistics, Error>) -> Result<ColumnStatistics, Error> {
        let empty = ColumnStatistics::empty(self.dim()).to_flat();
        let (status, mut flat) = match local {
            Ok(statistics) => (Ok(Status::default()), statistics.to_flat()),
            Err(error) => (Err(error), empty),
        };
        self.reduce(status, &mut flat, |mine, theirs| {
            let mut merged = ColumnStatistics::from_flat(mine);
            merged.merge(&ColumnStatistics::from_flat(theirs));
            mine.copy_from_slice(&merged.to_flat());
        })?;
        Ok(ColumnStatistics::from_flat(&flat))
    }

    pub(super) fn statistics(&mut self) -> Result<ColumnStatistics, Error> {
        let local = attempt(|| self.local.statistics(&self.pivot));
        self.merge(local)
    }

    pub(super) fn guess(&mut self, rows: usize, seed: u64) -> Result<ColumnStatistics, Error> {
        // In proportion to the rows there are; another sample on every rank.
        let share = self.share(rows);
        let seed = seed.wrapping_add(self.ranks.rank() as u64);
        let local = attempt(|| self.local.guess(share, seed));
        self.merge(local)
    }

    /// What falls to this rank of `total`, in proportion to its rows, rounded up.
    fn share(&self, total: usize) -> usize {
        let mine = self.local.n_rows();
        (total as u128 * mine as u128).div_ceil(self.n_rows() as u128) as usize
    }

    pub(super) fn know(&mut self, statistics: ShardStatistics) -> Result<Status, Error> {
        let local = attempt(|| self.local.know(statistics));
        let single = self.local.single_precision();
        self.reduce(local.map(|()| Status { single, ..Status::default() }), &mut [], |_, _| ())
    }

    pub(super) fn sum(&mut self, product: Product<'_>, out: &mut Block) -> Result<Status, Error> {
        let mine: Vec<usize>;
        let rows = match product.rows {
            Rows::All => Rows::All,
            Rows::Batch(rows) => {
                // Rows are ascending, so that those of this rank lie side by side.
                let rank = self.ranks.rank();
                let [from, to] = [rank, rank + 1].map(|r| rows.partition_point(|l| *l < self.starts[r]));
                mine = rows[from..to].iter().map(|l| l - self.starts[rank]).collect();
                Rows::Batch(&mine)
            }
        };
        let local = attempt(|| self.local.sum(Product { rows, ..product }, out));
        let single = self.local.single_precision();
        let local = local.map(|rounding| Status { single, ..Status::of(rounding) });
        self.reduce_block(local, product.v.p(), out)
    }

    fn reduce_block(
        &mut self,
        local: Result<Status, Error>,
        p: usize,
        out: &mut Block,
    ) -> Result<Status, Error> {
        if local.is_err() {
            *out = Block::zeros(self.dim(), p);
        }
        self.reduce(local, out.values_mut(), add)
    }

    pub(super) fn first_sum(
        &mut self,
        v: &Block,
        out: &mut Block,
    ) -> Result<(Status, ColumnStatistics), Error> {
        let (status, statistics) = apart(attempt(|| self.local.first_sum(&self.pivot, v, out)));
        let status = self.reduce_block(status, v.p(), out)?;
        Ok((status, self.merge(Ok(statistics.unwrap_or_else(|| ColumnStatistics::empty(v.d()))))?))
    }

    pub(super) fn form(&mut self, precision: Precision, c: &mut Block) -> Result<Status, Error> {
        let local = attempt(|| self.local.form(precision, c)).map(Status::of);
        self.reduce_triangle(local, c)
    }

    pub(super) fn first_form(&mut self, c: &mut Block) -> Result<(Status, ColumnStatistics), Error> {
        let (status, statistics) = apart(attempt(|| self.local.first_form(&self.pivot, c)));
        let status = self.reduce_triangle(status, c)?;
        let d = self.dim();
        Ok((status, self.merge(Ok(statistics.unwrap_or_else(|| ColumnStatistics::empty(d))))?))
    }

    /// Only the lower triangle travels.
    fn reduce_triangle(&mut self, local: Result<Status, Error>, c: &mut Block) -> Result<Status, Error> {
        let d = self.dim();
        if local.is_err() {
            *c = Block::zeros(d, d);
        }
        let rows = c.values().chunks_exact(d).enumerate();
        let mut triangle: Vec<f64> = rows.flat_map(|(i, row)| &row[..=i]).copied().collect();
        let status = self.reduce(local, &mut triangle, add)?;
        let mut from = 0;
        for (i, row) in c.values_mut().chunks_exact_mut(d).enumerate() {
            row[..=i].copy_from_slice(&triangle[from..=from + i]);
            from += i + 1;
        }
        Ok(status)
    }

    /// The resident rows of all ranks, by their numbers among all rows, on rank 0.
    pub(super) fn resident_rows(&mut self) -> Result<Vec<usize>, Error> {
        let first = self.starts[self.ranks.rank()];
        let mut all: Vec<f64> = self.local.resident_rows().iter().map(|row| (first + row) as f64).collect();
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

    /// The digests of all ranks, in two halves each, on rank 0.
    pub(super) fn digests(&mut self) -> Result<Vec<f64>, Error> {
        let digest = self.local.digest();
        let mut all = vec![0.0; 2 * self.ranks.size()];
        all[2 * self.ranks.rank()..][..2]
            .copy_from_slice(&[(digest >> 32) as f64, (digest & 0xffff_ffff) as f64]);
        tree::sum_over_ranks(self.ranks, &mut all)?;
        Ok(all)
    }

    /// Some rows of all ranks, on rank 0: those named, or the resident ones.
    pub(super) fn rows(&mut self, named: Option<&[usize]>) -> Result<Option<Matrix<'static>>, Error> {
        let rank = self.ranks.rank();
        let mine = named.map(|rows| {
            let own = self.starts[rank]..self.starts[rank + 1];
            rows.iter().filter(|l| own.contains(l)).map(|l| l - own.start).collect::<Vec<_>>()
        });
        let none = mine.as_ref().is_some_and(Vec::is_empty);
        let local = if none { Ok(None) } else { attempt(|| self.local.rows(mine.as_deref())).map(Some) };
        let (status, rows) = match local {
            Ok(rows) => (Ok(Status::default()), rows),
            Err(error) => (Err(error), None),
        };
        self.reduce(status, &mut [], |_, _| ())?;
        rows_sent::gather(self.ranks, rows.as_ref(), self.dim(), self.compressed)
    }

    pub(super) fn refill(&mut self, passes: u64, single: bool) -> Result<(), Error> {
        let local = attempt(|| self.local.refill(passes, single));
        self.reduce(local.map(|()| Status::default()), &mut [], |_, _| ()).map(drop)
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

fn add(mine: &mut [f64], theirs: &[f64]) {
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
}

/// The status and the statistics of a first pass.
fn apart(
    local: Result<(ColumnStatistics, usize), Error>,
) -> (Result<Status, Error>, Option<ColumnStatistics>) {
    match local {
        Ok((statistics, additions)) => (Ok(Status { additions, ..Status::default() }), Some(statistics)),
        Err(error) => (Err(error), None),
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
