//! By how much exact images of a basis shrink the variance of a mini-batch, and with it the noise h of an epoch.
//!
//! ```sh
//! cargo run --release -p hbpca-lab --example anchors -- std ijcnn1.tst.bz2
//! ```
//!
//! The first argument is `none`, `center` or `std`, what is done to the columns; then a file of any format that is read, or several that are one
//! matrix, and `label=NAME` where a column of a table is no feature. Anchors are the leading eigenvectors.

use std::error::Error;
use std::path::PathBuf;

use hbpca::theory::{AnchoredVariance, GradientVariance, Method, Problem, best_step_size};
use hbpca::{Batch, Block, ColumnStatistics, FitConfig, Limits, Preprocessing, Replacement};
use hbpca_io::{ColumnRef, Input, ReadOptions};

/// Numbers of anchors that are tried.
const ANCHORS: [usize; 7] = [0, 1, 2, 5, 10, 20, 40];
/// Batches and epochs of the paper's first figure.
const BATCH: Batch = Batch::Share(0.01);
const EPOCH: usize = 100;
/// Relative accuracy of the variances.
const TOL: f64 = 0.01;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let preprocessing = match arguments.next().as_deref() {
        Some("none") => Preprocessing::NONE,
        Some("center") => Preprocessing::CENTER,
        Some("std") => Preprocessing::STANDARDIZE,
        _ => return Err("give none, center or std, and the files".into()),
    };
    let (labels, files): (Vec<String>, Vec<String>) = arguments.partition(|text| text.starts_with("label="));
    let label_column = labels.first().and_then(|text| text.strip_prefix("label=")).map(ColumnRef::parse);
    let options = ReadOptions { label_column, ..ReadOptions::default() };
    let x =
        hbpca_io::read(Input::paths(files.iter().map(PathBuf::from).collect::<Vec<_>>()), &options)?.matrix;
    let (n, d) = (x.n_rows(), x.n_cols());

    let k = ANCHORS[ANCHORS.len() - 1].clamp(2, d.min(n));
    let limits = Limits { tol: 1e-4, ..Limits::default() };
    let model = FitConfig { k, preprocessing, limits, ..FitConfig::default() }.fit(&x)?.model;
    let (lambda, vectors) = (model.eigenvalues(), model.vectors());
    let map = preprocessing.row_map(&ColumnStatistics::new(&x)?);
    let batch = BATCH.rows(n)?;
    let of_batch = |variance: &GradientVariance| variance.of_batch(batch, Replacement::Without);
    let all = of_batch(&GradientVariance::measure(&x, &map, TOL, 0)?)?;
    let problem = |variance| Problem::new(lambda[0], lambda[1], variance, EPOCH);
    // The step that is best without anchors, for all: h then shows what the variance alone does.
    let eta = best_step_size(&problem(all)?).eta;
    let h = |variance| Ok::<_, hbpca::Error>(problem(variance)?.contraction(Method::VrHbPower { eta })?.h);
    let plain = h(all)?;

    println!("{n} rows × {d} columns, λ₂/λ₁ = {:.4}, |S| = {batch}, m = {EPOCH}", lambda[1] / lambda[0]);
    println!("K = {all:.4e}; with η = {eta:.4} the model has h = {plain:.4e}\n");
    println!("anchors   K_Q/K    K⊥/K    h/h₀   best η   best ρ");
    for a in ANCHORS.into_iter().filter(|a| *a <= k) {
        let columns: Vec<Vec<f64>> = (0..a).map(|c| vectors.column(c)).collect();
        let anchors = if a == 0 { Block::zeros(d, 0) } else { Block::from_columns(&columns)? };
        let left = AnchoredVariance::measure(&x, &map, &anchors, TOL, 0)?;
        let (sampled, outside) = (of_batch(left.sampled())?, of_batch(left.outside())?);
        let best = best_step_size(&problem(outside)?);
        println!(
            "{a:7}  {:6.4}  {:6.4}  {:6.4}   {:6.4}  {:7.5}",
            sampled / all,
            outside / all,
            h(outside)? / plain,
            best.eta,
            best.contraction.rate()
        );
    }
    Ok(())
}
