//! Data with a known spectrum, and a dense eigen-solver to compare with.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::needless_pass_by_value, reason = "tests hand over what they made")]

pub mod chunked;
pub mod ranked;
pub mod sound;

use faer::{Mat, Side};
use hbpca::operator::{CovarianceOperator, Product, RoundingBound, Rows, Shape};
use hbpca::{Block, Csr, Dense, Error, Matrix, Preprocessing};

/// A small generator, so that the tests do not lean on the crate's own.
pub struct Xorshift(pub u64);

impl Xorshift {
    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Sum of twelve uniforms: mean 0, variance 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Orthonormal columns spanning the same space as a random n×d matrix whose columns have mean zero.
fn orthonormal(n: usize, d: usize, centred: bool, rng: &mut Xorshift) -> Mat<f64> {
    let mut g = Mat::from_fn(n, d, |_, _| rng.normal());
    if centred {
        for j in 0..d {
            let mean = (0..n).map(|i| g[(i, j)]).sum::<f64>() / n as f64;
            (0..n).for_each(|i| g[(i, j)] -= mean);
        }
    }
    g.qr().compute_thin_Q()
}

/// n×d rows whose covariance (means are zero) has exactly the eigenvalues `lambda`, up to rounding, and its
/// eigenvectors as the columns of a d×d block.
pub fn with_spectrum(n: usize, lambda: &[f64], seed: u64) -> (Vec<f64>, Block) {
    with_leading_spectrum(n, lambda.len(), lambda, seed)
}

/// The same for rows of any width: at most min(n, d) eigenvalues, the others zero; the eigenvectors of those given.
/// Means are zero where n exceeds the number of eigenvalues.
pub fn with_leading_spectrum(n: usize, d: usize, lambda: &[f64], seed: u64) -> (Vec<f64>, Block) {
    let r = lambda.len();
    let mut rng = Xorshift(seed.wrapping_mul(2) + 1);
    let q = orthonormal(n, r, n > r, &mut rng);
    let u = orthonormal(d, r, false, &mut rng);
    let scaled = Mat::from_fn(n, r, |i, j| q[(i, j)] * (n as f64 * lambda[j]).sqrt());
    let x = scaled * u.transpose();
    let rows = (0..n).flat_map(|i| (0..d).map(move |j| (i, j))).map(|at| x[at]).collect();
    let vectors = (0..d).flat_map(|i| (0..r).map(move |j| (i, j))).map(|at| u[at]).collect();
    (rows, Block::from_values(d, r, vectors).unwrap())
}

/// Any rotation of d dimensions: orthonormal columns of a d×d block.
pub fn rotation(d: usize, seed: u64) -> Block {
    let q = orthonormal(d, d, false, &mut Xorshift(seed.wrapping_mul(2) + 1));
    Block::from_values(d, d, (0..d).flat_map(|i| (0..d).map(move |j| (i, j))).map(|at| q[at]).collect())
        .unwrap()
}

/// Rows times the transpose of a d×d block: every row x becomes Qx.
pub fn rotate(rows: &[f64], q: &Block) -> Vec<f64> {
    let d = q.d();
    let turn = |x: &[f64], i: usize| (0..d).map(|j| q.get(i, j) * x[j]).sum::<f64>();
    rows.chunks_exact(d).flat_map(|x| (0..d).map(|i| turn(x, i)).collect::<Vec<_>>()).collect()
}

/// A geometric spectrum 1, ratio, ratio², … of d values.
pub fn geometric(d: usize, ratio: f64) -> Vec<f64> {
    (0..d).map(|k| ratio.powi(k as i32)).collect()
}

pub fn dense(values: Vec<f64>, d: usize) -> Matrix<'static> {
    Dense::new(values.clone(), values.len() / d, d).unwrap().into()
}

pub fn dense_f32(values: &[f64], d: usize) -> Matrix<'static> {
    let values: Vec<f32> = values.iter().map(|x| *x as f32).collect();
    Dense::new(values.clone(), values.len() / d, d).unwrap().into()
}

/// Compressed rows of the entries that are not zero.
pub fn csr(values: &[f64], d: usize) -> Matrix<'static> {
    let (starts, columns, kept) = compress(values, d);
    Csr::new(d, starts, columns, kept).unwrap().into()
}

pub fn csr_f32(values: &[f64], d: usize) -> Matrix<'static> {
    let (starts, columns, kept) = compress(values, d);
    let kept: Vec<f32> = kept.into_iter().map(|x| x as f32).collect();
    Csr::new(d, starts, columns, kept).unwrap().into()
}

fn compress(values: &[f64], d: usize) -> (Vec<usize>, Vec<u32>, Vec<f64>) {
    let (mut starts, mut columns, mut kept) = (vec![0], Vec::new(), Vec::new());
    for row in values.chunks_exact(d) {
        for (j, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            columns.push(j as u32);
            kept.push(x);
        }
        starts.push(columns.len());
    }
    (starts, columns, kept)
}

/// The same values stored in every way: f64 and f32, dense and compressed.
pub fn every_storage(values: &[f64], d: usize) -> [(&'static str, Matrix<'static>); 4] {
    [
        ("dense f64", dense(values.to_vec(), d)),
        ("dense f32", dense_f32(values, d)),
        ("csr f64", csr(values, d)),
        ("csr f32", csr_f32(values, d)),
    ]
}

/// All entries of a matrix as f64, row-major.
pub fn entries(x: &Matrix<'_>) -> Vec<f64> {
    let mut values = vec![0.0; x.n_rows() * x.n_cols()];
    for (l, row) in values.chunks_exact_mut(x.n_cols()).enumerate() {
        x.for_each_in_row(l, |j, v| row[j] = v);
    }
    values
}

pub const EVERY_PREPROCESSING: [Preprocessing; 5] = [
    Preprocessing::NONE,
    Preprocessing::CENTER,
    Preprocessing::STANDARDIZE,
    Preprocessing::UNIT_RANGE,
    Preprocessing { centering: hbpca::Centering::Mean, scaling: hbpca::Scaling::MinMax },
];

/// n×d values of which about `share` are not zero, with means away from zero.
pub fn sparse_values(n: usize, d: usize, share: f64, seed: u64) -> Vec<f64> {
    let mut rng = Xorshift(seed + 77);
    (0..n * d).map(|_| if rng.uniform() < share { rng.normal() + 1.5 } else { 0.0 }).collect()
}

/// Rows prepared explicitly, by the two-pass textbook formulas.
pub fn prepare(values: &[f64], d: usize, preprocessing: Preprocessing) -> Vec<f64> {
    use hbpca::{Centering, Scaling};
    let n = values.len() / d;
    let mut out = values.to_vec();
    for j in 0..d {
        let column = || values.iter().skip(j).step_by(d).copied();
        let mean = column().sum::<f64>() / n as f64;
        let sd = (column().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        let (lo, hi) = (column().fold(f64::INFINITY, f64::min), column().fold(f64::NEG_INFINITY, f64::max));
        let shift = match (preprocessing.centering, preprocessing.scaling) {
            (Centering::Mean, _) => mean,
            (Centering::None, Scaling::MinMax) => lo,
            _ => 0.0,
        };
        let scale = match preprocessing.scaling {
            Scaling::Std if lo < hi => sd,
            Scaling::MinMax if lo < hi => hi - lo,
            _ => 1.0,
        };
        out.iter_mut().skip(j).step_by(d).for_each(|x| *x = (*x - shift) / scale);
    }
    out
}

/// Eigenvalues (descending) and eigenvectors (columns) of (1/n)XᵀX by a dense solver.
pub fn dense_eigen(rows: &[f64], d: usize) -> (Vec<f64>, Block) {
    let n = rows.len() / d;
    let x = Mat::from_fn(n, d, |i, j| rows[i * d + j]);
    let c = (x.transpose() * &x) * faer::Scale(1.0 / n as f64);
    let eigen = c.self_adjoint_eigen(Side::Lower).unwrap();
    let lambda = (0..d).map(|k| eigen.S()[d - 1 - k]).collect();
    let vectors = (0..d).flat_map(|j| (0..d).map(move |k| (j, d - 1 - k))).map(|at| eigen.U()[at]).collect();
    (lambda, Block::from_values(d, d, vectors).unwrap())
}

/// sin²∠ between two vectors.
pub fn sine2(a: &[f64], b: &[f64]) -> f64 {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let along = dot(a, b) / dot(b, b);
    let across: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - along * b).collect();
    dot(&across, &across) / dot(a, a)
}

/// ‖a − b‖ relative to ‖b‖.
pub fn distance(a: &Block, b: &Block) -> f64 {
    let difference: f64 = a.values().iter().zip(b.values()).map(|(a, b)| (a - b).powi(2)).sum();
    difference.sqrt() / b.norm()
}

pub fn random_block(d: usize, p: usize, seed: u64) -> Block {
    let mut rng = Xorshift(seed + 1234);
    Block::from_values(d, p, (0..d * p).map(|_| rng.normal()).collect()).unwrap()
}

/// Runs `body` in a pool of its own.
pub fn with_threads<T: Send>(threads: usize, body: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(body)
}

/// The smallest thing that is a covariance operator: rows in a list, products by the definition.
pub struct RowList(pub Vec<Vec<f64>>);

impl CovarianceOperator for RowList {
    fn shape(&self) -> Shape {
        Shape { n: self.0.len(), d: self.0[0].len() }
    }
    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        let Product { rows, v, .. } = product;
        *out = Block::zeros(v.d(), v.p());
        let all: Vec<usize> = (0..self.0.len()).collect();
        let rows = match rows {
            Rows::All => &all,
            Rows::Batch(rows) => rows,
        };
        for &l in rows {
            let a = &self.0[l];
            for c in 0..v.p() {
                let s: f64 = a.iter().enumerate().map(|(j, a)| a * v.get(j, c)).sum();
                for (j, a) in a.iter().enumerate() {
                    out.values_mut()[j * v.p() + c] += a * s;
                }
            }
        }
        // Plain loops: d terms in each product, n in each sum.
        let Shape { n, d } = self.shape();
        Ok(RoundingBound::new((d + n) as f64 * f64::EPSILON * self.total_variance()))
    }
    fn total_variance(&self) -> f64 {
        self.0.iter().flatten().map(|a| a * a).sum::<f64>() / self.0.len() as f64
    }
}
