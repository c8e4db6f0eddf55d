//! Methods that must coincide do, step by step.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare exact values exactly and count small"
)]

mod common;

use common::*;
use hbpca::operator::{Covariance, CovarianceOperator, Precision, Products};
use hbpca::solver::{
    Epoch, FixedMomentum, Momentum, OracleMomentum, Power, PowerM, Solver, Start, VrHbPower, VrPowerM,
};
use hbpca::{Block, Centering, Dense, Preprocessing, Replacement, Sampler, Scaling};

const D: usize = 12;

fn data() -> hbpca::Matrix<'static> {
    dense(with_spectrum(300, &geometric(D, 0.8), 1).0, D)
}

fn oracle() -> Box<dyn Momentum> {
    Box::new(OracleMomentum::new(0.8).unwrap())
}

fn sampler(n: usize, batch: usize) -> Sampler {
    Sampler::new(n, batch, Replacement::Without, 5).unwrap()
}

/// The iterate after `steps` steps.
fn iterate(solver: &mut dyn Solver, operator: &mut dyn CovarianceOperator, steps: usize) -> Block {
    for _ in 0..steps {
        solver.look(operator).unwrap();
        solver.step(operator).unwrap();
    }
    solver.pairs().vectors.clone()
}

#[test]
fn full_batch_and_unit_step_make_vr_hb_power_equal_power_m_step_by_step() {
    let (x, start) = (data(), Start::Random { seed: 3 });
    let mut c = Covariance::new(&x, Preprocessing::NONE).unwrap();
    for m in 2..20 {
        let mut vr =
            VrHbPower::new(D, 1.0, Epoch::new(m).unwrap(), oracle(), sampler(300, 300), &start).unwrap();
        let mut power_m = PowerM::new(D, oracle(), &start).unwrap();
        let (a, b) = (iterate(&mut vr, &mut c, 1), iterate(&mut power_m, &mut c, m));
        // Each of the m steps rounds by a few ulp of a unit vector and amplifies what came before by at most
        // 2λ₁ + β against a norm that grows as fast: the errors add up.
        assert!(distance(&a, &b) < 100.0 * m as f64 * f64::EPSILON, "m = {m}: {:e}", distance(&a, &b));
    }
}

#[test]
fn without_momentum_the_full_batch_is_damped_power_iteration() {
    let (x, start) = (data(), Start::Random { seed: 4 });
    let mut c = Covariance::new(&x, Preprocessing::NONE).unwrap();
    for (eta, m) in [(0.3, 2), (0.3, 9), (0.9, 5)] {
        let none = Box::new(FixedMomentum::new(0.0).unwrap());
        let mut vr = VrHbPower::new(D, eta, Epoch::new(m).unwrap(), none, sampler(300, 300), &start).unwrap();
        let got = iterate(&mut vr, &mut c, 1);
        let (mut w, mut g) = (start.vector(D).unwrap(), Block::zeros(D, 1));
        for _ in 0..m {
            c.apply(&w, &mut g).unwrap();
            let step: Vec<f64> =
                w.values().iter().zip(g.values()).map(|(w, g)| (1.0 - eta) * w + eta * g).collect();
            w = Block::from_vector(step);
            w.scale(1.0 / w.norm());
        }
        assert!(distance(&got, &w) < 100.0 * m as f64 * f64::EPSILON, "η = {eta}, m = {m}");
    }
}

#[test]
fn zero_momentum_makes_power_m_power() {
    let (x, start) = (data(), Start::Random { seed: 4 });
    let mut c = Covariance::new(&x, Preprocessing::NONE).unwrap();
    let mut power_m = PowerM::new(D, Box::new(FixedMomentum::new(0.0).unwrap()), &start).unwrap();
    let mut power = Power::new(D, &start).unwrap();
    let (a, b) = (iterate(&mut power_m, &mut c, 15), iterate(&mut power, &mut c, 15));
    assert!(distance(&a, &b) < 100.0 * 15.0 * f64::EPSILON);
}

#[test]
fn vr_power_m_is_vr_hb_power_with_unit_step_bit_for_bit() {
    let (x, start) = (data(), Start::Random { seed: 5 });
    let mut c = Covariance::new(&x, Preprocessing::CENTER).unwrap();
    let epoch = Epoch::new(10).unwrap();
    let mut a = VrPowerM::new(D, epoch, oracle(), sampler(300, 30), &start).unwrap();
    let mut b = VrHbPower::new(D, 1.0, epoch, oracle(), sampler(300, 30), &start).unwrap();
    assert_eq!(iterate(&mut a, &mut c, 4), iterate(&mut b, &mut c, 4));
}

#[test]
fn power_m_iterates_are_chebyshev_polynomials() {
    // With β = λ₂² and w₁ = Cw₀ the t-th iterate is λ₂ᵗT_t(C/λ₂)w₀ up to length.
    let (rows, u) = with_spectrum(200, &geometric(D, 0.7), 8);
    let x = dense(rows, D);
    let mut c = Covariance::new(&x, Preprocessing::NONE).unwrap();
    let start = Start::Random { seed: 6 };
    let t = 9;
    let oracle = Box::new(OracleMomentum::new(0.7).unwrap());
    let got = iterate(&mut PowerM::new(D, oracle, &start).unwrap(), &mut c, t);
    let w0 = start.vector(D).unwrap();
    let chebyshev = |x: f64| {
        if x.abs() <= 1.0 { (t as f64 * x.acos()).cos() } else { (t as f64 * x.acosh()).cosh() }
    };
    let mut want = Block::zeros(D, 1);
    for k in 0..D {
        let uk = Block::from_vector(u.column(k));
        let factor = chebyshev(0.7_f64.powi(k as i32) / 0.7) * uk.dot(&w0);
        want.values_mut().iter_mut().zip(uk.values()).for_each(|(w, u)| *w += factor * u);
    }
    want.scale(1.0 / want.norm());
    // The constructed spectrum itself is exact to about n·d·ε.
    assert!(sine2(got.values(), want.values()).sqrt() < 300.0 * 12.0 * f64::EPSILON);
}

#[test]
fn sparse_equals_dense_and_implicit_preparation_equals_explicit() {
    let (n, d) = (257, 23);
    let mut values = sparse_values(n, d, 0.2, 9);
    values.iter_mut().skip(3).step_by(d).for_each(|x| *x = 2.5); // a constant column
    let matrices = [dense(values.clone(), d), csr(&values, d)];
    let batch: Vec<usize> = (0..n).step_by(3).chain([n - 1, n - 1]).collect();
    for centering in [Centering::None, Centering::Mean] {
        for scaling in [Scaling::None, Scaling::Std, Scaling::MinMax] {
            let preprocessing = Preprocessing { centering, scaling };
            let rows = prepare(&values, d, preprocessing);
            let mut want = RowList(rows.chunks_exact(d).map(<[f64]>::to_vec).collect());
            for x in &matrices {
                let mut c = Covariance::new(x, preprocessing).unwrap();
                let trace = want.total_variance();
                assert!((c.total_variance() - trace).abs() < trace * (n + d) as f64 * f64::EPSILON);
                for p in [1, 2, 3, 8, 11] {
                    let v = random_block(d, p, 1);
                    let (mut got, mut expected) = (Block::zeros(d, p), Block::zeros(d, p));
                    c.apply(&v, &mut got).unwrap();
                    let stated = want.apply(&v, &mut expected).unwrap();
                    let bound = (c.rounding().of_image() + stated.of_image()) * v.norm();
                    assert!(distance(&got, &expected) * expected.norm() <= bound, "{preprocessing:?} p={p}");
                    c.apply_batch(&batch, &v, &mut got).unwrap();
                    want.apply_batch(&batch, &v, &mut expected).unwrap();
                    // A batch of n/3 rows may weigh three times the average row, and more: heavy rows.
                    assert!(
                        distance(&got, &expected) * expected.norm() <= 10.0 * bound,
                        "{preprocessing:?} p={p}"
                    );
                }
                let (mut formed, mut by_products) = (Block::zeros(0, 0), Block::zeros(0, 0));
                c.form(Precision::Double, &mut formed).unwrap();
                let stated = want.form(Precision::Double, &mut by_products).unwrap();
                let bound = (c.rounding().of_image() + stated.of_image()) * (d as f64).sqrt();
                assert!(distance(&formed, &by_products) * by_products.norm() <= bound, "{preprocessing:?}");
            }
        }
    }
}

#[test]
fn rows_with_gaps_are_rows_without() {
    let (n, d) = (40, 7);
    let values = sparse_values(n, d, 0.9, 3);
    let mut gapped = Vec::new();
    values.chunks_exact(d).for_each(|row| gapped.extend(row.iter().copied().chain([f64::NAN; 4])));
    let (x, y): (hbpca::Matrix, hbpca::Matrix) =
        (dense(values, d), Dense::strided(&gapped, n, d, d + 4).unwrap().into());
    let v = random_block(d, 3, 2);
    let mut images = [Block::zeros(d, 3), Block::zeros(d, 3)];
    for (x, image) in [x, y].iter().zip(&mut images) {
        Covariance::new(x, Preprocessing::STANDARDIZE).unwrap().apply(&v, image).unwrap();
    }
    assert_eq!(images[0], images[1]);
}

#[test]
fn integer_weights_are_repeated_rows() {
    let (n, d) = (60, 9);
    let values = sparse_values(n, d, 0.5, 4);
    let weights: Vec<f64> = (0..n).map(|l| (l % 4) as f64).collect();
    let repeated: Vec<f64> = (0..n).flat_map(|l| values[l * d..(l + 1) * d].repeat(l % 4)).collect();
    let v = random_block(d, 4, 5);
    let (mut want, mut got) = (Block::zeros(d, 4), Block::zeros(d, 4));
    for preprocessing in
        [Preprocessing::NONE, Preprocessing::CENTER, Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE]
    {
        let y = dense(repeated.clone(), d);
        let mut c = Covariance::new(&y, preprocessing).unwrap();
        c.apply(&v, &mut want).unwrap();
        for x in [dense(values.clone(), d), csr(&values, d)] {
            let mut weighted = Covariance::weighted(&x, preprocessing, &weights).unwrap();
            weighted.apply(&v, &mut got).unwrap();
            let bound = 4.0 * (c.rounding().of_image() + weighted.rounding().of_image()) * v.norm();
            assert!(distance(&got, &want) * want.norm() <= bound, "{preprocessing:?}");
        }
    }
}

#[test]
fn an_operator_that_only_sums_rows_carries_every_solver() {
    // The trait is honest: nothing but its four required methods is needed.
    let (rows, u) = with_spectrum(80, &geometric(6, 0.5), 2);
    let mut c = RowList(rows.chunks_exact(6).map(<[f64]>::to_vec).collect());
    for kind in hbpca::SolverKind::ALL {
        let config = hbpca::FitConfig {
            solver: kind,
            eta: Some(0.5),
            batch: hbpca::Batch::Share(0.5),
            epoch: 10,
            ..hbpca::FitConfig::default()
        };
        let mut solver = config.solver(80, 6).unwrap();
        let tol = if kind == hbpca::SolverKind::Oja { 0.05 } else { 1e-9 };
        let limits = hbpca::Limits { tol, ..hbpca::Limits::default() };
        let report = hbpca::Driver::new(limits).run(&mut *solver, &mut c).unwrap();
        assert_eq!(report.outcome, hbpca::Outcome::Converged, "{kind}");
        assert!(sine2(&report.vectors.column(0), &u.column(0)).sqrt() < 10.0 * tol, "{kind}");
    }
}
