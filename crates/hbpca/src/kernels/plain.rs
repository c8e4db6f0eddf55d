//! The kernels written as their formulas, in safe code: what the fast ones are tested against.

use std::ops::Range;

use super::{RowSet, RowWeights};
use crate::kernels::Stored;
use crate::matrix::{Csr, Dense};

/// Y += Σ w a(aᵀV) over the rows of one chunk, a = x − shift; V and Y are d×p, row-major.
pub(crate) fn sum_dense<T: Stored>(
    x: &Dense<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    shift: Option<&[f64]>,
    v: &[f64],
    p: usize,
    y: &mut [f64],
    s: &mut Vec<f64>,
) {
    let shift_at = |j: usize| shift.map_or(0.0, |shift| shift[j]);
    s.resize(p, 0.0);
    for i in 0..rows.len() {
        let l = rows.get(i);
        let row = x.row(l);
        s.fill(0.0);
        for (j, value) in row.iter().enumerate() {
            let a = value.to_f64() - shift_at(j);
            for c in 0..p {
                s[c] += a * v[j * p + c];
            }
        }
        let w = weights.of(l);
        for s in s.iter_mut() {
            *s *= w;
        }
        for (j, value) in row.iter().enumerate() {
            let a = value.to_f64() - shift_at(j);
            for c in 0..p {
                y[j * p + c] += a * s[c];
            }
        }
    }
}

/// For the rows of one chunk, with t = w(Vᵀx − c): Y += x tᵀ and `t_sum` += t; V and Y are d×p, row-major.
///
/// A shift μ is brought in afterwards: with c = Vᵀμ, Σ w a(aᵀV) = Y − μ·`t_sum`ᵀ for a = x − μ, so that zeros stay
/// unstored.
pub(crate) fn sum_csr<T: Stored>(
    x: &Csr<'_, T>,
    rows: &RowSet<'_>,
    weights: RowWeights<'_>,
    c: Option<&[f64]>,
    v: &[f64],
    p: usize,
    y: &mut [f64],
    t: &mut Vec<f64>,
    t_sum: &mut [f64],
) {
    t.resize(p, 0.0);
    for i in 0..rows.len() {
        let l = rows.get(i);
        let (columns, values) = x.row_slices(l);
        t.fill(0.0);
        for (&j, value) in columns.iter().zip(values) {
            let (j, a) = (j as usize, value.to_f64());
            for (t, v) in t.iter_mut().zip(&v[j * p..(j + 1) * p]) {
                *t += a * v;
            }
        }
        let w = weights.of(l);
        for (i, t) in t.iter_mut().enumerate() {
            *t = w * (*t - c.map_or(0.0, |c| c[i]));
            t_sum[i] += *t;
        }
        for (&j, value) in columns.iter().zip(values) {
            let (j, a) = (j as usize, value.to_f64());
            for (y, t) in y[j * p..(j + 1) * p].iter_mut().zip(t.iter()) {
                *y += a * t;
            }
        }
    }
}

/// Mean less `pivot`, squared deviations, minimum and maximum of every column over a short run of rows; returns their
/// weight.
pub(crate) fn summarise_rows<T: Stored>(
    x: &Dense<'_, T>,
    rows: Range<usize>,
    weights: Option<&[f64]>,
    pivot: &[f64],
    [mean, squares, min, max]: [&mut [f64]; 4],
) -> f64 {
    let weights = RowWeights(weights);
    let weight: f64 = rows.clone().map(|l| weights.of(l)).sum();
    mean.fill(0.0);
    squares.fill(0.0);
    min.fill(f64::INFINITY);
    max.fill(f64::NEG_INFINITY);
    if weight == 0.0 {
        return weight;
    }
    for l in rows.clone() {
        let w = weights.of(l);
        if w == 0.0 {
            continue;
        }
        for (j, value) in x.row(l).iter().enumerate() {
            let v = value.to_f64();
            mean[j] += w * (v - pivot[j]);
            min[j] = if v < min[j] { v } else { min[j] };
            max[j] = if v > max[j] { v } else { max[j] };
        }
    }
    let inverse = 1.0 / weight;
    for mean in mean.iter_mut() {
        *mean *= inverse;
    }
    for l in rows {
        let w = weights.of(l);
        for (j, value) in x.row(l).iter().enumerate() {
            let deviation = value.to_f64() - pivot[j] - mean[j];
            squares[j] += w * deviation * deviation;
        }
    }
    weight
}

/// AᵀB, p×q.
pub(crate) fn gram(a: &[f64], p: usize, b: &[f64], q: usize) -> Vec<f64> {
    let mut out = vec![0.0; p * q];
    for (a, b) in a.chunks_exact(p).zip(b.chunks_exact(q)) {
        for at in 0..p * q {
            out[at] += a[at / q] * b[at % q];
        }
    }
    out
}

/// W + AH.
pub(crate) fn add_product(w: &[f64], r: usize, a: &[f64], p: usize, h: &[f64]) -> Vec<f64> {
    let mut out = w.to_vec();
    for (w, a) in out.chunks_exact_mut(r).zip(a.chunks_exact(p)) {
        for c in 0..r {
            w[c] += (0..p).map(|j| a[j] * h[j * r + c]).sum::<f64>();
        }
    }
    out
}
