//! Passes over data larger than the caches: `cargo bench -p hbpca`.
//!
//! For ratios against plainly reading the same bytes, and many more shapes, see `examples/pass_speed.rs`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hbpca::operator::{Covariance, Products};
use hbpca::{Block, ColumnStatistics, Csr, Dense, Matrix, Preprocessing};

/// Bytes of each matrix.
const BYTES: usize = 200 << 20;

/// Numbers in [0, 1) by a linear congruence: good enough for timing.
fn numbers() -> impl FnMut() -> f64 {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn dense(d: usize) -> Matrix<'static> {
    let n = BYTES / (4 * d);
    let mut next = numbers();
    let values: Vec<f32> = (0..n * d).map(|_| next() as f32).collect();
    Dense::new(values, n, d).expect("n·d finite values").into()
}

/// Rows of about 50 entries, one in each of 50 stretches of columns.
fn sparse(d: usize) -> Matrix<'static> {
    const PER_ROW: usize = 50;
    let n = BYTES / (8 * PER_ROW);
    let mut next = numbers();
    let stretch = d / PER_ROW;
    let columns: Vec<u32> = (0..n * PER_ROW)
        .map(|i| (i % PER_ROW * stretch + (next() * stretch as f64) as usize) as u32)
        .collect();
    let values: Vec<f32> = columns.iter().map(|_| next() as f32).collect();
    let starts: Vec<usize> = (0..=n).map(|l| l * PER_ROW).collect();
    Csr::new(d, starts, columns, values).expect("ascending columns").into()
}

fn passes(criterion: &mut Criterion) {
    let matrices =
        [("dense f32 d=784", dense(784)), ("dense f32 d=54", dense(54)), ("csr f32", sparse(42_000))];
    for (name, matrix) in &matrices {
        let d = matrix.n_cols();
        let mut group = criterion.benchmark_group(*name);
        group.sample_size(20).throughput(Throughput::Bytes(matrix.bytes_per_pass() as u64));
        group.bench_function("statistics", |bencher| bencher.iter(|| ColumnStatistics::new(matrix)));
        let mut operator = Covariance::new(matrix, Preprocessing::CENTER).expect("finite values");
        for p in [1, 8] {
            let mut next = numbers();
            let v = Block::from_values(d, p, (0..d * p).map(|_| next() - 0.5).collect()).expect("d·p values");
            let mut image = Block::zeros(d, p);
            group.bench_function(BenchmarkId::new("pass", p), |bencher| {
                bencher.iter(|| operator.apply(&v, &mut image));
            });
        }
    }
}

criterion_group!(benches, passes);
criterion_main!(benches);
