//! Passes that `krylov` and `anchored` need on real data, everything read counted.
//!
//! `cargo run --release --example passes -- DIR [K] [SEEDS]` reads the data sets of the reproduction from DIR and prints, for
//! every seed's largest count, the passes until the sum of squared sines of the k vectors against an exact reference falls
//! below 10⁻⁶ and 10⁻¹². Then what each part of `anchored` buys: the same with one part left out. The last line draws samples from
//! a pool of a tenth of the rows and counts full passes only, as for data on a disk.

use std::error::Error;
use std::path::{Path, PathBuf};

use hbpca::operator::{Counted, Covariance, CovarianceOperator};
use hbpca::solver::{Anchored, AnchoredSizes, Krylov, KrylovSizes, Solver};
use hbpca::{Block, Driver, Limits, Preprocessing};
use hbpca_io::{ColumnRef, Input, ReadOptions};

/// Name, files, label column, preparation.
type DataSet = (&'static str, &'static [&'static str], Option<&'static str>, Preprocessing);

const DATA: [DataSet; 5] = [
    ("ijcnn1", &["ijcnn1.tst.bz2"], None, Preprocessing::STANDARDIZE),
    ("covtype", &["covtype.csv.gz"], Some("Cover_Type"), Preprocessing::STANDARDIZE),
    ("MNIST", &["train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"], None, Preprocessing::STANDARDIZE),
    ("Reuters-21578", &["reuters21578.npz"], None, Preprocessing::NONE),
    ("news20", &["news20.bz2"], None, Preprocessing::NONE),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().ok_or("give the folder of the data sets")?;
    let k = arguments.get(1).map_or(Ok(1), |text| text.parse())?;
    let seeds = arguments.get(2).map_or(Ok(3), |text| text.parse())?;
    println!("{:<14} {:<34} {:>8} {:>8}", "data", "solver", "to 1e-6", "1e-12");
    for (name, files, label, preprocessing) in DATA {
        let paths: Vec<PathBuf> = files.iter().map(|file| Path::new(folder).join(file)).collect();
        let options = ReadOptions { label_column: label.map(ColumnRef::parse), ..ReadOptions::default() };
        let data = hbpca_io::read(Input::paths(paths), &options)?;
        let (n, d) = (data.matrix.n_rows(), data.matrix.n_cols());
        let mut operator = Covariance::new(&data.matrix, preprocessing)?;
        let krylov = |seed| Krylov::new(d, k, KrylovSizes::suiting(k), seed, None);
        let exact = Limits { tol: 0.0, ..Limits::default() };
        let reference = Driver::new(exact).run(&mut krylov(seeds + 1)?, &mut operator)?.vectors;
        let sizes = AnchoredSizes::suiting(n, k);
        let narrow = AnchoredSizes { block: 8.max(k), anchors: 4 * 8.max(k), ..sizes };
        let pool: Vec<usize> = (0..n).step_by(10).collect();
        let anchored = |sizes, seed| Anchored::new(n, d, k, sizes, seed, None);
        let print = |what: &str, counts: [f64; 2]| {
            println!("{name:<14} {what:<34} {:>8.2} {:>8.2}", counts[0], counts[1]);
        };
        print("krylov", largest(seeds, |seed| passes(&mut krylov(seed)?, &mut operator, &reference, false))?);
        print(
            "anchored",
            largest(seeds, |seed| passes(&mut anchored(sizes, seed)?, &mut operator, &reference, false))?,
        );
        let lines = [
            ("  with a block of 8 (or k)", narrow, 9),
            ("  without a start sample", AnchoredSizes { start_rows: 0, ..sizes }, 9),
            ("  without an inner loop", sizes, 1),
            ("  without memory", AnchoredSizes { anchors: sizes.block, ..sizes }, 9),
        ];
        for (what, sizes, longest) in lines {
            let run = |seed| {
                let mut solver = anchored(sizes, seed)?.with_longest_epoch(longest);
                passes(&mut solver, &mut operator, &reference, false)
            };
            print(what, largest(seeds, run)?);
        }
        let run = |seed| {
            let mut solver = anchored(sizes, seed)?.with_pool(pool.clone())?;
            passes(&mut solver, &mut operator, &reference, true)
        };
        print("  full passes, pool of 10 %", largest(seeds, run)?);
    }
    Ok(())
}

/// The largest counts over all seeds.
fn largest(
    seeds: u64,
    mut run: impl FnMut(u64) -> Result<[f64; 2], hbpca::Error>,
) -> Result<[f64; 2], hbpca::Error> {
    let mut worst = [0.0_f64; 2];
    for seed in 0..seeds {
        let counts = run(seed)?;
        worst = [worst[0].max(counts[0]), worst[1].max(counts[1])];
    }
    Ok(worst)
}

/// Passes (or full passes only) until the error falls below 10⁻⁶ and 10⁻¹²; infinite where 60 passes do not suffice.
fn passes(
    solver: &mut dyn Solver,
    operator: &mut dyn CovarianceOperator,
    reference: &Block,
    full_only: bool,
) -> Result<[f64; 2], hbpca::Error> {
    let mut operator = Counted::new(operator);
    let mut reached = [f64::INFINITY; 2];
    while operator.passes() < 60.0 {
        solver.look(&mut operator)?;
        let error = squared_sines(solver.pairs().vectors, reference);
        for (passes, level) in reached.iter_mut().zip([1e-6, 1e-12]) {
            if error <= level {
                let full = operator.read().full_passes as f64;
                *passes = passes.min(if full_only { full } else { operator.passes() });
            }
        }
        if reached[1].is_finite() {
            break;
        }
        solver.step(&mut operator)?;
    }
    Ok(reached)
}

/// ‖(I − UUᵀ)W‖_F², which bounds the largest squared sine.
fn squared_sines(w: &Block, u: &Block) -> f64 {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let basis: Vec<Vec<f64>> = (0..u.p()).map(|c| u.column(c)).collect();
    (0..w.p())
        .map(|c| {
            let mut rest = w.column(c);
            for u in &basis {
                let along = dot(&rest, u);
                rest.iter_mut().zip(u).for_each(|(r, u)| *r -= along * u);
            }
            dot(&rest, &rest)
        })
        .sum()
}
