//! `.h5ad` on the command line: every command, in memory and on disk, against the same numbers computed apart.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use std::path::{Path, PathBuf};

use common::{Folder, numbers};

/// A file that `crates/hbpca-io/tests/fixtures/h5ad/make.py` wrote.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hbpca-io/tests/fixtures/h5ad").join(name)
}

fn folder_with(names: &[&str]) -> Folder {
    let folder = Folder::new();
    for name in names {
        std::fs::copy(fixture(name), folder.path(name)).unwrap();
    }
    folder
}

const PREPARED: &str = "--mask highly_variable --normalize 1e4 --log1p";

/// The counts of the small files, gene by gene, with what `PREPARED` asks for done to them.
fn prepared() -> Vec<Vec<f64>> {
    let count = |i: usize, j: usize| {
        let there = i != 4 && j != 5 && (7 * i + 3 * j).is_multiple_of(5);
        if there { ((i + 2 * j) % 9 + 1) as f64 } else { 0.0 }
    };
    let total = |i: usize| (0..13).map(|j| count(i, j)).sum::<f64>().max(1.0);
    let row = |i: usize| {
        let chosen = (0..13).filter(|j| j % 3 == 1);
        chosen.map(|j| f64::from((count(i, j) * 1e4 / total(i)).ln_1p() as f32)).collect()
    };
    (0..20).map(row).collect()
}

fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0))
}

#[test]
fn a_fit_of_prepared_cells_is_that_of_the_prepared_table() {
    let folder = folder_with(&["csr-gzip.h5ad", "csc-lzf.h5ad", "dense-latest.h5ad", "records.h5ad"]);
    let mut table = String::from("gene1,gene4,gene7,gene10\n");
    for row in prepared() {
        table += &row.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        table += "\n";
    }
    folder.write("table.csv", &table);
    let expected = numbers(&folder.run("fit table.csv -k 3 --json -q").json(0)["eigenvalues"]);
    for file in ["csr-gzip.h5ad", "csc-lzf.h5ad", "dense-latest.h5ad", "records.h5ad"] {
        let fit = folder.run(&format!("fit {file} -k 3 {PREPARED} -o m.safetensors --json -q")).json(0);
        // Values in f32 are off by 6e-8, squares by twice as much.
        assert!(close(&numbers(&fit["eigenvalues"]), &expected, 1e-6), "{file}: {fit}");
        assert_eq!((fit["n"].as_u64(), fit["d"].as_u64()), (Some(20), Some(4)), "{file}");
        assert_eq!(folder.run(&format!("check m.safetensors {file} -q")).code(), 0, "{file}");
        let scores = folder.run(&format!("transform m.safetensors {file} -o - --output-format csv"));
        assert_eq!(scores.code(), 0, "{}", scores.stderr());
        let first: Vec<f64> = scores
            .stdout()
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap().parse().unwrap())
            .collect();
        let variance = first.iter().map(|x| x * x).sum::<f64>() / 20.0;
        assert!((variance - expected[0]).abs() <= 1e-5 * expected[0], "{file}: {variance} {}", expected[0]);
    }
    let info = folder.run("info m.safetensors").stdout();
    assert!(info.contains("cells") && info.contains("each cell brought to 10000"), "{info}");
    assert!(info.contains("log(1 + x), genes of `highly_variable`"), "{info}");
}

#[test]
fn a_model_takes_counts_as_it_was_fitted_and_refuses_a_table() {
    let folder = folder_with(&["csr-gzip.h5ad", "dense-chunks.h5ad"]);
    assert_eq!(
        folder.run(&format!("fit csr-gzip.h5ad --layer counts -k 2 {PREPARED} -o m.safetensors -q")).code(),
        0
    );
    let keep = "--keep index,kind";
    assert_eq!(folder.run(&format!("transform m.safetensors csr-gzip.h5ad -o a.csv {keep} -q")).code(), 0);
    let table = folder.read("a.csv");
    assert!(table.starts_with("index,kind,component_1,component_2\ncell0,T,"), "{table}");
    // Another file of the same cells has no such layer.
    let refusal = folder.run("transform m.safetensors dense-chunks.h5ad -o b.csv").refusal(3);
    assert!(refusal.contains("--layer counts: there is no such layer"), "{refusal}");
    assert_eq!(folder.run("convert csr-gzip.h5ad x.csv -q").code(), 0);
    let refusal = folder.run("transform m.safetensors x.csv -o b.csv").refusal(3);
    assert!(refusal.contains("the model was fitted on counts that were prepared"), "{refusal}");
}

#[test]
fn cells_that_do_not_fit_are_read_from_disk_to_the_same_answer() {
    let folder = folder_with(&["larger.h5ad"]);
    let arguments = format!("fit larger.h5ad -k 2 {PREPARED} --json");
    let loaded = folder.run(&format!("{arguments} --memory 1G -q")).json(0);
    let streamed = folder.run(&format!("{arguments} --memory 40M --threads 1 -o m.safetensors"));
    assert!(streamed.stderr().contains("are read from disk in every pass"), "{}", streamed.stderr());
    let streamed = streamed.json(0);
    let values = |fit: &serde_json::Value| numbers(&fit["eigenvalues"]);
    assert!(close(&values(&streamed), &values(&loaded), 1e-6), "{streamed} {loaded}");
    assert_eq!(streamed["nnz"], loaded["nnz"], "entries of the mask alone");
    assert_eq!(streamed["d"], 75);
    assert_eq!(folder.run("check m.safetensors larger.h5ad -q").code(), 0);
}

#[test]
fn commands_that_read_data_read_cells() {
    let folder = folder_with(&["csr-gzip.h5ad", "csc-lzf.h5ad"]);
    let info = folder.run("info csr-gzip.h5ad --json").json(0);
    assert_eq!((info["format"].as_str(), info["n"].as_u64()), (Some("h5ad"), Some(20)));
    assert_eq!(info["columns"]["names"][1], "gene1");
    let note = folder.run("info csr-gzip.h5ad").stderr();
    assert!(note.contains("--mask highly_variable uses these alone, as scanpy does"), "{note}");
    assert_eq!(folder.run(&format!("convert csr-gzip.h5ad x.csv {PREPARED} -q")).code(), 0);
    assert!(folder.read("x.csv").starts_with("gene1,gene4,gene7,gene10\n"));
    let fit = "fit csr-gzip.h5ad -k 2 --label-column kind --report r.html -q";
    assert_eq!(folder.run(fit).code(), 0);
    assert!(folder.read("r.html").contains("NK"));
    // Through a pipe, packed, and under another name: content decides.
    std::fs::copy(folder.path("csr-gzip.h5ad"), folder.path("cells")).unwrap();
    assert_eq!(folder.run("fit cells -k 2 -q").code(), 0);
    let refusal = folder.run("fit csc-lzf.h5ad -k 2 --memory 300").refusal(4);
    assert!(refusal.contains("stored by columns (CSC): anndata writes adata.X.tocsr() by rows"), "{refusal}");
}

#[test]
fn flags_that_do_not_fit_are_refused() {
    let folder = folder_with(&["csr-gzip.h5ad"]);
    folder.write("x.csv", "a,b\n1,2\n3,5\n");
    let refusal = folder.run("fit x.csv --log1p").refusal(3);
    assert!(refusal.contains("--log1p is for .h5ad files only"), "{refusal}");
    let refusal = folder.run("fit csr-gzip.h5ad --normalize -5").refusal(2);
    assert!(
        refusal.contains("--normalize = -5: a total of counts is a positive number, such as 1e4"),
        "{refusal}"
    );
    let refusal = folder.run("fit csr-gzip.h5ad --mask hvg").refusal(3);
    assert!(
        refusal.contains("--mask hvg: the table of genes has no such column; it has `highly_variable`"),
        "{refusal}"
    );
    let refusal = folder.run("fit csr-gzip.h5ad --layer scaled --log1p").refusal(3);
    assert!(
        refusal.contains("row 1, column 2 holds -0.5: --normalize and --log1p are for counts"),
        "{refusal}"
    );
    let refusal = folder.run("transform m.safetensors csr-gzip.h5ad -o x.h5ad").refusal(3);
    assert!(!refusal.is_empty());
}
