//! Problems that are hard on purpose, as systematic products of what makes them hard.

use hbpca::{Block, Centering, Matrix, Preprocessing};

use crate::common::{Xorshift, csr, csr_f32, dense, dense_f32, entries, with_leading_spectrum};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Storage {
    DenseF64,
    DenseF32,
    CsrF64,
    CsrF32,
}

impl Storage {
    pub const ALL: [Self; 4] = [Self::DenseF64, Self::DenseF32, Self::CsrF64, Self::CsrF32];

    fn hold(self, values: &[f64], d: usize) -> Matrix<'static> {
        match self {
            Self::DenseF64 => dense(values.to_vec(), d),
            Self::DenseF32 => dense_f32(values, d),
            Self::CsrF64 => csr(values, d),
            Self::CsrF32 => csr_f32(values, d),
        }
    }

    fn is_single(self) -> bool {
        matches!(self, Self::DenseF32 | Self::CsrF32)
    }

    pub fn is_sparse(self) -> bool {
        matches!(self, Self::CsrF64 | Self::CsrF32)
    }
}

pub const PREPARATIONS: [Preprocessing; 3] =
    [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE];

/// Data, what is asked of it, and how it is stored.
pub struct Problem {
    pub label: String,
    pub matrix: Matrix<'static>,
    /// The numbers stored, row-major.
    pub values: Vec<f64>,
    pub d: usize,
    pub k: usize,
    pub preprocessing: Preprocessing,
    pub weights: Option<Vec<f64>>,
    pub tol: f64,
    pub seed: u64,
    /// What the run begins with.
    pub start: Option<Block>,
}

impl Problem {
    pub fn new(
        what: &str,
        values: &[f64],
        d: usize,
        k: usize,
        storage: Storage,
        preprocessing: Preprocessing,
    ) -> Self {
        let matrix = storage.hold(values, d);
        let values = entries(&matrix);
        let n = values.len() / d;
        let kind = match preprocessing {
            Preprocessing::NONE => "as is",
            Preprocessing::CENTER => "centred",
            _ => "standardised",
        };
        let label = format!("{what}, {n}×{d}, k = {k}, {storage:?}, {kind}");
        Self { label, matrix, values, d, k, preprocessing, weights: None, tol: 1e-6, seed: 0, start: None }
    }

    pub fn n(&self) -> usize {
        self.values.len() / self.d
    }

    pub fn centred(&self) -> bool {
        self.preprocessing.centering == Centering::Mean
    }
}

/// Tolerances from loose to nearly out of reach go round, and every third problem of those whose spectrum is not made to
/// measure has weights, some of them zero.
fn vary(mut problems: Vec<Problem>, weigh: bool) -> Vec<Problem> {
    for (i, problem) in problems.iter_mut().enumerate() {
        problem.tol = [1e-6, 1e-3, 1e-10][i % 3];
        if weigh && i % 3 == 1 && problem.n() > problem.k + 1 {
            problem.weights = Some((0..problem.n()).map(|l| ((7 * l + 3) % 5) as f64).collect());
            problem.label += ", weighted";
        }
        problem.label = format!("{}, tol = {:e}", problem.label, problem.tol);
    }
    problems
}

/// λ_{k+1} = (1 − gap)·λ_k, gaps from 0 to 1.
pub fn gaps() -> Vec<Problem> {
    let mut problems = Vec::new();
    for gap in [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 0.03, 0.3, 1.0] {
        for k in [1, 3, 8] {
            let leading = |i: usize| 0.9_f64.powi(i as i32);
            let rest = |i: usize| (1.0 - gap) * leading(k - 1) * 0.8_f64.powi((i - k) as i32);
            let lambda: Vec<f64> = (0..30).map(|i| if i < k { leading(i) } else { rest(i) }).collect();
            let (rows, _) = with_leading_spectrum(120, 30, &lambda, k as u64);
            for (i, storage) in Storage::ALL.into_iter().enumerate() {
                let what = format!("gap {gap:e}");
                problems.push(Problem::new(&what, &rows, 30, k, storage, PREPARATIONS[i / 2]));
            }
        }
    }
    vary(problems, false)
}

/// Rows ±√(d·λ_j)·e_j: C is exactly diag(λ), up to the rounding of a square root.
pub fn diagonal(lambda: &[f64]) -> Vec<f64> {
    let d = lambda.len();
    let mut rows = vec![0.0; 2 * d * d];
    for (j, value) in lambda.iter().enumerate() {
        // Scattered, so that neighbours in value are no neighbours in place.
        let column = (j * 7) % d;
        let size = (d as f64 * value).sqrt();
        rows[2 * j * d + column] = size;
        rows[(2 * j + 1) * d + column] = -size;
    }
    rows
}

/// An eigenvalue `multiplicity` times, at the top or below two others.
pub fn repeated(d: usize, multiplicity: usize, above: usize) -> Vec<f64> {
    let value = |i: usize| match i {
        i if i < above => 2.0 - 0.3 * i as f64,
        i if i < above + multiplicity => 1.0,
        i => 0.85_f64.powi((i - above - multiplicity + 1) as i32),
    };
    (0..d).map(value).collect()
}

/// Repeated eigenvalues: fewer copies than k, as many, more, and nothing but copies.
pub fn repetitions() -> Vec<Problem> {
    let mut problems = Vec::new();
    for d in [30, 48] {
        for k in [2, 4, 8] {
            for multiplicity in [2, 3, 6, k + 3, d] {
                for above in [0, 2] {
                    let lambda = repeated(d, multiplicity, above);
                    let (turned, _) = with_leading_spectrum(2 * d, d, &lambda, multiplicity as u64);
                    let what = format!("{multiplicity} copies below {above}");
                    for storage in Storage::ALL {
                        let rows = if storage.is_sparse() { diagonal(&lambda) } else { turned.clone() };
                        let preprocessing = PREPARATIONS[(d + k + above) / 2 % 2];
                        problems.push(Problem::new(&what, &rows, d, k, storage, preprocessing));
                    }
                }
            }
        }
    }
    vary(problems, false)
}

/// Rank 0 to 6 with k = 5.
pub fn low_ranks() -> Vec<Problem> {
    let mut problems = Vec::new();
    for rank in [0, 1, 2, 4, 5, 6] {
        let mut rng = Xorshift(rank as u64 + 11);
        let (left, right): (Vec<f64>, Vec<f64>) =
            ((0..90 * 6).map(|_| rng.normal()).collect(), (0..25 * 6).map(|_| rng.normal()).collect());
        let entry = |l: usize, j: usize| (0..rank).map(|i| left[l * 6 + i] * right[j * 6 + i]).sum::<f64>();
        let rows: Vec<f64> =
            (0..90).flat_map(|l| (0..25).map(move |j| (l, j))).map(|(l, j)| entry(l, j)).collect();
        for storage in Storage::ALL {
            for preprocessing in PREPARATIONS {
                problems.push(Problem::new(&format!("rank {rank}"), &rows, 25, 5, storage, preprocessing));
            }
        }
    }
    vary(problems, true)
}

/// Fewer rows than columns.
pub fn wide() -> Vec<Problem> {
    let mut problems = Vec::new();
    for (n, d) in [(2, 20), (5, 60), (20, 60), (12, 300)] {
        for k in [1, n.min(6)] {
            for storage in Storage::ALL {
                let mut rng = Xorshift((n * d + k) as u64);
                let kept = if storage.is_sparse() { 0.3 } else { 1.0 };
                let rows: Vec<f64> = (0..n * d)
                    .map(|_| (rng.uniform(), rng.normal()))
                    .map(|(u, x)| if u < kept { x + 0.5 } else { 0.0 })
                    .collect();
                for preprocessing in PREPARATIONS {
                    problems.push(Problem::new("wide", &rows, d, k, storage, preprocessing));
                }
            }
        }
    }
    vary(problems, true)
}

/// Means up to ten million standard deviations away from zero.
pub fn huge_means() -> Vec<Problem> {
    let mut problems = Vec::new();
    for ratio in [1e2, 1e4, 1e6, 1e7] {
        for k in [1, 4] {
            let mut rng = Xorshift(k as u64 + 5);
            let level = |j: usize| ratio * (1.0 - j as f64 / 9.0);
            let rows: Vec<f64> = (0..150 * 12)
                .map(|i| i % 12)
                .map(|j| rng.normal() * 0.8_f64.powi(j as i32) + level(j))
                .collect();
            for storage in Storage::ALL {
                for preprocessing in PREPARATIONS {
                    let what = format!("means of {ratio:e} deviations");
                    problems.push(Problem::new(&what, &rows, 12, k, storage, preprocessing));
                }
            }
        }
    }
    vary(problems, true)
}

/// Cauchy entries; one row a million times longer than the others; rows and columns of zeros.
pub fn odd_rows() -> Vec<Problem> {
    let (n, d) = (160, 24);
    let mut rng = Xorshift(41);
    let plain: Vec<f64> = (0..n * d).map(|_| rng.normal()).collect();
    let cauchy: Vec<f64> = (0..n * d).map(|_| ((rng.uniform() - 0.5) * std::f64::consts::PI).tan()).collect();
    let dominated: Vec<f64> =
        plain.iter().enumerate().map(|(i, x)| if i / d == 77 { x * 1e6 } else { *x }).collect();
    let holes: Vec<f64> = plain
        .iter()
        .enumerate()
        .map(|(i, x)| if i / d % 3 == 0 || i % d % 4 == 1 || rng.uniform() < 0.5 { 0.0 } else { *x })
        .collect();
    let mut problems = Vec::new();
    for (what, rows) in
        [("heavy tails", cauchy), ("a dominant row", dominated), ("empty rows and columns", holes)]
    {
        for k in [1, 6] {
            for storage in Storage::ALL {
                for preprocessing in PREPARATIONS {
                    problems.push(Problem::new(what, &rows, d, k, storage, preprocessing));
                }
            }
        }
    }
    vary(problems, true)
}

/// Units so small and so large that squares come close to the ends of f64, and beyond those of f32.
pub fn units() -> Vec<Problem> {
    let mut problems = Vec::new();
    for (unit, single) in [
        (1e-150, false),
        (1e-75, false),
        (1e75, false),
        (1e150, false),
        (1e-30, true),
        (1e-15, true),
        (1e15, true),
        (1e30, true),
    ] {
        let lambda: Vec<f64> = (0..20).map(|i| 0.7_f64.powi(i)).collect();
        let (rows, _) = with_leading_spectrum(100, 20, &lambda, 3);
        let rows: Vec<f64> = rows.iter().map(|x| (x + 0.3) * unit).collect();
        for k in [1, 5] {
            for storage in Storage::ALL.into_iter().filter(|storage| storage.is_single() == single) {
                for preprocessing in PREPARATIONS {
                    let what = format!("units of {unit:e}");
                    problems.push(Problem::new(&what, &rows, 20, k, storage, preprocessing));
                }
            }
        }
    }
    vary(problems, true)
}

/// As many components as columns.
pub fn complete() -> Vec<Problem> {
    let mut problems = Vec::new();
    for d in [1, 2, 7, 20] {
        let mut rng = Xorshift(d as u64 + 90);
        let rows: Vec<f64> = (0..3 * d * d).map(|i| rng.normal() * (1 + i % d) as f64).collect();
        for storage in Storage::ALL {
            for preprocessing in PREPARATIONS {
                problems.push(Problem::new("all components", &rows, d, d, storage, preprocessing));
            }
        }
    }
    vary(problems, true)
}

/// 300 columns: `covariance` solves partially, `krylov` restarts. Spectra that decay slowly, in steps, or not at all.
pub fn large() -> Vec<Problem> {
    type Spectrum = (&'static str, fn(usize) -> f64);
    let d = 300;
    let mut problems = Vec::new();
    let spectra: [Spectrum; 3] = [
        ("slow decay", |i| 1.0 - i as f64 / 400.0),
        ("steps of fifteen", |i| 0.8_f64.powi((i / 15) as i32)),
        ("a flat bulk below twelve copies", |i| if i < 12 { 1.0 } else { 0.9 }),
    ];
    for (what, spectrum) in spectra {
        let lambda: Vec<f64> = (0..d).map(spectrum).collect();
        let (turned, _) = with_leading_spectrum(320, d, &lambda, 8);
        for k in [1, 10] {
            for storage in Storage::ALL {
                let rows = if storage.is_sparse() { diagonal(&lambda) } else { turned.clone() };
                problems.push(Problem::new(what, &rows, d, k, storage, PREPARATIONS[k % 2]));
            }
        }
    }
    vary(problems, false)
}

/// Most numbers are the usual ones of their columns, so that most products are left out of C: a level far from zero, flags of which
/// each row has one, a few rows that outweigh all others, and rows that are all alike where a sample looks.
pub fn backgrounds() -> Vec<Problem> {
    type Number<'a> = (&'static str, &'a dyn Fn(usize, usize) -> f64);
    let (n, d) = (700, 45);
    let mut rng = Xorshift(77);
    let noise: Vec<f64> = (0..n * d).map(|_| rng.normal()).collect();
    let drawn = |l: usize, j: usize| (l * 11 % 37..l * 11 % 37 + 4 + l % 6).contains(&j) || j > 42;
    let flag =
        |l: usize, j: usize| if j < 40 { f64::from(u8::from(l * l % 40 == j)) } else { noise[l * d + j] };
    let numbers: [Number<'_>; 4] = [
        ("a level far from zero", &|l, j| 1e3 + if drawn(l, j) { noise[l * d + j] } else { 0.0 }),
        ("flags", &flag),
        ("rare spikes", &|l, j| if l % 97 == j { 1e5 * noise[l * d + j] } else { 0.0 }),
        ("a background that ends", &|l, j| if l < 500 && !drawn(l, j) { -2.0 } else { noise[l * d + j] }),
    ];
    let mut problems = Vec::new();
    for (what, number) in numbers {
        let rows: Vec<f64> = (0..n * d).map(|at| number(at / d, at % d)).collect();
        for k in [1, 6] {
            for storage in Storage::ALL {
                for preprocessing in PREPARATIONS {
                    problems.push(Problem::new(what, &rows, d, k, storage, preprocessing));
                }
            }
        }
    }
    vary(problems, true)
}
