//! One peer on one data set: the Rust half of the benchmark's children, with the protocol of `child.py`.
//!
//! `rust-peers PEER FOLDER K OUT` reads the data, prints a line, and then fits once for each line on its standard input. Each fit
//! writes the components to `OUT` (k×d, f64) and prints one JSON object.

mod data;
mod faer_peers;
mod memory;
mod svdlib_peers;

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use data::Data;

/// What a peer found: k unit vectors of length d one after the other, and what it says about the way there.
pub struct Found {
    components: Vec<f64>,
    /// Number of times that all data were read, where it can be known.
    passes: Option<usize>,
    warning: Option<String>,
}

type Failure = Box<dyn std::error::Error>;

type Fit = Box<dyn Fn(usize) -> Result<Found, Failure>>;

/// The peer with the data in the form that it wants; the conversion is not timed.
fn ready(peer: &str, data: Data) -> Result<Fit, Failure> {
    match (peer, data) {
        ("faer-svd", Data::Dense(dense)) => Ok(Box::new(move |k| Ok(faer_peers::svd_of_dense(&dense, k)))),
        ("faer-eigen", Data::Dense(dense)) => {
            Ok(Box::new(move |k| Ok(faer_peers::eigen_of_dense(&dense, k))))
        }
        ("faer-svd", Data::Sparse(sparse)) => faer_peers::svd_of_sparse(sparse),
        ("faer-eigen", Data::Sparse(sparse)) => faer_peers::eigen_of_sparse(sparse),
        ("svdlib-irlba", Data::Sparse(sparse)) => Ok(svdlib_peers::irlba(sparse)),
        ("svdlib-randomized", Data::Sparse(sparse)) => Ok(svdlib_peers::randomized(sparse)),
        (peer, _) => Err(format!("{peer} does not take this kind of data").into()),
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, folder, k, out] = &arguments[..] else {
        return Err("usage: rust-peers PEER FOLDER K OUT".into());
    };
    let fit = ready(peer, Data::read(Path::new(folder))?)?;
    let k: usize = k.parse()?;
    println!(r#"{{"ready": true}}"#);
    for line in std::io::stdin().lock().lines() {
        line?;
        memory::forget_peak();
        let before = memory::resident_mb();
        let start = Instant::now();
        let found = fit(k)?;
        let seconds = start.elapsed().as_secs_f64();
        let bytes: Vec<u8> = found.components.iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(out, bytes)?;
        let passes = found.passes.map_or("null".to_owned(), |p| p.to_string());
        let warnings = found.warning.map_or(String::new(), |text| format!("{text:?}"));
        let peak = memory::peak_mb();
        println!(
            r#"{{"seconds": {seconds}, "passes": {passes}, "warnings": [{warnings}], "peak_mb": {peak}, "added_mb": {}, "note": ""}}"#,
            (peak - before).max(0.0)
        );
        std::io::stdout().flush()?;
    }
    Ok(())
}
