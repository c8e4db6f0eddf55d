//! Packed genotypes: equal to the matrix of dosages that they stand for, with weights and with what is missing, wherever the codes are.

#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "what cannot go on in a test has failed")]

mod common;

use std::sync::Arc;

use common::{Xorshift, dense_eigen};
use hbpca::checkpoint::{Checkpoint, Checkpoints};
use hbpca::genotypes::{Genotypes, VariantSource};
use hbpca::missing::{EmLimits, HolesInRows, Missing};
use hbpca::{
    Centering, Dense, Error, Fit, FitConfig, Limits, Matrix, Outcome, Preprocessing, Scaling, SolverKind,
    Whitening,
};

const N: usize = 170;
const D: usize = 45;

/// Dosages of three populations, n×d, NaN where they are missing: in one of `of_missing` samples.
fn dosages(share: f64, of_missing: usize) -> Vec<f64> {
    let mut random = Xorshift(11);
    let frequencies: Vec<[f64; 3]> =
        (0..D).map(|_| [0, 1, 2].map(|_| 0.1 + 0.8 * random.uniform())).collect();
    let mut rows = Vec::with_capacity(N * D);
    for l in 0..N {
        for f in &frequencies {
            let copies = [0, 1].map(|_| f64::from(u8::from(random.uniform() < f[l % 3])));
            let missing = random.uniform() < share && l % of_missing == 0;
            rows.push(if missing { f64::NAN } else { copies[0] + copies[1] });
        }
    }
    rows
}

fn packed(rows: &[f64]) -> Genotypes {
    let n = rows.len() / D;
    let stride = n.div_ceil(4);
    let mut codes = vec![0_u8; D * stride];
    for (at, x) in rows.iter().enumerate() {
        let (l, j) = (at / D, at % D);
        let code = match x {
            x if x.is_nan() => 1,
            x if *x > 1.5 => 0,
            x if *x > 0.5 => 2,
            _ => 3,
        };
        codes[j * stride + l / 4] |= code << (2 * (l % 4));
    }
    Genotypes::new(n, D, codes).unwrap()
}

fn matrix(rows: &[f64]) -> Matrix<'static> {
    Dense::deferring_finite_check(rows.to_vec().into(), rows.len() / D, D).unwrap().into()
}

fn config(missing: Missing, scaling: Scaling) -> FitConfig {
    FitConfig {
        k: 3,
        missing,
        preprocessing: Preprocessing { centering: Centering::Mean, scaling },
        limits: Limits { tol: 1e-10, max_passes: 1e6, ..Limits::default() },
        ..FitConfig::default()
    }
}

fn assert_same(a: &Fit, b: &Fit, room: f64, what: &str) {
    let (x, y) = (a.model.summary(), b.model.summary());
    assert!((x.weight / y.weight - 1.0).abs() <= 1e-13, "{what}: {} {}", x.weight, y.weight);
    assert!((x.total_variance / y.total_variance - 1.0).abs() <= 1e-12 + room, "{what}");
    for i in 0..a.model.n_components() {
        let room = a.certificate.residuals[i] + b.certificate.residuals[i] + room * y.eigenvalues[0];
        let change = (x.eigenvalues[i] - y.eigenvalues[i]).abs();
        assert!(change <= room, "{what}: eigenvalue {i}: {change} {room}");
    }
    let variances = a.model.explained_variance().into_iter().zip(b.model.explained_variance());
    for (i, (x, y)) in variances.enumerate() {
        assert!((x / y - 1.0).abs() <= 1e-8 + 10.0 * room, "{what}: variance {i} with its n − 1");
    }
    for (s, t) in a.model.shift().unwrap().iter().zip(b.model.shift().unwrap()) {
        assert!((s - t).abs() <= 1e-13 + room, "{what}: mean {s} {t}");
    }
}

fn weights() -> Vec<f64> {
    (0..N).map(|l| [2.0, 0.0, 1.0, 3.0, 1.0][(l * l + l / 7) % 5]).collect()
}

/// Every sample as often as it weighs.
fn repeated(rows: &[f64], weights: &[f64]) -> Vec<f64> {
    rows.chunks(D).zip(weights).flat_map(|(row, w)| row.repeat(*w as usize)).collect()
}

#[test]
fn weights_are_those_of_the_dosages_and_of_repeated_samples() {
    let (rows, weights) = (dosages(0.06, 1), weights());
    let (genotypes, often) = (packed(&rows), repeated(&rows, &weights));
    for scaling in [Scaling::None, Scaling::Std, Scaling::Hwe] {
        for solver in [SolverKind::Auto, SolverKind::Covariance, SolverKind::Anchored] {
            let config = FitConfig { solver, ..config(Missing::Mean, scaling) };
            let what = format!("{solver} {scaling:?}");
            let fit = config.run().weights(&weights[..]).fit_genotypes(&genotypes).unwrap();
            assert_eq!((fit.outcome, fit.model.summary().n), (Outcome::Converged, N), "{what}");
            let want = config.run().fit_genotypes(&packed(&often)).unwrap();
            assert_same(&fit, &want, 0.0, &format!("{what} repeated"));
            assert_eq!(fit.missing.unwrap().entries, rows.iter().filter(|x| x.is_nan()).count());
            if scaling != Scaling::Hwe {
                let want = config.run().weights(&weights[..]).fit(&matrix(&rows)).unwrap();
                assert_same(&fit, &want, 0.0, &format!("{what} dense"));
            }
            // A weight of zero leaves a sample out.
            let left: Vec<usize> = (0..N).filter(|&l| weights[l] > 0.0).collect();
            let some: Vec<f64> = left.iter().flat_map(|&l| rows[l * D..(l + 1) * D].to_vec()).collect();
            let of_some: Vec<f64> = left.iter().map(|&l| weights[l]).collect();
            let want = config.run().weights(&of_some[..]).fit_genotypes(&packed(&some)).unwrap();
            assert_same(&fit, &want, 0.0, &format!("{what} left out"));
        }
    }
}

#[test]
fn hwe_divides_by_what_the_weighted_frequency_says() {
    let (rows, weights) = (dosages(0.06, 1), weights());
    let fit = config(Missing::Mean, Scaling::Hwe).run().weights(&weights[..]).fit_genotypes(&packed(&rows));
    let model = fit.unwrap().model;
    for j in 0..D {
        let known = (0..N).filter(|l| !rows[l * D + j].is_nan());
        let (sum, all) =
            known.fold((0.0, 0.0), |(sum, all), l| (sum + weights[l] * rows[l * D + j], all + weights[l]));
        let f = sum / all / 2.0;
        assert!((model.scale().unwrap()[j] / (2.0 * f * (1.0 - f)).sqrt() - 1.0).abs() < 1e-13);
    }
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    let genotypes = packed(&dosages(0.0, 1));
    let said = |weights: &[f64]| {
        let config = config(Missing::Mean, Scaling::None);
        config.run().weights(weights).fit_genotypes(&genotypes).unwrap_err().to_string()
    };
    assert!(said(&[1.0; 3]).contains("3 given where 170 are needed"));
    assert!(said(&[0.0; N]).contains("at least one row needs a positive weight"));
    assert!(said(&[-1.0; N]).contains("finite and not negative"));
}

#[test]
fn dropped_samples_are_left_out_and_errors_name_the_place() {
    let rows = dosages(0.1, 3);
    let genotypes = packed(&rows);
    let complete: Vec<f64> =
        rows.chunks(D).filter(|row| row.iter().all(|x| !x.is_nan())).flatten().copied().collect();
    for weights in [None, Some(&weights()[..])] {
        let config = config(Missing::DropRows, Scaling::Std);
        let fit = config.run().weights(weights).fit_genotypes(&genotypes).unwrap();
        let want = config.run().weights(weights).fit(&matrix(&rows)).unwrap();
        assert_same(&fit, &want, 0.0, "dropped");
        let (got, want) = (fit.missing.unwrap(), want.missing.unwrap());
        assert_eq!((got.entries, got.rows, got.dropped), (want.entries, want.rows, want.dropped));
        assert_eq!(fit.model.summary().n, complete.len() / D);
        let scores = fit
            .model
            .transform_genotypes_with_holes(&genotypes, Whitening::Off, HolesInRows::Nothing)
            .unwrap();
        for (row, scores) in rows.chunks(D).zip(scores.chunks(3)) {
            assert_eq!(row.iter().any(|x| x.is_nan()), scores.iter().all(|x| x.is_nan()));
        }
    }
    let first = rows.iter().position(|x| x.is_nan()).unwrap();
    let error = config(Missing::Error, Scaling::None).run().fit_genotypes(&genotypes).unwrap_err();
    assert!(matches!(error, Error::NotFinite { row, column, .. } if row * D + column == first), "{error}");
    assert!(error.to_string().contains("missing: drop-rows, mean or em"), "{error}");
    let all = config(Missing::DropRows, Scaling::None).run().fit_genotypes(&packed(&dosages(0.5, 1)));
    assert!(all.unwrap_err().to_string().contains("every row has a missing value: choose mean or em"));
}

#[test]
fn em_ends_at_the_stationary_point_of_the_dosages() {
    let rows = dosages(0.06, 1);
    let genotypes = packed(&rows);
    for (scaling, ridge) in [(Scaling::None, 0.0), (Scaling::Std, 0.0), (Scaling::None, 0.3)] {
        for weights in [None, Some(&weights()[..])] {
            let em = EmLimits { tol: 1e-10, ridge, ..EmLimits::default() };
            let config = FitConfig { k: 2, em, ..config(Missing::Em, scaling) };
            let what = format!("{scaling:?} ridge {ridge} weighted {}", weights.is_some());
            let fit = config.run().weights(weights).fit_genotypes(&genotypes).unwrap();
            let want = config.run().weights(weights).fit_completing(matrix(&rows)).unwrap();
            let point = fit.missing.unwrap().stationary_point.unwrap();
            assert!(point.is_reached() && fit.outcome == Outcome::Converged, "{what}: {point:?}");
            assert_same(&fit, &want.fit, 1e-8, &what);
            // Scores are least squares on what samples have, as of the dosages.
            let rule = HolesInRows::LeastSquares { ridge };
            let scores = fit.model.transform_genotypes_with_holes(&genotypes, Whitening::Off, rule).unwrap();
            let dense: Vec<f64> =
                fit.model.projection(Whitening::Off).transform_with_holes(&matrix(&rows), rule).unwrap();
            for (a, b) in scores.iter().zip(&dense) {
                assert!((a - b).abs() <= 1e-10 * (1.0 + b.abs()), "{what}: {a} {b}");
            }
            let whitened = fit.model.transform_genotypes_with_holes(&genotypes, Whitening::On, rule).unwrap();
            let factors = fit.model.whitening_factors();
            for (i, (a, b)) in whitened.iter().zip(&scores).enumerate() {
                assert!((a - b / factors[i % 2]).abs() <= 1e-12 * (1.0 + a.abs()));
            }
        }
    }
}

#[test]
fn em_is_certified_on_the_completed_matrix_and_changes_nothing_there() {
    let rows = dosages(0.06, 1);
    let em = EmLimits { tol: 1e-11, ..EmLimits::default() };
    let config = FitConfig { k: 2, em, ..config(Missing::Em, Scaling::Hwe) };
    let fit = config.run().fit_genotypes(&packed(&rows)).unwrap();
    let (model, rule) = (&fit.model, HolesInRows::LeastSquares { ridge: 0.0 });
    let z = model.transform_genotypes_with_holes(&packed(&rows), Whitening::Off, rule).unwrap();
    let (mu, s) = (model.shift().unwrap(), model.scale().unwrap());
    let filled: Vec<f64> = rows
        .iter()
        .enumerate()
        .map(|(at, x)| {
            let (l, j) = (at / D, at % D);
            let a: f64 = (0..2).map(|i| model.components()[i * D + j] * z[l * 2 + i]).sum();
            if x.is_nan() { mu[j] + s[j] * a } else { *x }
        })
        .collect();
    // Means, frequencies and components are those of the matrix so filled, found by other means.
    let mut prepared = vec![0.0; N * D];
    for j in 0..D {
        let mean = (0..N).map(|l| filled[l * D + j]).sum::<f64>() / N as f64;
        assert!((mean - mu[j]).abs() < 1e-9, "{mean} {}", mu[j]);
        let spread = (mean * (1.0 - mean / 2.0)).sqrt();
        assert!((spread - s[j]).abs() < 1e-9);
        (0..N).for_each(|l| prepared[l * D + j] = (filled[l * D + j] - mean) / spread);
    }
    let (lambda, _) = dense_eigen(&prepared, D);
    for i in 0..2 {
        let room = fit.certificate.residuals[i] + 1e-8 * lambda[0];
        assert!(
            (model.eigenvalues()[i] - lambda[i]).abs() <= room,
            "{} {}",
            model.eigenvalues()[i],
            lambda[i]
        );
    }
}

#[test]
fn em_keeps_a_variant_that_never_varies() {
    let mut rows = dosages(0.06, 1);
    for l in 0..N {
        rows[l * D + 4] = if l % 9 == 2 { f64::NAN } else { 1.0 };
        rows[l * D + 5] = f64::NAN;
    }
    for scaling in [Scaling::Std, Scaling::Hwe] {
        let config = FitConfig { k: 2, ..config(Missing::Em, scaling) };
        let fit = config.run().fit_genotypes(&packed(&rows)).unwrap();
        assert!(
            fit.missing.unwrap().stationary_point.unwrap().is_reached() && fit.outcome == Outcome::Converged
        );
        let (mu, s) = (fit.model.shift().unwrap(), fit.model.scale().unwrap());
        assert_eq!((mu[4].to_bits(), mu[5].to_bits()), (1.0_f64.to_bits(), 0.0_f64.to_bits()));
        assert_eq!(s[5].to_bits(), 1.0_f64.to_bits());
        assert!((0..2).all(|i| fit.model.components()[i * D + 4].abs() < 1e-12));
    }
}

#[test]
fn em_without_holes_and_with_too_many_components() {
    let whole = packed(&dosages(0.0, 1));
    let plain = config(Missing::Error, Scaling::Hwe).run().fit_genotypes(&whole).unwrap();
    for missing in [Missing::Mean, Missing::DropRows, Missing::Em] {
        let fit = config(missing, Scaling::Hwe).run().fit_genotypes(&whole).unwrap();
        assert_eq!((fit.model, fit.missing), (plain.model.clone(), None), "{missing}");
    }
    let all = FitConfig { k: D, ..config(Missing::Em, Scaling::None) };
    let said = all.run().fit_genotypes(&packed(&dosages(0.1, 1))).unwrap_err().to_string();
    assert!(said.contains("em fills 170 rows × 45 columns by a model of fewer than 45 components"), "{said}");
    let zero =
        FitConfig { em: EmLimits { tol: 0.0, ..EmLimits::default() }, ..config(Missing::Em, Scaling::None) };
    assert!(zero.run().fit_genotypes(&whole).unwrap_err().to_string().contains("em tol = 0"));
}

/// Codes that lie elsewhere.
struct Elsewhere {
    codes: Vec<u8>,
    stride: usize,
    /// Breaks from this variant on.
    torn: Option<usize>,
}

impl VariantSource for Elsewhere {
    fn read(&self, first: usize, codes: &mut [u8]) -> Result<(), Error> {
        if self.torn.is_some_and(|at| first >= at) {
            return Err(Error::Source("the tape is torn".into()));
        }
        codes.copy_from_slice(&self.codes[first * self.stride..][..codes.len()]);
        Ok(())
    }
}

/// So many samples that a span does not hold all variants.
fn large() -> (Vec<u8>, usize, usize) {
    let (n, d) = (20_000, 1200);
    let mut random = Xorshift(5);
    let codes = (0..d * n / 4).map(|_| (random.uniform() * 256.0) as u8).collect();
    (codes, n, d)
}

#[test]
fn codes_that_are_mapped_or_read_give_the_same_bits() {
    let (codes, n, d) = large();
    let held = Genotypes::new(n, d, codes.clone()).unwrap();
    let mapped = Genotypes::mapped(n, d, Arc::new(codes.clone())).unwrap();
    let elsewhere = |torn| Arc::new(Elsewhere { codes: codes.clone(), stride: n / 4, torn });
    let read = Genotypes::read_from(n, d, elsewhere(None)).unwrap();
    for missing in [Missing::Mean, Missing::Em] {
        let config = FitConfig {
            k: 1,
            missing,
            em: EmLimits { max_rounds: 1, ..EmLimits::default() },
            limits: Limits { tol: 1e-2, max_passes: 4.0, ..Limits::default() },
            preprocessing: Preprocessing { centering: Centering::Mean, scaling: Scaling::Hwe },
            ..FitConfig::default()
        };
        let want = config.run().fit_genotypes(&held).unwrap();
        for genotypes in [&mapped, &read] {
            let fit = config.run().fit_genotypes(genotypes).unwrap();
            assert_eq!(fit.model, want.model, "{missing}");
            assert_eq!(fit.bytes_read > 0, genotypes.is_on_disk());
        }
        // Less memory than the codes take.
        let tight = FitConfig { memory: Some(5_500_000), ..config };
        assert!(matches!(tight.run().fit_genotypes(&held), Err(Error::Memory { .. })));
        if missing == Missing::Mean {
            assert_eq!(tight.run().fit_genotypes(&mapped).unwrap().model, want.model);
        }
    }
    let torn = Genotypes::read_from(n, d, elsewhere(Some(512))).unwrap();
    let error = config(Missing::Mean, Scaling::Hwe).run().fit_genotypes(&torn).unwrap_err().to_string();
    assert!(error.contains("the tape is torn"), "{error}");
}

#[test]
fn a_run_of_other_weights_is_not_resumed() {
    let genotypes = packed(&dosages(0.06, 1));
    let config = FitConfig { k: 1, solver: SolverKind::PowerM, ..config(Missing::Mean, Scaling::Hwe) };
    let weights = weights();
    let mut kept = Vec::new();
    let save = |checkpoint: &Checkpoint| {
        kept.push(checkpoint.clone());
        Ok(())
    };
    let data = genotypes.fingerprint(Some(&weights)).unwrap();
    let checkpoints =
        Checkpoints { data: data.clone(), save: Some(Box::new(save)), ..Checkpoints::default() };
    let run = config.run().weights(&weights[..]).checkpoints(checkpoints);
    let whole = run.fit_genotypes(&genotypes).unwrap();
    let resumed = |data: String, weights: &[f64]| {
        let checkpoints = Checkpoints { data, resume: Some(kept[0].clone()), ..Checkpoints::default() };
        config.run().weights(weights).checkpoints(checkpoints).fit_genotypes(&genotypes)
    };
    assert_eq!(resumed(data, &weights).unwrap().model, whole.model);
    let others = vec![1.0; N];
    let error = resumed(genotypes.fingerprint(Some(&others)).unwrap(), &others).unwrap_err();
    assert!(matches!(error, Error::Checkpoint(_)), "{error}");
}
