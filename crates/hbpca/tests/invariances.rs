//! What must not matter does not: the order of rows and columns, rotations, units, the origin.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare exact values exactly and count small"
)]

mod common;

use common::*;
use hbpca::operator::Covariance;
use hbpca::{
    Batch, Block, Fit, FitConfig, Limits, Matrix, MomentumChoice, Outcome, Preprocessing, SolverKind,
    Whitening,
};

const D: usize = 9;

fn rows() -> Vec<f64> {
    with_spectrum(120, &geometric(D, 0.7), 3).0
}

fn config(solver: SolverKind) -> FitConfig {
    FitConfig {
        solver,
        preprocessing: Preprocessing::NONE,
        batch: Batch::Share(0.5),
        eta: Some(0.3),
        epoch: 6,
        threads: 1,
        ..FitConfig::default()
    }
}

fn fit(config: &FitConfig, x: &Matrix<'_>) -> Fit {
    config.fit(x).unwrap()
}

/// A shuffle of 0 .. n.
fn shuffle(n: usize) -> Vec<usize> {
    let mut rng = Xorshift(99);
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, (rng.uniform() * (i + 1) as f64) as usize);
    }
    order
}

/// The solver's iterate after three steps from a given start.
fn third_iterate(solver: SolverKind, x: &Matrix<'_>, start: &Block) -> Block {
    let config =
        FitConfig { start: Some(start.clone()), momentum: MomentumChoice::Oracle(0.7), ..config(solver) };
    let mut solver = config.solver(x.n_rows(), x.n_cols()).unwrap();
    let mut c = Covariance::new(x, Preprocessing::NONE).unwrap();
    for _ in 0..3 {
        solver.look(&mut c).unwrap();
        solver.step(&mut c).unwrap();
    }
    solver.pairs().vectors.clone()
}

/// Bound on the distance of two iterates whose 18 inner steps rounded differently: each by the image's rounding,
/// amplified by what was normalised away, at most λ₁ᵗ against a component of at least |w₀ᵀu₁| ≈ 1/√d of the start.
fn iterate_bound() -> f64 {
    let x = dense(rows(), D);
    let c = Covariance::new(&x, Preprocessing::NONE).unwrap();
    18.0 * 4.0 * c.rounding().of_image() * (D as f64)
}

const ITERATIVE: [SolverKind; 11] = [
    SolverKind::Power,
    SolverKind::PowerM,
    SolverKind::Oja,
    SolverKind::VrPca,
    SolverKind::VrPcaProjected,
    SolverKind::VrPowerM,
    SolverKind::VrHbPower,
    SolverKind::ShiftInvertSvrg,
    SolverKind::ShiftInvertAgd,
    SolverKind::VrRiemannian,
    SolverKind::CoordinatePower,
];

#[test]
fn rotating_the_columns_rotates_every_iterate() {
    let (values, q) = (rows(), rotation(D, 5));
    let (x, turned) = (dense(values.clone(), D), dense(rotate(&values, &q), D));
    let start = random_block(D, 1, 8);
    let turned_start = Block::from_vector(rotate(start.values(), &q));
    // But for the one that chooses coordinates.
    for solver in ITERATIVE.into_iter().filter(|kind| *kind != SolverKind::CoordinatePower) {
        let want = Block::from_vector(rotate(third_iterate(solver, &x, &start).values(), &q));
        let got = third_iterate(solver, &turned, &turned_start);
        assert!(distance(&got, &want) <= iterate_bound(), "{solver}: {:e}", distance(&got, &want));
    }
}

#[test]
fn reordering_the_columns_reorders_every_iterate() {
    let (values, order) = (rows(), shuffle(D));
    let reorder =
        |v: &[f64]| v.chunks_exact(D).flat_map(|row| order.iter().map(|&j| row[j])).collect::<Vec<_>>();
    let (x, reordered) = (dense(values.clone(), D), dense(reorder(&values), D));
    let start = random_block(D, 1, 8);
    let reordered_start = Block::from_vector(reorder(start.values()));
    for solver in ITERATIVE {
        let want = Block::from_vector(reorder(third_iterate(solver, &x, &start).values()));
        let got = third_iterate(solver, &reordered, &reordered_start);
        assert!(distance(&got, &want) <= iterate_bound(), "{solver}: {:e}", distance(&got, &want));
    }
}

#[test]
fn a_common_unit_changes_eigenvalues_by_its_square_and_no_iterate_when_the_step_is_measured_in_it() {
    // (1 − η)I + ηC is a multiple of I + ωC with ω = η/(1 − η): iterates depend on ωC alone.
    let values = rows();
    let start = random_block(D, 1, 8);
    for unit in [0.25, 3.0, 1e-3] {
        let scaled: Vec<f64> = values.iter().map(|x| unit * x).collect();
        let (x, y) = (dense(values.clone(), D), dense(scaled, D));
        let square = unit * unit;
        for solver in ITERATIVE {
            let run = |x: &Matrix<'_>, eta: f64, lambda2: f64| {
                let momentum = MomentumChoice::Oracle(lambda2);
                let config =
                    FitConfig { eta: Some(eta), momentum, start: Some(start.clone()), ..config(solver) };
                let mut solver = config.solver(120, D).unwrap();
                let mut c = Covariance::new(x, Preprocessing::NONE).unwrap();
                for _ in 0..3 {
                    solver.look(&mut c).unwrap();
                    solver.step(&mut c).unwrap();
                }
                solver.pairs().vectors.clone()
            };
            let eta = match solver {
                SolverKind::VrHbPower => (0.3 / 0.7) / square / (1.0 + (0.3 / 0.7) / square),
                _ => 0.3 / square,
            };
            let (want, got) = (run(&x, 0.3, 0.7), run(&y, eta, 0.7 * square));
            // Forming 1 − η loses 1/(1 − η) ≈ 1 + ω: the step in another unit is that much less exact.
            let bound = iterate_bound() * (1.0 + (0.3 / 0.7) / square);
            assert!(distance(&got, &want) <= bound, "{solver}, {unit}: {:e}", distance(&got, &want));
        }
    }
}

#[test]
fn units_at_the_edges_of_the_range_keep_every_certificate_true() {
    let values = rows();
    for unit in [1e-150, 1e-80, 1e-20, 1e20, 1e80, 1e150] {
        let x = dense(values.iter().map(|x| unit * x).collect(), D);
        let square = unit * unit;
        for solver in SolverKind::ALL {
            // Oja, VR-PCA and what follows it take steps in units of 1/λ.
            let eta = if solver.has_positive_step() { 0.3 / square } else { 0.3 };
            let limits = Limits { max_passes: 200.0, ..Limits::default() };
            let fit = fit(&FitConfig { eta: Some(eta), limits, ..config(solver) }, &x);
            let label = format!("{solver} in units of {unit:e}: {}", fit.certificate);
            common::sound::assert_every_number_is_defined(&fit, &x, &label);
            for [lo, hi] in &fit.certificate.eigenvalue_intervals {
                let inside = |k| (lo / square - 1e-12..=hi / square + 1e-12).contains(&0.7_f64.powi(k));
                assert!((0..D as i32).any(inside), "{label}");
            }
            // β = λ₂² leaves the range beyond 1e±77; a step (1 − η)w + ηg knows the scale 1.
            if !solver.has_momentum() && solver != SolverKind::Oja {
                assert_eq!(fit.outcome, Outcome::Converged, "{label}");
                let theta = fit.model.eigenvalues()[0] / square;
                assert!((theta - 1.0).abs() <= 1e-6, "{label}: {theta}");
            }
        }
    }
}

#[test]
fn a_standardised_unit_does_not_matter_at_all() {
    // A power of two changes no digit.
    let values = sparse_values(80, D, 0.8, 4);
    let scaled: Vec<f64> =
        values.iter().enumerate().map(|(i, x)| x * f64::powi(2.0, (i % D) as i32 * 20 - 80)).collect();
    for preprocessing in [Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE] {
        for (x, y) in
            [(dense(values.clone(), D), dense(scaled.clone(), D)), (csr(&values, D), csr(&scaled, D))]
        {
            for solver in SolverKind::ALL {
                let config = FitConfig { preprocessing, ..config(solver) };
                let config = FitConfig { limits: Limits { max_passes: 10.0, ..Limits::default() }, ..config };
                let (a, b) = (fit(&config, &x), fit(&config, &y));
                assert_eq!(a.model.components(), b.model.components(), "{solver}");
                assert_eq!(a.model.eigenvalues(), b.model.eigenvalues(), "{solver}");
            }
        }
    }
}

#[test]
fn the_order_of_rows_changes_nothing_beyond_rounding() {
    let values = rows();
    let reordered: Vec<f64> =
        shuffle(120).iter().flat_map(|&l| values[l * D..(l + 1) * D].to_vec()).collect();
    for preprocessing in EVERY_PREPROCESSING {
        let (x, y) = (dense(values.clone(), D), dense(reordered.clone(), D));
        let k = FitConfig { k: 4, preprocessing, ..config(SolverKind::Covariance) };
        agree(&fit(&k, &x), &fit(&k, &y));
        for solver in ITERATIVE.into_iter().filter(|kind| *kind != SolverKind::Oja) {
            // Without noise 1/η may be far below λ₁.
            let eta = Some(match solver {
                SolverKind::VrRiemannian | SolverKind::ShiftInvertSvrg => 100.0,
                _ => 1.0,
            });
            let config = FitConfig { preprocessing, batch: Batch::Share(1.0), eta, ..config(solver) };
            agree(&fit(&config, &x), &fit(&config, &y));
        }
    }
}

#[test]
fn moving_the_origin_changes_nothing_when_centring() {
    // Shifts of up to 1e6 σ cost their size in digits of the data itself, and no more.
    let values = rows();
    for size in [1.0, 1e3, 1e6] {
        let shift = random_block(D, 1, 4);
        let moved: Vec<f64> =
            values.iter().enumerate().map(|(i, x)| x + size * shift.values()[i % D]).collect();
        let (x, y) = (dense(values.clone(), D), dense(moved, D));
        for preprocessing in [Preprocessing::CENTER, Preprocessing::STANDARDIZE] {
            let config = FitConfig { k: 4, preprocessing, ..config(SolverKind::Covariance) };
            let (a, b) = (fit(&config, &x), fit(&config, &y));
            // Entries moved by ≤ ε·size·|shift|: C by twice that times √trace (standardised: relative to σ ≥ 0.1).
            let moved_by =
                10.0 * f64::EPSILON * size * shift.norm() * a.model.summary().total_variance.sqrt().max(1.0);
            for (theta, other) in a.model.eigenvalues().iter().zip(b.model.eigenvalues()) {
                let bound = 2.0 * moved_by + a.certificate.residuals[0] + b.certificate.residuals[0];
                assert!((theta - other).abs() <= bound, "{size:e}: {theta} and {other}");
            }
            let scores = (
                a.model.transform(&x, Whitening::Off).unwrap(),
                b.model.transform(&y, Whitening::Off).unwrap(),
            );
            let gap = 0.05 * a.model.eigenvalues()[0]; // of the four leading eigenvalues
            let farthest = scores.0.iter().zip(&scores.1).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(farthest <= 100.0 * (moved_by + 1e-15) / gap, "{size:e}: scores {farthest:e} apart");
        }
    }
}

/// Two fits of the same covariance, each certified: values within their residuals, vectors within their angles.
fn agree(a: &Fit, b: &Fit) {
    let label = format!("{} and {}: {}", a.solver, b.solver, a.certificate);
    for fit in [a, b] {
        assert_eq!(fit.outcome, Outcome::Converged, "{label}");
    }
    for i in 0..a.model.n_components() {
        let apart = (a.model.eigenvalues()[i] - b.model.eigenvalues()[i]).abs();
        let residuals = a.certificate.residuals[i] + b.certificate.residuals[i];
        assert!(apart <= residuals, "{label}: {apart:e} apart");
        if let (Some(x), Some(y)) = (a.certificate.angle_bounds[i], b.certificate.angle_bounds[i]) {
            let sine = sine2(a.model.component(i), b.model.component(i)).sqrt();
            // An estimated gap is an estimate: twice its bound.
            assert!(sine <= 2.0 * (x + y), "{label}: sine {sine:e}, bounds {x:e} and {y:e}");
        }
    }
}

#[test]
fn certificates_of_the_same_vectors_agree_whatever_the_order_of_rows() {
    let values = rows();
    let reordered: Vec<f64> =
        shuffle(120).iter().flat_map(|&l| values[l * D..(l + 1) * D].to_vec()).collect();
    let (x, y) = (dense(values, D), dense(reordered, D));
    let w = fit(&FitConfig { k: 3, ..config(SolverKind::Covariance) }, &x).model.vectors();
    let [mut a, mut b] = [&x, &y].map(|x| Covariance::new(x, Preprocessing::NONE).unwrap());
    let [p, q] = [&mut a, &mut b]
        .map(|c| hbpca::certificate::check(c, &w, hbpca::certificate::Next::Unknown, 1e-6).unwrap());
    for i in 0..3 {
        assert!(
            (p.eigenvalues[i] - q.eigenvalues[i]).abs() <= a.rounding().of_image() + b.rounding().of_image()
        );
    }
}
