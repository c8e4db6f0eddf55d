use super::*;
use crate::columns::Preprocessing;
use crate::operator::Covariance;

/// Deterministic whole numbers from 0 to 255, one column nearly constant at 255.
fn picture(n: usize, d: usize) -> Vec<f32> {
    let value = |l: usize, j: usize| {
        if j == 0 { 255 - usize::from(l == 5) } else { (l * 31 + j * j * 17 + l * j) % 256 }
    };
    (0..n * d).map(|at| value(at / d, at % d) as f32).collect()
}

#[test]
fn whole_numbers_give_what_f64_gives() {
    let (n, d) = (3000, 30);
    let values = picture(n, d);
    // One value that is no whole number, too small to matter, sends everything the other way.
    for at in [None, Some(0), Some(n * d - 1)] {
        let mut other = values.clone();
        if let Some(at) = at {
            other[at] += 1e-5;
        }
        for preprocessing in [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE] {
            let (x, y): (Matrix, Matrix) = (
                Dense::new(values.clone(), n, d).unwrap().into(),
                Dense::new(other.clone(), n, d).unwrap().into(),
            );
            let [mut exact, mut plain] = [Block::zeros(0, 0), Block::zeros(0, 0)];
            form(&Covariance::new(&x, preprocessing).unwrap().prepared(), &mut exact);
            form(&Covariance::new(&y, preprocessing).unwrap().prepared(), &mut plain);
            let largest = exact.values().iter().fold(0.0_f64, |most, c| most.max(c.abs()));
            // The change of 2e-5 moves entries by as much relative to the spread, which is 1/√n in column 0.
            for (a, b) in exact.values().iter().zip(plain.values()) {
                assert!((a - b).abs() <= 4e-3 * largest, "{a} {b}");
            }
            if at.is_none() {
                // Against two-pass sums.
                let operator = Covariance::new(&x, preprocessing).unwrap();
                let mut rows = vec![0.0; n * d];
                rows.chunks_exact_mut(d)
                    .enumerate()
                    .for_each(|(l, a)| prepare_row(&operator.prepared(), l, a));
                for i in 0..d {
                    for j in 0..d {
                        let want: f64 =
                            (0..n).map(|l| rows[l * d + i] * rows[l * d + j]).sum::<f64>() / n as f64;
                        assert!((exact.get(i, j) - want).abs() <= n as f64 * f64::EPSILON * largest);
                    }
                }
            }
        }
    }
}

/// Every fifth column and the last ones hold one number, up to 2 units; the others whole numbers of units.
fn with_margins(n: usize, d: usize, unit: f32) -> Vec<f32> {
    let value = |l: usize, j: usize| {
        if is_margin(j, d) { j % 3 } else { (l * 31 + j * j * 17 + l * j) % 256 }
    };
    (0..n * d).map(|at| value(at / d, at % d) as f32 * unit).collect()
}

fn is_margin(j: usize, d: usize) -> bool {
    j.is_multiple_of(5) || j >= d - d / 10
}

#[test]
fn columns_that_hold_one_number_are_left_out() {
    let n = 700;
    let weights: Vec<f64> = (0..n).map(|l| (l % 4) as f64).collect();
    // Enough columns to leave some out, and too few; small whole numbers, and others; both precisions.
    for (d, unit, double) in [210, 50].into_iter().flat_map(|d| {
        [1.0_f32, 0.3].into_iter().flat_map(move |unit| [false, true].map(|double| (d, unit, double)))
    }) {
        let values = with_margins(n, d, unit);
        let x: Matrix = if double {
            Dense::new(values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>(), n, d).unwrap().into()
        } else {
            Dense::new(values, n, d).unwrap().into()
        };
        for preprocessing in EVERY {
            for weights in [None, Some(&weights[..])] {
                let operator = operator(&x, preprocessing, weights);
                let prepared = operator.prepared();
                let shifted = prepared.map.shift().is_some();
                let left_out = (0..d).filter(|j| is_margin(*j, d) && (shifted || j.is_multiple_of(3)));
                assert_eq!(prepared.vanishing, left_out.collect::<Vec<_>>());
                let nonzero = NonzeroColumns::of(prepared.vanishing, d).map(|nonzero| nonzero.len);
                assert_eq!(nonzero, (d == 210).then(|| d - prepared.vanishing.len()));
                let [mut c, mut all, mut single] = std::array::from_fn(|_| Block::zeros(0, 0));
                form(&prepared, &mut c);
                form(&Prepared { vanishing: &[], ..prepared }, &mut all);
                let largest = all.values().iter().fold(0.0_f64, |most, c| most.max(c.abs()));
                let rounding = n as f64 * f64::EPSILON * largest;
                for (a, b) in c.values().iter().zip(all.values()) {
                    assert!((a - b).abs() <= rounding, "{a} {b}");
                }
                let bound = form_in_single(&prepared, &mut single) + rounding;
                for (a, b) in single.values().iter().zip(all.values()) {
                    assert!((a - b).abs() <= bound, "{a} {b}");
                }
            }
        }
    }
}

#[test]
fn a_map_found_elsewhere_leaves_out_nothing() {
    let (n, d) = (300, 210);
    let training: Matrix = Dense::new(with_margins(n, d, 0.3), n, d).unwrap().into();
    let other: Matrix = Dense::new(picture(n, d), n, d).unwrap().into();
    let operator = Covariance::new(&training, Preprocessing::CENTER).unwrap();
    let map = operator.map().clone();
    let mut c = Block::zeros(0, 0);
    form(&Covariance::with_map(&other, map).prepared(), &mut c);
    assert!((0..d).all(|j| c.get(j, j) > 0.0));
}

#[test]
fn nothing_but_margins_has_no_covariance() {
    let (n, d) = (300, 210);
    let x: Matrix = Dense::new(vec![0.7_f32; n * d], n, d).unwrap().into();
    let mut c = Block::zeros(0, 0);
    form(&Covariance::new(&x, Preprocessing::CENTER).unwrap().prepared(), &mut c);
    assert!(c.values().iter().all(|c| *c == 0.0));
}

/// Kinds of f32 data that single precision may find hard, 700×37: normal numbers at a level, in a unit; few values; one row that
/// outweighs all others.
fn kinds() -> Vec<(&'static str, Vec<f32>)> {
    let (n, d) = (700, 37);
    let normal = crate::matrix::random_normal(3, n * d);
    let column = |at: usize| 0.9_f64.powf((at % d) as f64);
    let with = |level: f64, unit: f64| {
        let value = |(at, x): (usize, &f64)| ((x * column(at) + level) * unit) as f32;
        normal.iter().enumerate().map(value).collect::<Vec<f32>>()
    };
    let repeated = normal.iter().map(|x| if *x > 1.0 { 0.7 } else { -0.1 }).collect();
    let mut dominated = with(0.0, 1.0);
    dominated[5 * d..6 * d].iter_mut().for_each(|x| *x *= 3e4);
    vec![
        ("plain", with(0.0, 1.0)),
        ("mean 30", with(30.0, 1.0)),
        ("mean 1e6", with(1e6, 1.0)),
        ("repeated", repeated),
        ("dominated", dominated),
        ("small", with(1.0, 1e-12)),
        ("large", with(1.0, 1e15)),
    ]
}

fn operator<'m>(x: &'m Matrix<'m>, preprocessing: Preprocessing, weights: Option<&[f64]>) -> Covariance<'m> {
    match weights {
        None => Covariance::new(x, preprocessing).unwrap(),
        Some(weights) => Covariance::weighted(x, preprocessing, weights).unwrap(),
    }
}

const EVERY: [Preprocessing; 4] =
    [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE];

#[test]
fn sums_in_single_precision_err_by_no_more_than_stated_and_by_more_than_in_double() {
    let weights: Vec<f64> = (0..700).map(|l| f64::from(l % 5)).collect();
    for (kind, values) in kinds() {
        let x: Matrix = Dense::new(values, 700, 37).unwrap().into();
        for preprocessing in EVERY {
            for weights in [None, Some(&weights[..])] {
                let operator = operator(&x, preprocessing, weights);
                let [mut single, mut double] = [Block::zeros(0, 0), Block::zeros(0, 0)];
                let bound = form_in_single(&operator.prepared(), &mut single);
                form(&operator.prepared(), &mut double);
                let off: f64 = single
                    .values()
                    .iter()
                    .zip(double.values())
                    .map(|(a, b)| ((a - b) / bound).powi(2))
                    .sum::<f64>()
                    .sqrt();
                assert!(off <= 1.0, "{kind} {preprocessing:?}: {off}");
                // Single precision is really used; numbers of few digits multiply exactly in either.
                assert!(kind != "plain" || off > 1e-6, "{preprocessing:?}: {off}");
            }
        }
    }
}

#[test]
fn numbers_whose_squares_leave_single_precision_are_formed_in_double() {
    let normal = crate::matrix::random_normal(3, 700 * 37);
    for unit in [1e-30, 1e-20, 1e18, 1e30] {
        let x: Matrix = Dense::new(normal.iter().map(|x| (x * unit) as f32).collect::<Vec<f32>>(), 700, 37)
            .unwrap()
            .into();
        for preprocessing in EVERY {
            let operator = operator(&x, preprocessing, None);
            let [mut single, mut double] = [Block::zeros(0, 0), Block::zeros(0, 0)];
            let bound = form_in_single(&operator.prepared(), &mut single);
            let in_double = form(&operator.prepared(), &mut double);
            assert_eq!(bound.to_bits(), in_double.to_bits(), "{unit} {preprocessing:?}");
            assert_eq!(single, double);
        }
    }
}

#[test]
fn every_number_of_threads_gives_the_same_bits_in_single_precision() {
    let values: Vec<f32> = crate::matrix::random_normal(4, 5000 * 20).iter().map(|x| *x as f32).collect();
    let x: Matrix = Dense::new(values, 5000, 20).unwrap().into();
    let bits = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut c = Block::zeros(0, 0);
            form_in_single(&operator(&x, Preprocessing::CENTER, None).prepared(), &mut c);
            c
        })
    };
    let one = bits(1);
    for threads in [2, 3, 5] {
        assert_eq!(bits(threads), one, "{threads} threads");
    }
}
