//! Laws that hold for every small matrix, tried on random ones.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare exact values exactly and count small"
)]

mod common;

use common::sound::{Truth, assert_every_number_is_defined};
use common::*;
use hbpca::{
    Batch, ColumnStatistics, FitConfig, Limits, Matrix, Model, MomentumChoice, Preprocessing, Replacement,
    Sampler, SolverKind, Whitening,
};
use proptest::prelude::*;

/// Up to 12×6 with about a third zeros, entries of moderate size, sometimes a large mean.
fn small_matrix() -> impl Strategy<Value = (Vec<f64>, usize)> {
    (1_usize..=12, 1_usize..=6, prop_oneof![Just(0.0), Just(1.0), Just(100.0)]).prop_flat_map(
        |(n, d, mean)| {
            let entry = prop_oneof![1 => Just(0.0), 2 => (-4.0..4.0_f64).prop_map(move |x| x + mean)];
            (proptest::collection::vec(entry, n * d), Just(d))
        },
    )
}

fn any_preprocessing() -> impl Strategy<Value = Preprocessing> {
    proptest::sample::select(EVERY_PREPROCESSING.to_vec())
}

fn any_solver() -> impl Strategy<Value = SolverKind> {
    proptest::sample::select(SolverKind::ALL.to_vec())
}

/// Chosen among those, not thrown away: proptest gives up after too many rejections, however many cases are asked for.
fn any_solver_for_many() -> impl Strategy<Value = SolverKind> {
    let finds_many = SolverKind::ALL.into_iter().filter(|kind| kind.finds_many());
    proptest::sample::select(finds_many.collect::<Vec<_>>())
}

/// The second moment of the prepared rows before anything was subtracted: what rounding is relative to.
fn moment(values: &[f64], d: usize, model: &Model) -> f64 {
    let at = |part: Option<&[f64]>, j: usize, otherwise: f64| part.map_or(otherwise, |part| part[j]);
    let size = |(i, x): (usize, &f64)| {
        let j = i % d;
        ((x.abs() + at(model.shift(), j, 0.0).abs()) / at(model.scale(), j, 1.0)).powi(2)
    };
    values.iter().enumerate().map(size).sum::<f64>() / (values.len() / d) as f64
}

fn full_model(x: &Matrix<'_>, preprocessing: Preprocessing) -> Model {
    let k = x.n_rows().min(x.n_cols());
    FitConfig { k, preprocessing, threads: 1, ..FitConfig::default() }.fit(x).unwrap().model
}

fn farthest(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_certificate_claims_anything_false_after_any_number_of_passes(
        (values, d) in small_matrix(),
        preprocessing in any_preprocessing(),
        solver in any_solver(),
        max_passes in 1.0..30.0_f64,
        eta in 0.01..1.0_f64,
        lambda2 in proptest::option::of(0.0..20.0_f64),
        seed in any::<u64>(),
    ) {
        for x in [dense(values.clone(), d), csr(&values, d)] {
            let config = FitConfig {
                solver,
                preprocessing,
                limits: Limits { max_passes, tol: 1e-9, ..Limits::default() },
                eta: Some(eta),
                momentum: lambda2.map_or(MomentumChoice::Adaptive, MomentumChoice::Oracle),
                batch: Batch::Share(0.3),
                epoch: 5,
                seed,
                threads: 1,
                ..FitConfig::default()
            };
            let fit = config.fit(&x).unwrap();
            let label = format!("{solver} {preprocessing:?} sparse {}", x.is_sparse());
            assert_every_number_is_defined(&fit, &x, &label);
            let truth = Truth::of(&prepare(&values, d, preprocessing), d, moment(&values, d, &fit.model));
            truth.judge(&fit.certificate, &fit.model.vectors(), &label);
            prop_assert!(fit.passes <= max_passes);
        }
    }

    #[test]
    fn every_k_of_every_solver_for_many_is_certified_truly(
        (values, d) in small_matrix(),
        preprocessing in any_preprocessing(),
        solver in any_solver_for_many(),
        max_passes in 1.0..6.0_f64,
        seed in any::<u64>(),
    ) {
        for x in [dense(values.clone(), d), csr(&values, d)] {
            for k in 1..=d.min(x.n_rows()) {
                let limits = Limits { max_passes, tol: 1e-12, ..Limits::default() };
                let config = FitConfig { k, solver, preprocessing, limits, seed, threads: 1, ..FitConfig::default() };
                let fit = config.fit(&x).unwrap();
                let label = format!("{solver} k = {k} {preprocessing:?} sparse {}", x.is_sparse());
                assert_every_number_is_defined(&fit, &x, &label);
                let truth = Truth::of(&prepare(&values, d, preprocessing), d, moment(&values, d, &fit.model));
                truth.judge(&fit.certificate, &fit.model.vectors(), &label);
            }
        }
    }

    #[test]
    fn all_components_there_and_back_are_the_data(
        (values, d) in small_matrix(),
        preprocessing in any_preprocessing(),
    ) {
        if values.len() / d < d {
            return Ok(()); // fewer components than columns
        }
        for x in [dense(values.clone(), d), csr(&values, d)] {
            let model = full_model(&x, preprocessing);
            let scores = model.transform(&x, Whitening::Off).unwrap();
            let back = model.inverse_transform(&scores, Whitening::Off).unwrap();
            // An orthogonal d×d map there and back: a few dε of the largest prepared row, in the data's units.
            let unit = model.scale().map_or(1.0, |s| s.iter().copied().fold(0.0, f64::max));
            let size = (moment(&values, d, &model) * values.len() as f64).sqrt() * unit;
            prop_assert!(farthest(&back, &values) <= 20.0 * d as f64 * f64::EPSILON * size.max(f64::MIN_POSITIVE));
        }
    }

    #[test]
    fn projecting_twice_is_projecting_once(
        (values, d) in small_matrix(),
        preprocessing in any_preprocessing(),
    ) {
        for x in [dense(values.clone(), d), csr(&values, d)] {
            let model = FitConfig { preprocessing, threads: 1, ..FitConfig::default() }.fit(&x).unwrap().model;
            let once = model.transform(&x, Whitening::Off).unwrap();
            let projected = dense(model.inverse_transform(&once, Whitening::Off).unwrap(), d);
            let twice = model.transform(&projected, Whitening::Off).unwrap();
            let size = (moment(&values, d, &model) * values.len() as f64).sqrt();
            prop_assert!(farthest(&once, &twice) <= 20.0 * d as f64 * f64::EPSILON * size.max(f64::MIN_POSITIVE));
        }
    }

    #[test]
    fn covariance_of_the_scores_is_diagonal_with_the_eigenvalues(
        (values, d) in small_matrix(),
        preprocessing in any_preprocessing(),
    ) {
        for x in [dense(values.clone(), d), csr(&values, d)] {
            let model = full_model(&x, preprocessing);
            let (n, k) = (x.n_rows(), model.n_components());
            let scores = model.transform(&x, Whitening::Off).unwrap();
            let bound = 10.0 * (n + 2 * d) as f64 * f64::EPSILON * moment(&values, d, &model);
            for i in 0..k {
                for j in 0..k {
                    let product = (0..n).map(|l| scores[l * k + i] * scores[l * k + j]).sum::<f64>() / n as f64;
                    let want = if i == j { model.eigenvalues()[i] } else { 0.0 };
                    prop_assert!((product - want).abs() <= bound, "({i}, {j}): {product:e}, {want:e}, {bound:e}");
                }
            }
        }
    }

    #[test]
    fn whitened_scores_have_unit_variance(values in proptest::collection::vec(-4.0..4.0_f64, 24)) {
        for x in [dense(values.clone(), 3), csr(&values, 3)] {
            let model = full_model(&x, Preprocessing::CENTER);
            let scores = model.transform(&x, Whitening::On).unwrap();
            let back = model.inverse_transform(&scores, Whitening::On).unwrap();
            let size = moment(&values, 3, &model);
            for i in 0..3 {
                let variance = scores.iter().skip(i).step_by(3).map(|s| s * s).sum::<f64>() / 7.0;
                // The rounding of C against the variance that is divided by.
                let bound = 200.0 * f64::EPSILON * size / model.eigenvalues()[i];
                prop_assert!((variance - 1.0).abs() <= bound, "{variance}, {bound:e}");
            }
            let bound = 200.0 * f64::EPSILON * size.sqrt() * (size / model.eigenvalues()[2]).sqrt();
            prop_assert!(farthest(&back, &values) <= bound);
        }
    }

    #[test]
    fn variances_are_shares_of_the_whole((values, d) in small_matrix(), preprocessing in any_preprocessing()) {
        let x = dense(values.clone(), d);
        let most = d.min(x.n_rows());
        let all = full_model(&x, preprocessing);
        let rounding = 4.0 * (x.n_rows() + d) as f64 * f64::EPSILON * moment(&values, d, &all);
        let total = all.summary().total_variance;
        // min(n, d) components hold everything, …
        prop_assert!((all.eigenvalues().iter().sum::<f64>() - total).abs() <= rounding);
        prop_assert!(all.explained_variance_ratio().iter().sum::<f64>() <= 1.0 + rounding / total.max(f64::MIN_POSITIVE));
        for k in 1..=most {
            let model = FitConfig { k, preprocessing, threads: 1, ..FitConfig::default() }.fit(&x).unwrap().model;
            // … and what k of them leave out is the noise: the mean of the other n − 1 variances.
            let rest = all.explained_variance()[k..].iter().sum::<f64>();
            let want = if k == most { 0.0 } else { rest / (most - k) as f64 };
            prop_assert!((model.noise_variance() - want).abs() <= 4.0 * rounding, "k = {k}");
        }
    }

    #[test]
    fn statistics_are_those_of_the_two_pass_formulas(
        ((values, d), weights) in small_matrix().prop_flat_map(|(values, d)| {
            let n = values.len() / d;
            let weight = prop_oneof![Just(0.0), Just(1.0), 0.1..5.0_f64];
            (Just((values, d)), proptest::option::of(proptest::collection::vec(weight, n)))
        }),
    ) {
        let n = values.len() / d;
        prop_assume!(weights.as_ref().is_none_or(|w| w.iter().sum::<f64>() > 0.0));
        let weight = |l: usize| weights.as_ref().map_or(1.0, |w| w[l]);
        let total: f64 = (0..n).map(weight).sum();
        for x in [dense(values.clone(), d), csr(&values, d)] {
            let statistics = match &weights {
                None => ColumnStatistics::new(&x).unwrap(),
                Some(weights) => ColumnStatistics::weighted(&x, weights).unwrap(),
            };
            for j in 0..d {
                let rows = || (0..n).filter(|&l| weight(l) > 0.0).map(|l| (weight(l), values[l * d + j]));
                let mean = rows().map(|(w, v)| w * v).sum::<f64>() / total;
                let variance = rows().map(|(w, v)| w * (v - mean).powi(2)).sum::<f64>() / total;
                let size = rows().map(|(_, v)| v.abs()).fold(0.0, f64::max);
                let u = 4.0 * (n + 2) as f64 * f64::EPSILON;
                prop_assert!((statistics.mean()[j] - mean).abs() <= u * size);
                // Chan, Golub & LeVeque: relative error κu with κ = √(1 + mean²/variance), plus the reference's (mean·u)².
                let bound = u * (variance + variance.sqrt() * size) + (u * size).powi(2);
                prop_assert!((statistics.variance()[j] - variance).abs() <= bound);
                prop_assert_eq!(statistics.min()[j], rows().map(|(_, v)| v).fold(f64::INFINITY, f64::min));
                prop_assert_eq!(statistics.max()[j], rows().map(|(_, v)| v).fold(f64::NEG_INFINITY, f64::max));
            }
            prop_assert!((statistics.weight() - total).abs() <= (n + 1) as f64 * f64::EPSILON * total);
        }
    }

    #[test]
    fn sparse_scores_are_dense_scores((values, d) in small_matrix(), preprocessing in any_preprocessing()) {
        let (x, y) = (dense(values.clone(), d), csr(&values, d));
        let model = full_model(&x, preprocessing);
        let [a, b] = [&x, &y].map(|x| model.transform(x, Whitening::Off).unwrap());
        let size = (moment(&values, d, &model) * values.len() as f64).sqrt();
        prop_assert!(farthest(&a, &b) <= 10.0 * d as f64 * f64::EPSILON * size);
    }
}

#[test]
fn every_set_of_rows_is_equally_likely() {
    // All 15 pairs out of 6, and all 15 sets of 4, which are drawn by what they leave out. Counts of 45,000 draws
    // are binomial with mean 3000 and standard deviation 53: six of them hold but for one seed in 10⁷.
    for batch in [2, 4] {
        let mut sampler = Sampler::new(6, batch, Replacement::Without, 9).unwrap();
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..45_000 {
            *counts.entry(sampler.draw().to_vec()).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 15);
        let deviation = (3000.0 * (14.0_f64 / 15.0)).sqrt();
        for (rows, count) in counts {
            assert!((f64::from(count) - 3000.0).abs() < 6.0 * deviation, "{rows:?}: {count}");
        }
    }
}

#[test]
fn draws_with_replacement_are_independent() {
    // 9 ordered outcomes of two draws out of 3 collapse to 6 multisets: doubles 1/9 each, others 2/9.
    let mut sampler = Sampler::new(3, 2, Replacement::With, 4).unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..45_000 {
        *counts.entry(sampler.draw().to_vec()).or_insert(0_u32) += 1;
    }
    for (rows, count) in counts {
        let p: f64 = if rows[0] == rows[1] { 1.0 / 9.0 } else { 2.0 / 9.0 };
        let (mean, deviation) = (45_000.0 * p, (45_000.0 * p * (1.0 - p)).sqrt());
        assert!((f64::from(count) - mean).abs() < 6.0 * deviation, "{rows:?}: {count}");
    }
}
