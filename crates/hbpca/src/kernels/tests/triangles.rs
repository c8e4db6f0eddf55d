//! Both kernels that form C.

use super::super::skipping::SkippingTriangle;
use super::super::symmetric::Triangle;
use super::super::{Arithmetic, Level, RowWeights};
use super::{Coarseness, Numbers, at_each_level, tolerance};
use crate::Block;
use crate::kernels::Stored;
use crate::matrix::{Dense, Real};

/// Σ w(x − shift)(x − shift)ᵀ against the formula; in f32 the sizes of x and shift matter, not that of their difference.
fn check_triangle<T: Stored, A: Arithmetic + Coarseness>(level: Level, d: usize, n: usize, choice: usize) {
    let integers = choice & 4 > 0;
    let mut numbers = Numbers::new((d * 100 + n) as u64, integers);
    let values: Vec<T> = numbers.take(n * d);
    let x = Dense::new(values, n, d).unwrap();
    let shift: Option<Vec<f64>> = (choice & 1 > 0).then(|| numbers.take(d));
    let weights: Option<Vec<f64>> = (choice & 2 > 0).then(|| (0..n).map(|l| ((l + 1) % 4) as f64).collect());
    let rows = n / 3..n;
    let mut triangle = Triangle::<A>::default();
    // In two pieces, into a matrix that is not zero.
    let cut = rows.start + rows.len() / 2;
    for rows in [rows.start..cut, cut..rows.end] {
        triangle.add_rows_at(level, &x, rows, RowWeights(weights.as_deref()), shift.as_deref());
    }
    let mut got = Block::from_values(d, d, vec![1.0; d * d]).unwrap();
    triangle.add_to_at(level, &(0..d).collect::<Vec<_>>(), &mut got);
    let got = got.values();
    let rounding = tolerance(rows.len() + 6) * A::EPSILON_RATIO;
    for i in 0..d {
        for j in 0..d {
            let (mut want, mut scale) = (1.0, 1.0);
            for l in rows.clone() {
                let w = weights.as_ref().map_or(1.0, |weights| weights[l]);
                let at = |j: usize| (x.row(l)[j].to_f64(), shift.as_ref().map_or(0.0, |shift| shift[j]));
                let ((xi, mi), (xj, mj)) = (at(i), at(j));
                want += w * (xi - mi) * (xj - mj);
                scale += w * (xi.abs() + mi.abs()) * (xj.abs() + mj.abs());
            }
            let place = format!("{level:?} d={d} n={n} choice={choice} ({i}, {j})");
            if integers && choice & 2 == 0 {
                assert_eq!((got[i * d + j] + 0.0).to_bits(), (want + 0.0).to_bits(), "{place}"); // −0 is 0
            } else {
                assert!(
                    (got[i * d + j] - want).abs() <= rounding * scale,
                    "{place}: {}",
                    got[i * d + j] - want
                );
            }
        }
    }
}

#[test]
fn triangles_agree_with_the_formula() {
    let dims: &[usize] =
        if cfg!(miri) { &[1, 9] } else { &[1, 2, 7, 8, 12, 13, 22, 24, 25, 48, 49, 54, 100] };
    at_each_level(|level| {
        for &d in dims {
            for n in if cfg!(miri) { [1, 4] } else { [1, 400] } {
                for choice in 0..8 {
                    check_triangle::<f32, f64>(level, d, n, choice);
                    check_triangle::<f64, f64>(level, d, n, choice);
                    check_triangle::<f32, f32>(level, d, n, choice);
                    check_triangle::<f64, f32>(level, d, n, choice);
                }
            }
        }
    });
}

/// Σ w(x − mode)(x − mode)ᵀ and Σ w(x − mode) against the formula; two numbers of three are the mode ones, and whole panels of rows.
fn check_skipping<T: Stored>(level: Level, d: usize, n: usize, choice: usize) {
    let integers = choice & 1 > 0;
    let mut numbers = Numbers::new((d * 100 + n) as u64, integers);
    let mode: Vec<f64> = numbers.take::<T>(d).into_iter().map(Real::to_f64).collect();
    let mut values: Vec<T> = numbers.take(n * d);
    for (at, x) in values.iter_mut().enumerate() {
        let (l, j) = (at / d, at % d);
        if (l * 7 + j * 5 + at / 3).is_multiple_of(3) || (l + j / 4).is_multiple_of(3) {
            *x = T::from_f64(mode[j]);
        }
    }
    let x = Dense::new(values, n, d).unwrap();
    let weights: Option<Vec<f64>> = (choice & 2 > 0).then(|| (0..n).map(|l| ((l + 1) % 4) as f64).collect());
    let rows = n / 3..n;
    let mut triangle = SkippingTriangle::default();
    // In two pieces, into a matrix that is not zero.
    let cut = rows.start + rows.len() / 2;
    for rows in [rows.start..cut, cut..rows.end] {
        triangle.add_rows_at(level, &x, rows, RowWeights(weights.as_deref()), &mode);
    }
    let mut got = Block::from_values(d, d, vec![1.0; d * d]).unwrap();
    triangle.add_to(&mut got);
    let rounding = tolerance(rows.len() + 6);
    let sum = |term: &dyn Fn(usize) -> f64| {
        rows.clone().fold((0.0, 0.0), |(sum, size), l| {
            let term = weights.as_ref().map_or(1.0, |weights| weights[l]) * term(l);
            (sum + term, size + term.abs())
        })
    };
    let y = |l: usize, j: usize| x.row(l)[j].to_f64() - mode[j];
    let agrees = |got: f64, (want, size): (f64, f64), place: &str| {
        let near = (got - want).abs() <= rounding * size;
        let same = (got + 0.0).to_bits() == (want + 0.0).to_bits(); // −0 is 0
        assert!(if integers && weights.is_none() { same } else { near }, "{place}: {got} {want}");
    };
    for i in 0..d {
        let place = format!("{level:?} d={d} n={n} choice={choice} {i}");
        agrees(triangle.column_sums()[i], sum(&|l| y(l, i)), &place);
        for j in 0..d {
            let (want, size) = sum(&|l| y(l, i) * y(l, j));
            agrees(got.values()[i * d + j], (want + 1.0, size + 1.0), &format!("{place}, {j}"));
        }
    }
}

#[test]
fn triangles_without_blank_rows_agree_with_the_formula() {
    let dims: &[usize] = if cfg!(miri) { &[1, 9] } else { &[1, 3, 4, 5, 8, 9, 12, 15, 16, 17, 54, 75] };
    at_each_level(|level| {
        for &d in dims {
            for n in if cfg!(miri) { [1, 4] } else { [1, 400] } {
                for choice in 0..4 {
                    check_skipping::<f32>(level, d, n, choice);
                    check_skipping::<f64>(level, d, n, choice);
                }
            }
        }
    });
}

#[test]
fn rows_that_are_blank_altogether_add_nothing() {
    at_each_level(|level| {
        let mode: Vec<f64> = (0..20).map(f64::from).collect();
        let x = Dense::new(mode.repeat(150), 150, 20).unwrap();
        let mut triangle = SkippingTriangle::default();
        triangle.add_rows_at(level, &x, 0..150, RowWeights(None), &mode);
        let mut c = Block::zeros(20, 20);
        triangle.add_to(&mut c);
        assert!(c.values().iter().chain(triangle.column_sums()).all(|sum| *sum == 0.0));
    });
}

#[test]
fn a_nan_is_not_blank() {
    at_each_level(|level| {
        let mut values = vec![0.0_f32; 100 * 9];
        values[70 * 9 + 8] = f32::NAN;
        let x = Dense::deferring_finite_check(values.into(), 100, 9).unwrap();
        let mut triangle = SkippingTriangle::default();
        triangle.add_rows_at(level, &x, 0..100, RowWeights(None), &[0.0; 9]);
        let mut c = Block::zeros(9, 9);
        triangle.add_to(&mut c);
        assert!(c.get(8, 8).is_nan());
    });
}
