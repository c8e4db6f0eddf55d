//! How close a pass comes to plainly reading the data:
//! `cargo run --release -p hbpca --example pass_speed [megabytes] [dense|sparse|growth|hashing]`.
//!
//! Every time is the smallest of several rounds, and rounds are interleaved, so that a slow spell of the machine
//! hits all lines of a table alike. "× read" compares with bringing in the same cache lines on the same threads. "Products
//! alone" are the multiply-adds of a pass with all operands in registers: no pass can be faster than that either. Dense rows begin
//! where a cache line does, as those of a mapped file do; a line of its own shows what it costs if they do not.

#![allow(unsafe_code, reason = "instructions that only some processors have are timed")]

use std::error::Error;
use std::io::{Read, Seek};
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use hbpca::operator::{Covariance, Precision, Products};
use hbpca::{Block, ColumnStatistics, Csr, Dense, Matrix, Preprocessing, Real};
use rayon::prelude::*;

/// The line of the multiply-adds.
const PRODUCTS: &str = "products alone, p = 8";
/// Bytes of a cache line.
const LINE: usize = 64;
/// Rounds of every measurement, after one that warms up.
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let megabytes: usize = std::env::args().nth(1).map_or(Ok(240), |text| text.parse())?;
    let only = std::env::args().nth(2);
    let wanted = |table: &str| only.as_deref().is_none_or(|only| only == table);
    let bytes = megabytes << 20;
    println!("{} threads, {megabytes} MB of data, smallest of {ROUNDS} rounds", rayon::current_num_threads());
    if wanted("dense") {
        for d in [784, 54, 22] {
            dense_table::<f32>(&format!("dense f32, d = {d}"), bytes, d)?;
        }
        dense_table::<f64>("dense f64, d = 784", bytes, 784)?;
    }
    if wanted("sparse") {
        sparse_table::<f32>("CSR f32, d = 42000", bytes)?;
        sparse_table::<f64>("CSR f64, d = 42000", bytes)?;
    }
    if wanted("growth") {
        growth_tables(bytes)?;
    }
    if wanted("hashing") {
        let n = bytes / (784 * 4);
        let dense = Dense::new(dense_values::<f32>(n * 784), n, 784)?.into();
        hashing_table("hashing, dense f32, d = 784", &dense)?;
        hashing_table("hashing, CSR f32, d = 42000", &sparse_matrix::<f32>(bytes / 8)?.into())?;
    }
    Ok(())
}

/// A table of operations on the same data; the first line is what the others are compared with.
struct Race<'a> {
    title: String,
    lines: Vec<Line<'a>>,
}

struct Line<'a> {
    name: String,
    bytes: usize,
    best: Duration,
    operation: Box<dyn FnMut() -> Result<(), hbpca::Error> + 'a>,
}

impl<'a> Race<'a> {
    fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), lines: Vec::new() }
    }

    fn line(
        &mut self,
        name: impl Into<String>,
        bytes: usize,
        operation: impl FnMut() -> Result<(), hbpca::Error> + 'a,
    ) {
        let operation = Box::new(operation);
        self.lines.push(Line { name: name.into(), bytes, best: Duration::MAX, operation });
    }

    /// Times every line in turn, again and again, and prints the table. Ratios are per byte against the first line,
    /// and plain against the first line called "p = 1".
    fn run(mut self) -> Result<(), hbpca::Error> {
        for round in 0..=ROUNDS {
            for line in &mut self.lines {
                let start = Instant::now();
                (line.operation)()?;
                if round > 0 {
                    line.best = line.best.min(start.elapsed());
                }
            }
        }
        println!("\n{:<34}{:>10}{:>9}{:>9}{:>9}", self.title, "ms", "GB/s", "× read", "× p=1");
        let per_byte = |line: &Line| line.best.as_secs_f64() / line.bytes as f64;
        let read = per_byte(&self.lines[0]);
        let one =
            self.lines.iter().find(|line| line.name.contains("p = 1")).map(|line| line.best.as_secs_f64());
        for line in &self.lines {
            let seconds = line.best.as_secs_f64();
            let to_one = one.map_or(String::new(), |one| format!("{:.2}", seconds / one));
            println!(
                "  {:<32}{:>10.3}{:>9.2}{:>9.2}{to_one:>9}",
                line.name,
                seconds * 1e3,
                1e-9 / per_byte(line),
                per_byte(line) / read
            );
        }
        Ok(())
    }
}

fn dense_table<T: Real + AddAssign>(title: &str, bytes: usize, d: usize) -> Result<(), hbpca::Error>
where
    for<'v> Matrix<'v>: From<Dense<'v, T>>,
{
    let n = bytes / (d * T::BYTES);
    let line = LINE / T::BYTES;
    let values = dense_values::<T>(n * d + 2 * line);
    let values = &values[values.as_ptr().align_offset(LINE)..];
    // As far off a cache line as allocators put large arrays.
    let off_line = Matrix::from(Dense::borrowed(&values[line / 4..][..n * d], n, d)?);
    let values = &values[..n * d];
    let matrix = Matrix::from(Dense::borrowed(values, n, d)?);
    let bytes = matrix.bytes_per_pass();
    let mut race = Race::new(title);
    race.line("read", bytes, || {
        std::hint::black_box(touch(values));
        Ok(())
    });
    race.line("column statistics", bytes, || ColumnStatistics::new(&matrix).map(drop));
    pass_lines(&mut race, &matrix, bytes)?;
    race.line(PRODUCTS, bytes, || {
        products::<f64>(2 * 8 * n * d);
        Ok(())
    });
    let (mut operator, mut c) = (Covariance::new(&matrix, Preprocessing::CENTER)?, Block::zeros(0, 0));
    race.line("C formed", bytes, move || operator.form(Precision::Double, &mut c).map(drop));
    race.run()?;
    if T::BYTES == f32::BYTES {
        let read = || drop(std::hint::black_box(touch(values)));
        single_table(&format!("{title}, in f32"), &matrix, Some(&off_line), read)?;
    }
    Ok(())
}

/// The same with arithmetic in f32, for data that is; one line is for rows that are all `off_line`.
fn single_table(
    title: &str,
    matrix: &Matrix<'_>,
    off_line: Option<&Matrix<'_>>,
    read: impl Fn(),
) -> Result<(), hbpca::Error> {
    let (d, bytes) = (matrix.n_cols(), matrix.bytes_per_pass());
    let mut race = Race::new(title);
    race.line("read", bytes, || {
        read();
        Ok(())
    });
    let places = [Some((matrix, "")), off_line.map(|matrix| (matrix, ", off the lines"))];
    for (p, place) in [1, 2, 4, 8, 16, 32].map(|p| (p, 0)).into_iter().chain([(8, 1)]) {
        let Some((matrix, place)) = places[place] else { continue };
        let mut operator = Covariance::new(matrix, Preprocessing::CENTER)?;
        let (v, mut image) = (block(d, p), Block::zeros(d, p));
        race.line(format!("pass, p = {p}{place}"), bytes, move || {
            operator.apply_in(Precision::Single, &v, &mut image).map(drop)
        });
    }
    if let Matrix::DenseF32(x) = matrix {
        race.line(PRODUCTS, bytes, || {
            products::<f32>(2 * 8 * x.n_rows() * d);
            Ok(())
        });
        let (mut operator, mut c) = (Covariance::new(matrix, Preprocessing::CENTER)?, Block::zeros(0, 0));
        race.line("C formed", bytes, move || operator.form(Precision::Single, &mut c).map(drop));
    }
    race.run()
}

fn sparse_table<T: Real + AddAssign>(title: &str, bytes: usize) -> Result<(), hbpca::Error>
where
    Matrix<'static>: From<Csr<'static, T>>,
{
    let csr = sparse_matrix::<T>(bytes / (T::BYTES + 4))?;
    let (columns, values) = (csr.columns().to_vec(), csr.values().to_vec());
    let matrix = Matrix::from(csr);
    let bytes = matrix.bytes_per_pass();
    let mut race = Race::new(title);
    race.line("read", bytes, || {
        std::hint::black_box((touch(&columns), touch(&values)));
        Ok(())
    });
    pass_lines(&mut race, &matrix, bytes)?;
    race.run()?;
    if T::BYTES == f32::BYTES {
        let read = || drop(std::hint::black_box((touch(&columns), touch(&values))));
        single_table(&format!("{title}, in f32"), &matrix, None, read)?;
    }
    Ok(())
}

/// Full passes for p = 1 … 32, and mini-batches.
fn pass_lines<'a>(race: &mut Race<'a>, matrix: &'a Matrix<'a>, bytes: usize) -> Result<(), hbpca::Error> {
    let (n, d) = (matrix.n_rows(), matrix.n_cols());
    for p in [1, 2, 4, 8, 16, 32] {
        let mut operator = Covariance::new(matrix, Preprocessing::CENTER)?;
        let (v, mut image) = (block(d, p), Block::zeros(d, p));
        race.line(format!("pass, p = {p}"), bytes, move || operator.apply(&v, &mut image).map(drop));
    }
    for p in [1, 8] {
        let mut operator = Covariance::new(matrix, Preprocessing::CENTER)?;
        let (v, mut image) = (block(d, p), Block::zeros(d, p));
        let mut numbers = Numbers(7);
        race.line(format!("batch of 1 % of the rows, p={p}"), bytes / 100, move || {
            let mut rows: Vec<usize> = (0..n / 100).map(|_| (numbers.unit() * n as f64) as usize).collect();
            rows.sort_unstable();
            operator.apply_batch(&rows, &v, &mut image).map(drop)
        });
    }
    Ok(())
}

/// What a pass over rows on disk spends on comparing them with the first pass. The thread that reads ahead hashes; "read" is here a copy out of the
/// page cache by the same thread, the fastest that a disk can be.
fn hashing_table(title: &str, matrix: &Matrix<'_>) -> Result<(), Box<dyn Error>> {
    /// As large as a chunk.
    const CHUNK: usize = 8 << 20;
    let (d, bytes) = (matrix.n_cols(), matrix.bytes_per_pass());
    let path = std::env::temp_dir().join(format!("hbpca-pass-speed-{}", std::process::id()));
    std::fs::write(&path, vec![1_u8; bytes])?;
    let (mut file, mut chunk) = (std::fs::File::open(&path)?, vec![0_u8; CHUNK]);
    std::fs::remove_file(&path)?;
    let mut race = Race::new(title);
    race.line("read, one thread", bytes, move || {
        let failed = |error: std::io::Error| hbpca::Error::Source(Box::new(error));
        file.rewind().map_err(failed)?;
        while file.read(&mut chunk).map_err(failed)? > 0 {}
        Ok(())
    });
    race.line("hash, one thread", bytes, || {
        std::hint::black_box(matrix.hash_of_bits());
        Ok(())
    });
    for p in [1, 8, 32] {
        let mut operator = Covariance::new(matrix, Preprocessing::CENTER)?;
        let (v, mut image) = (block(d, p), Block::zeros(d, p));
        race.line(format!("pass, p = {p}"), bytes, move || operator.apply(&v, &mut image).map(drop));
    }
    Ok(race.run()?)
}

/// Time against n, 2n, 4n rows.
fn growth_tables(bytes: usize) -> Result<(), hbpca::Error> {
    let dense: Vec<(usize, Matrix)> = (0..3)
        .map(|k| {
            let n = (bytes / (784 * 4)) << k;
            Ok((1 << k, Dense::new(dense_values::<f32>(n * 784), n, 784)?.into()))
        })
        .collect::<Result<_, hbpca::Error>>()?;
    growth_table("growth, dense f32, d = 784, p = 1", &dense)?;
    let sparse: Vec<(usize, Matrix)> = (0..3)
        .map(|k| Ok((1 << k, sparse_matrix::<f32>((bytes / 8) << k)?.into())))
        .collect::<Result<_, hbpca::Error>>()?;
    growth_table("growth, CSR f32, d = 42000, p = 1", &sparse)
}

/// "× read" is here the time per byte against that of the smallest matrix: 1 when time grows as the data does.
fn growth_table(title: &str, matrices: &[(usize, Matrix<'_>)]) -> Result<(), hbpca::Error> {
    let mut race = Race::new(title);
    for (times, matrix) in matrices {
        let mut operator = Covariance::new(matrix, Preprocessing::CENTER)?;
        let (v, mut image) = (block(matrix.n_cols(), 1), Block::zeros(matrix.n_cols(), 1));
        race.line(format!("{times}n rows"), matrix.bytes_per_pass(), move || {
            operator.apply(&v, &mut image).map(drop)
        });
    }
    race.run()
}

/// Brings every cache line of `values` in and adds one value of each. Adding all values in portable code means 128-bit
/// arithmetic, measured 1.2 times slower than 512-bit: it would flatter whatever is compared with it.
fn touch<T: Copy + Default + AddAssign + Sync + Send>(values: &[T]) -> Vec<T> {
    let line = LINE / size_of::<T>();
    let add = |values: &[T]| {
        let mut sums = [T::default(); 4];
        for lines in values.chunks_exact(4 * line) {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum += lines[i * line];
            }
        }
        sums[0] += sums[1];
        sums[2] += sums[3];
        sums[0] += sums[2];
        sums[0]
    };
    values.par_chunks(values.len().div_ceil(64).max(1)).map(add).collect()
}

/// Does so many multiply-adds on all threads together, with all operands in registers of the widest kind there is.
fn products<A: MultiplyAdd>(count: usize) {
    let threads = rayon::current_num_threads();
    rayon::broadcast(|_| A::chains(count / threads));
}

/// Numbers whose multiply-adds can be timed.
trait MultiplyAdd {
    /// Does `count` of them in twelve chains of registers, enough to hide how long one takes.
    fn chains(count: usize);
}

macro_rules! multiply_add {
    ($number:ident, $baseline:literal, $avx2:literal, $avx512:literal) => {
        impl MultiplyAdd for $number {
            fn chains(count: usize) {
                #[inline(always)]
                fn run<const N: usize>(
                    count: usize,
                    multiply_add: impl Fn($number, $number, $number) -> $number,
                ) {
                    let (a, b) = std::hint::black_box(([1.0; N], [1e-9; N]));
                    let mut sums = [[0.0; N]; 12];
                    for _ in 0..count / (12 * N) {
                        for sum in &mut sums {
                            for i in 0..N {
                                sum[i] = multiply_add(a[i], b[i], sum[i]);
                            }
                        }
                    }
                    std::hint::black_box(sums);
                }
                #[cfg(target_arch = "x86_64")]
                {
                    #[target_feature(enable = "avx512f")]
                    fn avx512(count: usize) {
                        run::<$avx512>(count, $number::mul_add);
                    }
                    #[target_feature(enable = "avx2,fma")]
                    fn avx2(count: usize) {
                        run::<$avx2>(count, $number::mul_add);
                    }
                    if is_x86_feature_detected!("avx512f") {
                        // SAFETY: the processor has them.
                        return unsafe { avx512(count) };
                    }
                    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                        // SAFETY: the processor has them.
                        return unsafe { avx2(count) };
                    }
                }
                run::<$baseline>(count, |a, b, c| a * b + c);
            }
        }
    };
}

multiply_add!(f32, 4, 8, 16);
multiply_add!(f64, 2, 4, 8);

/// A generator good enough for timing: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn block(d: usize, p: usize) -> Block {
    let mut numbers = Numbers(p as u64);
    Block::from_values(d, p, (0..d * p).map(|_| numbers.unit() - 0.5).collect()).expect("d·p values")
}

fn dense_values<T: Real>(len: usize) -> Vec<T> {
    let mut values = vec![T::default(); len];
    values.par_chunks_mut(1 << 16).enumerate().for_each(|(i, piece)| {
        let mut numbers = Numbers(i as u64);
        for x in piece {
            *x = T::from_f64(numbers.unit());
        }
    });
    values
}

/// Rows of about 50 entries over 42,000 columns; column j is about as frequent as 1/(j + 20).
fn sparse_matrix<T: Real>(nnz: usize) -> Result<Csr<'static, T>, hbpca::Error> {
    let d = 42_000_u32;
    let (mut numbers, mut starts, mut columns) = (Numbers(1), vec![0], Vec::with_capacity(nnz + 100));
    let span = (f64::from(d + 20) / 20.0).ln();
    let mut row = Vec::new();
    while columns.len() < nnz {
        row.clear();
        let wanted = 35 + numbers.next() % 41;
        row.extend((0..wanted).map(|_| ((20.0 * (numbers.unit() * span).exp()) as u32 - 20).min(d - 1)));
        row.sort_unstable();
        row.dedup();
        columns.extend_from_slice(&row);
        starts.push(columns.len());
    }
    let values = columns.iter().map(|_| T::from_f64(numbers.unit())).collect::<Vec<_>>();
    Csr::new(d as usize, starts, columns, values)
}
