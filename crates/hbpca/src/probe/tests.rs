//! Bounds against eigenvalues that are known, and failures against their probability.

use super::*;
use crate::linalg::{beside, random_complement, view};
use crate::matrix::random_normal;
use crate::operator::{Covariance, Product, RoundingBound, Shape};
use crate::{Dense, Matrix, Preprocessing};

/// C = diag(λ) with a rounding bound of its own. Starts have no preferred direction, so that axes are as good as any.
struct Diagonal {
    lambda: Vec<f64>,
    rounding: f64,
}

impl Diagonal {
    fn new(lambda: impl IntoIterator<Item = f64>) -> Self {
        let lambda: Vec<f64> = lambda.into_iter().collect();
        let rounding = f64::EPSILON * lambda.iter().fold(0.0, |most: f64, x| most.max(*x));
        Self { lambda, rounding }
    }
}

impl CovarianceOperator for Diagonal {
    fn shape(&self) -> Shape {
        Shape { n: 1, d: self.lambda.len() }
    }
    fn total_variance(&self) -> f64 {
        self.lambda.iter().sum()
    }
    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, Error> {
        out.copy_from(product.v);
        let p = product.v.p();
        out.values_mut().iter_mut().enumerate().for_each(|(at, x)| *x *= self.lambda[at / p]);
        Ok(RoundingBound::new(self.rounding))
    }
}

fn config(failure_probability: f64, block: usize, max_passes: u64, seed: u64) -> ProbeConfig {
    ProbeConfig { failure_probability, block, max_passes, seed: ProbeSeed::Given(seed) }
}

fn never(_: f64) -> bool {
    false
}

/// The axes `from` … as vectors.
fn axes(d: usize, from: usize, count: usize) -> Block {
    Block::unit_columns(d, from, count)
}

#[test]
fn bounds_are_above_what_the_vectors_leave() {
    let mut seed = 0;
    for d in [2, 3, 7, 20, 45] {
        let spectra: [Vec<f64>; 4] = [
            (0..d).map(|i| 1.0 / (i + 1) as f64).collect(),
            (0..d).map(|i| 0.5_f64.powf(3.0 * i as f64)).collect(),
            (0..d).map(|i| if i < d / 2 { 2.0 } else { 1.0 }).collect(),
            (0..d).map(|i| 1e6 - i as f64).collect(),
        ];
        for lambda in spectra {
            for k in [0, 1, d / 2] {
                for (block, passes) in [(1, 2), (1, 6), (2, 1), (3, 3), (8, 4)] {
                    seed += 1;
                    let mut operator = Diagonal::new(lambda.clone());
                    let config = config(1e-9, block, passes, seed);
                    let found = probe(&mut operator, &axes(d, 0, k), &config, never).unwrap();
                    assert!(
                        found.bound >= lambda[k],
                        "d {d} k {k} p {block}: {} < {}",
                        found.bound,
                        lambda[k]
                    );
                    assert!(found.passes <= passes && found.seed == seed && found.seed_is_given);
                }
            }
        }
    }
}

#[test]
fn copies_beyond_the_block_and_vectors_that_are_missed_are_seen() {
    for seed in 0..20 {
        // Six exact copies, of which the answer has four, and a block of four.
        let mut copies = Diagonal::new((0..50).map(|i| if i < 6 { 1.0 } else { 0.5 / f64::from(i) }));
        let found = probe(&mut copies, &axes(50, 0, 4), &config(1e-9, 4, 5, seed), never).unwrap();
        assert!(found.bound >= 1.0, "{}", found.bound);
        // The answer of a start that was given: it lacks the two largest.
        let mut missed = Diagonal::new((0..50).map(|i| 0.8_f64.powi(i)));
        let found = probe(&mut missed, &axes(50, 2, 5), &config(1e-9, 4, 5, seed), never).unwrap();
        assert!(found.bound >= 1.0, "{}", found.bound);
    }
}

#[test]
fn a_seed_known_to_the_data_fools_its_own_probe_and_no_other() {
    // u₁ is orthogonal to the start block of seed 0, and 10 its eigenvalue.
    let (d, p) = (60, 4);
    let start = Block::from_values(d, p, random_normal(0, d * p)).unwrap();
    let spanned = orthonormal_complement(start, &TallBasis::with_room(d, 0)).unwrap();
    let u = random_complement(&TallBasis::of(&spanned), 1, 5).unwrap();
    // Rows whose second moment is 10uuᵀ + P·diag(λ)·P, λ ≤ 1, P = I − uuᵀ: u never enters the Krylov space of that start.
    let mut rows: Vec<f64> = u.values().iter().map(|x| x * 10.0_f64.sqrt()).collect();
    for i in 0..d {
        let entry = |j: usize| f64::from(u8::from(i == j)) - u.get(i, 0) * u.get(j, 0);
        rows.extend((0..d).map(|j| entry(j) / (1.0 + i as f64).sqrt()));
    }
    let n = (d + 1) as f64;
    let matrix: Matrix = Dense::new(rows, d + 1, d).unwrap().into();
    let mut operator = Covariance::new(&matrix, Preprocessing::NONE).unwrap();
    for seed in 0..20 {
        let found = probe(&mut operator, &Block::zeros(d, 0), &config(1e-9, p, 6, seed), never).unwrap();
        let sees = found.bound * n >= 10.0 * (1.0 - 64.0 * f64::EPSILON);
        assert_eq!(sees, seed != 0, "seed {seed}: {}", found.bound * n);
    }
    let fresh = ProbeConfig { max_passes: 2, block: p, ..ProbeConfig::default() };
    let found = probe(&mut operator, &Block::zeros(d, 0), &fresh, never).unwrap();
    assert!(found.bound * n >= 10.0 * (1.0 - 64.0 * f64::EPSILON) && !found.seed_is_given);
}

/// P(X ≥ x) for X binomial.
fn upper_tail(x: usize, n: usize, probability: f64) -> f64 {
    let mut term = (1.0 - probability).powf(n as f64);
    let mut below = 0.0;
    for i in 0..x {
        below += term;
        term *= (n - i) as f64 / (i + 1) as f64 * probability / (1.0 - probability);
    }
    1.0 - below
}

#[test]
fn failures_are_as_rare_as_said() {
    assert!((upper_tail(1, 2, 0.5) - 0.75).abs() < 1e-15);
    for (delta, runs) in [(0.1, 300), (0.01, 400)] {
        for (block, passes) in [(1, 3), (2, 2)] {
            let failures = (0..runs)
                .filter(|seed| {
                    // One eigenvalue far above the others: what the start has of it decides.
                    let mut operator =
                        Diagonal::new((0..16).map(|i| if i == 2 { 1.0 } else { 0.01 * f64::from(i) }));
                    let config = config(delta, block, passes, 1_000_000 + seed);
                    probe(&mut operator, &axes(16, 0, 1), &config, never).unwrap().bound < 1.0
                })
                .count();
            // One chance in 10⁴ for each of the four, with seeds that are fixed.
            let tail = upper_tail(failures, runs as usize, delta);
            assert!(tail > 1e-4, "{failures} of {runs} at {delta}, p = {block}");
        }
    }
}

/// Passes until the bound is below `below`.
fn passes_until(operator: &mut dyn CovarianceOperator, k: usize, below: f64) -> ProbeResult {
    let w = axes(operator.dim(), 0, k);
    probe(operator, &w, &config(1e-9, 8, 60, 3), |bound| bound < below).unwrap()
}

#[test]
fn a_gap_is_seen_in_a_few_passes_and_a_slow_spectrum_takes_more() {
    let d = 400;
    let gap = |i: usize| if i < 5 { 10.0 - i as f64 } else { 3.0 / (i - 4) as f64 };
    let found = passes_until(&mut Diagonal::new((0..d).map(gap)), 5, gap(4));
    assert!(found.bound >= gap(5) && found.bound < gap(4) && found.passes <= 6, "{found:?}");
    let slow = |i: usize| ((i + 1) as f64).powf(-0.3);
    let slower = passes_until(&mut Diagonal::new((0..d).map(slow)), 10, slow(9));
    assert!(slower.bound >= slow(10) && slower.bound < slow(9) && slower.passes > found.passes, "{slower:?}");
}

#[test]
fn a_complement_that_is_exhausted_is_known_exactly() {
    for (d, k, block) in [(1, 0, 1), (5, 2, 8), (9, 3, 2), (12, 0, 5), (12, 4, 3)] {
        let lambda: Vec<f64> = (0..d).map(|i| 4.0 / (1 + i) as f64).collect();
        let mut operator = Diagonal::new(lambda.clone());
        let found = probe(&mut operator, &axes(d, 0, k), &config(1e-9, block, 60, 1), never).unwrap();
        // Rounding of at most 12 images and products, of a dozen terms each.
        let off = found.bound - lambda[k];
        assert!((0.0..=1e4 * f64::EPSILON * lambda[0]).contains(&off), "{d} {k} {block}: {off:e}");
        assert!(found.passes <= (d - k).div_ceil(block.min(d - k)) as u64, "{found:?}");
    }
}

#[test]
fn nothing_is_beyond_everything_and_no_variance_is_none() {
    let found = probe(&mut Diagonal::new([3.0, 2.0]), &axes(2, 0, 2), &config(1e-9, 8, 5, 1), never).unwrap();
    assert_eq!((found.bound.to_bits(), found.passes), (0, 0));
    let found = probe(&mut Diagonal::new([0.0; 30]), &axes(30, 0, 2), &config(1e-9, 4, 5, 1), never).unwrap();
    assert!((0.0..=2.0 * f64::MIN_POSITIVE).contains(&found.bound) && found.passes == 1, "{found:?}");
    // Two eigenvalues, both in W: the rest is rounding.
    let mut low_rank = Diagonal::new((0..30).map(|i| if i < 2 { 5.0 } else { 0.0 }));
    let found = probe(&mut low_rank, &axes(30, 0, 2), &config(1e-9, 4, 5, 1), never).unwrap();
    assert!(found.bound < 1e-6 && found.passes == 1, "{found:?}");
}

#[test]
fn an_invariant_space_ends_the_probe() {
    // Three distinct eigenvalues: three steps of any block.
    let mut operator = Diagonal::new((0..60).map(|i| [3.0, 2.0, 1.0][i % 3]));
    let found = probe(&mut operator, &Block::zeros(60, 0), &config(1e-9, 4, 20, 1), never).unwrap();
    assert!(found.bound >= 3.0 && found.bound < 3.0 + 1e-6 && found.passes <= 4, "{found:?}");
}

#[test]
fn rounding_is_part_of_the_bound() {
    let run = |rounding: f64| {
        let mut operator = Diagonal { rounding, ..Diagonal::new((0..40).map(|i| 1.0 / f64::from(1 + i))) };
        probe(&mut operator, &axes(40, 0, 2), &config(1e-3, 8, 4, 9), never).unwrap()
    };
    let share = least_share(1e-3, 8, 38);
    let exact = run(0.0).bound;
    for rounding in [1e-9, 1e-6, 1e-3] {
        // An error that depends on the start can hide an eigenvalue at error/√q above those seen.
        let bound = run(rounding).bound;
        assert!(bound >= exact && bound >= 1.0 / 3.0 + rounding / share, "{rounding}: {bound}");
    }
    for rounding in [f64::INFINITY, f64::NAN, -1.0] {
        let found = run(rounding);
        assert!(found.bound.is_infinite() && found.passes == 1, "{found:?}");
    }
    let mut unknown = Diagonal { lambda: vec![1.0, f64::NAN, 2.0], rounding: 0.0 };
    assert!(probe(&mut unknown, &axes(3, 0, 1), &config(1e-3, 1, 4, 9), never).unwrap().bound.is_infinite());
}

#[test]
fn vectors_need_not_be_orthonormal() {
    let d = 40;
    let lambda = |i: usize| 1.0 / (1 + i) as f64;
    let config = config(1e-9, 4, 5, 2);
    let plain = probe(&mut Diagonal::new((0..d).map(lambda)), &axes(d, 0, 2), &config, never).unwrap();
    // (e₁ + e₂, 10⁻³e₂), and e₂ twice.
    let mixed = crate::linalg::product(
        &axes(d, 0, 2),
        view(&Block::from_values(2, 2, vec![1.0, 0.0, 1.0, 1e-3]).unwrap()),
    );
    for w in [mixed.clone(), beside(&mixed, &axes(d, 1, 1))] {
        let found = probe(&mut Diagonal::new((0..d).map(lambda)), &w, &config, never).unwrap();
        assert!(
            found.bound >= lambda(2) && (found.bound / plain.bound - 1.0).abs() < 1e-6,
            "{found:?} {plain:?}"
        );
    }
}

#[test]
fn seeds_of_the_system_differ_and_repeat_a_probe() {
    let run = |seed| {
        let config = ProbeConfig { seed, block: 2, max_passes: 2, ..ProbeConfig::default() };
        let mut operator = Diagonal::new((0..30).map(|i| 1.0 / f64::from(1 + i)));
        probe(&mut operator, &axes(30, 0, 1), &config, never).unwrap()
    };
    let (one, other) = (run(ProbeSeed::FromSystem), run(ProbeSeed::FromSystem));
    assert!(one.seed != other.seed && !one.seed_is_given);
    let again = run(ProbeSeed::Given(one.seed));
    assert_eq!((again.bound.to_bits(), again.seed_is_given), (one.bound.to_bits(), true));
}

#[test]
fn what_cannot_be_probed_is_refused() {
    let text = |config: ProbeConfig, w: Block| {
        probe(&mut Diagonal::new([3.0, 2.0, 1.0]), &w, &config, never).unwrap_err().to_string()
    };
    let w = axes(3, 0, 1);
    for delta in [0.0, 0.6, f64::NAN] {
        assert!(text(config(delta, 8, 5, 0), w.clone()).ends_with("at most 0.5, such as 1e-9"));
    }
    assert!(text(config(0.1, 0, 5, 0), w.clone()).starts_with("block = 0 vectors"));
    assert!(text(config(0.1, 8, 0, 0), w).starts_with("max_passes = 0"));
    assert!(text(config(0.1, 8, 5, 0), axes(4, 0, 1)).starts_with("coordinates of the vectors"));
    let unknown = Block::from_vector(vec![1.0, f64::NAN, 0.0]);
    assert_eq!(
        text(config(0.1, 8, 5, 0), unknown),
        "vectors = NaN in coordinate 1: every entry must be finite"
    );
}
