//! Missing values: equal to the explicit computation on the completed matrix, and a fixed point where one is claimed.

#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "what cannot go on in a test has failed")]

mod common;

use common::chunked::Chunked;
use common::{Xorshift, dense, dense_eigen, entries, prepare};
use hbpca::missing::{EmLimits, Holes, HolesInRows, Missing, complete};
use hbpca::{
    Csr, Dense, Error, Fit, FitConfig, Limits, Matrix, Outcome, Preprocessing, RowChunks, SolverKind,
    Whitening,
};

const PREPARATIONS: [Preprocessing; 4] =
    [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE];

/// n rows of rank `rank` with noise and means, and the same with holes at random.
fn holed(n: usize, d: usize, rank: usize, noise: f64, share: f64) -> (Vec<f64>, Vec<f64>) {
    let mut random = Xorshift(7);
    let factors: Vec<f64> = (0..rank * d).map(|_| random.normal()).collect();
    let mut whole = Vec::with_capacity(n * d);
    for _ in 0..n {
        let scores: Vec<f64> = (0..rank).map(|c| random.normal() * 3.0 / (1.0 + c as f64)).collect();
        for j in 0..d {
            let value: f64 = (0..rank).map(|c| scores[c] * factors[c * d + j]).sum();
            whole.push(2.0 + j as f64 + value + noise * random.normal());
        }
    }
    let with_holes = whole.iter().map(|x| if random.uniform() < share { f64::NAN } else { *x }).collect();
    (whole, with_holes)
}

fn matrix(values: &[f64], d: usize) -> Matrix<'static> {
    Dense::deferring_finite_check(values.to_vec().into(), values.len() / d, d).unwrap().into()
}

fn single(values: &[f64], d: usize) -> Matrix<'static> {
    let values: Vec<f32> = values.iter().map(|x| *x as f32).collect();
    let n = values.len() / d;
    Dense::deferring_finite_check(values.into(), n, d).unwrap().into()
}

/// Column means of what is there, the plain way.
fn means(values: &[f64], d: usize) -> Vec<f64> {
    let column = |j: usize| values.iter().skip(j).step_by(d).filter(|x| !x.is_nan());
    (0..d).map(|j| column(j).sum::<f64>() / column(j).count() as f64).collect()
}

fn filled_with_means(values: &[f64], d: usize) -> Vec<f64> {
    let means = means(values, d);
    values.iter().enumerate().map(|(i, x)| if x.is_nan() { means[i % d] } else { *x }).collect()
}

/// Eigenvalues of the prepared rows, and those of a fit within its certificate of them.
fn assert_fits(fit: &Fit, rows: &[f64], d: usize, preprocessing: Preprocessing, what: &str) {
    let (lambda, _) = dense_eigen(&prepare(rows, d, preprocessing), d);
    let n = rows.len() / d;
    assert_eq!(fit.model.summary().n, n, "{what}");
    for (i, theta) in fit.model.eigenvalues().iter().enumerate() {
        let room = fit.certificate.residuals[i] + 1e-12 * lambda[0];
        assert!((theta - lambda[i]).abs() <= room, "{what}: {i}: {theta} {}", lambda[i]);
        let variance = fit.model.explained_variance()[i];
        assert!((variance - lambda[i] * n as f64 / (n as f64 - 1.0)).abs() <= 1.1 * room, "{what}: n − 1");
    }
}

#[test]
fn the_mean_and_dropped_rows_are_the_explicit_computation() {
    let d = 6;
    let (_, values) = holed(200, d, 2, 0.3, 0.1);
    let complete_rows: Vec<f64> =
        values.chunks(d).filter(|row| row.iter().all(|x| !x.is_nan())).flatten().copied().collect();
    let filled = filled_with_means(&values, d);
    for preprocessing in PREPARATIONS {
        for solver in [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Auto] {
            let config = FitConfig {
                k: 3,
                solver,
                preprocessing,
                limits: Limits { tol: 1e-9, ..Limits::default() },
                ..FitConfig::default()
            };
            let fit = |missing| FitConfig { missing, ..config.clone() }.fit(&matrix(&values, d)).unwrap();
            let what = format!("{preprocessing:?} {solver}");
            let mean = fit(Missing::Mean);
            assert_fits(&mean, &filled, d, preprocessing, &what);
            let report = mean.missing.unwrap();
            let n_holes = values.iter().filter(|x| x.is_nan()).count();
            assert_eq!((report.entries, report.dropped), (n_holes, 0));
            let dropped = fit(Missing::DropRows);
            assert_fits(&dropped, &complete_rows, d, preprocessing, &what);
            assert_eq!(dropped.missing.unwrap().dropped, 200 - complete_rows.len() / d);
        }
    }
}

#[test]
fn compressed_rows_may_have_holes_and_weights_count_them() {
    // (1, NaN, ·, 4), (·, 2, 3, ·), (5, 6, NaN, 1), (2, ·, 1, NaN), (·, ·, 7, 2)
    let (starts, columns) = (vec![0, 3, 5, 9, 12, 14], vec![0_u32, 1, 3, 1, 2, 0, 1, 2, 3, 0, 2, 3, 2, 3]);
    let values = vec![1.0, f64::NAN, 4.0, 2.0, 3.0, 5.0, 6.0, f64::NAN, 1.0, 2.0, 1.0, f64::NAN, 7.0, 2.0];
    let x: Matrix = Csr::deferring_finite_check(4, starts, columns, values).unwrap().into();
    let weights = [1.0, 2.0, 1.0, 3.0, 1.0];
    let done = complete(x.clone(), Some(&weights), Missing::Mean).unwrap();
    // Column 1: (2·2 + 6 + 0·3 + 0)/7; column 2: (0 + 2·3 + 3·1 + 7)/7; column 3: (4 + 0 + 1 + 2)/5.
    let want = [
        [1.0, 10.0 / 7.0, 0.0, 4.0],
        [0.0, 2.0, 3.0, 0.0],
        [5.0, 6.0, 16.0 / 7.0, 1.0],
        [2.0, 0.0, 1.0, 1.4],
        [0.0, 0.0, 7.0, 2.0],
    ];
    for (a, b) in entries(&done.matrix).iter().zip(want.as_flattened()) {
        assert!((a - b).abs() < 1e-15);
    }
    let config = FitConfig { k: 2, missing: Missing::Mean, ..FitConfig::default() };
    let repeated: Vec<f64> = (0..5).flat_map(|l| want[l].repeat(weights[l] as usize)).collect();
    let fit = config.run().weights(&weights[..]).fit(&x).unwrap();
    let (lambda, _) = dense_eigen(&prepare(&repeated, 4, Preprocessing::CENTER), 4);
    for i in 0..2 {
        assert!((fit.model.eigenvalues()[i] - lambda[i]).abs() <= fit.certificate.residuals[i] + 1e-13);
    }
}

#[test]
fn rows_on_disk_give_what_rows_in_memory_give() {
    let d = 8;
    let (_, values) = holed(900, d, 3, 0.3, 0.05);
    let weights: Vec<f64> = (0..900).map(|l| f64::from(l % 4) / 2.0).collect();
    for x in [matrix(&values, d), single(&values, d)] {
        for missing in [Missing::Mean, Missing::DropRows] {
            for (solver, preprocessing) in [
                (SolverKind::Krylov, Preprocessing::STANDARDIZE),
                (SolverKind::Anchored, Preprocessing::CENTER),
                (SolverKind::Covariance, Preprocessing::UNIT_RANGE),
                (SolverKind::Auto, Preprocessing::NONE),
            ] {
                for weights in [None, Some(&weights[..])] {
                    let config = FitConfig { k: 2, missing, solver, preprocessing, ..FitConfig::default() };
                    let starts: Vec<usize> = (0..900).step_by(130).chain([900]).collect();
                    let memory = config.run().weights(weights).fit(&x).unwrap();
                    let rows = Chunked::new(&x, &starts);
                    let disk = config.run().weights(weights).fit_streamed(rows, 64 << 20).unwrap();
                    assert_eq!(disk.model.summary().n, memory.model.summary().n);
                    assert_eq!(disk.missing.map(|m| m.entries), memory.missing.map(|m| m.entries));
                    let (a, b) = (disk.model.summary(), memory.model.summary());
                    assert!((a.weight - b.weight).abs() <= 1e-9, "{missing} {solver}");
                    assert!((a.total_variance / b.total_variance - 1.0).abs() <= 1e-12);
                    for i in 0..2 {
                        let room = disk.certificate.residuals[i] + memory.certificate.residuals[i];
                        assert!(
                            (a.eigenvalues[i] - b.eigenvalues[i]).abs() <= room,
                            "{missing} {solver} {i}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn em_of_rows_on_disk_is_em_in_memory() {
    let d = 8;
    let (_, values) = holed(600, d, 3, 0.3, 0.05);
    let weights: Vec<f64> = (0..600).map(|l| f64::from(l % 4) / 2.0).collect();
    // Compressed: every third number is not stored, and none of these is a hole.
    let (mut starts, mut columns, mut stored) = (vec![0], Vec::new(), Vec::new());
    for (l, row) in values.chunks(d).enumerate() {
        for (j, x) in row.iter().enumerate().filter(|(j, _)| !(l + j).is_multiple_of(3)) {
            columns.push(j as u32);
            stored.push(*x);
        }
        starts.push(columns.len());
    }
    let csr: Matrix = Csr::deferring_finite_check(d, starts, columns, stored).unwrap().into();
    for x in [matrix(&values, d), single(&values, d), csr] {
        for (solver, preprocessing) in [
            (SolverKind::Krylov, Preprocessing::STANDARDIZE),
            (SolverKind::Anchored, Preprocessing::CENTER),
            (SolverKind::Covariance, Preprocessing::UNIT_RANGE),
            (SolverKind::Auto, Preprocessing::NONE),
        ] {
            for weights in [None, Some(&weights[..])] {
                let config = FitConfig {
                    k: 2,
                    missing: Missing::Em,
                    em: EmLimits { tol: 1e-10, ..EmLimits::default() },
                    limits: Limits { tol: 1e-9, max_passes: 1e6, ..Limits::default() },
                    solver,
                    preprocessing,
                    ..FitConfig::default()
                };
                let what = format!("{solver} {preprocessing:?} weighted {}", weights.is_some());
                let memory = config.run().weights(weights).fit(&x).unwrap();
                let starts: Vec<usize> = (0..600).step_by(70).chain([600]).collect();
                let rows = Chunked::new(&x, &starts);
                let disk = config.run().weights(weights).fit_streamed(rows, 64 << 20).unwrap();
                let (on_disk, in_memory) = (disk.missing.unwrap(), memory.missing.unwrap());
                assert_eq!((on_disk.entries, on_disk.rows), (in_memory.entries, in_memory.rows), "{what}");
                let point = on_disk.stationary_point.unwrap();
                assert!(point.is_reached() && disk.outcome == Outcome::Converged, "{what}: {point:?}");
                // Both are a few distances from the same fixed point.
                let (a, b) = (disk.model.summary(), memory.model.summary());
                assert!((a.total_variance / b.total_variance - 1.0).abs() <= 1e-8, "{what}");
                for i in 0..2 {
                    let room = disk.certificate.residuals[i] + memory.certificate.residuals[i];
                    let change = (a.eigenvalues[i] - b.eigenvalues[i]).abs();
                    assert!(change <= room + 1e-8 * b.eigenvalues[0], "{what}: {i}: {change}");
                }
                // Every round reads all rows, and the chunks with holes once more.
                assert!(disk.passes >= 2.0 * point.rounds as f64, "{what}: {} passes", disk.passes);
            }
        }
    }
}

#[test]
fn chunks_that_are_read_in_order_alone_give_what_the_matrix_gives() {
    let d = 8;
    let (_, values) = holed(600, d, 3, 0.3, 0.05);
    let counts: Vec<f64> = (0..600).map(|l| f64::from(l % 4)).collect();
    let starts: Vec<usize> = (0..600).step_by(70).chain([600]).collect();
    for x in [matrix(&values, d), single(&values, d)] {
        for (missing, solver, preprocessing) in [
            (Missing::DropRows, SolverKind::Krylov, Preprocessing::STANDARDIZE),
            (Missing::Mean, SolverKind::Covariance, Preprocessing::UNIT_RANGE),
            (Missing::Mean, SolverKind::Anchored, Preprocessing::CENTER),
            (Missing::Em, SolverKind::Krylov, Preprocessing::STANDARDIZE),
            (Missing::Em, SolverKind::Auto, Preprocessing::CENTER),
        ] {
            for weights in [None, Some(&counts[..])] {
                let config = FitConfig {
                    k: 2,
                    missing,
                    em: EmLimits { tol: 1e-10, ..EmLimits::default() },
                    limits: Limits { tol: 1e-9, max_passes: 1e6, ..Limits::default() },
                    solver,
                    preprocessing,
                    ..FitConfig::default()
                };
                let what = format!("{missing} {solver} weighted {}", weights.is_some());
                let memory = config.run().weights(weights).fit(&x).unwrap();
                let mut rows = Chunked::new(&x, &starts).in_order();
                let survey = rows.survey(weights, missing).unwrap();
                let run = config.run().weights(weights).surveyed(survey);
                let chunks = run.fit_streamed(rows, 64 << 20).unwrap();
                assert_eq!(chunks.outcome, Outcome::Converged, "{what}");
                let (a, b) = (chunks.missing.unwrap(), memory.missing.unwrap());
                assert_eq!((a.entries, a.rows, a.dropped), (b.entries, b.rows, b.dropped), "{what}");
                let (a, b) = (chunks.model.summary(), memory.model.summary());
                assert_eq!(a.n, b.n, "{what}");
                assert!((a.weight / b.weight - 1.0).abs() <= 600.0 * f64::EPSILON, "{what}");
                assert!((a.total_variance / b.total_variance - 1.0).abs() <= 1e-8, "{what}");
                for i in 0..2 {
                    let room = chunks.certificate.residuals[i] + memory.certificate.residuals[i];
                    let change = (a.eigenvalues[i] - b.eigenvalues[i]).abs();
                    assert!(change <= room + 1e-8 * b.eigenvalues[0], "{what}: {i}: {change}");
                }
            }
        }
    }
}

#[test]
fn a_survey_for_another_choice_is_refused() {
    let (_, values) = holed(90, 6, 2, 0.3, 0.1);
    let x = matrix(&values, 6);
    let config = FitConfig { k: 2, missing: Missing::Mean, ..FitConfig::default() };
    let mut rows = Chunked::new(&x, &[0, 30, 60, 90]).in_order();
    assert!(matches!(rows.survey(None, Missing::Error), Err(Error::NotFinite { .. })));
    let survey = rows.survey(None, Missing::DropRows).unwrap();
    let said = config.run().surveyed(survey).fit_streamed(rows, 64 << 20).unwrap_err().to_string();
    assert!(said.contains("missing = mean: the rows were surveyed for drop-rows"), "{said}");
    let mut rows = Chunked::new(&x, &[0, 30, 60, 90]).in_order();
    let survey = rows.survey(None, Missing::Mean).unwrap();
    let run = config.run().weights(&[1.0; 90][..]).surveyed(survey);
    let said = run.fit_streamed(rows, 64 << 20).unwrap_err().to_string();
    assert!(said.contains("the rows were surveyed without them"), "{said}");
}

/// Rows of which one number changes after so many chunks were read.
struct Changing<'a> {
    rows: Chunked<'a>,
    reads: usize,
    after: usize,
}

impl RowChunks for Changing<'_> {
    fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }
    fn n_cols(&self) -> usize {
        self.rows.n_cols()
    }
    fn nnz(&self) -> usize {
        self.rows.nnz()
    }
    fn is_sparse(&self) -> bool {
        false
    }
    fn bytes(&self) -> u64 {
        self.rows.bytes()
    }
    fn starts(&self) -> &[usize] {
        self.rows.starts()
    }
    fn read_chunk(&mut self, i: usize, _: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        let chunk = self.rows.read_chunk(i, None)?;
        self.reads += 1;
        if i != 1 || self.reads <= self.after {
            return Ok(chunk);
        }
        let mut values = entries(&chunk);
        values[0] += 1.0;
        Ok(matrix(&values, chunk.n_cols()))
    }
    fn read_rows(&mut self, rows: std::ops::Range<usize>) -> Result<Matrix<'static>, Error> {
        self.rows.read_rows(rows)
    }
}

#[test]
fn rows_that_change_between_rounds_are_refused() {
    let (_, mut values) = holed(90, 6, 2, 0.3, 0.1);
    values[30 * 6] = 1.5;
    let x = matrix(&values, 6);
    for missing in [Missing::Mean, Missing::Em] {
        let config = FitConfig { k: 2, missing, ..FitConfig::default() };
        // After the scan of three chunks; later in a round; while X̂ and Y are compared.
        for after in if missing == Missing::Em { vec![3, 7, 10] } else { vec![3] } {
            let rows = Changing { rows: Chunked::new(&x, &[0, 30, 60, 90]), reads: 0, after };
            let error = config.run().fit_streamed(rows, 64 << 20).unwrap_err().to_string();
            assert!(error.contains("rows 30 to 59 (counted from 0) have changed"), "{after}: {error}");
        }
    }
}

#[test]
fn em_ends_at_a_fixed_point_by_its_definition() {
    let d = 8;
    let (_, values) = holed(150, d, 2, 0.2, 0.15);
    for (preprocessing, ridge) in [
        (Preprocessing::CENTER, 0.0),
        (Preprocessing::NONE, 0.0),
        (Preprocessing::STANDARDIZE, 0.0),
        (Preprocessing::CENTER, 0.1),
    ] {
        for solver in [SolverKind::Covariance, SolverKind::Krylov] {
            let config = FitConfig {
                k: 2,
                solver,
                preprocessing,
                missing: Missing::Em,
                em: EmLimits { tol: 1e-9, ridge, ..EmLimits::default() },
                limits: Limits { tol: 1e-10, max_passes: 1e6, ..Limits::default() },
                ..FitConfig::default()
            };
            let done = config.run().fit_completing(matrix(&values, d)).unwrap();
            let point = done.fit.missing.unwrap().stationary_point.unwrap();
            let what = format!("{preprocessing:?} {solver} ridge {ridge}");
            assert!(point.is_reached() && done.fit.outcome == Outcome::Converged, "{what}: {point:?}");
            // What was there is as it was; the certificate is that of the completed matrix.
            let filled = entries(&done.matrix);
            for (x, y) in values.iter().zip(&filled) {
                assert!(x.is_nan() || x.to_bits() == y.to_bits(), "{what}");
            }
            assert_fits(&done.fit, &filled, d, preprocessing, &what);
            // Filling the holes from the components of that matrix, found by other means, changes nothing.
            let (_, vectors) = dense_eigen(&prepare(&filled, d, preprocessing), d);
            let model = &done.fit.model;
            let (shift, scale) = (model.shift(), model.scale());
            let mut worst = 0.0_f64;
            for (l, row) in filled.chunks(d).enumerate() {
                let at = |part: Option<&[f64]>, j: usize, none: f64| part.map_or(none, |part| part[j]);
                let a: Vec<f64> = (0..d).map(|j| (row[j] - at(shift, j, 0.0)) / at(scale, j, 1.0)).collect();
                for j in (0..d).filter(|j| values[l * d + j].is_nan()) {
                    let rebuilt: f64 = (0..2)
                        .map(|c| {
                            let u = vectors.column(c);
                            u[j] * u.iter().zip(&a).map(|(u, a)| u * a).sum::<f64>() / (1.0 + ridge)
                        })
                        .sum();
                    worst = worst.max((rebuilt - a[j]).abs());
                }
            }
            let spread = (model.summary().total_variance / d as f64).sqrt();
            let holes = (values.iter().filter(|x| x.is_nan()).count() as f64).sqrt();
            assert!(worst <= 1e-8 * holes * spread, "{what}: {worst}");
            // Rows with holes have the same scores by least squares on what they have.
            let rule = HolesInRows::LeastSquares { ridge };
            let projection = model.projection(Whitening::Off);
            let scores: Vec<f64> = projection.transform_with_holes(&matrix(&values, d), rule).unwrap();
            let of_filled: Vec<f64> = projection.transform_to(&done.matrix).unwrap();
            for (l, (a, b)) in scores.chunks(2).zip(of_filled.chunks(2)).enumerate() {
                let complete = values[l * d..(l + 1) * d].iter().all(|x| !x.is_nan());
                let shrunk = if complete { 1.0 } else { 1.0 + ridge };
                for (a, b) in a.iter().zip(b) {
                    assert!((a - b / shrunk).abs() <= 1e-6 * (1.0 + b.abs()), "{what}: row {l}: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn holes_in_a_column_that_has_one_value_are_that_value() {
    let d = 8;
    let (_, mut values) = holed(200, d, 2, 0.3, 0.08);
    values.iter_mut().skip(3).step_by(d).filter(|x| !x.is_nan()).for_each(|x| *x = 1.7);
    for solver in [SolverKind::Covariance, SolverKind::Krylov, SolverKind::Anchored] {
        for preprocessing in [Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE] {
            let config = FitConfig {
                k: 2,
                missing: Missing::Em,
                solver,
                preprocessing,
                limits: Limits { max_passes: 1e5, ..Limits::default() },
                ..FitConfig::default()
            };
            let x = matrix(&values, d);
            let done = config.run().fit_completing(x.clone()).unwrap();
            let disk = config.run().fit_streamed(Chunked::new(&x, &[0, 90, 200]), 64 << 20).unwrap();
            for fit in [&done.fit, &disk] {
                let point = fit.missing.unwrap().stationary_point.unwrap();
                assert!(point.is_reached() && fit.outcome == Outcome::Converged, "{solver}: {point:?}");
                assert_eq!(fit.model.scale().unwrap()[3].to_bits(), 1.0_f64.to_bits());
            }
            for x in entries(&done.matrix).iter().skip(3).step_by(d) {
                assert_eq!(x.to_bits(), 1.7_f64.to_bits());
            }
        }
    }
}

#[test]
fn em_recovers_rows_of_low_rank() {
    let d = 10;
    let (whole, values) = holed(300, d, 2, 0.0, 0.2);
    let config = FitConfig {
        k: 2,
        missing: Missing::Em,
        em: EmLimits { tol: 1e-12, max_rounds: 5000, ..EmLimits::default() },
        limits: Limits { max_passes: 1e6, ..Limits::default() },
        ..FitConfig::default()
    };
    let done = config.run().fit_completing(matrix(&values, d)).unwrap();
    let worst = entries(&done.matrix).iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-8, "{worst}");
    // The mean does not.
    let mean =
        FitConfig { missing: Missing::Mean, ..config }.run().fit_completing(matrix(&values, d)).unwrap();
    let worst = entries(&mean.matrix).iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst > 1.0, "{worst}");
}

#[test]
fn rounds_that_are_spent_say_so() {
    let (_, values) = holed(100, 6, 2, 0.5, 0.3);
    let config = FitConfig {
        k: 2,
        missing: Missing::Em,
        em: EmLimits { max_rounds: 2, ..EmLimits::default() },
        ..FitConfig::default()
    };
    let fit = config.fit(&matrix(&values, 6)).unwrap();
    let report = fit.missing.unwrap();
    let point = report.stationary_point.unwrap();
    assert_eq!((fit.outcome, point.rounds, point.is_reached()), (Outcome::Budget, 2, false));
    assert!(report.to_string().contains("em stopped after 2 rounds"), "{report}");
}

#[test]
fn what_cannot_be_filled_is_refused_by_name() {
    let n = f64::NAN;
    let x = matrix(&[1.0, n, 3.0, n, 5.0, n, 2.0, 1.0, n], 3);
    let fit = |missing, k| FitConfig { k, missing, ..FitConfig::default() }.fit(&x);
    let text = |missing, k| fit(missing, k).unwrap_err().to_string();
    assert!(
        text(Missing::Error, 1).contains("missing: drop-rows, mean or em"),
        "{}",
        text(Missing::Error, 1)
    );
    assert!(text(Missing::DropRows, 1).contains("every row has a missing value: choose mean or em"));
    let empty = matrix(&[1.0, n, 3.0, n], 2);
    for missing in [Missing::Mean, Missing::Em] {
        let config = FitConfig { missing, ..FitConfig::default() };
        let error = config.fit(&empty).unwrap_err();
        assert!(matches!(error, Error::NothingInColumn { column: 1 }), "{error}");
    }
    assert!(text(Missing::Em, 2).contains("fewer than 2 components"), "{}", text(Missing::Em, 2));
    let share = FitConfig { variance_share: Some(0.9), missing: Missing::Em, ..FitConfig::default() };
    assert!(share.fit(&x).unwrap_err().to_string().contains("k = 0.9"));
    // An infinity is no missing value.
    let infinite = matrix(&[1.0, n, f64::INFINITY, 4.0, 2.0, 1.0], 2);
    for missing in [Missing::Mean, Missing::Em, Missing::DropRows] {
        let config = FitConfig { missing, ..FitConfig::default() };
        let error = config.fit(&infinite).unwrap_err();
        assert!(matches!(error, Error::NotFinite { value, .. } if value.is_infinite()), "{missing}: {error}");
    }
}

#[test]
fn a_row_with_nothing_in_it_is_the_mean() {
    let d = 5;
    let (_, mut values) = holed(80, d, 2, 0.2, 0.1);
    values[3 * d..4 * d].fill(f64::NAN);
    for missing in [Missing::Mean, Missing::Em] {
        let config = FitConfig { k: 2, missing, ..FitConfig::default() };
        let done = config.run().fit_completing(matrix(&values, d)).unwrap();
        let row = &entries(&done.matrix)[3 * d..4 * d];
        for (x, mean) in row.iter().zip(done.fit.model.shift().unwrap()) {
            assert!((x - mean).abs() <= 1e-5 * (1.0 + mean.abs()), "{missing}: {x} {mean}");
        }
    }
    assert_eq!(
        Holes::of(&matrix(&values, d)).per_column().iter().sum::<usize>(),
        values.iter().filter(|x| x.is_nan()).count()
    );
}

#[test]
fn nothing_missing_changes_no_bit() {
    let (whole, _) = holed(120, 6, 2, 0.3, 0.1);
    let config = FitConfig { k: 2, ..FitConfig::default() };
    let plain = config.fit(&dense(whole.clone(), 6)).unwrap();
    for missing in [Missing::DropRows, Missing::Mean, Missing::Em] {
        let fit = FitConfig { missing, ..config.clone() }.fit(&dense(whole.clone(), 6)).unwrap();
        assert_eq!((fit.model, fit.missing), (plain.model.clone(), None));
    }
}
