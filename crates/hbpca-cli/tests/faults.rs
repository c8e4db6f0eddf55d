//! Disks that fail: the n-th call on a file is refused, for every n. Each ends with an error or the right answer, and never with a
//! panic, a hang or half a file.
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "tests stop at surprises")]
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::{Folder, Run};

/// The library that makes calls fail; nothing where there is no C compiler.
fn library(folder: &Folder) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/fail_file.c");
    let library = folder.path("fail_file.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status();
    if built.is_ok_and(|status| status.success()) {
        return Some(library);
    }
    eprintln!("skipped: there is no C compiler");
    None
}

fn files(folder: &Folder) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.root().to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder.root()).unwrap().display().to_string();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn restore(folder: &Folder, files: &BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder.root()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
    }
    for (name, bytes) in files {
        let path = folder.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Runs `args` with its n-th call refused, for every n, and returns how many there are. `whole` tells whether an output is whole.
fn every_call(folder: &Folder, library: &Path, args: &str, outputs: &[&str]) -> usize {
    let before = files(folder);
    for n in 1.. {
        restore(folder, &before);
        let mut command = folder.command(args);
        command.env("LD_PRELOAD", library).env("HBPCA_FAIL_FILE", n.to_string());
        command.env("HBPCA_FAIL_BELOW", folder.root()).timeout(Duration::from_secs(120));
        let run = Run(command.output().unwrap());
        let said = run.stderr();
        let code = run.0.status.code();
        assert!(matches!(code, Some(0..=4)), "{args}: call {n}: {code:?}: {said}");
        assert!(!said.contains("panicked"), "{args}: call {n}: {said}");
        assert_eq!(code == Some(0), !said.contains("error:"), "{args}: call {n}: {said}");
        let after = files(folder);
        let changed = after.iter().filter(|(name, bytes)| before.get(*name) != Some(*bytes));
        let changed: Vec<&String> = changed.map(|(name, _)| name).collect();
        let is_output = |name: &&String| outputs.iter().any(|output| name.starts_with(output));
        assert!(changed.iter().all(is_output), "{args}: call {n} leaves {changed:?}: {said}");
        // What was there and was not replaced is there still.
        assert!(before.keys().all(|name| after.contains_key(name) || is_output(&name)), "{args}: call {n}");
        for output in outputs.iter().filter(|output| folder.path(output).exists()) {
            let intact = folder.path(output).is_file() && before.get(*output) == after.get(*output);
            assert!(intact || is_whole(folder, output), "{args}: call {n}: {output} is not whole: {said}");
            assert!(code != Some(0) || !intact, "{args}: call {n}: {output} was not written");
        }
        if !said.contains("injected fault") {
            assert_eq!(code, Some(0), "{args}: {said}");
            return n - 1;
        }
    }
    unreachable!()
}

/// Whether a file is what its name says, from its first byte to its last.
fn is_whole(folder: &Folder, name: &str) -> bool {
    let text = || String::from_utf8(std::fs::read(folder.path(name)).unwrap()).unwrap();
    match name.rsplit('.').next().unwrap() {
        "html" => text().trim_end().ends_with("</html>"),
        "ckpt" => folder.run(&format!("fit x.csv --solver krylov -k 2 --resume {name} -q")).code() == 0,
        "safetensors" => folder.run(&format!("info {name}")).code() == 0,
        _ => {
            folder.run(&format!("info {name} --json")).json(0)["n"].as_u64() == Some(300)
                || text().starts_with("passes,")
        }
    }
}

#[test]
fn every_call_on_a_file_may_fail() {
    let tools = Folder::new();
    let Some(library) = library(&tools) else { return };
    // /tmp may be a link: calls see where files really are.
    let folder = Folder::with_data();
    let prepare = [
        "fit x.csv -k 2 --solver krylov -q -o m.safetensors",
        "transform m.safetensors x.csv -q -o scores.csv",
        "convert x.csv x.chunks",
        "fit x.csv -k 2 --solver krylov -q --tol 1e-2 --checkpoint earlier.ckpt",
    ];
    prepare.iter().for_each(|args| assert_eq!(folder.run(args).code(), 0, "{args}"));
    // An output of that name is there already: it stays, or is replaced by a whole one.
    std::fs::copy(folder.path("m.safetensors"), folder.path("old.safetensors")).unwrap();
    let mut calls = Vec::new();
    for (args, outputs) in [
        (
            "fit x.csv -k 2 --solver krylov -q -o new.safetensors --trace t.csv --report r.html",
            &["new.safetensors", "t.csv", "r.html"][..],
        ),
        ("fit x.csv -k 3 -q -o old.safetensors", &["old.safetensors"]),
        ("fit x.chunks -k 2 -q -o new.safetensors", &["new.safetensors"]),
        ("fit x.csv -k 2 --solver krylov -q --resume earlier.ckpt -o new.safetensors", &["new.safetensors"]),
        ("transform m.safetensors x.csv -q -o s.csv", &["s.csv"]),
        ("transform m.safetensors x.csv -q -o s.parquet", &["s.parquet"]),
        ("inverse m.safetensors scores.csv -q -o back.npy", &["back.npy"]),
        ("convert x.csv y.npy -q", &["y.npy"]),
        ("convert x.csv y.npz -q", &["y.npz"]),
        ("convert x.csv y.csv.gz -q", &["y.csv.gz"]),
        ("convert x.csv y.chunks -q --shuffle 3", &["y.chunks"]),
        ("check m.safetensors x.csv -q", &[]),
        ("info x.chunks", &[]),
    ] {
        calls.push((args, every_call(&folder, &library, args, outputs)));
    }
    // Each of them has calls that may fail: the library was loaded, and knew the folder.
    assert!(calls.iter().all(|(_, calls)| *calls >= 3), "{calls:?}");
    println!("{calls:?}");
}

/// A checkpoint that cannot be written is a warning: the run goes on, and the last one stays.
#[test]
fn checkpoints_may_fail_and_the_run_goes_on() {
    let tools = Folder::new();
    let Some(library) = library(&tools) else { return };
    let folder = Folder::with_data();
    for n in 1..40 {
        let _ = std::fs::remove_file(folder.path("c.ckpt"));
        let mut command = folder.command("fit x.csv --solver power -k 1 --checkpoint c.ckpt");
        command.env("LD_PRELOAD", &library).env("HBPCA_FAIL_FILE", n.to_string());
        command.env("HBPCA_FAIL_BELOW", folder.root()).timeout(Duration::from_secs(60));
        let run = Run(command.output().unwrap());
        assert!(matches!(run.code(), 0 | 2 | 3 | 4), "{n}: {}", run.stderr());
        if run.code() == 0 && folder.path("c.ckpt").exists() {
            let resumed = folder.run("fit x.csv --solver power -k 1 --resume c.ckpt -q");
            assert_eq!(resumed.code(), 0, "{n}: {}", resumed.stderr());
        }
        assert!(
            folder.names().iter().all(|name| name == "x.csv" || name == "c.ckpt"),
            "{n}: {:?}",
            folder.names()
        );
    }
}

/// Data of more than 40 MiB while it is read: dense, sparse, and in parts.
fn large_data(folder: &Folder) {
    let mut state = 5_u64;
    let mut digit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 60) % 10
    };
    let (mut dense, mut sparse) = (String::new(), String::new());
    for _ in 0..75_000 {
        // Deviations fall from column to column, so that few passes suffice.
        let row: Vec<String> = (0..120).map(|j| ((digit() * 64) >> (j / 8)).to_string()).collect();
        dense += &(row.join(",") + "\n");
    }
    for _ in 0..60_000 {
        let row: Vec<String> =
            (1..=60).map(|j| format!("{}:{}", j * 2, 1 + ((digit() * 64) >> (j / 4)))).collect();
        sparse += &("1 ".to_owned() + &row.join(" ") + "\n");
    }
    folder.write("x.csv", &dense);
    folder.write("s.svm", &sparse);
    for args in [
        "convert x.csv x.npy",
        "convert x.npy x.chunks --part-size 2",
        "convert s.svm s.chunks --part-size 2",
    ] {
        assert_eq!(folder.run(args).code(), 0, "{args}");
    }
    ["x.csv", "s.svm"].iter().for_each(|name| std::fs::remove_file(folder.path(name)).unwrap());
}

/// Rows that are read in every pass, ahead of the work: every call may fail, and the answer is an error or the right one.
#[test]
fn every_call_of_a_streamed_fit_may_fail() {
    let tools = Folder::new();
    let Some(library) = library(&tools) else { return };
    let folder = Folder::in_memory();
    large_data(&folder);
    let mut calls = Vec::new();
    // Of calls that are many and alike every 5th or 11th, unless all are wanted.
    let all = std::env::var_os("HBPCA_EVERY_FAULT").is_some();
    for (data, flags, step) in [
        ("x.npy", "--solver covariance -k 2", 1),
        ("x.npy", "--solver krylov -k 2 --tol 1e-3", 5),
        ("x.chunks", "--solver covariance -k 2", 1),
        ("s.chunks", "--solver covariance -k 2", 11),
    ] {
        let args = format!("fit {data} {flags} --memory 40M --json -o m.safetensors");
        let right = folder.run(&args).json(0);
        assert!(right["stream"].is_object(), "{args}: not streamed");
        for n in (1..).step_by(if all { 1 } else { step }) {
            let _ = std::fs::remove_file(folder.path("m.safetensors"));
            let mut command = folder.command(&args);
            command.env("LD_PRELOAD", &library).env("HBPCA_FAIL_FILE", n.to_string());
            command.env("HBPCA_FAIL_BELOW", folder.root()).timeout(Duration::from_secs(60));
            let run = Run(command.output().unwrap());
            let said = run.stderr();
            assert!(!said.contains("panicked"), "{args}: call {n}: {said}");
            assert!(
                !folder.names().iter().any(|name| name.contains("tmp")),
                "{args}: call {n}: {:?}",
                folder.names()
            );
            if run.code() == 0 {
                assert_eq!(run.json(0)["eigenvalues"], right["eigenvalues"], "{args}: call {n}: {said}");
                assert!(is_whole(&folder, "m.safetensors"), "{args}: call {n}: {said}");
            } else {
                assert!(matches!(run.code(), 2..=4), "{args}: call {n}: {said}");
                assert!(
                    said.contains("error: ") && said.contains("Input/output error"),
                    "{args}: call {n}: {said}"
                );
                assert!(!folder.path("m.safetensors").exists(), "{args}: call {n}: {said}");
            }
            if !said.contains("injected fault") {
                assert_eq!(run.code(), 0, "{args}: {said}");
                calls.push((args.clone(), n - 1));
                break;
            }
        }
    }
    // A pass over 17 chunks or more has as many reads.
    assert!(calls.iter().all(|(_, calls)| *calls >= 20), "{calls:?}");
    println!("{calls:?}");
}
