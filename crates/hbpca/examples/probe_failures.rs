//! How often a probe fails, against the probability that it states, and how many passes it takes:
//! `cargo run --release -p hbpca --example probe_failures [runs]`.
//!
//! Every run has a fresh start. The spectra are those of diagonal matrices: a start that is uniform on the sphere knows no axes.

use std::error::Error;

use hbpca::Block;
use hbpca::operator::{CovarianceOperator, Product, RoundingBound, Shape};
use hbpca::probe::{ProbeConfig, ProbeSeed, probe};

/// C = diag(λ).
struct Diagonal(Vec<f64>);

impl CovarianceOperator for Diagonal {
    fn shape(&self) -> Shape {
        Shape { n: 1, d: self.0.len() }
    }
    fn total_variance(&self) -> f64 {
        self.0.iter().sum()
    }
    fn sum_rows(&mut self, product: Product<'_>, out: &mut Block) -> Result<RoundingBound, hbpca::Error> {
        out.copy_from(product.v);
        let p = product.v.p();
        out.values_mut().iter_mut().enumerate().for_each(|(at, x)| *x *= self.0[at / p]);
        Ok(RoundingBound::new(f64::EPSILON * self.0[0]))
    }
}

/// A name, and λ_{i+1}.
type Spectrum = (&'static str, fn(usize) -> f64);

fn main() -> Result<(), Box<dyn Error>> {
    let runs: u64 = std::env::args().nth(1).map_or(Ok(3000), |text| text.parse())?;
    failures(runs)?;
    passes()?;
    Ok(())
}

/// The share of runs whose bound is below the eigenvalue.
fn failures(runs: u64) -> Result<(), Box<dyn Error>> {
    // One eigenvalue above others that agree, one above a decay, two that agree.
    let spectra: [Spectrum; 3] = [
        ("1, then 0.01", |i| if i == 0 { 1.0 } else { 0.01 }),
        ("1/i²", |i| 1.0 / ((i + 1) * (i + 1)) as f64),
        ("1, 1, then 0.3/i", |i| if i < 2 { 1.0 } else { 0.3 / (i - 1) as f64 }),
    ];
    println!("failures in {runs} runs, d = 40, k = 0");
    println!(
        "{:<18} {:>2} {:>6} {:>9} {:>9} {:>9}",
        "spectrum", "p", "passes", "δ = 0.1", "δ = 0.05", "δ = 0.01"
    );
    for (name, lambda) in spectra {
        let mut operator = Diagonal((0..40).map(lambda).collect());
        for (block, max_passes) in [(1, 3), (1, 6), (2, 2), (4, 2), (4, 4)] {
            let mut shares = Vec::new();
            for failure_probability in [0.1, 0.05, 0.01] {
                let mut failed = 0;
                for seed in 0..runs {
                    let seed = ProbeSeed::Given(seed);
                    let config = ProbeConfig { failure_probability, block, max_passes, seed };
                    failed += u64::from(
                        probe(&mut operator, &Block::zeros(40, 0), &config, |_| false)?.bound < 1.0,
                    );
                }
                shares.push(failed as f64 / runs as f64);
            }
            println!(
                "{name:<18} {block:>2} {max_passes:>6} {:>9.4} {:>9.4} {:>9.4}",
                shares[0], shares[1], shares[2]
            );
        }
    }
    Ok(())
}

/// Passes until the bound is below λ_k.
fn passes() -> Result<(), Box<dyn Error>> {
    const D: usize = 4000;
    let spectra: [Spectrum; 4] = [
        ("10 … 6, then 3/i", |i| if i < 5 { 10.0 - i as f64 } else { 3.0 / (i - 4) as f64 }),
        ("1/i", |i| 1.0 / (i + 1) as f64),
        ("i^-0.5", |i| 1.0 / ((i + 1) as f64).sqrt()),
        ("i^-0.3", |i| ((i + 1) as f64).powf(-0.3)),
    ];
    println!("\npasses until the bound is below λ_k, d = {D}, p = 8, δ = 1e-9: the most of 5 seeds");
    println!("{:<18} {:>6} {:>6}", "spectrum", "k = 5", "k = 10");
    for (name, lambda) in spectra {
        let mut operator = Diagonal((0..D).map(lambda).collect());
        let mut most = [0; 2];
        for (most, k) in most.iter_mut().zip([5, 10]) {
            let columns: Vec<Vec<f64>> =
                (0..k).map(|c| (0..D).map(|j| f64::from(u8::from(j == c))).collect()).collect();
            let w = Block::from_columns(&columns)?;
            for seed in 0..5 {
                let config =
                    ProbeConfig { max_passes: 60, seed: ProbeSeed::Given(seed), ..ProbeConfig::default() };
                let found = probe(&mut operator, &w, &config, |bound| bound < lambda(k - 1))?;
                assert!(found.bound >= lambda(k), "a failure, of which the chance was 1e-9");
                *most = (*most).max(if found.bound < lambda(k - 1) { found.passes } else { u64::MAX });
            }
        }
        println!("{name:<18} {:>6} {:>6}", most[0], most[1]);
    }
    Ok(())
}
