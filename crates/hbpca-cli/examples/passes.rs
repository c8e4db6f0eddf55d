//! Passes that `krylov` and `anchored` need on real data, everything read counted.
//!
//! `cargo run --release --example passes -- DIR [K] [SEEDS]` reads the data sets of the reproduction from DIR and prints, for
//! every seed's largest count, the passes until the sum of squared sines of the k vectors against an exact reference falls
//! below 10⁻⁶ and 10⁻¹².

use std::error::Error;
use std::path::{Path, PathBuf};

use hbpca::{
    Anchored, AnchoredSizes, Block, Counted, Covariance, CovarianceOperator, Driver, Krylov, KrylovSizes,
    Limits, Preprocessing, Solver,
};
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
    println!("{:<14} {:>9} {:>14} {:>14}", "data", "solver", "to 1e-6", "to 1e-12");
    for (name, files, label, preprocessing) in DATA {
        let paths: Vec<PathBuf> = files.iter().map(|file| Path::new(folder).join(file)).collect();
        let options = ReadOptions { label_column: label.map(ColumnRef::parse), ..ReadOptions::default() };
        let data = hbpca_io::read(Input::paths(paths), &options)?;
        let (n, d) = (data.matrix.n_rows(), data.matrix.n_cols());
        let mut operator = Covariance::new(&data.matrix, preprocessing)?;
        let krylov = |seed| Krylov::new(d, k, KrylovSizes::suiting(k), seed, None);
        let exact = Limits { tol: 0.0, ..Limits::default() };
        let reference = Driver::new(exact).run(&mut krylov(seeds + 1)?, &mut operator)?.vectors;
        let (mut worst_krylov, mut worst_anchored) = ([0.0_f64; 2], [0.0_f64; 2]);
        for seed in 0..seeds {
            let counts = passes(&mut krylov(seed)?, &mut operator, &reference)?;
            worst_krylov = [worst_krylov[0].max(counts[0]), worst_krylov[1].max(counts[1])];
            let mut anchored = Anchored::new(n, d, k, AnchoredSizes::suiting(n, k), seed, None)?;
            let counts = passes(&mut anchored, &mut operator, &reference)?;
            worst_anchored = [worst_anchored[0].max(counts[0]), worst_anchored[1].max(counts[1])];
        }
        for (solver, worst) in [("krylov", worst_krylov), ("anchored", worst_anchored)] {
            println!("{name:<14} {solver:>9} {:>14.2} {:>14.2}", worst[0], worst[1]);
        }
    }
    Ok(())
}

/// Passes until the error falls below 10⁻⁶ and 10⁻¹²; infinite where 60 passes do not suffice.
fn passes(
    solver: &mut dyn Solver,
    operator: &mut dyn CovarianceOperator,
    reference: &Block,
) -> Result<[f64; 2], hbpca::Error> {
    let mut operator = Counted::new(operator);
    let mut reached = [f64::INFINITY; 2];
    while operator.passes() < 60.0 {
        solver.look(&mut operator)?;
        let error = squared_sines(solver.pairs().vectors, reference);
        for (passes, level) in reached.iter_mut().zip([1e-6, 1e-12]) {
            if error <= level {
                *passes = passes.min(operator.passes());
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
