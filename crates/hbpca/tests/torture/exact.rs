//! Singular values and vectors of small matrices in twice the working precision.
//!
//! A number is the unevaluated sum of two f64, about 32 digits (Dekker 1971; products by a fused multiply-add). The decomposition is one-sided Jacobi,
//! which keeps small singular values to their own last digits (Demmel & Veselić 1992), started from the answer in f64.

use std::ops::{Add, Div, Mul, Neg, Sub};

use faer::Mat;

/// `high + low`, |low| ≤ u·|high|.
#[derive(Clone, Copy, Debug, Default)]
pub struct Double {
    pub high: f64,
    pub low: f64,
}

impl Double {
    fn normalised(high: f64, low: f64) -> Self {
        let sum = high + low;
        Self { high: sum, low: low - (sum - high) }
    }

    pub fn sqrt(self) -> Self {
        if self.high <= 0.0 {
            return Self::default();
        }
        let root = self.high.sqrt();
        // One step of Newton.
        let rest = self - Self::from(root) * Self::from(root);
        Self::normalised(root, rest.high / (2.0 * root))
    }

    pub fn value(self) -> f64 {
        self.high + self.low
    }
}

impl From<f64> for Double {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Add for Double {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let sum = self.high + other.high;
        let moved = sum - self.high;
        let error = (self.high - (sum - moved)) + (other.high - moved);
        Self::normalised(sum, error + self.low + other.low)
    }
}

impl Neg for Double {
    type Output = Self;

    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Sub for Double {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Double {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let product = self.high * other.high;
        let error = self.high.mul_add(other.high, -product);
        Self::normalised(product, error + (self.high * other.low + self.low * other.high))
    }
}

impl Div for Double {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let first = self.high / other.high;
        let rest = self - other * Self::from(first);
        let second = rest.high / other.high;
        let rest = rest - other * Self::from(second);
        Self::normalised(first, second) + Self::from(rest.high / other.high)
    }
}

/// Columns of equal length.
pub type Columns = Vec<Vec<Double>>;

pub fn dot(a: &[Double], b: &[Double]) -> Double {
    a.iter().zip(b).fold(Double::default(), |sum, (a, b)| sum + *a * *b)
}

/// a + s·b.
pub fn add_scaled(a: &mut [Double], s: Double, b: &[Double]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = *a + s * *b);
}

/// (a, b) ← (c·a − s·b, s·a + c·b).
fn rotate(columns: &mut Columns, i: usize, j: usize, c: Double, s: Double) {
    let (left, right) = columns.split_at_mut(j);
    for (a, b) in left[i].iter_mut().zip(&mut right[0]) {
        (*a, *b) = (c * *a - s * *b, s * *a + c * *b);
    }
}

/// The squares of the singular values of A, descending, and its right singular vectors; A is given by its columns.
pub fn decompose(a: &Columns) -> (Vec<Double>, Columns) {
    let mut v = orthonormalised(first_guess(a));
    let mut av: Columns = v.iter().map(|v| multiply(a, v)).collect();
    let d = v.len();
    // Columns that are rounding have no direction.
    let nothing = 1e-60 * av.iter().map(|column| dot(column, column).high).fold(0.0, f64::max);
    // Quadratic convergence from the digits of f64: two sweeps, more where values are close.
    for _ in 0..30 {
        let mut turned = false;
        for i in 0..d {
            for j in i + 1..d {
                turned |= turn(&mut av, &mut v, i, j, nothing);
            }
        }
        if !turned {
            break;
        }
    }
    let mut pairs: Vec<(Double, Vec<Double>)> = av.iter().map(|column| dot(column, column)).zip(v).collect();
    pairs.sort_by(|a, b| b.0.value().total_cmp(&a.0.value()));
    pairs.into_iter().unzip()
}

/// Makes columns i and j of AV orthogonal; whether they were not.
fn turn(av: &mut Columns, v: &mut Columns, i: usize, j: usize, nothing: f64) -> bool {
    const ORTHOGONAL: f64 = 1e-30;
    let (p, q, r) = (dot(&av[i], &av[i]), dot(&av[j], &av[j]), dot(&av[i], &av[j]));
    if p.high.min(q.high) <= nothing || r.high.abs() <= ORTHOGONAL * (p.high.sqrt() * q.high.sqrt()) {
        return false;
    }
    // cot 2φ = (q − p)/2r; the smaller of the two angles.
    let cot = (q - p) / (r + r);
    let one = Double::from(1.0);
    let tan = if cot.high.abs() > 1e40 {
        one / (cot + cot) // the square might be out of range
    } else {
        let root = (cot * cot + one).sqrt();
        if cot.high >= 0.0 { one / (cot + root) } else { one / (cot - root) }
    };
    let c = one / (tan * tan + one).sqrt();
    rotate(av, i, j, c, c * tan);
    rotate(v, i, j, c, c * tan);
    true
}

/// Right singular vectors in f64, rows of length d.
fn first_guess(a: &Columns) -> Columns {
    let (d, n) = (a.len(), a[0].len());
    let largest = a.iter().flatten().fold(0.0_f64, |most, x| most.max(x.high.abs()));
    let unit = |j: usize| (0..d).map(|i| Double::from(f64::from(u8::from(i == j)))).collect();
    if largest == 0.0 {
        return (0..d).map(unit).collect();
    }
    // Rows of zeros below, where there are fewer rows than columns: all d vectors are wanted.
    let rows = Mat::from_fn(n.max(d), d, |l, j| if l < n { a[j][l].value() } else { 0.0 });
    let Ok(svd) = rows.thin_svd() else { return (0..d).map(unit).collect() };
    (0..d).map(|i| (0..d).map(|j| Double::from(svd.V()[(j, i)])).collect()).collect()
}

/// Gram–Schmidt, twice.
fn orthonormalised(mut v: Columns) -> Columns {
    for i in 0..v.len() {
        for _ in 0..2 {
            let (before, rest) = v.split_at_mut(i);
            for earlier in before.iter() {
                let along = -dot(earlier, &rest[0]);
                add_scaled(&mut rest[0], along, earlier);
            }
        }
        let length = dot(&v[i], &v[i]).sqrt();
        v[i].iter_mut().for_each(|x| *x = *x / length);
    }
    v
}

/// Av.
pub fn multiply(a: &Columns, v: &[Double]) -> Vec<Double> {
    let mut out = vec![Double::default(); a[0].len()];
    a.iter().zip(v).for_each(|(column, v)| add_scaled(&mut out, *v, column));
    out
}

#[test]
fn small_singular_values_keep_their_digits() {
    // A = [[1, 1], [0, ε]]: λ₁λ₂ = ε², λ₁ + λ₂ = 2 + ε².
    for small in [1e-3, 1e-8, 1e-12] {
        let number = |x: f64| Double::from(x);
        let a = vec![vec![number(1.0), number(0.0)], vec![number(1.0), number(small)]];
        let (squares, v) = decompose(&a);
        let product = squares[0] * squares[1] / (number(small) * number(small));
        assert!((product - number(1.0)).value().abs() < 1e-28, "{product:?}");
        let sum = squares[0] + squares[1] - number(2.0) - number(small) * number(small);
        assert!(sum.value().abs() < 1e-30, "{sum:?}");
        assert!(dot(&v[0], &v[1]).value().abs() < 1e-30);
        assert!((dot(&v[0], &v[0]) - number(1.0)).value().abs() < 1e-30);
    }
}
