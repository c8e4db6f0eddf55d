//! Ranks that are threads, and matrices cut into their parts.
#![allow(dead_code, reason = "each test file uses its part")]

use hbpca::checkpoint::Checkpoints;
use hbpca::operator::{Communicator, ThreadRank, thread_ranks};
use hbpca::{Csr, Dense, Error, Fit, FitConfig, Matrix, RankRows, Real};

use super::chunked::Chunked;

/// Where ranks keep their rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Storage {
    Memory,
    Disk,
}

/// Rows `from..to` of a matrix.
pub fn part(matrix: &Matrix<'_>, from: usize, to: usize) -> Matrix<'static> {
    fn dense<T: Real>(x: &Dense<'_, T>, from: usize, to: usize) -> Dense<'static, T> {
        let values = (from..to).flat_map(|l| x.row(l)).copied().collect();
        Dense::new(values, to - from, x.n_cols()).unwrap()
    }
    fn csr<T: Real>(x: &Csr<'_, T>, from: usize, to: usize) -> Csr<'static, T> {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for l in from..to {
            let (at, entries) = x.row_slices(l);
            columns.extend_from_slice(at);
            values.extend_from_slice(entries);
            starts.push(columns.len());
        }
        Csr::new(x.n_cols(), starts, columns, values).unwrap()
    }
    match matrix {
        Matrix::DenseF32(x) => dense(x, from, to).into(),
        Matrix::DenseF64(x) => dense(x, from, to).into(),
        Matrix::CsrF32(x) => csr(x, from, to).into(),
        Matrix::CsrF64(x) => csr(x, from, to).into(),
    }
}

/// A matrix cut for so many ranks, unequally.
pub fn parts(matrix: &Matrix<'_>, ranks: usize) -> Vec<Matrix<'static>> {
    let n = matrix.n_rows();
    let cut = |r: usize| if r == ranks { n } else { n * r * (r + 1) / (ranks * (ranks + 1)) + r };
    (0..ranks).map(|r| part(matrix, cut(r), cut(r + 1))).collect()
}

/// Runs `body` on every rank.
pub fn on_ranks<T: Send>(size: usize, body: impl Fn(ThreadRank) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> =
            thread_ranks(size).into_iter().map(|rank| scope.spawn(move || body(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The rows of one rank.
pub fn rows<'a>(part: &'a Matrix<'a>, storage: Storage) -> RankRows<'a> {
    match storage {
        Storage::Memory => RankRows::Memory(part),
        Storage::Disk => RankRows::Disk { rows: Box::new(chunked(part)), memory: 64 << 20 },
    }
}

/// Chunks of 50 rows.
pub fn chunked<'a>(part: &'a Matrix<'a>) -> Chunked<'a> {
    let n = part.n_rows();
    let mut starts: Vec<usize> = (0..n).step_by(50).collect();
    starts.push(n);
    Chunked::new(part, &starts)
}

/// A fit on thread ranks: what each of them got.
pub fn fit_parts(
    config: &FitConfig,
    parts: &[Matrix<'static>],
    storage: Storage,
) -> Vec<Result<Option<Fit>, Error>> {
    on_ranks(parts.len(), |rank| {
        let rows = rows(&parts[rank.rank()], storage);
        config.run().fit_on_ranks(Ok(rows), &rank)
    })
}

/// A fit of shards, dealt to so many ranks, with their weights.
pub fn fit_shards(
    config: &FitConfig,
    shards: &[Matrix<'static>],
    weights: Option<&[f64]>,
    ranks: usize,
    storage: Storage,
    checkpoints: impl Fn() -> Checkpoints<'static> + Sync,
) -> Result<Fit, Error> {
    let deal = |rank: usize| shards.len() * rank / ranks;
    let first_row = |shard: usize| shards[..shard].iter().map(Matrix::n_rows).sum::<usize>();
    let fits = on_ranks(ranks, |rank| {
        let (from, to) = (deal(rank.rank()), deal(rank.rank() + 1));
        let own = shards[from..to].iter().map(|shard| rows(shard, storage)).collect();
        let weights = weights.map(|weights| &weights[first_row(from)..first_row(to)]);
        config.run().weights(weights).checkpoints(checkpoints()).fit_shards_on_ranks(Ok(own), &rank)
    });
    let mut fits = fits.into_iter();
    let first = fits.next().unwrap();
    assert!(fits.all(|other| other.is_ok() == first.is_ok() && other.ok().flatten().is_none()));
    first.map(Option::unwrap)
}

/// The fit of rank 0; the others have none.
pub fn fit(config: &FitConfig, matrix: &Matrix<'_>, ranks: usize, storage: Storage) -> Fit {
    let mut fits = fit_parts(config, &parts(matrix, ranks), storage).into_iter();
    let first = fits.next().unwrap().unwrap().unwrap();
    assert!(fits.all(|other| other.unwrap().is_none()));
    assert_eq!(first.ranks, ranks);
    first
}
